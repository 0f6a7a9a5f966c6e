"""What each live view shows, and how it follows its controls."""

import base64
import html
import io
import json
import re

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")

from matplotlib.transforms import Bbox
from PIL import Image
from views import (
    ASKS,
    KEYS,
    QUERIES,
    TEXT,
    VIEWS,
    WORDS,
    attend,
    compared,
    next_word,
    one_row,
    parsed,
    read,
    strip,
    tags,
    two_sentences,
    ways,
)

import attnlib as al
import attnlib.examples
from attncourse import smollm
from attnlib import live, svg
from attnlib.colours import BELOW, KEY, rgb
from attnlib.live import frames
from attnlib.live.still import SHAPES, figure
from attnlib.rounding import rounded
from attnlib.symbols import speech


def test_saturation_tells_the_slope_of_softmax_and_its_dots_lie_on_the_curve():
    view, leads = live.saturation(), {}
    view.sliders["d_k"].value = 4
    for panel, (title, weights) in zip(parsed(view.picture.value), view.shown.items(), strict=True):
        leads[title] = np.log(weights[:, 0] / weights[:, 1])
        up, down = (1 / (1 + np.exp(-leads[title] + h)) for h in (-1e-5, 1e-5))
        assert f"median slope {np.median(up - down) / 2e-5:.4f}" in read(view)
        assert f"median {np.median(up - down) / 2e-5:.4f}" in [text.text for text in panel.iter("text")]
        told = [text.text for text in panel.iter("text") if " by " in text.text]
        assert told[-2:] == ["key 1 leads by 12", "key 0 by 12"]
        (line,) = (part.get("points") for part in panel.iter("polyline"))
        across, height = np.array([point.split(",") for point in line.split()], dtype=float).T
        dots = np.array([[dot.get("cx"), dot.get("cy")] for dot in panel.iter("circle")], dtype=float)
        assert len(dots) == 40 and np.abs(np.interp(dots[:, 0], across, height) - dots[:, 1]).max() < 3
    assert np.allclose(leads["not scaled"], 2 * leads["divided by sqrt(d_k)"])
    view.sliders["d_k"].value = 1024
    assert "not scaled: median slope &lt; 0.0001" in read(view)
    ran_off = [
        sum(float(dot.get("cx")) in (0, 262) for dot in panel.iter("circle")) for panel in parsed(view.picture.value)
    ]
    assert ran_off[0] > 25 and ran_off[1] == 0  # 12 is 0.27 of 45, the standard deviation of a lead


def test_masks_mark_rows_without_a_key():
    view = live.masks(n=5)
    view.sliders["mask"].value, view.sliders["length"].value = "both", 2
    assert "9 of 25 pairs may attend; rows without a key: 0" in read(view)
    view.sliders["length"].value = 0
    assert "rows without a key: 5" in read(view)
    assert view.picture.value.count("no key to attend to") == 10
    assert not np.any(view.shown["not scaled"])


def test_masks_of_given_vectors():
    query, key, _ = al.examples.SENTENCE.project()
    view = live.masks(query=query, key=key, tokens=al.examples.WORDS, kinds=["none", "causal"])
    assert list(view.sliders) == ["mask"] and view.sliders["mask"].value == "none"
    np.testing.assert_allclose(view.shown["weights"], al.attention_trace(query, key, key).weights)
    view.sliders["mask"].value = "causal"
    assert "10 of 16 pairs may attend" in read(view)
    np.testing.assert_allclose(view.shown["weights"], al.attention_trace(query, key, key, is_causal=True).weights)
    padded = live.masks(query=query, key=key, kinds=["padding"])
    padded.sliders["length"].value = 1
    assert list(padded.sliders) == ["mask", "length"] and (padded.shown["weights"][:, 0] == 1).all()
    assert "Anna" in view.picture.value


