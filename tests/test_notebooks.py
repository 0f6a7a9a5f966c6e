"""The built notebooks: what nbval cannot see. What happens when they run is held by one_run.py, in nbval's kernel."""

import ast
import base64
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from PIL import Image

from attnlib import plot
from tools import build_notebooks as build
from tools import execute
from tools.numbering import ORDER, SOURCES
from tools.series import SERIES, TAUGHT, find_notebook, main_path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"


def name(path):
    return path.stem


@pytest.fixture(params=NOTEBOOKS, ids=name, scope="module")
def path(request):
    return request.param


@pytest.fixture(scope="module")
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def test_every_source_is_built():
    """The number of a file is its place in the order."""
    assert [p.stem for p in NOTEBOOKS] == [notebook.name for notebook in SERIES]
    assert {p.stem for p in SOURCES.glob("*.py")} == set(ORDER)


def test_was_run_top_to_bottom(notebook):
    # nbval compares nothing in a notebook without outputs, so their presence is checked here.
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert not [output for output in outputs(notebook) if output.get("name") == "stderr"]


def test_equals_its_source(path, notebook):
    source = build.read_source(find_notebook(path.stem[3:]).source)
    cells, written = (
        [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in n.cells] for n in (notebook, source)
    )
    assert cells == written, "not built from the source beside it. Fix: make notebooks"


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
    assert ("live." in text or "from attncourse.views" in text) and "plot." in text
    after = [i for i, c in enumerate(notebook.cells) if re.match("## (Appendix|Controls)", c.source)] or [0]
    assert "**Remember.**" in notebook.cells[after[0] - 1].source
    for cell in code_cells(notebook):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        limit = 20 if re.search("^ *class ", cell.source, re.MULTILINE) else 12
        assert len(lines) <= limit, f"a cell of {len(lines)} lines: {lines[0]}"
    if path.stem in [entry.name for entry in TAUGHT]:
        assert "**Predict.**" in text and "Break it" in text and "Try it" in text


TELLS_OF_THE_MACHINE = re.compile(r"\b(find_spec|real_model\.find|perf_counter|cpu_count)\(|\b(platform|psutil)\.")


def test_what_tells_of_the_machine_is_not_compared(notebook):
    """Of a cell tagged so nbval compares no output; `make test` must be green on any machine."""
    for cell in code_cells(notebook):
        if TELLS_OF_THE_MACHINE.search(cell.source) and cell.outputs:
            assert "nbval-ignore-output" in cell.metadata.get("tags", []), cell.source


def test_a_time_is_kept_from_the_build_before_until_its_cell_changes():
    def built(*times):
        cells = [
            nbformat.v4.new_code_cell(
                source, id=source, metadata={"tags": tags}, outputs=[nbformat.v4.new_output("stream", text=text)]
            )
            for (source, tags), text in zip(
                (("same", ["timed"]), (f"new{times[1]}", ["timed"]), ("plain", [])), times, strict=True
            )
        ]
        return nbformat.v4.new_notebook(cells=cells)

    before = built("1", "2", "3")
    assert [c.outputs[0].text for c in build.keep_times(built("1", "2", "3"), None).cells] == ["1", "2", "3"]
    assert [c.outputs[0].text for c in build.keep_times(built("4", "5", "6"), before).cells] == ["1", "5", "6"]


def test_the_first_line_of_a_hidden_answer_is_not_told():
    """JupyterLab writes it where the output is folded; an output without data has none, and no place shows it."""
    answer = [nbformat.v4.new_output("stream", text="8, the root of 64")]
    cells = [
        nbformat.v4.new_code_cell(id=name, metadata={"jupyter": jupyter}, outputs=answer[:])
        for name, jupyter in (("asked", {"outputs_hidden": True}), ("shown", {}))
    ]
    cells.append(nbformat.v4.new_code_cell(id="silent", metadata=cells[0].metadata))
    notebook = build.hide_first_line(build.hide_first_line(nbformat.v4.new_notebook(cells=cells)))
    nbformat.validate(notebook)
    told = [[(output.output_type, output.get("data")) for output in cell.outputs] for cell in notebook.cells]
    assert told == [[("display_data", {}), ("stream", None)], [("stream", None)], []]


