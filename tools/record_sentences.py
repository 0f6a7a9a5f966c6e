"""Write the sentences of the site's first page, lite/sentences/: what every word looks at, in every head.

    make real-decoder && python -m tools.record_sentences

A score is one letter: how far it lies below the largest of its row, as a square root in 88 steps, so that what gets
most of the weight is finest. A row begins with a letter for the length of that scale. From these letters
lite/sentence.js takes the softmax at any d_k; tests/test_smollm_sentences.py compares its weights with the model's.
Stored scores do not tell what another model says. So a sentence also has what the whole model does at each d_k, and
with each mistake that the page can make: next words, one head's row, how it goes on; and next words without each head.
"""

import json
import re
from pathlib import Path

import numpy as np

from attncourse import smollm
from attncourse.smollm.speaker import probabilities, rms_norm
from attnlib import core
from lite.reader import BARS, MISTAKES, Reader

FOLDER = Path(__file__).resolve().parent.parent / "lite" / "sentences"
# All of ASCII that neither JSON nor a script element must escape.
LETTERS = "".join(chr(i) for i in range(35, 127) if chr(i) not in "<\\&")
LAST = len(LETTERS) - 1
SHORTEST, LONGEST = 0.5, 256.0  # of the scale of a row
STOPS = [2**i for i in range(11)]

# `line`: what to look for. {25.5.13.1} is the weight of layer 25, head 5 from word 13 on word 1, a link that shows it;
# {4|bank} a word to choose. {without 24.1} is what the model
# then gives its word. `start`: layer, head, and the word whose weight colours the grid. `ask`, `guess`: what the
# page asks before it shows anything, and two answers.
WHO = {"ask": "Who gets the drink?", "guess": ["Mary", "John"]}
SENTENCES = [
    {
        "id": "mary",
        "name": "Who gets the drink?",
        "text": "When Mary and John went to the store, John gave a drink to",
        "line": "Layer 24, head 4 takes most from the giver, the second *John*: {24.4.13.9}. No head does it alone: "
        "the removal that costs most, of layer 2, head 6, leaves {without 2.6}.",
        "lead": "This sentence stops before its last word.",
        "start": [24, 1, 1],
        **WHO,
    },
    {
        "id": "john",
        "name": "The giver exchanged",
        "text": "When Mary and John went to the store, Mary gave a drink to",
        "line": "One name is exchanged, and layer 24, head 1 now takes most from *John*: {24.1.13.3}. Layer 24, head 4 "
        "still takes most from the giver, who is now the second *Mary*: {24.4.13.9}.",
        "start": [24, 1, 3],
        **WHO,
    },
    {
        "id": "trophy",
        "name": "Trophy and suitcase",
        "text": "The trophy did not fit in the suitcase. Too big was the",
        "line": "A riddle, shortened. The head that found *Mary* looks at *trophy*, {24.1.13.1}. With *small* it "
        "looks there, too (%small%), and the model says neither.",
        "start": [24, 1, 1],
        "ask": "What was too big?",
        "guess": ["trophy", "suitcase"],
    },
    {
        "id": "anna",
        "name": "Anna saw Ben",
        "text": "Anna saw Ben; she",
        "line": "Does *she* look at *Anna*? Hard to tell: most heads rest on the first word. One looks at *Ben*, "
        "{17.4.4.2}, one at the semicolon, {1.7.4.3}.",
        "start": [17, 4, 2],
        "ask": "What comes next?",
        "guess": ["saw", "was"],
    },
    {
        "id": "bank",
        "name": "Bank and river",
        "text": "She sat on the bank of the river and put her money into the",
        "line": "Before the blank, one head looks at *money*, {13.5.13.11}, one at *bank*, {18.6.13.4}. Choose "
        "{4|bank}: it cannot look at *river*, which comes later.",
        "start": [13, 5, 11],
        "ask": "Where does her money go?",
        "guess": ["bank", "river"],
    },
    {
        "id": "red",
        "name": "A list that repeats",
        "text": "red blue green red blue",
        "line": "Three steps of copying: the word before, {17.1.4.3}; the same word earlier, {9.2.4.1}; what came "
        "after it, {18.6.4.2}. And yet the model does not say *green* first.",
        "start": [18, 6, 2],
        "ask": "Which colour comes next?",
        "guess": ["green", "blue"],
    },
    {
        "id": "chat",
        "name": "In French",
        "text": "le chat noir, le chat",
        "line": "Copying in French: the same word earlier, {9.2.6.1}; what came after it, {18.5.6.2}. The model says "
        "*no*, the first half of *noir*.",
        "start": [18, 5, 2],
        "ask": "How does it go on?",
        "guess": ["noir", "dort"],
    },
    {
        "id": "add",
        "name": "A line of code",
        "text": "def add(a, b):\n    return a +",
        "line": "One head looks at the *a* just written, {10.1.10.9}, one at the *b* above, {27.3.10.5}.",
        "start": [27, 3, 5],
        "ask": "Which letter is missing?",
        "guess": ["a", "b"],
    },
]