def test_a_bare_reshape_mixes_tokens_where_the_swap_keeps_them_apart():
    """What the view shows is what NumPy does, at every step; each number stands once on either side."""
    words, n, h, d_k = ["Anna", "saw", "Ben", "she"], 4, 2, 3
    view = live.split_heads(words)
    right, wrong = "one axis at a time", "a bare reshape"
    x = np.repeat(np.arange(n), h * d_k).reshape(n, h * d_k)  # the token of each feature
    heads = al.split_heads(x, h)
    wanted = [
        (x, x),
        (x.reshape(n, h, d_k), x.reshape(h, n, d_k)),
        (heads, x.reshape(h, n, d_k)),
        (heads.swapaxes(0, 1), heads),
        (al.merge_heads(heads), heads.reshape(n, h * d_k)),
    ]
    for step, both in enumerate(wanted):
        view.sliders["step"].value = step
        for way, tokens in zip((right, wrong), both, strict=True):
            assert (view.shown[way] == tokens).all() and str(tokens.shape) in read(view)
        for side in parsed(view.picture.value):
            numbers = [text.text for text in side.findall("text")[2:]]
            assert numbers == [f"{token}{feature}" for token in range(n) for feature in range(h * d_k)]
            places = {(rect.get("x"), rect.get("y")) for rect in side.findall("rect")}
            assert len(places) == len(numbers)
    view.sliders["step"].value = 2
    assert "rows of head 1: Anna, saw, Ben, she" in read(view)
    assert "rows of head 1: Anna, Anna, saw, saw" in read(view)
    view.sliders["step"].value = 4
    assert "one axis at a time: .reshape(n, d_model), first row: Anna " in read(view)
    assert "a bare reshape: heads.reshape(n, d_model), first row: Anna+saw" in read(view)


def test_one_row_tells_the_arithmetic_of_every_number():
    """Each line that it tells is true, to the digits that it shows; the divisor moves what stands below the scores."""
    view = one_row()
    for d_k in (0.25, 3, 64):
        view.sliders["d_k"].value = d_k
        trace = al.attention_trace(*al.examples.SENTENCE.project(), scale=d_k**-0.5)
        numbers = view.numbers()
        assert [n.value for n in numbers["scores"]] == [5, 0, 3, 2]
        np.testing.assert_allclose([n.value for n in numbers["weights"]], trace.weights[3], atol=1e-12)
        np.testing.assert_allclose([n.value for n in numbers["output"]], trace.output[3], atol=1e-12)
        after = al.examples.SENTENCE.x[3] + trace.output[3] @ al.examples.W_O
        np.testing.assert_allclose([n.value for n in numbers["after"]], after, atol=1e-12)
        for part, of_part in numbers.items():
            for number in of_part:
                assert number.shown in number.how and f"<title>{speech(number.how)}</title>" in view.picture.value
                if part in ("scores", "output", "weights", "exp", "scaled_scores", "query", "after"):
                    told = number.how.rpartition(" = ")[2].replace("·", "*").replace("√(1/4)", "0.5")
                    told = re.sub(r"√(\d+)", r"(\1**0.5)", told)
                    told = re.sub(r"\b[a-z]+ (?=\d)", "", told)  # names of features
                    assert eval(told, {"exp": np.exp}) == pytest.approx(number.value, rel=2e-3, abs=1e-3), number.how
    assert [n.shown for n in numbers["after"]] == ["0", "0", "1", "0.178", "1", "0.147"]
    assert max(n.shown for n in numbers["weights"]) == "0.333"  # these two stand in lesson by_hand
    view.sliders["d_k"].value = 0.25
    assert view.numbers()["weights"][0].shown == "0.980"


def test_one_row_is_filled_stage_by_stage_and_says_nothing_before():
    view = one_row(stage=1)
    for stage in range(1, 7):
        view.sliders["stage"].value = stage
        for root in parsed(view.picture.value):
            shown = {
                kind: {int(g.get(kind)) for g in root.iter("g") if g.get(kind) and g.get("visibility") != "hidden"}
                for kind in ("data-stage", "data-waits")
            }
            assert shown == {"data-stage": {*range(stage + 1)}, "data-waits": {*range(stage + 1, 7)}}
        words = {root.find("desc").text for root in parsed(view.picture.value)}
        assert ("0.646" in str(words)) == (stage > 3) and ("who now: 0.885" in str(words)) == (stage > 5)
    figure, _ = view._still()  # of the stage at which it began
    drawn = [text.get_text() for text in figure.axes[0].texts]
    assert "?" in drawn and "0.646" not in drawn and "5" not in drawn
    parts = [*view.numbers()]
    mouse = {"what": "click", "count": 1, "row": "part", "i": parts.index("weights"), "column": "place", "j": 0}
    view.mouse.value = json.dumps(mouse)
    assert view.readout.value == "weight of Anna: 0.646 = 17.93 / (17.93 + 1 + 5.652 + 3.173)"


