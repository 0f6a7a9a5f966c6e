"""Static pictures: what stands on the axes, what masked and broken cells look like, and that no text is interpreted."""

import base64
import io
import json
import pathlib
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from tools.series import find_notebook

matplotlib.use("agg")
from matplotlib import pyplot as plt
from PIL import Image

import attnlib as al
from attnlib import colours, live, plot, svg
from attnlib.figure import svg as svg_of
from attnlib.live import frames

HOSTILE = ["$x_1$", "<b>&", "\U0001f984", "中文", "a" * 40, "back\\slash", "new\nline", ""]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def pixels(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def texts(ax):
    ax.figure.canvas.draw()  # values are written when they are drawn
    return [text.get_text() for text in ax.texts]


def test_axes_say_which_is_query_and_which_is_key():
    ax = plot.attention_heatmap(np.eye(3))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("keys (columns)", "queries (rows)")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2"]


def test_row_0_is_on_top_and_values_are_exact():
    weights = np.array([[0.1, 0.9], [0.25, 0.75]])
    ax = plot.attention_heatmap(weights)
    assert texts(ax) == ["0.10", "0.90", "0.25", "0.75"]
    assert texts(plot.attention_heatmap(weights, places=4)) == ["0.1000", "0.9000", "0.2500", "0.7500"]
    assert ax.texts[0].get_position() == (0, 0) and ax.texts[1].get_position() == (1, 0)
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_values_are_written_only_where_they_fit_and_at_once():
    """Hundreds of texts that no cell has room for took half of the time of a still."""
    for n, count in ((16, 0), (4, 16)):
        figure = plot.head_grid(np.full((3, n, n), 1 / n), columns=3)
        drawn = pixels(figure)  # the first time
        assert [len(ax.texts) for ax in figure.axes[:3]] == [count] * 3
        left, bottom, right, top = figure.axes[0].get_window_extent().extents.round().astype(int)
        cells = drawn[len(drawn) - top + 4 : len(drawn) - bottom - 4, left + 4 : right - 4]  # without the frame
        assert (cells < 100).all(-1).any() == (count > 0)


ROLES = (None, colours.QUERY, colours.KEY, colours.VALUE, colours.NEXT)
THEMES = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


def lightness(colour):
    """Return the L* of CIELAB, from 0 to 100."""
    return 116 * colours.luminance(colour) ** (1 / 3) - 16


@pytest.mark.parametrize("face", [colours.QUERY, colours.KEY, colours.VALUE])
def test_words_in_a_filled_box_have_contrast_in_both_themes(face):
    _, ax = plot.subplots()
    ax.text(0.5, 0.5, "K1", color="black", bbox={"facecolor": face})
    (ink,) = re.findall(r'fill:([^"]*)"[^>]*>K1<', ax.figure._repr_svg_())
    assert ink.startswith("#") and colours.contrast(ink, face) >= 4.5


@pytest.mark.parametrize("face", ["white", colours.PAPER, colours.SUNK])
def test_words_in_a_box_that_a_dark_page_turns_turn_too(face):
    _, ax = plot.subplots()
    ax.text(0.5, 0.5, "K1", color="black", bbox={"facecolor": face})
    drawn = [ax.figure._repr_svg_() for _ in range(2)]  # the second time, white is paper already
    assert all(re.search(r'fill:var\(--ink,[^"]*"[^>]*>K1<', one) for one in drawn)


@THEMES
@pytest.mark.parametrize("tint", ROLES)
def test_numbers_on_the_cells_of_a_map_have_contrast(tint, dark):
    for row, ink in zip(colours.colour_table(tint, dark), colours.inks(tint), strict=True):
        name = re.fullmatch(r"var\(--([\w-]+),#\w+\)", ink)
        assert colours.contrast(f"#{bytes(row).hex()}", colours.token(name[1], dark) if name else ink) >= 4.5


def test_a_map_runs_from_sunk_paper_to_orange_and_in_the_dark_to_a_lighter_one_far_from_its_ground():
    for dark in (False, True):
        first, *_, last = (f"#{bytes(row).hex()}" for row in colours.colour_table(dark=dark))
        assert (first, last) == (colours.token("sunk", dark), colours.token("weight", dark))
    ends = [lightness(colours.token(name, dark=True)) for name in ("sunk", "weight")]
    assert ends[1] - ends[0] >= 60 and colours.inks()[255] == "#000000"
    steps = np.diff([lightness(f"#{bytes(row).hex()}") for row in colours.colour_table(dark=True)])
    assert (steps >= 0).all()


def boxes(figure):
    """Return (text, box) of all that is written and visible, as the renderer draws it."""
    for _ in range(2):  # the layout moves what is drawn again
        figure.canvas.draw()
    found = []
    for ax in figure.axes:
        for text in ax.findobj(matplotlib.text.Text) if ax.axison else ():
            if text.get_visible() and text.get_text().strip():
                found.append((text, text.get_window_extent()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (2, 9), (12, 12), (13, 13)])
@pytest.mark.parametrize("places", [2, 4])
@pytest.mark.parametrize("size", [None, (2, 2), (9, 4)])
def test_values_never_leave_their_cells(shape, places, size):
    ax = None if size is None else plot.subplots(figsize=size)[1]
    ax = plot.attention_heatmap(np.random.default_rng(0).random(shape), places=places, ax=ax)
    cell = np.abs(np.diff(ax.transData.transform([(0, 0), (1, 1)]), axis=0))[0]
    values = [box for text, box in boxes(ax.figure) if text.get_gid() in ("value", "pale")]
    cell = np.abs(np.diff(ax.transData.transform([(0, 0), (1, 1)]), axis=0))[0]  # after the layout
    assert all(box.width < 0.91 * cell[0] and box.height < cell[1] for box in values)  # air between two numbers
    assert size is not None or places == 4 or max(shape) > 10 or len(values) == shape[0] * shape[1]


STILLS = {
    "grid": lambda: plot.head_grid(np.full((4, 8, 8), 1 / 8), titles=["not scaled\nd_k = 64"] * 4),
    "words": lambda: plot.head_grid(np.full((2, 9, 9), 1 / 9), queries=["tremendously"] * 9, keys=["tremendously"] * 9),
    "short words": lambda: plot.head_grid(np.full((4, 14, 14), 1 / 14), queries=["the"] * 14, keys=["the"] * 14),
    "bars": lambda: plot.bar_grid(np.full((3, 6), 1 / 6), titles=["d_k = 1", "d_k = 2", "d_k = 3"]),
    "many bars": lambda: plot.bar_grid(np.full((3, 12), 1 / 12), titles=["d_k = 1", "d_k = 2", "d_k = 3"]),
    "one": lambda: plot.attention_heatmap(np.full((7, 3), 1 / 3), title="weights of a narrow map").figure,
}


@pytest.mark.parametrize("name", STILLS)
def test_no_two_texts_collide(name):
    found = boxes(STILLS[name]())
    assert len(found) > 4
    for k, (one, a) in enumerate(found):
        for other, b in found[:k]:
            if one.get_rotation() in (0, 90) and other.get_rotation() in (0, 90):
                apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
                assert apart, (one.get_text(), other.get_text())


@pytest.mark.parametrize("box", [None, {"facecolor": "none"}], ids=["no box", "empty box"])
def test_a_figure_in_a_notebook_is_a_print_whose_words_can_be_read(box):
    """Opaque, and so the same on a light and on a dark page; an SVG has the ground of its page, else paper."""
    figure, ax = plot.subplots(figsize=(3, 2))
    for y, colour in enumerate(("black", "gray", colours.QUERY, colours.KEY, colours.VALUE, colours.NEXT)):
        ax.text(0.5, y / 6, "MMMMM", ha="center", bbox=box, color=colour)
    ax.set_axis_off()
    drawn = Image.open(io.BytesIO(plot.save(figure)))
    assert drawn.getchannel("A").getextrema() == (255, 255)
    assert drawn.getpixel((2, 2))[:3] == colours.rgb(colours.PAPER)
    assert all(colours.contrast(matplotlib.colors.to_hex(text.get_color()), colours.PAPER) >= 4.5 for text in ax.texts)
    ground, rest = svg_of(figure).split("/>", 1)
    assert ground.endswith(f'style="fill:var(--paper,{colours.PAPER})"') and colours.PAPER not in rest


def test_names_of_axes_can_be_read_and_carry_their_role():
    ax = plot.attention_heatmap(np.eye(2))
    ax.figure.canvas.draw()
    for label, role in ((ax.xaxis.label, "key"), (ax.yaxis.label, "query")):
        assert matplotlib.colors.to_hex(label.get_color()) == colours.token(f"{role}-text")


def test_words_have_one_size_and_a_title_may_be_larger():
    figures = plot.head_grid(np.ones((2, 3, 3)) / 3), plot.bar_grid([[0.5, 0.5]], titles=["one"]), plot.subplots()[0]
    figures[2].axes[0].set(xlabel="step", title="a title")
    _ = figures[2].axes[0].text(0, 0, "beside a line")
    for figure in figures:
        sizes = {round(text.get_fontsize() * 100 / 72) for text, _ in boxes(figure)}
        assert sizes == {13, 16}
    assert {ax.title.get_ha() for figure in figures for ax in figure.axes} == {"left"}


def roles_in(png):
    seen = {rgb[:3] for _, rgb in Image.open(io.BytesIO(png)).convert("RGBA").getcolors(1_000_000)}
    return [role for role in ("query", "key") if colours.rgb(colours.token(f"{role}-text")) in seen]


def test_a_saved_figure_keeps_the_colours_of_the_roles():
    pytest.importorskip("ipywidgets")
    from attnlib.live.view import encode_png

    figure = plot.head_grid(np.random.default_rng(0).random((6, 9, 9)))
    assert roles_in(encode_png(figure)) == ["query", "key"]


NOTEBOOKS = sorted((pathlib.Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def saved(path):
    """Return {kind: content} for every picture that a notebook holds."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
    return [data for data in outputs if "image/png" in data]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_map_in_the_notebooks_keeps_them(path):
    maps = [data for data in saved(path) if "queries (rows)" in "".join(data["text/plain"])]
    assert maps or path.stem not in (find_notebook("start_here").name, find_notebook("masks").name)
    for data in maps:
        assert roles_in(base64.b64decode(data["image/png"])) == ["query", "key"], data["text/plain"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_line_in_the_notebooks_has_a_colour_of_matplotlibs_own_cycle(path):
    for data in saved(path):
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGBA")
        shades = np.asarray(picture, dtype=int).reshape(-1, 4)
        shades = shades[shades[:, 3] > 200, :3]
        for colour in ("#1f77b4", "#ff7f0e"):  # blue and orange, like two roles
            near = np.abs(shades - colours.rgb(colour)).max(-1) < 6
            assert near.sum() < 50, data["text/plain"]


def test_lines_are_in_no_colour_of_a_role():
    _, ax = plot.subplots()
    drawn = {ax.plot([0, 1])[0].get_color().lower() for _ in range(6)}
    assert len(drawn) == 3 and not drawn & {role.lower() for role in (colours.QUERY, colours.KEY, colours.VALUE)}


def test_titles_are_mathematics_and_dollars_are_not():
    ax = plot.attention_heatmap(np.eye(2), title="divided by sqrt(d_k), $5")
    assert ax.get_title() == r"divided by $\sqrt{d_{k}}$, \$5"
    assert plot.attention_heatmap(np.eye(2), title="W_Q W_K^T").get_title() == "$W_{Q}$ $W_{K}^T$"
    name = plot.attention_heatmap(np.eye(2), title="sqrt(embed_dim)").get_title()
    assert name == r"$\sqrt{\mathrm{embed\_dim}}$"
    pixels(ax.figure)
    assert repr(ax.figure).startswith("Heatmap: divided by sqrt(d_k), $5.")


def test_masked_cells_have_a_line_each_and_no_value():
    weights = al.softmax(np.where(al.causal_mask(3), 0.0, -np.inf))
    ax = plot.attention_heatmap(weights, attn_mask=al.causal_mask(3))
    ground, lines = ax.patches  # the paper, and one line a cell
    assert [(patch.get_path().codes == patch.get_path().MOVETO).sum() for patch in (ground, lines)] == [3, 3]
    assert matplotlib.colors.to_hex(ground.get_facecolor()) == colours.PAPER
    assert len(texts(ax)) == 6
    assert not plot.attention_heatmap(weights).patches


def test_masked_cells_show_in_large_maps_too():
    weights, mask = np.zeros((200, 200)), al.causal_mask(200)
    with_mask = plot.attention_heatmap(weights, attn_mask=mask, colorbar=False).figure
    without = plot.attention_heatmap(weights, colorbar=False).figure
    assert (pixels(with_mask) != pixels(without)).any(-1).mean() > 0.1


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
    widths = [plot.head_grid(np.full((3, 12, 12), 1 / 12), **width).get_figwidth() for width in ({}, {"width": 6.3})]
    assert np.allclose(widths, [9.5, 6.3])


def test_torch_weights_with_gradient():
    torch = pytest.importorskip("torch")
    weights = torch.full((2, 2), 0.5, requires_grad=True, dtype=torch.bfloat16)
    assert texts(plot.attention_heatmap(weights))[0] == "0.50"


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
    assert repr(plot.attention_heatmap(np.ones((1, 1))).figure) == "Heatmap. 1 query (row) by 1 key (column)."
    figure = plot.head_grid(np.ones((3, 4, 5)) / 5, columns=2)
    assert repr(figure) == "Heatmaps: head 1; head 2; head 3. 4 queries (rows) by 5 keys (columns)."
    assert repr(plot.bar_grid([[0.5, 0.5]], titles=["one"])) == "Bar chart: one."
    figure, ax = plot.subplots()
    ax.imshow(np.eye(2))
    ax.set_title("blocks")  # its axes are neither queries nor keys
    assert repr(figure) == "Heatmap: blocks."
    figure, ax = plot.subplots()
    ax.set_title("a picture without axes")
    ax.axis("off")
    assert repr(figure) == "Drawing: a picture without axes."


def test_tables_tell_the_same_as_html_and_as_text():
    made = plot.table(["d_k", "std(q.k)", "<b>"], [(1, 1.0, "a&b"), (64, 8.0, True)], tint=["std(q.k)"])
    assert repr(made) == "d_k   std(q.k)    <b>\n  1       1.00    a&b\n 64       8.00   True"
    page = made._repr_html_()
    assert "<i>q</i>·<i>k</i>" in page and "&lt;b&gt;" in page and "a&amp;b" in page
    assert re.findall(r"background:(#\w+)", page) == [colours.veil(31, colours.EDGE), colours.veil(255, colours.EDGE)]
    assert page.count("<tbody>") == page.count("</tbody>") == 1  # as in a browser: pages count elements


def test_words_begin_at_the_left_and_numbers_end_at_the_right():
    made = plot.table(["one", "b", "as text"], [(1, "x", "9"), (10, "yz", "-1")])
    assert repr(made) == "one   b    as text\n  1   x          9\n 10   yz        -1"
    assert re.findall(r"text-align:(\w+)", made._repr_html_()) == ["right", "left", "right"] * 3


@pytest.mark.parametrize(
    ("names", "rows", "tint", "words"),
    [(["a"], [(1, 2)], [], "expected 1, got 2"), (["a"], [(1,)], ["b"], r"got \['b'\]. Fix: choose from \['a'\]")],
)
def test_tables_say_what_does_not_fit(names, rows, tint, words):
    with pytest.raises(ValueError, match=words):
        plot.table(names, rows, tint=tint)


def test_head_grid_keeps_slanted_labels_and_titles_inside():
    words = ["[CLS]", "the", "teacher", "praised", "the", "students", "because", "they", "worked", "hard", ".", "[SEP]"]
    maps = np.full((2, 12, 12), 1 / 12)
    figure = plot.head_grid(maps, queries=words, keys=words, titles=["layer 4, head 2", "layer 4, head 12"], columns=2)
    figure.savefig(io.BytesIO(), format="png")
    box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0) >= 0 and box.x1 <= wide and box.y1 <= high


def test_a_lone_letter_in_a_small_map_keeps_its_lowest_row():
    """At 8 points L was drawn as I, and E as F, below the maps of lesson train_and_look."""
    text, mask = "KRUBLEMAKRUB", np.tri(12, dtype=bool)
    figure = plot.head_grid(np.eye(12)[None].repeat(6, 0), queries=text, keys=text, attn_mask=mask, columns=3)
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., 0]
    for label in figure.axes[3].get_xticklabels()[4:6]:  # L and E
        left, bottom, right, top = label.get_window_extent().extents.round().astype(int)
        letter = drawn[len(drawn) - top - 1 : len(drawn) - bottom + 1, left - 1 : right + 1] < 160
        lowest = letter[letter.any(1)][-1]
        assert lowest.sum() >= 3, label.get_text()


def test_one_table_decides_how_blocked_cells_look_in_every_rendering(monkeypatch):
    """Stills and live maps, small and large, the stills of live views, all stops of a page, and rows of a table."""
    ground, stripe = "#FFF3C4", "#B00020"
    monkeypatch.setattr(colours, "MASKED", ground)
    monkeypatch.setattr(colours, "HATCH", stripe)
    svg.hatch.cache_clear()

    def shades(drawn):
        return {tuple(map(int, shade)) for shade in np.unique(np.asarray(drawn)[..., :3].reshape(-1, 3), axis=0)}

    def wears(picture):
        """The colours of the SVG as attributes, and those of images in it."""
        seen = {colours.rgb(colour) for colour in re.findall(r'="(?:var\(--[\w-]+,)?(#[0-9A-Fa-f]{6})', picture)}
        images = (Image.open(io.BytesIO(base64.b64decode(data))) for data in re.findall(r'base64,([^"]*)', picture))
        return seen.union(*(shades(image.convert("RGB")) for image in images))

    def painted(figure):
        """The colours of a figure's patches, as they are before thin lines are smoothed, and of its images."""
        patches = [patch for ax in figure.axes for patch in ax.patches]
        shown = [colour for patch in patches for colour in (patch.get_facecolor(), patch.get_edgecolor())]
        images = [image.make_image(figure.canvas.get_renderer())[0] for ax in figure.axes for image in ax.images]
        return {colours.rgb(matplotlib.colors.to_hex(colour)) for colour in shown}.union(*map(shades, images))

    for n in (4, 17, 65):  # numbers in the cells, an image, a hatch without polygons
        mask, looks = np.tri(n, dtype=bool), {colours.rgb(stripe), *([colours.rgb(ground)] if n == 4 else [])}
        drawn = plot.attention_heatmap(np.tri(n) / n, attn_mask=mask, colorbar=False).figure
        assert looks <= (shades(pixels(drawn)) if n == 65 else painted(drawn)), n
        call = live.flow(al.attention_trace(*np.ones((3, n, 2)), mask)) if n <= 64 else None
        view = live.weights_view(lambda d, n=n: {"a": np.tri(n) / n}, still=(1,), d_k=(1, 2), attn_mask=mask)
        for drawn in filter(None, (call, view)):
            assert looks <= wears(drawn.picture.value), n
            assert looks <= painted(drawn._still()[0]), n
    call = live.flow(al.attention_trace(*np.ones((3, 4, 2)), mask[:4, :4]))
    *_, table = re.findall(r"<svg.*?</svg>", call.picture.value)
    looks = {colours.rgb(ground), colours.rgb(stripe)}
    assert looks <= wears(table)
    kept = frames.unpack_stops(frames.pack_stops(live.masks(n=4)))
    assert looks <= wears(kept["picture"])
    svg.hatch.cache_clear()
    plt.close("all")


SVG = "{http://www.w3.org/2000/svg}"


def in_svg(figure):
    """Return the SVG of a figure, and its columns as elements."""
    written = svg_of(figure)
    root = ElementTree.fromstring(written)
    return written, root.findall(f"{SVG}svg")


def test_two_builds_of_a_notebook_write_the_same_svg():
    first, again = (svg_of(plot.head_grid(np.eye(6)[None], attn_mask=np.tri(6, dtype=bool))) for _ in range(2))
    assert first == again and "url(#" in first


def test_an_svg_has_its_words_as_text_and_as_they_are():
    titles = ["divided by sqrt(d_k)", "$\\frac{a$ <i>"]
    figure = plot.head_grid(np.eye(8)[None].repeat(2, 0), queries=HOSTILE, keys=HOSTILE, titles=titles)
    written, columns = in_svg(figure)
    words = ["".join(text.itertext()).replace("\u200b", "") for text in columns[0].iter(f"{SVG}text")]
    assert {"$x_1$", "<b>&", "U+1F984", "keys (columns)", "divided by √dk"} <= set(words)
    assert "$\\frac{a$ <i>" in ["".join(text.itertext()) for text in columns[1].iter(f"{SVG}text")]
    assert "2026" not in written and "metadata" not in written and "glyph" not in written


def test_the_words_and_shapes_of_an_svg_take_the_colours_of_a_page():
    figure, ax = plot.subplots()
    ax.text(0.5, 0.5, "a key", color=colours.KEY)
    ax.text(0.5, 0.7, "a box", color="black", bbox={"facecolor": "white"})
    written, (column,) = in_svg(figure)
    look = {text.text: (text.get("style"), text.get("class")) for text in column.iter(f"{SVG}text")}
    assert look["a key"] == (f"fill:var(--key-text,{colours.token('key-text')})", "attnlib-word")
    assert look["0.2"] == (f"fill:var(--quiet,{colours.QUIET})", "attnlib-word")
    assert look["a box"] == (f"fill:var(--ink,{colours.INK})", None)
    assert f"fill:var(--paper,{colours.PAPER})" in written and f"stroke:var(--edge,{colours.EDGE})" in written
    written, _ = in_svg(plot.attention_heatmap(np.array([[0.05, 0.95]])).figure)
    inks = {words: fill for fill, words in re.findall(r'<text style="fill:(.*?)".*?>([\d.]+)</text>', written)}
    assert inks == {"0.05": f"var(--on-pale,{colours.INK})", "0.95": "#000000"}


def test_a_map_of_an_svg_is_a_veil_over_the_page_s_own_empty_cell():
    weights = np.array([[0.0, 0.25, 1.0]])
    written, (column,) = in_svg(plot.attention_heatmap(weights, colorbar=False).figure)
    (image,) = column.iter(f"{SVG}image")
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("href").split(",")[1]))))[0]
    shares = colours.SHARES[np.uint8(255 * weights[0])]
    assert [tuple(pixel[:3]) for pixel in pixels[1:].tolist()] == [colours.rgb(colours.KEY)] * 2
    assert np.abs(pixels[:, 3] / 255 - shares).max() < 0.01
    assert f"fill:var(--sunk,{colours.SUNK})" in written


