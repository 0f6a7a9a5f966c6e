"""``python -m attnlib.course > docs/checks.md`` writes which mistakes each exercise recognises."""

import sys

from .catalogue import EXERCISES, MISTAKES


def table():
    """Return the table exercise x mistake: ● is rejected and named, ○ passes with a remark."""
    rows = ["| mistake | " + " | ".join(EXERCISES) + " |", "|---" * (len(EXERCISES) + 1) + "|"]
    for id, mistake in MISTAKES.items():
        mark = "○" if mistake.accepted else "●"
        marks = [mark if id in exercise.wrong else "" for exercise in EXERCISES.values()]
        rows.append(f"| {id} | " + " | ".join(marks) + " |")
    return "\n".join(rows)


def page():
    """Return the page docs/checks.md."""
    pairs = sum(len(exercise.wrong) for exercise in EXERCISES.values())
    return (
        "# Which mistake each check names\n\n"
        f"{len(EXERCISES)} exercises, {len(MISTAKES)} mistakes, {pairs} pairs, each tested: ● is rejected and named, "
        "○ passes with a remark. An empty cell: the mistake cannot be made there, or shows in no value.\n\n"
        "Written by `python -m attnlib.course > docs/checks.md`; `tests/test_checks.py` sees that it is up to date.\n\n"
        + table()
        + "\n\n## What the names mean\n\n| mistake | your code behaves as if | what you would see |\n|---|---|---|\n"
        + "\n".join(f"| {m.id} | {m.does} | {m.see} |" for m in MISTAKES.values())
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(
        encoding="utf-8", newline="\n"
    )  # a file is the same on every system, whatever its console is
    print(page())
