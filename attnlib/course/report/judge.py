"""Judge what a class handed in for one notebook: in a process that holds the names of the series.

This process runs the cells of the series in order, with its solutions. At each exercise it makes a copy of itself for
each answer, which runs the student's cells there and sends back plain data; here the data are judged. So no answer
meets another, an earlier broken cell spoils no later exercise, and no student's code runs where the judge is.
"""

import ast
import contextlib
import importlib
import io
import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

from ..catalogue import EXERCISES
from ..chapters.n10.puzzle import Puzzle
from ..engine.run import TIME_LIMIT, Outcome, Unfit, Unmeasured, judged
from ..engine.sandbox import TimeUp, time_limit
from ..mine import names_used
from .apart import NoAnswer, Recorded, Replayed, apart
from .series import Series, read
from .submissions import Submission


def judgements(notebook, submissions):
    """Yield {which, number, state, mistakes, why} for each exercise of a notebook and each submission."""
    namespace, place, trouble = {"__name__": "__main__", "display": lambda *things, **options: None}, 0, ""
    for task in notebook.tasks:
        try:
            for cell in notebook.cells[place : task.place]:
                if cell["cell_type"] == "code":
                    _run(cell["source"], namespace)
        except Exception as error:
            trouble = trouble or f"the series' own cells do not run here: {type(error).__name__}: {error}"
        for submission in submissions:
            state, mistakes, why = judged_one(task, submission, notebook, namespace, trouble)
            yield {
                "which": submission.which,
                "number": task.number,
                "state": state,
                "mistakes": [mistake.id for mistake in mistakes],
                "why": why,
            }
        with contextlib.suppress(Exception):
            _run(task.solution, namespace)
        place = task.place + 1


def _run(source, namespace):
    exec(compile(source, "<cell>", "exec"), namespace)


def judged_one(task, submission, notebook, namespace, trouble=""):
    """Return (state, mistakes, why it could not be told) of one answer."""
    cells, others = submission.cells_of(task, notebook.ids)
    if not cells:
        return "could not tell", (), "its cell is missing"
    if all(source.strip() == task.stub.strip() for source in cells):
        return "not tried", (), ""
    if trouble:
        return "could not tell", (), trouble
    where, name = task.judge
    answer = _Answer(task, cells, others, namespace)
    try:
        if where == "patients":
            return *_of_patient(name, answer), ""
        return *_of_exercise(EXERCISES[name], answer), ""
    except NoAnswer as error:
        return "could not tell", (), str(error)
    except (Exception, TimeUp):  # of data that no answer sends
        return "could not tell", (), "what came back cannot be read"


class _Answer:
    """An answer of a student's, to be run in a copy of this process."""

    def __init__(self, task, cells, others, namespace):
        self.task, self.cells, self.others, self.namespace = task, cells, others, namespace

    def values(self):
        """Run the cells and return what stands in the call of the check; only the copy may do so."""
        for name in self.task.answers:
            self.namespace.pop(name, None)
        cells = [without_magics(source) for source in self.cells]
        error = None
        for source in [*helpers(cells, map(without_magics, self.others), self.namespace), *cells]:
            try:
                _run(source, self.namespace)
            except Exception as raised:
                error = raised
        arguments = [ast.unparse(argument) for argument in self.task.call.args]
        try:
            return [eval(argument, self.namespace) for argument in arguments]
        except NameError:
            what = f"raises {type(error).__name__}" if error else f"defines no {' and no '.join(self.task.answers)}"
            raise NoAnswer(f"its cell {what}") from None


def without_magics(source):
    """Return a cell in which lines for IPython, such as %timeit and !pip, do nothing."""
    try:
        ast.parse(source)
        return source
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)


def helpers(cells, others, namespace):
    """Return the definitions and imports of other cells that these cells need and the series does not have."""
    needed, known, found = list(cells), set(namespace), {}
    definitions = {}
    for source in others:
        with contextlib.suppress(MemoryError, RecursionError, SyntaxError, ValueError):
            for node in ast.parse(source).body:
                definitions |= dict.fromkeys(_bound(node), ast.unparse(node))
    while needed:
        with contextlib.suppress(MemoryError, RecursionError, SyntaxError, ValueError):
            for name in names_used(needed.pop()):
                if name in definitions and name not in known and name not in found:
                    found[name] = definitions[name]
                    needed.append(definitions[name])
    return list(dict.fromkeys(reversed(found.values())))


