"""Heads: where each feature goes, and the NumPy module against a loop over its heads."""

import math

import numpy as np
import pytest
import torch
from test_core import attention_by_loops

import attnlib as al
from attnlib import torch_layers
from attnlib.examples import OUTPUT_FEATURES, SENTENCE, TWO_HEADS, WORDS


def attend_head_by_head(mha, query, key, value, masks, is_causal=False):
    """masks[b][h] is (n_q, n_k); returns output (b, n_q, embed_dim) and weights (b, h, n_q, n_k)."""
    q, k, v = query @ mha.W_Q + mha.b_Q, key @ mha.W_K + mha.b_K, value @ mha.W_V + mha.b_V
    outputs, weights = [], []
    for h in range(mha.num_heads):
        columns = slice(h * mha.d_k, (h + 1) * mha.d_k)
        mask = np.stack([masks[b][h] for b in range(len(query))])
        w, out = attention_by_loops(q[..., columns], k[..., columns], v[..., columns], mask, is_causal=is_causal)
        weights.append(w)
        outputs.append(out)
    return np.concatenate(outputs, -1) @ mha.W_O + mha.b_O, np.stack(weights, axis=1)


B, H, N_Q, N_K = 2, 3, 4, 5
PER_HEAD = np.random.default_rng(3).random((B, H, N_Q, N_K)) < 0.7
PER_HEAD[0, 1, 2] = False  # a dead row
MASKS = {
    "none": (None, np.ones_like(PER_HEAD)),
    "(n_q, n_k)": (PER_HEAD[0, 0], np.broadcast_to(PER_HEAD[0, 0], PER_HEAD.shape)),
    "(b, n_q, n_k)": (PER_HEAD[:, 0], np.broadcast_to(PER_HEAD[:, :1], PER_HEAD.shape)),
    "(b, 1, n_k)": (PER_HEAD[:, 0, :1], np.broadcast_to(PER_HEAD[:, :1, :1], PER_HEAD.shape)),
    "(b, h, n_q, n_k)": (PER_HEAD, PER_HEAD),
    "(1, h, 1, n_k)": (PER_HEAD[:1, :, :1], np.broadcast_to(PER_HEAD[:1, :, :1], PER_HEAD.shape)),
    "floating (b, n_q, n_k)": (
        al.to_additive(PER_HEAD[:, 0]),
        np.broadcast_to(PER_HEAD[:, :1], PER_HEAD.shape),
    ),
}


@pytest.fixture
def mha(rng):
    mha = al.MultiHeadAttention(6, H, kdim=7, vdim=5, rng=rng)
    for letter in "QKVO":
        setattr(mha, f"b_{letter}", rng.normal(size=6))  # biases start at 0, which would hide them
    return mha


@pytest.fixture
def inputs(rng):
    return rng.normal(size=(B, N_Q, 6)), rng.normal(size=(B, N_K, 7)), rng.normal(size=(B, N_K, 5))


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_the_module_is_a_loop_over_heads(mha, inputs, name, is_causal):
    mask, masks = MASKS[name]
    if is_causal:  # n_q = n_k: the last key is left out
        inputs, masks = (inputs[0], *(x[:, :N_Q] for x in inputs[1:])), masks[..., :N_Q]
        mask = None if mask is None else mask[..., :N_Q]
    expected_output, expected_weights = attend_head_by_head(mha, *inputs, masks, is_causal)
    output, weights = mha(*inputs, attn_mask=mask, is_causal=is_causal)
    np.testing.assert_allclose(output, expected_output, atol=1e-12)
    np.testing.assert_allclose(weights, expected_weights, atol=1e-12)


def test_lists_of_numbers_are_arrays(rng):
    x, mha = rng.normal(size=(3, 4)), al.MultiHeadAttention(4, 2, rng=rng)
    for ours, theirs in zip(mha(x.tolist()), mha(x), strict=True):
        assert (ours == theirs).all()
    assert (al.split_heads(x.tolist(), 2) == al.split_heads(x, 2)).all()
    assert (al.merge_heads(al.split_heads(x, 2).tolist()) == x).all()


def test_weights_can_be_averaged_or_left_out(mha, inputs):
    output, weights = mha(*inputs)
    averaged_output, averaged = mha(*inputs, average_attn_weights=True)
    alone, nothing = mha(*inputs, need_weights=False)
    assert nothing is None
    assert averaged.shape == (B, N_Q, N_K)
    np.testing.assert_allclose(averaged, weights.mean(axis=1), atol=1e-15)
    assert (alone == output).all() and (averaged_output == output).all()


def test_key_defaults_to_query_and_value_to_key(rng):
    mha = al.MultiHeadAttention(4, 2, rng=rng)
    x, other = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    assert (mha(x)[0] == mha(x, x, x)[0]).all()
    assert (mha(x, other)[0] == mha(x, other, other)[0]).all()
    assert mha(x, other)[1].shape == (2, 3, 5)  # no batch: (h, n_q, n_k)


def test_a_dead_row_gives_the_output_bias_alone(mha, inputs):
    output, weights = mha(*inputs, attn_mask=np.zeros((N_Q, N_K), bool))
    assert (weights == 0).all()
    assert (output == mha.b_O).all()


def test_weights_are_drawn_xavier_uniform():
    mha = al.MultiHeadAttention(64, 4, kdim=32, vdim=16, rng=0)
    for weight, d_in in ((mha.W_Q, 64), (mha.W_K, 32), (mha.W_V, 16), (mha.W_O, 64)):
        limit = np.sqrt(6 / (d_in + 64))
        assert weight.shape == (d_in, 64)
        assert 0.98 * limit < np.abs(weight).max() <= limit
        assert abs(weight.std() / (limit / np.sqrt(3)) - 1) < 0.05
    assert all((b == 0).all() and b.shape == (64,) for b in (mha.b_Q, mha.b_K, mha.b_V, mha.b_O))


