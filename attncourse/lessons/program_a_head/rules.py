"""Who looks at whom in a convoy, as rules: Convoy -> weights (n, n), with NaN in rows where anything goes."""

import numpy as np


def share(cells):
    """Return equal weights on the True cells of each row; a row without any is free."""
    cells = np.asarray(cells, dtype=float)
    total = cells.sum(axis=-1, keepdims=True)
    return np.divide(cells, total, where=total > 0, out=np.full(cells.shape, np.nan))


def where(rows, then, otherwise):
    """Return the rows of one map where `rows` is True, of another where not."""
    return np.where(np.asarray(rows)[:, None], then, otherwise)


def only(rows, weights):
    """Leave all other rows free."""
    return where(rows, weights, np.nan)


def all_alike(c):
    return np.full((c.n, c.n), 1 / c.n)


def all_at(c, chosen):
    """Everybody looks at the chosen keys; if there is none, at all alike."""
    return share(np.tile(chosen, (c.n, 1))) if np.any(chosen) else all_alike(c)


def itself(c):
    return np.eye(c.n)


def same_flag(c):
    return share(c.kinds[:, None] == c.kinds)


def back(c, steps):
    """Each looks so many places back; who would look beyond an end gives no weight."""
    return np.eye(c.n, k=-steps)


def in_front(c):
    return where(c.pilot, itself(c), back(c, 1))


def at_flag(c, kind):
    return all_at(c, c.kinds == kind)


def at_pilot(c):
    return all_at(c, c.pilot)


# --- rules that say what each ship receives: Convoy -> (n, 1)


def column(values):
    return np.asarray(values, dtype=float)[:, None]


def every(c, value):
    """Return one number for every ship."""
    return np.full((c.n, 1), float(value))