def test_a_value_of_zeros_has_a_hollow_ribbon_and_all_together_are_as_wide_as_the_mixture():
    (root, _) = parsed(one_row().picture.value)
    ribbons = [path for path in root.iter("path") if "C" in path.get("d") and path.get("d").endswith("Z")]
    assert [path.get("fill") == "none" for path in ribbons] == [False, False, False, True]  # "she" gives zeros
    feet = [[float(x) for x in re.findall(r"[\d.]+", path.get("d"))] for path in ribbons]
    wide = sum(numbers[8] - numbers[6] for numbers in feet)
    assert wide == pytest.approx(108, abs=0.3)


def test_no_ribbon_of_one_row_crosses_a_word():
    for root in parsed(one_row().picture.value):
        ribbons = [path for path in root.iter("path") if "C" in path.get("d") and path.get("d").endswith("Z")]
        for text in root.iter("text"):
            words = text.text or ""
            x, y, size = (float(text.get(name)) for name in ("x", "y", "font-size"))
            start = {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0)
            wide = svg.width(words, size)
            box = Bbox.from_bounds(x - start * wide, y - 0.7 * size, wide, 0.7 * size)
            assert not any(SHAPES["path"](ribbon).intersects_bbox(box) for ribbon in ribbons), words


SENTENCES = [
    "<script>alert(1)</script>",
    "a & b < c > d \" ' $x$ `y`",
    "\U0001f600 \U0001f984",
    "مرحبا بالعالم",
    "你好 世界",
    "word " * 200,
    "x" * 5000,
]


@pytest.mark.parametrize("text", SENTENCES)
def test_sentence_shows_any_text_as_typed(text):
    view = live.sentence(attend, "a b", layer=2, head=3)
    view.sliders["sentence"].value = text
    assert "<pre>" not in view.picture.value
    (root,) = parsed(view.picture.value)
    assert not {tag for tag in tags(root) if tag in ("script", "b")}
    tokens = text.split()
    assert view.shown["layer 2, head 3"].shape == (len(tokens), len(tokens))
    assert len(view.picture.value) < 150_000


def test_what_the_model_says_of_a_sentence_is_shown_and_the_last_map_stays():
    def picky(text):
        if not text.strip():
            raise ValueError("<b>must</b> hold words")
        return attend(text)

    view = live.sentence(picky, "one two")
    view.sliders["sentence"].value = " "
    assert "&lt;b&gt;must&lt;/b&gt; hold words" in view.picture.value and "<svg" in view.picture.value
    assert "The map still shows the last sentence." in view.picture.value and len(view.shown) == 1
    view.sliders["sentence"].value = "three"
    assert "still shows" not in view.picture.value


def test_writing_shows_the_heads_and_the_next_word_at_every_step():
    view = live.writing(next_word, WORDS, longest=6, seed=2)
    step = view.sliders["step"]
    assert step.value == 2  # a sentence has begun, and how it ends is open
    for at in range(step.max + 1):
        step.value = at
        n = view.shown["weights"].shape[1]
        assert n <= at + 1  # the start stands before the first step; a sentence may end
        drawn = [text.text for root in parsed(view.picture.value) for text in root.iter("text")]
        assert {"first", "<last>", "the next word"} <= set(drawn)


def test_writing_sets_a_sentence_as_text_and_the_next_word_in_a_frame_right_behind():
    def even(tokens):
        return np.zeros(8), {"head": np.full(len(tokens), 1 / len(tokens))}

    words = ["the", "happy", "children", "that", "fill", "mummy", "internationalisation", "."]
    view, cut = live.writing(even, words, longest=14, seed=16), 0
    for step in range(14):
        picture = view.draw(step=step)[0]
        (ax,) = figure(picture).axes
        low = max(y for _, y in (text.get_position() for text in ax.texts) if y in (44, 70))
        *line, last = (text for text in ax.texts if text.get_position()[1] == low)
        boxes = [text.get_window_extent().transformed(ax.transData.inverted()) for text in (*line, last)]
        root, narrow, heads, *_ = parsed(picture)
        box, phone = (next(r for r in one.iter("rect") if r.get("rx") and r.get("stroke")) for one in (root, narrow))
        assert float(phone.get("x")) + float(phone.get("width")) <= float(narrow.get("width")) <= 358
        left, wide = float(box.get("x")), float(box.get("width"))
        assert len(line) <= (step > 0) and left < boxes[-1].x0
        assert boxes[-1].x1 < left + wide < float(root.get("width"))
        assert not line or 4 < left - boxes[0].x1 < 20 + 0.02 * left  # in the widest of the usual fonts
        tag = next(text for text in ax.texts if text.get_text().startswith("keys:"))
        labels = [text for text in ax.texts if text.get_rotation() and text.get_text() in (*words, "<s>", "internati…")]
        under = [text.get_window_extent().transformed(ax.transData.inverted()).y0 for text in labels]  # y points down
        assert len(labels) == step + 1 and max(under) < tag.get_position()[1] - 12
        cells = [float(one.get("width")) for one in heads.iter("rect") if one.get("class") == "attnlib-target"]
        assert tag.get_position()[0] == 70 + min(cells[0], 8 * 35) / 2  # below the first 8 keys
        cut += any(text.text.startswith("… ") for text in narrow.iter("text"))
    assert cut


