"""Three translators of dates, one of them sick, and the judge of who it is and what it has."""

from functools import partial

from attnlib import masks

from ... import dates
from ...engine.compare import RIGHT
from ...engine.run import Unfit


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


CAUSES = {
    "a": ("own_text_read", "Then no date would be right, and here each is, if it comes alone."),
    "b": ("future_letters_hidden", "Then a year at the end of a text would be lost, also in a text that comes alone."),
    "d": ("shifted_by_padding", "Here the padding stands at the right: every text begins at position 0."),
    "e": ("paler_is_not_wrong", "Its weights on letters are as they were in training, where a text comes alone."),
}


def judge_translator(answer):
    """Judge (letter of the translator, letter of the cause)."""
    if not isinstance(answer, tuple | list) or len(answer) != 2 or not all(isinstance(x, str) for x in answer):
        raise Unfit(f'Hand in two letters, ("A", "a") for instance; you hand in {answer!r:.60}. Fix: (who, what).')
    who, what = answer[0].upper(), answer[1].lower()
    if who not in "ABC" or what not in "abcde" or len(who + what) != 2:
        raise Unfit(f"There are translators A to C and causes a to e, got {answer!r:.60}. Fix: a letter of each.")
    if who != "B":
        return "healthy_accused", f"{who} writes as well as ours does, whatever stands beside a text."
    return (RIGHT, "") if what == "c" else CAUSES[what]
