"""Texts to measure the model on: one it has surely read, one written for this series, code; 80 blanks to fill; prompts
on which heads that copy may park; prompts to guess ahead on."""

from itertools import product

from ..model_files import DATA

# The beginning of "Alice's Adventures in Wonderland", Lewis Carroll 1865, in the public domain; the others are ours.
ALICE, PROSE, CODE = ((DATA / f"{name}.txt").read_text("utf-8") for name in ("alice", "prose", "code"))
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
