"""Answers of the lesson masks, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch
from answers import ATTENTIONS, added, by_where, finite_fill_with_dead_rows, log_sum_exp, right, student

import attnlib as al
from attncourse.lessons.vectorized import stable_softmax


def masked_softmax(fill=-np.inf, softmax=al.softmax, mask=lambda m: m):
    return lambda s, m=None: softmax(s if m is None else np.where(mask(m), s, fill))


def blocked_in_place(s, m=None):
    if m is not None:
        s[~m] = -np.inf
    return al.softmax(s)


def far_first():
    """Layer 1 makes large steps, layer 2 small ones."""
    back = np.arange(8)[:, None] - np.arange(8)
    return np.stack([np.isin(back, (0, 3, 6)), (back >= 0) & (back < 3)])


def for_the_last_query_alone():
    """Only what the last query needs; the others see themselves."""
    masks = np.tile(np.eye(8, dtype=bool), (2, 1, 1))
    masks[0, 7, 5:8] = masks[0, 4, 2:5] = masks[0, 1, :2] = masks[1, 7, [1, 4, 7]] = True
    return masks.tolist()


def by_thirds():
    """Layer 1: places 2, 5 and 7 gather what stands before them; layer 2: the last query looks at these three."""
    first, second = np.eye(8, dtype=bool), np.eye(8, dtype=bool)
    first[2, :3] = first[5, 3:6] = first[7, 6:] = second[7, [2, 5]] = True
    return torch.tensor(np.stack([first, second]))


def masked_exp(s, m, top=lambda s: s.max(-1, keepdims=True)):
    return np.exp(s - top(s)) * (1 if m is None else m)


def unasked_mask(q, k, v, m=None):
    return al.softmax(np.where(m, q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5, -np.inf)) @ v


def a_mask_for_each(q, k, v, m=None):
    """Right where a mask has as many axes as the queries."""
    if m is None or q.ndim == 2:
        return right(q, k, v, m)
    return np.stack(
        [a_mask_for_each(*x) for x in zip(q, k, v, np.broadcast_to(m, (len(q), *m.shape[1:])), strict=True)]
    )


def nan_rows(becomes):
    """NaN rows replaced by `becomes(row of weights, values)`."""

    def attention(q, k, v, m=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = s if m is None else np.where(m, s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
        return becomes(w, v)

    return attention


def uniform(w, v):
    return np.where(np.isnan(w), 1 / w.shape[-1], w) @ v


def mean_of_values(w, v):
    out = w @ v
    return np.where(np.isnan(out), v.mean(axis=-2, keepdims=True), out)


def filled(fill, scores, mask):
    """Give blocked scores a number, and set their weights to 0 as well."""
    if mask is None:
        return al.softmax(scores)
    return al.softmax(np.where(mask, scores, fill)) * mask


def finite_top(s):
    """Return the maximum of each row, 0 where all is blocked."""
    return np.nan_to_num(s.max(axis=-1, keepdims=True), neginf=0)


# Itself and the two before it, then itself, three places back and six.
TOKENS, FEW = 8, 3
PLACE = np.arange(TOKENS)
BACK = PLACE[:, None] - PLACE
LOCAL, STRIDED, SELF = (BACK >= 0) & (BACK < FEW), np.isin(BACK, (0, FEW, 2 * FEW)), BACK == 0
CELLS = [(layer, query) for layer in (0, 1) for query in PLACE]


def with_row(layer, query, keys):
    """Return the masks of the solution with another row."""
    masks = np.stack([LOCAL, STRIDED])
    masks[layer, query] = keys
    return masks


RIGHT = {
    "padding_mask": [
        al.padding_mask,
        lambda lengths, n_k: np.array([[[j < n for j in range(n_k)]] for n in lengths]),
        lambda lengths, n_k: ~(np.arange(n_k)[None] >= lengths[:, None])[:, None],
    ],
    "causal_mask": [
        lambda n_q, n_k=None: al.causal_mask(n_q, n_k, align="lower_right"),
        lambda n_q, n_k=None: np.tril(np.ones((n_k or n_q, n_k or n_q), dtype=bool))[-n_q:],
        lambda n_q, n_k=None: np.arange((n_k or n_q) - n_q, n_k or n_q)[:, None] >= np.arange(n_k or n_q),
        lambda n_q, n_k=None: torch.ones(n_q, n_k or n_q, dtype=torch.bool).tril((n_k or n_q) - n_q),
    ],
    "masked_softmax": [
        log_sum_exp,
        finite_fill_with_dead_rows,
        lambda s, m=None: al.softmax(s if m is None else np.where(m, s, -np.inf)),
        lambda s, m=None: torch.nan_to_num(
            torch.softmax(torch.tensor(s if m is None else np.where(m, s, -np.inf)), -1)
        ),
    ],
    "masked_attention": ATTENTIONS,
    "sparse_masks": [far_first(), for_the_last_query_alone(), by_thirds()],
}

NEAR = {
    "padding_mask": [
        lambda n, n_k: np.arange(n_k) < n.reshape(-1, 1, 1),
        lambda n, n_k: np.tri(n_k + 1, n_k, -1, dtype=bool)[n][:, None],
    ],
    "causal_mask": [
        lambda n_q, n_k=None: ~np.triu(np.ones((n_q, n_k or n_q), bool), k=1 + (n_k or n_q) - n_q),
        lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool)[-n_q:],
    ],
    "masked_softmax": [masked_softmax(-np.inf)],
    "masked_attention": [
        by_where,
        added,
        student(
            mask="np.where(m, s, np.finfo(s.dtype).min) + 0 * s",
            softmax="al.softmax(s)",
            rest="(w * m if m is not None else w) @ v",
        ),
        student(mask="np.where(m, s, -1e9)", rest="(w if m is None else w * m.any(-1, keepdims=True)) @ v"),
        student(mask="s + np.where(m, 0, -np.inf)"),
    ],
}

WRONG = {
    "padding_mask": {
        "padding_without_query_axis": [lambda n, n_k: np.array([[j < i for j in range(n_k)] for i in n])],
        "mask_as_numbers": [lambda n, n_k: al.padding_mask(n, n_k).astype(float)],
    },
    "causal_mask": {
        "mask_as_numbers": [lambda n_q, n_k=None: np.tri(n_k or n_q)[-n_q:]],
        "causal_upper_left": [
            lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q), bool)),
            lambda n_q, n_k=None: np.arange(n_q)[:, None] >= np.arange(n_k or n_q),
        ],
        "mask_inverted": [
            lambda n_q, n_k=None: ~np.tri(n_k or n_q, dtype=bool)[-n_q:],
            lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool), 1),
        ],
        "mask_future_only": [
            lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool).T[-n_q:],
            lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool)),
        ],
        "mask_blocks_diagonal": [lambda n_q, n_k=None: np.tri(n_k or n_q, k=-1, dtype=bool)[-n_q:]],
    },
    "masked_attention": {
        "fill_not_low_enough": [
            student(mask="np.where(m, s, -10000)", rest="(w if m is None else w * m) @ v"),
            student(mask="np.where(m, s, -100)", rest="(w if m is None else w * m) @ v"),
            student(mask="s + ~m * -1e4", rest="(w if m is None else w * m) @ v"),
        ],
        "nan_on_fully_masked": [student(softmax="(e := np.exp(s - s.max(-1)[..., None])) / e.sum(-1)[..., None]")],
        "finite_fill": [student(mask="np.where(m, s, -1e12)"), student(mask="s + ~m * -1e9")],
        "mask_inverted": [student(mask="np.where(m == False, s, -np.inf)")],
        "mask_multiplies_scores": [student(mask="s * m")],
        "mask_ignored": [student(mask="s")],
        "swapped_query_key": [lambda q, k, v, m=None: right(k, q, v, m)],
    },
}

DESIGNS = {
    "sparse_masks": {
        "key_ahead": [with_row(*at, key == PLACE) for at in CELLS for key in range(at[1] + 1, TOKENS)],
        "too_many_keys": [with_row(*at, few > PLACE) for at in CELLS for few in range(FEW + 1, at[1] + 2)],
        "no_key_left": [with_row(*at, False) for at in CELLS],
        "reach_too_short": [
            np.stack([SELF | LOCAL & (TOKENS - n <= PLACE), second])
            for second, most in ((STRIDED, TOKENS - 1), (SELF, TOKENS))
            for n in range(most)
        ],
        "mask_inverted": [~np.stack([LOCAL, STRIDED])],
    },
}

LEARNERS = {
    "padding_mask": {
        "-1e9": ("mask_as_numbers", lambda n, n_k: np.where(al.padding_mask(n, n_k), 0, -1e9)),
        "one short": ("hides_too_much", lambda n, n_k: al.padding_mask(n, n_k) & (np.arange(n_k) != 1)),
        "one more": ("shows_too_much", lambda n, n_k: al.padding_mask(n, n_k) | (np.arange(n_k) == 1)),
        "NaN": (None, lambda n, n_k: np.where(al.padding_mask(n, n_k), np.nan, np.nan)),
        "one less": ("hides_too_much", lambda n, n_k: np.arange(n_k) < n[:, None, None] - 1),
        "axes in front": ("row_for_a_column", lambda n, n_k: np.arange(n_k) < n[None, None, :]),
        "no column": ("row_for_a_column", lambda n, n_k: np.arange(n_k) < n, "axis of size 1"),
        "inverted": (
            "mask_inverted",
            lambda n, n_k: ~al.padding_mask(n, n_k),
            "A padding mask then shows nothing but padding",
            "every token looks",
        ),
        "a row for each query": ("padding_on_other_axes", lambda n, k: al.padding_mask(n, k).repeat(k, axis=1)),
        "batch behind": ("padding_on_other_axes", lambda n, k: al.padding_mask(n, k).swapaxes(0, 1)),
        "with heads": ("padding_on_other_axes", lambda n, k: al.padding_mask(n, k)[:, None], "not (b, 1, n_k)"),
        "other axes, inverted": (None, lambda n, k: ~al.padding_mask(n, k)[:, None]),
        "left": ("padding_on_the_left", lambda n, n_k: np.arange(n_k) >= (n_k - n)[:, None, None]),
    },
    "causal_mask": {
        "None": ("none_not_handled", lambda n, n_k=None: np.tri(n, n_k, n_k - n, dtype=bool)),
        "no column": (
            "row_for_a_column",
            lambda n_q, n_k=None: np.arange(n_k or n_q) <= np.arange((n_k or n_q) - n_q, n_k or n_q),
            "axis of size 1",
        ),
        "no column, upper left": ("row_for_a_column", lambda n_q, n_k=None: np.arange(n_k or n_q) <= np.arange(n_q)),
        "numbers at the upper left": (
            "mask_as_numbers + causal_upper_left",
            lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q))),
            "Two mistakes",
        ),
        "integers at the upper left": (
            "mask_as_numbers + causal_upper_left",
            lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q), int)),
        ),
        "square": ("causal_square", lambda n_q, n_k=None: np.tri(n_q, dtype=bool), "more keys"),
        "square, all rows": (
            "causal_square",
            lambda n_q, n_k=None: np.tril(np.ones((n_k or n_q,) * 2, bool)),
            "fits only in training",
        ),
        "offset on the keys": (
            "causal_offset_reversed",
            lambda n_q, n_k=None: np.arange(n_k or n_q) + ((n_k or n_q) - n_q) <= np.arange(n_q)[:, None],
            "towards the beginning",
        ),
        "k of the other sign": (
            "causal_offset_reversed",
            lambda n_q, n_k=None: np.tri(n_q, n_k or n_q, n_q - (n_k or n_q), dtype=bool),
        ),
        "k = 1": ("mask_shows_the_next", lambda q, k=None: np.tri(q, k or q, 1, dtype=bool)),
        "a window of five": (
            "hides_too_much",
            lambda q, k=None: (
                np.tri(q, k or q, (k or q) - q, dtype=bool) & ~np.tri(q, k or q, (k or q) - q - 5, dtype=bool)
            ),
            "Right so far; the first difference is on the last 2 of 40 tokens as queries",
        ),
    },
    "masked_softmax": {
        "None, with the softmax of 2.1": (
            "no_mask_blocks_all",
            lambda s, m=None: stable_softmax(np.where(m, s, -np.inf)),
            "None counts as False",
        ),
        "-100": ("finite_fill", masked_softmax(-100)),
        "no row without keys": ("nan_on_fully_masked", masked_softmax(softmax=stable_softmax)),
        "in place": ("mutates_input", blocked_in_place, "Fix: work on a copy", "does something else"),
        "fill 1e-9, 5.3": ("mask_multiplies_scores", masked_softmax(1e-9), "behaves as if"),
        "masked after exp": (
            "unstable_softmax",
            lambda s, m=None: (e := np.exp(s) * (1 if m is None else m)) / e.sum(-1, keepdims=True),
            "A second thing to mend: a query that may attend to no key gets NaN",
        ),
        "masked after exp, dead rows": (
            "unstable_softmax",
            lambda s, m=None: (
                (e := np.exp(s) * (1 if m is None else m)) / np.where((z := e.sum(-1)[..., None]) == 0, 1, z)
            ),
            "",
            "A second thing",
        ),
        "fill -1e4": (
            "fill_not_low_enough",
            lambda s, m=None: filled(-1e4, s, m),
            "does not give it back",
            "no key attends",
        ),
        "fill -10": ("fill_not_low_enough", lambda s, m=None: filled(-10, s, m)),
        "masked, divided": (
            "mask_renormalised",
            lambda s, m=None: (e := masked_exp(s, m)) / (e.sum(-1, keepdims=True) + 1e-9),
            "they take all of it",
        ),
        "masked, divided, dead rows": (
            "mask_renormalised",
            lambda s, m=None: (e := masked_exp(s, m)) / np.where((z := e.sum(-1, keepdims=True)) == 0, 1, z),
            "blocked keys with scores near 1e4",
        ),
        "a mask as an index": (
            "mask_as_index",
            lambda s, m=None: al.softmax(s if m is None else (x := s.copy()).__setitem__(~m, -np.inf) or x),
            "np.where(mask, scores, -np.inf)",
        ),
        "in place, behind a mask": (
            "mutates_input",
            lambda s, m=None: al.softmax(s if m is None else np.copyto(s, -np.inf, where=~m) or s),
        ),
        "no maximum, NaN to 0": (
            "unstable_softmax",
            lambda s, m=None: np.nan_to_num(
                (e := np.exp(s if m is None else np.where(m, s, -np.inf))) / e.sum(-1, keepdims=True)
            ),
        ),
        "causal": (
            "causal_mask_added",
            lambda s, m=None: al.softmax(np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)),
        ),
        "0 for the scores": (
            "zero_times_infinity",
            lambda s, m=None: al.softmax(s if m is None else np.where(m, 0 * s, -np.inf)),
            "has 0 where the scores",
        ),
        "1e-6 in the sum": (
            None,
            lambda s, m=None: (
                (e := masked_exp(s if m is None else np.where(m, s, -np.inf), None, finite_top))
                / (e.sum(-1, keepdims=True) + 1e-6)
            ),
            "has the weight 1; yours is 0.999999. Is something added to the sum?",
            "as if",
        ),
        "the mask added": (
            "mask_added_as_numbers",
            lambda s, m=None: al.softmax(s if m is None else s + m),
            "True adds 1",
        ),
        "~mask, -1e9": ("mask_inverted + finite_fill", masked_softmax(-1e9, mask=np.invert)),
    },
    "masked_attention": {
        "causal, the mask dropped": (
            "causal_mask_added",
            lambda q, k, v, m=None: right(q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool)),
        ),
        "NaN -> uniform": (
            "finite_fill",
            nan_rows(uniform),
            "so do equal weights in the place of NaN",
            "behaves as if blocked",
        ),
        "NaN -> mean of values": ("finite_fill", nan_rows(mean_of_values), "as if scores that are all blocked"),
        "no scale if all is allowed": (
            "another_branch",
            lambda q, k, v, m=None: right(q * ((m is not None and m.all() and k.shape[-1] ** 0.5) or 1), k, v, m),
            "a mask that allows everything",
        ),
        "fill 1e-9": ("mask_multiplies_scores", student(mask="np.where(m, s, 1e-9)"), "1e-9"),
        "0 times inf": ("zero_times_infinity", student(mask="s * m + (1 - m) * -np.inf"), "NaN"),
        "fill -1e4": (
            "fill_not_low_enough",
            lambda q, k, v, m=None: filled(-1e4, q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5, m) @ v,
        ),
        "masked, divided": (
            "mask_renormalised",
            student(mask="s", softmax="(e := al.softmax(s) * (1 if m is None else m)) / (e.sum(-1)[..., None] + 1e-9)"),
        ),
        "the first row of the mask for all": (
            "another_mask",
            lambda q, k, v, m=None: al.scaled_dot_product_attention(q, k, v, m if m is None else m[..., :1, :]),
            "Without a mask your weights are right",
        ),
        "np.where of None": ("no_mask_blocks_all", unasked_mask, "None counts as False"),
        "if attn_mask": (
            "array_as_condition",
            lambda q, k, v, m=None: right(q, k, v, m if m else None),
            "`if x is not None`",
        ),
        "causal, too": (
            "causal_mask_added",
            lambda q, k, v, m=None: right(
                q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool) & (True if m is None else m)
            ),
        ),
        "over queries behind a mask": (
            "softmax_over_queries",
            student(softmax="al.softmax(s, -1 if m is None else -2)"),
        ),
        "another root behind a mask": (
            "scale_by_d_v",
            student(mask="np.where(m, s * (q.shape[-1] / v.shape[-1]) ** 0.5, -np.inf)"),
        ),
        "divided again behind a mask": ("scale_by_d_k", student(mask="np.where(m, s / q.shape[-1] ** 0.5, -np.inf)")),
        "0 times inf, then 0 for NaN": (
            "zero_times_infinity",
            student(mask="np.nan_to_num(s + (1 - m) * -np.inf)"),
            "nan_to_num makes 0 of it",
        ),
        "0 times inf, 0 for NaN, -inf stays": (
            "zero_times_infinity",
            student(mask="np.nan_to_num(s + (1 - m) * -np.inf, neginf=-np.inf)"),
        ),
        "0 times inf, weights 0 for NaN": (
            "zero_times_infinity",
            student(mask="s + (1 - m) * -np.inf", softmax="np.nan_to_num(al.softmax(s))"),
        ),
        "the mask added": ("mask_added_as_numbers", student(mask="s + m"), "no key is blocked"),
        "the mask transposed": (
            "padding_masks_queries",
            lambda q, k, v, m=None: right(q, k, v, None if m is None else m.swapaxes(-1, -2)),
            "the mask is transposed",
            "lies along",
        ),
        "no scale, -1e9": ("no_scale + finite_fill", student(scale="1", mask="np.where(m, s, -1e9)"), "Two mistakes"),
        "~mask, -1e9": ("mask_inverted + finite_fill", student(mask="np.where(~m, s, -1e9)")),
        "~mask, -1e9 added": ("mask_inverted + finite_fill", student(mask="s + m * -1e9")),
        "over queries, -1e9": (
            "softmax_over_queries + finite_fill",
            student(mask="np.where(m, s, -1e9)", softmax="al.softmax(s, -2)"),
        ),
        "a mask for each text": (None, a_mask_for_each, "one mask (n_q, n_k) for (b, h, n_q, d_k)"),
    },
    "sparse_masks": {
        "two windows": (
            "reach_too_short",
            np.stack([LOCAL] * 2),
            "5 of the 8 tokens reach the last position; 0, 1 and 2 do not.",
        ),
        "all but one": (
            "reach_too_short",
            np.stack([np.eye(8, dtype=bool) | LOCAL & (np.arange(8) > 0), STRIDED]),
            "7 of the 8 tokens reach the last position; 0 does not.",
        ),
        "causal": ("too_many_keys", [np.tri(8, dtype=bool)] * 2, "more than 3 keys", "reach the last"),
        "ahead": ("key_ahead", np.roll([np.eye(8, dtype=bool)] * 2, 1, -1), "comes after it"),
        "of int": (None, np.stack([LOCAL, STRIDED]).astype(int), "Fix: my_masks.astype(bool)"),
        "of other numbers": (None, 2 * np.stack([LOCAL, STRIDED]), "of int64. Fix: np.stack(", "astype"),
        "one mask": (None, np.tri(8, dtype=bool), "shape (2, 8, 8) of bool"),
    },
}
