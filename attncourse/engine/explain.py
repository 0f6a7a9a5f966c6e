"""Find the mistake, or the two mistakes together, that explain everything a wrong answer did.

Behaviour is compared, never code: a name says "behaves as if".
"""

import itertools
import re

import numpy as np

from .compare import all_same, close, factor_between, near, same
from .probes import EXTREME

# Mistakes that any function can have, seen in its results alone: they stand in the place of steps that replace others.
CONSTANT, PART, REARRANGED, FACTOR = "constant_result", "part_of_result", "rearranged", "factor"
REDUCED, TRANSFORMED = "axis_added_up", "function_of_result"
HIDES, SHOWS, NEARLY = "hides_too_much", "shows_too_much", "nearly_right"
PLAIN = CONSTANT, PART, REARRANGED, FACTOR, REDUCED, TRANSFORMED
_FUNCTIONS = np.log, np.exp, np.sqrt, np.square, np.reciprocal, np.abs, lambda y: 1 - y, lambda y: np.maximum(y, 0)

# Beside whatever else a result is, right or wrong: an argument is written to, numbers stand for True and False.
WRITTEN, NUMBERS = "mutates_input", "mask_as_numbers"

# Words in the error messages of axes that do not fit.
_OF_AXES = re.compile(
    r"\bax[ei]s\b|shape|\bsizes?\b|[dD]im|broadcast|unpack|ind[ei]|subscript|\b\dD\b|with a sequence|length-1|scalar"
)


def of_axes(outcomes):
    """Tell whether all errors are about axes: a NameError is no evidence of a wrong axis."""
    errors = [outcome.problem.split("\n")[0] for outcome in outcomes if outcome.kind == "raised"]
    return all("raises NameError" not in error and _OF_AXES.search(error) for error in errors)


def explain(outcomes, expected, probes, mistakes, wrong_outcomes, pairs):
    """Return the mistakes that explain the outcomes: one, else what the results show by themselves, else two at once.

    If several explanations fit, none of them is certain, so none is returned. Nor is one of nothing but NaN.
    """
    first = next((f for f, e, p in zip(outcomes, expected, probes, strict=False) if not same(f, e, p.tolerance)), None)
    if first and first.proved:
        return tuple(m for m in mistakes if m.id == first.proved)
    if nothing_but_nan(outcomes):
        return ()
    outcomes, beside = _without_side_effects(outcomes, expected)
    tried = zip(outcomes, expected, probes, strict=False)
    place = next((i for i, (f, e, p) in enumerate(tried) if not same(f, e, p.tolerance)), 0)

    def fits(wrong):  # the first difference rules out most
        return same(outcomes[place], wrong[place], probes[place].tolerance) and all_same(outcomes, wrong, probes)

    fitting = [{id} for id, made in wrong_outcomes.items() if any(map(fits, made))]
    if beside and all_same(outcomes, expected, probes):
        fitting = [set()]
    fitting = fitting or plain(outcomes, expected, probes) or ([] if beside else pairs.fitting(outcomes))
    if not fitting or any(ids != fitting[0] for ids in fitting):
        return ()
    mistakes = tuple(m for m in mistakes if m.id in fitting[0] | beside)
    return () if any(m.raises for m in mistakes) and not of_axes(outcomes) else mistakes


def nothing_but_nan(outcomes):
    """Tell whether all results together hold no number."""
    values = [x for outcome in outcomes for x in outcome.values]
    return bool(values) and all(x.dtype.kind == "f" and x.size and np.isnan(x).all() for x in values)


def _without_side_effects(outcomes, expected):
    """Return the outcomes without what may stand beside any other mistake, and the ids of that."""
    beside = {WRITTEN} if any(outcome.mutated for outcome in outcomes) else set()
    outcomes = [outcome._replace(mutated=False) for outcome in outcomes]
    truth = [bool(e.values) and e.values[0].dtype == bool for e in expected]
    asked = [i for i, f in enumerate(outcomes) if truth[i] and f.values and f.values[0].dtype != bool]
    added = any((outcomes[i].values[0] < 0).any() for i in asked)  # 0 and -inf or -1e9, to be added to scores
    for i in asked:
        x = outcomes[i].values[0]
        outcomes[i] = outcomes[i]._replace(values=((x == 0) if added else (x != 0),))
    return outcomes, beside | ({NUMBERS} if asked else set())


def plain(outcomes, expected, probes):
    """Return which of PLAIN the results are, as a list of a set, or an empty list."""
    tried = [
        (f.values[0], e.values[0], probe.tolerance)
        for f, e, probe in zip(outcomes, expected, probes, strict=False)
        if f.values and not probe.says
    ]
    if any(outcome.kind for outcome in outcomes) or len(tried) < 2 or any(not x.size for x, _, _ in tried):
        return []
    if all((x == tried[0][0].flat[0]).all() for x, _, _ in tried):
        return [{CONSTANT}]
    wrong = [(x, y, tolerance) for x, y, tolerance in tried if not close(x, y, tolerance)]
    if len(wrong) < 2:
        return []
    if all(x.size == y.size and close(x.reshape(y.shape), y, tolerance) for x, y, tolerance in wrong):
        return [{REARRANGED}]
    if any(x.dtype.kind != "f" or y.dtype.kind != "f" for x, y, _ in wrong):
        return []  # of so few different numbers or truths many agree by chance
    number, zeros_are_wrong = factor_between(*wrong[0][:2]), any(y.all() for _, y, _ in wrong)
    looks = {
        PART: lambda x, y, tolerance: zeros_are_wrong and _is_part(x, y, tolerance),
        REARRANGED: lambda x, y, tolerance: x.size == y.size and close(np.sort(x, None), np.sort(y, None), tolerance),
        FACTOR: lambda x, y, tol: x.any() and close(x, (number if x.size == 1 else factor_between(x, y)) * y, tol),
        REDUCED: _is_reduced,
    }
    with np.errstate(all="ignore"):
        moderate = [one for one in wrong if one[2] < EXTREME]  # exp of large numbers overflows, or is 0
        if any(moderate and all(close(x, f(y), tolerance) for x, y, tolerance in moderate) for f in _FUNCTIONS):
            return [{TRANSFORMED}]
        return [{id} for id, look in looks.items() if all(look(*one) for one in wrong)][:1]


