"""Wrong answers to the exercises of which many answers are right: what each is called."""

import numpy as np

from attncourse import smollm
from attncourse.lessons.it_speaks import PATIENTS
from attnlib.examples import ASYMMETRIC, IDENTITY, KARIM, SENTENCE

# 1.5: rows 0, 3 and 4 of W_Q say what a name, a verb and a pronoun look for.
WISHES = np.array([[0.0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]])

# 2.4: three tokens, each of which prefers the next.
CIRCLE = (2 * np.eye(3), np.roll(np.eye(3), -1, axis=0), np.array([[1.0], [0], [3]]))
Q, K, V = ASYMMETRIC.project()

# 4.3: the keys of four letters.
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])

# 5.5: itself and the two before it, then itself, three places back and six.
TOKENS, FEW = 8, 3
PLACE = np.arange(TOKENS)
BACK = PLACE[:, None] - PLACE
NEAR, FAR, SELF = (BACK >= 0) & (BACK < FEW), np.isin(BACK, (0, FEW, 2 * FEW)), BACK == 0
CELLS = [(layer, query) for layer in (0, 1) for query in PLACE]

# 6.5: the opposite place in head 1, the two beside it in head 2.
JOBS = 10 * np.hstack([np.roll(np.eye(4), 2, axis=1), np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)])

# 13.5: prompts as they were measured, by their first word.
PARKED = {}
for prompt, measured in smollm.recorded("parked_prompts").items():
    PARKED.setdefault(prompt.split()[0], []).append(measured)


def with_row(layer, query, keys):
    """Return the masks of the solution with another row."""
    masks = np.stack([NEAR, FAR])
    masks[layer, query] = keys
    return masks


# Exercise -> id of a mistake -> answers.
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
    "example_that_tells": {
        "nothing_let_through": [(Q, K, V)],
        "swap_let_through": [(*IDENTITY.project()[:2], np.array([[1.0], [0]]))],
        "symmetric_example": [IDENTITY.project()],
        "symmetric_scores": [KARIM.project()],
        "queries_are_keys": [(ASYMMETRIC.x, ASYMMETRIC.x, V)],
        "d_v_equals_d_k": [(*CIRCLE[:2], np.diag([1.0, 0, 3])), (Q, K, V[:, :2])],
        "swap_and_size_hidden": [(Q, K, np.ones((4, 5)))],
        "size_of_scores_hidden": [(1e3 * Q, K, V), (1e3 * CIRCLE[0], *CIRCLE[1:])],
        "missing_scale_hidden": [(Q[:, :1], K[:, :1], V)],
        "nothing_shows": [(np.zeros((4, 2)), K, V)],
    },
    "alphabet_scores": {
        "diagonal_and_rest_swapped": [[0.0, 8.0]],
        "weights_for_scores": [[1.0, 0.0]],
    },
    "choose_W_Q": {
        "query_looks_for_itself": [6 * KEYS],
        "query_looks_for_previous": [6 * np.roll(KEYS, 1, axis=0)],
        "query_looks_across": [-6 * KEYS],
        "query_too_short": [2 * np.roll(KEYS, -1, axis=0)],
    },
    "sparse_masks": {
        "key_ahead": [with_row(*at, key == PLACE) for at in CELLS for key in range(at[1] + 1, TOKENS)],
        "too_many_keys": [with_row(*at, few > PLACE) for at in CELLS for few in range(FEW + 1, at[1] + 2)],
        "no_key_left": [with_row(*at, False) for at in CELLS],
        "reach_too_short": [
            np.stack([SELF | NEAR & (TOKENS - n <= PLACE), second])
            for second, most in ((FAR, TOKENS - 1), (SELF, TOKENS))
            for n in range(most)
        ],
        "mask_inverted": [~np.stack([NEAR, FAR])],
    },
    "two_jobs": {
        "heads_exchanged": [JOBS[:, [4, 5, 6, 7, 0, 1, 2, 3]]],
        "heads_interleaved": [JOBS[:, [0, 4, 1, 5, 2, 6, 3, 7]]],
        "scores_too_small": [JOBS / 10],
        "scores_negated": [-JOBS],
    },
    "parking_place": {
        "no_room_to_park": [[0.0, 0.0], [-5.0, 1.0]],
        "parked_on_a_long_value": [[6.0, 1.0], [6.0, 0.11]],
        "words_add_too": [[6.0, 0.1], [7.0, 0.1], [7.6, 0.0999]],
        "parking_drowns_the_match": [[10.0, 0.0], [15.0, 1.0], [8.0, 0.0], [7.8, 0.1]],
        "score_and_length_exchanged": [[0.0, 6.0], [0.05, 5.0]],
    },
    "three_patients": {
        "prompt_was_read_right": [{**PATIENTS, "A": "no scale"}, {**PATIENTS, "A": "window of 8"}],
        "it_still_sees_words": [{**PATIENTS, "A": "positions restart with the cache"}],
        "worse_than_a_guess": [{**PATIENTS, "C": "window of 8"}, {**PATIENTS, "B": "no scale", "C": "no scale"}],
        "blank_is_wrong_already": [{**PATIENTS, "B": "positions restart with the cache"}],
        "near_words_still_fit": [{**PATIENTS, "B": "no scale"}, {**PATIENTS, "B": "grouped heads tiled"}],
    },
    "waking_prompt": {
        "one_word_again": [*PARKED["la"], PARKED["Anna"][2]],
        "parked_elsewhere": PARKED["one"],
        "nothing_twice": PARKED["A"],
        "first_copy_parks": [PARKED["Anna"][0]],
        "repeated_but_parked": [PARKED["Anna"][1], *PARKED["Row,"]],
    },
    "out_of_reach": {
        "verb_not_due": ["the cats that the old dog"],
        "no_sentence": ["the cats that the small old dog sees"],
        "verb_after_that_unfit": ["the cats that the old dog see"],
        "subject_in_reach": ["the cats near the old dog"],
        "told_by_another_verb": ["the cats that see the old dog"],
    },
}
