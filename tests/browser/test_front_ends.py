"""The notebooks in the front ends of readers: they run, sliders move pictures, and without a kernel something shows."""

import contextlib
import json
import re
import shutil
import subprocess

import nbformat
import pytest
from front_end import BIN, ROOT, offline, prepared, serious
from views import stops

import attnlib
from attnlib.colours import rgb, token
from tools.series import SERIES, find_notebook

METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}

NUMPY = [notebook.name for notebook in SERIES if notebook.torch != "yes"]
TORCH = [find_notebook("pytorch_module").name]


def shows_something_new():
    """Yield the notebooks of NUMPY with a view that none before has."""
    seen = set()
    for name in NUMPY:
        source = find_notebook(name).source.read_text("utf-8")
        views = set(re.findall(r"\b(live\.\w+|head_map|block|typist)\(", source))
        if views - seen:
            yield name
        seen |= views


# Each view in JupyterLab. In Notebook 7, which is made of JupyterLab's parts, and in the classic notebook, as Colab has
# it, the pages that other tests open there anyway: a slider, numbers to click, options, a question.
CASES = [("lab", n) for n in [*shows_something_new(), *TORCH]]
OPENED = [find_notebook(n).name for n in ("scaling", "vectorized", "masks")]
CASES += [("notebook7", n) for n in OPENED] + [("classic", n) for n in [*OPENED, find_notebook("start_here").name]]
LIVE = ".attnlib-live"


def picture(page):
    return page.evaluate("ask.picture()")


def resized(page, width):
    page.set_viewport_size({"width": width, "height": 768})
    page.evaluate("ask.settled()")


def wait_for_change(page, before, timeout=10_000):
    page.wait_for_function("ask.changed", arg=before, timeout=timeout)


def on_page_of(*cases):
    """Run a test on the page of each (kind, notebook) after Run All, see `ran`."""
    return pytest.mark.parametrize("ran", cases, indirect=True, ids="-".join)


def in_all(name):
    return on_page_of(*((kind, name) for kind in ("lab", "notebook7", "classic")))


@on_page_of(*CASES)
def test_runs_and_its_slider_moves_the_picture(ran):
    from playwright.sync_api import TimeoutError as TimedOut

    front_end, page = ran
    kind = front_end.kind
    assert front_end.errors(page) == []
    for question in page.locator(".attnlib-asks").all():  # it has its slider when it is answered
        question.locator("button").first.click()
    handle, before = front_end.handles(page).first, picture(page)
    handle.scroll_into_view_if_needed()
    handle.focus()
    on, back = ("PageUp", "PageDown") if kind == "notebook7" else ("ArrowRight", "ArrowLeft")  # 7 takes the arrows
    now, last = (handle.get_attribute(f"aria-value{which}") for which in ("now", "max"))  # not in the classic notebook
    at_the_end = now == last if now else "left: 100%" in handle.get_attribute("style")
    for key in (back,) if at_the_end else (on, on, back):  # there and back would change nothing
        page.keyboard.press(key)
        with contextlib.suppress(TimedOut):
            wait_for_change(page, before, timeout=5000)
            break
    wait_for_change(page, before)
    # The static picture and the note below it step aside while the view lives.
    cell = ".output_area" if kind == "classic" else ".jp-OutputArea-child"
    for before in (f"{cell}:has(+ {cell} {LIVE})", f"{cell}:has(+ {cell} + {cell} {LIVE})"):
        assert page.locator(before).count() >= 1 and not page.locator(before).first.is_visible()


@in_all(find_notebook("scaling").name)
def test_a_picture_that_has_grown_comes_to_rest(ran):
    """What is taller on a narrower line could grow and shrink for ever."""
    assert ran[1].evaluate("ask.growth(2000)") == []


