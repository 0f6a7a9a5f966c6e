"""Two texts: its exercises, questions, mistakes, and its three sick translators."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from attnlib import masks

from .. import dates
from ..engine.compare import RIGHT
from ..engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, asked
from ..engine.probes import BATCH, CUBE, EXTREME, HUGE, PLAIN, SINGLE, Draw, Probe, single
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps
from ..mistakes.mistake import Mistake


class _Steps(Steps):
    # Which letters each digit may look at, (b, 1, n_k).
    between = cached_property(lambda s: masks.padding_mask(s.lengths, s.n_k))
    # The place of the first letter of each text, (b, 1).
    first = cached_property(lambda s: (~s.real).sum(-1, keepdims=True))
    positions = cached_property(lambda s: np.maximum(np.arange(s.real.shape[-1]) - s.first, 0))
    same_text = cached_property(lambda s: s.ids[..., :, None] == s.ids[..., None, :])
    packed = cached_property(lambda s: s.same_text & masks.causal_mask(s.ids.shape[-1]))


def _rows_settled(mask, lengths, written, n_k, n_q):
    """Return a mask as (b, n_q, n_k), with the right rows where the query is padding, since nobody reads these."""
    mask, right = np.asarray(mask), masks.padding_mask(lengths, n_k)
    if mask.shape not in {(len(right), rows, n_k) for rows in (1, n_q)}:
        return mask
    if mask.dtype != bool:
        return np.broadcast_to(mask, (len(right), n_q, n_k))
    return np.where(np.arange(n_q)[:, None] < np.asarray(written)[:, None, None], mask, right)


def _places_settled(positions, real):
    """Return positions with 0 at the padding, wherever a position stands there that has a vector."""
    positions, real = np.asarray(positions), np.asarray(real)
    if positions.shape != real.shape or positions.dtype == bool:
        return positions
    return np.where(~real & (positions >= 0) & (positions < real.shape[-1]), 0, positions)


@dataclass(frozen=True, kw_only=True, repr=False)
class _PartlyFree(Function):
    """A function of which some numbers are free: `settled` puts the right ones there, into (result, *arguments)."""

    settled: Callable
    whole: bool = False  # must all numbers be whole?

    def adapt(self, answer):
        answer = super().adapt(answer)

        def settled(*args):
            result = answer(*args)
            if self.whole and np.asarray(result).dtype in (np.float32, np.float64):
                raise Unfit("Each position picks a vector, so it must be whole; yours are floats. Fix: .astype(int).")
            return result if result is None or result is ... else self.settled(result, *args)

        return settled

    def _result(self, s):
        return self.settled(super()._result(s), *s.arguments)


def two_texts():
    """Return what a step between two texts is tried on: (written, text, W_Q, W_K, W_V), each of its own length."""
    draw = Draw("cross_attention")
    matrices = draw.matrix(6, 4), draw.matrix(6, 4), draw.matrix(6, 3)
    square = draw.matrix(4, 4), draw.matrix(4, 4), draw.matrix(4, 4)
    batch = draw(2, 3, 6), draw(2, 5, 6), draw.matrix(6, 2), draw.matrix(6, 2), draw.matrix(6, 3)
    one = draw(3, 6), draw(5, 6), *matrices
    return (
        Probe(PLAIN, one),
        Probe(BATCH, batch),
        Probe(CUBE, (draw(4, 4, 4), draw(4, 4, 4), *square)),
        Probe(SINGLE, single(*batch)),
        Probe(HUGE, (3e3 * one[0], *one[1:]), EXTREME),
    )


def _texts_at_the_right():
    def real(*lengths, n):
        return np.arange(n) >= n - np.array(lengths)[:, None]

    return (
        Probe("texts of 2, 5 and 3 letters", (real(2, 5, 3, n=5),)),
        Probe("texts of 4 and 1 letters among 6", (real(4, 1, n=6),)),
        Probe("as many texts as letters", (real(1, 3, 2, n=3),)),
    )


def translators():
    """Return three translators by letter, texts -> (what is written, weights (b, h, 10, n_k)); one of them is sick.

    >>> {name: one(["25 Nov 1985"])[0] for name, one in translators().items()}
    {'A': ['1985-11-25'], 'B': ['1985-11-25'], 'C': ['1985-11-25']}
    """
    model = dates.load()

    def looking_at_padding(texts):
        letters, lengths = dates.letters_of(texts)
        context = model.encode(letters, masks.padding_mask(lengths, letters.shape[1]))
        return dates.greedy(lambda digits: model.decode(digits, context), len(texts))

    sharper, paler = (partial(dates.translate, dates.as_if(model, d_k)) for d_k in (4, 16))  # its own is 8
    return {"A": sharper, "B": looking_at_padding, "C": paler}


_CAUSES = {
    "a": ("own_text_read", "Then no date would be right, and here each is, if it comes alone."),
    "b": ("future_letters_hidden", "Then a year at the end of a text would be lost, also in a text that comes alone."),
    "d": ("shifted_by_padding", "Here the padding stands at the right: every text begins at position 0."),
    "e": ("paler_is_not_wrong", "Its weights on letters are as they were in training, where a text comes alone."),
}


def _judge_translator(answer):
    """Judge (letter of the translator, letter of the cause)."""
    if not isinstance(answer, tuple | list) or len(answer) != 2 or not all(isinstance(x, str) for x in answer):
        raise Unfit(f'Hand in two letters, ("A", "a") for instance; you hand in {answer!r:.60}. Fix: (who, what).')
    who, what = answer[0].upper(), answer[1].lower()
    if who not in "ABC" or what not in "abcde" or len(who + what) != 2:
        raise Unfit(f"There are translators A to C and causes a to e, got {answer!r:.60}. Fix: a letter of each.")
    if who != "B":
        return "healthy_accused", f"{who} writes as well as ours does, whatever stands beside a text."
    return (RIGHT, "") if what == "c" else _CAUSES[what]


OWN = (
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
            {"between": lambda s: masks.padding_mask(s.lengths, s.n_k) & np.tri(s.n_q, s.n_k, dtype=bool)},
            {
                "between": lambda s: (
                    masks.padding_mask(s.lengths, s.n_k) & np.tri(s.n_q, s.n_k, s.n_k - s.n_q, dtype=bool)
                )
            },
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
        variants=(
            {"between": lambda s: np.swapaxes(masks.padding_mask(s.lengths, s.n_k).repeat(s.n_q, axis=1), 1, 2)},
        ),
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


EXERCISES = (
    Function(
        "cross_attention",
        "cross_attention(written, text, W_Q, W_K, W_V) -> (..., n_q, d_v): each token of what is written, (..., n_q, "
        "d), looks at the text that is read, (..., n_k, d). Scores are divided by sqrt(d_k).",
        (
            "Who asks? Queries are made of what is written.",
            "Keys and values are both made of the text that is read.",
            "q = written @ W_Q, k = text @ W_K, v = text @ W_V, and then attention as in 'vectorized'.",
        ),
        probes=two_texts(),
        given=lambda written, text, W_Q, W_K, W_V: {
            "query": written,
            "key": text,
            "value": text,
            "W_Q": W_Q,
            "W_K": W_K,
            "W_V": W_V,
        },
        result=lambda s: s.output,
        axes=OUTPUT_AXES,
    ),
    _PartlyFree(
        "context_mask",
        "context_mask(lengths, written, n_k, n_q) -> (b, n_q, n_k) or (b, 1, n_k) of bool, True = may attend. lengths "
        "(b,) are those of the texts that are read, written (b,) those of what is written. Rows of padding are free.",
        (
            "Which text stands in the columns?",
            "The one that is read: key j is a letter if j is less than its length. No triangle.",
            "np.arange(n_k) < lengths[:, None, None] is (b, 1, n_k).",
        ),
        probes=(
            Probe("texts of 3, 5 and 2 letters, 4 digits each", (np.array([3, 5, 2]), np.array([4, 4, 4]), 5, 4)),
            Probe("what is written is padded, too", (np.array([3, 5, 2]), np.array([2, 1, 4]), 5, 4)),
            Probe("as many letters as digits", (np.array([1, 4, 2]), np.array([4, 2, 3]), 4, 4)),
            Probe("more digits than letters", (np.array([2, 1]), np.array([5, 3]), 2, 5)),
        ),
        **asked("between", "lengths written n_k n_q", of=_Steps, axes=MAP_AXES, stage="mask"),
        settled=_rows_settled,
    ),
    _PartlyFree(
        "left_positions",
        "left_positions(real) -> (b, n) of int: the position of each letter in its text. real (b, n) is True at the "
        "letters, which stand at the right, behind their padding. At padding any position from 0 to n - 1 will do.",
        (
            "The first letter of each text stands at position 0, wherever it stands in its row.",
            "Count the letters from the left: a running sum of True, along the last axis.",
            "np.cumsum(real, axis=-1) - 1, and no -1 at the padding.",
        ),
        probes=_texts_at_the_right(),
        **asked("positions", "real", of=_Steps, axes=("texts", "letters")),
        settled=_places_settled,
        whole=True,
    ),
    Function(
        "packed_mask",
        "packed_mask(ids) -> (..., n, n) of bool for a causal model, True = may attend. ids (..., n) says which text "
        "each token of a row belongs to; texts have any numbers.",
        (
            "Two conditions hold together. Which are they?",
            "The key does not come after the query, and both belong to the same text.",
            "ids[..., :, None] == ids[..., None, :], and a triangle: al.causal_mask(n).",
        ),
        probes=(
            Probe("two texts of 2 and 3 tokens", (np.array([0, 0, 1, 1, 1]),)),
            Probe("three texts with other numbers", (np.array([7, 7, 3, 5, 5, 5]),)),
            Probe("a batch of rows", (np.array([[2, 2, 2, 1], [0, 4, 4, 4]]),)),
            Probe("as many rows as tokens", (np.array([[1, 1, 2], [2, 1, 1], [3, 2, 1]]),)),
        ),
        **asked("packed", "ids", of=_Steps, axes=MAP_AXES, stage="mask"),
    ),
    Design(
        "sick_translator",
        'which of the three translators is sick, and what it has, as two letters: ("A", "a")',
        (
            "Look at what they write before you look at maps. Give them one text, then several of different lengths.",
            "One is wrong about short texts beside longer ones. Where do its digits look then?",
            "At the padding behind the short text.",
        ),
        judge=_judge_translator,
        names=("healthy_accused", *(id for id, _ in _CAUSES.values())),
    ),
)

QUESTIONS = (
    Question("mask_between", right="b", tempting="c").because(
        a="A triangle says that a later key is not there yet. The whole text that is read is there from the start.",
        b="Each digit may look at every letter. Only the padding of the text that is read is hidden.",
        c="What is written has a causal mask of its own, in the decoder. The other text is complete before it begins.",
    ),
    Question("sharp_or_pale", right="c", tempting="a").because(
        a="That was so in 'start here'. Here each digit needs one place of the other text, or two.",
        b="Sharper weights stay where they were, on the letter with the largest score.",
        c="Sharper weights stay on the letter that was largest before. Paler ones mix all the others in.",
    ),
    Question("hidden_mistake", right="b", tempting="a").because(
        a="The letters of the year are hidden from the first digits, and what the encoder wrote into others is not.",
        b="The encoder carries the year to letters that the first digits may see.",
        c="Nearly: some dates are lost, and the loss is about ten times that of the healthy model.",
    ),
    Question("needed_letter", right="b", tempting="a").because(
        a="The weights are as sharp for the month. But what one letter says of it, other letters say as well.",
        b="The last digit of a year or a day stands in one letter. A month is said by several, and one may often go.",
        c="Some are needed: change the last digit of a year, and the one that is written changes.",
    ),
)

RECALL = (
    Question("greedy_word", right="c", tempting="a").because(
        a="That is drawing, at temperature 1.",
        b="It is chosen anew at each step, by the logits of the last position.",
        c="The word with the largest logit is taken, and becomes part of the input.",
    ),
    Question("louder_query", right="b", tempting="c").because(
        a="All scores become ten times as large, and so do the differences between them.",
        b="The lead of the largest score grows tenfold, and the exponential makes nearly all of it.",
        c="The order of the scores stays. So the key with the largest weight stays, too.",
    ),
    Question("padding_hidden_from", right="a", tempting="c").because(
        a="It says which keys are tokens. So it blocks columns, for every query alike.",
        b="Then a query that is padding would have no key at all, and the padding would still be seen.",
        c="Values have no mask of their own: a key with weight 0 brings no value.",
    ),
)
