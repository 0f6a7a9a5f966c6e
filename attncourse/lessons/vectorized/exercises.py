"""The exercises of Vectorized, and the inputs on which they are tried."""

import numpy as np

from ...engine import locate
from ...engine.exercise import ATTENTION_HINTS, MAP_AXES, OUTPUT_AXES, Design, Function, Kept, step_options
from ...engine.probes import BATCH, CUBE, EXTREME, HUGE, MASK, PLAIN, SINGLE, Draw, Probe, edges, single
from .example import NAMED, judge_example


def stable_softmax(x, axis=-1):
    """Softmax as the exercise asks for it: a row of -inf alone becomes NaN, which the library's does not."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def softmax_probes():
    draw = Draw("softmax")
    x = draw(4, 5)
    high = x + np.array([1e4, -1e4, 800, 0])[:, None]
    high[3, 2] = 1e4  # one score far above the others: here their mean is no help
    return (
        Probe("one row", (x[0],)),
        Probe("one score per query and key", (x,)),
        Probe("a batch", (draw(2, 4, 5),)),
        Probe("axis=0", (x, 0)),
        Probe("axis=1 of a batch", (draw(2, 4, 5), 1)),
        Probe("equal axes", (draw(3, 3, 3),)),
        Probe(SINGLE, single(draw(2, 3))),
        Probe(HUGE, (high,), EXTREME),
        Probe("scores of -inf", (np.where(MASK, x, -np.inf),)),
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
    common = edges(
        lambda *b: (draw(*b, 4, 3), draw(*b, 5, 3), draw(*b, 5, 2)),
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw(3, 3, 3)),
        mask=None,
    )
    return (*common, Probe("d_k = 5, where it was 3 before", (draw(4, 5), draw(6, 5), draw(6, 2))))


EXERCISES = (
    Function(
        "softmax",
        "softmax(x, axis=-1) -> array of the shape of x, positive, summing to 1 along axis. "
        "x may hold large numbers and -inf, but no row of nothing but -inf.",
        (
            "exp(0) = 1 is safe. Which number of a row should become 0, so that none lies above it?",
            "The largest number of each row, along the axis that was asked for.",
            "With keepdims=True you can subtract that maximum from x. Pass `axis` on to plain_softmax, too.",
        ),
        probes=softmax_probes(),
        **step_options("weights", "masked_scores axis", axes=MAP_AXES, stage="softmax"),
        kept=Kept("softmax", "attncourse.lessons.vectorized.stable_softmax"),
    ),
    Function(
        "attention_scores",
        "attention_scores(query, key) -> (..., n_q, n_k), the raw scores Q K^T, not scaled.",
        (
            "Entry (i, j) is the dot product of query i and key j.",
            "One matrix product gives all of them, once each key has become a column.",
            "Swap the last two axes only: np.swapaxes(key, -1, -2).",
        ),
        probes=scores_probes(),
        **step_options("raw_scores", "q k", axes=MAP_AXES, stage="scores"),
    ),
    Function(
        "scaled_dot_product_attention",
        "scaled_dot_product_attention(query, key, value) -> (..., n_q, d_v). Masks come in 'masks'. A function "
        "that already takes one is right, too.",
        ATTENTION_HINTS,
        kept=Kept("attention", "attnlib.scaled_dot_product_attention"),
        probes=attention_probes(),
        **step_options("output", "q k v", axes=OUTPUT_AXES),
        our_functions=("attention_trace",),
        reveal=locate.attention(),
    ),
    Design(
        "example_that_tells",
        "[Q, K, V]: an example that catches three of four mistakes, but not the softmax over the queries",
        (
            "A softmax over the queries divides by the sums of columns. When do these equal the sums of rows?",
            "When each row and each column of scores holds the same numbers. "
            "But the scores must not be symmetric, or the swap does not show.",
            "Three tokens in a circle: 0 prefers 1, 1 prefers 2, 2 prefers 0. "
            "If Q is the identity, the scores are K^T. Give V one column.",
        ),
        judge=judge_example,
        names=tuple(dict.fromkeys(NAMED.values())),
    ),
)
