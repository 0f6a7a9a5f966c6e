"""The decoder of notebook 11: it learns the language of `grammar` and writes it, word by word.

Beside it, what is measured there: agreement over a noun that stands nearer, and which heads look back to the subject.
"""

import copy
import json
import random
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ..torch_layers import KVCache, MultiHeadAttention
from .grammar import INTRANSITIVE, NOUNS, TRANSITIVE, grammatical, sentence
from .grammar import WORDS as LANGUAGE
from .training import train

START = "<s>"
WORDS = (START, *LANGUAGE)
NUMBER = {word: i for i, word in enumerate(WORDS)}
LENGTH = 20  # places of the decoder; the longest sentence takes 15, with the start
SEEDS = range(5)
RESULTS = Path(__file__).parent / "data" / "writer_results.json"  # tools/record_results.py writes it


class Corpus:
    """Sentences drawn once, as numbers.

    Attributes
    ----------
    sentences : list of list of str
    tokens : Tensor of int, (size, LENGTH)
        Each behind the start, which is number 0 and also fills up what is left.
    lowest_loss : float
        Nats a word: the mean surprise of these sentences under the rules that drew them. No model that sees only the
        words before can expect less on sentences that it has not met.

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
        self.tokens = torch.zeros(size, LENGTH, dtype=torch.long)
        for row, words in zip(self.tokens, self.sentences, strict=True):
            row[: len(words) + 1] = tokens_of(words)[0]
        self.lowest_loss = sum(surprise for _, surprise in drawn) / sum(map(len, self.sentences))

    def draw(self, generator):
        """Return a batch of 64 sentences."""
        return self.tokens[torch.randint(len(self.tokens), (64,), generator=generator)]


def tokens_of(words):
    """Return the numbers of words, a list or a string with blanks, behind the start, (1, n + 1).

    Examples
    --------
    >>> tokens_of("the cat").shape
    torch.Size([1, 3])
    """
    words = words.split() if isinstance(words, str) else words
    return torch.tensor([[NUMBER[word] for word in (START, *words)]])


def words_of(row):
    """Return the words of a row of numbers, without the start.

    Examples
    --------
    >>> words_of(tokens_of("the cat")[0])
    ['the', 'cat']
    """
    return [WORDS[i] for i in row[1:]]


class Writer(nn.Module):
    """A small decoder: words and places, then layers that add attention, and a small network, to what came in.

    Parameters
    ----------
    layers, num_heads, num_kv_heads, d_model : int
    positions : bool
        False: no vectors for places.
    is_causal : bool
        False: every word sees the words behind it, too.

    Examples
    --------
    >>> logits, maps = Writer()(tokens_of("the cat"))
    >>> logits.shape, len(maps), maps[0].shape
    (torch.Size([1, 3, 40]), 2, torch.Size([1, 4, 3, 3]))
    """

    def __init__(self, layers=2, *, num_heads=4, num_kv_heads=None, d_model=32, positions=True, is_causal=True):
        super().__init__()
        self.token, self.read = nn.Embedding(len(WORDS), d_model), nn.Linear(d_model, len(WORDS))
        places = torch.randn(LENGTH, d_model) if positions else torch.zeros(LENGTH, d_model)
        self.place = nn.Parameter(places, requires_grad=positions)
        options = {"bias": False, "num_kv_heads": num_kv_heads}
        self.attention = nn.ModuleList(MultiHeadAttention(d_model, num_heads, **options) for _ in range(layers))
        self.network = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))
            for _ in range(layers)
        )
        self.is_causal = is_causal

    def forward(self, tokens, caches=None, *, masks=None, is_causal=None, start=None):
        """Return the logits of the next word at each place, (b, n, words), and the weights of each layer, (b, h, n, n).

        `caches` holds a KVCache for each layer, `masks` a mask for each; the first token stands at place `start`, by
        default right behind what the caches hold.
        """
        nothing = [None] * len(self.attention)
        caches, masks = caches or nothing, masks or nothing
        is_causal = self.is_causal if is_causal is None else is_causal
        if start is None:
            start = 0 if caches[0] is None else len(caches[0])
        x, maps = self.token(tokens) + self.place[start : start + tokens.shape[1]], []
        layers = zip(self.attention, self.network, masks, caches, strict=True)
        for attention, network, mask, cache in layers:
            output, weights = attention(x, attn_mask=mask, is_causal=is_causal, cache=cache)
            x = x + output  # (b, n, d_model)
            x = x + network(x)
            maps.append(weights)
        return self.read(x), maps

    def caches(self, kind=KVCache):
        """Return new caches, one for each layer."""
        return [kind() for _ in self.attention]


def loss(model, tokens):
    """Return nats a word: the mean of -log p(next word)."""
    logits, _ = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=NUMBER[START])


def trained(corpus, seed=0, *, steps=840, description=None, **options):
    """Return a Writer after `steps` steps of Adam at rate 5e-3 and 3/7 as many at 5e-4."""
    torch.manual_seed(seed)
    model = Writer(**options)
    train(model, corpus.draw, loss, steps=steps, lr=5e-3, seed=seed, description=description)
    description = description and f"{description}, smaller steps"
    train(model, corpus.draw, loss, steps=steps * 3 // 7, lr=5e-4, seed=seed + 100, description=description)
    return model


def all_at_once(model, **options):
    """Return a function for `write` that computes everything anew for each word."""
    return lambda tokens: model(tokens, **options)[0][:, -1]


def with_caches(model, caches=None, **options):
    """Return a function for `write` that gives the model only those tokens that its caches do not hold yet."""
    caches = caches or model.caches()
    return lambda tokens: model(tokens[:, len(caches[0]) :], caches, **options)[0][:, -1]


@torch.no_grad()
def write(step, prompt=(), *, size=1, temperature=1.0, seed=0):
    """Write sentences, `size` at once, one word at a time.

    Parameters
    ----------
    step : callable
        From the tokens so far, (size, n), to the logits of the next, (size, words).
    prompt : str or sequence of str
        Words to begin with.
    size : int
    temperature : float
        The logits are divided by it; 0 takes the most likely word.
    seed : int

    Returns
    -------
    list of list of str
        Up to and with the first "."; or LENGTH - 1 words, where there is none.
    """
    generator, tokens = torch.Generator().manual_seed(seed), tokens_of(prompt).repeat(size, 1)
    while tokens.shape[1] < LENGTH:
        logits = step(tokens)
        if temperature:
            new = (logits / temperature).softmax(-1).multinomial(1, generator=generator)
        else:
            new = logits.argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, new], 1)  # (size, n + 1)
    return [_up_to_end(words_of(row)) for row in tokens.tolist()]


def _up_to_end(words):
    return words[: words.index(".") + 1] if "." in words else words


def share_grammatical(sentences):
    """Return the share of sentences that are right."""
    return sum(map(grammatical, sentences)) / len(sentences)


# Beginnings of 7 tokens after which the main verb is due, "the cats that the dog sees": the subject stands at place 2,
# a noun of the other number at 5.
SUBJECT, THAT, OTHER, LAST = 2, 3, 5, 6
WAYS_BACK = (SUBJECT, THAT)
WIDTHS = (4, 6, 8, 10)  # of windows


def beginnings():
    """Return all 288 of them, (288, 7), and which have a subject in the plural, (288,)."""
    rows = [
        (["the", subject, "that", "the", other, verb], plural)
        for plural in (False, True)
        for subject in NOUNS[plural]
        for other in NOUNS[not plural]
        for verb in TRANSITIVE[not plural]
    ]
    return torch.cat([tokens_of(words) for words, _ in rows]), torch.tensor([plural for _, plural in rows])


@torch.no_grad()
def agreement(model, **options):
    """Return for how many of the beginnings verbs that agree with the subject get more probability than others."""
    tokens, plural = beginnings()
    p = model(tokens, **options)[0][:, -1].softmax(-1)  # (288, words)
    singular, plurals = (
        p[:, [NUMBER[verb] for verb in TRANSITIVE[n] + INTRANSITIVE[n]]].sum(-1) for n in (False, True)
    )
    return ((plurals > singular) == plural).float().mean().item()


@torch.no_grad()
def rows_of_the_verb(model):
    """Return the weights of every head where the verb is due, for a singular and a plural subject.

    Returns
    -------
    Tensor, (2, layers, h, 7)
        Means over 144 beginnings each.
    """
    tokens, plural = beginnings()
    rows = torch.stack(model(tokens)[1])[..., -1, :]  # (layers, 288, h, 7)
    return torch.stack([rows[:, plural == number].mean(1) for number in (False, True)])


def without_edges(*keys):
    """Return masks for two layers: in the second one the place of the verb may not attend to these keys."""
    mask = np.ones((LAST + 1, LAST + 1), dtype=bool)
    mask[LAST, list(keys)] = False
    return [None, mask]


def without_head(model, layer, head):
    """Return a copy of a model in which one head, both counted from 1, hands on nothing."""
    model = copy.deepcopy(model)
    attention = model.attention[layer - 1]
    with torch.no_grad():
        attention.W_O.weight[:, (head - 1) * attention.d_k : head * attention.d_k] = 0
    return model


def as_if(model, d_k):
    """Return a copy of a model whose scores are divided by the root of another d_k."""
    model = copy.deepcopy(model)
    for attention in model.attention:
        with torch.no_grad():
            attention.W_Q.weight *= (attention.d_k / d_k) ** 0.5
    return model


def window(width, keep_first=False, n=LENGTH):
    """Return (n, n) of bool: a token sees itself and the width - 1 before it, and perhaps the very first one."""
    i = np.arange(n)
    back = i[:, None] - i
    return ((back >= 0) & (back < width)) | (keep_first & (back >= 0) & (i == 0))


def in_window(model, width, keep_first=False):
    """Return what becomes of a model that may look back no further: agreement, and the share of right sentences."""

    def step(tokens):
        return model(tokens, masks=[window(width, keep_first, tokens.shape[1])] * len(model.attention))[0][:, -1]

    masks = [window(width, keep_first, LAST + 1)] * len(model.attention)
    return {
        "agreement": agreement(model, masks=masks),
        "grammatical": share_grammatical(write(step, size=500)),
    }


def measured(model, seed=0):
    """Return what five seeds are compared by: loss on new sentences, share of right ones among 500, agreement."""
    with torch.no_grad():
        on_new = loss(model, Corpus(2000, seed=1).tokens).item()
    sentences = write(with_caches(model) if model.is_causal else all_at_once(model), size=500, seed=seed)
    return {"loss": on_new, "grammatical": share_grammatical(sentences), "agreement": agreement(model)}


def recorded():
    """Return what was measured on five seeds, a list of what `tools/record_results.py` says."""
    return json.loads(RESULTS.read_text("utf-8"))
