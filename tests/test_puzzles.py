"""The puzzles: right heads of any form pass, each mistake is named, and nothing is named falsely."""

import itertools
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from lessons import each, program_a_head, three_right
from lessons.program_a_head import (
    ALL,
    BEFORE,
    FIND_C,
    HEAVIEST,
    I5,
    I8,
    LAYER_1,
    LOCATED,
    OWN,
    READER,
    RIGHT,
    STAR,
    STEP,
    TONS,
    UP_TO,
    ask,
    flag_then_place,
    flags,
    places,
    put,
    wide,
    witness,
)

import attnlib as al
from attncourse import EXERCISES, MISTAKES, check, ships
from attncourse import convoy as world
from attncourse.convoy import CARGO, FLAG, NOTE, ONE, PILOT, PLACE, A, B, C, convoy
from attncourse.lessons.program_a_head.claims import Claim
from attncourse.lessons.program_a_head.puzzle import Answer, Puzzle
from attncourse.lessons.program_a_head.puzzle_mistakes import COMMON
from attnlib import colours, live
from attnlib.live import frames
from tools.build_notebooks import code_between, read_source
from tools.handouts import exercises
from tools.numbering import numbers
from tools.series import find_notebook

PUZZLES = {name: exercise for name, exercise in EXERCISES.items() if isinstance(exercise, Puzzle)}
WRONG = each(program_a_head.WRONG)
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

    return as_returned(puzzle, puzzle.parse_answer(answer).each(turn))


def times(puzzle, answer, factor):
    return as_returned(puzzle, puzzle.parse_answer(answer).each(lambda head: head._replace(W_Q=factor * head.W_Q)))


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
    for answer in three_right(name):
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

    assert not any(puzzle(handed_in(noise(RIGHT[name][0]))).passed for _ in range(10))


# --- wrong ones


def ids(case):
    return "-".join(case[:2])


@pytest.mark.parametrize("case", WRONG, ids=ids)
def test_every_mistake_is_rejected_and_named(case):
    name, id, answer = case
    verdict = EXERCISES[name](handed_in(answer))
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
    assert MISTAKES[id].behaves_as_if in verdict.message and verdict.hints[:2] == MISTAKES[id].hints


@pytest.mark.parametrize("case", [case for case in WRONG if case[0] in PUZZLES], ids=ids)
def test_a_mistake_keeps_its_name(case):
    """On other convoys, with features rotated, three times as sharp and three times as soft."""
    name, id, answer = case
    puzzle = PUZZLES[name]
    tries = [(puzzle, rotated(puzzle, answer, 9)), (hidden(name, 1), answer), (hidden(name, 2), answer)]
    if id != "too_little_weight" and name != "three_to_one":  # where the strength is what is asked for
        tries += [(puzzle, times(puzzle, answer, factor)) for factor in (3, 0.3)]
    assert {one(handed_in(head)).mistake for one, head in tries} == {id}


@pytest.mark.parametrize(("name", "answer", "said"), LOCATED)
def test_of_two_heads_the_one_with_the_mistake_is_told(name, answer, said):
    assert said in EXERCISES[name](handed_in(answer)).message


def test_two_wishes_of_every_ship_are_not_laid_to_one_column():
    """Every ship shares between the pilot and B here, too, but each wish has a column of its own."""
    both = np.zeros((2, 15, 2))
    both[0, ONE], both[1, [PILOT, B], [0, 1]] = 20, 1
    told = check.nothing_to_do(handed_in(tuple(both)))
    assert told.state == "wrong" and told.mistake is None


