"""The puzzles of Program a head that ask by flag, and then all: places.py and claims.py have the later ones."""

from functools import partial

import numpy as np

from ...convoy import FLAG, ONE, PILOT, PLACE, PLACES, A, B, C, Convoy, D, rows
from .claims import CLAIMS
from .places import BY_PLACE, TOGETHER
from .puzzle import Puzzle
from .puzzle_mistakes import exchange, follows, hard_weights, roll_rows
from .rules import all_alike, all_at, at_flag, at_pilot, column, every, itself, only, same_flag, share, where


def _heavy_win(p, a):
    """With 1000 tons aboard a ship draws all others but the pilot."""

    def least_weight(c):
        cargo = c.cargo.copy()
        cargo[2] = 1000
        return p.traces(a, Convoy(c.flags, cargo))[-1].weights[1:, 2].min()

    return all(least_weight(c) > 0.99 for c in p.convoys)


def _follows_one_of(rule, values):
    """With hard scores the head does what a rule, (value, convoy) -> result, says for one of these values."""
    return lambda p, a: any(follows(partial(rule, value))(p, a) for value in values)


def _everybody_at_highest(c):
    return at_flag(c, c.kinds.max())


_at_c = partial(at_flag, kind=C)
_WANTS = {PILOT: PILOT, A: B, B: C, C: D, D: A}


def _wanted_flag(wants):
    return lambda c: share(np.array([wants[kind] for kind in c.kinds])[:, None] == c.kinds)


def _only_c(right, otherwise):
    return lambda c: where(c.kinds == C, right(c), otherwise(c))


def _tons_of_c(c):
    return every(c, c.cargo[c.kinds == C].mean() if C in c.kinds else np.nan)


def _mean(c):
    return every(c, c.cargo.mean())


_HEAVIEST = follows(lambda c: every(c, c.cargo.max()))


def _mean_of_ships(c):
    return every(c, c.cargo[1:].mean())


def _mean_without_d(c):
    counted = ~c.pilot & (c.kinds != D)
    return every(c, c.cargo[counted if counted.any() else ...].mean())


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


def _wishes_in_one_column(p, a):
    """Everybody shares between the pilot and B, and there an A has larger scores than the others."""

    def ahead(c):  # the score of B minus that of A, for each ship that asks
        scores = p.traces(a, c)[-1].scaled_scores
        return scores[:, c.kinds == B].mean(axis=-1) - scores[:, c.kinds == A].mean(axis=-1)

    shared = follows(lambda c: all_at(c, (c.kinds == B) | c.pilot))
    asked = [(ahead(c), c.kinds == A) for c in p.convoys if B in c.kinds]
    return shared(p, a) and all(by[is_a].min() > 1.2 * by[~is_a].max() for by, is_a in asked)


def _a_to_b(otherwise):
    return lambda c: where(c.kinds == A, at_flag(c, B), otherwise(c))


_HAS_C = {"fits": lambda flags: "C" in flags, "by_hand": ("*CCAB", "*ABDABC")}

