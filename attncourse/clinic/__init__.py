"""The bug clinic: attention modules with one bug each. None raises; each looks healthy.

`Attention` is healthy, cut into one method per step; a patient replaces one or two of them. `CASES` has the numbers of
the casebook, and says which probes of `attnlib.diagnose` catch which patient. `Decoder` is healthy, too,
and goes on in a cache; its patients are `DECODERS`. `healthy`, `twins` and `cured` give the modules
that stand beside a patient.
"""

import math
from typing import NamedTuple

import torch
from torch import nn

from attnlib.torch_layers import KVCache


class Attention(nn.Module):
    """Multi-head attention without a bug: forward(query, key=None, value=None, attn_mask=None) -> (output, weights).

    `attn_mask` is boolean, True = may attend: (n_q, n_k) or (b, n_q, n_k).

    >>> output, weights = Attention(16, 4)(torch.ones(2, 5, 16))
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 16]), torch.Size([2, 4, 5, 5]))
    """

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.d_k = embed_dim // num_heads
        self.make_projections()
        self.W_O = nn.Linear(embed_dim, embed_dim)

    def make_projections(self):
        sizes = self.embed_dim, self.embed_dim
        self.W_Q, self.W_K, self.W_V = (nn.Linear(*sizes, bias=False) for _ in range(3))

    def forward(self, query, key=None, value=None, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.project(query, key, value)  # (b, h, n, d_k) each
        weights = self.weights(self.scaled_scores(q, k), attn_mask)  # (b, h, n_q, n_k)
        return self.W_O(self.merge(weights @ v)), weights  # (b, n_q, embed_dim)

    def project(self, query, key, value):
        q, k, v = self.W_Q(query), self.W_K(key), self.W_V(value)
        return self.split(q), self.split(k), self.split(v)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(-2, -3)

    def scaled_scores(self, q, k):
        return q @ k.transpose(-1, -2) / self.divisor(q)

    def divisor(self, q):
        return math.sqrt(self.d_k)

    def weights(self, scaled_scores, attn_mask):
        return self.softmax(self.masked_scores(scaled_scores, attn_mask))

    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        return scaled_scores.masked_fill(~self.with_head_axis(attn_mask), -torch.inf)

    def with_head_axis(self, mask):
        return mask[:, None] if mask.ndim == 3 else mask

    def softmax(self, masked_scores):
        return masked_scores.softmax(-1).nan_to_num()  # a fully masked row: 0

    def merge(self, x):
        return x.transpose(-2, -3).flatten(-2)


class ScaleByEmbedDim(Attention):
    def divisor(self, q):
        return math.sqrt(self.embed_dim)


class NoScale(Attention):
    def scaled_scores(self, q, k):
        return q @ k.transpose(-1, -2)


class NoScaleWithMask(Attention):
    """Behind a mask another path runs, which forgot the scale: its scores are sqrt(d_k) times as large."""

    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        return super().masked_scores(scaled_scores * math.sqrt(self.d_k), attn_mask)


class ScaleByFirstAxis(Attention):
    """Reads "d_k" from shape[1], as code written for (tokens, d_k) does; here that is the number of heads."""

    def divisor(self, q):
        return math.sqrt(q.shape[1])


class SharedSmallProjection(Attention):
    """One Linear(d_k, d_k) for Q, one for K, one for V, used by every head on its own slice."""

    def make_projections(self):
        sizes = self.d_k, self.d_k
        self.W_Q, self.W_K, self.W_V = (nn.Linear(*sizes, bias=False) for _ in range(3))

    def project(self, query, key, value):
        return self.W_Q(self.split(query)), self.W_K(self.split(key)), self.W_V(self.split(value))


class CopiedHeads(Attention):
    """Every head starts as a copy of the first; only W_O tells them apart."""

    def make_projections(self):
        super().make_projections()
        with torch.no_grad():
            for linear in (self.W_Q, self.W_K, self.W_V):
                linear.weight.copy_(linear.weight[: self.d_k].repeat(self.num_heads, 1))


class ProjectionsUnused(Attention):
    """Makes projections Linear(d_k, embed_dim), which fit neither the tokens nor W_O, and attends with the tokens."""

    def make_projections(self):
        sizes = self.d_k, self.embed_dim
        self.W_Q, self.W_K, self.W_V = (nn.Linear(*sizes, bias=False) for _ in range(3))

    def project(self, query, key, value):
        return self.split(query), self.split(key), self.split(value)


class FiniteFill(Attention):
    def masked_scores(self, scaled_scores, attn_mask):
        if attn_mask is None:
            return scaled_scores
        return scaled_scores.masked_fill(~self.with_head_axis(attn_mask), -1e20)


class NaNOnFullyMasked(Attention):
    def softmax(self, masked_scores):
        return masked_scores.softmax(-1)


class SwappedQueryValue(Attention):
    def forward(self, values, keys=None, query=None, attn_mask=None):
        return super().forward(values if query is None else query, keys, values, attn_mask)


class PaddingReadAsQueries(Attention):
    """Takes a padding mask (b, n), and uses it on the (b, h, n_q, n_k) scores as it is."""

    def forward(self, query, key=None, value=None, padding=None):
        return super().forward(query, key, value, padding)


class UnstableSoftmax(Attention):
    def softmax(self, masked_scores):
        e = masked_scores.exp()
        return e / e.sum(-1, keepdim=True).clamp(min=1e-6)


class SoftmaxOverQueries(Attention):
    def softmax(self, masked_scores):
        return masked_scores.softmax(-2).nan_to_num()


class RoundedWeights(Attention):
    def softmax(self, masked_scores):
        return (10 * super().softmax(masked_scores)).round() / 10


class MaskInverted(Attention):
    def with_head_axis(self, mask):
        return ~(mask[:, None] if mask.ndim == 3 else mask)


class MaskIgnored(Attention):
    def masked_scores(self, scaled_scores, attn_mask):
        return scaled_scores


class MaskAfterSoftmax(Attention):
    def weights(self, scaled_scores, attn_mask):
        weights = self.softmax(scaled_scores)
        return weights if attn_mask is None else weights * self.with_head_axis(attn_mask)


class OneMaskForFirstHeadOnly(Attention):
    def masked_scores(self, scaled_scores, attn_mask):
        return torch.cat([super().masked_scores(scaled_scores[:, :1], attn_mask), scaled_scores[:, 1:]], dim=1)


class DoubleSoftmax(Attention):
    """The second softmax turns a weight of 0 into exp(0), so that blocked keys are back."""

    def softmax(self, masked_scores):
        return super().softmax(masked_scores).softmax(-1)


class ContextIgnored(Attention):
    """Makes keys and values from the query: right in self-attention, and nowhere else."""

    def project(self, query, key, value):
        return super().project(query, query, query)


class SplitWithoutTranspose(Attention):
    def split(self, x):
        return x.reshape(*x.shape[:-2], self.num_heads, x.shape[-2], self.d_k)


class MergeWithoutTranspose(Attention):
    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


class CentredOverBatch(Attention):
    """Subtracts a mean over axis 0, which was the tokens until somebody added a batch."""

    def merge(self, x):
        x = super().merge(x)
        return x - x.mean(0)


class DropoutAlways(Attention):
    def softmax(self, masked_scores):
        return nn.functional.dropout(super().softmax(masked_scores), 0.1)


class MutatesInput(Attention):
    def forward(self, query, key=None, value=None, attn_mask=None):
        key = query.clone() if key is None or key is query else key
        value = key if value is None or value is query else value
        query /= math.sqrt(self.d_k)
        return super().forward(query, key, value, attn_mask)

    def divisor(self, q):
        return 1


class Decoder(Attention):
    """Causal self-attention without a bug that adds places and goes on in a cache: forward(x, cache=None).

    >>> module, cache, x = Decoder(16, 4), KVCache(), torch.ones(2, 5, 16)
    >>> steps = [module(token, cache)[0] for token in x.split(1, dim=1)]
    >>> torch.allclose(torch.cat(steps, 1), module(x)[0], atol=1e-6)
    True
    """

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.places = nn.Parameter(torch.randn(64, embed_dim))

    def forward(self, x, cache=None):
        cache, n = KVCache() if cache is None else cache, x.shape[1]
        start = self.start(cache)
        x = x + self.places[start : start + n]
        q, k, v = self.project(x, x, x)  # (b, h, n, d_k) each
        k, v = self.keep(cache, k, v)  # those of all tokens so far, (b, h, n_k, d_k)
        weights = self.weights(self.scaled_scores(q, k), self.causal(n, k.shape[-2]))  # (b, h, n, n_k)
        return self.W_O(self.merge(weights @ v)), weights  # (b, n, embed_dim)

    def start(self, cache):
        return len(cache)

    def keep(self, cache, k, v):
        return cache.append(k, v)

    def causal(self, n_q, n_k):
        return torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)


