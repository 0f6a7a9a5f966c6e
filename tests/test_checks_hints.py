"""Hints, of which each goes a step further, and what a tick says beside: right."""

import numpy as np
import pytest
from answers import student
from lessons.program_a_head import RIGHT, TABLE, flags

import attnlib as al
from attncourse import EXERCISES, MISTAKES, check
from attncourse.engine.verdict import Verdict


def test_hints_go_one_step_further_and_stop():
    verdict = check.softmax(lambda x, axis=-1: x)
    hints = [verdict.hint() for _ in range(7)]
    assert all(own in told for own, told in zip(MISTAKES["no_softmax"].hints, hints, strict=False))
    assert len(set(hints)) == 4 and hints[-1] == hints[-2]
    assert check.softmax(al.softmax).hint() == "No hint needed: this is right."


def test_a_hint_is_given_once():
    """Where the exercise has the hint of the mistake, too, or where the mistake's own holds all of it."""
    verdict = Verdict(
        "key_of_anna", "wrong", "", hints=("Look back. Where is it?", "Where is it?", "In row 3?", "Look back.")
    )
    assert verdict.hints == ("Look back. Where is it?", "In row 3?")
    told = check.uniform_divisor(6.0)
    assert told.hint() == f"Hint 1 of 4: {MISTAKES['unit_variance_assumed'].hints[0]}" and len(set(told.hints)) == 4


def test_the_second_hint_continues_the_first():
    """It follows from the mistake, whichever that was; of two mistakes each has both of its hints."""
    for name, answer in (
        ("weights_of_she", [84, 1, 11, 4]),
        ("weights_of_she", [0.5, 0.2, 0.2, 0.1]),
        ("bag_accuracy", 75),
    ):
        verdict = EXERCISES[name](answer)
        told = MISTAKES[verdict.mistake].hints if verdict.mistake else ()
        assert verdict.hints == (*told, *EXERCISES[name].hints[bool(told) :])  # a named mistake needs no nudge
    both = check.masked_attention(student(scale="1", mask="np.where(m, s, -1e9)"))
    one, other = (MISTAKES[id] for id in both.mistake.split(" + "))
    assert both.hints[:4] == (*one.hints, *other.hints)
    assert all(first != then for first, then in (mistake.hints for mistake in MISTAKES.values()))


def test_the_hint_does_not_ask_for_the_row_of_a_word_that_is_right():
    verdict = check.what_words_look_for([[0, 0, 6]] * 4 + [[6, 6, 0], [0, 0, 0]])  # the verb's alone is wrong
    assert "of a name, a verb and a pronoun" in verdict.hint() and "Row 3" not in verdict.hints[0]


@pytest.mark.parametrize("name", ["scores_of_she", "weights_of_she", "output_of_she"])
def test_queries_and_keys_exchanged_are_rejected_and_named_by_hand(name):
    """In the numbers of S3 the row of a query is the column of its key, so this passed."""
    query, key, value = al.examples.SENTENCE.project()
    exchanged = (
        "feature_or_column" if name == "scores_of_she" else "swapped_query_key"
    )  # two mistakes give these scores
    for one, other, mistake in ((query, key, None), (key, query, exchanged)):
        row = one[3] @ other.T
        weights, output = al.softmax(row), al.softmax(row / 3**0.5) @ value
        answers = {"scores_of_she": row, "weights_of_she": weights, "output_of_she": output}
        verdict = EXERCISES[name](answers[name])
        assert (verdict.passed, verdict.mistake) == (mistake is None, mistake)


@pytest.mark.parametrize(
    ("name", "answer"),
    [("who_wants_whom", flags(20 * TABLE.T)), ("where_is_c", RIGHT["where_is_c"][0][::-1])],
)
def test_queries_and_keys_exchanged_are_told_of_ships(name, answer):
    told = EXERCISES[name](lambda: answer)
    assert told.mistake == "swapped_asking_and_found" and "n_q" not in told.message
    assert all("W_Q" in hint and "W_K" in hint for hint in told.hints[:2]) and "ship" in told.hints[0]


def test_a_rule_that_forbids_nothing_is_told_no_more_than_was_tried():
    """Some of its rows are True everywhere, the others nowhere; and other convoys than these 50 may be forbidden."""
    told = check.own_head(lambda: (*RIGHT["own_head"][0][:2], lambda f, t: np.eye(len(t))[:, :1] == np.zeros(len(t))))
    assert told.mistake == "rule_says_nothing" and "every head" not in told.message
    assert "In each of the 50 convoys that were tried, every row of it is True everywhere or nowhere" in told.message
