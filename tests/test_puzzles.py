"""The puzzles of notebook 10: right heads of any form pass, each mistake is named, and nothing is named falsely."""

from dataclasses import replace

import numpy as np
import pytest
from puzzle_answers import RIGHT, WRONG

from attnlib.course import EXERCISES, MISTAKES
from attnlib.course.puzzle import Answer, Claim, Puzzle
from attnlib.course.signs import COMMON

PUZZLES = {name: exercise for name, exercise in EXERCISES.items() if isinstance(exercise, Puzzle)}
CLAIMS = {name: exercise for name, exercise in EXERCISES.items() if isinstance(exercise, Claim)}


def handed_in(answer):
    return lambda: answer


def hidden(name, seed):
    """Return a puzzle with other hidden convoys."""
    return replace(PUZZLES[name], among=PUZZLES[name].among | {"seed": seed})


def rotated(puzzle, answer, seed=0):
    """Rotate the queries and the keys of each head alike: other matrices, the same scores."""

    def turn(head):
        R = np.linalg.qr(np.random.default_rng(seed).normal(size=(head.W_Q.shape[1],) * 2))[0]
        return head._replace(W_Q=head.W_Q @ R, W_K=head.W_K @ R)

    return as_returned(puzzle, puzzle.read(answer).each(turn))


def times(puzzle, answer, factor):
    return as_returned(puzzle, puzzle.read(answer).each(lambda head: head._replace(W_Q=factor * head.W_Q)))


def as_returned(puzzle, answer: Answer):
    heads = [tuple(part for part in head if part is not None) for head in answer.heads]
    if len(heads) == 1:
        return heads[0]
    return (*heads, answer.W_O) if puzzle.joined else tuple(heads)


def test_there_are_fourteen_and_one_of_your_own():
    assert len(PUZZLES) == 13 and set(CLAIMS) == {"no_head_can", "own_head"}
    assert set(RIGHT) == {*PUZZLES, *CLAIMS}


# --- right ones


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_of_three_forms_pass(name):
    assert len(RIGHT[name]) >= 3
    for answer in RIGHT[name]:
        verdict = EXERCISES[name](handed_in(answer))
        assert verdict.passed and verdict.mistake is None, verdict


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", PUZZLES)
def test_right_answers_pass_on_other_convoys_and_with_features_rotated(name, seed):
    puzzle = hidden(name, seed)
    for answer in RIGHT[name]:
        assert puzzle(handed_in(answer)).passed
        assert puzzle(handed_in(rotated(puzzle, answer, seed))).passed


@pytest.mark.parametrize("name", PUZZLES)
def test_random_heads_do_not_pass(name):
    puzzle, rng = PUZZLES[name], np.random.default_rng(3)

    def noise(part):
        if isinstance(part, tuple):
            return tuple(map(noise, part))
        return part if part.dtype == bool else rng.normal(size=part.shape) * rng.choice([0.05, 1, 10])

    assert not any(puzzle(handed_in(noise(RIGHT[name][0]))).passed for _ in range(20))


# --- wrong ones


def ids(case):
    return "-".join(case[:2])


@pytest.mark.parametrize("case", WRONG, ids=ids)
def test_every_mistake_is_rejected_and_named(case):
    name, id, answer = case
    verdict = EXERCISES[name](handed_in(answer))
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
    assert MISTAKES[id].does in verdict.message and verdict.hint().endswith(MISTAKES[id].hint)


@pytest.mark.parametrize("case", [case for case in WRONG if case[0] in PUZZLES], ids=ids)
def test_a_mistake_keeps_its_name(case):
    """On other convoys, with features rotated, three times as sharp and three times as soft."""
    name, id, answer = case
    puzzle = PUZZLES[name]
    tries = [(puzzle, rotated(puzzle, answer, 9)), (hidden(name, 1), answer), (hidden(name, 2), answer)]
    if id != "too_soft" and name != "three_to_one":  # where the strength is what is asked for
        tries += [(puzzle, times(puzzle, answer, factor)) for factor in (3, 0.3)]
    assert {one(handed_in(head)).mistake for one, head in tries} == {id}


def test_every_mistake_of_a_puzzle_is_made():
    made = {(name, id) for name, id, _ in WRONG}
    for name, puzzle in PUZZLES.items():
        assert {id for own, id in made if own == name} >= set(puzzle.signs), name
    for name, claim in CLAIMS.items():
        assert {id for own, id in made if own == name} == set(claim.names)
    assert {id for _, id in made} >= set(COMMON)


@pytest.mark.parametrize("case", [case for case in WRONG if case[0] in PUZZLES], ids=ids)
def test_at_most_one_mistake_of_its_own_fits(case):
    """Where two would fit none is named; so no two of a puzzle may be the same."""
    name, id, answer = case
    puzzle = PUZZLES[name]
    fitting = [own for own, sign in puzzle.signs.items() if sign(puzzle, puzzle.read(answer))]
    assert fitting in ([], [id])


@pytest.mark.parametrize("name", PUZZLES)
def test_answers_to_other_puzzles_get_no_name_that_is_not_true_of_them(name):
    """A head of another puzzle is right here, or is named by a rule that it follows, or has no name at all."""
    puzzle = PUZZLES[name]
    for other, answers in RIGHT.items():
        if other in CLAIMS or form(PUZZLES[other]) != form(puzzle) or other == name:
            continue
        for answer in answers:
            verdict = puzzle(handed_in(answer))
            if verdict.mistake is not None:
                sign = puzzle.signs.get(verdict.mistake, COMMON.get(verdict.mistake))
                assert sign(puzzle, puzzle.read(answer)), (name, other, verdict)
                assert (name, other, verdict.mistake) in TRUE_OF_OTHERS, (name, other, verdict.mistake)


def form(puzzle):
    return puzzle.d_v, puzzle.mask, puzzle.joined, puzzle.layers


TRUE_OF_OTHERS = set()