def _bound(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    return []


# --- exercises that a check of the catalogue judges


def _of_exercise(exercise, answer):
    """Return (state, mistakes) of an answer to an exercise of the catalogue."""
    if isinstance(exercise, Puzzle):  # its function gives matrices: they are all there is to judge
        return _of_puzzle(exercise, apart(lambda: _called(*answer.values())))
    told = apart(lambda: _tried(exercise, *answer.values()))
    if told in ("not tried", "unfit"):
        return {"unfit": "wrong"}.get(told, told), ()
    try:
        with time_limit(TIME_LIMIT):
            found = [_outcome(exercise, probe, *of_one) for probe, of_one in zip(exercise.probes, told, strict=False)]
    except Unmeasured as error:
        raise NoAnswer(str(error)) from None
    except Unfit:
        return "wrong", ()
    stopped = next((outcome.problem for outcome in found if outcome.kind in ("late", "ended")), "")
    if stopped:
        raise NoAnswer(f"it did not finish within {TIME_LIMIT:g} seconds")
    if any("raises NameError" in outcome.problem for outcome in found):
        raise NoAnswer("it uses a name that its cells do not define")
    return exercise.judged(None, found)


def _tried(exercise, answer):
    """Return "not tried", "unfit", or of each probe what an Outcome holds; where a judge speaks, what it is given."""
    if answer is None or answer is ...:
        return "not tried"
    if exercise.judge:
        exercise = replace(exercise, judge=lambda result, *arguments: ("given", result))
    try:
        return [list(outcome) for outcome in exercise.tried(exercise.adapt(answer))]
    except Unfit:
        return "unfit"


def _outcome(exercise, probe, values, kind, problem, mutated, tensor, told):
    """Return the Outcome of a probe, judged here if the exercise has a judge."""
    if told:
        lists = not exercise.answer_is_code
        return judged(exercise.judge, told[1], probe.args, lists)._replace(mutated=mutated, tensor=tensor)
    return Outcome(values, kind, problem, mutated, tensor)


def _called(answer):
    return answer() if callable(answer) else answer


def _of_puzzle(puzzle, matrices):
    """Return (state, mistakes) of the matrices that a puzzle asks for."""
    try:
        function = puzzle.adapt(lambda: matrices)
        return puzzle.judged(function, [puzzle.run(function, probe.args) for probe in puzzle.probes])
    except Unfit:
        return "wrong", ()


# --- exercises of notebook 07


def _of_patient(name, answer):
    """Return (state, no mistakes): a probe is called in the copy, and judged here by what its calls gave."""
    check = getattr(importlib.import_module("attnlib.course.patients"), name)  # it needs torch

    def called():
        values = [_recordable(value) for value in answer.values()]
        check(*values)
        return [{"calls": value.log} if isinstance(value, Recorded) else value for value in values]

    values = [Replayed(value["calls"]) if isinstance(value, dict) else value for value in apart(called)]
    state = check(*values).state
    if not all(value.whole for value in values if isinstance(value, Replayed)):
        raise NoAnswer("its calls cannot be repeated")
    return state, ()


def _recordable(value):
    return Recorded(value) if callable(value) and not isinstance(value, type) else value


# --- a process of its own


def main():
    """Read {"notebook": path, "submissions": [fields]} from stdin; the last line of stdout holds the judgements."""
    asked = json.loads(sys.stdin.read())
    path = Path(asked["notebook"])
    notebook = Series(path, read(path))
    submissions = [
        Submission(which, Path(shown), shown, read(Path(where)), notebook.number)
        for which, where, shown in asked["submissions"]
    ]
    os.chdir(path.parent)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = list(judgements(notebook, submissions))
    print("\n" + json.dumps(found))
