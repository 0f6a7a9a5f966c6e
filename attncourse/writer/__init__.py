"""The decoder of lesson one_token_at_a_time, in NumPy: it writes the language of `grammar`, with stored weights.

Beside it, what is measured there: agreement over a noun that stands nearer, and which heads look back to the subject.
`training.decoder` trains the weights, in torch.
"""

import copy
import json
import math
import random

import numpy as np

from attnlib import validation
from attnlib.core import softmax
from attnlib.heads import KVCache, MultiHeadAttention

from ..model_files import DATA, NamedArrays
from .grammar import INTRANSITIVE, NOUNS, TRANSITIVE, grammatical, sentence
from .grammar import WORDS as LANGUAGE

START = "<s>"
WORDS = (START, *LANGUAGE)
NUMBER = {word: i for i, word in enumerate(WORDS)}
LENGTH = 20  # places of the decoder; the longest sentence takes 15, with the start
SEEDS = range(5)
# Options of `Writer` for the decoders that are compared, and which of them are stored, as trained from seed 0.
VARIANTS = {
    "writer": {},
    "no positions": {"positions": False},
    "2 KV heads": {"num_kv_heads": 2},
    "1 KV head": {"num_kv_heads": 1},
}
STORED = ("writer", "no positions", "2 KV heads")
RESULTS, WEIGHTS = DATA / "writer_results.json", DATA / "writer_weights.npz"  # tools/record_results.py writes both


class Corpus:
    """Sentences drawn once, as numbers.

    `tokens`, (size, LENGTH), has each behind the start, which is number 0 and also fills up what is left. `lowest_loss`
    is the mean surprise of a word, in nats, under the rules that drew them: no model that sees only the words before
    can expect less on sentences that it has not met.

    >>> corpus = Corpus(100, seed=1)
    >>> corpus.tokens.shape, all(map(grammatical, corpus.sentences))
    ((100, 20), True)
    """

    def __init__(self, size, seed):
        rng = random.Random(seed)
        sentences = [sentence(rng) for _ in range(size)]
        self.sentences = [words for words, _ in sentences]
        self.tokens = np.zeros((size, LENGTH), dtype=int)
        for row, words in zip(self.tokens, self.sentences, strict=True):
            row[: len(words) + 1] = tokens_of(words)[0]
        self.lowest_loss = sum(surprise for _, surprise in sentences) / sum(map(len, self.sentences))


def tokens_of(words):
    """Return the numbers of words, a list or a string with blanks, behind the start, (1, n + 1).

    >>> tokens_of("the cat").shape
    (1, 3)
    """
    words = words.split() if isinstance(words, str) else words
    return np.array([[NUMBER[word] for word in (START, *words)]])


def words_of(row):
    """Return the words of a row of numbers, without the start.

    >>> words_of(tokens_of("the cat")[0])
    ['the', 'cat']
    """
    return [WORDS[i] for i in row[1:]]


# NumPy has no error function, which GELU needs. So Phi, the share of the normal distribution below x, is computed once
# at 1,000 points a unit, and read off a straight line between two of them: GELU is then wrong by 4e-8 at most.
_REACH, _FINE = 8, 1_000
_POINTS = np.arange(-_REACH * _FINE, _REACH * _FINE + 1) / _FINE
_PHI = np.array([(1 + math.erf(x / math.sqrt(2))) / 2 for x in _POINTS])
_RISE = np.diff(_PHI)


