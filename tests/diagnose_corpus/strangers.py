"""Styles written down after `diagnose` was mended for the others, and before it had seen them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .layers import Attend
from .self_attention import FusedCausal, merge, split


class Block(nn.Module):
    """A whole layer, norms first, with torch's attention inside and a mask True = padding handed on."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.ln1, self.ln2, self.bug = nn.LayerNorm(dim), nn.LayerNorm(dim), bug
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(inplace=bug == "writes into the input"))
        self.out = nn.Linear(4 * dim, dim)

    def forward(self, x, src_key_padding_mask=None):
        if self.bug == "writes into the input":
            x.mul_(1.5)
        mask = src_key_padding_mask
        if self.bug == "padding inverted" and mask is not None:
            mask = ~mask
        if self.bug == "padding not handed on":
            mask = None
        y = self.ln1(x)
        x = x + self.attn(y, y, y, key_padding_mask=mask, need_weights=False)[0]
        return x + self.out(self.mlp(self.ln2(x)))


def stack(bug=None):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)


class Model(nn.Module):
    """Three causal layers, one behind another."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.layers = nn.ModuleList([FusedCausal(dim, heads) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(3)])
        if bug == "the last one sees the next token":
            self.layers[2] = FusedCausal(dim, heads, bug="sees the next token")

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return x


class Alibi(nn.Module):
    """Causal, with a penalty for distance."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        slopes = 2.0 ** -torch.arange(1, heads + 1)
        self.register_buffer("slopes", slopes * (bug != "slopes of 0"))

    def forward(self, x):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        i = torch.arange(x.shape[1])
        scores = q @ k.mT / math.sqrt(q.shape[-1]) - self.slopes[:, None, None] * (i[:, None] - i)
        hidden = i[:, None] <= i if self.bug == "hides itself" else i[:, None] < i
        scores = scores.masked_fill(hidden, -torch.inf)
        return self.o(merge(scores.softmax(-1) @ v))


