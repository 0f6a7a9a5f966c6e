"""The views of a whole call, of the plane and of the scores: what they tell, and where what they draw stands."""

import dataclasses
import re
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from matplotlib import pyplot as plt
from test_live import SVG_BOX, mouse
from test_svg import across, parsed, too_wide
from views import read, strip

import attnlib as al
import attnlib.examples
import attnlib.steps
from attnlib import colours, live, svg
from attnlib.examples import TWO_HEADS, WORDS
from attnlib.live import plane_view


@pytest.mark.parametrize("scale", [None, 0.25])
def test_flow_writes_the_arithmetic_out(scale):
    query, key, value = al.examples.KARIM.project()
    trace = al.attention_trace(query, key, value, scale=scale)
    view = live.flow(trace, queries=["1", "2", "3"])
    view.sliders["query"].value, view.sliders["key"].value, view.sliders["feature"].value = 1, 2, 1
    told = parsed(view.picture.value)[0].find("desc").text
    assert "Query 2, key 3: q·k = 2·2 + 2·3 + 2·1 = 12" in told
    assert ("÷ √3: 6.928" if scale is None else "\u00d7 0.25: 3") in told
    shares = np.exp(trace.masked_scores[1])
    assert f"exp({trace.masked_scores[1, 2]:.4g}) = {shares[2]:.4g}, sum over the keys {shares.sum():.4g}" in told
    assert f"{shares[2]:.4g}/{shares.sum():.4g} = {trace.weights[1, 2]:.4f}" in told
    assert f"feature 1 of the output {trace.output[1, 1]:.4g}." in told


def table_of(view):
    """Return the rows of the table below the matrices: {name: numbers as text}, and the sums."""
    picture = parsed(across(view.picture.value))[-1]
    texts = [(float(t.get("y")), "".join(t.itertext())) for t in list(picture)[-1].findall("text")]
    cells = {
        float(re.findall(r"[\d.]+", g.get("transform"))[1]): [t.text for t in g.iter("text")]
        for g in list(picture)[-1].findall("g")
        if g.get("transform")
    }
    return {y: ([words for at, words in texts if at == y + 14], row) for y, row in cells.items()}


def test_flow_has_a_table_of_the_steps_for_all_keys():
    trace = al.attention_trace(*al.examples.ASYMMETRIC.project())
    view = live.flow(trace, query=2)
    shares = np.exp(trace.scaled_scores[2])
    for c in range(5):
        view.sliders["feature"].value = c
        rows = list(table_of(view).values())
        steps = (
            trace.scores[2],
            trace.scaled_scores[2],
            shares,
            trace.weights[2],
            trace.weights[2] * trace.value[:, c],
        )
        assert [row for _, row in rows] == [[f"{v + 0.0:.4f}" for v in step] for step in steps]
        assert [names[1:] for names, _ in rows] == [
            [],
            [],
            [f"{shares.sum():.5g}"],
            ["1"],
            [f"{trace.output[2, c]:.5g}"],
        ]


def test_flow_stands_so_that_row_and_column_meet_in_what_they_make():
    trace = al.attention_trace(*al.examples.ASYMMETRIC.project(), is_causal=True)
    view = live.flow(trace, x=al.examples.ASYMMETRIC.x)
    assert list(view.shown) == ["scores", "scaled_scores", "masked_scores", "weights"]
    at = svg.flow.layout(al.steps.maps(trace), list("0123"), list("0123"), 3, 2, 5).places
    assert (at["key"].x, at["key"].wide) == (at["scores"].x, at["scores"].wide)
    assert (at["value"].x, at["value"].wide) == (at["output"].x, at["output"].wide)
    rows = {(p.y, p.high) for name, p in at.items() if name not in ("key", "value")}
    assert len(rows) == 1 and {at["key"].bottom, at["value"].bottom} == {at["scores"].y - svg.flow.NEAR}
    order = [at[name] for name in ("x", "query", *view.shown, "output")]
    assert all(a.right < b.x for a, b in pairwise(order))