@in_all(find_notebook("scaling").name)
def test_a_click_chooses_a_cell_and_the_mouse_reads_it(ran):
    _, page = ran
    resized(page, 1366)
    view = page.locator(".attnlib-view").nth(1)  # histograms, and below them the maps
    says = "([view, words]) => view.innerText.includes(words)"
    for k in (1, 18, 36, 63):
        cell = view.locator("svg rect:has(title)").nth(k)
        cell.scroll_into_view_if_needed()
        cell.hover()
        page.wait_for_function(says, arg=[view.element_handle(), f"query {k // 8}, key {k % 8}"], timeout=5000)
        cell.click()
        page.mouse.move(2, 2)  # what is chosen stays when the mouse has left
        page.wait_for_timeout(300)
        assert f"query {k // 8}, key {k % 8}" in view.inner_text()


@in_all(find_notebook("vectorized").name)
def test_a_click_in_a_whole_call_lights_a_row_and_a_column(ran):
    _, page = ran
    resized(page, 1366)
    for title, words in (
        ("query Ben, key saw: 3.0000", "Query Ben, key saw"),
        ("value saw, feature 1: 1.0000", "feature 1 of the output"),
    ):
        # the row of *she* opens the notebook, the whole call comes behind it
        cell = page.locator(LIVE).locator("rect", has=page.locator(f"title:text-is('{title}')")).last
        cell.scroll_into_view_if_needed()
        cell.click()
        page.locator(f"{LIVE} desc", has_text=words).first.wait_for(state="attached", timeout=5000)


@in_all(find_notebook("masks").name)
def test_arrow_keys_choose_a_cell_without_a_mouse(ran):
    front_end, page = ran
    resized(page, 1366)
    view = page.locator(".attnlib-view").last  # nothing is chosen in it
    stop = view.get_by_role("application", name="arrow keys")
    stop.wait_for(state="attached")
    front_end.handles(page).last.focus()
    for _ in range(2):  # a number that can be typed stands between, but for the classic notebook
        page.keyboard.press("Tab")
        if stop.evaluate("stop => stop === document.activeElement"):
            break
    told, says = view.locator("[aria-live=polite]"), "([told, words]) => told.textContent.startsWith(words)"
    scrolled = stop.bounding_box()["y"]
    for key, words in (
        ("ArrowDown", "not scaled: query 0, key 0: "),
        ("ArrowDown", "not scaled: query 1, key 0: "),
        *(("ArrowRight", f"not scaled: query 1, key {j}: ") for j in range(1, 6)),
        ("ArrowRight", "divided by √dk: query 1, key 0: "),  # the map beside it
        ("ArrowUp", "divided by √dk: query 0, key 0: "),
        ("ArrowUp", "divided by √dk: query 0, key 0: "),  # nothing is above
    ):
        page.keyboard.press(key)
        page.wait_for_function(says, arg=[told.element_handle(), words])
    assert stop.evaluate("stop => stop === document.activeElement") and stop.bounding_box()["y"] == scrolled
    frames = view.locator("svg").first.locator("rect[fill=none][stroke]:not([stroke*='--paper'])")
    assert frames.count() == 2  # the row of the query, the column of the key


@on_page_of(("lab", find_notebook("scaling").name))
def test_keys_move_a_slider_up_and_home_brings_it_back(ran):
    front_end, page = ran
    handle = front_end.handles(page).first
    handle.focus()

    def value_after(key):
        before = picture(page)
        page.keyboard.press(key)
        wait_for_change(page, before)
        return float(handle.get_attribute("aria-valuenow"))

    start = value_after("Home")
    for key in ("ArrowRight", "End", "PageUp"):
        assert value_after(key) > start, key
        assert value_after("Home") == start, key


@on_page_of(("lab", find_notebook("scaling").name))
def test_axe_finds_nothing_serious_in_the_outputs_of_a_notebook(ran):
    """Live views, tables, verdicts of checks; JupyterLab shows a figure as an image, and drops its words."""
    _, page = ran
    for what in (".attnlib-live", ".noUi-handle[aria-label]", ".jp-OutputArea-output table", "text=not tried yet"):
        assert page.locator(what).count(), what
    ours = {"include": [[".jp-OutputArea-output"]], "exclude": [[".jp-RenderedImage > img"], [".jp-RenderedSVG > img"]]}
    assert serious(page, context=ours) == []


