"""One of each live view, and ways to read what one shows, for the tests of views."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np

import attnlib as al
import attnlib.examples
from attnlib import live

WORDS = ("<s>", "a & b", "the", "cat", "<i>", ".")


def next_word(tokens):
    """A model that likes what it has not said yet; its heads look at one token each."""
    logits = np.array([-9.0, *(-tokens.count(word) for word in WORDS[1:])])
    scores = np.eye(len(tokens))[[0, -1]] * 3
    return logits, dict(zip(("first", "<last>"), al.softmax(scores), strict=True))


def stops(words=("When", " <Mary>", " &", "\n", " gave", " to"), d_ks=(1, 4, 64, 4096), own=64, likely=" <Mary>"):
    """What a model could store: the word in the middle wins, but at both ends of d_k another."""
    n, found = len(words), []
    for d_k in d_ks:
        scores = np.where(np.tri(n, dtype=bool), np.cos(np.arange(n) + np.arange(n)[:, None]) * 9 / d_k**0.5, -np.inf)
        first = likely if 1 < d_k < max(d_ks) else " the" if d_k == 1 else "-"
        wrote = {"text": f' {first}, "& so" on.\n' * 4, "loss": {"prose": 3 + np.log(d_k / own) ** 2, "<code>": 2.5}}
        following = [(first, 0.6), (" <b>", 0.2), ("\n", 0.1), ("<|im_end|>", 0.05)]
        found.append({"d_k": d_k, "weights": al.softmax(scores).tolist(), "next": following, **wrote})
    return {"prompt": "".join(words), "words": list(words), "layer": 25, "head": 5, "d_k": own, "stops": found}


def both_maps(n=8, d_k=(1, 512), still=(1, 64, 512), **options):
    """A view of n unit-normal queries and keys, with the scale and without; every d_k takes their first entries."""
    query, key = np.random.default_rng(3).normal(size=(2, n, d_k[1]))

    def weights_at(d_k):
        scores = query[:, :d_k] @ key[:, :d_k].T  # (n, n)
        return {"not scaled": al.softmax(scores), "divided by sqrt(d_k)": al.softmax(scores / d_k**0.5)}

    return live.weights_view(weights_at, d_k=d_k, still=still, **options)


RNG = np.random.default_rng(351)  # as in lesson long_texts
TOKENS = (*RNG.integers(-2, 3, (2, 8, 4)), RNG.integers(-2, 4, (8, 2)))


def one_row(**options):
    """The row of *she*."""
    return live.one_row(al.examples.SENTENCE, al.examples.W_O, query=3, line="who", **al.examples.NAMES | options)


KEYS = np.random.default_rng(2).normal(size=(12, 16)) + 6 * (np.arange(16) % 5 == 1)  # stripes that all share
QUERIES = np.random.default_rng(3).normal(size=(12, 16))
TEXT = ("<s>", " a & b", " the", "\n", " <i>", ".", " she", " had", "ing", " to", " do", ",")


def ways():
    """Points of a price: two families and the reader's own, by two judges."""
    whole = {"family": "whole", "name": "float32", "bytes": 256, "loss": 3.325, "text": " a small robot was lost"}
    rounded = [
        {"family": family, "name": f"{bits} bits", "bytes": 8 * bits + at, "loss": 3.3 + at * 4.0**-bits, "text": text}
        for family, at, text in (("a <scale> per token", 24, " a small robot & so"), ("per feature", 6, " a"))
        for bits in (2, 3, 4, 8)
    ]
    given = [whole, *rounded, {**whole, "family": "mine", "name": "<my> way", "bytes": 20, "loss": 3.5, "own": True}]
    return [
        {**way, "again": 0.5 + 30 / way["bytes"] ** 0.5 * (k % 3), "codes": 1 / (1 + k)} for k, way in enumerate(given)
    ]


def two_sentences():
    """What two heads add for the last word of two sentences; the second head tells them apart."""
    words = (["<s>", " a", " &", " b", " to"], ["<s>", " b", " &", " a", " to"])
    says = {"0": [0.9, 0.002], "1": [0.8, 0.01], "2": [0.5, 0.4], "all": [0.3, 0.3]}
    looks = [[0.1, 0.6, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7, 0.0]]
    return [
        {
            "name": "a & b to",
            "words": words[0],
            "weights": looks,
            "before": [9, 6],
            "heads": [[12, 4], [0, -22]],
            "says": says,
        },
        {
            "name": "<b> & a",
            "words": words[1],
            "weights": looks,
            "before": [7, 5],
            "heads": [[4, 12], [-28, -3]],
            "says": says,
        },
    ]


ASKS = ("Head 2 looks at “b”. What does it say?", ["b", "not <b>"], "It says: not b.")


VIEWS = {
    "head_arrows": lambda: live.head_arrows(two_sentences(), ("a", "<b>")),
    "ribbons": lambda: live.ribbons(stops()),
    "grid": lambda: live.grid(SimpleNamespace(keys=[np.array([1.5, 2.0])], maps=[np.full((2, 3, 3), 1 / 3)])),
    "rotations": live.rotations,
    "speaking": lambda: live.speaking(stops()),
    "one_row": lambda: one_row(words=("<s>", "a & b", "Ben", "she"), stage=3),
    "flow": lambda: live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project(), is_causal=True)),
    "plane": live.plane,
    "saturation": live.saturation,
    "scores": live.scores,
    "masks": live.masks,
    "split_heads": lambda: live.split_heads(["<s>", "a & b", "cat"], d_k=2),
    "sentence": lambda: live.sentence(attend, "a <b> & c"),
    "weights_view": both_maps,
    "writing": lambda: live.writing(next_word, WORDS, longest=9),
    "tiles": lambda: live.tiles(*TOKENS),
    "keys_map": lambda: live.keys_map(KEYS, QUERIES, tokens=TEXT, row=7),
    "price": lambda: live.price(ways()),
    "compare": lambda: live.compare(compared, convoy="*AB"),
}


def attend(text):
    """Two layers of three heads: each looks at the words before it, the later the layer the sharper."""
    words = text.split()
    scores = np.where(np.tri(len(words), dtype=bool), np.arange(len(words)), -np.inf)
    return words, np.stack([np.stack([al.softmax(scores * layer * head) for head in (1, 2, 3)]) for layer in (1, 2)])


def compared(text, times):
    """A convoy of letters; anything else is none."""
    if not text.strip("*").isalpha():
        return [], {}, "", f"{text} is no convoy."
    maps = {"wanted": np.eye(len(text)), "yours": al.softmax(times * np.eye(len(text)))}
    return list(text), maps, f"<b>{len(text)} ships</b>", "Anything goes in row 0."


SVG = re.compile(r"<svg.*?</svg>", re.S)


def parsed(picture):
    return [ElementTree.fromstring(text) for text in SVG.findall(picture)]


def tags(element):
    return [child.tag for child in element.iter()]


def read(view):
    """Return all that a view says: texts of its SVG and HTML, tags removed."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", view.picture.value))


def strip(html):
    return re.sub(r"<[^>]*>", "", html)
