"""What a live view leaves where no kernel runs: a still that moves by itself, and the pictures of all stops."""

import base64
import io
import math
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib import pyplot as plt
from PIL import Image
from views import VIEWS, both_maps, compared

import attnlib as al
import attnlib.examples
from attnlib import live
from attnlib.colours import KEY, PAPER, rgb, token
from attnlib.figure import save, subplots, svg
from attnlib.live import frames, moving, still


def test_a_still_that_stands_takes_little_room():
    view = live.compare(compared, convoy="*ABACDB")
    figure, _ = view._still()
    small, large = view._animated_png(figure), save(figure)
    assert not Image.open(io.BytesIO(small)).is_animated and len(small) < len(large) / 2
    shades = np.asarray(Image.open(io.BytesIO(small)).convert("RGBA"))[..., :3].reshape(-1, 3)
    assert {rgb(token("query-text")), rgb(KEY)} <= {tuple(map(int, shade)) for shade in np.unique(shades, axis=0)}


def element(picture):
    return ElementTree.fromstring(f"<div>{picture.replace('&nbsp;', '&#160;')}</div>")


def at_stop(kept, at):
    """Return the picture at a stop of each control as the script of a page makes it of what is kept."""
    root = element(kept["picture"])
    nodes = list(root.iter())
    for place, attribute, before, after, controls, which, values in kept["changes"]:
        node, k = nodes[place], 0
        for knob in controls:
            k = k * len(kept["knobs"][knob]["labels"]) + at[knob]
        value = values[ord(which[k]) - 48 if which else k]
        if attribute and value is None:
            node.attrib.pop(attribute, None)
        elif attribute:
            node.set(attribute, before + value + after)
        else:
            inside = element(before + value + after)
            node.text, node[:] = inside.text, list(inside)
    return root


def nodes_of(root):
    """Return all that stands in a tree: equal only for equal trees."""
    return tuple((x.tag, *sorted(x.attrib.items()), x.text or "", x.tail or "", len(x)) for x in root.iter())


@pytest.mark.parametrize("name", VIEWS)
def test_without_a_kernel_every_stop_shows_what_the_kernel_shows(name):
    """Of all combinations of stops a hundred, and each stop of each control."""
    view = VIEWS[name]()
    kept = frames.unpack_stops(frames.pack_stops(view))
    every, stops = {knob.key: knob for knob in frames.knobs_of(view)}, []
    for told in kept["knobs"]:
        knob = every[told["key"]]
        assert told["name"] == knob.name and knob.stops[0][0] == told["labels"][0]
        stops.append([value for label, value in knob.stops if label in told["labels"]])
        assert stops[-1][told["at"]] == knob.at == view._values()[knob.key]
    begun = [told["at"] for told in kept["knobs"]]
    places = {(*begun[:i], k, *begun[i + 1 :]) for i, one in enumerate(stops) for k in range(len(one))}
    rng = np.random.default_rng(0)
    places |= {tuple(int(rng.integers(len(one))) for one in stops) for _ in range(100)}
    pictures = set()
    for at in places:
        if len({told.get("alone") for told, k in zip(kept["knobs"], at, strict=True) if k != told["at"]}) > 1:
            continue  # what moves alone brings the others back
        values = {told["key"]: one[k] for told, one, k in zip(kept["knobs"], stops, at, strict=True)}
        drawn = nodes_of(element(view.draw(**values)[0]))
        assert nodes_of(at_stop(kept, at)) == drawn
        pictures.add(drawn)
    assert len(pictures) > 1


def test_controls_share_the_room_of_a_page_and_a_click_finds_its_own():
    """All of a call; of many combinations stops are thinned, never both ends nor where a control stands."""
    call = live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 1, 2, 4, 3))))
    told = {knob["key"]: knob for knob in frames.unpack_stops(frames.pack_stops(call))["knobs"]}
    assert {key: len(knob["labels"]) for key, knob in told.items()} == {"query": 4, "key": 4, "feature": 3, "head": 2}
    many = live.weights_view(
        lambda a, b, c: {"map": np.full((2, 2), 1 / (a + b + c))}, still=(1,), a=(1, 9), b=[*range(40)], c=[*range(40)]
    )
    knobs = frames.unpack_stops(frames.pack_stops(many))["knobs"]
    assert [len(knob["labels"]) for knob in knobs[:1]] == [9] and all(len(knob["labels"]) < 10 for knob in knobs[1:])
    assert all(knob["values"][0] == 0 and knob["values"][-1] == 39 and 20 in knob["values"] for knob in knobs[1:])
    assert math.prod(len(knob["labels"]) for knob in knobs) <= frames.MOST_PICTURES
    chosen = live.weights_view(lambda d: {"map": np.full((3, 3), 1 / d)}, still=(1,), row=1, d=(1, 3), queries="abc")
    query = frames.unpack_stops(frames.pack_stops(chosen))["knobs"][1]
    assert query["labels"] == ["0 “a”", "1 “b”", "2 “c”"] and query["at"] == 1


