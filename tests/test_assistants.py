"""python -m attncourse: what it says of an answer from anywhere; and what AGENTS.md and docs/assistants.md say runs."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from attncourse.titles import TITLES, heading
from tools.report import door, notebooks

ROOT = Path(__file__).resolve().parent.parent
AGENTS, PAGE = ((ROOT / name).read_text("utf-8") for name in ("AGENTS.md", "docs/assistants.md"))
NAMES = [name for names in TITLES.values() for name in names]
TEXT = {"type": "string", "minLength": 1}
TEXT_OR_NONE = {"type": ["string", "null"], "minLength": 1}
SCHEMA = {
    "type": "object",
    "properties": {
        "exercise": {"enum": NAMES},
        "title": {"type": "string", "pattern": r"^\d+\.\d+ · ."},
        "state": {"enum": ["right", "wrong", "not tried", "cannot be run"]},
        "mistake": TEXT_OR_NONE,
        "symptom": TEXT_OR_NONE,
        "first_difference": TEXT_OR_NONE,
        "meaning": TEXT_OR_NONE,
        "hint": TEXT_OR_NONE,
        "hints_left": {"type": "integer", "minimum": 0},
        "where_to_read": TEXT_OR_NONE,
    },
    "additionalProperties": False,
}
SCHEMA["required"] = list(SCHEMA["properties"])
RIGHT = "lambda x, axis=-1: np.exp(x - x.max(axis, keepdims=True)) / np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True)"  # fmt: skip  # noqa: E501
UNSTABLE = "def my_softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis=axis, keepdims=True)\n"


def run(*arguments, given=None, folder=ROOT):
    """Return what the command line does."""
    command = [sys.executable, "-m", "attncourse", *map(str, arguments)]
    return subprocess.run(command, input=given, cwd=folder, capture_output=True, encoding="utf-8", check=False)


def test_an_exercise_is_found_by_number_name_and_title():
    twice = {"Merge", "my_merge", "my_multi_head_attention", "my_MultiHeadAttention"}
    for name in NAMES:
        number, _, title = heading(name).partition(" · ")
        for words in {number, name, title, heading(name), f"check.{name}", f"my_{name}", f"Exercise {number}"} - twice:
            assert door.find_exercise(words) == name, words


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        ("Merge", {"6.2 · Merge (merge_heads)", "15.2 · Merge (merge)"}),  # never guess
        ("2", {heading(name) + f" ({name})" for name in TITLES["vectorized"]}),
        ("softmaks", {"2.1 · Softmax (softmax)"}),
        ("3.9", {heading(name) + f" ({name})" for name in TITLES["scaling"]}),
    ],
)
def test_what_names_no_exercise_or_two_lists_what_is_near(words, listed):
    with pytest.raises(LookupError, match="Fix: its number") as error:
        door.find_exercise(words)
    assert listed <= set(str(error.value.args[0]).replace("\n", "  ").split("  "))


@pytest.mark.parametrize(
    ("given", "state", "mistake"),
    [
        (RIGHT, "right", None),  # an expression alone
        (UNSTABLE, "wrong", "unstable_softmax"),
        (UNSTABLE.replace("my_softmax", "whatever"), "wrong", "unstable_softmax"),  # the only one that it defines
        ("def my_softmax(x, axis=-1):\n    return plain_softmax(x - x.max(), axis)", "wrong", "one_maximum_for_all"),
        ("def my_softmax(x, axis=-1):\n    return ...", "not tried", None),
        ("def my_softmax(x) return x", "cannot be run", None),
        ("import not_there\ndef my_softmax(x): return x", "cannot be run", None),
        (f"{UNSTABLE.replace('my_', 'a_')}\n{UNSTABLE.replace('my_', 'b_')}", "cannot be run", None),  # which is it?
        ("nowhere.py", "cannot be run", None),
        ("__import__('os')._exit(0)", "cannot be run", None),
    ],
    ids=lambda value: None,
)
def test_an_answer_is_judged_and_the_data_keep_their_form(given, state, mistake):
    data = door.judge_answer("softmax", given)
    jsonschema.validate(data, SCHEMA)
    assert (data["state"], data["mistake"]) == (state, mistake)
    assert bool(data["hint"]) == (state in ("wrong", "not tried")) and (data["first_difference"] or state == "right")
    assert data["where_to_read"] == "notebooks/02_vectorized.ipynb, section 'Break it · Softmax of large scores'"


def test_after_a_right_answer_no_hint_is_left():
    data = door._as_data(
        "mended",
        {"state": "right", "mistake": None, "message": "", "meaning": "", "hints": ["Look."], "where": None},
        1,
    )
    assert data["hint"] is None and data["hints_left"] == 0


def test_one_hint_is_given_and_no_other():
    every = [door.judge_answer("softmax", UNSTABLE, k) for k in range(7)]
    hints, left = [data.pop("hint") for data in every], [data.pop("hints_left") for data in every]
    total = left[0]
    assert hints[0] is None and all(hints[1 : total + 1]) and hints[total + 1 :] == [None] * (6 - total)
    assert left[: total + 1] == [*range(total, -1, -1)] and len(set(hints)) == total + 1
    assert not any(hint and hint in json.dumps(data) for hint in hints for data in every)


@pytest.mark.parametrize("name", NAMES)
def test_the_task_does_not_say_the_solution(name):
    _, task = door.find_task(name)
    shown = re.sub(r"\s", "", json.dumps(door.read_task(name)))
    own = [re.sub(r"\s", "", json.dumps(line))[1:-1] for line in task.solution.splitlines() if "import" not in line]
    assert not all(line in shown for line in own)


def one_of_each_notebook():
    for number, notebook in notebooks.series(ROOT / "notebooks").items():
        for task in notebook.tasks[:1] if number != "12" else notebook.tasks[-1:]:  # that one reads data
            yield pytest.param(task.key, id=task.number)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(one_of_each_notebook()))
def test_every_notebook_lends_its_cells(name):
    notebook, task = door.find_task(name)
    assert door.judge(notebook, task, [([task.solution], [])])["state"] == "right"
    assert door.judge_answer(name, task.stub)["state"] == "not tried"


@pytest.fixture
def own(tmp_path):
    """Return a function that writes a reader's copy of notebook 02, some sources of its cells replaced."""

    def write(**cells):
        notebook, _ = door.find_task("softmax")
        data = json.loads(notebook.path.read_text("utf-8"))
        for name, source in cells.items():
            data["cells"][door.find_task(name)[1].place]["source"] = source
        path = tmp_path / "my own.ipynb"
        path.write_text(json.dumps(data), encoding="utf-8")
        return str(path)

    return write


