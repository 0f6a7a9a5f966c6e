"""Write what the course must know of its notebooks, where it is installed without them.

python -m tools.stub

attncourse/catalogue.pyi, so that an editor completes check.softmax and predict.score_std: exercises and questions are
attributes that are found by name. attncourse/data/titles.json: the titles of exercises, for verdicts. Tests compare.
"""

import json

from attncourse.catalogue import EXERCISES, PREDICTIONS, RECALLS

from . import numbering
from .series import ROOT

TARGET = ROOT / "attncourse" / "catalogue.pyi"
TITLES = ROOT / "attncourse" / "data" / "titles.json"
HEAD = """\
# Written by python -m tools.stub.
from pathlib import Path
from typing import Any, NamedTuple

from .engine.exercise import Exercise
from .engine.questions import Question, Recall
from .mistakes.mistake import Mistake

class Lesson(NamedTuple):
    folder: Path
    exercises: tuple[Exercise, ...]
    mistakes: tuple[Mistake, ...]
    payoffs: dict[str, Any]

LESSONS: dict[str, Lesson]
EXERCISES: dict[str, Exercise]
PREDICTIONS: dict[str, Question]
RECALLS: dict[str, Recall]
MISTAKES: dict[str, Mistake]
"""


def stub_text():
    """Return the text of the stub."""
    checks = "".join(f"    {name}: Exercise\n" for name in EXERCISES)
    questions = "".join(f"    {name}: {type(asked).__name__}\n" for name, asked in (PREDICTIONS | RECALLS).items())
    return f"{HEAD}\nclass Checks:\n{checks}\nclass Predict:\n{questions}\ncheck: Checks\npredict: Predict\n"


def titles_text():
    """Return the titles as JSON: of each notebook its exercises, in the order of their headings."""
    found = {name: numbering.exercises(name) for name in numbering.ORDER}
    titles = {
        name: {exercise: title.replace("$", "") for exercise, (_, title) in exercises.items()}
        for name, exercises in found.items()
        if exercises
    }
    return json.dumps(titles, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TITLES.write_text(titles_text(), encoding="utf-8", newline="\n")
    TARGET.write_text(stub_text(), encoding="utf-8", newline="\n")
