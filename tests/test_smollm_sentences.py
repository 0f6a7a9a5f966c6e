"""The sentences of the site's first page: what is stored is small, the model's, and what their lines say of it."""

import gzip
import json

import numpy as np
import pytest

import attnlib as al
from attnlib.course import smollm
from tools import record_sentences as made

needs_model = pytest.mark.skipif(bool(smollm.missing()), reason="the model is not installed: make real-decoder")
STORED = {s["id"]: json.loads((made.FOLDER / f"{s['id']}.json").read_text("utf-8")) for s in made.SENTENCES}
HEADS = [(1, 7), (5, 8), (9, 2), (10, 1), (13, 5), (17, 1), (18, 6), (24, 4), (25, 5), (30, 9)]


def decoded(item, layer, head, query):
    """Return the scores of a row below their largest, as lite/sentence.js reads them."""
    code = {letter: i / made.LAST for i, letter in enumerate(made.LETTERS)}
    n = len(item["words"])
    at = ((layer - 1) * 9 + head - 1) * (n * (n + 3) // 2) + query * (query + 3) // 2
    scale, *letters = item["scores"][at : at + query + 2]
    return -0.5 * 512 ** code[scale] * np.array([code[letter] for letter in letters]) ** 2


def weights(item, layer, head, query, d_k=64):
    return al.softmax(decoded(item, layer, head, query) / d_k**0.5)


def test_a_sentence_is_small_and_whole():
    assert {path.stem for path in made.FOLDER.glob("*.json")} == set(STORED)
    for sentence in made.SENTENCES:
        item, text = STORED[sentence["id"]], (made.FOLDER / f"{sentence['id']}.json").read_bytes()
        n = len(item["words"])
        assert "".join(item["words"]) == sentence["text"] and n <= 14
        assert len(item["scores"]) == 270 * n * (n + 3) // 2 and set(item["scores"]) <= set(made.LETTERS)
        assert len(gzip.compress(text)) < 25_600 and not set("<\\&") & set(item["scores"])
        assert len(item["next"]) == 5 and item["next"][0][1] == max(p for _, p in item["next"])
        if "stops" in item:
            assert len(item["stops"]) == len(made.STOPS)
            for _, row in item["stops"]:
                assert len(row) == n and sum(row) == pytest.approx(1, abs=0.01)


def test_what_is_said_of_a_sentence_is_true_of_what_is_stored():
    for id, item in STORED.items():
        cited = made.cited(item["line"])
        assert cited, id
        for layer, head, query, key in cited:
            row = weights(item, layer, head, query)
            # more than any other word but the first, where heads park, and the one that asks
            assert row[key] > 0.3 and 0 < key == 1 + row[1:query].argmax(), (id, layer, head, row.round(2))
        layer, head, key = item["start"]
        assert weights(item, layer, head, len(item["words"]) - 1).argmax() == key
    first = {id: item["next"][0] for id, item in STORED.items()}
    assert first["mary"][0] == " Mary" and first["john"][0] == " John" and first["red"][0] != " green"
    assert first["chat"][0] == " no" and STORED["chat"]["words"][2:4] == [" no", "ir"] and first["add"][0] == " b"
    assert first["trophy"][0] not in (" trophy", " suit")
    small = float(STORED["trophy"]["line"].split("looks there, too (")[1][:4])
    assert small > 0.4
    for id, name in (("mary", " Mary"), ("john", " John")):  # too sharp, right, too pale, of the whole model
        says = [words[0][0] for words, _ in STORED[id]["stops"]]
        assert says[made.STOPS.index(64)] == name and name not in (says[0], says[-1])


@pytest.fixture(scope="module")
def speaker():
    return smollm.load(bar=iter)


@needs_model
@pytest.mark.slow
@pytest.mark.parametrize("sentence", made.SENTENCES, ids=lambda s: s["id"])
def test_weights_are_the_models_to_a_hundredth(speaker, sentence):
    item, numbers = STORED[sentence["id"]], speaker.tokens(sentence["text"])
    scores = made.scores_of(speaker, numbers)
    for layer, head in HEADS:
        for query, row in enumerate(scores[layer, head].astype(float)):
            whole = al.softmax(row[: query + 1] / 8)
            assert np.abs(weights(item, layer, head, query) - whole).max() < 0.0105
        for d_k in made.STOPS:  # and wherever the slider stands, nothing is far off
            assert np.abs(weights(item, layer, head, query, d_k) - al.softmax(row / d_k**0.5)).max() < 0.02
    fresh = made.next_words(speaker, sentence["text"])
    assert [word for word, _ in fresh] == [word for word, _ in item["next"]]
    assert [p for _, p in fresh] == pytest.approx([p for _, p in item["next"]], abs=0.002)


@needs_model
@pytest.mark.slow
def test_the_whole_model_says_what_is_stored_at_its_stops(speaker):
    (mary,) = (s for s in made.SENTENCES if s["id"] == "mary")
    layer, head, _ = mary["start"]
    for d_k in (1, 64, 1024):
        other, (words, row) = speaker.using(scale=d_k**-0.5), STORED["mary"]["stops"][made.STOPS.index(d_k)]
        assert made.of_head(other, speaker.tokens(mary["text"]), layer, head) == pytest.approx(row, abs=0.002)
        assert made.next_words(other, mary["text"])[0][0] == words[0][0]
