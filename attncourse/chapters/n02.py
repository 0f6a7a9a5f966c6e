"""Vectorized: its exercises, questions, and what only they need."""

import numpy as np

from attnlib.core import softmax

from ..engine import locate
from ..engine.compare import RIGHT
from ..engine.exercise import ATTENTION_HINTS, MAP_AXES, OUTPUT_AXES, Design, Function, Kept, asked
from ..engine.probes import BATCH, CUBE, EXTREME, HUGE, MASK, PLAIN, SINGLE, Draw, Probe, edges, single
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps
from ..mistakes.mistake import Mistake
from ..mistakes.weights import CAUSAL_ADDED


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
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
        mask=None,
    )
    return (*common, Probe("d_k = 5, where it was 3 before", (draw(4, 5), draw(6, 5), draw(6, 2))))


def _along_two_axes(top, total):
    """Take the maximum along one axis and the sum along another: functions of the axis that was asked for."""

    def step(s):
        if s.axis == -1:
            return softmax(s.masked_scores)
        e = np.exp(s.masked_scores - s.masked_scores.max(top(s.axis), keepdims=True))
        return e / e.sum(total(s.axis), keepdims=True)

    return {"weights": step}


def _shifted(by, along_last=False):
    """Take the softmax of scores minus `by(x, axis)` without any other guard; along the last axis, or the asked one."""

    def step(s):
        if "q" in vars(s):  # in the whole of attention NaN may have any cause
            return Steps.weights.func(s)
        e = np.exp(s.masked_scores - by(s.masked_scores, s.axis))
        return e / e.sum(axis=-1 if along_last else s.axis, keepdims=True)

    return {"weights": step}


