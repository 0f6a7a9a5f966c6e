"""What a right answer shows in Vectorized: the sentence, computed by the reader's own functions."""

import numpy as np

from attnlib.colours import VALUE
from attnlib.examples import NAMES, SENTENCE, WORDS

from ...engine.describe import Payoff
from ...engine.pictures import chip, heatmap, table, words
from .example import BUGS, SHOWS, moved_by

Q, K, V = SENTENCE.project()
LARGE = np.array([1000.0, 0.0])
SHE = 3


def both_softmaxes(softmax):
    """Draw what the plain softmax makes of a score of 1000, and what the reader's does."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = np.exp(LARGE) / np.exp(LARGE).sum()
    yours = softmax(LARGE)
    lines = [[name, *(f"{x:.0f}" for x in row)] for name, row in (("plain", plain), ("yours", yours))]
    return table([["scores", *(f"{x:.0f}" for x in LARGE)], *lines], marked=2)


def scores_of_all(scores):
    found = scores(Q, K)
    return heatmap(found, WORDS, WORDS, limits=(0, found.max()), places=0)


def weights_and_output(attention):
    """Draw the weights, which the function gives where each value is a column of the identity, and what *she* gets."""
    weights, got = attention(Q, K, np.eye(len(WORDS))), attention(Q, K, V)[SHE]
    given = " ".join(chip(f"{name} {x:.3f}", VALUE) for name, x in zip(NAMES["given"], got, strict=True))
    return heatmap(weights, WORDS, WORDS) + f"<div><i>she</i> gets {given}</div>"


def caught_or_missed(example):
    """Draw how far each mistake moves the output on the reader's own example."""
    moves = moved_by(example)
    rows = [[words(bug), "caught" if moves[bug] >= SHOWS else "<b>missed</b>", f"{moves[bug]:.3f}"] for bug in BUGS]
    return table([["mistake", "", "moves a number by"], *rows])


PAYOFFS = {
    "softmax": Payoff(
        "Your softmax survives scores of 1000, where the plain one gave nan.",
        both_softmaxes,
        "Next: all scores in one product, also of a batch.",
    ),
    "attention_scores": Payoff(
        "Sixteen dot products. Row *she* is the one from [[scores_of_she]]: 5, 0, 3, 2.",
        scores_of_all,
        "Next: the whole formula, from a blank function.",
    ),
    "scaled_dot_product_attention": Payoff(
        "The whole of attention. *She* gets 0.885 from it.", weights_and_output, "Next: keep it. Masks grow from it."
    ),
    "example_that_tells": Payoff(
        "Your example catches every mistake but the one it was to miss.",
        caught_or_missed,
        "Next: notebook [[scaling]] asks why the scores are divided.",
    ),
}
