"""Put a verdict into words: the answer is right, or what is wrong with it and where."""

import contextlib
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from attnlib.colours import KEY

from .compare import RIGHT, close
from .pictures import table
from .probes import DEAD
from .run import TIME_LIMIT, read_from_notebook
from .sandbox import TimeUp, time_limit
from .verdict import Verdict, matrix_around, number


class Payoff(NamedTuple):
    """What a right answer shows: what it means, a picture, and what comes next. A word between * is in italics.

    `picture` returns HTML, made by `engine.pictures`. It is given the numbers that were handed in; of code the function
    itself, which takes arrays and returns arrays, a module those of its probes: draw what the reader's own answer does.
    """

    meaning: str
    picture: Callable[[Any], str] | None
    next: str


WITHOUT_TORCH = (
    "This exercise asks for a torch module, and torch is missing here. Fix: pip install torch, and restart the kernel. "
    "A browser cannot run torch: there, open this notebook on a machine of your own."
)


def not_tried(exercise, message=""):
    """Return the Verdict on an exercise not tried yet, or that cannot be judged here; `message` says why."""
    return _verdict(exercise, "not tried", message)


def unfit(exercise, answer, error):
    """Return the Verdict on an answer that could not be tried."""
    hints = (hint for mistake in exercise.mistakes if mistake.id == error.id for hint in mistake.hints)
    verdict = _verdict(exercise, "wrong", str(error), mistake=error.id, hints=(*hints, *exercise.hints))
    return _and_what_it_reads(verdict, answer)


def _verdict(exercise, state, message, **more):
    return Verdict(exercise.name, state, message, **{"hints": exercise.hints, "heading": exercise.heading, **more})


def right(exercise, outcomes, ours, answer, remark=""):
    """Return the Verdict on a right answer, which called `ours` of libraries: (whose, name).

    The `answer` is what a picture is drawn from, `remark` stands last.
    """
    told, payoff, shown = "\n".join(filter(None, (remarks(exercise, outcomes, ours), remark))), exercise.payoff, {}
    if payoff:
        shown = {
            "meaning": payoff.meaning,
            "picture": draw_picture(payoff, answer) if payoff.picture else "",
            "next": payoff.next,
        }
    return _verdict(exercise, "right", told, hints=(), **shown)


def draw_picture(payoff, answer):
    """Return the picture of a right answer, or "" where it cannot be drawn: it stays right, and says nothing more."""
    with (
        contextlib.suppress(Exception, SystemExit, TimeUp),
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
        time_limit(TIME_LIMIT),
    ):
        return payoff.picture(answer)
    return ""


def remarks(exercise, outcomes, ours):
    """Return remarks on a right answer."""
    lines = [outcome.told[1] for outcome in outcomes if outcome.told and outcome.told[1]]
    for whose in sorted({whose for whose, name in ours if name}):
        names = " and ".join(sorted(exercise.name if n == "forward" else n for by, n in ours if by == whose and n))
        lines.append(f"Remark: {whose}'s own {names} does the work here. The exercise is to write that yourself.")
    if exercise.answer_is_code and not exercise.returns_weights and not lines and any(o.tensor for o in outcomes):
        lines.append(
            "Remark: you return torch tensors; attnlib's function of this name takes and returns NumPy arrays."
        )
    elif exercise.answer_is_code and not exercise.returns_weights and ours == {("torch", "")}:
        lines.append("Remark: torch computes here. The exercise asks for NumPy.")
    return "\n".join(lines)