OWN = (
    CAUSAL_ADDED,
    Mistake(
        "softmax_already",
        behaves_as_if="it takes the softmax, where the raw scores are asked for",
        symptom="All numbers are positive, and each row sums to 1.",
        hint="Read the formula again: which part of it comes in a later exercise?",
        then="Leave the softmax out for now, and the division by sqrt(d_k).",
        variants=(
            {"raw_scores": lambda s: softmax(s.scores)},
            {"raw_scores": lambda s: softmax(s.scaled_scores)},
        ),
    ),
    Mistake(
        "divided_by_maximum",
        behaves_as_if="it divides the scores by their maximum, where the maximum is to be subtracted",
        symptom="Dividing changes the distances between scores, and softmax depends on nothing else.",
        hint="Take the scores 2 and 4. What is their distance, after you divide by 4, and after you subtract 4?",
        then="Subtracting keeps it: x - x.max(axis=axis, keepdims=True).",
        variants=(
            {"weights": lambda s: softmax(s.masked_scores / s.masked_scores.max(axis=s.axis, keepdims=True), s.axis)},
            {"weights": lambda s: softmax(s.masked_scores / s.masked_scores.max(), s.axis)},
        ),
    ),
    Mistake(
        "maximum_missed",
        behaves_as_if="it subtracts something other than the maximum of a row, such as its mean",
        symptom="A score far above the others is also far above their mean, and its exponential overflows.",
        hint="Which number of a row is never smaller than the others?",
        then="Its maximum: x.max(axis=axis, keepdims=True).",
        variants=(
            _shifted(lambda x, axis: x.mean(axis=axis, keepdims=True)),
            _shifted(lambda x, axis: x.mean()),
            _shifted(lambda x, axis: x.sum(axis=axis, keepdims=True)),
        ),
    ),
    Mistake(
        "axis_and_overflow",
        behaves_as_if="it ignores the argument `axis`, and large scores still give NaN",
        symptom="Moderate scores come out right along the last axis.",
        hint="First the axis: where does your line use the argument `axis`?",
        then="Pass it on to plain_softmax. Then subtract the maximum along the same axis.",
        variants=(
            _shifted(lambda x, axis: 0, along_last=True),
            _shifted(lambda x, axis: x.max(), along_last=True),
        ),
    ),
    Mistake(
        "max_and_sum_along_two_axes",
        behaves_as_if="it takes the maximum along one axis and the sum along another when `axis` is not the last",
        symptom="Right by default; with axis=0 one of the two still runs along the last axis.",
        hint="Two steps need `axis`. Which one does not get it?",
        then="Write axis=axis in both, and keepdims=True.",
        variants=(
            _along_two_axes(lambda axis: axis, lambda axis: -1),
            _along_two_axes(lambda axis: -1, lambda axis: axis),
        ),
    ),
    Mistake(
        "nothing_let_through",
        behaves_as_if="it catches all four, the softmax over the queries included",
        symptom="Then the exponentials of some row or column have a different sum from the rest.",
        hint="By which sum does a softmax over the keys divide, and by which one over the queries? When are they "
        "equal?",
        then="One divides by the sum of a row, the other by the sum of a column. Make all these sums equal.",
    ),
    Mistake(
        "swap_let_through",
        behaves_as_if="it lets the swap through, too",
        symptom="IDENTITY does the same: all sums of exponentials are equal, and the scores are symmetric.",
        hint="With two tokens, equal sums make the scores symmetric. Take three: which other token can each one "
        "prefer?",
        then="Let each token prefer the next one in a circle: 0 prefers 1, 1 prefers 2, 2 prefers 0.",
    ),
    Mistake(
        "symmetric_example",
        behaves_as_if="it can catch nothing but a missing scale",
        symptom="IDENTITY does the same: symmetric scores, equal sums of exponentials in all rows, and d_v = d_k.",
        hint="What happens to the scores if Q and K change places? Choose Q and K so that the scores change.",
        then="A swap transposes the scores. Let i prefer j without j preferring i. Give V more or fewer columns than "
        "K.",
    ),
    Mistake(
        "symmetric_scores",
        behaves_as_if="it catches neither the swap nor the root of d_v",
        symptom="KARIM does the same: symmetric scores, and d_v = d_k.",
        hint="Compare Q K^T with its transpose. Then count the columns of V.",
        then="Let token 0 prefer 1 without 1 preferring 0. And give V a different number of columns from K.",
    ),
    Mistake(
        "queries_are_keys",
        behaves_as_if="swapping Q and K changes nothing",
        symptom="Q equals K, or the scores are symmetric, and a swap only transposes the scores.",
        hint="Which two scores must differ, so that the scores are not their own transpose?",
        then="The score of query i with key j, and the score of query j with key i. Choose K different from Q.",
    ),
    Mistake(
        "d_v_equals_d_k",
        behaves_as_if="it cannot tell the root of d_v from the root of d_k",
        symptom="d_v and d_k are equal, or so close that no number of the output moves by 0.01.",
        hint="How many columns does V have, and how many K?",
        then="Take one column away from V, or add one.",
    ),
    Mistake(
        "swap_and_size_hidden",
        behaves_as_if="it catches neither the swap nor a wrong divisor",
        symptom="All rows of V are the same. Or the scores are symmetric, and one key has all the weight or d_k = d_v "
        "= 1.",
        hint="What do you get if you mix equal values? And which scores leave something for the second-best key?",
        then="The same value again, so give the rows of V different numbers. Keep the scores between about -3 and 3.",
    ),
    Mistake(
        "size_of_scores_hidden",
        behaves_as_if="it cannot catch a missing or a wrong divisor",
        symptom="One key has all the weight, or all scores or all values are equal, or d_k = d_v = 1.",
        hint="Which scores leave something for the second-best key? And what do you divide by?",
        then="Scores that differ by 1 to 3 do. And d_k must not be 1, because the root of 1 is 1.",
    ),
    Mistake(
        "missing_scale_hidden",
        behaves_as_if="it cannot catch a missing scale",
        symptom="With d_k = 1 no example can, because the root of 1 is 1.",
        hint="How many features do your queries and keys have?",
        then="Take two features or more.",
    ),
    Mistake(
        "nothing_shows",
        behaves_as_if="it catches none of the four",
        symptom="All scores or values are equal or tiny, or each query takes everything from a key of its own.",
        hint="Which query prefers which key?",
        then="Let scores differ by about 2, let no query prefer its own key, and give the rows of V different numbers.",
    ),
)

_BUGS = {
    "Q and K swapped": lambda q, k, v: softmax(k @ q.T / k.shape[1] ** 0.5) @ v,
    "softmax over the queries": lambda q, k, v: softmax(q @ k.T / k.shape[1] ** 0.5, axis=0) @ v,
    "no scale": lambda q, k, v: softmax(q @ k.T) @ v,
    "divided by the root of d_v": lambda q, k, v: softmax(q @ k.T / v.shape[1] ** 0.5) @ v,
}
_SHOWS = 0.01


def _misfit(example):
    """Say what keeps an example from being one; "" if nothing does."""
    try:
        parts = list(example)
    except TypeError:
        return "What you hand in has no parts. Fix: a list of three, [Q, K, V]."
    if len(parts) != 3:
        return f"You hand in {len(parts)} part{'s' * (len(parts) != 1)}, three are asked for. Fix: [Q, K, V]."
    problems = filter(None, map(_no_matrix, "QKV", parts))
    if first := next(problems, ""):
        return first
    q, k, v = map(np.shape, parts)
    if q == k and len(k) == 2 and k[0] == v[0]:
        return ""
    return f"Yours have the shapes {q}, {k}, {v}. Fix: Q and K of one shape, and as many rows in V."


