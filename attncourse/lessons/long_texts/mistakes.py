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

SCHEDULE = (
    Mistake(
        "diagonal_tiles_skipped",
        behaves_as_if="tiles on the diagonal are skipped, too: only those without any blocked cell are visited",
        symptom="Queries lose their nearest keys, and the first ones all of them.",
        hint="A tile on the diagonal holds allowed and blocked cells. What happens to the allowed ones?",
        then="They are lost. Visit every tile with at least one allowed cell, and mask inside it.",
        variants=(
            {"visits": lambda s: s.first[1] + s.b_k - 1 <= s.first[0]},
            {"visits": lambda s: s.first[1] < s.first[0]},
            {"visited": lambda s: np.all},
        ),
    ),
    Mistake(
        "first_query_decides",
        behaves_as_if="a tile is visited if its first query may see its first key",
        symptom="Right for square tiles. In wide or high ones, later queries of a tile see keys that its first one "
        "does not.",
        hint="Queries 4 to 7, keys 6 and 7. Does any of them see one of these keys?",
        then="Query 7 sees both. Ask for the last query of the tile and its first key.",
        variants=({"visits": lambda s: s.first[1] <= s.first[0]},),
    ),
    Mistake(
        "tiles_by_number",
        behaves_as_if="tile number j of the keys is visited if j is not larger than the tile number of the queries",
        symptom="Right for square tiles alone.",
        hint="Tiles of 4 queries by 2 keys. Which keys does the second row of tiles see?",
        then="Queries 4 to 7 see keys 0 to 7, so four tiles of keys. Compare positions, not numbers of tiles.",
        variants=({"visits": lambda s: np.tri(*(len(s.tiles_of(b)) for b in (s.b_q, s.b_k)), dtype=bool)},),
    ),
    Mistake(
        "last_tile_dropped",
        behaves_as_if="a last tile that is not full is left out",
        symptom="Right where the length is a multiple of the tile.",
        hint="7 tokens in tiles of 2: how many tiles?",
        then="Four. range(0, n, b) has them all, n // b does not.",
        variants=(
            {"tiles_of": lambda s: lambda b: np.arange(s.n // b) * b},
            *(
                {"starts": lambda s, of=of: partial(_only_full, s.block, of)}
                for of in ("queries keys", "queries", "keys")
            ),
        ),
    ),
    Mistake(
        "visited_and_skipped_exchanged",
        behaves_as_if="True stands at the tiles that can be skipped, and False at those with an allowed cell",
        symptom="Every query then meets the keys alone that it must not see.",
        hint="The first tile holds query 0 and key 0. May query 0 see key 0?",
        then="It may, so the entry [0, 0] is True.",
        variants=({"visits": lambda s: s.first[1] > s.first[0] + s.b_q - 1},),
    ),
)

MISTAKES = (*STEP, *MERGE, *SCHEDULE)