def test_writing_at_temperature_0_takes_the_most_likely_and_the_same_chance_serves_everywhere():
    def steady(tokens):
        return np.array([0, 1.0, 2.0]), {"head": np.full(len(tokens), 1 / len(tokens))}

    def written(view):
        sentence, *_ = parsed(view.picture.value)
        return [word for t in sentence.iter("text") if t.get("y") == "44" for word in t.text.split()]

    view = live.writing(steady, ["<s>", "a", "b"], longest=8)
    view.sliders["step"].value = 6
    first = written(view)
    view.sliders["temperature"].value = 0
    assert written(view) == ["b"] * 7 != first
    view.sliders["temperature"].value = 1
    assert written(view) == first  # the random numbers are the same
    texts = set()
    for draw in range(1, 7):
        view.sliders["sentence"].value = draw
        texts.add(tuple(written(view)))
    assert len(texts) > 3
    later = live.writing(steady, ["<s>", "a", "b"], longest=8, seed=5)  # sentence 1 is that of the seed
    later.sliders["step"].value = 6
    assert later.sliders["sentence"].value == 1 and written(later) == written(view)


def test_a_phone_has_a_second_line_for_a_long_sentence_and_a_page_the_temperatures_of_the_text():
    words = ["the", "children", "farmers", "."]
    view = live.writing(
        lambda tokens: (np.array([2.0, 3, 1, -9]), {"head": np.full(len(tokens), 1 / len(tokens))}), words
    )
    view.sliders["step"].value, view.sliders["temperature"].value = 7, 0
    _, narrow, *_ = parsed(view.picture.value)
    told = [(text.get("y"), text.text) for text in narrow.iter("text")][1:]
    assert told == [
        ("44", "children children children children"),
        ("70", "children children children"),
        ("70", "children"),
    ]
    temperature = next(
        knob for knob in frames.unpack_stops(frames.pack_stops(view))["knobs"] if knob["key"] == "temperature"
    )
    assert {"0", "1", "2"} <= set(temperature["labels"])


@pytest.mark.parametrize("text", [{}, {"word": "a", "siez": 2}, {"word": 3}, {"times": "a"}])
def test_compare_wants_one_text(text):
    with pytest.raises(TypeError, match=r"one text under a name of your own, got .*Fix: compare\(shown, word='abc'\)"):
        live.compare(compared, **text)


def test_compare_follows_the_text_and_the_factor_and_says_what_is_no_convoy():
    view = live.compare(compared, convoy="*AB")
    soft = view.shown["yours"].max()
    view.sliders["times"].value = 10
    assert view.shown["yours"].max() > soft and "Anything goes in row 0." in view.picture.value
    view.sliders["convoy"].value = "*ABCD"
    assert view.shown["wanted"].shape == (5, 5) and "<b>5 ships</b>" in view.picture.value
    view.choose(query=4, key=0)
    assert "query 4 “D”, key 0 “*”" in strip(view.readout.value)
    view.sliders["convoy"].value = "*A"  # the query that was chosen is gone
    assert view.shown["wanted"].shape == (2, 2) and "<pre>" not in view.picture.value
    view.sliders["convoy"].value = "<b>"
    assert view.shown == {} and "&lt;b&gt; is no convoy." in view.picture.value


