"""The mistakes that only Scaling knows, and its steps."""

from functools import cached_property

import numpy as np

from attnlib import core

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake


class ScalingSteps(Steps):
    variance = cached_property(lambda s: np.var(s.raw_scores))
    entropy = cached_property(lambda s: core.entropy(s.weights))
    of_pairs = cached_property(lambda s: _unit(s.q) @ _unit(s.k).T / np.sqrt(s.q.shape[-1]))
    in_range = cached_property(lambda s: s.of_pairs)


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def _entropy_by(change):
    """Replace the entropy by `change(weights)`."""
    return {"entropy": lambda s: change(s.weights)}


def _scores_by(change):
    """Replace the scores that stay in range by `change(steps)`."""
    return {"in_range": change}


def _cosines(q, k):
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    return q @ k.T


def _squares(x):
    return (x**2).mean(axis=-1, keepdims=True)


def _unit(x):
    return x / np.sqrt(_squares(x))


def _mean(x):
    return x.mean(axis=-1, keepdims=True)


def _by_std(x):
    return x / x.std(axis=-1, keepdims=True)


def _surprise(w, axis=-1, log=np.log):
    return -(w * log(np.where(w > 0, w, 1))).sum(axis=axis)


MISTAKES = (
    Mistake(
        "std_instead_of_variance",
        behaves_as_if="it gives the standard deviation",
        symptom="It grows with sqrt(d_k), where the variance grows with d_k.",
        hint="How does the result change if all numbers are doubled?",
        then="The variance grows fourfold, the standard deviation twofold. Square it, or take np.var.",
        variants=({"variance": lambda s: np.std(s.raw_scores)},),
    ),
    Mistake(
        "variance_per_query",
        behaves_as_if="it gives one variance per query, or per key",
        symptom="An array, where one number for all scores is asked for.",
        hint="Along which axes do you average?",
        then="Over all entries at once: give no axis.",
        variants=(
            {"variance": lambda s: np.var(s.raw_scores, axis=-1)},
            {"variance": lambda s: np.var(s.raw_scores, axis=0)},
        ),
    ),
    Mistake(
        "mean_of_row_variances",
        behaves_as_if="it takes the variance of each row, or column, and averages those",
        symptom="Each row is then measured about its own mean, and what sets the rows apart is lost.",
        hint="The rows are [1, 1] and [5, 5]. What is the variance of these four numbers, and what does your code "
        "give?",
        then="It is 4, and each row alone has 0. Take one variance of all scores about their one mean.",
        variants=tuple(
            {"variance": lambda s, a=a, n=n: np.var(s.raw_scores, axis=a, ddof=n).mean()}
            for a in (-1, 0)
            for n in (0, 1)
        ),
    ),
    Mistake(
        "mean_of_squares",
        behaves_as_if="it gives the mean of the squares",
        symptom="That is the variance only where the mean is 0. A variance is taken about the mean.",
        hint="What is the variance of scores that are all 5?",
        then="It is 0. Subtract the mean of all scores before you square.",
        variants=({"variance": lambda s: (s.raw_scores**2).mean()},),
    ),
    Mistake(
        "matching_pairs_only",
        behaves_as_if="it scores query i with key i only",
        symptom="Only these few of all scores are used. Where n_q and n_k differ there may be an error.",
        hint="4 queries and 3 keys: how many scores are there?",
        then="12, one for each query and key. query * key pairs them row by row; query @ key.T has them all.",
        variants=(
            {"variance": lambda s: (s.q * s.k).sum(axis=-1).var()},
            {"variance": lambda s: (s.q * s.k).sum(axis=-1).var(ddof=1)},
            {"variance": lambda s: np.diag(s.raw_scores).var()},
            {"variance": lambda s: np.diag(s.raw_scores).var(ddof=1)},
        ),
    ),
    Mistake(
        "variance_by_theory",
        behaves_as_if="it gives the variance that random scores have on average: d_k, or d_k times both variances",
        symptom="It holds for means of 0 and many draws. The variance of these scores differs from it by chance.",
        hint="In which of your lines do the scores themselves stand?",
        then="In the last one they should: how far do they spread about their mean?",
        variants=(
            {"variance": lambda s: float(s.q.shape[-1])},
            {"variance": lambda s: s.q.shape[-1] * np.var(s.q) * np.var(s.k)},
        ),
    ),
    Mistake(
        "zero_times_log_zero",
        behaves_as_if="it takes the logarithm of 0",
        symptom="A row with a weight of exactly 0 gives NaN: 0 times -inf.",
        hint="What does your code do with [0.5, 0.5, 0]?",
        then="ln 0 is -inf, and 0 times that is NaN. Put 1 in place of the 0 inside the logarithm.",
        variants=(_entropy_by(lambda w: -(w * _log(w)).sum(axis=-1)),),
    ),
    Mistake(
        "logarithm_moved",
        behaves_as_if="a small number is added inside the logarithm, or stands there for smaller weights",
        symptom="It avoids ln 0, and moves the logarithm of every small weight.",
        hint="A key has the weight 1/2000. Which logarithm does your code take of it?",
        then="It should be -7.60. Change the inside of the logarithm where the weight is exactly 0, and nowhere else.",
        variants=(
            *(_entropy_by(lambda w, e=e: -(w * np.log(w + e)).sum(axis=-1)) for e in (1e-2, 1e-3, 1e-4, 1e-5)),
            *(_entropy_by(lambda w, e=e: -(w * np.log(np.maximum(w, e))).sum(axis=-1)) for e in (1e-2, 1e-3)),
        ),
    ),
    Mistake(
        "row_with_zero_lost",
        behaves_as_if="a row with a weight of 0 has the entropy 0",
        symptom="0 times ln 0 is NaN, and so is the sum. Made to 0 after the sum, the other weights of the row are "
        "lost.",
        hint="What should the entropy of [0.5, 0.5, 0] be, and what does your code give?",
        then="It should be ln 2. Mend each product before the sum, or the weight inside the logarithm.",
        variants=(_entropy_by(lambda w: np.nan_to_num(-(w * _log(w)).sum(axis=-1))),),
    ),
    Mistake(
        "another_logarithm",
        behaves_as_if="it takes the logarithm to base 2 or 10",
        symptom="To base 2, in bits, every entropy is 1.44 times as large, and to base 10 it is 0.43 times as large.",
        hint="What should the entropy of ten equal weights be?",
        then="ln 10, which is 2.30. np.log is the natural logarithm.",
        variants=(
            *(_entropy_by(lambda w, log=log: _surprise(w, log=log)) for log in (np.log2, np.log10)),
            *(_entropy_by(lambda w, log=log: -(w * log(w)).sum(axis=-1)) for log in (np.log2, np.log10)),
        ),
    ),
    Mistake(
        "minus_forgotten",
        behaves_as_if="it leaves out the minus sign",
        symptom="Negative entropies: the logarithm of a number below 1 is negative.",
        hint="Which sign has ln 0.5?",
        then="It is negative, as the logarithm of every weight below 1 is: put a minus in front of the sum.",
        variants=(_entropy_by(lambda w: -_surprise(w)), _entropy_by(lambda w: (w * _log(w)).sum(axis=-1))),
    ),
    Mistake(
        "weight_left_out",
        behaves_as_if="it adds up the logarithms alone, without the weights in front",
        symptom="A small weight then counts most, although its key is hardly in play.",
        hint="Read the formula again: what is the logarithm multiplied by?",
        then="By the weight itself, before the sum.",
        variants=(
            _entropy_by(lambda w: -np.log(np.where(w > 0, w, 1)).sum(axis=-1)),
            _entropy_by(lambda w: -_log(w).sum(axis=-1)),
        ),
    ),
    Mistake(
        "entropy_divided",
        behaves_as_if="the sum over the keys is divided by their number, or by its logarithm",
        symptom="Equal weights on ten keys then give 0.23 or 1, where ln 10 = 2.30 is asked for.",
        hint="What should the entropy of ten equal weights be, and what does your code give?",
        then="It should be 2.30: the sum alone, neither its mean nor its share of the largest entropy.",
        variants=(
            _entropy_by(lambda w: _surprise(w) / w.shape[-1]),
            _entropy_by(lambda w: -(w * _log(w)).mean(axis=-1)),
            _entropy_by(lambda w: _surprise(w) / np.log(w.shape[-1])),
        ),
    ),
    Mistake(
        "entropy_over_queries",
        behaves_as_if="it puts queries together: it sums or averages over the wrong axis, or over all of them",
        symptom="An entropy belongs to one query: its weights are one row. In a batch the first axis counts maps, "
        "and weights[weights > 0] is one list of all rows.",
        hint="Along which axis do the weights sum to 1?",
        then="Along the last one, the keys. Sum over axis=-1 and get one number for each query.",
        variants=(
            _entropy_by(lambda w: _surprise(w, axis=-2)),
            _entropy_by(lambda w: _surprise(w, axis=None)),
            _entropy_by(lambda w: _surprise(w, axis=1)),
            _entropy_by(lambda w: _surprise(w, axis=0)),
            _entropy_by(lambda w: _surprise(w).mean()),
            _entropy_by(lambda w: _surprise(w, axis=None) / w.size),
            _entropy_by(lambda w: -(w * _log(w)).mean()),
            # The same with the logarithm of 0: the shape is wrong first. Python's own sum adds up the first axis.
            *(_entropy_by(lambda w, axis=axis: -(w * _log(w)).sum(axis=axis)) for axis in (-2, None, 1, 0)),
        ),
    ),
    Mistake(
        "one_map_at_a_time",
        behaves_as_if="each entry along the first axis is the row of one query",
        symptom="Right for one map. In a batch, these entries are maps: a loop over the first axis puts the rows of a "
        "map together, or gets more axes than it expects.",
        hint="weights has the shape (2, 4, 5). What does `for row in weights` run over?",
        then="Over two maps. A sum over axis=-1 needs no loop, and leaves all axes in front as they are.",
        variants=(
            _entropy_by(lambda w: _surprise(w, axis=tuple(range(1, w.ndim)))),
            _entropy_by(lambda w: _surprise(w.reshape(w.shape[:2]))),  # raises: a batch has three axes
        ),
        raises=True,
    ),
    Mistake(
        "exponential_of_entropy",
        behaves_as_if="it gives e to the entropy, the number of keys in play",
        symptom="Equal weights on ten keys give 10, where ln 10 is asked for.",
        hint="What should the entropy be if one key has everything?",
        then="It should be 0, and e to the 0 is 1. Leave the exponential out.",
        variants=(_entropy_by(lambda w: np.exp(_surprise(w))),),
    ),
    Mistake(
        "raw_scores_returned",
        behaves_as_if="it returns the scores as they are",
        symptom="The variance is d_k times that of a query's entries times that of a key's.",
        hint="What is the variance of one product of two entries, and how many are added up?",
        then="As many as there are features. Divide by the root of that, and by the standard deviations of query and "
        "key.",
        variants=(_scores_by(lambda s: s.raw_scores),),
    ),
    Mistake(
        "divided_by_variance",
        behaves_as_if="it divides by a variance, not by its root",
        symptom="Dividing by a number divides the variance by its square.",
        hint="A variance is a square. What brings it to 1?",
        then="Its root: divide by standard deviations.",
        variants=(
            _scores_by(lambda s: s.raw_scores / s.q.shape[-1]),
            _scores_by(lambda s: s.raw_scores / np.var(s.raw_scores)),
            _scores_by(lambda s: s.scaled_scores / (np.var(s.q) * np.var(s.k))),
            _scores_by(lambda s: s.raw_scores / (s.q.shape[-1] * np.var(s.q) * np.var(s.k))),
            _scores_by(lambda s: s.scaled_scores / _squares(s.q) / _squares(s.k).T),
        ),
    ),
    Mistake(
        "cosines_returned",
        behaves_as_if="it returns cosines, which are at most 1, or divides them once more",
        symptom="The variance of a cosine is about 1/d_k: the longer the vectors, the paler the weights.",
        hint="By which factor must a cosine grow for its variance to be 1?",
        then="A cosine of random vectors has the variance 1 / d_k. So multiply by the root of d_k.",
        variants=tuple(_scores_by(lambda s, n=n: _cosines(s.q, s.k) / s.q.shape[-1] ** n) for n in (0, 0.5)),
    ),
    Mistake(
        "root_of_d_k_left_out",
        behaves_as_if="the entries are brought to variance 1, and the division by sqrt(d_k) is missing",
        symptom="A score adds up d_k products of variance 1, so its variance is about d_k.",
        hint="What is the variance of a sum of d_k independent products of variance 1?",
        then="It is d_k, whatever the size of the entries was. Its root is what to divide by.",
        variants=tuple(
            _scores_by(lambda s, f=f: f(s.q) @ f(s.k).T) for f in (_unit, _by_std, lambda x: _by_std(x - _mean(x)))
        ),
    ),
    Mistake(
        "unit_variance_assumed",
        behaves_as_if="the entries had variance 1; these have another",
        symptom="Divided by sqrt(d_k) alone, a score has the variance of a query's entry times that of a key's.",
        hint="What is the variance of one product of two such entries?",
        then="The two variances multiplied. Add up as many as there are features, then take the root.",
        variants=(_scores_by(lambda s: s.scaled_scores),),
    ),
    Mistake(
        "one_factor_counted",
        behaves_as_if="only q, or only k, had a variance other than 1",
        symptom="The variance of a product is the product of both variances, and here one of them is left out.",
        hint="A score multiplies two entries, each with a variance of its own.",
        then="Multiply both variances, that of the queries and that of the keys.",
        variants=(
            *(_scores_by(lambda s, x=x: s.scaled_scores / np.std(getattr(s, x))) for x in "qk"),
            _scores_by(lambda s: _unit(s.q) @ s.k.T / np.sqrt(s.q.shape[-1])),
            _scores_by(lambda s: s.q @ _unit(s.k).T / np.sqrt(s.q.shape[-1])),
            _scores_by(lambda s: _by_std(s.q) @ s.k.T / np.sqrt(s.q.shape[-1])),
            _scores_by(lambda s: s.q @ _by_std(s.k).T / np.sqrt(s.q.shape[-1])),
        ),
    ),
    Mistake(
        "scores_of_the_crowd",
        behaves_as_if="the size of a score depends on the other tokens of the call",
        symptom="What is measured over many tokens changes with a further token, and the scores of the others with it.",
        hint="Over which axis do you measure: over the tokens, or the entries (last axis) of one of them?",
        then="Over the last axis, with keepdims=True: then each query and each key has a size of its own.",
        variants=(
            _scores_by(lambda s: s.raw_scores / np.std(s.raw_scores)),
            _scores_by(lambda s: s.of_pairs / np.std(s.of_pairs)),
        ),
    ),
    Mistake(
        "factor_and_root_forgotten",
        behaves_as_if="it is too large: a variance or a root is missing",
        symptom="12 is 36 times 1/3. The variance of a product is the product of both variances. Times d_k it is the "
        "variance of a score, and the divisor is its root.",
        hint="What is the variance of one product of two such entries?",
        then="It is the product of both variances. Times d_k it is the variance of a score, and its root is the "
        "divisor.",
    ),
    Mistake(
        "features_not_added_up",
        behaves_as_if="it belongs to one entry or one product: nothing is added up",
        symptom="An entry has the variance 1/3 and a product 1/9. A score is a sum of products.",
        hint="How many products does a score add up, and what becomes of their variances?",
        then="There are 36, one for each feature, and their variances add up.",
    ),
    Mistake(
        "multiplied_by_divisor",
        behaves_as_if="it is the factor, not the divisor",
        symptom="To multiply by 1/c is to divide by c. Or was the variance 1/12, as of entries in 0 .. 1?",
        hint="Should the divisor make scores of variance 4 smaller or larger?",
        then="Smaller: hand in what the scores are divided by.",
    ),
)
