"""The error rule of the library: every message says the rule, what was expected, what came, and the likely fix.

The shape checks take shapes and not arrays, so that the NumPy functions and their torch twins share them.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


class ShapeError(ValueError):
    """An array has the wrong number of axes, or axes that do not fit together.

    Examples
    --------
    >>> try:
    ...     attention_shapes((2, 3), (5, 4), (5, 4))
    ... except ShapeError as error:
    ...     print(str(error).partition(":")[0])
    key has d_k = 4 but query has d_k = 3
    """


@contextlib.contextmanager
def needs_torch(what: str) -> Iterator[None]:
    """Say what a part does with torch, where its import of torch fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"{what}, which is not installed here. Fix: pip install torch", name="torch"
        ) from None


def kind_of(x: Any) -> str:
    """Return the class of `x` with its module, as messages name it: list, numpy.ndarray, torch.Tensor."""
    return f"{type(x).__module__}.{type(x).__name__}".removeprefix("builtins.")


def as_array(x: Any, name: str) -> np.ndarray:
    """Return `x` as an array, which it is or NumPy makes of it; raise TypeError for tensors and ragged lists."""
    kind = kind_of(x)
    refuse_masked_array(x, name)
    if kind.startswith("torch."):
        raise TypeError(
            f"{name} must be a NumPy array or a list of numbers, got {kind}. "
            f"Fix: {name}.numpy(), or for attention on tensors what has the same name in attnlib.torch_layers."
        )
    try:
        return np.asarray(x)
    except ValueError:
        raise TypeError(
            f"{name} must be an array of numbers, got {kind} with rows of different lengths. "
            "Fix: give all rows the same length."
        ) from None


def real_array(x: Any, name: str) -> np.ndarray:
    """Return `x` as a floating NumPy array, float64 if it holds integers; raise TypeError if it holds anything else."""
    given, x = x, as_array(x, name)
    if x.dtype == object and x is not given:
        raise TypeError(
            f"{name} must be an array of real numbers, got {type(given).__name__}. "
            "Fix: pass an array, or a list of numbers whose rows have the same length."
        )
    if x.dtype.kind in "iu":
        return x.astype(np.float64)
    if x.dtype.kind != "f":
        raise TypeError(
            f"{name} must hold real numbers (float or int), got dtype {x.dtype}. "
            f"Fix: convert it first, for example {name}.astype(float)"
            + (" after taking the real part." if x.dtype.kind == "c" else ".")
        )
    return x


