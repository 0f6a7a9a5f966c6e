"""Mistakes in a softmax over long texts (notebook 14), and its steps: online softmax, a sink, a factor of log n."""

from functools import cached_property

import numpy as np

from .... import masks
from ....core import softmax
from ...engine.steps import Steps, swap
from ...mistakes.mistake import Mistake


class OnlineSteps(Steps):
    """Softmax block by block: the running maximum, and what is done to the sum and the output when it rises."""

    @cached_property
    def running(self):
        """The maximum so far, from the one before and the scores of a block."""
        return lambda before, s: max(before, s.max())

    @cached_property
    def factor(self):
        """By what everything so far is multiplied, from the maximum before and the new one."""
        return lambda before, largest: np.exp(before - largest)

    @cached_property
    def keep_sum(self):
        return lambda factor: factor

    @cached_property
    def keep_output(self):
        return lambda factor: factor

    @cached_property
    def carried(self):
        """Which maximum the next block meets."""
        return lambda largest: largest

    begin = -np.inf

    @cached_property
    def empty(self):
        """What a block without any allowed key does to (largest, sum, output)."""
        return lambda state, s, v: state

    @cached_property
    def online(self):
        state = self.begin, 0.0, 0.0
        for s, v in self.blocks:
            largest = self.running(state[0], s)
            state = self.empty(state, s, v) if np.isneginf(largest) else self._taken_in(state, largest, s, v)
        return self.divided(state)

    def _taken_in(self, state, largest, s, v):
        before, total, output = state
        factor, e = self.factor(before, largest), np.exp(s - largest)
        total, output = self.keep_sum(factor) * total + e.sum(), self.keep_output(factor) * output + e @ v
        return self.carried(largest), total, self.normalised(output, total)

    @cached_property
    def normalised(self):
        """What is done to the output after each block."""
        return lambda output, total: output

    @cached_property
    def divided(self):
        return lambda state: state[2] / state[1]


class SinkSteps(Steps):
    """Weights of rows of scores beside one more score, that of the sink."""

    @cached_property
    def largest(self):
        return np.maximum(self.masked_scores.max(axis=self.axis, keepdims=True), self.sink)

    @cached_property
    def e(self):
        return np.exp(self.masked_scores - self.largest)

    @cached_property
    def of_sink(self):
        """What the sink adds to the sum."""
        return np.exp(self.sink - self.largest)

    @cached_property
    def beside_sink(self):
        return self.e / (self.e.sum(axis=self.axis, keepdims=True) + self.of_sink)


class LogSteps(Steps):
    """A causal head whose scores grow with the logarithm of the number of keys that a query sees."""

    @cached_property
    def seen(self):
        """How many keys each query sees, (n, 1)."""
        return 1.0 + np.arange(self.q.shape[-2])[:, None]

    @cached_property
    def factor(self):
        return np.log(self.seen) / np.log(self.n_0)

    @cached_property
    def scores(self):
        return self.q @ swap(self.k) * self.factor

    @cached_property
    def mask(self):
        return masks.causal_mask(self.q.shape[-2])


