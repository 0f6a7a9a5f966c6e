"""What the reader wrote, kept as source beside the notebooks, so that a later notebook runs on it.

    mine.keep(my_attention)       after a green check: writes mine/attention.py
    mine.load("attention")        brings it back in another notebook, or says that ours stands in
    mine.load_all(["rope"])       brings back several, and says in two lines which are yours
    mine.progress()               which exercises are solved
    mine.fills(view, ...)         a picture that is filled as exercises are solved

A kept file runs when `load` asks for it, and never otherwise; docs/grading.md says what that protects against.
"""

import ast
import builtins
import difflib
import importlib
import importlib.util
import inspect
import itertools
import json
import linecache
import os
import subprocess
import symtable
import sys
import tempfile
import types
from pathlib import Path

from .catalogue import EXERCISES
from .engine import right_answers
from .lessons import ORDER
from .titles import TITLES, heading

SECONDS = 60  # for a fresh Python that imports torch and checks a module on a slow machine
ALONE = "Fix: let the function define or import what it uses, or make it an argument."
ALL_KEPT = [exercise for exercise in EXERCISES.values() if exercise.kept]
KEPT = {exercise.kept.name: exercise for exercise in ALL_KEPT}  # of two with one name the later, grown from the earlier


class Note(str):
    """Text that a notebook shows as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


def keep(answer):
    """Write a function or class that its check has found right to ``mine/NAME.py``, and say so.

    Yes is said only after the file was loaded in a fresh Python and has passed the check again there: what it needs
    from the notebook is written with it. A file that is there already stays as NAME.1.py, NAME.2.py and so on. What has
    changed is shown: since that file, or since the answer of an earlier notebook that this one has grown from.

    `answer` is the very object that was handed to the check. Where nothing is kept, the Note says why and what to do.
    """
    name = next((name for name, right in right_answers.ANSWERS.items() if right is answer), None)
    if name is None:
        return Note("Nothing is kept yet: no check has found this right.\nWhen its check says ✓, run this cell again.")
    exercise = EXERCISES.get(name)  # none of an exercise that the clinic judges
    if not (exercise and exercise.kept):
        used = ", ".join(other.heading for other in ALL_KEPT)
        return Note(f"Nothing is kept: no later notebook uses {heading(name)}. Those that are used again: {used}.")
    try:
        text = source_with_needs(answer, exercise)
    except Unkeepable as error:
        return Note(f"Nothing is kept: {error}")
    where = right_answers.folder()
    if where is None:
        return Note(f"No notebooks stand here to keep it beside. To use it in another one, paste this there:\n\n{text}")
    grown, target = KEPT[exercise.kept.name], where / f"{exercise.kept.name}.py"
    if grown is not exercise and _holds(target, grown):
        return Note(f"Nothing is kept: {_short_path(target)} holds {grown.heading}, which has grown from this.")
    try:
        where.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=where, prefix=".") as trial:
            path = Path(trial) / f"{exercise.kept.name}.py"
            path.write_text(text, encoding="utf-8")
            if problem := wrong_elsewhere(path, exercise):
                return Note(f"Nothing is kept: in a fresh Python {problem}")
            changed = _changes(where, exercise.kept, text)
            aside = _put_aside(target, text)
            path.replace(target)
    except OSError as error:
        return Note(f"Nothing is kept: {error}. Fix: make the folder {where} writable.")
    roots = [
        f"It has grown from {other.heading}, which" for other in _earlier(exercise) if aside and _holds(aside, other)
    ]
    older = f" {(*roots, 'The one before')[0]} is {aside.name} now." if aside else ""
    return Note(
        f"✓ kept as {_short_path(target)}: a fresh Python loads it, and it passes its check there.{older}{changed}"
    )


def load(name):
    """Return what the reader kept under a name, or the series' own, and print which of them it is."""
    thing, path, note = _kept_or_ours(name)
    if path:
        print(f"{name}: yours, from {path}")
    elif note:
        print(note)
    else:
        exercise = KEPT[name]
        print(f"{name}: ours ({exercise.kept.ours}).\nYours comes with exercise {exercise.heading}, and mine.keep.")
    return thing


def load_all(names):
    """Return {name: what `load` gives}, and print in two lines which of them are the reader's and which the series'."""
    things = {name: _kept_or_ours(name) for name in names}
    for note in filter(None, (note for _, _, note in things.values())):
        print(note)
    for whose in ("yours", "ours"):
        chosen = [name for name, (_, path, _) in things.items() if bool(path) == (whose == "yours")]
        print(f"{whose}: {', '.join(chosen) or 'none'}")
    return {name: thing for name, (thing, _, _) in things.items()}