def test_a_control_that_changes_nothing_is_not_drawn_and_a_row_of_buttons_is_no_slider():
    def knobs_of(**sliders):
        view = live.weights_view(lambda a, b=1: {"map": np.full((2, 2), 1 / a**2)}, still=(1,), **sliders)
        kept = frames.unpack_stops(frames.pack_stops(view))
        assert "<svg" in kept["picture"]  # in the colours of the page, also where nothing moves it
        return [knob["key"] for knob in kept["knobs"]]

    assert knobs_of(a=(1, 3), b=[1, 2, 3]) == ["a"] and knobs_of(a=[-1, 1]) == []
    told = frames.unpack_stops(frames.pack_stops(live.masks(n=4)))["knobs"]
    assert [knob["key"] for knob in told if knob.get("choice")] == ["mask"] and len(told) > 1


def test_a_still_carries_the_pictures_of_its_view_where_front_ends_pass_over_them(monkeypatch):
    InteractiveShell.instance()
    monkeypatch.setenv("ATTNLIB_PAGES", "1")
    view = both_maps(row=4)
    with capture_output() as captured:
        view._ipython_display_()
    still = captured.outputs[0]
    assert list(still.metadata) == ["attnlib"] and len(still.metadata["attnlib"]) <= 4 / 3 * frames.MOST_BYTES + 4
    assert len(frames.unpack_stops(still.metadata["attnlib"])["knobs"][0]["labels"]) == 18
    monkeypatch.setenv("ATTNLIB_PAGES", "")  # a reader's kernel does not draw what only pages show
    with capture_output() as captured:
        small_view()._ipython_display_()
    assert not captured.outputs[0].metadata


def test_where_the_pictures_cannot_be_had_the_still_goes_alone(monkeypatch, capsys):
    def weights_at(step):
        print("a reader's own line")
        if step > 3:
            raise ValueError("too far")
        return {"map": np.full((2, 2), 1 / step)}

    def view(last):
        return live.weights_view(weights_at, still=(1,), step=(1, last))

    assert frames.pack_stops(view(3)) and frames.pack_stops(view(4)) is None
    assert capsys.readouterr().out == 2 * "a reader's own line\n"  # of the two pictures that were made at the start
    assert live.LiveView({"text": live.controls.text_field("text", "")}, lambda _: ("", {}), None).main is None
    monkeypatch.setattr(frames, "MOST_BYTES", 0)
    assert frames.pack_stops(view(3)) is None


def test_a_control_of_many_values_gives_evenly_spaced_stops():
    view = live.weights_view(lambda n: {"map": np.full((1, 2), 1 / n)}, still=(77,), n=(1, 500))
    values = [value for _, value in frames.stops_of(view.sliders["n"])]
    assert {1, 77, 500} <= set(values) and len(values) <= frames.MOST_STOPS + 2 and values == sorted(values)


def test_after_its_pictures_a_view_still_tells_of_the_one_it_shows():
    view = live.masks(n=5)
    before = view._tell("not scaled", 0, 4)
    frames.pack_stops(view)
    assert view._tell("not scaled", 0, 4) == before and "blocked" in before


def moving_still(view):
    """Return the animated PNG of a view."""
    change, start = view._moving
    values = [value for _, value in frames.stops_of(view.sliders[view.main])]
    png = moving.moving_png(view._still()[0], change, values, start)
    plt.close("all")
    return png


def plain_still(view):
    """Return the first frame as it is without moving, as an array (height, width, RGBA)."""
    plain = Image.open(io.BytesIO(save(view._still()[0])))
    plt.close("all")
    return np.asarray(plain.convert("RGBA")).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(("still", "tokens"), [((2, 16, 128), 9), ((1, 32), 1), ((16,), 5)])
