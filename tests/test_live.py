"""Live views: one picture per step, nothing a learner types is markup, errors are shown, and saved output is static."""

import base64
import io
import json
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

import attnlib as al
import attnlib.examples
from attnlib import live, svg
from attnlib.colours import KEY, QUERY, rgb
from attnlib.figure import save
from attnlib.live import frames, moving, sentence_view

SVG = re.compile(r"<svg.*?</svg>", re.S)


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
        (lambda: live.weights_view(lambda d_k: {}, still=(1,)), ["needs a slider", "got none", "Fix:"]),
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


WORDS = ("<s>", "a & b", "the", "cat", "<i>", ".")


def next_word(tokens, d_k):
    """A model that likes what it has not said yet; its heads look at one token each, sharper at a small d_k."""
    logits = np.array([-9.0, *(-tokens.count(word) for word in WORDS[1:])])
    scores = np.eye(len(tokens))[[0, -1]] * 8 / d_k**0.5
    return logits, dict(zip(("first", "<last>"), al.softmax(scores), strict=True))


def test_writing_shows_the_heads_and_the_next_word_at_every_step():
    view = live.writing(next_word, WORDS, prompt=("the",), longest=6, seed=2)
    step = view.sliders["step"]
    for at in range(step.max + 1):
        step.value = at
        n = view.shown["weights"].shape[1]
        assert n <= at + 2  # the start and the prompt stand before the first step; a sentence may end
        drawn = [text.text for root in parsed(view.picture.value) for text in root.iter("text")]
        assert {"the", "first", "<last>", "the next word"} <= set(drawn)
    view.sliders["d_k"].value = 1
    assert view.shown["weights"][0, 0] > 0.99
    view.sliders["d_k"].value = 512
    assert view.shown["weights"][0, 0] < 0.7


def test_writing_at_temperature_0_takes_the_most_likely_and_the_same_chance_serves_everywhere():
    def steady(tokens, d_k):
        return np.array([0, 1.0, 2.0]), {"head": np.full(len(tokens), 1 / len(tokens))}

    def written(view):
        sentence, _ = parsed(view.picture.value)
        return [t.text for t in sentence.iter("text") if t.get("y") == "44"]

    view = live.writing(steady, ["<s>", "a", "b"], longest=8, step=6)
    first = written(view)
    view.sliders["temperature"].value = 0
    assert written(view) == ["b"] * 7 != first
    view.sliders["temperature"].value = 1
    view.sliders["d_k"].value = 64
    assert written(view) == first  # this model does not know d_k, and the random numbers are the same
    texts = set()
    for draw in range(6):
        view.sliders["sentence"].value = draw
        texts.add(tuple(written(view)))
    assert len(texts) > 3


VIEWS = {
    "scaling": live.scaling,
    "flow": lambda: live.flow(al.attention_trace(*al.examples.ASYMMETRIC.project(), is_causal=True)),
    "plane": live.plane,
    "scores": live.scores,
    "masks": live.masks,
    "heads": live.heads,
    "sentence": live.sentence,
    "weights_view": lambda: live.weights_view(lambda d: {"a": np.eye(3) / d}, still=(1,), d_k=(1, 2)),
    "writing": lambda: live.writing(next_word, WORDS, start="<s>", longest=9),
    "compare": lambda: live.compare(compared, convoy="*AB"),
}


def compared(text, times):
    """A convoy of letters; anything else is none."""
    if not text.strip("*").isalpha():
        return [], {}, ([], []), f"{text} is no convoy."
    maps = {"wanted": np.eye(len(text)), "yours": al.softmax(times * np.eye(len(text)))}
    return list(text), maps, (["ship", "wanted"], [(ship, 1.0) for ship in text]), "Anything goes in row 0."


def test_compare_follows_the_text_and_the_factor_and_says_what_is_no_convoy():
    view = live.compare(compared, convoy="*AB")
    soft = view.shown["yours"].max()
    view.sliders["times"].value = 10
    assert view.shown["yours"].max() > soft and "Scores times 10. Anything goes in row 0." in view.picture.value
    view.sliders["convoy"].value = "*ABCD"
    assert view.shown["wanted"].shape == (5, 5) and view.picture.value.count("<tr>") == 6
    view.choose(query=4, key=0)
    assert "query 4 “D”, key 0 “*”" in strip(view.readout.value)
    view.sliders["convoy"].value = "*A"  # the query that was chosen is gone
    assert view.shown["wanted"].shape == (2, 2) and "<pre>" not in view.picture.value
    view.sliders["convoy"].value = "<b>"
    assert view.shown == {} and "&lt;b&gt; is no convoy." in view.picture.value


