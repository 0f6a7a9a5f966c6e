"""Masks: who may attend to whom.

One rule everywhere in attnlib: a boolean mask says **True = may attend**, a floating mask is added to the scores.
The opposite polarity is called *blocked*; it appears only in `to_blocked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import validation
from .validation import ShapeError


def causal_mask(
    n_q: int, n_k: int | None = None, *, align: Literal["lower_right", "upper_left"] | None = None
) -> np.ndarray:
    """Let each query attend to its own position and to earlier ones only.

    mask[i, j] = (j <= i) for n_q = n_k. For n_q != n_k there are two alignments, and `align` says which:

    lower_right: mask[i, j] = (j <= i + n_k - n_q);  upper_left: mask[i, j] = (j <= i)

    Parameters
    ----------
    n_q, n_k : int
        Number of queries and keys; `n_k` defaults to `n_q`.
    align : {"lower_right", "upper_left"}, optional
        Needed only for n_q != n_k. "lower_right": the queries continue the sequence of the keys, as in decoding, and
        the last query sees all keys. "upper_left": query i sees keys 0..i, as with torch's ``is_causal``.

    Returns
    -------
    ndarray of bool, (n_q, n_k)
        True = may attend. With "lower_right" and n_q > n_k the first n_q - n_k queries may attend to nothing.

    Raises
    ------
    ShapeError
        If n_q != n_k and `align` is not given.
    TypeError, ValueError
        If a number is not whole or below 1, or `align` is another word.

    Notes
    -----
    Derived in the notebook "masks". Source: Vaswani et al. 2017, section 3.2.3 ("masking out illegal connections"). In
    torch the two are ``torch.nn.attention.bias.causal_lower_right`` and ``causal_upper_left``.

    Examples
    --------
    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    >>> causal_mask(2, 4, align="lower_right").astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    n_q = validation.positive_int(n_q, "n_q")
    n_k = n_q if n_k is None else validation.positive_int(n_k, "n_k")
    if align not in (None, "lower_right", "upper_left"):
        raise ValueError(
            f'align must be "lower_right" or "upper_left", got {align!r}. '
            'Fix: "lower_right" for queries that continue the sequence of the keys.'
        )
    if align is None:
        validation.one_causal_mask(n_q, n_k)
    try:
        return np.tri(n_q, n_k, k=n_k - n_q if align == "lower_right" else 0, dtype=bool)
    except (MemoryError, ValueError):  # NumPy has no axis that long, or this machine no room
        raise MemoryError(
            f"a mask ({n_q}, {n_k}) takes {n_q * n_k / 2**30:.3g} GiB, more than there is. "
            'Fix: a block of queries at a time, causal_mask(block, keys_so_far, align="lower_right").'
        ) from None


def padding_mask(lengths: ArrayLike, n_k: int) -> np.ndarray:
    """Let every query attend only to the real tokens of its sequence.

    mask[b, 0, j] = (j < lengths[b]). The middle axis broadcasts over queries: padding hides *keys*. For
    scores with a head axis, (b, h, n_q, n_k), write ``padding_mask(lengths, n_k)[:, None]``.

    Parameters
    ----------
    lengths : array_like of int, (b,)
        Number of real tokens of each sequence, 0 to `n_k`. 0 gives rows that attend to nothing.
    n_k : int
        Padded length.

    Returns
    -------
    ndarray of bool, (b, 1, n_k)
        True = may attend.

    Notes
    -----
    Derived in the notebook "masks".

    Examples
    --------
    >>> padding_mask([3, 1], 4).astype(int)
    array([[[1, 1, 1, 0]],
    <BLANKLINE>
           [[1, 0, 0, 0]]])
    """
    n_k = validation.positive_int(n_k, "n_k")
    lengths = _array(lengths, "lengths")
    if lengths.ndim != 1 or lengths.size == 0:
        raise ShapeError(
            f"lengths must be one whole number per sequence, shape (b,), got shape {lengths.shape}. "
            "Fix: padding_mask([length], n_k) for a single sequence."
        )
    if lengths.dtype.kind not in "iu":
        raise TypeError(
            f"lengths must be whole numbers, got dtype {lengths.dtype}. Fix: pass token counts, not a mask; "
            "a 0/1 mask goes through from_zero_blocked."
        )
    if lengths.min() < 0 or lengths.max() > n_k:
        raise ValueError(
            f"lengths must lie between 0 and n_k = {n_k}, got {lengths.min()} to {lengths.max()}. "
            "Fix: n_k is the padded length, the longest one."
        )
    return np.arange(n_k) < lengths[:, None, None]


