"""Notebook 02, vectorized: its exercises, questions, and what only they need."""

import numpy as np

from ..core import softmax
from . import stages
from .exercise import ATTENTION_HINTS, MAP_AXES, OUTPUT_AXES, Function
from .mistakes.mistake import Mistake
from .prediction import Question
from .probes import BATCH, CUBE, EXTREME, MASK, PLAIN, SINGLE, Draw, Probe, edges, single


def softmax_probes():
    draw = Draw("softmax")
    x = draw(4, 5)
    high = x + np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("one row", (x[0],)),
        Probe("one score per query and key", (x,)),
        Probe("a batch", (draw(2, 4, 5),)),
        Probe("axis=0", (x, 0)),
        Probe("axis=1 of a batch", (draw(2, 4, 5), 1)),
        Probe("equal axes", (draw(3, 3, 3),)),
        Probe(SINGLE, single(draw(2, 3))),
        Probe("scores of -inf", (np.where(MASK, x, -np.inf),)),
        Probe("numbers near +-1e4", (high,), EXTREME),
    )


def scores_probes():
    draw = Draw("attention_scores")
    return (
        Probe(PLAIN, (draw(4, 3), draw(5, 3))),
        Probe(BATCH, (draw(2, 4, 3), draw(2, 5, 3))),
        Probe(CUBE, (draw(3, 3, 3), draw(3, 3, 3))),
        Probe(SINGLE, single(draw(4, 3), draw(5, 3))),
    )


def attention_probes():
    draw = Draw("scaled_dot_product_attention")
    return edges(
        lambda *b: (draw(*b, 4, 3), draw(*b, 5, 3), draw(*b, 5, 2)),
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw(3, 3, 3)),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )


OWN = (
    Mistake(
        "axis_ignored",
        "it always normalises along the last axis, whatever `axis` says",
        "Right by default, wrong as soon as somebody passes axis=0.",
        "Where in your code does the argument `axis` arrive?",
        ({"weights": lambda s: softmax(s.masked) if s.axis != -1 else softmax(s.masked, s.axis)},),
    ),
)

EXERCISES = (
    Function(
        "softmax",
        "softmax(x, axis=-1) -> array of the shape of x, positive, summing to 1 along axis. "
        "x may hold large numbers and -inf, but no row of nothing but -inf.",
        (
            "exp makes every number positive. What makes them sum to 1?",
            "exp(1000) is inf. Subtract the same number from a whole row: the softmax stays.",
            "Use keepdims=True in max and sum, so that the shapes fit.",
        ),
        probes=softmax_probes(),
        given=lambda x, axis=-1: {"masked": x, "axis": axis},
        result=lambda s: s.weights,
        axes=MAP_AXES,
        stage="softmax",
    ),
    Function(
        "attention_scores",
        "attention_scores(query, key) -> (..., n_q, n_k), the raw scores Q K^T, not scaled.",
        (
            "Entry (i, j) is the dot product of query i and key j.",
            "One matrix product gives all of them; the keys have to be turned round first.",
            "Swap the last two axes only: np.swapaxes(key, -1, -2).",
        ),
        probes=scores_probes(),
        given=lambda q, k: {"q": q, "k": k},
        result=lambda s: s.raw_scores,
        axes=MAP_AXES,
        stage="scores",
    ),
    Function(
        "scaled_dot_product_attention",
        "scaled_dot_product_attention(query, key, value, attn_mask=None) -> (..., n_q, d_v). "
        "attn_mask is boolean, True = may attend; a query that may attend to nothing gets 0.",
        ATTENTION_HINTS,
        probes=attention_probes(),
        given=lambda q, k, v, mask=None: {"q": q, "k": k, "v": v, "mask": mask},
        result=lambda s: s.context,
        own=("attention_trace",),
        axes=OUTPUT_AXES,
        reveal=stages.attention(),
    ),
)

QUESTIONS = (
    Question(
        "symmetric",
        "a",
        "With Q = K the scores are symmetric, so rows and columns carry the same numbers.",
        {
            "b": "In the identity example the matrix of scores equals its transpose, so both axes sum alike.",
            "c": "Swapping Q and K transposes the scores. Here Q = K, so nothing changes.",
            "d": "Both mistakes are real, and in this example neither moves a digit.",
        },
        "d",
    ),
    Question(
        "cube",
        "c",
        "With three equal axes every wrong axis fits, and the numbers are wrong.",
        {
            "a": "K.T reverses all axes, and with sizes 3, 3, 3 the product is defined all the same.",
            "b": "The shapes agree; what was summed and normalised is another axis.",
        },
        "a",
    ),
)
