"""Memories of letters and numbers, for lesson pytorch_module: asked for a letter, its head names the number."""

from typing import NamedTuple

import torch

LETTERS, NUMBERS, PAIRS = "abcdefghijklmnop", 16, 8


class Memories(NamedTuple):
    """A batch of memories; `print` shows one on each line."""

    letters: torch.Tensor  # (b, 8): places in `LETTERS`; the eight of a memory are all different
    numbers: torch.Tensor  # (b, 8)
    asked: torch.Tensor  # (b,): the letter that is asked for
    answer: torch.Tensor  # (b,): the number to name
    slot: torch.Tensor  # (b,): which of the eight pairs holds it

    def __str__(self):
        lines = []
        for letters, numbers, asked, answer, _ in zip(*self, strict=True):
            pairs = "  ".join(f"{LETTERS[k]} {v:<2}" for k, v in zip(letters, numbers, strict=True))
            lines.append(f"{pairs}   asked: {LETTERS[asked]}   answer: {answer}")
        return "\n".join(lines)


def draw(size, generator, rule=None):
    """Draw `size` memories with a torch.Generator.

    To find the pair of letter number i, letter number rule[i] is asked for; by default the letter itself.

    >>> memories = draw(2, torch.Generator().manual_seed(5))
    >>> memories.letters.shape, memories.slot.shape
    (torch.Size([2, 8]), torch.Size([2]))
    """
    order = torch.rand(size, len(LETTERS), generator=generator).argsort(-1)  # each row: all letters, shuffled
    letters = order[:, :PAIRS]
    numbers = torch.randint(NUMBERS, (size, PAIRS), generator=generator)
    slot = torch.randint(PAIRS, (size,), generator=generator)
    rows = torch.arange(size)
    asked = letters[rows, slot]
    return Memories(letters, numbers, asked if rule is None else rule[asked], numbers[rows, slot], slot)
