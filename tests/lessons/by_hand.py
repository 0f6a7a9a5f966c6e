"""Answers of the lesson by_hand, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch
from answers import right

import attnlib as al
from attnlib.examples import SENTENCE

SCORES = np.array([[2.0, 3, 0, 2], [1, 0, 1, 0], [0, 3, 0, 0], [5, 0, 3, 2]])  # of the sentence
POWERS_OF_2 = 2 ** (SCORES[3] / 3**0.5) / (2 ** (SCORES[3] / 3**0.5)).sum()

# Rows 0, 3 and 4 of W_Q say what a name, a verb and a pronoun look for.
WISHES = np.array([[0.0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]])

RIGHT = {
    "key_of_anna": [[1, 1, 0], (1, 1, 0), torch.tensor([1, 1, 0])],
    "scores_of_she": [[5, 0, 3, 2], (5.0, 0.0, 3.0, 2.0), np.array([5, 0, 3, 2])],
    "weights_of_she": [
        [0.839, 0.0057, 0.1135, 0.0418],
        al.softmax(np.array([5.0, 0, 3, 2])),
        (0.839024, 0.005653, 0.113550, 0.041773),
    ],
    "output_of_she": [[0.885, 0.036], (0.884937, 0.036013), torch.tensor([0.8849, 0.036])],
    "what_words_look_for": [
        [[0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]],
        np.array([[0, 0, 18], [0, 0, 0], [0, 12, 0], [6, -6, 0], [18, 0, 0], [0, 0, 0]]),  # six times the text's
        torch.tensor([[0.0, 0, 0], [0, 0, 9], [0, 0, 9], [9, -9, 0], [9, 9, -9], [0, 0, 0]]),
    ],
}

NEAR = {
    "weights_of_she": [[0.839, 0.006, 0.114, 0.042]],
    "output_of_she": [[0.885, 0.036]],
}

WRONG = {
    "output_of_she": {
        "rounded_weights": [[0.9, 0.04]],
    },
}

DESIGNS = {
    "what_words_look_for": {
        "looks_for_itself": [5 * SENTENCE.W_K, SENTENCE.W_K],
        "wish_too_faint": [WISHES / 6, WISHES * [1, 1, 0.5], WISHES * 5 / 6],
        "any_name": [SENTENCE.W_Q, 6 * SENTENCE.W_Q, WISHES * [1, 0, 1]],  # of the last, she finds both, too
        "subject_for_object": [abs(WISHES), abs(WISHES) / 6],
        "one_wish_for_all": [np.outer([f, 0, 0, f, f, 0], wish) for f in (6, 1) for wish in ([1, 0, 0], [1, 1, 0])],
        "looks_for_nothing": [
            np.zeros((6, 3)),
            WISHES * [[0], [1], [1], [1], [1], [1]],
            WISHES / 6 * np.eye(6)[4][:, None],
        ],
        "wish_turned_round": [-WISHES, -WISHES / 6],
    },
}

LEARNERS = {
    "key_of_anna": {
        "reversed": ("turned_round", [0, 1, 1], "reverse order"),
        "saw": ("wrong_token", [0, 0, 1], "another token"),
        "query": ("wrong_projection", [0, 2, 3], "another matrix"),
        "a name alone, or Ben": ("feature_or_token", [1, 0, 0], "or it belongs to another token"),
        "female alone, or she": ("feature_or_token", [0, 1, 0], "female alone is the key of she"),
        "no matrix": (None, [1, 0, 1], "First difference at [1]"),  # x[0][:3]
        "column": ("column_instead_of_row", [1, 0, 1, 0], "All features of one token are a row"),
    },
    "scores_of_she": {
        "by d_k": ("scale_by_d_k", [5 / 3, 0, 1, 2 / 3]),
        "row 2": ("counted_from_one", [0, 3, 0, 0], "counted from 0"),
        "row 0": ("wrong_token", [2, 3, 0, 2]),
        "column, or a feature": ("feature_or_column", [2, 0, 0, 2], "left out, or queries and keys"),
        "queries": ("query_met_others", [4, 3, 0, 13], "a row of Q with a row of K", "another W"),
        "likeness": ("query_met_others", [1, 0, 0, 2]),
        "names alone": ("feature_left_out", [3, 0, 3, 0]),
    },
    "weights_of_she": {
        "reversed": ("turned_round", [0.0418, 0.1136, 0.0057, 0.8391], "reverse order"),
        "per cent, all digits": ("in_per_cent", 100 * al.softmax(np.array([5.0, 0, 3, 2]))),
        "scaled": ("scaled_already", al.softmax(np.array([5, 0, 3, 2]) / 3**0.5), "paler", "every number"),
        "shares": ("no_exponential", [0.5, 0, 0.3, 0.2], "they look right", "there are negative"),
        "row 2": ("counted_from_one", [0.0433, 0.8701, 0.0433, 0.0433], "she is token 3"),
        "columns": ("softmax_over_queries", al.softmax(SCORES, axis=0)[3], "columns sum to 1"),
        "powers of 2": ("powers_of_two", [32 / 45, 1 / 45, 8 / 45, 4 / 45], "e = 2.72 times", "no exponential"),
        "exp(0) = 0": ("exp_of_zero", [0.8438, 0, 0.1142, 0.042], "gets no weight", "give more digits"),
        "all for Anna": ("argmax_instead_of_softmax", [1, 0, 0, 0], "nothing is mixed", "gradient"),
        "exp, one decimal": ("exp_not_divided", [148.4, 1, 20.1, 7.4], "", "more digits"),
        "exp, two decimals": ("exp_not_divided", [148.41, 1, 20.09, 7.39]),
        "exp, a slip": (None, [148.4, 1, 20.1, 7.5], "", "as if"),
        "two digits": ("too_few_digits", [0.84, 0.01, 0.11, 0.04]),
        "exp": ("exp_not_divided", [148.413, 1, 20.086, 7.389]),
    },
    "output_of_she": {
        "reversed": ("turned_round", right(*SENTENCE.project())[3, ::-1]),
        "not scaled": ("no_scale", [1.451, 0.0057], "too sharp"),
        "powers of 2": ("powers_of_two", POWERS_OF_2 @ [[2, 0], [0, 1], [-2, 0], [0, 0]], "pale"),
        "d_in": ("scale_by_embed_dim", [0.5975, 0.0698], "width of the tokens"),
        "no exp": ("no_exponential", [0.4, 0], "without exp"),
        "no softmax": ("no_softmax", [2.309, 0], "scores are used as weights"),
        "two digits": (None, [0.88, 0.04], "give more digits", "four"),
        "exp(0) = 0": ("exp_of_zero", [0.918, 0], "exp(0) were 0"),
        "all for Anna": ("argmax_instead_of_softmax", [2, 0], "largest score"),
        "exchanged": ("swapped_query_key", [0.5208, 0.1198], "changed places"),
        "d_k**1/2": ("half_for_root", al.softmax(np.array([5, 0, 3, 2]) / 1.5) @ [[2, 0], [0, 1], [-2, 0], [0, 0]]),
        "no scale, one decimal": (None, [1.5, 0.0], "", "as if"),  # also that of other slips
        "value = key": (
            "keys_for_values",
            al.softmax(np.array([5.0, 0, 3, 2]) / 3**0.5) @ [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]],
        ),
    },
    "what_words_look_for": {
        "W_K": ("looks_for_itself", SENTENCE.W_K, "wanted: saw", "less than"),
        "as in the text": ("any_name", SENTENCE.W_Q, "saw cannot decide between Anna and Ben (wanted: Ben)."),
        "a rival close behind": (
            "wish_too_faint",
            [[0, 0, 6], [0] * 3, [0] * 3, [8, -2, 0], [6, 6, 0], [0] * 3],
            "distance to the next score",
            "too short",
        ),
        "no name": (
            "looks_for_nothing",
            [[0] * 3, [0] * 3, [0] * 3, [6, -6, 0], [6, 6, 0], [0] * 3],
            "Anna takes from all words alike",
            "gives",
        ),
        "who saw": ("subject_for_object", [[0, 0, 6], [0] * 3, [0] * 3, [6, 6, 0], [6, 6, 0], [0] * 3]),
        "the last row": (
            None,
            [[0, 0, 6], [0] * 3, [0] * 3, [6, -6, 0], [6, 6, 0], [6, 0, 0]],
            "Rows 0 to 4 alone would be right. Row 5 goes into the queries of Anna and Ben",
            "as if",
        ),
        "a last row that does not matter": (
            None,
            [[0, 0, 6], [0] * 3, [0] * 3, [0, 0, 6], [6, 6, 0], [6, 0, 0]],
            "saw finds saw (wanted: Ben).",
            "Row 5",
        ),
        "the verb's row": (
            None,
            [[0, 0, 6], [0] * 3, [0] * 3, [0, 0, 6], [6, 6, 0], [0] * 3],
            "saw finds saw (wanted: Ben). Ben finds saw. she finds Anna.",
        ),
        "a name for all": ("one_wish_for_all", [[1, 0, 0], [0] * 3, [0] * 3, [1, 0, 0], [1, 0, 0], [0] * 3]),
    },
}
