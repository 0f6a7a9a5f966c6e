"""Write the notebooks as handouts: for students without solutions and outputs, or solved with every check green.

python -m tools.handouts student          _student/, with a zip of all, which needs nothing but Python and an index
python -m tools.handouts solved           _solved/, executed, with a zip of all
python -m tools.handouts nbgrader         _nbgrader/source/, an assignment each, and the settings of the course
python -m tools.handouts solved 02 05     those whose name starts so
"""

import argparse
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nbformat
import tomllib

import attncourse
import attnlib

from . import build_notebooks as build
from .execute import execute
from .licence import LICENCES, licence_cell
from .links import outward
from .report.notebooks import SOLUTION
from .series import NOTEBOOKS, ROOT, select_notebooks

# Tags say which cell is what; these read number, minutes and difficulty of an exercise, and the call of its check.
HEAD = re.compile(
    r"### Exercise (\d+)\.(\d+) · .+\n\n\*\*Goal\.\*\* (?:.|\n(?!\n))+?\*\d+\s+minutes,\s+(easy|medium|hard)\.\*"
)
CHECK = re.compile(r"verdict = (\w+)\S+\(.*\)\nverdict")
ROOMS = {"patients": ".clinic"}  # where what judges stands, if not in attncourse
BEGIN = """\
# Notebooks on attention

In this folder, with Python 3.10 or newer; on Windows with `py` in place of `python3`, `venv\\Scripts` of `venv/bin`:

    python3 -m venv venv
    venv/bin/python -m pip install -r requirements.txt
    venv/bin/python -m jupyterlab {first}

Some notebooks say in their first cell that they need PyTorch, too: `venv/bin/python -m pip install torch`. The folder
`attnlib` is the library that all notebooks use: leave it beside them.
"""
POINTS = {"easy": 1, "medium": 2, "hard": 3}
# nbgrader leaves out what stands between these lines when it makes the students' copy, and grades with all of it. The
# name `check` is imported anew, because a student's cell may have changed what it means. stderr is put away, because
# nbgrader gives 0 points where a test writes to it, as the warning of a right answer does.
GRADED = """\
### BEGIN HIDDEN TESTS
import io
import sys

from attncourse{room} import {module}

sys.stderr = io.StringIO()
### END HIDDEN TESTS
{check}
### BEGIN HIDDEN TESTS
assert verdict.passed, verdict
### END HIDDEN TESTS"""


def exercises(notebook):
    """Return (place of the stub, number, solution) of every exercise: text, stub, check, solution in this order."""
    found = []
    for i, cell in enumerate(notebook.cells):
        if build.has_tag(cell, "exercise"):
            head = HEAD.search(cell.source)
            assert head, f"goal, minutes, difficulty: {cell.source[:80]}"
            stub, check, solution = notebook.cells[i + 1 : i + 4]
            assert [stub.cell_type, check.cell_type] == ["code", "code"] and CHECK.fullmatch(check.source), check.source
            folded = build.has_tag(solution, "solution") and SOLUTION.fullmatch(solution.source)
            assert folded, f"no folded solution: {solution.source[:80]}"
            found.append((i + 1, f"{head[1]}.{head[2]}", folded[1]))
    return found


def student(source, for_nbgrader=False):
    """Return the notebook of a source without solutions and without outputs."""
    notebook = build.read_source(source)
    if for_nbgrader:
        grade(notebook)
    notebook.cells = [cell for cell in notebook.cells if not build.has_tag(cell, "solution")]
    for cell in notebook.cells:
        cell.source = outward(re.sub(r"\s*The solution is folded below\.", "", cell.source))
    notebook.cells.append(licence_cell())
    return notebook


