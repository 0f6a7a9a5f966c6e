"""Notebook 10, program a head: its questions, and the puzzles 10.1 to 10.8; the later ones follow in places.py and
claims.py.

Their mistakes in words stand in mistakes.py.
"""

import numpy as np

from ...convoy import (
    FLAG,
    ONE,
    PILOT,
    PLACE,
    PLACES,
    A,
    B,
    C,
    Convoy,
    D,
    all_alike,
    all_at,
    at_flag,
    at_pilot,
    column,
    every,
    itself,
    only,
    rows,
    same_flag,
    share,
    where,
)
from ...engine.questions import Question
from ...mistakes.weights import FUTURE_ONLY
from . import claims, mistakes
from .places import BY_PLACE, TOGETHER
from .puzzle import Puzzle
from .puzzle_mistakes import exchange, follows, hard_weights, multiple, rolled

OWN = (*mistakes.MISTAKES, *claims.MISTAKES, FUTURE_ONLY)


def _heavy_win(p, a):
    """With 1000 tons aboard a ship draws all others but the pilot."""

    def drawn(c):
        cargo = c.cargo.copy()
        cargo[2] = 1000
        return p.traces(a, Convoy(c.flags, cargo))[-1].weights[1:, 2].min()

    return all(drawn(c) > 0.99 for c in p.convoys)


def _last(c):
    return only(~c.pilot, all_at(c, c.places == c.n - 1))


def _highest_letter(c):
    return only(~c.pilot, at_flag(c, c.kinds.max()))


_WANTS = {PILOT: PILOT, A: B, B: C, C: D, D: A}


def _wanted_flag(wants):
    return lambda c: share(np.array([wants[kind] for kind in c.kinds])[:, None] == c.kinds)


def _only_c(right, otherwise):
    return lambda c: where(c.kinds == C, right(c), otherwise(c))


def _at_c(c):
    return at_flag(c, C)


def _tons_of_c(c):
    return every(c, c.cargo[c.kinds == C].mean() if C in c.kinds else np.nan)


def _mean(c):
    return every(c, c.cargo.mean())


def _heaviest(c):
    return every(c, c.cargo.max())


def _mean_of_ships(c):
    return every(c, c.cargo[1:].mean())


def _pilot_only(p, a):
    return p.does(a.hard, lambda c: every(c, 0)) and all(hard_weights(p, a, c)[:, 0].min() > 0.98 for c in p.convoys)


def _times_c(ratio):
    def rule(c):
        weights = np.where(c.kinds == C, ratio, 1.0)
        return np.tile(weights / weights.sum(), (c.n, 1))

    return rule


def _ratio_is(*scores):
    """The ratio is e to one of these scaled scores. The strength is what is asked for: nothing is multiplied."""
    return lambda p, a: any(p.does(a, _times_c(np.exp(score))) for score in scores)


def _park(asks, finds):
    return lambda c: where((c.kinds == asks) & (finds in c.kinds), at_flag(c, finds), at_pilot(c))


def _a_to_b(otherwise):
    return lambda c: where(c.kinds == A, at_flag(c, B), otherwise(c))


_HAS_C = {"fits": lambda flags: "C" in flags, "by_hand": ("*CCAB", "*ABDABC")}