@pytest.mark.parametrize(
    ("name", "answer", "id", "never"),
    [
        ("ship_in_front", places(np.eye(8, k=-1)), "pilot_forgotten", "are right"),
        ("your_own_flag", flags(np.diag([0, 1, 1, 1, 1])), "pilot_forgotten", "are right"),
        ("count_with_a_witness", witness(20, 22, STAR), "witness_too_strong", "share is 1"),
        ("count_with_a_witness", witness(20, 18, STAR), "no_witness", "no weight"),
        ("cargo_of_c", (put(ONE, 0, 1), put(C, 0, 1), put(C, 0, 1)), "value_is_the_key", "1 for everybody"),
        ("cargo_of_c", (*places(I8), TONS), "own_cargo", "receives its own cargo"),
        ("all_but_the_pilot", (put(ONE, 0, 1), put(PILOT, 0, 1), TONS), "pilot_only", "receives 0"),
    ],
)
def test_of_a_head_that_looks_faintly_nothing_is_said_that_its_numbers_deny(name, answer, id, never):
    """A mistake is found in scores 10,000 times as large; the numbers below its words are those of the head itself."""
    told = EXERCISES[name](handed_in(answer))
    assert told.mistake == id and never not in told.message, told


BACK = np.eye(8, k=-1)


@pytest.mark.parametrize(
    ("name", "answer", "id"),
    [
        ("cargo_of_c", (*FIND_C, put([CARGO, ONE], 0, 1)), None),
        ("difference", (OWN, (*places(20 * STEP, BACK), TONS), np.array([[1], [-1]])), None),
        ("all_but_the_pilot", (np.zeros((15, 1)), np.zeros((15, 1)), 20 * TONS), "everybody_alike"),
        ("cargo_of_c", (put(ONE, 0, 1, 1000), STAR, TONS), None),
    ],
)
def test_what_a_moved_row_or_a_factor_mends_by_chance_is_not_laid_to_it(name, answer, id):
    """Two columns, of which one is right; steps that undo each other; a factor that fits no length; the empty pilot."""
    told = EXERCISES[name](handed_in(answer))
    assert told.state == "wrong" and told.mistake == id, told


def test_nearly_equal_scores_are_not_called_equal():
    told = check.three_to_one(handed_in(ask(0.01)))
    assert told.state == "wrong" and told.mistake is None, told


def test_a_faint_note_is_too_little_weight():
    """Layer 1 writes 0.05 in an empty column. That is neither nothing, nor mixed with what stood there."""
    told = check.what_came_next(handed_in(((*LAYER_1[:2], 0.05 * LAYER_1[2]), READER)))
    assert told.mistake == "too_little_weight"


def test_a_note_that_fails_in_another_way_than_by_what_stood_there_gets_no_name():
    note, flag = np.zeros((20, 20)), wide(CARGO, np.ones((1, 5)))
    note[FLAG, CARGO] = 1000 * np.arange(5)  # flags as numbers, on top of the tons
    assert check.what_came_next(handed_in(((*LAYER_1[:2], note), (READER[0], flag, READER[2])))).mistake is None


@pytest.mark.parametrize("mask", [np.zeros((8, 8), bool), np.tri(8, k=-2, dtype=bool), BEFORE & (np.arange(8) > 0)])
def test_a_ship_that_may_attend_to_nobody_is_told_so(mask):
    told = check.latest_of_my_flag(handed_in(flag_then_place(400, 200, 20, mask)))
    assert told.mistake is None and "row 1, flag" in told.message
    assert "it gives 0.00 on each, since it may attend to nobody; wanted is 1.00 on 0." in told.message


@pytest.mark.parametrize("mask", [UP_TO, ALL])
def test_a_wish_for_the_pilot_that_a_mask_hides_is_there(mask):
    """A ship that sees itself always finds its flag, so it never parks; that is not the flag alone."""
    told = check.latest_of_my_flag(handed_in(flag_then_place(400, 200, 0, mask)))
    assert told.state == "wrong" and told.mistake is None


def test_a_free_row_of_a_verdict_is_called_free():
    told = check.latest_of_my_flag(handed_in(flag_then_place(20, 0, 0, BEFORE)))
    drawn = told._repr_html_()
    assert np.isnan(told.expected[0]).all() and drawn.count(">free<") == 2 * len(told.expected) and "nan" not in drawn
    assert ">≠ nan<" in check.softmax(lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True))._repr_html_()