def test_a_still_moves_three_rounds_and_begins_and_ends_with_itself(still, tokens):
    query, key = np.random.default_rng(0).normal(size=(2, 9, 128))
    view = live.weights_view(
        lambda d: {"raw": al.softmax(query[:tokens, :d] @ key[:, :d].T)}, d_k=(1, 128), still=still
    )
    png = moving_still(view)
    movie = Image.open(io.BytesIO(png))
    assert len(png) <= moving.MOST_BYTES and movie.info["loop"] == 3 and movie.n_frames >= 4
    shown = []
    for k in range(movie.n_frames):
        movie.seek(k)
        shown.append(np.asarray(movie.convert("RGBA")).astype(int))
    assert np.array_equal(shown[0], shown[-1])
    assert len({x.tobytes() for x in shown}) == movie.n_frames - 1
    first = plain_still(view)
    visible = first[..., 3:] > 0
    assert first.shape == shown[0].shape and np.abs((first - shown[0]) * visible).mean() < 1
    for role in ("query-text", "key-text") if tokens > 1 else ("key-text",):
        assert (shown[3][..., :3] == rgb(token(role))).all(-1).sum() > 20, role


@pytest.mark.slow
def test_a_still_whose_numbers_leave_no_room_moves_without_them(monkeypatch):
    monkeypatch.setattr(moving, "MOST_BYTES", 40_000)  # two maps of 4 x 4 cells, which draw quickly, need 64,000
    view = both_maps(n=4, d_k=(1, 8), still=(1, 4, 8))
    png = moving_still(view)
    movie = Image.open(io.BytesIO(png))
    assert len(png) <= moving.MOST_BYTES and movie.n_frames >= 5
    numbers, none = plain_still(view), np.asarray(movie.convert("RGBA")).astype(int)
    differ = np.abs(numbers - none).sum(-1) > 100
    rows, columns = np.nonzero(differ)
    assert differ.mean() > 0.01 and rows.min() > 30 and columns.min() > 80  # in the maps alone: labels stay
    assert {rgb(token("query-text")), rgb(KEY)} <= {tuple(shade[:3]) for shade in none.reshape(-1, 4).tolist()}


def test_each_frame_of_a_still_shows_its_value():
    view = both_maps(n=4, d_k=(1, 64), still=(1, 8, 64))
    figure, _ = view._still()
    change, _ = view._moving
    moved = change(figure, 32)
    assert [ax.title.get_gid() for ax in moved] == ["not scaled\nd_k = 32", "divided by sqrt(d_k)\nd_k = 32"]
    figure.canvas.draw()
    for ax, weights in zip(moved, view.draw(d_k=32)[1].values(), strict=True):
        assert len(ax.images) == 1 and np.array_equal(ax.images[0].get_array(), weights)
        assert len(ax.texts) == 16 and ax.texts[0].get_text() == f"{weights[0, 0]:.2f}"
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].texts[:1]] != []
    plt.close(figure)


def small_view():
    """Few cells and frames: each frame takes a tenth of a second and more."""
    return live.weights_view(lambda d: {"map": np.full((2, 2), 1 / d)}, still=(1,), d_k=(1, 3))


@pytest.mark.slow
def test_a_still_is_the_same_at_each_build_and_stays_still_where_it_would_be_too_large(monkeypatch):
    view = small_view()
    first, again = (moving_still(view) for _ in range(2))
    assert first and first == again
    monkeypatch.setattr(moving, "MOST_BYTES", 1000)
    assert moving_still(view) is None


@pytest.mark.slow
def test_a_still_that_is_too_large_to_move_shows_what_it_would_show_anyway(monkeypatch):
    """The try draws other values into the figure and hides axes."""
    InteractiveShell.instance()
    monkeypatch.setattr(moving, "MOST_BYTES", 1000)
    view = small_view()
    with capture_output() as captured:
        view._ipython_display_()
    shown = Image.open(io.BytesIO(base64.b64decode(captured.outputs[0].data["image/png"])))
    assert np.array_equal(np.asarray(shown.convert("RGBA")), plain_still(view))


def test_in_a_notebook_a_picture_is_a_sheet_of_paper_with_a_margin_and_round_corners():
    """Opaque, so that a dark page does not shine through; and nothing of the picture lies at its edge."""
    drawn = Image.open(io.BytesIO(save(still.figure(VIEWS["scores"]().picture.value)))).convert("RGBA")
    assert drawn.getpixel((0, 0))[3] == 0
    edge = drawn.crop((12, 0, drawn.width - 12, 12)).convert("RGB").getcolors()
    assert [colour for _, colour in edge] == [rgb(PAPER)] and drawn.getpixel((12, 4))[3] == 255
    made = svg(subplots()[0])
    assert re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)".*?<rect x="\1" y="\2" width="\3" height="\4" rx="6"', made)