def test_rotations_keep_every_angle_while_the_position_moves_and_change_them_with_the_distance():
    view, told = live.rotations(), {}
    omega = 10_000.0 ** (-np.arange(4) / 4)
    for position, distance in ((0, 2), (40, 2), (3, 0), (3, 1)):
        view.sliders["position"].value, view.sliders["distance"].value = position, distance
        halves = parsed(view.picture.value)
        angles = [float(found) for found in re.findall(r"(-?[\d.]+)° between", read(view))]
        told[position, distance] = angles
        assert np.allclose(angles, np.degrees(distance * omega), atol=0.051)  # at most 115 degrees here
        for name, at in (("query", position + distance), ("key", position)):
            pairs = view.shown[name].reshape(2, 4)
            assert np.allclose(pairs, [np.cos(at * omega), np.sin(at * omega)])
            assert f"{name} at {at}" in read(view)
        # The tips of the drawn arrows, the key's first, point where the numbers do.
        tips = [polygon.get("points").split()[0].split(",") for half in halves for polygon in half.iter("polygon")]
        x, y = np.array(tips, dtype=float).reshape(4, 2, 2).transpose(2, 1, 0)  # (2 arrows, 4 pairs) each
        drawn = np.arctan2(66 - y, x - 56)
        for row, at in ((0, position), (1, position + distance)):
            assert np.allclose(np.exp(1j * drawn[row]), np.exp(1j * at * omega), atol=0.01)
        assert f"{np.cos(distance * omega).sum():.4f}" in read(view)
    assert told[0, 2] == told[40, 2] != told[3, 1] and told[3, 0] == [0, 0, 0, 0]


def keys_and_weights(bits, axis, mean, row):
    """The keys of the map and the weights, computed apart from the view."""
    keys = KEYS.astype(float)
    shared = keys.mean(0).astype(np.float16) if mean else np.zeros(16)
    kept = keys - shared
    if bits < 32:
        kept = rounded(kept, bits, axis, np.float16)
    used = kept + (shared if mean == 1 else 0)
    return kept, al.attention_trace(QUERIES, used, used, is_causal=True).weights[row]


def test_keys_map_shows_what_is_kept_and_whom_a_query_then_looks_at():
    view = live.keys_map(KEYS, QUERIES, tokens=TEXT, row=7)
    whole = keys_and_weights(32, -1, 0, 7)[1]
    for bits in (32, 8, 3):
        for axis in (-1, -2):
            for mean in (0, 1, 2):
                view._held = True
                view.sliders["bits"].value, view.sliders["axis"].value = bits, axis
                view._held, view.sliders["mean"].value = False, (mean + 1) % 3
                view.sliders["mean"].value = mean
                kept, weights = keys_and_weights(bits, axis, mean, 7)
                assert np.allclose(view.shown["keys"], kept, atol=1e-12)
                assert np.allclose(view.shown["weights"][0], weights[:8], atol=1e-12) and weights[8:].max() == 0
                told = float(re.search(r"Largest change of a weight: ([\d.]+\d)", read(view))[1])
                assert told == pytest.approx(np.abs(weights - whole).max(), abs=6e-5)
                if bits == 32:  # softmax cannot see what all keys share
                    assert told == 0 and "on “" not in read(view)
                scales = 0 if bits == 32 else 4 if axis == -1 else 4 * 16 / 12
                kept = 16 * min(bits, 16) / 8 + scales + (2 * 16 / 12 if mean == 1 else 0)
                assert f"{kept:.0f} bytes a token (whole: 32)" in read(view)


def test_keys_map_asks_from_the_row_that_is_clicked_and_tells_the_number_under_the_mouse():
    view = live.keys_map(KEYS, QUERIES, tokens=TEXT)
    assert view.picked == {"query": 11}
    view.mouse.value = json.dumps({"what": "click", "row": "query", "i": 4, "column": "feature", "j": 3, "count": 1})
    assert view.shown["weights"].shape == (1, 5) and "Query “&lt;i&gt;”" in view.picture.value
    view.mouse.value = json.dumps({"what": "over", "i": 4, "column": "feature", "j": 1, "shown": "keys", "count": 2})
    assert strip(view.readout.value) == f"key 4 “&lt;i&gt;”, feature 1: {KEYS[4, 1]:.4f}"
    view.sliders["bits"].value = 2
    for root in parsed(view.picture.value):
        (bars,) = (path.get("d") for path in root.iter("path") if path.get("class") == "attnlib-moves")
        long = [float(wide) for wide in re.findall(r"h([\d.]+)v", bars)]
        assert len(long) == 12 and not any(long[5:])
        assert np.allclose(np.array(long[:5]) / sum(long), view.shown["weights"][0], atol=0.01)
        faded = [g.find("text").text for g in root.iter("g") if g.get("opacity") == "0.6"]
        assert faded == [svg.visible(token) for token in TEXT[5:]]


