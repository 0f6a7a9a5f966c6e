"""The world of lesson program_a_head: a convoy of ships as rows of numbers.

An empty pilot boat leads one to seven ships. Each has a flag, some tons of cargo and a place.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FLAGS = "*ABCD"
PILOT, A, B, C, D = range(5)
# Columns of x.
FLAG, CARGO, ONE, PLACE, NOTE = slice(0, 5), 5, 6, slice(7, 15), slice(15, 20)
WIDTH, WIDE, PLACES = 15, 20, 8
TONS = (0, 4, 2, 7, 1, 5, 3, 6)


def convoy(flags, cargo=None, *, notes=False):
    """Return a convoy as an array with one row per ship, (n, 15), or (n, 20) with notes.

    Columns: `FLAG` one-hot, `CARGO`, `ONE` always 1, `PLACE` one-hot, and `NOTE`, five empty ones into which a layer
    can write. `flags` is `*`, the pilot, and one to seven letters of A to D; `cargo` one number of tons per ship, by
    default those of `TONS`. What is no convoy, or has not as many tons as ships, raises ValueError.

    >>> x = convoy("*BA", [0, 4, 2])
    >>> x[1, FLAG], x[1, CARGO], x[1, PLACE]
    (array([0., 0., 1., 0., 0.]), np.float64(4.0), array([0., 1., 0., 0., 0., 0., 0., 0.]))
    """
    if not (isinstance(flags, str) and 2 <= len(flags) <= PLACES and flags[0] == "*" and set(flags[1:]) <= set("ABCD")):
        raise ValueError(
            "a convoy is the pilot * and then one to seven ships with the flags A, B, C or D, "
            f'got {flags!r}. Fix: for example "*ABACDB".'
        )
    cargo = TONS[: len(flags)] if cargo is None else cargo
    if len(cargo) != len(flags):
        raise ValueError(
            f"cargo holds one number per ship, the pilot's included: expected {len(flags)}, got {len(cargo)}. "
            "Fix: begin with 0 for the pilot."
        )
    x = np.zeros((len(flags), WIDE if notes else WIDTH))
    places = np.arange(len(flags))
    x[places, [FLAGS.index(flag) for flag in flags]] = 1
    x[:, CARGO], x[:, ONE] = cargo, 1
    x[places, PLACE.start + places] = 1
    return x


@dataclass(frozen=True, eq=False)
class Convoy:
    """A convoy with what a rule asks of it."""

    flags: str
    cargo: np.ndarray
    notes: bool = False

    @cached_property
    def x(self):
        return convoy(self.flags, self.cargo, notes=self.notes)

    @property
    def ships(self):
        return [f"{place} {flag}" for place, flag in enumerate(self.flags)]

    @cached_property
    def kinds(self):
        """The number of each ship's flag, (n,)."""
        return np.array([FLAGS.index(flag) for flag in self.flags])

    @property
    def n(self):
        return len(self.flags)

    @property
    def places(self):
        return np.arange(self.n)

    @property
    def pilot(self):
        return self.places == 0


def draw(fits=lambda flags: True, *, seed=0, shortest=4, by_hand=(), notes=False, count=24):
    """Return convoys, the shortest first: some by hand, the others random, of every length up to 8."""
    rng, texts = np.random.default_rng(seed), list(by_hand)
    while len(texts) < count:
        n = shortest + len(texts) % (PLACES + 1 - shortest)
        flags = "*" + "".join(rng.choice(list("ABCD"), size=n - 1))
        texts += [flags] * bool(fits(flags))
    convoys = [Convoy(flags, np.r_[0.0, rng.integers(1, 10, size=len(flags) - 1)], notes) for flags in texts]
    return tuple(sorted(convoys, key=lambda c: c.n))


def rows(block, values, notes=False):
    """Return a matrix that reads only some columns of x: `values` in the rows of a block, 0 elsewhere."""
    W = np.zeros((WIDE if notes else WIDTH, np.shape(values)[-1]))
    W[block] = values
    return W
