"""Bugs met in public that are no cases of the clinic: each a module of it with one method replaced.

The page Cases by symptom measures them as it does the cases. `TOLD` says where the series makes the same mistake: in an
exercise whose check names it, or under a heading.
"""

import torch

from attncourse.clinic import Attention, Case, Decoder
from attnlib.torch_layers import KVCache


def rotate(x, start):
    """Return (..., n, d_k) with feature c and feature c + d_k / 2 rotated as a pair, the first token at `start`."""
    half = x.shape[-1] // 2
    angles = torch.arange(start, start + x.shape[-2])[:, None] * 10_000.0 ** (-torch.arange(half) / half)
    a, b = x.split(half, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


class Rotary(Decoder):
    """A decoder without a bug whose positions rotate queries and keys; the cache keeps rotated keys."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        del self.places

    def forward(self, x, cache=None):
        cache = KVCache() if cache is None else cache
        q, k, v = self.project(x, x, x)  # (b, h, n, d_k) each
        q = rotate(q, len(cache))
        k, v = self.keep(cache, k, v)
        weights = self.weights(self.scaled_scores(q, k), self.causal(q.shape[-2], k.shape[-2]))
        return self.W_O(self.merge(weights @ v)), weights

    def keep(self, cache, k, v):
        return cache.append(rotate(k, len(cache)), v)


class KeysRotatedTwice(Rotary):
    """Rotates all keys at each step, and those of the cache have been rotated before."""

    def keep(self, cache, k, v):
        k, v = cache.append(k, v)
        cache.key = rotate(k, 0)
        return cache.key, v


class HiddenScoresZero(Attention):
    """A score of 0 still gets weight, since exp(0) = 1. It takes -inf."""

    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        return scaled_scores * self.with_head_axis(attn_mask)


class MaskAddedAsNumbers(Attention):
    """True adds 1 to a score and False adds 0, so no key is blocked."""

    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        return scaled_scores + self.with_head_axis(attn_mask)


class MinusInfinityAdded(Attention):
    """Output and loss are finite, and after one step W_Q and W_K are NaN: `nan_to_num` mends the way there, not the way
    back. Fill in with `masked_fill`.
    """

    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        allowed = self.with_head_axis(attn_mask)
        return scaled_scores + scaled_scores.new_zeros(allowed.shape).masked_fill(~allowed, -torch.inf)


class BatchFirstForgotten(Attention):
    """`nn.MultiheadAttention(embed_dim, num_heads)` without `batch_first=True` does this to (b, n, features): a token
    attends to those at its own position in the other texts, and to no other of its own text.
    """

    def forward(self, query, key=None, value=None):
        key = query if key is None else key
        value = key if value is None else value
        output, weights = super().forward(*(x.transpose(0, 1) for x in (query, key, value)))
        return output.transpose(0, 1), weights


RELATIVES = {
    "hidden_scores_zero": Case("hidden_scores_zero", HiddenScoresZero, "common", ("causality", "padding")),
    "mask_added_as_numbers": Case("mask_added_as_numbers", MaskAddedAsNumbers, "common", ("mask polarity",)),
    "minus_infinity_added": Case("minus_infinity_added", MinusInfinityAdded, "common", ("fully masked row",)),
    "batch_first_forgotten": Case("batch_first_forgotten", BatchFirstForgotten, "common", ("layout",)),
    "keys_rotated_twice": Case("keys_rotated_twice", KeysRotatedTwice, "common", ("cache",)),
}

# {name: (exercise whose check names the mistake, its name there), or (notebook, heading that tells of it)}
TOLD = {
    "hidden_scores_zero": ("masked_softmax", "mask_multiplies_scores"),
    "mask_added_as_numbers": ("masked_softmax", "mask_added_as_numbers"),
    "minus_infinity_added": ("MultiHeadAttention", "dead_row_poisons_gradients"),
    "batch_first_forgotten": ("vectorized", "Batches: which axis is which?"),
    "keys_rotated_twice": ("todays_head", "4 · Is that the real thing?"),
}
