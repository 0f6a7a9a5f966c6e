"""Live views: one picture per step, nothing a learner types is markup, errors are shown, and saved output is static."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib import pyplot as plt

import attnlib as al
import attnlib.examples
from attnlib import colours, live, svg
from attnlib.live import sentence_view

SVG = re.compile(r"<svg.*?</svg>", re.S)
HOSTILE = ["<script>alert(1)</script>", "a&b", '"quoted"', "$x$", "\U0001f600", "سلام", "中文", ""]


def parsed(picture):
    return [ElementTree.fromstring(text) for text in SVG.findall(picture)]


def tags(element):
    return [child.tag for child in element.iter()]


def test_scaling_grows_peaky_only_without_scaling():
    view = live.scaling(n=8, seed=3)
    slider, largest = view.sliders["d_k"], []
    for d_k in (1, 8, 64, 512):
        slider.value = d_k
        largest.append([float(w.max(-1).mean()) for w in view.shown.values()])
    plain, scaled = zip(*largest, strict=True)
    assert list(view.shown) == ["not scaled", "divided by sqrt(d_k)"]
    assert sorted(plain) == list(plain) and plain[-1] > 0.85
    assert max(scaled) < 0.5


def test_vectors_are_nested_so_that_the_picture_moves_continuously():
    view = live.scaling(n=6, d_k=(300, 301))
    view.sliders["d_k"].value = 300
    before = view.shown["divided by sqrt(d_k)"]
    view.sliders["d_k"].value = 301
    change = np.abs(view.shown["divided by sqrt(d_k)"] - before).max()
    assert 0 < change < 0.1


def test_d_k_moves_on_logarithmic_stops_and_opens_where_the_maps_differ():
    view = live.scaling(n=8)
    stops = [value for _, value in view.sliders["d_k"]._options_full]
    assert stops[:8] == [1, 2, 3, 4, 6, 8, 12, 16] and stops[-1] == 512 and len(stops) < 25
    plain, scaled = view.shown.values()
    assert view.sliders["d_k"].value == 64 and np.abs(plain - scaled).max() > 0.3
    given = live.weights_view(lambda d: {"a": np.eye(2)}, still=(5, 100), d_k=(2, 130))
    assert {2, 5, 100, 130} <= {value for _, value in given.sliders["d_k"]._options_full}
    listed = live.weights_view(lambda d: {"a": np.eye(2)}, still=(8, 32), start=32, d_k=[("x", 2), ("y", 8), ("z", 32)])
    assert listed.sliders["d_k"].value == 32


def test_one_step_computes_once():
    calls = []

    def weights_at(d_k):
        calls.append(d_k)
        return {"map": np.full((2, 2), 0.5)}

    view = live.weights_view(weights_at, still=(1,), d_k=(1, 9))
    del calls[:]
    view.sliders["d_k"].value = 6
    assert calls == [6]


def test_the_picture_is_svg_with_a_name_and_a_description_that_tells_the_numbers():
    weights = al.softmax(np.random.default_rng(0).normal(size=(3, 4)))
    (picture,) = parsed(svg.heatmap(weights, title="a map", keys=list("wxyz")))
    assert picture.get("role") == "img"
    assert picture.find("title").text == "a map"
    description = picture.find("desc").text
    assert "3 queries (rows) by 4 keys (columns)" in description
    for i, row in enumerate(weights):
        assert f"Query {i}: most on key {'wxyz'[row.argmax()]}, {row.max():.4f}." in description


def test_every_cell_tells_query_key_and_value():
    weights = np.array([[0.125, 0.875]])
    texts = [t.text for t in parsed(svg.heatmap(weights))[0].iter("title")]
    assert texts[1:] == ["query 0, key 0: 0.1250", "query 0, key 1: 0.8750"]


def test_blocked_and_not_finite_cells_differ_from_zero():
    weights, mask = np.array([[0.0, 0.0, np.nan]]), np.array([[True, False, True]])
    texts = [t.text for t in parsed(svg.heatmap(weights, attn_mask=mask))[0].iter("title")]
    assert [t.split(": ")[1] for t in texts[1:]] == ["0.0000", "blocked", "nan"]


def test_a_row_that_may_look_nowhere_is_told():
    assert "Query 1 may attend to no key." in svg.describe(np.eye(2) * [[1], [0]], ["0", "1"], ["a", "b"], None)


@pytest.mark.parametrize("draw", ["heatmap", "bars"])
def test_what_a_learner_types_is_text(draw):
    n = len(HOSTILE)
    weights = np.full((n, n), 1 / n)
    if draw == "heatmap":
        picture = svg.heatmap(weights, title=HOSTILE[0], queries=HOSTILE, keys=HOSTILE)
    else:
        picture = svg.bars(weights[0], title=HOSTILE[0], keys=HOSTILE)
    (root,) = parsed(picture)
    assert "script" not in "".join(tags(root))
    assert root.find("title").text == HOSTILE[0]
    assert "a&b" in [t.text for t in root.iter("text")]


def test_large_maps_are_one_image():
    weights = al.softmax(np.random.default_rng(0).normal(size=(512, 512)))
    picture = svg.heatmap(weights, attn_mask=np.tri(512, dtype=bool))
    (root,) = parsed(picture)
    assert "image" in tags(root) and len(tags(root)) < 100
    assert "image-rendering:pixelated" in picture


def test_text_follows_the_theme():
    picture = svg.heatmap(np.eye(2)) + svg.bars(np.array([0.5, 0.5]))
    assert 'fill="currentColor"' in picture
    inks = set(re.findall(r'<text[^>]*fill[:=]"?(#\w+)', picture))
    assert inks == {"#000000", "#ffffff"}


def test_an_error_in_a_step_is_shown():
    def weights_at(d_k):
        if d_k > 2:
            raise ValueError("d_k <too> large")
        return {"map": np.eye(2)}

    view = live.weights_view(weights_at, still=(1,), d_k=(1, 5))
    view.sliders["d_k"].value = 4
    assert "ValueError: d_k &lt;too&gt; large" in view.picture.value
    view.sliders["d_k"].value = 2
    assert "ValueError" not in view.picture.value


def test_sliders_have_names_and_follow_the_drag():
    view = live.scaling(n=4)
    assert view.sliders["d_k"].description == "d_k"
    assert view.sliders["d_k"].continuous_update
    heads = live.weights_view(
        lambda h: {"map": np.eye(2)}, still=(1,), num_heads=[("1, d_k = 8", 1), ("2, d_k = 4", 2)]
    )
    assert heads.sliders["num_heads"].description == "num_heads"


def test_display_is_a_static_picture_then_the_widget():
    """Front ends without a kernel show the first output; the second holds only the widget, never its repr."""
    InteractiveShell.instance()  # a view shows its widget only where there is a notebook
    view = live.scaling(n=4, d_k=(1, 64))
    with capture_output() as captured:
        view._ipython_display_()
    static, note, widget = (output.data for output in captured.outputs)
    assert set(static) == {"image/png", "text/plain"}
    assert "Run this cell" in note["text/html"] and "Run this cell" in note["text/plain"]
    assert list(widget) == ["application/vnd.jupyter.widget-view+json"]
    assert "VBox" not in str(static["text/plain"])
    assert not plt.get_fignums()


def test_the_text_of_the_static_picture_tells_its_numbers():
    view = live.scaling(n=4, d_k=(1, 64))
    _, text = view._still()
    plt.close("all")
    for d_k in (1, 8, 64):
        view.sliders["d_k"].value = d_k
        for title, weights in view.shown.items():
            assert f"d_k = {d_k}, {title}: largest weight {weights.max(-1).mean():.4f}" in text


def test_one_row_is_drawn_as_bars():
    view = live.weights_view(lambda d_k: {"row": [0.25, 0.75]}, still=(1, 2), d_k=(1, 2), keys=["a", "b"])
    assert "key b: 0.7500" in view.picture.value
    figure, _ = view._still()
    assert figure.axes[0].patches
    plt.close("all")


def test_dead_share_by_automatic_differentiation():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=(50, 6)) * 8, requires_grad=True)
    upstream = rng.normal(size=(50, 6))
    weights = scores.softmax(-1)
    (weights * torch.tensor(upstream)).sum().backward()
    dead = (scores.grad.abs() < 1e-3).all(-1).double().mean().item()
    assert 0 < dead < 1
    assert live.dead_share(weights.detach().numpy(), upstream) == dead


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        (lambda: live.weights_view(lambda d_k: {}, still=(1,)), ["exactly one slider", "got []", "Fix:"]),
        (lambda: live.weights_view(lambda d_k: {}, still=(9,), d_k=(1, 4)), ["range (1, 4)", "[9]", "Fix:"]),
    ],
)
def test_errors(call, fragments):
    with pytest.raises(ValueError) as error:
        call()
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


def test_weights_of_a_wrong_shape_are_told_in_the_view():
    view = live.weights_view(lambda d_k: {"map": np.ones((2, 2, 2))}, still=(1,), d_k=(1, 4))
    assert "pick one head" in view.picture.value


def test_progress_returns_what_it_was_given():
    assert list(live.progress(range(3), "counting")) == [0, 1, 2]


def test_the_text_of_trained_weights_has_no_number_that_another_machine_would_change():
    def weights_at(step):
        return {"map": np.full((2, 2), 0.5)}

    for trained in (False, True):
        _, text = live.weights_view(weights_at, still=(0, 9), step=(0, 9), trained=trained)._still()
        assert ("0.5000" in text) is not trained and text.startswith("The picture at step = 0, 9;")


def read(view):
    """Return all that a view says: texts of its SVG and HTML, tags removed."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", view.picture.value))


