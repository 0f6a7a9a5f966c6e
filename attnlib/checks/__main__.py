"""``python -m attnlib.checks`` prints which mistakes each exercise recognises, as a Markdown table."""

from .exercises import EXERCISES
from .mistakes import MISTAKES


def table():
    """Return the table exercise x mistake: ● is rejected and named, ○ passes with a remark."""
    rows = ["| mistake | " + " | ".join(EXERCISES) + " |", "|---" * (len(EXERCISES) + 1) + "|"]
    for id, mistake in MISTAKES.items():
        mark = "○" if mistake.accepted else "●"
        marks = [mark if id in exercise.wrong else "" for exercise in EXERCISES.values()]
        rows.append(f"| {id} | " + " | ".join(marks) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
