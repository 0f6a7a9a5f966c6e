"""What bug clinic and casebook need besides the cases: a tutorial's class, a model of random digits, `sick_lines`."""

import difflib
import inspect
import textwrap

import torch
from torch import nn

from ..training import train
from . import CASES, DECODERS


class TutorialAttention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h, self.d_k = num_heads, embed_dim // num_heads
        self.to_v = nn.Linear(self.d_k, self.d_k, bias=False)
        self.to_k = nn.Linear(self.d_k, self.d_k, bias=False)
        self.to_q = nn.Linear(self.d_k, self.d_k, bias=False)
        self.out = nn.Linear(embed_dim, embed_dim)

    def forward(self, values, keys, query, mask=None):
        parts = (x.unflatten(-1, (self.h, self.d_k)) for x in (values, keys, query))
        v, k, q = (x.transpose(1, 2) for x in parts)  # (b, h, n, d_k) each
        v, k, q = self.to_v(v), self.to_k(k), self.to_q(q)
        scores = q @ k.transpose(-1, -2)  # (b, h, n, n)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e20)
        self.weights = (scores / (self.h * self.d_k) ** 0.5).softmax(-1)
        return self.out((self.weights @ v).transpose(1, 2).flatten(2))


class NextDigit(nn.Module):
    """A causal model of six digits with one layer of attention, (b, 6) to logits (b, 6, 10)."""

    def __init__(self, attention):
        super().__init__()
        self.digit, self.place = nn.Embedding(10, 24), nn.Embedding(6, 24)
        self.attention, self.read = attention, nn.Linear(24, 10)

    def forward(self, digits):
        x = self.digit(digits) + self.place.weight  # (b, 6, 24)
        causal = torch.ones(6, 6, dtype=torch.bool).tril()  # True = may attend
        return self.read(self.attention(x, attn_mask=causal)[0])


def train_on_digits(attention):
    """Train `attention`, in place, in a `NextDigit` on random digits; return the model and its last loss.

    >>> from attncourse.clinic import Attention
    >>> model, loss = train_on_digits(Attention(24, 4))
    >>> accuracy(model) < 0.15 and loss > 2
    True
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model = NextDigit(attention)
        history = train(model, _digits, _next_digit_loss, steps=150, lr=1e-2, description=type(attention).__name__)
    return model, history.losses[-1]


def _digits(generator, size=64):
    return torch.randint(10, (size, 6), generator=generator)


def _next_digit_loss(model, digits):
    return nn.functional.cross_entropy(model(digits)[:, :-1].flatten(0, 1), digits[:, 1:].flatten())


def accuracy(model):
    """Return the share of next digits that a `NextDigit` names, in 1000 sequences it was not trained on."""
    digits = _digits(torch.Generator().manual_seed(1), size=1000)
    with torch.no_grad():
        return (model(digits).argmax(-1)[:, :-1] == digits[:, 1:]).float().mean().item()


def sick_lines(case):
    r"""Return the methods that a case or a class replaces, as text: "-" marks the healthy module's lines, "+" its own.

    >>> print(sick_lines("case_06").partition("\n")[2])
    -    return math.sqrt(self.d_k)
    +    return math.sqrt(self.embed_dim)
    """
    lines = []
    kind = (CASES | DECODERS)[case].module if isinstance(case, str) else case
    for method, ill in vars(kind).items():
        if inspect.isfunction(ill):
            well = getattr(kind.__base__, method)
            both = (textwrap.dedent(inspect.getsource(code)).splitlines() for code in (well, ill))
            lines += [*difflib.unified_diff(*both, n=99, lineterm="")][3:]  # without its head
    return "\n".join(lines)
