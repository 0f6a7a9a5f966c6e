"""An example that tells: which bugs move a number that it gives."""

import numpy as np

from attnlib.core import softmax

from ...engine.compare import RIGHT
from ...engine.run import Unfit

BUGS = {
    "Q and K swapped": lambda q, k, v: softmax(k @ q.T / k.shape[1] ** 0.5) @ v,
    "softmax over the queries": lambda q, k, v: softmax(q @ k.T / k.shape[1] ** 0.5, axis=0) @ v,
    "no scale": lambda q, k, v: softmax(q @ k.T) @ v,
    "divided by the root of d_v": lambda q, k, v: softmax(q @ k.T / v.shape[1] ** 0.5) @ v,
}
SHOWS = 0.01


def _misfit(example):
    """Say what keeps an example from being one; "" if nothing does."""
    try:
        parts = list(example)
    except TypeError:
        return "What you hand in has no parts. Fix: a list of three, [Q, K, V]."
    if len(parts) != 3:
        return f"You hand in {len(parts)} part{'s' * (len(parts) != 1)}, three are asked for. Fix: [Q, K, V]."
    problems = filter(None, map(_no_matrix, "QKV", parts))
    if first := next(problems, ""):
        return first
    q, k, v = (np.asarray(part, dtype=np.float64) for part in parts)
    if q.shape != k.shape or len(k) != len(v):
        return (
            f"Yours have the shapes {q.shape}, {k.shape}, {v.shape}. Fix: Q and K of one shape, and as many rows in V."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        scores = q @ k.T
    return "" if np.isfinite(scores).all() else "The scores of yours overflow. Fix: smaller numbers in Q and K."


def _no_matrix(name, part):
    """Say why one of Q, K and V is no matrix of finite numbers; "" if it is one."""
    try:
        x = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        rows = [len(row) for row in part if isinstance(row, list | tuple)] if isinstance(part, list | tuple) else []
        if len(set(rows)) > 1 and len(rows) == len(part):
            counts = f"{', '.join(map(str, rows[:-1]))} and {rows[-1]}"
            return f"The rows of {name} have {counts} numbers. Fix: as many in each."
        return f"{name} does not hold rows of numbers only. Fix: [[1, 0], [0, 1]] is two rows of two numbers."
    if x.ndim != 2 or not x.size:
        return f"{name} has shape {x.shape}. Fix: rows of numbers; three rows of one number are [[1], [0], [3]]."
    return "" if np.isfinite(x).all() else f"{name} holds inf or NaN. Fix: finite numbers."


# What an example lets through, by the first letters of those bugs. A right one lets the softmax through, and only it.
NAMED = {
    "": "nothing_let_through",
    "Qs": "swap_let_through",
    "Qsd": "symmetric_example",
    "Qd": "symmetric_scores",
    "Q": "queries_are_keys",
    "sd": "d_v_equals_d_k",
    "d": "d_v_equals_d_k",
    "Qnd": "swap_and_size_hidden",
    "nd": "size_of_scores_hidden",
    "snd": "size_of_scores_hidden",
    "n": "missing_scale_hidden",
    "Qsnd": "nothing_shows",
}


def moved_by(example):
    """Return {bug: how far it moves a number of the output}."""
    q, k, v = (np.asarray(x, dtype=np.float64) for x in example)
    right = softmax(q @ k.T / k.shape[1] ** 0.5) @ v
    return {name: np.abs(bug(q, k, v) - right).max() for name, bug in BUGS.items()}


def judge_example(example):
    """Judge an example by which bugs move a number that it gives."""
    if misfit := _misfit(example):
        raise Unfit(
            "An example is a list of Q (n, d_k), K (n, d_k) and V (n, d_v), each as rows of finite numbers. " + misfit
        )
    shows = [name for name, moved in moved_by(example).items() if moved >= SHOWS]
    hides = [name for name in BUGS if name not in shows]
    letters = "".join(name[0] for name in hides)
    if letters == "s":
        return RIGHT, ""
    sentence = f"Your example shows: {'; '.join(shows) or 'none'}. It lets through: {'; '.join(hides) or 'none'}."
    return NAMED.get(letters), sentence