@on_page_of(("lab", find_notebook("scaling").name))
def test_after_a_restart_of_the_kernel_the_static_picture_is_back(ran):
    """The last test on this page: its views are gone."""
    _, page = ran
    resized(page, 1366)
    page.evaluate("ask.restart()")
    page.wait_for_function("selector => !ask.boxes(selector).some((box) => box.height)", arg=LIVE)
    note = page.locator(".attnlib-note").first
    assert note.is_visible() and "Run this cell" in note.inner_text()
    assert page.locator(".jp-OutputArea-child:has(+ .jp-OutputArea-child .attnlib-note) img").first.is_visible()


VIEWS = """
import json, numpy as np, attnlib as al, attnlib.examples
from attnlib import live
from attncourse.views import head_map
x = np.random.default_rng(0).normal(size=(8, 32))
q, k = np.random.default_rng(1).normal(size=(2, 6, 64))
def maps_at(d_k):
    return {"not scaled": al.softmax(q[:, :d_k] @ k[:, :d_k].T), "scaled": al.softmax(q[:, :d_k] @ k[:, :d_k].T / 8)}
w = [dict(zip(("bytes", "loss"), np.exp(np.random.default_rng(k).normal(3, 1, 2))), family=f"f{k % 10}",
          name=f"<{k}>", text=" & so on" * 60) for k in range(32)]
stored, long = json.load(open("stops.json", encoding="utf-8"))
---
live.ribbons(stored)
---
live.ribbons(long)
---
live.speaking(long)
---
live.keys_map(*np.random.default_rng(0).normal(size=(2, 40, 64)), tokens=[" something"] * 40)
---
live.keys_map(*np.random.default_rng(0).normal(size=(2, 32, 128)))
---
live.price(w)
---
live.flow(al.attention_trace(x, x, x, is_causal=True))
---
live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 2, 2, 16, 8)), is_causal=True))
---
live.flow(al.attention_trace(*al.examples.KARIM.project()), x=al.examples.KARIM.x)
---
live.plane()
---
from attncourse import check, ships
live.compare(ships.pictured(lambda *a: check.what_came_next.show(check.what_came_next.example, *a)), convoy="*ABCABAC")
---
live.saturation()
---
live.scores()
---
live.masks()
---
attend = lambda text: (words := text.split(), np.full((2, 3, len(words), len(words)), 1 / len(words)))
live.sentence(attend, "The cat saw the dog , and the dog saw the cat .")
---
live.sentence(attend, "The cat saw the dog , and the dog saw the cat . " * 3)
---
live.weights_view(maps_at, d_k=(1, 64), still=(1, 64), row=2)
---
live.weights_view(lambda d_k: {"a row": maps_at(d_k)["scaled"][0]}, d_k=(1, 64), still=(1, 64))
---
live.compare(lambda text, times: (list(text), {"wanted": np.eye(4), "yours": np.eye(4)}, "", ""), convoy="*ABC")
---
live.writing(lambda tokens: (np.zeros(3), {"head 1": np.full(len(tokens), 1 / len(tokens))}), ["a", "cat", "."])
---
head_map.head_map({"cost": np.full((6, 12), 0.25)}, np.full((6, 12, 4, 4), 0.25), ["the", "cat", "sat", "."])
---
words = [(f"{d}, cosine with the true vector 1.00", d) for d in (32, 64)]
live.weights_view(lambda d_k: {"": np.eye(3)}, d_k=words, still=(32,), label="features d_k, divisor follows")
"""


