"""Mistakes as learners write them, not as the catalogue does: named, or not named, and told truly."""

from pathlib import Path

import lessons
import pytest
from answers import A, named

from attncourse import EXERCISES, MISTAKES, catalogue
from attncourse.engine.exercise import Number
from attncourse.lessons.program_a_head.claims import Claim
from attncourse.lessons.program_a_head.puzzle import Puzzle  # theirs: test_puzzles.py

WRONG, LEARNERS = lessons.each(lessons.gather("WRONG")), lessons.gather("LEARNERS")
PUZZLES = {name for name, exercise in EXERCISES.items() if isinstance(exercise, Puzzle | Claim)}
# What only the catalogue hands in, or another test. Nothing new belongs here.
NO_LEARNER = """
another_layer another_projection another_score before_copy_measured bias_lost changes_in_training copy_itself_measured
cosines_returned dead_row_poisons_gradients divided_by_variance exponential_of_entropy heads_mixed_up
mask_after_softmax max_and_sum_along_two_axes minus_forgotten nan_at_extremes no_output_projection no_scale_with_mask
one_mask_for_first_head_only other_weights_returned output_and_weights_exchanged padding_off_by_one
previous_letter_measured projections_shared projections_unused raw_scores_returned row_with_zero_lost
sharpest_head_measured swapped_key_value untransposed_key variance_per_query
"""


def test_each_answer_stands_in_the_file_of_its_lesson():
    for lesson, file in lessons.FILES.items():
        for exercise in (exercise for table in lessons.TABLES for exercise in getattr(file, table, {})):
            home = lessons.LESSON.get(exercise)
            assert home == lesson, (
                f"a file answers its own lesson alone: tests/lessons/{lesson}.py answers {exercise}, which "
                + (f"{home} has. Fix: move it to tests/lessons/{home}.py" if home else "no lesson has. Fix: its name")
            )
    written = {path.stem for path in Path(lessons.__file__).parent.glob("[!_]*.py")}
    assert written == set(lessons.FILES), "a file has the name of a lesson, one of ORDER. Fix: rename it"


def test_each_mistake_is_handed_in_by_a_learner():
    """A test of the catalogue tries each in its own form, which only exchanges a step and which nobody would write."""
    rows = [row for rows in LEARNERS.values() for row in rows.values()]
    told = [id for id, *_ in rows] + [id for _, id, _ in [*WRONG, *lessons.each(lessons.gather("DESIGNS"))]]
    made = {one for id in told if id for one in id.split(" + ")}
    made |= {id for exercise in EXERCISES.values() if isinstance(exercise, Number) for id in exercise.slips}
    own = {mistake.id: name for name, lesson in catalogue.LESSONS.items() for mistake in lesson.mistakes}
    nobody = set(MISTAKES) - made - set(NO_LEARNER.split())
    files = {id: f"tests/lessons/{own.get(id, '<a lesson that has it>')}.py" for id in nobody}
    assert not files, f"each mistake is handed in as one writes it; nobody does so. Fix: a row in LEARNERS of {files}"
    assert not made & set(NO_LEARNER.split()), "what a learner hands in is not left out. Fix: take it out of NO_LEARNER"


@pytest.mark.parametrize("name, id, answer", [row for row in WRONG if row[0] not in PUZZLES])
def test_a_mistake_in_a_students_own_code_is_named(name, id, answer):
    verdict = EXERCISES[name](answer)
    assert verdict.state == "wrong" and named(verdict) == set((id or "").split(" + ")) - {""}, verdict


@pytest.mark.parametrize("name, done", [(name, done) for name, rows in LEARNERS.items() for done in rows])
def test_a_learners_mistake_is_named_and_told_truly(name, done):
    id, answer, says, never = (*LEARNERS[name][done], "", "")[:4]
    verdict = EXERCISES[name](answer)
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
    assert says in verdict.message and (not never or never not in verdict.message), verdict


@pytest.mark.parametrize("id", ["no_scale", "returns_float16", "exp_not_divided"])
def test_a_name_says_that_it_rests_on_behaviour(id):
    exercise = EXERCISES[A]
    verdict = exercise(exercise.wrong[id][0])
    assert verdict.message.startswith(f"Your code behaves as if {MISTAKES[id].behaves_as_if}. ")