@pytest.mark.parametrize("n", [1, 4, 5, 6, 9, 12])
def test_the_table_of_a_phone_has_each_key_and_each_sum_once(n):
    trace, words = al.attention_trace(*np.random.default_rng(n).normal(size=(3, n, 4))), list("abcdefghijkl")[:n]
    wide, phone = parsed(live.flow(trace, queries=words).picture.value)[-2:]
    keys, sums = ([t.text for t in one.iter("text") if t.text in words] for one in (wide, phone)), "sum"
    assert len({tuple(one) for one in keys}) == 1
    for one in (wide, phone):
        assert sum((t.text or "").startswith(sums) for t in one.iter("text")) == 1
        assert sum(t.get("font-weight") == "600" and t.text == "1" for t in one.iter("text")) == 1


@pytest.mark.parametrize("n", [1, 3, 8, 16, 17, 32, 64])
@pytest.mark.parametrize("d", [1, 8, 64])
def test_flow_of_any_size_fits(n, d):
    """It takes one line of 852 pixels, the table below it 592, and a phone has no part that is wider."""
    r = np.random.default_rng(n)
    view = live.flow(al.attention_trace(*r.normal(size=(3, n, d)), is_causal=True), x=r.normal(size=(n, d)))
    *parts, table, phone = (tuple(map(int, size)) for size in SVG_BOX.findall(view.picture.value))
    assert len(parts) == (1 if n == 64 else 4)  # 64 tokens, six matrices and a mask stand as one
    assert n == 64 or max(wide for wide, _ in parts) <= 358
    assert n == 64 or (sum(wide for wide, _ in parts) <= 852 and table[0] <= 592)
    assert phone[0] <= 358
    assert parts[0][0] <= 1220 and max(high for _, high in parts) + table[1] <= 510, (parts, table)
    assert too_wide(view.picture.value) == []


def test_flow_stands_beside_its_other_parts_as_if_it_were_one():
    view = live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project()), x=al.examples.ASYMMETRIC.x)
    *parts, table = parsed(across(view.picture.value))
    sizes = [tuple(map(int, picture.get("viewBox").split()[2:])) for picture in parts]
    corners = [tuple(map(int, picture.get("data-at").split())) for picture in parts]
    ends = [(x + wide, y + high) for (x, y), (wide, high) in zip(corners, sizes, strict=True)]
    assert [x for x, _ in corners] == [0, *(x for x, _ in ends[:-1])] and len({y for _, y in ends}) == 1
    assert table.get("data-at") == f"0 {ends[0][1]}"
    beams = [
        next(r for r in part.iter("rect") if r.get("opacity") and r.get("fill") == colours.QUERY) for part in parts
    ]
    assert len({(beam.get("y"), beam.get("height")) for beam in beams}) == 1
    spans = [(float(beam.get("x")), float(beam.get("x")) + float(beam.get("width"))) for beam in beams]
    assert all(a[1] == b[0] for a, b in pairwise(spans)) and [a for a, _ in spans[1:]] == [x for x, _ in corners[1:]]
    shapes = {"".join(t.itertext()) for part in parts for t in part.iter("text")}
    assert {"scores", "scaled scores", "weights", "output", "values"} <= shapes


def test_the_captions_of_keys_and_values_stand_right_above_them():
    """One query, 14 keys of 64 features: V is three times as high as K^T."""
    r = np.random.default_rng(0)
    call = al.attention_trace(r.normal(size=(1, 64)), r.normal(size=(14, 64)), r.normal(size=(14, 2)))
    parts = parsed(live.flow(call).picture.value)[:-1]
    captions = {t.text: float(t.get("y")) for part in parts for t in part.iter("text")}
    targets = [r for part in parts for r in part.iter("rect") if r.get("data-rows")]
    tops = {(r.get("data-row"), r.get("data-column")): float(r.get("y")) for r in targets}
    assert captions["keys"] == tops["", "key"] - 29 and captions["values"] == tops["key", "feature"] - 9


def test_flow_of_many_queries_and_few_keys_fits():
    r = np.random.default_rng(0)
    view = live.flow(al.attention_trace(r.normal(size=(64, 4)), r.normal(size=(4, 4)), r.normal(size=(4, 4))))
    first, *_, table = (int(high) for _, high in SVG_BOX.findall(view.picture.value))
    assert first + table <= 510