def test_every_view_fits_and_no_text_is_cut(front_ends, new_page):
    """At 1366 x 768 with the file browser open 656 pixels are visible: a view has 600 at most.

    At 1024 x 768 it has 592 pixels across, and no text is under 11 px: what is wider scrolls within itself.
    """
    front_end, page = front_ends("lab"), new_page(1366, 768)
    cells = [nbformat.v4.new_code_cell(code.strip()) for code in VIEWS.split("---")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), front_end.folder / "views.ipynb")
    long = ("<|im_start|>", *[f" {word}" for word in ["quick", "brown", "foxes", "jumping"] * 7])
    (front_end.folder / "stops.json").write_text(json.dumps([stops(), stops(long)]), "utf-8")
    prepared(page).goto(f"{front_end.url}/lab/tree/views.ipynb")
    page.wait_for_function("ask.idle()", timeout=90_000)
    page.evaluate("window.jupyterapp.commands.execute('filebrowser:activate')")
    front_end.run_all(page)
    page.wait_for_function("([selector, n]) => ask.boxes(selector).length === n", arg=[LIVE, len(cells) - 1])
    page.wait_for_timeout(1500)
    assert page.locator(".jp-FileBrowser").bounding_box()["width"] > 200
    boxes = [view.bounding_box() for view in page.locator(".attnlib-view").all()]
    heights = dict(zip([cell.source[:40] for cell in cells[1:]], [box["height"] for box in boxes], strict=False))
    assert max(heights.values()) <= 600, {name: high for name, high in heights.items() if high > 600}
    assert page.evaluate("ask.clipped()") == [] and page.evaluate("ask.crowded()") == []
    assert page.evaluate("ask.crampedSliders()") == []
    # A view is one column: no control overhangs its picture, but for that of the last one, which is long.
    for ends in page.evaluate("ask.columns()")[:-1]:
        assert ends["controls"] <= ends["picture"] + 2, ends
    assert page.evaluate("ask.cutReadouts()") == 0
    page.set_viewport_size({"width": 1024, "height": 768})
    page.wait_for_timeout(1000)
    calls = page.locator(".attnlib-line").all()
    assert calls and all(len({part["bottom"] for part in call.evaluate("ask.places")}) == 1 for call in calls)
    assert page.locator(".attnlib-view").first.bounding_box()["width"] < 600
    assert page.locator(".attnlib-goes-on:has(> .attnlib-live > .attnlib-line)").count() == len(calls)
    assert min(page.evaluate("ask.textSizes()")) >= 11
    assert all(view.evaluate("ask.fitsItsOutput") for view in page.locator(".attnlib-view").all())
    assert page.evaluate("ask.clipped()") == [] and page.evaluate("ask.crowded()") == []


PARTS = """
import attnlib as al, numpy as np
from attnlib import live, svg
from attncourse import smollm
from attnlib.live.controls import integers
from attnlib.live.view import LiveView
grey = '<g class="a"><rect width="9" height="9"/></g>'
def steps(k):
    drawn = [f"<text>{k}</text>" * (1 + k % 2), f"<g>{grey}</g>" if k % 3 else grey, svg.text(9, 9, str(k))]
    return svg.picture(90, 20, "steps", "", drawn), {}
call = live.flow(al.attention_trace(*np.random.default_rng(0).normal(size=(3, 2, 5, 3))))
views = [call, live.ribbons({**smollm.stops("blank"), "asks": None}), call,
         LiveView({"k": integers("k", 0, 9, 0)}, steps, kept=[grey])]
""" + "".join(f"---views[{k}]" for k in range(4))


def test_parts_of_a_picture_that_are_not_sent_again_stand_in_it(front_ends, new_page):
    """Of two outputs of one view, too, of a new one, and where such a part stands elsewhere in the next picture."""
    front_end, page, received = front_ends("lab"), new_page(), []
    cells = [nbformat.v4.new_code_cell(code.strip()) for code in PARTS.split("---")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), front_end.folder / "parts.ipynb")
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(str(data))))
    front_end.open(page, "parts.ipynb")
    front_end.run_all(page)
    page.wait_for_function("ask.boxes('.attnlib-live').length === 4")
    page.wait_for_timeout(1000)  # the script of a view looks for its picture five times a second

    def whole():
        pictures = json.loads(page.evaluate("ask.printed('print(json.dumps([v.picture.value for v in views]))')"))
        return page.evaluate("ask.shows", pictures)

    page.evaluate("ask.run('import json')")
    handles = front_end.handles(page)
    for handle, presses in ((0, 3), (4, 2), (9, 6), (0, 1)):  # a query, a d_k, a step, the query again
        handles.nth(handle).focus()
        for _ in range(presses):
            del received[:]
            page.keyboard.press("ArrowRight")
            page.wait_for_timeout(300)
            assert any("data-hole" in message for message in received) and whole() == [True] * 4
    page.evaluate("ask.again()")
    page.wait_for_function("ask.boxes('.attnlib-live').length === 5")
    page.wait_for_timeout(2500)
    assert page.locator("[data-hole]").count() == 0 and any("data-part" in message for message in received)


