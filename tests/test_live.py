"""Live views: one picture per step, nothing a learner types is markup, errors are shown, and saved output is static."""

import asyncio
import itertools
import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from ipywidgets import Widget
from matplotlib import pyplot as plt
from views import VIEWS, attend, both_maps, parsed, strip

import attnlib as al
import attnlib.examples
from attncourse import smollm
from attnlib import live, svg
from attnlib.live import scores_view
from attnlib.symbols import CODE, SYMBOL


def test_maps_grow_sharp_only_without_the_scale():
    view = both_maps()
    slider, largest = view.sliders["d_k"], []
    for d_k in (1, 8, 64, 512):
        slider.value = d_k
        largest.append([float(w.max(-1).mean()) for w in view.shown.values()])
    plain, scaled = zip(*largest, strict=True)
    assert list(view.shown) == ["not scaled", "divided by sqrt(d_k)"]
    assert sorted(plain) == list(plain) and plain[-1] > 0.85
    assert max(scaled) < 0.5


def test_d_k_moves_on_logarithmic_stops_and_opens_where_the_maps_differ():
    view = both_maps()
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
    view = live.scores()
    assert view.sliders["d_k"].description == "features d_k"
    assert view.sliders["d_k"].continuous_update
    heads = live.weights_view(
        lambda h: {"map": np.eye(2)}, still=(1,), num_heads=[("1, d_k = 8", 1), ("2, d_k = 4", 2)]
    )
    assert heads.sliders["num_heads"].description == "num_heads"


def test_display_is_a_static_picture_then_the_widget():
    """Front ends without a kernel show the first output; the second holds only the widget, never its repr."""
    InteractiveShell.instance()  # a view shows its widget only where there is a notebook
    view, before = both_maps(n=4, d_k=(1, 64), still=(1, 8, 64)), plt.get_fignums()
    with capture_output() as captured:
        view._ipython_display_()
    static, note, widget = (output.data for output in captured.outputs)
    assert set(static) == {"image/png", "text/plain"}
    assert "Run this cell" in note["text/html"] and "Run this cell" in note["text/plain"]
    assert list(widget) == ["application/vnd.jupyter.widget-view+json"]
    assert "VBox" not in str(static["text/plain"])
    assert plt.get_fignums() == before


def test_in_vs_code_a_picture_does_not_stand_twice(monkeypatch):
    shell = InteractiveShell.instance()
    monkeypatch.setitem(shell.user_ns, "__vsc_ipynb_file__", "03_scaling.ipynb")
    with capture_output() as captured:
        both_maps(n=4, d_k=(1, 64), still=(1, 8, 64))._ipython_display_()
    assert [list(output.data) for output in captured.outputs] == [["application/vnd.jupyter.widget-view+json"]]


def test_every_point_of_the_scores_stands_in_its_panel():
    view = live.scores(d_k=(1, 4))
    seen = []
    for draw, query in itertools.product(range(21), range(8)):
        view.choose(d_k=4, draw=draw, query=query)
        seen += map(float, re.findall(r'<circle cx="([^"]*)"', view.picture.value))
    assert min(seen) >= 0 and max(seen) <= scores_view.PANEL


def test_the_text_of_the_static_picture_tells_its_numbers():
    view = both_maps(n=4, d_k=(1, 64), still=(1, 8, 64))
    _, text = view._still()
    plt.close("all")
    for d_k in (1, 8, 64):
        view.sliders["d_k"].value = d_k
        for title, weights in view.shown.items():
            assert f"d_k = {d_k}, {title}: mean largest {weights.max(-1).mean():.4f}" in text


def test_one_row_is_drawn_as_bars():
    view = live.weights_view(lambda d_k: {"row": [0.25, 0.75]}, still=(1, 2), d_k=(1, 2), keys=["a", "b"])
    assert "key b: 0.7500" in view.picture.value
    figure, text = view._still()
    assert figure.axes[0].patches and "row: largest 0.7500, entropy 0.5623" in text  # of one row no mean
    plt.close("all")


def test_rows_that_are_no_queries_are_named_everywhere():
    options = {"queries": ["half", "all"], "keys": ["a", "b"], "row_name": "rule"}
    view = live.weights_view(lambda d: {"map": np.array([[0.5, 0.5], [1, 0]])}, still=(1, 2), d=[1, 2], **options)
    view.choose(query=1, key=0)
    figure, _ = view._still()
    for told in (view.picture.value, view._line_below(), repr(figure), figure.axes[0].get_ylabel()):
        assert "rule" in told and "quer" not in strip(told).lower()
    assert "rule 1 “all”, key 0 “a”:" in view._line_below() and "Rule all: most on key a" in view.picture.value
    options["row_name"] = "rule, share"
    view = live.weights_view(lambda d: {"map": np.array([[0.5, 0.5], [1, 0]])}, still=(1, 2), d=[1, 2], **options)
    view.choose(query=1, key=0)
    figure, _ = view._still()
    for told in (view.picture.value, view._line_below(), repr(figure), figure.axes[0].get_xlabel()):
        assert "share" in told and "key" not in strip(told)
    plt.close("all")