def _kept_or_ours(name):
    """Return (what stands under a name, its file if it is the reader's, why a file that is there cannot be loaded)."""
    if name not in KEPT:
        raise ValueError(f"nothing is kept under the name {name!r}. Fix: one of {', '.join(map(repr, KEPT))}.")
    ours, where, note = KEPT[name].kept.ours, right_answers.folder(), ""
    path = where and where / f"{name}.py"
    if path and path.exists() and not any(_holds(path, other) for other in _earlier(KEPT[name])):
        try:
            return run_file(path), _short_path(path), ""
        except Exception as error:
            note = f"{name}: ours ({ours}). {_short_path(path)} cannot be loaded: {_error_text(error)}"
    module, _, attribute = ours.rpartition(".")
    return getattr(importlib.import_module(module), attribute), "", note


def _earlier(exercise):
    """Return the exercises whose kept answers this one's replaces."""
    return [other for other in ALL_KEPT if other.kept.name == exercise.kept.name and KEPT[other.kept.name] is not other]


def _holds(path, exercise):
    """Tell whether a file is the kept answer of an exercise, as its first line says."""
    title = exercise.heading.partition(" · ")[2]
    return path.is_file() and f"· {title}." in path.read_text("utf-8").partition("\n")[0]


def progress():
    """Return which exercises of each notebook are solved, as text."""
    solved, lines = set(right_answers.load_solved()) | set(right_answers.ANSWERS), []
    for slug, names in TITLES.items():
        if names:
            marks = " ".join("●" if name in solved else "○" for name in names)
            lines.append(f"{ORDER.index(slug):02}  {marks}  {sum(name in solved for name in names)} of {len(names)}")
    where = right_answers.folder()
    kept = sorted(path.stem for path in where.glob("*.py") if path.stem in KEPT) if where and where.is_dir() else []
    return Note("\n".join([*lines, f"kept: {', '.join(kept) or 'nothing yet'}"]))


def fills(view, **solved):
    """Fill a picture stage by stage: what its controls are set to when an exercise is solved, or was before."""

    def listen(name):
        controls, now = solved.get(name, {}), view.sliders[view.fills].value
        if controls.get(view.fills, now) >= now:  # solved again, an early exercise empties nothing
            view.choose(**controls)

    for name in [name for name in solved if name in {*right_answers.load_solved(), *right_answers.ANSWERS}]:
        listen(name)
    right_answers.LISTENERS.append(listen)


def _short_path(path):
    return f"{path.parent.name}/{path.name}"


def _error_text(error):
    return f"{type(error).__name__}: {error}"


def _changes(where, kept, text):
    """Return the lines that differ from the file before, or from that of the answer this one has grown from."""
    before = [where / f"{name}.py" for name in (kept.name, kept.grown_from)]
    older = next((path for path in before if path.is_file()), None)
    if older is None:
        return ""
    lines = [file.partition("\n\n")[2].splitlines() for file in (older.read_text("utf-8"), text)]
    changes = [line for line in difflib.unified_diff(*lines, n=0, lineterm="") if line[1:].strip() and line[:2] != "@@"]
    return "\n".join([f"\nWhat has changed since {_short_path(older)}:", *changes[2:]]) if changes else ""


def _put_aside(path, text):
    """Give an older file of another content a name of its own; return the new path, or None."""
    if not path.exists() or path.read_text("utf-8") == text:
        return None
    free = next(new for i in itertools.count(1) if not (new := path.with_name(f"{path.stem}.{i}.py")).exists())
    path.rename(free)
    return free


# --- the source of an answer, with what it needs from the notebook


class Unkeepable(Exception):
    """Why a piece of code cannot stand alone, and what to do."""


def source_with_needs(answer, exercise):
    """Return the text of a file that defines the answer under its kept name, and all that it needs."""
    imports, parts = {}, {}
    _collect(answer, imports, parts)
    text = "\n".join(
        [f'"""Kept by mine.keep: it passes the check of exercise {exercise.heading}."""', "", *sorted(imports.values())]
    )
    text = text.rstrip() + "\n\n" + "\n\n".join(source for _, source in parts.values()) + "\n"
    alias = answer.__name__ != exercise.kept.name
    return text + f"\n{exercise.kept.name} = {answer.__name__}\n" * alias


