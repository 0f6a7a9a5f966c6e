"""The exercises of Long texts, and the inputs on which they are tried."""

import numpy as np

from ...engine.exercise import OUTPUT_AXES, Function, Kept, MemoryBounded, step_options
from ...engine.probes import BATCH, CUBE, DEAD, HUGE, MASK, PLAIN, PLAIN_MASKED, SINGLE, Draw, Probe, dead, single
from ...engine.run import Unfit
from .tiles import BlockSteps, MergeSteps, OnlineSteps, TiledSteps


def online_probes():
    draw = Draw("online_softmax")

    def cut_tiles(scores, sizes):
        scores = np.atleast_2d(scores)  # (n_q, n_k)
        ends, values = np.cumsum(sizes), draw(scores.shape[-1], 3)
        return (tuple((scores[:, e - m : e], values[e - m : e]) for m, e in zip(sizes, ends, strict=True)),)

    rising, mixed = np.array([-1.0, 0.5, 1.5, 2.0, 3.0, 3.5]), draw(3, 7)
    first = np.where(np.arange(6) < 2, -np.inf, draw(2, 6))
    some = np.array([[0.5, -np.inf, -np.inf, 1.0, 0.0, -np.inf], [-np.inf, 1, 2, -np.inf, -np.inf, 0.5]])
    return (
        Probe("one tile", cut_tiles(draw(3, 4), (4,))),
        Probe("one query, key by key", cut_tiles(mixed[0], (1,) * 7)),
        Probe("three queries, key by key", cut_tiles(mixed, (1,) * 7)),
        Probe("scores that rise from tile to tile", cut_tiles(np.stack([rising, 2 * rising]), (2, 2, 2))),
        Probe("one row that rises, one that falls", cut_tiles(np.stack([rising, -rising]), (2, 2, 2))),
        Probe("tiles of different size", cut_tiles(draw(4, 8), (3, 1, 4))),
        Probe("a first tile in which every key is blocked", cut_tiles(first, (2, 2, 2))),
        Probe("tiles in which some keys are blocked", cut_tiles(some, (2, 2, 2))),
        Probe(DEAD, cut_tiles(np.stack([draw(6), np.full(6, -np.inf)]), (2, 2, 2))),
        Probe("scores near 1000", cut_tiles(1000 + draw(2, 6), (2, 2, 2))),
        Probe("scores near -1000", cut_tiles(draw(2, 6) - 1000, (2, 2, 2))),
        Probe("rows whose scores lie 1000 apart", cut_tiles(np.array([[1000], [0]]) + draw(2, 6), (2, 2, 2))),
        Probe("scores near 1000 and near -1000 in one tile", cut_tiles(1000 * np.array([-1.0, 1, 1.001, -1]), (4,))),
        Probe("scores that fall by 2000", cut_tiles(np.array([0.0, 1.0, -2000.0, -1999.0]), (2, 2))),
        Probe("scores that rise by 2000", cut_tiles(np.array([-2000.0, -1999.0, 0.0, 1.0]), (2, 2))),
    )


def merge_probes():
    draw = Draw("merge")

    def workers(lse, *lengths):
        lse = np.array(lse, dtype=float)
        return draw(*lse.shape, 3) * np.isfinite(lse)[..., None], lse, np.array(lengths)

    return (
        Probe("two workers", workers(2 * draw(2, 4), 5, 3)),
        Probe("one worker", workers(draw(1, 3), 4)),
        Probe("three workers", workers(2 * draw(3, 5), 2, 6, 4)),
        Probe("as many workers as queries, and features", workers(draw(3, 3), 1, 2, 3)),
        Probe("one worker leads by far", workers([[9.0, 0, 1], [0, 8, -2]], 1, 30)),
        Probe("L near 1000", workers(1000 + draw(2, 4), 5, 3)),
        Probe("L near -1000", workers(draw(2, 4) - 1000, 5, 3)),
        Probe("queries whose L lie 1000 apart", workers(np.array([1000, 0]) + draw(2, 2), 5, 3)),
        Probe("a worker without a key for some queries", workers([[0.5, -np.inf, 1], [1, 0.3, -np.inf]], 2, 4)),
        Probe(DEAD, workers([[0.5, -np.inf], [1, -np.inf]], 2, 2)),
    )


