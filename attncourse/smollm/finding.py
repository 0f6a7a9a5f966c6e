"""Does the model find again what it has read? A second judge, beside the loss on the next word."""

import numpy as np

from . import texts
from .results import recorded

LENGTH, BETWEEN = 40, 120  # tokens of a text that is read twice, and of another between its copies
LISTS, FAR = 5, 60  # lists of eight codes, and tokens between a list and its questions
NARROW = {"window": 16, "sink": 1}


def found_again(speaker, text=texts.PROSE, between=texts.ALICE):
    """Return the mean surprise, in nats, at the second copy of a text's beginning, its first token left out."""
    once, between = speaker.tokens(text)[:LENGTH], speaker.tokens(between)[:BETWEEN]
    x, _ = speaker([*once, *between, *once])
    return float(speaker.surprise(x[-len(once) : -1], once[1:]).mean())


def list_codes(speaker, seed, between=texts.PROSE):
    """Return tokens of a text with eight codes of four digits that are asked again in another order, and where."""
    rng = np.random.default_rng(seed)
    codes = {name: "".join(map(str, rng.integers(0, 10, 4))) for name in rng.permutation(texts.NAMES)}
    listed = "".join(f"The code of {name} is {code}.\n" for name, code in codes.items())
    tokens = speaker.tokens(f"Remember these codes.\n{listed}") + speaker.tokens(between)[:FAR]
    tokens += speaker.tokens("\nOnce more.\n")
    places = []
    for name in rng.permutation(list(codes)):
        tokens += speaker.tokens(f"The code of {name} is {codes[name]}")
        places.append(range(len(tokens) - 4, len(tokens)))  # each digit is a token
        tokens += speaker.tokens(".\n")
    return tokens, places


def codes_found(speaker, lists=range(LISTS)):
    """Return the share of codes whose four digits are the model's first choices, and the mean surprise at a digit."""
    found, nats = [], []
    for seed in lists:
        tokens, places = list_codes(speaker, seed)
        x, _ = speaker(tokens)
        for place in places:
            before, digits = x[np.array(place) - 1], np.array(tokens)[place]
            found.append(((before @ speaker.unembedding.T).argmax(axis=-1) == digits).all())
            nats.append(speaker.surprise(before, digits))
    return float(np.mean(found)), float(np.mean(nats))


def narrow_layers(speaker):
    """Return a function of layers, counted from 1, that returns two losses if these see 16 tokens and the first alone.

    They are on the next word of Alice, and on the digits of codes that are asked again; those of one layer are stored.
    """
    alone, every = recorded("layers")["alone"], {*range(1, 31)}

    def judge(layers):
        layers = {int(i) for i in layers}
        if not layers <= every:
            raise ValueError("layers are 1 to 30")
        if len(layers) == 1:
            return tuple(alone[layers.pop() - 1])
        other = speaker.using(**NARROW, whole=every - layers)
        return other.loss(texts.ALICE), codes_found(other)[1]

    return judge