@pytest.mark.parametrize(
    ("call", "fragments"),
    [
        (lambda: live.weights_view(lambda d_k: {}, still=(1,)), ["needs a slider", "got none", "Fix:"]),
        (lambda: live.weights_view(lambda d_k: {}, still=(9,), d_k=(1, 4)), ["range (1, 4)", "[9]", "Fix:"]),
    ],
)
def test_errors(call, fragments):
    with pytest.raises(ValueError) as error:
        call()
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


def test_what_a_function_returns_is_told_without_a_traceback_where_only_another_stop_is_wrong():
    view = live.weights_view(lambda d_k: {"map": np.ones((2,) * d_k) / 2}, still=(2,), d_k=(1, 4))
    view.sliders["d_k"].value = 3
    assert "weights of 'map' must be (n_q, n_k)" in view.picture.value and "pick one head" in view.picture.value
    assert "Traceback" not in view.picture.value and "<pre>" not in view.picture.value


def test_what_was_chosen_in_a_larger_map_is_not_framed_in_a_smaller_one():
    view = live.weights_view(lambda n: {"map": np.eye(n)}, still=(4,), n=(1, 5), row=3)
    for n in range(1, 6):
        view.sliders["n"].value = n
        assert "<pre>" not in view.picture.value
        assert view.picture.value.count('stroke="var(--paper,#fbfaf6)" stroke-width') == (n > 3), n
    view.choose(query=1, key=99)
    assert view.picture.value.count('stroke="var(--paper,#fbfaf6)" stroke-width') == 1


def test_a_view_over_several_numbers_has_a_slider_for_each():
    def weights_at(d_k, n, level):
        return {f"n = {n}, level = {level}": [[1 / d_k, 1 - 1 / d_k]]}

    view = live.weights_view(weights_at, still=(2, 8), d_k=(2, 8), n=[10, 20, 30], level=[("low", -1), ("high", 1)])
    assert [view.sliders[name].value for name in ("d_k", "n", "level")] == [8, 20, 1]
    view.sliders["n"].value = 30
    assert view.shown["n = 30, level = 1"].tolist() == [[1 / 8, 7 / 8]]
    _, text = view._still()
    assert "d_k = 2, n = 30, level = 1" in text and "d_k = 8, n = 30, level = 1" in text  # the others where they stand


def test_progress_returns_what_it_was_given():
    assert list(live.progress(range(3), "counting")) == [0, 1, 2]


def test_the_text_of_trained_weights_has_no_number_that_another_machine_would_change():
    def weights_at(step):
        return {"map": np.full((2, 2), 0.5)}

    for trained in (False, True):
        _, text = live.weights_view(weights_at, still=(0, 9), step=(0, 9), trained=trained)._still()
        assert ("0.5000" in text) is not trained and text.startswith("The picture at step = 0, 9;")


def test_a_map_of_a_still_is_named_in_at_most_four_digits():
    stops = [("one", 1.0), ("root", 3**0.5)]
    view = live.weights_view(lambda by: {"map": np.eye(2)}, by=stops, start=1.0, still=(1.0, 3**0.5))
    figure, text = view._still()
    assert [ax.get_title() for ax in figure.axes[:2]] == ["map\nby = 1", "map\nby = 1.732"]
    assert text.startswith("The picture at by = 1, 1.732;")


def test_every_view_is_among_those_that_are_tried():
    assert {*VIEWS} == {*live.__all__} - {"LiveView", "progress", "readings"}


@pytest.mark.parametrize("name", VIEWS)
def test_symbols_are_mathematics_also_said_aloud(name):
    raw = [text for text in re.split("<[^>]*>", VIEWS[name]().picture.value) if SYMBOL.search(re.sub(CODE, "", text))]
    assert raw == []


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_a_static_picture_names_and_large_text(name):
    view = VIEWS[name]()
    figure, text = view._still()
    assert len(text) > 20 and max(map(len, text.splitlines())) <= 120 and not re.search(r"<(svg|rect|div)|&\w+;", text)
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
        if what in ("text", "step") or not (options or hasattr(slider, "max")):
            continue
        sizes = set()
        for value in [v for _, v in options] if options else range(slider.min, slider.max + 1):
            slider.value = value
            sizes.add(tuple(SVG_BOX.findall(view.picture.value)))
        assert len(sizes) == 1, (what, sizes)