def test_what_a_mask_hides_is_not_laid_to_the_scores():
    """Each ship may see the one in front alone; layer 1 asks for a ship that is hidden, beside another mistake."""
    told = check.latest_of_my_flag(handed_in(flag_then_place(400, 200, 20, np.eye(8, k=-1, dtype=bool))))
    assert told.state == "wrong" and told.mistake is None
    behind = wide(PLACE, 20 * np.eye(8, k=1))
    told = check.what_came_next(handed_in(((behind, *LAYER_1[1:]), (-READER[0], *READER[1:]))))
    assert told.state == "wrong" and told.mistake is None


def test_every_mistake_of_a_puzzle_is_made():
    made, fix = (
        program_a_head.WRONG,
        "nobody hands it in. Fix: add an answer to WRONG in tests/lessons/program_a_head.py",
    )
    for name, puzzle in PUZZLES.items():
        assert set(made[name]) >= set(puzzle.signs), fix
    for name, claim in CLAIMS.items():
        assert set(made[name]) == set(claim.names), fix
    assert {id for _, id, _ in WRONG} >= set(COMMON), fix


@pytest.mark.parametrize("case", [case for case in WRONG if case[0] in PUZZLES], ids=ids)
def test_at_most_one_mistake_of_its_own_fits(case):
    """Where two would fit none is named; so no two of a puzzle may be the same."""
    name, id, answer = case
    puzzle = PUZZLES[name]
    fitting = [own for own, sign in puzzle.signs.items() if sign(puzzle, puzzle.parse_answer(answer))]
    assert fitting in ([], [id])


def form(puzzle):
    return puzzle.d_v, puzzle.mask, puzzle.joined, puzzle.layers


# Right answers to other puzzles and what they are called here: each of these names is true.
NAMED_ELSEWHERE = {
    ("look_at_yourself", "your_own_flag", "ties_shared"),
    ("your_own_flag", "look_at_yourself", "itself_only"),
    ("who_wants_whom", "your_own_flag", "own_flag"),
    ("where_is_c", "your_own_flag", "own_flag"),
    ("where_is_c", "three_to_one", "too_little_weight"),
    ("ship_in_front", "look_at_yourself", "itself_only"),
}


def test_answers_to_other_puzzles_get_no_name_that_is_not_true_of_them():
    named = set()
    for name, puzzle in PUZZLES.items():
        for other, answers in RIGHT.items():
            if other in PUZZLES and other != name and form(PUZZLES[other]) == form(puzzle):
                verdicts = [puzzle(handed_in(answer)) for answer in answers]
                named |= {(name, other, verdict.mistake) for verdict in verdicts if verdict.mistake}
    assert named == NAMED_ELSEWHERE


@pytest.mark.parametrize("name", PUZZLES)
def test_heads_of_noise_get_no_name_of_a_rule(name):
    """With all columns at random, cargo too, two things may be true: the heaviest wins, or the empty pilot does."""
    puzzle, rng = PUZZLES[name], np.random.default_rng(11)
    if puzzle.mask or len(puzzle.d_v) > 1:
        return
    d_v = [rng.normal(size=(15, 1))] if puzzle.d_v else []
    verdicts = [puzzle(handed_in((*rng.normal(size=(2, 15, 4)), *d_v))) for _ in range(20)]
    assert {verdict.mistake for verdict in verdicts} <= {None, "the_heavy_win", "pilot_too_strong"}


# --- what is not even tried


