"""The report on a class: every planted mistake is named, and what is broken or hostile is listed and stops nothing."""

import csv
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from multiprocessing.util import spawnv_passfds
from pathlib import Path

import made_up_class
import numpy as np
import pytest
import torch
from lessons import each, gather, program_a_head

from attncourse import EXERCISES, MISTAKES, smollm
from attncourse.engine.exercise import Number
from tools import report
from tools.handouts import course
from tools.numbering import numbers
from tools.report import apart, collected, judge, notebooks, page, submissions
from tools.series import REPLIES, find_notebook

pytestmark = [
    pytest.mark.slow,  # each answer has a process of its own, and some never end
    pytest.mark.skipif(sys.platform != "linux", reason="the report runs on Linux only"),
]
ROOT = Path(__file__).resolve().parent.parent
N = numbers()  # as readers see them
NOTEBOOKS = notebooks.series(ROOT / "notebooks")
TASKS = {task.judge[1]: task for notebook in NOTEBOOKS.values() for task in notebook.tasks}

ATTENTION = """\
def my_attention(query, key, value):
    scores = {scores}
    e = np.exp(scores - scores.max(axis={axis}, keepdims=True))
    return e / e.sum(axis={axis}, keepdims=True) @ value
"""
DOTS, SWAPPED = "query @ np.swapaxes(key, -1, -2)", "key @ np.swapaxes(query, -1, -2)"
SOFTMAX = "def my_softmax(x, axis=-1):\n    e = np.exp({})\n    return e / e.sum({})"
MASKED = """\
def my_masked_softmax(scores, attn_mask=None):
    if attn_mask is not None:
        scores = np.where({mask}, scores, {fill})
    return al.softmax(scores)
"""
MODULE = """\
class MyMultiHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(-2, -3)

    def forward(self, query, key=None, value=None, *, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.split(self.W_Q(query)), self.split(self.W_K(key)), self.split(self.W_V(value))
        scores = q @ k.transpose(-1, -2) / {divisor}
        if attn_mask is not None:
            scores = scores.masked_fill({blocked}, -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        return {output}, weights
"""
BLOCKED = "~(attn_mask if attn_mask.ndim == 2 else attn_mask[:, None])"
JOINED = "self.W_O((weights @ v).transpose(-2, -3).flatten(-2))"
# What students write: exercise, the mistake in it, the cell.
WRITTEN = [
    ("softmax", "unstable_softmax", SOFTMAX.format("x", "axis=axis, keepdims=True")),
    ("softmax", "one_maximum_for_all", SOFTMAX.format("x - x.max()", "axis=axis, keepdims=True")),
    ("softmax", "softmax_over_everything", SOFTMAX.format("x - x.max()", "")),
    ("attention_scores", "swapped_query_key", f"def my_attention_scores(query, key):\n    return {SWAPPED}"),
    (
        "attention_scores",
        "scaled_already",
        f"def my_attention_scores(query, key):\n    return {DOTS} / key.shape[-1] ** 0.5",
    ),
    ("scaled_dot_product_attention", "no_scale", ATTENTION.format(scores=DOTS, axis=-1)),
    ("scaled_dot_product_attention", "scale_by_d_k", ATTENTION.format(scores=f"{DOTS} / key.shape[-1]", axis=-1)),
    (
        "scaled_dot_product_attention",
        "softmax_over_queries",
        ATTENTION.format(scores=f"{DOTS} / key.shape[-1] ** 0.5", axis=-2),
    ),
    (
        "padding_mask",
        "mask_inverted",
        "def my_padding_mask(lengths, n_k):\n    return np.arange(n_k) >= np.asarray(lengths)[:, None, None]",
    ),
    (
        "padding_mask",
        "row_for_a_column",
        "def my_padding_mask(lengths, n_k):\n    return np.arange(n_k) < np.asarray(lengths)",
    ),
    ("masked_softmax", "finite_fill", MASKED.format(mask="attn_mask", fill="-1e9")),
    ("masked_softmax", "mask_inverted", MASKED.format(mask="~attn_mask", fill="-np.inf")),
    ("MultiHeadAttention", "no_scale", MODULE.format(divisor="1", blocked=BLOCKED, output=JOINED)),
    (
        "MultiHeadAttention",
        "scale_by_embed_dim",
        MODULE.format(divisor="query.shape[-1] ** 0.5", blocked=BLOCKED, output=JOINED),
    ),
]
FIRST = SOFTMAX.format("x", "axis=axis, keepdims=True")  # unstable_softmax
RIGHT = SOFTMAX.format("x - x.max(axis=axis, keepdims=True)", "axis=axis, keepdims=True")
# Of each probe an answer without a number, and nothing went wrong.
NOTHING = {"list": [{"tuple": []}, "", "", False, False, {"tuple": []}]}
NOTHING = json.dumps({"found": {"list": [NOTHING] * len(EXERCISES["softmax"].probes)}}).encode()
# Cells of 2.1, and what becomes of them: a mistake, a state, or why it could not be told.
HOSTILE = {
    "import sys; sys.exit()": "SystemExit",
    "import os; os._exit(0)": "ended Python",
    "import time; time.sleep(60)": "within 10 seconds",
    "held = []\nwhile True: held.append(bytearray(10**8))": "MemoryError",
    "open('written.txt', 'w').write('x')": "PermissionError",
    "import os; os.remove('not there')": "PermissionError",
    "import os; os.kill(os.getppid(), 0)": "PermissionError",
    "import os; os.fork()": "PermissionError",
    "import os; os.system('touch written.txt')": "PermissionError",
    "import os\nos.write(3, b'{\"found\": [[[1, 2')\nos._exit(0)": "cannot be read",
    "import os\nos.write(3, b'{\"found\": ' + b'[' * 10**6)\nos._exit(0)": "cannot be read",
    f"import os\nos.write(3, {NOTHING!r})\nos._exit(0)": "cannot be read",
    "import os\nos.write(3, b'{\"why\": \"\\\\u001b[2J' + b'x' * 10**4 + b'\"}')\nos._exit(0)": "?[2Jxxx",
    # Sleep is what takes a loop's place: it ends as late, and leaves the processor to other tests.
    "def my_softmax(x, axis=-1):\n    __import__('time').sleep(60)": "within 5 seconds",
    "import signal, time\ndef my_softmax(x, axis=-1):\n"
    "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # as good as a loop in C\n    time.sleep(60)": (
        "within 10 seconds"
    ),
    "def my_softmax(x, axis=-1):\n    return not_there(x)": "do not define",
    "def my_softmax(x, axis=-1) return x": "SyntaxError",
    "(" * 10**4: "raises",
    f"print('x' * 10**8)\n{FIRST}": "unstable_softmax",
    f"from attncourse import Verdict; Verdict.passed = property(lambda verdict: True)\n{FIRST}": "unstable_softmax",
    f"np.isclose = np.allclose = lambda *x, **y: np.bool_(True)\n{FIRST}": "unstable_softmax",
    "from attncourse.engine.exercise import Exercise\n"
    f"Exercise.judge_outcomes = lambda *arguments: ('right', ())\n{FIRST}": "unstable_softmax",
    f"%matplotlib inline\n!pip install nothing\n{FIRST}": "unstable_softmax",
    f"import pathlib\n{RIGHT}": "right",
    "def my_softmax(x, axis=-1):\n    pass": "not tried",
}


