"""What `tools/record_results.py` trains and measures for lesson model_of_your_own: models, mistakes, the yardstick."""

import lzma
import math
import random
import re
from collections import defaultdict
from types import SimpleNamespace

import numpy as np

from attncourse import letters
from attncourse.lessons import model_of_your_own as lesson
from attnlib.core import softmax
from attnlib.heads import merge_heads, split_heads

SHORT = (2_000, 10_000, 50_000)  # letters of the shorter texts that the right model is trained on, too
PARTS = ("residual", "attention", "network", "norm", "positions")
D_KS = (1, 4, 16, 64, 256, 1024)
SLOW = ("right, slow", "without norm, slow")  # at 0.3 of the rate
UNSEEN = {"no mask": -letters.N, "mask off by one": -1}  # how far key j lies behind query i at least; 0 where right
EVERY = 150  # steps between two measures
PROMPT = "The "


def cells():
    """Return what the cells of the notebook define that make and train a model."""
    from .record_results import cells_with

    needed = "import attnlib as al", "    import torch", "corpus = ", "class Layer", "class Model", "    def draw"
    needed += ("    def rate",)
    names = {"windows": lesson.windows, "verdict": SimpleNamespace(passed=False)}
    return cells_with("model_of_your_own", "# ", "## 5 ·", needed, **names)


def modules():
    """Return the attention of each mistake that is one of attention, a class of the clinic."""
    from attncourse import clinic

    class Reshaped(clinic.SplitWithoutTranspose, clinic.MergeWithoutTranspose):
        pass

    return {
        "softmax over queries": clinic.SoftmaxOverQueries,
        "mask after softmax": clinic.MaskAfterSoftmax,
        "heads by reshape": Reshaped,
        "no division": clinic.NoScale,
        "dropout left on": clinic.DropoutAlways,
    }


class Faulty(letters.Model):
    """The model in NumPy with one of the mistakes of `letters.TEN`."""

    def __init__(self, weights, fault="right"):
        super().__init__(weights, d_k=1 if fault == "no division" else None)
        self.fault, self.rng = fault, np.random.default_rng(0)  # of dropout

    def _attend(self, x, name):
        mask, fault = mask_of(self.fault, x.shape[-2]), self.fault
        q, k, v = (self._split(self._linear(x, f"{name}W_{c}")) for c in "QKV")
        scores = q @ np.swapaxes(k, -1, -2) / self.divisor
        if fault == "mask after softmax":
            weights = softmax(scores) * mask
        else:
            weights = softmax(np.where(mask, scores, -np.inf), -2 if fault == "softmax over queries" else -1)
        if fault == "dropout left on":
            weights = weights * (self.rng.random(weights.shape) >= 0.1) / 0.9
        output = weights @ v
        merged = output.reshape(x.shape) if fault == "heads by reshape" else merge_heads(output)
        return self._linear(merged, f"{name}W_O"), weights

    def _split(self, x):
        if self.fault == "heads by reshape":
            return x.reshape(*x.shape[:-2], letters.HEADS, x.shape[-2], -1)
        return split_heads(x, letters.HEADS)


def mask_of(fault, n=letters.N):
    """Return which key a query may look at under a mistake, (n, n)."""
    back = np.arange(n)[:, None] - np.arange(n)
    return back <= 0 if fault == "mask transposed" else back >= UNSEEN.get(fault, 0)


BLOCKS = {
    "without residual": lambda x, m, a, f, n1, n2: f(n2(a(n1(x), m))),
    "without attention": lambda x, m, a, f, n1, n2: x + f(n2(x)),
    "without network": lambda x, m, a, f, n1, n2: x + a(n1(x), m),
    "without norm": lambda x, m, a, f, n1, n2: (y := x + a(x, m)) + f(y),
}


def train_one(name, corpus, steps=2400):
    """Train one model, "no mask 0" for instance; return its weights by steps, and what was measured."""
    import torch

    from attncourse import clinic
    from attncourse.training import train

    mistake, _, seed = name.rpartition(" ")
    mistake, _, how = mistake.partition(", ")  # how: "slow", or "wide"
    names, shift = cells(), 0 if mistake == "targets not shifted" else 1
    every = EVERY
    if mistake.endswith("letters"):  # "2000 letters 0"
        size = int(mistake.split()[0])
        names["training"], steps, every = corpus.training[:size], steps if size > 10_000 else 600, 50
    names["MultiHeadAttention"] = modules().get(mistake, clinic.Attention)
    names["block"] = BLOCKS.get(mistake, names["block"])
    mask = torch.tensor(mask_of(mistake))

    def loss(model, batch):
        return names["loss"](model, batch if shift else (batch[0], batch[0]), mask)

    torch.manual_seed(int(seed))
    model = names["Model"](len(corpus.kinds), width=128 if how == "wide" else 64)
    if mistake == "without positions":
        torch.nn.init.zeros_(model.position.weight)
        model.position.weight.requires_grad_(False)

    def measure(model):
        return torch_bits(model, mask, corpus, shift)

    factor, rate = 0.3 if how == "slow" else 1, names["rate"]
    options = {
        "steps": steps,
        "lr": lambda step: factor * rate(step),
        "seed": int(seed),
        "every": every,
        "measure": measure,
    }
    history = train(model, names["draw"], loss, **options)
    bits = np.array(history.losses) / math.log(2)
    result = {"train": {n: bits[max(0, n - 100) : n].mean() for n in history.measured if n}, "held": history.measured}
    weights = {n: {key: x.numpy() for key, x in state.items()} for n, state in history.snapshots.items()}
    if mistake in letters.TEN and not how:
        result |= looked_at(Faulty(weights[steps], mistake), corpus, shift)
    return weights, result


