"""The mistakes that only Vectorized knows."""

import numpy as np

from attnlib.core import softmax

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake
from ...mistakes.weights import CAUSAL_ADDED


def _along_two_axes(top, total):
    """Take the maximum along one axis and the sum along another: functions of the axis that was asked for."""

    def step(s):
        if s.axis == -1:
            return softmax(s.masked_scores)
        e = np.exp(s.masked_scores - s.masked_scores.max(top(s.axis), keepdims=True))
        return e / e.sum(total(s.axis), keepdims=True)

    return {"weights": step}


def _softmax_minus(by, along_last=False):
    """Take the softmax of scores minus `by(x, axis)` without any other guard; along the last axis, or the asked one."""

    def step(s):
        if "q" in vars(s):  # in the whole of attention NaN may have any cause
            return Steps.weights.func(s)
        e = np.exp(s.masked_scores - by(s.masked_scores, s.axis))
        return e / e.sum(axis=-1 if along_last else s.axis, keepdims=True)

    return {"weights": step}


MISTAKES = (
    CAUSAL_ADDED,
    Mistake(
        "softmax_already",
        behaves_as_if="it takes the softmax, where the raw scores are asked for",
        symptom="All numbers are positive, and each row sums to 1.",
        hint="Read the formula again: which part of it comes in a later exercise?",
        then="Leave the softmax out for now, and the division by sqrt(d_k).",
        variants=({"raw_scores": lambda s: softmax(s.scores)}, {"raw_scores": lambda s: softmax(s.scaled_scores)}),
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
            _softmax_minus(lambda x, axis: x.mean(axis=axis, keepdims=True)),
            _softmax_minus(lambda x, axis: x.mean()),
            _softmax_minus(lambda x, axis: x.sum(axis=axis, keepdims=True)),
        ),
    ),
    Mistake(
        "axis_and_overflow",
        behaves_as_if="it ignores the argument `axis`, and large scores still give NaN",
        symptom="Moderate scores come out right along the last axis.",
        hint="First the axis: where does your line use the argument `axis`?",
        then="Pass it on to plain_softmax. Then subtract the maximum along the same axis.",
        variants=(
            _softmax_minus(lambda x, axis: 0, along_last=True),
            _softmax_minus(lambda x, axis: x.max(), along_last=True),
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