def test_names_beside_a_long_map_of_keys_keep_apart_and_tell_who_looks():
    for root in parsed(live.keys_map(np.eye(32), np.eye(32), row=27).picture.value):
        names = [text for text in root.iter("text") if (text.text or "").isdigit()]
        assert np.diff([float(text.get("y")) for text in names]).min() >= 15 and "27" in [text.text for text in names]


def test_what_all_keys_share_is_drawn_where_it_is_kept_apart_alone_in_a_still_too():
    for mean, strips in ((0, 0), (1, 1), (2, 0)):
        view = live.keys_map(KEYS, QUERIES)
        picture = view.draw(mean=mean)[0]
        assert len(figure(picture).axes[0].images) == 1 + strips  # the map, and what all keys share
        for root in parsed(picture):
            words = [text.text for text in root.iter("text")]
            assert ("shared" in words, "gone" in words) == (mean == 1, mean == 2)


def test_a_map_of_keys_is_orange_above_zero_slate_below_and_clear_at_zero():
    drawn = svg.signed_map(np.array([[2.0, 0.5, 0.0, -0.5, -2.0]]), 1, 1, 2.0)
    png = base64.b64decode(re.search(r"base64,([^\"]+)", drawn)[1])
    (pixels,) = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    assert [tuple(p[:3]) for p in pixels[[0, 1, 3, 4]].tolist()] == [rgb(KEY)] * 2 + [rgb(BELOW)] * 2
    assert pixels[0, 3] == pixels[4, 3] == 255 > pixels[1, 3] == pixels[3, 3] > 60 > pixels[2, 3] == 0


def test_price_draws_each_point_at_its_bytes_and_loss_and_tells_the_chosen_one():
    given, view = ways(), live.price(ways())
    (across, down) = (_points(root) for root in parsed(view.picture.value))
    for at in (across, down):
        x, y = np.array([at[k] for k in range(len(given))]).T
        logs, losses = np.log([way["bytes"] for way in given]), np.array([way["loss"] for way in given])
        assert np.allclose(np.polyval(np.polyfit(logs, x, 1), logs), x, atol=0.2)
        assert (np.argsort(-y, kind="stable") == np.argsort(losses, kind="stable")).all()
    for k, way in enumerate(given):
        view.choose(point=k)
        assert f"loss {way['loss']:.3f}, {way['bytes']} bytes a token" in read(view)
        assert html.escape(f"{way['family']}: {way['name']}", quote=False) in read(view)
        (x, y), (circle,) = across[k], (c for c in parsed(view.picture.value)[0].iter("circle") if c.get("class"))
        assert (float(circle.get("cx")), float(circle.get("cy"))) == pytest.approx((x, y), abs=0.1)
        for root in parsed(view.picture.value):  # its ring crosses no word
            (ring,) = (c for c in root.iter("circle") if c.get("class"))
            x, y = float(ring.get("cx")), float(ring.get("cy"))
            for text in root.iter("text"):
                size = float(text.get("font-size"))
                wide = svg.width(text.text, size)
                at = float(text.get("x")) - {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0) * wide
                beside = x + 13 < at or x - 13 > at + wide
                assert beside or not y - 13 - 0.2 * size < float(text.get("y")) < y + 13 + 0.75 * size, text.text
    assert "&lt;my&gt; way, yours: loss" in read(view) and "5 of 5 words the same" in read(view)
    view.choose(point=1)
    assert "3 of 5 words the same" in read(view)


def test_the_band_joins_those_that_nothing_beats():
    given = ways()
    (root, _) = parsed(live.price(given).picture.value)
    at, (band,) = _points(root), (p for p in root.iter("polyline") if p.get("stroke-width") == "11")
    beaten = {
        k
        for k, way in enumerate(given)
        if any(o is not way and o["bytes"] <= way["bytes"] and o["loss"] <= way["loss"] for o in given)
    }
    joined = [tuple(map(float, point.split(","))) for point in band.get("points").split()]
    assert sorted(joined) == sorted(at[k] for k in range(len(given)) if k not in beaten) and len(joined) > 2


