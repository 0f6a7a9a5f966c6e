"""Styles that take three sequences, a context, a graph, or axes in another order."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .self_attention import merge, split


class Annotated(nn.Module):
    """query, key, value, mask == 0 blocks with -1e9: the style of the first tutorials."""

    def __init__(self, h=4, d_model=32, bug=None):
        super().__init__()
        self.h, self.bug = h, bug
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        if bug == "copies of one layer":
            for linear in self.linears[:2]:
                linear.weight.data = linear.weight.data[: d_model // h].repeat(h, 1)
                linear.bias.data = linear.bias.data[: d_model // h].repeat(h)

    def forward(self, query, key, value, mask=None):
        if self.bug == "keys from the query":
            key = query
        if self.bug == "key and value exchanged":
            key, value = value, key
        if self.bug == "queries and keys exchanged":
            key, query = query, key
        q, k, v = (split(f(x), self.h) for f, x in zip(self.linears, (query, key, value), strict=False))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            mask = mask.unsqueeze(1)
            if self.bug == "rows and columns of the mask":
                mask = mask.transpose(-1, -2)
            if self.bug != "mask after the softmax":
                scores = scores.masked_fill(mask == 0, -1e20 if self.bug == "fill of -1e20" else -1e9)
        p = scores.softmax(dim=-1)
        if mask is not None and self.bug == "mask after the softmax":
            p = p * (mask != 0)
        return self.linears[-1](merge(p @ v))


class ValuesFirst(nn.Module):
    """forward(values, keys, query, mask), einsum, the mask without a default."""

    def __init__(self, embed_size=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.head_dim, self.bug = heads, embed_size // heads, bug
        width = self.head_dim if bug == "one small projection" else embed_size
        self.values, self.keys, self.queries = (nn.Linear(width, width) for _ in range(3))
        self.fc_out = nn.Linear(embed_size, embed_size)

    def apart(self, layer, x):
        if self.bug == "one small projection":
            return layer(x.unflatten(-1, (self.heads, self.head_dim)))
        return layer(x).unflatten(-1, (self.heads, self.head_dim))

    def forward(self, values, keys, query, mask):
        v, k, q = self.apart(self.values, values), self.apart(self.keys, keys), self.apart(self.queries, query)
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e9"))
        attention = torch.softmax(energy / self.head_dim ** (1 / 2), dim=3)
        return self.fc_out(torch.einsum("nhql,nlhd->nqhd", attention, v).flatten(2))


class Fused(nn.Module):
    """The fused kernel with a boolean mask, True = may attend; a dict as result."""

    def __init__(self, embed_dim=32, num_heads=4, bug=None):
        super().__init__()
        self.num_heads, self.bug = num_heads, bug
        self.q, self.k, self.v, self.out = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, q, k, v, attn_mask=None):
        q, k, v = (split(f(x), self.num_heads) for f, x in ((self.q, q), (self.k, k), (self.v, v)))
        if attn_mask is not None and self.bug == "mask inverted":
            attn_mask = ~attn_mask
        if attn_mask is not None and self.bug == "mask dropped":
            attn_mask = None
        scale = 1.0 if self.bug == "no scale" else None
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, scale=scale)
        return {"hidden": self.out(merge(y))}


class SequenceFirst(nn.Module):
    """(tokens, batch, features) with key_padding_mask, True = padding, and attn_mask, added."""

    def __init__(self, embed_dim=32, num_heads=4, bug=None):
        super().__init__()
        self.num_heads, self.head_dim, self.bug = num_heads, embed_dim // num_heads, bug
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def shape(self, x):
        return x.contiguous().view(x.shape[0], x.shape[1] * self.num_heads, self.head_dim).transpose(0, 1)

    def forward(self, query, key=None, value=None, key_padding_mask=None, attn_mask=None):
        n, b, d = query.shape
        key, value = query if key is None else key, query if value is None else value
        scaling = d**-0.5 if self.bug == "scale of embed_dim" else self.head_dim**-0.5
        q = self.shape(self.q_proj(query) * scaling)
        k, v = self.shape(self.k_proj(key)), self.shape(self.v_proj(value))
        w = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            w = w + attn_mask.unsqueeze(0)
        if key_padding_mask is not None:
            blocked = ~key_padding_mask if self.bug == "padding inverted" else key_padding_mask
            w = w.view(b, self.num_heads, n, -1).masked_fill(blocked[:, None, None, :], float("-inf"))
            w = w.view(b * self.num_heads, n, -1)
        w = F.softmax(w, dim=1 if self.bug == "softmax over queries" else -1)
        return self.out_proj(torch.bmm(w, v).transpose(0, 1).reshape(n, b, d)), w


class AxesOfXL(nn.Module):
    """Scores (i, j, b, h), a softmax over axis 1, the mask True = blocked."""

    def __init__(self, d_model=32, n_head=4, bug=None):
        super().__init__()
        self.n_head, self.d_head, self.bug = n_head, d_model // n_head, bug
        self.qkv_net, self.o_net = nn.Linear(d_model, 3 * d_model, bias=False), nn.Linear(d_model, d_model, bias=False)

    def forward(self, h, attn_mask=None):
        q, k, v = (x.view(*h.shape[:2], self.n_head, self.d_head) for x in self.qkv_net(h).chunk(3, -1))
        score = torch.einsum("ibnd,jbnd->ijbn", q, k) * self.d_head**-0.5
        if attn_mask is not None:
            score = score.masked_fill(attn_mask[:, :, None, None], -float("inf"))
        prob = F.softmax(score, dim=0 if self.bug == "softmax over queries" else 1)
        return self.o_net(torch.einsum("ijbn,jbnd->ibnd", prob, v).flatten(2))


class Cross(nn.Module):
    """x attends to a context, or to itself where there is none."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.to_q, self.to_kv, self.to_out = nn.Linear(dim, dim), nn.Linear(dim, dim * 2), nn.Linear(dim, dim)

    def forward(self, x, context=None, mask=None):
        context = x if context is None or self.bug == "context ignored" else context
        asked = context if self.bug == "queries and keys exchanged" else x
        q = split(self.to_q(asked), self.heads)
        k, v = (split(t, self.heads) for t in self.to_kv(context).chunk(2, -1))
        if self.bug == "queries and keys exchanged":
            k = split(self.to_kv(x).chunk(2, -1)[0], self.heads)
        if self.bug == "keys from the query":
            k = split(self.to_kv(x).chunk(2, -1)[0], self.heads)
        dots = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        if mask is not None:
            dots = dots.masked_fill(~mask[:, None], -torch.inf)
        weights = dots.softmax(-1).nan_to_num()
        if self.bug == "scores not used":
            weights = torch.ones_like(dots) / dots.shape[-1] + 0 * weights
        return self.to_out(merge(weights @ v))