def scores_of(speaker, numbers):
    """Return the raw scores q.k of all heads, {(layer, head): (n, n)}, both counted from 1."""
    found, other = {}, speaker.using()
    h = speaker.shape.heads

    def watch(i, query, key, value, attn_mask):
        for j in range(h):
            found[i + 1, j + 1] = query[j] @ key[j * len(key) // h].T

    other.watch = watch
    other(numbers)
    return found


def pack_scores(scores):
    """Return the letters of a map of scores, row after row: its scale, then the scores of query i with keys 0 to i."""
    letters = []
    for i, row in enumerate(np.asarray(scores, dtype=np.float64)):
        below = row[: i + 1].max() - row[: i + 1]
        least = np.ceil(np.log(max(below.max(), SHORTEST) / SHORTEST) / np.log(LONGEST / SHORTEST) * LAST)
        # A longer scale can round better by chance: the best of some is taken, by the weights of the model as trained.
        tried = [_round_row(below, min(least + more, LAST)) for more in range(12)]
        letters += [LETTERS[int(code)] for code in min(tried, key=lambda one: one[0])[1]]
    return "".join(letters)


def _round_row(below, step):
    """Return (largest error of a weight, codes): the row in letters of a scale."""
    scale = SHORTEST * (LONGEST / SHORTEST) ** (step / LAST)
    codes = np.rint(LAST * np.sqrt(np.minimum(below / scale, 1)))
    read = core.softmax(-scale * (codes / LAST) ** 2 / 8)
    return np.abs(read - core.softmax(-below / 8)).max(), [step, *codes]


def record_sentence(speaker, sentence):
    """Return what the page needs of a sentence."""
    reader = Reader(speaker, sentence["text"])
    kept = {
        name: sentence[name] for name in ("id", "name", "line", "start", "ask", "guess", "lead") if name in sentence
    }
    layer, head, key = sentence["start"]
    if "%small%" in sentence["line"]:
        other = Reader(speaker, sentence["text"].replace("big", "small")).whole()
        kept["line"] = sentence["line"].replace(
            "%small%", f"{other.weights()[layer - 1, head - 1, -1, key]:.0%}".replace("%", " %")
        )
    scores = scores_of(speaker, reader.numbers)
    kept["words"] = reader.words
    kept |= outcome_of(reader.whole(), sentence)
    kept["scores"] = "".join(pack_scores(scores[one]) for one in sorted(scores))
    kept["stops"] = [outcome_of(reader.whole(d_k), sentence) for d_k in STOPS]
    kept["mistakes"] = {name: outcome_of(reader.whole(mistake=name), sentence) for name in MISTAKES}
    kept["without"] = remove_heads(speaker, reader.numbers)
    return kept


def remove_heads(speaker, numbers):
    """Return the likely next words where one head is removed, of each head: tokens, and [token, thousandths, ...]."""
    tokens, found = {}, []
    positions, past, x = np.arange(len(numbers)), speaker.empty(), speaker.embedding[numbers]
    for i, j in np.ndindex(speaker.shape.layers, speaker.shape.heads):
        other, behind = speaker.using(without=[(i + 1, j + 1)]), x  # below its layer nothing changes
        for k in range(i, speaker.shape.layers):
            behind = other.layer(k, other.layers[k], behind, positions, past[k])[0]
        p = probabilities(other.unembedding @ rms_norm(behind[-1], other.norm, other.shape.eps))
        likely = np.argsort(-p, kind="stable")[:BARS]
        found.append([int(v) for n in likely for v in (tokens.setdefault(int(n), len(tokens)), round(1000 * p[n]))])
        if j == speaker.shape.heads - 1:
            x = speaker.layer(i, speaker.layers[i], x, positions, past[i])[0]
    return {"tokens": [speaker.tokenizer.decode([n]) for n in tokens], "next": found}


def outcome_of(reading, sentence):
    """Return what came of a reading: next words, the row of the head that the page starts with, the text, the loss."""
    layer, head, _ = sentence["start"]
    row = reading.weights()[layer - 1, head - 1, -1]
    return {
        "next": reading.next_words(),
        "row": [round(float(weight), 2) for weight in row],
        "writes": reading.text(),
        "loss": round(reading.loss(), 2),
    }


def parse_citations(line):
    """Return the (layer, head, query, key) that a line cites."""
    return [tuple(map(int, found)) for found in re.findall(r"\{(\d+)\.(\d+)\.(\d+)\.(\d+)\}", line)]


def main():
    speaker = smollm.load(bar=iter)
    FOLDER.mkdir(exist_ok=True)
    for sentence in SENTENCES:
        path = FOLDER / f"{sentence['id']}.json"
        text = json.dumps(record_sentence(speaker, sentence), ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", encoding="utf-8", newline="\n")
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
