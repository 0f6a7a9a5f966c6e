"""All exercises, mistakes and questions of the lessons, by name."""

import difflib
import importlib
import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from . import lessons
from .engine.describe import Payoff
from .engine.questions import Recall, read_questions, tomllib
from .mistakes import SHARED
from .titles import heading, with_numbers


class Lesson(NamedTuple):
    """What a lesson's folder holds: EXERCISES of its exercises.py and so on, nothing where it has no such file."""

    folder: Path
    exercises: tuple
    mistakes: tuple
    payoffs: dict


def _read_lesson(slug):
    folder = Path(lessons.__path__[0]) / slug

    def load(name, nothing):
        if not (folder / f"{name}.py").is_file():
            return nothing
        return getattr(importlib.import_module(f"{lessons.__name__}.{slug}.{name}"), name.upper())

    told = folder / "payoffs.toml"
    words = tomllib.loads(told.read_text("utf-8")) if told.is_file() else {}
    payoffs = {name: Payoff(picture=None, **one) for name, one in words.items()} | load("payoffs", {})
    return Lesson(folder, load("exercises", ()), load("mistakes", ()), payoffs)


# The lessons that ask something, in the order of reading: those that have a folder.
_FOLDERS = {name for _, name, _ in pkgutil.iter_modules(lessons.__path__)}
LESSONS = {slug: _read_lesson(slug) for slug in lessons.ORDER if slug in _FOLDERS}


def by_name(things):
    """Return {name: thing} of pairs (lesson, exercise or question); raise where two have one name."""
    found, home = {}, {}
    for slug, thing in things:
        if thing.name in found:
            raise ValueError(
                f"an exercise or a question is found by its name, so no two may share one: {thing.name!r} stands in "
                f"lessons/{home[thing.name]} and in lessons/{slug}. Fix: give one of them another name."
            )
        found[thing.name], home[thing.name] = thing, slug
    return found


def complete(exercise, lesson):
    """Return an exercise with its heading, all mistakes that are looked for, and what a right answer shows.

    In the words of that the numbers of other exercises stand where it names them.
    """
    if payoff := lesson.payoffs.get(exercise.name):
        payoff = payoff._replace(meaning=with_numbers(payoff.meaning), next=with_numbers(payoff.next))
    return replace(exercise, mistakes=(*SHARED, *lesson.mistakes), heading=heading(exercise.name), payoff=payoff)


EXERCISES = by_name(
    (slug, complete(exercise, lesson)) for slug, lesson in LESSONS.items() for exercise in lesson.exercises
)
_ASKED = {slug: read_questions(lesson.folder / "questions.toml") for slug, lesson in LESSONS.items()}
PREDICTIONS = by_name((slug, question) for slug, asked in _ASKED.items() for question in asked["predict"])
# Three questions about earlier notebooks at the head of a notebook: predict.before_scaling and so on.
RECALLS = {
    (name := f"before_{slug}"): Recall(name, tuple(asked["recall"]))
    for slug, asked in _ASKED.items()
    if asked["recall"]
}
MISTAKES = {mistake.id: mistake for exercise in EXERCISES.values() for mistake in exercise.mistakes}


class _Named:
    """A dict's values as attributes; a name that is not there raises and suggests the nearest one."""

    _things, _kind, _call, _all = {}, "", "", ""

    def __getattr__(self, name):
        if name in self._things:
            return self._things[name]
        near = difflib.get_close_matches(name, self._things, 1)
        fix = f"did you mean {self._call}.{near[0]}?" if near else self._all
        raise AttributeError(f"there is no {self._kind} called {name!r}. Fix: {fix}")

    def __dir__(self):
        return list(self._things)


class Checks(_Named):
    """All exercises by name: ``check.softmax(my_softmax)`` returns a Verdict.

    >>> import numpy as np
    >>> check.attention_scores(lambda query, key: query @ np.swapaxes(key, -1, -2))
    ✓ 2.2 · Scores: right
    Sixteen dot products. Row she is the one from 1.2: 5, 0, 3, 2.
    Next: the whole formula, from a blank function.
    >>> check.attention_scores(lambda query, key: key @ np.swapaxes(query, -1, -2)).mistake
    'swapped_query_key'
    >>> check.causal_mask
    check.causal_mask: causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q
    of n_k tokens, and each sees itself and all before it.
    """

    _things, _kind, _call, _all = EXERCISES, "exercise", "check", "check shows all of them."

    def __repr__(self):
        first = "Exercises; hand in your answer, for example check.softmax(my_softmax):"
        return "\n".join([first, *map(repr, EXERCISES.values())])


class Predict(_Named):
    """All questions by name: ``predict.score_std("b")`` says what became of the guess.

    >>> predict.score_std("c")
    ✗ You chose c, right is b
    64 is the variance, the mean of the squares. The variances of 64 products add up to 64, and the standard deviation
    is the root of that.
    >>> predict.score_std()
    … No choice made yet
    Write one of "a", "b", "c" above, and run both cells again.
    """

    _things, _kind, _call = PREDICTIONS | RECALLS, "question", "predict"
    _all = f"one of {', '.join(_things)}."


check, predict = Checks(), Predict()