def test_fits_a_projector(notebook):
    """88 columns are what JupyterLab shows at 1024 px without scrolling, and a slide, too."""
    lines = [line for cell in code_cells(notebook) for line in cell.source.splitlines()]
    printed = "".join(output.text for output in outputs(notebook) if output.output_type == "stream").splitlines()
    assert not [line for line in lines + printed if len(line) > 88]


def test_what_a_slider_computes_with_is_not_assigned_again(notebook):
    """A view calls its function when a slider moves, after Run All: with what later cells have left in its names."""
    cells = [ast.parse(re.sub("^[%!].*", "", cell.source, flags=re.MULTILINE)) for cell in code_cells(notebook)]
    stored = [
        {name.id for name in ast.walk(cell) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        for cell in cells
    ]
    functions = {f.name: f for cell in cells for f in cell.body if isinstance(f, ast.FunctionDef)}
    for at, cell in enumerate(cells):
        for call in (node for node in ast.walk(cell) if isinstance(node, ast.Call) and node.args):
            if not (isinstance(call.func, ast.Attribute) and call.func.attr == "weights_view"):
                continue
            function = functions[call.args[0].id]
            own = {arg.arg for arg in function.args.args}
            names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
            own |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            later = set().union(*stored[at + 1 :])
            assert ({name.id for name in names} - own) & later <= {"model"}  # that of two_texts is set back


def test_no_sentence_becomes_a_list(notebook):
    """A line that begins with "1. " in the middle of a paragraph is one to a page, and cuts the sentence."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert not [found for text in texts for found in re.findall(r"^(?![ \d*|#>-]).+\n1\. .*", text, re.MULTILINE)]


def test_every_picture_has_text(notebook):
    # What a screen reader, or a page that strips pictures, is left with.
    for output in outputs(notebook):
        if "image/png" in output.get("data", {}):
            assert output.data["text/plain"].strip()
            assert len(output.metadata["image/png"]["alt"]) > 20


def as_base64(pixels):
    png = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(png, "PNG")
    return base64.b64encode(png.getvalue()).decode()


def test_a_picture_is_made_light_only_where_no_colour_changes_visibly():
    map_of_weights = plot.attention_heatmap(np.linspace(0, 1, 36).reshape(6, 6), title="a map").figure
    drawn = base64.b64encode(plot.save(map_of_weights)).decode()
    light = execute.lighter(drawn)
    assert len(light) < 0.5 * len(drawn) and execute.lighter(light) == light
    before, after = (
        execute.on_a_page(np.array(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")))
        for png in (drawn, light)
    )
    assert 0 < abs(before - after).max() <= execute.WORST
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 4), dtype=np.uint8)  # 1600 colours
    assert execute.lighter(as_base64(noise)) == as_base64(noise)
    faint = np.where(np.arange(4) < 3, noise, 1).astype(np.uint8)  # nobody sees what is nearly transparent
    assert execute.lighter(as_base64(faint)) != as_base64(faint)


def test_01_needs_no_numpy():
    notebook = nbformat.read(find_notebook("by_hand").built, as_version=4)
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert "numpy" not in modules
            assert not (isinstance(node, ast.ImportFrom) and node.module == "numpy")


RUN_CELLS = """
import json, sys

for cells in json.load(sys.stdin):
    names = {"__name__": "__main__", "display": lambda *things: None}
    for cell in cells:
        exec(cell, names)
"""


@pytest.mark.slow
def test_notebooks_without_torch_run_without_torch(tmp_path):
    """They must run, and say what is missing, where torch is not installed.

    Where it is installed, one_run.py keeps it from the notebooks that need none.
    """
    block = tmp_path / "torch"
    block.mkdir()
    (block / "__init__.py").write_text("raise ImportError('torch is blocked in this test')", encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "MPLBACKEND": "agg",
    }
    without = {"in part"} if importlib.util.find_spec("torch") else {"in part", "no"}
    sources = (build.read_source(notebook.source) for notebook in SERIES if notebook.torch in without)
    cells = json.dumps([[cell.source for cell in code_cells(source)] for source in sources])
    command, options = [sys.executable, "-c", RUN_CELLS], {"capture_output": True, "encoding": "utf-8", "check": False}
    result = subprocess.run(command, input=cells, env=environment, **options)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("torch is not installed") == sum(n.torch == "in part" for n in SERIES)


@pytest.mark.slow
def test_a_notebook_of_each_kind_runs_from_the_wheel(tmp_path):
    """What is not packed, such as a file of data or of JavaScript, is missed nowhere else: tests import the folder."""
    for package in ("attnlib", "attncourse"):
        shutil.copytree(ROOT / package, tmp_path / "source" / package)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CC-BY-4.0", "NOTICE"):
        shutil.copy(ROOT / name, tmp_path / "source")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, tmp_path / "source"]
    subprocess.run(wheel, check=True)
    (built,) = tmp_path.glob("attnlib-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "installed", built], check=True)
    kinds = {notebook.torch: notebook for notebook in reversed(SERIES)}
    cells = [["import attnlib; assert 'installed' in attnlib.__file__"]]
    cells += [[cell.source for cell in code_cells(build.read_source(notebook.source))] for notebook in kinds.values()]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "MPLBACKEND": "agg", "ATTNLIB_MINE": ""}
    command = [sys.executable, "-c", RUN_CELLS]
    options = {"capture_output": True, "encoding": "utf-8", "check": False, "cwd": tmp_path}
    result = subprocess.run(command, input=json.dumps(cells), env=environment, **options)
    assert len(kinds) == 3 and result.returncode == 0, result.stderr[-3000:]


def test_what_is_said_in_every_notebook_is_said_in_one_way():
    """A fold's bold title; axes in numbers and not in powers of two; `mine` is what loads a reader's own code."""
    for notebook in SERIES:
        source = notebook.source.read_text("utf-8")
        assert "<summary>How sure is this?" not in source, notebook.source
        assert not re.search(r"^mine =|\bas mine\b", source, re.M), notebook.source
        for cell in source.split("# %%"):
            assert "base=2" not in cell or 'set_major_formatter("{x:g}")' in cell, cell


def test_the_first_notebook_lists_the_series_as_it_is():
    told = nbformat.read(SERIES[0].built, as_version=4)
    table = "\n".join(cell.source for cell in told.cells if cell.cell_type == "markdown")
    rows = [line.split(" | ") for line in table.splitlines() if re.match(r"\| \d\d \|", line)]
    assert [row[0] + row[1] for row in rows] == [f"| {n.number}[{n.title}]({n.name}.ipynb)" for n in SERIES[1:]]
    assert [row[3:5] for row in rows] == [[str(n.minutes), str(n.exercise_minutes)] for n in SERIES[1:]]


@pytest.mark.parametrize("entry", SERIES[1:], ids=lambda entry: entry.number)
def test_a_notebook_says_the_minutes_that_it_takes(entry):
    start = re.sub(r"^# ?", "", entry.source.read_text("utf-8").split("# %%")[1], flags=re.MULTILINE)
    said = re.search(r"\*(\d+)\s+minutes(?:,\s+and\s+(\d+)\s+for\s+exercises)?", start)
    assert int(said[1]) == entry.minutes and int(said[2] or entry.exercise_minutes) == entry.exercise_minutes


def test_only_the_main_path_takes_minutes():
    cell = "# %% [markdown]\n# "
    counted = [
        cell + "## One\n#\n# Two words, $x = 1$ and `code`.\n#\n# | a | b |\n",
        "# %%\nx = 1\n# why\n\ny = 2\n",
        cell + "**Predict.** What?\n",
    ]
    folded = cell + "<details><summary><b>How sure is this?</b></summary>\n#\n# Very.\n#\n# </details>\n"
    hidden = '# %% jupyter={"source_hidden": true}\nz = 3\n'
    exercise = cell + "### Exercise 1.1 · Do it\n#\n# Now.\n" + "# %%\nanswer = None\n"
    rest = [cell + "## Two\n#\n# Word.\n#\n# **Remember.** All of this.\n", cell + "No more.\n", "# %%\nx = 2\n"]
    assert main_path("".join([*counted, folded, hidden, exercise, *rest])) == (5 + 2 + 1, 2, 1)
