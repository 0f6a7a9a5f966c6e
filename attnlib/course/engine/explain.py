"""Find the mistake, or the two mistakes together, that explain everything a wrong answer did.

Behaviour is compared, never code: a name says "behaves as if".
"""

import itertools
import re

import numpy as np

from .compare import all_same, close, near, same

# Mistakes that any function can have, seen in its results alone: they stand in the place of steps that replace others.
CONSTANT, PART, TURNED = PLAIN = "constant_result", "part_of_result", "order_turned"

# Words in the error messages of axes that do not fit.
_OF_AXES = re.compile(r"\bax[ei]s\b|shape|\bsizes?\b|dim|broadcast|unpack|index|indices|subscript|\b\dD\b")


def _of_axes(found):
    """Tell whether all errors are about axes: a NameError is no evidence of a wrong axis."""
    errors = [outcome.problem.split("\n")[0] for outcome in found if outcome.kind == "raised"]
    return all("raises NameError" not in error and _OF_AXES.search(error) for error in errors)


def explain(found, expected, probes, mistakes, wrong_outcomes, pairs):
    """Return the mistakes that explain the outcomes: one, else what the results show by themselves, else two at once.

    If several explanations fit, none of them is certain, so none is returned.
    """
    fitting = [{id} for id, made in wrong_outcomes.items() if any(all_same(found, wrong, probes) for wrong in made)]
    fitting = fitting or plain(found, expected, probes) or pairs.fitting(found)
    if not fitting or any(ids != fitting[0] for ids in fitting):
        return ()
    mistakes = tuple(m for m in mistakes if m.id in fitting[0])
    return () if any(m.raises for m in mistakes) and not _of_axes(found) else mistakes


def plain(found, expected, probes):
    """Return which of PLAIN the results are, as a list of a set, or an empty list."""
    tried = [
        (f.values[0], e.values[0], probe.tolerance)
        for f, e, probe in zip(found, expected, probes, strict=False)
        if f.values and not probe.says
    ]
    if any(outcome.kind for outcome in found) or len(tried) < 2 or any(not x.size for x, _, _ in tried):
        return []
    if all((x == tried[0][0].flat[0]).all() for x, _, _ in tried):
        return [{CONSTANT}]
    wrong = [(x, y, tolerance) for x, y, tolerance in tried if not close(x, y, tolerance)]
    if len(wrong) < 2 or any(bool in (x.dtype, y.dtype) for x, y, _ in wrong):
        return []
    if all(_is_part(*one) for one in wrong):
        return [{PART}]
    turns = (*(lambda y, i=i: np.flip(y, i) for i in (-1, -2, 0)), lambda y: np.swapaxes(y, -1, -2))
    if min(y.ndim for _, y, _ in tried) > 1 and any(all(close(x, t(y), e) for x, y, e in tried) for t in turns):
        return [{TURNED}]
    return []


def _is_part(x, y, tolerance):
    """Tell whether x is the beginning or the end of y along an axis, alone or with zeros in the place of the rest."""
    for axis, size in enumerate(y.shape):
        if x.shape == y.shape:  # zeros in whole slices, and nothing else is wrong
            others = tuple(i for i in range(y.ndim) if i != axis)
            off = ~near(x, y, tolerance).all(axis=others)
            if not off.all() and not x.compress(off, axis).any():
                return True
        elif x.ndim == y.ndim and x.shape[axis] < size:
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

    def fitting(self, found):
        """Return the pairs that explain the outcomes, as sets of ids."""
        if sum(not outcome.kind for outcome in found) <= len(self._probes) / 4:
            return []  # errors may have any cause: too little is known for two names
        return [
            {a[0], b[0]}
            for a, b, known in self._all
            if self._may_fit(found, a[1] | b[1], known)
            and all_same(found, self._outcomes(a[1] | b[1], known), self._probes)
            and self._shows(a, found, b)
            and self._shows(b, found, a)
        ]

    def _may_fit(self, found, overrides, known):
        """Compare one number of the first probe: this rules out thousands of pairs cheaply."""
        mine, theirs = found[0], next(self._outcomes(overrides, known))
        if mine.kind or theirs.kind:
            return mine.kind == theirs.kind
        if mine.told:
            return mine.told == theirs.told
        (x, *_), (y, *_) = mine.values, theirs.values
        if x.shape != y.shape:
            return False
        x, y = float(x.flat[-1]), float(y.flat[-1])
        return not abs(x - y) > 0.05 * (1 + abs(y))  # NaN is left to the full comparison

    def _outcomes(self, overrides, known):
        for i, probe in enumerate(self._probes):
            if i == len(known):
                known.append(self._outcome_with(overrides, probe))
            yield known[i]

    def _shows(self, mistake, found, other):
        """Tell whether two probes or more show `mistake` in addition to `other`, or as many as show it when alone.

        An error alone may have any cause.
        """
        alone = self._differing(mistake[2], self._expected)
        return mistake[0] in self._raising or self._differing(found, other[2]) >= min(2, max(1, alone))

    def _differing(self, outcomes, others):
        """Return on how many probes values differ; a result of nothing but NaN shows no mistake beside another."""
        return sum(
            not outcome.kind
            and not all(x.dtype.kind == "f" and np.isnan(x).all() for x in outcome.values)
            and not same(outcome, other, probe.tolerance)
            for outcome, other, probe in zip(outcomes, others, self._probes, strict=True)
        )