@pytest.mark.parametrize(
    ("returned", "parts"),
    [
        (3, ("asks for 2 things: W_Q and W_K", "a int", "Fix: return W_Q, W_K.")),
        (np.ones((15, 2)), ("asks for 2 things", "a ndarray")),
        ((np.ones((15, 2)), np.ones((15, 3))), ("same number of columns, d_k", "Yours have 2 and 3")),
        ((np.ones((14, 2)), np.ones((15, 2))), ("W_Q must have 15 rows", "(14, 2)", "Fix: ")),
        ((np.ones(15), np.ones(15)), ("W_Q must have two axes", "yours has 1", "(15,)", "Fix: shape (15, 1).")),
        ((np.ones(14), np.ones(14)), ("two axes, rows and columns", "Fix: begin with np.zeros((15, ...)).")),
        ((np.ones((15, 0)), np.ones((15, 0))), ("W_Q must have 15 rows", "(15, 0)")),
        ((np.ones((15, 2)), np.full((15, 2), np.nan)), ("W_K holds NaN or inf",)),
        (("a", "b"), ("W_Q must be a matrix of numbers",)),
    ],
)
def test_what_does_not_fit_is_told(returned, parts):
    verdict = check.look_at_yourself(handed_in(returned))
    assert (verdict.state, verdict.mistake) == ("wrong", None)
    assert all(part in verdict.message for part in parts), verdict


def test_masks_values_and_joints_that_do_not_fit_are_told():
    W = np.ones((15, 2))
    told = check.latest_of_my_flag(handed_in((W, W, np.tri(8, k=-1)))).message
    assert "mask must be (8, 8) and boolean" in told and told.endswith("Fix: mask.astype(bool).")
    assert "Fix: np.tri(8, dtype=bool)" in check.latest_of_my_flag(handed_in((W, W, np.ones((3, 3), bool)))).message
    assert (
        "for a mask, too, (8, 8) and boolean; yours is None" in check.latest_of_my_flag(handed_in((W, W, None))).message
    )
    assert check.latest_of_my_flag(handed_in((0 * W, 0 * W, None))).state == "not tried"
    assert "W_V must have 1 column," in check.cargo_of_c(handed_in((W, W, W))).message
    head = (W, W, W[:, :1])
    assert "W_O must have 2 rows" in check.difference(handed_in((head, head, np.ones((1, 2))))).message
    assert "Fix: shape (2, 1)." in check.difference(handed_in((head, head, np.array([1, -1])))).message
    assert "W_V1 must have 20 rows" not in check.what_came_next(handed_in((head, head))).message
    assert "W_Q1 must have 20 rows" in check.what_came_next(handed_in((head, head))).message
    assert "pass the function itself" in check.look_at_yourself((W, W)).message


@pytest.mark.parametrize("stub", [None, ..., lambda: None, lambda: (..., ...), lambda: (np.zeros((15, 8)),) * 2])
def test_a_stub_is_not_tried(stub):
    assert check.look_at_yourself(stub).state == "not tried"


def test_an_error_in_the_function_shows_its_line():
    verdict = check.look_at_yourself(lambda: np.zeros(3)[7])  # this line
    assert verdict.state == "wrong" and "IndexError" in verdict.message and "# this line" in verdict.message


def test_without_a_name_the_shortest_convoy_and_its_worst_row_are_told():
    W_Q, W_K = places(20 * I8)
    W_Q[PLACE.start + 2] = W_Q[PLACE.start + 1]  # place 2 asks for place 1
    verdict = check.look_at_yourself(handed_in((W_Q, W_K)))
    assert verdict.mistake is None and "The worst is row 2, flag" in verdict.message
    assert "it gives 1.00 on 1; wanted is 1.00 on 2." in verdict.message
    assert verdict.yours.shape == verdict.expected.shape == (4, 4)
    told = check.cargo_of_c(handed_in((*places(20 * I8), 2 * TONS))).message
    assert "it receives " in told and "; wanted is " in told


def test_where_two_numbers_round_alike_more_digits_are_told():
    """18.5 is enough for 0.989997, and not for 0.99; the notebook prints 18.501."""
    told = check.look_at_yourself(handed_in(places(18.5 * I8)))
    assert "wanted is 1.000000 on" in told.message and " 0.989997 on " in told.message
    assert check.look_at_yourself(handed_in(places(18.501 * I8))).passed


