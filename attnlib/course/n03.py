"""Notebook 03, scaling: its exercises, questions, and what only they need."""

from functools import cached_property

import numpy as np

from .. import core
from .exercise import Function, Number
from .mistakes.mistake import Mistake
from .prediction import Question
from .probes import SINGLE, Draw, Probe, single
from .steps import Steps


class _Steps(Steps):
    @cached_property
    def variance(self):
        return np.var(self.raw_scores)

    @cached_property
    def entropy(self):
        return core.entropy(self.weights)


def variance_probes():
    draw = Draw("variance_of_scores")
    # Enough scores for the variances over N and N - 1 to agree: both are right.
    return (
        Probe("d_k = 3", (draw(70, 3), draw(60, 3)), 2e-3),
        Probe("d_k = 16", (draw(70, 16), draw(60, 16)), 2e-3),
        Probe("n_q = n_k = d_k", (draw(50, 50), 2 * draw(50, 50)), 2e-3),
        Probe("scores whose mean is not 0", (1 + draw(70, 3), 1 + draw(60, 3)), 2e-3),
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
    )


def _share(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def _entropy_by(change):
    """Replace the entropy by `change(weights)`."""
    return {"entropy": lambda s: change(s.weights)}


def _surprise(w, axis=-1, log=np.log):
    return -(w * log(np.where(w > 0, w, 1))).sum(axis=axis)


OWN = (
    Mistake(
        "std_instead_of_variance",
        "it gives the standard deviation",
        "Grows with sqrt(d_k), where the variance grows with d_k.",
        "How does the result change if all numbers are doubled?",
        ({"variance": lambda s: np.std(s.raw_scores)},),
    ),
    Mistake(
        "variance_per_query",
        "it gives one variance per query",
        "An array, where one number for all scores is asked for.",
        "Along which axes do you average?",
        ({"variance": lambda s: np.var(s.raw_scores, axis=-1)}, {"variance": lambda s: np.var(s.raw_scores, axis=0)}),
    ),
    Mistake(
        "zero_times_log_zero",
        "it takes the logarithm of 0",
        "A row with a weight of exactly 0 gives NaN: 0 times -inf.",
        "What does your code do with [0.5, 0.5, 0]?",
        (_entropy_by(lambda w: -(w * _log(w)).sum(axis=-1)),),
    ),
    Mistake(
        "log2_instead_of_ln",
        "it takes the logarithm to base 2",
        "Bits, not nats: every entropy is 1.44 times as large.",
        "What should the entropy of ten equal weights be?",
        (_entropy_by(lambda w: _surprise(w, log=np.log2)), _entropy_by(lambda w: -(w * np.log2(w)).sum(axis=-1))),
    ),
    Mistake(
        "minus_forgotten",
        "it leaves out the minus sign",
        "Negative entropies: the logarithm of a number below 1 is negative.",
        "Which sign has ln 0.5?",
        (_entropy_by(lambda w: -_surprise(w)), _entropy_by(lambda w: (w * _log(w)).sum(axis=-1))),
    ),
    Mistake(
        "entropy_over_queries",
        "it sums over the wrong axis, or over all of them",
        "An entropy belongs to one query: its weights are one row.",
        "Along which axis do the weights sum to 1?",
        (
            _entropy_by(lambda w: _surprise(w, axis=-2)),
            _entropy_by(lambda w: _surprise(w, axis=None)),
            _entropy_by(lambda w: _surprise(w, axis=1)),
            _entropy_by(lambda w: _surprise(w).mean()),
        ),
    ),
    Mistake(
        "variance_instead_of_std",
        "it is the variance, not its root",
        "The variance is d_k; a typical score is as large as its root.",
        "How do you get from a variance to a typical size?",
    ),
    Mistake(
        "unit_variance_assumed",
        "the entries had variance 1; these have another",
        "sqrt(d_k) makes the scores too flat here.",
        "What is the variance of one product of two such entries?",
    ),
    Mistake(
        "one_factor_counted",
        "the variance of one factor was taken, where a product of two has the product of both variances",
        "Halfway between no correction and the right one.",
        "A score multiplies two entries. Both are smaller than you may think.",
    ),
    Mistake(
        "scale_by_num_heads",
        "the scale is taken from the number of heads",
        "The scores of one head do not add up more terms when other heads stand beside it.",
        "How many numbers are added up in one dot product of one head?",
    ),
)

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
        given=lambda q, k: {"q": q, "k": k},
        result=lambda s: s.variance,
        stage="output",
        steps=_Steps,
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
        given=lambda weights: {"weights": weights},
        result=lambda s: s.entropy,
        stage="output",
        steps=_Steps,
    ),
    Number(
        "score_std",
        "the standard deviation of the raw scores at d_k = 144, if all entries have mean 0 and variance 1",
        ("Variances of independent terms add up.", "A score has d_k terms of variance 1.", "The root of d_k."),
        right=12.0,
        slips={"variance_instead_of_std": [144.0], "scaled_already": [1.0]},
    ),
    Number(
        "head_divisor",
        "what a layer with d_model = 768 and 12 heads divides its scores by",
        (
            "How many entries have the two vectors of one dot product?",
            "Twelve heads share 768 features.",
            "The root of 768 / 12.",
        ),
        right=8.0,
        slips={
            "scale_by_embed_dim": [768**0.5],
            "scale_by_d_k": [64.0],
            "scale_by_num_heads": [12**0.5],
        },
    ),
    Number(
        "uniform_divisor",
        "the divisor that gives scores variance 1 at d_k = 36, if entries are uniform in -1 .. 1 (variance 1/3)",
        ("First the variance of one product of two entries.", "1/3 times 1/3, and 36 of them.", "The root of 36 / 9."),
        right=2.0,
        slips={
            "unit_variance_assumed": [6.0],
            "one_factor_counted": [12**0.5],
            "root_forgotten": [4.0],
            "scale_by_d_k": [36.0],
        },
    ),
)

QUESTIONS = (
    Question(
        "score_std",
        "b",
        "The variance is 64, and the standard deviation is its root.",
        {
            "a": "1 is the standard deviation of one entry. A score adds up 64 products.",
            "c": "64 is the variance. A typical score is as large as its root.",
        },
        "c",
    ),
    Question(
        "mean_gradient",
        "c",
        "At d_k = 1024 most unscaled queries get next to nothing, and the undecided ones get huge gradients, "
        "which carry the mean.",
        {
            "a": '"Gradients vanish" suggests it, and here it holds for the median. The mean is another matter.',
            "b": "The softmax passes on less to most queries, and nothing divides K on the way to q: not equal.",
        },
        "a",
    ),
)