BY_FLAG = (
    Puzzle(
        "look_at_yourself",
        "a function without arguments that returns W_Q, W_K: each ship looks at itself, whatever its flag",
        (
            "What has a ship that no other ship has?",
            "Which block of x makes equal ships meet, and different ones not?",
            "How far must one score be ahead of seven zeros, for a weight of 0.99?",
        ),
        want=itself,
        signs={
            "ties_shared": follows(same_flag),
            "the_heavy_win": _heavy_win,
            "last_place_wins": follows(_last),
        },
        example=lambda: (rows(PLACE, 20 * np.eye(PLACES)), rows(PLACE, np.eye(PLACES))),
        among={"by_hand": ("*AAAA", "*ABCDABC")},
    ),
    Puzzle(
        "your_own_flag",
        "a function that returns W_Q, W_K: each looks at all ships of its flag alike, itself included",
        (
            "Which block of x is the same for two ships A?",
            "Your last puzzle, with that block in place of PLACE.",
            "How many flags are there, with the pilot's?",
        ),
        want=same_flag,
        signs={"itself_only": follows(itself), "letter_as_number": follows(_highest_letter)},
        example=lambda: (rows(FLAG, 20 * np.eye(5)), rows(FLAG, np.eye(5))),
        among={"by_hand": ("*AAAA", "*ABCD", "*DDAAD")},
    ),
    Puzzle(
        "who_wants_whom",
        "a function that returns W_Q, W_K: A looks at B, B at C, C at D, D at A, and the pilot at itself",
        (
            "Write a 5 x 5 table: a row for the flag that asks, a column for the flag that is wanted.",
            "The score of ships i and j should be table[flag of i, flag of j].",
            "One of the two matrices carries the whole table, the other one is as before.",
        ),
        want=_wanted_flag(_WANTS),
        signs={
            "own_flag": follows(same_flag),
            "pilot_in_the_circle": follows(_wanted_flag({**_WANTS, PILOT: A, D: PILOT})),
            "d_wants_nobody": follows(lambda c: where(c.kinds == D, all_alike(c), _wanted_flag(_WANTS)(c))),
        },
        example=lambda: (rows(FLAG, 20 * np.eye(5)[list(_WANTS.values())]), rows(FLAG, np.eye(5))),
        among={"fits": lambda flags: set("ABCD") <= set(flags), "shortest": 5, "by_hand": ("*DCBA", "*AABCCDD")},
    ),
    Puzzle(
        "where_is_c",
        "a function that returns W_Q, W_K: everybody looks at C; several C share",
        (
            "It does not matter who asks.",
            "Which column of x is the same for every ship?",
            "One feature is enough: d_k = 1.",
        ),
        want=_at_c,
        signs={"only_c_asks": follows(_only_c(_at_c, all_alike)), "own_flag": follows(same_flag)},
        among=_HAS_C,
    ),
    Puzzle(
        "cargo_of_c",
        "a function that returns W_Q, W_K, W_V, with W_V (15, 1): everybody is handed the tons of C, their mean if "
        "there are several",
        ("Whom to look at you know already.", "Which column of x holds the tons?", "W_V has a single 1."),
        want=_tons_of_c,
        tolerance=0.1,
        d_v=(1,),
        signs={
            "value_is_the_key": follows(lambda c: every(c, 1)),
            "all_columns_added": follows(lambda c: _tons_of_c(c) + 3),
            "cargo_as_key": follows(_heaviest),
            "own_cargo": follows(lambda c: column(c.cargo)),
            "only_c_asks": follows(_only_c(_tons_of_c, _mean)),
        },
        among=_HAS_C,
    ),
    Puzzle(
        "all_but_the_pilot",
        "a function that returns W_Q, W_K, W_V: everybody is handed the mean tons of the ships, without the pilot, for "
        "any number of ships",
        (
            "A head of zeros is nearly right. Who is one too many?",
            "Which score makes a weight vanish?",
            "Where is C?, with the pilot in place of C and a minus.",
        ),
        want=_mean_of_ships,
        tolerance=0.05,
        d_v=(1,),
        signs={
            "pilot_counted": follows(_mean),
            "pilot_only": _pilot_only,
            "one_length_only": lambda p, a: multiple(p, a, _mean),
            "the_heavy_win": follows(_heaviest),
            "only_the_pilot_asks": follows(lambda c: where(c.pilot, _mean_of_ships(c), _mean(c))),
        },
        among={"by_hand": ("*AB", "*A", "*ABCDABC")},
    ),
    Puzzle(
        "three_to_one",
        "a function that returns W_Q, W_K, both (15, 4): each C gets three times the weight of any other ship",
        (
            "The weights of two keys compare as exp of the difference of their scores.",
            "Which difference of scores makes a ratio of 3?",
            "And before the division by sqrt(4)?",
        ),
        want=_times_c(3),
        tolerance=0.005,
        d_k=4,
        signs={
            "scale_forgotten": _ratio_is(np.log(3) / 2),
            "scale_squared": _ratio_is(2 * np.log(3)),
            "ratio_as_score": _ratio_is(1.5, 3),
            "whole_row_filled": _ratio_is(4 * np.log(3)),
            "wrong_logarithm": _ratio_is(*(k * log(3) for k in (0.5, 1) for log in (np.log2, np.log10))),
            "one_to_three": _ratio_is(-np.log(3)),
            "hard_choice": lambda p, a: p.does(a, _at_c, 0.01),
            "only_c_asks": lambda p, a: p.does(a, _only_c(_times_c(3), all_alike)),
            "swapped_asking_and_found": lambda p, a: p.does(a.each(exchange)),
            "everybody_alike": lambda p, a: p.does(a, all_alike) and not p.does(a.each(exchange)),
            "column_off_by_one": lambda p, a: any(p.does(a.each(roll)) for roll in rolled("W_Q", "W_K")),
        },
        among={"fits": lambda flags: "C" in flags, "by_hand": ("*ACB", "*CCCCAAA")},
    ),
    Puzzle(
        "nothing_to_do",
        "a function that returns W_Q, W_K: A looks at B; all others look at the pilot, and so does A if there is no B",
        (
            "Scores of several features add up: one feature for each wish.",
            "First send everybody to the pilot.",
            "Which score beats that one, and in whose row alone?",
        ),
        want=_park(A, B),
        signs={
            "nobody_parks": follows(_a_to_b(all_alike)),
            "pilot_too_strong": follows(at_pilot),
            "tied_with_the_pilot": follows(
                lambda c: where(c.kinds == A, all_at(c, (c.kinds == B) | c.pilot), at_pilot(c))
            ),
            "a_never_parks": follows(_a_to_b(at_pilot)),
            "direction_turned": follows(_park(B, A)),
            "everybody_wants_b": follows(lambda c: at_flag(c, B) if B in c.kinds else at_pilot(c)),
        },
        example=lambda: (rows([ONE, A], np.diag([20, 40])), rows([PILOT, B], np.eye(2))),
        among={"fits": lambda flags: "A" in flags, "by_hand": ("*ACD", "*AACC", "*ABAB", "*BAACBD", "*BCDAB")},
    ),
)

