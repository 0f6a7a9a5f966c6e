"""Answers of the lesson it_speaks, right and wrong; what stands in which table, `__init__.py` says."""

import re

import numpy as np
from answers import back

import attnlib as al
from attncourse import smollm
from attncourse.lessons.it_speaks import PATIENTS


def kept(rule):
    """Return kept_keys by a rule of how far back a key lies, its number, the window and the sink."""
    return lambda n_q, n_k, w, s: rule(np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k), np.arange(n_k), w, s)


# Prompts as they were measured, by their first word.
PARKED = {}
for prompt, measured in smollm.recorded("parked_prompts").items():
    PARKED.setdefault(prompt.split()[0], []).append(measured)

RIGHT = {
    "to_halves": [
        lambda w, h: np.swapaxes(w.reshape(len(w), h, -1, 2), 2, 3).reshape(w.shape),
        lambda w, h: np.concatenate([np.hstack([x[:, ::2], x[:, 1::2]]) for x in np.split(w, h, axis=1)], axis=1),
        lambda w, h: w[:, np.arange(w.shape[1]).reshape(h, -1, 2).transpose(0, 2, 1).ravel()],
        smollm.to_halves,
    ],
    "three_patients": [dict(PATIENTS), dict(reversed(PATIENTS.items())), {**PATIENTS}],
    "kept_keys": [
        lambda n_q, n_k, w, s: np.array(
            [[j <= i and (i - j < w or j < s) for j in range(n_k)] for i in range(n_k - n_q, n_k)]
        ),
        lambda n_q, n_k, w, s: (
            al.causal_mask(n_q, n_k, align="lower_right")
            & ((back(n_q, n_k) - w < np.arange(n_k)) | (np.arange(n_k) < s))
        ),
        lambda n_q, n_k, w, s: (
            np.tri(n_q, n_k, n_k - n_q, dtype=bool)
            & (~np.tri(n_q, n_k, n_k - n_q - w, dtype=bool) | (np.arange(n_k) < s))
        ),
    ],
    "looks_back": [
        lambda w: np.diagonal(w, -1)[1:].mean(),
        lambda w: float(np.mean([w[i, i - 1] for i in range(2, len(w))])),
        lambda w: np.trace(w[2:, 1:]) / (len(w) - 2),
    ],
    "waking_prompt": [smollm.parking(prompt) for prompt in smollm.TRIED if re.match("seven|tick|river", prompt)],
}

DESIGNS = {
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
}

LEARNERS = {
    "to_halves": {
        "as it is": ("pairs_left_alone", lambda w, h: w),
        "strides over all heads": ("heads_run_together", lambda w, h: np.hstack([w[:, ::2], w[:, 1::2]])),
        "cut into halves": (
            "back_to_pairs",
            lambda w, h: w.reshape(len(w), h, 2, -1).swapaxes(-1, -2).reshape(w.shape),
        ),
        "as torch stores it": (
            "rows_reordered",
            lambda w, h: w.reshape(h, -1, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape),
        ),
        "every second row": (
            "rows_reordered",
            lambda w, h: np.hstack([(r := w.reshape(h, -1, w.shape[1]))[:, ::2], r[:, 1::2]]).reshape(w.shape),
        ),
        "b before a": (
            "rearranged",
            lambda w, h: w.reshape(len(w), h, -1, 2)[..., ::-1].swapaxes(-1, -2).reshape(w.shape),
        ),
    },
    "kept_keys": {
        "numbers": (
            "mask_as_numbers",
            lambda *sizes: kept(lambda b, k, w, s: (b >= 0) & ((b < w) | (k < s)))(*sizes).astype(float),
            "dtype",
        ),
        "no window": ("argument_ignored", kept(lambda b, k, w, s: (b >= 0) & (k >= 0)), "`window`"),
        "zeros": ("constant_result", kept(lambda b, k, w, s: (b < 0) & (b > 0))),
        "ones": ("window_by_either", kept(lambda b, k, w, s: (b < 0) | (b >= 0))),
        "and for or": ("hides_too_much", kept(lambda b, k, w, s: (b >= 0) & (b < w) & (k < s))),
        "no first keys": ("argument_ignored", kept(lambda b, k, w, s: (b >= 0) & (b < w)), "`sink`"),
        "brackets": ("first_keys_seen_ahead", kept(lambda b, k, w, s: (b >= 0) & (b < w) | (k < s))),
        "rest of the window": ("sink_taken_from_window", kept(lambda b, k, w, s: (b >= 0) & ((b < w - s) | (k < s)))),
        "one too many": ("window_too_wide", kept(lambda b, k, w, s: (b >= 0) & ((b <= w) | (k < s)))),
        "one too few": ("window_too_narrow", kept(lambda b, k, w, s: (b >= 0) & ((b < w - 1) | (k < s)))),
        "a longer window": ("window_widened", kept(lambda b, k, w, s: (b >= 0) & (b < w + s))),
        "a first key too many": ("shows_too_much", kept(lambda b, k, w, s: (b >= 0) & ((b < w) | (k <= s)))),
        "from key 0": (
            "window_upper_left",
            lambda n_q, n_k, w, s: (
                ((b := np.arange(n_q)[:, None] - np.arange(n_k)) >= 0) & ((b < w) | (np.arange(n_k) < s))
            ),
        ),
        "True is blocked": ("kept_means_blocked", kept(lambda b, k, w, s: (b < 0) | ((b >= w) & (k >= s)))),
        "first keys alone": ("window_not_kept", kept(lambda b, k, w, s: (b >= 0) & (k < s))),
    },
    "looks_back": {
        "n - 1": ("divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum() / (len(w) - 1)),
        "neither end": ("wrong_queries_left_out", lambda w: np.diag(w, -1)[1:-1].mean()),
        "main diagonal": ("another_diagonal_measured", lambda w: np.diag(w).mean()),
        "main diagonal from query 2": ("another_diagonal_measured", lambda w: np.diag(w)[2:].mean()),
        "two back": ("another_diagonal_measured", lambda w: np.diag(w, -2).mean()),
        "above": ("constant_result", lambda w: np.mean([w[i, i + 1] for i in range(len(w) - 1)])),
        "query 1, too": ("second_token_counted", lambda w: np.diag(w[1:]).mean()),
        "one too many": ("wrong_queries_left_out", lambda w: np.diag(w, -1)[2:].mean()),
        "the last": ("wrong_queries_left_out", lambda w: np.diag(w, -1)[:-1].mean()),
        "sum": ("divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum()),
        "by n": ("divided_by_other_queries", lambda w: np.diag(w[2:, 1:]).sum() / len(w)),
        "max": ("largest_not_mean", lambda w: np.diag(w[2:, 1:]).max()),
    },
}
