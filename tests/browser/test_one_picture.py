"""The first page and live.ribbons draw the same ribbons."""

import re

import numpy as np
import pytest
from test_first_page import guess, opened, url  # noqa: F401

from attnlib import live
from attnlib.svg import ribbon_row as drawing
from tests.test_smollm_sentences import STORED, decoded
from tools.record_sentences import STOPS


@pytest.fixture(scope="module")
def view():
    """live.ribbons of what the page shows, from the same stored scores."""
    item = STORED["mary"]
    n = len(item["words"])
    scores = np.full((30, 9, n, n), -np.inf)
    for layer, head, query in np.ndindex(30, 9, n):
        scores[layer, head, query, : query + 1] = decoded(item, layer + 1, head + 1, query) / 8
    stops = [{"d_k": d_k, "weights": np.eye(n), "next": item["next"]} for d_k in (1, 16, 64, 256)]
    given = {"words": item["words"], "layer": 24, "head": 1, "d_k": 64, "stops": stops, "scores": scores}
    view = live.ribbons(given)
    view.sliders["way"].value = 0
    return view


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize(
    ("layer", "head", "query", "d_k"),
    [(24, 1, 13, 64), (25, 5, 13, 64), (5, 8, 9, 64), (17, 1, 1, 64)]
    + [(24, 1, 13, d_k) for d_k in (1, 16, 256)],  # the slider's scene stays with one head
)
def test_ribbons_are_the_same(request, new_page, view, monkeypatch, width, layer, head, query, d_k):
    page = opened(
        new_page(width, 844), f"{request.getfixturevalue('url')}/#s=mary&l={layer}&h={head}&q={query}&d={d_k}"
    )
    guess(page)
    view.choose(layer=layer - 1, head=head - 1, query=query)
    names, narrow = page.locator("#stage .name"), width < 700
    below = 0.375 * float(names.first.get_attribute("font-size")) * narrow  # its letters stand on their line
    at = [float(names.nth(i).get_attribute("y" if narrow else "x")) - below for i in range(14)]
    base = float(names.first.get_attribute("x")) + 8 if narrow else float(names.first.get_attribute("y")) - 33
    deep = float(page.locator("#stage").get_attribute("viewBox").split()[2]) - 146 if narrow else base - 24
    monkeypatch.setattr(drawing, "EDGE" if narrow else "FOOT", base)
    monkeypatch.setattr(drawing, "DEEP", (deep, deep))
    monkeypatch.setattr(drawing, "BAND", (38, 24))  # the page is larger than a view
    words = tuple(STORED["mary"]["words"])
    place = drawing.Line(16, words, tuple((i,) for i in range(14)), tuple(at), (0,) * 14, 0, 0, narrow)
    kept = STORED["mary"]["stops"][STOPS.index(d_k)]["row"]  # of the whole model, which the page's slider changes
    row = view.shown["weights"][query] if d_k == 64 else np.array(kept)
    drawn = list(drawing.bands(place, row, query))  # the word that looks, then backwards
    paths = page.locator("#stage path.band").evaluate_all("all => all.map((one) => one.getAttribute('d'))")
    for j, ribbon in zip(range(query, -1, -1), drawn, strict=False):
        if row[j] > 0.006:  # the page draws no thinner ones
            numbers = [
                np.array(re.findall(r"-?[\d.]+", d), float) for d in (re.search(r' d="([^"]*)"', ribbon)[1], paths[j])
            ]
            assert len(numbers[0]) == len(numbers[1]) and np.abs(np.subtract(*numbers)).max() < 0.21, (j, row[j])
