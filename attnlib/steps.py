"""The steps of attention, once: the name, axes, formula, words and function of each, in the order in which they run.

Traces of both twins, the course and the pictures take them from here. A step that is added to `STEPS` is computed,
listed in the table of a trace, and drawn and explained by every picture of a call. What does not follow by itself: the
field of `AttentionTrace`, the plain lines of `core.scaled_dot_product_attention` (a test holds both to the same bits),
the `attend` of torch, the modules, and the engine of the course.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import masks, validation


class Step(NamedTuple):
    """One step of attention."""

    name: str  # under which a trace keeps it
    dims: str  # its last two axes
    formula: str | Callable[[Any], str]  # for the table of a trace; where it depends on the call: trace -> text
    symbol: str | Callable[[Any], str]  # the same as short as it stands on an arrow, or beside a row of numbers
    takes: tuple[str, ...] = ()  # the names of what its function is handed; empty for what is given
    function: Any = None  # for arrays of NumPy and tensors; torch has its own `masked_scores` and `weights`


def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """Turn scores into weights that are positive and sum to 1 along `axis`.

    softmax(x)_j = exp(x_j - m) / sum_k exp(x_k - m),  m = max_k x_k

    Subtracting m changes nothing in the result and keeps exp from overflowing.

    Parameters
    ----------
    x : array_like, any shape
        Scores. Integers are computed in float64. -inf gets weight 0; a row of nothing but -inf gives zeros.
    axis : int
        The axis that sums to 1. For attention it is the last one, the keys.

    Returns
    -------
    ndarray, the shape and dtype of `x`

    Raises
    ------
    TypeError
        If `x` does not hold real numbers, or is a list with rows of different lengths, or a tensor.
    ShapeError
        If `x` is a single number or empty, or has no such axis.

    Notes
    -----
    Derived in the notebooks "by hand" and "vectorized" (why m is subtracted).

    Examples
    --------
    >>> softmax(np.array([2.0, 4.0, 4.0])).round(4)
    array([0.0634, 0.4683, 0.4683])
    """
    x = validation.real_array(x, "x")
    if x.size == 0 or x.ndim == 0:
        raise validation.ShapeError(
            f"x must hold at least one score along at least 1 axis, got shape {x.shape}. "
            "Fix: pass the whole row of scores, not one of them."
        )
    axis = validation.axis_of(x, axis)
    largest = np.max(x, axis=axis, keepdims=True)
    largest[np.isneginf(largest)] = 0  # a row of -inf: exp(-inf - 0) = 0, where -inf - -inf would be NaN
    weights = x - largest
    np.exp(weights, out=weights)
    total = np.sum(weights, axis=axis, keepdims=True)
    total[total == 0] = 1
    weights /= total
    return weights


def product(query: Any, key: Any) -> Any:
    """Return Q K^T: the dot product of each query with each key, (..., n_q, n_k)."""
    return query @ key.swapaxes(-1, -2)


def _scale_text(trace):
    d_k = trace.query.shape[-1]
    usual = math.isclose(trace.scale, 1 / math.sqrt(d_k), rel_tol=1e-6)
    return f"÷ √{d_k}" if usual else f"\u00d7 {trace.scale:.4g}"


def _mask_text(trace):
    if trace.attn_mask is None:
        return "scaled scores (no mask)"
    return "scaled scores" + (", -inf where blocked" if "bool" in str(trace.attn_mask.dtype) else " + mask")


STEPS = (
    Step("query", "n_q, d_k", "Q", "queries"),
    Step("key", "n_k, d_k", "K", "keys"),
    Step("value", "n_k, d_v", "V", "values"),
    Step("scores", "n_q, n_k", "Q K^T", "q.k", ("query", "key"), product),
    Step("scaled_scores", "n_q, n_k", "scores * scale", _scale_text, ("scores", "scale"), operator.mul),
    Step("masked_scores", "n_q, n_k", _mask_text, "mask", ("scaled_scores", "attn_mask"), masks.apply_mask),
    Step("weights", "n_q, n_k", "softmax over keys", "softmax", ("masked_scores",), softmax),
    Step("output", "n_q, d_v", "weights V", "weight · V", ("weights", "value"), operator.matmul),
)


def compute_steps(given: Mapping[str, Any], own: Mapping[str, Callable[..., Any]] | None = None) -> dict[str, Any]:
    """Return `given` and all steps that follow from it, by name.

    Parameters
    ----------
    given : dict of str to array or argument
        A step that is given is not computed.
    own : dict of str to callable, optional
        Functions in place of those of `STEPS`, as torch has of two steps.

    Raises
    ------
    ValueError
        If a step takes what nobody gave and no earlier step makes.
    """
    values = dict(given)
    for step in STEPS:
        if step.name in values:
            continue
        if missing := [name for name in step.takes if name not in values]:
            raise ValueError(
                f"the step {step.name!r} takes {', '.join(step.takes)}, but {', '.join(missing)} is neither given nor "
                f"made by an earlier step. There are {', '.join(values)}. Fix: hand it in with `given`, in both twins, "
                "or let the step that makes it stand further up in STEPS."
            )
        function = own[step.name] if own and step.name in own else step.function
        values[step.name] = function(*[values[name] for name in step.takes])
    return values


def maps(trace: Any) -> dict[str, str]:
    """Return the names of all maps (n_q, n_k) of an `AttentionTrace` in their order, each with the symbol of its step.

    A step that handed on what it was given, as a mask of None does, is left out.
    """
    symbols, before = {}, None
    for step in STEPS:
        array = getattr(trace, step.name)
        if step.dims == "n_q, n_k" and array is not before:
            symbols[step.name] = label_for(step.symbol, trace)
        before = array
    return symbols


def label_for(words: str | Callable[[Any], str], trace: Any) -> str:
    """Return a formula or symbol as this call has it."""
    return words if isinstance(words, str) else words(trace)
