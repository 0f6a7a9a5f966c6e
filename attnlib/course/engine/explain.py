"""Find the mistake, or the two mistakes together, that explain everything a wrong answer did.

Behaviour is compared, never code: a name says "behaves as if".
"""

import itertools
import re

from .compare import all_same, same

# Words in the error messages of axes that do not fit.
_OF_AXES = re.compile(r"\bax[ei]s\b|shape|\bsizes?\b|dim|broadcast|unpack|index|indices|subscript|\b\dD\b")


def _of_axes(found):
    """Tell whether all errors are about axes: a NameError is no evidence of a wrong axis."""
    errors = [outcome.problem.split("\n")[0] for outcome in found if outcome.kind == "raised"]
    return all("raises NameError" not in error and _OF_AXES.search(error) for error in errors)


def explain(found, probes, mistakes, wrong_outcomes, pairs):
    """Return the mistakes that explain the outcomes: one, else two at once, else none.

    If several explanations fit, none of them is certain, so none is returned.
    """
    fitting = [{id} for id, made in wrong_outcomes.items() if any(all_same(found, wrong, probes) for wrong in made)]
    fitting = fitting or pairs.fitting(found)
    if not fitting or any(ids != fitting[0] for ids in fitting):
        return ()
    mistakes = tuple(m for m in mistakes if m.id in fitting[0])
    return () if any(m.raises for m in mistakes) and not _of_axes(found) else mistakes


class Pairs:
    """All pairs of mistakes that replace different steps. Their outcomes are computed only when needed."""

    def __init__(self, probes, single, raising, outcome_with):
        """Take (id, overrides, outcomes) of every single mistake, the ids of those that raise, and how to try a pair.

        `outcome_with(overrides, probe)` is the outcome of the right answer with these steps replaced.
        """
        self._probes, self._raising, self._outcome_with = probes, raising, outcome_with
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
        """Tell whether some value shows `mistake` in addition to `other`; an error alone may have any cause."""
        return mistake[0] in self._raising or any(
            not outcome.kind and not same(outcome, alone, probe.tolerance)
            for outcome, alone, probe in zip(found, other[2], self._probes, strict=True)
        )
