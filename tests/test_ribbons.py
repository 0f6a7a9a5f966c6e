"""The pictures that open the series: ribbons share one band and never cross, and what a model writes at each d_k."""

import html
import json
import re
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from ipywidgets import Widget

matplotlib.use("agg")

from views import parsed, read, stops

import attnlib as al
from attncourse import smollm
from attnlib import live, svg
from attnlib.live import frames
from attnlib.svg import ribbon_row as drawing

PATH = re.compile(r"-?[\d.]+")
SENTENCE = tuple(" When Mary and John went to the store ,".replace(" ", "| ").split("|")[1:])
SENTENCE += (" John", " gave", " a", " drink", " to")


def drawn(weights, query, words=SENTENCE, narrow=False):
    """Return the place of the words, and of each ribbon its eight points: out, over, down, and back."""
    following = [(" Mary", 0.9), (" the", 0.1)]
    (root,) = parsed(svg.ribbons(words, np.asarray(weights), query, following, verdict="right", narrow=narrow))
    paths = {path.find("title").text: path.get("d") for path in root.iter("path") if path.find("title") is not None}
    numbers = [np.array(list(map(float, PATH.findall(d)))).reshape(-1, 2) for d in paths.values() if "C" in d]
    numbers = numbers[:query][::-1] + numbers[query:][::-1]  # as the words stand
    place = drawing.column(words) if narrow else drawing.line(words, (" Mary",))
    return place, [x[:, ::-1] if narrow else x for x in numbers]


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("query", [0, 6, 13])
@pytest.mark.parametrize("sharpness", [0.02, 0.3, 3])
def test_ribbons_are_as_wide_as_their_weights_and_the_farther_goes_higher(query, sharpness, narrow):
    weights = np.random.default_rng(0).dirichlet(np.full(14, 1 / sharpness))
    place, ribbons = drawn(weights, query, narrow=narrow)
    assert len(ribbons) == 13
    band, centre, starts, heights = drawing.BAND[narrow], place.centres[query], [], []
    others = [j for j in range(14) if j != query]
    for j, ribbon in zip(others, ribbons, strict=True):
        feet = sorted([ribbon[0, 0], ribbon[-1, 0]])
        starts.append(feet)
        assert np.diff(feet)[0] == pytest.approx(band * weights[j], abs=0.11)
        assert ribbon[3:5, 0].mean() == pytest.approx(place.centres[j], abs=0.11)
        heights.append((abs(place.centres[j] - centre), abs(ribbon[1, 1] - ribbon[0, 1])))
    assert [high for _, high in sorted(heights)] == sorted(high for _, high in heights)
    starts.sort()
    gap = band * weights[query]  # what a word keeps for itself has its place among them
    assert starts[0][0] - gap <= centre - band / 2 + 0.11 and starts[-1][1] == pytest.approx(
        centre + band / 2, abs=0.11
    )
    assert sum(b[0] - a[1] > 0.11 for a, b in pairwise(starts)) <= 1


def test_every_stop_changes_attributes_and_texts_alone_and_every_row_can_be_chosen():
    view = live.ribbons(stops())
    changed = frames.unpack_stops(frames.pack_stops(view))["changes"]
    assert {attribute for _, attribute, *_ in changed} >= {"d", "opacity", ""}
    for query in range(6):
        view.choose(query=query)
        row = view.shown["weights"][query]
        assert f"looks at “{svg.visible(stops()['words'][0])}”: {row[0]:.4f}" in view.picture.value
        assert "<pre>" not in view.picture.value
    assert view.picture.value.count('data-row="query"') == 12  # both across and down


def test_words_are_bare_and_have_the_ink_of_what_they_do():
    """As on the first page: the one that looks, at what it looks most, what comes later; before a guess none."""
    shown = svg.ribbons(["a", " b", " c", " d"], np.array([0.1, 0.6, 0.3, 0]), 2, [(" e", 1.0)], verdict="right")
    texts = reversed([*parsed(shown)[0].iter("text")])  # the likely next word stands once more, beside its bar
    found = {t.text: re.findall(r"--([\w-]+),", t.get("style", "")) for t in texts}
    assert [found[word] for word in "abcde"] == [[], ["key-text"], ["query-text"], ["quiet"], ["next-text"]]
    assert "<rect" not in shown.partition("the next word")[0]  # no plate, no box
    asked = svg.ribbons(["a", " b"], np.array([0.5, 0.5]), 1, [(" c", 1.0)], verdict="right", guesses=("c", "d"))
    assert "-text" not in asked.partition('<g data-waits="1">')[2]


def test_too_sharp_right_too_pale():
    view, told = live.ribbons(stops()), {}
    for d_k in (1, 4, 64, 4096):
        view.sliders["d_k"].value = d_k
        told[d_k] = read(view)
    says = ["Too sharp: it says", "It still says", "The model says", "Too pale: it says"]
    first = [html.escape(svg.visible(stop["next"][0][0])) for stop in stops()["stops"]]
    for words, verdict, word in zip(told.values(), says, first, strict=True):
        assert [v in words for v in says] == [v == verdict for v in says]
        assert f"{verdict} {word}." in words.replace("“", "").replace("”", "")
    assert "as trained, the score is divided by √64 = 8" in told[64] and "divide by 2, not by 8" in told[4]