def test_a_seed_or_a_generator_draws_the_same_weights():
    by_seed, by_generator = (al.MultiHeadAttention(8, 2, rng=rng) for rng in (5, np.random.default_rng(5)))
    for letter in "QKVO":
        assert (getattr(by_seed, f"W_{letter}") == getattr(by_generator, f"W_{letter}")).all()
    assert (by_seed.W_Q != al.MultiHeadAttention(8, 2).W_Q).any()


def test_without_bias_there_is_none(rng):
    mha = al.MultiHeadAttention(4, 2, bias=False, rng=rng)
    assert mha.b_Q is mha.b_K is mha.b_V is mha.b_O is None
    assert mha(np.zeros((3, 4)))[0].tolist() == np.zeros((3, 4)).tolist()


def test_repr():
    assert repr(al.MultiHeadAttention(8, 2)) == "MultiHeadAttention(embed_dim=8, num_heads=2), d_k = 4"


def two_heads(split=al.split_heads, merge=al.merge_heads, scale=None, over=-1, exchange=False, mask=None):
    """The two heads of the sentence step by step, each of which can be done wrongly."""
    x, *projections, W_O = TWO_HEADS
    q, k, v = (split(x @ W, 2) for W in projections)
    q, k = (k, q) if exchange else (q, k)
    scores = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    weights = al.softmax(scores if mask is None else np.where(mask, scores, -np.inf), over)
    return merge(weights @ v) @ W_O


def by_hand(last_key):
    """What "woman", "man", "verb" and "who" of each word come to; word i sees the keys up to last_key(i)."""
    scores = [
        [[2, 3, 0, 2], [5, 0, 2, 3], [0, 3, 0, 0], [5, 0, 3, 2]],  # head 1
        [[0, 0, 0, 0], [2, 0, 5, 0], [0, 0, 0, 0], [0, 3, 0, 0]],  # head 2
    ]
    output = np.zeros((4, 6))
    for column, head in (
        (OUTPUT_FEATURES.index("woman"), scores[0]),
        (OUTPUT_FEATURES.index("man"), scores[1]),
    ):  # whom each head finds
        for i, row in enumerate(head):
            e = [math.exp(s / math.sqrt(3)) if j <= last_key(i) else 0.0 for j, s in enumerate(row)]
            anna, saw, ben, _ = (value / sum(e) for value in e)
            output[i, column] = 2 * anna - 2 * ben
            output[i] += (2 * anna - 2 * ben) * np.eye(6)[5] + saw * np.eye(6)[3]
    return output


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_two_heads_of_the_sentence(is_causal):
    right = by_hand((lambda i: i) if is_causal else lambda i: 3)
    x, *weights = TWO_HEADS
    layer, twin = al.MultiHeadAttention(6, 2, bias=False), torch_layers.MultiHeadAttention(6, 2, bias=False).double()
    for name, W in zip(("W_Q", "W_K", "W_V", "W_O"), weights, strict=True):
        setattr(layer, name, W)
        getattr(twin, name).weight.data = torch.tensor(W.T)
    mask = al.causal_mask(4) if is_causal else None
    for output in (
        two_heads(mask=mask),
        layer(x, is_causal=is_causal)[0],
        twin(torch.tensor(x), is_causal=is_causal)[0].detach().numpy(),
    ):
        np.testing.assert_allclose(output, right, atol=1e-12, rtol=0)


def test_two_heads_hold_both_names_apart_where_one_lost_them():
    output, saw, she = two_heads(), WORDS.index("saw"), WORDS.index("she")
    woman, man, who = (OUTPUT_FEATURES.index(name) for name in ("woman", "man", "who"))
    one_head = al.scaled_dot_product_attention(*SENTENCE.project())
    assert one_head[saw, 0] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(output[saw, [woman, man, who]], [1.0635, -1.2776, -0.2141], atol=5e-5, rtol=0)
    assert output[saw, who] == pytest.approx(output[saw, woman] + output[saw, man], abs=1e-12)
    np.testing.assert_allclose(output[she, [woman, who]], one_head[she, 0], atol=1e-12, rtol=0)
    assert output[she, man] == pytest.approx(0, abs=1e-12)


def test_the_two_heads_hide_no_mistake():
    """Each moves what "saw" learns about Ben: column "man"."""

    def joined(heads):
        return heads.reshape(4, 6)

    wrong = {
        "reshaped straight to (h, n, d_k)": {"split": lambda x, h: x.reshape(h, 4, 3)},
        "heads joined by reshape": {"merge": joined},
        "split and joined by reshape": {"split": lambda x, h: x.reshape(h, 4, 3), "merge": joined},
        "the head axis left behind the tokens": {"split": lambda x, h: x.reshape(4, h, 3), "merge": joined},
        "no head axis": {"split": lambda x, h: x[None]},
        "features dealt out in turn": {"split": lambda x, h: np.moveaxis(x.reshape(4, 3, h), -1, 0)},
        "heads averaged": {"merge": lambda heads: np.tile(heads.mean(0), 2)},
        "sqrt(d_model)": {"scale": 6**-0.5},
        "sqrt(h)": {"scale": 2**-0.5},
        "d_k": {"scale": 1 / 3},
        "no scale": {"scale": 1.0},
        "softmax over the queries": {"over": -2},
        "Q and K exchanged": {"exchange": True},
    }
    right = two_heads()
    moved = {name: abs(two_heads(**how) - right)[1, OUTPUT_FEATURES.index("man")] for name, how in wrong.items()}
    assert min(moved.values()) > 0.2, moved
