"""The pictures that open the series: ribbons share one band and never cross, and what a model writes at each d_k."""

import html
import json
import re
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

from views import parsed, read, stops

from attnlib import live, svg
from attnlib.colours import PLATE, QUERY
from attnlib.live import frames
from attnlib.svg import ribbon_row as drawing
from attnlib.svg import ribbons_narrow

PATH = re.compile(r"-?[\d.]+")
SENTENCE = [
    " When",
    " Mary",
    " and",
    " John",
    " went",
    " to",
    " the",
    " store",
    ",",
    " John",
    " gave",
    " a",
    " drink",
    " to",
]


def drawn(weights, query, words=SENTENCE):
    """Return the place of the words, and of each ribbon its eight points: out, over, down, and back."""
    following = [(" Mary", 0.9), (" the", 0.1)]
    options = {"nexts": [" Mary"], "verdict": "right", "told": "d_k = 64", "head": "layer 1, head 1"}
    (root,) = parsed(svg.ribbons(words, np.asarray(weights), query, following, **options))
    numbers = [np.array(list(map(float, PATH.findall(path.get("d"))))) for path in root.iter("path")]
    return drawing.line(tuple(words), (" Mary",)), [x.reshape(-1, 2) for x in numbers if len(x) == 16]


def points(a, b, c, d):
    t = np.linspace(0, 1, 200)[:, None]
    return (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d


@pytest.mark.parametrize("query", [0, 6, 13])
@pytest.mark.parametrize("sharpness", [0.02, 0.3, 3])
def test_ribbons_are_as_wide_as_their_weights_and_none_crosses_another(query, sharpness):
    weights = np.random.default_rng(0).dirichlet(np.full(14, 1 / sharpness))
    place, ribbons = drawn(weights, query)
    assert len(ribbons) == 14
    centre, starts = place.centres[query], []
    for j, (ribbon, weight) in enumerate(zip(ribbons, weights, strict=True)):
        feet = [ribbon[0, 0], ribbon[-1, 0]] if j != query else [ribbon[0, 0], ribbon[3, 0]]
        starts.append(sorted(feet))
        assert np.diff(sorted(feet))[0] == pytest.approx(drawing.BAND * weight, abs=0.11)
        if j != query:
            assert ribbon[3:5, 0].mean() == pytest.approx(place.centres[j], abs=0.11)
    starts.sort()
    assert starts[0][0] == pytest.approx(centre - drawing.BAND / 2, abs=0.11)
    assert starts[-1][1] == pytest.approx(centre + drawing.BAND / 2, abs=0.11)
    assert all(a[1] == pytest.approx(b[0], abs=0.11) for a, b in pairwise(starts))
    for side in (range(query), range(query + 1, 14)):
        seen = [j for j in side if weights[j] >= drawing.LEAST]
        for inner, outer in [(j, k) for j in seen for k in seen if abs(k - query) > abs(j - query)]:
            over, under = points(*ribbons[inner][:4]), points(*ribbons[outer][4:])
            # wherever both stand above the same x, the further word's ribbon is the higher one
            ends = max(over[:, 0].min(), under[:, 0].min()), min(over[:, 0].max(), under[:, 0].max())
            x = np.linspace(*ends, 50)[2:-2]
            x = x[abs(x - centre) > max(drawing.BAND, abs(place.centres[inner] - centre) / 2)]  # until then one trunk
            heights = [np.interp(x, *curve[np.argsort(curve[:, 0])].T) for curve in (over, under)]
            assert (heights[1] <= heights[0] + 0.5).all(), (inner, outer)


def test_every_stop_changes_attributes_and_texts_alone_and_every_row_can_be_chosen():
    view = live.ribbons(stops())
    changed = frames.unpacked(frames.packed(view))["changes"]
    assert {attribute for _, attribute, *_ in changed} >= {"d", "width", "opacity", ""}
    assert not any("<" in text for _, attribute, *texts in changed if not attribute for text in texts[-1])
    for query in range(6):
        view.choose(query=query)
        row = view.shown["weights"][query]
        assert f"looks at “{svg.visible(stops()['words'][0])}”: {row[0]:.4f}" in view.picture.value
        assert "<pre>" not in view.picture.value
    assert view.picture.value.count('data-row="query"') == 12  # both across and down


@pytest.mark.parametrize("word", [" it", " she", " chocolate"])
def test_the_box_of_the_word_that_looks_holds_it(word):
    place = drawing.line(("a", " b", word), (" c",))
    drawn = "".join(drawing._sentence(place, np.array([0.2, 0.3, 0.5]), 2))
    ((left, wide),) = re.findall(rf'<rect x="([\d.]+)"[^>]*width="([\d.]+)"[^>]*fill="{PLATE[QUERY]}"', drawn)
    assert float(wide) >= max(drawing.BAND, place.widths[2]) and float(left) + float(wide) < place.blank


def test_too_sharp_right_too_pale():
    view, told = live.ribbons(stops()), {}
    for d_k in (1, 4, 64, 4096):
        view.sliders["d_k"].value = d_k
        told[d_k] = read(view)
    assert [next(v for v in ("too sharp", "right", "too pale") if v in told[d]) for d in told] == [
        "too sharp",
        "right",
        "right",
        "too pale",
    ]
    first = {stop["d_k"]: html.escape(svg.visible(stop["next"][0][0])) for stop in stops()["stops"]}
    assert [d for d in told if f": {first[d]}" not in told[d]] == []  # the verdict is on that word
    assert "the model's own" in told[64] and "the model's own" not in told[4]
    assert "as trained" in read(live.ribbons(stops(), middle="as trained"))


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
    column = ribbons_narrow.line(tuple(words))
    assert [i for group in column.groups for i in group] == list(range(len(words)))
    assert ribbons_narrow.WORDS + max(column.widths) + 10 + ribbons_narrow.NUMBER <= ribbons_narrow.WIDE
    assert int(below.get("viewBox").split()[3]) <= 650
    place = drawing.line(tuple(words), (" <Mary>", " the", "-"))
    assert place.blank + place.box <= drawing.WIDE - drawing.MARGIN + 1 and place.size >= 12
    assert place.centres[0] - place.widths[0] / 2 >= 0
    assert [i for group in place.groups for i in group] == list(range(len(words)))  # each token in one column
    feet = [float(rect.get("width")) for rect in root.iter("rect") if rect.get("height") == "5"]
    own = view.shown["weights"][-1][list(place.groups[-1])].sum()
    assert sum(feet) - drawing.BAND == pytest.approx(drawing.BAND * (1 - own), abs=0.06 * len(feet))


def test_it_walks_to_both_ends_and_back():
    view = live.ribbons(stops())
    steps = frames.unpacked(frames.packed(view))["walk"]
    assert [stop for stop, _ in steps] == [1, 0, 1, 2, 3, 2]
    assert [stop for stop, pause in steps if pause == frames.REST] == [1, 1, 3, 2]  # the first step after each rest
    assert json.dumps(steps) in view.picture.value
    view.mouse.value = json.dumps({"what": "walk", "count": 1, "i": 3})
    assert view.sliders["d_k"].value == 4096
    assert "walk" not in frames.unpacked(frames.packed(live.masks()))


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
        (lambda: live.ribbons(stops(), query=6), ValueError, ["6 words", "from 0", "got 6"]),
        (lambda: live.ribbons(stops(), query="to"), ValueError, ["6 words", "got 'to'"]),
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
