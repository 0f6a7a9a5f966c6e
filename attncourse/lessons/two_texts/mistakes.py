"""The mistakes that only Two texts knows, and its steps."""

from functools import cached_property

import numpy as np

from attnlib import masks

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake


class TextSteps(Steps):
    # Which letters each digit may look at, (b, 1, n_k).
    between = cached_property(lambda s: masks.padding_mask(s.lengths, s.n_k))
    # The place of the first letter of each text, (b, 1).
    first = cached_property(lambda s: (~s.real).sum(-1, keepdims=True))
    positions = cached_property(lambda s: np.maximum(np.arange(s.real.shape[-1]) - s.first, 0))
    same_text = cached_property(lambda s: s.ids[..., :, None] == s.ids[..., None, :])
    packed = cached_property(lambda s: s.same_text & masks.causal_mask(s.ids.shape[-1]))


MISTAKES = (
    Mistake(
        "texts_exchanged",
        behaves_as_if="the text that is read asks, and the text that is written answers",
        symptom="There is a row for each letter; there should be one for each digit that is written.",
        hint="Who is in need of something here: the letters, or the digits?",
        then="The digits: queries come from what is written, keys and values from the text that is read.",
        variants=({"q": lambda s: s.key @ s.W_Q, "k": lambda s: s.query @ s.W_K, "v": lambda s: s.query @ s.W_V},),
    ),
    Mistake(
        "reader_alone",
        behaves_as_if="queries come from the text that is read, as keys and values do: it looks at itself",
        symptom="What is written can be replaced by anything; the output does not change.",
        hint="Which of your arrays depend on the first argument?",
        then="The queries have to: each digit that is written asks.",
        variants=({"q": lambda s: s.key @ s.W_Q},),
    ),
    Mistake(
        "lengths_of_the_other_text",
        behaves_as_if="the lengths of what is written are used for the letters of the text that is read",
        symptom="Columns are letters, and another text has other lengths.",
        hint="What stands in the columns: letters or digits?",
        then="Letters. So the lengths are those of the text that is read.",
        variants=({"between": lambda s: np.arange(s.n_k) < np.asarray(s.written)[:, None, None]},),
    ),
    Mistake(
        "causal_between_texts",
        behaves_as_if="a causal mask lies between the two texts",
        symptom="Letter 9 does not come after digit 3. The first digit, of the year, may need the last letter.",
        hint="Which letters may the first digit look at?",
        then="All of the text that is read: it was there before the first digit. Only its padding is hidden.",
        variants=(
            {"between": lambda s: TextSteps.between.func(s) & np.tri(s.n_q, s.n_k, dtype=bool)},
            {"between": lambda s: TextSteps.between.func(s) & np.tri(s.n_q, s.n_k, s.n_k - s.n_q, dtype=bool)},
            {"between": lambda s: np.tri(s.n_q, s.n_k, dtype=bool) & np.ones((len(s.lengths), 1, 1), dtype=bool)},
        ),
    ),
    Mistake(
        "padding_and_letters_exchanged",
        behaves_as_if="True stands at the padding, and False at the letters",
        symptom="Each digit then sees nothing but padding.",
        hint="Does True mean 'may attend' or 'blocked' here?",
        then="True means: may attend. It belongs to the letters.",
        variants=({"between": lambda s: ~masks.padding_mask(s.lengths, s.n_k)},),
    ),
    Mistake(
        "nothing_hidden",
        behaves_as_if="every digit may look at every letter, also at padding",
        symptom="Alone a text is translated well. Beside a longer one it is not.",
        hint="What stands behind the last letter of a short text?",
        then="Padding: there the mask is False.",
        variants=({"between": lambda s: np.ones((len(s.lengths), 1, s.n_k), dtype=bool)},),
    ),
    Mistake(
        "letters_as_rows",
        behaves_as_if="letters stand in the rows, and digits in the columns",
        symptom="It raises where the two numbers differ. Where they agree, it hides other cells.",
        hint="Weights between the texts are (b, n_q, n_k). Which of the two is the number of letters?",
        then="n_k, the last: letters are keys, and stand in the columns.",
        variants=({"between": lambda s: np.swapaxes(TextSteps.between.func(s).repeat(s.n_q, axis=1), 1, 2)},),
    ),
    Mistake(
        "counted_from_the_padding",
        behaves_as_if="positions are counted from the padding, not from the first letter",
        symptom="A text alone begins at 0, the same text beside a longer one at 3: it gets other vectors.",
        hint="At which position is the first letter of a text with two letters of padding in front?",
        then="At 0. Count only where there is a letter.",
        variants=({"positions": lambda s: np.broadcast_to(np.arange(s.real.shape[-1]), s.real.shape)},),
    ),
    Mistake(
        "letters_from_one",
        behaves_as_if="the first letter stands at position 1",
        symptom="In training it stood at 0.",
        hint="How many letters stand before the first one?",
        then="None, so its position is 0: a running count that includes the letter itself is one too large.",
        variants=({"positions": lambda s: np.cumsum(s.real, axis=-1)},),
    ),
    Mistake(
        "padding_at_minus_one",
        behaves_as_if="the padding has a negative position",
        symptom="nn.Embedding raises for -1, and NumPy reads the last row.",
        hint="Is there a vector for position -1?",
        then="There is none. Write any position there that has a vector, 0 for instance: nobody looks at padding.",
        variants=(
            {"positions": lambda s: np.cumsum(s.real, axis=-1) - 1},
            {"positions": lambda s: np.arange(s.real.shape[-1]) - s.first},
        ),
    ),
    Mistake(
        "padding_of_one_text",
        behaves_as_if="the padding of one text is taken for all",
        symptom="Right for a text that has as much padding as that one.",
        hint="Does each text of the batch have the same number of letters?",
        then="No. Count in each row by itself, along the last axis.",
        variants=(
            {"first": lambda s: np.broadcast_to((~s.real[0]).sum(), (len(s.real), 1))},
            {"first": lambda s: np.full((len(s.real), 1), (~s.real).sum(-1).max())},
        ),
    ),
    Mistake(
        "moved_the_other_way",
        behaves_as_if="positions are moved by the padding in the wrong direction",
        symptom="The more padding, the larger the first position.",
        hint="Two letters of padding in front: is the first letter at 2 + 2, or at 2 - 2?",
        then="At 2 - 2: take the number of padding letters away.",
        variants=({"positions": lambda s: np.where(s.real, np.arange(s.real.shape[-1]) + s.first, 0)},),
    ),
    Mistake(
        "counted_backwards",
        behaves_as_if="positions are counted from the end of the text",
        symptom="The last letter stands at 0, whatever the text.",
        hint="Which letter of a text is at position 0?",
        then="The first one. Count from the left.",
        variants=({"positions": lambda s: np.where(s.real, np.arange(s.real.shape[-1])[::-1], 0)},),
    ),
    Mistake(
        "texts_not_kept_apart",
        behaves_as_if="a token sees all tokens before it, also those of other texts",
        symptom="Each text is read as if it went on from the one before.",
        hint="Which text does the token before the first one of a text belong to?",
        then="To another. A key is allowed if it stands before the query and belongs to the same text.",
        variants=({"packed": lambda s: np.broadcast_to(masks.causal_mask(s.ids.shape[-1]), s.same_text.shape)},),
    ),
    Mistake(
        "future_of_its_text",
        behaves_as_if="a token sees its whole text, also what comes after it",
        symptom="In training the token to be predicted is in plain sight.",
        hint="Which tokens of its text may the first one see?",
        then="Itself alone: the causal mask holds inside each text, too.",
        variants=({"packed": lambda s: s.same_text},),
    ),
    Mistake(
        "other_texts_only",
        behaves_as_if="a token sees the other texts and not its own",
        symptom="A sign is wrong: its own text is what it should see.",
        hint="Does your condition hold for a token and itself?",
        then="It has to: the two numbers of the texts are equal there.",
        variants=(
            {"packed": lambda s: ~s.same_text},
            {"packed": lambda s: ~s.same_text & masks.causal_mask(s.ids.shape[-1])},
        ),
    ),
    Mistake(
        "texts_in_order_of_number",
        behaves_as_if="a text also sees those with a smaller number",
        symptom="The numbers of texts have no order: 7 may stand in front of 3.",
        hint="When do two tokens belong to the same text?",
        then="When their numbers are equal, not when one is the smaller.",
        variants=(
            {"packed": lambda s: (s.ids[..., None, :] <= s.ids[..., :, None]) & masks.causal_mask(s.ids.shape[-1])},
        ),
    ),
    Mistake(
        "ahead_in_its_text",
        behaves_as_if="the triangle is the upper one: a token sees what comes after it in its text",
        symptom="The last token of each text sees itself alone.",
        hint="Which tokens of its text may the first one see?",
        then="Itself alone: key j is allowed if j is not larger than i.",
        variants=({"packed": lambda s: s.same_text & np.tri(s.ids.shape[-1], dtype=bool).T},),
    ),
    Mistake(
        "healthy_accused",
        behaves_as_if="a translator is called sick for its maps, though all that it writes is right",
        symptom="A map that is sharper or paler than another is no mistake by itself.",
        hint="What does each of the three write? Try texts alone, and texts of different lengths together.",
        then="Only one writes wrong dates. Ask of that one when it does.",
    ),
    Mistake(
        "own_text_read",
        behaves_as_if="the keys were taken for those of the text that is written",
        symptom="Such a translator cannot read.",
        hint="Is any date of this translator right?",
        then="Yes: it reads. Look for what differs between a text alone and the same text beside a longer one.",
    ),
    Mistake(
        "future_letters_hidden",
        behaves_as_if="letters were taken to be hidden from the first digits",
        symptom="Such a translator loses what stands at the end of a text.",
        hint="Does it write a text right that comes alone?",
        then="It does. So look at what is added to a text when a longer one stands beside it.",
    ),
    Mistake(
        "shifted_by_padding",
        behaves_as_if="the positions were taken to be shifted",
        symptom="Positions shift where padding stands in front.",
        hint="Where does the padding stand here?",
        then="Behind the text. Look at its columns in the map.",
    ),
    Mistake(
        "paler_is_not_wrong",
        behaves_as_if="the map was taken to be too pale",
        symptom="Weight that is missing on letters must be somewhere.",
        hint="Add up the weights of a digit on the letters of its text. Where is the rest?",
        then="Behind the last letter, on the padding.",
    ),
)
