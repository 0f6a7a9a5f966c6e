"""The first stage that differs is told truly, or not at all."""

import functools
import itertools

import numpy as np
import pytest
from answers import MODULE, A, M, right, submit

import attnlib as al
from attncourse import EXERCISES, MISTAKES, check
from attncourse.engine.exercise import BY_STAGE, Function
from attncourse.engine.steps import Steps
from attncourse.mistakes.mistake import masked_by

UNMASKED = (A, "SelfAttention")  # lesson masks teaches masks


def test_the_stage_is_measured():
    def attention(q, k, v, m=None, scale=1.0, power=1, value=1, roll=0):
        m = m if m is None else np.roll(m, roll, axis=-1)
        return right(scale * q, k**power, v**value, m)

    cases = [
        (dict(scale=1.3), "scale", "1.3 times"),
        (dict(power=2), "scores", ""),
        (dict(value=2), "output", ""),
    ]
    for change, stage, detail in cases:
        verdict = check.scaled_dot_product_attention(functools.partial(attention, **change))
        assert verdict.stage == stage and detail in verdict.message
    assert check.masked_attention(functools.partial(attention, roll=1)).stage == "mask"
    halved = check.scaled_dot_product_attention(lambda *a: right(*a) * (1 + np.arange(len(a[0])))[:, None])
    assert halved.stage == "softmax or output", halved


@pytest.mark.parametrize("name", [name for name, exercise in EXERCISES.items() if isinstance(exercise, Function)])
def test_no_fixed_number_passes_for_the_scale(name, monkeypatch):
    exercise, widths = EXERCISES[name], set()
    right = exercise.expected

    def scaled(by):
        prop = functools.cached_property(by)
        prop.__set_name__(Steps, "scaled_scores")
        monkeypatch.setattr(Steps, "scaled_scores", prop)
        return exercise._outcomes(exercise.reference)

    scaled(lambda s: widths.add(s.q.shape[-1]) or s.scores / np.sqrt(s.q.shape[-1]))
    assert exercise.expected is right
    for d_k in widths:
        assert exercise._differs(scaled(lambda s, d_k=d_k: s.scores / np.sqrt(d_k))), f"sqrt({d_k}) for every d_k"


def test_the_exercises_with_a_scale_are_tried_on_several_d_k():
    """Beside the test above, which is silent where nothing is scaled."""
    fixed = {A: (3, 5), "masked_attention": (3, 5), "SelfAttention": (4, 3)}
    for name, (right_for, tried) in fixed.items():
        exercise = EXERCISES[name]
        verdict = submit(exercise, exercise.with_steps({"scaled_scores": lambda s, d=right_for: s.scores / np.sqrt(d)}))
        told = f"The scale does not change with d_k: it was right for {right_for}, and here d_k is {tried}."
        assert (verdict.state, verdict.mistake, verdict.stage) == (
            "wrong",
            "another_scale",
            "scale",
        ) and told in verdict.message


