"""The built notebooks: what nbval cannot see, and every slider moved through its range."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tools import build_notebooks as build
from tools.series import SERIES

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"


def name(path):
    return path.stem


@pytest.fixture(params=NOTEBOOKS, ids=name)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def test_every_source_is_built():
    assert [p.stem for p in NOTEBOOKS] == [p.stem for p in sorted((ROOT / "notebooks" / "src").glob("*.py"))]
    assert [p.stem for p in NOTEBOOKS] == [notebook.name for notebook in SERIES]


def test_was_run_top_to_bottom(notebook):
    # nbval compares nothing in a notebook without outputs, so their presence is checked here.
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert not [output for output in outputs(notebook) if output.get("name") == "stderr"]


def test_equals_its_source(path, notebook):
    source = build.read_source(path.parent / "src" / f"{path.stem}.py")
    assert build.cells(notebook) == build.cells(source)


def test_is_stable(path, notebook):
    text = path.read_text("utf-8")
    assert notebook.metadata == build.METADATA
    assert WIDGET not in text
    assert not re.search(r" at 0x[0-9a-f]{6,}", text)
    assert not re.search(r"/(tmp|home|Users)/\w", text)
    assert path.stat().st_size < 1_000_000


def test_follows_the_rules_of_the_series(path, notebook):
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "import attnlib" in text
    assert "live." in text and "plot." in text
    assert "**Remember.**" in notebook.cells[-1].source
    for cell in code_cells(notebook):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        limit = 20 if re.search("^class ", cell.source, re.MULTILINE) else 12
        assert len(lines) <= limit, f"a cell of {len(lines)} lines: {lines[0]}"
    if not path.stem.startswith("00"):
        assert "**Predict.**" in text and "Break it" in text and "Try it" in text


def test_fits_a_projector(notebook):
    """88 columns are what JupyterLab shows at 1024 px without scrolling, and a slide, too."""
    lines = [line for cell in code_cells(notebook) for line in cell.source.splitlines()]
    printed = "".join(output.text for output in outputs(notebook) if output.output_type == "stream").splitlines()
    assert not [line for line in lines + printed if len(line) > 88]


def test_every_picture_has_text(notebook):
    # What a screen reader, or a page that strips pictures, is left with.
    for output in outputs(notebook):
        if "image/png" in output.get("data", {}):
            assert output.data["text/plain"].strip()
            assert len(output.metadata["image/png"]["alt"]) > 20


def test_01_needs_no_numpy():
    notebook = nbformat.read(ROOT / "notebooks" / "01_by_hand.ipynb", as_version=4)
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert "numpy" not in modules
            assert not (isinstance(node, ast.ImportFrom) and node.module == "numpy")


# Python tells a hook before it opens a file or a connection. What the hook raises is what a folder without write
# permission, or a machine without a network, would raise; neither could be had for a test that runs as root.
OFFLINE_AND_READ_ONLY = """
import os as _os, sys as _sys

def _forbid(event, arguments):
    if event in ("open", "os.mkdir", "os.remove", "os.rename"):
        writes = event != "open" or arguments[2] & (_os.O_WRONLY | _os.O_RDWR | _os.O_CREAT)
        path = arguments[0]
        if writes and isinstance(path, str | bytes) and _os.path.abspath(_os.fsdecode(path)).startswith(_root):
            raise PermissionError(f"this folder cannot be written to: {path}")
    elif event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost", None):
            raise OSError(f"no network: {address[0]}")

