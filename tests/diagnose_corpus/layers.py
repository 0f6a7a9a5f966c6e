"""Layers around attention: decoders that read a memory, maps of features, wrapped modules, tokens that shift."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from .self_attention import FusedCausal, Vision, merge, split


def torch_decoder(bug=None, **more):
    return nn.TransformerDecoderLayer(32, 4, 64, **more)


def torch_encoder(bug=None, **more):
    return nn.TransformerEncoderLayer(32, 4, 64, **more)


class Attend(nn.Module):
    """Queries of one sequence, keys and values of another one, a mask True = may attend."""

    def __init__(self, dim, heads, wide=False):
        super().__init__()
        self.heads, self.scale = heads, (dim if wide else dim // heads) ** -0.5
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, read, mask=None):
        q, k, v = split(self.q(x), self.heads), split(self.k(read), self.heads), split(self.v(read), self.heads)
        scores = q @ k.mT * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.o(merge(scores.softmax(-1) @ v))


class Decoder(nn.Module):
    """Norms first; tgt_mask for itself, memory_mask for what it reads."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.self_attention, self.cross_attention = Attend(dim, heads, bug == "scale of embed_dim"), Attend(dim, heads)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(3)])
        self.feed_forward = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.bug = bug

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None):
        if self.bug == "mask turned round" and tgt_mask is not None:
            tgt_mask = tgt_mask.mT
        if self.bug == "mask dropped":
            tgt_mask = None
        if self.bug == "fill by the memory's mask":
            tgt_mask = memory_mask
        y = self.norms[0](tgt)
        tgt = tgt + self.self_attention(y, y, tgt_mask)
        read = tgt if self.bug == "memory not read" else memory
        tgt = tgt + self.cross_attention(self.norms[1](tgt), read, memory_mask)
        return tgt + self.feed_forward(self.norms[2](tgt))


class CausalDecoder(nn.Module):
    """Causal by itself, norms behind, its context under a name of its own."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.attn, self.cross = Attend(dim, heads), Attend(dim, heads)
        self.ln1, self.ln2, self.bug = nn.LayerNorm(dim), nn.LayerNorm(dim), bug

    def forward(self, x, enc_out, src_mask=None):
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).tril(1 if self.bug == "sees the next token" else 0)
        x = self.ln1(x + self.attn(x, x, None if self.bug == "not causal" else mask))
        return self.ln2(x + self.cross(x, enc_out, src_mask))


class TutorialDecoder(nn.Module):
    """forward(x, memory, src_mask, tgt_mask), none with a default."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.self_attn, self.src_attn, self.bug = Attend(dim, heads), Attend(dim, heads), bug
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, memory, src_mask, tgt_mask):
        if self.bug == "masks exchanged":
            src_mask, tgt_mask = tgt_mask, src_mask
        x = x + self.self_attn(self.norm(x), self.norm(x), tgt_mask)
        return x + self.src_attn(self.norm(x), memory, src_mask)


class Spatial(nn.Module):
    """(b, c, *spatial): a norm of groups, 1 x 1 convolutions, heads cut from the channels, a residual."""

    def __init__(self, channels=32, num_heads=4, bug=None):
        super().__init__()
        self.num_heads, self.bug = num_heads, bug
        self.norm, self.qkv = nn.GroupNorm(8, channels), nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, c, *spatial = x.shape
        x = x.reshape(b, c, -1)
        q, k, v = self.qkv(self.norm(x)).reshape(b * self.num_heads, -1, x.shape[-1]).chunk(3, 1)
        width = c if self.bug == "scale of embed_dim" else q.shape[1]
        weight = torch.einsum("bct,bcs->bts", q * width**-0.25, k * width**-0.25)
        weight = weight.softmax(1 if self.bug == "softmax over queries" else -1)
        h = torch.einsum("bts,bcs->bct", weight, v).reshape(b, c, -1)
        return (x + self.proj_out(h)).reshape(b, c, *spatial)


class Bare(nn.Module):
    """(b, c, *spatial) without a parameter: any axis would do for channels."""

    def __init__(self, bug=None):
        super().__init__()
        self.bug = bug

    def forward(self, x):
        b, c, *spatial = x.shape
        x = x.flatten(2)
        scores = x.mT @ x / (1.0 if self.bug == "no scale" else c**0.5)
        return (x @ scores.softmax(-1).mT).reshape(b, c, *spatial)


class MapAround(nn.Module):
    """A map of features, torch's own attention inside."""

    def __init__(self, channels=32, bug=None):
        super().__init__()
        self.mha, self.ln, self.bug = (
            nn.MultiheadAttention(channels, 4, batch_first=bug is None),
            nn.LayerNorm(channels),
            bug,
        )

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.ln(x.flatten(2).mT)
        return (x.flatten(2) + self.mha(y, y, y)[0].mT).view(b, c, h, w)


def compiled(bug=None):
    return torch.compile(FusedCausal(bug=bug), backend="eager")


class CompiledInside(nn.Module):
    """A norm around a compiled attention."""

    def __init__(self, bug=None):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(32), torch.compile(Vision(bug=bug), backend="eager")

    def forward(self, x):
        return x + self.attn(self.norm(x))


def wrapped(bug=None):
    """A closure takes the place of forward, and calls the old one: the style of patches and of tracing."""
    module = FusedCausal(bug=bug)
    old, calls = module.forward, []

    @functools.wraps(old)
    def forward(x):
        calls.append(x.shape)
        return old(x)

    module.forward = forward
    return module