def test_scaling_has_its_controls_and_the_curve_tells_the_numbers():
    view = live.scaling(n=8)
    assert list(view.sliders) == ["d_k", "tokens", "maps", "draw"]
    view.sliders["d_k"].value = 64
    told = {title: weights.max(-1).mean() for title, weights in view.shown.items()}
    for title, value in told.items():
        assert f"{title} {value:.2f}" in view.picture.value.split("at d_k = 64: ")[1]
    view.sliders["tokens"].value = 20
    assert view.shown["not scaled"].shape == (20, 20)
    before = view.shown["not scaled"]
    view.sliders["draw"].value = 3
    assert np.abs(view.shown["not scaled"] - before).max() > 0.1
    view.sliders["maps"].value = "not scaled"
    assert list(view.shown) == ["not scaled"]


def test_scaling_computes_its_curve_only_when_it_changes(monkeypatch):
    view, calls = live.scaling(n=6), []
    softmax = al.core.softmax
    monkeypatch.setattr(al.core, "softmax", lambda x: calls.append(1) or softmax(x))
    view.sliders["d_k"].value = 32
    assert len(calls) == 2  # two maps, and not once per point of the curve


@pytest.mark.parametrize("scale", [None, 0.25])
def test_flow_writes_the_arithmetic_out(scale):
    query, key, value = al.examples.BY_HAND.project()
    trace = al.attention_trace(query, key, value, scale=scale)
    view = live.flow(trace, queries=["1", "2", "3"])
    view.sliders["query"].value, view.sliders["key"].value, view.sliders["feature"].value = 1, 2, 1
    (picture,) = parsed(view.picture.value)
    told = picture.find("desc").text
    assert "Query 2, key 3: q·k = 2·2 + 2·3 + 2·1 = 12" in told
    assert ("÷ √3: 6.928" if scale is None else "\u00d7 0.25: 3") in told
    shares = np.exp(trace.masked_scores[1])
    assert f"exp({trace.masked_scores[1, 2]:.4g}) = {shares[2]:.4g}, sum over the keys {shares.sum():.4g}" in told
    assert f"{shares[2]:.4g}/{shares.sum():.4g} = {trace.weights[1, 2]:.4f}" in told
    assert f"feature 1 of the output {trace.output[1, 1]:.4g}." in told