def test_the_cell_is_found_in_a_notebook_of_a_reader(own):
    swapped = "def my_attention_scores(query, key):\n    return key @ query.swapaxes(-1, -2)"
    path = own(softmax=UNSTABLE, attention_scores=swapped)
    found = {name: door.judge_answer(name, path) for name in TITLES["vectorized"]}
    assert {name: data["mistake"] or data["state"] for name, data in found.items()} == {
        "softmax": "unstable_softmax",
        "attention_scores": "swapped_query_key",
        "scaled_dot_product_attention": "not tried",
        "example_that_tells": "not tried",
    }
    elsewhere = door.judge_answer("causal_mask", path)
    assert (elsewhere["state"], elsewhere["hint"]) == ("cannot be run", None)
    assert "no cell of this notebook defines my_causal_mask" in elsewhere["first_difference"]


def test_the_notebook_of_this_clone_may_itself_hold_answers(own, monkeypatch, tmp_path):
    """Whoever opens the series and writes into it finds his answer there, and meets it in no other exercise."""
    path = Path(
        own(softmax=UNSTABLE, scaled_dot_product_attention="def my_attention(query, key, value):\n    return 1")
    )
    path.rename(tmp_path / "02_vectorized.ipynb")
    monkeypatch.setattr(door, "NOTEBOOKS", tmp_path)
    assert door.judge_answer("softmax", str(tmp_path / "02_vectorized.ipynb"))["mistake"] == "unstable_softmax"
    lent = "def my_attention(query, key, value):\n    scores = my_attention_scores(query, key)\n"
    lent += "    return my_softmax(scores / np.sqrt(query.shape[-1])) @ value"
    assert door.judge_answer("scaled_dot_product_attention", lent)["state"] == "right"  # with our 2.1 and 2.2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an answer has your rights")