VOTES = ["b", "B", "(b) ", "c)", "a", "z"]  # of symmetric; z is no option


def source(value):
    """Return code for an answer that holds arrays."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r})"
    if isinstance(value, tuple | list):
        return f"({''.join(f'{source(part)}, ' for part in value)})"
    return repr(value)


def planted():
    """Return {exercise: [(mistake, cell), ...]}."""
    found = {}
    for name in TASKS:
        (variable, *_) = TASKS[name].answers
        exercise = EXERCISES.get(name)
        if isinstance(exercise, Number):
            wrong = [(id, give()) for id, answers in exercise.wrong.items() for give in answers]
            found[name] = [(id, f"{variable} = {source(value)}") for id, value in wrong]
        elif name in ("what_words_look_for", "example_that_tells", "sparse_masks", "two_jobs"):
            wrong = [(id, values[0]) for id, values in gather("DESIGNS")[name].items()]
            found[name] = [(id, f"{variable} = {source(value)}") for id, value in wrong]
        else:
            found[name] = [(id, code) for exercise, id, code in WRITTEN if exercise == name]
    for name, id, value in each(program_a_head.WRONG):
        (variable,) = TASKS[name].answers
        code = (
            f"{variable} = {source(value)}"
            if name == "no_head_can"
            else f"def {variable}():\n    return {source(value)}"
        )
        if name != "own_head":  # its answer holds a function
            found[name].append((id, code))
    return found


def handed_in(number, cells):
    """Return a notebook of the series, as JSON, in which some stubs are replaced: {exercise: cell}."""
    notebook = json.loads(NOTEBOOKS[number].path.read_text("utf-8"))
    for name, code in cells.items():
        notebook["cells"][TASKS[name].place]["source"] = f"import numpy as np\n{code}"
    return notebook


@pytest.fixture(scope="module")
def of_class(tmp_path_factory):
    """Return (what was planted: path -> {exercise: mistake or other word}, the report, the folder)."""
    folder, truth = tmp_path_factory.mktemp("class"), {}

    def write(path, notebook, told):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(notebook if isinstance(notebook, str) else json.dumps(notebook), encoding="utf-8")
        truth[path] = told

    wrong = planted()
    for number in (N["by_hand"], N["vectorized"], N["masks"], N["multi_head"], N["program_a_head"]):
        names = [task.judge[1] for task in NOTEBOOKS[number].tasks]
        for i, answers in enumerate(zip_longest(*(wrong[name] for name in names))):
            cells = {name: answer for name, answer in zip(names, answers, strict=True) if answer}
            told = {name: cells[name][0] if name in cells else "not tried" for name in names}
            write(
                f"{number}/student{i}/{NOTEBOOKS[number].path.name}",
                handed_in(number, {n: code for n, (_, code) in cells.items()}),
                told,
            )
    swapped = WRITTEN[3]
    for i, (code, told) in enumerate(HOSTILE.items()):
        write(
            f"hostile/anna{i} {N['vectorized']}.ipynb",
            handed_in(N["vectorized"], {"softmax": code, swapped[0]: swapped[2]}),
            {"softmax": told, swapped[0]: swapped[1]},
        )
    for i, letter in enumerate(VOTES):
        notebook = handed_in(N["vectorized"], {})
        notebook["cells"].append({"cell_type": "code", "metadata": {}, "source": f'guess_symmetric = "{letter}"\n'})
        write(f"{N['vectorized']}/voter{i}.ipynb", notebook, {"softmax": "not tried"})
    write("broken.ipynb", "{", "JSONDecodeError")
    write("odd\x1b\udcff.ipynb", "{", "JSONDecodeError")
    (folder / "gone.ipynb").symlink_to(folder / "nowhere")
    truth["odd??.ipynb"] = truth.pop("odd\x1b\udcff.ipynb")
    write("=list.ipynb", "[]", "TypeError")  # a spreadsheet would take it for a formula
    truth["./=list.ipynb"] = truth.pop("=list.ipynb")
    write("empty.ipynb", {"cells": []}, "no cell of it")
    write(f".ipynb_checkpoints/{N['vectorized']}-checkpoint.ipynb", handed_in(N["vectorized"], {}), None)
    before = {path.name: path.read_bytes() for path in (ROOT / "notebooks").iterdir() if path.is_file()}
    made = report.make_report(folder, jobs=2)
    assert {path.name: path.read_bytes() for path in (ROOT / "notebooks").iterdir() if path.is_file()} == before
    return truth, made, folder


def test_every_planted_mistake_is_named_and_what_is_hostile_stops_nothing(of_class):
    truth, made, _ = of_class
    assert len(truth) > 30
    shown = {one.which: one.shown for one in made.submissions}
    number = {task.number: name for name, task in TASKS.items()}
    found = {}
    for row in made.judged:
        said = " ".join(row["mistakes"]) or row["why"] or row["state"]
        found.setdefault(shown[row["which"]], {})[number[row["number"]]] = said
    missed = {
        (path, name): (told, found[path][name])
        for path, all_told in truth.items()
        if isinstance(all_told, dict)
        for name, told in all_told.items()
        if (told not in found[path][name] if path.startswith("hostile") else told != found[path][name])
    }
    assert missed == {}


def test_files_that_are_no_notebooks_of_the_series_are_listed(of_class):
    truth, made, _ = of_class
    listed = {one.shown: why for one, number, why in made.troubles() if not number}
    wanted = {path: told for path, told in truth.items() if isinstance(told, str)}
    assert {path: told for path, told in wanted.items() if told not in listed.get(path, "")} == {}
    assert len(listed) == len(wanted) and not any("checkpoint" in one.shown for one in made.submissions)


def test_the_counts_are_those_of_what_was_planted(of_class):
    truth, made, _ = of_class
    told = [all_told["softmax"] for all_told in truth.values() if isinstance(all_told, dict) and "softmax" in all_told]
    states = made.states(N["softmax"])
    assert states["right"] == told.count("right") and states["not tried"] == told.count("not tried")
    assert dict(made.mistakes(N["softmax"])) == {id: told.count(id) for id in dict(made.mistakes(N["softmax"]))}
    assert made.mistakes(N["softmax"])[0] == ("unstable_softmax", told.count("unstable_softmax"))
    assert made.votes(NOTEBOOKS[N["vectorized"]])["symmetric"] == {"a": 1, "b": 3, "c": 1, "d": 0, "other": 1}


def test_a_file_that_cannot_be_read_is_listed(tmp_path, monkeypatch):
    (tmp_path / "a.ipynb").write_text("{}", "utf-8")
    monkeypatch.setattr(Path, "open", lambda *arguments, **options: (_ for _ in ()).throw(PermissionError("no")))
    (one,) = submissions.found_in(tmp_path, NOTEBOOKS)
    assert one.trouble.startswith("PermissionError")


def test_names_are_shown_only_where_asked_for(of_class):
    truth, made, _ = of_class
    for write in (page.text, page.page, page.table):
        assert not re.search(r"student\d|anna|voter|broken.ipynb", write(made))
    for write in (page.text, page.page, page.table):
        assert f"anna0 {N['vectorized']}.ipynb" in write(made, names=True)
    assert all(
        one in page.table(made, names=True)
        for one in truth
        if one.startswith((N["by_hand"], N["vectorized"], N["program_a_head"]))
    )
    order = [one.shown for one in made.submissions]
    assert order != sorted(order)  # the numbers do not follow the names


def test_a_mistake_comes_with_the_reply_to_it_in_its_exercise(of_class):
    _, made, _ = of_class
    assert REPLIES["scores_of_she"]["counted_from_one"][0] in page.page(made)  # how it shows
    for write in (page.text, page.page):
        text = re.sub("</?code>", "`", html.unescape(write(made)))
        assert (
            REPLIES["softmax"]["unstable_softmax"][1] in text
            and REPLIES["scores_of_she"]["feature_or_column"][1] in text
        )
    assert (
        page.symptom_and_reply("weights_of_she", "in_per_cent")[1]
        == REPLIES["weights_of_she"]["too_few_digits, in_per_cent"][1]
    )
    assert page.symptom_and_reply("masked_softmax", "unstable_softmax")[1] == MISTAKES["unstable_softmax"].hints[0]


def test_the_page_is_one_file_without_a_network(of_class):
    _, made, _ = of_class
    written = page.page(made)
    assert "<script" not in written and "http" not in written and "unstable_softmax" in written
    pieces = re.findall(r"<title>(right|wrong|could not tell|not tried): (\d+)</title>", written)
    counts = Counter(row["state"] for row in made.judged)
    assert {state: sum(int(n) for name, n in pieces if name == state) for state in counts} == counts
    hostile = submissions.Submission(1, Path(), "", [], trouble="<svg onload=alert(1)>")
    assert "&lt;svg onload" in page.page(report.Report({}, [hostile], []))


def test_the_table_has_a_row_for_each_student(of_class):
    _, made, _ = of_class
    rows = list(csv.DictReader(io.StringIO(page.table(made))))
    assert [int(row["student"]) for row in rows] == sorted({one.student for one in made.submissions})
    found = Counter(
        id
        for row in rows
        for id in row[N["softmax"]].removeprefix("wrong: ").split()
        if row[N["softmax"]][:5] == "wrong"
    )
    assert found == dict(made.mistakes(N["softmax"]))
    assert Counter(row["symmetric"] for row in rows if row["symmetric"]) == {"a": 1, "b": 3, "c": 1, "other": 1}
    assert sum(int(row["right"]) for row in rows) == sum(row["state"] == "right" for row in made.judged)


def test_who_writes_below_nothing_but_the_stub_is_read_once(of_class):
    """Each reading costs a process of its own, and a check is no part of an answer."""
    _, made, _ = of_class
    found = Counter()
    for one in made.submissions:
        for task in (
            NOTEBOOKS[one.notebook].tasks
            if one.notebook in (N["by_hand"], N["vectorized"], N["program_a_head"])
            else ()
        ):
            found[len(one.readings(one.as_checked(task), NOTEBOOKS[one.notebook].ids))] += 1
    assert set(found) == {1}, found


# --- a class of 12, with 18 files


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twelve")
    for name, file, content in made_up_class.files():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / file).write_bytes(content)
    return report.make_report(folder, jobs=2)


# What becomes of 2.1, 2.2 and 2.3, and the vote; of 1.3.
OF_TWELVE = {
    "ada": ("right", "right", "right", "c"),
    "ben": ("wrong: unstable_softmax", "right", "right", "c"),
    "cem": ("right", "right", "right", "c"),
    "dora": ("right", "wrong: wrong_batch_axis", "right", "b"),
    "eda": ("could not tell", "right", "right", ""),
    "fay": ("right", "right", "right", "c"),
    "gus": ("wrong: unstable_softmax", "wrong: wrong_batch_axis", "not tried", "b"),
    "hal": ("wrong: unstable_softmax", "right", "right", "b"),
    "ina": ("right", "right", "right: torch computes here. The exercise asks for NumPy.", ""),
    "jan": ("not tried", "not tried", "not tried", ""),
    "kim": ("wrong: unstable_softmax", "wrong: wrong_batch_axis", "wrong: no_scale", "d"),
    "lea": ("right", "right", "right", "c"),
}
BY_HAND = {
    "ben": "wrong: exp_not_divided",
    "hal": "wrong: no_exponential",
    "kim": "wrong: exp_not_divided",
    "lea": "right",
}


def test_twelve_students_with_eighteen_files_are_twelve_rows(twelve):
    assert len(twelve.submissions) == 18 and sum(map(len, made_up_class.CLASS.values())) == 14
    rows = list(csv.DictReader(io.StringIO(page.table(twelve, names=True))))
    whose = [row["files"].split("/")[0] for row in rows]
    found = {
        name: tuple(
            row[item] for item in (N["softmax"], N["attention_scores"], N["scaled_dot_product_attention"], "symmetric")
        )
        for name, row in zip(whose, rows, strict=True)
    }
    assert sorted(whose) == sorted(OF_TWELVE) and found == OF_TWELVE
    assert {
        name: row[N["weights_of_she"]] for name, row in zip(whose, rows, strict=True) if row[N["weights_of_she"]]
    } == BY_HAND
    assert "12 students, 14 notebooks handed in" in page.text(twelve)


def test_the_three_mistakes_to_discuss_first_are_slides_without_names_or_ids(twelve):
    first = page.first_to_discuss(twelve)
    assert [one["heading"] for one in first] == [
        f"4 of 12 students · Exercise {N['softmax']} Softmax",
        f"3 of 12 students · Exercise {N['attention_scores']} Scores",
        f"2 of 4 students · Exercise {N['weights_of_she']} A row of weights",
    ]
    assert first[0]["cell"] == made_up_class.SOFTMAX.format(name="", x="x").replace("    # \n", "")
    assert first[0]["asks"] == REPLIES["softmax"]["unstable_softmax"][1]
    assert first[0]["mistake"].startswith("The code behaves as if it takes exp of large scores without subtracting")
    assert first[2]["cell"] == "my_weights = [148.4, 1, 20.1, 7.4]"
    slides = page.page(twelve).partition('<section class="slide"')[2]
    assert slides.count("<section") == 2 and not re.search("|".join([*MISTAKES, *made_up_class.CLASS]), slides)
    for one in first:
        assert html.escape(one["cell"]) in slides and one["cell"].splitlines()[0] in page.text(twelve)


@pytest.mark.parametrize(
    ("paths", "students"),
    [
        (["ada/{}.ipynb", "ada/{} (1).ipynb", "ada/my own.ipynb", "ben/02.ipynb"], 2),
        (["ada_02.ipynb", "ada_02 (1).ipynb", "ada_02 - Copy.ipynb", "ben_02-Copy1.ipynb"], 2),
        (["week/ada.ipynb", "week/ben.ipynb", "week/{}.ipynb"], 3),
        (["a/02.ipynb", *(f"a/02 ({i}).ipynb" for i in range(3))], 4),  # from a folder of downloads
        (["{}.ipynb", "{} (1).ipynb"], 2),  # nobody can tell
        (["copying 2.ipynb", "student-02.ipynb", "student-03.ipynb"], 3),
    ],
)
def test_files_are_one_students_where_their_paths_say_so(paths, students):
    paths = [path.format(find_notebook("vectorized").name).replace("02", N["vectorized"]) for path in paths]
    whose = collected.owners([Path(path) for path in paths], [N["vectorized"]] * len(paths))
    assert len({owner.key or i for i, owner in enumerate(whose)}) == students


# --- what a learning platform gives


@pytest.mark.parametrize(
    ("paths", "students"),
    [
        ("adeanna_12345_67890_02_vectorized.ipynb adeanna_12345_67999_01_by_hand.ipynb", 1),
        ("adeanna_12345_1_02_vectorized.ipynb adeanna_LATE_12345_2_02_vectorized-1.ipynb", 1),
        ("adeanna_12345_1_02_vectorized.ipynb adeanna_54321_2_02_vectorized.ipynb", 2),
        ("Ada Lo_11_assignsubmission_file_/02_vectorized.ipynb Ada Lo_12_assignsubmission_file_/01_by_hand.ipynb", 1),
        ("w1/Ada Lo_11_assignsubmission_file_/a.ipynb w2/Ada Lo_12_assignsubmission_file_/a.ipynb", 1),
        ("Ada Lo_11_assignsubmission_file_/a.ipynb Ada Lo_12_assignsubmission_file_/a.ipynb", 2),  # two of one name
        ("Ada Lo_11_assignsubmission_file_02_vectorized.ipynb Bo Lo_12_assignsubmission_file_02_vectorized.ipynb", 2),
    ],
)
def test_canvas_and_moodle_say_whose_a_file_is(paths, students):
    paths = [Path(path) for path in re.split(r"(?<=ipynb) ", paths)]
    which = [N["by_hand"] if "by_hand" in str(path) else N["vectorized"] for path in paths]
    found = collected.owners(paths, which)
    assert len({owner.key for owner in found}) == students
    of_canvas = all("assignsubmission" not in str(path) for path in paths)
    assert [owner.late for owner in found] == ["LATE" in str(path) if of_canvas else None for path in paths]


def test_a_list_of_the_class_says_whose_a_file_is(tmp_path):
    (tmp_path / "class.csv").write_text("Émile Zola;4711\n\nAnna Lo\tanna.lo@x.org\nAnna Loft\n", "utf-8-sig")
    students = collected.read_students(tmp_path / "class.csv")
    assert students == [["Émile Zola", "4711"], ["Anna Lo", "anna.lo@x.org"], ["Anna Loft"]]
    alike = [["Jones, Jan", "2010"], ["Jones, Jan", "2011"], ["Li Po", "77"]]
    found = collected.owners(
        [Path("jonesjan_2011_8_02.ipynb"), Path("jonesjan_3_9_02.ipynb")], ["02"] * 2, students=alike
    )
    assert [owner.key for owner in found] == [("list", 1), ("jonesjan 3",)]  # a number decides, a name of two does not
    told = {
        "zolaemile_9_8_02.ipynb": "Émile Zola",
        "hw/4711.ipynb": "Émile Zola",
        "hw/02 Anna Lo.ipynb": "Anna Lo",
        "annalo/02.ipynb": "Anna Lo",
        "Anna Loft_7_assignsubmission_file_/02.ipynb": "Anna Loft",
        "hw/Anna.ipynb": "hw Anna",  # which one?
        "hw/Anna Lo Loft.ipynb": "hw Anna Lo Loft",
    }
    paths = [Path(path) for path in told]
    found = collected.owners(paths, [N["vectorized"]] * len(paths), students=students)
    assert [owner.name for owner in found] == [*told.values()]


@pytest.fixture(scope="module", params=["on_canvas", "on_moodle"])
def platform(request, tmp_path_factory):
    """Return the zip of a class of 15 with 19 files as a platform gives it, and the report on it."""
    folder = tmp_path_factory.mktemp(request.param)
    names = getattr(made_up_class, request.param)(made_up_class.fifteen())
    with zipfile.ZipFile(folder / "class.zip", "w") as zipped:
        for i, (name, content) in enumerate(names.items()):
            name = f"../{name}" if "kim" in name.lower() else name  # kim means harm
            zipped.writestr(zipfile.ZipInfo(name, (2026, 11, 29, 8, i, 0)), content)
        zipped.writestr("a page.html", "no notebook")
    with collected.unpack(folder / "class.zip") as inside:
        return request.param, folder / "class.zip", report.make_report(inside, jobs=2)


def test_a_class_of_fifteen_with_nineteen_files_is_fifteen_rows(platform):
    name, _, made = platform
    assert len(made.submissions) == 19
    rows = list(csv.DictReader(io.StringIO(page.table(made, names=True))))
    whose = [re.match(r"(\./)?(\w{3})", row["files"])[2].lower() for row in rows]
    columns = (N["softmax"], N["attention_scores"], N["scaled_dot_product_attention"], "symmetric")
    found = {name: tuple(row[one] for one in columns) for name, row in zip(whose, rows, strict=True)}
    found["dora"] = found.pop("dor")
    assert {name: one for name, one in found.items() if name in OF_TWELVE} == OF_TWELVE and len(found) == 15
    troubles = {name: row["could not tell"] for name, row in zip(whose, rows, strict=True) if row["could not tell"]}
    assert sorted(troubles) == ["eda", "mia", "noa", "ole"]
    assert all(troubles[who].startswith(f"a file of {N['vectorized']}: ") for who in made_up_class.UNREADABLE)
    late = {who: row["late"] for who, row in zip(whose, rows, strict=True) if row["late"]}
    assert late == ({"fay": N["vectorized"]} if name == "on_canvas" else dict.fromkeys(whose, "not known"))
    words = "12 students, 14 notebooks handed in" + ", 1 late" * (name == "on_canvas")
    assert words in page.text(made) and "2 students\n" in page.text(made)
    assert [one["heading"].partition(" students")[0] for one in page.first_to_discuss(made)] == ["4 of 12", "3 of 12"]
    assert not re.search("(?i)groot|adaada", page.page(made))


def test_a_zip_is_sorted_for_nbgrader(platform, tmp_path):
    name, zipped, _ = platform
    command = [sys.executable, "-m", "tools.report", zipped, "--sort", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    found = {path.relative_to(tmp_path / "submitted") for path in tmp_path.rglob("*.ipynb")}
    assert "19 files" in done.stdout and len(found) == 19 and len({path.parts[0] for path in found}) == 15
    assert Counter(path.parts[1] for path in found) == {
        find_notebook("vectorized").name: 17,
        find_notebook("by_hand").name: 2,
    }
    assert done.stdout.count("late, which nbgrader does not hear") == (name == "on_canvas")
    again = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert again.returncode == 1 and "move what was sorted before" in again.stderr


def test_namesakes_are_sorted_under_the_numbers_of_their_platform(tmp_path):
    folder = tmp_path / "handed in"
    folder.mkdir()
    for number in (15, 31):
        file = folder / f"jonesjan_{number}_{number}_{find_notebook('vectorized').name}.ipynb"
        file.write_text(f"broken {number}", "utf-8")
    found = submissions.found_in(folder, NOTEBOOKS)
    assert collected.sort_into(tmp_path / "course", found, NOTEBOOKS) == []
    folders = {path.name for path in (tmp_path / "course" / "submitted").iterdir()}
    assert folders == {"jonesjan-15", "jonesjan-31"}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('Bo Berg')", True),
        ("bo_berg = 1", True),
        ("x = 'berg'", True),
        ("s = 'bergbo'", True),
        ("f(x=boberg)", True),
        ("y = x.max(axis=-1) + max(z)", False),
        ("bob = 'ice bergs'", False),
    ],
)
def test_a_cell_that_holds_a_name_is_seen(code, told):
    words = collected.words_of_names(["Bo Berg", "bergbo", "Max", "1234"])
    assert collected.holds_a_name(code, words) == told and "1234" not in words


def test_a_cell_with_a_name_is_not_shown_to_all(twelve):
    (id, n, row), *_ = twelve.first()
    named = {**row, "cell": "print('Bo Berg')"}  # the shortest
    made = report.Report(twelve.notebooks, twelve.submissions, [named, *twelve.judged], frozenset({"berg"}))
    assert (id, n, row) in made.first() and named not in [one for _, _, one in made.first(most=100)]
    assert named in [one for _, _, one in replace(made, names=frozenset()).first(most=100)]


def test_an_earlier_edition_may_give_an_option_another_letter():
    notebook = NOTEBOOKS[N["vectorized"]]
    name = next(guess for guess, question in notebook.guesses.items() if question == "symmetric")
    now = notebook.options[name]
    before = dict(zip(now, reversed(now.values()), strict=True))
    texts = ["\n".join(f"- **{letter}** {words}" for letter, words in one.items()) for one in (now, before)]
    for options, told in zip(
        [*texts, "", texts[0].replace(now["b"], "reworded")], ["b", "c", "other", "other"], strict=True
    ):
        cells = [
            {"id": str(i), "cell_type": kind, "metadata": {}, "source": source}
            for i, (kind, source) in enumerate([("markdown", options), ("code", f'{name} = "b"')])
        ]
        assert submissions.Submission(1, Path(), "", cells, notebook.number).votes(notebook) == {"symmetric": told}


def test_what_one_student_alone_did_is_not_shown_to_all(twelve):
    made = {id: len({row["student"] for row in twelve.judged if id in row["mistakes"]}) for id in MISTAKES}
    assert made["no_scale"] == 1 and "no_scale" not in [id for id, _, _ in twelve.first(most=100)]


def test_a_path_that_is_neither_a_folder_nor_a_zip_is_refused(tmp_path):
    (tmp_path / "class.zip").write_bytes(b"no zip")
    with pytest.raises(FileNotFoundError, match="no folder and no zip"), collected.unpack(tmp_path / "class.zip"):
        pass


# --- how notebooks are collected


def test_a_course_of_nbgrader_and_cells_that_were_moved(tmp_path):
    """Ids get lost, answers and what they need move to other cells, and the check may be gone.

    Some rename the answer in a file without ids, and some editors begin a file with a mark of the order of bytes.
    """
    course([find_notebook("vectorized")], tmp_path)
    handout = json.loads(
        (tmp_path / "source" / find_notebook("vectorized").name / find_notebook("vectorized").built.name).read_text(
            "utf-8"
        )
    )
    code = [cell for cell in handout["cells"] if cell["cell_type"] == "code"]
    stub = next(
        cell
        for cell in code
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == f"answer-{N['softmax'].replace('.', '-')}"
    )
    helper = {
        "cell_type": "code",
        "metadata": {},
        "source": "from numpy import exp as e_to\ndef part(x):\n    return e_to(x)",
    }
    loud = {"cell_type": "code", "metadata": {}, "source": "raise ValueError('an experiment')"}

    def write(who, cells):
        target = tmp_path / "submitted" / who / find_notebook("vectorized").name / "my 02 (1).ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps({"cells": cells}), encoding="utf-8")

    stub["source"] = "def my_softmax(x, axis=-1):\n    return part(x) / part(x).sum(axis=axis, keepdims=True)"
    at = handout["cells"].index(stub)
    write("ada", [helper, loud, *handout["cells"]])
    write("ben", [{**cell, "id": str(i)} for i, cell in enumerate([helper, *handout["cells"]])])
    write("cem", [helper, *handout["cells"][:at], loud, stub, *handout["cells"][at + 2 :]])
    write("dora", [cell for cell in handout["cells"] if cell is not stub])
    renamed = json.loads(json.dumps([helper, *handout["cells"]]).replace("my_softmax", "soft"))
    write("eda", [{name: x for name, x in cell.items() if name != "id"} | {"metadata": {}} for cell in renamed])
    marked = tmp_path / "submitted" / "fay" / find_notebook("vectorized").name / "my 02.ipynb"
    marked.parent.mkdir(parents=True)
    marked.write_text(json.dumps({"cells": [helper, *handout["cells"]]}), encoding="utf-8-sig")
    made = report.make_report(tmp_path)
    who = {one.which: one.shown.partition("/")[0] for one in made.submissions}
    found = {who[row["which"]]: (row["mistakes"], row["why"]) for row in made.judged if row["number"] == N["softmax"]}
    named_so = (["unstable_softmax"], "")
    assert found.pop("dora") == ([], "its cell is missing")
    assert found == dict.fromkeys(["ada", "ben", "cem", "eda", "fay"], named_so)


WITH_MASK = """\
def my_softmax(x, axis=-1, blocked=None):
    e = np.exp(np.where(blocked, -np.inf, x - x.max(axis, keepdims=True)) if blocked is not None else x)
    return e / e.sum(axis, keepdims=True)