def test_d_k_of_three_to_one_is_four():
    told = check.three_to_one(handed_in((np.ones((15, 1)), np.ones((15, 1)))))
    assert told.mistake is None and "Here d_k is 4" in told.message and "(15, 1)" in told.message


def test_your_own_head_is_told_the_cargo_and_the_nearest_head():
    told = check.own_head(handed_in(RIGHT["own_head"][0])).message
    assert re.search(r"The worst row is \d of \*[A-D]+ with 0, [\d, ]+ t: ", told)
    assert "nearest to one that looks at the heaviest: 1.00 of the weight in common" in told
    assert "nearest" not in check.own_head(handed_in(RIGHT["own_head"][2])).message  # two places in front: none is near


def test_a_rule_that_forgets_ties_is_told_so_and_a_rule_that_a_soft_head_misses_is_not():
    def first_of_the_heaviest(flags, cargo):
        return np.tile(np.arange(len(flags)) == cargo.argmax(), (len(flags), 1))

    told = check.own_head(handed_in((*HEAVIEST[:2], first_of_the_heaviest))).message
    assert "Your head looks at the heaviest, and your rule says something else. Are several equally heavy?" in told
    for factor in (0.05, 0.1, 0.12, 0.13, 0.14):  # soft or nearly sharp enough, and the rule is right
        told = check.own_head(handed_in((factor * HEAVIEST[0], *HEAVIEST[1:])))
        assert "something else" not in told.message


def test_your_own_head_is_shown_beside_its_rule():
    W_Q, W_K, rule = HEAVIEST
    shown = check.own_head.show(handed_in(HEAVIEST), "*ABA")
    assert shown.line == "" and (shown.maps["rule"] == np.eye(4)[3]).all()  # 7 t, at place 3
    assert np.allclose(shown.maps["yours"].weights, shown.maps["rule"], atol=0.01)
    soft = check.own_head.show(handed_in(HEAVIEST), "*ABA", 0.01).maps["yours"].weights
    assert np.allclose(soft, al.softmax(0.2 * np.array([0, 4, 2, 7])))
    without = check.own_head.show(handed_in((W_Q, W_K, ...)), "*ABA")
    assert list(without.maps) == ["yours"] and without.line == "There is no rule yet."
    nothing = check.own_head.show(lambda: None, "*A")
    assert nothing.maps == {} and "Your function returns nothing yet." in nothing.line
    assert "True nowhere" in check.own_head.show(handed_in((W_Q, W_K, lambda f, t: np.eye(len(t)) > 1)), "*A").line
    assert "asks for three things" in check.own_head.show(handed_in((W_Q, W_K)), "*A").line
    assert "it returns shape (2,)" in check.own_head.show(handed_in((W_Q, W_K, lambda f, t: t > 3)), "*A").line
    assert "ZeroDivisionError" in check.own_head.show(handed_in((W_Q, W_K, lambda f, t: 1 / 0)), "*A").line
    assert "W_Q must have 15 rows" in check.own_head.show(handed_in((W_Q[1:], W_K, rule)), "*A").line
    assert "a convoy is the pilot" in check.own_head.show(handed_in(HEAVIEST), "A").line
    for returned in (None, (W_Q, W_K, ...), (..., ..., ...), (W_Q[1:], W_K, rule), HEAVIEST):
        live.compare(
            ships.pictured(partial(check.own_head.show, handed_in(returned))), convoy="*ABA"
        )  # each can be drawn


def test_figures_that_the_prose_of_the_notebook_tells():
    assert np.ceil((20 / np.log(7)) ** 2) == 106  # d_k from which a head keeps less than half
    passed = [
        check.latest_of_my_flag(handed_in(flag_then_place(20 * place, 10 * place, place, BEFORE))).passed
        for place in (12, 11)
    ]
    assert passed == [True, False]
    ahead = [20 / d_k**0.5 for d_k in (96, 128)]  # of seven zeros: two stops of the slider
    assert [round(float(np.exp(s) / (np.exp(s) + 7)), 2) for s in ahead] == [0.52, 0.46]