@pytest.mark.parametrize(
    "words",
    [
        ["a"],
        ["<|im_start|>", "user", "\n", " a"],
        ["Once", *[" internationalization"] * 30],
        [f" {i}" for i in range(300)],
        [" 世界", "🙂", "�", "\t", "  ", "</svg>"],
    ],
)
def test_any_prompt_fits(words):
    view = live.ribbons(stops(tuple(words)))
    root, below = parsed(view.picture.value)
    column = drawing.column(tuple(words))
    assert [i for group in column.groups for i in group] == list(range(len(words)))
    assert max(column.widths) < drawing.EDGE - 6
    assert int(below.get("viewBox").split()[3]) <= 650
    place = drawing.line(tuple(words), (" <Mary>", " the", "-"))
    assert place.blank + place.box <= drawing.WIDE - drawing.MARGIN + 1 and place.size >= 12
    assert place.centres[0] - place.widths[0] / 2 >= 0
    assert [i for group in place.groups for i in group] == list(range(len(words)))  # each token in one column
    shown = [path for path in root.iter("path") if path.find("title") is not None]
    assert len(shown) == len(place.groups)


BLANK = smollm.stops("blank")


def test_before_a_guess_there_is_a_blank_and_no_ribbon_number_or_verdict():
    view = live.ribbons(BLANK)
    asked = view.picture.value
    assert "You said" not in asked and "0.69" not in asked and "says" not in asked and "looks at" not in asked
    assert [view.sliders[name].layout.display for name in ("guess", "d_k", "way")] == ["", "none", "none"]
    figure, words = view._still()
    assert words == "When Mary and John went to the store, John gave a drink to ___"
    assert "Mary" in [text.get_text() for text in figure.axes[0].texts]  # of the sentence
    assert not any(re.search(r"\d", text.get_text()) for text in figure.axes[0].texts)
    view.sliders["guess"].value = 2
    assert "You said John. The model says Mary." in read(view) and view.picture.value.count('data-row="head"') == 1
    assert [view.sliders[name].layout.display for name in ("guess", "d_k", "way")] == ["none", "", ""]


def test_what_changes_is_never_none_which_jupyterlite_drops(monkeypatch):
    """Its Python sends None as JavaScript's undefined: the button Mary stayed pressed, the slider hidden."""
    sent = []
    monkeypatch.setattr(Widget, "_send", lambda self, message, buffers=None: sent.append(message["state"]))
    view = live.ribbons(BLANK)
    view.sliders["guess"].value = 1
    assert {"display": "none"} in sent and {"display": ""} in sent
    assert [state for state in sent if None in state.values()] == []


def test_a_word_a_head_and_both_ways_of_the_slider():
    view, maps = live.ribbons(BLANK), smollm.every_map()[1]
    view.sliders["guess"].value = 1
    own = view.shown["weights"]
    view.sliders["d_k"].value = 4096
    assert "Too pale" in read(view) and view.shown["weights"][13].max() < 0.2  # the whole model
    (brief,) = re.findall("layer 24, head 1; ÷ [^<]*", view.picture.value)
    assert svg.width(brief, 12) < 328 - 8  # a phone's picture has it whole
    view.sliders["way"].value = 0
    assert "The model says Mary" in read(view) and "This head divides by 64, not by 8" in read(view)
    scores = smollm.every_score()[1][23, 0] * 8
    assert np.abs(view.shown["weights"] - al.softmax(scores / 64)).max() < 1e-9
    view.sliders["d_k"].value, view.sliders["way"].value = 64, 1
    assert np.array_equal(view.shown["weights"], own)
    assert "How much “to” looks at “Mary”: 270 heads as trained" in read(view)
    mouse = {"what": "click", "count": 1, "row": "head", "i": 4, "column": "layer", "j": 24}
    view.mouse.value = json.dumps(mouse)  # another head: the slider is that head's
    assert view.sliders["way"].value == 0 and np.array_equal(view.shown["weights"], maps[24, 4])
    assert "Layer 25, head 5: to looks at Mary with 0.81" in re.sub(" +", " ", read(view))
    framed = re.compile("Layer (\\d+), head (\\d+): 0.81. Largest")  # of the grid, which no slider moves
    assert framed.findall(view.picture.value) == [("25", "5")]
    view.mouse.value = json.dumps({"what": "click", "count": 2, "row": "query", "i": 9, "column": "", "j": 0})
    assert f"“John” looks at “When”: {maps[24, 4, 9, 0]:.4f}" in view.picture.value
    view.choose(query=0)  # it may look at itself alone
    assert "How much “When” looks at “When”: 270 heads as trained" in read(view)
    assert ">1</text></g>" not in view.picture.value.split("crispEdges")[-1]  # its 270 cells have no room for numbers