def test_the_other_judge_of_a_price_moves_points_and_band_and_is_there_only_if_all_points_have_it():
    given, view = ways(), live.price(ways())
    view.choose(point=3)
    before = _points(parsed(view.picture.value)[0])
    assert f"found again: loss {given[3]['again']:.2f}, 25% of the codes" in read(view)
    view.sliders["judge"].value = "again"
    (root, _) = parsed(view.picture.value)
    at, (band,) = _points(root), (p for p in root.iter("polyline") if p.get("stroke-width") == "11")
    assert [at[k][0] for k in at] == [before[k][0] for k in before] and at != before
    order = np.argsort([-at[k][1] for k in range(len(given))], kind="stable")
    assert order.tolist() == np.argsort([way["again"] for way in given], kind="stable").tolist()
    best = min(range(len(given)), key=lambda k: (given[k]["again"], given[k]["bytes"]))
    assert at[best] in [tuple(map(float, point.split(","))) for point in band.get("points").split()]
    assert "second copy: lower is better" in read(view) and view.shown["again"].tolist() == [w["again"] for w in given]
    for part in ("again", "codes"):
        less = [{name: value for name, value in way.items() if name != part} for way in given]
        assert ("judge" in live.price(less).sliders) == (part == "codes")


def test_the_bold_line_of_a_price_has_the_bold_name():
    points = smollm.recorded("less_to_keep")
    view, families = live.price(points), {point["family"] for point in points}
    for k in (0, 9):
        view.choose(point=k)
        for root in parsed(view.picture.value):
            named = [(text.text, bool(text.get("font-weight"))) for text in root.iter("text") if text.text in families]
            assert sorted(named) == sorted((family, family == points[k]["family"]) for family in families)


def test_a_point_of_a_price_is_clicked_between_its_neighbours_and_told_when_a_key_chooses_it():
    near = [{**ways()[0], "bytes": 100 + 10 * k, "loss": 3 + k / 50} for k in range(9)]
    for root in parsed(live.price(near).picture.value):
        squares = [
            [float(rect.get(name)) for name in ("x", "y", "width", "height")]
            for rect in root.iter("rect")
            if rect.get("data-row") == "point"
        ]
        for k, (x, y, wide, high) in enumerate(squares):
            assert all(abs(x - a) >= 5 or abs(y - b) >= 5 for a, b, *_ in squares[:k]) and 5 <= wide == high <= 24
            assert all(
                x + wide <= a + 0.2 or a + c <= x + 0.2 or y + high <= b + 0.2 or b + d <= y + 0.2
                for a, b, c, d in squares[:k]
            )
    view = live.price(ways())
    view.mouse.value = json.dumps({"what": "key", "row": "point", "i": 9, "column": "", "j": 0, "count": 1})
    assert view.sliders["point"].value == 9 and view.readout.value == "&lt;my&gt; way, mine"
    long = [{**ways()[0], "family": name, "name": "4 bits"} for name in ("keys per feature, groups", "others")]
    view = live.price(long)
    assert view.sliders["point"].options[0][0] == "4 bits, keys per feature, groups" and "…" not in view.picture.value


def _points(root):
    """Return the middle of each point's square, by its number."""
    return {
        int(rect.get("data-first")): (
            round(float(rect.get("x")) + float(rect.get("width")) / 2, 1),
            round(float(rect.get("y")) + float(rect.get("height")) / 2, 1),
        )
        for rect in root.iter("rect")
        if rect.get("data-row") == "point"
    }


def test_the_axis_of_scores_has_numbers_for_every_range_that_is_allowed():
    for high in (2, 64, 65536):
        assert live.scores(d_k=(1, high)).picture.value.count(">0<") >= 2  # the middle of both axes


def arrows(root):
    """Return of each chain in a picture its corners, drawn: where each arrow begins, and where the last one ends."""
    lines = [p for p in root.iter("path") if p.get("class") == "attnlib-moves"]
    numbers = [np.array(re.findall(r"-?[\d.]+", p.get("d"))).astype(float).reshape(-1, 2) for p in lines]
    starts, tips = [x[0] for x in numbers[::2]], [x[0] for x in numbers[1::2]]
    h = len(starts) // 2
    return [np.array([*starts[k : k + h], tips[k + h - 1]]) for k in (0, h)], np.array(tips)