def blocks_probes():
    draw = Draw("blocks")

    def arrays(h, n, d_k=6):
        return draw(h, n, d_k), draw(n, d_k) + 0.4

    three = arrays(3, 11)
    return (
        Probe("one head, 8 tokens in blocks of 2", (*arrays(1, 8), 2, 2)),
        Probe("three heads that share keys", (*three, 3, 2)),
        Probe("a last block that is not full", (*arrays(2, 10), 4, 2)),
        Probe("blocks of one key", (*arrays(2, 7), 1, 3)),
        Probe("the first block alone", (*three, 3, 1)),
        Probe("more blocks than there are", (*arrays(2, 7), 3, 5)),
        Probe("a block longer than the text", (*arrays(2, 3), 8, 2)),
        Probe("a long text", (*arrays(3, 40, 4), 4, 4)),
        Probe(CUBE, (*arrays(4, 4, 4), 1, 2)),
        Probe(SINGLE, (*single(*arrays(2, 9)), 2, 3)),
    )


def tiled_probes():
    draw = Draw("tiled")

    def arrays(n_q, n_k, *lead):
        return draw(*lead, n_q, 6), draw(*lead, n_k, 6), draw(*lead, n_k, 3)

    one, square, causal = arrays(4, 5), (draw(4, 4, 4), draw(4, 4, 4), draw(4, 4, 4)), np.tri(7, dtype=bool)
    return (
        Probe(PLAIN, (*one, None, 2)),
        Probe("tiles of a single cell", (*one, None, 1)),
        Probe("a tile larger than the map", (*one, None, 8)),
        Probe(PLAIN_MASKED, (*one, MASK, 2)),
        Probe("7 tokens, a causal mask", (*arrays(7, 7), causal, 3)),
        Probe("a causal mask, tiles of 2", (*arrays(7, 7), causal, 2)),
        Probe("heads, (h, n, d_k), with a causal mask", (*arrays(7, 7, 3), causal, 3)),
        Probe(BATCH, (*arrays(3, 8, 2, 2), None, 3)),
        Probe(CUBE, (*square, None, 2)),
        Probe(SINGLE, (*single(*arrays(7, 7, 2)), causal, 3)),
        Probe("first keys blocked", (*arrays(4, 6), np.arange(6) + np.zeros((4, 1)) > 3, 2)),
        Probe(DEAD, (*one, dead(MASK), 2)),
        Probe("a whole tile of queries without a key", (*one, MASK & (np.arange(4) > 1)[:, None], 2)),
        Probe(HUGE, (3e3 * one[0], *one[1:], None, 2), 5e-3),
        Probe("all scores near -1000", (one[0] + 20, one[1] - 20, one[2], None, 2)),
    )


def on_long_texts(attention, n):
    x = np.ones((n, 2))
    return attention(x, x, x, None, 64)


class _OnePass:
    """Tiles that can be gone through once, each overwritten with zeros when the next one is asked for."""

    def __init__(self, tiles):
        self.tiles, self.begun = tiles, False

    def __iter__(self):
        if self.begun:
            raise Unfit(
                "Your code begins a second time to go through the tiles, which come only once. Fix: one loop, "
                "`for s, v in tiles:`, that carries along what it needs."
            )
        self.begun = True
        return self._hand_out()

    def _hand_out(self):
        last = ()
        for s, v in self.tiles:
            for part in last:
                part[...] = 0
            last = s + 0, v + 0  # copies, of arrays and tensors alike
            yield last


class _Online(MemoryBounded):
    """A function of tiles that come one after the other."""

    def adapt(self, answer):
        answer = super().adapt(answer)
        return lambda tiles: answer(_OnePass(tiles))

    def _variants(self):
        ways = super()._variants()
        del ways["mutates_input"]  # what is handed out are copies
        return ways


