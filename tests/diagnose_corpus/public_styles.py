"""Layers as public code writes them, rebuilt in words of our own; most of them insist on something."""

import torch
import torch.nn.functional as F
from torch import nn

from .real_code import Plainest
from .self_attention import merge, split


class Reads(Plainest):
    """Queries of one sequence, keys and values of another one, a mask 1 = may attend, or True = blocked."""

    def __init__(self, bug=None, blocked=False):
        super().__init__(bug=bug)
        self.blocked = blocked

    def forward(self, query, key, mask=None):
        mask = mask if mask is None or self.blocked else mask == 0
        return self.attend(*self.project(query, key), mask)


class Insists(nn.Module):
    """forward(x, enc_output, self_mask, i_mask): both masks must be there, True = blocked."""

    def __init__(self, bug=None, lenient=False):
        super().__init__()
        self.own, self.other, self.bug, self.lenient = Reads(blocked=True), Reads(blocked=True), bug, lenient
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, x, enc_output, self_mask, i_mask):
        self_mask, i_mask = self_mask.unsqueeze(1), i_mask if i_mask is None else i_mask.unsqueeze(1)
        y = self.norm1(x)
        x = x + self.own(y, y, None if self.bug == "mask dropped" else self_mask)
        if self.lenient and enc_output is None:
            return x
        return x + self.other(self.norm2(x), enc_output, i_mask)


class SourceAndTarget(nn.Module):
    """forward(x, value, key, src_mask, trg_mask): the first mask is for what it reads, the second for itself."""

    def __init__(self, bug=None, strict=False):
        super().__init__()
        self.own, self.block, self.bug, self.strict = Reads(), Reads(), bug, strict
        self.norm, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, x, value, key, src_mask, trg_mask):
        if self.strict:
            src_mask, trg_mask = src_mask.unsqueeze(1).unsqueeze(2), trg_mask.unsqueeze(1)
        if self.bug == "mask dropped":
            trg_mask = None
        query = self.norm(x + self.own(x, x, trg_mask))
        return self.norm2(query + self.block(query, key, src_mask))


class LookAhead(nn.Module):
    """One mask of pairs, and one of padding for the memory, both without a default."""

    def __init__(self, bug=None):
        super().__init__()
        self.mha1, self.mha2, self.bug = Reads(), Reads(), bug
        self.mha1.width = 32 if bug == "scale of embed_dim" else 8
        self.norms = nn.ModuleList([nn.LayerNorm(32) for _ in range(3)])
        self.ffn = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x, enc_output, look_ahead_mask, padding_mask):
        x = self.norms[0](x + self.mha1(x, x, look_ahead_mask[:, None]))
        x = self.norms[1](x + self.mha2(x, enc_output, padding_mask[:, None, None]))
        return self.norms[2](x + self.ffn(x))


class Rows77(nn.Module):
    """Keeps a causal mask of 77 rows, tokens first, a norm that computes in float32."""

    def __init__(self, bug=None, rows=77):
        super().__init__()
        self.attn, self.ln = nn.MultiheadAttention(32, 4), nn.LayerNorm(32)
        self.mask = torch.full((rows, rows), -torch.inf).triu(2 if bug == "sees the next token" else 1)

    def forward(self, x):
        y = self.ln(x.float()).type(x.dtype)
        return x + self.attn(y, y, y, need_weights=False, attn_mask=self.mask.to(x.dtype))[0]


