"""The mistakes that only Long texts knows: in attention that is computed in tiles."""

from functools import partial

import numpy as np

from attnlib.core import softmax

from ...mistakes.mistake import Mistake


def overwritten(tiles):
    """Return the tiles as they stand at the end, where only the last still holds what it held."""
    *before, last = tiles
    return (*((np.zeros_like(s), np.zeros_like(v)) for s, v in before), last)


def _softmax_of(tiles):
    scores, values = zip(*tiles, strict=True)
    return softmax(np.concatenate(scores, axis=-1)) @ np.concatenate(values, axis=-2)


def _against_old(first, scores, before, m):
    """Measure scores against the maximum before them; of the first tile against its own, or against 0."""
    return np.exp(scores - np.where(np.isneginf(before), m if first else 0, before))


def _by_the_largest(s):
    return np.where(s.begun, s.means + s.lead, -np.inf).max(axis=0, keepdims=True)


def _only_full(block, of, n, axis):
    return range(0, n - n % block * (axis in of), block)


STEP = (
    Mistake(
        "output_not_rescaled",
        behaves_as_if="the output so far is not rescaled when the maximum rises",
        symptom="Earlier tiles count too much.",
        hint="With which maximum were the terms added up that stand in o already?",
        then="With the one before. Multiply o by exp(m - new) before you add.",
        variants=({"keep_output": lambda s: lambda factor: 1.0},),
    ),
    Mistake(
        "sum_not_rescaled",
        behaves_as_if="the sum so far is not rescaled when the maximum rises",
        symptom="The sum is too large, and the output too small.",
        hint="With which maximum were the terms added up that stand in z already?",
        then="With the one before. Multiply z by exp(m - new) before you add.",
        variants=({"keep_sum": lambda s: lambda factor: 1.0},),
    ),
    Mistake(
        "new_keys_against_old_maximum",
        behaves_as_if="new scores are measured against the maximum before them, what stands in z and o against the "
        "new one",
        symptom="Where a tile raises the maximum, its keys count too much, by exp(new - m).",
        hint="z and o are sums of exp(s - a maximum). Is it the same one for all terms?",
        then="It must be: after the factor exp(m - new) the old terms are measured against `new`, so use exp(s - new).",
        variants=tuple({"new_terms": lambda s, first=first: partial(_against_old, first)} for first in (True, False)),
    ),
    Mistake(
        "tile_maximum",
        behaves_as_if="each tile is measured against its own maximum, not against the running one",
        symptom="Without rescaling a tile of small scores counts as much as one of large scores; with it, all is "
        "right until exp(old - new) overflows.",
        hint="May the maximum ever fall?",
        then="No: the new one is the larger of m and the maximum of the tile.",
        variants=tuple(
            {"running": lambda s: lambda before, scores: scores.max(axis=-1, keepdims=True)} | without_rescaling
            for without_rescaling in ({}, dict.fromkeys(("keep_sum", "keep_output"), lambda s: lambda factor: 1.0))
        ),
    ),
    Mistake(
        "no_maximum",
        behaves_as_if="no maximum is subtracted: exp overflows where numbers are large",
        symptom="Right as long as every one stays below some 709.",
        hint="What is exp(1000) in float64?",
        then="inf. Subtract the largest one before exp.",
        variants=({"running": lambda s: lambda before, scores: 0.0}, {"subtracted": lambda s: 0.0}),
    ),
    Mistake(
        "maximum_of_other_rows",
        behaves_as_if="the maximum that is subtracted from a row is taken over other rows, too",
        symptom="A row whose numbers lie 745 or more below the maximum of all becomes 0 / 0.",
        hint="One row has scores near 1000, the next near 0. Which number should be subtracted in each?",
        then="Each row has its own maximum: name the axis, and keep it.",
        variants=(
            {"running": lambda s: lambda before, scores: np.maximum(before, scores.max())},
            {"subtracted": lambda s: s.lse.max()},
        ),
    ),
    Mistake(
        "divided_at_each_tile",
        behaves_as_if="the output is divided by the sum after each tile",
        symptom="What stands in o is then a mean already, and is rescaled and added up as if it were a sum.",
        hint="How often should o be divided by z?",
        then="Once, at the end: until then both are sums.",
        variants=tuple(
            {"normalised": lambda s: lambda o, z: o / np.where(z == 0, 1, z)} | at_the_end
            for at_the_end in ({}, {"divided": lambda s: lambda output, total: output})
        ),
    ),
    Mistake(
        "tiles_kept",
        behaves_as_if="tiles are kept until all are there, although each is overwritten when the next one comes",
        symptom="To keep them all takes the memory of whole rows, which is what this way of computing saves.",
        hint="Which three things must be carried from tile to tile, however long the row is?",
        then="The maximum m, the sum z and the output o: none of them grows with the row.",
        variants=({"online": lambda s: _softmax_of(overwritten(s.tiles))},),
    ),
    Mistake(
        "never_divided",
        behaves_as_if="the output is never divided by the sum",
        symptom="Each output grows with the number of keys.",
        hint="What do the weights of one query have to sum to?",
        then="To 1: at the end return o / z.",
        variants=({"divided": lambda s: lambda output, total: output},),
    ),
    Mistake(
        "nan_on_blocked_tile",
        behaves_as_if="a row that has met no key yet becomes NaN: -inf minus -inf",
        symptom="With a mask, whole rows of a tile are blocked, and in the first tiles such a row has no maximum yet.",
        hint="What is your maximum after a row of -inf, and what is exp(-inf - m) then?",
        then="-inf, and -inf minus -inf is NaN. Subtract 0 in place of a maximum of -inf.",
        variants=(
            {"guarded": lambda s: lambda m: m},
            {"guarded": lambda s: lambda m: m, "visited": lambda s: lambda allowed: True},
        ),
    ),
    Mistake(
        "nan_without_any_key",
        behaves_as_if="a row that may attend to no key at all becomes 0 / 0, NaN",
        symptom="Its sum of exponentials is 0. Softmax over no key has no answer; in this series it is 0.",
        hint="What is z, in a row in which every key is blocked?",
        then="0, and so is o. Divide by 1 there.",
        variants=(
            {"divided": lambda s: np.divide},
            {"divided": lambda s: np.divide, "visited": lambda s: lambda allowed: True},
            {"shares": lambda s: s.share_of / s.whole},
        ),
    ),
    Mistake(
        "maximum_starts_at_zero",
        behaves_as_if="the running maximum starts at 0",
        symptom="Right as long as some score is above -745. Where all are lower, every e^s is 0.",
        hint="Which number is smaller than every score?",
        then="-np.inf: begin with that.",
        variants=({"begin": lambda s: 0.0},),
    ),
    Mistake(
        "factor_inverted",
        behaves_as_if="what stands in the sum and the output is multiplied by exp(new - old), not by exp(old - new)",
        symptom="Earlier tiles count more with each new maximum, where they should count less.",
        hint="The maximum rises by 2. Do the terms so far become larger or smaller?",
        then="Smaller, since they are measured against a larger maximum: multiply by exp(m - new).",
        variants=({"factor": lambda s: lambda before, m: np.where(np.isneginf(before), 0.0, np.exp(m - before))},),
    ),
    Mistake(
        "one_tile_only",
        behaves_as_if="only one tile counts, the last or the first",
        symptom="The other tiles are overwritten, or erased by exp(-inf - new) where the new maximum is never stored; "
        "or a `return` stands inside the loop.",
        hint="After the last tile: which of your variables still hold something of the first?",
        then="m, z and o should. Store the new maximum, add to z and o, and return after the loop.",
        variants=(
            {"carried": lambda s: lambda largest: -np.inf},
            dict.fromkeys(("keep_sum", "keep_output"), lambda s: lambda factor: 0.0),
            {"online": lambda s: next(softmax(x) @ v for x, v in s.tiles)},
        ),
    ),
)

