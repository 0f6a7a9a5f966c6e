"""Byte-level byte pair encoding: cut text into the tokens of a GPT-2 style vocabulary.

The `tokenizers` library does this faster; it also brings an HTTP client, a hub client and about fifteen more packages,
and does not run in a browser, for a job of forty lines. Tests compare the two on texts in several scripts.

Sources: Sennrich et al. 2016 (byte pair encoding), Radford et al. 2019 (on bytes, and the pattern that cuts words).
"""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

# Each byte has a visible character in the vocabulary: its own where it is printable, otherwise the next free one from
# 256 on. So a blank is written as Ġ.
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
CHARACTER = {byte: chr(byte) for byte in PRINTABLE}
CHARACTER |= {byte: chr(256 + i) for i, byte in enumerate(sorted(set(range(256)) - set(PRINTABLE)))}
BYTE = {character: byte for byte, character in CHARACTER.items()}
# A digit alone; an ending such as 's; a word, or other signs, with the blank before it; blanks. Of several blanks
# before a word the last one belongs to the word.
WORD = re.compile(r"[0-9]|'(?:[stmd]|re|ve|ll)| ?[A-Za-z]+| ?[^\sA-Za-z0-9]+|\s+(?![^\s0-9])|\s+", re.ASCII)


class _Plain(dict):
    """Stand-ins in ASCII for all other characters, so that a pattern can tell letters, numbers and blanks apart."""

    def __missing__(self, code):
        character = chr(code)
        if code < 128:
            plain = character
        elif character.isspace():
            plain = "\t"
        else:
            plain = {"L": "x", "N": "0"}.get(unicodedata.category(character)[0], "!")
        self[code] = plain
        return plain


PLAIN = _Plain()


class BytePairs:
    """A tokenizer: text to numbers and back.

    A word is first written as bytes. Then the pair of neighbours that stands first in the list of merges is joined, and
    again, until no pair of the word is in the list.

    Token number i is `vocabulary[i]`, its bytes written as characters. Merges are "left right", the most frequent pair
    first. Control tokens such as <|im_end|> are looked for as they stand, and never merged.

    >>> pairs = BytePairs(["<end>", "t", "h", "e", "th", "the", "Ġ", "Ġthe"], ["t h", "th e", "Ġ the"], ["<end>"])
    >>> pairs.encode("the the<end>")
    [5, 7, 0]
    >>> pairs.words([5, 7])
    ['the', ' the']
    """

    def __init__(self, vocabulary, merges, control=()):
        self.vocabulary = list(vocabulary)
        self.number = {token: i for i, token in enumerate(self.vocabulary)}
        self.rank = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}
        self.control = set(control)
        longest_first = sorted(map(re.escape, control), key=len, reverse=True)
        self._at_control = re.compile(f"({'|'.join(longest_first)})" if longest_first else r"(?!)")
        self._merged = lru_cache(maxsize=10_000)(self._merge)

    def encode(self, text):
        """Return the numbers of the tokens of a text; what is none, or holds an unknown character, raises."""
        if not isinstance(text, str):
            raise TypeError(f"text must be one str, got {type(text).__name__}. Fix: encode one text at a time.")
        numbers = []
        for part in self._at_control.split(text):
            if part in self.control:
                numbers.append(self.number[part])
            else:
                for word in WORD.finditer(part.translate(PLAIN)):
                    numbers += self._merged(part[word.start() : word.end()])
        return numbers

    def decode(self, numbers):
        """Return the text of these tokens; bytes that are no text (a character cut in two) become \ufffd."""
        return b"".join(map(self.bytes, numbers)).decode("utf-8", errors="replace")

    def words(self, numbers):
        """Return the text of each token by itself."""
        return [self.decode([number]) for number in numbers]

    def bytes(self, number):
        """Return the bytes of one token."""
        token = self.vocabulary[number]
        return token.encode() if token in self.control else bytes(BYTE[character] for character in token)

    def _merge(self, word):
        try:
            parts = [CHARACTER[byte] for byte in word.encode("utf-8")]
        except UnicodeEncodeError:
            raise ValueError(
                f"text must be valid Unicode, got half a character: {word!r}. Fix: leave it out."
            ) from None
        while len(parts) > 1:
            ranks = [self.rank.get(pair, len(self.rank)) for pair in pairwise(parts)]
            best = min(ranks)
            if best == len(self.rank):
                break
            i = ranks.index(best)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        unknown = [part for part in parts if part not in self.number]
        if unknown:
            raise ValueError(
                f"text must be written with the bytes of the vocabulary, got {word!r}, and there is no token for "
                f"{', '.join(f'byte {BYTE[c]}' for part in unknown for c in part)}. Fix: leave this character out."
            )
        return [self.number[part] for part in parts]
