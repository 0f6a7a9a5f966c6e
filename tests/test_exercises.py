"""The exercises of the notebooks: every solution passes its check, no stub does, and guesses are judged."""

import re
import subprocess
import symtable
import sys
from pathlib import Path

import nbformat
import pytest

from attncourse import PREDICTIONS, RECALLS, lessons, predict
from attncourse.engine.questions import Recall, read_questions
from tools import build_notebooks as build
from tools import handouts
from tools.handouts import execute_solutions, exercises, student
from tools.licence import LICENCE
from tools.series import TAUGHT, find_notebook, has_tag

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [notebook.source for notebook in TAUGHT]
FEW = {"fixed_state": 1}  # a section that became a page of its own, with its one exercise; others have three


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem, scope="module")
def path(request):
    return request.param


@pytest.fixture(scope="module")
def notebook(path):
    return build.read_source(path)


def test_there_are_three_or_more_and_they_are_numbered(path, notebook):
    numbers = [number for _, number, _ in exercises(notebook)]
    assert len(numbers) >= FEW.get(path.stem, 3)
    chapter = int(re.search(r"^# (\d\d) ·", "\n".join(cell.source for cell in notebook.cells), re.MULTILINE)[1])
    assert numbers == [f"{chapter}.{i + 1}" for i in range(len(numbers))]


def defined(code):
    """Return the names that code gives a meaning where it stands."""
    names = symtable.symtable(code, "a cell", "exec").get_symbols()
    return {name.get_name() for name in names if name.is_assigned() or name.is_imported()}


def test_a_solution_can_be_pasted_over_the_whole_cell(notebook):
    """Nothing is lost that the cell of the stub held besides the stub, such as a helper."""
    for place, number, solution in exercises(notebook):
        assert defined(notebook.cells[place].source) <= defined(solution), number


@pytest.mark.slow
def test_the_solved_handout_is_executed_and_every_check_is_green():
    """Of one notebook. `make solved` does the same with all, as CI does; one_run.py tries them in nbval's kernel."""
    handout, verdicts = execute_solutions(SOURCES[0])
    assert handout.cells[-1].source == LICENCE
    assert len(verdicts) >= 3 and all(verdict.startswith("✓") for verdict in verdicts), verdicts