def test_flow_with_a_slider_for_d_k_changes_the_queries_and_keys_alone():
    query, key, value = np.random.default_rng(0).normal(size=(3, 4, 8))
    view = live.flow(lambda d: al.attention_trace(query[:, :d], key[:, :d], value), d_k=[1, 2, 8])
    assert view.main == "d_k" and view.sliders["d_k"].value == 8
    for d_k in (1, 2):
        view.sliders["d_k"].value = d_k
        told = read(view)
        shapes = [shape.split() for shape in re.findall(rf"\d+ {svg.TIMES} \d+", told)]
        sizes = [(int(rows), int(columns)) for rows, _, columns in shapes]
        assert sorted(set(sizes) - {(4, 4)}) == sorted({(4, d_k), (d_k, 4), (4, 8)})
        expected = al.attention_trace(query[:, :d_k], key[:, :d_k], value).weights
        assert np.array_equal(view.shown["weights"], expected)


def longer(monkeypatch, ahead_of):
    """Return a trace with a step more, ahead of another one: it halves what that would have taken."""
    fields = dataclasses.make_dataclass("Longer", [("halved", object, None)], bases=(al.AttentionTrace,), frozen=True)
    at = [step.name for step in al.steps.STEPS].index(ahead_of)
    before, (taker, *rest) = al.steps.STEPS[:at], al.steps.STEPS[at:]
    halved = al.steps.Step("halved", "n_q, n_k", "half of it", "÷ 2", taker.takes[:1], lambda x: x / 2)
    changed = taker._replace(takes=("halved", *taker.takes[1:]))
    monkeypatch.setattr(al.steps, "STEPS", (*before, halved, changed, *rest))
    monkeypatch.setattr(al.core, "AttentionTrace", type("Longer", (fields,), {"__repr__": al.AttentionTrace.__repr__}))
    return al.attention_trace(*al.examples.ASYMMETRIC.project(), is_causal=True)


@pytest.mark.parametrize("ahead_of", ["masked_scores", "weights", "output"])
def test_a_step_that_is_added_is_kept_listed_drawn_and_told(monkeypatch, ahead_of):
    """In the order of the trace: on the arrows, in the table below, in the words for screen readers."""
    trace = longer(monkeypatch, ahead_of)
    symbols = al.steps.maps(trace)
    names = list(symbols)
    assert [name for name, *_ in trace.steps()] == [step.name for step in al.steps.STEPS]
    assert "halved         (n_q, n_k)  (4, 4)  half of it" in repr(trace)
    view = live.flow(trace, query=2, key=1)
    assert list(view.shown) == names and np.array_equal(view.shown["halved"], trace.halved)
    place = svg.flow.layout(symbols, list("0123"), list("0123"), 0, 2, 5)
    assert sorted(names, key=lambda name: place.places[name].x) == names
    assert [words for words, *_ in place.arrows] == list(symbols.values())[1:]
    rows = [(words[0], row) for words, row in table_of(view).values() if not words[0].startswith(("exp", "weight"))]
    for (words, row), (name, symbol) in zip(rows, symbols.items(), strict=True):
        assert words.replace("·", ".") == ("÷ sum = weight" if name == "weights" else symbol)
        assert row == [f"{v:.4f}" for v in getattr(trace, name)[2, : len(row)]]
        hatched = names.index(name) >= names.index("masked_scores")
        assert len(row) == 4 - hatched  # the last key
    told = parsed(view.picture.value)[0].find("desc").text.split("; ")
    before = getattr(trace, names[names.index("weights") - 1])[2]
    begins = symbols | {"scores": "Query 2", "masked_scores": "may attend"}
    begins["weights"] = f"exp({before[1]:.4g}) = {np.exp(before[1]):.4g}, sum over the keys {np.exp(before).sum():.4g}"
    begins["halved"] += f": {trace.halved[2, 1]:.4g}"
    places = [next(k for k, words in enumerate(told) if words.startswith(begins[name])) for name in names]
    assert places == sorted(places)


def test_flow_takes_no_more_tokens_than_have_room():
    with pytest.raises(al.ShapeError, match="up to 64 tokens, got 65"):
        live.flow(al.attention_trace(*np.zeros((3, 65, 2))))