class ComplexRope(nn.Module):
    """Rotary positions by complex numbers, grouped heads."""

    def __init__(self, dim=32, heads=4, kv=2, bug=None):
        super().__init__()
        self.heads, self.kv, self.bug = heads, kv, bug
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wkv = nn.Linear(dim, 2 * kv * dim // heads, bias=False)

    def rope(self, x):
        d, n = x.shape[-1] // 2, x.shape[2]
        place = torch.zeros(n) if self.bug == "places of 0" else torch.arange(n)
        turn = torch.polar(torch.ones(n, d), torch.outer(place, 100.0 ** (-torch.arange(d) / d)))
        z = torch.view_as_complex(x.unflatten(-1, (d, 2)).contiguous()) * turn.to(torch.complex128)
        return torch.view_as_real(z).flatten(-2).to(x.dtype)

    def forward(self, x, mask=None):
        q = self.rope(split(self.wq(x), self.heads))
        k, v = (split(t, self.kv).repeat_interleave(self.heads // self.kv, 1) for t in self.wkv(x).chunk(2, -1))
        mask = None if mask is None else mask[:, None]
        scale = 1.0 if self.bug == "no scale" else None
        return self.wo(merge(F.scaled_dot_product_attention(q, self.rope(k), v, attn_mask=mask, scale=scale)))


class Grouped(nn.Module):
    """Keys that a group of heads shares, without copies: five axes."""

    def __init__(self, dim=32, heads=4, kv=2, bug=None):
        super().__init__()
        self.kv, self.g, self.bug = kv, heads // kv, bug
        self.q, self.k, self.v = (
            nn.Linear(dim, dim),
            nn.Linear(dim, dim * kv // heads),
            nn.Linear(dim, dim * kv // heads),
        )
        self.o = nn.Linear(dim, dim)

    def forward(self, hidden_states, attention_mask=None):
        b, n, d = hidden_states.shape
        q = self.q(hidden_states).view(b, n, self.kv, self.g, -1)
        k, v = self.k(hidden_states).view(b, n, self.kv, -1), self.v(hidden_states).view(b, n, self.kv, -1)
        width = d if self.bug == "scale of embed_dim" else q.shape[-1]
        scores = torch.einsum("bikgd,bjkd->bkgij", q, k) / width**0.5
        if attention_mask is not None:
            keep = (
                attention_mask[:, None, None, :, None]
                if self.bug == "mask on the queries"
                else attention_mask[:, None, None, None]
            )
            scores = scores.masked_fill(~keep.bool(), torch.finfo(scores.dtype).min)
        weights = scores.softmax(-2 if self.bug == "softmax over queries" else -1)
        return self.o(torch.einsum("bkgij,bjkd->bikgd", weights, v).flatten(2))


class Online(nn.Module):
    """Blocks of keys one after another, a running maximum: no whole row of weights is ever there."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        top, total, out = torch.full(q.shape[:-1], -torch.inf, dtype=x.dtype)[..., None], 0.0, 0.0
        for keys, values in zip(k.split(2, 2), v.split(2, 2), strict=True):
            scores = q @ keys.mT * q.shape[-1] ** -0.5
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            old = 1.0 if self.bug == "old sums not rescaled" else (top - new).exp()
            weights, top = (scores - new).exp(), new
            total, out = total * old + weights.sum(-1, keepdim=True), out * old + weights @ values
        return self.o(merge(out / total))


class Latent(nn.Module):
    """Keys and values by way of a narrow latent."""

    def __init__(self, dim=32, heads=4, rank=8, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.down, self.norm = nn.Linear(dim, dim), nn.Linear(dim, rank), nn.LayerNorm(rank)
        self.up, self.o = nn.Linear(rank, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x, past_key_value=None):
        latent = self.norm(self.down(x))
        if past_key_value is not None:
            past = past_key_value[0]
            latent = torch.cat([latent, past] if self.bug == "past behind" else [past, latent], 1)
        k, v = (split(t, self.heads) for t in self.up(latent).chunk(2, -1))
        q = split(self.q(x), self.heads)
        shown = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        if self.bug == "one key too many":
            shown = torch.ones_like(shown).tril(k.shape[2] - q.shape[2] + 1)
        return self.o(merge(F.scaled_dot_product_attention(q, k, v, attn_mask=shown))), (latent, latent)


class Capped(nn.Module):
    """tanh keeps the scores small, a sigmoid gate the outputs."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.k, self.v, self.gate, self.o = (nn.Linear(dim, dim) for _ in range(5))

    def forward(self, x, attn_bias=None):
        q, k, v = (split(f(x), self.heads) for f in (self.q, self.k, self.v))
        scores = q @ (
            k.reshape(*k.shape[:2], k.shape[3], k.shape[2]) if self.bug == "reshape for a transpose" else k.mT
        )
        scores = 30 * torch.tanh(scores / math.sqrt(q.shape[-1]) / 30)
        if attn_bias is not None:
            scores = scores + attn_bias
        weights = scores.softmax(-1) * (q.shape[-1] ** -0.5 if self.bug == "scaled after the softmax" else 1)
        return self.o(merge(weights @ v) * self.gate(x).sigmoid())


class TopK(nn.Module):
    """Each query keeps its three largest scores."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        least = scores.topk(3, -1).values[..., -1:]
        return self.o(merge(scores.masked_fill(scores < least, -torch.inf).softmax(-1) @ v))


class ShawKeys(nn.Module):
    """Keys of distances beside those of tokens."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.o, self.far = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), nn.Embedding(33, dim // heads)

    def forward(self, x, mask=None):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        i = torch.arange(x.shape[1])
        places = self.far((i[None] - i[:, None]).clamp(-16, 16) + 16)
        scores = (q @ k.mT + torch.einsum("bhid,ijd->bhij", q, places)) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask[:, None] == 0, 0 if self.bug == "fill of 0" else -1e9)
        return self.o(merge(scores.softmax(-1) @ v))


class Hooked(FusedCausal):
    """Counts its calls, keeps a table of what it has computed, and lets a hook look at each output."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.calls, self.seen = 0, []
        self.register_forward_hook(lambda module, inputs, output: self.seen.append(output.shape))

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def normed(bug=None):
    """Weights by a parametrization."""
    module = FusedCausal(bug=bug)
    nn.utils.parametrizations.weight_norm(module.c_attn)
    nn.utils.parametrizations.spectral_norm(module.c_proj)
    return module


class Encoded(nn.Module):
    """Encoder states by keyword, both masks of its own, as in models that write."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.own, self.other, self.bug = Attend(dim, heads), Attend(dim, heads), bug
        self.norm, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, hidden_states, attention_mask=None, encoder_hidden_states=None, encoder_attention_mask=None):
        if attention_mask is not None and self.bug == "mask turned round":
            attention_mask = attention_mask.mT
        y = self.norm(hidden_states)
        hidden_states = hidden_states + self.own(y, y, attention_mask)
        if encoder_hidden_states is not None:
            mask = attention_mask if self.bug == "its own mask on what it reads" else encoder_attention_mask
            hidden_states = hidden_states + self.other(self.norm2(hidden_states), encoder_hidden_states, mask)
        return (hidden_states,)


class Depthwise(nn.Module):
    """Maps of features, a 3 x 3 convolution before the projections."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.near = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.qkv, self.o = nn.Conv2d(dim, 3 * dim, 1), nn.Conv2d(dim, dim, 1)

    def forward(self, x):
        q, k, v = (t.flatten(2).unflatten(1, (self.heads, -1)) for t in self.qkv(self.near(x)).chunk(3, 1))
        width = x.shape[1] if self.bug == "scale of embed_dim" else q.shape[2]
        weights = (q.mT @ k * width**-0.5).softmax(-1)
        return self.o((v @ weights.mT).flatten(1, 2).unflatten(2, x.shape[2:]))