def wrong(exercise, answer, difference, mistakes, located, remark=""):
    """Return the Verdict on a wrong answer: the mistakes that explain it, or the stage, and its first difference.

    `located` is (stage or None, what was measured), or None if no stage was looked for; `remark` stands last.
    """
    lines, arrays, probe, outcome = [], {}, difference.probe, difference.outcome
    stage, detail = located or (None, "")
    if mistakes:
        lines.append(in_words(mistakes, exercise.subject))
    if difference.place > 0:
        lines.append(f"Right so far; the first difference is on {probe.name}.")
    elif len(exercise.probes) > 1:
        lines.append(f"Tried on {probe.name}.")
    if outcome.kind == "untried":
        lines.append("Here your function returns None. Fix: every branch needs its own return.")
    elif outcome.kind:
        lines.append(outcome.problem)
    elif probe.says and difference.part == 0:
        lines.append(probe.says(difference.yours, difference.expected))
        arrays = {"yours": difference.yours, "expected": difference.expected} if probe.drawn else {}
    elif outcome.told and outcome.told[0] != RIGHT:
        lines.append(outcome.told[1])
    else:
        text, arrays = _difference(exercise, difference)
        if not exercise.answer_is_code and ", expected" in text and difference.yours.shape == difference.expected.shape:
            text = text[: text.rindex(", expected")] + "."  # the expected numbers are the whole solution
            arrays = {"picture": _row_of(difference)} if difference.yours.ndim == 1 else {}
            if not mistakes and _may_be_rounded(difference.yours, difference.expected):
                text += " That is close. If you have rounded, give more digits."
        if stage and (exercise.reveal or detail):  # an exercise about one step has no other
            lines.append(f"The first stage that differs: {stage}. {detail}".rstrip())
        elif located and not stage and exercise.reveal:
            lines.append(f"Which stage is the first to differ could not be told. {detail}".rstrip())
        lines += [text, *_beside(mistakes, probe, text)]
    lines.append(remark)
    first = tuple(hint for mistake in mistakes for hint in mistake.hints)
    # The first hint of an exercise is a nudge, and says less than those of a mistake that has a name.
    hints = (*first, *exercise.hints[bool(mistakes) :])
    text, id = "\n".join(filter(None, lines)), " + ".join(m.id for m in mistakes) or None
    verdict = _verdict(exercise, "wrong", text, mistake=id, stage=stage, axes=exercise.axes, hints=hints, **arrays)
    return _and_what_it_reads(verdict, answer)


def _and_what_it_reads(verdict, answer):
    """Add which names the code reads from the notebook: an argument may have been meant."""
    verdict.message = "\n".join(filter(None, (verdict.message, read_from_notebook(answer))))
    return verdict


def in_words(mistakes, subject):
    """Describe the mistakes. Add the symptom only for a single one: two can hide each other's."""
    if len(mistakes) == 1:
        return f"{subject} as if {mistakes[0].behaves_as_if}. {mistakes[0].symptom}"
    return f"Two mistakes at once: {subject} as if {', and as if '.join(m.behaves_as_if for m in mistakes)}."


def _beside(mistakes, probe, text):
    """Report NaN from a fully masked row if the named mistake does not mention it."""
    said = any(mistake.id == "nan_on_fully_masked" for mistake in mistakes)
    if not mistakes or said or probe.name != DEAD or "holds NaN" not in text:
        return []
    return ["A second thing to mend: a query that may attend to no key gets NaN, where 0 belongs."]


def _may_be_rounded(yours, right):
    """Tell whether rounding, at the end or in between, explains the difference; it cannot if all numbers are short."""
    if right.size > 1 and (right == right.round()).all():
        return False
    if right.size == 1 and (right == right.round(2)) & (yours == yours.round(2)):
        return False
    places = range(right.size == 1, 3)  # a single number rounded to an integer is rather another number
    return close(yours, right, 0.01) or any(close(yours, right.round(n), 1e-9) for n in places)


def _difference(exercise, difference):
    """Return (text, arrays to draw) for the first value that differs."""
    if difference.part is None:
        return "Your result is right, but the arrays you were given have changed. Fix: work on a copy.", {}
    name, x, y = ("", "weights: ")[difference.part], difference.yours, difference.expected
    if not exercise.answer_is_code and not y.shape and x.shape:
        return "One number is asked for, not a list or an array. Fix: without brackets, and with a point: 0.75.", {}
    if x.shape != y.shape:
        return f"{name}Your result has shape {x.shape}, expected {y.shape}.", {}
    index = difference.index
    if index is None:
        want = "bool (True = may attend)" if y.dtype == bool else f"{y.dtype} or wider"
        return f"{name}Your result has dtype {x.dtype}, expected {want}.", {}
    at = f"First difference at {list(index)}: yours" if index else "Yours is"
    text = f"{name}{at} {_entry(x[index])}, expected {_entry(y[index])}."
    if np.isnan(x).any() and not np.isnan(y).any():
        text = f"{name}Your result holds NaN ({int(np.isnan(x).sum())} of {x.size} entries). " + text
    if x.size == 1:
        return text, {}
    return text, {"yours": matrix_around(x, index), "expected": matrix_around(y, index)}


def _row_of(difference):
    """Draw a row of numbers as handed in, the first that differs in a frame."""
    cells = [_entry(x) for x in difference.yours]
    (at,) = difference.index
    cells[at] = f'<span style="outline:2px solid {KEY};padding:1px 6px">{cells[at]}</span>'
    return table([["yours", *cells]])


def _entry(x):
    if x.dtype == bool:
        return str(bool(x))
    return f"{x:.0f}" if 1000 < abs(x) < 1e9 and x == np.round(x) else number(x)