def test_flow_writes_large_scores_relative_to_the_largest():
    view = live.flow(al.attention_trace(*(1000 * x for x in al.examples.KARIM.project())))
    assert "<pre>" not in view.picture.value
    assert "exp(" in read(view) and "inf" not in read(view)


def test_flow_marks_blocked_cells():
    trace = al.attention_trace(*al.examples.KARIM.project(), is_causal=True)
    view = live.flow(trace)
    for step, shown in view.shown.items():
        assert np.array_equal(shown, getattr(trace, step))
    assert (
        across(view.picture.value).count("blocked</title>") == 6 + 4
    )  # 3 cells of two maps, 2 of two rows of the table
    view.sliders["key"].value = 2
    assert "blocked: -inf" in read(view)


def test_flow_where_every_key_is_blocked():
    view = live.flow(al.attention_trace(*al.examples.KARIM.project(), np.zeros((3, 3), dtype=bool)))
    assert "<pre>" not in view.picture.value  # a warning is an error here
    assert "blocked: -inf" in read(view) and "no key to attend to" in read(view)


def test_flow_of_a_batch_of_heads_in_torch():
    torch = pytest.importorskip("torch")
    from attnlib import torch_layers

    q, k, v = (torch.randn(2, 3, n, d, generator=torch.manual_seed(0)) for n, d in ((4, 8), (5, 8), (5, 6)))
    mask = torch.tensor(al.padding_mask([5, 2], 5))[:, None]
    trace = torch_layers.attention_trace(q, k, v, mask)
    view = live.flow(trace, x=torch.randn(2, 4, 24))  # the heads share their tokens
    assert [[words for words, _ in view.sliders[name].options] for name in ("sequence", "head")] == [
        ["0", "1"],
        ["1", "2", "3"],
    ]
    view.sliders["sequence"].value, view.sliders["head"].value = 1, 2
    assert np.allclose(view.shown["weights"], trace.weights[1, 2].numpy())
    assert "(8 terms)" in read(view)
    view.sliders["key"].value = 4
    assert "blocked" in read(view)


def test_numbers_too_wide_for_two_decimals_have_one():
    """Lesson multi_head: -1.28 left no room, and no number of the output was written."""
    x, *projections, _ = TWO_HEADS
    query, key, value = (al.split_heads(x @ W, 2)[None] for W in projections)
    view = live.flow(al.attention_trace(query, key, value), queries=WORDS, query=1, key=0)
    view.sliders["head"].value = 1  # counted from 0
    assert ">-1.3<" in view.picture.value and ">-1.28<" not in view.picture.value


def test_the_line_of_the_query_does_not_show_through_cells_without_numbers():
    """Lesson vectorized: its output has none. Beside V, which has, it was dark on a dark page."""
    example = al.examples.SENTENCE
    view = live.flow(al.attention_trace(*example.project()), x=example.x, queries=WORDS, query=3)
    maps = [g for picture in parsed(across(view.picture.value)) for g in picture.iter("g") if g.get("shape-rendering")]
    grounds = [g.findall("rect") for g in maps]
    assert len(grounds) == 13  # X, Q, K^T, three maps, V and the output, and five rows of the table
    for ground, *cells in grounds:
        assert ground.get("fill") == f"var(--sunk,{colours.SUNK})" and ground.get("opacity") is None
        for corner, size in (("x", "width"), ("y", "height")):
            assert float(ground.get(size)) == max(float(cell.get(corner)) + float(cell.get(size)) for cell in cells)


def test_flow_draws_its_matrices_once(monkeypatch):
    view, calls = live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 2, 4, 4)))), []
    matrices = svg.flow.matrices
    monkeypatch.setattr(svg.flow, "matrices", lambda *args: calls.append(1) or matrices(*args))
    view.sliders["query"].value = 2
    assert calls == []
    view.sliders["map"].value = 1
    assert calls == [1]


