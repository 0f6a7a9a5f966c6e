"""The model on the first page: it reads a sentence token by token, and keeps what every head asks and offers.

worker.js runs this in the browser's Python, with NumPy and attnlib; tools/record_sentences.py runs it for the sentences
that are stored.
"""

import numpy as np

from attnlib import core
from attnlib.course.smollm import FAULTS
from attnlib.course.smollm.results import D_K
from attnlib.course.smollm.speaker import probabilities

MOST = 32  # tokens of a sentence: more have no room on the page
BARS, WRITTEN = 5, 8  # likely next words; tokens that it writes on
# What the page can break, by the names of notebook 13.
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
        self.seen, self.rows, self.past, self.written = [[] for _ in speaker.layers], [], None, []
        speaker.watch = lambda i, query, key, value, attn_mask: self.seen[i].append((query, key, attn_mask))

    def left(self):
        """Return how many tokens are not read yet."""
        return len(self.numbers) - sum(map(len, self.rows))

    def read(self):
        """Read the next tokens, and return how many are read."""
        start = len(self.numbers) - self.left()
        x, self.past = self.speaker(self.numbers[start : start + self.step], self.past)
        self.rows.append(x)
        if not self.left():
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

    def weights(self, scale=None):
        """Return the weights of all heads, (layers, heads, n, n); all scores are multiplied by `scale`."""
        queries = np.stack([np.concatenate([query for query, _, _ in layer], axis=1) for layer in self.seen])
        keys = np.stack([layer[-1][1] for layer in self.seen])
        keys = np.repeat(keys, queries.shape[1] // keys.shape[1], axis=1)
        allowed = np.zeros((len(self.numbers),) * 2, dtype=bool)
        for i, (_, _, mask) in enumerate(self.seen[0]):
            allowed[i : i + len(mask), : mask.shape[-1]] = mask
        return core.attention_trace(queries, keys, keys, allowed, scale=scale).weights


class Reader:
    """A sentence, and all the ways in which it was read so far.

    Parameters
    ----------
    speaker : Speaker
    text : str
        Up to MOST tokens.

    Raises
    ------
    ValueError
        If the text is empty or longer.
    """

    def __init__(self, speaker, text):
        self.speaker, self.numbers, self.kept = speaker, speaker.tokens(text), {}
        if len(self.numbers) > MOST:
            raise ValueError(
                f"A sentence must have at most {MOST} tokens, about {MOST * 3 // 4} words, got {len(self.numbers)}. "
                "Fix: a shorter one."
            )
        self.words = [speaker.tokenizer.decode([i]) for i in self.numbers]

    def reading(self, d_k=D_K, mistake=None):
        """Return the sentence as it is read at a d_k, or with a mistake; each is read once."""
        key = mistake or d_k
        if key not in self.kept:
            changes = FAULTS[mistake][1] if mistake else {"scale": d_k**-0.5}
            self.kept[key] = Reading(self.speaker.using(**changes), self.numbers, mistake in AT_ONCE)
        return self.kept[key]

    def whole(self, d_k=D_K, mistake=None):
        """Return that reading once all is read and written."""
        reading = self.reading(d_k, mistake)
        while reading.left():
            reading.read()
        while reading.write():
            pass
        return reading
