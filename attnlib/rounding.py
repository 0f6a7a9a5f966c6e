"""Numbers rounded to few bits, as a cache may keep them: a lowest number, a step, and whole numbers of steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import validation


def rounded(x: ArrayLike, bits: int, axis: int = -1, dtype: DTypeLike | None = None) -> np.ndarray:
    """Round each number to the nearest of 2^bits, spread evenly from the lowest to the highest along `axis`.

    Parameters
    ----------
    x : array_like, (..., n, d)
        Keys or values.
    bits : int
        At least 1.
    axis : int
        -1 gives each token a lowest number and a step of its own, -2 each feature.
    dtype : dtype, optional
        In which lowest number and step are kept, np.float16 for instance; by default they are not rounded.

    Returns
    -------
    ndarray
        As `x`; what does not differ along `axis` stays as it is.

    Examples
    --------
    >>> rounded([[0.0, 0.9, 3.0], [5.0, 5.0, 5.0]], 2)
    array([[0., 1., 3.],
           [5., 5., 5.]])
    """
    x = validation.real_array(x, "x")
    axis, most = validation.axis_of(x, axis), 2 ** validation.positive_int(bits, "bits") - 1
    if not x.size:  # a cache that holds nothing yet
        return x
    lowest = x.min(axis, keepdims=True)
    step = ((x.max(axis, keepdims=True) - lowest) / most).astype(dtype or x.dtype)
    lowest = lowest.astype(dtype or x.dtype)
    whole = np.rint((x - lowest) / np.where(step > 0, step, 1)).clip(0, most)  # (..., n, d)
    return (lowest + step * whole).astype(x.dtype)


def bytes_kept(n: int, d: int, bits: int, axis: int = -1) -> float:
    """Return the bytes that each of n tokens takes, with its scale, or its share of those of the features.

    Parameters
    ----------
    n, d : int
        Tokens, and features of each.
    bits : int
        Of each number; 16 and 32 are not rounded and need no scale.
    axis : int
        As `rounded` takes it.

    Returns
    -------
    float

    Examples
    --------
    >>> bytes_kept(32, 64, 4), bytes_kept(32, 64, 4, axis=-2), bytes_kept(32, 64, 16)
    (36.0, 40.0, 128.0)
    """
    scales = 0 if bits >= 16 else 1 if axis == -1 else d / n
    return d * bits / 8 + 4 * scales  # a scale is two numbers in float16