def test_a_click_in_flow_chooses_a_query_a_key_and_a_feature():
    view = live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project()))
    pictures = parsed(view.picture.value)
    parts = [part for picture in pictures for part in picture.iter()]
    axes = {(t.get("data-row"), t.get("data-column")) for t in parts if t.get("class") == "attnlib-target"}
    assert axes == {("query", ""), ("", "key"), ("query", "key"), ("key", "feature"), ("query", "feature")}
    mouse(view, "click", row="query", i=2, column="feature", j=4)
    mouse(view, "click", row="", i=0, column="key", j=1)
    assert [view.sliders[name].value for name in ("query", "key", "feature")] == [2, 1, 4]
    mouse(view, "over", row="query", i=1, column="key", j=3, shown="weights")
    assert f"weights: query 1, key 3: {svg.exact(view.shown['weights'][1, 3])}" in strip(view.readout.value)
    mouse(view, "over", row="query", i=1, column="key", j=3, shown="scaled_scores")
    assert "scaled scores: query 1, key 3: " in strip(view.readout.value)  # as in the picture


def test_plane_tells_what_attention_computes():
    view = live.plane(angle=90, length=2.0)
    trace = al.attention_trace(np.array([[0.0, 2.0]]), plane_view.KEYS, plane_view.VALUES)
    assert np.allclose(view.shown["weights"], trace.weights)
    x, y = trace.output[0]
    assert f"output ({x:.4f}, {y:.4f})" in read(view)


def test_a_longer_query_is_a_sharper_choice_and_its_output_stays_in_the_hull():
    view, largest = live.plane(angle=30), []
    for length in (0.0, 1.0, 2.0, 4.0):
        view.sliders["length"].value = length
        largest.append(view.shown["weights"].max())
        _, picture, _ = parsed(view.picture.value)
        hull = next(p for p in picture.iter("polygon") if p.get("opacity"))
        corners = np.array([[float(v) for v in point.split(",")] for point in hull.get("points").split()])
        output = next(c for c in picture.iter("circle") if c.get("r") == "8")
        point = np.array([float(output.get("cx")), float(output.get("cy"))])
        way = next(p for p in picture.iter("polyline")).get("points").split()
        way = np.array([[float(v) for v in place.split(",")] for place in way])
        assert np.abs(way - point).max(axis=1).min() < 0.2
        turns = np.linalg.det([[b - a, point - a] for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)])
        assert len(corners) == 3 and min(turns * np.sign(turns.sum())) > -100  # half a pixel, drawn to a tenth of one
    assert largest == sorted(largest) and largest[0] == pytest.approx(1 / 3) and largest[-1] > 0.9


def test_a_click_in_the_plane_moves_the_tip_of_the_query():
    view = live.plane()
    mouse(view, "click", row="row", i=0, column="column", j=20)  # up
    assert abs(view.sliders["angle"].value - 90) <= 2 and view.sliders["length"].value == 4
    mouse(view, "click", row="row", i=30, column="column", j=10)  # left and down
    assert 180 < view.sliders["angle"].value < 270


def test_scores_spread_with_the_root_of_d_k_and_not_when_scaled():
    view = live.scores(d_k=(4, 256))
    for d_k in (4, 64, 256):
        view.sliders["d_k"].value = d_k
        plain, scaled = (float(v) for v in re.findall(r"standard deviation ([\d.]+), largest", view.picture.value))
        assert plain == pytest.approx(d_k**0.5, rel=0.1) and scaled == pytest.approx(1, abs=0.1)


def test_scores_draw_the_softmax_of_the_points_that_they_show():
    view = live.scores()
    view.sliders["query"].value = 3

    def told(shape):
        values = (re.search(r"key (\d): (.*)", title.text).groups() for title in shape.iter("title"))
        return {int(j): float(value) for j, value in values}

    pictures = parsed(view.picture.value)  # two of points and map, below them two of bars
    for panel, below, weights in zip(pictures[:2], pictures[2:], view.shown.values(), strict=True):
        (points, _), bars = map(told, panel.find("g").findall("g")), told(below.find("g"))
        row = np.array([points[j] for j in range(8)])
        assert np.allclose([bars[j] for j in range(8)], weights[3], atol=1e-4)
        assert np.allclose(al.softmax(row), weights[3], atol=1e-3)


