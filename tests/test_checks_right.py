"""Right answers in other forms pass, also those near to a mistake."""

import pytest
from lessons import gather, three_right

from attncourse import EXERCISES
from attncourse.lessons.program_a_head.claims import Claim
from attncourse.lessons.program_a_head.puzzle import Puzzle  # theirs: test_puzzles.py


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if not isinstance(e, Puzzle | Claim)])
def test_right_answers_in_other_forms_pass(name):
    for answer in three_right(name):
        verdict = EXERCISES[name](answer)
        assert verdict.passed and verdict.mistake is None, verdict


@pytest.mark.parametrize("name, answer", [(name, answer) for name, near in gather("NEAR").items() for answer in near])
def test_a_right_answer_near_to_a_mistake_is_not_accused(name, answer):
    verdict = EXERCISES[name](answer)
    assert verdict.passed and verdict.mistake is None, verdict
    assert not verdict.message or "attnlib's own" in verdict.message  # some of them call al.softmax
