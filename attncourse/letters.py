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
TEXT, WEIGHTS = DATA / "series.txt.bz2", DATA / "letters_weights.npz"
RESULTS = DATA / "letters_results.json"  # tools/record_results.py writes it and the weights
TEN = ("heads by reshape", "no mask", "right", "softmax over queries", "no division", "mask transposed")
TEN += ("targets not shifted", "dropout left on", "mask off by one", "mask after softmax")  # by number, from 1


@functools.cache
def text():
    """Return the prose of the series, 228,486 letters.

    >>> len(text()), text()[:15]
    (228486, '# 00  Start her')
    """
    return bz2.decompress(TEXT.read_bytes()).decode("ascii")


class Corpus:
    """A text as numbers: `kinds` are its different letters, and the last tenth, up to 12,000 letters, is held out.

    >>> corpus = Corpus("abracadabra" * 40)
    >>> corpus.kinds, corpus.training[:7].tolist(), len(corpus.held)
    ('abcdr', [0, 1, 4, 0, 2, 0, 3], 44)
    """

    def __init__(self, words=None):
        self.own, words = words is not None, text() if words is None else words
        if not isinstance(words, str) or len(words) < 10 * (N + 3):
            raise ValueError(
                f"A text is a string of {10 * (N + 3)} letters or more, so that its last tenth holds a window of {N}, "
                f"got {len(str(words))}: {str(words)[:40]!r}. "
                'Fix: hand over what stands in the file: open("my.txt", encoding="utf-8").read().'
            )
        self.kinds = "".join(sorted(set(words)))
        cut = int(len(words) * 0.9)
        self.training_text, self.held_text = words[:cut], words[cut : cut + 12_000]
        self.training, self.held = self.numbers(self.training_text), self.numbers(self.held_text)

    def numbers(self, words):
        """Return the numbers of letters; of one that the text never has, the number of a blank, or 0."""
        number, blank = {letter: i for i, letter in enumerate(self.kinds)}, max(0, self.kinds.find(" "))
        return np.array([number.get(letter, blank) for letter in words])

    def letters(self, tokens):
        """Return numbers as the letters they stand for."""
        return "".join(self.kinds[i] for i in tokens)


class Model:
    """The trained model, with the weights of the notebook's class in torch, by its names.

    `d_k` divides the scores by the root of another number.
    """

    def __init__(self, weights, d_k=None):
        self.weights = weights
        self.divisor = float(np.sqrt(weights["token.weight"].shape[1] // HEADS if d_k is None else d_k))

    def __call__(self, tokens):
        """Return the logits of the next letter at each position, (b, n, kinds), and weights, (b, h, n, n) each."""
        n, maps = tokens.shape[-1], []
        x = self.weights["token.weight"][tokens] + self.weights["position.weight"][:N][np.arange(n)]
        for layer in (f"layers.{i}." for i in range(LAYERS)):
            output, weights = self._attend(self._norm(x, layer + "norm_1"), layer + "attention.")
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

    def _attend(self, x, name):
        q, k, v = (split_heads(self._linear(x, f"{name}W_{c}"), HEADS) for c in "QKV")
        scores = q @ np.swapaxes(k, -1, -2) / self.divisor  # (b, h, n, n)
        weights = softmax(np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf))
        return self._linear(merge_heads(weights @ v), f"{name}W_O"), weights


def of_torch(module):
    """Return the Model with the weights of the notebook's class."""
    return Model({name: tensor.detach().numpy() for name, tensor in module.state_dict().items()})


def load(steps):
    """Return the model as it was after so many of `STEPS`."""
    with np.load(WEIGHTS) as file:
        names = [key.partition("/")[2] for key in file.files if key.startswith(f"{steps}/") and "step" not in key]
        return Model({key: file[f"{steps}/{key}"] * file[f"{steps}/{key} step"] for key in names})


def surprise(model, tokens, stride, shift=1):
    """Return bits for each letter that comes next in windows of N, (windows, N); `stride` lies between their starts."""
    at, found = np.arange(0, len(tokens) - N - 2, stride)[:, None] + np.arange(N), []
    for rows in np.split(at, range(64, len(at), 64)):
        p = softmax(model(tokens[rows])[0])
        found.append(-np.log2(np.take_along_axis(p, tokens[rows + shift][..., None], -1)[..., 0]))
    return np.concatenate(found)


def held_out_bits(model, tokens, shift=1):
    """Return bits a letter, the mean over letters with 16 letters or more in front of them."""
    return float(surprise(model, tokens, N // 2, shift)[:, N // 2 :].mean())


def dice(seed=0):
    """Return a function that draws a number from shares; they need not sum to 1."""
    rng = np.random.default_rng(seed)

    def draw(p):
        edges = np.cumsum(p, dtype=float)
        return int((edges <= rng.random() * edges[-1]).sum())

    return draw


def load_results():
    """Return what was measured of the full trainings, by name."""
    return stored("letters_results")
