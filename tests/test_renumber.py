"""tools/renumber.py on a copy of the repository: what names a number follows, and back again nothing has changed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import renumber
from tools.series import SERIES

ROOT = Path(__file__).resolve().parent.parent
# What the tables of TEACHING and the catalogue say of the copy, from its own sources, chapters and replies.
AGREES = """
from attncourse.catalogue import CHAPTERS, EXERCISES
from tools import teaching

print(sorted(CHAPTERS)[-3:], len(EXERCISES))
guide = teaching.GUIDE.read_text("utf-8")
assert teaching.written(guide) == guide
"""


@pytest.fixture
def copy(tmp_path):
    for path in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    ).stdout.split():
        if (ROOT / path).exists() and not path.endswith((".ipynb", ".npz", ".png")):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / path)
    for command in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def files(root):
    kept = (path for path in root.rglob("*") if path.is_file() and not {".git", "__pycache__"} & set(path.parts))
    return {str(path.relative_to(root)): path.read_bytes() for path in kept}


def says(root):
    done = subprocess.run([sys.executable, "-c", AGREES], cwd=root, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_room_for_a_notebook_14(copy):
    last = [notebook.number for notebook in SERIES if notebook.number >= "14"]
    before, numbers = files(copy), {number: f"{int(number) + 1:02}" for number in last}
    sources = "".join(text.decode() for name, text in before.items() if name.startswith("notebooks/src/"))
    exercises = {
        f"{number}.{i}": f"{numbers[number]}.{i}"
        for number, i in re.findall(r"### Exercise (\d+)\.(\d+) ", sources)
        if number in numbers
    }
    left = renumber.renumber(copy, numbers, exercises)
    after = files(copy)
    old = re.compile(rb"14_long_texts|%s_casebook|\bn14\b|before_14|[Nn]otebook 14|Exercise 14\." % last[-1].encode())
    changelog, own = "CHANGELOG.md", {"tools/renumber.py", "tests/test_renumber.py"}
    assert [name for name, text in after.items() if old.search(text) and name not in {changelog, *own}] == []
    assert after[changelog] == before[changelog] and f"notebooks/src/{numbers[last[-1]]}_casebook.py" in after
    assert "attncourse/chapters/n15/__init__.py" in after
    assert "'15'" in says(copy) and "'14'" not in says(copy) and len(left) < 70
    subprocess.run(["git", "add", "--all"], cwd=copy, check=True)
    renumber.renumber(copy, {new: old for old, new in numbers.items()}, {new: old for old, new in exercises.items()})
    assert files(copy) == before


@pytest.mark.slow
def test_an_exercise_in_front_of_others(copy):
    source = copy / "notebooks" / "src" / "05_masks.py"
    text = source.read_text("utf-8")
    moved = re.sub(r"(# ### Exercise )5\.4( · .+)", r"\g<1>5.0\2", text)  # stands fourth, and is headed as new
    source.write_text(moved, encoding="utf-8")
    assert renumber.as_they_stand(copy) == {"5.0": "5.4"}
    renumber.renumber(copy, {}, renumber.as_they_stand(copy))
    assert source.read_text("utf-8") == text
    first, second = (re.search(rf"# ### Exercise 5\.{i} · (.+)", text)[1] for i in (1, 2))
    swapped = text.replace(f"5.1 · {first}", f"5.2 · {first}").replace(f"5.2 · {second}", f"5.1 · {second}")
    source.write_text(swapped, encoding="utf-8")
    renumber.renumber(copy, {}, renumber.as_they_stand(copy))  # the labels 5.2, 5.1 become 5.1, 5.2 everywhere
    guide = (copy / "TEACHING.md").read_text("utf-8")
    assert f"*5.2 {first}" in guide and f"*5.1 {second}" in guide
