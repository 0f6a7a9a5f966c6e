"""Rotary positions (RoPE) in NumPy: the position of a token as a rotation of its query and key.

Source: Su et al. 2021, "RoFormer".
"""

from __future__ import annotations

import numbers
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from . import validation
from .validation import ShapeError

# Both members of all pairs, and the way back.
Pairs = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray], np.ndarray]]


def halves(x: np.ndarray) -> Pairs:
    """Pair feature c with feature c + d_k/2, as transformers does for Llama: return both members, and the way back."""
    first, second = np.split(x, 2, axis=-1)
    return first, second, lambda a, b: np.concatenate([a, b], axis=-1)


def neighbours(x: np.ndarray) -> Pairs:
    """Pair feature 2c with feature 2c + 1, as in Su et al. 2021."""
    return x[..., 0::2], x[..., 1::2], lambda a, b: np.stack([a, b], axis=-1).reshape(x.shape)


PAIRINGS: dict[str, Callable[[np.ndarray], Pairs]] = {"halves": halves, "neighbours": neighbours}


def frequencies(d_k: int, base: float = 10_000.0) -> np.ndarray:
    """Return the angle by which each pair turns from one position to the next, (d_k / 2,)."""
    return base ** (-2 * np.arange(d_k // 2) / d_k)


def turn(x: np.ndarray, positions: ArrayLike, pairs: Callable[[np.ndarray], Pairs], omega: np.ndarray) -> np.ndarray:
    """Turn pair c of the token at positions[i] by the angle positions[i] * omega_c."""
    angle = np.asarray(positions)[:, None] * omega  # (n, d_k / 2)
    cos, sin = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    a, b, back = pairs(x)
    return back(a * cos - b * sin, a * sin + b * cos)


def rope(x: ArrayLike, positions: ArrayLike, base: float = 10_000.0, pairing: str = "halves") -> np.ndarray:
    """Rotate queries or keys by the positions of their tokens.

    Pair c of the token at position p turns by the angle p * base^(-2c / d_k). The dot product of a rotated query with a
    rotated key then depends on the distance of the two tokens, and no longer on where they stand.

    Parameters
    ----------
    x : array_like, (..., n, d_k)
        Queries or keys after `split_heads`; d_k is even.
    positions : array_like of numbers, (n,)
        Position of each token. With a cache they continue: the first new token has as many tokens before it as the
        cache holds.
    base : float
        The larger, the slower the last pairs turn. 10,000 in the paper; models for long texts take more.
    pairing : {"halves", "neighbours"}
        Which two features make a pair: c and c + d_k/2 as in transformers, or 2c and 2c + 1 as in the paper. Weights
        trained with one need that one.

    Returns
    -------
    ndarray, (..., n, d_k)

    Raises
    ------
    ShapeError
        If d_k is odd, or there is not one position for each token.
    ValueError
        If `base` is not a positive number, or `pairing` is another word.

    Notes
    -----
    Derived in the notebook "today's head". Source: Su et al. 2021, equation 34.

    Examples
    --------
    >>> rope(np.array([[1.0, 0.0], [1.0, 0.0]]), [0, 1]).round(4)
    array([[1.    , 0.    ],
           [0.5403, 0.8415]])
    """
    x = validation.real_array(x, "x")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ShapeError(
            f"x must be (..., n, d_k) with an even d_k, since features turn in pairs, got shape {x.shape}. "
            "Fix: rotate queries and keys after split_heads."
        )
    positions = validation.real_array(positions, "positions")
    if positions.shape != x.shape[-2:-1]:
        raise ShapeError(
            f"positions must hold one number for each token, shape ({x.shape[-2]},), got shape {positions.shape}. "
            "Fix: np.arange(start, start + n), where start counts the tokens before."
        )
    if not (isinstance(base, numbers.Real) and 0 < base < np.inf):
        raise ValueError(f"base must be a positive number, got {base!r}. Fix: 10_000.0, the paper's.")
    if pairing not in PAIRINGS:
        raise ValueError(
            f'pairing must be "halves" or "neighbours", got {pairing!r}. '
            'Fix: "halves" for weights in the order of transformers.'
        )
    return turn(x, positions, PAIRINGS[pairing], frequencies(x.shape[-1], float(base)))
