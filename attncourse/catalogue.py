"""All exercises, mistakes and questions of the notebooks, by name."""

import difflib
import importlib
import pkgutil
import re
from dataclasses import replace

from . import chapters
from .engine.questions import Recall
from .mistakes import SHARED

# Read the folder, not notebooks/series.toml: on Colab the package comes without it. A test compares the two.
_NUMBERS = sorted(name[1:] for _, name, _ in pkgutil.iter_modules(chapters.__path__) if re.fullmatch(r"n\d\d", name))
CHAPTERS = {number: importlib.import_module(f".n{number}", chapters.__name__) for number in _NUMBERS}

EXERCISES = {
    exercise.name: replace(exercise, mistakes=(*SHARED, *chapter.OWN))
    for chapter in CHAPTERS.values()
    for exercise in getattr(chapter, "EXERCISES", ())
}
PREDICTIONS = {question.name: question for chapter in CHAPTERS.values() for question in chapter.QUESTIONS}
# Three questions about earlier notebooks at the head of a notebook: predict.before_03 and so on.
RECALLS = {
    (name := f"before_{number}"): Recall(name, chapter.RECALL)
    for number, chapter in CHAPTERS.items()
    if hasattr(chapter, "RECALL")
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
    ✓ attention_scores: right
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
