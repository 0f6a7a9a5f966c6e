"""The language of notebook 11, small enough to say of every sentence whether it is right, and a decoder that writes it.

A sentence is a subject, perhaps with something behind it, and a verb that agrees with the subject: not with the noun
that stands nearer.

    the cat sleeps .    the old cats near the dog see the king today .    the cat that the dogs like runs .
"""

import math
import random
import re

import torch
from torch import nn

from ..torch_layers import KVCache, MultiHeadAttention

SINGULAR = ("cat", "dog", "king", "child", "farmer", "bird")
PLURAL = ("cats", "dogs", "kings", "children", "farmers", "birds")
# A transitive verb has an object, an intransitive one has none; with a singular subject, and with a plural one.
TRANSITIVE = (("sees", "hears", "likes", "follows"), ("see", "hear", "like", "follow"))
INTRANSITIVE = (("sleeps", "runs", "sings", "waits"), ("sleep", "run", "sing", "wait"))
CLASSES = {
    "d": ("the",),
    "a": ("small", "old", "young", "happy"),
    "n": SINGULAR,
    "N": PLURAL,
    "t": TRANSITIVE[0],
    "T": TRANSITIVE[1],
    "i": INTRANSITIVE[0],
    "I": INTRANSITIVE[1],
    "p": ("near", "behind"),
    "r": ("that",),
    "b": ("today", "often"),
    ".": (".",),
}
START = "<s>"
WORDS = (START, *(word for words in CLASSES.values() for word in words))
NUMBER = {word: i for i, word in enumerate(WORDS)}
CLASS = {word: letter for letter, words in CLASSES.items() for word in words}
LENGTH = 20  # places of the decoder; the longest sentence takes 15, with the start

_NOUN = "da?[nN]"
_RIGHT = re.compile(
    rf"da?n(p{_NOUN}|r(da?nt|da?NT)|rt{_NOUN})?(i|t{_NOUN})b?\."
    rf"|da?N(p{_NOUN}|r(da?nt|da?NT)|rT{_NOUN})?(I|T{_NOUN})b?\."
)


def grammatical(words):
    """Tell whether a list of words is a sentence of the language.

    It reads the kinds of words by a pattern, and shares nothing with `sentence`, which writes them.

    Examples
    --------
    >>> grammatical("the cat that the dogs like sleeps .".split())
    True
    >>> grammatical("the cat that the dogs like sleep .".split())
    False
    """
    return bool(_RIGHT.fullmatch("".join(CLASS.get(word, "?") for word in words)))


def sentence(rng):
    """Draw a sentence: return its words, and how surprising it is: -log of its probability, in nats."""
    surprise = 0.0

    def choose(options, weights=None):
        nonlocal surprise
        i = rng.choices(range(len(options)), weights)[0]
        surprise -= math.log(weights[i] / sum(weights) if weights else 1 / len(options))
        return options[i]

    def noun(plural):
        adjective = [choose(CLASSES["a"])] if choose((True, False), (2, 3)) else []
        return ["the", *adjective, choose(PLURAL if plural else SINGULAR)]

    def any_noun():
        return noun(choose((False, True)))

    plural = choose((False, True))
    words = noun(plural)
    match choose(("alone", "near", "that the dogs see", "that sees the dogs"), (3, 3, 2, 2)):
        case "near":
            words += [choose(CLASSES["p"]), *any_noun()]
        case "that the dogs see":
            inner = choose((False, True))
            words += ["that", *noun(inner), choose(TRANSITIVE[inner])]
        case "that sees the dogs":
            words += ["that", choose(TRANSITIVE[plural]), *any_noun()]
    words += [choose(TRANSITIVE[plural]), *any_noun()] if choose((True, False)) else [choose(INTRANSITIVE[plural])]
    words += [choose(CLASSES["b"])] if choose((True, False), (3, 7)) else []
    return [*words, "."], surprise


