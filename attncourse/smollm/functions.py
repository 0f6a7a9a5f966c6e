"""The functions of attention that a speaker calls: those of the series. A reader may replace each by their own.

What one function needs of another is handed to it as its last argument, so each can be kept and loaded alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from attnlib import core, heads, masks, rotary, validation


def grouped_attention(query, key, value, attn_mask=None, attention=core.scaled_dot_product_attention):
    """Attend with fewer heads of keys and values than of queries: each serves h / g heads of queries, side by side.

    query (h, n_q, d_k), key (g, n_k, d_k), value (g, n_k, d_v) and a mask (n_q, n_k), True = may attend, give
    (h, n_q, d_v). `attention` is called with the query, the repeated keys and values, and the mask. Derived in notebook
    11. Source: Ainslie et al. 2023.

    >>> grouped_attention(np.ones((4, 1, 2)), np.ones((2, 3, 2)), np.ones((2, 3, 2))).shape
    (4, 1, 2)
    """
    times = query.shape[-3] // key.shape[-3]
    return attention(query, np.repeat(key, times, axis=-3), np.repeat(value, times, axis=-3), attn_mask)


def decode_step(query, key, value, past, grouped):
    """Let new tokens attend to all tokens so far: put their keys and values behind the kept ones, and attend.

    query (h, n_new, d_k), key and value (g, n_new, d), and `past`, the (keys, values) of the tokens before, (g, n_past,
    d) with n_past = 0 at the start, give (h, n_new, d_v) and the (keys, values) of all tokens so far. `grouped` is
    called with query, all keys, all values, and a mask. From lesson one_token_at_a_time. The new tokens are the last
    ones, so the mask is lower right.

    >>> x, none = np.ones((1, 3, 2)), np.ones((1, 0, 2))
    >>> output, (keys, values) = decode_step(x, x, x, (none, none), core.scaled_dot_product_attention)
    >>> output.shape, keys.shape
    ((1, 3, 2), (1, 3, 2))
    """
    keys, values = (np.concatenate(pair, axis=-2) for pair in zip(past, (key, value), strict=True))
    mask = masks.causal_mask(query.shape[-2], keys.shape[-2], align="lower_right")
    return grouped(query, keys, values, mask), (keys, values)


@dataclass(frozen=True)
class Functions:
    """What a speaker calls in each layer; by default the functions of the series."""

    split_heads: Callable = heads.split_heads  # (x, num_heads): (n, h d_k) -> (h, n, d_k)
    merge_heads: Callable = heads.merge_heads  # (x): the way back
    rope: Callable = rotary.rope  # (x, positions, base): (h, n, d_k), (n,) -> (h, n, d_k); pairs are c and c + d_k/2
    # (query, key, value, past, grouped) -> (output, past); `grouped` is `grouped_attention` with the one below.
    decode_step: Callable = decode_step
    grouped_attention: Callable = grouped_attention  # (query, key, value, attn_mask, attention) -> output
    attention: Callable = core.scaled_dot_product_attention  # (query, key, value, attn_mask) -> output

    def checked_attention(self, query, key, value, attn_mask=None):
        """Call `attention`, and look at what it returns."""
        shape = (*query.shape[:-1], value.shape[-1])
        return call_checked("attention", self.attention, (query, key, value, attn_mask), shape)


FUNCTIONS = tuple(field.name for field in fields(Functions))


def _positive(value, name):
    if not (np.isscalar(value) and np.isreal(value) and 0 < value < np.inf):
        raise ValueError(f"{name} must be a positive number, got {value!r}. Fix: leave it out for the model's own.")
    return float(value)


def _heads(pairs, shape):
    by_layer = {}
    for layer, head in pairs:
        if not (1 <= layer <= shape.layers and 1 <= head <= shape.heads):
            raise ValueError(
                f"a head is (layer, head), counted from 1 to {shape.layers} and {shape.heads}; got ({layer}, {head}). "
                "Fix: both numbers count from 1."
            )
        by_layer.setdefault(layer - 1, []).append(head - 1)
    return by_layer


def _layers(numbers, shape):
    if outside := [number for number in numbers if number not in range(1, shape.layers + 1)]:
        raise ValueError(f"a layer is counted from 1 to {shape.layers}, got {outside[0]}. Fix: one of these.")
    return frozenset(number - 1 for number in numbers)


SETTINGS = {
    "scale": lambda value, shape: None if value is None else _positive(value, "scale"),
    "base": lambda value, shape: _positive(value, "base"),
    "window": lambda value, shape: None if value is None else validation.positive_int(value, "window"),
    "sink": lambda value, shape: value and validation.positive_int(value, "sink"),
    "without": _heads,
    "whole": _layers,
}


def call_checked(name, function, arguments, shape):
    """Call a function that was handed in, and return its result as `as_float32_or_raise` does."""
    return as_float32_or_raise(name, function(*arguments), shape)


def as_float32_or_raise(name, result, shape, rows=None):
    """Return what the function `name` gave as a float32 array, or raise; `rows`: look at the last ones only."""
    if not isinstance(result, np.ndarray) or result.dtype.kind != "f":
        got = f"an array of {result.dtype}" if isinstance(result, np.ndarray) else type(result).__name__
        raise TypeError(
            f"{name} must return a NumPy array of real numbers, shape {shape}, got {got}. "
            "Fix: look at what its last line returns."
        )
    if result.shape != shape:
        raise validation.ShapeError(
            f"{name} must return shape {shape} here, got {result.shape}. Fix: print the shapes inside your function."
        )
    new = result if rows is None else result[..., -rows:, :]
    if not np.isfinite(new).all():
        raise ValueError(
            f"{name} must return finite numbers, got {np.count_nonzero(~np.isfinite(new))} of {new.size:,} that are "
            "NaN or infinite. Fix: subtract the largest score before exp, and let each query attend to itself."
        )
    return result.astype(np.float32, copy=False)


def checked_step(result, output_shape, cache_shape):
    """Return what `decode_step` gave, (output, (keys, values)), or raise; of the cache only the last rows are new."""
    try:
        output, (keys, values) = result
    except (TypeError, ValueError):
        raise TypeError(
            f"decode_step must return (output, (keys, values)), got {type(result).__name__}. "
            "Fix: return output, (keys, values)."
        ) from None
    output = as_float32_or_raise("decode_step", output, output_shape)
    return output, tuple(as_float32_or_raise("decode_step", x, cache_shape, output_shape[-2]) for x in (keys, values))
