"""What a reader wrote is kept as a file that stands alone, comes back in another notebook, and is never lost."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import small_llama
import torch
from IPython.core.interactiveshell import InteractiveShell

import attnlib as al
from attncourse import check, mine, smollm
from attncourse.engine import right_answers
from attncourse.lessons import ORDER
from attncourse.lessons.vectorized import stable_softmax
from attnlib import torch_layers
from tools import numbering
from tools.build_notebooks import read_source
from tools.handouts import exercises
from tools.series import find_notebook

IMPORTS = "import numpy as np\nfrom attncourse import check, mine\n"
HELPER = """
SMALLEST = 0.0
def soft(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / (x.sum(-1, keepdims=True) + SMALLEST)
"""
ATTENTION = """
def my_attention(query, key, value, attn_mask=None):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    if attn_mask is None:
        return soft(scores) @ value
    dead = ~attn_mask.any(-1, keepdims=True)
    return np.where(dead, 0, soft(np.where(attn_mask | dead, scores, -np.inf))) @ value
"""
CHECK = "verdict = check.masked_attention(my_attention)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a reader who has a notebook, and nothing kept yet."""
    (tmp_path / find_notebook("vectorized").built.name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ATTNLIB_MINE")
    monkeypatch.setattr(right_answers, "ANSWERS", {})
    return tmp_path


@pytest.fixture
def cells(folder):
    """Return a function that runs cells as a notebook does, and gives the value of the last one."""
    shell = InteractiveShell()

    def run(*codes):
        for code in codes:
            result = shell.run_cell(code, store_history=True)
            result.raise_error()
        return result.result

    run(IMPORTS)
    return run


def test_a_kept_function_stands_alone_and_comes_back(cells, folder, capsys):
    said = cells(HELPER, ATTENTION, CHECK, "mine.keep(my_attention)")
    assert said == "✓ kept as mine/attention.py: a fresh Python loads it, and it passes its check there."
    text = (folder / "mine" / "attention.py").read_text("utf-8")
    assert "import numpy as np" in text and "def soft(x):" in text and "SMALLEST = 0.0" in text
    assert list((folder / "mine").iterdir()) != [] and not list((folder / "mine").glob(".*"))  # no trial is left
    capsys.readouterr()
    found = mine.load("attention")
    assert capsys.readouterr().out == "attention: yours, from mine/attention.py\n"
    x = np.random.default_rng(0).normal(size=(3, 5, 4))
    np.testing.assert_allclose(found(*x), al.scaled_dot_product_attention(*x), atol=1e-12)


def test_what_was_loaded_can_be_used_in_what_is_kept_next(cells, folder):
    cells(HELPER, ATTENTION, CHECK, "mine.keep(my_attention)", "before = mine.load('attention')")
    cells("def my_attention(query, key, value, attn_mask=None):\n    return before(query, key, value, attn_mask)")
    # In one file the second would call itself.
    assert "two different things are called my_attention here" in cells(CHECK, "mine.keep(my_attention)")
    cells("def mine_again(query, key, value, attn_mask=None):\n    return before(query, key, value, attn_mask)")
    said = cells("verdict = check.masked_attention(mine_again)", "mine.keep(mine_again)")
    assert said.startswith("✓ kept") and "def my_attention" in (folder / "mine" / "attention.py").read_text("utf-8")


def test_the_attention_of_notebook_05_replaces_that_of_02(cells, folder, capsys):
    said = cells(
        HELPER, ATTENTION, "verdict = check.scaled_dot_product_attention(my_attention)", "mine.keep(my_attention)"
    )
    assert said.startswith("✓ kept as mine/attention.py") and "2.3 · Attention." in (
        folder / "mine/attention.py"
    ).read_text("utf-8")
    assert mine.load("attention") is al.scaled_dot_product_attention  # a notebook that loads it needs the mask
    assert "Yours comes with exercise 5.3 · Attention with a mask" in capsys.readouterr().out
    grown = ATTENTION.replace("my_attention", "mine_again").replace(
        "attn_mask is None", "attn_mask is None or attn_mask.all()"
    )
    said = cells(grown, CHECK.replace("my_attention", "mine_again"), "mine.keep(mine_again)")
    assert "there. It has grown from 2.3 · Attention, which is attention.1.py now.\nWhat has changed since" in said
    assert mine.load("attention").__name__ == "mine_again"
    said = cells("verdict = check.scaled_dot_product_attention(my_attention)", "mine.keep(my_attention)")
    assert said == ("Nothing is kept: mine/attention.py holds 5.3 · Attention with a mask, which has grown from this.")
    again = grown.replace("dead =", "version = 2\n    dead =")
    assert "there. The one before is attention.2.py now." in cells(
        again, CHECK.replace("my_attention", "mine_again"), "mine.keep(mine_again)"
    )


SOFTMAX = """
def plain_softmax(x, axis):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)
def my_softmax(x, axis=-1):
    my_softmax.calls = getattr(my_softmax, "calls", 0) + 1
    return plain_softmax(x - x.max(axis=axis, keepdims=True), axis)
"""
PLAIN = """
def my_attention(query, key, value):
    return my_softmax(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])) @ value
"""
ASKED = ("masked_softmax", "masked_attention", "split_heads", "merge_heads", "multi_head_attention")
NAMES = {numbering.numbers()[name]: name for name in ASKED}


def test_softmax_masked_softmax_attention_and_several_heads_grow_out_of_each_other(cells, folder, tmp_path):
    """The solutions of masks and multi_head call what was kept before, and a language model then calls all of it."""
    said = [cells(SOFTMAX, "verdict = check.softmax(my_softmax)", "mine.keep(my_softmax)")]
    said += [cells(PLAIN, "verdict = check.scaled_dot_product_attention(my_attention)", "mine.keep(my_attention)")]
    for lesson in ("masks", "multi_head"):
        for _, number, solution in exercises(read_source(find_notebook(lesson).source)):
            if number in NAMES:
                (name,) = re.findall(r"^def (my_\w+)", solution, re.M)
                cells(
                    *(["attention = mine.load('attention')"] if NAMES[number] == "multi_head_attention" else []),
                    solution,
                )
                said += [cells(f"verdict = check.{NAMES[number]}({name})", f"mine.keep({name})")]
    assert all(text.startswith("✓ kept as mine/") for text in said), said
    assert "\nWhat has changed since mine/softmax.py:\n" in said[2] and "+def my_masked_softmax" in said[2]
    assert "\nWhat has changed since mine/attention.py:\n" in said[3]
    assert "\n-def my_attention(query, key, value):\n" in said[3]
    assert not any(
        line.startswith(("-def my_soft", "+def my_soft")) for line in said[2].splitlines() + said[3].splitlines()
    )
    for text in ("def my_softmax", "def my_masked_softmax", "def my_attention", "def my_split_heads"):
        assert (folder / "mine" / "multi_head.py").read_text("utf-8").count(text) == 1, text  # one softmax serves all

    given = small_llama.settings()
    path = small_llama.write(tmp_path / "small.gguf", given, small_llama.tensors(given))
    used = mine.load_all(smollm.FUNCTIONS)
    smollm.load(path, sha256=None).using(**used).logits("the cat")
    assert used["attention"].__globals__["my_softmax"].calls == given["llama.block_count"]


def test_an_older_file_stays(cells, folder):
    cells(HELPER, ATTENTION, CHECK, "mine.keep(my_attention)")
    first = (folder / "mine" / "attention.py").read_text("utf-8")
    for i in (1, 2):
        said = cells(ATTENTION.replace("dead =", f"version = {i}\n    dead ="), CHECK, "mine.keep(my_attention)")
        told, changes = said.split(f" The one before is attention.{i}.py now.\n")
        assert changes.startswith("What has changed since mine/attention.py:\n") and "\n" not in told
        new, old = f"+    version = {i}", [f"-    version = {i - 1}"] * (i > 1)
        assert changes.splitlines()[1:] == [*old, new]
    assert (folder / "mine" / "attention.1.py").read_text("utf-8") == first
    again = cells("mine.keep(my_attention)")
    assert again.endswith("passes its check there.")  # the same text needs no copy
    assert len(list((folder / "mine").glob("attention*.py"))) == 3


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (ATTENTION, "no check has found this right"),  # not checked
        (ATTENTION.replace("/ np.sqrt(query.shape[-1])", "") + CHECK, "no check has found this right"),  # wrong
        (
            "factor = np.ones(1)\n" + ATTENTION.replace("scores =", "scores = factor *") + CHECK,
            "reads factor from this",
        ),
        ("my_attention = lambda *args: __import__('attnlib').scaled_dot_product_attention(*args)\n" + CHECK, "use def"),
        (
            "exec('offset = 0', globals())\n"
            + ATTENTION.replace("scores =", "scores = offset +")
            + CHECK
            + "\ndel offset",
            "its file raises NameError|does not pass its check: .*offset",
        ),
        (
            "my_attention = lambda q, k: q @ k.swapaxes(-1, -2)\nverdict = check.attention_scores(my_attention)",
            "no later notebook uses 2.2 · Scores",
        ),
    ],
)
def test_what_cannot_be_kept_is_said_and_nothing_is_written(cells, folder, code, says):
    said = cells(HELPER, code, "mine.keep(my_attention)")
    assert said.startswith("Nothing is kept") and re.search(says, said, re.DOTALL), said
    assert not list(folder.glob("mine/*.py"))