class Corpus:
    """Sentences drawn once, as numbers.

    Attributes
    ----------
    sentences : list of list of str
    tokens : Tensor of int, (size, LENGTH)
        Each behind the start, which also fills up what is left.
    lowest_loss : float
        Nats a word: the mean surprise of these sentences under the rules that drew them. An honest model, which sees
        the words before and no others, is not better on sentences it has not seen.

    Examples
    --------
    >>> corpus = Corpus(100, seed=1)
    >>> corpus.tokens.shape, all(map(grammatical, corpus.sentences))
    (torch.Size([100, 20]), True)
    """

    def __init__(self, size, seed):
        rng = random.Random(seed)
        drawn = [sentence(rng) for _ in range(size)]
        self.sentences = [words for words, _ in drawn]
        self.tokens = torch.stack([padded(words) for words in self.sentences])
        self.lowest_loss = sum(surprise for _, surprise in drawn) / sum(map(len, self.sentences))

    def draw(self, generator):
        """Return a batch of 64 sentences."""
        return self.tokens[torch.randint(len(self.tokens), (64,), generator=generator)]


def numbers(words):
    """Return words as numbers, (1, n), the start before them."""
    return torch.tensor([[NUMBER[word] for word in (START, *words)]])


def padded(words):
    return nn.functional.pad(numbers(words)[0], (0, LENGTH - 1 - len(words)))  # the start is number 0


class Writer(nn.Module):
    """A small decoder: words and places, and layers that add attention, then a small network, to what came in."""

    def __init__(self, layers=2, *, num_heads=4, num_kv_heads=None, d_model=32, positions=True, is_causal=True):
        super().__init__()
        self.token, self.read = nn.Embedding(len(WORDS), d_model), nn.Linear(d_model, len(WORDS))
        self.place = nn.Parameter(torch.randn(LENGTH, d_model) if positions else torch.zeros(LENGTH, d_model))
        self.place.requires_grad_(positions)
        options = {"bias": False, "num_kv_heads": num_kv_heads}
        self.attention = nn.ModuleList(MultiHeadAttention(d_model, num_heads, **options) for _ in range(layers))
        self.network = nn.ModuleList(_network(d_model) for _ in range(layers))
        self.is_causal = is_causal

    def forward(self, tokens, caches=None, *, masks=None, is_causal=None, start=None):
        """Return the logits of the next word at every place, (b, n, words), and the weights of each layer.

        `caches` is a list with a KVCache for each layer, `masks` one with a mask for each; `start` is the place of the
        first token, by default right behind what the caches hold.
        """
        nothing = [None] * len(self.attention)
        caches, masks = caches or nothing, masks or nothing
        is_causal = self.is_causal if is_causal is None else is_causal
        if start is None:
            start = 0 if caches[0] is None else len(caches[0])
        x, maps = self.token(tokens) + self.place[start : start + tokens.shape[-1]], []
        for attention, network, cache, mask in zip(self.attention, self.network, caches, masks, strict=True):
            output, weights = attention(x, attn_mask=mask, is_causal=is_causal, cache=cache)
            x = x + output
            x = x + network(x)
            maps.append(weights)
        return self.read(x), maps

    def caches(self, kind=KVCache):
        """Return new caches, one for each layer."""
        return [kind() for _ in self.attention]


def _network(d_model):
    return nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))


def loss(model, tokens):
    """Return nats a word: the mean of -log p(next word)."""
    logits, _ = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=NUMBER[START])


def write(step, prompt=(), *, size=1, temperature=1.0, seed=0):
    """Write sentences, `size` at once, one word at a time.

    Parameters
    ----------
    step : callable
        From the tokens so far, (size, n), to the logits of the next, (size, words).
    prompt : sequence of str
        Words to begin with.
    size : int
    temperature : float
        Logits are divided by it; 0 takes the most likely word.
    seed : int

    Returns
    -------
    list of list of str
        Up to and with the first "."; or LENGTH - 1 words, where there is none.
    """
    generator = torch.Generator().manual_seed(seed)
    tokens = numbers(prompt).repeat(size, 1)
    with torch.no_grad():
        while tokens.shape[1] < LENGTH:
            logits = step(tokens)
            if temperature:
                new = (logits / temperature).softmax(-1).multinomial(1, generator=generator)
            else:
                new = logits.argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, new], 1)  # (size, n + 1)
    return [up_to_end([WORDS[i] for i in row[1:]]) for row in tokens.tolist()]


def up_to_end(words):
    return words[: words.index(".") + 1] if "." in words else words


def share_grammatical(sentences):
    return sum(map(grammatical, sentences)) / len(sentences)
