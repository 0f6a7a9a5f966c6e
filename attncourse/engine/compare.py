"""Compare what an answer gives with what is right: arrays, outcomes of calls, and the first difference."""

from typing import Any, NamedTuple

import numpy as np

RIGHT = "right"  # what a judge says in the place of a mistake

# Keep our own references: a notebook that patches np.allclose must not change what counts as right.
_abs, allclose, isclose, _isfinite, _isnan = np.abs, np.allclose, np.isclose, np.isfinite, np.isnan


class Difference(NamedTuple):
    """The first probe that an answer fails, and the first array that differs there."""

    place: int  # of the probe, among all
    probe: Any
    outcome: Any
    right: Any
    part: int | None  # 0: the result, 1: the weights beside it; None: the call failed, was judged, or changed arguments

    @property
    def yours(self):
        return self.outcome.values[self.part]

    @property
    def expected(self):
        return self.right.values[self.part]

    @property
    def index(self):
        """The first entry that differs; None if the shapes or dtypes cannot be compared."""
        if self.part is None or self.yours.shape != self.expected.shape:
            return None
        if (self.yours.dtype == bool) != (self.expected.dtype == bool) or self.yours.dtype == np.float16:
            return None
        wrong = ~near(self.yours, self.expected, self.probe.tolerance)
        return tuple(int(k) for k in np.argwhere(wrong)[0])


def near(x, y, tolerance):
    """Compare two arrays of one shape entry by entry; `tolerance` is relative to y and to its largest entry."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    size, finite = _abs(y), _isfinite(y)
    largest = min(1.0, size[finite].max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):  # inf - inf
        within = (_abs(x - y) <= tolerance * (largest + size)) & finite
    return within | (x == y) | (_isnan(x) & _isnan(y))  # as np.isclose, which is slower


def close(x, y, tolerance):
    """Tell whether two arrays are the same answer: shape, kind of dtype and numbers, NaN equal to NaN."""
    half = x.dtype == np.float16
    if x.shape != y.shape or (x.dtype == bool) != (y.dtype == bool) or half != (y.dtype == np.float16):
        return False
    if x.dtype == bool:
        return bool((x == y).all())
    tolerance = 2e-2 if half else tolerance
    if x.size:  # one number rules out most of what is compared
        one, other = float(x.flat[-1]), float(y.flat[-1])
        if abs(one - other) > tolerance * (1 + abs(other)):
            return False
    return bool(near(x, y, tolerance).all())


def factor_between(x, y):
    """Return by which number y is to be multiplied to give x, if there is one; 0 if there is none."""
    if x.shape != y.shape or not (_isfinite(x) & _isfinite(y)).all() or not y.any():
        return 0.0
    factor = float((x * y).sum() / (y * y).sum())
    return factor if close(x, factor * y, 1e-4) else 0.0


def same(a, b, tolerance):
    """Tell whether two outcomes are the same; any two errors count as equal."""
    if a.kind or b.kind:
        return a.kind == b.kind == "raised"
    # What a judge finds right is right, whatever it adds in words.
    if a.mutated != b.mutated or (a.told != b.told and not a.told[0] == b.told[0] == RIGHT):
        return False
    return all(close(x, y, tolerance) for x, y in zip(a.values, b.values, strict=False))


def all_same(outcomes, others, probes):
    """Tell whether the outcomes agree on every probe; `others` may be a generator and is read only as far as needed."""
    if len(outcomes) != len(probes):
        return False
    return all(same(a, b, probe.tolerance) for a, b, probe in zip(outcomes, others, probes, strict=True))


def first_difference(outcomes, expected, probes):
    """Return the first Difference between outcomes that are not all the same; `outcomes` may stop early."""
    tried = list(zip(outcomes, expected, probes, strict=False))
    place = next(i for i, (a, b, probe) in enumerate(tried) if not same(a, b, probe.tolerance))
    outcome, right, probe = tried[place]
    arrays = enumerate(zip(outcome.values, right.values, strict=False))
    part = next((i for i, (x, y) in arrays if not close(x, y, probe.tolerance)), None)
    return Difference(place, probe, outcome, right, part)