def torch_bits(model, mask, corpus, shift):
    """Return bits a letter on what is held out, as `letters.held_out_bits` does."""

    def in_numpy(tokens):
        import torch

        return (model(torch.tensor(tokens), mask).numpy(),)

    return letters.held_out_bits(in_numpy, corpus.held, shift)


def by_position(model, corpus, shift=1):
    """Return bits a letter at each position of the window, (N,)."""
    return letters.surprise(model, corpus.held, 7, shift).mean(0)


def known_words(words, training_text):
    """Return the share of words of three letters or more that stand in the training text."""
    known = set(re.findall("[A-Za-z]+", training_text))
    found = re.findall("(?<=[^A-Za-z])[A-Za-z]{3,}(?=[^A-Za-z])", words)
    return sum(word in known for word in found) / max(1, len(found))


def looked_at(model, corpus, shift):
    """Return the loss by position, against a model's own targets and the next letters, a text, and known words."""
    found = {"by position": by_position(model, corpus, shift)}
    if not shift:
        found["against the next letter"] = by_position(model, corpus)
    found["text"] = write_text(model, corpus)
    return found | {"known words": share_known(model, corpus)}


def write_text(model, corpus, prompt=PROMPT, count=200, seed=0):
    """Return what a model writes behind a prompt, as letters, at temperature 1."""
    tokens = corpus.numbers(prompt).tolist()
    return corpus.letters(lesson.write(lambda t: model(t)[0], tokens, count, letters.N, 1.0, letters.dice(seed)))


def share_known(model, corpus, size=8):
    """Return the share of known words in `size` texts of 160 letters behind held-out beginnings."""
    rng, words = np.random.default_rng(0), ""
    for seed, start in enumerate(rng.integers(len(corpus.held) - 20, size=size)):
        prompt = corpus.held_text[start : start + 16]
        words += write_text(model, corpus, prompt, 160, seed=seed)[16:] + "\n"
    return known_words(words, corpus.training_text)


def keep(name, weights, corpus, found):
    """Store the weights of a model that the notebook runs, in 8 bits, and what it measures of the right ones."""
    mistake, _, seed = name.rpartition(" ")
    if mistake != "right":
        return
    found.setdefault("heads", {})[seed] = heads(letters.Model(weights[2400]), corpus)
    if seed == "0":
        packed = {f"{n}/{key}": part for n in letters.STEPS for key, part in in_8_bits(weights[n]).items()}
        np.savez_compressed(letters.WEIGHTS, **packed)
        found["stops"] = {0: stops(fresh(weights[2400]), corpus)}
        found["stops"] |= {stop: stops(letters.load(stop), corpus) for stop in letters.STEPS}
        found[name]["text"] = found["stops"][2400][16][0]  # one text of this model in the notebook, that of 8 bits


def fresh(weights, seed=0):
    """Return a model before any step: weights of these names and shapes, drawn by NumPy as wide as torch draws them."""
    rng, drawn = np.random.default_rng(seed), {}
    for name, array in weights.items():
        wide = 0.5 if name in ("token.weight", "position.weight") else (3 * array.shape[-1]) ** -0.5
        new = rng.normal(0, wide, array.shape) if array.ndim > 1 else np.full(array.shape, float("norm" in name))
        drawn[name] = new.astype(np.float32) * (not name.endswith("bias"))
    return letters.Model(drawn)


def in_8_bits(weights):
    """Return each array of a model as whole steps, -127 to 127, and the step of each row under "name step"."""
    found = {}
    for name, array in weights.items():
        step = np.maximum(np.abs(array).max(-1, keepdims=True), 1e-12).astype(np.float32) / 127
        found |= {name: np.rint(array / step).astype(np.int8), f"{name} step": step}
    return found