def _masked_first(s):
    scaled = np.where(s.mask, s.q @ swap(s.k) / np.sqrt(s.q.shape[-1]), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp((scores := scaled * s.factor) - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _first_maximum(before, s):
    return s.max() if np.isneginf(before) else before


def _unchanged(factor):
    return 1.0


def overwritten(blocks):
    """Return the blocks as they stand at the end, where only the last still holds what it held."""
    *before, last = blocks
    return (*((np.zeros_like(s), np.zeros_like(v)) for s, v in before), last)


def _softmax_of(blocks):
    scores, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return softmax(scores) @ values


def _each_block(together, skip):
    """Put the outputs of all blocks together; a block without any allowed key gives 0, or is skipped."""

    def online(s):
        outputs = [softmax(scores) @ v for scores, v in s.blocks if not (skip and np.isneginf(scores).all())]
        return together(outputs, axis=0)

    return {"online": online}


def _inverted_after_the_first(before, largest):
    return 0.0 if np.isneginf(before) else np.exp(largest - before)


def _finite_maximum(s):
    """The maximum over the keys of a row, 0 where all are blocked."""
    largest = s.masked_scores.max(axis=-1, keepdims=True)
    return np.where(np.isneginf(largest), 0.0, largest)


def _with_sink_column(s):
    sink = np.broadcast_to(s.of_sink, (*s.e.shape[:-1], 1))
    return softmax(np.concatenate([s.masked_scores, np.log(sink) + s.largest], axis=-1))


def _sink_in_front(s):
    weights = _with_sink_column(s)
    return np.concatenate([weights[..., -1:], weights[..., :-2]], axis=-1)


OWN = (
    # --- online softmax
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
        {"running": lambda s: lambda before, scores: scores.max()},
        {
            "running": lambda s: lambda before, scores: scores.max(),
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
        {"running": lambda s: lambda before, scores: 0.0},
    ),
    Mistake(
        "maximum_of_sizes",
        "the largest size |s| is subtracted, not the largest score",
        "Right as long as no score is far below 0. Where all are near -1000, exp(s - 1000) is 0, and 0 / 0 is NaN.",
        "What does np.abs do to a score of -1000?",
        "It makes it the largest. Take the maximum of the scores themselves.",
        {"running": lambda s: lambda before, scores: max(before, np.abs(scores).max())},
        {"running": lambda s: lambda before, scores: np.abs(scores[np.isfinite(scores)]).max(initial=before)},
    ),
    Mistake(
        "divided_at_each_block",
        "the output is divided by the sum after each block",
        "What stands in o is then a mean already, and is rescaled and added up as if it were a sum.",
        "How often should o be divided by z?",
        "Once, at the end: until then both are sums.",
        *(
            {"normalised": lambda s: np.divide} | at_the_end
            for at_the_end in ({}, {"divided": lambda s: lambda o: o[2]})
        ),
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
        "every block had the same share: the softmax of each block, and the mean or the sum of the blocks' outputs",
        "A block that no score speaks for weighs as much as one with the largest.",
        "What says how much a block counts as a whole?",
        "The sum of its exponentials, all measured against one maximum: add numerators and sums, and divide once.",
        *(_each_block(together, skip) for together in (np.mean, np.sum) for skip in (False, True)),
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
        "maximum_starts_at_zero",
        "the running maximum starts at 0",
        "Right as long as some score is above -745. Where all are lower, every e^s is 0, and 0 / 0 is NaN.",
        "Which number is smaller than every score?",
        "-np.inf: begin with that.",
        {"begin": lambda s: 0.0},
    ),
    Mistake(
        "factor_inverted",
        "what stands in the sum and the output is multiplied by exp(new - old), not by exp(old - new)",
        "Earlier blocks count more with each new maximum, where they should count less.",
        "The maximum rises by 2. Do the terms so far become larger or smaller?",
        "Smaller, since they are measured against a larger maximum: multiply by exp(m - new).",
        {"factor": lambda s: _inverted_after_the_first},
    ),
    Mistake(
        "one_block_only",
        "only one block counts, the last or the first",
        "The other blocks are overwritten, or erased by exp(-inf - new) where the new maximum is never stored; or a "
        "`return` stands inside the loop.",
        "After the last block: which of your variables still hold something of the first?",
        "m, z and o should. Store the new maximum, add to z and o, and return after the loop.",
        {"carried": lambda s: lambda largest: -np.inf},
        {"online": lambda s: next(softmax(scores) @ values for scores, values in s.blocks)},
        {
            "online": lambda s: next((softmax(x) + 0 * x.max()) @ values for x, values in s.blocks)
        },  # NaN if all is blocked
    ),
    # --- the sink
    Mistake(
        "sink_left_out",
        "the sink gets no weight: the weights of each row sum to 1",
        "Every row still gives all its weight to real keys, whether one of them fits or not.",
        "What do the weights of a row sum to, if the sink takes some?",
        "To less than 1. Divide by the sum of exp(s) plus exp(sink), and do not divide again.",
        {"of_sink": lambda s: 0.0},
        {"beside_sink": lambda s: softmax(s.masked_scores)},
    ),
    Mistake(
        "sink_returned",
        "the weight of the sink is returned as one more column",
        "There is no value for it to be multiplied by.",
        "How many columns do the scores have, and how many do your weights have?",
        "As many: cut the column of the sink off after the softmax.",
        {"beside_sink": _with_sink_column},
    ),
    Mistake(
        "last_key_cut_off",
        "the weight of a key is cut off, and that of the sink comes back in a column",
        "The shape is right, and every weight stands one column too far to one side.",
        "Where did you put the column of the sink, and which column do you cut off?",
        "Cut off the column that you have added, at the end where you have added it.",
        {"beside_sink": _sink_in_front},
        {"beside_sink": lambda s: _with_sink_column(s)[..., 1:]},
    ),
    Mistake(
        "sink_without_exp",
        "the sink's score itself is added to the sum, without exp",
        "A sink of 0 then takes nothing, and a negative one makes the weights larger.",
        "What is added for a key with score s? And for the sink?",
        "For both exp of the score, measured against the same maximum.",
        {"of_sink": lambda s: s.sink},
    ),
    Mistake(
        "sink_not_shifted",
        "the maximum is subtracted from the scores, and not from the sink",
        "The sink then counts as if its score were larger by the maximum.",
        "Add 100 to all scores and to the sink. Do your weights change?",
        "They should not: subtract one maximum from the scores and from the sink.",
        {"of_sink": lambda s: np.exp(s.sink)},
        {"largest": _finite_maximum, "of_sink": lambda s: np.exp(s.sink)},
        {"largest": lambda s: s.masked_scores.max(axis=-1, keepdims=True), "of_sink": lambda s: np.exp(s.sink)},
    ),
    Mistake(
        "sink_left_out_of_maximum",
        "the maximum is taken over the keys alone",
        "Right as long as some key is allowed. Where all are blocked, it is -inf, and -inf minus -inf is NaN.",
        "What is your maximum in a row of -inf?",
        "The sink's score, if it is one of those that are compared: np.maximum(s.max(...), sink).",
        {"largest": lambda s: s.masked_scores.max(axis=-1, keepdims=True)},
    ),
    Mistake(
        "maximum_of_other_rows",
        "the maximum that is subtracted from a row is taken over other rows, too",
        "A row whose scores lie 745 or more below a maximum of all rows becomes 0 / 0. Maxima of columns shift each "
        "key of a row by another number.",
        "One row has scores near 1000, the next near 0. Which number should be subtracted in each?",
        "Its own maximum, the largest score over the keys of that row: axis=-1, keepdims=True.",
        *(
            {"largest": lambda s, axis=axis: np.maximum(s.masked_scores.max(axis=axis, keepdims=True), s.sink)}
            for axis in (None, (-1, -2), -2, 0)
        ),
    ),
    Mistake(
        "sink_without_maximum",
        "the largest score of the row is not subtracted: nothing is, or the sink's score alone",
        "exp overflows where what is left of a score is above some 709.",
        "What is exp(1000) in float64?",
        "inf. Subtract the larger of the row's maximum and the sink's score from both first.",
        {"largest": lambda s: 0.0},
        {"largest": lambda s: s.sink},
    ),
    # --- log n
    Mistake(
        "factor_of_whole_text",
        "every query has the factor of the whole text, ln(n) / ln(n_0)",
        "The factor of an early query then depends on tokens that it must not know of.",
        "Add a token at the end. Which of your rows change?",
        "No earlier row should: query i sees i + 1 keys, so its factor is ln(i + 1) / ln(n_0).",
        {"seen": lambda s: float(s.q.shape[-2])},
    ),
    Mistake(
        "factor_by_keys",
        "each key has a factor, where each query should have one",
        "Scores of one row are multiplied by different numbers, so a key may win or lose for its place alone.",
        "The factor belongs to how many keys a query sees. Is that a row or a column of the scores?",
        "A row: make the factors a column, (n, 1).",
        {"seen": lambda s: 1.0 + np.arange(s.q.shape[-2])},
    ),
    Mistake(
        "keys_counted_from_zero",
        "query i is said to see i keys, or i + 2",
        "It sees itself and the i before it. For query 0, ln 0 is -inf.",
        "How many keys does query 0 see?",
        "One, itself: query i sees i + 1 keys.",
        *({"seen": lambda s, by=by: np.arange(s.q.shape[-2])[:, None] + by} for by in (0, 2)),
        {"seen": lambda s: np.maximum(np.arange(s.q.shape[-2]), 1)[:, None]},
    ),
    Mistake(
        "logarithm_left_out",
        "the factor is the number of keys over n_0, without the logarithm",
        "Scores then grow as n, and the head becomes one-hot.",
        "Which factor makes up for a crowd that is twice as large?",
        "One whose exp grows as the crowd does: ln(i + 1) / ln(n_0).",
        {"factor": lambda s: s.seen / s.n_0},
    ),
    Mistake(
        "logarithms_subtracted",
        "the factor is ln((i + 1) / n_0), a difference of two logarithms",
        "The factor is 0 where it should be 1, at i + 1 = n_0, and negative before.",
        "Which factor should a query have that sees n_0 keys?",
        "1: divide one logarithm by the other.",
        {"factor": lambda s: np.log(s.seen / s.n_0)},
    ),
    Mistake(
        "masked_before_factor",
        "the scores are masked first, and multiplied by the factor then",
        "The factor of query 0 is ln 1 = 0, and 0 times -inf is NaN.",
        "What is your factor for query 0, and what stands at the keys that it must not see?",
        "0 and -inf. Multiply the scores by the factor, then mask them.",
        {"weights": _masked_first},
    ),
    Mistake(
        "factor_upside_down",
        "the factor is ln(n_0) / ln(i + 1), upside down",
        "The scores shrink as the crowd grows.",
        "At i + 1 = n_0 the factor is 1. Should it be larger or smaller behind that?",
        "Larger: ln(i + 1) / ln(n_0).",
        {"factor": lambda s: np.log(s.n_0) / np.log(s.seen)},
        {"factor": lambda s: np.log(s.n_0) / np.log(np.maximum(s.seen, 2))},
    ),
    Mistake(
        "factor_on_weights",
        "the weights are multiplied by the factor, where the scores should be",
        "Rows do not sum to 1 any more.",
        "What makes a softmax sharper: larger weights behind it, or larger scores before it?",
        "Larger scores: multiply before the softmax.",
        {
            "scores": lambda s: s.q @ swap(s.k),
            "weights": lambda s: softmax(s.masked_scores) * s.factor,
        },
    ),
)
