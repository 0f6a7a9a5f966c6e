"""The translator of lesson two_texts, in NumPy: it reads a date as people write it and writes it as 1985-11-25.

Its weights come from the notebook's own class, in torch (`tools/record_results.py`), or from the reader's.
"""

import datetime
import re
from typing import NamedTuple

import numpy as np

from attnlib import validation
from attnlib.heads import MultiHeadAttention
from attnlib.masks import padding_mask

from .model_files import DATA, NamedArrays, stored

MONTHS = ("January", "February", "March", "April", "May", "June", "July")
MONTHS += ("August", "September", "October", "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FORMS = (
    "{day} {month} {year}",
    "{month} {day}, {year}",
    "{weekday}, {day} {month} {year}",
    "{weekday}, {month} {day}, {year}",
    "{day} {month:.3} {year}",
    "{month:.3} {day} {year}",
    "{weekday:.3} {day} {month:.3} {year}",
)
PARTS = {
    "weekday": rf"\b({'|'.join(day[:3] for day in WEEKDAYS)})\w*",
    "month": rf"\b({'|'.join(month[:3] for month in MONTHS)})\w*",
    "day": r"\b\d\d?\b",
    "year": r"\d{4}",
}
PAD, START = "·", "<"
LETTERS = PAD + " ,0123456789" + "".join(sorted(set("".join(MONTHS + WEEKDAYS))))
DIGITS = "0123456789-" + START
LONGEST, WRITTEN = 30, 10  # letters of a text at most, and of what is written
EXAMPLE = "Monday, 25 November 1985"
SEEDS = ("seed 0", "seed 1", "seed 2")
STEPS = (0, 50, 100, 150, 200, 250, 300, 400, 500, 800, 1100)  # of the training, at which the example's maps are kept
RESULTS, WEIGHTS = DATA / "dates_results.json", DATA / "dates_weights.npz"  # tools/record_results.py writes both


class Dates(NamedTuple):
    """Texts and what they mean."""

    texts: list
    iso: list
    letters: np.ndarray  # (b, n_k): places in `LETTERS`; shorter texts are filled up with 0
    lengths: np.ndarray  # (b,)
    digits: np.ndarray  # (b, 11): places in `DIGITS`, the start and the ten that are to be written


def draw(size, rng):
    """Draw days from 1900 to 2099, each in one of the forms, all equally likely.

    >>> dates = draw(2, np.random.default_rng(0))
    >>> dates.texts[0], dates.iso[0], dates.letters.shape
    ('Saturday, February 15, 2070', '2070-02-15', (2, 27))
    """
    first, last = (datetime.date(year, 1, 1).toordinal() for year in (1900, 2100))
    days = map(datetime.date.fromordinal, rng.integers(first, last, size).tolist())
    forms = rng.integers(len(FORMS), size=size).tolist()
    return of((day, FORMS[form]) for day, form in zip(days, forms, strict=True))


def of(days_and_forms):
    """Return the Dates of (day, form) pairs.

    >>> of([(datetime.date(1985, 11, 25), FORMS[2])]).texts
    ['Monday, 25 November 1985']
    """
    texts, iso = [], []
    for day, form in days_and_forms:
        names = {"month": MONTHS[day.month - 1], "weekday": WEEKDAYS[day.weekday()]}
        texts.append(form.format(day=day.day, year=day.year, **names))
        iso.append(day.isoformat())
    letters, lengths = letters_of(texts)
    digits = np.array([[DIGITS.index(c) for c in START + date] for date in iso])
    return Dates(texts, iso, letters, lengths, digits)


def letters_of(texts):
    """Return texts as numbers, filled up at the right, (b, n_k), and their lengths, (b,).

    One str for a list raises TypeError, a letter that is not in `LETTERS` ValueError.

    >>> letters_of(["1 May", "May"])[1]
    array([5, 3])
    """
    if isinstance(texts, str):
        raise TypeError(f"texts must be a list of str, got one str. Fix: write [{texts!r}].")
    for text in texts:
        if strange := set(text) - set(LETTERS):
            raise ValueError(
                f"a text may hold only letters that the model knows, {LETTERS[1:]!r}; {text[:40]!r} holds "
                f"{''.join(sorted(strange))!r}. Fix: write it without, '25 Novomber 1985' for instance."
            )
    lengths = np.array([len(text) for text in texts])
    letters = np.zeros((len(texts), lengths.max()), dtype=int)
    for row, text in zip(letters, texts, strict=True):
        row[: len(text)] = [LETTERS.index(letter) for letter in text]
    return letters, lengths


def letters_in(texts, part):
    """Return which letters belong to one of `PARTS`, (b, n_k) of bool.

    >>> letters_in(["7 May 1985"], "year")[0].nonzero()[0]
    array([6, 7, 8, 9])
    """
    belongs = np.zeros((len(texts), max(map(len, texts))), dtype=bool)
    for row, text in zip(belongs, texts, strict=True):
        row[slice(*re.search(PARTS[part], text).span())] = True
    return belongs


def another(letters, rng):
    """Return other letters of the same kind: a digit for each digit, a letter for all else.

    >>> [LETTERS[i] for i in another(letters_of(["7 May"])[0][0], np.random.default_rng(0))]
    ['5', 'n', 'N', 'g', 'p']
    """
    first, names, n = LETTERS.index("0"), LETTERS.index("9") + 1, len(LETTERS)
    digits = first + (letters - first + rng.integers(1, 10, letters.shape)) % 10
    others = names + (letters - names + rng.integers(1, n - names, letters.shape)) % (n - names)
    return np.where((letters >= first) & (letters < names), digits, others)