def test_a_student_gets_the_same_code_without_solutions_and_outputs(path):
    handout, built = student(path), nbformat.read(find_notebook(path.stem).built, as_version=4)
    assert not any(
        word in cell.source for cell in handout.cells for word in ("<summary>Solution", "*The solution is folded")
    )
    code = [cell for cell in handout.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    # nbval runs the built notebook top to bottom, so what has the same code cells runs, too.
    assert [cell.source for cell in code] == [cell.source for cell in built.cells if cell.cell_type == "code"]
    assert len(handout.cells) == len(built.cells) - len(exercises(built)) + 1
    assert handout.cells[-1].source == LICENCE


def test_a_new_user_of_a_server_gets_the_handouts(tmp_path, monkeypatch):
    """The line of docs/class.md, on the zip of `make student`; of one notebook, as the others are made alike."""
    monkeypatch.setattr(handouts, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["handouts", "student", "vectorized"])
    handouts.main()
    page = (ROOT / "docs" / "class.md").read_text("utf-8")
    (line,) = re.findall(r"^sudo python3 (-m zipfile .+) /etc/skel/attnlib(?: *#.*)?$", page, re.MULTILINE)
    assert "cp notebooks" not in page
    subprocess.run([sys.executable, *line.split(), tmp_path / "skel"], cwd=tmp_path / "_student", check=True)
    skel = tmp_path / "skel"
    (copy,) = skel.rglob("*.ipynb")
    assert copy.parent == skel and "<summary>Solution" not in copy.read_text("utf-8")
    # Python alone, without this clone and its packages but for what requirements.txt names, finds attnlib there.
    setup = next(cell.source for cell in nbformat.read(copy, 4).cells if cell.cell_type == "code")
    code = f"{setup}\nimport sys, attncourse, attnlib.live\nprint(attnlib.__file__, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=skel, capture_output=True, encoding="utf-8", check=True)
    file, *modules = done.stdout.split()
    assert Path(file).parent.parent == skel and "torch" not in modules
    named = {re.match(r"\w+", line)[0] for line in (skel / "requirements.txt").read_text("utf-8").splitlines()}
    assert {"numpy", "ipywidgets"} <= named and {"numpy", "ipywidgets"} <= {*modules}
    assert f"jupyterlab {copy.name}" in (skel / "README.md").read_text("utf-8")


def test_every_stub_is_not_tried(path):
    """Read off the built notebook: nbval runs it again and compares."""
    built = nbformat.read(find_notebook(path.stem).built, as_version=4)
    stubs = [place for place, _, _ in exercises(built)]
    assert len(stubs) >= FEW.get(path.stem, 3)
    for place in stubs:
        (output,) = built.cells[place + 1].outputs
        assert re.match(r"… .+: not tried yet", output.data["text/plain"])


# --- predictions


WORDS = {
    "predict": "**Predict.**",
    "exercise": "### Exercise ",
    "solution": "<summary>Solution</summary>",
    "remember": "**Remember.**",
}


@pytest.mark.parametrize(("tag", "words"), WORDS.items())
def test_a_tag_tells_tools_what_the_words_tell_readers(notebook, tag, words):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert has_tag(cell, tag) == (words in cell.source), cell.source[:80]


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
def test_a_guess_is_judged_and_the_tempting_wrong_one_explained(question):
    because = question.because
    wrong = because.keys() - {question.right}
    assert question(None).right is None and "No choice made yet" in repr(question(None))
    assert question("z").right is None and "not one of the options" in repr(question("z"))
    right = question(question.right)
    assert right.right and repr(right).endswith(because[question.right])
    assert "Many" not in repr(right)  # there are no data on what learners choose
    for letter in wrong:
        revealed = question(letter)
        assert revealed.right is False
        assert repr(revealed).endswith(f"{because[letter]} {because[question.right]}")
        said = because[letter].rstrip(".").split(". ")
        assert not any(because[question.right].startswith(sentence) for sentence in said)  # else it stands twice


@pytest.mark.parametrize(
    "old, new, message",
    [
        (
            'right = "b"\n',
            "",
            r"masks\.toml, \[recall\.recall_key\]: such a question has because, right, tempting",
        ),
        ("\nasked", "\nasks", r"\[predict\.writes_on\]: .* This one has asks, because.* Fix: these lines"),
        ('tempting = "c"', 'tempting = "b"', r"Here they are b, b and none, because has a, b, c\. Fix: mend a letter"),
        ("spoken.a", "spoken.z", r"because says of these and of all in spoken why\. Here they are b, a and z, because"),
        ("[recall.", "[vote.", r"here is \[vote\]\. Fix: write one"),
        ('because.a = "', "because.a = ", r"this is not: .* \(at line 6, column 13\)\. Fix: mend that line"),
    ],
)
def test_a_question_that_cannot_be_asked_names_its_place_and_the_fix(tmp_path, old, new, message):
    text = (Path(lessons.__file__).with_name("masks") / "questions.toml").read_text("utf-8")
    path = tmp_path / "masks.toml"
    path.write_text(text, "utf-8")
    assert [len(questions) for questions in read_questions(path).values()] == [3, 3]
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(ValueError, match=message):
        read_questions(path)


def test_a_guess_is_escaped():
    assert "<b>" not in predict.two_names("<b>")._repr_html_()


def test_an_unknown_question_says_which_was_meant():
    with pytest.raises(AttributeError, match="did you mean predict"):
        _ = predict.two_name
    assert set(dir(predict)) == {*PREDICTIONS, *RECALLS}


@pytest.mark.parametrize("guess", ["b", "B", "b)", "(B) "])
def test_a_letter_counts_however_it_is_written(guess):
    assert predict.score_std(guess).right is True and predict.score_std(guess).guess == "b"
    assert predict.score_std("bc").right is None


def test_outputs_that_answer_a_prediction_or_an_exercise_are_saved_hidden(notebook):
    asked, hidden = False, 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            asked = "**Predict.**" in cell.source or "<summary>Solution</summary>" in cell.source
        else:
            answers = bool(asked) and not re.match(r"(guess_|predict\.|mine\.)", cell.source)
            assert ("outputs_hidden" in cell.metadata.get("jupyter", {})) == answers, cell.source
            hidden += answers
    assert hidden


def test_folded_code_below_a_question_stays_folded():
    question = nbformat.v4.new_markdown_cell("**Predict.** What comes?", metadata={"tags": ["predict"]})
    answer = nbformat.v4.new_code_cell("draw()", metadata={"jupyter": {"source_hidden": True}})
    build.hide_answers(nbformat.v4.new_notebook(cells=[question, answer]))
    assert answer.metadata.jupyter == {"source_hidden": True, "outputs_hidden": True}


# --- before you start: three questions about earlier notebooks, from memory


def spaced(last):
    """Return for each of the three questions of a notebook read after `last` the notebooks that it may come from."""
    return [{last}, {max(last - 1, 0)}, set(range(max(last - 1, 1)))]


@pytest.mark.parametrize("entry", TAUGHT, ids=lambda entry: entry.name)
def test_a_notebook_opens_with_three_spaced_questions_from_memory(entry):
    """The text has the form that a reader sees: **1.** *(notebook [[vectorized]])* question, its options as a list."""
    questions = RECALLS[f"before_{entry.slug}"].questions
    cells = build.read_source(entry.source).cells
    (place,) = [i for i, cell in enumerate(cells) if cell.source.startswith("## Before you start\n")]
    _, *texts = re.split(r"^\*\*\d\.\*\* ", cells[place].source, flags=re.MULTILINE)
    letters = [re.findall(r"^- \*\*(\w)\*\* ", text, re.MULTILINE) for text in texts]
    assert letters == [question.options for question in questions] and len(letters) == 3
    origins = [int(re.match(r"\*\(notebook (\d\d)\)\* ", text)[1]) for text in texts]
    allowed = spaced(int(find_notebook(entry.after).number))
    assert all(origin in those for origin, those in zip(origins, allowed, strict=True)), origins
    assert cells[place + 1].source.startswith(f"predict.before_{entry.slug}(None, None, None)")


def test_answers_from_memory_are_judged_together():
    questions = tuple(PREDICTIONS[name] for name in ("softmax_by_hand", "score_std", "cube"))
    recall = Recall("before_00", questions)
    assert repr(recall(None, None, None)).count("No choice made yet") == 1
    text = repr(recall(questions[0].right, None, "z"))
    assert f"1  ✓ {questions[0].right} is right" in text and "2  … left out" in text and "3  … 'z' is not one" in text
    assert recall(*(question.right for question in questions))._repr_html_().count("is right</strong>") == 3
    with pytest.raises(TypeError, match=r"takes 3 letters.*you gave 1.*Fix: write None"):
        recall("a")