def test_four_features_are_enough_for_any_weights_among_five_flags():
    """What a solution says: the mean of a row of scores changes no weight, and takes one off the rank."""
    rng = np.random.default_rng(0)
    for table in 5 * rng.normal(size=(100, 5, 5)):
        left, size, right = np.linalg.svd(table - table.mean(axis=1, keepdims=True))
        assert size[3] > 0.1 and size[4] < 1e-9  # four are needed, and not five
        W_Q, W_K = 2 * left[:, :4] * size[:4], right[:4].T  # 2: the division by sqrt(4)
        weights = al.attention_trace(W_Q, W_K, I5).weights
        assert np.allclose(weights, al.softmax(table), atol=1e-12)


def test_a_witness_that_occurs_a_known_number_of_times_counts_as_well():
    """What 10 ends with: C occurs twice in each text, the head looks at C and A alike, and a C is worth 1."""
    for text, received in (("CCAB", 2 / 3), ("CCABAB", 2 / 4), ("CCABABAB", 2 / 5)):
        key, value = ([[1e3 * (c != "B")] for c in text], [[float(c == "C")] for c in text])
        output = al.scaled_dot_product_attention(np.ones((1, 1)), np.array(key), np.array(value))
        assert output[0, 0] == pytest.approx(received)
    remember = find_notebook("program_a_head").source.read_text("utf-8").split("**Remember.**")[1].replace("\n# ", " ")
    assert "unless some token occurs a known number of times in every text" in remember


