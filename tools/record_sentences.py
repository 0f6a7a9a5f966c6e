"""Write the sentences of the site's first page, lite/sentences/: what every word looks at, in every head.

    make real-decoder && python -m tools.record_sentences

A score is one letter: how far it lies below the largest of its row, as a square root in 88 steps, so that what gets
most of the weight is finest. A row begins with a letter for the length of that scale. From these letters
lite/sentence.js takes the softmax; tests/test_smollm_sentences.py compares its weights with the model's.
Stored scores do not tell what another model says. So a sentence also has what the whole model does at each d_k, and
with each mistake that the page can make: next words, one head's row, how it goes on; and next words without each head.
"""

import json
import re
from pathlib import Path

import numpy as np

from attncourse import smollm
from attncourse.smollm.results import D_K
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
# {3|France} a word to choose. {without 24.1} is what the model then gives its word. `start`: layer, head, and
# the word whose weight colours the grid. `ask`, `guess`: what the page asks before it shows anything, and two answers.
WHO = {"ask": "Who gets the drink?", "guess": ["Mary", "John"]}
SENTENCES = [
    {
        "id": "mary",
        "name": "Who gets the drink?",
        "text": "When Mary and John went to the store, John gave a drink to",
        "line": "Remove any one head, and it still says *Mary*: at worst it is {without 2.6} sure, without layer 2, "
        "head 6.",
        "lead": "This sentence stops before its last word.",
        "finds": "Let Mary give the drink (scene 1), and it takes most from *John*: from who gets, not who gives.",
        "start": [24, 1, 1],
        **WHO,
    },
    {
        "id": "john",
        "name": "The giver exchanged",
        "text": "When Mary and John went to the store, Mary gave a drink to",
        "line": "One name is exchanged, and layer 24, head 1 now takes most from *John*: {24.1.13.3}. Layer 24, head 4 "
        "still takes most from the giver, who is now the second *Mary*: {24.4.13.9}.",
        "finds": "Let John give the drink (scene 1), and it takes most from *Mary*: from who gets, not who gives.",
        "start": [24, 1, 3],
        **WHO,
    },
    {
        "id": "box",
        "name": "A cup and a box",
        "text": "The cup did not fit in the box. The box was too",
        "line": "A riddle, and the right word comes first, barely: with *cup* for the last *box* it says %twin%. This "
        "head takes from that word, {23.4.12.10}; without this head *small* falls to {without 23.4}.",
        "start": [23, 4, 10],
        "ask": "What was wrong with the box?",
        "guess": ["small", "large"],
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
        "id": "italy",
        "name": "Paris and Rome",
        "text": "Paris is in France. Rome is in",
        "line": "Layer 24, head 5 takes most from *Rome*, {24.5.7.5}, another head from *France*, "
        "{18.6.7.3}. *Italy* stands nowhere: the model's own numbers hold it. Choose {3|France}: it "
        "cannot look at *Rome*, which comes later.",
        "start": [24, 5, 5],
        "ask": "Which country comes next?",
        "guess": ["Italy", "France"],
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
        "line": "Copying in French: the same word earlier, {9.2.6.1}; what came after it, {25.1.6.2}. The model says "
        "*no*, the first piece of *noir*.",
        "start": [25, 1, 2],
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
        name: sentence[name]
        for name in ("id", "name", "line", "start", "ask", "guess", "lead", "finds")
        if name in sentence
    }
    if "%twin%" in sentence["line"]:
        word, p = Reader(speaker, sentence["text"].replace("The box", "The cup")).whole().next_words()[0]
        kept["line"] = sentence["line"].replace("%twin%", f"{word.strip()}, {p:.0%}".replace("%", " % sure"))
    scores = scores_of(speaker, reader.numbers)
    kept["words"] = reader.words
    kept |= outcome_of(reader.whole(), sentence)
    kept["scores"] = "".join(pack_scores(scores[one]) for one in sorted(scores))
    kept["stops"] = [outcome_of(reader.whole(d_k), sentence) for d_k in STOPS]
    kept["mistakes"] = {name: outcome_of(reader.whole(mistake=name), sentence) for name in MISTAKES}
    kept["without"] = remove_heads(speaker, reader.numbers)
    kept["workings"] = workings_of(speaker, reader.numbers, sentence["start"], kept["next"][0][0])
    return kept


def workings_of(speaker, numbers, start, answer):
    """Return how the head that a sentence starts with comes to its row, at each stop: what the page draws of it.

    `words` are the two with most weight as trained. `lifts` are as trained: how much the whole value of each word, on
    its straight way to the end, adds to the logit of `answer` above the mean of all tokens. Of a stop: all scores q.k,
    and the query and the keys of these two in letters.
    """
    (layer, head, _), (token,) = start, speaker.tokens(answer)
    at = (head - 1) * speaker.shape.kv_heads // speaker.shape.heads
    out = speaker.layers[layer - 1].attn_output.reshape(speaker.shape.heads, -1, len(speaker.norm))[head - 1]
    towards = speaker.unembedding[token] - speaker.unembedding.mean(axis=0)
    found, stops = {}, {}

    def watch(i, query, key, value, attn_mask):
        if i == layer - 1:
            found.update(query=query[head - 1, -1], keys=key[at], values=value[at])

    for d_k in [D_K, *STOPS]:
        other = speaker.using(scale=d_k**-0.5)
        other.watch, x, past = watch, speaker.embedding[numbers], speaker.empty()
        for i, layer_weights in enumerate(other.layers):
            x, _ = other.layer(i, layer_weights, x, np.arange(len(numbers)), past[i])
        query, keys = found["query"] * np.sqrt(d_k / D_K), found["keys"]  # it was handed in with the factor
        scores = keys @ query
        if not stops:
            words = [int(j) for j in np.argsort(-scores)[:2]]
            size = np.sqrt(np.mean(x[-1] ** 2) + speaker.shape.eps)  # by which the last norm divides
            lifts = (found["values"] @ out * speaker.norm / size) @ towards
        stops[d_k] = {
            "scores": [round(float(score), 2) for score in scores],
            "query": pack_vector(query, np.abs(query).max()),
            "keys": [pack_vector(keys[j], np.abs(keys[words]).max()) for j in words],
        }
    lifts = [round(float(lift), 2) for lift in lifts]
    return {"words": words, "answer": answer, "lifts": lifts, "stops": [stops[d_k] for d_k in STOPS]}


def pack_vector(vector, most):
    """Return a letter for each number, from -most to most."""
    return "".join(LETTERS[int(code)] for code in np.rint((vector / most + 1) / 2 * LAST))


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
