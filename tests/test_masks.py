"""Masks: True = may attend, and what each function does to them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import attnlib as al
from attnlib.examples import SENTENCE

INF = np.inf


@pytest.mark.parametrize(
    ("n_q", "n_k", "align", "expected"),
    [
        (3, None, None, [[1, 0, 0], [1, 1, 0], [1, 1, 1]]),
        (1, 1, None, [[1]]),
        (2, 2, "upper_left", [[1, 0], [1, 1]]),
        (2, None, "lower_right", [[1, 0], [1, 1]]),
        (2, 4, "upper_left", [[1, 0, 0, 0], [1, 1, 0, 0]]),
        (2, 4, "lower_right", [[1, 1, 1, 0], [1, 1, 1, 1]]),
        (1, 5, "lower_right", [[1, 1, 1, 1, 1]]),  # decoding: the newest token sees all
        (4, 2, "upper_left", [[1, 0], [1, 1], [1, 1], [1, 1]]),
        (4, 2, "lower_right", [[0, 0], [0, 0], [1, 0], [1, 1]]),
    ],
)
def test_causal_mask_in_both_alignments(n_q, n_k, align, expected):
    mask = al.causal_mask(n_q, n_k, align=align)
    assert mask.dtype == bool
    assert mask.astype(int).tolist() == expected


SIZES = [(1, 5), (3, 5), (5, 3), (4, 4)]


@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
@pytest.mark.parametrize("align", ["lower_right", "upper_left"])
@pytest.mark.filterwarnings("ignore:Lower right causal bias")
def test_both_alignments_are_torchs(align, n_q, n_k):
    from torch.nn.attention import bias  # not at the top: it imports torch's compiler, which takes a second

    theirs = getattr(bias, f"causal_{align}")(n_q, n_k)
    assert al.causal_mask(n_q, n_k, align=align).tolist() == theirs._materialize().tolist()


@pytest.mark.parametrize(("n_q", "n_k"), SIZES)
def test_torchs_is_causal_is_the_upper_left(twin, rng, n_q, n_k):
    query, key, value = (rng.normal(size=(n, 3)) for n in (n_q, n_k, n_k))
    expected = F.scaled_dot_product_attention(*map(torch.tensor, (query, key, value)), is_causal=True)
    ours = twin.attend(query, key, value, attn_mask=al.causal_mask(n_q, n_k, align="upper_left"))
    np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_queries_that_continue_a_sequence_get_what_the_whole_sequence_gives_them(twin, rng):
    x = rng.normal(size=(5, 3))
    whole = twin.attend(x, x, x, is_causal=True)
    for n_q in (1, 2, 5):
        step = twin.attend(x[-n_q:], x, x, attn_mask=al.causal_mask(n_q, 5, align="lower_right"))
        np.testing.assert_allclose(step, whole[-n_q:], atol=1e-12)


def test_is_causal_is_the_causal_mask(twin, rng):
    x = rng.normal(size=(3, 4, 2))
    by_flag, by_mask = twin.trace(x, x, x, is_causal=True), twin.trace(x, x, x, attn_mask=al.causal_mask(4))
    assert (by_flag.weights == by_mask.weights).all()
    assert (by_flag.attn_mask == al.causal_mask(4)).all()


def test_the_sentence_behind_a_causal_mask(twin):
    trace = twin.trace(*SENTENCE.project(), is_causal=True)
    scores = [[2], [1, 0], [0, 3, 0], [5, 0, 3, 2]]  # of the keys that each word may see
    e = [[math.exp(s / math.sqrt(3)) for s in row] for row in scores]
    weights = [[value / sum(row) for value in row] + [0] * (4 - len(row)) for row in e]
    who_and_verb = [(2 * anna - 2 * ben, saw) for anna, saw, ben, _ in weights]
    np.testing.assert_allclose(trace.weights, weights, atol=1e-12, rtol=0)
    np.testing.assert_allclose(trace.output, who_and_verb, atol=1e-12, rtol=0)


@pytest.mark.parametrize("lengths", [[3, 0, 4], (3, 0, 4), np.array([3, 0, 4], np.uint8)])
def test_padding_mask_lets_attend_to_real_tokens(lengths):
    mask = al.padding_mask(lengths, 4)
    assert mask.dtype == bool and mask.shape == (3, 1, 4)
    assert mask[:, 0].astype(int).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]


def test_padding_hides_keys_and_an_empty_sequence_gives_zeros(twin, rng):
    x = rng.normal(size=(2, 4, 3))
    trace = twin.trace(x, x, x, attn_mask=al.padding_mask([2, 0], 4))
    assert (trace.weights[0, :, 2:] == 0).all() and (trace.weights[0, :, :2] > 0).all()
    assert (trace.weights[1] == 0).all() and (trace.output[1] == 0).all()
    np.testing.assert_allclose(trace.output[0], twin.attend(x[0], x[0, :2], x[0, :2]), atol=1e-12)


def test_padding_mask_with_heads(twin, rng):
    x = rng.normal(size=(2, 3, 4, 5))  # (b, h, n, d_k)
    weights = twin.trace(x, x, x, attn_mask=al.padding_mask([2, 4], 4)[:, None]).weights
    assert (weights[0, ..., 2:] == 0).all() and (weights[0, ..., :2] > 0).all() and (weights[1] > 0).all()


def test_combine_masks_needs_all_of_them():
    a, b = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
    assert al.combine_masks(a, b).tolist() == [[True, False], [False, False]]
    assert al.combine_masks(a, None, ~b).tolist() == [[False, True], [False, False]]
    assert al.combine_masks(al.causal_mask(3), al.padding_mask([1, 2], 3)).shape == (2, 3, 3)


def test_combine_masks_with_a_floating_one_adds():
    mask, bias = np.array([[True, False]]), np.array([[0.5, 7.0], [-INF, 1.0]], dtype=np.float32)
    for combined in (al.combine_masks(mask, bias), al.combine_masks(bias, mask)):
        assert combined.tolist() == [[0.5, -INF], [-INF, -INF]]
    assert al.combine_masks(bias, bias).tolist() == [[1, 14], [-INF, 2]]


def test_combine_masks_of_nothing_is_no_mask():
    assert al.combine_masks() is None
    assert al.combine_masks(None, None) is None


@pytest.mark.parametrize("mask", [np.array([[True, False]]), np.array([[0.0, -INF]])], ids=["boolean", "floating"])
@pytest.mark.parametrize("count", [1, 2])
def test_combine_masks_returns_a_new_array(mask, count):
    before = mask.copy()
    combined = al.combine_masks(*[mask] * count)
    assert not np.shares_memory(combined, mask)
    combined[...] = 0
    assert (mask == before).all()


def test_a_mask_and_its_additive_form_are_the_same_attention(twin, rng):
    query, key, value = (rng.normal(size=(n, 3)) for n in (4, 5, 5))
    mask = rng.random((4, 5)) < 0.5
    mask[1] = False
    boolean, additive = (twin.trace(query, key, value, attn_mask=m) for m in (mask, al.to_additive(mask)))
    assert (boolean.weights == additive.weights).all() and (boolean.fully_masked == additive.fully_masked).all()


@pytest.mark.parametrize(
    "mask",
    [[[1, 0]], np.array([[1, 0]], np.uint8), np.array([[1.0, 0.0]]), [[True, False]], torch.tensor([[1, 0]])],
    ids=["list", "uint8", "float", "bool", "tensor"],
)
def test_from_zero_blocked_reads_zeros_as_blocked(mask):
    allowed = al.from_zero_blocked(mask)
    assert allowed.dtype == bool
    assert allowed.tolist() == [[True, False]]


def test_float16_takes_a_large_negative_fill_as_blocked(twin, rng):
    x = rng.normal(size=(3, 4)).astype(np.float16)
    fill = np.where(np.tri(3, dtype=bool), 0, -1e9)  # below the smallest float16
    assert (twin.trace(x, x, x, attn_mask=fill).weights[~np.tri(3, dtype=bool)] == 0).all()


def test_a_floating_mask_of_0_and_1_is_refused_and_added_if_it_is_meant_so(twin, rng):
    """np.tril(np.ones((n, n))) would be added, and forbid nothing; 1 less in every place gives the same weights."""
    x, lower = rng.normal(size=(3, 4)), np.tril(np.ones((3, 3)))
    for mask in (lower, lower.astype(np.float32), lower[None], np.ones((3, 3))):
        with pytest.raises(ValueError, match="holds only 0 and 1"):
            twin.trace(x, x, x, attn_mask=mask)
    added = twin.trace(x, x, x, attn_mask=lower - 1).weights
    scores = x @ x.T / 2 + lower
    np.testing.assert_allclose(np.asarray(added), al.softmax(scores), atol=1e-7)
    for mask in (np.zeros((3, 3)), 2 * lower, np.where(lower, 0, -INF), lower - 0.5):
        twin.trace(x, x, x, attn_mask=mask)  # 0 alone is an additive mask that forbids nothing, any other one is meant
    with pytest.raises(ValueError, match="holds only 0 and 1"):
        al.combine_masks(lower, np.ones((3, 3), bool))
