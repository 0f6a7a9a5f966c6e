"""Faults that real code had, each beside the same module without it."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .self_attention import merge, split


class Plainest(nn.Module):
    """Four projections, and what all that follows has in common."""

    def __init__(self, dim=32, heads=4, bug=None):
        super().__init__()
        self.heads, self.width, self.bug = heads, dim // heads, bug
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def project(self, query, key=None, value=None):
        key = query if key is None else key
        value = key if value is None else value
        return (split(f(x), self.heads) for f, x in ((self.q, query), (self.k, key), (self.v, value)))

    def attend(self, q, k, v, blocked=None):
        scores = q @ k.mT / self.width**0.5
        scores = scores if blocked is None else scores.masked_fill(blocked, -torch.inf)
        return self.o(merge(scores.softmax(-1) @ v))


class Backend(Plainest):
    """Chooses the kernel around the call."""

    backends = (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION)

    def forward(self, x):
        q, k, v = self.project(x)
        v = k if self.bug == "v is k" else v
        with sdpa_kernel(list(self.backends)):
            y = F.scaled_dot_product_attention(q, k, v, scale=32**-0.5 if self.bug == "scale of embed_dim" else None)
        return self.o(merge(y))


class FlashAlone(Backend):
    """Allows one kernel, which shows no weights."""

    backends = (SDPBackend.FLASH_ATTENTION,)


class Folded(Plainest):
    """Heads in the axis of the batch, and one mask for each of them."""

    def forward(self, query, key, value, mask=None):
        b = len(query)
        q, k, v = (x.flatten(0, 1) for x in self.project(query, key, value))
        scores = q @ k.mT / self.width**0.5
        if mask is not None:
            each = mask.repeat_interleave(self.heads, 0)
            if self.bug == "mask repeated head by head":
                each = mask.repeat(self.heads, 1, 1)
            if self.bug == "mask of the first sequence":
                each = mask[:1].expand(len(q), -1, -1)
            scores = scores.masked_fill(each == 0, -1e9)
        return self.o(merge((scores.softmax(-1) @ v).unflatten(0, (b, self.heads))))


class FlagOfTheMask(Plainest):
    """Causal as soon as there is a mask: one layer for encoder and decoder."""

    def forward(self, x, mask=None):
        q, k, v = self.project(x)
        if mask is not None and self.bug != "mask not read":
            mask = mask[:, None].bool() & torch.ones(mask.shape[-1], mask.shape[-1], dtype=torch.bool).tril()
            return self.attend(q, k, v, ~mask)
        return self.o(merge(F.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)))


class OrderOfChance(Plainest):
    """Computes its rows in an order of chance, which the output does not show."""

    def forward(self, query, key, value):
        q, k, v = self.project(query, key, value)
        order = torch.randperm(q.shape[2])
        rows = (q[:, :, order] @ k.mT / self.width**0.5).softmax(-1) @ v
        return self.o(merge(rows[:, :, order.argsort()]))


class KeysOfChance(Plainest):
    """Computes its columns in an order of chance: the sums differ by their rounding."""

    def forward(self, query, key, value):
        q, k, v = self.project(query, key, value)
        order = torch.randperm(k.shape[2])
        return self.attend(q, k[:, :, order], v[:, :, order])


class Slots(nn.Module):
    """A few slots in the place of keys and values, two norms, weights that begin small."""

    def __init__(self, dim=32, slots=8, bug=None):
        super().__init__()
        self.keys, self.values = nn.Linear(dim, slots, bias=False), nn.Linear(slots, dim, bias=False)
        for layer in (self.keys, self.values):
            nn.init.normal_(layer.weight, std=0.001)

    def forward(self, queries):
        weights = self.keys(queries).softmax(1)
        return self.values(weights / weights.sum(2, keepdim=True))


class TwoNorms(Plainest):
    """A softmax over the queries, then a division by the sum over the keys."""

    def forward(self, x):
        q, k, v = self.project(x)
        weights = (q @ k.mT / self.width**0.5).softmax(-2)
        return self.o(merge(weights / (1e-9 + weights.sum(-1, keepdim=True)) @ v))


class Anew(Plainest):
    """Makes its last layer in forward, or a norm; a mask without a default."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.norm = nn.Identity() if bug == "a norm made in forward" else nn.LayerNorm(32)

    def forward(self, Q, K, V, attn_mask):
        q, k, v = self.project(Q, K, V)
        scores = (q @ k.mT / self.width**0.5).masked_fill(attn_mask.unsqueeze(1), -1e9)
        y = merge(scores.softmax(-1) @ v)
        y = nn.Linear(32, 32)(y) if self.bug == "a layer made in forward" else self.o(y)
        return (nn.LayerNorm(32) if self.bug == "a norm made in forward" else self.norm)(y + Q)


class Later(Plainest):
    """Each row sees later tokens only, or others weigh less the nearer they are."""

    def forward(self, x):
        q, k, v = self.project(x)
        i = torch.arange(x.shape[1])
        ahead = i - i[:, None]
        if self.bug == "decay turned round":
            decay = torch.where(ahead >= 0, 0.5 ** ahead.to(x.dtype), 0)
            return self.o(merge((q @ k.mT / self.width**0.5 * decay) @ v))
        return self.attend(q, k, v, ahead < 0 if self.bug == "triangle transposed" else ahead > 0)