def attention_shapes(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> tuple[int, ...]:
    """Check three shapes against each other and return the shape of the scores, (..., n_q, n_k)."""
    for name, shape in (("query", query), ("key", key), ("value", value)):
        if len(shape) < 2:
            raise ShapeError(
                f"{name} must have at least 2 axes, (..., positions, features), got shape {tuple(shape)}. "
                f"Fix: a single vector is one row, {name}[None, :]."
            )
        if 0 in shape:
            batch = 0 in shape[:-2]
            least = "1 sequence (and 1 head) in the axes in front" if batch else "1 position and 1 feature"
            raise ShapeError(
                f"{name} must not be empty: expected at least {least}, got shape {tuple(shape)}. "
                f"Fix: {'skip an empty batch' if batch else 'drop empty sequences'} before attention."
            )
    q, k, v = tuple(query), tuple(key), tuple(value)
    if q[-1] != k[-1]:
        raise ShapeError(
            f"key has d_k = {k[-1]} but query has d_k = {q[-1]}: query {q}, key {k}. "
            "Q and K must share their last axis; V may differ. Fix: project both to the same d_k."
        )
    if k[-2] != v[-2]:
        raise ShapeError(
            f"value has {v[-2]} positions but key has n_k = {k[-2]}: key {k}, value {v}. "
            "Each key needs its own value. Fix: take K and V from the same sequence."
        )
    if q[:-2] == k[:-2] == v[:-2]:
        return (*q[:-1], k[-2])
    try:
        leading = np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    except ValueError:
        raise ShapeError(
            f"the leading (batch, head) axes do not fit together: query {q}, key {k}, value {v}. "
            "Expected equal axes before the last two. Fix: give all three the same batch and heads."
        ) from None
    return (*leading, q[-2], k[-2])


def mask_shape(mask: Sequence[int], scores: Sequence[int]) -> None:
    """Check that a mask of shape `mask` covers scores of shape `scores` without guessing what its axes mean."""
    mask, scores = tuple(mask), tuple(scores)
    fits = all(m in (1, s) for m, s in zip(mask[::-1], scores[::-1], strict=False))
    if len(mask) not in (2, len(scores)) or not fits:
        missing = "None, " * (len(scores) - len(mask))
        fix = f"a padding mask (batch, n_k) needs the axes that it lacks, attn_mask[:, {missing}:]"
        if len(mask) > len(scores):
            fix = f"the mask has {len(mask)} axes and the scores have {len(scores)}; leave out those in front"
        elif len(mask) == len(scores):
            at = next(i for i, (m, s) in enumerate(zip(mask, scores, strict=True)) if m not in (1, s))
            fix = f"axis {at} of the mask is {mask[at]}, that of the scores is {scores[at]}"
        elif len(mask) == 2 and mask != (scores[0], scores[-1]):
            fix = f"a row for each query and a column for each key, {scores[-2:]}"
        elif len(mask) > 2:
            fix = "a mask for each sequence, (batch, n_q, n_k), needs its head axis, attn_mask[:, None]"
        raise ShapeError(
            f"attn_mask {mask} does not broadcast to the scores {scores}. Expected (n_q, n_k) = {scores[-2:]}, or "
            f"{len(scores)} axes, each of that size or 1. Fix: {fix}."
        )


def one_causal_mask(n_q: int, n_k: int) -> None:
    """Check that n_q = n_k, where causal needs no word on how queries and keys line up."""
    if n_q != n_k:
        raise ShapeError(
            f"is_causal, and causal_mask without align, need n_q = n_k: got n_q = {n_q}, n_k = {n_k}, which line up in "
            f'two ways. Fix: attn_mask=causal_mask({n_q}, {n_k}, align="lower_right") for queries that continue the '
            'sequence of the keys, as in decoding (the last query sees all keys); align="upper_left" for what torch\'s '
            "is_causal does (query i sees keys 0..i)."
        )


def mask_kind(kind: str, dtype: Any) -> None:
    """Check the dtype of a mask; `kind` is NumPy's letter ('b', 'f', 'i', ...)."""
    if kind in "bf":
        return
    ambiguous, fix = "", "build it by a comparison, for example token_ids != pad_id"
    if kind in "iu":
        ambiguous, fix = " A 0/1 mask is ambiguous.", "from_zero_blocked(attn_mask) if 0 means blocked"
    raise TypeError(
        "attn_mask must be boolean (True = may attend) or floating (added to the scores), "
        f"got {dtype}.{ambiguous} Fix: {fix}."
    )


def added_on_purpose(only_zeros_and_ones: Any) -> None:
    """Raise if a floating mask holds 1 and nothing but 0 and 1: it is meant as True and False, and would be added."""
    if only_zeros_and_ones:
        raise ValueError(
            "a floating attn_mask is added to the scores, and this one holds only 0 and 1, which forbids nothing: "
            "expected True and False, or 0 and -inf. Fix: attn_mask.astype(bool), in torch attn_mask.bool(), or "
            "from_zero_blocked(attn_mask), if 0 means blocked. If 1 is meant to be added, attn_mask - 1 gives the same "
            "weights, for a number that is added to all scores of a row changes none."
        )


def flag(value: Any, name: str) -> bool:
    """Return `value` if it is True or False: "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}. Fix: {name}=True, or leave it out.")
    return bool(value)


def generator(rng: Any) -> np.random.Generator:
    """Return a NumPy generator made of a seed, of a generator or of None."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(
            f"rng must be a seed, a whole number of at least 0, or a generator, got {rng!r}. "
            "Fix: rng=0, or rng=np.random.default_rng(0)."
        ) from None


def refuse_masked_array(x: Any, name: str) -> None:
    """Raise for an array of np.ma, whose mask every computation here would drop without a word."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a plain array, got numpy.ma.MaskedArray, whose own mask would be dropped. "
            f"Fix: {name}.filled(...); who may attend to whom goes into attn_mask."
        )


def mask_values(has_nan_or_plus_inf: Any, dtype: Any) -> None:
    """Raise if a floating mask holds NaN or +inf in `dtype`, that of the scores."""
    if has_nan_or_plus_inf:
        raise ValueError(
            f"a floating attn_mask must hold finite numbers or -inf, got NaN or +inf in {dtype}. "
            "Fix: 0 where a query may attend, -inf where it may not; 0 * -inf is NaN, so build it with "
            "to_additive(boolean_mask)."
        )


def axis_of(x: np.ndarray, axis: Any) -> int:
    """Return `axis` if it is the number of an axis of `x`; an array has -ndim to ndim - 1."""
    if isinstance(axis, bool) or not isinstance(axis, numbers.Integral):
        raise TypeError(f"axis must be a whole number, got {type(axis).__name__}. Fix: axis=-1 for the keys.")
    if not -x.ndim <= int(axis) < x.ndim:
        raise ShapeError(
            f"axis must be an axis of the array, of shape {x.shape}: expected {-x.ndim} to {x.ndim - 1}, got {axis}. "
            "Fix: axis=-1 for the keys."
        )
    return int(axis)


def attention_scale(scale: Any, d_k: int) -> float:
    """Return `scale`, or 1/sqrt(d_k) where it is None."""
    if scale is None:
        return 1.0 / math.sqrt(d_k)
    if isinstance(scale, bool) or not isinstance(scale, numbers.Real):
        raise TypeError(
            f"scale must be one real number, got {type(scale).__name__}. Fix: leave it out for 1/sqrt(d_k)."
        )
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite, got {scale}. Fix: leave it out for 1/sqrt(d_k).")
    return float(scale)


def positive_int(value: Any, name: str) -> int:
    """Return `value` as int if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}. Fix: {name}=int(...).")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}. Fix: give a positive {name}.")
    return int(value)


