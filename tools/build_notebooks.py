"""Build notebooks/NN_name.ipynb from notebooks/src/NN_name.py: convert, execute in a fresh kernel, write.

    python tools/build_notebooks.py            all
    python tools/build_notebooks.py 03 05      those whose name starts so
    python tools/build_notebooks.py --check    execute nothing; fail if a pair differs in its cells

The written file is a function of the source, of the public address (tools/links.py) and of what the cells print: cell
ids come from the cell text, no timestamps, no widget models. Two builds on one machine give the same bytes.

The source says nothing of where a notebook is opened. The build puts a cell with badges above the title, and below it
the cell that makes attnlib importable.
"""

import argparse
import hashlib
import os
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from links import address
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
WIDGET = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}
BADGES = """\
[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/{repo}/blob/{branch}/notebooks/{name}.ipynb)
[![Open in Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/{repo}/{branch}?labpath=notebooks%2F{name}.ipynb)
· [all notebooks](https://github.com/{repo}#the-notebooks)"""
# An error stops "Run all" (SystemExit does not), and JupyterLab then clears the outputs of the cells not run.
SETUP = """\
# Where attnlib is installed this does nothing. In Colab it installs attnlib, no more.
import subprocess, sys
from importlib.util import find_spec

source = "git+https://github.com/{repo}@{branch}"
if not find_spec("attnlib") and "google.colab" in sys.modules:
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps"]
    subprocess.run([*pip, source])
if not find_spec("attnlib"):
    raise ImportError(f"attnlib is missing. Type: make lab, or: pip install {{source}}")"""
SETUP_TORCH = """
if not find_spec("torch"):
    how = "Saved outputs: reload the page. To run it: Colab (badge) or make lab."
    raise ImportError(f"PyTorch is missing (a browser cannot run it). {{how}}")"""


def read_source(path):
    """Return the notebook of a py:percent file and its first cells, without outputs, with ids made from the cells."""
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = f"{digest}-{seen[digest]}"
    badges, setup = first_cells(path.stem, any(re.search("^import torch", c.source, re.M) for c in notebook.cells))
    notebook.cells[:1] = [badges, notebook.cells[0], setup]  # the title stands between: a reader wants it first
    return notebook


def code_between(number, start, stop):
    """Return the code cells of a source from the cell that holds one heading to the one that holds another."""
    (path,) = (NOTEBOOKS / "src").glob(f"{number}_*.py")
    cells = read_source(path).cells
    first, last = (next(i for i, cell in enumerate(cells) if heading in cell.source) for heading in (start, stop))
    return [cell.source for cell in cells[first:last] if cell.cell_type == "code"]


def first_cells(name, needs_torch):
    """Return the cell with the badges and the one that makes attnlib importable.

    Their ids do not come from their text, so that `make links` can change the address and no id with it. Slides leave
    both out.
    """
    words = {**address()._asdict(), "name": name}
    skip = {"slideshow": {"slide_type": "skip"}}
    setup = (SETUP + SETUP_TORCH * needs_torch).format_map(words)
    folded = {"jupyter": {"source_hidden": True}}  # in JupyterLab: what comes first is for the reader
    return [
        nbformat.v4.new_markdown_cell(BADGES.format_map(words), id="badges", metadata=skip),
        nbformat.v4.new_code_cell(setup, id="setup", metadata=skip | folded),
    ]


def execute(notebook):
    """Run all cells in order in a fresh kernel; an exception stops the build unless the cell is tagged for it."""
    # One BLAS thread: 8 x 8 matrices gain nothing from two, and on a busy machine they lose a lot.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    client = NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": NOTEBOOKS}},
        extra_arguments=["--log-level=ERROR"],  # without it each kernel warns of TCP, which is all Jupyter uses
    )
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [describe(output) for output in cell.outputs if keep(output)]
    notebook.metadata = nbformat.from_dict(METADATA)  # the widget state and the Python version of this run
    return notebook


def keep(output):
    """Drop widgets: their model ids are random, and without a kernel they show an error. Static pictures stay."""
    if output.output_type == "stream" and output.name == "stderr":
        raise SystemExit(f"a cell wrote to stderr, which readers see as an error:\n{output.text}")
    return WIDGET not in output.get("data", {})


def describe(output):
    """Give a picture its text as alternative text, which nbconvert puts into the page."""
    data = output.get("data", {})
    if "image/png" in data:
        text = data["text/plain"]
        plain = "Plot, drawn by the code of this cell and described in the text around it."
        output.metadata["image/png"] = {"alt": plain if text.startswith("<Figure") else text}
    return output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="*", help="numbers of notebooks, all by default")
    parser.add_argument("--check", action="store_true", help="only compare the cells of each pair")
    arguments = parser.parse_args()
    sources = sorted((NOTEBOOKS / "src").glob("*.py"))
    chosen = [path for path in sources if not arguments.prefixes or path.name.startswith(tuple(arguments.prefixes))]
    if not chosen:
        sys.exit(f"no notebook starts with {arguments.prefixes}; there are {[path.stem for path in sources]}")
    drifted = []
    for source in chosen:
        target, notebook = NOTEBOOKS / f"{source.stem}.ipynb", read_source(source)
        if arguments.check:
            if not target.exists() or cells(nbformat.read(target, as_version=4)) != cells(notebook):
                drifted.append(target.name)
            continue
        print(f"building {target.name}", flush=True)
        nbformat.write(execute(notebook), target)
    if drifted:
        sys.exit(f"{', '.join(drifted)}: not built from the source beside it. Fix: make notebooks")


def cells(notebook):
    return [(cell.id, cell.cell_type, cell.source, cell.metadata) for cell in notebook.cells]


if __name__ == "__main__":
    main()
