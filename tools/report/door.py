"""What `python -m attncourse` says: an answer from a file, a notebook or a line of code, judged by its own check.

What the report does for a class, this does for one: the notebook of the exercise lends its cells to an answer that uses
their names, and the answer runs in a sealed copy. Here the check runs there, too, and what it says comes back: who
rewrites the check fools nobody but himself. Elsewhere than on Linux there is no copy, and an answer has your rights.
"""

import ast
import contextlib
import difflib
import io
import os
import re
import symtable
import sys
from functools import partial
from pathlib import Path

from attncourse import EXERCISES
from attncourse.engine.exercise import Module
from attncourse.engine.run import describe_error
from attncourse.lessons import ORDER
from attncourse.mine import names_used
from attncourse.titles import TITLES, heading

from ..series import NOTEBOOKS, ROOT
from .apart import NoAnswer, apart
from .judge import OF_TORCH, Answer, execute, helpers, load_judge, without_magics
from .notebooks import Series, read_cells
from .submissions import Submission

SEALED = sys.platform == "linux"


# --- which exercise


def _plain(words):
    return re.sub(r"[^a-z0-9.]", "", words.lower().removeprefix("exercise"))


def _forms():
    """Return {name of an exercise: what a reader may call it: its number, its name, its title}."""
    found = {}
    for name in (name for names in TITLES.values() for name in names):
        number, _, title = heading(name).partition(" · ")
        found[name] = {*map(_plain, (number, name, f"my_{name}", title, heading(name)))}
    return found


def _is_near(asked, form):
    return form.startswith(f"{asked}.") or (asked.isalpha() and asked in form)


def find_exercise(words):
    """Return the name of the one exercise that some words name, or raise LookupError with what is near: never guess."""
    forms, asked = _forms(), _plain(words)
    if (exact := words.removeprefix("check.")) in forms:
        return exact
    found = [name for name, its in forms.items() if asked in its]
    if len(found) == 1:
        return found[0]
    near = found or [name for name, its in forms.items() if any(_is_near(asked, one) for one in its)]
    every = {one: name for name, its in forms.items() for one in its}
    near = near or list(dict.fromkeys(every[one] for one in difflib.get_close_matches(asked, every, 12, 0.5)))
    listed = "".join(f"\n  {heading(name)} ({name})" for name in near[:12])
    what = "is the name of more than one exercise" if found else "is no exercise"
    fix = f"its number, for one of these:{listed}" if near else "a number such as 2.1, a name or a title"
    raise LookupError(f"{words!r} {what}. Fix: {fix}")


def find_task(name):
    """Return (the notebook of the series that holds an exercise, its Task), as the notebook stands in this clone."""
    slug = next(slug for slug, names in TITLES.items() if name in names)
    path = NOTEBOOKS / f"{ORDER.index(slug):02}_{slug}.ipynb"
    try:
        notebook = Series(path, read_cells(path))
        return notebook, next(task for task in notebook.tasks if task.key == name)
    except (AttributeError, StopIteration, SyntaxError, TypeError, ValueError):
        path = path.relative_to(ROOT)
        raise NoAnswer(
            f"{path} lacks the cells of this exercise. Fix: save yours elsewhere, git checkout {path}"
        ) from None


def section(notebook, task):
    """Return where an exercise is explained: the notebook, and the heading above it."""
    texts = "\n".join(cell["source"] for cell in notebook.cells[: task.place] if cell["cell_type"] == "markdown")
    return f"notebooks/{notebook.path.name}, section {re.findall('^## (.+)$', texts, re.MULTILINE)[-1]!r}"


# --- an answer, and what it needs of its notebook


def read_answer(notebook, task, path):
    """Return (the Task as a reader's notebook calls its check, its readings: (cells of the answer, all others))."""
    submission = Submission(0, path, path.name, read_cells(path), notebook.number)
    task = submission.as_checked(task)
    readings = submission.readings(task, notebook.ids)
    if not readings:
        raise NoAnswer(f"no cell of this notebook defines {' and '.join(task.answers)}")
    return task, readings


def with_name(task, source):
    """Return a piece of code under the name that the check is given: forgiving, where only one thing can be meant."""
    if len(task.answers) > 1 or task.answers[0] in defined_names(source):
        return source
    name, tree = task.answers[0], ast.parse(source)
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        return f"{name} = ({source}\n)"
    imported = ast.Import | ast.ImportFrom
    defined = {one for node in tree.body if not isinstance(node, imported) for one in defined_names(ast.unparse(node))}
    if len(defined) != 1:
        raise NoAnswer(f"it defines {', '.join(sorted(defined)) or 'nothing'}, and {name} is asked for. Fix: that name")
    return f"{source}\n{name} = {defined.pop()}"


