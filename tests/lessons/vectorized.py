"""Answers of the lesson vectorized, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch
import torch.nn.functional as F
from answers import ATTENTIONS, added, by_where, einsum, right, student

import attnlib as al
from attnlib import torch_layers
from attnlib.examples import ASYMMETRIC, IDENTITY, KARIM


def rows(x, axis=-1):
    return np.apply_along_axis(lambda row: np.exp(row - row.max()) / np.exp(row - row.max()).sum(), axis, x)


def mean(x, axis):
    return x.mean(axis=axis, keepdims=True)


def sm(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


# Three tokens, each of which prefers the next.
CIRCLE = (2 * np.eye(3), np.roll(np.eye(3), -1, axis=0), np.array([[1.0], [0], [3]]))
Q, K, V = ASYMMETRIC.project()

RIGHT = {
    "softmax": [
        al.softmax,
        rows,
        lambda x, axis=-1: torch.softmax(torch.tensor(x), axis).numpy(),
        lambda x, axis=-1: np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True)),
        lambda x, axis=-1: F.softmax(x, axis),  # for tensors only
    ],
    "attention_scores": [
        lambda q, k: q @ np.swapaxes(k, -1, -2),
        lambda q, k: np.einsum("...qd,...kd->...qk", q, k),
        lambda q, k: (q[..., :, None, :] * k[..., None, :, :]).sum(-1),
        lambda q, k: q @ k.transpose(-1, -2),
    ],
    "scaled_dot_product_attention": [
        lambda query, key, value: einsum(query, key, value),  # the exercise asks for no mask, and minds none
        *ATTENTIONS,
        torch_layers.scaled_dot_product_attention,
    ],
    "example_that_tells": [
        [[[2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[1], [0], [3]]],
        ([[1, -1], [1, -2]], [[-3, -1], [3, 3]], [[2], [-3]]),  # two tokens
        # four tokens in a circle, in two features each
        ([[1, 0], [0, 1], [-1, 0], [0, -1]], np.array([[0, 1.0], [-1, 0], [0, -1], [1, 0]]), [[1.0], [0], [3], [5]]),
        (
            np.eye(3),
            [[0, 2, 1], [1, 0, 2], [2, 1, 0]],
            torch.tensor([[1.0, 0, 0, 2, 2], [0, 2, 0, 1, 0], [3, 0, 1, 1, 1]]),
        ),
    ],
}

NEAR = {
    "softmax": [
        lambda x, axis=-1: (e := np.exp(x - np.max(x, axis, keepdims=True))) / np.sum(e, axis, keepdims=True),
        lambda x, axis=-1: np.moveaxis(al.softmax(np.moveaxis(x, axis, -1)), -1, axis),
    ],
    "attention_scores": [
        lambda q, k: np.matmul(q, np.moveaxis(k, -1, -2)),
        lambda q, k: q @ k.T if k.ndim == 2 else q @ k.transpose(0, 2, 1),
    ],
    "scaled_dot_product_attention": [
        by_where,
        added,
        lambda q, k, v: al.softmax(q @ np.swapaxes(k, -1, -2) / k.shape[-1] ** 0.5) @ v,
        student(),
    ],
}

WRONG = {
    "softmax": {
        "argument_ignored": [lambda x, axis=-1: al.softmax(x)],
        "returns_float16": [lambda x, axis=-1: np.half(al.softmax(x, axis))],
    },
    "attention_scores": {
        "wrong_batch_axis": [lambda q, k: q @ k.T],
    },
    "scaled_dot_product_attention": {
        "no_scale": [student(scale="1")],
        "scale_by_d_k": [student(scale="q.shape[-1]")],
        "scale_by_d_v": [student(scale="v.shape[-1] ** 0.5")],
        "scale_by_n": [student(scale="len(q.swapaxes(0, -2)) ** 0.5")],
        "multiply_by_sqrt_d_k": [student(scale="q.shape[-1] ** -0.5")],
        "softmax_over_queries": [student(softmax="al.softmax(s, axis=-2)")],
        "wrong_batch_axis": [student(softmax="al.softmax(s, axis=1)")],
        "softmax_over_everything": [student(softmax="np.exp(s - s.max()) / np.exp(s - s.max()).sum()")],
        "unstable_softmax": [
            student(softmax="np.exp(s) / np.exp(s).sum(-1)[..., None]"),
            student(softmax="np.exp(s) / np.where((z := np.exp(s).sum(-1)[..., None]) == 0, 1, z)"),
        ],
        "double_softmax": [student(softmax="al.softmax(al.softmax(s))")],
        "argmax_instead_of_softmax": [student(softmax="(s == s.max(-1)[..., None]) * np.isfinite(s)")],
        "weights_returned": [student(rest="w")],
        "weights_transposed": [student(rest="w.swapaxes(-1, -2) @ v")],
        "scale_after_softmax": [student(scale="1", softmax="al.softmax(s) / q.shape[-1] ** 0.5")],
        "mutates_input": [student(rest="w @ v + 0 * q.__imul__(2).sum()")],
        "returns_float16": [student(rest="np.half(w @ v)")],
    },
}

DESIGNS = {
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
}


def from_the_front(q, k, v):
    scaled = q @ k.T / np.sqrt(k.shape[1])
    return np.exp(scaled) / np.exp(scaled).sum(axis=1, keepdims=True) @ v


LEARNERS = {
    "softmax": {
        "logarithms": ("function_of_result", lambda x, axis=-1: np.log(sm(x, axis))),
        "a loop over rows": ("argument_ignored", lambda x, axis=-1: al.softmax(x, -1), "`axis`"),
        "over everything": ("softmax_over_everything", lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x))),
        "mean": ("maximum_missed", lambda x, axis=-1: sm(x - mean(x, axis), axis), "such as its mean", "-inf"),
        "min": (
            "maximum_missed",
            lambda x, axis=-1: sm(x - x.min(axis, keepdims=True), axis),
            "other than the maximum",
        ),
        "one maximum of all": ("one_maximum_for_all", lambda x, axis=-1: sm(x - x.max(), axis), "of the whole array"),
        "divided": (
            "divided_by_maximum",
            lambda x, axis=-1: sm(x / x.max(axis=axis, keepdims=True), axis),
            "divides the scores by their maximum",
        ),
        "no axis": ("axis_and_overflow", lambda x, axis=-1: sm(x), "still give NaN"),
        "no axis, maximum of all": ("axis_and_overflow", lambda x, axis=-1: sm(x - x.max())),
        "no keepdims, maximum": (
            "keepdims_forgotten",
            lambda x, axis=-1: sm(x - x.max(axis=axis), axis),
            "has lost that axis",
            "is divided by",
        ),
        "keepdims": ("keepdims_forgotten", lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis)),
        "keepdims, maximum": (
            "keepdims_forgotten",
            lambda x, axis=-1: (e := np.exp(x - x.max(axis=axis))) / e.sum(axis=axis),
        ),
        "exp": ("exp_not_divided", lambda x, axis=-1: np.exp(x - x.max(axis=axis, keepdims=True))),
        "the argument alone": ("no_softmax", lambda x, axis=-1: x - x.max(axis=axis, keepdims=True)),
    },
    "attention_scores": {
        "scores and their transpose": ("too_many_returned", lambda q, k: (q @ k.mT, k @ q.mT), "return only what"),
        "a list of rows": (None, lambda q, k: [k @ row for row in q], "np.stack(..., axis=...)", "tuple"),
        "the past": ("part_of_result", lambda q, k: np.tril(q @ np.swapaxes(k, -1, -2))),
        "over d_k": ("factor", lambda q, k: q @ np.swapaxes(k, -1, -2) / q.shape[-1], "times the right"),
        "softmax, too": (
            "softmax_already",
            lambda q, k: al.softmax(q @ np.swapaxes(k, -1, -2)),
            "raw scores are asked for",
        ),
        "all but the values": (
            "softmax_already",
            lambda q, k: al.softmax(q @ np.swapaxes(k, -1, -2) / k.shape[-1] ** 0.5),
        ),
        "swapaxes(0, 1)": ("wrong_batch_axis", lambda q, k: q @ np.swapaxes(k, 0, 1)),
        "reshaped": (
            "key_reshaped",
            lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2]),
            "numbers of several keys",
        ),
        "q * k": ("products_not_summed", lambda q, k: q * k),
        "np.dot, T": ("dot_instead_of_matmul", lambda q, k: np.dot(q, k.T), "np.dot"),
        "np.dot": ("dot_instead_of_matmul", lambda q, k: np.dot(q, np.swapaxes(k, -1, -2)), "np.dot"),
        "transpose(0, 2, 1)": ("fixed_number_of_axes", lambda q, k: q @ k.transpose(0, 2, 1), "fixed number of axes"),
        "einsum without batch": ("fixed_number_of_axes", lambda q, k: np.einsum("qd,kd->qk", q, k)),
    },
    "scaled_dot_product_attention": {
        "mean over the keys": ("factor", lambda q, k, v: right(q, k, v) / k.shape[-2]),
        "counted from the front": ("wrong_batch_axis", from_the_front, "turns all of them round"),
        "one number": ("axis_added_up", lambda q, k, v: right(q, k, v).sum(-1)),
        "random": ("another_each_time", lambda q, k, v: right(q, k, v) + np.random.default_rng().normal(size=2)),
        "the values cubed": ("another_output", lambda q, k, v: right(q, k, v**3)),
        "a shape": (None, lambda q, k, v: right(q, k, v)[..., ::2, ::2]),
        "axes": (None, lambda q, k, v: q @ v),
        "an eighth": ("another_scale", lambda q, k, v: al.softmax(q @ np.swapaxes(k, -1, -2) / 8) @ v, "0.2165 times"),
        "negative weights": (
            "weights_no_shares",
            student(softmax="2 * al.softmax(s) - 0.2"),
            "should be positive",
            "yours sum to 1",
        ),
        "over everything": ("softmax_over_everything", student(softmax="np.exp(s) / np.sum(np.exp(s))")),
        "key.shape[1]": ("scale_by_first_axis", student(scale="np.sqrt(k.shape[1])"), "axis 1"),
        "one maximum of all": (
            "one_maximum_for_all",
            student(softmax="(e := np.exp(s - s.max())) / e.sum(-1)[..., None]"),
        ),
        "keepdims": ("keepdims_forgotten", student(softmax="(e := np.exp(s - s.max())) / e.sum(axis=-1)")),
        "reshaped": (
            "key_reshaped",
            lambda q, k, v: al.softmax(q @ k.reshape(*k.shape[:-2], *k.shape[:-3:-1]) / q.shape[-1] ** 0.5) @ v,
        ),
        "shape[0]": ("scale_by_first_axis", student(scale="q.shape[0] ** 0.5"), "counted from the front", "axis 1,"),
        "d_k**1/2": ("half_for_root", student(scale="q.shape[-1]**1/2"), "In Python the power comes first"),
        "/ d_k**1/2": ("half_for_root", student(scale="q.shape[-1] * 2"), "by d_k and by 2"),
        "q * k": ("products_not_summed", lambda q, k, v: al.softmax(q * k / q.shape[-1] ** 0.5) @ v, "raises"),
        "causal": (
            "causal_mask_added",
            lambda q, k, v: right(q, k, v, np.tri(q.shape[-2], k.shape[-2], dtype=bool)),
            "nobody asked for",
        ),
        "transpose(0, 2, 1)": (
            "fixed_number_of_axes",
            lambda q, k, v, m=None: right(q, np.zeros(()) + k.transpose(0, 2, 1).transpose(0, 2, 1), v, m),
        ),
        "value = key": ("keys_for_values", student(rest="w @ k")),
        "rounded": ("rounded_weights", student(softmax="al.softmax(s).round(2)"), "", "moves the output"),
        "exp": ("exp_not_divided", student(softmax="np.exp(s)")),
    },
    "example_that_tells": {
        "first typed": (
            "nothing_let_through",
            [[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[1], [2]]],
            "It lets through: none",
        ),
        "two tokens": ("swap_let_through", [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[1], [2]]]),
        "square V": ("d_v_equals_d_k", [np.eye(3), np.roll(np.eye(3), 1, 0), np.eye(3)]),
    },
}
