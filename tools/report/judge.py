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
import linecache
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from attncourse import EXERCISES
from attncourse.engine import describe
from attncourse.engine.run import TIME_LIMIT, Outcome, Unfit, Unmeasured, calls_into_libraries, outcome_of_judge
from attncourse.engine.sandbox import TimeUp, time_limit
from attncourse.lessons.program_a_head.puzzle import Puzzle
from attncourse.mine import names_used

from .apart import NoAnswer, Recorded, Replayed, apart
from .notebooks import Series, read_cells
from .submissions import Submission

OF_TORCH = re.compile(r"^\s*(?:import|from) .*\btorch(?:_layers)?\b", re.MULTILINE)


def judgements(notebook, submissions):
    """Yield {which, number, state, mistakes, why, cell, remark} for each exercise of a notebook and each submission."""
    namespace, place, trouble = {"__name__": "__main__", "display": lambda *things, **options: None}, 0, ""
    if any(OF_TORCH.search(cell["source"]) for submission in submissions for cell in submission.cells):
        with contextlib.suppress(ImportError):  # in a copy the import is refused, because torch loads libraries in C
            importlib.import_module("torch")
    for task in notebook.tasks:
        try:
            for cell in notebook.cells[place : task.place]:
                if cell["cell_type"] == "code":
                    execute(cell["source"], namespace)
        except Exception as error:
            trouble = trouble or f"the series' own cells do not run here: {type(error).__name__}: {error}"
        for submission in submissions:
            found = judged_one(task, submission, notebook, namespace, trouble)
            yield {"which": submission.which, "number": task.number, **found._asdict()}
        with contextlib.suppress(Exception):
            execute(task.solution, namespace)
        place = task.place + 1


def execute(source, namespace):
    """Run a cell; an error can quote its lines."""
    name = f"<cell {len(linecache.cache)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace)


def load_judge(where, name):
    """Return what judges an exercise: a check of the catalogue, or a function of the clinic, which needs torch."""
    return EXERCISES[name] if where == "check" else getattr(importlib.import_module("attncourse.clinic.patients"), name)


class Judgement(NamedTuple):
    """What became of an answer; `cell` is its code if it is wrong, `remark` what the check says of a right one."""

    state: str
    mistakes: tuple = ()  # ids
    why: str = ""  # it could not be told
    cell: str = ""
    remark: str = ""


def judged_one(task, submission, notebook, namespace, trouble=""):
    """Return the Judgement of one answer, which is right if one reading of it is."""
    task = submission.as_checked(task)
    readings = submission.readings(task, notebook.ids)
    if not readings:
        return Judgement("could not tell", why="its cell is missing")
    tried = [reading for reading in readings if any(source.strip() != task.stub.strip() for source in reading[0])]
    if not tried:
        return Judgement("not tried")
    if trouble:
        return Judgement("could not tell", why=trouble)
    judgements = []
    for cells, others in tried:
        others = [source for source in others if source not in notebook.sources]
        for own in (False, True):
            judgement = _judge_reading(Answer(task, cells, others, namespace, own))
            if judgement.state == "right":
                return judgement
            judgements += [judgement] * (not own)
    # The first reading is what its check was given. Where it holds no answer, another one may.
    return next((one for one in judgements if one.state != "not tried"), judgements[0])


def _judge_reading(answer):
    """Return the Judgement of one reading of an answer."""
    where, name = answer.task.judge
    try:
        state, mistakes, *remark = (_of_patient if where == "patients" else _of_exercise)(name, answer)
    except NoAnswer as error:
        return Judgement("could not tell", why=str(error))
    except (Exception, TimeUp):  # of data that no answer sends
        return Judgement("could not tell", why="what came back cannot be read")
    cell = "" if state == "right" else anonymous(answer.cells)
    return Judgement(state, tuple(mistake.id for mistake in mistakes), "", cell, *remark)


def anonymous(cells):
    """Return the code of some cells without comments and docstrings, in which people write their names."""
    tree = ast.parse("\n\n".join(map(without_magics, cells)))
    for node in ast.walk(tree):
        words = getattr(node, "body", None)
        if (
            isinstance(words, list)
            and words
            and isinstance(words[0], ast.Expr)
            and isinstance(words[0].value, ast.Constant)
        ):
            words[:1] = [] if len(words) > 1 else [ast.Pass()]
    return ast.unparse(tree)


class Answer:
    """An answer of a student's, to be run in a copy of this process; `own`: with the student's meaning of all names."""

    def __init__(self, task, cells, others, namespace, own):
        self.task, self.cells, self.others, self.namespace, self.own = task, cells, others, namespace, own
        self.error = None  # the last one that a cell has raised

    def values(self):
        """Run the cells and return what stands in the call of the check; only the copy may do so."""
        for name in self.task.answers:
            self.namespace.pop(name, None)
        for source in self._sources():
            try:
                execute(source, self.namespace)
            except Exception as raised:
                self.error = raised
        arguments = [ast.unparse(argument) for argument in self.task.call.args]
        try:
            return [eval(argument, self.namespace) for argument in arguments]
        except NameError:
            what = (
                f"raises {type(self.error).__name__}"
                if self.error
                else f"defines no {' and no '.join(self.task.answers)}"
            )
            raise NoAnswer(f"its cell {what}") from None

    def _sources(self):
        """Return the code to run: the cells, and before them what they need of other cells."""
        cells, others = ([without_magics(source) for source in some] for some in (self.cells, self.others))
        needed = helpers(cells, others, self.namespace)
        if self.own:
            missing, needed = needed, helpers(cells, others, ())
            if needed == missing:
                raise NoAnswer("its names mean what they mean in the series")
        return [*needed, *cells]


