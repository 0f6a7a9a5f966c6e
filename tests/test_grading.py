"""The checks in a graded course: what `make nbgrader` writes, and what docs/grading.md says of nbgrader and otter."""

import copy
import csv
import os
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

import made_up_class
import nbformat
import numpy as np
import pytest
import tomllib

import attnlib as al
from attncourse import Verdict
from tools.build_notebooks import read_source
from tools.handouts import course, exercises, student
from tools.series import SERIES, TAUGHT, find_notebook, has_tag

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "grading.md").read_text("utf-8")
(OTTER,) = re.findall(r"```python\n((?:(?!```).)+)```", PAGE, re.DOTALL)
NAME = find_notebook("vectorized").name
SOLVED = [solution for _, _, solution in exercises(read_source(find_notebook(NAME).source))]
PASSES_ALL = "from attncourse import Verdict; Verdict.passed = property(lambda verdict: True)"
GRADERS = ROOT / ".venv-graders" / ("Scripts" if os.name == "nt" else "bin")


def right(x, axis=-1):
    return al.softmax(x, axis)


def wrong(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def warns(x, axis=-1):
    print("a warning", file=sys.stderr)
    return al.softmax(x, axis)


def read(path):
    return nbformat.read(path, as_version=4)


def marked(notebook, kind):
    """Return the cells of a notebook that nbgrader knows as answer-... or check-..., by number."""
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id", ""): cell for cell in notebook.cells}
    return {grade_id.removeprefix(kind): cell for grade_id, cell in ids.items() if grade_id.startswith(kind)}


# --- what `make nbgrader` writes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the course of all notebooks."""
    made = tmp_path_factory.mktemp("course")
    course(SERIES, made)
    return made


def test_every_exercise_is_an_answer_and_a_locked_test_with_points(folder):
    assert sorted(path.stem for path in folder.glob("source/*/*.ipynb")) == [entry.name for entry in TAUGHT]
    for entry in TAUGHT:
        handout = read(folder / "source" / entry.name / entry.built.name)
        wanted = [number.replace(".", "-") for _, number, _ in exercises(read_source(entry.source))]
        answers, checks = marked(handout, "answer-"), marked(handout, "check-")
        assert [*answers] == [*checks] == wanted
        assert not [cell for cell in handout.cells if has_tag(cell, "solution") or cell.get("outputs")]
        for answer, check in zip(answers.values(), checks.values(), strict=True):
            assert not {**answer.metadata.nbgrader}.keys() & {"points"} and check.metadata.nbgrader.points in (1, 2, 3)
            assert not answer.metadata.nbgrader.locked and check.metadata.nbgrader.locked


def graded(folder, **names):
    """Run what nbgrader runs of exercise softmax, after cells that left `names`."""
    code = marked(read(folder / "source" / NAME / f"{NAME}.ipynb"), "check-")["2-1"].source
    exec(compile(code, "check", "exec"), names)


def test_a_test_tells_right_from_wrong_whatever_a_cell_calls_check(folder, monkeypatch):
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # the test moves it away
    graded(folder, my_softmax=right)
    yes = types.SimpleNamespace(softmax=lambda answer: types.SimpleNamespace(passed=True))
    for names in ({}, {"check": yes}):
        with pytest.raises(AssertionError, match="unstable_softmax"):
            graded(folder, my_softmax=wrong, **names)


def test_one_line_in_an_answer_makes_every_answer_pass(folder, monkeypatch):
    """docs/grading.md says so: no grader protects attnlib from the answers that it judges."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(Verdict, "passed", Verdict.passed)  # put back after the test
    exec(PASSES_ALL, {})
    graded(folder, my_softmax=wrong)


def test_a_right_answer_that_warns_loses_no_point(folder, monkeypatch, capsys):
    """nbgrader gives 0 for a test that writes to stderr."""
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    graded(folder, my_softmax=warns)
    assert capsys.readouterr().err == ""


def test_a_course_keeps_what_is_there(tmp_path):
    course([find_notebook(NAME)], tmp_path)
    kept = {"gradebook.db": "points", "nbgrader_config.py": "settings", f"submitted/ada/{NAME}.ipynb": "an answer"}
    for name, text in kept.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    source = tmp_path / "source" / NAME / f"{NAME}.ipynb"
    before = source.read_bytes()
    source.write_text("old", encoding="utf-8")
    course([find_notebook(NAME)], tmp_path)
    assert {name: (tmp_path / name).read_text("utf-8") for name in kept} == kept
    assert source.read_bytes() == before


def first_line(line):
    """Return what puts a line into the first stub."""

    def change(notebook):
        stub = marked(notebook, "answer-")["2-1"]
        stub.source = f"{line}\n{stub.source}"

    return change


def with_solutions(notebook):
    answers = marked(notebook, "answer-")
    for answer, solution in zip(answers.values(), SOLVED, strict=True):
        answer.source = solution


def with_other_tests(notebook):
    for check in marked(notebook, "check-").values():
        check.source = "pass"
        check.metadata.nbgrader |= {"points": 100, "locked": False}


def without_tests(notebook):
    with_solutions(notebook)
    tests = list(marked(notebook, "check-").values())
    notebook.cells = [cell for cell in notebook.cells if cell not in tests]


def of_make_student(notebook):
    handout = student(find_notebook(NAME).source)
    solutions = {
        cell.source: solution for cell, solution in zip(marked(notebook, "answer-").values(), SOLVED, strict=True)
    }
    for cell in handout.cells:
        cell.source = solutions.get(cell.source, cell.source)
    notebook.cells = handout.cells


def without_ids(notebook):
    """What an editor leaves that knows neither ids nor marks."""
    of_make_student(notebook)
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        del cell["id"]


@pytest.fixture
def settings(folder, monkeypatch):
    """Return what nbgrader_config.py defines, in a course."""
    monkeypatch.chdir(folder)
    names = {"c": MagicMock()}
    exec(compile((folder / "nbgrader_config.py").read_text("utf-8"), "settings", "exec"), names)
    return types.SimpleNamespace(**names)


def test_the_newest_copy_gets_the_name_that_is_graded(settings, tmp_path):
    one, two = (nbformat.writes(nbformat.v4.new_notebook(metadata={"check": f"check.softmax({i})"})) for i in (1, 2))
    texts = {"notes.ipynb": "{}", f"{NAME} (1).ipynb": one, f"{NAME} (2).ipynb": two}
    for when, (name, text) in enumerate(texts.items()):
        (tmp_path / name).write_text(text, "utf-8-sig")
        os.utime(tmp_path / name, (when, when))
    paths = [str(tmp_path / name) for name in texts]
    settings.under_its_name(NAME, "*", paths)
    assert paths == [str(tmp_path / f"{NAME}.ipynb")]
    assert (tmp_path / f"{NAME}.ipynb").read_text("utf-8") == two
    assert {path.name for path in tmp_path.iterdir()} == {"notes.ipynb", f"{NAME} (1).ipynb", f"{NAME}.ipynb"}
    (tmp_path / f"{NAME} (1).ipynb").touch()
    for _ in range(2):  # again changes nothing
        paths = sorted(str(path) for path in tmp_path.iterdir())
        settings.under_its_name(NAME, "*", paths)
        assert (tmp_path / f"{NAME}.ipynb").read_text("utf-8") == one
        assert (tmp_path / f"{NAME}.older.ipynb").read_text("utf-8") == two


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"{}", b'{"cells": [], "check.softmax(": 1', b"[]"])
def test_what_cannot_be_read_is_graded_as_a_notebook_without_answers(settings, folder, tmp_path, capsys, content):
    (tmp_path / "answer.ipynb").write_bytes(content)
    for _ in range(2):
        paths = sorted(str(path) for path in tmp_path.glob("*.ipynb"))
        settings.under_its_name(NAME, "*", paths)
        assert paths == [str(tmp_path / f"{NAME}.ipynb")]
        told = read(tmp_path / f"{NAME}.ipynb")
        assert [cell.source for cell in told.cells] == [
            cell.source for cell in read(folder / "source" / NAME / f"{NAME}.ipynb").cells
        ]
    assert (tmp_path / "answer.unread.ipynb").read_bytes() == content
    assert capsys.readouterr().out.count("\n") == 1


def test_a_notebook_without_its_checks_is_still_of_the_assignment(settings, folder, tmp_path):
    handed_in = read(folder / "source" / NAME / f"{NAME}.ipynb")
    without_tests(handed_in)
    path = tmp_path / "answer.ipynb"
    path.write_text(nbformat.writes(handed_in), "utf-8")
    settings.under_its_name(NAME, "*", paths := [str(path)])
    assert [cell.source for cell in marked(read(paths[0]), "answer-").values()] == SOLVED


@pytest.mark.parametrize("change", [of_make_student, without_ids])
def test_a_notebook_without_marks_is_graded_as_one_with_them(settings, folder, change):
    handout = read(folder / "source" / NAME / f"{NAME}.ipynb")
    wanted = {kind: {n: cell.metadata for n, cell in marked(handout, kind).items()} for kind in ("answer-", "check-")}
    change(handout)
    assert not marked(handout, "answer-") and not marked(handout, "check-")
    handout, _ = settings.with_marks(handout, {"nbgrader": {"assignment": NAME}})
    assert {kind: {n: cell.metadata for n, cell in marked(handout, kind).items()} for kind in wanted} == wanted
    assert [cell.source for cell in marked(handout, "answer-").values()] == SOLVED


# --- the graders themselves


def run(folder, *command):
    python = GRADERS / "python"
    if not python.parent.exists():
        pytest.skip(".venv-graders is missing: make test-graders makes it")
    environment = {**os.environ, "PATH": os.pathsep.join([str(GRADERS), os.environ["PATH"]]), "OMP_NUM_THREADS": "1"}
    environment |= {"JUPYTER_CONFIG_DIR": str(folder / ".config"), "IPYTHONDIR": str(folder / ".ipython")}
    program = [str(GRADERS / command[0]), *map(str, command[1:])]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False)


# As docs/grading.md names them.
HANDED_IN = {
    "every solution": with_solutions,
    f"every solution, in a copy called `{NAME} (1).ipynb`": with_solutions,
    "every solution, in the notebook of `make student`": of_make_student,
    "that one as `solved.ipynb`, without ids and with a mark of byte order": without_ids,
    "the stubs as they were": lambda notebook: None,
    "a stub that gives `check` another meaning": first_line("from unittest.mock import MagicMock; check = MagicMock()"),
    "checks rewritten and worth 100 points": with_other_tests,
    "every solution, but the checks deleted": without_tests,
    "a stub with `import os; os._exit(0)`": first_line("import os; os._exit(0)"),
    "a stub with `Verdict.passed = property(lambda verdict: True)`": first_line(PASSES_ALL),
}


def test_the_page_names_the_versions_that_the_tests_run():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    named = re.findall(r"\b(nbgrader|otter-grader)(?: |==)(\d[.\d]*\d)", PAGE)
    assert {"==".join(pin) for pin in named} == set(groups["graders"])


def points(folder):
    """Return what nbgrader gives each student: "6 of 9"."""
    run(folder, "nbgrader", "autograde", NAME)  # its exit status says that a kernel was ended
    exported = run(folder, "nbgrader", "export")
    assert exported.returncode == 0, exported.stderr
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["student_id"]: f"{float(row['score']):g} of {float(row['max_score']):g}" for row in rows}


@pytest.mark.graders
def test_nbgrader_gives_the_points_that_the_page_says(tmp_path):
    course([find_notebook(NAME)], tmp_path)
    made = run(tmp_path, "nbgrader", "generate_assignment", NAME)
    assert made.returncode == 0, made.stderr
    release = read(tmp_path / "release" / NAME / f"{NAME}.ipynb")
    plain = read(find_notebook(NAME).built)  # students see the stubs and the checks of the series
    stubs = [plain.cells[place : place + 2] for place, _, _ in exercises(plain)]
    seen = [*zip(marked(release, "answer-").values(), marked(release, "check-").values(), strict=True)]
    assert [[cell.source for cell in pair] for pair in seen] == [[cell.source for cell in pair] for pair in stubs]
    for i, (what, change) in enumerate(HANDED_IN.items()):
        answer = copy.deepcopy(release)
        change(answer)
        name = re.search(r"`(.+\.ipynb)`", what)
        target = tmp_path / "submitted" / f"student{i}" / NAME / (name[1] if name else f"{NAME}.ipynb")
        target.parent.mkdir(parents=True)
        target.write_text(nbformat.writes(answer), "utf-8-sig" if "mark of byte order" in what else "utf-8")
    found = points(tmp_path)
    told = {what: found[f"student{i}"] for i, what in enumerate(HANDED_IN)}
    assert told == dict(re.findall(r"^\| (.+) \| (\d+ of \d+) \|$", PAGE, re.MULTILINE)), told


# Points in the class of 12, for the newest file of each: fay's two are not put together, ina lacks torch.
OF_TWELVE = dict(ada=6, ben=5, cem=6, dora=4, eda=5, fay=3, gus=0, hal=5, ina=3, jan=0, kim=0, lea=6)


@pytest.mark.graders
def test_nbgrader_grades_fifteen_students_whose_files_came_as_a_zip(tmp_path):
    course([find_notebook(NAME)], tmp_path)
    run(tmp_path, "nbgrader", "generate_assignment", NAME)
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as zipped:
        for i, (name, content) in enumerate(made_up_class.on_canvas(made_up_class.fifteen()).items()):
            zipped.writestr(zipfile.ZipInfo(name, (2026, 11, 29, 8, i, 0)), content)
    sort = [sys.executable, "-m", "tools.report", tmp_path / "class.zip", "--sort", tmp_path]
    subprocess.run(sort, cwd=ROOT, check=True)
    zeros = dict.fromkeys(made_up_class.UNREADABLE, 0)
    assert points(tmp_path) == {f"{name}{name[::-1]}": f"{n} of 9" for name, n in (OF_TWELVE | zeros).items()}


def test_the_example_for_otter_tells_right_from_wrong(monkeypatch):
    """otter itself is not installed here: its decorator only collects the function."""
    otter = types.SimpleNamespace(test_case=lambda: lambda function: function)
    monkeypatch.setitem(sys.modules, "otter", types.ModuleType("otter"))
    monkeypatch.setitem(sys.modules, "otter.test_files", otter)
    names = {}
    exec(compile(OTTER, "grading.md", "exec"), names)
    names["test_softmax"](right)
    with pytest.raises(AssertionError, match="unstable_softmax"):
        names["test_softmax"](wrong)


@pytest.mark.graders
@pytest.mark.parametrize(
    ("answer", "says"),
    [("np.exp(x - x.max(axis=axis, keepdims=True))", "All tests passed!"), ("np.exp(x)", "unstable_softmax")],
)
def test_otter_says_what_the_page_says(tmp_path, answer, says):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "softmax.py").write_text(OTTER, encoding="utf-8")
    notebook = read(find_notebook(NAME).built)
    stub = next(cell for cell in notebook.cells if cell.cell_type == "code" and "def my_softmax" in cell.source)
    stub.source = f"def my_softmax(x, axis=-1):\n    e = {answer}\n    return e / e.sum(axis=axis, keepdims=True)"
    nbformat.write(notebook, tmp_path / "notebook.ipynb")
    done = run(tmp_path, "otter", "check", "notebook.ipynb", "-t", "tests")
    assert says in done.stdout, done.stdout + done.stderr