class Translator(NamedArrays):
    """An encoder, which reads, and a decoder, which writes: one layer of attention each, and one between the two.

    `rng`, a Generator or a seed, draws the weights; `load` puts trained ones in their place.

    >>> dates, model = draw(2, np.random.default_rng(0)), Translator(rng=0)
    >>> mask = padding_mask(dates.lengths, dates.letters.shape[1])
    >>> logits, weights = model.decode(dates.digits[:, :-1], model.encode(dates.letters, mask), mask)
    >>> logits.shape, weights.shape
    ((2, 10, 12), (2, 4, 10, 27))
    """

    def __init__(self, width=32, num_heads=4, rng=None):
        rng = validation.generator(rng)
        rows = {"letter": len(LETTERS), "place": LONGEST, "digit": len(DIGITS), "spot": WRITTEN}
        for name, n in rows.items():
            setattr(self, name, rng.normal(size=(n, width)))
        self.encoder, self.decoder, self.cross = (MultiHeadAttention(width, num_heads, rng=rng) for _ in range(3))
        self.W_read, self.b_read = rng.normal(size=(width, len(DIGITS))), np.zeros(len(DIGITS))

    def encode(self, letters, mask=None, places=None):
        """Return a vector for each letter of the text, (b, n_k, width); `places` counts the letters, (b, n_k)."""
        x = self.letter[letters] + self.place[np.arange(letters.shape[-1]) if places is None else places]
        return x + self.encoder(x, attn_mask=mask)[0]

    def decode(self, digits, context=None, mask=None, values=None):
        """Return the logits of the next digit, (b, n_q, 12), and the weights between the texts, (b, h, n_q, n_k).

        `context` holds the vectors of the text that is read, and makes the keys; the values, too, if there are no
        others. Without it the decoder looks at its own text.
        """
        y = self.digit[digits] + self.spot[: digits.shape[-1]]
        y = y + self.decoder(y, is_causal=True)[0]
        z, weights = self.cross(y, context, values, attn_mask=mask)
        return (y + z) @ self.W_read + self.b_read, weights

    def parts(self):
        """Return every array by name, as (what holds it, attribute)."""
        own = {name: (self, name) for name in ("letter", "place", "digit", "spot", "W_read", "b_read")}
        for layer in ("encoder", "decoder", "cross"):
            own |= {f"{layer} {kind}_{c}": (getattr(self, layer), f"{kind}_{c}") for kind in "Wb" for c in "QKVO"}
        return own


def as_if(model, d_k, layers=("cross",)):
    """Return a translator with the same weights whose scores are divided by the root of another d_k."""
    weights = dict(model.weights())
    for layer in layers:
        factor = (model.cross.d_k / d_k) ** 0.5
        weights |= {f"{layer} {name}": factor * weights[f"{layer} {name}"] for name in ("W_Q", "b_Q")}
    return Translator(*model.letter.shape[1:], model.cross.num_heads).load(weights)


def greedy(step, size):
    """Write `size` dates, digit by digit, the most likely one each time; return them, and the weights of the last step.

    `step` goes from the digits so far, (size, n), to the logits and weights of `Translator.decode`.
    """
    digits = np.full((size, 1), DIGITS.index(START))
    for _ in range(WRITTEN):
        logits, weights = step(digits)
        digits = np.hstack([digits, logits[:, -1:].argmax(-1)])
    return ["".join(DIGITS[i] for i in row) for row in digits[:, 1:].tolist()], weights


def translate(model, texts):
    """Translate texts: what is written, and the weights between the two texts, (b, h, 10, n_k).

    >>> translate(load(), ["25 November 1985"])[0]
    ['1985-11-25']
    """
    letters, lengths = letters_of(texts)
    mask = padding_mask(lengths, letters.shape[1])
    context = model.encode(letters, mask)
    return greedy(lambda digits: model.decode(digits, context, mask), len(texts))


def share_right(written, dates):
    """Return the share of dates that are written without a mistake."""
    return float(np.mean([ours == iso for ours, iso in zip(written, dates.iso, strict=True)]))


def from_torch(module):
    """Return the `Translator` with the weights of the notebook's class in torch, whoever wrote its attention."""
    model = Translator(module.letter.weight.shape[1])
    named = {name: tensor.detach().numpy().copy() for name, tensor in module.state_dict().items()}
    weights = {name: named[f"{name}.weight"] for name in ("letter", "place", "digit", "spot")}
    weights |= {"W_read": named["read.weight"].T, "b_read": named["read.bias"]}
    for layer in ("encoder", "decoder", "cross"):
        for c in "QKVO":
            W = named[f"{layer}.W_{c}.weight"].T
            weights |= {f"{layer} W_{c}": W, f"{layer} b_{c}": named.get(f"{layer}.W_{c}.bias", np.zeros(W.shape[1]))}
    return model.load(weights)


def load(name="seed 0"):
    """Return a translator with the weights that the notebook's training gave it, in float32.

    "seed 0", "seed 1" and "seed 2" are healthy; "causal" was trained with a causal mask between the texts, "unmasked"
    with no mask there.
    """
    with np.load(WEIGHTS) as arrays:
        return Translator().load({key: arrays[f"{name}/{key}"].astype(np.float32) for key in Translator().parts()})


def recorded():
    """Return what was measured while seed 0 trained, by steps."""
    return stored("dates_results")