def defined_names(source):
    """Return the names that a piece of code defines at its top level."""
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def lend(notebook, task, cells, others):
    """Return the names of the series that an answer may use.

    Functions and imports alone are defined, and what they need; an answer that reads data, from a training perhaps,
    gets all cells above it, run in their order with our solutions.
    """
    sources, place = [], 0
    for one in notebook.tasks:
        sources += [cell["source"] for cell in notebook.cells[place : one.place] if cell["cell_type"] == "code"]
        if one.key == task.key:
            break
        sources, place = [*sources, one.solution], one.place + 1
    sources = [without_magics(source) for source in (*sources, task.stub)]
    wanted = helpers(cells, [*others, *sources], ())
    used = {name for source in (*cells, *wanted) for name in names_used(source)}
    missing = used - set().union(*map(defined_names, (*cells, *wanted)))
    namespace = {"__name__": "__main__", "display": lambda *things, **options: None}
    if any(OF_TORCH.search(source) for source in (*cells, *others, *wanted)) or _needs_torch(task):
        with contextlib.suppress(ImportError):
            __import__("torch")
    here = os.getcwd()
    os.chdir(notebook.path.parent)
    try:
        for source in sources if missing & set().union(*map(defined_names, sources)) else helpers(cells, sources, ()):
            with (
                contextlib.suppress(Exception),
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                execute(source, namespace)
    finally:
        os.chdir(here)
    return namespace


def _needs_torch(task):
    return task.judge[0] != "check" or isinstance(EXERCISES[task.key], Module)


def judge(notebook, task, readings):
    """Return what the check says of an answer, as a dict; it is right if one reading of it is.

    Raises NoAnswer where it could not be run.
    """
    said = []
    for cells, others in readings:
        cells, others = ([without_magics(source) for source in some] for some in (cells, others))
        namespace = lend(notebook, task, cells, others)
        for own in (False, True):
            with contextlib.suppress(*[NoAnswer] * bool(said)):  # the first reading is what its check was given
                said.append(ask(Answer(task, cells, others, namespace, own)))
                if said[-1]["state"] == "right":
                    return said[-1]
    return next((one for one in said if one["state"] != "not tried"), said[0])


def ask(answer):
    """Run an answer and its check in a sealed copy of this process, where there is one, and return what is said."""
    return apart(partial(ask_here, answer)) if SEALED else ask_here(answer)


def ask_here(answer):
    """Return what the check says of an answer, as a dict."""
    try:
        given = answer.values()
    except NoAnswer:
        if answer.error is None:
            raise
        return {"state": "cannot be run", "message": describe_error(answer.error)}
    verdict = load_judge(*answer.task.judge)(*given)
    told = {name: getattr(verdict, name) for name in ("state", "mistake", "message", "meaning")}
    exercise = EXERCISES.get(answer.task.key)
    if verdict.state == "not tried" and verdict.message not in ("", exercise and exercise.untried):
        told["state"] = "cannot be run"  # torch is missing, or a model
    return told | {"hints": list(verdict.hints)}


# --- what is said


def _read_source(given):
    """Return (code, None) or (None, the path of a notebook)."""
    if given == "-":
        return sys.stdin.read(), None
    if "\n" not in given and given.endswith((".py", ".ipynb")):
        path = Path(given)
        if not path.exists():
            raise FileNotFoundError(f"there is no file {given}")
        return (None, path) if path.suffix == ".ipynb" else (path.read_text("utf-8-sig"), None)
    return given, None


def judge_answer(name, given, hint=1):
    """Return what the door says of an answer; docs/assistants.md has the keys."""
    told = {"state": "cannot be run", "mistake": None, "message": "", "meaning": "", "hints": [], "where": None}
    try:
        notebook, task = find_task(name)
        told["where"] = section(notebook, task)
        code, path = _read_source(given)
        if path:
            task, readings = read_answer(notebook, task, path)
        else:
            readings = [([with_name(task, without_magics(code))], [])]
        told |= judge(notebook, task, readings)
    except SyntaxError as error:
        told["message"] = (
            f"Your code raises SyntaxError: {error.msg}\nLine {error.lineno}: {(error.text or '').strip()}"
        )
    except (NoAnswer, OSError, ValueError, RecursionError, MemoryError) as error:
        told["message"] = f"It cannot be run: {error}"
    return _as_data(name, told, hint)


def _as_data(name, told, hint):
    """Return the verdict as data: with the hint that was asked for and no other, and nothing of the solution."""
    first, _, rest = told["message"].partition("\n")
    symptom, difference = (first, rest) if told["mistake"] else ("", told["message"])
    hints = told["hints"] if told["state"] != "right" else ()
    return {
        "exercise": name,
        "title": heading(name),
        "state": told["state"],
        "mistake": told["mistake"],
        "symptom": symptom or None,
        "first_difference": difference or None,
        "meaning": told["meaning"].replace("*", "") or None,
        "hint": hints[hint - 1] if 0 < hint <= len(hints) else None,
        "hints_left": max(0, len(hints) - max(0, hint)),
        "where_to_read": told["where"],
    }


def read_task(name):
    """Return the task of an exercise as its notebook has it, and the stub to begin with; never the solution."""
    notebook, task = find_task(name)
    text = notebook.cells[task.place - 1]["source"]
    where = section(notebook, task)
    return {"exercise": name, "title": heading(name), "task": text, "stub": task.stub, "where_to_read": where}
