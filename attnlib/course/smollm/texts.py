"""Texts to measure the model on: one it has surely read, one written for this series, code; 80 blanks to fill; prompts
on which heads that copy may park; prompts to guess ahead on."""

from itertools import product


def _text(lines):
    """Join the lines of each paragraph."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in lines.split("\n\n"))


# The beginning of "Alice's Adventures in Wonderland", Lewis Carroll 1865, in the public domain.
ALICE = _text(
    """
Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or
twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it, "and
what is the use of a book," thought Alice "without pictures or conversations?"

So she was considering in her own mind (as well as she could, for the hot day made her feel very sleepy and
stupid), whether the pleasure of making a daisy-chain would be worth the trouble of getting up and picking the
daisies, when suddenly a White Rabbit with pink eyes ran close by her.

There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the
Rabbit say to itself, "Oh dear! Oh dear! I shall be late!" (when she thought it over afterwards, it occurred to
her that she ought to have wondered at this, but at the time it all seemed quite natural)
"""
)

PROSE = _text(
    """
The ferry left at a quarter past six, with eleven passengers and a crate of lamps that nobody had ordered. Marta
counted the lamps twice. There were forty, each wrapped in a page of the same newspaper, and every page was the
weather report for a Tuesday that had not come yet. By noon the sea was flat, as the paper said it would be. At
two o'clock it began to rain for exactly twenty minutes, and the cook, who had stopped laughing, asked her what
was written about the evening. She unfolded the last sheet and read it slowly. "Fog," she said, "and after the
fog, a harbour that is not on our map."
"""
)

CODE = '''\
def read_table(path, separator=","):
    """Return the rows of a text file as dictionaries, one for each line below the header."""
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\\n") for line in file if line.strip()]
    if not lines:
        raise ValueError(f"{path} is empty")
    names = lines[0].split(separator)
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split(separator)
        if len(cells) != len(names):
            raise ValueError(f"line {number} has {len(cells)} cells, expected {len(names)}")
        rows.append(dict(zip(names, cells)))
    return rows
'''

TEXTS = {"alice": ALICE, "prose": PROSE, "code": CODE}

BLANK = "When Mary and John went to the store, John gave a drink to"
EXCHANGED = "When John and Mary went to the store, Mary gave a drink to"
STORY = "Once upon a time, a small robot"

# Prompts to write on with drafts that are looked up.
_ASKED = "Repeat this text word for word: " + " ".join(PROSE.split()[:60])
GUESSED = {
    "a story": STORY,
    "another story": "It was a dark night in the village. Anna",
    "Python": "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n",
    "counting": "1, 2, 3, 4, 5, 6, 7, 8,",
    "JSON": '[{"name": "Anna", "age": 31, "city": "Paris"},\n {"name": "Ben", "age": 27, "city": "Rome"},\n',
    "French": "Il était une fois une petite fille qui vivait dans une maison",
    "a copy": f"<|im_start|>user\n{_ASKED}<|im_end|>\n<|im_start|>assistant\n",
}

NAMES = ("Mary", "John", "Anna", "Tom", "Sarah", "David", "Emma", "Paul")  # each is one token
FORMS = (
    "When {a} and {b} went to the store, {b} gave a drink to",
    "While {a} and {b} were working in the garden, {b} handed a rake to",
    "After {a} and {b} had arrived at the station, {b} showed the tickets to",
    "Because {a} and {b} were both hungry, {b} passed the bread to",
    "Then {a} and {b} had a long talk about the house, and {b} offered a key to",
)
_NEIGHBOURS = [(NAMES[i], NAMES[(i + 1) % len(NAMES)]) for i in range(len(NAMES))]
# (sentence, the name it asks for, the other one): five forms, eight pairs of names, each in both orders.
BLANKS = tuple(
    (form.format(a=a, b=b), a, b) for form, pair in product(FORMS, _NEIGHBOURS) for a, b in (pair, pair[::-1])
)

# Prompts to try the heads that copy on: do they park?
_WORDS = "river seven tiger cloud paper green window salt engine house table water north"
TRIED = (
    "A small robot looked for its lamp under the green bridge.",
    "Anna Tom Sarah David Emma Paul Anna Tom Sarah David Emma Paul",
    " ".join(("Anna Tom Sarah David Emma Paul",) * 6),
    "one two three four five six seven eight nine ten",
    " ".join(("la",) * 20),
    " ".join(("Anna",) * 20),
    " ".join(("tick tock",) * 12),
    "Row, row, row your boat, gently down the stream. Merrily, merrily, merrily, merrily, life is but a dream.",
    f"{_WORDS} {_WORDS.title()} my{_WORDS.title().replace(' ', '')}",  # no token twice, but each word three times
    " ".join(("seven tiger cloud paper green window salt engine",) * 4),
)
