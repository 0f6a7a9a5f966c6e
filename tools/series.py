"""The series, as notebooks/series.toml has it."""

import sys
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"


class Notebook(NamedTuple):
    """One notebook; the fields are explained in notebooks/series.toml."""

    name: str
    title: str
    question: str
    minutes: int
    torch: str
    browser: bool
    d_k: str
    after: str

    @property
    def number(self):
        return self.name[:2]

    @property
    def source(self):
        return NOTEBOOKS / "src" / f"{self.name}.py"

    @property
    def built(self):
        return NOTEBOOKS / f"{self.name}.ipynb"


def _entry(entry):
    return Notebook(**{"d_k": "random", "after": f"{max(int(entry['name'][:2]) - 1, 0):02d}"} | entry)


SERIES = [_entry(entry) for entry in tomllib.loads((NOTEBOOKS / "series.toml").read_text("utf-8"))["notebook"]]


def named(name):
    """Return the notebook of a name."""
    for notebook in SERIES:
        if notebook.name == name:
            return notebook
    sys.exit(f"{name} is not in notebooks/series.toml. Fix: give it a [[notebook]] there.")


def chosen(numbers):
    """Return the notebooks whose names start with one of the numbers, all of them if none is given."""
    found = [notebook for notebook in SERIES if not numbers or notebook.name.startswith(tuple(numbers))]
    if not found:
        sys.exit(f"no notebook starts with {numbers}; there are {[notebook.name for notebook in SERIES]}")
    return found
