"""Attention itself: both twins against loops, against each other, against torch, and against numbers done by hand."""

import dataclasses
import inspect
import math
import tracemalloc
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import attnlib as al
from attnlib import steps, torch_layers
from attnlib.examples import ASYMMETRIC, FEATURES, IDENTITY, KARIM, SENTENCE, WORDS

INF = np.inf


def attention_by_loops(query, key, value, attn_mask=None, *, is_causal=False, scale=None):
    """The formula, one number at a time: weights and output."""
    n_q, d_k = query.shape[-2:]
    n_k, d_v = value.shape[-2:]
    leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    query, key, value = (np.broadcast_to(x, (*leading, *x.shape[-2:])) for x in (query, key, value))
    mask = np.broadcast_to(True if attn_mask is None else attn_mask, (*leading, n_q, n_k))
    scale = d_k**-0.5 if scale is None else float(scale)
    weights, output = np.zeros((*leading, n_q, n_k)), np.zeros((*leading, n_q, d_v))
    for at in np.ndindex(*leading, n_q):
        *batch, i = at
        row = []
        for j in range(n_k):
            score = scale * sum(float(query[at][c]) * float(key[(*batch, j)][c]) for c in range(d_k))
            if mask.dtype == bool:
                score = score if mask[at][j] else -INF
            else:
                score += float(mask[at][j])
            row.append(-INF if is_causal and j > i else score)
        largest = max(row)
        if largest == -INF:
            continue
        exps = [math.exp(score - largest) for score in row]
        weights[at] = [e / sum(exps) for e in exps]
        output[at] = sum(weights[at][j] * value[(*batch, j)].astype(float) for j in range(n_k))
    return weights, output


class Case(NamedTuple):
    name: str
    shapes: tuple  # query, key, value
    mask: Any = None
    options: dict = {}  # noqa: RUF012
    torch_has_it: bool = True  # torch's own function is defined on it


def some(*shape):
    """A boolean mask with both values in it and no row without a True."""
    mask = np.random.default_rng(1).random(shape) < 0.6
    mask[..., 0] = True
    return mask


def bias(*shape):
    """A floating mask: real numbers, and -inf in places."""
    return np.where(some(*shape), np.random.default_rng(2).normal(size=shape), -INF)


DEAD = np.array([[True, False, True, True, False], [False] * 5, [True] * 5])  # query 1 may attend to nothing
PLAIN, BATCH, HEADS = [((*b, 3, 4), (*b, 5, 4), (*b, 5, 6)) for b in ((), (2,), (2, 3))]
SELF = ((2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 6))  # n_q = n_k
CASES = [
    Case("n_q != n_k, d_v != d_k", PLAIN),
    Case("one of everything", ((1, 1), (1, 1), (1, 1))),
    Case("batch", BATCH),
    Case("heads", HEADS),
    Case("five axes", tuple((2, 1, *s) for s in BATCH)),
    Case("keys shared by the batch", ((2, 3, 4), (1, 5, 4), (1, 5, 6))),
    Case("keys without a batch", ((2, 3, 4), (5, 4), (5, 6))),
    Case("queries without a batch", ((3, 4), (2, 5, 4), (2, 5, 6))),
    Case("scale", PLAIN, options={"scale": 1.5}),
    Case("scale 0", PLAIN, options={"scale": 0}),
    Case("scale, a NumPy number", PLAIN, options={"scale": np.float32(-0.25)}),
    Case("boolean", PLAIN, some(3, 5)),
    Case("boolean for the batch", HEADS, some(3, 5)),
    Case("boolean for each batch", BATCH, some(2, 3, 5)),
    Case("boolean for each batch and head", HEADS, some(2, 3, 3, 5)),
    Case("boolean over keys", HEADS, some(2, 1, 1, 5)),
    Case("boolean over queries", PLAIN, np.array([[True], [False], [True]]), torch_has_it=False),
    Case("floating", PLAIN, bias(3, 5)),
    Case("floating for each head", HEADS, bias(1, 3, 3, 5)),
    Case("floating and scale", PLAIN, bias(3, 5), {"scale": 3.0}),
    Case("floating over queries", PLAIN, np.array([[0.5], [-INF], [-1.0]]), torch_has_it=False),
    Case("causal", SELF, options={"is_causal": True}),
    Case("causal, one query and one key", ((1, 4), (1, 4), (1, 6)), options={"is_causal": True}),
    Case("causal and boolean", SELF, some(2, 1, 1, 5), {"is_causal": True}, False),
    Case(
        "causal and boolean over queries", SELF, np.array([[True], [False]] * 2 + [[True]]), {"is_causal": True}, False
    ),
    Case("causal and floating", SELF, bias(5, 5), {"is_causal": True}, False),
    Case("causal and key 0 blocked", SELF, np.array([[False, True, True, True, True]]), {"is_causal": True}, False),
    Case("dead row", PLAIN, DEAD, torch_has_it=False),
    Case("dead row, heads", HEADS, DEAD, torch_has_it=False),
    Case("dead row, floating", BATCH, np.where(DEAD, 0.5, -INF), torch_has_it=False),
    Case("all rows dead", BATCH, np.zeros((3, 5), bool), torch_has_it=False),
]
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