def stops(model, corpus):
    """Return what a model writes at each d_k, and its bits there."""
    found = {}
    for d_k in D_KS:
        other = letters.Model(model.weights, d_k=d_k)
        found[d_k] = [write_text(other, corpus, PROMPT, 200), letters.held_out_bits(other, corpus.held)]
    return found


def heads(model, corpus):
    """Return what heads look at: (what, the largest mean weight of a head, as much by equal weights, its cost in bits).

    One and two letters back in layer 1; in layer 2 the bracket that is still open.
    """
    starts = np.random.default_rng(1).integers(len(corpus.held) - letters.N, size=250)
    tokens = corpus.held[starts[:, None] + np.arange(letters.N)]
    maps, rows = model(tokens)[1], np.arange(8, letters.N)
    whole, found = by_position(model, corpus)[-1], []
    opened = [(b, i, j) for b, row in enumerate(tokens) for i, j in open_brackets(corpus.letters(row))]
    w, i, j = np.array(opened).T
    looks = [("the letter before", 0, maps[0][:, :, rows, rows - 1].mean((0, -1)), (1 / (rows + 1)).mean())]
    looks += [("two before", 0, maps[0][:, :, rows, rows - 2].mean((0, -1)), (1 / (rows + 1)).mean())]
    looks += [("an open bracket", 1, maps[1][w, :, i, j].mean(0), (1 / (i + 1)).mean())]
    for name, layer, share, equal in looks:
        off, part = dict(model.weights), int(share.argmax())
        W = off[key := f"layers.{layer}.attention.W_O.weight"].copy()
        d_k = W.shape[1] // letters.HEADS
        W[:, part * d_k : (part + 1) * d_k] = 0
        cost = by_position(letters.Model(off | {key: W}), corpus)[-1] - whole
        found.append((name, share.max(), equal, cost))
    return found


def open_brackets(words):
    """Return (i, j) for each letter i inside round brackets and the innermost opening one j before it."""
    found, stack = [], []
    for i, letter in enumerate(words):
        if stack:
            found.append((i, stack[-1]))
        if letter == "(":
            stack.append(i)
        elif letter == ")" and stack:
            stack.pop()
    return found


def yardstick(corpus):
    """Return bits a letter of packers and of tables that are well made, and which share of words is known."""
    late, early = corpus.held_text.encode(), corpus.training_text.encode()
    found = {"xz": 8 * xz(late) / len(late), "xz, primed": 8 * (xz(early + late) - xz(early)) / len(late)}
    found["smoothed"] = {k: kneser_ney(corpus, k) for k in (3, 4, 5, 6)}
    known = {"the text, held out": known_words(corpus.held_text, corpus.training_text)}
    known |= {f"a table of {k} letters": table_words(corpus, k) for k in (2, 3, 4, 5)}
    return found | {"known words": known}


def xz(data):
    chain = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 24}]
    return len(lzma.compress(data, lzma.FORMAT_RAW, filters=chain))


def kneser_ney(corpus, top):
    """Return bits a letter of an interpolated table: below the top it counts contexts, with one discount an order."""
    train, text = corpus.training_text, corpus.training_text[-top:] + corpus.held_text
    counts = {top: defaultdict(lambda: defaultdict(int))}
    for i in range(top, len(train)):
        counts[top][train[i - top : i]][train[i]] += 1
    for k in range(top - 1, -1, -1):
        counts[k] = defaultdict(lambda: defaultdict(int))
        for context, after in counts[k + 1].items():
            for letter in after:
                counts[k][context[1:]][letter] += 1
    discount = {}
    for k, table in counts.items():
        once, twice = (sum(v == n for after in table.values() for v in after.values()) for n in (1, 2))
        discount[k] = once / (once + 2 * twice)
    total = 0.0
    for i in range(top, len(text)):
        p = 1 / len(corpus.kinds)
        for k in range(top + 1):
            if after := counts[k].get(text[i - k : i]):
                less = max(after.get(text[i], 0) - discount[k], 0)
                p = (less + discount[k] * len(after) * p) / sum(after.values())
        total -= math.log2(p)
    return total / len(corpus.held_text)


def table_words(corpus, order, size=1500):
    """Return the share of known words that a simple table writes: from a long context, or at times a shorter one."""
    train, rng, text = corpus.training_text, random.Random(0), PROMPT * 2
    counts = [defaultdict(lambda: defaultdict(int)) for _ in range(order + 1)]
    for k, count in enumerate(counts):
        for i in range(k, len(train)):
            count[train[i - k : i]][train[i]] += 1
    for _ in range(size):
        for k in range(order, -1, -1):
            after = counts[k].get(text[len(text) - k :])
            if after and (not k or rng.random() >= len(after) / (sum(after.values()) + len(after))):
                break
        text += rng.choices(list(after), list(after.values()))[0]
    return known_words(text[8:], train)