class Windows(Plainest):
    """(b, rows, columns, features) cut into windows of 2 x 2, a table of biases."""

    def __init__(self, bug=None, side=2):
        super().__init__(bug=bug)
        self.side, self.table = side, nn.Parameter(torch.randn(4, side**2, side**2))

    def forward(self, x):
        b, rows, columns, c = x.shape
        cut = (b, rows // self.side, self.side, columns // self.side, self.side, c)
        y = x.view(cut).permute(0, 1, 3, 2, 4, 5)
        q, k, v = self.project(y.reshape(-1, self.side**2, c))
        axis = -2 if self.bug == "softmax over queries" else -1
        weights = (q @ k.mT / self.width**0.5 + self.table).softmax(axis)
        return self.o(merge(weights @ v)).view(y.shape).permute(0, 1, 3, 2, 4, 5).reshape(x.shape)


class SquareImage(nn.Module):
    """(b, c, 5, 5): a position for each row and each column."""

    def __init__(self, bug=None, side=5):
        super().__init__()
        self.qkv, self.bug = nn.Conv2d(32, 96, 1, bias=False), bug
        self.rows = nn.Parameter(torch.randn(4, 8, side, 1))
        self.columns = nn.Parameter(torch.randn(4, 8, 1, side))

    def forward(self, x):
        q, k, v = (t.flatten(2).unflatten(1, (4, 8)) for t in self.qkv(x).chunk(3, 1))
        if x.shape[2:] != (self.rows.shape[2], self.columns.shape[3]):
            raise ValueError("another size of image")
        scores = q.mT @ k * (32 if self.bug == "scale of embed_dim" else 8) ** -0.5
        return (v @ (scores + q.mT @ (self.rows + self.columns).flatten(2)).softmax(-1).mT).reshape(x.shape)


class Table(Plainest):
    """Learned positions (1, 17, features) added whole."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.pos_embed = nn.Parameter(torch.randn(1, 17, 32))

    def forward(self, x):
        return self.attend(*self.project(x + self.pos_embed))


class Resolution(Plainest):
    """Says how many rows and columns its tokens have, and asserts it without a word."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.input_resolution = (3, 5)

    def forward(self, x):
        assert x.shape[1] == self.input_resolution[0] * self.input_resolution[1]
        return self.attend(*self.project(x))


class Shorter(nn.Module):
    """Keys and values of a map of features made 2 times as small, as in pyramids; rows and columns are arguments."""

    def __init__(self, bug=None):
        super().__init__()
        self.q, self.kv, self.proj = nn.Linear(32, 32), nn.Linear(32, 64), nn.Linear(32, 32)
        self.sr, self.norm = nn.Conv2d(32, 32, 2, stride=2), nn.LayerNorm(32)

    def forward(self, x, H, W):
        small = self.sr(x.mT.unflatten(2, (H, W))).flatten(2).mT
        k, v = (split(t, 4) for t in self.kv(self.norm(small)).chunk(2, -1))
        return self.proj(merge((split(self.q(x), 4) @ k.mT * 8**-0.5).softmax(-1) @ v))


class ChannelsAttend(nn.Module):
    """(b, c, h, w): channels attend to channels behind a depthwise convolution, with a temperature."""

    def __init__(self, bug=None):
        super().__init__()
        self.qkv, self.near = nn.Conv2d(32, 96, 1), nn.Conv2d(96, 96, 3, padding=1, groups=96)
        self.temperature, self.out = nn.Parameter(torch.ones(4, 1, 1)), nn.Conv2d(32, 32, 1)

    def forward(self, x):
        q, k, v = (t.flatten(2).unflatten(1, (4, 8)) for t in self.near(self.qkv(x)).chunk(3, 1))
        weights = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * self.temperature).softmax(-1)
        return self.out((weights @ v).reshape(x.shape))


class Offset(nn.Module):
    """(b, c, points): a softmax, a division by the other sum, and what is left of the input behind a norm."""

    def __init__(self, bug=None):
        super().__init__()
        self.qk, self.v = nn.Conv1d(32, 8, 1, bias=False), nn.Conv1d(32, 32, 1)
        self.after, self.norm = nn.Conv1d(32, 32, 1), nn.BatchNorm1d(32)

    def forward(self, x):
        q, k = self.qk(x).mT, self.qk(x)
        weights = (q @ k).softmax(-1)
        weights = weights / (1e-9 + weights.sum(1, keepdim=True))
        return x + self.norm(self.after(x - self.v(x) @ weights)).relu()


class FarApart(Plainest):
    """Scores of content and of distance, two learned biases, the shift by padding; tokens first."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.r, self.u, self.w = nn.Linear(32, 32, bias=False), *(nn.Parameter(torch.randn(4, 1, 8)) for _ in range(2))

    def forward(self, w, attn_mask=None):
        n = len(w)
        q, k, v = self.project(w.transpose(0, 1))
        far = torch.arange(n - 1, -n, -1).to(w)[:, None] * 100.0 ** (-torch.arange(16).to(w) / 16)
        r = split(self.r(torch.cat([far.sin(), far.cos()], -1))[None], 4)
        distance = F.pad((q + self.w) @ r.mT, (1, 0)).flatten(2)[..., n:].unflatten(2, (n, -1))[..., :n]
        scores = ((q + self.u) @ k.mT + distance) / self.width**0.5
        scores = scores if attn_mask is None else scores.masked_fill(attn_mask.bool(), -1e30)
        return self.o(merge(scores.softmax(-1) @ v)).transpose(0, 1)


class SetBlock(Plainest):
    """MAB(Q, K): the projected queries are added to what they get, norms behind."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.ln0, self.ln1 = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, Q, K):
        q, k, v = self.project(Q, K)
        y = self.ln0(merge(q + (q @ k.mT / self.width**0.5).softmax(-1) @ v))
        return self.ln1(y + self.o(y).relu())