def test_the_minutes_of_the_parts_are_those_of_their_puzzles():
    text = find_notebook("program_a_head").source.read_text(encoding="utf-8").replace("\n# ", " ")
    parts = [map(int, re.findall(r"\*(\d+) minutes, (?:easy|medium|hard)", p)) for p in re.split("## [ABC] · ", text)]
    said = re.search(r"part A (\d+) minutes of puzzles, B (\d+), C (\d+)", text).groups()
    assert list(map(sum, parts)) == [0, *map(int, said)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("flags", ["*A", "*AB", "*DDDDDDD"])
@pytest.mark.parametrize("name", PUZZLES)
def test_a_view_of_any_convoy_warns_of_nothing(name, flags):
    """Some convoys of the box have no C, or no second ship of a flag."""
    shown = PUZZLES[name].show(handed_in(RIGHT[name][0]), flags)
    assert len(shown.convoy.ships) == len(flags)


# --- what a view shows, and the world


@pytest.mark.parametrize("name", PUZZLES)
def test_a_head_of_zeros_shows_what_is_wanted_and_a_page_has_no_slider_that_moves_nothing(name):
    """All starts look alike, 1/7 everywhere: they say nothing of a puzzle. What is wanted does."""
    puzzle, layers = PUZZLES[name], (lambda: RIGHT[name][0])
    zeros = lambda: scaled(0, layers())  # noqa: E731
    shown = puzzle.show(zeros, "*ABACDB")
    assert (list(shown.maps), list(shown.received)) == (([], ["wanted"]) if puzzle.d_v else (["wanted"], []))
    alone = frames.pack_stops(live.compare(ships.pictured(partial(puzzle.show, zeros)), convoy="*ABACDB"))
    assert frames.unpack_stops(alone)["knobs"] == [] and "wanted" in frames.unpack_stops(alone)["picture"]
    kept = frames.unpack_stops(
        frames.pack_stops(live.compare(ships.pictured(partial(puzzle.show, layers)), convoy="*ABACDB"))
    )
    assert [knob["name"] for knob in kept["knobs"]] == ["times"] and "<svg" in kept["picture"]


def scaled(factor, answer):
    """Multiply every matrix of an answer; a mask stays."""
    if isinstance(answer, tuple | list):
        return tuple(scaled(factor, part) for part in answer)
    return answer if np.asarray(answer).dtype == bool else factor * np.asarray(answer)


def test_a_view_shows_what_is_wanted_beside_what_there_is():
    shown = check.look_at_yourself.show(handed_in(places(I8)), "*ABA", 2)
    assert shown.convoy.ships == ["0 *", "1 A", "2 B", "3 A"] and (shown.maps["wanted"] == np.eye(4)).all()
    expected = np.exp(2 / 8**0.5) / (np.exp(2 / 8**0.5) + 3)
    assert np.allclose(np.diag(shown.maps["yours"].weights), expected)
    assert "a convoy is the pilot" in check.look_at_yourself.show(handed_in(places(I8)), "<b>").line
    assert "asks for 2 things" in check.look_at_yourself.show(handed_in(3), "*AB").line
    *_, below, _ = ships.pictured(partial(check.cargo_of_c.show, handed_in((*RIGHT["where_is_c"][0], TONS))))("*AC", 1)
    assert "<desc>wanted: 0 * 2, 1 A 2, 2 C 2; yours: 0 * 2, 1 A 2, 2 C 2</desc>" in below
    free = check.latest_of_my_flag.show(lambda: None, "*AA")
    assert free.line == "Your function returns nothing yet. Anything goes in row 0."
    assert np.isnan(free.maps["wanted"][0]).all() and (free.maps["wanted"][1:] == [[1, 0, 0], [0, 1, 0]]).all()
    view = live.compare(ships.pictured(partial(check.latest_of_my_flag.show, lambda: None)), convoy="*AA")
    assert view.picture.value.count(">anything goes</text>") == 1
    assert "largest" not in view.picture.value  # a mean over unlike rows says nothing
    assert view.picture.value.count(": anything goes</title>") == 3 and "blocked" not in view.picture.value
    view.choose(query=0, key=1)
    assert view.readout.value == "wanted: query 0 “0 *”, key 1 “1 A”: <b>anything goes</b>"
    ships_alone = live.compare(ships.pictured(partial(check.cargo_of_c.show, lambda: None)), convoy="*AC")
    assert ships_alone.readout.value == ""  # there is no cell to point at
    right = handed_in(RIGHT["latest_of_my_flag"][0])
    view = live.compare(ships.pictured(partial(check.latest_of_my_flag.show, right)), convoy="*AA")
    wanted, yours = re.findall("<svg.*?</svg>", view.picture.value, re.DOTALL)
    stripes = f'stroke="var(--edge,{colours.HATCH})"'
    assert stripes not in wanted and stripes in yours  # hatched is what a mask forbids, and nothing else
    view.choose(query=1, key=2)
    assert [told.split("<b>")[1][:7] for told in view.readout.value.split("&nbsp;")] == ["0.0000<", "blocked"]


def test_no_two_texts_of_the_notebook_solve_the_puzzle_that_asks_for_two():
    source = find_notebook("program_a_head").source.read_text(encoding="utf-8")
    texts = set(re.findall(r"\b[A-D]{2,12}\b", re.sub(r"<details>(.|\n)+?</details>", "", source)))
    assert {"CDB", "CDBCDB", "CB", "CBCB"} < texts
    solved = [pair for pair in itertools.combinations(sorted(texts), 2) if check.no_head_can(pair).passed]
    assert not solved


@pytest.mark.parametrize("name", [name for name, puzzle in PUZZLES.items() if puzzle.example])
def test_the_examples_of_the_notebook_are_right(name):
    assert PUZZLES[name](PUZZLES[name].example).passed


@pytest.mark.parametrize(
    ("flags", "cargo", "part"),
    [
        ("ABC", None, "got 'ABC'"),
        ("*", None, "got '*'"),
        ("*ABE", None, "got '*ABE'"),
        ("*ABCDABCD", None, "one to seven ships"),
        (3, None, "got 3"),
        ("*AB", [4, 2], "expected 3, got 2"),
    ],
)
def test_what_is_no_convoy_is_told(flags, cargo, part):
    with pytest.raises(ValueError, match=r"Fix: .+\.$") as caught:
        convoy(flags, cargo)
    assert part in str(caught.value)


def test_the_second_solutions_that_the_notebook_folds_are_right_too():
    """one_run.py tries the first of each; here is the other one, where there is one."""
    notebook = read_source(find_notebook("program_a_head").source)
    names = {name: value for name, value in vars(world).items() if name.isupper() or name == "convoy"}
    names |= {"np": np, "check": check, "see": lambda *arguments: None}
    tried = 0
    for place, number, solution in exercises(notebook):
        exec(solution, names)
        if "another" not in names:
            continue
        name = re.match(r"verdict = check\.(\w+)", notebook.cells[place + 1].source)[1]
        verdict = EXERCISES[name](names.pop("another"))
        assert verdict.passed, (number, verdict)
        tried += 1
    assert tried >= 7


def test_a_row_is_told_as_the_head_gives_it():
    def answer():  # for an A a B is worth too little more than the pilot
        W_Q, W_K = np.zeros((15, 2)), np.zeros((15, 2))
        W_Q[ONE, 0], W_K[PILOT, 0] = 20, 1
        W_Q[A, 1], W_K[B, 1] = 25, 1
        return W_Q, W_K

    verdict = check.nothing_to_do(answer)
    assert verdict.mistake == "too_little_weight"
    assert "it gives 0.493 on 1 and 2, 0.014 on 0; wanted is 0.500 on 1 and 2" in verdict.message


@pytest.mark.parametrize("factor", [20, 1000])
def test_layers_that_park_firmly_write_on(factor):
    """Where no flag matches, the pilot receives most. It is never written: it can sail in front only."""
    cells = [
        cell for cell in code_between("program_a_head", "### They write on", numbers()["no_head_can"]) if "def " in cell
    ]
    names = {"al": al, "convoy": convoy}
    exec("\n".join(cells), names)
    step, match, note, give = np.zeros((20, 8)), np.zeros((20, 5)), np.zeros((20, 20)), np.zeros((20, 5))
    places, noted = np.zeros((20, 8)), np.zeros((20, 5))
    step[PLACE], places[PLACE], step[PLACE.start, 0] = factor * np.eye(8, k=-1), np.eye(8), factor
    note[FLAG, NOTE] = match[FLAG] = noted[NOTE] = give[FLAG] = np.eye(5)
    layers = (step, places, note), (factor * match, noted, give)
    assert names["write_on"](layers, "*ABCA") == "*ABCABCA"
    assert set(names["write_on"](layers, "*ABC")[1:]) <= set("ABCD")


def test_a_convoy_is_drawn_with_its_numbers_and_a_note_with_what_the_maps_say():
    flags, tons = "*BA", [0, 9, 3]
    figure = ships.sailing(flags, tons)
    told = [text.get_text() for text in figure.axes[0].texts]
    x = convoy(flags, tons)
    assert told[-len(x) * 16 :] == [
        word for i, row in enumerate(x) for word in (f"{i} {flags[i]}", *map("{:.0f}".format, row))
    ]
    assert {"9 t", "3 t", "CARGO", "PLACE"} < set(told)
    for first, noted in ((np.eye(4, k=-1) + np.eye(4)[:1].T @ np.eye(4)[:1], "*, *, B, C"), (np.eye(4), "*, B, C, B")):
        figure = ships.note_passed_on("*BCB", (first, np.eye(4)[[0, 1, 2, 2]]))
        assert f"noted: {noted}; the last ship receives C" in repr(figure)
        wide = [patch for patch in figure.axes[0].patches if patch.get_linewidth() > 3]
        assert len(wide) == 4 + 2  # a line for each weight, in layer 2 to the key and back