def table_of(view):
    """Return the rows of the table below the matrices: {name: numbers as text}, and the sums."""
    (picture,) = parsed(view.picture.value)
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
    at = svg.flow.layout(list(view.shown), list("0123"), list("0123"), 3, 2, 5, dict.fromkeys(view.shown, "÷")).places
    assert (at["key"].x, at["key"].wide) == (at["scores"].x, at["scores"].wide)
    assert (at["value"].x, at["value"].wide) == (at["output"].x, at["output"].wide)
    rows = {(p.y, p.high) for name, p in at.items() if name not in ("key", "value")}
    assert len(rows) == 1 and {at["key"].bottom, at["value"].bottom} == {at["scores"].y - svg.flow.NEAR}
    order = [at[name] for name in ("x", "query", *view.shown, "output")]
    assert all(a.right < b.x for a, b in pairwise(order))


@pytest.mark.parametrize("n", [1, 3, 8, 16, 17, 64])
@pytest.mark.parametrize("d", [1, 8, 64])
def test_flow_of_any_size_fits(n, d):
    r = np.random.default_rng(n)
    view = live.flow(al.attention_trace(*r.normal(size=(3, n, d)), is_causal=True), x=r.normal(size=(n, d)))
    wide, high = map(int, SVG_BOX.search(view.picture.value).groups())
    assert wide <= 1200 and high <= 510, (wide, high)
    assert too_wide(view.picture.value) == []