MERGE = (
    Mistake(
        "outputs_averaged",
        behaves_as_if="the outputs of all parts are averaged, of tiles or of workers: every part has the same share",
        symptom="A part whose keys nobody looks for counts as much as the one that holds the answer.",
        hint="Two parts, and all large scores are in the first. What should the output be near to?",
        then="To that of the first. Its share is what it has of the sum of all exponentials.",
        variants=(
            {"shares": lambda s: np.full(s.lse.shape, 1 / len(s.lse))},
            {"online": lambda s: np.mean([softmax(x) @ v for x, v in s.tiles], axis=0)},
        ),
    ),
    Mistake(
        "weighted_by_length",
        behaves_as_if="each worker has a share by its number of keys",
        symptom="Right if all scores are equal, as keys then count alike.",
        hint="One worker has a single key, with a far larger score than all others. Which share should it have?",
        then="Nearly 1. How many keys there are is in the sum of exponentials already: use L, not the lengths.",
        variants=({"shares": lambda s: np.broadcast_to((s.lengths / s.lengths.sum())[:, None], s.lse.shape)},),
    ),
    Mistake(
        "shares_over_queries",
        behaves_as_if="the shares of a worker sum to 1 over the queries, not the shares of a query over the workers",
        symptom="What a query gets depends on the other queries.",
        hint="Which axis are the workers?",
        then="Axis 0: the softmax goes along that one.",
        variants=({"shares": lambda s: softmax(s.lse, axis=-1)},),
    ),
)