@pytest.mark.slow
def test_a_class_of_torch_is_kept(cells, folder):
    source = Path(torch_layers.__file__).with_name("modules.py").read_text("utf-8")
    assert "class MultiHeadAttention" in source
    said = cells(
        "import torch\nfrom torch import nn\nfrom attnlib import torch_layers as layers",
        "class Mine(nn.Module):\n"
        "    def __init__(self, embed_dim, num_heads):\n"
        "        super().__init__()\n"
        "        self.h = num_heads\n"
        "        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))\n\n"
        "    def forward(self, query, key=None, value=None, *, attn_mask=None):\n"
        "        key = query if key is None else key\n"
        "        value = key if value is None else value\n"
        "        if attn_mask is not None and attn_mask.dim() > 2:\n"
        "            attn_mask = attn_mask.unsqueeze(-3)\n"
        "        split = lambda x: x.unflatten(-1, (self.h, -1)).transpose(-2, -3)\n"
        "        q, k, v = split(self.W_Q(query)), split(self.W_K(key)), split(self.W_V(value))\n"
        "        trace = layers.attention_trace(q, k, v, attn_mask)\n"
        "        return self.W_O(trace.output.transpose(-2, -3).flatten(-2)), trace.weights\n",
        "verdict = check.MultiHeadAttention(Mine)",
        "mine.keep(Mine)",
    )
    assert said.startswith("✓ kept as mine/MultiHeadAttention.py"), said
    assert mine.load("MultiHeadAttention").__name__ == "Mine"


