"""The first code cell of every notebook: silent at home, installs attnlib alone in Colab, elsewhere it helps."""

import importlib.machinery
import importlib.util
import subprocess
import sys
import types

import build_notebooks as build
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SOURCES = sorted((build.NOTEBOOKS / "src").glob("*.py"))
NEED_TORCH = ("04", "06", "07", "08", "09")


def setup(number):
    (path,) = (path for path in SOURCES if path.name.startswith(number))
    return next(cell for cell in build.read_source(path).cells if cell.cell_type == "code").source


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


@pytest.mark.parametrize("number", ["01", "04"])
def test_where_all_is_installed_nothing_happens(colab, capsys, number):
    exec(setup(number), {})
    assert colab.commands == [] and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", ["01", "04"])
def test_colab_installs_attnlib_alone(colab, number):
    colab.packages.remove("attnlib")
    exec(setup(number), {})
    repo, branch = build.address()
    (command,) = colab.commands
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert "--no-deps" in command and command[-1] == f"git+https://github.com/{repo}@{branch}"
    assert [word for word in command[4:] if not word.startswith("-")] == command[-1:]


def test_colab_says_so_when_the_install_failed(colab):
    colab.packages.remove("attnlib")
    colab.pip_works = False
    with pytest.raises(ImportError, match="attnlib is missing"):
        exec(setup("01"), {})


@pytest.mark.parametrize("number", ["01", "04"])
def test_elsewhere_it_says_what_to_type(machine, number):
    machine.packages.remove("attnlib")
    with pytest.raises(ImportError, match=r"make lab, or: pip install git\+https://github\.com/"):
        exec(setup(number), {})
    assert machine.commands == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_without_torch_the_torch_notebooks_say_where_they_run(machine, path):
    machine.packages.remove("torch")
    cell = setup(path.name[:2])
    if path.name[:2] not in NEED_TORCH:
        exec(cell, {})
        return
    with pytest.raises(ImportError, match=r"a browser cannot .*\. Saved outputs: .* Colab \(badge\) or make lab"):
        exec(cell, {})


def test_a_failure_is_short_and_stops_the_cells_below(monkeypatch):
    """In a real kernel: ImportError does both; SystemExit lets the cells below run."""
    notebook = build.read_source(SOURCES[4])
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    hide = "import importlib.util\nimportlib.util.find_spec = lambda name: name == 'attnlib'"
    notebook.cells = [nbformat.v4.new_code_cell(hide), code[0], nbformat.v4.new_code_cell("print('ran on')")]
    with pytest.raises(CellExecutionError, match="PyTorch is missing"):
        NotebookClient(notebook, timeout=60).execute()
    (output,) = notebook.cells[1].outputs
    assert len("\n".join(output.traceback).splitlines()) <= 12
    assert notebook.cells[2].outputs == []