"""
KARIM = {"softmax": WITH_MASK, "scaled_dot_product_attention": "my_attention = attend"}
ATTEND = f"def attend(query, key, value):\n    x = {DOTS} / key.shape[-1] ** 0.5\n"
# Right answers: {exercise: stub}, the cells below the check of 2.1, its check, the exercise that is right.
ODD = {
    "broken on purpose below its check": (
        {"softmax": RIGHT},
        [FIRST, "print(my_softmax(np.ones(3)))"],
        None,
        "softmax",
    ),
    "broken on purpose, and checked again": (
        {"softmax": RIGHT},
        [FIRST, "check.softmax(my_softmax)"],
        None,
        "softmax",
    ),
    "solved below its check": ({"softmax": FIRST}, [RIGHT], None, "softmax"),
    "below its check, the stub left": ({}, [RIGHT], None, "softmax"),
    "above the stub": ({}, [f"def my_attention_scores(query, key):\n    return {DOTS}"], None, "attention_scores"),
    "by a lambda in another cell": (
        {"attention_scores": "my_attention_scores = dots"},
        [f"dots = lambda query, key: {DOTS}"],
        None,
        "attention_scores",
    ),
    "a name of one's own": (
        {"softmax": RIGHT.replace("my_softmax", "soft")},
        [],
        "verdict = check.softmax(soft)\nverdict",
        "softmax",
    ),
    "calls an earlier answer that takes more than ours": (
        KARIM,
        [f"{ATTEND}    return my_softmax(x, blocked=np.zeros(x.shape, bool)) @ value"],
        None,
        "scaled_dot_product_attention",
    ),
    "calls an earlier answer that is wrong": (
        KARIM | {"softmax": FIRST.replace("e.sum", "1 + e.sum")},
        [f"{ATTEND}    return my_softmax(x) @ value"],
        None,
        "scaled_dot_product_attention",
    ),
    "asks for help": ({"softmax": f"np.max?\n?np.exp\n{RIGHT}"}, [], None, "softmax"),
    "imports a library in C": (
        {"softmax": "from torch import tensor\ndef my_softmax(x, axis=-1):\n    return tensor(x).softmax(axis)"},
        [],
        None,
        "softmax",
    ),
}


def test_a_right_answer_in_an_odd_place_is_right(tmp_path):
    place = TASKS["softmax"].place
    for name, (stubs, below, check, _) in ODD.items():
        notebook = handed_in(N["vectorized"], stubs)
        if check:
            notebook["cells"][place + 1]["source"] = check
        own = [{"cell_type": "code", "id": f"own-{i}", "metadata": {}, "source": cell} for i, cell in enumerate(below)]
        notebook["cells"][place + 2 : place + 2] = own
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(notebook), "utf-8")
    made = report.make_report(tmp_path)
    name = {one.which: Path(one.shown).stem for one in made.submissions}
    found = {(name[row["which"]], row["number"]): row["state"] for row in made.judged}
    assert {odd: found[odd, TASKS[exercise].number] for odd, (*_, exercise) in ODD.items()} == dict.fromkeys(
        ODD, "right"
    )


def test_the_command_prints_and_writes(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.ipynb").write_text(
        json.dumps(handed_in(N["by_hand"], {"key_of_anna": "my_key = [1, 1, 0]"})), "utf-8"
    )
    out = tmp_path / "out.html", tmp_path / "out.csv"
    command = [sys.executable, "-m", "tools.report", tmp_path / "in", "--html", out[0], "--csv", out[1]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^1\.1 .+ 1 +0 +0 +0$", done.stdout, re.MULTILINE), done.stdout
    assert "ada" not in done.stdout + out[0].read_text("utf-8") + out[1].read_text("utf-8")


def test_what_cannot_be_reported_says_why(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"holds no notebooks. Expected .+ Fix: name"):
        report.make_report(tmp_path)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(OSError, match=r"runs on Linux only, here is win32.+ Fix: .+ container"):
        report.make_report(tmp_path)


# --- what comes back from a copy


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.5, "a", ..., [1, [2.0]], (1, "b"), {"a": [None]}, np.eye(3), np.arange(4, dtype=np.int8)[::2]],
)
def test_plain_data_come_back_as_they_were(value):
    back = apart.apart(lambda: value)
    np.testing.assert_equal(back, value)
    assert type(back) is type(value) and getattr(back, "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize(
    "told",
    [
        {"array": ["O", [1], ""]},
        {"array": ["<f8", [10**9], ""]},
        {"array": ["<f8", [-1], "AAAAAAAAAAA="]},
        {"array": ["<f8"]},
        {"pickle": "x"},
        {"list": 1, "tuple": 2},
    ],
)
def test_what_no_answer_sends_is_refused(told):
    with pytest.raises((ValueError, LookupError, TypeError)):
        apart.decode(told)


@pytest.mark.parametrize(
    "value", [object(), np.array(["a"]), 1j, {1: 2}, lambda: 0], ids=["object", "words", "complex", "dict", "function"]
)
def test_what_is_no_plain_data_does_not_come_back(value):
    with pytest.raises(apart.NoAnswer, match="its answer holds"):
        apart.apart(lambda: value)


def test_a_copy_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").write_text("x", "utf-8")
    for work in (
        lambda: (tmp_path / "new").write_text("x", "utf-8"),
        (tmp_path / "kept").unlink,
        lambda: os.mkdir("d"),
    ):
        with pytest.raises(apart.NoAnswer, match="PermissionError"):
            apart.apart(work)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def spawned():
    """Start a program without a word from Python; return its exit status."""
    return os.waitpid(spawnv_passfds(b"/bin/mkdir", [b"mkdir", b"new"], []), 0)[1] // 256


@pytest.mark.parametrize(
    ("least", "work", "found"),
    [
        (1, lambda: torch.save({"a": 1}, "kept"), "it raises RuntimeError"),
        (1, lambda: os.mkfifo("new"), "it raises PermissionError"),
        (1, spawned, 255),
        (4, lambda: str(torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)), "it raises DistNetworkError"),
        (6, lambda: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0), "it raises PermissionError"),
    ],
    ids=["torch.save", "mkfifo", "program", "connection", "signal"],
)
def test_what_python_does_not_announce_the_kernel_refuses(tmp_path, monkeypatch, least, work, found):
    if apart.landlock(apart._CREATE, None, 0, 1) < least:
        pytest.skip("the kernel's Landlock knows no such right")
    if work is spawned and os.getuid():
        pytest.skip("only root may start a process")
    monkeypatch.chdir(tmp_path)
    Path("kept").write_text("x", "utf-8")
    assert outcome(work) == found
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {"kept": "x"}


def test_a_copy_of_anybody_but_root_starts_no_process():
    def work():
        if not os.getuid():
            os.setuid(65534)
        return spawned()

    assert outcome(work) == "it raises BlockingIOError"


def outcome(work):
    """Return what comes back from a copy, or why nothing does."""
    try:
        return apart.apart(work)
    except apart.NoAnswer as error:
        return str(error)


PROBE = """\
def my_probe(module, x):
    changed = 0.0
    for j in range(x.shape[1]):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        mask[:, j] = False
        noisy = x.clone()
        noisy[:, j] += torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(j))
        moved = module(x.clone(), attn_mask=mask)[0] - module(noisy, attn_mask=mask)[0]
        moved[:, j] = 0
        changed = max(changed, float(moved.abs().max()))
    return {}
