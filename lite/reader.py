"""The model on the first page: it reads a sentence token by token, and keeps what every head asks and offers.

worker.js runs this in the browser's Python, with NumPy and attnlib; tools/record_sentences.py runs it for the sentences
that are stored.
"""

import numpy as np

from attncourse.smollm import FAULTS
from attncourse.smollm.results import D_K
from attncourse.smollm.speaker import probabilities
from attnlib import core

MOST = 32  # tokens of a sentence: more have no room on the page
BARS, WRITTEN = 5, 8  # likely next words; tokens that it writes on
# What the page can break, by the names of lesson it_speaks.
MISTAKES = (
    "no scale",
    "no causal mask",
    "heads cut by reshape alone",
    "upper-left mask with the cache",
    "values rotated, too",
)
# Token by token these would show nothing: nobody can see what is not read yet, and one row has one order.
AT_ONCE = ("no causal mask", "heads cut by reshape alone")


class Reading:
    """A sentence as one speaker reads it: what was asked, offered and blocked in each layer, and what comes next."""

    def __init__(self, speaker, numbers, at_once):
        self.speaker, self.numbers, self.step = speaker, numbers, len(numbers) if at_once else 1
        self.queries, self.keys, self.masks = [[] for _ in speaker.layers], [None] * len(speaker.layers), []
        self.rows, self.past, self.written = [], None, []
        speaker.watch = self._watch

    def _watch(self, i, query, key, value, attn_mask):
        self.queries[i].append(query)
        self.keys[i] = key  # of all tokens so far
        if i == 0:
            self.masks.append(attn_mask)

    def follow(self, other):
        """Take over what another reading has read of the same beginning; the last token is read here."""
        same = zip(self.numbers[:-1], other.numbers[: len(other.rows)], strict=False)
        n = next((i for i, (a, b) in enumerate(same) if a != b), min(len(self.numbers) - 1, len(other.rows)))
        if n and self.step == 1:
            self.queries, self.masks = [layer[:n] for layer in other.queries], other.masks[:n]
            self.rows = other.rows[:n]
            self.past = [(keys[:, :n], values[:, :n]) for keys, values in other.past]

    def count_left(self):
        """Return how many tokens are not read yet."""
        return len(self.numbers) - sum(map(len, self.rows))

    def read_next(self):
        """Read the next tokens, and return how many are read."""
        start = len(self.numbers) - self.count_left()
        x, self.past = self.speaker(self.numbers[start : start + self.step], self.past)
        self.rows.append(x)
        if not self.count_left():
            self.speaker.watch = None  # what it writes on is not looked at
        return start + len(x)

    def next_words(self):
        """Return the most likely next tokens and their probabilities, [[text, probability], ...], falling."""
        p = probabilities(self.speaker.unembedding @ self.rows[-1][-1])
        likely = np.argsort(-p, kind="stable")[:BARS]
        return [["(end)" if i == self.speaker.end else self._text([i]), round(float(p[i]), 4)] for i in likely]

    def _text(self, numbers):
        return self.speaker.tokenizer.decode([int(i) for i in numbers])

    def loss(self):
        """Return the mean surprise at each token but the first, in nats; None of a single token."""
        x = np.concatenate(self.rows)[: len(self.numbers) - 1]
        return float(np.mean(self.speaker.surprise(x, self.numbers[1:]))) if len(x) else None

    def write(self):
        """Write one more token, the likeliest; return whether there may be another."""
        x = self.written[-1][1] if self.written else self.rows[-1][-1]
        new = int(np.argmax(self.speaker.unembedding @ x))
        if new == self.speaker.end or len(self.written) == WRITTEN:
            return False
        x, self.past = self.speaker([new], self.past)
        self.written.append((new, x[-1]))
        return True

    def text(self):
        """Return what it wrote."""
        return self._text([number for number, _ in self.written])

    def weights(self):
        """Return the weights of all heads, (layers, heads, n, n)."""
        queries, keys = np.stack([np.concatenate(layer, axis=1) for layer in self.queries]), np.stack(self.keys)
        keys = np.repeat(keys, queries.shape[1] // keys.shape[1], axis=1)
        allowed = np.zeros((len(self.numbers),) * 2, dtype=bool)
        for i, mask in enumerate(self.masks):
            allowed[i : i + len(mask), : mask.shape[-1]] = mask
        return core.attention_trace(queries, keys, keys, allowed).weights

    def lifts(self):
        """Return what each head adds to the likeliest next word by what it takes of each word, (layers, heads, n).

        Straight, past all later layers, above what it adds to the mean of all words, and up to one factor.
        """
        speaker, (h, g) = self.speaker, (self.speaker.shape.heads, self.speaker.shape.kv_heads)
        word = np.argmax(speaker.unembedding @ self.rows[-1][-1])
        towards = (speaker.unembedding[word] - speaker.unembedding.mean(axis=0)) * speaker.norm
        out = np.stack([(layer.attn_output @ towards).reshape(h, -1) for layer in speaker.layers])
        values = np.stack([values[:, : len(self.numbers)] for _, values in self.past])
        return self.weights()[:, :, -1] * (np.repeat(values, h // g, axis=1) @ out[..., None])[..., 0]


class Reader:
    """A sentence, and all the ways in which it was read so far.

    Parameters
    ----------
    speaker : Speaker
    text : str
        Up to MOST tokens.
    before : Reader, optional
        Of another sentence: what both begin with is not read again.

    Raises
    ------
    ValueError
        If the text is empty or longer.
    """

    def __init__(self, speaker, text, before=None):
        self.speaker, self.numbers, self.kept = speaker, speaker.tokens(text), {}
        self.before = before.kept if before else {}
        if len(self.numbers) > MOST:
            raise ValueError(
                f"A sentence must have at most {MOST} tokens, about {MOST * 3 // 4} words, got {len(self.numbers)}. "
                "Fix: a shorter one."
            )
        self.words = [speaker.tokenizer.decode([i]) for i in self.numbers]

    def reading(self, d_k=D_K, mistake=None, without=None):
        """Return the sentence as it is read at a d_k, with a mistake, or without a head, "layer.head"; each once."""
        key = mistake or without or d_k
        if key not in self.kept:
            changes = FAULTS[mistake] if mistake else {"scale": d_k**-0.5}
            if without:
                changes = {"without": [tuple(map(int, without.split(".")))]}
            self.kept[key] = Reading(self.speaker.using(**changes), self.numbers, mistake in AT_ONCE)
            if key in self.before:
                self.kept[key].follow(self.before[key])
        return self.kept[key]

    def whole(self, d_k=D_K, mistake=None, without=None):
        """Return that reading once all is read and written."""
        reading = self.reading(d_k, mistake, without)
        while reading.count_left():
            reading.read_next()
        while reading.write():
            pass
        return reading
