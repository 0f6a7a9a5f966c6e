"""The first code cell of every notebook: silent at home, installs attnlib alone in Colab, elsewhere it helps."""

import importlib.machinery
import importlib.util
import re
import subprocess
import sys
import types

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tools import build_notebooks as build
from tools import links
from tools.first_cells import first_cells
from tools.series import SERIES, find_notebook

PUBLIC = links.Address("octocat/attnlib", "main")
NEED_TORCH = [notebook for notebook in SERIES if notebook.torch == "yes"]


def setup(name, where=PUBLIC):
    """Return the cell of a notebook at a public address, or in a copy without one (None)."""
    notebook = find_notebook(name)
    return first_cells(notebook, where)[1]["source"]


def test_the_cell_is_the_first_code_of_every_notebook():
    for notebook in SERIES:
        code = next(cell for cell in build.read_source(notebook.source).cells if cell.cell_type == "code")
        assert code.source == setup(notebook.slug, links.address())


@pytest.fixture
def machine(monkeypatch):
    """Return what a cell finds on this machine: the packages it sees, and the commands it ran."""
    found = types.SimpleNamespace(packages={"attnlib", "torch"}, commands=[], pip_works=True)

    def find_spec(name):
        return importlib.machinery.ModuleSpec(name, None) if name in found.packages else None

    def run(command):
        found.commands.append(command)
        found.packages |= {"attnlib"} if found.pip_works else set()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delitem(sys.modules, "google.colab", raising=False)
    return found


@pytest.fixture
def colab(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    return machine


@pytest.mark.parametrize("name", ["by_hand", "pytorch_module"])
@pytest.mark.parametrize("where", [PUBLIC, None])
def test_where_all_is_installed_nothing_happens(colab, capsys, name, where):
    exec(setup(name, where), {})
    assert colab.commands == [] and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["by_hand", "pytorch_module"])
def test_colab_installs_attnlib_alone(colab, name):
    colab.packages.remove("attnlib")
    exec(setup(name), {})
    repo, branch = PUBLIC
    (command,) = colab.commands
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert "--no-deps" in command and command[-1] == f"git+https://github.com/{repo}@{branch}"
    assert [word for word in command[4:] if not word.startswith("-")] == command[-1:]


def test_colab_says_so_when_the_install_failed(colab):
    colab.packages.remove("attnlib")
    colab.pip_works = False
    with pytest.raises(ImportError, match="attnlib is missing"):
        exec(setup("by_hand"), {})


@pytest.mark.parametrize("name", ["by_hand", "pytorch_module"])
def test_elsewhere_it_says_what_to_type(machine, name):
    machine.packages.remove("attnlib")
    with pytest.raises(ImportError, match=r"make lab, or: pip install git\+https://github\.com/"):
        exec(setup(name), {})
    with pytest.raises(ImportError, match=r"missing beside this notebook\. .+: make lab$"):
        exec(setup(name, None), {})
    assert machine.commands == []


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.name)
@pytest.mark.parametrize(
    ("where", "open_it"),
    [(PUBLIC, r"Colab \(badge\), pip install torch, or make lab"), (None, "run it: pip install torch, or make lab")],
)
def test_without_torch_the_torch_notebooks_say_where_they_run(machine, notebook, where, open_it):
    machine.packages.remove("torch")
    cell = setup(notebook.slug, where)
    if notebook not in NEED_TORCH:
        exec(cell, {})
        return
    with pytest.raises(ImportError, match=rf"a browser cannot .*\. Saved outputs: .* {open_it}\.$"):
        exec(cell, {})


def test_the_series_says_which_notebooks_import_torch():
    """The whole notebook where the first cell asks for it, else in a cell that says what is missing."""
    for notebook in SERIES:
        code = [c.source for c in build.read_source(notebook.source).cells if c.cell_type == "code"]
        at_the_top = any(re.search("^import torch", source, re.MULTILINE) for source in code)
        somewhere = any("torch" in re.findall(r"^\s*(?:import|from) (\w+)", source, re.MULTILINE) for source in code)
        assert notebook.torch == ("yes" if at_the_top else "in part" if somewhere else "no"), notebook.name
        assert notebook.browser == (notebook.torch != "yes"), notebook.name


def test_a_failure_is_short_and_stops_the_cells_below(monkeypatch):
    """In a real kernel: ImportError does both; SystemExit lets the cells below run."""
    notebook = build.read_source(NEED_TORCH[0].source)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    hide = "import importlib.util\nimportlib.util.find_spec = lambda name: name == 'attnlib'"
    notebook.cells = [nbformat.v4.new_code_cell(hide), code[0], nbformat.v4.new_code_cell("print('ran on')")]
    with pytest.raises(CellExecutionError, match="PyTorch is missing"):
        NotebookClient(notebook, timeout=60).execute()
    (output,) = notebook.cells[1].outputs
    assert len("\n".join(output.traceback).splitlines()) <= 12
    assert notebook.cells[2].outputs == []


def test_a_figure_that_no_cell_returns_is_shown():
    """Also a kernel's first, which loads the backend: that turns on what sends figures at the end of a cell."""
    code = "from attnlib import plot\n_, ax = plot.subplots()\n_ = ax.plot([1, 2])"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    (output,) = NotebookClient(notebook, timeout=60).execute().cells[0].outputs
    assert "image/png" in output.data
