"""What the notebooks of the series hold: their exercises, which cells check them, and which questions ask for a guess.

Cells are dicts, as in the file of a notebook. Tags, ids and the names in the code say what a cell is, never its words.
"""

import ast
import json
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ..series import OPTION

HEADING = re.compile(r"(\d+\.\d+)\W+(.+)")  # of an exercise: its number and its title
SOLUTION = re.compile(  # the code of a folded one
    r"<details><summary>.+</summary>\n\n```python\n(.+?)\n```\n\n(?:.+\n\n)?</details>", re.DOTALL
)
CHECKS = re.compile(r"\b(?:check|patients|predict)\.(\w+)")
_GUESS = re.compile(r"^predict\.(\w+)\((guess_\w+)\)", re.MULTILINE)


def call_of(check):
    """Return the call that judges an answer, as syntax: ``check.softmax(my_softmax)``."""
    return next(node for node in ast.walk(ast.parse(check)) if isinstance(node, ast.Call))


def key(check):
    """Return the name of the exercise that a cell judges, its one key: softmax, or name_bug_1 where 1 is handed in."""
    call = call_of(check)
    return "_".join([call.func.attr, *(str(node.value) for node in call.args if isinstance(node, ast.Constant))])


class Task(NamedTuple):
    """An exercise of a notebook.

    Attributes
    ----------
    number, title : str
        "2.1", "Softmax".
    place : int
        Of its stub among the cells.
    stub, check, solution : str
        Code.
    ids : tuple of str
        Of the cells of the stub and of the check.
    """

    number: str
    title: str
    place: int
    stub: str
    check: str
    solution: str
    ids: tuple

    @property
    def call(self):
        return call_of(self.check)

    @property
    def key(self):
        return key(self.check)

    @property
    def judge(self):
        """Where the judge stands, and its name: ("check", "softmax")."""
        return self.call.func.value.id, self.call.func.attr

    @property
    def answers(self):
        """The names that hold the answer."""
        return tuple(node.id for node in self.call.args if isinstance(node, ast.Name))


@dataclass(frozen=True)
class Series:
    """One notebook of the series, read from its file."""

    path: Path
    cells: list

    @property
    def number(self):
        return self.path.name[:2]

    @cached_property
    def tasks(self):
        return [self._task(i) for i, cell in enumerate(self.cells) if "exercise" in _tags(cell)]

    def _task(self, i):
        head, stub, check, solution = self.cells[i : i + 4]
        number, title = HEADING.search(head["source"]).groups()
        code = SOLUTION.fullmatch(solution["source"])[1]
        return Task(number, title.strip(), i + 1, stub["source"], check["source"], code, (stub["id"], check["id"]))

    @cached_property
    def guesses(self):
        """The name of a guess -> the name of its question."""
        return {guess: name for cell in self.cells for name, guess in _GUESS.findall(cell["source"])}

    @cached_property
    def options(self):
        return shown_options(self.cells)

    @cached_property
    def ids(self):
        return {cell["id"] for cell in self.cells}

    @cached_property
    def sources(self):
        return {cell["source"] for cell in self.cells}

    @cached_property
    def names(self):
        """The checks and the questions that its code names."""
        return {name for cell in code_of(self.cells) for name in CHECKS.findall(cell["source"])}


def _tags(cell):
    return cell.get("metadata", {}).get("tags", [])


def code_of(cells):
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown_options(cells):
    """Return {name of a guess: {letter: words of the option}}, as the text above each guess has them."""
    return {
        guess[1]: {letter: " ".join(words.split()) for letter, words in OPTION.findall(above["source"])}
        for above, cell in pairwise(cells)
        if (guess := re.match(r"(guess_\w+)\s*=", cell["source"])) and OPTION.search(above["source"])
    }


def read_cells(path):
    """Return the cells of a notebook, each source as one text; raise ValueError for what is none."""
    try:
        cells = json.loads(path.read_text("utf-8-sig"))["cells"]  # some editors begin a file with a mark
        return [
            {
                "id": str(cell.get("id")),
                "cell_type": str(cell["cell_type"]),
                "metadata": cell.get("metadata", {}),
                "source": "".join(cell["source"]),
            }
            for cell in cells
        ]
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        empty = path.is_file() and not path.stat().st_size
        raise ValueError("empty" if empty else f"{type(error).__name__}: it is no notebook of nbformat 4") from None


def series(folder):
    """Return the notebooks of a folder that have exercises, by number."""
    notebooks = (Series(path, read_cells(path)) for path in sorted(folder.glob("[0-9][0-9]_*.ipynb")))
    return {notebook.number: notebook for notebook in notebooks if notebook.tasks}