def _collect(thing, imports, parts):
    """Add a function or class to `parts`, name -> (object, source), behind what it uses."""
    name = thing.__name__
    if name in parts:
        if parts[name][0] is not thing and not _alike(thing, imports, parts):
            raise Unkeepable(f"two different things are called {name} here, and both are needed. Fix: rename yours.")
        return
    parts[name] = (thing, "")  # two functions may call each other
    source = _source(thing)
    known = next((function.__globals__ for function in _functions(thing)), vars(sys.modules["__main__"]))
    for used in names_used(source):
        if used not in known or used in imports or used in parts:
            continue  # a name that is nowhere is what the fresh Python reports
        _collect_used(used, known[used], thing, imports, parts)
    del parts[name]
    parts[name] = (thing, source)  # behind what it uses


def _alike(thing, imports, parts):
    """Tell whether a function, with all that it needs, is written already: two kept files may hold the same softmax."""
    other_imports, other = {}, {}
    _collect(thing, other_imports, other)
    known = {name: source for name, (_, source) in parts.items()}
    return other_imports.items() <= imports.items() and all(known.get(n) == source for n, (_, source) in other.items())


def _collect_used(used, value, thing, imports, parts):
    """Add what a function or class finds in its notebook under the name `used`."""
    if isinstance(value, types.ModuleType):
        imports[used] = f"import {value.__name__}" + f" as {used}" * (used != value.__name__)
    elif hasattr(value, "__name__") and _is_elsewhere(value):
        imports[used] = f"from {value.__module__} import {value.__name__}" + f" as {used}" * (used != value.__name__)
    elif isinstance(value, types.FunctionType | type):
        _collect(value, imports, parts)
        if used != value.__name__:
            parts[used] = (value, f"{used} = {value.__name__}")
    elif isinstance(value, bool | int | float | str | None):
        parts[used] = (value, f"{used} = {value!r}")
    else:
        raise Unkeepable(
            f"{thing.__name__} reads {used} from this notebook, an object of type {type(value).__name__}, and no "
            f"other notebook has it. Fix: make {used} an argument, or compute it inside the function."
        )


def _is_elsewhere(value):
    """Tell whether a package defines a function or class; what a cell or a kept file defines is written out."""
    return value.__module__ not in ("__main__", None) and not value.__module__.startswith(f"{right_answers.FOLDER}.")


def _functions(thing):
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    return [inspect.unwrap(member) for member in members if isinstance(member, types.FunctionType)]


def _source(thing):
    """Return the source of a function or class that a cell defines: the last definition of its name in that cell."""
    functions = _functions(thing)
    if not functions or "<lambda>" in thing.__name__:
        raise Unkeepable(
            f"an answer of type {type(thing).__name__} without a `def` of its own has no source. Fix: use def."
        )
    text = "".join(linecache.getlines(functions[0].__code__.co_filename))
    with_name = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == thing.__name__
    ]
    if not with_name:
        raise Unkeepable(
            f"the cell that defines {thing.__name__} cannot be found. Fix: run it once more, then its check."
        )
    node = with_name[-1]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def names_used(source):
    """Return the names that a piece of source takes from outside itself, in order."""

    def outside(table):
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
                yield symbol.get_name()
        for child in table.get_children():
            yield from outside(child)

    names = dict.fromkeys(outside(symtable.symtable(source, "kept", "exec")))
    return [name for name in names if not hasattr(builtins, name)]


# --- the same file in a fresh Python


def run_file(path):
    """Return what a kept file defines under its own name."""
    spec = importlib.util.spec_from_file_location(f"{right_answers.FOLDER}.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, path.stem)


def wrong_elsewhere(path, exercise):
    """Return what is wrong with a file where nothing of the notebook is defined; "" for nothing."""
    if sys.platform == "emscripten":  # a browser cannot start a second Python, so the file runs as a new module
        return _check_file(path, exercise.name)
    code = "import sys; from attncourse import mine; mine.report(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(path), exercise.name]
    environment = {**os.environ, "ATTNLIB_MINE": "", "PYTHONIOENCODING": "utf-8"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not finish within {SECONDS} seconds. Fix: look for work at the top of the file."
    if done.returncode:
        return f"it fails: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'without a word'}."
    return json.loads(done.stdout.splitlines()[-1])


def report(path, name):
    """Print what is wrong with a kept file, as JSON, for the Python that asked."""
    print("\n" + json.dumps(_check_file(Path(path), name)))


def _check_file(path, name):
    try:
        answer = run_file(path)
    except Exception as error:
        return f"its file raises {_error_text(error)}. {ALONE}"
    verdict = EXERCISES[name](answer)
    if verdict.passed:
        return ""
    return f"it does not pass its check: {verdict.message} {ALONE}"
