"""What pictures, views and tables are given, checked before anything is drawn: maps, masks, labels, numbers.

Each function returns what it was given in one form, or raises as the error rule of `validation` wants it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .validation import ShapeError, kind_of

WIDEST = 2**16  # features of a random vector: 64 tokens of that width take 32 MB


def to_array(x: Any, name: str = "x") -> np.ndarray:
    """Return an ndarray, also of a torch tensor that needs a gradient or lies on another device.

    >>> to_array([[1, 2]]).shape
    (1, 2)
    """
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.numpy() if str(x.dtype) == "torch.bool" else x.double().numpy()
    try:
        x = np.asarray(x)
    except ValueError:
        raise ShapeError(
            f"{name} must be one array, got rows of different lengths. Fix: give all rows the same length."
        ) from None
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {x.dtype}. Fix: pass the weights, not their labels.")
    return x


def array_of(x: Any, name: str, dims: str, fix: str) -> np.ndarray:
    """Return `x` as an array with as many axes as `dims` names and at least one cell.

    >>> array_of(np.eye(2), "one map", "(n_q, n_k)", "...").shape
    (2, 2)
    """
    x = to_array(x, name)
    if x.ndim != dims.count(",") + (not dims.endswith(",)")) or x.size == 0:
        raise ShapeError(f"{name} must be {dims} with at least one cell, got shape {x.shape}. Fix: {fix}.")
    return x


def labels(given: Any, name: str, n: int | None = None) -> Any:
    """Return labels as a list of str, numbers written out; None stays None. With `n` there must be so many.

    >>> labels("abc", "keys", 3), labels([1, 2], "keys")
    (['a', 'b', 'c'], ['1', '2'])
    """
    if given is None:
        return None
    if not hasattr(given, "__getitem__") or not hasattr(given, "__len__") or isinstance(given, dict):
        raise TypeError(f"{name} must be a sequence of labels, got {kind_of(given)}. Fix: {name}=[...], one for each.")
    words = [label for label in given if isinstance(label, str | numbers.Real)]
    if len(words) < len(given):
        other = next(label for label in given if not isinstance(label, str | numbers.Real))
        raise TypeError(f"{name} must hold texts, got {kind_of(other)}. Fix: one text for each, not a list of lists.")
    if n is not None and len(words) != n:
        raise ShapeError(
            f"{name} must hold one label each: expected {n}, got {len(words)}. Fix: pass all of them, or none."
        )
    return [str(label) for label in words]


def mask(given: Any, shape: tuple[int, ...] | None = None) -> np.ndarray | None:
    """Return a mask for a picture as a boolean array, True = may attend, broadcast to `shape`; None stays None.

    >>> mask(np.tri(2, dtype=bool), (3, 2, 2)).shape
    (3, 2, 2)
    """
    if given is None:
        return None
    allowed = to_array(given, "attn_mask")
    if allowed.dtype != bool:
        raise TypeError(
            f"attn_mask of a picture must be boolean (True = may attend), got dtype {allowed.dtype}. "
            "Fix: from_zero_blocked(mask) for 0/1 masks, mask > -inf for additive ones."
        )
    if shape is None:
        return array_of(allowed, "attn_mask", "(n_q, n_k)", "pick the mask of one head and one sequence")
    try:
        return np.broadcast_to(allowed, shape)
    except ValueError:
        raise ShapeError(
            f"attn_mask must be (n_q, n_k) = {shape[-2:]} or broadcast to the maps {shape}, got {allowed.shape}. "
            "Fix: pick the mask of this sequence, attn_mask[0]."
        ) from None


def whole(value: Any, name: str, low: int, high: int | None = None) -> int:
    """Return `value` as int if it is a whole number from `low` to `high`.

    >>> whole(np.int64(3), "n", 2, 64)
    3
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        got = repr(value) if isinstance(value, numbers.Real) else kind_of(value)
        raise TypeError(f"{name} must be a whole number, got {got}. Fix: {name}={low}, or another one.")
    value = int(value)
    if value < low or (high is not None and value > high):
        wanted = f"at least {low}" if high is None else f"{low}" if low == high else f"between {low} and {high}"
        raise ValueError(f"{name} must be {wanted}, got {value}. Fix: {name}={low if value < low else high}.")
    return value


def number(value: Any, name: str, above: float = -math.inf) -> float:
    """Return `value` if it is a finite real number, and larger than `above`.

    >>> number(1.5, "size", above=0)
    1.5
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {kind_of(value)}. Fix: {name}=1.0, or another one.")
    real: Any = value  # an int stays one, and is written as one
    if not math.isfinite(real) or real <= above:
        wanted = "finite" if above == -math.inf else f"finite and above {above:g}"
        raise ValueError(f"{name} must be {wanted}, got {value}. Fix: {name}=1.0, or another one.")
    return real


def span(given: Any, name: str, high: int = WIDEST) -> tuple[int, int]:
    """Return the range of a slider, (lowest, highest), both from 1 to `high`.

    >>> span((1, 128), "d_k")
    (1, 128)
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"{name} must be a pair (lowest, highest), got {given!r:.60}. Fix: {name}=(1, 128).")
    low, top = (whole(end, f"each end of {name}", 1, high) for end in given)
    if low > top:
        raise ValueError(f"{name} must be (lowest, highest), got ({low}, {top}). Fix: {name}=({top}, {low}).")
    return low, top


def one_of(value: Any, name: str, options: Sequence[Any]) -> Any:
    """Return `value` if it is one of `options`.

    >>> one_of(2, "start", [1, 2])
    2
    """
    if isinstance(value, np.ndarray | bool) or value not in options:
        few = f"{list(options)[:6]}" + (f" ... {options[-1]}" if len(options) > 6 else "")
        raise ValueError(f"{name} must be one of {few}, got {value!r:.60}. Fix: choose one of these.")
    return value


def text(value: Any, name: str) -> str:
    """Return `value` if it is a str.

    >>> text("a map", "title")
    'a map'
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {kind_of(value)}. Fix: {name}=str(...).")
    return value


def function(value: Any, name: str, call: str) -> Callable:
    """Return `value` if it can be called; `call` says how it will be.

    >>> function(abs, "attend", "attend(tokens)") is abs
    True
    """
    if not callable(value):
        raise TypeError(
            f"{name} must be a function, which is called as {call}, got {kind_of(value)}. "
            "Fix: give the name of the function, without parentheses."
        )
    return value


def several(given: Any, name: str, least: int = 1) -> list[Any]:
    """Return a sequence, but no text, as a list with at least so many entries.

    >>> several((1, 64), "still")
    [1, 64]
    """
    if isinstance(given, str | dict) or not hasattr(given, "__getitem__") or not hasattr(given, "__len__"):
        raise TypeError(f"{name} must be a list, got {kind_of(given)}. Fix: {name}=[...].")
    if len(given) < least:
        raise ValueError(f"{name} must hold at least {least}, got none. Fix: {name}=[...].")
    return list(given)
