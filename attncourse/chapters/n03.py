"""Scaling: its exercises, questions, and what only they need."""

from functools import cached_property

import numpy as np

from attnlib import core

from ..engine.compare import RIGHT, close
from ..engine.exercise import Function, Number, asked
from ..engine.probes import SINGLE, Draw, Probe, single
from ..engine.questions import Question
from ..engine.run import Unfit, numbers
from ..engine.steps import Steps
from ..engine.verdict import number
from ..mistakes.mistake import Mistake


class _Steps(Steps):
    variance = cached_property(lambda s: np.var(s.raw_scores))
    entropy = cached_property(lambda s: core.entropy(s.weights))
    of_pairs = cached_property(lambda s: _unit(s.q) @ _unit(s.k).T / np.sqrt(s.q.shape[-1]))
    in_range = cached_property(lambda s: s.of_pairs)


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


def _mixed(x, small, large):
    """Return tokens of which the first half is small and the second large."""
    return x * np.repeat([small, large], len(x) // 2)[:, None]


class WithFewer(Function):
    """Scores of tokens; of a probe that says how many tokens stand first, those of these few alone, too."""

    def run(self, function, args, **options):
        def both(query, key, few):
            fewer = function(query[:few], key[:few])
            return function(query, key), fewer

        return super().run(both if len(args) == 3 else function, args, **options)


def range_probes():
    draw = Draw("scores_in_range")

    def probe(name, d_k, of_queries, of_keys):
        return Probe(name, (of_queries * draw(60, d_k), of_keys * draw(50, d_k)))

    return (
        probe("entries of variance 1, d_k = 16", 16, 1, 1),
        probe("queries of standard deviation 3, d_k = 64", 64, 3, 1),
        probe("keys of standard deviation 1/3, d_k = 64", 64, 1, 1 / 3),
        probe("queries and keys of standard deviation 1/3, d_k = 36", 36, 1 / 3, 1 / 3),
        probe("d_k = 256, standard deviations 2 and 5", 256, 2, 5),
        Probe(MIXED, (_mixed(draw(120, 64), 1, 3), _mixed(draw(100, 64), 1 / 3, 1))),
        Probe("5 tokens, to which a sixth comes", (draw(6, 16), draw(6, 16), 5)),
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


OWN = (
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
        "zero_times_log_zero",
        behaves_as_if="it takes the logarithm of 0",
        symptom="A row with a weight of exactly 0 gives NaN: 0 times -inf.",
        hint="What does your code do with [0.5, 0.5, 0]?",
        then="ln 0 is -inf, and 0 times that is NaN. Put 1 in place of the 0 inside the logarithm.",
        variants=(_entropy_by(lambda w: -(w * _log(w)).sum(axis=-1)),),
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
        "log2_instead_of_ln",
        behaves_as_if="it takes the logarithm to base 2",
        symptom="Bits, not nats: every entropy is 1.44 times as large.",
        hint="What should the entropy of ten equal weights be?",
        then="ln 10, which is 2.30. np.log is the natural logarithm.",
        variants=(
            _entropy_by(lambda w: _surprise(w, log=np.log2)),
            _entropy_by(lambda w: -(w * np.log2(w)).sum(axis=-1)),
        ),
    ),
    Mistake(
        "minus_forgotten",
        behaves_as_if="it leaves out the minus sign",
        symptom="Negative entropies: the logarithm of a number below 1 is negative.",
        hint="Which sign has ln 0.5?",
        then="It is negative, as the logarithm of every weight below 1 is: put a minus in front of the sum.",
        variants=(
            _entropy_by(lambda w: -_surprise(w)),
            _entropy_by(lambda w: (w * _log(w)).sum(axis=-1)),
        ),
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
        symptom="An entropy belongs to one query: its weights are one row. weights[weights > 0] makes one list of all "
        "rows.",
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
        behaves_as_if="it returns cosines, which are at most 1",
        symptom="The variance of a cosine is about 1/d_k: the longer the vectors, the paler the weights.",
        hint="By which factor must a cosine grow for its variance to be 1?",
        then="A cosine of random vectors has the variance 1 / d_k. So multiply by the root of d_k.",
        variants=(_scores_by(lambda s: _cosines(s.q, s.k)),),
    ),
    Mistake(
        "cosines_divided",
        behaves_as_if="cosines are divided by sqrt(d_k) once more",
        symptom="The variance of a cosine is about 1/d_k already. Divided, it is 1/d_k squared.",
        hint="By which factor must a cosine grow for its variance to be 1?",
        then="By sqrt(d_k): multiply, where you divide.",
        variants=(_scores_by(lambda s: _cosines(s.q, s.k) / np.sqrt(s.q.shape[-1])),),
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
        symptom="The variance of a product is the product of both variances. Under a root belong variances, not their "
        "roots.",
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
        symptom="12 is 36 times 1/3, or 6 times 2. The variance of a product is the product of both variances. Times "
        "d_k it is the variance of a score, and the divisor is its root.",
        hint="What is the variance of one product of two such entries?",
        then="It is the product of both variances. Times d_k it is the variance of a score, and its root is the "
        "divisor.",
    ),
    Mistake(
        "multiplied_by_divisor",
        behaves_as_if="it is the factor, not the divisor",
        symptom="To multiply by 1/c is to divide by c. Or was the variance 1/12, as of entries in 0 .. 1?",
        hint="Should the divisor make scores of variance 4 smaller or larger?",
        then="Smaller: hand in what the scores are divided by.",
    ),
)


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
        **asked("variance", "q k", of=_Steps, stage="output"),
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
        **asked("entropy", "weights", of=_Steps, stage="output"),
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
        },
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
        **asked("in_range", "q k", of=_Steps, stage="scores"),
        judge=_judge_range,
    ),
)

RECALL = (
    Question("shapes_of_a_call", right="a", tempting="b").because(
        a="Each of 5 queries has a weight for each of 5 keys. An output averages values, so it is as long as a value.",
        b="d_k is gone after the dot products: a query has one weight for each key.",
        c="The output is made of values, so it is as long as a value, d_v = 4.",
    ),
    Question("softmax_compares", right="b", tempting="a").because(
        a="That would be dividing by the sum. Softmax takes the exponential first.",
        b="Two weights have the ratio of their exponentials, whatever else stands in the row. Only differences count.",
        c="The other scores change the sum by which both are divided, but not the ratio of the two.",
    ),
    Question("small_divisor", right="a", tempting="b").because(
        a="A small divisor leaves the scores far apart, and softmax compares by differences.",
        b="That is what a large divisor does: it makes the scores nearly equal.",
        c="Softmax compares by differences, and a division changes them.",
    ),
)

QUESTIONS = (
    Question("score_std", right="b", tempting="c").because(
        a="The pushes cancel only on average: each adds its variance of 1, and 64 of them add up to 64.",
        b="The variances of 64 products add up to 64, and the standard deviation is the root of that.",
        c="64 is the variance, the mean of the squares.",
    ),
    Question("divided_by_d_k", right="c", tempting="b").because(
        a="That is without any division.",
        b="That is with the root. Divided by d_k, the scores have the variance 1/64 and not 1.",
        c="The scores differ by about 1/8 only, so all ten keys get nearly the same: the pale end of the slider.",
    ),
)