def test_flow_takes_no_more_tokens_than_have_room():
    with pytest.raises(al.ShapeError, match="up to 64 tokens, got 65"):
        live.flow(al.attention_trace(*np.zeros((3, 65, 2))))


def test_flow_writes_large_scores_relative_to_the_largest():
    view = live.flow(al.attention_trace(*(1000 * x for x in al.examples.BY_HAND.project())))
    assert "exp(" in read(view) and "inf" not in read(view)


def test_flow_marks_blocked_cells():
    trace = al.attention_trace(*al.examples.BY_HAND.project(), is_causal=True)
    view = live.flow(trace)
    for step, shown in view.shown.items():
        assert np.array_equal(shown, getattr(trace, step))
    assert view.picture.value.count("blocked</title>") == 6 + 4  # 3 cells of two maps, 2 of two rows of the table
    view.sliders["key"].value = 2
    assert "blocked: -inf" in read(view)


def test_flow_where_every_key_is_blocked():
    view = live.flow(al.attention_trace(*al.examples.BY_HAND.project(), np.zeros((3, 3), dtype=bool)))
    assert "<pre>" not in view.picture.value  # a warning is an error here
    assert "blocked: -inf" in read(view) and "no key to attend to" in read(view)


def test_flow_of_a_batch_of_heads_in_torch():
    torch = pytest.importorskip("torch")
    from attnlib import torch_layers

    q, k, v = (torch.randn(2, 3, n, d, generator=torch.manual_seed(0)) for n, d in ((4, 8), (5, 8), (5, 6)))
    mask = torch.tensor(al.padding_mask([5, 2], 5))[:, None]
    trace = torch_layers.attention_trace(q, k, v, mask)
    view = live.flow(trace, x=torch.randn(2, 4, 24))  # the heads share their tokens
    view.sliders["sequence"].value, view.sliders["head"].value = 1, 2
    assert np.allclose(view.shown["weights"], trace.weights[1, 2].numpy())
    assert "(8 terms)" in read(view)
    view.sliders["key"].value = 4
    assert "blocked" in read(view)


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
    (picture,) = parsed(view.picture.value)
    axes = {(t.get("data-row"), t.get("data-column")) for t in picture.iter() if t.get("class") == "attnlib-target"}
    assert axes == {("query", ""), ("", "key"), ("query", "key"), ("key", "feature"), ("query", "feature")}
    mouse(view, "click", row="query", i=2, column="feature", j=4)
    mouse(view, "click", row="", i=0, column="key", j=1)
    assert [view.sliders[name].value for name in ("query", "key", "feature")] == [2, 1, 4]
    mouse(view, "over", row="query", i=1, column="key", j=3, shown="weights")
    assert f"weights: query 1, key 3: {svg.exact(view.shown['weights'][1, 3])}" in strip(view.readout.value)