def arrays_of(case, dtype=np.float64):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in case.shapes]


@every_case
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)], ids=["float64", "float32"])
def test_attention_is_the_formula(twin, case, dtype, tolerance):
    arrays = arrays_of(case, dtype)
    weights, output = attention_by_loops(*arrays, case.mask, **case.options)
    trace = twin.trace(*arrays, attn_mask=case.mask, **case.options)
    alone = twin.attend(*arrays, attn_mask=case.mask, **case.options)
    np.testing.assert_allclose(trace.weights, weights, atol=tolerance, rtol=0)
    np.testing.assert_allclose(trace.output, output, atol=tolerance, rtol=0)
    np.testing.assert_allclose(alone, output, atol=tolerance, rtol=0)
    assert alone.dtype == trace.output.dtype == trace.weights.dtype == trace.scores.dtype == dtype
    dead = ~weights.any(-1)
    assert (trace.fully_masked == dead).all()
    assert (trace.weights[dead] == 0).all() and (trace.output[dead] == 0).all() and (alone[dead] == 0).all()


@every_case
def test_twins_agree_in_every_step(twins, case):
    arrays = arrays_of(case)
    ours, theirs = (twin.trace(*arrays, attn_mask=case.mask, **case.options) for twin in twins)
    for field in dataclasses.fields(al.AttentionTrace):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        assert type(a) is type(b), field.name
        if a is not None:
            assert np.shape(a) == np.shape(b), field.name
            assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind, field.name
            np.testing.assert_allclose(a, b, atol=1e-12, rtol=0, err_msg=field.name)


@pytest.mark.parametrize("case", [c for c in CASES if c.torch_has_it], ids=[c.name for c in CASES if c.torch_has_it])
def test_attention_is_torchs(twin, case):
    arrays = arrays_of(case)
    mask = None if case.mask is None else torch.tensor(case.mask)
    options = {k: float(v) if k == "scale" else v for k, v in case.options.items()}
    expected = F.scaled_dot_product_attention(*map(torch.tensor, arrays), attn_mask=mask, **options)
    np.testing.assert_allclose(
        twin.attend(*arrays, attn_mask=case.mask, **case.options), expected.numpy(), atol=1e-12, rtol=0
    )


def test_trace_keeps_raw_scores_and_a_chain_of_steps(twin, rng):
    query, key, value = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 6))
    mask = some(3, 5)
    trace = twin.trace(query, key, value, attn_mask=mask)
    raw = np.array([[query[i] @ key[j] for j in range(5)] for i in range(3)])
    np.testing.assert_allclose(trace.scores, raw, atol=1e-12)
    assert trace.scale == 0.5
    np.testing.assert_allclose(trace.scaled_scores, raw / 2, atol=1e-12)
    np.testing.assert_allclose(trace.masked_scores, np.where(mask, raw / 2, -INF), atol=1e-12)
    np.testing.assert_allclose(trace.output, trace.weights @ value, atol=1e-12)
    assert (trace.attn_mask == mask).all()
    for name, given in (("query", query), ("key", key), ("value", value)):
        assert (getattr(trace, name) == given).all()


def test_trace_is_frozen(twin):
    trace = twin.trace(*KARIM.project())
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.weights = None


