"""Styles that take one sequence. `bug` names the one thing that is wrong; None is the module as it should be."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attnlib.torch_layers import MultiHeadAttention


def split(x, heads):
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


class FusedCausal(nn.Module):
    """One projection for q, k, v; a buffer that masks the future: the style of small GPTs."""

    def __init__(self, n_embd=32, n_head=4, bug=None, std=None):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        if std:
            for linear in (self.c_attn, self.c_proj):
                nn.init.normal_(linear.weight, std=std)
                nn.init.zeros_(linear.bias)
        ones = torch.ones(64, 64)
        seen = {"sees the next token": ones.tril(1), "sees itself only": torch.eye(64), "sees the first only": ones * 0}
        seen |= {"hides itself": ones.tril(-1)}
        mask = seen.get(bug, ones.tril())
        if bug == "sees the first only":
            mask[:, 0] = 1
        self.register_buffer("mask", mask.T.contiguous() if bug == "mask turned round" else mask)
        self.n_head, self.bug = n_head, bug

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        if self.bug == "v is k":
            v = k
        if self.bug == "k is q":
            k = q
        if self.bug == "split without transpose":
            q, k, v = (t.reshape(B, self.n_head, T, C // self.n_head) for t in (q, k, v))
        else:
            q, k, v = (split(t, self.n_head) for t in (q, k, v))
        att = q @ k.transpose(-2, -1)
        scaled = att / math.sqrt(C if self.bug == "scale of embed_dim" else C // self.n_head)
        if self.bug != "scaled scores not used":
            att = scaled
        att = att.masked_fill(self.mask[:T, :T] == 0, -10.0 if self.bug == "fill of -10" else float("-inf"))
        att = F.softmax(att, dim=-2 if self.bug == "softmax over queries" else -1)
        y = att @ v
        if self.bug == "a head times 0":
            y = y * torch.tensor([1.0, 0.0, 1.0, 1.0])[:, None, None]
        y = y.reshape(B, T, C) if self.bug == "merge without transpose" else merge(y)
        return self.c_proj(y)


class ListOfHeads(nn.Module):
    """Heads one after another, each with projections of its own, concatenated."""

    class Head(nn.Module):
        def __init__(self, n_embd, head_size, bug):
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(n_embd, head_size, bias=False) for _ in range(3))
            self.register_buffer("tril", torch.tril(torch.ones(64, 64)))
            self.bug = bug

        def forward(self, x):
            T, C = x.shape[1:]
            k, q = self.key(x), self.query(x)
            wei = q @ k.transpose(-2, -1) * (C if self.bug == "scale of the full width" else k.shape[-1]) ** -0.5
            wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
            if self.bug == "probabilities rounded":
                return (wei.softmax(-1) * 10).round() / 10 @ self.value(x)
            return F.softmax(wei, dim=-1) @ self.value(x)

    def __init__(self, n_embd=32, n_head=4, bug=None):
        super().__init__()
        make = self.Head
        self.heads = nn.ModuleList([make(n_embd, n_embd // n_head, bug) for _ in range(n_head)])
        if bug == "the same head each time":
            self.heads = nn.ModuleList([self.heads[0]] * n_head)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([h(x) for h in self.heads], dim=-1))


class Bert(nn.Module):
    """Three linears, an additive mask (b, 1, 1, n) called attention_mask, a tuple as result."""

    def __init__(self, hidden_size=32, num_attention_heads=4, bug=None):
        super().__init__()
        self.num_attention_heads, self.bug = num_attention_heads, bug
        self.query, self.key, self.value = (nn.Linear(hidden_size, hidden_size) for _ in range(3))

    def forward(self, hidden_states, attention_mask=None, head_mask=None, output_attentions=False, **kwargs):
        q, k, v = (split(f(hidden_states), self.num_attention_heads) for f in (self.query, self.key, self.value))
        if self.bug == "value layer not called":
            v = split(self.key(hidden_states), self.num_attention_heads)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))
        if attention_mask is not None and self.bug != "mask ignored":
            if self.bug == "mask on the queries":
                attention_mask = attention_mask.transpose(-1, -2)
            if self.bug == "mask of row 0 for all":
                attention_mask = attention_mask[:, :, :1]
            if self.bug == "mask of sequence 0 for all":
                attention_mask = attention_mask[:1]
            scores = scores + attention_mask
        probs = nn.functional.softmax(scores, dim=-1)
        if self.bug == "dropout that never stops":
            probs = F.dropout(probs, 0.1)
        if self.bug == "normalised over the batch":
            probs = probs / probs.sum(0, keepdim=True) * len(probs)
        context = merge(torch.matmul(probs, v))
        return (context, probs) if output_attentions else (context,)


class ZerosAndOnes(Bert):
    """A mask (b, n) of ones and zeros, made additive inside with a large constant."""

    def forward(self, hidden_states, attention_mask=None):
        if attention_mask is not None:
            fill = 10000.0 if self.bug == "sign of the fill" else -10000.0
            attention_mask = (1.0 - attention_mask[:, None, None, :]) * fill
        return super().forward(hidden_states, attention_mask)[0]


class Swallows(Bert):
    """Takes any keyword and passes none on: no mask reaches the softmax, and none is promised."""

    def forward(self, hidden_states, **kwargs):
        return super().forward(hidden_states)


class Vision(nn.Module):
    """(3, b, h, n, d) by reshape and permute; scale as a buffer of one number; weights not returned."""

    def __init__(self, dim=32, num_heads=4, bug=None, init_zero=False):
        super().__init__()
        self.num_heads, self.bug = num_heads, bug
        self.qkv, self.proj = nn.Linear(dim, dim * 3, bias=True), nn.Linear(dim, dim)
        power = {"multiplied by the root": 0.5, "scaled by d": -1.0}.get(bug, -0.5)
        self.register_buffer("scale", torch.tensor([(dim // num_heads) ** power]))
        if init_zero:
            nn.init.zeros_(self.proj.weight)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x)
        if self.bug == "heads before tokens":
            qkv = qkv.reshape(B, 3, self.num_heads, N, C // self.num_heads).permute(1, 0, 2, 3, 4)
        elif self.bug == "attends over heads":
            qkv = qkv.reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 1, 3, 4)
        else:
            qkv = qkv.reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.bug == "writes into the input":
            x *= 0.5
        attn = (q * self.scale) @ k.transpose(-2, -1)
        if self.bug == "exp without the maximum":
            attn = attn.exp()
            attn = attn / attn.sum(-1, keepdim=True)
        else:
            attn = attn.softmax(dim=-1)
        out = attn @ v
        out = out.reshape(B, N, C) if self.bug in ("attends over heads",) else merge(out)
        return self.proj(out)


class Rotary(nn.Module):
    """Rotates queries and keys by their position, shares keys among heads, calls the fused kernel."""

    def __init__(self, dim=32, n_heads=4, n_kv_heads=2, bug=None):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d, self.bug = n_heads, n_kv_heads, dim // n_heads, bug
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk, self.wv = (nn.Linear(dim, n_kv_heads * self.d, bias=False) for _ in range(2))

    def rotate(self, x):
        half = self.d // 2
        angle = torch.arange(x.shape[2])[:, None] * 100.0 ** (-torch.arange(half) / half)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def forward(self, x):
        q, k, v = (
            split(self.wq(x), self.n_heads),
            split(self.wk(x), self.n_kv_heads),
            split(self.wv(x), self.n_kv_heads),
        )
        q, k = self.rotate(q), self.rotate(k)
        k, v = (t.repeat_interleave(self.n_heads // self.n_kv_heads, 1) for t in (k, v))
        scale = self.d**-1.0 if self.bug == "scaled twice" else None
        T = x.shape[1]
        if self.bug in ("mask turned round", "hides itself"):
            ones = torch.ones(T, T, dtype=torch.bool)
            mask = ones.tril(-1) if self.bug == "hides itself" else ones.triu(1)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=self.bug != "not causal", scale=scale)
        out = out.reshape(x.shape) if self.bug == "merge without transpose" else merge(out)
        return self.wo(out)


class RelativeBias(nn.Module):
    """No scale, which is folded into the initial weights of the queries; a bias of positions, also returned."""

    def __init__(self, d_model=32, n_heads=4, bug=None):
        super().__init__()
        self.n_heads, self.bug = n_heads, bug
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        d = d_model // n_heads
        nn.init.normal_(self.q.weight, std=(1.0 if bug == "scale left out" else d**-0.5) * d_model**-0.5)
        nn.init.normal_(self.k.weight, std=d_model**-0.5)
        self.relative_attention_bias = nn.Embedding(32, n_heads)

    def forward(self, hidden_states, mask=None, position_bias=None):
        q, k, v = (split(f(hidden_states), self.n_heads) for f in (self.q, self.k, self.v))
        i = torch.arange(hidden_states.shape[1])
        position_bias = self.relative_attention_bias((i[None] - i[:, None]).clamp(-15, 15) + 15).permute(2, 0, 1)[None]
        scores = q @ k.transpose(3, 2) + position_bias
        if mask is not None:
            scores = scores * mask if self.bug == "mask multiplied into scores" else scores + mask
        return self.o(merge(scores.softmax(-1) @ v)), position_bias


class BigHeads(nn.Module):
    """Heads wider than embed_dim / num_heads; a list as result; einsum."""

    def __init__(self, dim=32, heads=4, dim_head=16, bug=None):
        super().__init__()
        self.heads, self.scale = heads, (dim if bug == "scale of embed_dim" else dim_head) ** -0.5
        self.norm = nn.LayerNorm(dim)
        self.to_qkv, self.to_out = nn.Linear(dim, heads * dim_head * 3, bias=False), nn.Linear(heads * dim_head, dim)
        self.bug = bug

    def forward(self, x, mask=None):
        q, k, v = (split(t, self.heads) for t in self.to_qkv(self.norm(x)).chunk(3, -1))
        if self.bug == "half of the heads lost":
            v = torch.cat([v[:, :2], v[:, :2]], 1)
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if mask is not None:
            if self.bug == "only the first key left":
                mask = mask & (torch.arange(mask.shape[1]) == 0)
            sim = sim.masked_fill(~mask[:, None, None, :], -torch.finfo(sim.dtype).max)
        return [self.to_out(merge(torch.einsum("b h i j, b h j d -> b h i d", sim.softmax(-1), v)))]


class Image(nn.Module):
    """Maps of features (b, c, h, w), 1 x 1 convolutions, a gate that starts at 0, no scale by design."""

    def __init__(self, in_dim=32, bug=None):
        super().__init__()
        self.query_conv, self.key_conv = nn.Conv2d(in_dim, in_dim // 4, 1), nn.Conv2d(in_dim, in_dim // 4, 1)
        self.value_conv, self.gamma, self.bug = nn.Conv2d(in_dim, in_dim, 1), nn.Parameter(torch.zeros(1)), bug

    def forward(self, x):
        b, c, height, width = x.size()
        q = self.query_conv(x).view(b, -1, width * height).permute(0, 2, 1)
        energy = torch.bmm(q, self.key_conv(x).view(b, -1, width * height))
        attention = energy.softmax(-1)
        if self.bug != "weights not transposed":
            attention = attention.permute(0, 2, 1)
        out = torch.bmm(self.value_conv(x).view(b, -1, width * height), attention)
        return self.gamma * out.view(b, c, height, width) + x


class TuplesOfCache(nn.Module):
    """layer_past in, (keys, values) out."""

    def __init__(self, nx=32, n_head=4, bug=None):
        super().__init__()
        self.c_attn, self.c_proj, self.n_head, self.bug = nn.Linear(nx, 3 * nx), nn.Linear(nx, nx), n_head, bug

    def forward(self, x, layer_past=None, use_cache=False):
        q, k, v = (split(t, self.n_head) for t in self.c_attn(x).chunk(3, -1))
        if layer_past is not None:
            if self.bug == "past of sequence 0":
                layer_past = tuple(x[:1].expand_as(x) for x in layer_past)
            k = torch.cat([layer_past[0], k], 2)
            if self.bug == "only the last value kept":
                v = torch.cat([layer_past[1][:, :, -1:].expand(-1, -1, k.shape[2] - 1, -1), v], 2)
            else:
                v = torch.cat([v, layer_past[1]] if self.bug == "values in front" else [layer_past[1], v], 2)
        corner = 0 if self.bug == "upper left mask" else k.shape[2] - q.shape[2]
        if self.bug == "no mask in a chunk" and layer_past is not None:
            corner = k.shape[2]
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(corner)
        w = (q @ k.mT / math.sqrt(v.shape[-1])).masked_fill(~mask, -torch.inf).softmax(-1)
        return self.c_proj(merge(w @ v)), (k, v)


class KVCacheOfOurs(nn.Module):
    """attnlib's own layer, causal by itself, with learned positions that go on behind what the cache holds."""

    def __init__(self, width=32, heads=4, bug=None):
        super().__init__()
        self.attention, self.bug = MultiHeadAttention(width, heads), bug
        self.places = nn.Parameter(torch.randn(64, width))

    def forward(self, x, cache=None):
        start = 0 if cache is None or self.bug == "positions restart" else len(cache)
        x = x + self.places[start : start + x.shape[1]]
        return self.attention(x, is_causal=True, cache=cache)[0]


class KeepsItsWeights(FusedCausal):
    """Stores the weights of the last call, with their graph."""

    def forward(self, x):
        out = super().forward(x)
        self.attention_weights = out * 1
        return out