def head_dim(embed_dim: int, num_heads: int) -> int:
    """Return d_k = embed_dim / num_heads, which must be whole."""
    embed_dim, num_heads = positive_int(embed_dim, "embed_dim"), positive_int(num_heads, "num_heads")
    if embed_dim % num_heads:
        fits = [h for h in range(1, embed_dim + 1) if embed_dim % h == 0 and h <= 4 * num_heads]
        raise ShapeError(
            f"embed_dim must be divisible by num_heads: each head takes d_k = embed_dim / num_heads features, "
            f"got embed_dim = {embed_dim}, num_heads = {num_heads}. Fix: num_heads from {fits}."
        )
    return embed_dim // num_heads


def key_value_heads(num_heads: int, num_kv_heads: int | None) -> int:
    """Return the number of heads of keys and values, `num_heads` by default, which it must divide."""
    if num_kv_heads is None:
        return int(num_heads)
    if num_heads % positive_int(num_kv_heads, "num_kv_heads"):
        fits = [h for h in range(1, num_heads + 1) if num_heads % h == 0]
        raise ShapeError(
            f"num_kv_heads must divide num_heads, so that each head of keys and values serves as many queries: got "
            f"num_heads = {num_heads}, num_kv_heads = {num_kv_heads}. Fix: num_kv_heads from {fits}."
        )
    return int(num_kv_heads)


def cache_input(key: Any, value: Any, kind: type) -> None:
    """Check what a cache is to keep: one value for each key, numbers, in arrays of the class `kind`."""
    for name, x in (("key", key), ("value", value)):
        if not isinstance(x, kind):
            raise TypeError(
                f"a cache keeps the arrays of one library: {name} must be a {kind.__module__}.{kind.__name__}, "
                f"got {kind_of(x)}. Fix: attnlib.KVCache for NumPy, attnlib.torch_layers.KVCache for torch."
            )
    if isinstance(key, np.ndarray):
        for name, x in (("key", key), ("value", value)):
            real_array(x, name)
    k, v = tuple(key.shape), tuple(value.shape)
    if len(k) < 2 or k[:-1] != v[:-1]:
        raise ShapeError(
            "a cache keeps one value for each key: expected keys and values (..., num_kv_heads, n, d_k) that differ in "
            f"their last axis at most, got keys {k} and values {v}. Fix: project both from the same tokens."
        )


def check_cached(old: Any, new: Any, name: str) -> None:
    """Check that new keys or values continue those of a cache: all axes but the tokens, and the dtype, are equal."""
    old_shape, new_shape = tuple(old.shape), tuple(new.shape)
    if (*old_shape[:-2], old_shape[-1]) != (*new_shape[:-2], new_shape[-1]) or old.dtype != new.dtype:
        raise ShapeError(
            f"a cache serves one layer and one batch of sequences: it holds {name}s {old_shape} of {old.dtype}, "
            f"and got {new_shape} of {new.dtype}. Only the tokens, axis -2, may differ. "
            "Fix: a new KVCache() for each layer, and for each new prompt."
        )


def module_input(shape: Sequence[int], name: str, features: int) -> None:
    """Check that the input of a layer is (..., n, features)."""
    shape = tuple(shape)
    if 0 in shape[:-2]:
        raise ShapeError(
            f"{name} must hold at least 1 sequence in the axes before (positions, {features}), got {shape}. "
            "Fix: skip an empty batch before the layer."
        )
    if len(shape) < 2 or shape[-1] != features or 0 in shape:
        raise ShapeError(
            f"{name} must be (..., positions, {features}) with at least 1 position, got {shape}. "
            f"Fix: the last axis holds the {features} features the layer was made for; a single token is one row."
        )