TILES = (
    Mistake(
        "diagonal_tiles_skipped",
        behaves_as_if="tiles on the diagonal are skipped, too: only those without any blocked cell are visited",
        symptom="Queries lose their nearest keys, and the first ones all of them.",
        hint="A tile on the diagonal holds allowed and blocked cells. What happens to the allowed ones?",
        then="They are lost. Visit every tile with at least one allowed cell, and mask inside it.",
        variants=({"visited": lambda s: np.all},),
    ),
    Mistake(
        "last_tile_dropped",
        behaves_as_if="a last tile that is not full is left out",
        symptom="Right where the length is a multiple of the tile.",
        hint="7 tokens in tiles of 2: how many tiles?",
        then="Four. range(0, n, b) has them all, n // b does not.",
        variants=tuple(
            {"starts": lambda s, of=of: partial(_only_full, s.block, of)} for of in ("queries keys", "queries", "keys")
        ),
    ),
)

BLOCKS = (
    Mistake(
        "averaged_with_zeros",
        behaves_as_if="a block that is not full is filled up with zeros before the mean is taken, or keys are summed",
        symptom="The latest keys count too little, until their block is full.",
        hint="A block of 8 has two keys so far. By what is their sum divided?",
        then="By 2, the number of keys that are there.",
        variants=({"means": lambda s: s.of_blocks(s.asked @ s.key.T * s.seen)},),
    ),
    Mistake(
        "first_block_not_kept",
        behaves_as_if="the first block is read only where its score is among the largest",
        symptom="Heads that park weight on the first token lose it.",
        hint="Where does a head put its weight if no key fits?",
        then="On the first token. So the first block is read always, and counts as one of the `best`.",
        variants=({"lead": lambda s: 0},),
    ),
    Mistake(
        "first_block_beside",
        behaves_as_if="the first block comes beside the `best` others",
        symptom="One block more is read than was asked for.",
        hint="How many blocks does the last query of a long text read?",
        then="`best`, and the first block is one of them.",
        variants=({"least": lambda s: np.sort(s.ranked)[..., -min(s.best + 1, s.ranked.shape[-1]), None]},),
    ),
    Mistake(
        "later_blocks_chosen",
        behaves_as_if="blocks are chosen that begin after the query",
        symptom="Reads are spent on keys that the causal mask then forbids, and the choice knows what comes.",
        hint="Which blocks are there when token 0 asks?",
        then="One. Choose among blocks that begin at the query or before it.",
        variants=({"seen": lambda s: np.ones((s.n, s.n), dtype=bool)}, {"begun": lambda s: True}),
    ),
    Mistake(
        "later_keys_averaged",
        behaves_as_if="the mean of the query's own block holds keys that come after the query",
        symptom="Which blocks a token reads depends on what follows. A model that writes would choose others.",
        hint="Token 4 asks, in blocks of 4. Which keys does the mean of its block hold?",
        then="Key 4 alone, the others have not come yet.",
        variants=({"means": lambda s: s.of_blocks(s.asked @ s.key.T) / s.of_blocks(np.ones(s.n))},),
    ),
    Mistake(
        "own_block_left_out",
        behaves_as_if="a query never chooses the block in which it stands, or always",
        symptom="Left out, the nearest keys are missing; read always, it takes the place of one with a larger score.",
        hint="Token 9 asks, in blocks of 4. Which blocks compete, beside the first?",
        then="Those of keys 4 to 7 and of 8 and 9: its own competes like any other.",
        variants=(
            {"begun": lambda s: (s.counted > 0) & (s.first | ~s.own)},
            {"lead": lambda s: np.where(s.first, np.inf, 1e9 * s.own)},
        ),
    ),
    Mistake(
        "a_set_for_each_head",
        behaves_as_if="each head chooses a set of its own, and all these blocks are read",
        symptom="Up to `best` blocks for each head are read, and they are counted as one set.",
        hint="Three heads choose four blocks each. How many blocks of their keys must be read?",
        then="Up to twelve. Sum the scores of the heads first, then choose once.",
        variants=tuple({"asked": lambda s: s.query} | more for more in ({}, {"read": lambda s: s.chosen})),
    ),
    Mistake(
        "largest_of_heads",
        behaves_as_if="a block counts by the head in which its score is largest",
        symptom="One head that looks for it takes a block in, whatever the others look for.",
        hint="Two heads give a block the scores 3 and -5, and another 1 and 1. Which has the larger sum?",
        then="The other, 2 against -2. Sum the scores over the heads, no max.",
        variants=({"asked": lambda s: s.query, "ranked": _by_the_largest},),
    ),
)

MISTAKES = (*STEP, *MERGE, *TILES, *BLOCKS)