def test_steps_are_named_and_each_comes_after_what_it_takes(twin):
    trace = twin.trace(*KARIM.project())
    names = [name for name, *_ in trace.steps()]
    assert {"query", "key", "value", "scores", "scaled_scores", "masked_scores", "weights", "output"} <= set(names)
    assert all(array is getattr(trace, name) for name, array, _, _ in trace.steps())
    for k, step in enumerate(al.steps.STEPS):
        assert step.name == names[k] and set(step.takes) & set(names) <= set(names[:k])
    fields = [field.name for field in dataclasses.fields(trace) if field.name in names]
    assert fields == names


@pytest.mark.parametrize(
    ("leading", "dims"),
    [((), "(n_q, n_k)"), ((2,), "(b, n_q, n_k)"), ((2, 3), "(b, h, n_q, n_k)"), ((1, 2, 3), "(..., n_q, n_k)")],
)
def test_steps_name_the_axes(twin, leading, dims):
    x = np.ones((*leading, 3, 2))
    assert {name: d for name, _, d, _ in twin.trace(x, x, x).steps()}["scores"] == dims


@pytest.mark.parametrize(
    ("mask", "formula"),
    [
        (None, "scaled scores (no mask)"),
        (np.tri(3, dtype=bool), "scaled scores, -inf where blocked"),
        (np.zeros((3, 3)), "scaled scores + mask"),
    ],
    ids=["none", "boolean", "floating"],
)
def test_steps_say_how_the_mask_was_applied(twin, mask, formula):
    steps = twin.trace(*KARIM.project(), attn_mask=mask).steps()
    assert {name: f for name, _, _, f in steps}["masked_scores"] == formula


def test_repr_shows_names_dims_shapes_and_dead_rows():
    x = np.ones((3, 2))
    text = repr(al.attention_trace(x, x, x, np.array([[True], [False], [False]])))
    assert text.splitlines()[0] == "AttentionTrace, scale = 0.7071, fully masked rows: 2"
    assert "  weights        (n_q, n_k)  (3, 3)  softmax over keys" in text.splitlines()
    page = al.attention_trace(x, x, x)._repr_html_()
    assert "<td><code>weights</code></td><td>softmax over keys</td><td>(n_q, n_k)</td><td>(3, 3)</td>" in page
    assert "fully masked" not in page


def test_repr_of_the_two_twins_is_the_same(rng):
    arrays = [rng.normal(size=(2, 3, 4)) for _ in range(3)]
    options = {"attn_mask": al.padding_mask([0, 2], 3), "is_causal": True}
    assert repr(al.attention_trace(*arrays, **options)) == repr(
        torch_layers.attention_trace(*map(torch.tensor, arrays), **options)
    )


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "attention_trace"])
def test_twins_take_the_same_arguments(name):
    ours, twin = (inspect.signature(getattr(module, name)).parameters for module in (al, torch_layers))
    assert [p.replace(annotation=None) for p in ours.values()] == [p.replace(annotation=None) for p in twin.values()]


def test_lists_of_numbers_are_arrays():
    query, key, value = KARIM.project()
    lists = [x.astype(int).tolist() for x in (query, key, value)]
    trace = al.attention_trace(*lists)
    for name, array in (("query", query), ("key", key), ("value", value)):
        assert getattr(trace, name).dtype == np.float64 and (getattr(trace, name) == array).all()
    assert (trace.output == al.scaled_dot_product_attention(query, key, value)).all()
    assert (al.scaled_dot_product_attention(tuple(lists[0]), *lists[1:]) == trace.output).all()
    assert al.softmax([2, 4, 4]).tolist() == al.softmax(np.array([2, 4, 4])).tolist()
    assert al.softmax([np.zeros(2), [0.0, 0.0]]).tolist() == [[0.5, 0.5]] * 2
    assert al.entropy([0.5, 0.5]) == al.entropy(np.array([0.5, 0.5]))
    assert lists == [x.tolist() for x in (query, key, value)]  # nothing was written into


def test_integers_are_computed_in_float64():
    query, key, value = (x.astype(np.int8) for x in KARIM.project())
    trace = al.attention_trace(query * 10, key * 10, value)  # products above 127
    np.testing.assert_array_equal(trace.scores, 100 * (KARIM.project()[0] @ KARIM.project()[1].T))
    assert trace.output.dtype == np.float64
    assert al.softmax(np.array([1, 1])).tolist() == [0.5, 0.5]


