"""The exercises of the notebooks: every solution passes its check, no stub does, and guesses are judged."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from attnlib.checks import PREDICTIONS, predict

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [path for path in sorted((ROOT / "notebooks" / "src").glob("*.py")) if "01" <= path.stem[:2] <= "08"]

spec = importlib.util.spec_from_file_location("build_notebooks", ROOT / "tools" / "build_notebooks.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)

HEAD = re.compile(
    r"### Exercise (\d)\.(\d) · .+\n\n\*\*Goal\.\*\* (?:.|\n(?!\n))+?\*\d+\s+minutes,\s+(easy|medium|hard)\.\*"
)
SOLUTION = re.compile(r"<details><summary>Solution</summary>\n\n```python\n(.+)\n```\n\n</details>", re.DOTALL)
CHECK = re.compile(r"verdict = \S+\(.*\)\nverdict")


def exercises(notebook):
    """Return (place of the stub, number, solution) of every exercise: text, stub, check, solution in this order."""
    found = []
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and "### Exercise" in cell.source:
            head = HEAD.search(cell.source)
            assert head, f"goal, minutes, difficulty: {cell.source[:80]}"
            stub, check, solution = notebook.cells[i + 1 : i + 4]
            assert [stub.cell_type, check.cell_type] == ["code", "code"] and CHECK.fullmatch(check.source), check.source
            folded = SOLUTION.fullmatch(solution.source)
            assert folded, f"no folded solution: {solution.source[:80]}"
            found.append((i + 1, f"{head[1]}.{head[2]}", folded[1]))
    return found


def run(notebook):
    """Run a notebook and return the states of its verdicts, in order."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and CHECK.fullmatch(cell.source):
            cell.source += "\nprint(verdict.state, '|', verdict.exercise, '|', verdict.message)"
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": ROOT / "notebooks"}}).execute()
    return [
        next(line for o in cell.outputs if o.output_type == "stream" for line in o.text.splitlines() if "|" in line)
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.endswith("verdict.message)")
    ]


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return build.read_source(path)


def test_there_are_three_to_five_and_they_are_numbered(notebook):
    numbers = [number for _, number, _ in exercises(notebook)]
    assert 3 <= len(numbers) <= 5
    chapter = re.search(r"# 0(\d) ·", notebook.cells[1].source)[1]
    assert numbers == [f"{chapter}.{i + 1}" for i in range(len(numbers))]


def test_every_solution_passes(notebook):
    for place, _, solution in exercises(notebook):
        notebook.cells[place].source = solution
    states = run(notebook)
    assert states and all(state.startswith("right |") for state in states), states


def test_every_stub_is_not_tried(path):
    """Read off the built notebook: nbval runs it again and compares."""
    built = nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", as_version=4)
    stubs = [place for place, _, _ in exercises(built)]
    assert len(stubs) >= 3
    for place in stubs:
        (output,) = built.cells[place + 1].outputs
        assert re.match(r"… .+: not tried yet", output.data["text/plain"])


# --- predictions


def asked(notebook):
    """Return (question, options in the text) for every prediction that is asked with options."""
    found = {}
    for i, cell in enumerate(notebook.cells):
        revealed = re.search(r"^predict\.(\w+)\((guess_\w+)\)$", cell.source, re.MULTILINE)
        if not revealed:
            continue
        before = [c.source for c in notebook.cells[:i]]
        (place,) = [j for j, source in enumerate(before) if re.match(rf"{revealed[2]} = None  # ", source)]
        text = before[place - 1]
        assert "**Predict.**" in text
        letters = re.findall(r"^- \*\*(\w)\*\* ", text, re.MULTILINE)
        assert re.findall(r'"(\w)"', before[place]) == letters
        found[revealed[1]] = letters
    return found


def test_guesses_stand_before_their_result_and_have_the_options_of_the_question(notebook):
    questions = asked(notebook)
    assert questions
    for name, letters in questions.items():
        assert PREDICTIONS[name].options == letters


def test_every_question_is_asked_once():
    names = [name for source in SOURCES for name in asked(build.read_source(source))]
    assert sorted(names) == sorted(PREDICTIONS)


@pytest.mark.parametrize("question", PREDICTIONS.values(), ids=lambda q: q.name)
def test_a_guess_is_judged_and_the_popular_wrong_one_explained(question):
    assert question.right not in question.wrong and question.popular in question.wrong
    assert question(None).right is None and "No choice made yet" in repr(question(None))
    assert question("z").right is None and "not one of the options" in repr(question("z"))
    right = question(question.right)
    assert right.right and question.wrong[question.popular] in repr(right)
    for letter, why in question.wrong.items():
        wrong = question(letter)
        assert wrong.right is False and repr(wrong).endswith(f"{why} {question.because}")


def test_a_guess_is_escaped():
    assert "<b>" not in predict.rounding("<b>")._repr_html_()


def test_an_unknown_question_says_which_was_meant():
    with pytest.raises(AttributeError, match="did you mean predict"):
        _ = predict.roundin
    assert set(dir(predict)) == set(PREDICTIONS)
