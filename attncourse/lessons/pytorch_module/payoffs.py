"""What a right answer shows in PyTorch module: whom the reader's layer and queries find, and what a map says."""

import numpy as np

from attnlib.core import attention_trace
from attnlib.examples import SENTENCE, WORDS

from ...engine.describe import Payoff
from ...engine.pictures import heatmap
from .exercises import KEYS, MEMORY

LETTERS = "abcd"


def map_of_the_layer(layer):
    """Draw the weights of the sentence in the reader's layer, with the matrices that were chosen for it."""
    _, weights = layer(SENTENCE.x, SENTENCE.W_Q, SENTENCE.W_K, SENTENCE.W_V)
    return heatmap(weights, WORDS, WORDS)


def memory_of_c(answer):
    """Draw the memory, with the slot tinted whose number was handed in."""
    numbers = list(MEMORY.values())
    return heatmap([np.equal(numbers, answer)], ["holds"], MEMORY, texts=[numbers])


def circle(W_Q):
    """Draw the weights that the reader's queries make."""
    weights = attention_trace(np.asarray(W_Q, dtype=float), KEYS, KEYS).weights
    return heatmap(weights, LETTERS, LETTERS)


PAYOFFS = {
    "SelfAttention": Payoff(
        "This is a layer that torch can train: the gradient reaches all three matrices.",
        map_of_the_layer,
        "Next: keep it. In section 5 it learns to find Anna.",
    ),
    "alphabet_scores": Payoff(
        "A letter and itself score about 8, any other pair about 0: each letter finds its own slot.",
        lambda numbers: heatmap([numbers], ["a letter"], ["with itself", "with another"], limits=(0, 8), places=1),
        "Next: what a key is, and what a value carries.",
    ),
    "other_head": Payoff(
        "In the map row c is strongest in column h, so c gets the number that h holds.",
        memory_of_c,
        "Next: choose such queries yourself.",
    ),
    "choose_W_Q": Payoff(
        "Your four queries point to the next key in the circle.", circle, "Next: notebook [[masks]] hides keys."
    ),
}