EXERCISES = (*BY_FLAG, *BY_PLACE, *TOGETHER, *claims.CLAIMS)

QUESTIONS = (
    Question(
        "head_of_zeros",
        right="b",
        tempting="a",
        a="A softmax always spends its 1. With equal scores it spends it evenly.",
        b="All scores are 0, and the softmax of equal scores is uniform.",
        c="For that the score of a ship with itself would have to be larger than with others.",
    ),
    Question(
        "witness",
        right="a",
        tempting="c",
        a="The pilot is one, however many ships there are: one of two here, and one of three.",
        b="Without the pilot only shares of the ships are left, and they are equal in both texts.",
        c="Without the pilot only shares of the ships are left, and they are equal. With it they are not.",
    ),
)

RECALL = (
    Question(
        "score_ahead_by_8",
        right="c",
        tempting="a",
        a="That would be a division. Softmax takes exp of the scores first.",
        b="Neither the number nor its square: softmax takes exp of the scores.",
        c="Softmax compares by differences: e to the 8 is 2981.",
    ),
    Question(
        "row_of_scores",
        right="a",
        tempting="b",
        a="Row i of Q K^T is query i with every key.",
        b="That is a column: key 2 with every query.",
        c="What is handed over are values, and they come in after the softmax.",
    ),
    Question(
        "handed_over",
        right="c",
        tempting="b",
        a="The query is what it asks.",
        b="The key is the label under which it is found.",
        c="The query asks, the key is what a token is found by, and the value is what it hands over.",
    ),
)
