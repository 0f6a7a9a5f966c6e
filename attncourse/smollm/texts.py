"""Texts to measure the model on: one it has surely read, one written for this series, code; 80 blanks to fill; prompts
on which heads that copy may park; prompts to guess ahead on."""

from itertools import product

from ..model_files import DATA

# The beginning of "Alice's Adventures in Wonderland", Lewis Carroll 1865, in the public domain; the others are ours.
ALICE, PROSE, CODE = ((DATA / f"{name}.txt").read_text("utf-8") for name in ("alice", "prose", "code"))
TEXTS = {"alice": ALICE, "prose": PROSE, "code": CODE}
ITALIAN = (
    "Il fornaio di via Garibaldi apre alle cinque, quando la nebbia copre ancora il fiume. Quella mattina trovò "
    "davanti alla porta una gabbia vuota, un guanto rosso e un biglietto con tre parole che non riuscì a leggere senza "
    "occhiali."
)
FRENCH = (
    "La factrice du village connaissait tous les chiens par leur nom, et presque tous les habitants. Un mardi de "
    "novembre elle trouva dans son sac une lettre sans adresse, écrite à l'encre verte, qui demandait seulement si les "
    "oies étaient déjà passées. Elle la lut deux fois, puis la posa sur le comptoir du café, où chacun promit d'y "
    "répondre."
)
MARKET = (
    "La mattina del mercato Lucia si accorse che il banco del pesce era chiuso e che al suo posto c'era una lunga fila "
    "di sedie dipinte di verde. Nessuno sapeva chi le avesse portate. Il fornaio ne comprò due, il medico nessuna, e "
    "una signora con il cappello giallo si sedette sull'ultima senza dire una parola, come se aspettasse un treno che "
    "doveva passare proprio da quella piazza prima di mezzogiorno."
)
SQL = """CREATE TABLE tree (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, planted INTEGER, street_id INTEGER);
CREATE TABLE visit (tree_id INTEGER REFERENCES tree, day DATE NOT NULL, height REAL, note TEXT);

SELECT street.name, COUNT(*) AS trees, MAX(visit.height) AS tallest
FROM tree JOIN street ON street.id = tree.street_id LEFT JOIN visit ON visit.tree_id = tree.id
WHERE tree.kind = 'lime' AND visit.day >= '2024-01-01'
GROUP BY street.name ORDER BY tallest DESC;
"""
# Read without a mask.
MORE = TEXTS | {"Italian, a market": MARKET, "Italian, a baker": ITALIAN, "French": FRENCH, "SQL": SQL}

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
