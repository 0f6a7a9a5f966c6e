"""A language model in NumPy that speaks through functions of attention that are handed in.

The model is SmolLM2-135M-Instruct: a Llama of 30 layers, 9 heads of queries, 3 of keys and values, d_k = 64. Its loop
is `Speaker.__call__` and `Speaker.layer`: everything but attention is three lines (RMSNorm, SwiGLU, the residual sum).

Sources: Touvron et al. 2023 (Llama), Zhang and Sennrich 2019 (RMSNorm), Shazeer 2020 (SwiGLU), Ben Allal et al. 2025
(SmolLM2).
"""

import codecs
import copy
from dataclasses import replace

import numpy as np

from attnlib import validation
from attnlib.core import attention_trace, softmax
from attnlib.progress import progress

from . import gguf_file
from .functions import FUNCTIONS, SETTINGS, Functions, call_checked, checked_step
from .tokenizer import BytePairs
from .weights import layer_of, shape_of

CHUNK = 128  # tokens read at once: the scores of a whole prompt of 8,192 tokens would take 2.4 GB a layer
END = "<|im_end|>"


def rms_norm(x, gain, eps):
    """Divide each row by its root mean square, and stretch its features by the gain."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * gain


def swiglu(x, gate, up, down):
    """(silu(x W_gate) * x W_up) W_down, with silu(z) = z / (1 + e^-z)."""
    z = x @ gate
    with np.errstate(over="ignore"):  # e^-z may be infinite, and z / inf is the right 0
        return (z / (1 + np.exp(-z)) * (x @ up)) @ down


class Speaker:
    """The model: weights, tokenizer, the functions it attends with, and what can be set wrong on purpose.

    Make one with `load`, and others of the same weights with `using`.

    `scale` is a factor on the scores; None leaves that to `attention`, which divides by sqrt(d_k). `base` is that of
    the rotary positions. Each token sees itself, the `window` - 1 before it (None: all), and the first `sink` tokens;
    in the layers `whole` it sees all.
    """

    def __init__(self, settings, weights):
        self.shape = shape_of(settings)
        self.layers = [layer_of(weights, i, self.shape) for i in range(self.shape.layers)]
        self.embedding, self.norm = weights["token_embd.weight"], weights["output_norm.weight"]
        # (vocabulary, d_model); SmolLM2 has one for both.
        self.unembedding = weights.get("output.weight", self.embedding)
        tokens, kinds = settings["tokenizer.ggml.tokens"], settings["tokenizer.ggml.token_type"]
        control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
        self.tokenizer = BytePairs(tokens, settings["tokenizer.ggml.merges"], control)
        self.end = self.tokenizer.number[END]
        self.functions, self.base = Functions(), settings["llama.rope.freq_base"]
        self.scale, self.window, self.sink = None, None, 0
        self.without, self.whole, self.watch = {}, frozenset(), None

    # The loop

    def __call__(self, tokens, past=None):
        """Return (x, past): the last vectors of some new tokens, normed, and what is kept for the next call."""
        past = past or self.empty()
        x = self.embedding[tokens]  # (n, d_model)
        positions = np.arange(len(past[0][0][0]), len(past[0][0][0]) + len(x))  # they continue those in the cache
        kept = []
        for i, layer in enumerate(self.layers):
            x, now = self.layer(i, layer, x, positions, past[i])
            kept.append(now)
        return rms_norm(x, self.norm, self.shape.eps), kept

    def layer(self, i, w, x, positions, past):
        """One layer: attention and a feed-forward network, each added to what came in."""
        normed = rms_norm(x, w.attn_norm, self.shape.eps)
        attended, past = self.attend(i, normed @ w.attn_q, normed @ w.attn_k, normed @ w.attn_v, positions, past)
        x = x + attended @ w.attn_output
        normed = rms_norm(x, w.ffn_norm, self.shape.eps)
        return x + swiglu(normed, w.ffn_gate, w.ffn_up, w.ffn_down), past

    def attend(self, i, q, k, v, positions, past):
        """Attention of layer i, (n, h d_k), by the functions that were handed in."""
        f, (h, g, d_k), n = self.functions, (self.shape.heads, self.shape.kv_heads, self.shape.d_k), len(positions)
        q = call_checked("split_heads", f.split_heads, (q, h), (h, n, d_k))
        k = call_checked("split_heads", f.split_heads, (k, g), (g, n, d_k))
        v = call_checked("split_heads", f.split_heads, (v, g), (g, n, d_k))
        q = call_checked("rope", f.rope, (q, positions, self.base), (h, n, d_k))
        k = call_checked("rope", f.rope, (k, positions, self.base), (g, n, d_k))
        if self.scale is not None:  # a factor on the queries is one on the scores
            q = q * np.float32(self.scale * np.sqrt(d_k))

        def attend(query, key, value, attn_mask=None):
            if i not in self.whole:
                attn_mask = self.narrow_mask(attn_mask, query.shape[-2], key.shape[-2])
            if self.watch:
                self.watch(i, query, key, value, attn_mask)
            arguments = query, key, value, attn_mask, f.checked_attention
            return call_checked("grouped_attention", f.grouped_attention, arguments, (h, n, d_k))

        output, past = checked_step(f.decode_step(q, k, v, past, attend), (h, n, d_k), (g, len(past[0][0]) + n, d_k))
        if i in self.without:
            output = output * (~np.isin(np.arange(h), self.without[i]))[:, None, None]
        return call_checked("merge_heads", f.merge_heads, (output,), (n, h * d_k)), past

    def narrow_mask(self, attn_mask, n_q, n_k):
        """Let a mask allow only the keys within the window, and the first `sink` ones."""
        if self.window is None:
            return attn_mask
        back = np.arange(n_k - n_q, n_k)[:, None] - np.arange(n_k)  # how far key j lies behind query i
        kept = (back < self.window) | (np.arange(n_k) < self.sink)
        return kept if attn_mask is None else attn_mask & kept

    def empty(self):
        """Return what is kept before the first token: no keys and no values, in each layer."""
        none = np.zeros((self.shape.kv_heads, 0, self.shape.d_k), np.float32)
        return [(none, none)] * self.shape.layers

    # What it is asked

    def using(self, **changes):
        """Return a speaker with the same weights and other functions or settings.

        `changes` are any of the fields of `Functions`; `scale`, `base`, `window`, `sink`; `whole`, a list of layers
        that the window does not narrow; and `without`, a list of heads whose output is set to 0, (layer, head). Both
        count from 1. Another name, or what cannot be called, raises TypeError; a setting out of range ValueError.
        """
        other, own = copy.copy(self), {name: f for name, f in changes.items() if name in FUNCTIONS}
        for name, function in own.items():
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {type(function).__name__}. Fix: {name}=my_{name}.")
        other.functions = replace(self.functions, **own)
        for name in changes.keys() - own.keys():
            if name not in SETTINGS:
                raise TypeError(
                    f"a speaker can use {', '.join((*FUNCTIONS, *SETTINGS))}; got {name}. Fix: one of these names."
                )
            setattr(other, name, SETTINGS[name](changes[name], self.shape))
        return other

    def tokens(self, text, room=0):
        """Return the numbers of the tokens of a text, at least one and at most the model's context less `room`."""
        numbers = self.tokenizer.encode(text)
        if not numbers:
            raise ValueError(
                "text must hold at least one token, got an empty one. Fix: type a few words to begin with."
            )
        if len(numbers) + room > self.shape.context:
            raise ValueError(
                f"the model was trained on at most {self.shape.context:,} tokens, got a text of {len(numbers):,}"
                + (f" and {room:,} to write" if room else "")
                + ". Fix: a shorter text."
            )
        return numbers

    def logits(self, text):
        """Return a row of logits for each token of a text, (n, vocabulary): what comes next, says row i."""
        return self(self.tokens(text))[0] @ self.unembedding.T

    def loss(self, text):
        """Return the mean surprise in nats, -ln p, at each token but the first."""
        numbers = self.tokens(text)
        if len(numbers) < 2:
            raise ValueError("text must hold at least two tokens, one to predict, got one. Fix: a longer text.")
        x, _ = self(numbers)
        return float(np.mean(self.surprise(x[:-1], numbers[1:])))

    def surprise(self, x, tokens):
        """Return -ln p of the tokens that came next, (n,); 64 rows of logits at a time."""
        nats = []
        for start in range(0, len(x), 64):
            logits = x[start : start + 64] @ self.unembedding.T
            logits -= logits.max(axis=-1, keepdims=True)
            chosen = np.take_along_axis(logits, np.asarray(tokens[start : start + 64])[:, None], axis=-1)[:, 0]
            nats.append(np.log(np.exp(logits).sum(axis=-1)) - chosen)
        return np.concatenate(nats)

    def next_words(self, prompt, count=6):
        """Return the most likely next tokens and their probabilities, [(text, probability), ...], falling."""
        p = self.probabilities(prompt)
        return [(self.tokenizer.decode([i]), float(p[i])) for i in np.argsort(-p, kind="stable")[:count]]

    def probabilities(self, prompt):
        """Return the probability of each token of the vocabulary to come next, (vocabulary,)."""
        x, _ = self.prefill(self.tokens(prompt))
        return probabilities(self.unembedding @ x)

    def prefill(self, tokens, past=None):
        """Read tokens in chunks; return the last one's vector, (d_model,), and what is kept."""
        for start in range(0, len(tokens), CHUNK):
            x, past = self(tokens[start : start + CHUNK], past)
        return x[-1], past

    def stream(self, prompt, count=64, *, temperature=0.0, seed=0, margin=0.0):
        """Yield what it writes, piece by piece, as soon as a piece is text.

        `count` tokens at most; it ends earlier where the model says <|im_end|>. At a temperature of 0 it takes the most
        likely token; otherwise the logits are divided by it and one is drawn. A margin ends it before a token whose
        logit is no more than this above the second: on another processor the second might come first.
        """
        count = validation.positive_int(count, "count")
        if not (np.isscalar(temperature) and 0 <= temperature < np.inf):
            raise ValueError(f"temperature must be 0 or a positive number, got {temperature!r}. Fix: 0.7, say.")
        rng, text = np.random.default_rng(seed), codecs.getincrementaldecoder("utf-8")("replace")
        new, past = self.tokens(prompt, room=count), None
        for _ in range(count):
            x, past = self.prefill(new, past)
            logits = self.unembedding @ x
            first = int(np.argmax(logits))
            if margin and logits[first] - np.partition(logits, -2)[-2] <= margin:
                break
            new = [int(rng.choice(len(logits), p=probabilities(logits, temperature))) if temperature else first]
            if new[0] == self.end:
                break
            yield text.decode(self.tokenizer.bytes(new[0]))
        yield text.decode(b"", final=True)

    def write(self, prompt, count=64, **options):
        """Return what it writes after a prompt, as one text; takes what `stream` takes."""
        return "".join(self.stream(prompt, count, **options))

    def vectors(self, text):
        """Return the vectors of the tokens of a text behind each layer, (layers, n, d_model)."""
        x, past, vectors = self.embedding[self.tokens(text)], self.empty(), []
        for i, layer in enumerate(self.layers):
            x, _ = self.layer(i, layer, x, np.arange(len(x)), past[i])
            vectors.append(x)
        return np.stack(vectors)

    def maps(self, text, heads=None, step="weights"):
        """Return attention weights: {(layer, head): (n, n)} for these heads, counted from 1, or for all.

        `step` may name another of a trace, such as "masked_scores".
        """
        return self.maps_of(self.tokens(text), heads, step)

    def maps_of(self, numbers, heads=None, step="weights"):
        """Return the attention weights over tokens that are given as numbers."""
        h, maps, other = self.shape.heads, {}, copy.copy(self)
        wanted = [(i + 1, j + 1) for i in range(self.shape.layers) for j in range(h)] if heads is None else heads

        def watch(i, query, key, value, attn_mask):
            for layer, j in wanted:
                if layer == i + 1:
                    head = j - 1, (j - 1) * len(key) // h
                    trace = attention_trace(query[head[0]], key[head[1]], value[head[1]], attn_mask)
                    maps[layer, j] = getattr(trace, step)

        other.watch = watch
        other(numbers)
        return maps


def probabilities(logits, temperature=1.0):
    """softmax((logits - max) / temperature), in float64."""
    return softmax((logits.astype(np.float64) - logits.max()) / temperature)


def chat(question):
    r"""Return a prompt in the form in which the model was taught to answer.

    >>> chat("Hi!")
    '<|im_start|>user\nHi!<|im_end|>\n<|im_start|>assistant\n'
    """
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def load(path=None, sha256=gguf_file.SHA256, *, bar=None):
    """Read the model's file and return a `Speaker`.

    By default the file of the installed package; `sha256` None reads any Llama in a file of the same kinds. `bar` wraps
    the list of tensors while they are read, else a progress bar does. Without a file it raises FileNotFoundError; one
    with another checksum, damaged, or of another kind of model raises ValueError.
    """
    settings, weights = gguf_file.read_model(
        path, sha256, bar or (lambda tensors: progress(tensors, "reading the model"))
    )
    try:
        return Speaker(settings, weights)
    except KeyError as error:
        raise ValueError(
            f"the file must hold a Llama in the GGUF format, and this one has no {error}. Fix: {gguf_file.REINSTALL}."
        ) from None
