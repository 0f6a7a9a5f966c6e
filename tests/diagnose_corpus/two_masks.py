"""The commonest signature: one sequence, a mask of pairs and a mask of padding; and what is said and must be held."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .self_attention import merge, split


class BothMasks(nn.Module):
    """forward(x, attn_mask=None, key_padding_mask=None): True in the first means may attend, in the second padding."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if attn_mask is not None:
            scores = self.pairs(scores, attn_mask if attn_mask.ndim == 2 else attn_mask[:, None])
        if key_padding_mask is not None:
            scores = self.padding(scores, key_padding_mask)
        return self.proj(merge(scores.softmax(-1) @ v))

    def pairs(self, scores, mask):
        if self.bug == "pairs ignored":
            return scores
        if self.bug == "pairs transposed":
            mask = mask.mT
        if self.bug == "first head only":
            return torch.cat([scores[:, :1].masked_fill(~mask, -torch.inf), scores[:, 1:]], 1)
        if self.bug == "first sample for all" and mask.ndim == 4:
            mask = mask[:1]
        return scores.masked_fill(~mask, 0.0 if self.bug == "pairs filled with 0" else -torch.inf)

    def padding(self, scores, padded):
        if self.bug == "padding ignored":
            return scores
        if self.bug == "padding of the first sample for all":
            padded = padded[:1]
        if self.bug == "padding on the queries":
            return scores.masked_fill(padded[:, None, :, None], -1e9)
        return scores.masked_fill(padded[:, None, None], 0.0 if self.bug == "padding filled with 0" else -torch.inf)


class AddedAndFilled(nn.Module):
    """The first mask is added, the second one keeps what is 1."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, hidden, mask=None, padding_mask=None):
        q, k, v = (split(f(hidden), self.heads) for f in (self.q, self.k, self.v))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            mask = mask.mT if self.bug == "pairs transposed" else mask
            heads = 1 if self.bug == "first head only" else self.heads
            scores = torch.cat([scores[:, :heads] + mask, scores[:, heads:]], 1)
        if padding_mask is not None:
            keep = (
                padding_mask[:, None, :, None] if self.bug == "padding on the queries" else padding_mask[:, None, None]
            ) != 0
            scores = scores.masked_fill(~keep, 0.0 if self.bug == "padding filled with 0" else -1e9)
        return self.o(merge(scores.softmax(-1) @ v))


class Plain(nn.Module):
    """Nothing but attention; `bug` says what is left out or done in another place."""

    def __init__(self, dim=32, heads=4, bug=None, positions=False):
        super().__init__()
        self.heads, self.bug = (2 * heads if bug == "twice the heads" else 1 if bug == "one head" else heads), bug
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.drop, self.places = nn.Dropout(0.1), nn.Parameter(torch.randn(64, dim)) if positions else None
        for name, layer in (("W_Q", self.q), ("W_K", self.k), ("W_V", self.v)):
            if bug == f"{name} is 0":
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
            if bug == f"{name} frozen":
                layer.requires_grad_(False)

    def forward(self, x, mask=None):
        if self.places is not None and self.bug != "places not added":
            x = x + self.places[: x.shape[1]]
        q, k, v = (split(f(x), self.heads) for f in (self.q, self.k, self.v))
        k = k.detach() if self.bug == "k detached" else k
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = self.masked(scores, mask)
        return self.o(
            merge(self.drop(self.weights(scores)) @ v).squeeze()
            if self.bug == "squeeze"
            else merge(self.drop(self.weights(scores)) @ v)
        )

    def masked(self, scores, mask):
        if self.bug == "boolean mask added":
            return scores + mask[:, None].float()
        if self.bug == "mask changed in place":
            mask |= torch.eye(mask.shape[-1], dtype=torch.bool)
        return scores.masked_fill(~mask[:, None], -torch.inf)

    def weights(self, scores):
        if self.bug == "no softmax":
            return scores
        if self.bug == "sigmoid":
            return scores.sigmoid()
        if self.bug == "global maximum":
            weights = (scores - scores.max()).exp()
            return weights / (weights.sum(-1, keepdim=True) + 1e-9)
        if self.bug == "dropout on the scores":
            scores = self.drop(scores)
        return scores.softmax(0 if self.bug == "softmax over the batch" else -1)


class CausalPlaces(nn.Module):
    """Causal, with learned places added, unless they are forgotten."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o, self.wpe = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Embedding(64, dim)

    def forward(self, x):
        place = self.wpe(torch.arange(x.shape[1]))
        x = x + (place.mean(0) if self.bug == "the same place for all" else place)
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        return self.o(merge(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


class Past(nn.Module):
    """past in, (keys, values) out, the same places each time."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, past=None):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        if past is not None and self.bug != "past ignored":
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        shown = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=shown)
        if self.bug == "last entry lost":
            k, v = k[:, :, :-1], v[:, :, :-1]
        if self.bug == "last key lost":
            k = k[:, :, :-1]
        return self.o(merge(y)), (k, v)


class StartPos(nn.Module):
    """forward(x, start_pos): buffers inside hold keys and values, positions rotate."""

    def __init__(self, dim=32, heads=4, bug=None, longest=64):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        for name in ("cache_k", "cache_v"):
            self.register_buffer(name, torch.zeros(16, longest, heads, dim // heads))

    def rotate(self, x, start):
        half = x.shape[-1] // 2
        angle = (torch.arange(x.shape[1]) + start)[:, None, None] * 100.0 ** (-torch.arange(half) / half)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, x, start_pos):
        b, n, _ = x.shape
        q, k, v = (f(x).view(b, n, self.heads, -1) for f in (self.wq, self.wk, self.wv))
        place = 0 if self.bug == "positions restart" else start_pos
        q, k = self.rotate(q, place), self.rotate(k, place)
        self.cache_k, self.cache_v = self.cache_k.to(x.dtype), self.cache_v.to(x.dtype)
        self.cache_k[:b, start_pos : start_pos + n] = k.detach()
        self.cache_v[:b, start_pos : start_pos + n] = v.detach()
        old = start_pos - (self.bug == "last entry lost" and start_pos > 0)
        k, v = torch.cat([self.cache_k[:b, :old], k], 1), torch.cat([self.cache_v[:b, :old], v], 1)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        shown = torch.ones(n, k.shape[2], dtype=torch.bool).tril(k.shape[2] - n)
        return self.wo(merge(F.scaled_dot_product_attention(q, k, v, attn_mask=shown)))


class Granite(nn.Module):
    """A multiplier of the scores of its own, 1/head_dim."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.multiplier = heads, (1 / dim if bug == "scale of embed_dim" else heads / dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def forward(self, hidden_states, attention_mask=None):
        q, k, v = (split(f(hidden_states), self.heads) for f in (self.q, self.k, self.v))
        scores = q @ k.mT * self.multiplier
        scores = scores if attention_mask is None else scores + attention_mask
        return self.o(merge(scores.softmax(-1) @ v)), None