@on_page_of(("classic", find_notebook("start_here").name))
def test_the_first_cell_brought_attnlib_and_nothing_else_to_colab(ran):
    front_end, _ = ran
    (site,) = (front_end.home / "venv").rglob("site-packages")
    emulation = {"colab.pth", "google"}
    installed = {path.name for path in site.iterdir()} - emulation
    assert installed == {"attnlib", "attncourse", f"attnlib-{attnlib.__version__}.dist-info"}, (
        "is it in .venv-colab? make clean"
    )


def test_the_first_page_of_make_lab(front_ends, new_page):
    """No question about news lies over it, nothing waits to be saved, and a picture is seen without scrolling."""
    front_end, page = front_ends("lab"), new_page(1366, 768)
    prepared(page).goto(f"{front_end.url}/lab/tree/{find_notebook('start_here').built.name}")
    page.wait_for_function("ask.idle()", timeout=90_000)
    page.wait_for_timeout(3000)  # the question comes after the kernel, and so does what makes a tab dirty
    assert page.locator(".Toastify__toast, .jp-Dialog").all_inner_texts() == []
    assert page.evaluate("ask.notebook().context.model.dirty") is False
    box = page.locator(".jp-Notebook .jp-OutputArea-output img").first.bounding_box()
    status_bar = page.locator("#jp-main-statusbar").bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] <= status_bar["y"], box


def shows_a_static_picture(page):
    """The static picture of a view is the one whose text tells its slider's values."""
    assert "VBox(children" not in page.inner_text("body")
    images = page.locator(".jp-OutputArea-output img, .jp-RenderedImage img")
    return sum(images.nth(i).is_visible() for i in range(images.count()))


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("name", [find_notebook("by_hand").name, find_notebook("multi_head").name])
def test_opened_without_running(front_ends, new_page, tmp_path, name, trusted):
    front_end, page = front_ends("lab"), new_page()
    copy = front_end.folder / f"{name}_{'trusted' if trusted else 'untrusted'}.ipynb"
    shutil.copy(ROOT / "notebooks" / f"{name}.ipynb", copy)
    if trusted:
        subprocess.run([str(ROOT / ".venv" / BIN / "jupyter"), "trust", str(copy)], check=True, capture_output=True)
    front_end.open(page, copy.name)
    page.wait_for_timeout(1000)
    pictures = sum(
        "image/png" in output.get("data", {})
        for cell in nbformat.read(copy, as_version=4).cells
        if not cell.metadata.get("jupyter", {}).get("outputs_hidden")  # what answers a prediction waits for the run
        for output in cell.get("outputs", [])
    )
    assert shows_a_static_picture(page) == pictures
    assert "Error displaying widget" not in page.inner_text("body")