"""


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (PROBE.format("changed"), ("right", ())),
        (PROBE.format("0.0"), ("wrong", ())),
        (PROBE.format("not_there"), ("wrong", ())),
        ("import os; os._exit(0)", "could not tell"),
        (
            'import os\nos.write(3, b\'{"found": {"list": [{"dict": {"calls": {"list": []}}}]}}\')\nos._exit(0)',
            "could not tell",
        ),
    ],
)
def test_a_probe_of_notebook_07_is_judged_by_what_its_calls_gave(code, found):
    task = TASKS["try_probe"]
    cells = [{"cell_type": "code", "id": task.ids[0], "metadata": {}, "source": code}]
    one = submissions.Submission(1, Path(), "", cells, N["bug_clinic"])
    judged = judge.judged_one(task, one, NOTEBOOKS[N["bug_clinic"]], {"torch": torch})
    assert judged[:2] == found or judged.state == found


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("smollm.TRIED[-1]", ("right", (), "")),
        ("smollm.TRIED[0]", ("wrong", ("nothing_twice",), "")),
        ("'red red'", ("could not tell", (), "Only the model can tell")),
    ],
)
def test_a_prompt_of_notebook_13_that_nothing_here_can_measure_is_not_called_wrong(prompt, found):
    task = TASKS["waking_prompt"]
    code = f"my_prompt = {prompt}\nmy_parking = smollm.parking(my_prompt, None)"
    cells = [{"cell_type": "code", "id": task.ids[0], "metadata": {}, "source": code}]
    one = submissions.Submission(1, Path(), "", cells, N["it_speaks"])
    judged = judge.judged_one(task, one, NOTEBOOKS[N["it_speaks"]], {"smollm": smollm})
    assert judged[:2] == found[:2] and judged.why.startswith(found[2])