class Modulated(Plainest):
    """A layer whose norms are shifted and scaled by a vector for each sequence; the gates begin at 0."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.norm, self.modulation = nn.LayerNorm(32, elementwise_affine=False), nn.Linear(32, 96)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x, c):
        shift, scale, gate = self.modulation(F.silu(c))[:, None].chunk(3, -1)
        return x + gate * self.attend(*self.project(self.norm(x) * (1 + scale) + shift))


class ContextOrItself(Plainest):
    """forward(x, context=None, mask=None) with a mask (b, n), as in layers of image generators."""

    def forward(self, x, context=None, mask=None):
        q, k, v = self.project(x, context)
        fill = -torch.finfo(x.dtype).max
        scores = q @ k.mT * (32 if self.bug == "scale of embed_dim" else 8) ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None].bool(), fill)
        return self.o(merge(scores.softmax(-1) @ v))


class TokensFirst(Plainest):
    """(tokens, batch, features), a padding mask, weights on average, a dictionary for what writing needs."""

    def forward(self, query, key, value, key_padding_mask=None, incremental_state=None, need_weights=True):
        q, k, v = self.project(*(x.transpose(0, 1) for x in (query, key, value)))
        scores = q @ k.mT * self.width**-0.5
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None].bool(), -torch.inf)
        weights = scores.softmax(-1)
        y = self.o(merge(weights @ v)).transpose(0, 1)
        return y, weights.mean(1) if need_weights else None


class Additive(nn.Module):
    """Scores of a graph: one number for the sender, one for the receiver, a leaky relu; adj = 0 blocks."""

    def __init__(self, bug=None):
        super().__init__()
        self.W, self.bug = nn.Linear(32, 32, bias=False), bug
        self.sends, self.takes = nn.Linear(32, 1, bias=False), nn.Linear(32, 1, bias=False)

    def forward(self, h, adj):
        y = self.W(h)
        e = F.leaky_relu(self.takes(y) + self.sends(y).mT, 0.2)
        e = e.masked_fill(adj.mT == 0 if self.bug == "edges turned round" else adj == 0, -9e15)
        return F.elu(e.softmax(-1) @ y)


class Decays(Plainest):
    """No softmax: scores times a decay of each head, a norm of groups, a gate."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.gate, self.norm = nn.Linear(32, 32), nn.LayerNorm(8)
        self.register_buffer("gamma", 1 - 2.0 ** -torch.arange(2, 6))

    def forward(self, x):
        q, k, v = self.project(x)
        i = torch.arange(x.shape[1])
        far = (i[:, None] - i).clamp(min=0)
        decay = (self.gamma[:, None, None].to(x) ** far).masked_fill(i[:, None] < i, 0)
        return self.o(merge(self.norm((q @ k.mT * self.width**-0.5 * decay) @ v)) * F.silu(self.gate(x)))


class FeatureMaps(Plainest):
    """elu + 1 of queries and keys, keys times values first."""

    def forward(self, x):
        q, k, v = self.project(x)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return self.o(merge(q @ (k.mT @ v) / (q @ k.sum(2)[..., None])))


class Objects(nn.Module):
    """A decoder of detectors: positions are added to queries and keys, and four masks may be handed in."""

    def __init__(self, bug=None):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(32, 4, batch_first=True)
        self.multihead_attn = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm1, self.norm2, self.bug = nn.LayerNorm(32), nn.LayerNorm(32), bug

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None, pos=None, query_pos=None):  # fmt: skip
        def placed(x, place):
            return x if place is None else x + place

        asks = placed(tgt, query_pos)
        padded = None if self.bug == "padding not handed on" else tgt_key_padding_mask
        mask = dict(attn_mask=tgt_mask, key_padding_mask=padded, need_weights=False)
        tgt = self.norm1(tgt + self.self_attn(asks, asks, tgt, **mask)[0])
        mask = dict(attn_mask=memory_mask, key_padding_mask=memory_key_padding_mask, need_weights=False)
        read = self.multihead_attn(placed(tgt, query_pos), placed(memory, pos), memory, **mask)[0]
        return self.norm2(tgt + read)


class Temperature(Plainest):
    """Cosines of queries and keys, times a learned number that is kept below 100."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.logit_scale = nn.Parameter(torch.full((4, 1, 1), 10.0).log())

    def forward(self, x):
        q, k, v = self.project(x)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
        return self.o(merge((scores * self.logit_scale.clamp(max=4.6052).exp()).softmax(-1) @ v))


class GatedUnit(nn.Module):
    """Squares of relu in the place of a softmax, one narrow head, a gate as wide as the values."""

    def __init__(self, bug=None):
        super().__init__()
        self.norm, self.hidden, self.narrow = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(32, 16)
        self.gamma, self.beta = nn.Parameter(torch.randn(2, 16) + 1), nn.Parameter(torch.randn(2, 16) * 0.1)
        self.out = nn.Linear(64, 32)

    def forward(self, x):
        y = self.norm(x)
        v, gate = F.silu(self.hidden(y)).chunk(2, -1)
        q, k = (F.silu(self.narrow(y))[..., None, :] * self.gamma + self.beta).unbind(-2)
        return self.out((q @ k.mT / x.shape[1]).relu().square() @ v * gate) + x


class Axial(Plainest):
    """(b, rows, columns, features): tokens attend along their column, then along their row."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.other = Plainest()

    def forward(self, x):
        b, rows, columns, c = x.shape
        y = x.transpose(1, 2).flatten(0, 1)
        y = self.attend(*self.project(y)).view(b, columns, rows, c).transpose(1, 2)
        return self.other.attend(*self.other.project(y.flatten(0, 1))).view(x.shape)