class NotUsed(Plainest):
    """The scores multiply the values, not what the softmax made of them."""

    def forward(self, x):
        q, k, v = self.project(x)
        scores = q @ k.mT / self.width**0.5
        weights = F.softmax(scores, dim=-1)
        return self.o(merge((scores if self.bug == "softmax not used" else weights) @ v)), weights


class Axes(Plainest):
    """Heads on an axis of their own, or on that of the tokens."""

    def forward(self, x):
        q, k, v = self.project(x)
        if self.bug == "attends over the heads":
            q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        weights = (q @ k.mT / self.width**0.5).softmax(1 if self.bug == "softmax over the heads" else -1)
        y = weights @ v
        return self.o(merge(y.transpose(1, 2) if self.bug == "attends over the heads" else y))


class HandsBack(Plainest):
    """Hands its weights back, by a switch, for each head or on average."""

    def __init__(self, bug=None, mean=False):
        super().__init__(bug=bug)
        self.mean = mean

    def forward(self, query, key, value, return_attention=False):
        b, n = query.shape[:2]
        q, k, v = (x.transpose(0, 1).flatten(0, 1) for x in self.project(query, key, value))
        weights = (q @ k.mT / self.width**0.5).softmax(-1)
        y = self.o(merge((weights @ v).view(self.heads, b, n, self.width).transpose(0, 1)))
        shown = weights.view(self.heads, b, n, -1).transpose(0, 1)
        if self.bug == "heads and batch exchanged":
            shown = weights.view(b, self.heads, n, -1)
        shown = shown.mean(1) if self.mean else shown
        shown = shown.mT if self.bug == "queries and keys exchanged" else shown
        return (y, shown) if return_attention else y


class Triangle(Plainest):
    """A causal mask that the module keeps, as a buffer, or added as -inf."""

    def __init__(self, bug=None, added=False):
        super().__init__(bug=bug)
        shown = torch.ones(64, 64).tril()
        self.register_buffer("bias", (1 / shown).log().neg() if added else shown.view(1, 1, 64, 64))
        self.added = added

    def forward(self, x):
        q, k, v = self.project(x)
        n = x.shape[1]
        scores, bias = q @ k.mT / self.width**0.5, self.bias[..., :n, :n]
        if self.bug == "one number of the mask":
            bias = self.bias[..., n, n, None, None]
        masked = scores + bias if self.added else scores.masked_fill(bias == 0, -torch.inf)
        return self.o(merge((scores if self.bug == "masked scores not used" else masked).softmax(-1) @ v))


class Turns(Plainest):
    """Rotary positions by halves, or by neighbours; causal."""

    def __init__(self, bug=None, neighbours=False):
        super().__init__(bug=bug)
        self.neighbours = neighbours

    def turn(self, x, way=1):
        half, n = self.width // 2, x.shape[2]
        angle = way * torch.outer(torch.arange(n).to(x), 100.0 ** (-torch.arange(half).to(x) / half))
        beside = angle.repeat_interleave(2, -1) if self.neighbours else torch.cat([angle, angle], -1)
        across = torch.cat([-x[..., half:], x[..., :half]], -1)
        if self.neighbours != (self.bug == "pairs mixed"):
            across = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
        return x * beside.cos() + across * beside.sin()

    def forward(self, x):
        q, k, v = self.project(x)
        i = torch.arange(x.shape[1])
        return self.attend(self.turn(q), self.turn(k, -1 if self.bug == "keys turned back" else 1), v, i[:, None] < i)


class Columns(Plainest):
    """Learned positions, counted by the mask, so that padding in front moves nothing."""

    def __init__(self, bug=None):
        super().__init__(bug=bug)
        self.places = nn.Embedding(64, 32)

    def forward(self, x, attention_mask=None):
        n = x.shape[1]
        place, blocked = torch.arange(n).expand(x.shape[:2]), torch.ones(n, n, dtype=torch.bool).triu(1)
        if attention_mask is not None:
            blocked = blocked | (attention_mask[:, None, None] == 0)
            if self.bug != "positions counted by column":
                place = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        q, k, v = self.project(x + self.places(place))
        scores = (q @ k.mT / self.width**0.5).masked_fill(blocked, torch.finfo(x.dtype).min)
        return self.o(merge(scores.softmax(-1) @ v))


class Switched(Plainest):
    """Hands keys and values back only if a switch says so; another switch has the same letters in its name."""

    def forward(self, x, layer_past=None, return_present=False, share_kv=False):
        q, k, v = self.project(x)
        v = k if share_kv else v
        if layer_past is not None and self.bug != "past ignored":
            older = [layer_past[0], layer_past[1][:, :, :-1] * 0 if self.bug == "last value lost" else layer_past[1]]
            older[1] = F.pad(older[1], (0, 0, 0, layer_past[1].shape[2] - older[1].shape[2]))
            k, v = torch.cat([older[0], k], 2), torch.cat([older[1], v], 2)
        past = k.shape[2] - q.shape[2]
        y = self.attend(q, k, v, torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1 + past))
        return (y, (k, v)) if return_present else y
