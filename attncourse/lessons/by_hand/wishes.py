"""What each word looks for: a W_Q that gives every word of the sentence what it needs."""

import math

import numpy as np

from attnlib.core import softmax
from attnlib.examples import SENTENCE, WORDS

from ...engine.compare import RIGHT
from ...engine.run import Unfit, numbers

# 1.5: what each word of the sentence needs, and from whom it should take at least so much.
_WANTED = {"Anna": {"saw"}, "saw": {"Ben"}, "Ben": {"saw"}, "she": {"Anna"}}
_ENOUGH = 0.9
_NAMES = {"Anna", "Ben"}
_SAME = 1e-9  # weights that differ by less are equal


def judge_wishes(W_Q):
    try:
        W_Q = numbers(W_Q, lists=True)
    except Unfit:
        W_Q = np.empty(0)
    if W_Q.shape != SENTENCE.W_Q.shape or not np.isfinite(W_Q).all():
        raise Unfit(
            "W_Q must be 6 rows of 3 finite numbers: a row for each feature of a token, a column for each of a query. "
            "Fix: [[0, 0, 3], [0, 0, 0], [0, 2, 0], [1, 0, 0], [3, 0, 0], [0, 0, 0]] has the form."
        )
    looks = _looks(W_Q)
    if _all_right(looks):
        return RIGHT, ""
    if _all_right(_looks(W_Q * np.array([[1], [1], [1], [1], [1], [0]]))):
        return None, "Rows 0 to 4 alone would be right. Row 5 goes into the queries of Anna and Ben, times 2 and -2."
    sentence = " ".join(_whom_in_words(word, *looks[word]) for word in WORDS)
    return _mistake({word: whom for word, (whom, _) in looks.items()}), sentence


def _looks(W_Q):
    """Return for each word those from which it takes most, and whether that is enough."""
    _, key, _ = SENTENCE.project()
    weights = softmax(SENTENCE.x @ W_Q @ key.T / math.sqrt(key.shape[-1]))
    most = weights.max(axis=-1)
    return {
        word: ({other for other, w in zip(WORDS, row, strict=True) if w > top - _SAME}, bool(top >= _ENOUGH))
        for word, row, top in zip(WORDS, weights, most, strict=True)
    }


def _all_right(looks):
    return all(looks[word] == (wanted, True) for word, wanted in _WANTED.items())


def _mistake(whom):
    """Return the id of what explains from whom each word takes most; None if nothing does."""
    wrong = {word: looks for word, looks in whom.items() if looks != _WANTED[word]}
    if not wrong:
        return "wish_too_faint"
    if all(looks == {*WORDS} for looks in wrong.values()):  # scores are equal for a query of zeros alone
        return "looks_for_nothing"
    if all(looks <= _NAMES for looks in whom.values()):
        return "one_wish_for_all"
    if wrong.keys() <= {"saw", "she"} and all(looks == _NAMES for looks in wrong.values()):
        return "any_name"
    if wrong == {"saw": {"Anna"}}:
        return "subject_for_object"
    return _PATTERNS.get(tuple(frozenset(whom[word]) for word in WORDS))


def _whom_in_words(word, whom, enough):
    """Say what is wanted beside what was found; that a share is too small only where it is of the right word."""
    wanted = _WANTED[word]
    *some, last = (other for other in WORDS if other in whom)
    others = f"{', '.join(some)} and {last}" if some else last
    if len(whom) == len(WORDS):
        sentence = f"{word} takes from all words alike"
    elif len(whom) > 1:
        sentence = f"{word} cannot decide between {others}"
    else:
        sentence = f"{word} {'finds' if enough else 'takes most from'} {others}"
    if whom == wanted:
        return f"{sentence}." if enough else f"{sentence}, but less than {_ENOUGH}."
    return f"{sentence} (wanted: {min(wanted)})."


def _pattern(W_Q):
    looks = _looks(W_Q)
    return tuple(frozenset(looks[word][0]) for word in WORDS)


# One of many right answers: names look for verbs, the verb for a name that is not female.
_WISHES = np.array([[0.0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]])
_PATTERNS = {_pattern(SENTENCE.W_K): "looks_for_itself", _pattern(-_WISHES): "wish_turned_round"}