def test_a_readers_saved_notebook_opened_again(front_ends, new_page):
    """A reader runs, saves, and comes back next week: the kernel is another one, the static picture must show."""
    front_end, page = front_ends("lab"), new_page()
    copy = front_end.folder / "saved.ipynb"
    shutil.copy(find_notebook("by_hand").built, copy)
    front_end.open(page, copy.name)
    front_end.run_all(page)
    page.wait_for_selector(LIVE)
    page.evaluate("ask.save()")
    assert "vnd.jupyter.widget-view" in copy.read_text("utf-8")
    page.evaluate("window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.wait_for_timeout(1000)
    notebook = json.loads(copy.read_text("utf-8"))
    notebook["metadata"].pop("widgets", None)  # the widget models are gone with the kernel
    copy.write_text(json.dumps(notebook), "utf-8")
    again = new_page()
    front_end.open(again, copy.name)
    again.wait_for_timeout(1500)
    assert shows_a_static_picture(again) >= 2
    assert "Error displaying widget" not in again.inner_text("body")
    assert again.locator(".attnlib-note").first.is_visible()


@pytest.mark.parametrize("sanitize", [False, True])
def test_as_a_web_page(new_page, tmp_path, sanitize):
    command = [str(ROOT / ".venv" / BIN / "jupyter"), "nbconvert", "--to", "html", "--output-dir", str(tmp_path)]
    command += [f"--HTMLExporter.sanitize_html={sanitize}", str(find_notebook("scaling").built)]
    subprocess.run(command, check=True, capture_output=True)
    text = (tmp_path / f"{find_notebook('scaling').name}.html").read_text("utf-8")
    assert "VBox(children" not in text and "vnd.jupyter.widget-view" not in text
    page = new_page()
    page.goto((tmp_path / f"{find_notebook('scaling').name}.html").as_uri())
    assert page.locator("img").count() >= 3
    assert all(page.locator("img").nth(i).is_visible() for i in range(3))


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"], ids=["light", "dark"], scope="module")
def themed(request, front_ends, chromium):
    context = offline(chromium)
    front_end, page = front_ends("lab"), context.new_page()
    cell = nbformat.v4.new_code_cell("from attnlib import live\nlive.masks()")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata=METADATA), front_end.folder / "maps.ipynb")
    front_end.open(page, "maps.ipynb")
    page.evaluate("theme => ask.useTheme(theme)", request.param)
    page.wait_for_timeout(800)
    front_end.run_all(page)
    page.wait_for_selector(LIVE)
    yield page
    context.close()


def test_accessibility_inside_our_outputs(themed):
    themed.wait_for_selector(".noUi-handle[aria-label*='d_k']")
    assert serious(themed, context={"include": [[".jp-OutputArea-output:has(.attnlib-live)"]]}) == []


def test_text_has_contrast_and_size(themed):
    """Text takes the theme's colour: at least 4.5 : 1 on the page; nothing is under 12 px at 1024 x 768."""
    colours = themed.evaluate("ask.colours()")
    a, b = (luminance([int(v) / 255 for v in re.findall(r"\d+", c)[:3]]) for c in colours)
    assert (max(a, b) + 0.05) / (min(a, b) + 0.05) >= 4.5, colours
    sizes = themed.evaluate("ask.textSizes()")
    assert min(sizes) >= 12


def test_the_theme_of_the_front_end_rules_whatever_the_system_says(themed):
    """A dark system under a light JupyterLab, and the reverse; and the page around a view knows no token of ours."""
    from playwright.sync_api import expect

    dark = themed.evaluate("document.body.dataset.jpThemeLight") == "false"
    themed.emulate_media(color_scheme="light" if dark else "dark")
    ink, handle = "rgb({}, {}, {})".format(*rgb(token("ink", dark))), themed.locator(".attnlib-view .noUi-handle")
    expect(handle.first).to_have_css("background-color", ink, timeout=10_000)
    themed.emulate_media(color_scheme=None)
    assert themed.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink')") == ""


def test_a_picture_grows_with_the_column_by_steps_of_the_sizes_of_text(themed):
    """Its words from 13 to 16 pixels, titles from 16 to 20, and back where the window is narrow or low."""
    grown = "box => Number(getComputedStyle(box.querySelector('.attnlib-picture')).zoom)"
    view = themed.locator(".attnlib-view").first
    for width, height, steps in ((1600, 1200, {1.25, 1.5625}), (760, 1200, {1}), (1600, 480, {1})):
        themed.set_viewport_size({"width": width, "height": height})
        themed.wait_for_timeout(1000)
        assert view.evaluate(grown) in steps and view.evaluate("ask.fitsItsOutput")
        sizes = themed.evaluate("ask.textSizes()")
        assert not [size for size in sizes if all(abs(size - one) > 0.5 for one in (12, 13, 15, 16, 18.75, 20))], sizes


def test_two_maps_stand_beside_each_other_on_a_projector(themed):
    themed.set_viewport_size({"width": 1024, "height": 768})
    themed.wait_for_timeout(1000)
    tops = themed.evaluate("ask.tops('.attnlib-live figure')")
    assert len(tops) == 2 and tops[0] == tops[1]


def luminance(rgb):
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