def roughly(outcomes, expected, probes, orders=False):
    """Return in which way all wrong results miss, if there is one; over `orders` of magnitude each has its own 1 %."""
    if any(outcome.kind or outcome.told for outcome in outcomes):
        return None
    tried = zip(outcomes, expected, probes, strict=False)
    pairs = [(o.values[0], e.values[0], p.tolerance) for o, e, p in tried if not p.says]
    wrong = [(x, y) for x, y, tolerance in pairs if not close(x, y, tolerance)]

    def nearly(x, y):
        return (np.abs(x - y) <= 1e-2 * np.abs(y) if orders else near(x, y, 1e-2)).all()

    looks = {
        HIDES: lambda x, y: x.dtype == y.dtype == bool and not (x & ~y).any(),
        SHOWS: lambda x, y: x.dtype == y.dtype == bool and not (y & ~x).any(),
        NEARLY: lambda x, y: x.dtype.kind == y.dtype.kind == "f" and nearly(x, y),
    }
    return next(
        (id for id, look in looks.items() if wrong and all(x.shape == y.shape and look(x, y) for x, y in wrong)), None
    )


def _is_reduced(x, y, tolerance):
    """Tell whether x is the sum or the mean of y along an axis, or of all of it."""
    axes = [None, *(axis for axis, size in enumerate(y.shape) if size > 1)]
    sums = (way(y, axis=axis, keepdims=kept) for axis in axes for way in (np.sum, np.mean) for kept in (False, True))
    return y.size > 1 and any(close(x, np.asarray(z), tolerance) for z in sums)


def _is_part(x, y, tolerance):
    """Tell whether x is the beginning or the end of y along an axis, or y with zeros in the place of other numbers."""
    if x.shape == y.shape:
        off = ~near(x, y, tolerance)
        return 0 < off.sum() < off.size and not x[off].any()
    for axis, size in enumerate(y.shape):
        if x.ndim == y.ndim and x.shape[axis] < size:
            ends = np.arange(x.shape[axis]), np.arange(size - x.shape[axis], size)
            if any(close(x, y.take(end, axis), tolerance) for end in ends):
                return True
        elif any(close(x, y.take(i, axis), tolerance) for i in (0, -1)):
            return True
    return False


class Pairs:
    """All pairs of mistakes that replace different steps. Their outcomes are computed only when needed."""

    def __init__(self, probes, expected, single, raising, outcome_with):
        """Take (id, overrides, outcomes) of every single mistake, the ids of those that raise, and how to try a pair.

        `outcome_with(overrides, probe)` is the outcome of the right answer with these steps replaced.
        """
        self._probes, self._expected, self._raising, self._outcome_with = probes, expected, raising, outcome_with
        self._all = [
            (a, b, []) for a, b in itertools.combinations(single, 2) if a[0] != b[0] and not set(a[1]) & set(b[1])
        ]
        self._distinct = {}

    def fitting(self, outcomes):
        """Return the pairs that explain the outcomes, as sets of ids."""
        ran = sum(not outcome.kind for outcome in outcomes)
        if len(outcomes) != len(self._probes) or ran <= len(self._probes) / 4:
            return []  # errors may have any cause: too little is known for two names
        agrees = {}

        def fits(a, b, known):
            for i, probe in enumerate(self._probes):
                if i == len(known):
                    known.append(self._once(i, self._outcome_with(a[1] | b[1], probe)))
                if (place := (i, id(known[i]))) not in agrees:
                    agrees[place] = same(outcomes[i], known[i], probe.tolerance)
                if not agrees[place]:
                    return False
            return self._shows(a, outcomes, b) and self._shows(b, outcomes, a)

        return [{a[0], b[0]} for a, b, known in self._all if fits(a, b, known)]

    def _once(self, i, outcome):
        """Return the outcome, the same object for all that are alike on probe i: thousands of pairs are few results."""
        numbers = tuple((x.shape, x.dtype.str, x.tobytes()) for x in outcome.values)
        return self._distinct.setdefault((i, outcome.kind, outcome.mutated, outcome.told, numbers), outcome)

    def _shows(self, mistake, outcomes, other):
        """Tell whether two probes or more show `mistake` in addition to `other`, or as many as show it when alone.

        An error alone may have any cause.
        """
        alone = self._differing(mistake[2], self._expected)
        return mistake[0] in self._raising or self._differing(outcomes, other[2]) >= min(2, max(1, alone))

    def _differing(self, outcomes, others):
        """Return on how many probes values differ; a result of nothing but NaN shows no mistake beside another."""
        return sum(
            not outcome.kind
            and not all(x.dtype.kind == "f" and np.isnan(x).all() for x in outcome.values)
            and not same(outcome, other, probe.tolerance)
            for outcome, other, probe in zip(outcomes, others, self._probes, strict=True)
        )
