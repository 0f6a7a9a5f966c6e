"""Styles whose rows do not sum to 1, that read latents, take two masks, or see a window of a sequence."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from .self_attention import merge, split


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


class Sink(nn.Module):
    """Each head has a learned score for no key at all: a column that the softmax sees and the values do not."""

    def __init__(self, dim=32, heads=4, bug=None, start=0.0):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.sinks = nn.Parameter(torch.randn(heads) + start)

    def forward(self, x):
        q, k, v = (split(f(x), self.heads) for f in (self.q, self.k, self.v))
        scores = q @ k.mT * (x.shape[-1] if self.bug == "scale of embed_dim" else q.shape[-1]) ** -0.5
        mask = causal(x.shape[1])
        if self.bug == "sees the next token":
            mask = mask | mask.roll(1, 1).tril(1)
        if self.bug != "mask after the softmax":
            scores = scores.masked_fill(~mask, -torch.inf)
        sinks = self.sinks[:, None, None].expand(len(x), -1, x.shape[1], 1)
        weights = torch.cat([scores, sinks], -1).softmax(-1)[..., :-1]
        if self.bug == "mask after the softmax":
            weights = weights * mask
        return self.o(merge(weights @ v))


class PlusOne(nn.Module):
    """exp / (1 + sum of exp): a head may give all its keys next to nothing."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None and self.bug != "mask after the softmax":
            scores = scores.masked_fill(~mask[:, None], -torch.inf)
        top = scores.amax(-1, keepdim=True).clamp(min=0) * (self.bug != "exp without the maximum")
        weights = (scores - top).exp()
        axis = -2 if self.bug == "softmax over queries" else -1
        weights = weights / ((-top).exp() + weights.sum(axis, keepdim=True))
        if mask is not None and self.bug == "mask after the softmax":
            weights = weights * mask[:, None]
        return self.proj(merge(weights @ v))


class Differential(nn.Module):
    """The difference of two maps; what the second one is multiplied by is learned, or a constant."""

    def __init__(self, dim=32, heads=4, bug=None, fixed=False):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qk, self.v, self.o = nn.Linear(dim, 4 * dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.lam = torch.tensor(0.8) if fixed else nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        q1, q2, k1, k2 = (split(t, self.heads) for t in self.qk(x).chunk(4, -1))
        future = ~causal(x.shape[1])
        scores = [q @ k.mT * q.shape[-1] ** -0.5 for q, k in ((q1, k1), (q2, k2))]
        first = scores[0].masked_fill(future, -torch.inf).softmax(-1)
        if self.bug != "one map without the mask":
            scores[1] = scores[1].masked_fill(future, -torch.inf)
        weights = first - self.lam * scores[1].softmax(-1)
        return self.o(merge(weights @ split(self.v(x), self.heads)))


class Latents(nn.Module):
    """forward(x, latents): the latents ask, x answers, with `beside` the latents, too."""

    def __init__(self, dim=32, heads=4, beside=True, bug=None):
        super().__init__()
        self.heads, self.beside, self.bug = heads, beside, bug
        self.norm_x, self.norm_latents = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_q, self.to_kv, self.to_out = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x, latents):
        x, latents = self.norm_x(x), self.norm_latents(latents)
        read = torch.cat([x, latents], 1) if self.beside else x
        if self.bug == "x not read":
            read = latents + 0 * x.mean(1, keepdim=True)
        q = split(self.to_q(latents), self.heads)
        k, v = (split(t, self.heads) for t in self.to_kv(read).chunk(2, -1))
        scale = (latents if self.bug == "scale of the full width" else q).shape[-1] ** -0.5
        return self.to_out(merge((q @ k.mT * scale).softmax(-1) @ v))


class TwoMasks(nn.Module):
    """One mask of pairs, True = may attend, and one of padding, True = padding."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, query, key, value, attn_mask=None, key_padding_mask=None):
        q, k, v = (split(f(x), self.heads) for f, x in ((self.q, query), (self.k, key), (self.v, value)))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if attn_mask is not None and self.bug != "pairs ignored":
            if self.bug == "mask hides the token itself":
                attn_mask = attn_mask & ~torch.eye(*attn_mask.shape[-2:], dtype=torch.bool)
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        one_only = self.bug == "one or the other" and attn_mask is not None
        if key_padding_mask is not None and self.bug != "padding ignored" and not one_only:
            scores = scores.masked_fill(key_padding_mask[:, None, None], -torch.inf)
        return self.o(merge(scores.softmax(-1) @ v))


class Window(nn.Module):
    """(tokens, batch, features); each token sees itself and the two before it."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        over_batch = self.bug == "attends over the batch"
        x = x if over_batch else x.transpose(0, 1)
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT * (x.shape[-1] if self.bug == "scale of embed_dim" else q.shape[-1]) ** -0.5
        near = causal(x.shape[1]).triu(-2)
        if self.bug == "sees the next token":
            near = near.roll(1, 1).tril(1) | near
        y = self.o(merge(scores.masked_fill(~near, -torch.inf).softmax(-1) @ v))
        return y if over_batch else y.transpose(0, 1)


class NullKey(nn.Module):
    """A learned key and a learned value stand before those of the tokens."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.null = nn.Parameter(torch.randn(2, heads, 1, dim // heads))

    def forward(self, x, mask=None):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        k, v = (torch.cat([extra.expand(len(x), -1, -1, -1), t], 2) for extra, t in zip(self.null, (k, v), strict=True))
        if mask is not None:
            side = (0, 1) if self.bug == "mask one to the right" else (1, 0)
            mask = nn.functional.pad(mask, side, value=True)[:, None]
        return self.o(merge(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class TwoPaths(nn.Module):
    """The fused path, or the one written out, where weights are asked for or there is no mask: one answer from both."""

    def __init__(self, bug=None):
        super().__init__()
        self.bug, self.qkv, self.out, self.dropout = bug, nn.Linear(32, 96), nn.Linear(32, 32), nn.Dropout(0.1)

    def forward(self, x, attn_mask=None, need_weights=False):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        if attn_mask is not None and attn_mask.ndim == 3:
            attn_mask = attn_mask[:, None]
        if attn_mask is not None and self.bug == "a float mask read as boolean":
            attn_mask = attn_mask.bool()
        if self.bug == "no mask without gradients" and not torch.is_grad_enabled():
            attn_mask = None
        if need_weights or attn_mask is None:
            y, weights = self.written_out(q, k, v, attn_mask)
        else:
            rate = self.dropout.p if self.training else 0.0
            y, weights = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p=rate), None
        y = self.out(y.transpose(1, 2).flatten(2))
        return (y, weights) if need_weights else y

    def written_out(self, q, k, v, attn_mask):
        scores = q @ k.mT * (1 if self.bug == "a fallback without the scale" else 8**-0.5)
        if self.bug == "a scale while training" and self.training:
            scores = scores / 2
        if attn_mask is not None and self.bug != "weights without the mask":
            scores = scores.masked_fill(~attn_mask, -torch.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
        weights = self.dropout(scores.softmax(-1))
        return weights @ v, weights
