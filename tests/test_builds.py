"""A build keeps outputs where nothing has changed that they depend on, and a changed sentence changes two lines."""

import difflib
import json
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

from tools import build_notebooks, builds, execute
from tools.series import ROOT

SOURCE = """\
# %% [markdown]
# # Masks
#
# A mask says who may look.

# %%
import attnlib as al

print(al.causal_mask(2))

# %% [markdown]
# **Try.** Three tokens.

# %% tags=["nbval-ignore-output"]
from attncourse import check
"""


def run_in_words(notebook):
    """Give the cells outputs as a kernel does, and return what such a kernel imports."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, 1):
        cell.execution_count = count
        cell.outputs = [nbformat.v4.new_output("stream", text=f"run of {cell.source}")]
    return run_in_words.imported


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """Return a copy of what builds depend on, and the files of it that a kernel imports which asks for checks."""
    root = tmp_path_factory.mktemp("house").resolve()
    for package in builds.PACKAGES:
        shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.txt", *builds.TOOLS, *builds.MODELS):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    code = "from attncourse import check\nfrom attnlib import live, plot\n" + execute.LIST
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=True)
    return root, json.loads(done.stdout)


@pytest.fixture
def house(copied, monkeypatch):
    """Return that copy with notebook 05, a short one, built; what a test changes in it is changed back."""
    root, imported = copied
    entry = SimpleNamespace(
        slug="masks", source=root / "notebooks" / "05_masks.py", built=root / "notebooks" / "05_masks.ipynb"
    )
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    monkeypatch.setattr(run_in_words, "imported", imported, raising=False)
    monkeypatch.setattr(execute, "execute_and_list", run_in_words)
    monkeypatch.setattr(build_notebooks, "ROOT", root)
    entry.source.write_text(SOURCE, "utf-8")
    build_notebooks.build(entry)
    yield SimpleNamespace(root=root, entry=entry, record=root / builds.FILE)
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".pyc" and before.get(path) != path.read_bytes():
            path.write_bytes(before[path]) if path in before else path.unlink()


def build(house, capsys):
    """Build once more; return what was said of it."""
    capsys.readouterr()
    build_notebooks.build(house.entry)
    return capsys.readouterr().out.partition(": ")[2].strip()


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8", newline="\n")


CHANGES = {  # file, what is there, what stands there then, what is said
    "a mask": ("attnlib/masks.py", "import numpy as np", "import numpy as np  # other", "run, for modules"),
    "a style": ("attnlib/live/view.css", "{", "{ color: red;", "run, for data"),
    "a script": ("attnlib/live/frames.js", "const ", "const  ", "run, for data"),
    "a stored result": ("attncourse/data/jumps_results.json", "0", "1", "run, for data"),
    "a lesson": ("attncourse/catalogue.py", '"""', '""" ', "run, for modules"),
    "a code cell": ("notebooks/05_masks.py", "causal_mask(2)", "causal_mask(3)", "run, for code"),
    "a tag": ("notebooks/05_masks.py", "nbval-ignore-output", "timed", "run, for code"),
    "a pin": ("requirements.txt", "tqdm==", "ipython==9\ntqdm==", "run, for pins"),
    "a tool": ("tools/execute.py", "WORST = 32", "WORST = 33", "run, for tools"),
    "a picture's encoder": ("attnlib/live/moving.py", "import", "import  # other\nimport", "run, for modules"),
    "an output": ("notebooks/05_masks.ipynb", "run of import", "ran", "run, for outputs"),
    "a module that the kernel did not import": ("attncourse/clinic/ward.py", '"""', '""" ', "outputs kept"),
    "a completion": ("attncourse/catalogue.pyi", "Written", "written", "outputs kept"),
    "a sentence": ("notebooks/05_masks.py", "who may look", "who sees whom", "outputs kept"),
    "a tag of a text": (
        "notebooks/05_masks.py",
        "[markdown]\n# **Try",
        '[markdown] tags=["predict"]\n# **Try',
        "outputs kept",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_outputs_are_kept_only_where_nothing_has_changed_that_they_depend_on(house, capsys, monkeypatch, change):
    monkeypatch.setattr(builds, "check_versions", lambda root: None)
    name, old, new, said = CHANGES[change]
    assert build(house, capsys) == "outputs kept"
    edit(house.root / name, old, new)
    assert build(house, capsys) == said
    assert build(house, capsys) == "outputs kept"


def test_a_new_module_counts_but_not_in_a_folder_that_was_not_imported(house, capsys):
    (house.root / "attncourse" / "clinic" / "other.py").touch()
    assert build(house, capsys) == "outputs kept"
    (house.root / "attncourse" / "lessons" / "masks" / "other.py").touch()  # the catalogue imports all lessons
    assert build(house, capsys) == "run, for modules"


def test_a_changed_sentence_changes_two_lines(house, capsys):
    record, before = house.record.read_bytes(), house.entry.built.read_text("utf-8").splitlines()
    edit(house.entry.source, "who may look", "who sees whom")
    assert build(house, capsys) == "outputs kept" and house.record.read_bytes() == record
    changed = difflib.unified_diff(before, house.entry.built.read_text("utf-8").splitlines(), n=0, lineterm="")
    lines = [line for line in list(changed)[2:] if line[0] in "+-"]
    assert lines == ['-    "A mask says who may look."', '+    "A mask says who sees whom."']


def test_a_text_that_moved_is_written_by_the_build_of_another_notebook(house, capsys):
    edit(house.entry.source, "who may look", "who sees whom")
    build_notebooks.write_moved_texts(house.entry)
    assert capsys.readouterr().out.endswith("outputs kept\n")
    assert "who sees whom" in house.entry.built.read_text("utf-8")
    build_notebooks.write_moved_texts(house.entry)
    edit(house.entry.source, "who sees whom", "who may look")
    edit(house.entry.source, "causal_mask(2)", "causal_mask(3)")
    build_notebooks.write_moved_texts(house.entry)
    assert capsys.readouterr().out == "05_masks.ipynb: older than its source. Fix: make notebooks NB=masks\n"


def test_a_hidden_answer_is_covered_once_and_uncovered_again(house, capsys):
    """Whether an output is folded is a matter of the text before it, which is none of the code."""
    plain = house.entry.built.read_bytes()
    edit(house.entry.source, "# %% [markdown]\n# # Masks", '# %% [markdown] tags=["predict"]\n# # Masks')
    assert build(house, capsys) == "outputs kept" and house.entry.built.read_bytes() != plain
    house.entry.source.write_text(SOURCE, "utf-8")
    assert build(house, capsys) == "outputs kept" and house.entry.built.read_bytes() == plain


@pytest.mark.parametrize("name", ["builds.json", "05_masks.ipynb"])
@pytest.mark.parametrize("state", ["<<<<<<< ours\n{\n=======\n{}\n>>>>>>> theirs\n", None])
def test_what_is_missing_or_in_the_middle_of_a_merge_is_run(house, capsys, name, state):
    path = house.root / "notebooks" / name
    whole = path.read_bytes()
    path.unlink() if state is None else path.write_text(state, "utf-8")
    assert build(house, capsys) == "run, for no build"
    assert path.read_bytes() == whole


def test_an_entry_of_another_branch_does_not_fit_a_merged_tree(house, capsys):
    """One branch changed a module, the other a style, each with its build; git takes entry and outputs of either."""
    taken = {}
    for name, old, new, _ in (CHANGES["a mask"], CHANGES["a style"]):
        whole = (house.root / name).read_bytes()
        edit(house.root / name, old, new)
        build(house, capsys)
        taken[name] = (house.record.read_bytes(), (house.root / name).read_bytes())
        (house.root / name).write_bytes(whole)
    for name, (_, text) in taken.items():
        (house.root / name).write_bytes(text)
    for record, _ in taken.values():
        house.record.write_bytes(record)
        assert build(house, capsys).startswith("run, for ")


def test_a_file_that_changes_while_a_notebook_runs_leaves_no_entry(house, capsys, monkeypatch):
    def run_and_edit(notebook):
        edit(house.root / "attnlib" / "masks.py", "import numpy as np", "import numpy as np  # other")
        return run_in_words(notebook)

    monkeypatch.setattr(execute, "execute_and_list", run_and_edit)
    build_notebooks.build(house.entry, fresh=True)
    assert "changed while it ran" in capsys.readouterr().out
    monkeypatch.setattr(execute, "execute_and_list", run_in_words)
    assert build(house, capsys) == "run, for no build"


def test_a_run_with_other_packages_or_versions_is_told(house, capsys, monkeypatch):
    monkeypatch.setattr(run_in_words, "imported", [*run_in_words.imported, str(ROOT / "attnlib" / "__init__.py")])
    with pytest.raises(SystemExit, match=r"must be run with the packages of the build: expected .+ imported .+ Fix"):
        build_notebooks.build(house.entry, fresh=True)
    edit(house.root / "requirements.txt", "tqdm==", "tqdm==0.")
    with pytest.raises(SystemExit, match=r"pinned versions: expected tqdm 0\..+ is installed. Fix: make setup-tests"):
        build_notebooks.build(house.entry)


def test_what_keeps_outputs_needs_neither_numpy_nor_a_kernel():
    heavy = ("attnlib", "numpy", "torch", "matplotlib", "nbclient", "PIL")
    code = f"import sys, tools.build_notebooks; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout.strip() == b"[]"
    )


@pytest.mark.slow
def test_the_files_that_a_kernel_imports_are_listed():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import attnlib.rotary")])
    files = execute.execute_and_list(notebook)
    assert str(ROOT / "attnlib" / "rotary.py") in files  # of the kernel
    assert str(ROOT / "attnlib" / "live" / "moving.py") in files  # of what makes pictures light
    assert len(notebook.cells) == 1 and not notebook.cells[0].outputs
