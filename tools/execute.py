"""Run a notebook in a fresh kernel, and make its outputs what a build saves: no widgets, light pictures with a text."""

import base64
import copy
import io
import json
import os
import sys

import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

from attnlib.live import moving

from .series import NOTEBOOKS

WIDGET = "application/vnd.jupyter.widget-view+json"
WORST = 32  # of 255: what the palette of a picture may change in a pixel
# Run after the last cell.
LIST = """\
import json, sys
print(json.dumps([m.__file__ for m in [*sys.modules.values()] if getattr(m, "__file__", None)]))"""


def execute_and_list(notebook):
    """Run all cells as `execute` does; return the files of all modules in the kernel, and of those that serve here."""
    notebook.cells.append(nbformat.v4.new_code_cell(LIST))
    execute(notebook)
    here = [module.__file__ for module in [*sys.modules.values()] if getattr(module, "__file__", None)]
    return json.loads(notebook.cells.pop().outputs[0].text) + here


def execute(notebook):
    """Run all cells in order in a fresh kernel; an exception stops the build unless the cell is tagged for it."""
    # One BLAS thread: 8 x 8 matrices gain nothing from two, and on a busy machine they lose a lot.
    # A build shows what a reader sees who has kept nothing yet, and keeps what pages without a kernel show.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", ATTNLIB_MINE="", ATTNLIB_PAGES="1")
    metadata = copy.deepcopy(notebook.metadata)
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
    notebook.metadata = metadata  # without the widget state and the Python version of this run
    return notebook


def keep(output):
    """Drop widgets: their model ids are random, and without a kernel they show an error. Static pictures stay."""
    if output.output_type == "stream" and output.name == "stderr":
        raise SystemExit(f"a cell wrote to stderr, which readers see as an error:\n{output.text}")
    return WIDGET not in output.get("data", {})


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
