"""Attention in tiles and by blocks, and its steps. What goes wrong in them: mistakes.py."""

from functools import cached_property

import numpy as np

from ...engine.steps import Steps, swap


def tiled(query, key, value, attn_mask=None, block=64):
    """Scaled dot-product attention that holds the scores of one tile at a time, `block` queries by `block` keys.

    Parameters
    ----------
    query, key, value : ndarray, (..., n_q, d_k), (..., n_k, d_k), (..., n_k, d_v)
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend. Tiles in which it allows nothing are skipped.
    block : int

    Returns
    -------
    ndarray, (..., n_q, d_v)
        A query that may attend to no key gets 0.

    Notes
    -----
    Derived in the notebook "long texts". Sources: Milakov and Gimelshein 2018; Dao et al. 2022.

    Examples
    --------
    >>> x = np.eye(3)
    >>> tiled(x, x, x, np.tri(3, dtype=bool), block=2)[0]
    array([1., 0., 0.])
    """
    output = np.zeros((*query.shape[:-1], value.shape[-1]), value.dtype)
    for i in range(0, query.shape[-2], block):
        q, largest, total, sums = query[..., i : i + block, :] / query.shape[-1] ** 0.5, -np.inf, 0.0, 0.0
        for j in range(0, key.shape[-2], block):
            allowed = np.True_ if attn_mask is None else attn_mask[i : i + block, j : j + block]
            if allowed.any():
                scores = np.where(allowed, q @ swap(key[..., j : j + block, :]), -np.inf)  # (..., block, block)
                new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
                finite = np.where(np.isneginf(new), 0, new)  # a row without any key so far
                factor, e = np.exp(largest - finite), np.exp(scores - finite)
                total = factor * total + e.sum(axis=-1, keepdims=True)
                largest, sums = new, factor * sums + e @ value[..., j : j + block, :]
        output[..., i : i + block, :] = sums / np.where(total == 0, 1, total)
    return output


def blocks(query, key, size, best):
    """Choose which `best` blocks of keys (n, d_k) the heads of query (h, n, d_k) read: booleans (n, blocks)."""
    return BlockSteps(query=query, key=key, size=size, best=best).read


class OnlineSteps(Steps):
    """Softmax tile by tile: the running maximum, and what is done to the sum and the output when it rises."""

    begin = -np.inf
    running = staticmethod(lambda before, s: np.maximum(before, s.max(axis=-1, keepdims=True)))  # the maximum so far
    guarded = staticmethod(lambda m: np.where(np.isneginf(m), 0.0, m))  # subtracted: a row without any key has no m
    factor = staticmethod(lambda before, m: np.exp(before - m))  # by which everything so far is multiplied
    new_terms = staticmethod(lambda s, before, m: np.exp(s - m))
    keep_sum = keep_output = staticmethod(lambda factor: factor)
    carried = staticmethod(lambda m: m)  # to the next tile
    normalised = staticmethod(lambda output, total: output)  # after each tile
    divided = staticmethod(lambda output, total: output / np.where(total == 0, 1, total))  # at the end

    @cached_property
    def online(self):
        before, total, output = self.begin, 0.0, 0.0
        for s, v in self.tiles:
            largest = self.running(before, s)
            subtracted = self.guarded(largest)
            factor, e = self.factor(before, subtracted), self.new_terms(s, before, subtracted)
            total = self.keep_sum(factor) * total + e.sum(axis=-1, keepdims=True)
            output = self.normalised(self.keep_output(factor) * output + e @ v, total)
            before = self.carried(largest)
        return self.divided(output, total)


class TiledSteps(OnlineSteps):
    """A whole attention in tiles, of queries and of keys."""

    visited = staticmethod(np.any)  # from what the mask of a tile allows

    # The first rows of tiles, of so many queries or keys.
    starts = cached_property(lambda s: lambda n, axis: range(0, n, s.block))

    @cached_property
    def in_tiles(self):
        output = np.zeros((*self.q.shape[:-1], self.v.shape[-1]))
        for i in self.starts(self.q.shape[-2], "queries"):
            rows = slice(i, i + self.block)
            keys = [slice(j, j + self.block) for j in self.starts(self.k.shape[-2], "keys")]
            tiles = [
                (self.masked_scores[..., rows, now], self.v[..., now, :])
                for now in keys
                if self.mask is None or self.visited(self.allowed[rows, now])
            ]
            if tiles:
                output[..., rows, :] = type(self)(tiles=tiles).online
        return output


class MergeSteps(Steps):
    """What several workers found, each of its own keys: their shares of the whole, (w, n)."""

    @cached_property
    def subtracted(self):
        largest = self.lse.max(axis=0)
        return np.where(np.isneginf(largest), 0.0, largest)

    share_of = cached_property(lambda s: np.exp(s.lse - s.subtracted))
    whole = cached_property(lambda s: s.share_of.sum(axis=0))
    shares = cached_property(lambda s: s.share_of / np.where(s.whole == 0, 1, s.whole))
    merged = cached_property(lambda s: (s.shares[..., None] * s.outputs).sum(axis=0))


class BlockSteps(Steps):
    """Which blocks of keys a query reads: `query` is of the heads that share the keys, (h, n, d_k), `key` (n, d_k)."""

    n = cached_property(lambda s: len(s.key))
    seen = cached_property(lambda s: np.tri(s.n, dtype=bool))  # (n, n): the keys so far
    of_blocks = cached_property(lambda s: lambda x: np.add.reduceat(x, np.arange(0, s.n, s.size), axis=-1, dtype=float))
    counted = cached_property(lambda s: s.of_blocks(s.seen))  # (n, blocks)
    begun = cached_property(lambda s: s.counted > 0)
    asked = cached_property(lambda s: s.query.sum(axis=0, keepdims=True))  # the heads choose together
    # A query times a mean is the mean of its scores.
    means = cached_property(lambda s: s.of_blocks(s.asked @ s.key.T * s.seen) / np.maximum(s.counted, 1))
    own = cached_property(lambda s: s.of_blocks(np.eye(s.n)) > 0)  # where each query stands
    first = cached_property(lambda s: s.own[:1])
    lead = cached_property(lambda s: np.where(s.first, np.inf, 0))
    ranked = cached_property(lambda s: np.where(s.begun, s.means + s.lead, -np.inf))  # (1, n, blocks)
    least = cached_property(lambda s: np.sort(s.ranked)[..., -min(s.best, s.ranked.shape[-1]), None])
    chosen = cached_property(lambda s: (s.ranked >= s.least) & s.begun)
    read = cached_property(lambda s: s.chosen.any(axis=0))