def test_a_still_that_stands_takes_little_room():
    view = live.compare(compared, convoy="*ABACDB")
    figure, _ = view._still()
    small, large = view._moved(figure), save(figure)
    assert not Image.open(io.BytesIO(small)).is_animated and len(small) < len(large) / 2
    shades = np.asarray(Image.open(io.BytesIO(small)).convert("RGBA"))[..., :3].reshape(-1, 3)
    assert {rgb(QUERY), rgb(KEY)} <= {tuple(map(int, shade)) for shade in np.unique(shades, axis=0)}


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
    spread = live.scores()
    mouse(spread, "click", row="query", i=5, column="key", j=2, shown="not scaled")
    assert spread.sliders["query"].value == 5
    told = f"query 5, key 2: {svg.exact(spread.shown['not scaled'][5, 2])}"
    assert told in strip(spread.readout.value) and told in spread.picture.value
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
            beside = root.find("title").text in ("largest weight", "its arithmetic", "the next word")
            assert bool(shown) != beside, name


def element(picture):
    return ElementTree.fromstring(f"<div>{picture.replace('&nbsp;', '&#160;')}</div>")


def at_stop(kept, k):
    """Return picture k as the script of a page makes it of what is kept."""
    root = element(kept["picture"])
    nodes = list(root.iter())
    for place, attribute, before, after, values in kept["changes"]:
        node = nodes[place]
        if attribute and values[k] is None:
            node.attrib.pop(attribute, None)
        elif attribute:
            node.set(attribute, before + values[k] + after)
        else:
            inside = element(before + values[k] + after)
            node.text, node[:] = inside.text, list(inside)
    return root


def canonical(root):
    return ElementTree.canonicalize(ElementTree.tostring(root, "unicode"))


@pytest.mark.parametrize("name", VIEWS)
def test_without_a_kernel_every_stop_shows_what_the_kernel_shows(name):
    view = VIEWS[name]()
    kept = frames.unpacked(frames.packed(view))
    labels, values = zip(*frames.stops_of(view.sliders[view.main]), strict=True)
    assert kept["name"] == view.main and kept["labels"] == list(labels)
    assert values[kept["at"]] == view.sliders[view.main].value
    pictures = set()
    for k, value in enumerate(values):
        drawn = canonical(element(view.draw(**{view.main: value})[0]))
        assert canonical(at_stop(kept, k)) == drawn
        pictures.add(drawn)
    assert len(pictures) > 1


def test_a_still_carries_the_pictures_of_its_view_where_front_ends_pass_over_them():
    InteractiveShell.instance()
    view = live.scaling(n=8, row=4)
    with capture_output() as captured:
        view._ipython_display_()
    still = captured.outputs[0]
    assert list(still.metadata) == ["attnlib"] and len(still.metadata["attnlib"]) <= 4 / 3 * frames.LARGEST + 4
    assert len(frames.unpacked(still.metadata["attnlib"])["labels"]) == 18


def test_where_the_pictures_cannot_be_had_the_still_goes_alone(monkeypatch, capsys):
    def weights_at(step):
        print("a reader's own line")
        if step > 3:
            raise ValueError("too far")
        return {"map": np.full((2, 2), 1 / step)}

    def view(last):
        return live.weights_view(weights_at, still=(1,), step=(1, last))

    assert frames.packed(view(3)) and frames.packed(view(4)) is None
    assert capsys.readouterr().out == 2 * "a reader's own line\n"  # of the two pictures that were made at the start
    assert live.LiveView({"text": live.controls.typed("text", "")}, lambda _: ("", {}), None).main is None
    for limit in ("SECONDS", "LARGEST"):
        with monkeypatch.context() as patch:
            patch.setattr(frames, limit, 0)
            assert frames.packed(view(3)) is None, limit


def test_a_control_of_many_values_gives_evenly_spacedstops_of():
    view = live.weights_view(lambda n: {"map": np.full((1, 2), 1 / n)}, still=(77,), n=(1, 500))
    values = [value for _, value in frames.stops_of(view.sliders["n"])]
    assert {1, 77, 500} <= set(values) and len(values) <= frames.STOPS + 2 and values == sorted(values)


def test_after_its_pictures_a_view_still_tells_of_the_one_it_shows():
    view = live.masks(n=5)
    before = view._tell("not scaled", 0, 4)
    frames.packed(view)
    assert view._tell("not scaled", 0, 4) == before and "blocked" in before


def test_size_enlarges_for_a_projector():
    assert "zoom:1.5" in live.scaling(size=1.5).picture.value


