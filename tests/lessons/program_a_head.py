"""Answers of the lesson program_a_head, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np

from attncourse.convoy import CARGO, FLAG, NOTE, ONE, PILOT, PLACE, WIDE, WIDTH, A, B, C, D

I5, I8 = np.eye(5), np.eye(8)


def put(rows, columns, d_k, value=1.0):
    W = np.zeros((WIDTH, d_k))
    W[rows, columns] = value
    return W


def block(rows, M, width=WIDTH):
    M = np.asarray(M, float)
    W = np.zeros((width, M.shape[1]))
    W[rows] = M
    return W


def wide(rows, M):
    return block(rows, M, WIDE)


def column(values):
    return np.asarray(values, float)[:, None]


def parabola(targets, width=WIDTH):
    """Scores -(target - j)^2 in two features: what depends on the query alone drops out of the softmax."""
    Q = block(PLACE, np.c_[targets, np.zeros(8)], width)
    Q[ONE, 1] = 1
    return Q, 20 * block(PLACE, np.c_[2 * np.arange(8), -(np.arange(8.0) ** 2)], width)


def places(query, key=I8):
    return block(PLACE, query), block(PLACE, key)


def flags(query, key=I5):
    return block(FLAG, query), block(FLAG, key)


def ask(strength, d_k=4):
    return put(ONE, 0, d_k, strength), put(C, 0, d_k)


def two_wishes(asks, finds):
    """Two features: (rows of W_Q, their values), and the rows of W_K."""
    (rows, values) = asks
    return put(rows, [0, 1], 2, values), put(finds, [0, 1], 2)


def flag_then_place(flag, pilot, place, mask, minus_self=0):
    W_Q, W_K = np.zeros((WIDTH, 14)), np.zeros((WIDTH, 14))
    W_Q[FLAG, :5], W_K[FLAG, :5] = flag * I5, I5
    W_Q[ONE, PILOT] = pilot
    W_Q[ONE, 5], W_K[PLACE, 5] = place, np.arange(8)
    W_Q[PLACE, 6:], W_K[PLACE, 6:] = -minus_self * I8, I8
    d_k = 14 if minus_self else 6
    return W_Q[:, :d_k], W_K[:, :d_k], mask


def flag_then_nearness(flag, pilot, near, mask):
    Q, K = parabola(np.arange(8))
    W_Q, W_K = np.hstack([block(FLAG, flag * I5), Q]), np.hstack([block(FLAG, I5), near / 20 * K])
    W_Q[ONE, PILOT] = pilot
    return W_Q, W_K, mask


def witness(flag, pilot, value):
    W_Q = block(FLAG, flag * I5)
    W_Q[ONE, PILOT] = pilot
    return W_Q, block(FLAG, I5), value


def writes(M, to=NOTE):
    W = np.zeros((WIDE, WIDE))
    W[FLAG, to] = M
    return W


def row(chosen):
    return np.tile(chosen, (len(chosen), 1))


CIRCLE = np.c_[np.cos(2 * np.pi * np.arange(5) / 5), np.sin(2 * np.pi * np.arange(5) / 5)]
TABLE = I5[[PILOT, B, C, D, A]]  # TABLE[who, whom]
STEP = np.eye(8, k=-1) + np.diag([1.0] + 7 * [0])
CODE = np.linalg.qr(np.random.default_rng(5).normal(size=(5, 5)))[0]
SECRET = I5[[3, 0, 4, 1, 2]]
TONS, STAR, NOTHING = put(CARGO, 0, 1), put(PILOT, 0, 1), np.zeros((WIDTH, 1))
FIND_C = (put(ONE, 0, 1, 20), put(C, 0, 1))
NOT_C = (put(ONE, 0, 1, -20), put([PILOT, A, B, D], 0, 1))
ONLY_C_ASKS = (put(C, 0, 1, 20), put(C, 0, 1))
BEFORE, UP_TO, ALL = np.tri(8, k=-1, dtype=bool), np.tri(8, dtype=bool), np.ones((8, 8), bool)
OWN, FRONT, BEHIND = (*places(20 * I8), TONS), (*places(20 * STEP), TONS), (*places(20 * np.eye(8, k=1)), TONS)
OCCUPIED = slice(7, 12)  # of x: five places
LOOK_FRONT, LOOK_SELF = (wide(PLACE, 20 * STEP), wide(PLACE, I8)), (wide(PLACE, 20 * I8), wide(PLACE, I8))
READER = (wide(FLAG, 20 * I5), wide(NOTE, I5), wide(FLAG, I5))
LAYER_1, SILENT = (*LOOK_FRONT, writes(I5)), (0 * READER[0], 0 * READER[1])
HEAVIEST = (put(ONE, 0, 1, 20), TONS, lambda flags, cargo: row(cargo == cargo.max()))

# The first of each stands in the notebook.
RIGHT = {
    "look_at_yourself": [places(20 * I8), parabola(np.arange(8)), places(5 * I8, 5 * I8)],
    "your_own_flag": [flags(20 * I5), flags(-20 * (1 - I5)), flags(20 * CIRCLE, CIRCLE)],
    "who_wants_whom": [
        flags(20 * TABLE),
        flags(20 * I5, TABLE.T),
        flags(20 * TABLE @ CODE, CODE),
        flags(20 * TABLE @ CIRCLE, CIRCLE),
    ],
    "where_is_c": [FIND_C, (put(FLAG, 0, 1, 20), put(C, 0, 1)), NOT_C],
    "cargo_of_c": [(*FIND_C, TONS), (*flags(20 * I5[[C] * 5]), TONS), (*NOT_C, TONS)],
    "all_but_the_pilot": [
        (put(ONE, 0, 1, 20), put(PILOT, 0, 1, -1), TONS),
        (put(ONE, 0, 1, 20), put([A, B, C, D], 0, 1), TONS),
        (put(ONE, 0, 1, 20), block(PLACE, column([0] + 7 * [1])), TONS),
    ],
    "three_to_one": [
        ask(2 * np.log(3)),
        (put(FLAG, 1, 4, np.log(3)), put(C, 1, 4, 2)),
        (put(ONE, np.arange(4), 4, np.log(3) / 2), put([C] * 4, np.arange(4), 4)),
    ],
    "nothing_to_do": [
        two_wishes(([ONE, A], [20, 40]), [PILOT, B]),
        flags(20 * I5[[PILOT] * 5] + 40 * np.outer(I5[A], I5[B])),
        (put([ONE, A], [0, 1], 2, [-20, 40]), put([A, B, C, D, B], [0, 0, 0, 0, 1], 2)),
    ],
    "ship_in_front": [places(20 * STEP), parabola(np.arange(8) - 1), places(I8, 20 * STEP.T)],
    "latest_of_my_flag": [
        flag_then_place(400, 200, 20, BEFORE),
        flag_then_place(1000, 500, 40, UP_TO, minus_self=5000),
        flag_then_nearness(2000, 1000, 10, BEFORE),
    ],
    "count_with_a_witness": [
        witness(20, 20, STAR),
        (*flags(-20 * (1 - I5) * (np.arange(5) != PILOT)), STAR),
        witness(20, 20, put([ONE, A, B, C, D], 0, 1, [1, -1, -1, -1, -1])),
    ],
    "difference": [
        (OWN, FRONT, column([1, -1])),
        (OWN, (*FRONT[:2], -TONS), column([1, 1])),
        ((*parabola(np.arange(8) - 1), TONS), (*parabola(np.arange(8)), 2 * TONS), column([-1, 0.5])),
    ],
    "what_came_next": [
        ((*LOOK_FRONT, writes(I5)), READER),
        (
            (*parabola(np.arange(8) - 1, WIDE), writes(3 * SECRET)),
            (wide(FLAG, 20 * SECRET), wide(NOTE, I5), wide(FLAG, I5)),
        ),
        # A note so large that what stood there does not count.
        ((*LOOK_FRONT, writes(1e4 * I5, OCCUPIED)), (wide(FLAG, 0.002 * I5), wide(OCCUPIED, I5), wide(FLAG, I5))),
        ((*LOOK_FRONT, writes(SECRET)), (wide(FLAG, 20 * I5), wide(NOTE, SECRET.T), wide(FLAG, I5))),
    ],
    "no_head_can": [("AB", "ABAB"), ["BAC", "CABBAC"], ("AAB", "AABAAB"), ("DAC", "ADADCC")],
    "own_head": [
        HEAVIEST,
        (put(ONE, 0, 1, 20), block(PLACE, column(np.arange(8))), lambda f, t: row(np.arange(len(t)) == len(t) - 1)),
        (*places(20 * np.eye(8, k=-2)), lambda f, t: np.eye(len(t), k=-2)),
        (*places(20 * I8[::-1]), lambda f, t: np.eye(8)[::-1][: len(t), : len(t)]),
    ],
}

WRONG = {
    "look_at_yourself": {
        "too_little_weight": [places(I8), places(10 * I8)],
        "ties_shared": [flags(20 * I5)],
        "the_heavy_win": [(5 * np.eye(15), 5 * np.eye(15))],
        "last_place_wins": [places(20 * column(np.arange(8)), column(np.arange(8)))],
        "everybody_alike": [places(0 * I8)],
        "one_place_only": [
            (put(PLACE.start, 0, 1, 20), put(PLACE.start, 0, 1)),
            places(20 * np.diag(np.arange(8) == 5)),
        ],
        "sign_turned": [places(-20 * I8)],
    },
    "your_own_flag": {
        "itself_only": [places(20 * I8)],
        "letter_as_number": [flags(20 * column(np.arange(5)), column(np.arange(5)))],
        "too_little_weight": [flags(I5)],
        "sign_turned": [flags(-20 * I5)],
        "everybody_alike": [flags(0 * I5)],
        "d_left_out": [*[flags(20 * np.diag([pilot, 1, 1, 1, 0])) for pilot in (0, 1)]],
        "pilot_forgotten": [flags(20 * np.diag([0, 1, 1, 1, 1]))],
    },
    "who_wants_whom": {
        "swapped_asking_and_found": [flags(20 * TABLE.T), flags(20 * I5, TABLE)],
        "own_flag": [flags(20 * I5), flags(20 * TABLE, TABLE)],
        "pilot_in_the_circle": [flags(20 * np.roll(I5, 1, axis=1))],
        "d_wants_nobody": [flags(20 * np.diag([0.0, 1, 1, 1], k=1) + 20 * np.diag([1, 0, 0, 0, 0]))],
        "too_little_weight": [flags(TABLE)],
    },
    "where_is_c": {
        "only_c_asks": [ONLY_C_ASKS],
        "own_flag": [flags(20 * I5)],
        "place_instead_of_flag": [*[(put(ONE, 0, 1, 20), put(PLACE.start + k, 0, 1)) for k in (2, 7)]],
        "swapped_asking_and_found": [(put(C, 0, 1, 20), put(ONE, 0, 1))],
        "letter_as_number": [
            *[(put(ONE, 0, 1, 20), block(FLAG, column(numbers))) for numbers in (np.arange(5), [0, 0, 0, 1, 2])]
        ],
        "column_off_by_one": [(put(ONE, 0, 1, 20), put(2, 0, 1))],
        "pilot_forgotten": [(put(CARGO, 0, 1, 20), put(C, 0, 1))],  # the pilot carries nothing
        "too_little_weight": [(put(ONE, 0, 1), put(C, 0, 1))],
        "sign_turned": [(put(ONE, 0, 1, -20), put(C, 0, 1))],
    },
    "cargo_of_c": {
        "pilot_forgotten": [(put(CARGO, 0, 1, 20), put(C, 0, 1), TONS)],
        "value_is_the_key": [(*FIND_C, put(C, 0, 1)), (*FIND_C, put(ONE, 0, 1))],
        "letter_as_number": [(put(ONE, 0, 1, 20), block(FLAG, column(np.arange(5))), TONS)],
        "all_columns_added": [(*FIND_C, np.ones((15, 1)))],
        "cargo_as_key": [(put(ONE, 0, 1, 20), TONS, TONS)],
        "own_cargo": [OWN],
        "only_c_asks": [(*ONLY_C_ASKS, TONS)],
        "nothing_given": [(*FIND_C, 0 * TONS)],
        "value_multiplied": [(*FIND_C, 20 * TONS)],
        "everybody_alike": [(NOTHING, NOTHING, TONS)],
        "too_little_weight": [(put(ONE, 0, 1), put(C, 0, 1), TONS)],
    },
    "all_but_the_pilot": {
        "pilot_counted": [(NOTHING, NOTHING, TONS)],
        "pilot_only": [(put(ONE, 0, 1, 20), put(PILOT, 0, 1), TONS)],
        "one_length_only": [(NOTHING, NOTHING, 8 / 7 * TONS), (NOTHING, NOTHING, 2 * TONS)],
        "d_left_out": [(put(ONE, 0, 1, 20), put([A, B, C], 0, 1), TONS)],
        "the_heavy_win": [(put(ONE, 0, 1, 20), TONS, TONS)],
        "only_the_pilot_asks": [(put(PILOT, 0, 1, 20), put(PILOT, 0, 1, -1), TONS)],
        "pilot_forgotten": [(put([A, B, C, D], 0, 1, 20), put(PILOT, 0, 1, -1), TONS)],
        "too_little_weight": [(put(ONE, 0, 1), put(PILOT, 0, 1, -1), TONS)],
    },
    "three_to_one": {
        "scale_forgotten": [ask(np.log(3))],
        "scale_applied_twice": [ask(np.log(3) / 2)],
        "scale_squared": [ask(4 * np.log(3)), (put(ONE, np.arange(4), 4, np.log(3)), put([C] * 4, np.arange(4), 4))],
        "whole_row_filled": [(put(ONE, np.arange(4), 4, 2 * np.log(3)), put([C] * 4, np.arange(4), 4))],
        "ratio_as_score": [ask(3), ask(6)],
        "wrong_logarithm": [ask(2 * np.log2(3)), ask(2 * np.log10(3))],
        "one_to_three": [ask(-2 * np.log(3))],
        "hard_choice": [ask(20)],
        "only_c_asks": [(put(C, 0, 4, 2 * np.log(3)), put(C, 0, 4))],
        "pilot_forgotten": [(put([A, B, C, D], 0, 4, 2 * np.log(3)), put(C, 0, 4))],
        "swapped_asking_and_found": [(put(C, 0, 4, 2 * np.log(3)), put(ONE, 0, 4))],
        "everybody_alike": [(np.zeros((15, 4)), put(C, 0, 4))],
        "column_off_by_one": [(put(ONE, 0, 4, 2 * np.log(3)), put(C - 1, 0, 4))],
    },
    "nothing_to_do": {
        "nobody_parks": [(put(A, 0, 2, 40), put(B, 0, 2))],
        "pilot_too_strong": [two_wishes(([ONE, A], [40, 20]), [PILOT, B])],
        "tied_with_the_pilot": [two_wishes(([ONE, A], [20, 20]), [PILOT, B])],
        "a_never_parks": [(put([PILOT, B, C, D, A], [0, 0, 0, 0, 1], 2, 20), put([PILOT, B], [0, 1], 2))],
        "wishes_in_one_column": [
            (put([ONE, A], 0, 2, [20, 40]), put([PILOT, B], 0, 2)),
            (put([ONE, A], 0, 1, 20), put([PILOT, B], 0, 1)),
        ],
        "everybody_wants_b": [
            (put([ONE, A], 0, 1, [20, 40]), put([PILOT, B], 0, 1, [1, 2])),
            two_wishes(([ONE, ONE], [20, 40]), [PILOT, B]),
        ],
        "direction_turned": [two_wishes(([ONE, B], [20, 40]), [PILOT, A])],
        "too_little_weight": [two_wishes(([ONE, A], [1, 2]), [PILOT, B])],
        "swapped_asking_and_found": [(put([PILOT, B], [0, 1], 2, [20, 40]), put([ONE, A], [0, 1], 2))],
    },
    "ship_in_front": {
        "attends_to_next": [places(20 * np.eye(8, k=1)), places(I8, 20 * STEP)],
        "position_wraps_around": [places(20 * np.roll(I8, -1, axis=1))],
        "itself_only": [places(20 * I8), places(20 * STEP, STEP)],
        "two_back": [places(20 * np.eye(8, k=-2)), places(20 * STEP, STEP.T)],
        "pilot_forgotten": [places(20 * np.eye(8, k=-1))],
        "too_little_weight": [places(STEP)],
    },
    "latest_of_my_flag": {
        "includes_itself": [flag_then_place(400, 200, 20, UP_TO)],
        "later_ships_seen": [flag_then_place(400, 200, 20, ALL), flag_then_place(400, 200, 20, ~BEFORE)],
        "late_place_beats_pilot": [
            flag_then_place(400, 50, 20, BEFORE),
            flag_then_place(400, 200, 40, BEFORE),
            flag_then_place(400, 20, 20, BEFORE),
            *[flag_then_place(*numbers, BEFORE) for numbers in ((400, 200, 100), (20, 10, 5))],
        ],
        "mask_future_only": [flag_then_place(400, 200, 20, ~UP_TO)],
        "ties_shared": [flag_then_place(400, 200, 0, BEFORE)],
        "flag_alone": [*[flag_then_place(20, 0, 0, mask) for mask in (BEFORE, UP_TO, ALL)]],
        "earliest": [flag_then_place(400, 200, -20, BEFORE)],
        "place_before_flag": [
            flag_then_place(20, 10, 20, BEFORE),
            flag_then_place(50, 10, 20, BEFORE),
            flag_then_place(70, 30, 20, BEFORE),
        ],
        "nobody_parks": [flag_then_place(400, 0, 20, BEFORE)],
        "pilot_beats_flag": [
            *[
                flag_then_place(flag, pilot, 20, BEFORE)
                for flag, pilot in ((200, 250), (180, 200), (200, 300), (200, 240))
            ]
        ],
        "pilot_too_strong": [flag_then_place(200, 400, 20, BEFORE)],
        "too_little_weight": [flag_then_place(20, 10, 1, BEFORE)],
    },
    "count_with_a_witness": {
        "average_of_ones": [(*flags(20 * I5), put(ONE, 0, 1)), witness(20, 20, put(ONE, 0, 1))],
        "no_witness": [(*flags(20 * I5), STAR), witness(20, 18, STAR)],
        "witness_too_strong": [witness(20, 40, STAR), witness(20, 22, STAR)],
        "everybody_counted": [(*flags(0 * I5, 0 * I5), STAR)],
        "share_of_the_ships": [witness(20, 20, put([A, B, C, D], 0, 1))],
        "only_itself_counted": [(block(PLACE, 20 * I8) + put(ONE, 0, 8, 20), block(PLACE, I8), STAR)],
        "too_little_weight": [witness(1, 1, STAR)],
    },
    "difference": {
        "heads_added": [
            (OWN, FRONT, column([1, 1])),
            (OWN, FRONT, column([0.5, 0.5])),
            (OWN, (*FRONT[:2], -TONS), column([1, -1])),
        ],
        "one_head_unused": [(OWN, FRONT, column([1, 0])), (OWN, FRONT, column([0, 1]))],
        "nothing_given": [(OWN, FRONT, column([0, 0]))],
        "heads_alike": [(OWN, OWN, column([1, -1]))],
        "attends_to_next": [(OWN, BEHIND, column([1, -1]))],
        "pilot_forgotten": [(OWN, (*places(20 * np.eye(8, k=-1)), TONS), column([1, -1]))],
        "sign_turned": [(OWN, FRONT, column([-1, 1]))],
        "too_little_weight": [((OWN[0] / 4, *OWN[1:]), (FRONT[0] / 4, *FRONT[1:]), column([1, -1]))],
    },
    "what_came_next": {
        "finds_the_copy": [((*LOOK_FRONT, writes(I5)), (wide(FLAG, 20 * I5), wide(FLAG, I5), wide(FLAG, I5)))],
        "note_handed_over": [((*LOOK_FRONT, writes(I5)), (wide(FLAG, 20 * I5), wide(NOTE, I5), wide(NOTE, I5)))],
        "own_flag_noted": [((*LOOK_SELF, writes(I5)), READER)],
        "looks_behind": [
            ((wide(PLACE, 20 * np.eye(8, k=1)), wide(PLACE, I8), writes(I5)), READER),
            ((wide(PLACE, 20 * I8), wide(PLACE, np.eye(8, k=-1)), writes(I5)), READER),
        ],
        "two_back": [
            ((wide(PLACE, 20 * np.eye(8, k=-2)), wide(PLACE, I8), writes(I5)), READER),
            ((wide(PLACE, 20 * STEP), wide(PLACE, STEP.T), writes(I5)), READER),
        ],
        "note_mixed": [
            *[
                (
                    (*LOOK_FRONT, writes(factor * I5, OCCUPIED)),
                    (wide(FLAG, 20 * I5), wide(OCCUPIED, I5), wide(FLAG, I5)),
                )
                for factor in (1, 100)
            ]
        ],
        "everybody_alike": [
            ((0 * LOOK_FRONT[0], LOOK_FRONT[1], writes(I5)), READER),
            ((*LOOK_FRONT, writes(I5)), (wide(ONE, np.full((1, 5), 20)), *READER[1:])),
        ],
        "nothing_noted": [((*LOOK_FRONT, np.zeros((WIDE, WIDE))), READER)],
        "flags_overwritten": [
            ((*LOOK_FRONT, writes(I5, FLAG)), (wide(FLAG, 20 * I5), wide(FLAG, I5), wide(FLAG, I5))),
            ((*LOOK_FRONT, np.eye(WIDE)), READER),
        ],
        "swapped_asking_and_found": [
            ((*LOOK_FRONT, writes(I5)), (wide(NOTE, 20 * I5), wide(FLAG, I5), wide(FLAG, I5)))
        ],
        "too_little_weight": [((*LOOK_FRONT, writes(I5)), (wide(FLAG, I5), wide(NOTE, I5), wide(FLAG, I5)))],
    },
    "no_head_can": {
        "counts_equal": [*[pair for pair in (("AB", "BAB"), ("ABC", "BAC"), ("AB", "AB"))]],
        "one_flag": [*[pair for pair in (("A", "AA"), ("B", "BB"))]],
        "last_ship_differs": [*[pair for pair in (("AB", "ABBA"), ("BA", "ABAB"))]],
        "shares_differ": [*[pair for pair in (("AB", "AAB"), ("ABB", "AAB"), ("B", "AB"), ("CAB", "CAAB"))]],
        "not_a_convoy": [*[pair for pair in (("*AB", "*ABAB"), ("", "A"), ("AB", 3), "AB")]],
    },
    "own_head": {
        "rule_says_nothing": [
            (*HEAVIEST[:2], lambda f, t: np.ones((len(t), len(t)))),
            # True everywhere in some rows, and in no place of the others: neither everywhere nor nowhere
            (*HEAVIEST[:2], lambda f, t: np.tile((np.arange(len(t)) % 2 == 0)[:, None], (1, len(t)))),
        ],
        "head_disagrees": [(HEAVIEST[0], -HEAVIEST[1], HEAVIEST[2])],
        "rule_shape": [(*HEAVIEST[:2], lambda f, t: t == t.max())],
    },
}

# What the check says of a mistake in one of two heads.
LOCATED = [
    ("what_came_next", (LAYER_1, (READER[1], READER[0], READER[2])), "in layer 2 queries and keys have changed"),
    ("what_came_next", (LAYER_1, (-READER[0], *READER[1:])), "in layer 2 a sign is turned"),
    ("what_came_next", ((0 * LAYER_1[0], *LAYER_1[1:]), READER), "in layer 1 all scores of a row are equal"),
    ("what_came_next", (LAYER_1, (*SILENT, READER[2])), "in layer 2 all scores of a row are equal"),
    ("what_came_next", ((*SILENT, writes(I5)), (*SILENT, READER[2])), "as if all scores of a row"),  # both
    ("difference", (OWN, (NOTHING, NOTHING, TONS), [[1], [-1]]), "in head 2 all scores of a row are equal"),
    ("difference", ((-OWN[0], *OWN[1:]), FRONT, [[1], [-1]]), "in head 1 a sign is turned"),
    ("difference", (OWN, FRONT, [[-1], [1]]), "as if a sign is turned"),  # in neither
    ("cargo_of_c", (NOTHING, NOTHING, TONS), "as if all scores of a row are equal"),  # there is one head
]
