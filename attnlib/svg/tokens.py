"""Tokens of a real tokenizer as words of a picture: each can be read, and a line of them looks like the text."""

import unicodedata

# Letters of the usual fonts at size 1, by their width: `parts.width` is an upper limit, and would tear a line apart.
LENGTHS = {0.3: " .,:;|'!ijlIJ", 0.41: 'frt()[]-"', 0.54: "cszL", 0.6: "aekovxyFT_", 0.75: "ABCDGHKNOQRUVXZ"}
LENGTH = {letter: size for size, letters in LENGTHS.items() for letter in letters} | dict.fromkeys("wM<>=+~#", 0.84)
LENGTH |= dict.fromkeys("mW@%", 0.99)
NEW_LINE, BLANK, CONTROL = "⏎", "␣", "□"


def length(words, size):
    """Return about how long a text is, in pixels.

    >>> round(length("Mary", 10))
    24
    """
    return size * sum(LENGTH.get(c, 1.0 if unicodedata.east_asian_width(c) in "WF" else 0.64) for c in words)


def starts_word(token):
    """Return whether a token is set off from the one before it, as tokenizers mark it: by a blank in front.

    >>> starts_word(" Mary"), starts_word("ing")
    (True, False)
    """
    return token[:1].isspace()


def visible(token, joined=False):
    """Return a token as it can be read: without the blank in front of a word, other blanks and line ends as signs.

    With `joined`, dots stand in front of a token that goes on with the word before it: "the" is not " the".

    >>> visible(" Mary"), visible("\\n\\n"), visible("   "), visible("<|im_start|>"), visible("ing", joined=True)
    ('Mary', '⏎⏎', '␣␣␣', '<|im_start|>', '…ing')
    """
    dots = "…" if joined and token[:1].isalnum() else ""
    token = token[1:] if token[:1] == " " and token.strip() else token
    return dots + "".join(map(_sign, token)) or BLANK


def _sign(letter):
    if letter in "\n\r":
        return NEW_LINE
    if letter.isspace():
        return BLANK if letter != "\t" else "⇥"
    return CONTROL if unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter != "\u200d" else letter
