"""Answers to the exercises as learners hand them in, a file a lesson; what several of them need stands in answers.py.

The file of a lesson has these tables, each by the name of the exercise, and leaves out what it does not need:

- `RIGHT`: three right answers at least, in other forms than the solution.
- `NEAR`: right answers near to a mistake, which must not be accused of it.
- `WRONG`: {id of the mistake: answers}. The id is None where an answer is wrong and no mistake is named.
- `LEARNERS`: {what was done: (id of the mistake or None, answer, what the verdict says, what it does not say)}; the
  last two may be left out.
- `DESIGNS`: {id of the mistake: answers} of an exercise of which many answers are right, with all of its mistakes.
"""

from importlib import import_module
from pathlib import Path

from attncourse import catalogue
from attncourse.lessons import ORDER

TABLES = ("RIGHT", "NEAR", "WRONG", "LEARNERS", "DESIGNS")
FILES = {
    lesson: import_module(f"{__name__}.{lesson}")
    for lesson in ORDER
    if Path(__file__).with_name(f"{lesson}.py").is_file()
}
LESSON = {exercise.name: name for name, lesson in catalogue.LESSONS.items() for exercise in lesson.exercises}


def file_of(exercise):
    """Return the file that the answers to an exercise belong in."""
    return f"tests/lessons/{LESSON[exercise]}.py"


def gather(table):
    """Return what the lessons have in a table, by exercise."""
    return {exercise: answers for file in FILES.values() for exercise, answers in getattr(file, table, {}).items()}


def each(wrong):
    """Return [(exercise, id of the mistake, answer), ...] of a table such as WRONG."""
    return [(name, id, answer) for name, ids in wrong.items() for id, answers in ids.items() for answer in answers]


def three_right(exercise):
    """Return the right answers to an exercise; fewer than three fail."""
    answers = gather("RIGHT").get(exercise, ())
    assert len(answers) >= 3, (
        f"an exercise needs three right answers: {exercise} has {len(answers)}. "
        f"Fix: add some in other forms to RIGHT[{exercise!r}] in {file_of(exercise)}"
    )
    return answers
