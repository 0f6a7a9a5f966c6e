"""What each build depended on, so that a sentence can change without running a notebook again.

notebooks/builds.json has an entry for each notebook, made when it was run: sums of its code, of our modules, of our
data, of the pins, of the tools that make outputs, and of the outputs. Where all are still the same, a build takes the
outputs from the .ipynb. The file is under git, so a clone starts with it; it says nothing of the machine. What does not
fit is run, so a merge needs no care: an entry that comes from another branch fits the merged tree, or costs a run.
`make test` runs all notebooks by nbval and compares; a wrong entry would be seen there.
"""

import hashlib
import importlib.metadata
import json
import re
from pathlib import Path

import nbformat

from .series import SERIES

FILE = Path("notebooks") / "builds.json"
PACKAGES = ("attnlib", "attncourse")
TOOLS = ("tools/execute.py", "tools/first_cells.py")
MODELS = ("notebooks/real-model.txt", "notebooks/real-decoder.txt")
# Python, what only editors and lecturers read, and what systems leave behind.
NO_DATA = re.compile(r"\.py[ci]?$|/replies\.toml$|/\.|/__pycache__/")


def find_changes(name, notebook, built, root):
    """Return which parts of an entry are no longer what they were, for a notebook and its .ipynb as it was built."""
    entry = read_entries(root).get(name)
    if entry is None or built is None:
        return ["no build"]
    now = sum_inputs(notebook, entry["unused"].split(), root) | {"outputs": sum_outputs(built)}
    return [part for part, value in now.items() if entry.get(part) != value]


def write_entry(name, notebook, built, imported, before, root):
    """Write down what a run depended on that had imported these files; `before` are the sums of all as it began."""
    check_versions(root)
    unused = list_unused({Path(file).resolve() for file in imported}, name, root)
    entries = read_entries(root)  # once more: another build may have written meanwhile
    entries[name] = sum_inputs(notebook, unused, root) | {"outputs": sum_outputs(built), "unused": " ".join(unused)}
    if sum_inputs(notebook, (), root) != before:  # they changed during the run, so the outputs may mix two states
        print(f"{name}: files were changed while it ran, so the next build runs it again")
        del entries[name]
    entries = {entry.slug: entries[entry.slug] for entry in SERIES if entry.slug in entries}
    (root / FILE).write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8", newline="\n")


def list_unused(used, name, root):
    """Return the paths of our modules that were not used; a folder whose __init__.py was not stands for all in it."""
    for path in used:
        if path.name == "__init__.py" and path.parent.name in PACKAGES and not path.is_relative_to(root):
            raise SystemExit(
                f"{name} must be run with the packages of the build: expected {root / path.parent.name}, but it "
                f"imported {path.parent}. Fix: make notebooks, or PYTHONPATH={root}"
            )
    unused = {path for package in PACKAGES for path in (root / package).rglob("*.py")} - used
    folders = {path.parent for path in unused if path.name == "__init__.py"}
    highest = {next((folder for folder in reversed(path.parents) if folder in folders), path) for path in unused}
    return sorted(path.relative_to(root).as_posix() for path in highest)


def read_entries(root):
    """Return {name of a notebook: entry}; nothing from a file that is missing or in the middle of a merge."""
    try:
        return json.loads((root / FILE).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def sum_inputs(notebook, unused, root):
    """Return {part: sum} of what the outputs of a notebook depend on.

    `unused` are modules and folders of ours that its kernel did not import. A new module counts: code may look for it.
    """
    unused = {root / name for name in unused}
    files = [path for package in PACKAGES for path in (root / package).rglob("*") if path.is_file()]
    # The first cell does nothing where notebooks are built, and `make links` writes another address into it.
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.id != "setup"]
    parts = {
        "code": [(cell.source, sorted(cell.metadata.get("tags", []))) for cell in cells],
        "modules": sum_files([p for p in files if p.suffix == ".py" and unused.isdisjoint([p, *p.parents])], root),
        "data": sum_files([path for path in files if not NO_DATA.search(path.relative_to(root).as_posix())], root),
        "pins": [sorted(read_pins(root).items()), sum_files([root / name for name in MODELS], root)],
        "tools": sum_files([root / name for name in TOOLS], root),
    }
    return {part: sum_json(value) for part, value in parts.items()}


def sum_files(paths, root):
    """Return [(path, sum)]; the ends of lines do not count, which git writes as a system has them."""
    texts = {path.relative_to(root).as_posix(): path.read_bytes().replace(b"\r\n", b"\n") for path in paths}
    return sorted((name, hashlib.sha256(text).hexdigest()) for name, text in texts.items())


def sum_json(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def sum_outputs(built):
    return sum_json([(cell.execution_count, uncover(cell.outputs)) for cell in built.cells if cell.cell_type == "code"])


def uncover(outputs):
    """Return the outputs of a cell without the empty one that the build puts in front of a hidden answer."""
    return outputs[1:] if outputs and outputs[0].get("data") == {} else outputs


def copy_outputs(built, notebook):
    """Give the code cells of a notebook the outputs of its .ipynb."""
    cells = ([cell for cell in n.cells if cell.cell_type == "code"] for n in (built, notebook))
    for old, new in zip(*cells, strict=True):
        new.execution_count, new.outputs = old.execution_count, uncover(old.outputs)
    return notebook


def read_built(path):
    """Return a built notebook, or None where there is none, or one in the middle of a merge."""
    try:
        return nbformat.read(path, as_version=4)
    except (FileNotFoundError, nbformat.reader.NotJSONError):
        return None


def read_pins(root):
    """Return {package: version} of requirements.txt, and of the two that run a notebook and write it."""
    tests = re.findall(r'"((?:nbclient|nbformat)==[^"]+)"', (root / "pyproject.toml").read_text("utf-8"))
    lines = [*(root / "requirements.txt").read_text("utf-8").splitlines(), *tests]
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def check_versions(root):
    """Stop where the installed versions are not the pinned ones: an entry would say that these made the outputs."""
    for package, pinned in read_pins(root).items():
        installed = importlib.metadata.version(package).partition("+")[0]
        if installed != pinned:
            raise SystemExit(
                f"a build must be run with the pinned versions: expected {package} {pinned}, but {installed} is "
                "installed. Fix: make setup-tests"
            )
