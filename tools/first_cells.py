"""The two cells that no source holds: badges above the title, and below it the cell that makes attnlib importable.

Both are written by the build and by `make links`.
"""

BADGES = """\
[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab})
[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder})
· [all notebooks]({page}#the-series)"""
# An error stops "Run all" (SystemExit does not), and JupyterLab then clears the outputs of the cells not run.
SETUP = """\
# Where attnlib is installed this does nothing. In Colab it installs attnlib, no more.
import subprocess, sys
from importlib.util import find_spec

source = "git+{page}@{branch}"
if not find_spec("attnlib") and "google.colab" in sys.modules:
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps"]
    subprocess.run([*pip, source])
if not find_spec("attnlib"):
    raise ImportError(f"attnlib is missing. Type: make lab, or: pip install {{source}}")"""
# Without a public address there is nothing that Colab could install.
SETUP_AT_HOME = """\
# Where attnlib is installed this does nothing.
from importlib.util import find_spec

if not find_spec("attnlib"):
    raise ImportError("attnlib is missing beside this notebook. In a clone: make lab")"""
SETUP_TORCH = """
if not find_spec("torch"):
    saved = "Saved outputs: reload before saving."
    how = "To run it: {where}."
    raise ImportError(f"PyTorch is missing (a browser cannot run it). {{saved}} {{how}}")"""


def first_cells(notebook, address):
    """Return (badges, setup) of a notebook of the series; badges is None without an address.

    Their ids do not come from their text, so that a new address changes no id. Slides leave both out.
    """
    where = "Colab (badge), pip install torch, or make lab" if address else "pip install torch, or make lab"
    setup = (SETUP if address else SETUP_AT_HOME) + SETUP_TORCH * (notebook.torch == "yes")
    words = address.words(notebook.name) if address else {}
    code = {**cell("code", "setup", setup.format(where=where, **words)), "execution_count": None, "outputs": []}
    code["metadata"]["jupyter"] = {"source_hidden": True}  # folded in JupyterLab: what comes first is for the reader
    return cell("markdown", "badges", BADGES.format(**words)) if address else None, code


def cell(kind, name, source):
    metadata = {"slideshow": {"slide_type": "skip"}}
    return {"cell_type": kind, "id": name, "metadata": metadata, "source": source}
