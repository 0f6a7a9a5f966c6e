"""Data of the worked examples. The arrays are read-only: copy before you change one.

Examples
--------
>>> BY_HAND.x @ BY_HAND.W_K
array([[0., 1., 1.],
       [4., 4., 0.],
       [2., 3., 1.]])
"""

from typing import NamedTuple

import numpy as np


class Example(NamedTuple):
    """Tokens x (n, d_in) and projection matrices W_Q, W_K (d_in, d_k), W_V (d_in, d_v)."""

    x: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray

    def project(self):
        """Return Q = x W_Q, K = x W_K, V = x W_V."""
        return self.x @ self.W_Q, self.x @ self.W_K, self.x @ self.W_V


def _example(*matrices):
    arrays = [np.array(m, dtype=np.float64) for m in matrices]
    for array in arrays:
        array.setflags(write=False)
    return Example(*arrays)


# Three tokens, all numbers small enough for pencil and paper; it goes through every notebook.
BY_HAND = _example(
    [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]],
    [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 1, 1]],
    [[0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 1, 0]],
    [[0, 2, 0], [0, 3, 0], [1, 0, 3], [1, 1, 0]],
)

# Two tokens, everything the identity but W_V: so symmetric that several mistakes do not show in it.
IDENTITY = _example([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 2], [3, 4]])

# n = 4, d_in = 3, d_k = 2, d_v = 5: all different, and no weight near 0 or 1, so that no mistake can hide.
ASYMMETRIC = _example(
    [[1.0, 0.5, -1.0], [0.0, 1.0, 0.5], [-0.5, 1.0, 1.0], [1.5, -1.0, 0.5]],
    [[1.0, -0.5], [0.5, 1.0], [0.0, 0.5]],
    [[0.5, 1.0], [-1.0, 0.5], [1.0, 0.0]],
    [[1.0, 0.0, 2.0, -1.0, 0.5], [0.0, 1.0, -1.0, 2.0, 1.0], [1.0, -1.0, 0.0, 1.0, 3.0]],
)