class PlacesRestart(Decoder):
    def start(self, cache):
        return 0


class PlacesOneAhead(Decoder):
    """Counts the new token as one that the cache holds already, once there is anything in it."""

    def start(self, cache):
        return len(cache) + 1 if len(cache) else 0


class ChunkUpperLeft(Decoder):
    def causal(self, n_q, n_k):
        return torch.ones(n_q, n_k, dtype=torch.bool).tril()


class PastOfFirstSequence(Decoder):
    """Shares what was kept of sequence 0 with all others, as if all had the prompt in common."""

    def keep(self, cache, k, v):
        new = k.shape[-2]
        both = super().keep(cache, k, v)
        return tuple(torch.cat([x[:1, :, :-new].expand_as(x[:, :, :-new]), x[:, :, -new:]], -2) for x in both)


class Case(NamedTuple):
    """A patient: its bug, where that was met, and all probes of `diagnose` that see it, the telling one first."""

    bug: str
    module: type
    source: str
    caught_by: tuple


# The names say nothing, so a patient can be handed out by name. 33 to 35 are those of its exercises.
CASES = {
    "case_01": Case("mask_inverted", MaskInverted, "common", ("mask polarity",)),
    "case_02": Case("mask_ignored", MaskIgnored, "common", ("causality", "padding", "fully masked row")),
    "case_03": Case("mask_after_softmax", MaskAfterSoftmax, "common", ("row sums",)),
    "case_04": Case("projections_unused", ProjectionsUnused, "S2", ("dead parameters",)),
    "case_05": Case("centred_over_batch", CentredOverBatch, "S1", ("batch consistency",)),
    "case_06": Case("scale_by_embed_dim", ScaleByEmbedDim, "S0, S2", ("score scale",)),
    "case_07": Case("softmax_over_queries", SoftmaxOverQueries, "common", ("row sums",)),
    "case_09": Case("shared_small_projection", SharedSmallProjection, "S0", ("heads differ",)),
    "case_10": Case("swapped_query_value", SwappedQueryValue, "S0", ("argument order",)),
    "case_11": Case("padding_read_as_queries", PaddingReadAsQueries, "S0", ("padding",)),
    "case_12": Case("finite_fill", FiniteFill, "S0, S2", ("fully masked row", "float16")),
    "case_14": Case("nan_on_fully_masked", NaNOnFullyMasked, "common", ("fully masked row",)),
    "case_16": Case("dropout_always", DropoutAlways, "common", ("determinism",)),
    "case_17": Case("mutates_input", MutatesInput, "common", ("inputs untouched",)),
    "case_18": Case("copied_heads", CopiedHeads, "common", ("heads differ",)),
    "case_19": Case("split_without_transpose", SplitWithoutTranspose, "common", ("permutation",)),
    "case_20": Case("merge_without_transpose", MergeWithoutTranspose, "common", ("permutation",)),
    "case_21": Case("scale_by_first_axis", ScaleByFirstAxis, "S1", ("score scale",)),
    "case_22": Case("unstable_softmax", UnstableSoftmax, "S1", ("large inputs",)),
    "case_23": Case("no_scale", NoScale, "S3", ("score scale",)),
    "case_25": Case("rounded_weights", RoundedWeights, "S3", ("row sums",)),
    "case_29": Case("no_scale_with_mask", NoScaleWithMask, "common", ("one answer",)),
    "case_33": Case("double_softmax", DoubleSoftmax, "common", ("causality", "padding")),
    "case_34": Case("context_ignored", ContextIgnored, "common", ("keys matter", "values apart")),
    "case_35": Case("one_mask_for_first_head_only", OneMaskForFirstHeadOnly, "common", ("causality", "padding")),
}