_root = _os.path.dirname(_os.getcwd())
_sys.addaudithook(_forbid)
"""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('written.txt', 'w')", PermissionError),
        ("__import__('os').mkdir('made')", PermissionError),
        ("__import__('urllib.request').request.urlopen('http://github.com')", OSError),
        ("__import__('socket').create_connection(('192.0.2.1', 80), 1)", OSError),
    ],
)
def test_the_hook_forbids_writing_and_connecting(tmp_path, code, error):
    (tmp_path / "notebooks").mkdir()
    script = f"{OFFLINE_AND_READ_ONLY}\nopen(_sys.executable, 'rb').close()\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "notebooks", capture_output=True, encoding="utf-8", check=False
    )
    assert ("cannot be written" if error is PermissionError else "no network") in done.stderr
    assert not list((tmp_path / "notebooks").iterdir())


MOVE_EVERY_SLIDER = """
from attnlib import live as _live

def _values(slider):
    if isinstance(slider.value, str) and not hasattr(slider, "options"):
        return [slider.value, "<b>two</b> words"]
    if hasattr(slider, "options"):
        return [value for _, value in slider._options_full]
    step = max(1, (slider.max - slider.min) // 40)
    return list(range(slider.min, slider.max, step)) + [slider.max]

_views = [value for value in list(globals().values()) if isinstance(value, _live.LiveView)]
assert _views, "no live view"
for _view in _views:
    for _name, _slider in _view.sliders.items():
        _start, _pictures, _peak = _slider.value, [], []
        for _value in _values(_slider):
            _slider.value = _value
            assert "<pre>" not in _view.picture.value, _view.picture.value
            _pictures.append(_view.picture.value)
            _peak.append({title: float(w.max(-1).mean()) for title, w in _view.shown.items()})
        print(_name, len(_pictures), len(set(_pictures)))
        for _title in _peak[0].keys() & _peak[-1].keys():  # a message shows no map
            print("|".join([_title, f"{_peak[0][_title]:.6f}", f"{_peak[-1][_title]:.6f}"]))
        _slider.value = _start
"""


def test_every_slider_moves_its_picture(path, notebook):
    """Unscaled weights grow peakier with d_k; scaled ones do not. The number of heads lowers d_k, so it is reversed.

    Divided by sqrt(embed_dim) they grow peakier, too: that is how they get too flat as heads are added.
    All this without a network, and in a folder that cannot be written to.
    """
    notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE_AND_READ_ONLY))
    notebook.cells.append(nbformat.v4.new_code_cell(MOVE_EVERY_SLIDER))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
    lines = "".join(o.text for o in notebook.cells[-1].outputs if o.output_type == "stream").splitlines()
    seen = 0
    for line in lines:
        if "|" not in line:
            slider, steps, different = line.split()
            assert int(different) > int(steps) / 2, line
            continue
        if slider not in ("d_k", "num_heads"):
            continue
        title, first, last = line.split("|")
        first, last = (float(last), float(first)) if slider == "num_heads" else (float(first), float(last))
        if title in ("not scaled", "divided by sqrt(embed_dim)"):
            assert last > first + 0.1, line
            seen += 1
        elif title == "divided by sqrt(d_k)":
            assert last < first + 0.05, line
            seen += 1
    # After training (08, 09) a map may be peaky or broad for good reasons: there only the moving counts.
    assert seen >= 2 or path.stem[:2] in ("08", "09")


def test_notebooks_without_torch_run_without_torch(tmp_path):
    """They must run, and say what is missing, where torch is not installed."""
    block = tmp_path / "torch"
    block.mkdir()
    (block / "__init__.py").write_text("raise ImportError('torch is blocked in this test')", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    script = (
        "import nbformat, sys; from nbclient import NotebookClient\n"
        "for path in sys.argv[1:]:\n"
        "    notebook = nbformat.read(path, as_version=4)\n"
        "    NotebookClient(notebook, timeout=300).execute()\n"
        "    print(''.join(o.get('text', '') for c in notebook.cells for o in c.get('outputs', [])))\n"
    )
    paths = [str(notebook.built) for notebook in SERIES if notebook.torch != "yes"]
    result = subprocess.run(
        [sys.executable, "-c", script, *paths], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("torch is not installed") == sum(n.torch == "one section" for n in SERIES)
