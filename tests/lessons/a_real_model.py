"""Answers of the lesson a_real_model, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch


def silenced(where, keep=False):
    """Write 0 into a part of W_O, or into all but this part, in a learner's way."""

    def without_head(W_O, head, num_heads):
        part = np.zeros(W_O.shape, bool)
        part[where(head, len(W_O) // num_heads, num_heads)] = True
        return np.where(part ^ keep, 0, W_O)

    return without_head


RIGHT = {
    "divisor_repair": [3.4641, np.sqrt(12), torch.tensor(384 / 32).sqrt()],
    "without_head": [
        lambda W, h, n: np.where(np.arange(len(W)) // (len(W) // n) == h, 0, W),
        lambda W, h, n: (W.reshape(len(W), n, -1) * (np.arange(n) != h)[:, None]).reshape(W.shape),
        lambda W, h, n: W @ np.diag(np.repeat(np.arange(n) != h, len(W) // n)),
    ],
    "parking_place": [[6, 0], (5.0, 0.02), np.array([7.5, 0.05])],
}

DESIGNS = {
    "parking_place": {
        "no_room_to_park": [[0.0, 0.0], [-5.0, 1.0]],
        "parked_on_a_long_value": [[6.0, 1.0], [6.0, 0.11]],
        "words_add_too": [[6.0, 0.1], [7.0, 0.1], [7.6, 0.0999]],
        "parking_drowns_the_match": [[10.0, 0.0], [15.0, 1.0], [8.0, 0.0], [7.8, 0.1]],
        "score_and_length_exchanged": [[0.0, 6.0], [0.05, 5.0]],
    },
}

LEARNERS = {
    "divisor_repair": {
        "384 / 32": ("root_of_ratio_forgotten", 384 / 32, "12 is 384/32", "by d_model"),
        "1 / sqrt(12)": ("repair_inverted", 0.2887, "too small"),
        "1 / 12": ("inverse_of_the_ratio", 1 / 12, "the root of a ratio", "12 is 384/32"),
        "sqrt(384)": ("scale_undone", 19.5959, "trained with a scale"),
        "the model's divisor": ("old_divisor_kept", 32**0.5, "still divides"),
    },
    "without_head": {
        "rows": ("rows_silenced", silenced(lambda h, d, n: np.s_[h * d : h * d + d]), "block of columns"),
        "every third": ("head_columns_interleaved", silenced(lambda h, d, n: np.s_[:, h::n]), "side by side"),
        "n wide": ("block_as_wide_as_heads", silenced(lambda h, d, n: np.s_[:, h * n : h * n + n]), "d_model / h"),
        "32 wide": (
            "width_of_minilm",
            silenced(lambda h, d, n: np.s_[:, h * 32 : (h + 1) * 32]),
            "as in MiniLM. Here a head has d_model / h",
        ),
        "as wide as the layer": (None, silenced(lambda h, d, n: np.s_[:, h * d * n : (h + 1) * d * n])),
        "others": (
            "only_that_head_kept",
            silenced(lambda h, d, n: np.s_[:, h * d : h * d + d], keep=True),
            "add nothing",
        ),
        "from 1": (
            "heads_counted_from_one",
            silenced(lambda h, d, n: np.s_[:, (h - 1) * d : h * d]),
            "head 0 is the first",
        ),
        "a column too many": (
            None,
            lambda W, h, n: np.where(abs(np.arange(len(W)) - (h + 0.5) * len(W) // n) <= len(W) // n / 2, 0, W),
            "First difference",
        ),
    },
    "parking_place": {
        "score 4": ("no_room_to_park", [4, 0], "stays on the words"),
        "a word's value": ("parked_on_a_long_value", [7, 1], "up to 1.000 long"),
        "a value as short as the limit": ("words_add_too", [7, 0.1], "words keep a part", "not counted the value"),
        "as high as a match": ("parking_drowns_the_match", [10, 0.01], "less than 0.9"),
    },
}
