"""What an answer is tried on: asymmetric, unsaturated, batched and not, all axes of different length, and the edges.

One probe per exercise has all axes equal on purpose: there wrong axes run without an error, and show in the numbers.
"""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import masks
from .pipeline import after_copy


class Probe(NamedTuple):
    """Arguments to try; `name` completes the sentence "the first difference is on ..."."""

    name: str
    args: tuple[Any, ...]
    tolerance: float = 1e-4
    says: Callable | None = None  # what is wrong, in words: (yours, right) -> a sentence


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
GRADIENT = "the gradient of the output"


class _Draw:
    """Numbers that depend on the name of the exercise alone, so that another exercise never changes them."""

    def __init__(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, *shape):
        return self.rng.normal(size=shape)

    def matrix(self, rows, columns):
        return self(rows, columns) * 1.3 / np.sqrt(rows)


def _single(*arrays):
    return tuple(a.astype(np.float32) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in arrays)


# (4, 5): no two rows alike, nobody fully masked, more than a triangle.
_MASK = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=bool)
_DEAD = _MASK & (np.arange(4) != 2)[:, None]
_SQUARE = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
_CUBE = np.stack([_SQUARE, np.tri(3, dtype=bool), _SQUARE | np.eye(3, dtype=bool)[::-1]])
_PADDING = masks.padding_mask([3, 4], 5)


def softmax():
    draw = _Draw("softmax")
    x = draw(4, 5)
    high = x + np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("one row", (x[0],)),
        Probe("one score per query and key", (x,)),
        Probe("a batch", (draw(2, 4, 5),)),
        Probe("axis=0", (x, 0)),
        Probe("axis=1 of a batch", (draw(2, 4, 5), 1)),
        Probe("equal axes", (draw(3, 3, 3),)),
        Probe(SINGLE, _single(draw(2, 3))),
        Probe("scores of -inf", (np.where(_MASK, x, -np.inf),)),
        Probe("numbers near +-1e4", (high,), EXTREME),
    )


def scores():
    draw = _Draw("attention_scores")
    return (
        Probe(PLAIN, (draw(4, 3), draw(5, 3))),
        Probe(BATCH, (draw(2, 4, 3), draw(2, 5, 3))),
        Probe(CUBE, (draw(3, 3, 3), draw(3, 3, 3))),
        Probe(SINGLE, _single(draw(4, 3), draw(5, 3))),
    )


def variance():
    draw = _Draw("variance_of_scores")
    # Enough scores for the variances over N and N - 1 to agree: both are right.
    return (
        Probe("d_k = 3", (draw(70, 3), draw(60, 3)), 2e-3),
        Probe("d_k = 16", (draw(70, 16), draw(60, 16)), 2e-3),
        Probe("n_q = n_k = d_k", (draw(50, 50), 2 * draw(50, 50)), 2e-3),
        Probe("scores whose mean is not 0", (1 + draw(70, 3), 1 + draw(60, 3)), 2e-3),
    )


def entropy():
    draw = _Draw("entropy")
    one, batch, cube = (_share(draw(*shape)) for shape in ((4, 5), (2, 4, 5), (3, 3, 3)))
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


def _gradient(args, matrices):
    """Return the probe that asks which of the matrices get no gradient."""

    def says(yours, right):
        cut = [name for name, missing in zip(matrices, yours, strict=True) if missing]
        return f"The output depends on {' and '.join(cut)}, but no gradient comes back there."

    return Probe(GRADIENT, (*args, matrices), says=says)


def attention():
    draw = _Draw("scaled_dot_product_attention")

    def huge(arrays):
        return 5e3 * arrays[0], *arrays[1:]

    return _edges(
        lambda *b: (draw(*b, 4, 3), draw(*b, 5, 3), draw(*b, 5, 2)),
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw(3, 3, 3)),
        huge,
    )


def masked():
    draw = _Draw("masked_softmax")
    x, batch = draw(4, 5), draw(2, 4, 5)
    offset = np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("scores without a mask", (x,)),
        Probe("scores with a mask", (x, _MASK)),
        Probe(PADDED, (batch, _PADDING)),
        Probe(CUBE_MASKED, (draw(3, 3, 3), _CUBE)),
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
        Probe("the last 3 of 5 tokens as queries", (3, 5)),
        Probe("one new token after 4 others", (1, 5)),
    )


def padding():
    return (
        Probe("lengths 3, 1, 4, 2 of n_k = 6", (np.array([3, 1, 4, 2]), 6)),
        Probe("lengths 0 and 5 of n_k = 5", (np.array([0, 5]), 5)),
        Probe("as many sequences as positions", (np.array([2, 1, 3]), 3)),
    )


