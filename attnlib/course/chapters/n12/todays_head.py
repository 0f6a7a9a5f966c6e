"""Mistakes in the parts of today's head (notebook 12), and its steps: RoPE, norm, online softmax."""

from functools import cached_property

import numpy as np

from .... import masks
from ....core import softmax
from ....rotary import frequencies, halves, neighbours, turn
from ...engine.steps import Steps
from ...mistakes.mistake import Mistake

THETA = 10_000.0


def rotate(x, start=0, pairs=halves):
    """Turn pair c of the token at place p by the angle p * omega_c; the first token of x stands at place `start`."""
    return turn(x, start + np.arange(x.shape[-2]), pairs, frequencies(x.shape[-1]))


def rms_norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


class HeadSteps(Steps):
    # --- 12.1
    pairs = staticmethod(neighbours)

    @cached_property
    def omega(self):
        return frequencies(self.x.shape[-1], self.theta)

    @cached_property
    def place(self):
        return self.places

    @cached_property
    def turned(self):
        return turn(self.x, self.place, self.pairs, self.omega)

    # --- 12.2: the running maximum, and what is done to the sum and the output when it rises
    @cached_property
    def running(self):
        return max

    @cached_property
    def keep_sum(self):
        return lambda factor: factor

    @cached_property
    def keep_output(self):
        return lambda factor: factor

    begin = -np.inf

    @cached_property
    def empty(self):
        """What a block without any allowed key does to (largest, sum, output)."""
        return lambda state, s, v: state

    @cached_property
    def online(self):
        state = self.begin, 0.0, 0.0
        for s, v in self.blocks:
            largest = self.running(state[0], s.max())
            state = self.empty(state, s, v) if np.isneginf(largest) else self._taken_in(state, largest, s, v)
        return self.divided(state)

    def _taken_in(self, state, largest, s, v):
        before, total, output = state
        factor, e = np.exp(before - largest), np.exp(s - largest)
        return largest, self.keep_sum(factor) * total + e.sum(), self.keep_output(factor) * output + e @ v

    @cached_property
    def divided(self):
        return lambda state: state[2] / state[1]

    # --- 12.3
    @cached_property
    def first_place(self):
        """The place of the first query."""
        return self.keys.shape[-2] - self.queries.shape[-2]

    @cached_property
    def norm(self):
        return rms_norm

    @cached_property
    def turn_from(self):
        """What turns tokens of which the first stands at a given place."""
        return rotate

    @cached_property
    def q(self):
        return self.turn_from(self.norm(self.queries, self.q_gain), self.first_place)

    @cached_property
    def k(self):
        return self.turn_from(self.norm(self.keys, self.k_gain), 0)

    @cached_property
    def v(self):
        return self.values

    @cached_property
    def mask(self):
        return masks.causal_mask(self.queries.shape[-2], self.keys.shape[-2], align="lower_right")


def _pairs_read_and_written(reading, writing):
    def pairs(x):
        a, b, _ = reading(x)
        return a, b, writing(x)[2]

    return pairs


def _angles_laid_out(partners, repeat):
    """Turn with partners found in one way and angles laid out in the other, as x cos + partner sin."""

    def turned(s):
        angle = repeat(s.place[:, None] * s.omega)
        a, b, back = partners(s.x)
        return s.x * np.cos(angle) + back(-b, a) * np.sin(angle)

    return {"turned": turned}


def _overwritten(s):
    angle = s.place[:, None] * s.omega
    a, b, back = s.pairs(s.x)
    a = a * np.cos(angle) - b * np.sin(angle)
    return back(a, a * np.sin(angle) + b * np.cos(angle))