def test_one_s_own_sentence_is_stored_or_needs_the_model():
    view = live.ribbons(smollm.sentences(), smollm.BLANK)
    assert "guess" not in view.sliders
    view.sliders["sentence"].value = smollm.EXCHANGED
    assert "The model says John." in read(view)
    view.sliders["sentence"].value = "The <b>cat</b> sat on the"
    assert "Without the model" in read(view) and "still shows the last sentence" in read(view)
    assert "The model says John." in read(view) and "<b>cat" not in view.picture.value


@pytest.mark.skipif(bool(smollm.missing()), reason="the model is not installed: make real-decoder")
@pytest.mark.slow
def test_one_s_own_sentence_and_its_stops_as_they_are_asked_for():
    speaker = smollm.load(bar=iter)
    view = live.ribbons(smollm.sentences(speaker), smollm.BLANK)
    text = "The opposite of hot is"
    view.sliders["sentence"].value = text
    assert f"The model says {speaker.next_words(text, 1)[0][0].strip()}." in read(view) and len(view.held.stops) == 1
    view.sliders["d_k"].value = 4096
    assert len(view.held.stops) == 2
    view.sliders["sentence"].value = "word " * 60
    assert "at most 40 tokens" in read(view)


def test_speaking_shows_what_is_written_and_its_loss_at_every_stop():
    view, given = live.speaking(stops()), stops()
    line, points = None, []
    for stop in given["stops"]:
        view.sliders["d_k"].value = stop["d_k"]
        root, below = parsed(view.picture.value)
        assert f"{stop['loss']['prose']:.2f}" in "".join(below.itertext())
        texts = [text.text or "" for text in root.iter("text")]
        assert stop["text"].split(",")[0].strip() in " ".join(texts)
        assert f"{stop['loss']['prose']:.2f}" in texts and "its own: 64" in texts
        first, *_ = root.iter("circle")
        points.append((float(first.get("cx")), float(first.get("cy"))))
        line = next(root.iter("polyline")).get("points")
    assert [tuple(map(float, point.split(","))) for point in line.split()] == points
    assert min(points, key=lambda point: -point[1]) == points[2]  # lowest at 64, and x in proportion to log d_k
    x = np.array([x for x, _ in points])
    assert np.allclose(np.diff(x) / np.diff(np.log([1, 4, 64, 4096])), 440 / np.log(4096), atol=0.1)


def test_rows_of_a_causal_head_need_no_zeros():
    given = stops()
    rows = [row[: i + 1] for i, row in enumerate(given["stops"][1]["weights"])]
    assert live.ribbons(changed(weights=rows)).draw(d_k=4)[0] == live.ribbons(given).draw(d_k=4)[0]


def changed(**of_a_stop):
    given = stops()
    given["stops"][1] = {**given["stops"][1], **of_a_stop}
    return given


@pytest.mark.parametrize(
    ("call", "kind", "fragments"),
    [
        (lambda: live.ribbons("blank"), TypeError, ["dict", "got str"]),
        (lambda: live.ribbons({"blank": stops()}), ValueError, ["missing here: words", "it has blank"]),
        (lambda: live.ribbons({**stops(), "words": []}), ValueError, ["at least one", "[]"]),
        (lambda: live.ribbons({**stops(), "d_k": 7}), ValueError, ["own 7", "[1, 4, 64, 4096]", "a stop at 7"]),
        (lambda: live.ribbons(changed(d_k=1)), ValueError, ["different d_k", "[1, 1, 64, 4096]"]),
        (lambda: live.ribbons(changed(weights=[[1.0]])), ValueError, ["(6, 6)", "(1, 1)", "d_k = 4"]),
        (lambda: live.ribbons(changed(weights=[[1.0], [0.5, 0.5]])), ValueError, ["(6, 6)", "rows of", "d_k = 4"]),
        (lambda: live.ribbons(changed(weights=np.eye(6) * 2)), ValueError, ["1 in all", "to 2", "d_k = 4"]),
        (lambda: live.ribbons(changed(weights=np.full((6, 6), np.nan))), ValueError, ["1 in all", "after softmax"]),
        (lambda: live.ribbons(changed(next=[])), ValueError, ["one next token or more", "[]"]),
        (
            lambda: live.ribbons({**stops(), "scores": np.zeros((2, 2, 3, 3))}),
            ValueError,
            ["scores", "6 words", "3, 3"],
        ),
        (lambda: live.ribbons(stops(), query=6), ValueError, ["query", "between 0 and 5", "got 6"]),
        (lambda: live.ribbons(stops(), query="to"), TypeError, ["query", "whole number", "got str"]),
        (
            lambda: live.speaking({**stops(), "stops": [{**s, "loss": {}} for s in stops()["stops"]]}),
            ValueError,
            ["loss"],
        ),
        (lambda: live.speaking(changed(loss={"prose": np.nan, "<code>": 1})), ValueError, ["loss", "nan", "d_k = 4"]),
        (lambda: live.speaking(changed(loss={"other": 1})), ValueError, ["same texts at every stop"]),
    ],
)
def test_what_does_not_fit_is_told_when_the_view_is_made(call, kind, fragments):
    with pytest.raises(kind) as error:
        call()
    assert all(fragment in str(error.value) for fragment in [*fragments, "Fix: "]), str(error.value)