def combine():
    draw = _Draw("combine_masks")
    tri, padded = masks.causal_mask(5), masks.padding_mask([3, 4], 5)
    return (
        Probe("two masks of one shape", (_MASK, masks.causal_mask(4, 5, align="lower_right"))),
        Probe("a causal and a padding mask", (tri, padded)),
        Probe("three masks", (tri, padded, draw.rng.random((5, 5)) < 0.7)),
        Probe("None among them", (None, tri, padded)),
        Probe("one mask", (tri,)),
    )


def split():
    draw = _Draw("split_heads")
    return (
        Probe(PLAIN, (draw(5, 6), 3)),
        Probe(BATCH, (draw(2, 4, 15), 3)),
        Probe(CUBE, (draw(4, 4, 16), 4)),
        Probe(SINGLE, (*_single(draw(5, 8)), 2)),
    )


def merge():
    draw = _Draw("merge_heads")
    return (
        Probe(PLAIN, (draw(3, 5, 2),)),
        Probe(BATCH, (draw(2, 3, 4, 5),)),
        Probe(CUBE, (draw(4, 4, 4, 4),)),
        Probe(SINGLE, _single(draw(3, 4, 2))),
    )


def multi_head(name, same_width=False):
    """Return the probes of multi-head attention; `same_width` leaves out keys and values of another width."""
    draw, width, h = _Draw(name), 8, 2

    def matrices(d, kdim=None, vdim=None):
        return draw.matrix(d, d), draw.matrix(kdim or d, d), draw.matrix(vdim or d, d), draw.matrix(d, d)

    w = matrices(width)
    edges = _edges(
        lambda *b: (draw(*b, 4, width), draw(*b, 5, width), draw(*b, 5, width), *w, h),
        lambda: (draw(3, 3, 9), draw(3, 3, 9), draw(3, 3, 9), *matrices(9), 3),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )
    if same_width:
        return (*edges, _gradient((*edges[0].args, None), ("W_Q", "W_K", "W_V", "W_O")))
    others = (draw(4, width), draw(5, 6), draw(5, 7), *matrices(width, 6, 7), 4)
    return (*edges, Probe("keys and values of other widths", others))


def self_attention():
    draw = _Draw("SelfAttention")
    w = draw.matrix(6, 4), draw.matrix(6, 4), draw.matrix(6, 3)
    equal = draw.matrix(3, 3), draw.matrix(3, 3), draw.matrix(3, 3)
    x, batch, cube = draw(5, 6), draw(2, 5, 6), draw(3, 3, 3)
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
        _gradient((x, *w, None), ("W_Q", "W_K", "W_V")),
    )


def cross():
    draw = _Draw("cross_attention")

    def arrays(*b):
        return draw(*b, 4, 6), draw(*b, 5, 7), *w

    w = draw.matrix(6, 3), draw.matrix(7, 3), draw.matrix(7, 2)
    return _edges(
        arrays,
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw.matrix(3, 3), draw.matrix(3, 3), draw.matrix(3, 3)),
        lambda a: (5e3 * a[0], *a[1:]),
    )


def heads_to_rank():
    """Return batches with heads of known habits; one of them does induction, and not the sharpest."""
    draw = _Draw("induction_measure")
    # Four patterns of different length, repeated; then letters that come back at random.
    repeated = np.stack([draw.rng.permutation(12)[np.arange(16) % period] for period in (5, 6, 7, 8)])
    random = draw.rng.integers(6, size=(4, 16))
    return tuple(
        Probe(name, (_habits(draw, tokens)[:, draw.rng.permutation(7)], tokens))
        for name, tokens in (("repeated patterns", repeated), ("letters that come back at random", random))
    )


def _habits(draw, tokens):
    """Return the weights (b, 7, n, n) of seven heads."""
    (b, n), i = tokens.shape, np.arange(tokens.shape[1])
    causal = np.tri(n, dtype=bool)

    def head(share, cells):
        """Put `share` of each row on the cells; rows without one, and the rest, are spread evenly."""
        cells = np.broadcast_to(cells, (b, n, n)) & causal
        share = share * cells.any(-1, keepdims=True)
        return share * cells / np.maximum(cells.sum(-1, keepdims=True), 1) + (1 - share) * causal / (i + 1)[:, None]

    sharp = i == draw.rng.integers(i + 1)[:, None]  # one key for each query, at random
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