# --- where nothing is kept


def test_without_a_file_the_series_own_stands_in(folder, capsys):
    assert mine.load("attention") is al.scaled_dot_product_attention
    assert capsys.readouterr().out == (
        "attention: ours (attnlib.scaled_dot_product_attention).\n"
        "Yours comes with exercise 5.3 · Attention with a mask, and mine.keep.\n"
    )
    with pytest.raises(ValueError, match=r"nothing is kept under the name 'attentoin'\. Fix: one of .*'attention', "):
        mine.load("attentoin")


def test_several_are_told_in_two_lines_and_a_broken_file_in_one_of_its_own(folder, capsys):
    assert set(smollm.FUNCTIONS) <= set(mine.KEPT)  # lesson it_speaks loads them all
    assert mine.load_all(["rope", "attention"])["attention"] is al.scaled_dot_product_attention
    assert capsys.readouterr().out == "yours: none\nours: rope, attention\n"
    (folder / "mine").mkdir()
    (folder / "mine" / "rope.py").write_text("rope = max", encoding="utf-8")
    (folder / "mine" / "attention.py").write_text("attention = nobody", encoding="utf-8")
    assert mine.load_all(["rope", "attention"])["rope"] is max
    broken, yours, ours = capsys.readouterr().out.splitlines()
    assert broken.endswith("mine/attention.py cannot be loaded: NameError: name 'nobody' is not defined")
    assert (yours, ours) == ("yours: rope", "ours: attention")
    with pytest.raises(ValueError, match="nothing is kept under the name 'attentoin'"):
        mine.load_all(["attentoin"])


def test_a_file_that_does_not_load_is_said_and_stays(folder, capsys):
    (folder / "mine").mkdir()
    (folder / "mine" / "attention.py").write_text("attention = nobody", encoding="utf-8")
    assert mine.load("attention") is al.scaled_dot_product_attention
    assert "mine/attention.py cannot be loaded: NameError: name 'nobody' is not defined" in capsys.readouterr().out
    assert (folder / "mine" / "attention.py").exists()


