"""Notebook 02, vectorized: its exercises, questions, and what only they need."""

import numpy as np

from ..core import softmax
from ..examples import ASYMMETRIC, BY_HAND, IDENTITY
from . import stages
from .calling import Unfit
from .exercise import ATTENTION_HINTS, MAP_AXES, OUTPUT_AXES, Function, Judged, Number
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
    Mistake(
        "symmetric_example",
        "nothing but a missing scale could show",
        "As in the identity example: symmetric scores whose rows sum alike, and d_v = d_k.",
        "What happens to the scores if Q and K change places? Choose them so that something happens.",
    ),
    Mistake(
        "symmetric_scores",
        "neither the swap nor the root of d_v could show",
        "As in the worked example: symmetric scores, and d_v = d_k.",
        "Compare Q K^T with its transpose. And count the columns of V.",
    ),
    Mistake(
        "queries_are_keys",
        "swapping Q and K changed nothing",
        "They are the same, or their scores are symmetric: a swap does nothing but transpose them.",
        "What if there were more keys than queries?",
    ),
    Mistake(
        "d_v_equals_d_k",
        "the root of d_v could stand for that of d_k",
        "They are equal, or so near that no number moves by 0.01.",
        "How many columns has V, how many has K?",
    ),
    Mistake(
        "swap_and_size_hidden",
        "neither the swap nor the size of the scores could show",
        "All values are alike, or the scores are symmetric and one key has all the weight.",
        "What do you get if you mix equal things? And which sizes of scores leave the second-best key something?",
    ),
    Mistake(
        "size_of_scores_hidden",
        "the size of the scores could not show",
        "One key has all the weight, or all scores or all values are equal, or d_k and d_v are 1.",
        "Which sizes of scores leave the second-best key something? And what do you divide by?",
    ),
    Mistake(
        "nothing_shows",
        "none of the four could show",
        "All scores are equal, or each query gives everything to a key of its own.",
        "Which query prefers which key?",
    ),
)

_BUGS = {
    "Q and K swapped": lambda q, k, v: softmax(k @ q.T / k.shape[1] ** 0.5) @ v,
    "softmax over the queries": lambda q, k, v: softmax(q @ k.T / k.shape[1] ** 0.5, axis=0) @ v,
    "no scale": lambda q, k, v: softmax(q @ k.T) @ v,
    "divided by the root of d_v": lambda q, k, v: softmax(q @ k.T / v.shape[1] ** 0.5) @ v,
}
_SHOWS = 0.01


def _caught(example):
    """Return for each bug whether an example shows it, by an error, another shape, or a number that moves."""
    try:
        q, k, v = (np.asarray(x, dtype=np.float64) for x in example)
    except (TypeError, ValueError):
        q = k = v = np.empty(0)
    arrays = (q, k, v)
    fits = all(x.ndim == 2 and x.size and np.isfinite(x).all() for x in arrays)
    if not fits or q.shape[1] != k.shape[1] or len(k) != len(v):
        raise Unfit(
            "An example is a list of Q (n_q, d_k), K (n_k, d_k) and V (n_k, d_v), each as rows of finite numbers. "
            f"Yours have the shapes {', '.join(str(x.shape) for x in arrays)}. "
            "Fix: as many columns in Q as in K, as many rows in K as in V."
        )
    right = softmax(q @ k.T / k.shape[1] ** 0.5) @ v
    return np.array([_differs(bug, arrays, right) for bug in _BUGS.values()])


def _differs(bug, arrays, right):
    try:
        wrong = bug(*arrays)
    except ValueError:  # the shapes do not fit: an error tells, too
        return True
    return wrong.shape != right.shape or bool(np.abs(wrong - right).max() >= _SHOWS)


def _let_through(yours, right):
    missed = [name for name, caught in zip(_BUGS, yours, strict=True) if not caught]
    return f"Your example lets through: {'; '.join(missed)}."


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
    Number(
        "example_that_tells",
        "[Q, K, V]: an example in which each of four mistakes shows",
        (
            "Which sizes could differ, so that a swap cannot go unseen?",
            "sqrt(d_v) and sqrt(d_k) differ only where d_v and d_k do.",
            "Two queries, three keys, d_v = 1, whole numbers from 0 to 3: look whether no weight is near 0 or 1.",
        ),
        right=ASYMMETRIC.project(),
        judged=Judged(_caught, _let_through),
        slips={
            "symmetric_example": [IDENTITY.project()],
            "symmetric_scores": [BY_HAND.project()],
            "queries_are_keys": [(ASYMMETRIC.x, ASYMMETRIC.x, ASYMMETRIC.project()[2])],
            "d_v_equals_d_k": [(*ASYMMETRIC.project()[:2], ASYMMETRIC.project()[2][:, :2])],
            "swap_and_size_hidden": [(*ASYMMETRIC.project()[:2], np.ones((4, 5)))],
            "size_of_scores_hidden": [(1e3 * ASYMMETRIC.project()[0], *ASYMMETRIC.project()[1:])],
            "nothing_shows": [(np.zeros((4, 2)), *ASYMMETRIC.project()[1:])],
        },
    ),
)

RECALL = (
    Question(
        "query_and_key",
        "b",
        "She is a pronoun and looks for a name: two matrices keep the two apart.",
        {
            "a": "A vector has a dot product with itself, too. By likeness alone each word then finds itself.",
            "c": "Scores may be negative. Softmax makes positive weights of them.",
        },
        "a",
    ),
    Question(
        "a_popular_key",
        "a",
        "A column collects what all queries give to one key, and its sum can be anything.",
        {
            "b": "Rows must sum to 1. Columns need not.",
            "c": "What a token shares out stands in its row, and that is always 1.",
        },
        "b",
    ),
    Question(
        "what_d_k_counts",
        "c",
        "Queries and keys have as many features, d_k, because they meet in a dot product.",
        {
            "a": "That is n_k. A key has d_k features.",
            "b": "That is d_in. W_Q and W_K turn d_in features into d_k.",
        },
        "a",
    ),
)

QUESTIONS = (
    Question(
        "symmetric",
        "a",
        "Both matrices of scores equal their transpose, and swapping Q and K does nothing but transpose them.",
        {
            "b": "Its W_Q and W_K differ, and its scores are symmetric all the same: 4 and 4, 4 and 4, 12 and 12.",
            "c": "There Q = K, so a swap cannot change anything.",
            "d": "A swap is a real mistake, and in these two examples it moves no digit.",
        },
        "b",
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
