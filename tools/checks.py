"""Write docs/checks.md: which mistakes each exercise recognises.

python -m tools.checks
"""

from itertools import groupby

from attncourse import EXERCISES, MISTAKES
from attncourse.lessons.program_a_head.puzzle import Puzzle
from attncourse.lessons.program_a_head.puzzle_mistakes import COMMON

from .numbering import ROOT, number

TARGET = ROOT / "docs" / "checks.md"


def section(exercise):
    """Return the part of the page about one exercise: its task, and the mistakes that its check names."""
    common = [id for id in exercise.names if isinstance(exercise, Puzzle) and id in COMMON and id not in exercise.signs]
    names = ", ".join(f"`{id}`" for id in sorted(set(exercise.names) - set(common)))
    besides = ", and those that every puzzle names" if common else ""
    return f"### {exercise.name}\n\n{exercise.task}\n\n*Names* {names}{besides}.\n"


def fold(letter, rows):
    """Return the table of the mistakes whose names begin with a letter, behind a fold: all are 60 screens."""
    head = "| mistake | your code (or head) behaves as if | what you would see |\n|---|---|---|"
    title = f"{letter}: {len(rows)} name{'s' * (len(rows) > 1)}"
    return "\n".join([f"<details><summary>{title}</summary>\n", head, *rows, "\n</details>\n"])


def page():
    """Return the page."""
    meanings = [f"| `{m.id}` | {m.behaves_as_if} | {m.symptom} |" for _, m in sorted(MISTAKES.items())]
    return "\n".join(
        [
            "# Which mistake each check names\n",
            f"{len(EXERCISES)} exercises and puzzles, {len(MISTAKES)} mistakes. Each mistake that stands under an "
            "exercise is made there by a test, rejected and named.\n",
            "## Exercises\n",
            *(section(exercise) for exercise in EXERCISES.values()),
            "## What every puzzle names\n",
            f"In notebook {number('program_a_head')} a head is set by hand and judged by what it does. Beside its own "
            f"mistakes, a puzzle names {', '.join(f'`{id}`' for id in COMMON)}.\n",
            "## What the names mean\n",
            *(fold(letter, list(rows)) for letter, rows in groupby(meanings, lambda row: row[3])),
            "Written by `python -m tools.checks`; `tests/test_checks.py` sees that it is up to date.",
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(page() + "\n", encoding="utf-8", newline="\n")