EXERCISES = (
    _Online(
        "online_softmax",
        "online_softmax(tiles) -> (n_q, d_v): tiles hands out (scores (n_q, size), values (size, d_v)), always of the "
        "same queries, tile by tile, once; each is overwritten when the next one comes. The result is softmax(all "
        "scores) @ all values. -inf marks a blocked key; a row in which every key is blocked gives 0.",
        (
            "Carry three things a row: the largest score m, the sum z of exp(s - m), and o, the sum of exp(s - m) v.",
            "If the maximum of a row rises from m to new, everything so far is too large by exp(new - m).",
            "z = exp(m - new) * z + exp(s - new).sum(axis=-1, keepdims=True), o likewise; where new is -inf subtract "
            "0. At the end o / z, and 0 where z is 0.",
        ),
        called=lambda online, n: online((np.ones((4, 1)), np.ones((1, 32))) for _ in range(n)),
        where="in tiles of one key",
        fix="carry m, z and o from tile to tile, and no copy of a tile",
        grows="tiles_kept",
        probes=online_probes(),
        **step_options("online", "tiles", of=OnlineSteps, axes=OUTPUT_AXES),
    ),
    Function(
        "merge",
        "merge(outputs, lse, lengths) -> (n_q, d_v): of each worker its outputs (w, n_q, d_v), the logsumexp of its "
        "scores L (w, n_q), and its number of keys (w,). The result is what attention over all their keys gives. A "
        "worker without any key for a query has L = -inf and output 0 there.",
        (
            "Each worker's output is a mean. What is missing is how much of the whole each worker is.",
            "exp(L) is the sum of exponentials of a worker. Its share is exp(L) over the sum of all exp(L).",
            "That is a softmax of L over the workers, axis 0; al.softmax gives 0 where every L is -inf. Then "
            "(shares[..., None] * outputs).sum(axis=0).",
        ),
        probes=merge_probes(),
        **step_options("merged", "outputs lse lengths", of=MergeSteps, axes=OUTPUT_AXES),
    ),
    Function(
        "blocks",
        "blocks(query, key, size, best) -> boolean (n, blocks of keys): query (h, n, d_k) is of h heads that share the "
        "keys (n, d_k). They read one set of blocks of `size` keys, the last one may be shorter. Query i reads `best` "
        "blocks of those begun by token i, all if there are fewer: the first block, and those in which the mean of the "
        "keys up to i has the largest score, summed over the heads.",
        (
            "Take one query after the other, as a model that writes: the keys up to its own are all there is.",
            "Cut these into blocks: the last one is often short. Sum the heads' queries; a score is this sum @ a mean.",
            "Set the first score to np.inf, and mark np.argsort(-scores)[:best] in row i.",
        ),
        probes=blocks_probes(),
        **step_options("read", "query key size best", of=BlockSteps),
    ),
    MemoryBounded(
        "tiled",
        "tiled(query, key, value, attn_mask=None, block=64) -> (..., n_q, d_v): scaled dot-product attention in tiles "
        "of `block` queries by `block` keys. attn_mask is None or boolean, (n_q, n_k), True = may attend; a query that "
        "may attend to no key gives 0. Beside its output the function holds what belongs to one tile.",
        (
            "Two loops: tiles of queries outside, tiles of keys inside. What is inside is 15.1.",
            "Cut the mask as you cut queries and keys: attn_mask[i : i + block, j : j + block].",
            "Make the output first, np.zeros((*query.shape[:-1], value.shape[-1])), and write each tile of queries "
            "into output[..., i : i + block, :].",
        ),
        kept=Kept("tiled", "attncourse.lessons.long_texts.tiled"),
        called=on_long_texts,
        where="in tiles of 64",
        fix="two loops, and nothing that is as large as the map",
        our_functions=("scaled_dot_product_attention", "attention_trace"),
        probes=tiled_probes(),
        **step_options("in_tiles", "q k v mask block", of=TiledSteps, axes=OUTPUT_AXES),
    ),
)