def combine_masks(*masks: np.ndarray | None) -> np.ndarray | None:
    """Combine masks: a query may attend where all of them allow it.

    Boolean masks are combined with AND. If one is floating, boolean ones become additive and all are summed.

    Parameters
    ----------
    *masks : ndarray of bool or float, or None
        Masks that broadcast against each other. None stands for "no mask" and is skipped.

    Returns
    -------
    ndarray of bool or float, or None
        None if every mask is None. Always a new array.

    Notes
    -----
    Derived in the notebook "masks".

    Examples
    --------
    >>> combine_masks(causal_mask(3), padding_mask([2], 3)).astype(int)
    array([[[1, 0, 0],
            [1, 1, 0],
            [1, 1, 0]]])
    """
    given = [check_mask(mask) for mask in masks if mask is not None]
    if not given:
        return None
    try:
        np.broadcast_shapes(*(mask.shape for mask in given))
    except ValueError:
        shapes = ", ".join(str(mask.shape) for mask in given)
        raise ShapeError(
            f"masks to combine must broadcast against each other, got shapes {shapes}. "
            "Fix: give each the axes (..., n_q, n_k); padding_mask returns (b, 1, n_k)."
        ) from None
    if all(mask.dtype == bool for mask in given):
        return np.logical_and.reduce(np.broadcast_arrays(*given))
    combined = np.zeros(())
    for mask in given:
        combined = combined + (to_additive(mask) if mask.dtype == bool else mask)
    return combined


def to_blocked(mask: np.ndarray) -> np.ndarray:
    """Turn "True = may attend" into "True = blocked", what nn.MultiheadAttention expects.

    Parameters
    ----------
    mask : ndarray of bool
        True = may attend.

    Returns
    -------
    ndarray of bool
        True = blocked; same shape.

    Examples
    --------
    >>> to_blocked(causal_mask(2)).astype(int)
    array([[0, 1],
           [0, 0]])
    """
    return ~_boolean(mask, "to_blocked")


def to_additive(mask: np.ndarray) -> np.ndarray:
    """Turn a boolean mask into one that is added to the scores: 0 where a query may attend, -inf where not.

    Parameters
    ----------
    mask : ndarray of bool
        True = may attend.

    Returns
    -------
    ndarray of float64
        Same shape.

    Examples
    --------
    >>> to_additive(causal_mask(2))
    array([[  0., -inf],
           [  0.,   0.]])
    """
    return np.where(_boolean(mask, "to_additive"), 0.0, -np.inf)


def from_zero_blocked(mask: ArrayLike) -> np.ndarray:
    """Read a 0/1 mask in which 0 means blocked, as ``masked_fill(mask == 0, ...)`` code uses it.

    Parameters
    ----------
    mask : array_like of 0 and 1

    Returns
    -------
    ndarray of bool
        True = may attend; same shape.

    Examples
    --------
    >>> from_zero_blocked([[1, 0], [1, 1]])
    array([[ True, False],
           [ True,  True]])
    """
    mask = _array(mask, "mask")
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        got = mask.dtype if mask.dtype.kind not in "biuf" else np.setdiff1d(mask, (0, 1))[:3].tolist()
        raise ValueError(
            f"from_zero_blocked expects only 0 (blocked) and 1 (may attend), got {got}. "
            "Fix: a mask of 0 and -inf is additive already; pass it as attn_mask."
        )
    return np.equal(mask, 1)


