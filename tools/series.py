"""The series, as notebooks/series.toml has it, and how long each notebook takes.

python -m tools.series      a table: words, lines of code and questions of each main path, and the minutes they make
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # JupyterLab brings it, and pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
# An option of a question in the text of a notebook: its letter, and what it says.
OPTION = re.compile(r"^- \*\*([a-z])\*\* ((?:.+\n?)+?)(?=^- |\Z)", re.MULTILINE)


class Notebook(NamedTuple):
    """One notebook; the fields are explained in notebooks/series.toml."""

    name: str
    title: str
    question: str
    torch: str
    browser: bool
    d_k: str
    after: str
    appendix: bool

    @property
    def number(self):
        return self.name[:2]

    @property
    def slug(self):
        return self.name[3:]

    @property
    def source(self):
        return NOTEBOOKS / "src" / f"{self.name}.py"

    @property
    def built(self):
        return NOTEBOOKS / f"{self.name}.ipynb"

    @property
    def minutes(self):
        """For reading, running and predicting on the main path, to the nearest 5."""
        words, lines, questions = main_path(self.source.read_text("utf-8"))
        return 5 * round((words / 80 + lines / 11 + questions) / 5)

    @property
    def exercise_minutes(self):
        """What the exercises take, as each says it."""
        text = re.sub(r"^# ?", "", self.source.read_text("utf-8"), flags=re.MULTILINE)
        return sum(map(int, re.findall(r"\*(\d+)\s+minutes,\s+(?:easy|medium|hard)", text)))


def main_path(source):
    """Return (words of prose, lines of code, questions to predict) before *Remember*.

    Tables, formulas, folded code, folded text, exercises and appendices do not count. 80 words, 11 lines or one
    question a minute: fitted to the time that readers took.
    """
    words = lines = questions = 0
    exercise = False
    for head, body in re.findall(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", source, re.MULTILINE):
        if "[markdown]" not in head:
            code = [line for line in body.splitlines() if line.strip() and not line.strip().startswith("#")]
            lines += len(code) * (not exercise and "source_hidden" not in head)
            continue
        text = re.sub(r"<details>.*?</details>", "", re.sub(r"^# ?", "", body, flags=re.MULTILINE), flags=re.DOTALL)
        if heading := re.search(r"^#{1,4} (.*)", text, re.MULTILINE):
            exercise = heading[1].startswith("Exercise")
        if re.search(r"^#{1,3} (An? )?Appendix", text, re.MULTILINE):
            break
        text, *end = text.split("**Remember.**")
        if not exercise:
            text = re.sub(r"\$\$.*?\$\$", "x", text, flags=re.DOTALL)
            text = re.sub(r"`[^`]*`|\$[^$]*\$", "x", re.sub(r"^[|#].*$", "", text, flags=re.MULTILINE))
            words += len(re.sub(r"\]\([^)]*\)", "]", text).split())
            questions += text.count("**Predict.**")
        if end:
            break
    return words, lines, questions


def _entry(entry):
    before = f"{max(int(entry['name'][:2]) - 1, 0):02d}"
    return Notebook(**{"d_k": "random", "after": before, "appendix": False} | entry)


SERIES = [_entry(entry) for entry in tomllib.loads((NOTEBOOKS / "series.toml").read_text("utf-8"))["notebook"]]


def read_replies():
    """Return what a lecturer asks, and replies to each mistake: {"questions": ..., "exercises": ...} of all lessons."""
    found = {"questions": {}, "exercises": {}}
    for notebook in SERIES:
        path = ROOT / "attncourse" / "lessons" / notebook.slug / "replies.toml"
        if path.exists():
            for kind, words in tomllib.loads(path.read_text("utf-8")).items():
                found[kind] |= words
    return found


REPLIES = read_replies()
TAUGHT = [notebook for notebook in SERIES[1:] if not notebook.appendix]  # those with exercises


def tagged(cell, *tags):
    """Tell whether a cell of the source carries one of some tags: predict, exercise, solution, remember."""
    return not set(tags).isdisjoint(cell.metadata.get("tags", []))


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


def main():
    print(f"{'notebook':25} words  lines  questions  minutes  of exercises")
    for notebook in SERIES:
        words, lines, questions = main_path(notebook.source.read_text("utf-8"))
        print(
            f"{notebook.name:25} {words:5} {lines:6} {questions:10} {notebook.minutes:8} {notebook.exercise_minutes:13}"
        )


if __name__ == "__main__":
    main()
