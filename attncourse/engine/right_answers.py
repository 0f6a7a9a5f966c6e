"""Which exercises a reader has solved: the answers themselves in this kernel, their names beside the notebooks."""

import contextlib
import os
from pathlib import Path

FOLDER = "mine"
SOLVED = "solved.txt"  # the name of one exercise a line, in the order in which they were solved
ANSWERS = {}  # of this kernel: name of an exercise -> the last answer that its check has found right
LISTENERS = []  # called with the name of an exercise when its check finds an answer right


def folder():
    """Return the folder `mine` beside the notebooks, which need not exist; None where no notebook stands.

    ATTNLIB_MINE names another one; builds and tests set it to nothing, which means none.
    """
    if (named := os.environ.get("ATTNLIB_MINE")) is not None:
        return Path(named) if named else None
    here = Path.cwd()
    return here / FOLDER if any(here.glob("[0-9][0-9]_*.ipynb")) else None


def record(name, answer):
    """Remember that an answer was found right. A folder that cannot be written to is no fault of the answer."""
    ANSWERS[name] = answer
    for listener in LISTENERS:
        listener(name)
    where = folder()
    if where is None or name in load_solved():
        return
    with contextlib.suppress(OSError):
        where.mkdir(exist_ok=True)
        with (where / SOLVED).open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def load_solved():
    """Return the names of the exercises that were ever found right beside these notebooks, in order."""
    where = folder()
    with contextlib.suppress(OSError):
        return (where / SOLVED).read_text("utf-8").split() if where else []
    return []
