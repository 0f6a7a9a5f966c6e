"""A small model that writes letters, in NumPy, with stored weights, for lesson model_of_your_own.

Its text is the prose of this series as it stood in November 2026, frozen, so that what is measured stays (CC BY 4.0).
The notebook trains the model in torch; `tools/record_results.py` stores its weights at some steps, in 8 bits a number.
"""

import bz2
import functools

import numpy as np

from attnlib.core import softmax
from attnlib.heads import merge_heads, split_heads

from .model_files import DATA, stored
from .writer import gelu

N, HEADS, LAYERS = 32, 4, 2  # letters that the model sees at once; heads and layers of every stored model
STEPS = (150, 600, 2400)  # of the training, at which the weights of the right model are stored
SICK = ("no mask", "heads by reshape", "targets not shifted")  # stored at the end
TEXT, WEIGHTS = DATA / "series.txt.bz2", DATA / "letters_weights.npz"
RESULTS = DATA / "letters_results.json"  # tools/record_results.py writes it and the weights
TEN = ("heads by reshape", "no mask", "right", "softmax over queries", "no division", "mask transposed")
TEN += ("targets not shifted", "dropout left on", "mask off by one", "mask after softmax")  # by number, from 1
UNSEEN = {"no mask": -N, "mask off by one": -1}  # how far key j may lie behind query i at least; 0 where it is right


@functools.cache
def text():
    """Return the prose of the series, 228,486 letters.

    >>> len(text()), text()[:15]
    (228486, '# 00  Start her')
    """
    return bz2.decompress(TEXT.read_bytes()).decode("ascii")


class Corpus:
    """A text as numbers: `kinds` are its different letters, and the last tenth, up to 12,000 letters, is held out.

    >>> corpus = Corpus("abracadabra")
    >>> corpus.kinds, corpus.training.tolist(), corpus.held.tolist()
    ('abcdr', [0, 1, 4, 0, 2, 0, 3, 0, 1], [4, 0])
    """

    def __init__(self, words=None):
        words = text() if words is None else words
        self.kinds = "".join(sorted(set(words)))
        cut = int(len(words) * 0.9)
        self.training_text, self.held_text = words[:cut], words[cut : cut + 12_000]
        self.training, self.held = self.numbers(self.training_text), self.numbers(self.held_text)

    def numbers(self, words):
        """Return the numbers of letters; of one that the text never has, the number of a blank."""
        number, blank = {letter: i for i, letter in enumerate(self.kinds)}, self.kinds.find(" ")
        return np.array([number.get(letter, blank) for letter in words])

    def letters(self, tokens):
        """Return numbers as the letters they stand for."""
        return "".join(self.kinds[i] for i in tokens)


class Model:
    """The trained model, with the weights of the notebook's class in torch, by its names.

    `fault` is one of the mistakes of the notebook; `d_k` divides the scores by the root of another number.
    """

    def __init__(self, weights, fault="", d_k=None):
        self.weights, self.fault = weights, fault
        d_k = weights["token.weight"].shape[1] // HEADS if d_k is None else d_k
        self.divisor = 1.0 if fault == "no division" else float(np.sqrt(d_k))
        self.rng = np.random.default_rng(0)  # of dropout

    def __call__(self, tokens):
        """Return the logits of the next letter at each position, (b, n, kinds), and weights, (b, h, n, n) each."""
        n, maps = tokens.shape[-1], []
        i = np.arange(n)
        back = i[:, None] - i
        mask = back <= 0 if self.fault == "mask transposed" else back >= UNSEEN.get(self.fault, 0)
        x = self.weights["token.weight"][tokens] + self.weights["position.weight"][:N][i]
        for layer in (f"layers.{i}." for i in range(LAYERS)):
            output, weights = self._attend(self._norm(x, layer + "norm_1"), layer + "attention.", mask)
            x = x + output
            inner = gelu(self._linear(self._norm(x, layer + "norm_2"), layer + "network.0"))
            x = x + self._linear(inner, layer + "network.2")
            maps.append(weights)
        return self._linear(self._norm(x, "norm"), "read"), maps

    def _linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def _norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _attend(self, x, name, mask):
        q, k, v = (self._split(self._linear(x, f"{name}W_{c}")) for c in "QKV")
        scores = q @ np.swapaxes(k, -1, -2) / self.divisor  # (b, h, n, n)
        if self.fault == "mask after softmax":
            weights = softmax(scores) * mask
        else:
            axis = -2 if self.fault == "softmax over queries" else -1
            weights = softmax(np.where(mask, scores, -np.inf), axis)
        if self.fault == "dropout left on":
            weights = weights * (self.rng.random(weights.shape) >= 0.1) / 0.9
        output = weights @ v
        merged = output.reshape(x.shape) if self.fault == "heads by reshape" else merge_heads(output)
        return self._linear(merged, f"{name}W_O"), weights

    def _split(self, x):
        if self.fault == "heads by reshape":
            return x.reshape(*x.shape[:-2], HEADS, x.shape[-2], -1)
        return split_heads(x, HEADS)