def gelu(x):
    """x Phi(x), where Phi(x) is the share of the normal distribution below x.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    place = np.clip((x + _REACH) * _FINE, 0, 2 * _REACH * _FINE - 1)
    point = place.astype(np.int32)  # the one below
    return (x * (_PHI[point] + (place - point) * _RISE[point])).astype(x.dtype)


class Network:
    """gelu(x W_1 + b_1) W_2 + b_2, with twice the width of x in between."""

    def __init__(self, d_model, rng):
        self.W_1, self.b_1 = _linear(d_model, 2 * d_model, rng)
        self.W_2, self.b_2 = _linear(2 * d_model, d_model, rng)

    def __call__(self, x):
        return gelu(x @ self.W_1 + self.b_1) @ self.W_2 + self.b_2


def _linear(d_in, d_out, rng):
    limit = d_in**-0.5
    return rng.uniform(-limit, limit, (d_in, d_out)), rng.uniform(-limit, limit, d_out)


class Writer(NamedArrays):
    """A small decoder: words and places, then layers that add attention, and a small network, to what came in.

    `training.decoder.Writer` is its twin in torch. Without `positions` it has no vectors for places. `rng`, a
    Generator or a seed, draws the weights in float64; `load` puts trained ones in their place.

    >>> logits, maps = Writer(rng=0)(tokens_of("the cat"))
    >>> logits.shape, len(maps), maps[0].shape
    ((1, 3, 40), 2, (1, 4, 3, 3))
    """

    def __init__(self, layers=2, *, num_heads=4, num_kv_heads=None, d_model=32, positions=True, rng=None):
        rng = validation.generator(rng)
        self.token = rng.normal(size=(len(WORDS), d_model))
        self.place = rng.normal(size=(LENGTH, d_model)) if positions else np.zeros((LENGTH, d_model))
        options = {"bias": False, "num_kv_heads": num_kv_heads, "rng": rng}
        self.attention = [MultiHeadAttention(d_model, num_heads, **options) for _ in range(layers)]
        self.network = [Network(d_model, rng) for _ in range(layers)]
        self.W_read, self.b_read = _linear(d_model, len(WORDS), rng)

    def __call__(self, tokens, caches=None, *, masks=None, is_causal=True, start=None):
        """Return the logits of the next word at each place, (b, n, words), and the weights of each layer, (b, h, n, n).

        `caches` holds a KVCache for each layer, `masks` a mask for each; the first token stands at place `start`, by
        default right behind what the caches hold.
        """
        nothing = [None] * len(self.attention)
        caches, masks = caches or nothing, masks or nothing
        if start is None:
            start = 0 if caches[0] is None else len(caches[0])
        x, maps = self.token[tokens] + self.place[start : start + tokens.shape[1]], []
        layers = zip(self.attention, self.network, masks, caches, strict=True)
        for attention, network, mask, cache in layers:
            output, weights = attention(x, attn_mask=mask, is_causal=is_causal, cache=cache)
            x = x + output  # (b, n, d_model)
            x = x + network(x)
            maps.append(weights)
        return x @ self.W_read + self.b_read, maps

    def caches(self, kind=KVCache):
        """Return new caches, one for each layer."""
        return [kind() for _ in self.attention]

    def parts(self):
        """Return every array by name, as (what holds it, attribute)."""
        attention = [(part, ("W_Q", "W_K", "W_V", "W_O")) for part in self.attention]
        network = [(part, ("W_1", "b_1", "W_2", "b_2")) for part in self.network]
        holders = [(self, ("token", "place", "W_read", "b_read")), *attention, *network]
        return {f"{i} {name}": (part, name) for i, (part, names) in enumerate(holders) for name in names}

    def astype(self, dtype):
        """Return a copy that computes in another dtype."""
        return copy.deepcopy(self).load({name: array.astype(dtype) for name, array in self.weights().items()})


def stored(name):
    """Return one of the models `STORED`, with the weights that training gave it, in float32."""
    with np.load(WEIGHTS) as arrays:
        weights = {key.removeprefix(f"{name}/"): arrays[key] for key in arrays.files if key.startswith(f"{name}/")}
    return Writer(**VARIANTS[name]).load(weights)


def loss(model, tokens):
    """Return nats a word: the mean of -log p(next word)."""
    p, following = softmax(model(tokens[:, :-1])[0]), tokens[:, 1:]
    return float(-np.log(np.take_along_axis(p, following[..., None], -1)[..., 0])[following != NUMBER[START]].mean())


def all_at_once(model, **options):
    """Return a function for `write` that computes everything anew for each word."""
    return lambda tokens: model(tokens, **options)[0][:, -1]


def with_caches(model, caches=None, **options):
    """Return a function for `write` that gives the model only those tokens that its caches do not hold yet."""
    caches = caches or model.caches()
    return lambda tokens: model(tokens[:, len(caches[0]) :], caches, **options)[0][:, -1]


def write(step, prompt=(), *, size=1, temperature=1.0, seed=0):
    """Write sentences, `size` at once, one word at a time.

    `step` goes from the tokens so far, (size, n), to the logits of the next, (size, words), which are divided by the
    temperature; at 0 the most likely word is taken. A sentence goes up to and with its first ".", else to LENGTH - 1.
    """
    rng, tokens = np.random.default_rng(seed), tokens_of(prompt).repeat(size, axis=0)
    while tokens.shape[1] < LENGTH:
        logits = step(tokens)
        new = draw(softmax(logits / temperature), rng) if temperature else logits.argmax(-1)
        tokens = np.hstack([tokens, new[:, None]])  # (size, n + 1)
    return [words[: (*words, ".").index(".") + 1] for words in map(words_of, tokens.tolist())]


def draw(p, rng):
    """Draw a number from each row of probabilities, (size, words): the one in whose share a random number falls."""
    edges = p.cumsum(-1)
    return (edges <= rng.random((len(p), 1)) * edges[:, -1:]).sum(-1)


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
    return np.concatenate([tokens_of(words) for words, _ in rows]), np.array([plural for _, plural in rows])


def agreement(model, these=slice(None), **options):
    """Return for how many of these beginnings verbs that agree with the subject get more probability than others."""
    tokens, plural = (x[these] for x in beginnings())
    p = softmax(model(tokens, **options)[0][:, -1])  # (288, words)
    singular, plurals = (
        p[:, [NUMBER[verb] for verb in TRANSITIVE[n] + INTRANSITIVE[n]]].sum(-1) for n in (False, True)
    )
    return float(((plurals > singular) == plural).mean())


def rows_of_the_verb(model):
    """Return the weights of every head where the verb is due, (2, layers, h, 7): of a singular and of a plural subject.

    They are means over 144 beginnings each.
    """
    tokens, plural = beginnings()
    rows = np.stack(model(tokens)[1])[..., -1, :]  # (layers, 288, h, 7)
    return np.stack([rows[:, plural == number].mean(1) for number in (False, True)])


def without_edges(*keys):
    """Return masks for two layers: in the second one the place of the verb may not attend to these keys."""
    mask = np.ones((LAST + 1, LAST + 1), dtype=bool)
    mask[LAST, list(keys)] = False
    return [None, mask]


def without_head(model, layer, head):
    """Return a copy of a model in which one head, both counted from 1, hands on nothing."""
    model = copy.deepcopy(model)
    attention = model.attention[layer - 1]
    attention.W_O[(head - 1) * attention.d_k : head * attention.d_k] = 0
    return model


def window(width, keep_first=False, n=LENGTH):
    """Return (n, n) of bool: a token sees itself and the width - 1 before it, and perhaps the very first one."""
    i = np.arange(n)
    back = i[:, None] - i
    return ((back >= 0) & (back < width)) | (keep_first & (back >= 0) & (i == 0))


def measured(model, seed=0):
    """Return the figures that compare seeds: loss on new sentences, share of right ones among 500, agreement."""
    on_new = loss(model, Corpus(2000, seed=1).tokens)
    sentences = write(with_caches(model), size=500, seed=seed)
    return {"loss": on_new, "grammatical": share_grammatical(sentences), "agreement": agreement(model)}


def recorded():
    """Return what was measured on five seeds, a list of what `tools/record_results.py` says."""
    return json.loads(RESULTS.read_text("utf-8"))