DECODERS = {
    "places_restart": Case("places_restart", PlacesRestart, "common", ("cache",)),
    "chunk_upper_left": Case("chunk_upper_left", ChunkUpperLeft, "common", ("cache",)),
    "places_one_ahead": Case("places_one_ahead", PlacesOneAhead, "common", ("cache",)),
    "past_of_first_sequence": Case("past_of_first_sequence", PastOfFirstSequence, "common", ("cache",)),
}


def fresh(kind, embed_dim=24, num_heads=4, seed=0):
    """Return ``kind(embed_dim, num_heads)``, with the same weights at each call; torch's own state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would also seed every GPU, and is slower
        return kind(embed_dim, num_heads)


def healthy(embed_dim=24, num_heads=4):
    """Return an `Attention`, the same at each call."""
    return fresh(Attention, embed_dim, num_heads)


def cured(sick):
    """Return an `Attention` with the weights of `sick`, a module of this clinic; ValueError where they do not fit.

    >>> sick = MaskIgnored(24, 4)
    >>> torch.equal(cured(sick).W_Q.weight, sick.W_Q.weight)
    True
    """
    fixed = healthy(sick.embed_dim, sick.num_heads)
    shape, needed = (tuple(module.W_Q.weight.shape) for module in (sick, fixed))
    if shape != needed:
        raise ValueError(
            f"W_Q must be {needed} for a healthy module, got {shape}. "
            "Fix: compare with healthy(), which has weights of its own."
        )
    fixed.load_state_dict(sick.state_dict())
    return fixed


def twins(name):
    """Return the case `name` of `CASES`, 24 features and 4 heads, and a healthy module with the same weights."""
    broken = fresh(CASES[name].module)
    return broken, cured(broken)
