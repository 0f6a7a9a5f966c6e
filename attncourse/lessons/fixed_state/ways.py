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
    left = cached_property(lambda s: lambda beta, state: state)  # of what stood in the state
    added = cached_property(lambda s: lambda beta, new, old: beta * (new - old))
    read = cached_property(lambda s: lambda states, i: states[i + 1])

    @cached_property
    def read_out(self):
        states, n = [0 * swap(self.normed)[..., :1] @ self.values[..., :1, :]], self.normed.shape[-2]  # (..., d_k, d_v)
        at = [np.s_[..., i : i + 1, :] for i in range(n)]
        for i in range(n):
            key, b = self.normed[at[i]], self.beta[..., i, None, None]
            states.append(self.left(b, states[i]) + swap(key) @ self.added(b, self.values[at[i]], key @ states[i]))
        return np.concatenate([self.asking[at[i]] @ self.read(states, i) for i in range(n)], axis=-2)
