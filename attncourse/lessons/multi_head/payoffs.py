"""What a right answer shows in Multi-head: two heads in one vector, cut, joined, and put to work."""

import numpy as np

from attnlib.colours import VALUE
from attnlib.examples import OUTPUT_FEATURES, TWO_HEADS, WORDS

from ...engine.describe import Payoff
from ...engine.pictures import beside, chip, heatmap, table, words
from .exercises import multi_head_probes
from .two_jobs import job_maps

NUMBERED = np.arange(24.0).reshape(4, 6)  # (n, d_model), to be cut into two heads of 3
HEADS = [NUMBERED[:, :3], NUMBERED[:, 3:]]
SAW = WORDS.index("saw")
MATRICES = ("W_Q", "W_K", "W_V", "W_O")
TRAINED = multi_head_probes("MultiHeadAttention", same_width=True)[-1].args  # asks which matrices a gradient reaches


def numbers(array, columns):
    return heatmap(array, WORDS, columns, limits=(0, NUMBERED.max()), places=0, tint=VALUE)


def cut_in_two(split_heads):
    found = split_heads(NUMBERED, 2)
    return beside(*(f"head {h}{numbers(part, range(3))}" for h, part in enumerate(found, 1)))


def two_names(layer):
    """Draw what *saw* gets about the woman and about the man, by the reader's own layer."""
    x, *matrices = TWO_HEADS
    got = layer(x, x, x, *matrices, 2)[SAW]
    told = [chip(f"{got[OUTPUT_FEATURES.index(name)]:.3f}", VALUE) for name in ("woman", "man")]
    return table([["<i>saw</i> learns", "who the woman is", "who the man is"], ["", *told]])


def gradients(layer):
    """List which matrices the gradient of the reader's class reaches."""
    (lacking,) = layer(*TRAINED)
    told = ["no gradient" if fault else "✓ gradient reached" for fault in lacking]
    return table(list(zip(map(words, MATRICES), told, strict=True)))


def two_maps(W_Q):
    maps = job_maps(np.asarray(W_Q, dtype=float))
    return beside(*(f"head {h}{heatmap(one, range(4), range(4))}" for h, one in enumerate(maps, 1)))


PAYOFFS = {
    "split_heads": Payoff(
        "Words stay whole: head 1 has features 0 to 2 of every word.", cut_in_two, "Next: the way back."
    ),
    "merge_heads": Payoff(
        "Side by side again: merging undoes splitting.",
        lambda merge_heads: f"both heads{numbers(merge_heads(np.stack(HEADS)), range(6))}",
        "Next: the whole layer, made of your parts.",
    ),
    "multi_head_attention": Payoff(
        "*saw* now knows both: Anna (1.064) and Ben (-1.278).", two_names, "Next: choose what two heads look for."
    ),
    "MultiHeadAttention": Payoff(
        "Same numbers as NumPy, and all four layers get a gradient.",
        gradients,
        "Next: keep it. Later notebooks train your class.",
    ),
    "two_jobs": Payoff(
        "Head 1 looks across the ring, head 2 at both neighbours.",
        two_maps,
        "Next: what a bare reshape does to such a layer.",
    ),
}
