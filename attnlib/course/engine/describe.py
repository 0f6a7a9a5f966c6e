"""Grade an answer: compare it with the reference and with every known mistake, and put the result into words."""

import contextlib
import sys
from functools import partial

import numpy as np

from .explain import all_same, in_words
from .locate import locate
from .probes import DEAD
from .run import (
    TIME_LIMIT,
    TimeUp,
    Unfit,
    calls_into_attnlib,
    close,
    late,
    near,
    read_from_notebook,
    same,
    time_limit,
)
from .verdict import Verdict, matrix_around, number

# Before the hints of an attention exercise: to look at, then to do, if the stage that is wrong was found.
STAGE_HINTS = {
    "scores": (
        "The scores differ by more than a factor. Which query and which key meet in entry (i, j)?",
        "Before scaling, entry (i, j) is the dot product of row i of Q and row j of K.",
    ),
    "scale": (
        "The scores are right up to a factor. What are they divided by?",
        "Divide by the square root of the length of one query, once, before the softmax.",
    ),
    "mask": (
        "Without a mask the weights are right. Which scores does the mask change, and into what?",
        "Where the mask is False, the scaled score becomes -inf, before the softmax.",
    ),
    "projections": (
        "With the right queries and keys your weights are right. What comes before them?",
        "Each projection is a product with a whole matrix, queries with W_Q, keys with W_K, values with W_V.",
    ),
    "heads": (
        "With one head the output is right. Which axis do several heads add, and where does it stand?",
        "Split the features into heads, bring the head axis before the tokens, and undo both when merging.",
    ),
    "softmax": (
        "Look at the sum of each row of your weights, also where every key is blocked or a score is very large.",
        "The softmax runs over the keys, minus the largest score of each row; a row without any key becomes 0.",
    ),
    "returned weights": (
        "The output is right. What happens to the weights between mixing the values and `return`?",
        "Return the very weights that multiply V, one row for each query: each row sums to 1.",
    ),
    "output": (
        "The weights are right. What is done with them?",
        "Row i of the output is the sum of the rows of V, each times its weight in row i.",
    ),
}


def outcomes(exercise, function, **options):
    """Return the outcome of `function` on every probe; stop at the first that does not end or was not tried."""
    calls = [partial(exercise.run, function, probe.args, **options) for probe in exercise.probes]
    safe, broken = _rehearsed(calls) if exercise.code else (len(calls), None)
    found = []
    try:
        with time_limit(TIME_LIMIT):
            for run in calls[:safe]:
                found.append(run())
                if found[0].kind == "untried":
                    return found
    except TimeUp:
        broken = late(TIME_LIMIT)
    return [*found, broken] if broken else found


def _rehearsed(calls):
    if sys.platform != "linux" or sys.gettrace():  # a debugger would follow the copy
        return len(calls), None
    from .sandbox import rehearse

    with contextlib.suppress(OSError):  # no room for a copy
        return rehearse(calls, TIME_LIMIT)
    return len(calls), None


def examine(exercise, answer):
    """Return the Verdict on an answer."""
    if answer is None or answer is ...:
        return _untried(exercise)
    try:
        function = exercise.adapt(answer)
        with calls_into_attnlib({exercise.name, *exercise.own}) as own:
            found = outcomes(exercise, function)
            if _errors(found) and "torch" in sys.modules:  # perhaps it is written for tensors
                as_tensors = outcomes(exercise, function, tensors=True)
                found = as_tensors if _errors(as_tensors) < _errors(found) else found
    except Unfit as error:
        return _and_what_it_reads(Verdict(exercise.name, "wrong", str(error), hints=exercise.hints), answer)
    if found[0].kind == "untried":
        return _untried(exercise, returned=True)
    if all_same(exercise, found, exercise.expected):
        return Verdict(exercise.name, "right", _remarks(exercise, found, own))
    mistakes = exercise.explain(function, found)
    return _and_what_it_reads(_wrong(exercise, function, found, mistakes), answer)


def _and_what_it_reads(verdict, answer):
    """Add a fact that may explain a wrong answer: a name of the notebook stands where an argument may be meant."""
    verdict.message = "\n".join(filter(None, (verdict.message, read_from_notebook(answer))))
    return verdict


def _errors(found):
    return sum(outcome.kind == "raised" for outcome in found)


def _untried(exercise, returned=False):
    return Verdict(exercise.name, "not tried", exercise.untried if returned else "", hints=exercise.hints)


def _remarks(exercise, found, own):
    """Return what a right answer is told all the same."""
    lines = []
    if own:
        names = " and ".join(sorted(exercise.name if name == "forward" else name for name in own))
        lines.append(f"Remark: attnlib's own {names} does the work here. The exercise is to write that yourself.")
    if not exercise.many and any(outcome.tensor for outcome in found):
        lines.append(
            "Remark: you return torch tensors; attnlib's function of this name takes and returns NumPy arrays."
        )
    return "\n".join(lines)


