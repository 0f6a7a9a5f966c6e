"""The exercises of Scaling, and the inputs on which they are tried."""

import numpy as np

from ...engine.compare import RIGHT, close
from ...engine.exercise import Function, Number, step_options
from ...engine.probes import SINGLE, Draw, Probe, single
from ...engine.run import Unfit, numbers
from ...engine.verdict import number
from .mistakes import ScalingSteps


def variance_probes():
    draw = Draw("variance_of_scores")
    # Enough scores for the variances over N and N - 1 to agree: both are right.
    return (
        Probe("d_k = 3", (draw(70, 3), draw(60, 3)), 2e-3),
        Probe("d_k = 16", (draw(70, 16), draw(60, 16)), 2e-3),
        Probe("n_q = n_k = d_k", (draw(50, 50), 2 * draw(50, 50)), 2e-3),
        Probe("scores whose mean is not 0", (1 + draw(60, 3), 1 + draw(60, 3)), 2e-3),
    )


def entropy_probes():
    draw = Draw("entropy")
    one, batch, cube = (_share(draw(*shape)) for shape in ((4, 5), (2, 4, 5), (3, 3, 3)))
    return (
        Probe("one map of weights", (one,)),
        Probe("a batch of maps", (batch,)),
        Probe("equal axes", (cube,)),
        Probe(SINGLE, single(batch)),
        Probe("weights of exactly 0", (np.array([[0.5, 0.5, 0], [1, 0, 0], [0.2, 0.3, 0.5]]),)),
        Probe("weights below 0.001", (np.stack([np.full(41, 1 / 41), np.r_[0.98, np.full(40, 5e-4)]]),)),
    )


MIXED = "small and large tokens in one call"


def _scale_halves(x, small, large):
    """Return tokens of which the first half is small and the second large."""
    return x * np.repeat([small, large], len(x) // 2)[:, None]


class WithFewer(Function):
    """Scores of tokens; of a probe that says how many tokens stand first, those of these few alone, too."""

    def call_on_probe(self, function, args, **options):
        def both(query, key, few):
            fewer = function(query[:few], key[:few])
            return function(query, key), fewer

        return super().call_on_probe(both if len(args) == 3 else function, args, **options)


def range_probes():
    draw = Draw("scores_in_range")

    def probe(name, d_k, of_queries, of_keys):
        return Probe(name, (of_queries * draw(60, d_k), of_keys * draw(50, d_k)))

    return (
        probe("entries of variance 1, d_k = 16", 16, 1, 1),
        probe("entries of variance 1, d_k = 64", 64, 1, 1),
        probe("queries of standard deviation 3, d_k = 64", 64, 3, 1),
        probe("keys of standard deviation 1/3, d_k = 64", 64, 1, 1 / 3),
        probe("queries and keys of standard deviation 1/3, d_k = 36", 36, 1 / 3, 1 / 3),
        probe("d_k = 256, standard deviations 2 and 5", 256, 2, 5),
        Probe(MIXED, (_scale_halves(draw(120, 64), 1, 3), _scale_halves(draw(100, 64), 1 / 3, 1))),
        Probe("5 tokens, to which a sixth comes", (draw(6, 16), draw(6, 16), 5)),
    )


def _share(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def _judge_range(scores, query, key, few=None):
    """Judge scores by their variance; those of the first `few` tokens alone, which then come with them, by both.

    Of small and large tokens together each size is judged alone.
    """
    if few:
        more, fewer = (np.asarray(x, dtype=np.float64) for x in scores)
        if close(fewer, more[:few, :few], 1e-4):
            return RIGHT, ""
        return None, "The scores of the first five change when the sixth is added."
    try:
        scores, dots = numbers(scores), query @ key.T
    except Unfit as error:
        return None, str(error)
    if scores.shape != dots.shape:
        return None, (
            f"Your scores have shape {scores.shape}, expected is one for each query and key. "
            "Fix: start from query @ key.T."
        )
    mixed = np.std(query[len(query) // 2 :]) > 2 * np.std(query[: len(query) // 2])
    blocks = list(zip(_quarters(scores), _quarters(dots), strict=True)) if mixed else [(scores, dots)]
    if not all(_follow(*block) for block in blocks):
        return None, (
            "Your scores are not large where the plain dot products are: over all pairs the two have a correlation "
            "below 0.9."
        )
    if all(0.8 <= np.var(block) <= 1.25 for block, _ in blocks):
        return RIGHT, ""
    if mixed:
        return None, (
            "Tokens of one size alone are right. Together, some of their scores have a variance outside 0.8 to 1.25. "
            "A score may depend on its own query and key only."
        )
    return None, f"The variance of your scores is {number(np.var(scores))}; asked for is one between 0.8 and 1.25."


def _quarters(x):
    return [block for half in np.array_split(x, 2) for block in np.array_split(half, 2, axis=1)]


def _follow(scores, dots):
    with np.errstate(all="ignore"):
        return np.corrcoef(scores.ravel(), dots.ravel())[0, 1] >= 0.9  # False for NaN


EXERCISES = (
    Function(
        "variance_of_scores",
        "variance_of_scores(query, key) -> one number: the variance of all raw scores of query (n_q, d_k) and "
        "key (n_k, d_k).",
        (
            "First all scores, then one variance.",
            "The scores are one matrix product; no scale here.",
            "np.var of the whole matrix, without an axis.",
        ),
        probes=variance_probes(),
        **step_options("variance", "q k", of=ScalingSteps, stage="output"),
    ),
    Number(
        "uniform_divisor",
        "the positive divisor that gives scores variance 1 at d_k = 36, if entries are uniform in -1 .. 1 (variance "
        "1/3)",
        (
            "What is the variance of one product of two such entries?",
            "1/3 times 1/3, and 36 of them.",
            "The root of 36 / 9.",
        ),
        right=2.0,
        slips={
            "unit_variance_assumed": [6.0],
            "one_factor_counted": [12**0.5],
            "factor_and_root_forgotten": [12.0],
            "multiplied_by_divisor": [0.5],
            "root_forgotten": [4.0],
            "scale_by_d_k": [36.0],
            "features_not_added_up": [3**0.5, 3**-0.5, 3.0, 1 / 3, 9.0, 1 / 9],
        },
    ),
    Function(
        "entropy",
        "entropy(weights) -> (..., n_q), in nats: minus the sum of w ln w over the keys. A weight of 0 adds 0.",
        (
            "One number per query: the sum runs over the last axis.",
            "0 ln 0 counts as 0, and np.log(0) is -inf: give log another number there.",
            "np.where(weights > 0, weights, 1) has the logarithm 0 where the weight is 0.",
        ),
        probes=entropy_probes(),
        **step_options("entropy", "weights", of=ScalingSteps, stage="output"),
    ),
    WithFewer(
        "scores_in_range",
        "scores_in_range(query, key) -> (n_q, n_k), scores of variance 0.8 to 1.25, large where the dot product is. "
        "Entries have mean 0, those of query (n_q, d_k) one variance, those of key (n_k, d_k) another. "
        "A score depends on its own query and key only.",
        (
            "How large is this query? Measure each vector by itself, over its own entries: the last axis.",
            "What is the mean of the squares of its entries, and what should it be?",
            "Divide each vector by the root of the mean of its squares, and the scores by sqrt(d_k).",
        ),
        probes=range_probes(),
        **step_options("in_range", "q k", of=ScalingSteps, stage="scores"),
        judge=_judge_range,
    ),
)
