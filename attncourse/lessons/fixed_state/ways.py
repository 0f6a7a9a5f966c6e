"""A state that is written by the delta rule, as a function and as steps."""

from functools import cached_property

import numpy as np

from ...engine.steps import Steps, swap


def state(query, key, value, beta):
    """Write tokens into a state (d_k, d_v) by the delta rule, and read it, (..., n, d_v). Source: Schlag et al. 2021.

    >>> state(np.ones((2, 1)), np.ones((2, 1)), np.array([[3.0], [5.0]]), np.array([1, 0.5])).ravel()
    array([3., 4.])
    """
    return State(asks=query, keys=key, values=value, beta=beta).read_out


class State(Steps):
    normed = cached_property(lambda s: s.keys / np.linalg.norm(s.keys, axis=-1, keepdims=True))
    asking = cached_property(lambda s: s.asks)
    added = cached_property(lambda s: lambda beta, new, old: beta * (new - old))
    read = cached_property(lambda s: lambda before, after: after)

    @cached_property
    def read_out(self):
        after, rows = 0 * swap(self.normed)[..., :1] @ self.values[..., :1, :], []  # (..., d_k, d_v)
        for i in range(self.normed.shape[-2]):
            at, before = np.s_[..., i : i + 1, :], after
            key, beta = self.normed[at], self.beta[..., i, None, None]
            after = before + swap(key) @ self.added(beta, self.values[at], key @ before)
            rows.append(self.asking[at] @ self.read(before, after))
        return np.concatenate(rows, axis=-2)