def test_the_columns_of_an_svg_can_stand_alone_and_the_colour_bar_stands_with_the_last():
    written, columns = in_svg(plot.head_grid(np.arange(72).reshape(2, 6, 6) / 72, titles=["one", "two"]))
    assert len(written) < 20_000
    titles = [[text.text for text in column.iter(f"{SVG}text") if text.text in ("one", "two")] for column in columns]
    assert titles == [["one"], ["two"]]
    assert [len([*column.iter(f"{SVG}image")]) for column in columns] == [1, 2]
    assert [text.text for text in columns[1].iter(f"{SVG}text")].count(
        "1"
    ) == 2  # the name of a key, and the end of the scale
    (left, _, wide, _), (next_left, *_) = (map(float, column.get("viewBox").split()) for column in columns)
    assert abs(left + wide - next_left) < 0.2
    bar = [*columns[1].iter(f"{SVG}image")][-1]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(bar.get("href").split(",")[1]))))[:, 0]
    turned = float(re.findall(r"[-\d.]+", bar.get("transform"))[3]) < 0
    assert (pixels[::-1] if turned else pixels)[[0, -1], 3].tolist() == [255, 0]  # 1 is on top


def test_a_column_names_its_rows_where_a_page_sets_it_below_the_others():
    figure = plot.head_grid(np.ones((4, 2, 2)) / 2, queries=["north", "south"], columns=2)
    _, (first, second) = in_svg(figure)
    names = [group for group in first.iter(f"{SVG}g") if group.get("data-names")]
    words = [[text.text for text in group.iter(f"{SVG}text")] for group in names]
    assert words == [["north", "south", "queries (rows)"]] * 2  # of two maps
    places = {place.get("data-of"): place.get("transform") for place in second.iter(f"{SVG}g") if place.get("data-of")}
    assert {*places} == {group.get("data-names") for group in names} and first.get("data-rows") is None
    at, wider = (list(map(float, second.get(box).split())) for box in ("viewBox", "data-rows"))
    shift = float(places["0"][10:].split()[0])
    (name,) = (text for text in names[0].iter(f"{SVG}text") if text.text == "queries (rows)")
    assert wider[0] < float(name.get("x")) - 9 + shift < at[0] and wider[0] + wider[2] == pytest.approx(
        at[0] + at[2], abs=0.2
    )
    _, (left, right) = plot.subplots(1, 2)
    left.plot([0, 1])
    right.plot([0, 2])  # another scale, with numbers of its own
    _, columns = in_svg(left.figure)
    assert [column.get("data-rows") for column in columns] == [None, None]
    right.set_yticks([])
    _, columns = in_svg(left.figure)
    assert [column.get("data-rows") for column in columns] == [None, None]


def test_a_legend_of_a_whole_figure_is_a_part_of_its_own():
    figure, axes = plot.subplots(1, 2)
    for ax in axes:
        ax.plot([0, 1], label="a line")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
    _, columns = in_svg(figure)
    assert [any(text.text == "a line" for text in column.iter(f"{SVG}text")) for column in columns] == [0, 0, 1]
    assert all(
        float(column.get("viewBox").split()[1]) < float(columns[2].get("viewBox").split()[1]) for column in columns[:2]
    )
