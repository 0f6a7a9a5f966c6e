"""Live views: one picture per step, nothing a learner types is markup, errors are shown, and saved output is static."""

import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib import pyplot as plt

import attnlib as al
from attnlib import live, svg

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
    view = live.scaling(n=6, d_k=(1, 400))
    view.sliders["d_k"].value = 300
    before = view.shown["divided by sqrt(d_k)"]
    view.sliders["d_k"].value = 301
    change = np.abs(view.shown["divided by sqrt(d_k)"] - before).max()
    assert 0 < change < 0.1


def test_one_step_computes_once():
    calls = []

    def weights_at(d_k):
        calls.append(d_k)
        return {"map": np.full((2, 2), 0.5)}

    view = live.weights_view(weights_at, still=(1,), d_k=(1, 9))
    del calls[:]
    view.sliders["d_k"].value = 5
    assert calls == [5]


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
    inks = re.findall(r"fill:(#\w+)", picture)
    assert set(inks) <= {"#000000", "#ffffff"}


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
    static, widget = (output.data for output in captured.outputs)
    assert set(static) == {"image/png", "text/plain"}
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