def _no_matrix(name, part):
    """Say why one of Q, K and V is no matrix of finite numbers; "" if it is one."""
    try:
        x = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        rows = [len(row) for row in part if isinstance(row, list | tuple)] if isinstance(part, list | tuple) else []
        if len(set(rows)) > 1 and len(rows) == len(part):
            counts = f"{', '.join(map(str, rows[:-1]))} and {rows[-1]}"
            return f"The rows of {name} have {counts} numbers. Fix: as many in each."
        return f"{name} does not hold rows of numbers only. Fix: [[1, 0], [0, 1]] is two rows of two numbers."
    if x.ndim != 2 or not x.size:
        return f"{name} has shape {x.shape}. Fix: rows of numbers; three rows of one number are [[1], [0], [3]]."
    return "" if np.isfinite(x).all() else f"{name} holds inf or NaN. Fix: finite numbers."


# What an example lets through, by the first letters of those bugs. A right one lets the softmax through, and only it.
_NAMED = {
    "": "nothing_let_through",
    "Qs": "swap_let_through",
    "Qsd": "symmetric_example",
    "Qd": "symmetric_scores",
    "Q": "queries_are_keys",
    "sd": "d_v_equals_d_k",
    "d": "d_v_equals_d_k",
    "Qnd": "swap_and_size_hidden",
    "nd": "size_of_scores_hidden",
    "snd": "size_of_scores_hidden",
    "n": "missing_scale_hidden",
    "Qsnd": "nothing_shows",
}


def _judge_example(example):
    """Judge an example by which bugs move a number that it gives."""
    if misfit := _misfit(example):
        raise Unfit(
            "An example is a list of Q (n, d_k), K (n, d_k) and V (n, d_v), each as rows of finite numbers. " + misfit
        )
    q, k, v = (np.asarray(x, dtype=np.float64) for x in example)
    right = softmax(q @ k.T / k.shape[1] ** 0.5) @ v
    shows = [name for name, bug in _BUGS.items() if np.abs(bug(q, k, v) - right).max() >= _SHOWS]
    hides = [name for name in _BUGS if name not in shows]
    letters = "".join(name[0] for name in hides)
    if letters == "s":
        return RIGHT, ""
    sentence = f"Your example shows: {'; '.join(shows) or 'none'}. It lets through: {'; '.join(hides) or 'none'}."
    return _NAMED.get(letters), sentence


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
        given=lambda x, axis=-1: {"masked_scores": x, "axis": axis},
        result=lambda s: s.weights,
        axes=MAP_AXES,
        stage="softmax",
        kept=Kept("softmax", "attnlib.softmax"),
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
        **asked("raw_scores", "q k", axes=MAP_AXES, stage="scores"),
    ),
    Function(
        "scaled_dot_product_attention",
        "scaled_dot_product_attention(query, key, value) -> (..., n_q, d_v). Masks come in 'masks'. A function "
        "that already takes one is right, too.",
        ATTENTION_HINTS,
        kept=Kept("plain_attention", "attnlib.scaled_dot_product_attention"),
        probes=attention_probes(),
        **asked("output", "q k v", axes=OUTPUT_AXES),
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
        judge=_judge_example,
        names=tuple(dict.fromkeys(_NAMED.values())),
    ),
)

RECALL = (
    Question("query_and_key", right="b", tempting="a").because(
        a="A vector has a dot product with itself, too. By likeness alone, 'she' would take most from herself.",
        b="'she' looks for a name, and is found as female. Two matrices keep the two apart.",
        c="Scores may be negative. Softmax makes positive weights of them.",
    ),
    Question("a_popular_key", right="a", tempting="b").because(
        a="A column adds up what all queries take from one key. In 'start here' every row sums to 1, "
        "and the column of 'When' to 9.69.",
        b="Rows must sum to 1. Columns need not.",
        c="What a token divides stands in its row, and that is always 1.",
    ),
    Question("what_d_k_counts", right="c", tempting="a").because(
        a="That is n_k. A key has d_k features.",
        b="That is d_in. W_Q and W_K turn d_in features into d_k.",
        c="Queries and keys have as many features, d_k, because they meet in a dot product.",
    ),
)

QUESTIONS = (
    Question("symmetric", right="c", tempting="b").because(
        a="In IDENTITY Q equals K, so a swap changes nothing there.",
        b="W_Q and W_K of KARIM differ, but its scores are symmetric all the same: "
        "mirrored at the diagonal, 4 meets 4, 4 meets 4, and 12 meets 12.",
        c="In the other two examples the scores equal their transpose, and a swap only transposes them.",
        d="A single dot product is the same both ways. But a swap exchanges the rows and columns of the scores.",
    ),
    Question("cube", right="c", tempting="a").because(
        a="K.T reverses all axes, and with sizes 3, 3, 3 the product is still defined.",
        b="The shapes agree, but the function summed and normalised along other axes.",
        c="With three equal axes every wrong axis fits, and the numbers are wrong.",
    ),
)
