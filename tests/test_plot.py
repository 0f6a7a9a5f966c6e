"""Static pictures: what stands on the axes, what masked and broken cells look like, and that no text is interpreted."""

import io

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from matplotlib import pyplot as plt

import attnlib as al
from attnlib import plot

HOSTILE = ["$x_1$", "<b>&", "\U0001f984", "中文", "a" * 40, "back\\slash", "new\nline", ""]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_axes_say_which_is_query_and_which_is_key():
    ax = plot.attention_heatmap(np.eye(3))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("keys (columns)", "queries (rows)")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2"]


def test_row_0_is_on_top_and_values_are_exact():
    weights = np.array([[0.1, 0.9], [0.25, 0.75]])
    ax = plot.attention_heatmap(weights)
    assert texts(ax) == ["0.1000", "0.9000", "0.2500", "0.7500"]
    assert ax.texts[0].get_position() == (0, 0) and ax.texts[1].get_position() == (1, 0)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_value_texts_have_contrast():
    for colour, ink in plot.palette():
        a, b = (relative_luminance(matplotlib.colors.to_rgb(c)) for c in (colour, ink))
        assert (max(a, b) + 0.05) / (min(a, b) + 0.05) >= 4.5


def relative_luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_masked_cells_are_hatched_and_carry_no_value():
    weights = al.softmax(np.where(al.causal_mask(3), 0.0, -np.inf))
    ax = plot.attention_heatmap(weights, attn_mask=al.causal_mask(3))
    (hatched,) = ax.collections
    assert hatched.get_hatch() and len(hatched.get_paths()) == 3
    assert len(texts(ax)) == 6
    assert not plot.attention_heatmap(weights).collections


def test_masked_cells_show_in_large_maps_too():
    weights, mask = np.zeros((200, 200)), al.causal_mask(200)
    with_mask = plot.attention_heatmap(weights, attn_mask=mask, colorbar=False).figure
    without = plot.attention_heatmap(weights, colorbar=False).figure
    assert (pixels(with_mask) != pixels(without)).any(-1).mean() > 0.2


@pytest.mark.parametrize(("value", "text"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_not_finite_cells_are_visible(value, text):
    ax = plot.attention_heatmap(np.array([[0.5, value], [0.2, 0.8]]))
    assert texts(ax)[1].startswith(text)
    pink = np.array([0xCC, 0x79, 0xA7])
    assert (np.abs(pixels(ax.figure).astype(int) - pink).max(-1) <= 2).mean() > 0.02


def test_scores_take_their_own_scale():
    ax = plot.attention_heatmap(np.array([[2.0, 4.0], [16.0, -3.0]]), vmin=None, vmax=None)
    assert ax.images[0].get_clim() == (-3.0, 16.0)


def test_any_token_text_is_drawn_as_it_is():
    ax = plot.attention_heatmap(np.eye(8), queries=HOSTILE, keys=HOSTILE, title="$\\frac{a$ <i>")
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels[:2] == ["$x_1$", "<b>&"]
    assert labels[2] == "U+1F984" and labels[3] == "U+4E2DU+6587"
    assert labels[4] == "a" * 23 + "…" and labels[6] == "newU+000Aline"
    pixels(ax.figure)  # mathtext would raise here, a missing glyph would warn


def test_large_maps_write_no_values():
    weights = np.random.default_rng(0).random((2048, 2048))
    ax = plot.attention_heatmap(weights, attn_mask=np.tri(2048, dtype=bool))
    assert not ax.texts and len(ax.get_xticks()) <= plot.LABELS_PER_AXIS + 1
    ax.figure.savefig(io.BytesIO(), format="png")


def test_head_grid():
    figure = plot.head_grid(np.full((5, 4, 3), 1 / 3), attn_mask=np.ones((4, 3), dtype=bool))
    assert [ax.get_title() for ax in figure.axes[:5]] == [f"head {i}" for i in range(1, 6)]
    assert all(ax.images[0].get_clim() == (0, 1) for ax in figure.axes[:5])


def test_torch_weights_with_gradient():
    torch = pytest.importorskip("torch")
    weights = torch.eye(2, requires_grad=True, dtype=torch.bfloat16)
    assert texts(plot.attention_heatmap(weights))[0] == "1.0000"


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        (lambda: plot.attention_heatmap(np.ones((2, 3, 3))), ["(n_q, n_k)", "(2, 3, 3)", "head_grid"]),
        (lambda: plot.attention_heatmap(np.ones((0, 3))), ["at least one cell", "(0, 3)", "Fix:"]),
        (lambda: plot.attention_heatmap(np.eye(3), keys=["a"]), ["keys", "expected 3", "got 1", "Fix:"]),
        (lambda: plot.attention_heatmap(np.eye(3), attn_mask=np.tri(4, dtype=bool)), ["(3, 3)", "(4, 4)", "Fix:"]),
        (lambda: plot.head_grid(np.eye(3)), ["(h, n_q, n_k)", "(3, 3)", "Fix:"]),
        (lambda: plot.head_grid(np.ones((2, 3, 3)), titles=["one"]), ["expected 2", "got 1", "Fix:"]),
    ],
)
def test_shape_errors(call, fragments):
    with pytest.raises(al.ShapeError) as error:
        call()
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


@pytest.mark.parametrize("mask", [np.tri(3, dtype=int), np.zeros((3, 3))])
def test_masks_of_pictures_are_boolean(mask):
    with pytest.raises(TypeError, match="from_zero_blocked"):
        plot.attention_heatmap(np.eye(3), attn_mask=mask)


def test_labels_are_not_weights():
    with pytest.raises(TypeError, match="real numbers"):
        plot.attention_heatmap(np.array([["a", "b"]]))


def test_figures_say_in_words_what_they_show():
    assert repr(plot.attention_heatmap(np.eye(2), title="a map").figure) == (
        "Heatmap: a map. 2 queries (rows) by 2 keys (columns)."
    )
    figure = plot.head_grid(np.ones((3, 4, 5)) / 5, columns=2)
    assert repr(figure) == "Heatmaps: head 1; head 2; head 3. 4 queries (rows) by 5 keys (columns)."
    assert repr(plot.bar_grid([[0.5, 0.5]], titles=["one"])) == "Bar chart: one."
