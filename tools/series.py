"""The series, as notebooks/series.toml has it, and how long each notebook takes.

python -m tools.series      a table: words, lines of code and questions of each main path, and the minutes they make;
                            words in all, the share of them before the first exercise, the longest way without a task
"""

import itertools
import re
import sys
from difflib import get_close_matches
from typing import NamedTuple

from .numbering import NUMBERS, ORDER, ROOT, SOURCES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # JupyterLab brings it, and pytest

NOTEBOOKS = ROOT / "notebooks"
# An option of a question in the text of a notebook: its letter, and what it says.
OPTION = re.compile(r"^- \*\*([a-z])\*\* ((?:.+\n?)+?)(?=^- |\Z)", re.MULTILINE)


class Goal(NamedTuple):
    """What a reader can do after a notebook, and what shows it: exercises, questions or headings, by name."""

    sentence: str
    shown_by: list


class Notebook(NamedTuple):
    """One notebook; the fields are explained in notebooks/series.toml."""

    slug: str
    title: str
    question: str
    goals: list
    torch: str
    browser: bool
    d_k: str
    after: str
    appendix: bool
    part: str
    about: str

    @property
    def number(self):
        return NUMBERS[self.slug]

    @property
    def name(self):
        return f"{self.number}_{self.slug}"

    @property
    def source(self):
        return SOURCES / f"{self.slug}.py"

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
        exercise = exercise and "<summary>Solution" not in body  # what follows belongs to the section around it
    return words, lines, questions


TASKS = re.compile(r"\*\*(?:Predict|Try|Remember)\.\*\*|^### Exercise|^## (?:Before you start|Try it)", re.MULTILINE)


class Pace(NamedTuple):
    """Words that are not folded, the share of them before the first exercise, the longest way with nothing to do."""

    words: int
    before_exercise: float
    longest_way: int


def pace(source):
    """Return the `Pace` of a notebook; something to do is a prediction, a picture to try, an exercise, a question."""
    texts = re.findall(r"^# %% \[markdown\].*\n((?:(?!# %%).*\n?)*)", source, re.MULTILINE)
    text = "\n".join(re.sub(r"^# ?", "", body, flags=re.MULTILINE) for body in texts)
    text = re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)
    main = re.split(r"^## Appendix", text, flags=re.MULTILINE)[0]
    places = [0, *(task.start() for task in TASKS.finditer(main)), len(main)]
    way = max(len(main[a:b].split()) for a, b in itertools.pairwise(places))
    before, exercise, _ = main.partition("\n### Exercise")
    return Pace(len(text.split()), len(before.split()) / len(text.split()) if exercise else 1, way)


def read_series():
    """Return the notebooks in their order, which is that of the lessons."""
    told = tomllib.loads((NOTEBOOKS / "series.toml").read_text("utf-8"))
    if set(told) != set(ORDER):
        wrong = ", ".join(sorted(set(told) ^ set(ORDER)))
        sys.exit(f"notebooks/series.toml and ORDER in attncourse/lessons must name the same. Fix in one: {wrong}.")
    before = dict(zip(ORDER[1:], ORDER, strict=False)) | {ORDER[0]: ORDER[0]}
    usual = {"d_k": "random", "appendix": False, "part": "", "about": ""}
    for one in told.values():
        one["goals"] = [Goal(sentence, shown_by) for sentence, *shown_by in one["goals"]]
    return [Notebook(**usual | {"slug": slug, "after": before[slug]} | told[slug]) for slug in ORDER]


SERIES = read_series()


def read_replies():
    """Return {name of an exercise: {mistake: (how it shows, what to reply)}} of all lessons."""
    found = {}
    for notebook in SERIES:
        path = ROOT / "attncourse" / "lessons" / notebook.slug / "replies.toml"
        found |= tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


REPLIES = read_replies()
TAUGHT = [notebook for notebook in SERIES[1:] if not notebook.appendix]  # those with exercises


def has_tag(cell, *tags):
    """Tell whether a cell of the source carries one of some tags: predict, exercise, solution, remember."""
    return not set(tags).isdisjoint(cell.metadata.get("tags", []))


def find_notebook(name):
    """Return the notebook of a name, masks, or of a file, 05_masks."""
    for notebook in SERIES:
        if name in (notebook.slug, notebook.name):
            return notebook
    near = get_close_matches(name, ORDER, 1, 0)[0]
    sys.exit(f"no notebook is called {name!r}. Fix: is it {near!r}? The names stand in attncourse/lessons.")


def select_notebooks(words):
    """Return the notebooks whose number or name starts with one of the words, all of them if none is given."""
    starts = tuple(words)
    found = [n for n in SERIES if not words or n.name.startswith(starts) or n.slug.startswith(starts)]
    if not found:
        sys.exit(f"no notebook starts with {words}; there are {[notebook.name for notebook in SERIES]}")
    return found


def main():
    print(
        f"{'notebook':25} words  lines  questions  minutes  of exercises  words in all  before exercises  longest way"
    )
    for notebook in SERIES:
        source = notebook.source.read_text("utf-8")
        words, lines, questions = main_path(source)
        minutes, all_words, before, way = notebook.minutes, *pace(source)
        print(
            f"{notebook.name:25} {words:5} {lines:6} {questions:10} {minutes:8} {notebook.exercise_minutes:13} "
            f"{all_words:13} {before:17.0%} {way:12}"
        )


if __name__ == "__main__":
    main()