def test_messages_stay_small():
    x = np.random.default_rng(0).normal(size=(512, 16))
    view = live.weights_view(lambda d: {"map": al.softmax(x @ x.T)}, still=(1,), d_k=(1, 2))
    assert len(view.picture.value) <= 150_000


def moving_still(view):
    """Return (first frame as it is without moving, the animated PNG) of a view."""
    change, start = view._moving
    plain = Image.open(io.BytesIO(save(view._still()[0])))
    values = [value for _, value in frames.stops_of(view.sliders[view.main])]
    png = moving.moving_png(view._still()[0], change, values, start)
    plt.close("all")
    return plain, png, values


@pytest.mark.parametrize(
    ("still", "tokens"), [((2, 16, 128), 1), ((2, 16, 128), 9), ((1, 32), 1), ((1, 32), 5), ((16,), 5)]
)
def test_a_still_moves_three_rounds_and_begins_and_ends_with_itself(still, tokens):
    query, key = np.random.default_rng(0).normal(size=(2, 9, 128))
    view = live.weights_view(
        lambda d: {"raw": al.softmax(query[:tokens, :d] @ key[:, :d].T)}, d_k=(1, 128), still=still
    )
    plain, png, _ = moving_still(view)
    movie = Image.open(io.BytesIO(png))
    assert len(png) <= moving.LARGEST and movie.info["loop"] == 3 and movie.n_frames >= 4
    shown = []
    for k in range(movie.n_frames):
        movie.seek(k)
        shown.append(np.asarray(movie.convert("RGBA")).astype(int))
    assert np.array_equal(shown[0], shown[-1])
    assert len({x.tobytes() for x in shown}) == movie.n_frames - 1
    first = np.asarray(plain.convert("RGBA")).astype(int)
    visible = first[..., 3:] > 0
    assert first.shape == shown[0].shape and np.abs((first - shown[0]) * visible).mean() < 1
    for role in (QUERY, KEY) if tokens > 1 else (KEY,):
        assert (shown[3][..., :3] == rgb(role)).all(-1).sum() > 100, role


def test_a_still_whose_numbers_leave_no_room_moves_without_them():
    view = live.scaling(n=6, d_k=(1, 256))
    plain, png, _ = moving_still(view)
    movie = Image.open(io.BytesIO(png))
    assert len(png) <= moving.LARGEST and movie.n_frames >= 5
    numbers, none = (np.asarray(picture.convert("RGBA")).astype(int) for picture in (plain, movie))
    differ = np.abs(numbers - none).sum(-1) > 100
    rows, columns = np.nonzero(differ)
    assert differ.mean() > 0.01 and rows.min() > 30 and columns.min() > 90  # in the maps alone: labels stay
    assert {tuple(rgb(QUERY)), tuple(rgb(KEY))} <= {tuple(shade[:3]) for shade in none.reshape(-1, 4).tolist()}


def test_each_frame_of_a_still_shows_its_value():
    view = live.scaling(n=4, d_k=(1, 64))
    figure, _ = view._still()
    change, _ = view._moving
    moved = change(figure, 32)
    assert [ax.title.get_gid() for ax in moved] == ["not scaled\nd_k = 32", "divided by sqrt(d_k)\nd_k = 32"]
    for ax, weights in zip(moved, view.draw(d_k=32)[1].values(), strict=True):
        assert len(ax.images) == 1 and np.array_equal(ax.images[0].get_array(), weights)
        assert len(ax.texts) == 16 and ax.texts[0].get_text() == f"{weights[0, 0]:.2f}"
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].texts[:1]] != []
    plt.close(figure)


def test_a_still_is_the_same_at_each_build_and_stays_still_where_it_would_be_too_large(monkeypatch):
    view = live.scaling(n=4, d_k=(1, 64))
    assert moving_still(view)[1] == moving_still(view)[1]
    monkeypatch.setattr(moving, "LARGEST", 1000)
    assert moving_still(view)[1] is None


def test_a_still_that_is_too_large_to_move_shows_what_it_would_show_anyway(monkeypatch):
    """The try draws other values into the figure and hides axes."""
    InteractiveShell.instance()
    monkeypatch.setattr(moving, "LARGEST", 1000)
    view = live.scaling(n=4, d_k=(1, 64))
    with capture_output() as captured:
        view._ipython_display_()
    shown = Image.open(io.BytesIO(base64.b64decode(captured.outputs[0].data["image/png"])))
    assert np.array_equal(shown, Image.open(io.BytesIO(save(view._still()[0]))))
    plt.close("all")