@pytest.mark.parametrize("kept", mine.KEPT)
def test_what_stands_in_passes_the_check_itself(kept):
    exercise = mine.KEPT[kept]
    module, _, name = exercise.kept.ours.rpartition(".")
    thing = getattr(importlib.import_module(module), name)
    if not isinstance(thing, type):  # our class takes more arguments than the exercise's
        assert exercise(thing).passed


def test_where_no_notebook_stands_the_text_is_to_be_pasted(cells, folder):
    """In Colab each notebook has a machine of its own."""
    (folder / find_notebook("vectorized").built.name).unlink()
    said = cells(HELPER, ATTENTION, CHECK, "mine.keep(my_attention)")
    assert said.startswith("No notebooks stand here") and said.count("def ") == 2
    assert [path.name for path in folder.iterdir()] == []
    exec(said.partition("\n\n")[2], names := {})
    assert check.scaled_dot_product_attention(names["attention"]).passed


def test_a_folder_that_cannot_be_written_is_silent_for_check_and_said_by_keep(cells, folder):
    (folder / "mine").write_text("a file where the folder should be", encoding="utf-8")
    verdict = cells(HELPER, ATTENTION, CHECK, "verdict")
    assert verdict.passed and verdict.message == ""
    said = cells("mine.keep(my_attention)")
    assert said.startswith("Nothing is kept: ") and said.endswith("mine writable.")
    assert (folder / "mine").read_text("utf-8") == "a file where the folder should be"


def test_an_answer_kept_when_the_course_was_a_part_of_attnlib_says_where_it_is_now(folder, capsys):
    (folder / "mine").mkdir()
    old = "from attnlib.course.mistakes import weights\n\ndef softmax(x, axis=-1):\n    return x\n"
    (folder / "mine" / "softmax.py").write_text(old, encoding="utf-8")
    assert mine.load("softmax") is stable_softmax
    told = capsys.readouterr().out
    assert told.startswith("softmax: ours (attncourse.lessons.vectorized.stable_softmax). mine/softmax.py cannot")
    assert "cannot be loaded: ImportError: attnlib.course" in told
    assert "Fix: write attncourse" in told


# --- progress


def test_progress_counts_what_was_found_right_here_and_before(folder):
    assert "02  ○ ○ ○ ○  0 of 4" in mine.progress() and mine.progress().endswith("kept: nothing yet")
    assert check.softmax(lambda x, axis=-1: np.exp(x)).state == "wrong"
    assert "02  ○ ○ ○ ○  0 of 4" in mine.progress()
    check.softmax(al.softmax)
    check.softmax(al.softmax)
    assert (folder / "mine" / "solved.txt").read_text("utf-8") == "softmax\n"
    right_answers.ANSWERS.clear()  # another kernel
    assert "02  ● ○ ○ ○  1 of 4" in mine.progress()
    check.no_head_can(("AB", "ABAB"))
    assert right_answers.load_solved() == ["softmax", "no_head_can"]


@pytest.mark.parametrize("name", [name for name in numbering.ORDER if numbering.exercises(name)])
def test_each_exercise_of_a_notebook_stands_in_progress(folder, name):
    (folder / "mine").mkdir()
    for solved, (exercise, (number, _)) in enumerate(exercises := numbering.exercises(name).items()):
        with (folder / "mine" / "solved.txt").open("a", encoding="utf-8") as file:
            file.write(f"{exercise}\n")
        marks = " ".join("●" * (solved + 1) + "○" * (len(exercises) - solved - 1))
        assert f"{numbering.NUMBERS[name]}  {marks}  {solved + 1} of {len(exercises)}" in mine.progress(), number


def test_what_the_clinic_finds_right_stands_in_progress_and_is_not_kept(folder):
    from attncourse.clinic import patients

    def strikes(module):
        one, other = torch.randn(2, 2, 7, 24)
        moved = (module(x.clone(), one)[0] - module(x.clone(), other)[0]).abs().max()
        return 1.0 if moved < 1e-5 else 0.0

    x = torch.randn(2, 5, 24)
    assert not patients.name_bug(1, "case_35", strikes).passed and "08  ○ ○ ○ ○ ○" in mine.progress()
    assert patients.name_bug(1, "case_34", strikes).passed and "08  ● ○ ○ ○ ○  1 of 5" in mine.progress()
    assert "no later notebook uses 8.1 · A first patient" in mine.keep(strikes)