def wrapped_inside(bug=None):
    """A closure over the module, in a part of it, with a scale that the patch knows."""
    module = Vision()

    def forward(x):
        q, k, v = (split(t, 4) for t in module.qkv(x).chunk(3, -1))
        scale = 32**-0.5 if bug == "scale of embed_dim" else 8**-0.5
        return module.proj(merge((q @ k.mT * scale).softmax(-1) @ v))

    module.forward = forward
    return nn.Sequential(nn.LayerNorm(32), module)


class TokenShift(nn.Module):
    """Half of the features come from the token before."""

    def __init__(self, dim=32, heads=4, causal=True, bug=None):
        super().__init__()
        self.heads, self.causal, self.bug = heads, causal, bug
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        here, before = x.chunk(2, -1)
        shift = (0, 0, -1, 1) if self.bug == "shifted the wrong way" else (0, 0, 1, -1)
        x = torch.cat([here, F.pad(before, shift)], -1)
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.reshape(x.shape) if self.bug == "merge without transpose" else merge(y))


class Synthesizer(nn.Module):
    """Scores from each query alone, by a small network, one for each place."""

    def __init__(self, dim=32, heads=4, longest=64, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.w1, self.w2 = nn.Linear(dim, dim), nn.Linear(dim // heads, longest)
        self.value, self.o = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        n = x.shape[1]
        scores = self.w2(split(self.w1(x), self.heads).relu())[..., :n]
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        return self.o(
            merge(
                scores.softmax(-2 if self.bug == "softmax over queries" else -1).nan_to_num()
                @ split(self.value(x), self.heads)
            )
        )


class Keeps(nn.Module):
    """Keeps its keys and values between calls, and goes on with them, until reset."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug, self.past = heads, bug, None
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        if self.past is not None and len(self.past[0]) == len(k):
            k, v = (torch.cat(pair, 2) for pair in zip(self.past, (k, v), strict=True))
        self.past = (k.detach(), v.detach())
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        scale = 32**-0.5 if self.bug == "scale of embed_dim" else None
        return self.o(merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)))


class TalkingHeads(nn.Module):
    """1 x 1 convolutions mix the scores of the heads, and their weights."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.before, self.after = nn.Conv2d(heads, heads, 1, bias=False), nn.Conv2d(heads, heads, 1, bias=False)

    def forward(self, x):
        q, k, v = (split(t, self.heads) for t in self.qkv(x).chunk(3, -1))
        scores = self.before(q @ k.mT * q.shape[-1] ** -0.5)
        weights = self.after(scores.softmax(0 if self.bug == "softmax over the batch" else -1))
        return self.proj(merge(weights @ v))


class CrossCovariance(nn.Module):
    """Channels attend to channels, as wide as a head."""

    def __init__(self, dim=32, num_heads=4, bug=None):
        super().__init__()
        self.num_heads = num_heads
        self.temperature = nn.Parameter(torch.ones(num_heads, 1, 1))
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (split(t, self.num_heads).mT for t in self.qkv(x).chunk(3, -1))
        attn = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * self.temperature).softmax(-1)
        return self.proj(merge((attn @ v).mT))


class ClassToken(nn.Module):
    """Only the first token asks; the others pass through."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.q, self.k, self.v, self.proj = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        q, k, v = split(self.q(x[:, :1]), self.heads), split(self.k(x), self.heads), split(self.v(x), self.heads)
        y = F.scaled_dot_product_attention(q, k, v)
        return torch.cat([self.proj(merge(y)), x[:, 1:]], 1)


class WindowOfSeven(nn.Module):
    """Windows of 7 x 7 with a table of relative positions, norms of queries and keys, a scale of each layer."""

    def __init__(self, dim=32, num_heads=4, bug=None):
        super().__init__()
        self.num_heads, self.bug = num_heads, bug
        self.q_norm, self.k_norm = nn.LayerNorm(dim // num_heads), nn.LayerNorm(dim // num_heads)
        self.norm, self.qkv, self.proj = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.table = nn.Parameter(torch.randn(13 * 13, num_heads) * 0.02)
        rows, columns = (t.flatten() for t in torch.meshgrid(torch.arange(7), torch.arange(7), indexing="ij"))
        self.register_buffer("index", (rows[:, None] - rows + 6) * 13 + columns[:, None] - columns + 6)
        self.gamma = nn.Parameter(1e-5 * torch.ones(dim))

    def forward(self, x):
        q, k, v = (split(t, self.num_heads) for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = self.q_norm(q) * q.shape[-1] ** -0.5 @ self.k_norm(k).mT + self.table[self.index].permute(2, 0, 1)
        y = (scores.softmax(-2 if self.bug == "softmax over queries" else -1)) @ v
        return x + self.gamma * self.proj(merge(y))


class LowRank(nn.Module):
    """Frozen projections, each with two small trained matrices beside it, the second one 0 at the start."""

    def __init__(self, dim=32, heads=4, rank=2, bug=None):
        super().__init__()
        self.heads, self.bug = heads, bug
        self.base = nn.ModuleList([nn.Linear(dim, dim).requires_grad_(False) for _ in range(4)])
        self.down = nn.ModuleList([nn.Linear(dim, rank, bias=False) for _ in range(4)])
        self.up = nn.ModuleList([nn.Linear(rank, dim, bias=False) for _ in range(4)])
        for up in self.up:
            nn.init.zeros_(up.weight)

    def apply_layer(self, i, x):
        return self.base[i](x) + self.up[i](self.down[i](x))

    def forward(self, x):
        q, k, v = (split(self.apply_layer(i, x), self.heads) for i in range(3))
        width = x.shape[-1] if self.bug == "scale of embed_dim" else q.shape[-1]
        return self.apply_layer(3, merge((q @ k.mT * width**-0.5).softmax(-1) @ v))