def check_mask(mask: Any, scores_shape: Sequence[int] | None = None) -> np.ndarray:
    """Return `mask` unchanged if it is a valid attn_mask, one that covers `scores_shape` where that is given."""
    if not isinstance(mask, np.ndarray):
        raise TypeError(
            f"attn_mask must be a NumPy array, boolean (True = may attend) or floating, got {type(mask).__name__}. "
            "Fix: np.array(attn_mask)."
        )
    validation.refuse_masked_array(mask, "attn_mask")
    validation.mask_kind(mask.dtype.kind, mask.dtype)
    if mask.dtype.kind == "f":
        validation.added_on_purpose(mask.any() and ((mask == 0) | (mask == 1)).all())
        validation.mask_values(np.isnan(mask).any() or np.isposinf(mask).any(), mask.dtype)
    if scores_shape is not None:
        validation.mask_shape(mask.shape, scores_shape)
    return mask


def apply_mask(scores: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Return the scores with -inf where a boolean mask blocks, or with a floating mask added; None changes nothing."""
    if mask is None:
        return scores
    if mask.dtype == bool:
        return np.where(mask, scores, scores.dtype.type(-np.inf))
    with np.errstate(over="ignore"):  # -1e9 is -inf in float16, and so it should be; +1e9 is +inf, and gives NaN
        added = mask.astype(scores.dtype)
        validation.mask_values(added.dtype != mask.dtype and np.isposinf(added).any(), added.dtype)
        return scores + added


def in_words(allowed: np.ndarray) -> str:
    """Return the words for a boolean mask (b, h, n_q, n_k), True = may attend: "causal", "padding", "none" ..."""
    (n_q, n_k), columns = allowed.shape[-2:], np.any(allowed, -2, keepdims=True)  # the keys that anybody sees
    hidden = int((~columns).sum(-1).max(initial=0))
    behind = f"{hidden} key{'s' * (hidden > 1)} hidden" if hidden else ""
    if (allowed == columns).all():
        # Padding differs between sequences, not between heads, and stands at one end; a cache not yet full does not.
        one_end = (columns[..., 1:] != columns[..., :-1]).sum(-1).max(initial=0) < 2
        alike = [bool((columns == other).all()) for other in (columns[:, :1], columns[:1])]
        return "padding, " * (alike == [True, False] and bool(one_end)) + behind or "none"
    first = allowed.argmax(-1)  # key of each row
    kind = "some pairs"
    for name, offset in (("causal, upper left", 0), ("causal", n_k - n_q)):
        far = int((np.arange(n_q) + offset - first)[allowed.any(-1)].max())
        before = np.tril(np.broadcast_to(columns, allowed.shape), offset)
        if (allowed == np.triu(before, offset - far)).all():
            kind = name + (f", reaches back {far}" if np.tril(before, offset - far - 1).any() else "")
    return f"{kind}, {behind}" if behind else kind


def _boolean(mask: Any, function: str) -> np.ndarray:
    validation.refuse_masked_array(mask, "mask")
    if not isinstance(mask, np.ndarray) or mask.dtype != bool:
        got = f"dtype {mask.dtype}" if isinstance(mask, np.ndarray) else type(mask).__name__
        fix = "from_zero_blocked(mask) for a 0/1 mask; a floating mask is additive already."
        if type(mask).__module__.startswith("torch"):
            fix = "mask.numpy() for a boolean tensor; in torch itself, ~mask is the blocked mask."
        elif isinstance(mask, list | tuple):
            fix = "np.array(mask) if it holds True and False; from_zero_blocked(mask) for 0 and 1."
        raise TypeError(f"{function} takes a boolean NumPy array (True = may attend), got {got}. Fix: {fix}")
    return mask


def _array(x: Any, name: str) -> np.ndarray:
    validation.refuse_masked_array(x, name)
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(
            f"{name} must be one array, got rows of different lengths. Fix: pad the rows to one length."
        ) from None