def mouse(view, what, **told):
    view.mouse.value = json.dumps({"what": what, "count": id(told), **told})


def test_a_click_chooses_a_cell_and_its_exact_value_is_told():
    view = both_maps(n=6, row=0)
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


def test_a_click_moves_the_slider_where_there_is_one():
    trace = live.flow(al.attention_trace(*al.examples.KARIM.project()))
    mouse(trace, "click", row="query", i=2, column="key", j=1)
    assert (trace.sliders["query"].value, trace.sliders["key"].value) == (2, 1)
    spread = live.scores()
    mouse(spread, "click", row="query", i=5, column="key", j=2, shown="not scaled")
    assert spread.sliders["query"].value == 5
    told = f"query 5, key 2: {svg.exact(spread.shown['not scaled'][5, 2])}"
    assert told in strip(spread.readout.value) and told in spread.picture.value
    trace.choose(query=99, nonsense=1)  # no such query, no such control
    assert trace.sliders["query"].value == 2


def test_images_tell_their_values_too():
    view = live.sentence(attend, "word other " * 20)
    mouse(view, "over", row="query", i=39, column="key", j=38, shown="layer 1, head 1")
    assert "<image" in view.picture.value
    assert f"query 39 “other”, key 38 “word”: {svg.exact(view.shown['layer 1, head 1'][39, 38])}" in strip(
        view.readout.value
    )


def test_every_map_has_targets_for_the_mouse():
    for name, make in VIEWS.items():
        for root in parsed(make().picture.value):
            shown = [rect for rect in root.iter("rect") if rect.get("class") == "attnlib-target"]
            names = (
                "attention in the plane: values",
                "softmax going flat",
                "its arithmetic",
                "heads split and merged",
                "a query and a key that rotate",
                "the next word",
                "a sentence being written",
                "what the model writes, and its loss",
            )
            title = root.find("title").text
            beside = title.startswith(names) or (title.startswith("where heads look, from") and title[-2:] != " 0")
            assert bool(shown) != beside, name


def test_size_enlarges_for_a_projector():
    view = both_maps()
    view.size = 1.5
    assert "zoom:1.5" in view.picture.value


def test_messages_stay_small():
    x = np.random.default_rng(0).normal(size=(512, 16))
    view = live.weights_view(lambda d: {"map": al.softmax(x @ x.T)}, still=(1,), d_k=(1, 2))
    assert len(view.picture.value) <= 150_000


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 2, 4, 3)))), "query"),
        (lambda: live.ribbons({**smollm.stops("blank"), "asks": None}), "d_k"),
    ],
)
def test_while_a_reader_moves_a_picture_its_parts_that_stay_are_not_sent_again(monkeypatch, make, name):
    """Only then, and only until it rests: what a front end opens anew, or saves, has no holes."""
    sent = []
    monkeypatch.setattr(Widget, "_send", lambda self, message, buffers=None: sent.append((self, message["state"])))
    monkeypatch.setattr(live.view, "RESTS", 0.01)
    view = make()
    slider = view.sliders[name]
    sent.clear()

    def pictures():
        values = [state["value"] for widget, state in sent if widget is view.picture and "value" in state]
        sent.clear()
        return values

    def filled(short, last):
        """Put parts of the last picture into holes, as view.js does."""
        found = re.findall(r'<(\w+) data-hole="(\w+)"></\1>', short)
        root = ElementTree.fromstring(last.replace("&nbsp;", " "))
        for tag, part in found:
            whole = ElementTree.tostring(root.find(f".//*[@data-part='{part}']"), encoding="unicode")
            short = short.replace(f'<{tag} data-hole="{part}"></{tag}>', whole.strip())
        return len(found), ElementTree.canonicalize(short)

    async def moves():
        for index in (1, 0, 2):
            last = view.picture.value
            slider.set_state({"index": index})
            (short,), whole = pictures(), view.picture.value
            holes, full = filled(short, last)
            assert holes and len(short) < 0.7 * len(whole) and full == ElementTree.canonicalize(whole)
            assert view.picture.get_state()["value"] == whole and "data-hole" not in whole
        slider.index = 0  # no front end did that
        await asyncio.sleep(0.1)
        moved_by_code, rested = pictures()
        assert moved_by_code == rested == view.picture.value

    asyncio.run(moves())
    slider.set_state({"index": 1})  # and here nothing could send the rest
    assert pictures() == [view.picture.value]


def test_the_first_view_of_a_kernel_brings_its_font():
    two = "from attnlib import live; views = [live.saturation(d_k=(3, 8)) for _ in range(2)]"
    told = f"{two}; print([view.children[-1].value.count('data:font/woff2') for view in views])"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "[2, 0]\n"