class Graph(nn.Module):
    """One graph (nodes, features) and its adjacency; additive scores."""

    def __init__(self, n_in=32, n_out=8, bug=None):
        super().__init__()
        self.W, self.a = nn.Linear(n_in, n_out, bias=False), nn.Parameter(torch.randn(2 * n_out, 1))
        self.n_out, self.bug = n_out, bug

    def forward(self, h, adj):
        Wh = self.W(h)
        e = F.leaky_relu(Wh @ self.a[: self.n_out] + (Wh @ self.a[self.n_out :]).t(), 0.2)
        adj = adj.t() if self.bug == "edges turned round" else adj
        return F.elu(torch.softmax(torch.where(adj > 0, e, torch.tensor(-9e15, dtype=e.dtype)), dim=1) @ Wh)


class Lengths(nn.Module):
    """Takes the lengths of the sequences instead of a mask."""

    def __init__(self, d=32, bug=None):
        super().__init__()
        self.W_q, self.W_k, self.W_v, self.bug = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), bug

    def forward(self, queries, keys, values, valid_lens=None):
        scores = torch.bmm(self.W_q(queries), self.W_k(keys).transpose(1, 2)) / math.sqrt(queries.shape[-1])
        if valid_lens is not None:
            past = torch.arange(keys.shape[1]) >= valid_lens[:, None] + (self.bug == "one key too many")
            scores = scores.masked_fill(past[:, None], -1e6)
        return torch.bmm(scores.softmax(-1), self.W_v(values))


class Cosine(nn.Module):
    """Normalised queries and keys, a learned temperature for each head."""

    def __init__(self, dim=32, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.full((num_heads, 1, 1), 10.0).log())
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (split(t, self.num_heads) for t in self.qkv(x).chunk(3, -1))
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.logit_scale.exp()
        return self.proj(merge(attn.softmax(-1) @ v))