def _wrong(exercise, function, found, mistakes):
    """Describe the first probe that goes wrong."""
    tried = list(zip(found, exercise.expected, exercise.probes, strict=False))
    i = next(i for i, (outcome, right, probe) in enumerate(tried) if not same(outcome, right, probe.tolerance))
    outcome, right, probe = tried[i]
    lines, stage, detail, arrays = [], None, "", {}
    if mistakes:
        lines.append(in_words(mistakes, exercise.subject))
    if i > 0:
        lines.append(f"Right so far; the first difference is on {probe.name}.")
    elif len(exercise.probes) > 1:
        lines.append(f"Tried on {probe.name}.")
    if outcome.kind == "untried":
        lines.append("Here your function returns None. Fix: every branch needs its own return.")
    elif outcome.kind:
        lines.append(outcome.problem)
    elif probe.says and not close(outcome.values[0], right.values[0], probe.tolerance):
        yours, expected = outcome.values[0], right.values[0]
        lines.append(probe.says(yours, expected))
        arrays = {"yours": yours, "expected": expected} if probe.drawn else {}
    elif exercise.judged and not close(outcome.values[0], right.values[0], probe.tolerance):
        lines.append(outcome.words or exercise.judged.says(outcome.values[0], right.values[0]))
    else:
        text, arrays = _difference(exercise, outcome, right, probe)
        if not exercise.code and ", expected" in text and outcome.values[0].shape == right.values[0].shape:
            text, arrays = text[: text.rindex(", expected")] + ".", {}  # the expected numbers are the whole solution
            if not mistakes and _may_be_rounded(outcome.values[0], right.values[0]):
                text += " That is close. If you have rounded, give four digits or more."
        if not mistakes and arrays:
            with contextlib.suppress(TimeUp), time_limit(TIME_LIMIT):
                stage, detail = locate(exercise, function, probe, outcome)
            if stage and (exercise.reveal or detail):  # an exercise about one step has no other
                lines.append(f"The first stage that differs: {stage}. {detail}".rstrip())
            elif not stage and exercise.reveal:
                lines.append(f"Which stage is the first to differ could not be told. {detail}".rstrip())
        lines += [text, *_beside(mistakes, probe, text)]
    first = tuple(m.hint for m in mistakes)
    if not mistakes and exercise.reveal:
        first = STAGE_HINTS.get(stage, ())
    hints = (*first, *exercise.hints)
    text, id = "\n".join(lines), " + ".join(m.id for m in mistakes) or None
    return Verdict(exercise.name, "wrong", text, id, stage, axes=exercise.axes, hints=hints, **arrays)


def _beside(mistakes, probe, text):
    """Return what a named mistake does not say: a row of 0 / 0 is NaN, as overflow is, and a second thing to mend."""
    said = any(mistake.id == "nan_on_fully_masked" for mistake in mistakes)
    if not mistakes or said or probe.name != DEAD or "holds NaN" not in text:
        return []
    return ["A second thing to mend: a query that may attend to no key gets NaN, where 0 belongs."]


def _may_be_rounded(yours, right):
    """Tell whether rounding, at the end or on the way, can explain the difference; of whole numbers it cannot."""
    if right.size > 1 and (right == right.round()).all():
        return False
    return close(yours, right, 0.01) or any(close(yours, right.round(places), 1e-9) for places in range(3))


def _difference(exercise, outcome, right, probe):
    """Return (text, arrays to draw) for the first value that differs."""
    for name, x, y in zip(("", "weights: "), outcome.values, right.values, strict=False):
        if close(x, y, probe.tolerance):
            continue
        if not exercise.code and not y.shape and x.shape:
            return "One number is asked for, you hand in a list. Fix: the number alone, without brackets.", {}
        if x.shape != y.shape:
            return f"{name}Your result has shape {x.shape}, expected {y.shape}.", {}
        if (x.dtype == bool) != (y.dtype == bool) or x.dtype == np.float16:
            want = "bool (True = may attend)" if y.dtype == bool else f"{y.dtype} or wider"
            return f"{name}Your result has dtype {x.dtype}, expected {want}.", {}
        a, b = x.astype(np.float64), y.astype(np.float64)
        index = tuple(int(k) for k in np.argwhere(~near(a, b, probe.tolerance))[0])
        at = f"First difference at {list(index)}: yours" if index else "Yours is"
        text = f"{name}{at} {_entry(x[index])}, expected {_entry(y[index])}."
        if np.isnan(a).any() and not np.isnan(b).any():
            text = f"{name}Your result holds NaN ({int(np.isnan(a).sum())} of {a.size} entries). " + text
        if a.size == 1:
            return text, {}
        return text, {"yours": matrix_around(a, index), "expected": matrix_around(b, index)}
    return "Your result is right, but the arrays you were given have changed. Fix: work on a copy.", {}


def _entry(x):
    if x.dtype == bool:
        return str(bool(x))
    return f"{x:.0f}" if 1000 < abs(x) < 1e9 and x == np.round(x) else number(x)
