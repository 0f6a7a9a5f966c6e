"""Build notebooks/NN_name.ipynb from notebooks/src/NN_name.py: convert, execute in a fresh kernel, write.

    python -m tools.build_notebooks            all
    python -m tools.build_notebooks 03 05      those whose name starts so

The written file is a function of the source, of the public address (tools/links.py) and of what the cells print: cell
ids come from the cell text, no timestamps, no widget models. Two builds on one machine give the same bytes: a cell that
measures time is tagged "timed" and keeps what it printed in the build before, as long as its text is the same.

The source says nothing of where a notebook is opened: tools/first_cells.py does.
"""

import argparse
import base64
import copy
import functools
import hashlib
import io
import os

import jupytext
import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

from attnlib.live import moving

from . import links
from .first_cells import first_cells
from .series import NOTEBOOKS, SERIES, chosen, named, tagged

WIDGET = "application/vnd.jupyter.widget-view+json"
WORST = 32  # of 255: what the palette of a picture may change in a pixel
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


def read_source(path):
    """Return the notebook of a py:percent file and its first cells, without outputs, with ids made from the cells."""
    notebook = copy.deepcopy(parsed(path.read_text("utf-8")))
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen = {}
    for cell in notebook.cells:
        if "<!-- series -->" in cell.source:  # notebook 00 lists all others
            cell.source = cell.source.replace("<!-- series -->", rows())
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = f"{digest}-{seen[digest]}"
    badges, setup = (cell and nbformat.from_dict(cell) for cell in first_cells(named(path.stem), links.address()))
    title, *others = notebook.cells
    notebook.cells = [*([badges] if badges else []), title, setup, *others]  # a reader wants the title first
    hide_answers(notebook)
    return notebook


@functools.cache
def parsed(text):
    """Return the notebook of a py:percent text; a text is parsed once, since tests and tools read each many times."""
    return jupytext.reads(text, fmt="py:percent")


def rows():
    return "\n".join(
        f"| {n.number} | [{n.title}]({n.name}.ipynb) | {n.question} | {n.minutes} | {n.exercise_minutes} | {n.torch} |"
        for n in SERIES[1:]
    )


def hide_answers(notebook):
    """Save outputs that answer a question or an exercise hidden: JupyterLab and Notebook 7 show them after a run.

    They are those of the code cells below a text tagged "predict" or "solution", up to the next text. That something
    is kept answers nothing.
    """
    asked = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            asked = tagged(cell, "predict", "solution")
        elif asked and not cell.source.startswith(("guess_", "predict.", "mine.")):
            cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True


def code_between(number, start, stop):
    """Return the code cells of a source from the cell that holds one heading to the one that holds another."""
    (path,) = (NOTEBOOKS / "src").glob(f"{number}_*.py")
    cells = read_source(path).cells
    first, last = (next(i for i, cell in enumerate(cells) if heading in cell.source) for heading in (start, stop))
    return [cell.source for cell in cells[first:last] if cell.cell_type == "code"]


def execute(notebook):
    """Run all cells in order in a fresh kernel; an exception stops the build unless the cell is tagged for it."""
    # One BLAS thread: 8 x 8 matrices gain nothing from two, and on a busy machine they lose a lot.
    # A build shows what a reader sees who has kept nothing yet, and keeps what pages without a kernel show.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", ATTNLIB_MINE="", ATTNLIB_PAGES="1")
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


def keep_times(notebook, built):
    """Give cells tagged "timed" the outputs of the same cells in the notebook `built` before, if there is one."""
    before = {cell.id: cell for cell in nbformat.read(built, as_version=4).cells} if built.exists() else {}
    for cell in notebook.cells:
        if "timed" in cell.metadata.get("tags", []) and cell.id in before:
            cell.outputs = before[cell.id].outputs
    return notebook


def covered(notebook):
    """Put an output without data in front of hidden ones: JupyterLab tells the first line of the first output."""
    for cell in notebook.cells:
        hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden")
        if hidden and cell.outputs and cell.outputs[0].get("data") != {}:
            cell.outputs.insert(0, nbformat.v4.new_output("display_data"))
    return notebook


def describe(output):
    """Make a picture light, and give it its text as alternative text, which nbconvert puts into the page."""
    data = output.get("data", {})
    if "image/png" in data:
        data["image/png"] = lighter(data["image/png"])
        text = data["text/plain"]
        plain = "Plot, drawn by the code of this cell and described in the text around it."
        output.metadata["image/png"] = {"alt": plain if text.startswith("<Figure") else text}
    return output


def lighter(png):
    """Return a picture, base64, with a palette: a third of the size. As it was, where a colour would change visibly."""
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    if picture.mode != "RGBA":
        return png
    pixels = np.array(picture)
    small = moving.encode_apng([pixels])
    off = on_a_page(pixels) - on_a_page(np.array(Image.open(io.BytesIO(small)).convert("RGBA")))
    return base64.b64encode(small).decode() if abs(off).max() <= WORST else png


def on_a_page(pixels):
    """Return what pixels (height, width, RGBA) add to a page of any colour, and how much of it they hide."""
    hidden = pixels[..., 3:].astype(float)
    return np.concatenate([pixels[..., :3] * hidden / 255, hidden], axis=-1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="*", help="numbers of notebooks, all by default")
    for notebook in chosen(parser.parse_args().prefixes):
        print(f"building {notebook.built.name}", flush=True)
        built = keep_times(execute(read_source(notebook.source)), notebook.built)
        nbformat.write(covered(built), notebook.built)
    links.rewrite(links.address())  # the table of README


if __name__ == "__main__":
    main()