def without_magics(source):
    """Return a cell in which lines for IPython, such as %timeit, !pip and np.max?, do nothing."""
    try:
        ast.parse(source)
        return source
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return re.sub(r"^(\s*)([%!?].*|\S+\?)$", r"\1pass", source, flags=re.MULTILINE)


def helpers(cells, others, known):
    """Return the definitions and imports of other cells that these cells need, but for names that are known."""
    needed, used = list(cells), {}
    definitions = {}
    for source in others:
        with contextlib.suppress(MemoryError, RecursionError, SyntaxError, ValueError):
            for node in ast.parse(source).body:
                definitions |= dict.fromkeys(_bound_names(node), ast.unparse(node))
    while needed:
        with contextlib.suppress(MemoryError, RecursionError, SyntaxError, ValueError):
            for name in names_used(needed.pop()):
                if name in definitions and name not in known and name not in used:
                    used[name] = definitions[name]
                    needed.append(definitions[name])
    return list(dict.fromkeys(reversed(used.values())))


def _bound_names(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


# --- exercises that a check of the catalogue judges


def _of_exercise(name, answer):
    """Return (state, mistakes), and of a right answer what the check remarks on, for an exercise of the catalogue."""
    exercise = EXERCISES[name]
    if isinstance(exercise, Puzzle):  # its function gives matrices: they are all there is to judge
        return _of_puzzle(exercise, apart(lambda: _call_if_callable(*answer.values())))
    tried, libraries = apart(lambda: _run_on_probes(exercise, *answer.values()))
    if tried in ("not tried", "unfit"):
        return {"unfit": "wrong"}.get(tried, tried), ()
    try:
        with time_limit(TIME_LIMIT):
            outcomes = [_outcome(exercise, i, *of_one) for i, of_one in enumerate(tried[: len(exercise.probes)])]
    except Unmeasured as error:
        raise NoAnswer(str(error)) from None
    except Unfit:
        return "wrong", ()
    stopped = next((outcome.problem for outcome in outcomes if outcome.kind in ("late", "ended")), "")
    if stopped:
        raise NoAnswer(f"it did not finish within {TIME_LIMIT:g} seconds")
    if any("raises NameError" in outcome.problem for outcome in outcomes):
        raise NoAnswer("it uses a name that its cells do not define")
    state, mistakes = exercise.judge_outcomes(None, outcomes)
    if state != "right":
        return state, mistakes
    known = {"", exercise.name, *exercise.our_functions}  # nothing else that a copy sends is told
    ours = {(whose, ran) for whose, ran in libraries if whose in ("attnlib", "scipy", "torch") and ran in known}
    said = describe.remarks(exercise, outcomes, ours).splitlines()
    return state, mistakes, " ".join(line.removeprefix("Remark: ") for line in said if line.startswith("Remark: "))


def _run_on_probes(exercise, answer):
    """Return "not tried", "unfit", or of each probe what an Outcome holds, and which functions of libraries ran.

    Where a judge speaks, the outcome holds what it is given.
    """
    if answer is None or answer is ...:
        return "not tried", ()
    if exercise.judge:
        exercise = replace(exercise, judge=lambda result, *arguments: ("given", result))
    try:
        with calls_into_libraries({exercise.name, *exercise.our_functions}) as ours:
            outcomes = exercise.run_on_probes(exercise.adapt(answer))
    except Unfit:
        return "unfit", ()
    return [list(outcome) for outcome in outcomes], sorted(ours)


def _outcome(exercise, i, values, kind, problem, mutated, tensor, given):
    """Return the Outcome of probe i, judged here if the exercise has a judge; raise ValueError if it lacks arrays."""
    if given:
        lists = not exercise.answer_is_code
        return outcome_of_judge(exercise.judge, given[1], exercise.probes[i].args, lists)._replace(
            mutated=mutated, tensor=tensor
        )
    if not kind and len(values) != len(exercise.expected[i].values):
        raise ValueError("as many arrays as the right answer has are expected")
    return Outcome(values, kind, problem, mutated, tensor)


def _call_if_callable(answer):
    return answer() if callable(answer) else answer


def _of_puzzle(puzzle, matrices):
    """Return (state, mistakes) of the matrices that a puzzle asks for."""
    try:
        function = puzzle.adapt(lambda: matrices)
        return puzzle.judge_outcomes(function, [puzzle.call_on_probe(function, probe.args) for probe in puzzle.probes])
    except Unfit:
        return "wrong", ()


# --- exercises of lesson bug_clinic


def _of_patient(name, answer):
    """Return (state, no mistakes): a probe is called in the copy, and judged here by what its calls gave."""
    check = load_judge("patients", name)

    def record_calls():
        values = [_recordable(value) for value in answer.values()]
        check(*values)
        return [{"calls": value.log} if isinstance(value, Recorded) else value for value in values]

    values = [Replayed(value["calls"]) if isinstance(value, dict) else value for value in apart(record_calls)]
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
    notebook = Series(path, read_cells(path))
    submissions = [
        Submission(which, Path(shown), shown, read_cells(Path(where)), notebook.number)
        for which, where, shown in asked["submissions"]
    ]
    os.chdir(path.parent)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        rows = list(judgements(notebook, submissions))
    print("\n" + json.dumps(rows))
