"""One door to every check, for a terminal, an editor and an assistant; docs/assistants.md tells it.

    python -m attncourse 2.1 answer.py              what the check says, and the next hint: never the solution
    python -m attncourse softmax my.ipynb --json    the same as data, of the cell in your notebook
    python -m attncourse "A row of scores" "[5, 3, 0, 2]" --hint 2
    python -m attncourse 2.1 --task                 the task alone; without it, and without an answer, the first hint

The exit status is 0 where an answer is right, 10 wrong, 11 not tried, 12 cannot be run. It stands in a clone of the
repository, whose notebooks lend an answer their cells: tools/report/door.py.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from .engine.verdict import printable

STATUS = {"right": 0, "wrong": 10, "not tried": 11, "cannot be run": 12}
ROOT = Path(__file__).resolve().parent.parent


def _words(data, hint):
    """Return the answer of the door as text for people."""
    if "task" in data:
        return f"{data['task']}\n\n{data['stub']}\n\nRead: {data['where_to_read']}"
    mark = {"right": "✓", "wrong": "✗"}.get(data["state"], "…")
    lines = [f"{mark} {data['title']}: {data['state']}" + (f" ({data['mistake']})" if data["mistake"] else "")]
    lines += filter(None, (data[key] for key in ("meaning", "symptom", "first_difference")))
    if data["hint"]:
        lines.append(f"Hint {hint} of {hint + data['hints_left']}: {data['hint']}")
    elif data["state"] in ("wrong", "not tried") and hint and not data["hints_left"]:
        lines.append("No hint is left. The solution is folded under the exercise in its notebook.")
    return "\n".join([*lines, *[f"Read: {data['where_to_read']}"] * (data["state"] != "right")])


def main():
    parser = argparse.ArgumentParser(
        prog="python -m attncourse",
        description="Judge one answer to an exercise: what is wrong, and the next hint.",
        epilog="Exit status: 0 right, 10 wrong, 11 not tried, 12 cannot be run.",
    )
    parser.add_argument("name", help="of the exercise: 2.1, softmax, or 'A row of scores'")
    parser.add_argument(
        "answer",
        nargs="?",
        help="a .py file, your notebook, code itself, or - for standard input; left out: not tried yet",
    )
    parser.add_argument("--task", action="store_true", help="print the task alone")
    parser.add_argument("--hint", type=int, default=1, metavar="K", help="which hint, 1 is the first, 0 for none")
    parser.add_argument("--json", action="store_true", help="print data with stable keys")
    asked = parser.parse_args()
    os.environ |= {"ATTNLIB_MINE": "", "MPLBACKEND": "Agg"}  # nothing is kept, and no window opens
    if not (ROOT / "tools" / "report").is_dir():
        parser.error(f"{ROOT} holds no notebooks. Fix: call it in a clone of the repository, which has them")
    sys.path.append(str(ROOT))
    from tools.report import door

    try:
        name = door.find_exercise(asked.name)
        data = door.read_task(name)
        if not asked.task:  # without an answer the stub is one that is not tried, and has its hints
            data = door.judge_answer(name, data["stub"] if asked.answer is None else asked.answer, asked.hint)
    except LookupError as error:
        parser.error(error.args[0])
    except door.NoAnswer as error:
        parser.exit(STATUS["cannot be run"], f"{error}\n")
    print(json.dumps(data, indent=1) if asked.json else printable(_words(data, asked.hint)))
    return STATUS[data.get("state", "right")]


if __name__ == "__main__":
    sys.exit(main())
