"""What an answer is tried on: asymmetric, unsaturated, batched and not, all axes of different length, and the edges.

One probe per exercise has all axes equal on purpose: there wrong axes run without an error, and show in the numbers.
"""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnlib import masks


class Probe(NamedTuple):
    """Arguments to try; `name` completes the sentence "the first difference is on ..."."""

    name: str
    args: tuple[Any, ...]
    tolerance: float = 1e-4
    says: Callable | None = None  # what is wrong, in words: (yours, right) -> a sentence
    drawn: bool = False  # beside the sentence both are drawn


# In scores of 1e4 a float32 cannot hold more: an answer that computes in float32 is still right.
EXTREME = 5e-3

PLAIN = "one sequence"
PLAIN_MASKED = "one sequence with a mask"
BATCH = "a batch of sequences"
PADDED = "a batch with a padding mask, (b, 1, n_k)"
CUBE = "axes of equal length"
CUBE_MASKED = "axes of equal length, with a mask"
SINGLE = "float32 arrays"
DEAD = "a query that may attend to no key"
HUGE = "scores near +-1e4"
HUGE_MASKED = "blocked keys with scores near 1e4"
LOW_MASKED = "allowed keys with scores of -1e4 or less"
GRADIENT = "what training meets: the gradient of the output, biases"


class Draw:
    """Numbers that depend on the name of the exercise alone, so that another exercise never changes them."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, *shape):
        return self.rng.normal(size=shape)

    def matrix(self, rows, columns):
        return self(rows, columns) * 1.3 / np.sqrt(rows)


def another(x):
    """Return another argument of the same kind, or None for a kind that is not listed here."""
    if isinstance(x, np.ndarray):
        return x + 1 if x.dtype.kind in "iu" else ~x if x.dtype == bool else np.roll(1.5 * x, 1, -1)
    if type(x) is int:
        return x + 1 if x < 100 else 2 * x  # of a large number a step may not show one more
    return 2 * x + 1 if type(x) is float else None


def single(*arrays):
    return tuple(a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in arrays)


# (4, 5): no two rows alike, nobody fully masked, more than a triangle.
MASK = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=bool)
_SQUARE = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
MASK_CUBE = np.stack([_SQUARE, np.tri(3, dtype=bool), _SQUARE | np.eye(3, dtype=bool)[::-1]])
MASK_PADDING = masks.padding_mask([3, 4], 5)


def dead(mask):
    """Block all keys of query 2."""
    return mask & (np.arange(len(mask)) != 2)[:, None]


def edges(arrays, cube, huge=lambda arrays: (5e3 * arrays[0], *arrays[1:]), mask=MASK):
    """Return the probes every attention function gets; `arrays(*lead)` draws inputs, `huge` makes scores near 1e4.

    Without a mask, None, those are left out that try one.
    """
    one, batch, square = arrays(), arrays(2), cube()
    large = huge(one)
    if mask is None:
        return (
            Probe(PLAIN, one),
            Probe(BATCH, batch),
            Probe(CUBE, square),
            Probe(SINGLE, single(*batch)),
            Probe(HUGE, large, EXTREME),
        )
    far = (3 * large[0], *large[1:])
    one_key = np.roll(np.eye(*mask.shape, dtype=bool), 2, axis=1)  # some row's score is below -1e4 in every exercise
    return (
        Probe(PLAIN, one),
        Probe(PLAIN_MASKED, (*one, mask)),
        Probe("a mask that allows everything", (*one, mask | True)),
        Probe(BATCH, batch),
        Probe(PADDED, (*batch, MASK_PADDING)),
        Probe(CUBE, square),
        Probe(CUBE_MASKED, (*square, MASK_CUBE)),
        Probe(SINGLE, (*single(*batch), np.stack([mask, mask[::-1]]))),
        Probe(DEAD, (*one, dead(mask))),
        Probe(HUGE, large, EXTREME),
        Probe(HUGE_MASKED, (*large, mask), EXTREME),
        Probe(LOW_MASKED, (*far, one_key), EXTREME),
    )


def with_negated_queries(attention):
    """Return an attention that no other gives, to hand over as an argument: an answer that never calls it shows."""
    return lambda query, key, value, attn_mask=None: attention(-query, key, value, attn_mask)


def gradient(args, matrices):
    """Return the probe that asks what each matrix lacks in training, also where a query has no key."""

    def says(yours, right):
        faults = list(zip(matrices, yours, strict=True))
        cut, nan, bias = (" and ".join(name for name, y in faults if y == fault) for fault in (1, 2, 3))
        if not (cut or nan or bias):
            return (
                "In training mode your module gives other numbers, the same at each call: is there a norm over the "
                "batch? Fix: leave it out, the task has none."
            )
        if bias:
            return (
                f"The bias of {bias} does not arrive in the output as it should. A layer adds its own when it is "
                "called; that of W_O stands in each row, also of a query that may attend to no key. Fix: call the "
                "layers, W_O last and on all rows, or make them with bias=False."
            )
        if nan:
            return (
                f"The gradient that comes back to {nan} is NaN, though the loss leaves out the one query that may "
                "attend to no key. Fix: bring -inf into the scores with masked_fill or torch.where, not by adding it, "
                "and make NaN weights 0 before they are multiplied by V, not after."
            )
        return f"The output depends on {cut}, but no gradient comes back there."

    return Probe(GRADIENT, (*args, matrices), says=says)
