"""Heads that learn to look one place back, for lesson todays_head: where a place is an angle, a vector, or nothing."""

import torch
from torch import nn

from attnlib.rotary import frequencies

from . import train

LETTERS, D_K, LONGEST, TRAINED = 16, 32, 512, 32  # sequences of TRAINED letters are what training shows


def _angles(n):
    return torch.arange(n)[:, None] * torch.from_numpy(frequencies(D_K)).float()  # (n, d_k / 2)


def rotate(x):
    """Return x, (..., n, d_k), turned by RoPE: feature c with feature c + d_k/2, the first token at place 0."""
    (a, b), angle = x.chunk(2, dim=-1), _angles(x.shape[-2])
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def sinusoids(n):
    """Return a vector of sines and cosines for each place, (n, d_k)."""
    return torch.cat([_angles(n).sin(), _angles(n).cos()], dim=-1)


class PreviousLetter(nn.Module):
    """One layer of one head, which is to name the letter before each place.

    How it gets to know the places says `kind`: "RoPE", "learned", "sinusoids" or "nothing".

    >>> logits, weights = PreviousLetter("RoPE")(letters(8, 2))
    >>> logits.shape, weights.shape
    (torch.Size([2, 8, 16]), torch.Size([2, 8, 8]))
    """

    def __init__(self, kind):
        super().__init__()
        self.kind, self.letter = kind, nn.Embedding(LETTERS, D_K)
        self.place, self.read = nn.Embedding(LONGEST, D_K), nn.Linear(D_K, LETTERS)
        self.W_Q, self.W_K, self.W_V = (nn.Linear(D_K, D_K, bias=False) for _ in range(3))

    def forward(self, letters, window=LONGEST):
        x, n = self.letter(letters), letters.shape[1]  # (b, n, d_k)
        if self.kind == "learned":
            x = x + self.place.weight[:n]
        if self.kind == "sinusoids":
            x = x + sinusoids(n)
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        if self.kind == "RoPE":
            q, k = rotate(q), rotate(k)
        back = torch.arange(n)[:, None] - torch.arange(n)  # i - j
        scores = q @ k.mT / D_K**0.5  # (b, n, n)
        scores = scores.masked_fill((back < 0) | (back >= window), -torch.inf)
        weights = scores.softmax(-1)
        return self.read(weights @ v), weights


def letters(n, size, seed=1):
    """Return sequences drawn at random, (size, n)."""
    return torch.randint(LETTERS, (size, n), generator=torch.Generator().manual_seed(seed))


def _draw(generator):
    return torch.randint(LETTERS, (64, TRAINED), generator=generator)


def _loss(model, given):
    logits, _ = model(given)
    return nn.functional.cross_entropy(logits[:, 1:].flatten(0, 1), given[:, :-1].flatten())


def trained(kind, seed=0):
    """Return a model after 600 steps of Adam at rate 5e-3."""
    torch.manual_seed(seed)
    model = PreviousLetter(kind)
    train(model, _draw, _loss, steps=600, lr=5e-3, description=kind)
    return model


@torch.no_grad()
def right_by_place(model, n, window=LONGEST):
    """Return the share of right answers at place 1, 2, ..., (n - 1,), in about 8000 letters."""
    given = letters(n, 8192 // n)
    right = model(given, window)[0][:, 1:].argmax(-1) == given[:, :-1]
    return right.float().mean(0)


def accuracy(model, n, window=LONGEST):
    """Return the share of right answers; beyond the length of the training, at places that it never saw."""
    return right_by_place(model, n, window)[0 if n <= TRAINED else TRAINED - 1 :].mean().item()
