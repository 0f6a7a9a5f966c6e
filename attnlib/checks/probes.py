"""What an answer is tried on: asymmetric, unsaturated, batched and not, all axes of different length, and the edges.

One probe per exercise has all axes equal on purpose: there wrong axes run without an error, and show in the numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from .. import masks
from .pipeline import after_copy


class Probe(NamedTuple):
    """Arguments to try; `name` completes the sentence "the first difference is on ..."."""

    name: str
    args: tuple[Any, ...]
    tolerance: float = 1e-4


# In scores of 1e4 a float32 cannot hold more: an answer that computes in float32 is still right.
EXTREME = 5e-3

PLAIN = "one sequence"
MASKED = "one sequence with a mask"
BATCH = "a batch of sequences"
PADDED = "a batch with a padding mask, (b, 1, n_k)"
CUBE = "axes of equal length"
CUBE_MASKED = "axes of equal length, with a mask"
SINGLE = "float32 arrays"
DEAD = "a query that may attend to no key"
HUGE = "scores near +-1e4"
HUGE_MASKED = "blocked keys with scores near 1e4"

_rng = np.random.default_rng(2017)


def _draw(*shape):
    return _rng.normal(size=shape)


def _single(*arrays):
    return tuple(a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in arrays)


# (4, 5): no two rows alike, nobody fully masked, more than a triangle.
_MASK = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=bool)
_DEAD = _MASK & (np.arange(4) != 2)[:, None]
_SQUARE = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
_CUBE = np.stack([_SQUARE, np.tri(3, dtype=bool), _SQUARE | np.eye(3, dtype=bool)[::-1]])
_PADDING = masks.padding_mask([3, 4], 5)


def softmax():
    x = _draw(4, 5)
    high = x + np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("one row", (x[0],)),
        Probe("one score per query and key", (x,)),
        Probe("a batch", (_draw(2, 4, 5),)),
        Probe("axis=0", (x, 0)),
        Probe("axis=1 of a batch", (_draw(2, 4, 5), 1)),
        Probe("equal axes", (_draw(3, 3, 3),)),
        Probe(SINGLE, _single(_draw(2, 3))),
        Probe("scores of -inf", (np.where(_MASK, x, -np.inf),)),
        Probe("numbers near +-1e4", (high,), EXTREME),
    )


def scores():
    return (
        Probe(PLAIN, (_draw(4, 3), _draw(5, 3))),
        Probe(BATCH, (_draw(2, 4, 3), _draw(2, 5, 3))),
        Probe(CUBE, (_draw(3, 3, 3), _draw(3, 3, 3))),
        Probe(SINGLE, _single(_draw(4, 3), _draw(5, 3))),
    )


def variance():
    # Enough scores for the variances over N and N - 1 to agree: both are right.
    return (
        Probe("d_k = 3", (_draw(70, 3), _draw(60, 3)), 2e-3),
        Probe("d_k = 16", (_draw(70, 16), _draw(60, 16)), 2e-3),
        Probe("n_q = n_k = d_k", (_draw(60, 60), 2 * _draw(60, 60)), 2e-3),
    )


def entropy():
    one, batch, cube = (_share(_draw(*shape)) for shape in ((4, 5), (2, 4, 5), (3, 3, 3)))
    return (
        Probe("one map of weights", (one,)),
        Probe("a batch of maps", (batch,)),
        Probe("equal axes", (cube,)),
        Probe(SINGLE, _single(batch)),
        Probe("weights of exactly 0", (np.array([[0.5, 0.5, 0], [1, 0, 0], [0.2, 0.3, 0.5]]),)),
    )


def _share(x):
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def _edges(arrays, cube, huge):
    """Return the probes every attention function gets; `arrays(*lead)` draws inputs, `huge` makes scores near 1e4."""
    one, batch, square = arrays(), arrays(2), cube()
    return (
        Probe(PLAIN, one),
        Probe(MASKED, (*one, _MASK)),
        Probe(BATCH, batch),
        Probe(PADDED, (*batch, _PADDING)),
        Probe(CUBE, square),
        Probe(CUBE_MASKED, (*square, _CUBE)),
        Probe(SINGLE, (*_single(*batch), np.stack([_MASK, _MASK[::-1]]))),
        Probe(DEAD, (*one, _DEAD)),
        Probe(HUGE, huge(one), EXTREME),
        Probe(HUGE_MASKED, (*huge(one), _MASK), EXTREME),
    )


def attention():
    def huge(arrays):
        return 5e3 * arrays[0], *arrays[1:]

    return _edges(
        lambda *b: (_draw(*b, 4, 3), _draw(*b, 5, 3), _draw(*b, 5, 2)),
        lambda: (_draw(3, 3, 3), _draw(3, 3, 3), _draw(3, 3, 3)),
        huge,
    )


def masked():
    x, batch = _draw(4, 5), _draw(2, 4, 5)
    offset = np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("scores without a mask", (x,)),
        Probe("scores with a mask", (x, _MASK)),
        Probe(PADDED, (batch, _PADDING)),
        Probe(CUBE_MASKED, (_draw(3, 3, 3), _CUBE)),
        Probe(SINGLE, (*_single(batch), np.stack([_MASK, _MASK[::-1]]))),
        Probe(DEAD, (x, _DEAD)),
        Probe(HUGE, (x + offset,), EXTREME),
        Probe(HUGE_MASKED, (x + np.where(_MASK, 0, 1e4), _MASK), EXTREME),
    )


def causal():
    return (
        Probe("n_q = 4", (4,)),
        Probe("n_q = 1", (1,)),
        Probe("n_q = n_k = 3", (3, 3)),
        Probe("fewer queries than keys", (3, 5)),
        Probe("more queries than keys", (5, 3)),
    )


def padding():
    return (
        Probe("lengths 3, 1, 4, 2 of n_k = 6", (np.array([3, 1, 4, 2]), 6)),
        Probe("lengths 0 and 5 of n_k = 5", (np.array([0, 5]), 5)),
        Probe("as many sequences as positions", (np.array([2, 1, 3]), 3)),
    )


def combine():
    tri, padded = masks.causal_mask(5), masks.padding_mask([3, 4], 5)
    return (
        Probe("two masks of one shape", (_MASK, masks.causal_mask(4, 5))),
        Probe("a causal and a padding mask", (tri, padded)),
        Probe("three masks", (tri, padded, _rng.random((5, 5)) < 0.7)),
        Probe("None among them", (None, tri, padded)),
        Probe("one mask", (tri,)),
    )


def split():
    return (
        Probe(PLAIN, (_draw(5, 6), 3)),
        Probe(BATCH, (_draw(2, 4, 15), 3)),
        Probe(CUBE, (_draw(4, 4, 16), 4)),
        Probe(SINGLE, (*_single(_draw(5, 8)), 2)),
    )


def merge():
    return (
        Probe(PLAIN, (_draw(3, 5, 2),)),
        Probe(BATCH, (_draw(2, 3, 4, 5),)),
        Probe(CUBE, (_draw(4, 4, 4, 4),)),
        Probe(SINGLE, _single(_draw(3, 4, 2))),
    )


def _matrix(rows, columns):
    return _draw(rows, columns) * 1.3 / np.sqrt(rows)


def multi_head(same_width=False):
    """Return the probes of multi-head attention; `same_width` leaves out keys and values of another width."""
    width, h = 8, 2

    def matrices(d, kdim=None, vdim=None):
        return _matrix(d, d), _matrix(kdim or d, d), _matrix(vdim or d, d), _matrix(d, d)

    w = matrices(width)
    edges = _edges(
        lambda *b: (_draw(*b, 4, width), _draw(*b, 5, width), _draw(*b, 5, width), *w, h),
        lambda: (_draw(3, 3, 9), _draw(3, 3, 9), _draw(3, 3, 9), *matrices(9), 3),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )
    if same_width:
        return edges
    others = (_draw(4, width), _draw(5, 6), _draw(5, 7), *matrices(width, 6, 7), 4)
    return (*edges, Probe("keys and values of other widths", others))


def self_attention():
    w = _matrix(6, 4), _matrix(6, 4), _matrix(6, 3)
    equal = _matrix(3, 3), _matrix(3, 3), _matrix(3, 3)
    x, batch, cube = _draw(5, 6), _draw(2, 5, 6), _draw(3, 3, 3)
    mask = np.vstack([_MASK, [[1, 1, 0, 1, 0]]]).astype(bool)
    dead = mask & (np.arange(5) != 2)[:, None]
    large = tuple(70 * m for m in w[:2])
    return (
        Probe(PLAIN, (x, *w)),
        Probe(MASKED, (x, *w, mask)),
        Probe(BATCH, (batch, *w)),
        Probe(PADDED, (batch, *w, _PADDING)),
        Probe(CUBE, (cube, *equal)),
        Probe(CUBE_MASKED, (cube, *equal, _CUBE)),
        Probe(SINGLE, (*_single(batch, *w), np.stack([mask, mask[::-1]]))),
        Probe(DEAD, (x, *w, dead)),
        Probe(HUGE, (x, *large, w[2]), EXTREME),
        Probe(HUGE_MASKED, (x, *large, w[2], mask), EXTREME),
    )


def cross():
    def arrays(*b):
        return _draw(*b, 4, 6), _draw(*b, 5, 7), *w

    w = _matrix(6, 3), _matrix(7, 3), _matrix(7, 2)
    return _edges(
        arrays,
        lambda: (_draw(3, 3, 3), _draw(3, 3, 3), _matrix(3, 3), _matrix(3, 3), _matrix(3, 3)),
        lambda a: (5e3 * a[0], *a[1:]),
    )


def heads_to_rank():
    """Return batches with heads of known habits; one of them does induction, and not the sharpest."""
    # Four patterns of different length, repeated; then letters that come back at random.
    repeated = np.stack([_rng.permutation(12)[np.arange(16) % period] for period in (5, 6, 7, 8)])
    random = _rng.integers(6, size=(4, 16))
    return tuple(
        Probe(name, (_habits(tokens)[:, _rng.permutation(7)], tokens))
        for name, tokens in (("repeated patterns", repeated), ("letters that come back at random", random))
    )


def _habits(tokens):
    """Return the weights (b, 7, n, n) of seven heads."""
    (b, n), i = tokens.shape, np.arange(tokens.shape[1])
    causal = np.tri(n, dtype=bool)

    def head(share, cells):
        """Put `share` of each row on the cells; rows without one, and the rest, are spread evenly."""
        cells = np.broadcast_to(cells, (b, n, n)) & causal
        share = share * cells.any(-1, keepdims=True)
        return share * cells / np.maximum(cells.sum(-1, keepdims=True), 1) + (1 - share) * causal / (i + 1)[:, None]

    sharp = i == _rng.integers(i + 1)[:, None]  # one key for each query, at random
    return np.stack(
        [
            head(0.7, after_copy(tokens)),
            head(0.9, after_copy(tokens, 0)),
            head(0.9, after_copy(tokens, -1)),
            head(0.9, i[:, None] - 1 == i),
            head(0.9, i[:, None] - 5 == i),
            head(1.0, sharp),
            head(0.0, causal),
        ],
        axis=1,
    )


def sequences_to_fool():
    return (
        Probe("D A B C E A", (np.array([3, 0, 1, 2, 4, 0]),)),
        Probe("B C D E F A B", (np.array([1, 2, 3, 4, 5, 0, 1]),)),
        Probe("A F B D E C D", (np.array([0, 5, 1, 3, 4, 2, 3]),)),
    )