BY_FLAG = (
    Puzzle(
        "look_at_yourself",
        "a function without arguments that returns W_Q, W_K: each ship looks at itself, whatever its flag",
        (
            "What does a ship have that no other ship has?",
            "Which block of x makes equal ships meet in the dot product, and different ones not?",
            "How far must one score be ahead of seven zeros for a weight of 0.99?",
        ),
        want=itself,
        signs={
            "ties_shared": follows(same_flag),
            "the_heavy_win": _heavy_win,
            "last_place_wins": follows(lambda c: only(~c.pilot, all_at(c, c.places == c.n - 1))),
            "one_place_only": _follows_one_of(
                lambda place, c: where(c.places == place, itself(c), all_alike(c)), range(PLACES)
            ),
        },
        example=lambda: (rows(PLACE, 20 * np.eye(PLACES)), rows(PLACE, np.eye(PLACES))),
        among={"by_hand": ("*AAAA", "*ABCDABC")},
    ),
    Puzzle(
        "your_own_flag",
        "a function that returns W_Q, W_K: each ship looks at all ships of its flag equally, itself included",
        (
            "Which block of x is the same for two ships A?",
            "Take your last puzzle, with that block in place of PLACE.",
            "How many flags are there, the pilot's included?",
        ),
        want=same_flag,
        signs={
            "itself_only": follows(itself),
            "letter_as_number": follows(lambda c: only(~c.pilot, _everybody_at_highest(c))),
            "d_left_out": _follows_one_of(
                lambda kinds, c: where(np.isin(c.kinds, kinds), all_alike(c), same_flag(c)), ([D], [D, PILOT])
            ),
        },
        example=lambda: (rows(FLAG, 20 * np.eye(5)), rows(FLAG, np.eye(5))),
        among={"by_hand": ("*AAAA", "*ABCD", "*DDAAD")},
    ),
    Puzzle(
        "who_wants_whom",
        "a function that returns W_Q, W_K: A looks at B, B at C, C at D, D at A, and the pilot at itself",
        (
            "Write a 5 x 5 table: a row for each flag that asks, a column for each flag that is wanted.",
            "The score of ships i and j should be table[flag of i, flag of j].",
            "Let one of the two matrices carry the whole table, and leave the other as it was in the last puzzle.",
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
        "a function that returns W_Q, W_K: everybody looks at C; several ships C share",
        (
            "It does not matter who asks.",
            "Which column of x is the same for every ship?",
            "One feature is enough: d_k = 1.",
        ),
        want=_at_c,
        signs={
            "only_c_asks": follows(_only_c(_at_c, all_alike)),
            "own_flag": follows(same_flag),
            "letter_as_number": follows(_everybody_at_highest),
            "place_instead_of_flag": _follows_one_of(lambda place, c: all_at(c, c.places == place), range(1, PLACES)),
        },
        among=_HAS_C,
    ),
    Puzzle(
        "cargo_of_c",
        "a function that returns W_Q, W_K, W_V, with W_V (15, 1): everybody receives the tons of C, their mean if "
        "there are several",
        (
            "At whom to look is the last puzzle. Take its W_Q and W_K.",
            "Which column of x holds the tons?",
            "W_V needs a single 1.",
        ),
        want=_tons_of_c,
        tolerance=0.1,
        d_v=(1,),
        signs={
            "letter_as_number": follows(lambda c: every(c, c.cargo[c.kinds == c.kinds.max()].mean())),
            "value_is_the_key": follows(lambda c: every(c, 1)),
            "all_columns_added": follows(lambda c: _tons_of_c(c) + 3),
            "cargo_as_key": _HEAVIEST,
            "own_cargo": follows(lambda c: column(c.cargo)),
            "only_c_asks": follows(_only_c(_tons_of_c, _mean)),
        },
        among=_HAS_C,
    ),
    Puzzle(
        "all_but_the_pilot",
        "a function that returns W_Q, W_K, W_V: everybody receives the mean tons of the ships, without the pilot, for "
        "any number of ships",
        (
            "A head of zeros is nearly right. Which ship is one too many?",
            "Which score makes a weight vanish?",
            "Take your head that finds C, with the pilot in place of C, and a minus.",
        ),
        want=_mean_of_ships,
        tolerance=0.05,
        d_v=(1,),
        signs={
            "pilot_counted": follows(_mean),
            "pilot_only": _pilot_only,
            "one_length_only": _follows_one_of(lambda n, c: n / (n - 1) * _mean(c), range(2, PLACES + 1)),
            "d_left_out": follows(_mean_without_d),
            "the_heavy_win": _HEAVIEST,
            "only_the_pilot_asks": follows(lambda c: where(c.pilot, _mean_of_ships(c), _mean(c))),
        },
        among={"by_hand": ("*AB", "*A", "*ABCDABC")},
    ),
    Puzzle(
        "three_to_one",
        "a function that returns W_Q, W_K, both (15, 4): each C gets three times the weight of any other ship",
        (
            "The ratio of two weights is exp of the difference of their scores. Which difference makes a ratio of 3?",
            "It is np.log(3), after the division by sqrt(4). How large is it before the division?",
        ),
        want=_times_c(3),
        tolerance=0.005,
        d_k=4,
        signs={
            "scale_forgotten": _ratio_is(np.log(3) / 2),
            "scale_applied_twice": _ratio_is(np.log(3) / 4),
            "scale_squared": _ratio_is(2 * np.log(3)),
            "ratio_as_score": _ratio_is(1.5, 3),
            "whole_row_filled": _ratio_is(4 * np.log(3)),
            "wrong_logarithm": _ratio_is(*(k * log(3) for k in (0.5, 1) for log in (np.log2, np.log10))),
            "one_to_three": _ratio_is(-np.log(3)),
            "hard_choice": lambda p, a: p.does(a, _at_c, 0.01),
            "only_c_asks": lambda p, a: p.does(a, _only_c(_times_c(3), all_alike)),
            "pilot_forgotten": lambda p, a: p.does(a, lambda c: where(c.pilot, all_alike(c), _times_c(3)(c))),
            "swapped_asking_and_found": lambda p, a: p.does(a.each(exchange)),
            "everybody_alike": lambda p, a: p.does(a, all_alike, 1e-6) and not p.does(a.each(exchange)),
            "column_off_by_one": lambda p, a: any(p.does(a.each(roll)) for roll in roll_rows("W_Q", "W_K")),
        },
        among={"fits": lambda flags: "C" in flags, "by_hand": ("*ACB", "*CCCCAAA")},
    ),
    Puzzle(
        "nothing_to_do",
        "a function that returns W_Q, W_K: A looks at B; all others look at the pilot, and so does A if there is no B",
        (
            "The scores of several features add up. Take one feature for each wish.",
            "First send everybody to the pilot.",
            "Then let B beat the pilot, in the rows of A alone.",
        ),
        want=_park(A, B),
        signs={
            "nobody_parks": follows(_a_to_b(all_alike)),
            "pilot_too_strong": follows(at_pilot),
            "tied_with_the_pilot": follows(
                lambda c: where(c.kinds == A, all_at(c, (c.kinds == B) | c.pilot), at_pilot(c))
            ),
            "a_never_parks": follows(_a_to_b(at_pilot)),
            "wishes_in_one_column": _wishes_in_one_column,
            "direction_turned": follows(_park(B, A)),
            "everybody_wants_b": follows(lambda c: at_flag(c, B) if B in c.kinds else at_pilot(c)),
        },
        example=lambda: (rows([ONE, A], np.diag([20, 40])), rows([PILOT, B], np.eye(2))),
        among={"fits": lambda flags: "A" in flags, "by_hand": ("*ACD", "*AACC", "*ABAB", "*BAACBD", "*BCDAB")},
    ),
)

EXERCISES = (*BY_FLAG, *BY_PLACE, *TOGETHER, *CLAIMS)
