"""``python -m attnlib.course > docs/checks.md`` writes which mistakes each exercise recognises."""

import sys

from .catalogue import EXERCISES, MISTAKES
from .chapters.n10.claims import Claim
from .chapters.n10.puzzle import Puzzle
from .chapters.n10.puzzle_mistakes import COMMON

PUZZLES = {name: exercise for name, exercise in EXERCISES.items() if isinstance(exercise, Puzzle | Claim)}
STEPS = {name: exercise for name, exercise in EXERCISES.items() if name not in PUZZLES}


def table():
    """Return the table exercise x mistake: ● is rejected and named."""
    rows = ["| mistake | " + " | ".join(STEPS) + " |", "|---" * (len(STEPS) + 1) + "|"]
    for id in MISTAKES:
        marks = ["●" if id in exercise.names else "" for exercise in STEPS.values()]
        if any(marks):
            rows.append(f"| {id} | " + " | ".join(marks) + " |")
    return "\n".join(rows)


def puzzles():
    """Return the table of the puzzles and the mistakes of each: few are shared, so it is no table of marks."""
    rows = ["| puzzle | mistakes that it names |", "|---|---|"]
    for name, puzzle in PUZZLES.items():
        rows.append(f"| {name} | {', '.join(puzzle.signs if isinstance(puzzle, Puzzle) else puzzle.names)} |")
    return "\n".join(rows)


def page():
    """Return the page docs/checks.md."""
    pairs = sum(len(exercise.names) for exercise in STEPS.values())
    return (
        "# Which mistake each check names\n\n"
        f"{len(STEPS)} exercises, {len(PUZZLES)} puzzles, {len(MISTAKES)} mistakes. This table has {pairs} pairs of an "
        "exercise and a mistake, each tested: ● is rejected and named. "
        "An empty cell: the mistake cannot be made there, or shows in no value.\n\n"
        "Written by `python -m attnlib.course > docs/checks.md`; `tests/test_checks.py` sees that it is up to date.\n\n"
        + table()
        + "\n\n## Puzzles\n\nIn notebook 10 a head is set by hand, and judged by what it does. Beside its own, each of "
        f"the first {len(PUZZLES) - 2} names these: {', '.join(COMMON)}.\n\n"
        + puzzles()
        + "\n\n## What the names mean\n\n| mistake | your code (or head) behaves as if | what you would see |\n"
        + "|---|---|---|\n"
        + "\n".join(f"| {m.id} | {m.behaves_as_if} | {m.symptom} |" for m in MISTAKES.values())
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(
        encoding="utf-8", newline="\n"
    )  # a file is the same on every system, whatever its console is
    print(page())
