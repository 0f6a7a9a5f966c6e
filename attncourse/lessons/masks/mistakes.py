"""The mistakes that only Masks knows, and its steps."""

from functools import cached_property

import numpy as np

from attnlib import masks

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake, weights_by
from ...mistakes.weights import CAUSAL_ADDED, FUTURE_ONLY, exp_over_sum, triangle
from .design import FEW


class MaskSteps(Steps):
    n_k = cached_property(lambda s: s.n_q)  # where it is left out
    causal = cached_property(lambda s: masks.causal_mask(s.n_q, s.n_k, align="lower_right"))
    padding = cached_property(lambda s: masks.padding_mask(s.lengths, s.n_k))


_BLOCKED_WITHOUT_MASK = {
    "masked_scores": lambda s: np.where(False if s.mask is None else s.allowed, s.scaled_scores, s.fill)
}

MISTAKES = (
    CAUSAL_ADDED,
    Mistake(
        "padding_without_query_axis",
        behaves_as_if="the padding mask is (b, n_k): the axis for the queries is missing",
        symptom="This raises later on. If b = n_q, it is read as (n_q, n_k), and nothing raises.",
        hint="Scores are (b, n_q, n_k). Which of these three axes does your mask not have?",
        then="The queries. Put an axis of size 1 between the two: it stands for all queries.",
        variants=({"padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths)[:, None]},),
    ),
    Mistake(
        "padding_on_other_axes",
        behaves_as_if="the padding mask is right, but its axes are not (b, 1, n_k)",
        symptom="It has one axis too many, or two axes have changed places, or it has a row for each query instead of "
        "one for all.",
        hint="Scores are (b, n_q, n_k). Which axis of your mask is which of these three?",
        then="The first is b, the last is n_k, and between them stands one axis of size 1.",
        variants=tuple(
            {"padding": lambda s, form=form: form(masks.padding_mask(s.lengths, s.n_k))}
            for form in (
                lambda mask: mask.repeat(mask.shape[-1], axis=1),  # (b, n_k, n_k)
                lambda mask: np.swapaxes(mask, 0, 1),  # (1, b, n_k)
                lambda mask: mask[:, None],  # (b, 1, 1, n_k)
            )
        ),
    ),
    Mistake(
        "row_for_a_column",
        behaves_as_if="the lengths (or the positions of the queries) are compared with the keys element by element",
        symptom="NumPy lines up axes from the end. Mostly that raises; where the sizes agree, you get one row instead "
        "of a map. A column has an axis of size 1 behind it.",
        hint="Which shape lets each of these numbers meet every key?",
        then="A column, (n, 1): put an axis of size 1 behind the numbers.",
        variants=(
            {
                "padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths),
                "causal": lambda s: np.arange(s.n_k) <= np.arange(s.n_k - s.n_q, s.n_k),
            },
            {
                "padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths)[None, None],
                "causal": lambda s: np.arange(s.n_k) <= np.arange(s.n_q),
            },
        ),
    ),
    Mistake(
        "padding_off_by_one",
        behaves_as_if="it lets one padded token through",
        symptom="The first padding token gets weight in every sequence.",
        hint="A sequence of length 2: at which positions are its tokens, counted from 0?",
        then="At 0 and 1: position j is a token if j is less than the length.",
        variants=({"padding": lambda s: np.arange(s.n_k) <= np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "padding_on_the_left",
        behaves_as_if="the padding stands in front of the tokens",
        symptom="Real tokens at the beginning are hidden, and padding at the end is seen.",
        hint="Which positions hold the tokens of a sequence of length 2: the first two or the last two?",
        then="The first two: position j is a token if j is less than the length.",
        variants=({"padding": lambda s: np.arange(s.n_k) >= s.n_k - np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "mask_blocks_diagonal",
        behaves_as_if="a token may not attend to itself",
        symptom="The first token may attend to nothing at all.",
        hint="What may the very first token look at?",
        then="At itself: key j is allowed up to and including the position of the query.",
        variants=({"causal": lambda s: triangle(s, -1)}, {"causal": lambda s: np.tri(s.n_q, s.n_k, k=-1, dtype=bool)}),
    ),
    Mistake(
        "mask_shows_the_next",
        behaves_as_if="a token may also attend to the one that follows it",
        symptom="In training the token to be predicted is in plain sight.",
        hint="What may the very first token look at?",
        then="At itself alone: key j is allowed if it does not come after the query.",
        variants=({"causal": lambda s: triangle(s, 1)}, {"causal": lambda s: np.tri(s.n_q, s.n_k, k=1, dtype=bool)}),
    ),
    FUTURE_ONLY,
    Mistake(
        "causal_upper_left",
        behaves_as_if="the first query stands at the first key (upper left), although the queries are the last tokens",
        symptom="This is right for n_q = n_k. But one new token after four others sees only the first of them, not "
        "even itself.",
        hint="Give each token its position in the sequence. At which position does the first query stand?",
        then="At n_k - n_q, because the last query is the last token. Compare the keys with these positions.",
        variants=({"causal": lambda s: np.tri(s.n_q, s.n_k, dtype=bool)},),
    ),
    Mistake(
        "causal_square",
        behaves_as_if="the mask has as many rows as columns, although there are more keys than queries",
        symptom="Scores are (n_q, n_k), so a square mask fits only in training, where n_q = n_k.",
        hint="One query asks five keys. How many rows and how many columns has its mask?",
        then="One row and five columns: np.tri(n_q, n_k, ...), or the last n_q rows of the square (n_k, n_k).",
        variants=({"causal": lambda s: np.tri(s.n_q, dtype=bool)}, {"causal": lambda s: np.tri(s.n_k, dtype=bool)}),
    ),
    Mistake(
        "causal_offset_reversed",
        behaves_as_if="the queries are moved n_k - n_q positions towards the beginning, not towards the end",
        symptom="This is right for n_q = n_k. But one new token after four others has no key left.",
        hint="At which position does the last query stand? And at which position does your code put it?",
        then="At n_k - 1, because the last query is the last token: query q stands at n_k - n_q + q.",
        variants=({"causal": lambda s: np.tri(s.n_q, s.n_k, k=s.n_q - s.n_k, dtype=bool)},),
    ),
    Mistake(
        "no_mask_blocks_all",
        behaves_as_if="without a mask every key is blocked",
        symptom="np.where(None, scaled, -np.inf) takes -inf everywhere, because None counts as False.",
        hint="What does your code do where attn_mask is None?",
        then="Ask first whether attn_mask is None. Without a mask the scores stay as they are.",
        variants=(
            _BLOCKED_WITHOUT_MASK,
            _BLOCKED_WITHOUT_MASK | weights_by(lambda x, axis: exp_over_sum(x, axis, x.max(axis, keepdims=True))),
        ),
    ),
    Mistake(
        "key_ahead",
        behaves_as_if="a query may look at a token that comes after it",
        symptom="A model with such a mask can copy its answers, as in section 1.",
        hint="Which rows have a True to the right of the diagonal?",
        then="Make them False: query i may look at keys 0 to i.",
    ),
    Mistake(
        "no_key_left",
        behaves_as_if="a query may look at nothing",
        symptom="It returns nothing, and in other libraries NaN. Each query needs at least one key.",
        hint="Which of your rows has no True?",
        then="Let that query look at least at itself.",
    ),
    Mistake(
        "too_many_keys",
        behaves_as_if=f"a query may look at more than {FEW} keys",
        symptom=f"With all keys one layer would be enough. Here each query gets {FEW}.",
        hint="Sum your masks over the last axis.",
        then="No sum may be above 3: in each longer row, choose which three keys stay.",
    ),
    Mistake(
        "reach_too_short",
        behaves_as_if="some tokens never reach the last position",
        symptom="What a token gives in layer 1 must arrive at a position that the last query looks at in layer 2.",
        hint=f"The last query looks at {FEW} positions in layer 2. What did each of them see in layer 1, and what did "
        "two of them both see?",
        then="Choose three positions of which no two have seen the same token.",
    ),
)