def test_plane_tells_what_attention_computes():
    keys, values = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[3.0, 0.0], [0.0, 1.0]])
    view = live.plane(keys, values, angle=90, length=2.0)
    trace = al.attention_trace(np.array([[0.0, 2.0]]), keys, values)
    assert np.allclose(view.shown["weights"], trace.weights)
    x, y = trace.output[0]
    assert f"output ({x:.4f}, {y:.4f})" in read(view)


def test_a_longer_query_is_a_sharper_choice_and_its_output_stays_in_the_hull():
    view, largest = live.plane(angle=30), []
    for length in (0.0, 1.0, 2.0, 4.0):
        view.sliders["length"].value = length
        largest.append(view.shown["weights"].max())
        (picture,) = parsed(view.picture.value)
        hull = next(p for p in picture.iter("polygon") if p.get("opacity"))
        corners = np.array([[float(v) for v in point.split(",")] for point in hull.get("points").split()])
        output = next(c for c in picture.iter("circle") if c.get("r") == "8")
        point = np.array([float(output.get("cx")), float(output.get("cy"))])
        turns = np.linalg.det([[b - a, point - a] for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True)])
        assert len(corners) == 3 and min(turns * np.sign(turns.sum())) > -100  # half a pixel, drawn to a tenth of one
    assert largest == sorted(largest) and largest[0] == pytest.approx(1 / 3) and largest[-1] > 0.9


def test_a_click_in_the_plane_moves_the_tip_of_the_query():
    view = live.plane()
    mouse(view, "click", row="row", i=0, column="column", j=20)  # up
    assert abs(view.sliders["angle"].value - 90) <= 2 and view.sliders["length"].value == 4
    mouse(view, "click", row="row", i=30, column="column", j=10)  # left and down
    assert 180 < view.sliders["angle"].value < 270


def test_plane_takes_points_alone():
    with pytest.raises(al.ShapeError, match="2 to 6 points"):
        live.plane(np.eye(3), np.eye(3))


def test_scores_spread_with_the_root_of_d_k_and_not_when_scaled():
    view = live.scores(d_k=(4, 256))
    for d_k in (4, 64, 256):
        view.sliders["d_k"].value = d_k
        plain, scaled = (float(v) for v in re.findall(r"standard deviation ([\d.]+), largest", view.picture.value))
        assert plain == pytest.approx(d_k**0.5, rel=0.1) and scaled == pytest.approx(1, abs=0.1)


def test_scores_draw_the_softmax_of_the_points_that_they_show():
    view = live.scores()
    view.sliders["query"].value = 3
    (picture,) = parsed(view.picture.value)
    for panel, weights in zip(picture.findall("g"), view.shown.values(), strict=True):
        told = [
            [re.match(r"key (\d): (.*)", t.text).groups() for t in shape.iter("title")] for shape in panel.findall("g")
        ]
        points, bars = ({int(j): float(v) for j, v in pairs} for pairs in told)
        row = np.array([points[j] for j in range(8)])
        assert np.allclose([bars[j] for j in range(8)], weights[3], atol=1e-4)
        assert np.allclose(al.softmax(row), weights[3], atol=1e-3)


