"""Mistakes of earlier lessons, made in the model: each is what `Speaker.using` takes.

A mistake replaces one function by one that somebody has written, or one setting; everything else stays right. So its
cause is known, and the text and the loss show what it does to a model that was trained without it.
"""

from functools import partial

import numpy as np

from attnlib import core, masks, rotary


def _attention(change):
    """Attention with another way from scores and mask to weights."""

    def attention(query, key, value, attn_mask=None):
        scores = query @ np.swapaxes(key, -1, -2) / np.float32(np.sqrt(query.shape[-1]))
        return change(scores, attn_mask) @ value

    return attention


def _lower_right(n_q, n_k):
    return masks.causal_mask(n_q, n_k, align="lower_right")


def _step(mask=_lower_right, values=None):
    """A step with another mask, or with values that are changed before they are kept."""

    def decode_step(query, key, value, past, attention):
        value = value if values is None else values(value, past[1].shape[-2])
        keys, all_values = (np.concatenate(pair, axis=-2) for pair in zip(past, (key, value), strict=True))
        return attention(query, keys, all_values, mask(query.shape[-2], keys.shape[-2])), (keys, all_values)

    return decode_step


def _tile_heads(query, key, value, attn_mask, attention):
    times = query.shape[-3] // key.shape[-3]
    return attention(query, *(np.tile(x, (times, 1, 1)) for x in (key, value)), attn_mask)


def _first_group(query, key, value, attn_mask, attention):
    return attention(query, *(np.repeat(x[:1], len(query), axis=0) for x in (key, value)), attn_mask)


def _in_the_order_of_the_file(x, positions, base):
    """Rotate as if W_Q and W_K had been taken from the file as they are: the features of a pair side by side."""
    pairs = np.stack(np.split(x, 2, axis=-1), axis=-1)
    return rotary.rope(pairs.reshape(x.shape), positions, base)


def _one_side(x, positions, base):
    """Rotate the queries and leave the keys, which have fewer heads."""
    return rotary.rope(x, positions, base) if len(x) == 9 else x


# name: what is changed
FAULTS = {
    "no scale": {"scale": 1.0},
    "1/d_k": {"scale": 1 / 64},
    "no causal mask": {"decode_step": _step(lambda n_q, n_k: np.ones((n_q, n_k), dtype=bool))},
    "a token does not see itself": {"decode_step": _step(lambda n_q, n_k: np.tri(n_q, n_k, n_k - n_q - 1, dtype=bool))},
    "blocked after the softmax": {"attention": _attention(lambda scores, mask: core.softmax(scores) * mask)},
    "softmax over the queries": {
        "attention": _attention(lambda scores, mask: core.softmax(masks.apply_mask(scores, mask), axis=-2))
    },
    "1/sqrt(576), the whole width": {"scale": 1 / np.sqrt(576)},
    "heads cut by reshape alone": {"split_heads": lambda x, num_heads: x.reshape(num_heads, len(x), -1)},
    "heads joined by reshape alone": {"merge_heads": lambda x: x.reshape(x.shape[1], -1)},
    "grouped heads tiled": {"grouped_attention": _tile_heads},
    "the first group serves all": {"grouped_attention": _first_group},
    "window of 8": {"window": 8},
    "positions restart with the cache": {
        "rope": lambda x, positions, base: rotary.rope(x, positions - positions[0], base)
    },
    "upper-left mask with the cache": {
        "decode_step": _step(lambda n_q, n_k: masks.causal_mask(n_q, n_k, align="upper_left"))
    },
    "the past is not looked at": {
        "decode_step": _step(lambda n_q, n_k: _lower_right(n_q, n_k) & (np.arange(n_k) >= n_k - n_q))
    },
    "no rotary positions": {"rope": lambda x, positions, base: x},
    "only the queries rotated": {"rope": _one_side},
    "rotated the other way": {"rope": lambda x, positions, base: rotary.rope(x, -positions, base)},
    "values rotated, too": {
        "decode_step": _step(values=lambda x, start: rotary.rope(x, start + np.arange(x.shape[-2]), 1e5))
    },
    "neighbours paired": {"rope": partial(rotary.rope, pairing="neighbours")},
    "W_Q and W_K in the file's order": {"rope": _in_the_order_of_the_file},
    "base 10,000": {"base": 10_000.0},
    "base 1,000,000": {"base": 1_000_000.0},
}
# These do nothing to a text that is read at once: their loss is measured as a text is written, token by token.
WITH_THE_CACHE = ("positions restart with the cache", "upper-left mask with the cache", "the past is not looked at")