# Worked by hand


def test_the_identity_example(twin):
    query, key, value = IDENTITY.project()
    expected = [[1.6604769, 2.6604769], [2.3395231, 3.3395231]]
    np.testing.assert_allclose(twin.attend(query, key, value), expected, atol=5e-8, rtol=0)


def test_the_projections_done_by_hand():
    query, key, value = KARIM.project()
    assert key.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert query.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert value.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]


def test_the_example_done_by_hand_without_scaling(twin):
    trace = twin.trace(*KARIM.project(), scale=1.0)
    assert trace.scores.tolist() == trace.scaled_scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    assert [" ".join(f"{w:.4e}" for w in row) for row in trace.weights] == [
        "6.3379e-02 4.6831e-01 4.6831e-01",
        "6.0337e-06 9.8201e-01 1.7986e-02",
        "2.9539e-04 8.8054e-01 1.1917e-01",
    ]
    output = [[1.936621, 6.683105, 1.595068], [1.999994, 7.963992, 0.053976], [1.999705, 7.759892, 0.358389]]
    np.testing.assert_allclose(trace.output, output, atol=5e-7, rtol=0)
    rounded = [[2, 7, 1.5], [2, 8, 0], [2, 7.8, 0.3]]  # what the rounded weights [[0, .5, .5], ...] give
    assert np.abs(trace.output - rounded).max().round(3) == 0.317


def test_the_example_done_by_hand_with_scaling(twin):
    trace = twin.trace(*KARIM.project())
    np.testing.assert_allclose(trace.weights[0], [0.136126, 0.431937, 0.431937], atol=5e-7, rtol=0)
    output = [[1.863874, 6.319371, 1.704189], [1.999110, 7.814124, 0.273472], [1.992555, 7.479636, 0.735877]]
    np.testing.assert_allclose(trace.output, output, atol=5e-7, rtol=0)
    np.testing.assert_allclose(twin.attend(*KARIM.project()), trace.output, atol=1e-12, rtol=0)


def test_the_sentence(twin):
    trace = twin.trace(*SENTENCE.project())
    scores = [[2, 3, 0, 2], [1, 0, 1, 0], [0, 3, 0, 0], [5, 0, 3, 2]]
    e = [[math.exp(s / math.sqrt(3)) for s in row] for row in scores]
    weights = [[value / sum(row) for value in row] for row in e]
    who_and_verb = [(2 * anna - 2 * ben, saw) for anna, saw, ben, _ in weights]
    assert trace.scores.tolist() == scores
    np.testing.assert_allclose(trace.weights, weights, atol=1e-12, rtol=0)
    np.testing.assert_allclose(trace.output, who_and_verb, atol=1e-12, rtol=0)
    np.testing.assert_allclose(trace.weights[3], [0.6461, 0.0360, 0.2036, 0.1143], atol=5e-5, rtol=0)
    np.testing.assert_allclose(trace.output[:, 0], [0.3344, 0, 0, 0.8849], atol=5e-5, rtol=0)


def test_the_sentence_hides_no_mistake(twin):
    x, w_q, w_k, w_v = SENTENCE
    assert x.shape == (len(WORDS), len(FEATURES)) and w_q.shape == w_k.shape == (6, 3) and w_v.shape == (6, 2)
    query, key, value = SENTENCE.project()
    slices = [x[0, start : start + 3].tolist() for start in range(4)]
    assert key[0].tolist() == [1, 1, 0] and key[0].tolist() not in slices  # else 1.1 could be solved without W_K
    scores, right = query @ key.T, twin.attend(query, key, value)
    assert all((scores[i] != scores[:, i]).any() for i in range(4))
    mistakes = {"sqrt(d_in)": math.sqrt(6), "sqrt(d_v)": math.sqrt(2), "sqrt(n)": 2, "d_k": 3, "nothing": 1}
    wrong = {name: al.scaled_dot_product_attention(query, key, value, scale=1 / by) for name, by in mistakes.items()}
    wrong["softmax over the queries"] = al.softmax(scores / math.sqrt(3), axis=0) @ value
    wrong["Q and K swapped"] = al.scaled_dot_product_attention(key, query, value)
    moved = {name: float(np.abs(output - right)[3].max()) for name, output in wrong.items()}
    assert min(moved.values()) > 0.12, moved