def test_the_still_of_a_view_is_what_it_draws():
    from attnlib.live import still

    view = live.flow(al.attention_trace(*al.examples.BY_HAND.project()), queries=["$x$", "<b>", "cat"])
    (picture,) = parsed(view.picture.value)
    drawn = still.figure(view.picture.value)
    (ax,) = drawn.axes
    words = [t.get_text() for t in ax.texts if not t.get_parse_math()]
    assert words == [t.text or "" for t in picture.iter("text") if len(t) == 0]
    assert "$K^{T}$" in "".join(t.get_text() for t in ax.texts).replace(" ", "").replace("3\u00d73", "")
    shapes = [s for s in picture.iter() if s.tag in still.SHAPES and s.get("class") != "attnlib-target"]
    assert len(ax.patches) == len(shapes)
    plt.close(drawn)


def test_masks_mark_rows_without_a_key():
    view = live.masks(n=5)
    view.sliders["mask"].value, view.sliders["length"].value = "both", 2
    assert "9 of 25 pairs may attend; rows without a key: 0" in read(view)
    view.sliders["length"].value = 0
    assert "rows without a key: 5" in read(view)
    assert view.picture.value.count("no key to attend to") == 10
    assert not np.any(view.shown["not scaled"])


def test_heads_at_fixed_width():
    view = live.heads(n=5, d_model=16)
    view.sliders["num_heads"].value = 4
    assert view.picture.value.count('data-row="head"') == 4
    view.sliders["head"].value = 0
    average = view.shown["average of all heads"]
    each = []
    for head in range(1, 5):
        view.sliders["head"].value = head
        each.append(view.shown[f"head {head}"])
    assert np.allclose(average, np.mean(each, axis=0))


def test_heads_of_given_weights():
    with pytest.raises(al.ShapeError, match="pick one sequence"):
        live.heads(np.eye(3))
    view = live.heads(n=4, d_model=16)
    view.sliders["num_heads"].value = 16
    view.sliders["head"].value = 7
    view.sliders["num_heads"].value = 1  # "head 7" of one head was shown here
    assert (view.sliders["head"].max, view.sliders["head"].value, list(view.shown)) == (1, 1, ["head 1"])
    assert list(live.heads(np.full((2, 3, 3), 1 / 3)).sliders) == ["head"]


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
    view = live.sentence()
    view.sliders["text"].value = text
    assert "<pre>" not in view.picture.value
    (root,) = parsed(view.picture.value)
    assert not {tag for tag in tags(root) if tag in ("script", "b")}
    tokens = sentence_view.tokenize(text)
    assert "".join(tokens) == "".join(text.split())
    assert next(iter(view.shown.values())).shape == (len(tokens), len(tokens))
    assert len(view.picture.value) < 150_000


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_sentence_says_what_to_do(text):
    view = live.sentence()
    view.sliders["text"].value = text
    assert "Type a sentence" in read(view)


def test_equal_words_look_alike():
    view = live.sentence("cat dog cat")
    weights = view.shown["head 1"]
    assert np.allclose(weights[0], weights[2]) and not np.allclose(weights[0], weights[1])


def test_sentence_takes_modules_of_the_readers_own():
    def first(tokens):
        return np.eye(len(tokens))[None]

    def second(tokens):
        return np.full((2, len(tokens), len(tokens)), 1 / len(tokens))

    view = live.sentence("a b", attend={"first": first, "second": second})
    view.sliders["module"].value = "second"
    assert view.shown["head 1"].tolist() == [[0.5, 0.5], [0.5, 0.5]]


