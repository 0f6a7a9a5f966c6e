"""The model on the first page: it writes a text token by token, and shows where a head looks meanwhile.

worker.js runs this in the browser's Python, with NumPy, Pillow and attnlib.
"""

import numpy as np

from attnlib import core, masks, svg
from attnlib.course.smollm import results
from attnlib.course.smollm.speaker import probabilities

MOST, LONGEST = 32, 64  # tokens of a prompt, and of the whole text: a longer map has no room for its words
BARS, SIDE = 3, 420  # likely next words; pixels of a side of the map


class Writer:
    """A text that grows by the likeliest token at each step, at a d_k that may change in between.

    Parameters
    ----------
    speaker : Speaker
    prompt : str
        Up to MOST tokens.

    Raises
    ------
    ValueError
        If the prompt is empty or longer.
    """

    def __init__(self, speaker, prompt):
        self.speaker, self.past = speaker.using(), None
        self.new = self.speaker.tokens(prompt)
        if len(self.new) > MOST:
            raise ValueError(
                f"The beginning must have at most {MOST} tokens, about {MOST * 3 // 4} words, got {len(self.new)}. "
                "Fix: a shorter one."
            )
        self.begun, self.numbers, self.following = len(self.new), list(self.new), []
        self.writing, self.d_k, self.d_ks = True, None, set()  # the d_k of the last word, and of all
        self.queries, self.keys = [[] for _ in self.speaker.layers], [None] * len(self.speaker.layers)
        self.speaker.watch = self._watch

    def _watch(self, i, query, key, value, attn_mask):
        self.queries[i].append(query)
        self.keys[i] = key

    def step(self, d_k):
        """Read what is new and choose the next token, all scores divided by sqrt(d_k); return False at the end."""
        if self.new == [self.speaker.end] or len(self.numbers) == LONGEST:
            self.writing = False
            return False
        self.d_k, self.speaker.scale = d_k, d_k**-0.5
        self.d_ks.add(d_k)
        x, self.past = self.speaker.read(self.new, self.past)
        p = probabilities(self.speaker.unembedding @ x)
        likely = np.argsort(-p, kind="stable")[:BARS]
        self.following = [(self._word(i), float(p[i])) for i in likely]
        self.new = [int(likely[0])]
        if self.new != [self.speaker.end]:
            self.numbers += self.new
        return True

    def _word(self, i):
        return "(end)" if i == self.speaker.end else self.speaker.tokenizer.decode([i])

    def text(self):
        """Return the prompt, and what is written behind it."""
        parts = self.numbers[: self.begun], self.numbers[self.begun :]
        return [self.speaker.tokenizer.decode(part) for part in parts]

    def weights(self, layer, head):
        """Return the map of a head over all tokens that were read, each row at the d_k of its time."""
        queries = np.concatenate(self.queries[layer - 1], axis=1)
        keys = self.keys[layer - 1]
        q, k = queries[head - 1], keys[(head - 1) * len(keys) // len(queries)]
        return core.attention_trace(q, k, k, masks.causal_mask(len(q))).weights

    def _d_k(self):
        """Return the d_k of the last word in words, and whether it is that of all."""
        last = f"d_k = {self.d_k:g}"
        if len(self.d_ks) > 1:
            return f"{last} for the last word"
        return last + (", the model's own" if self.d_k == results.D_K else "")

    def pictures(self, layer, head):
        """Return the last row of the map as ribbons, at the d_k that it was read with, and the whole map."""
        weights = self.weights(layer, head)
        n, name = len(weights), f"layer {layer}, head {head}"
        told, verdict = self._d_k(), "it writes" if self.writing else "it wrote"
        options = {"nexts": [self.following[0][0]], "verdict": verdict, "told": told, "head": name}
        words = self.speaker.tokenizer.words(self.numbers[:n])
        labels = [svg.visible(word) for word in words]
        row = svg.ribbons(words, weights[-1], n - 1, self.following, **options)
        options = {"queries": labels, "keys": labels, "attn_mask": masks.causal_mask(n)}
        return row + svg.heatmap(weights, title=name, side=SIDE, **options)