@pytest.mark.parametrize("name", ["multi_head_attention", "masked_attention", "SelfAttention", "MultiHeadAttention"])
@pytest.mark.parametrize(
    "stage, steps",
    [
        ("scale", {"scaled_scores": lambda s: 1.3 * s.scores / np.sqrt(s.q.shape[-1])}),
        ("scores", {"scores": lambda s: s.q @ np.swapaxes(s.k**2, -1, -2)}),
        ("mask", masked_by(lambda s: s.scaled_scores + np.where(s.mask, 1, -1))),
        ("softmax or output", {"weights": lambda s: al.softmax(s.masked_scores) ** 2}),
        ("output", {"output": lambda s: s.weights @ s.v**3}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_stage_is_found_in_every_attention_exercise(name, stage, steps):
    if stage == "mask" and name in UNMASKED:
        return
    exercise = EXERCISES[name]
    verdict = submit(exercise, exercise.with_steps(steps))
    assert (verdict.state, verdict.mistake, verdict.stage) == ("wrong", BY_STAGE.get(stage), stage)


@pytest.mark.parametrize(
    "change, stage",
    [
        (lambda q, k, v, m: (1.3 * q, k, v, m), "scale"),
        (lambda q, k, v, m: (q, k**2, v, m), "scores"),
        (lambda q, k, v, m: (q, k, v, m if m is None else np.roll(m, 1, axis=-1)), "mask"),
        (lambda q, k, v, m: (q, k, v**2, m), "output"),
    ],
)
def test_hints_follow_the_stage_that_is_wrong(change, stage):
    verdict = check.masked_attention(lambda q, k, v, m=None: al.scaled_dot_product_attention(*change(q, k, v, m)))
    assert verdict.stage == stage
    first, second, third = (verdict.hint() for _ in range(3))
    assert (first.split(": ", 1)[1], second.split(": ", 1)[1]) == MISTAKES[BY_STAGE[stage]].hints
    assert check.masked_attention.hints[1] in third


# what is done where a mask comes; without one all are right
ONLY_BEHIND_A_MASK = {
    "root of n_k": lambda q, k, v, m: al.softmax(np.where(m, q @ swapped(k), -np.inf) / k.shape[-2] ** 0.5) @ v,
    "64": lambda q, k, v, m: al.softmax(np.where(m, q @ swapped(k), -np.inf) / 8) @ v,
    "over everything": lambda q, k, v, m: (e := np.where(m, np.exp(q @ swapped(k) / 9), 0)) / e.sum() @ v,
    "no scale, mask moved": lambda q, k, v, m: al.softmax(np.where(np.roll(m, 1, -1), q @ swapped(k), -np.inf)) @ v,
}


def test_a_branch_behind_the_mask_without_the_scale_is_named():
    def behind(q, k, v, m=None):
        return right(q, k, v) if m is None else al.softmax(np.where(m, q @ swapped(k), -np.inf)) @ v

    assert check.masked_attention(behind).mistake == "no_scale_with_mask"


@pytest.mark.parametrize("behind", ONLY_BEHIND_A_MASK.values(), ids=ONLY_BEHIND_A_MASK)
def test_a_wrong_branch_behind_the_mask_does_not_accuse_the_mask(behind):
    verdict = check.masked_attention(lambda q, k, v, m=None: right(q, k, v) if m is None else behind(q, k, v, m))
    assert (verdict.state, verdict.mistake, verdict.stage) == ("wrong", "another_branch", None)
    assert "With one they are not: check scale, mask and axis there." in verdict.message


@pytest.mark.parametrize("scale, axis, roll, stage", [(2, -1, 0, None), (2, -2, 0, None), (1, -1, 1, "mask")])
def test_a_masked_softmax_accuses_the_mask_alone_where_the_rest_is_right(scale, axis, roll, stage):
    def masked(scores, m=None):
        if m is None:
            return al.softmax(scores)
        return al.softmax(np.where(np.roll(m, roll, -1), scale * scores, -np.inf), axis=axis)

    verdict = check.masked_softmax(masked)
    assert (verdict.state, verdict.mistake, verdict.stage) == ("wrong", BY_STAGE.get(stage), stage)


def swapped(x):
    return np.swapaxes(x, -1, -2)


def squash(x):
    return x / (1 + np.abs(x))


def by_block(s, x, weight):
    """Split before projecting: every head uses the upper left corner of the matrix."""
    cut = s.split(x)
    return cut @ weight[: cut.shape[-1], : cut.shape[-1]]


def unsorted_split(s):
    return lambda x: Steps.split.func(s)(np.roll(x, 1, axis=-1))


def with_projections(*names):
    inputs = {"q": ("query", "W_Q"), "k": ("key", "W_K"), "v": ("value", "W_V")}
    return lambda change: {
        n: lambda s, n=n: s.split(change(getattr(s, inputs[n][0]), getattr(s, inputs[n][1]))) for n in names
    }


def noise(s, x):
    return x + 0.3 * np.sin(np.arange(x.size)).reshape(x.shape)


# what is replaced -> the stages that may be called the first to differ
STAGES = {
    "a third of a scale": ({"scaled_scores": lambda s: s.scores / (3 * s.q.shape[-1])}, "scale"),
    "scale 1.3": ({"scaled_scores": lambda s: 1.3 * s.scores / np.sqrt(s.q.shape[-1])}, "scale"),
    "scale -1": ({"scaled_scores": lambda s: -s.scores / np.sqrt(s.q.shape[-1])}, "scale"),
    "squared keys": ({"scores": lambda s: s.q @ swapped(s.k**2)}, "scores"),
    "squared queries": ({"scores": lambda s: s.q**2 @ swapped(s.k)}, "scores"),
    "distances": ({"scores": lambda s: -((s.q[..., :, None, :] - s.k[..., None, :, :]) ** 2).sum(-1)}, "scores"),
    "cosines": ({"scores": lambda s: s.q / np.linalg.norm(s.q, axis=-1, keepdims=True) @ swapped(s.k)}, "scores scale"),
    "places added": ({"scores": lambda s: noise(s, s.q @ swapped(s.k))}, "scores"),
    "first feature left out": ({"scores": lambda s: s.q[..., 1:] @ swapped(s.k[..., 1:])}, "scores"),
    "clipped scores": (
        {"scaled_scores": lambda s: np.clip(s.scores / np.sqrt(s.q.shape[-1]), -0.5, 0.5)},
        "scale softmax",
    ),
    "squashed scores": ({"scaled_scores": lambda s: squash(s.scores)}, "scale softmax"),
    "squared weights": ({"weights": lambda s: al.softmax(s.masked_scores, s.axis) ** 2}, "softmax"),
    "squared weights, shared out": (
        {"weights": lambda s: (w := al.softmax(s.masked_scores) ** 2) / w.sum(-1, keepdims=True)},
        "scale softmax",
    ),
    "sigmoid": ({"weights": lambda s: 1 / (1 + np.exp(-s.masked_scores))}, "softmax"),
    "relu": ({"weights": lambda s: np.maximum(np.where(np.isinf(s.masked_scores), 0, s.masked_scores), 0)}, "softmax"),
    "negative weights": ({"weights": lambda s: 2 * al.softmax(s.masked_scores) - 0.2}, "softmax"),
    "queries shared out twice": (
        {"weights": lambda s: al.softmax(s.masked_scores) / al.softmax(s.masked_scores).sum(-2, keepdims=True)},
        "softmax",
    ),
    "uniform": (
        {"weights": lambda s: np.ones_like(s.scaled_scores) / s.scaled_scores.shape[-1]},
        "scores scale softmax",
    ),
    "mask lowers": (masked_by(lambda s: s.scaled_scores + np.where(s.mask, 1, -1)), "mask"),
    "mask moved": ({"allowed": lambda s: np.roll(s.mask, 1, -1)}, "mask"),
    "cubed values": ({"output": lambda s: s.weights @ s.v**3}, "output"),
    "twice the output": ({"output": lambda s: 2 * s.weights @ s.v}, "output"),
    "one added": ({"output": lambda s: s.weights @ s.v + 1}, "output"),
    "rows moved": ({"output": lambda s: np.roll(s.weights @ s.v, 1, -2)}, "output"),
    "mean taken off": ({"output": lambda s: s.weights @ (s.v - s.v.mean(axis=-2, keepdims=True))}, "output"),
    "half a residual": ({"output": lambda s: s.weights @ s.v + 0.5 * s.v.mean()}, "output"),
}

PROJECTED = {
    "W turned round": (with_projections("q", "k", "v")(lambda x, W: x @ W[::-1]), "projections"),
    "W.T of the queries": (with_projections("q")(lambda x, W: x @ W.T), "projections"),
    "W.T of queries and keys": (with_projections("q", "k")(lambda x, W: x @ W.T), "projections"),
    "W.T of the values": (with_projections("v")(lambda x, W: x @ W.T), "projections output"),
    "queries not projected": (with_projections("q")(lambda x, W: x), "projections"),
    "queries twice projected": (with_projections("q")(lambda x, W: x @ W @ W), "projections"),
    "bent projections": (with_projections("q", "k")(lambda x, W: squash(x @ W)), "projections scores"),
    "keys by W_V": ({"k": lambda s: s.split(s.key @ s.W_V)}, "projections"),
    "queries by W_V": ({"q": lambda s: s.split(s.query @ s.W_V)}, "projections"),
    "centred tokens": (with_projections("q", "k")(lambda x, W: (x - x.mean(-1, keepdims=True)) @ W), "projections"),
    "scale and W": (with_projections("q")(lambda x, W: x @ W[::-1]) | STAGES["scale 1.3"][0], "projections"),
    "values by W_Q": ({"v": lambda s: s.split(s.value @ s.W_Q)}, "projections output"),
}

HEADS = {
    "split first": (
        {
            n: lambda s, x=x, w=w: by_block(s, getattr(s, x), getattr(s, w))
            for n, x, w in (("q", "query", "W_Q"), ("k", "key", "W_K"), ("v", "value", "W_V"))
        },
        "projections split heads",
    ),
    "split turned": ({"split": unsorted_split}, "split heads"),
    "split queries apart": ({"q": lambda s: unsorted_split(s)(s.query @ s.W_Q)}, "projections split heads"),
    "heads in another order": ({"merge": lambda s: lambda x: al.merge_heads(x[..., ::-1, :, :])}, "output heads"),
    "merge turned": ({"merge": lambda s: lambda x: np.roll(al.merge_heads(x), 1, -1)}, "output heads"),
    "twice a residual": ({"projected": lambda s: s.merge(s.output) @ s.W_O + 2 * s.query}, "output"),
    "residual before W_O": ({"projected": lambda s: (s.merge(s.output) + s.query) @ s.W_O}, "output"),
    "values added": ({"projected": lambda s: s.merge(s.output) @ s.W_O + s.merge(s.output)}, "output"),
    "W_O twice": ({"projected": lambda s: s.merge(s.output) @ s.W_O @ s.W_O}, "output"),
    "value = query": (
        {"v": lambda s: s.split((s.query @ s.W_V)[..., :4, :].repeat(2, -2)[..., : s.key.shape[-2], :])},
        "projections output",
    ),
    "weights averaged": (
        {"weights": lambda s: al.softmax(s.masked_scores).mean(-3, keepdims=True).repeat(s.num_heads, -3)},
        "softmax heads",
    ),
    "softmax over heads": ({"weights": lambda s: al.softmax(s.scaled_scores, -3)}, "softmax"),
    "heads see the first query": (
        {"q": lambda s: s.split(s.query @ s.W_Q)[..., :1, :, :].repeat(s.num_heads, -3)},
        "projections split heads",
    ),
}

UNNAMED = [
    (name, change)
    for name in (A, "masked_attention", "SelfAttention", M, MODULE)
    for change in STAGES
    | (PROJECTED if name not in (A, "masked_attention") else {})
    | (HEADS if name in (M, MODULE) else {})
    if not (name in UNMASKED and change.startswith("mask "))
]


# What has a name without a stage.
NAMES = {
    "uniform": ["argument_ignored"],
    "softmax over heads": ["argument_ignored"],  # the mask
    **{key: ["argument_ignored"] for key in ("values by W_Q", "keys by W_V", "queries by W_V", "value = query")},
    "twice the output": ["factor"],
    "rows moved": ["rearranged"],
    "queries not projected": ["projections_unused"],
}


@functools.cache
def staged(name, change):
    """Return the verdict on the right steps with one replaced, and the stages that are true."""
    steps, truth = (STAGES | PROJECTED | HEADS)[change]
    exercise = EXERCISES[name]
    return submit(exercise, exercise.with_steps(steps)), truth.split()


@pytest.mark.parametrize("name, change", UNNAMED)
def test_the_stage_is_told_truly_or_not_at_all(name, change):
    verdict, truth = staged(name, change)
    assert verdict.state == "wrong"
    assert verdict.mistake in (None, *NAMES.get(change, ()), BY_STAGE.get(verdict.stage)), verdict
    assert verdict.stage is None or set(verdict.stage.split(" or ")) & set(truth), verdict


def test_the_stage_can_be_told_for_most():
    told = [verdict.stage for verdict, _ in itertools.starmap(staged, UNNAMED) if "First" in verdict.message]
    assert len(told) > 100
    assert sum(stage is not None for stage in told) / len(told) > 0.6
