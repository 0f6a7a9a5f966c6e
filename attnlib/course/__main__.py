"""What the course knows, and what a class made of it.

python -m attnlib.course > docs/checks.md    which mistakes each exercise recognises
python -m attnlib.course report FOLDER       which mistakes a class made: see docs/grading.md
"""

import argparse
import sys
from pathlib import Path

from .catalogue import EXERCISES, MISTAKES
from .chapters.n10.puzzle import Puzzle
from .chapters.n10.puzzle_mistakes import COMMON


def section(exercise):
    """Return the part of the page about one exercise: its task, and the mistakes that its check names."""
    common = [id for id in exercise.names if isinstance(exercise, Puzzle) and id in COMMON and id not in exercise.signs]
    names = ", ".join(f"`{id}`" for id in sorted(set(exercise.names) - set(common)))
    besides = ", and those that every puzzle names" if common else ""
    return f"### {exercise.name}\n\n{exercise.task}\n\n*Names* {names}{besides}.\n"


def page():
    """Return the page docs/checks.md."""
    meanings = [f"| `{m.id}` | {m.behaves_as_if} | {m.symptom} |" for _, m in sorted(MISTAKES.items())]
    return "\n".join(
        [
            "# Which mistake each check names\n",
            f"{len(EXERCISES)} exercises and puzzles, {len(MISTAKES)} mistakes. Each mistake that stands under an "
            "exercise is made there by a test, rejected and named.\n",
            "Written by `python -m attnlib.course > docs/checks.md`; `tests/test_checks.py` sees that it is up to "
            "date.\n",
            "## Exercises\n",
            *(section(exercise) for exercise in EXERCISES.values()),
            "## What every puzzle names\n",
            "In notebook 10 a head is set by hand and judged by what it does. Beside its own mistakes, a puzzle names "
            f"{', '.join(f'`{id}`' for id in COMMON)}.\n",
            "## What the names mean\n",
            "| mistake | your code (or head) behaves as if | what you would see |\n|---|---|---|",
            *meanings,
        ]
    )


def write_report(arguments):
    """Print the report on a folder, and write the files that were asked for."""
    from . import report  # it imports the pictures
    from .report import page as written

    try:
        made = report.made(arguments.folder, arguments.notebooks, arguments.jobs)
    except (FileNotFoundError, OSError) as error:
        sys.exit(f"report: {error}")
    print(written.text(made, arguments.names))
    for path, write in ((arguments.html, written.page), (arguments.csv, written.table)):
        if path:
            path.write_text(write(made, arguments.names), encoding="utf-8", newline="\n")


def parsed():
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m attnlib.course", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    report = commands.add_parser("report", help="which mistakes a class made")
    report.add_argument("folder", type=Path, help="the notebooks that were handed in, or a course of nbgrader")
    report.add_argument("--html", type=Path, help="write a page with bars to this file")
    report.add_argument("--csv", type=Path, help="write a row for each answer and vote to this file")
    report.add_argument("--names", action="store_true", help="say which file each answer comes from")
    report.add_argument("-j", "--jobs", type=int, default=1, help="processes at the same time")
    report.add_argument("--notebooks", type=Path, help="the notebooks of the series, with their solutions")
    return parser.parse_args()


if __name__ == "__main__":
    # A file is the same on every system, whatever its console is.
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    asked = parsed()
    if asked.command == "report":
        write_report(asked)
    else:
        print(page())