def test_head_arrows_stand_tip_to_tail_and_end_at_the_sum():
    view = VIEWS["head_arrows"]()
    shown = [*view.shown.values()]
    assert shown[0].tolist() == [[9, 6], [21, 10], [21, -12]] and shown[1].tolist() == [[7, 5], [11, 17], [-17, 14]]
    for root in parsed(view.picture.value):
        chains, tips = arrows(root)
        assert np.abs(tips.reshape(2, -1, 2)[:, 0] - [x[1] for x in chains]).max() < 0.11
        pixels, numbers = (np.concatenate(x) - x[0][0] for x in (chains, shown))
        unit = pixels[2, 1] / -numbers[2, 1]
        assert np.abs(pixels - unit * numbers * (1, -1)).max() < 0.3  # one scale, up is up


@pytest.mark.parametrize("off", ["this head", "all heads"])
def test_a_head_that_is_off_adds_nothing_and_the_rest_starts_where_it_started(off):
    view = VIEWS["head_arrows"]()
    view.sliders["head"].value = 1
    view.sliders["off"].value = dict(view.sliders["off"].options)[off]
    kept = [[12, 4], [4, 12]] if off == "this head" else [[0, 0], [0, 0]]
    for one, x, added in zip(two_sentences(), view.shown.values(), kept, strict=True):
        assert (x[-1] - one["before"]).tolist() == added
    said = read(view)
    assert said.count("and adds nothing: it is off") >= 4 and ("0.50" if off == "this head" else "0.30") in said
    for root in parsed(view.picture.value):
        assert sum(text.text == "2" for text in root.iter("text")) == 0  # no number without an arrow


def test_a_head_is_held_back_until_a_guess():
    view = live.head_arrows(two_sentences(), ("a", "<b>"), asks=ASKS, asked=2)
    hidden = {name for name, control in view.sliders.items() if control.layout.display == "none"}
    assert hidden == {"head", "off"} and "head 1 looks at" in read(view)
    for words in ("22.0", "28.0", "head 2 looks", "0.40", "the model says", ASKS[2]):
        assert words not in read(view)
    assert [x[-1].tolist() for x in view.shown.values()] == [[21, 10], [11, 17]]
    view.sliders["guess"].value = 2
    hidden = {name for name, control in view.sliders.items() if control.layout.display == "none"}
    assert hidden == {"guess"} and [x[-1].tolist() for x in view.shown.values()] == [[21, -12], [-17, 14]]
    for words in ("You said: not &lt;b&gt;.", "It says: not b.", "-22.0", "-28.0", "head 2 looks at b: 0.70"):
        assert words in read(view)
    view.sliders["head"].value = 0
    assert "head 1 looks at" in read(view) and "head 2 looks" not in read(view)


def test_no_label_of_head_arrows_lies_over_an_arrow_or_another_label():
    view = live.head_arrows(**{**smollm.nine_heads(), "asks": None})
    for head, off in ((0, 0), (3, 0), (3, 1), (6, 0), (0, 2)):
        view.sliders["head"].value, view.sliders["off"].value = head, off
        for root in parsed(view.picture.value):
            named = [t for t in root.iter("text") if "next-text" in t.get("style", "")]
            words = [t.text for t in root.iter("text")]
            assert words[words.index("When") + 1] == "John"  # of "Mary gave": its card stands at the left, as its path
            sizes = [(float(t.get("x")), float(t.get("y")), svg.width(t.text)) for t in named]
            boxes = [Bbox.from_bounds(x - wide / 2, y - 13, wide, 17) for x, y, wide in sizes]
            assert len(boxes) == 2 and not boxes[0].overlaps(boxes[1])
            for disc in (c for c in root.iter("circle") if c.get("r") in ("8", "10")):
                x, y, r = (float(disc.get(name)) for name in ("cx", "cy", "r"))
                around = [Bbox.from_bounds(box.x0, box.y0, box.width, box.height + 16) for box in boxes]  # two lines
                gaps = [np.hypot(x - np.clip(x, b.x0, b.x1), y - np.clip(y, b.y0, b.y1)) for b in around]
                assert min(gaps) >= r - 1, (head, off)
            lines = [p for p in root.iter("path") if p.get("class") == "attnlib-moves"]
            for path in lines:
                assert not any(SHAPES["path"](path).intersects_bbox(box) for box in boxes), (head, off)