def of_torch(module, **options):
    """Return the Model with the weights of the notebook's class."""
    return Model({name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}, **options)


def load(name, **options):
    """Return a stored model: one of `STEPS`, or one of `SICK` after its training."""
    with np.load(WEIGHTS) as file:
        names = [key.partition("/")[2] for key in file.files if key.startswith(f"{name}/") and "step" not in key]
        weights = {key: file[f"{name}/{key}"] * file[f"{name}/{key} step"] for key in names}
    return Model(weights, **({"fault": name} if name in SICK else {}) | options)


def fresh(weights, seed=0):
    """Return a model before any step: weights of these names and shapes, drawn by NumPy as wide as torch draws them."""
    rng, drawn = np.random.default_rng(seed), {}
    for name, array in weights.items():
        wide = 0.5 if name in ("token.weight", "position.weight") else (3 * array.shape[-1]) ** -0.5
        new = rng.normal(0, wide, array.shape) if array.ndim > 1 else np.full(array.shape, float("norm" in name))
        drawn[name] = new.astype(np.float32) * (not name.endswith("bias"))
    return Model(drawn)


def surprise(model, tokens, stride, shift=1):
    """Return bits for each letter that comes next in windows of N, (windows, N); `stride` lies between their starts."""
    at, found = np.arange(0, len(tokens) - N - 2, stride)[:, None] + np.arange(N), []
    for rows in np.split(at, range(64, len(at), 64)):
        p = softmax(model(tokens[rows])[0])
        found.append(-np.log2(np.take_along_axis(p, tokens[rows + shift][..., None], -1)[..., 0]))
    return np.concatenate(found)


def held(model, tokens, shift=1):
    """Return bits a letter, the mean over letters with 16 letters or more in front of them."""
    return float(surprise(model, tokens, N // 2, shift)[:, N // 2 :].mean())


def write(model, prompt, count, n, temperature, draw):
    """Write `count` tokens behind the list `prompt`, and return all: the right answer of the exercise.

    `model` goes from tokens (1, m) to logits (1, m, kinds) and sees n tokens at most. `draw` draws one from shares.
    """
    tokens = list(prompt)
    for _ in range(count):
        logits = model(np.array(tokens[-n:])[None])[0, -1]
        tokens.append(draw(softmax(logits / temperature)))
    return tokens


def dice(seed=0):
    """Return a function that draws a number from shares; they need not sum to 1."""
    rng = np.random.default_rng(seed)

    def draw(p):
        edges = np.cumsum(p, dtype=float)
        return int((edges <= rng.random() * edges[-1]).sum())

    return draw


def written(model, corpus, prompt="The ", count=200, temperature=1.0, seed=0):
    """Return what a model writes behind a prompt, as letters."""
    tokens = corpus.numbers(prompt).tolist()
    return corpus.letters(write(lambda t: model(t)[0], tokens, count, N, temperature, dice(seed)))


def recorded():
    """Return what was measured of the full trainings, by name."""
    return stored("letters_results")