VIEWS = {
    "scaling": live.scaling,
    "flow": lambda: live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project(), is_causal=True)),
    "plane": live.plane,
    "scores": live.scores,
    "masks": live.masks,
    "heads": live.heads,
    "sentence": live.sentence,
    "weights_view": lambda: live.weights_view(lambda d: {"a": np.eye(3)}, still=(1,), d_k=(1, 2)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_a_static_picture_names_and_large_text(name):
    view = VIEWS[name]()
    figure, text = view._still()
    assert "run the cell" in text and re.search(r"\d", text)
    assert figure.axes
    plt.close(figure)
    assert all(control.description for control in view.sliders.values())
    sizes = {float(size) for size in re.findall(r'font-size="([\d.]+)"', view.picture.value)}
    assert min(sizes) >= 12
    for root in parsed(view.picture.value):
        assert root.get("role") == "img" and root.find("title").text and root.find("desc").text


SVG_BOX = re.compile(r'viewBox="0 0 (\d+) (\d+)"')


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_moves_while_its_slider_does(name):
    """Sizes of all pictures stay as they are at every value, but where there are more tokens, words or maps."""
    view = VIEWS[name]()
    for what, slider in view.sliders.items():
        options = getattr(slider, "_options_full", None)
        if what in ("tokens", "text", "maps", "num_heads", "step") or not (options or hasattr(slider, "max")):
            continue
        sizes = set()
        for value in [v for _, v in options] if options else range(slider.min, slider.max + 1):
            slider.value = value
            sizes.add(tuple(SVG_BOX.findall(view.picture.value)))
        assert len(sizes) == 1, (what, sizes)


def too_wide(picture):
    """Return the numbers of a map that are wider than its cells, by the widths of the widest usual font."""
    (root,) = parsed(picture)
    out, side = [], 0
    for group in root.iter("g"):
        side = next((int(rect.get("width")) for rect in group if rect.find("title") is not None), side)
        if group.get("pointer-events") == "none" and group.get("text-anchor") == "middle":
            size = float(group.get("font-size"))
            out += [t.text for t in group.iter("text") if svg.width(t.text, size) > side]
    return out


@pytest.mark.parametrize("n", range(1, 17))
@pytest.mark.parametrize("scale", [1, 10, 1234.5])
def test_numbers_stay_in_their_cells(n, scale):
    values = scale * np.random.default_rng(n).normal(size=(n, n))
    picture = svg.heatmap(values, vmin=values.min(), vmax=values.max())
    assert too_wide(picture) == []
    if scale == 1 and n <= 8:
        assert f">{values[0, 0]:.2f}</text>" in picture


def test_cells_are_whole_pixels():
    """At 37.5 pixels the anti-aliased seams between cells look like groups."""
    for n in range(1, 17):
        cells = [r for r in parsed(svg.heatmap(np.eye(n)))[0].iter("rect") if r.find("title") is not None]
        assert len(cells) == n * n
        assert all(r.get(key).isdigit() for r in cells for key in ("x", "y", "width", "height"))


def test_bars_stand_under_their_columns():
    (root,) = parsed(svg.heatmap(np.full((5, 5), 0.2), row=1, bars=True))
    rects = [r for r in root.iter("rect") if r.find("title") is not None]
    cells, bars = rects[:5], rects[25:]
    middle = [[float(r.get("x")) + float(r.get("width")) / 2 for r in row] for row in (cells, bars)]
    assert middle[0] == middle[1]


def test_role_colours_stand_for_nothing_else():
    curve = svg.curve([1, 2, 4], {"not scaled": [0, 0.5, 1], "divided by sqrt(d_k)": [0, 0, 0]}, mark=2, x_name="d_k")
    assert not any(role in curve for role in (colours.QUERY, colours.KEY, colours.VALUE))
    for text, role in (("queries (rows)", colours.QUERY), ("keys (columns)", colours.KEY)):
        plates = re.findall(r'fill="(#\w+)"/><text[^>]*fill:(#\w+)">' + re.escape(text), svg.heatmap(np.eye(2)))
        assert [plate for plate, _ in plates] == [role]
        assert all(colours.contrast(*pair) >= 4.5 for pair in plates)


def test_mathematics_is_set_as_mathematics():
    title = parsed(svg.heatmap(np.eye(2), title="Q K^T / sqrt(d_k) <b> $x$"))[0].find("text")
    assert "".join(title.itertext()).replace("\u200b", "") == "Q KT / √dk <b> $x$"
    assert [t.text for t in title.iter("tspan") if t.get("font-style")] == ["K", "d"]


def mouse(view, what, **told):
    view.mouse.value = json.dumps({"what": what, "count": id(told), **told})


def test_a_click_chooses_a_cell_and_its_exact_value_is_told():
    view = live.scaling(n=6)
    mouse(view, "click", row="query", i=4, column="key", j=2)
    weights = view.shown["not scaled"]
    assert view.picked == {"query": 4, "key": 2}
    assert f"not scaled: query 4, key 2: {svg.exact(weights[4, 2])}" in strip(view.readout.value)
    assert f"key 5: {svg.exact(weights[4, 5])}</title>" in view.picture.value.split("keys (columns)")[1]  # the bars
    mouse(view, "over", row="query", i=1, column="key", j=3, shown="divided by sqrt(d_k)")
    assert f"query 1, key 3: {svg.exact(view.shown['divided by sqrt(d_k)'][1, 3])}" in strip(view.readout.value)
    mouse(view, "out")
    assert "query 4, key 2" in view.readout.value
    mouse(view, "click", row="query", i=0, column="", j=0)  # a label chooses its token alone
    assert view.picked == {"query": 0, "key": 2}
    view.sliders["tokens"].value = 2  # the chosen key is no more
    assert "<pre>" not in view.picture.value


def test_a_click_moves_the_slider_where_there_is_one():
    trace = live.flow(al.attention_trace(*al.examples.BY_HAND.project()))
    mouse(trace, "click", row="query", i=2, column="key", j=1)
    assert (trace.sliders["query"].value, trace.sliders["key"].value) == (2, 1)
    heads = live.heads(np.full((3, 4, 4), 0.25))
    mouse(heads, "click", row="head", i=3, column="", j=0)
    assert heads.sliders["head"].value == 3
    heads.choose(head=99, nonsense=1)
    assert heads.sliders["head"].value == 3


def test_images_tell_their_values_too():
    view = live.sentence("word other " * 20)
    mouse(view, "over", row="query", i=39, column="key", j=38, shown="head 1")
    assert "<image" in view.picture.value
    assert f"query 39 “other”, key 38 “word”: {svg.exact(view.shown['head 1'][39, 38])}" in strip(view.readout.value)


def strip(html):
    return re.sub(r"<[^>]*>", "", html)


def test_every_map_has_targets_for_the_mouse():
    for name, make in VIEWS.items():
        for root in parsed(make().picture.value):
            shown = [rect for rect in root.iter("rect") if rect.get("class") == "attnlib-target"]
            assert shown or root.find("desc").text.startswith("at d_k"), name


def test_size_enlarges_for_a_projector():
    assert "zoom:1.5" in live.scaling(size=1.5).picture.value


def test_messages_stay_small():
    x = np.random.default_rng(0).normal(size=(512, 16))
    view = live.weights_view(lambda d: {"map": al.softmax(x @ x.T)}, still=(1,), d_k=(1, 2))
    assert len(view.picture.value) <= 150_000


def test_the_three_colours_stay_apart_for_colour_blind_readers():
    """Machado et al. 2009, severity 1: the CIELAB distance of any two of query, key and value."""
    matrices = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    }
    srgb = np.array([matplotlib.colors.to_rgb(c) for c in (colours.QUERY, colours.KEY, colours.VALUE)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    for name, matrix in matrices.items():
        seen = cielab(np.clip(linear @ np.array(matrix).T, 0, 1))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert np.linalg.norm(seen[i] - seen[j]) > 10, (name, i, j)  # 2.3 is just noticeable


def cielab(linear):
    xyz = linear @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(xyz / (0.9505, 1.0, 1.089))
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=-1)
