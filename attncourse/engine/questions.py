"""Questions to answer before a result is shown, or from memory; `predict` says which answer is right and why."""

import re
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from .verdict import BOX, TINTS, as_html, printable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = {"recall": {"right", "tempting", "because"}, "predict": {"right", "tempting", "because", "asked"}}


@dataclass(frozen=True)
class Question:
    """A question of a notebook; its text and options stand there.

    Attributes
    ----------
    right, tempting : str
        Letters, of the right option and of the wrong one that comes to mind first (a judgement: nobody has counted).
    because : dict
        Of each option, by its letter, why it is right or wrong.
    asked, spoken
        As a room hears it: what is asked, and the options that are too long for that in the notebook, by letter.
    """

    name: str
    right: str
    tempting: str
    because: dict
    asked: str = ""
    spoken: dict = field(default_factory=dict)

    def __call__(self, guess: str | None = None) -> "Revealed":
        """Return the Revealed for a guess, a letter, "B" or "b)" too; None means that no choice was made."""
        return Revealed(self, letter(guess))

    @property
    def options(self):
        return sorted(self.because)


def read_questions(path):
    """Return {"recall": questions, "predict": questions} of a lesson's file.

    A table is a question: `[recall.name]` opens a notebook, `[predict.name]` stands before a result. Its lines are the
    attributes of a Question; `because.a = "..."` says why option a is right or wrong.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: questions are TOML, and this is not: {error}. Fix: mend that line.") from None
    if unknown := set(found) - set(KINDS):
        raise ValueError(
            f"{path}: a question is [recall.name] or [predict.name], here is [{min(unknown)}]. Fix: write one of them."
        )
    return {kind: [_question(path, kind, *row) for row in found.get(kind, {}).items()] for kind in KINDS}


def _question(path, kind, name, fields):
    where, needed = f"{path}, [{kind}.{name}]", KINDS[kind]
    if set(fields) - {"spoken"} != needed:
        raise ValueError(
            f"{where}: such a question has {', '.join(sorted(needed))}, and may have spoken. This one has "
            f"{', '.join(sorted(fields))}. Fix: these lines and no others."
        )
    right, tempting, spoken = fields["right"], fields["tempting"], fields.get("spoken", {})
    if right == tempting or not {right, tempting, *spoken} <= set(fields["because"]):
        raise ValueError(
            f"{where}: right and tempting are two letters, and because says of these and of all in spoken why. Here "
            f"they are {right}, {tempting} and {', '.join(spoken) or 'none'}, because has "
            f"{', '.join(fields['because'])}. Fix: mend a letter, or say why."
        )
    return Question(name, **fields)


def letter(guess):
    """Return the letter of a guess such as "B", "b)" or "(b) "; anything else as it is."""
    found = isinstance(guess, str) and re.fullmatch(r"\W*([a-z])\W*", guess.lower())
    return found[1] if found else guess


class _Shown:
    """What shows itself in a notebook: `_texts` are titles, each with a text."""

    def __repr__(self):
        return "\n".join(line for texts in self._texts() for line in texts if line)

    def __str__(self):
        return printable(repr(self))

    def _repr_html_(self):
        return "".join(map(_box, self._texts()))


@dataclass(repr=False, eq=False)
class Revealed(_Shown):
    """What became of a guess. It shows itself in a notebook."""

    question: Question
    guess: str | None = None

    @property
    def right(self):
        """True or False; None where no choice was made."""
        return self.guess == self.question.right if self.guess in self.question.options else None

    def _texts(self):
        return [self._in_words()]

    def _in_words(self):
        """Return a title, and why an option is right or wrong."""
        q, why = self.question, self.question.because
        letters = ", ".join(f'"{letter}"' for letter in q.options)
        if self.guess is None:
            return "… No choice made yet", f"Write one of {letters} above, and run both cells again."
        if self.right is None:
            return f"… {self.guess!r} is not one of the options", f"Choose one of {letters}."
        if self.right:
            also = "" if q.asked else f" Tempting, but wrong: {q.tempting}. {why[q.tempting]}"  # no result is shown
            return f"✓ {q.right} is right", why[q.right] + also
        title = f"✗ You chose {self.guess}, right is {q.right}"
        return title, f"{why[self.guess]} {why[q.right]}"


class Recall(NamedTuple):
    """Questions about earlier notebooks, answered together: ``predict.before_scaling("b", "a", "c")``."""

    name: str
    questions: tuple

    def __call__(self, *guesses: str | None) -> "Recalled":
        """Return the Recalled for a letter or None for each question."""
        if len(guesses) != len(self.questions):
            raise TypeError(
                f"predict.{self.name} takes {len(self.questions)} letters, one for each question, you gave "
                f"{len(guesses)}. Fix: write None for a question that you leave out."
            )
        return Recalled(tuple(question(guess) for question, guess in zip(self.questions, guesses, strict=True)))


@dataclass(repr=False, eq=False)
class Recalled(_Shown):
    """What became of the guesses of a Recall, each a Revealed. It shows itself in a notebook."""

    revealed: tuple

    def _texts(self):
        if all(one.guess is None for one in self.revealed):
            return [("… No choice made yet", "Write a letter in place of each None, and run the cell again.")]
        texts = [one._in_words() if one.guess is not None else ("… left out", "") for one in self.revealed]
        return [(f"{i}  {title}", text) for i, (title, text) in enumerate(texts, 1)]


def _box(texts):
    title, text = map(as_html, texts)
    return (
        f'<div style="{BOX.format(next(TINTS[mark] for mark in TINTS if mark in title))};margin:4px 0">'
        f"<strong>{title}</strong><div>{text}</div></div>"
    )
