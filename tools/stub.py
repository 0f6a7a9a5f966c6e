"""Write attncourse/catalogue.pyi, so that an editor completes check.softmax and predict.score_std.

python -m tools.stub

Exercises and questions are attributes that are found by name; a test sees that the stub names all of them.
"""

from attncourse.catalogue import EXERCISES, PREDICTIONS, RECALLS

from .series import ROOT

TARGET = ROOT / "attncourse" / "catalogue.pyi"
HEAD = """\
# Written by python -m tools.stub.
from types import ModuleType

from .engine.exercise import Exercise
from .engine.questions import Question, Recall
from .mistakes.mistake import Mistake

LESSONS: dict[str, ModuleType]
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


if __name__ == "__main__":
    TARGET.write_text(stub_text(), encoding="utf-8", newline="\n")