def test_the_still_of_a_view_is_what_it_draws():
    from attnlib.live import still

    view = live.flow(al.attention_trace(*al.examples.KARIM.project()), queries=["$x$", "<b>", "cat"])
    pictures = parsed(across(view.picture.value))
    for parent in [parent for picture in pictures for parent in picture.iter()]:
        for hidden in [child for child in parent if child.get("visibility") == "hidden"]:
            parent.remove(hidden)
    drawn = still.figure(view.picture.value)
    (ax,) = drawn.axes
    words = [t.get_text() for t in ax.texts if not t.get_parse_math()]
    assert words == [t.text or "" for picture in pictures for t in picture.iter("text") if len(t) == 0]
    assert "$K^{T}$" in "".join(t.get_text() for t in ax.texts).replace(" ", "").replace("3\u00d73", "")
    shapes = [
        s
        for picture in pictures
        for s in picture.iter()
        if s.tag in still.SHAPES and s.get("class") != "attnlib-target"
    ]
    assert len(ax.patches) == len(shapes)
    plt.close(drawn)


def test_no_label_touches_that_of_the_chosen_row():
    trace = al.attention_trace(*np.random.default_rng(0).normal(size=(3, 11, 32)))
    view = live.flow(trace, queries=list("abcdefghijk"))
    shown = set()
    for i in range(11):
        view.sliders["query"].value = i
        drawn = parsed(view.picture.value)[0]
        marked = f"fill:{svg.paint('query-text')}"
        chosen = [(float(t.get("x")), float(t.get("y"))) for t in drawn.iter("text") if t.get("style") == marked]
        left, line = min(chosen)
        beside = [g[0] for g in drawn.iter("g") if len(g) == 1 and not g.get("visibility")]
        labels = {t.text: float(t.get("y")) for t in beside if t.tag == "text" and float(t.get("x")) < left + 40}
        assert not [label for label, y in labels.items() if line - 16 < y < line + 14], i
        shown |= set(labels)
    assert shown == set("abcdefghijk")


@pytest.mark.parametrize("length", [0.0, 1.5, 4.0])
def test_no_label_of_the_plane_lies_on_a_line(length):
    """Of any query: the line of the query, the feet of the keys, the edges of the values and the ways to the output."""
    view = live.plane(length=length)
    for angle in range(0, 360, 3):
        content, _ = view.draw(angle=angle)
        for picture in parsed(content)[:2]:
            field = next(group for group in picture if group.get("transform"))
            paths = (path.get("d") for path in field.iter("path") if path.get("stroke") != colours.LINE)
            ends = [list(map(float, re.findall(r"-?[\d.]+", d))) for d in paths]
            hull = [p.get("points").split() for p in field.iter("polygon") if p.get("opacity")]
            corners = [[tuple(map(float, point.split(","))) for point in points] for points in hull]
            ends += [(*a, *b) for points in corners for a, b in pairwise([*points, points[0]])]
            dots = np.concatenate([np.linspace(end[:2], end[2:], 400) for end in ends if len(end) == 4] or [[[-9, -9]]])
            for label in field.findall("text"):
                x, y, wide = float(label.get("x")), float(label.get("y")), svg.width(label.text)
                left = x - {"end": wide, "middle": wide / 2}.get(label.get("text-anchor"), 0)
                assert left >= 0 and left + wide <= 226 and 10 <= y <= 224, (angle, label.text)
                inside = (abs(dots - [left + wide / 2, y - 4]) < [wide / 2, 7]).all(-1)
                assert not inside.any(), (angle, label.text)


def test_flow_shows_zeros_as_zeros_names_features_and_hides_what_cannot_be_chosen():
    query, key, value = al.examples.SENTENCE.project()  # values are 2, 0, -2
    view = live.flow(al.attention_trace(query[3:], key, value), queries=["she"], features=["who", "verb"], feature=1)
    cells = [rect for root in parsed(view.picture.value) for rect in root.iter("rect") if len(rect)]
    for number, opacity in ((0, "0.00"), (2, "1.00")):
        named = [rect for rect in cells if re.fullmatch(rf"value .*: -?{number}\.0000", rect[0].text)]
        assert {rect.get("opacity") for rect in named} == {opacity}
    assert f"{svg.TIMES} verb" in read(view) and "V[:, " not in read(view)
    assert view.sliders["query"].layout.display == "none" and view.sliders["key"].layout.display is None
    assert [words for words, _ in view.sliders["feature"]._options_full] == ["who", "verb"]
    many = live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 14, 4))))
    assert "9 of 14 keys" in read(many) and "of 4 keys" not in read(view)