def _frequencies_by(change):
    """Replace the frequencies by `change(share of the way through the pairs, theta)`."""
    return {"omega": lambda s: change(2 * np.arange(s.x.shape[-1] // 2) / s.x.shape[-1], s.theta)}


def _first_maximum(before, own):
    return own if np.isneginf(before) else before


def _unchanged(factor):
    return 1.0


def overwritten(blocks):
    """Return the blocks as they stand at the end, where only the last still holds what it held."""
    *before, last = blocks
    return (*((np.zeros_like(s), np.zeros_like(v)) for s, v in before), last)


def _softmax_of(blocks):
    scores, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return softmax(scores) @ values


def _averaged(s):
    return np.mean([softmax(scores) @ values for scores, values in s.blocks], axis=0)


def _neighbours_turned(x, start):
    return rotate(x, start, neighbours)


def _upper_left(s):
    return masks.causal_mask(s.queries.shape[-2], s.keys.shape[-2], align="upper_left")


MISTAKES = (
    Mistake(
        "rotation_forgotten",
        "nothing is rotated",
        "Wherever a token stands, its query and its key are the same.",
        "Where does the place of a token enter your code?",
        "It sets the angle: place times frequency. Turn each pair by it.",
        {"turned": lambda s: s.x},
        {"turn_from": lambda s: lambda x, start: x},
    ),
    Mistake(
        "pairings_mixed",
        "features are paired in another way than the task says, or in one way here and in another way there",
        "Each of the two ways works by itself; weights that were trained with one give nonsense with the other.",
        "Which two features turn together: neighbours, or one of each half? Where do both stand in the result?",
        "Take the pairs as the task names them, and write each back to where it came from.",
        {"pairs": lambda s: halves},
        {"pairs": lambda s: _pairs_read_and_written(neighbours, halves)},
        {"pairs": lambda s: _pairs_read_and_written(halves, neighbours)},
        _angles_laid_out(halves, lambda angle: np.repeat(angle, 2, axis=-1)),
        _angles_laid_out(neighbours, lambda angle: np.tile(angle, 2)),
        {"turn_from": lambda s: _neighbours_turned},
        {"q": lambda s: _neighbours_turned(s.norm(s.queries, s.q_gain), s.first_place)},
        {"k": lambda s: _neighbours_turned(s.norm(s.keys, s.k_gain), 0)},
    ),
    Mistake(
        "offset_forgotten",
        "the first query stood at the place of the first key",
        "Right for a whole sequence; a token that continues one is turned as if it were the first.",
        "At which places of the sequence do your first query and your first key stand?",
        "The first key at 0, the first query at n_k - n_q: turn the queries from there on.",
        {"first_place": lambda s: 0},
        {"first_place": lambda s: 0, "mask": _upper_left},
    ),
    Mistake(
        "places_counted",
        "the tokens were counted through, whatever `places` holds",
        "Right without gaps; after one, every token is turned as if it stood elsewhere.",
        "Print your places for places = [3, 4, 9]. Is there a gap?",
        "Use the numbers in `places` themselves, not np.arange of their count.",
        {"place": lambda s: np.arange(len(s.places))},
        {"place": lambda s: s.places[0] + np.arange(len(s.places))},
    ),
    Mistake(
        "first_half_overwritten",
        "the second of a pair was turned with the first as it stood after its own turn",
        "The name `a` held the new value already when `b` was computed.",
        "Which value of a does the line for b need, and which one does it get?",
        "The a from before the turn: compute both new values first, then write them.",
        {"turned": _overwritten},
    ),
    Mistake(
        "theta_as_exponent",
        "theta stands in the exponent, where it is the base",
        "The first pair turns, all others stand still: places far apart look alike.",
        "Print your frequencies. They should fall from 1 to nearly 1 / theta, each by the same factor.",
        "theta is the base: theta ** (-2c / d_k).",
        _frequencies_by(lambda share, theta: np.exp(-theta * share)),
        _frequencies_by(lambda share, theta: share**theta),
        _frequencies_by(lambda share, theta: (1 - share) ** theta),
    ),
    Mistake(
        "frequencies_rising",
        "the sign of the exponent is missing: the frequencies rise from pair to pair",
        "The last pairs turn thousands of radians a step, so that neighbours get unrelated angles.",
        "Which pair should turn slowest, the first or the last?",
        "The last. So the exponent is negative: theta ** (-2c / d_k).",
        _frequencies_by(lambda share, theta: theta**share),
    ),
    Mistake(
        "frequencies_half_as_far",
        "the exponent runs half as far, or twice as far, as it should",
        "The slowest pair turns too fast, or too slowly, for the weights of any model.",
        "There are d_k / 2 pairs. Which exponent belongs to the last one?",
        "-(d_k - 2) / d_k: the pairs are counted 0, 1, 2, ..., and the exponent is -2c / d_k.",
        _frequencies_by(lambda share, theta: theta ** (-share / 2)),
        _frequencies_by(lambda share, theta: theta ** (-2 * share)),
    ),
    Mistake(
        "turned_backwards",
        "pairs turn in the other direction",
        "Scores of a query and a key that are both turned so are the same, but weights of a model that turns forwards "
        "do not fit any more.",
        "Turn (1, 0) by a small angle. Should its second entry grow or fall?",
        "Grow: (a, b) becomes (a cos - b sin, a sin + b cos).",
        {"omega": lambda s: -frequencies(s.x.shape[-1], s.theta)},
    ),
    Mistake(
        "output_not_rescaled",
        "the output so far is not rescaled when the maximum rises",
        "Earlier blocks count too much.",
        "With which maximum were the terms added up that stand in o already?",
        "With the one before. Multiply o by exp(m - new) before you add.",
        {"keep_output": lambda s: _unchanged},
    ),
    Mistake(
        "sum_not_rescaled",
        "the sum so far is not rescaled when the maximum rises",
        "The sum is too large, and the output too small.",
        "With which maximum were the terms added up that stand in z already?",
        "With the one before. Multiply z by exp(m - new) before you add.",
        {"keep_sum": lambda s: _unchanged},
    ),
    Mistake(
        "block_maximum",
        "each block is measured against its own maximum, not against the running one",
        "Without rescaling a block of small scores counts as much as one of large scores; with it, all is right until "
        "exp(old - new) overflows.",
        "May the maximum ever fall?",
        "No: the new one is the larger of m and the maximum of the block.",
        {"running": lambda s: lambda before, own: own},
        {
            "running": lambda s: lambda before, own: own,
            "keep_sum": lambda s: _unchanged,
            "keep_output": lambda s: _unchanged,
        },
    ),
    Mistake(
        "first_maximum_kept",
        "the maximum never rose after the first block",
        "Right until a later score is larger by some 700: exp overflows.",
        "What does exp(s - m) give where s is larger than m by 2000?",
        "It overflows. Take the larger of m and the block's maximum with every block.",
        {"running": lambda s: _first_maximum},
    ),
    Mistake(
        "no_maximum",
        "no maximum is subtracted: exp overflows where scores are large",
        "Right as long as every score stays below some 709.",
        "What is exp(1000) in float64?",
        "inf. Subtract the largest score so far before exp.",
        {"running": lambda s: lambda before, own: 0.0},
    ),
    Mistake(
        "blocks_kept",
        "blocks are kept until all are there, although each is overwritten when the next one comes",
        "To keep them all takes the memory of the whole row, which is what this way of computing saves.",
        "Which three things must be carried from block to block, however long the row is?",
        "The maximum m, the sum z and the output o: none of them grows with the row.",
        {"online": lambda s: _softmax_of(overwritten(s.blocks))},
    ),
    Mistake(
        "blocks_averaged",
        "every block had the same share: the softmax of each block, and the mean of the blocks' outputs",
        "A block that no score speaks for weighs as much as one with the largest.",
        "What says how much a block counts as a whole?",
        "The sum of its exponentials, all measured against one maximum: add numerators and sums, and divide once.",
        {"online": _averaged},
    ),
    Mistake(
        "never_divided",
        "the output is never divided by the sum",
        "Each output grows with the number of keys.",
        "What do the weights of one query have to sum to?",
        "To 1: at the end return o / z.",
        {"divided": lambda s: lambda state: state[2]},
    ),
    Mistake(
        "nan_on_blocked_block",
        "a block without any allowed key spoils all that follows: -inf minus -inf is NaN",
        "With a causal mask or a window whole blocks are blocked, and in the first ones there is no maximum yet.",
        "What is your maximum after a block of -inf, and what is exp(-inf - m) then?",
        "-inf, and -inf minus -inf is NaN. Go on to the next block while the new maximum is -inf.",
        {"empty": lambda s: lambda state, scores, values: (state[0], np.nan, state[2])},
    ),
    Mistake(
        "value_rotated",
        "values are rotated, too",
        "What is handed over then depends on where it stands: every place + 100, and the output changes.",
        "A score compares a query with a key. What is compared with a value?",
        "Nothing is. Leave the values as they are.",
        {"v": lambda s: rotate(s.values)},
    ),
    Mistake(
        "only_one_side_rotated",
        "only the queries are rotated, or only the keys",
        "The score depends on one absolute place, where it should depend on the distance.",
        "Which angle is left between a query at place i and a key at place j?",
        "One that depends on i alone, or on j alone. Turn both, and i - j is left.",
        {"q": lambda s: s.norm(s.queries, s.q_gain)},
        {"k": lambda s: s.norm(s.keys, s.k_gain)},
    ),
    Mistake(
        "norm_after_rotation",
        "it normalises after the rotation, where the gain belongs before it",
        "Without a gain both orders are equal, since a rotation keeps the length. The gain differs within a pair.",
        "Which of the two comes first: the gain of a feature, or the turn of its pair?",
        "The gain: norm and gain first, then the turn.",
        {
            "q": lambda s: s.norm(s.turn_from(s.queries, s.first_place), s.q_gain),
            "k": lambda s: s.norm(s.turn_from(s.keys, 0), s.k_gain),
        },
    ),
    Mistake(
        "norm_forgotten",
        "queries or keys keep their length: they are not normalised",
        "A key with a large norm wins, whatever the query asks.",
        "What is the mean square of a query after your norm, before the gain?",
        "It should be 1, for queries and for keys: divide each by the root of its mean square.",
        {"norm": lambda s: lambda x, gain: x},
        {"q": lambda s: s.turn_from(s.queries, s.first_place)},
        {"k": lambda s: s.turn_from(s.keys, 0)},
    ),
    Mistake(
        "gain_forgotten",
        "a gain were 1 for every feature",
        "The norm alone caps the scores at sqrt(d_k); the gain is what lets a head be sharper.",
        "Which of your arguments does the output not depend on?",
        "It should depend on both gains: multiply each normed vector by its own, feature by feature.",
        {"norm": lambda s: lambda x, gain: rms_norm(x)},
        {"q": lambda s: s.turn_from(rms_norm(s.queries), s.first_place)},
        {"k": lambda s: s.turn_from(rms_norm(s.keys), 0)},
    ),
    Mistake(
        "plain_attention",
        "queries and keys are neither normalised nor rotated",
        "This is the head of notebook 02 with a causal mask.",
        "What is new in the head of this notebook, before the scores?",
        "The norm with its gain, then the turn, both for queries and keys.",
        {"q": lambda s: s.queries, "k": lambda s: s.keys},
    ),
    Mistake(
        "mask_from_the_first_key",
        "the mask lines up at the upper left, although the queries are the last tokens",
        "One new token after four others sees the first of them only.",
        "How many keys may the last query see?",
        "All of them: line the mask up at the lower right.",
        {"mask": _upper_left},
    ),
)