def test_the_asymmetric_example_has_no_symmetry():
    x, w_q, w_k, w_v = ASYMMETRIC
    (n, d_in), d_k, d_v = x.shape, w_q.shape[1], w_v.shape[1]
    assert w_k.shape == w_q.shape == (d_in, d_k) and w_v.shape == (d_in, d_v)
    assert len({n, d_in, d_k, d_v}) == 4
    for scale in (None, 1.0):
        weights = al.attention_trace(*ASYMMETRIC.project(), scale=scale).weights
        assert weights.min() > 0.01 and weights.max() < 0.95


MISTAKES = {
    "softmax over the queries": lambda q, k, v: al.softmax(q @ k.T / math.sqrt(2), axis=0) @ v,
    "Q and K swapped": lambda q, k, v: al.scaled_dot_product_attention(k, q, v),
    "no scale": lambda q, k, v: al.scaled_dot_product_attention(q, k, v, scale=1.0),
    "divided by d_k": lambda q, k, v: al.scaled_dot_product_attention(q, k, v, scale=1 / 2),
    "divided by sqrt(d_v)": lambda q, k, v: al.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(5)),
    "divided by sqrt(n)": lambda q, k, v: al.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(4)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_asymmetric_example_shows_every_mistake(twin, mistake):
    right, wrong = twin.attend(*ASYMMETRIC.project()), MISTAKES[mistake](*ASYMMETRIC.project())
    assert wrong.shape == right.shape  # the shape alone would not tell
    assert np.abs(wrong - right).max(axis=-1).min() > 1e-3  # in every row


def test_the_examples_are_read_only():
    for example in (SENTENCE, KARIM, IDENTITY, ASYMMETRIC):
        for array in example:
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0] = 7


# softmax and entropy: what does not take an arbitrary input (test_properties.py has the rest)


def test_softmax_of_nothing_but_minus_infinity_is_zero():
    scores = np.array([[-INF, -INF], [-INF, 0.0]])
    assert al.softmax(scores).tolist() == [[0, 0], [0, 1]]
    assert al.softmax(scores, axis=0).tolist() == [[0, 0], [0, 1]]
    assert al.softmax(np.array([-INF])).tolist() == [0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_keeps_the_dtype(dtype):
    weights = al.softmax(np.array([0.0, 1e4, 1e4], dtype=dtype))
    assert weights.dtype == dtype
    assert weights.tolist() == [0, 0.5, 0.5]


def test_entropy_in_exact_cases():
    weights = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0]])
    entropies = al.entropy(weights)
    np.testing.assert_allclose(entropies, [0, math.log(2), math.log(4), 0], atol=1e-15)
    assert not np.signbit(entropies).any()  # -0.0 would print as "-0."
    np.testing.assert_allclose(al.entropy(weights.T, axis=0), entropies, atol=1e-15)
    assert al.entropy(np.array([1, 0])) == 0


def test_entropy_lets_nan_through():
    entropies = al.entropy(np.array([[np.nan, np.nan], [1.0, 0.0]]))
    assert np.isnan(entropies[0]) and entropies[1] == 0


def test_a_new_step_that_takes_what_a_twin_does_not_give_is_named(twin, monkeypatch):
    capped = steps.Step("capped_scores", "n_q, n_k", "capped", "cap", ("scaled_scores", "softcap"), lambda x, cap: x)
    monkeypatch.setattr(steps, "STEPS", (*steps.STEPS[:5], capped, *steps.STEPS[5:]))
    with pytest.raises(ValueError, match=r"'capped_scores' takes scaled_scores, softcap, but softcap is neither given"):
        twin.trace(*KARIM.project())


def test_no_more_than_two_maps_stand_in_memory_at_once():
    """Lesson long_texts shows what a map costs: the function without a trace lets go of what it no longer needs."""
    x, mask = np.random.default_rng(0).normal(size=(512, 8)), al.causal_mask(512)
    of_one_map = 512 * 512 * 8
    for attn_mask in (None, mask):
        tracemalloc.start()
        al.scaled_dot_product_attention(x, x, x, attn_mask)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2.4 * of_one_map, peak / of_one_map