def grade(notebook):
    """Mark stubs and checks for nbgrader: answers that it leaves alone, and locked tests that are worth points."""
    for place, number, _ in exercises(notebook):
        head, stub, check = notebook.cells[place - 1 : place + 2]
        words, name = {"schema_version": 3, "task": False}, number.replace(".", "-")
        stub.metadata["nbgrader"] = {**words, "grade_id": f"answer-{name}", "solution": True, "grade": False}
        check.metadata["nbgrader"] = {**words, "grade_id": f"check-{name}", "solution": False, "grade": True}
        stub.metadata["nbgrader"]["locked"], check.metadata["nbgrader"]["locked"] = False, True
        check.metadata["nbgrader"]["points"] = POINTS[HEAD.search(head.source)[3]]
        module = CHECK.fullmatch(check.source)[1]
        check.source = GRADED.format(room=ROOMS.get(module, ""), module=module, check=check.source)


def execute_solutions(source):
    """Return the executed notebook with each solution in its stub, and the verdicts in order."""
    notebook = build.read_source(source)
    checks = []
    for place, _, solution in exercises(notebook):
        notebook.cells[place].source = solution
        checks.append(notebook.cells[place + 1])
    execute(notebook)
    for cell in notebook.cells:
        cell.source = outward(cell.source)
    notebook.cells.append(licence_cell())
    return notebook, [check.outputs[0].data["text/plain"] for check in checks]


def write_students(notebooks, folder):
    """Write notebooks for students, and beside them what a machine with Python alone needs: attnlib, how to begin."""
    for notebook in notebooks:
        nbformat.write(student(notebook.source), folder / notebook.built.name)
    for package in (attnlib, attncourse):
        source = Path(package.__file__).parent
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__", "replies.toml"))
    project = NOTEBOOKS.parent
    for file in LICENCES:
        shutil.copy(project / file, folder)
    needs = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    (folder / "requirements.txt").write_text("\n".join(["jupyterlab", *needs, ""]), "utf-8")
    (folder / "README.md").write_text(BEGIN.format(first=notebooks[0].built.name), "utf-8")


def write_solved(notebook, target):
    """Write one notebook with its solutions; a check that stays red ends the program and names the notebook."""
    if not exercises(build.read_source(notebook.source)):
        built = nbformat.read(notebook.built, as_version=4)  # nothing to solve: it is executed already
        built.cells.append(licence_cell())
        nbformat.write(built, target)
        return
    handout, verdicts = execute_solutions(notebook.source)
    wrong = [verdict for verdict in verdicts if not verdict.startswith("✓")]
    if wrong:
        raise SystemExit(f"{target.name}: a solution does not pass its check:\n" + "\n".join(wrong))
    nbformat.write(handout, target)


def course(notebooks, folder):
    """Write a course for nbgrader; what else is there stays: settings, answers, points."""
    folder.mkdir(exist_ok=True)
    if not (folder / "nbgrader_config.py").exists():
        shutil.copy(ROOT / "tools" / "nbgrader_config.py", folder)
    for notebook in notebooks:
        handout = student(notebook.source, for_nbgrader=True)
        if any("nbgrader" in cell.metadata for cell in handout.cells):
            target = folder / "source" / notebook.name / notebook.built.name
            target.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(handout, target)
            print(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["student", "solved", "nbgrader"])
    parser.add_argument("prefixes", nargs="*", help="numbers of notebooks, all by default")
    arguments = parser.parse_args()
    notebooks, folder = select_notebooks(arguments.prefixes), ROOT / f"_{arguments.kind}"
    if arguments.kind == "nbgrader":
        course(notebooks, folder)
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    targets = [folder / notebook.built.name for notebook in notebooks]
    if arguments.kind == "student":
        write_students(notebooks, folder)
    else:
        with ProcessPoolExecutor(2) as two:  # each waits for a kernel that runs on one core
            list(two.map(write_solved, notebooks, targets))
    print(*targets, sep="\n")
    shutil.move(shutil.make_archive(str(folder), "zip", folder), folder)


if __name__ == "__main__":
    main()