def test_the_tests_and_builds_of_the_series_keep_nothing(folder, monkeypatch):
    monkeypatch.setenv("ATTNLIB_MINE", "")
    check.softmax(al.softmax)
    assert right_answers.folder() is None and not (folder / "mine").exists()


def test_solving_an_exercise_fills_a_picture_and_an_earlier_one_empties_nothing(monkeypatch, tmp_path):
    from views import one_row

    monkeypatch.setenv("ATTNLIB_MINE", "")
    monkeypatch.setattr(right_answers, "LISTENERS", [])
    monkeypatch.setattr(right_answers, "ANSWERS", {})
    solved = {"key_of_anna": {"stage": 2}, "scores_of_she": {"stage": 3}, "output_of_she": {"stage": 6, "d_k": 3}}
    view = one_row(stage=1, d_k=1)
    mine.fills(view, **solved)
    check.scores_of_she([5, 0, 3, 1])
    assert view.sliders["stage"].value == 1
    check.scores_of_she([5, 0, 3, 2])
    check.key_of_anna([1, 1, 0])
    assert view.sliders["stage"].value == 3 and view.sliders["d_k"].value == 1
    check.output_of_she([0.885, 0.036])
    assert view.sliders["stage"].value == 6 and view.sliders["d_k"].value == 3
    later = one_row(stage=1)
    mine.fills(later, **solved)  # what was solved before counts at once
    assert later.sliders["stage"].value == 6


def loaded_by(source):
    """Return the names that the cells of a notebook bring back from what the reader kept."""
    names = set(re.findall(r'^ *\w.*mine\.load\("(\w+)"\)', source, re.MULTILINE))
    if "mine.load_all(names)" in source:
        names |= {
            x for found in re.findall(r"^names = (\(.*\))$", source, re.MULTILINE) for x in ast.literal_eval(found)
        }
    return names | (set(smollm.FUNCTIONS) if "mine.load_all(smollm.FUNCTIONS)" in source else set())


def promises(source):
    """Yield (sentence, names) of text that calls what an exercise keeps the reader's; no names: something of theirs."""
    ids = {exercise.name: exercise.kept.name for exercise in mine.ALL_KEPT}
    for cell in re.split(r"^# %%", source, flags=re.MULTILINE):
        head, _, text = cell.partition("\n")
        text = re.sub(r"<details>(.|\n)*?</details>", "", re.sub(r"^# ?", "", text, flags=re.MULTILINE))
        if not head.startswith(" [markdown]") or '"exercise"' in head or '"solution"' in head:
            continue
        for sentence in re.split(r"(?<=[.?!:])\s+", text.replace("\n", " ")):
            if re.search(r"\b[Yy]ours?\b|\bthat you (wrote|kept)\b", sentence):
                names = {ids[id] for id in re.findall(r"\[\[(\w+)\]\]", sentence) if id in ids}
                names |= {name for name in mine.KEPT if f"`{name}`" in sentence}
                if names or re.search(r"\b(is|are|do) yours\b(?! to)|your\\*? module|functions that you", sentence):
                    yield sentence, names


@pytest.mark.parametrize("name", ORDER)
def test_what_a_page_calls_yours_is_loaded_there(name):
    """On the page that says it, or on the one that it names: the functions of the reader run, not ours alone."""
    source = find_notebook(name).source.read_text("utf-8")
    for sentence, names in promises(source):
        there = [other for other in re.findall(r"notebook \[\[(\w+)\]\]", sentence) if other in ORDER]
        texts = [source, *(find_notebook(other).source.read_text("utf-8") for other in there)]
        loaded = set().union(*map(loaded_by, texts))
        assert loaded and names <= loaded, (sentence, names - loaded)


def test_the_head_of_today_calls_what_it_loads():
    """Each name that lesson todays_head loads is called by its layer, and none of ours stands in its place."""
    source = find_notebook("todays_head").source.read_text("utf-8")
    layer = source[source.index("def attend(") : source.index("## 5 ·")]
    assert loaded_by(source) == {"rope", "split_heads", "merge_heads", "attention"}
    for name in loaded_by(source) - {"rope"}:
        assert f" {name}(" in layer or f"({name}(" in layer, name
        assert f"al.{name}(" not in layer
    assert "return rope(x, start" in source and "rotated(q, self.start()), rotated(k, self.start())" in layer
