"""Heads: where each feature goes, and the NumPy module against a loop over its heads."""

import numpy as np
import pytest
from test_core import attention_by_loops

import attnlib as al


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