@pytest.mark.parametrize("act", ["open('written.txt', 'w')", "__import__('os').system('touch written.txt')"])
def test_an_answer_writes_no_file(act, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert door.judge_answer("softmax", f"{act}\n{UNSTABLE}")["state"] == "cannot be run"
    assert (
        "PermissionError"
        in door.judge_answer("softmax", UNSTABLE.replace("    e =", f"    {act}\n    e ="))["first_difference"]
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "given", "status", "said"),
    [
        (["1.1", "[1, 1, 0]"], None, 0, "✓ 1.1 · A key: right"),
        (["softmax", "-", "--hint", "2"], UNSTABLE, 10, "Hint 2 of 4: "),
        (["softmax", "-", "--hint", "9"], UNSTABLE, 10, "No hint is left."),
        (["2.1", "my_softmax = ..."], None, 11, "… 2.1 · Softmax: not tried"),
        (["2.1", "nowhere.ipynb"], None, 12, "there is no file nowhere.ipynb"),
        (["2.1", "--task"], None, 0, "### Exercise 2.1 · Softmax"),
        (["soft", "1"], None, 2, "5.2 · Masked softmax"),
        (["2.1"], None, 11, "Hint 1 of"),
    ],
    ids=lambda value: None,
)
def test_the_exit_status_says_what_became_of_it(arguments, given, status, said):
    done = run(*arguments, given=given)
    assert done.returncode == status and said in done.stdout + done.stderr
    if status in (0, 10) and "--task" not in arguments:
        again = run(*arguments, "--json", given=given)
        jsonschema.validate(json.loads(again.stdout), SCHEMA)
        assert again.returncode == status


def test_the_page_tells_every_key():
    keys = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)))
    assert keys == SCHEMA["required"]


# --- what AGENTS.md and the page say runs


def commands(text):
    return [
        one
        for one in re.findall(r"`((?:\.venv/bin/python|make) [^`]+)`|^\$ (.+)$", text, re.MULTILINE)
        for one in one
        if one
    ]


CONSOLE = re.findall(r"^\$ (.+)\n((?:(?!```).*\n)*)", PAGE, re.MULTILINE)
ANSWER = re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL)[0]


@pytest.mark.slow
@pytest.mark.parametrize("command", dict.fromkeys([*commands(AGENTS), *commands(PAGE)]))
def test_every_command_runs(command, tmp_path):
    """Those that make builds and tests are asked for what they would do: they are run by name in CI."""
    (tmp_path / "answer.py").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "my_transcript.toml").write_text(re.findall("```toml\n(.+?)```", PAGE, re.DOTALL)[0], encoding="utf-8")
    python, *words = shlex.split(command)
    words = [str(tmp_path / word) if (tmp_path / word).exists() else word for word in words]
    if "exchanges.toml" in command:
        return  # assess/test_leaks.py
    done = subprocess.run(
        ["make", "-n", *words] if python == "make" else [sys.executable, *words],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode in (0, 10), done.stdout + done.stderr
    for shown, output in CONSOLE:
        if shown == command and output:
            assert done.stdout == output


def test_agents_are_told_in_a_page_and_every_file_points_to_it():
    assert len(AGENTS.split()) <= 400 and len(commands(AGENTS)) >= 6
    for name in ("CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"):
        text = (ROOT / name).read_text("utf-8")
        assert "AGENTS.md" in text and text.count("\n") == 1, name
    for path in re.findall(r"\]\((.+?)\)", AGENTS):
        assert (ROOT / path).exists(), path
