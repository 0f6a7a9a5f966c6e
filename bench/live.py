"""Live views: how long a step takes in the kernel, and from a key press to the changed picture in a real JupyterLab.

The browser part needs what `make test-browser` installs; without it only the kernel is measured.
"""

import importlib.util
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

import attnlib as al
from attnlib import live
from attnlib.live.frames import pack_stops

from .timing import verdict

ROOT = Path(__file__).resolve().parent.parent
WATCH = Path(__file__).with_suffix(".js").read_text("utf-8")
# Views in JupyterLab, side by side; `speaking` draws least.
VIEWS = {
    "speaking": "live.speaking(smollm.stops('writing'))",
    "weights_view": "live.weights_view(maps, d_k=list(range(1, 65)), start=1, still=(1, 64), row=0)",
    "flow": "live.flow(al.attention_trace(q[:, :8], k[:, :8], k[:, :8]))",
    "ribbons": "live.ribbons({**smollm.stops('blank'), 'asks': None})",
    "split_heads": "live.split_heads('Anna saw Ben she'.split())",
}
OURS = """
import numpy as np, attnlib as al
from attnlib import live
from attncourse import smollm
q, k = np.random.default_rng(0).normal(size=(2, 8, 512))
maps = lambda d_k: {"not scaled": al.softmax(q[:, :d_k] @ k[:, :d_k].T)}
view = VIEW
view
"""
INTERACT = """
%matplotlib inline
import numpy as np, attnlib as al, matplotlib.pyplot as plt
from ipywidgets import interact, IntSlider
q, k = np.random.default_rng(0).normal(size=(2, 8, 512))
def draw(d_k):
    w = al.softmax(q[:, :d_k] @ k[:, :d_k].T)
    figure, (a, b) = plt.subplots(1, 2, figsize=(8, 4))
    a.imshow(w, vmin=0, vmax=1)
    for i in range(8):
        for j in range(8):
            a.text(j, i, f"{w[i, j]:.2f}", ha="center", va="center", fontsize=7)
    b.bar(range(8), w[0])
    b.set_title(f"d_k = {d_k}")
    plt.show()
interact(draw, d_k=IntSlider(min=1, max=512, value=1));
"""


def eight():
    """Return a map of 8 queries and keys, with the weights of one as bars."""
    q, k = np.random.default_rng(0).normal(size=(2, 8, 512))
    return live.weights_view(lambda d: {"map": al.softmax(q[:, :d] @ k[:, :d].T)}, d_k=(1, 512), still=(1, 64), row=0)


def main():
    print("in the kernel: a slider step, first quartile of 400: a shared machine is slower at times, never quicker")
    x = np.random.default_rng(0).normal(size=(512, 64))
    several = np.random.default_rng(0).dirichlet(np.ones(200), size=(2, 4, 200))
    big = live.weights_view(lambda d: {"map": al.softmax(x[:, :d] @ x[:, :d].T)}, still=(1,), d_k=(1, 64))
    for what, view, slider, wanted in (
        ("an 8 x 8 map and bars", eight(), "d_k", 1),
        ("one map at n = 512", big, "d_k", 30),
        ("a whole call, 8 x 8", live.flow(al.attention_trace(*[x[:8, :8]] * 3)), "query", 1),
        ("a whole call, 64 x 64", live.flow(al.attention_trace(*[x[:64]] * 3)), "query", 1),
        ("plane", live.plane(), "angle", 1),
        ("histogram of scores, softmax", live.scores(), "d_k", 1),
        ("masks, 6 x 6", live.masks(), "d_k", 1),
        ("ribbons over 14 words, 11 stops", live.ribbons(made_up_stops()), "d_k", 1),
        ("what is written, and its loss", live.speaking(made_up_stops()), "d_k", 1),
        ("keys of 40 tokens, 64 features", live.keys_map(several[0, 0, :40, :64], several[1, 0, :40, :64]), "bits", 1),
        ("a price of 32 points", live.price(points()), "point", 1),
        ("sentence of 200 words", live.sentence(lambda text: (text.split(), several), "word " * 200), "head", 30),
    ):
        milliseconds, size = step(view, slider)
        print(f"  {what:<30} {milliseconds:6.2f} ms  {verdict(milliseconds, wanted):<24} message {size / 1000:4.0f} kB")
    print(f"  memory growth over 2,000 steps {growth():.1f} MB")
    if importlib.util.find_spec("playwright") is None:
        print("in the browser: skipped, make test-browser installs what it needs")
        return
    in_browser()


def made_up_stops():
    """What a model could store: 14 words, at 11 stops of d_k."""
    stops = []
    for d_k in (1, 4, 16, 32, 48, 64, 80, 128, 256, 1024, 4096):
        scores = np.random.default_rng(0).normal(size=(14, 14)) * 20 / d_k**0.5
        weights = al.softmax(np.where(np.tri(14, dtype=bool), scores, -np.inf))
        following = [(f" word{i}", 0.5**i) for i in range(1, 7)]
        wrote = {"text": " what it writes" * 8, "loss": {"prose": 3 + abs(np.log(d_k / 64))}}
        stops.append({"d_k": d_k, "weights": weights, "next": following, **wrote})
    return {"words": [" word"] * 14, "layer": 25, "head": 5, "d_k": 64, "stops": stops}


def points():
    """Return 32 ways to keep less, in eight families."""
    rng, text = np.random.default_rng(0), {"name": "4 bits", "text": " what it writes" * 8}
    return [
        {"family": str(k % 8), "bytes": int(n), "loss": 1 / n, **text} for k, n in enumerate(rng.integers(9, 999, 32))
    ]


def step(view, name):
    slider, times, size = view.sliders[name], [], 0
    options = getattr(slider, "_options_full", None)
    values = [v for _, v in options] if options else list(range(slider.min, slider.max + 1))
    for value in (values * 400)[1:401]:
        start = time.perf_counter()
        slider.value = value
        times.append(time.perf_counter() - start)
        size = max(size, len(view.picture.value))
    return statistics.quantiles(times, n=4)[0] * 1000, size


def growth():
    view = eight()
    slider = view.sliders["d_k"]
    stops = [value for _, value in slider._options_full]

    def move_slider(steps):
        for i in range(steps):
            slider.value = stops[i % len(stops)]
        return psutil.Process().memory_info().rss / 1e6

    before = move_slider(600)
    return move_slider(2000) - before


def in_browser():
    import nbformat
    from playwright.sync_api import sync_playwright

    from tests.browser.front_end import CHROMIUM, FLAGS, FrontEnd

    folder, home = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}}
    codes = {name: OURS.replace("VIEW", view) for name, view in VIEWS.items()} | {"interact": INTERACT}
    for name, code in codes.items():
        cells = [nbformat.v4.new_code_cell(code.strip())]
        nbformat.write(nbformat.v4.new_notebook(metadata=spec, cells=cells), folder / f"{name}.ipynb")
    front_end = FrontEnd("lab", folder, home)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            pages = {name: open_and_watch(front_end, browser, name) for name in codes}
            pages["page"] = alive(browser, folder)
            single = {name: [] for name in pages}
            for k in range(20):
                for name, page in pages.items():
                    single[name].append(press(page, "ArrowLeft" if k % 2 else "ArrowRight"))
            medians = {name: statistics.median(times) for name, times in single.items()}
            print("in JupyterLab, Chromium: key press to changed picture, median of 20 in turn, beside speaking's")
            for name in VIEWS:
                ratio = medians[name] / medians["speaking"]
                print(f"  {name:<12} {medians[name]:3.0f} ms, ratio {ratio:.2f}  {verdict(ratio, 1.1)}")
            ratio = medians["weights_view"] / medians["interact"]
            print(f"  interact + plt.show {medians['interact']:.0f} ms; to it weights_view {ratio:.2f}  ", end="")
            print(verdict(ratio, 0.2))
            alone = medians["page"]
            print(f"  weights_view in a page without a kernel {alone:.0f} ms  {verdict(alone, 20)}")
            for name in ("weights_view", "interact"):
                frames, last, blank = drag(pages[name])
                wanted = verdict(last, 120) if name != "interact" else ""
                print(f"  a drag of 30 steps, {name}: {frames} frames, the last {last:.0f} ms after it  {wanted}")
                print(f"    moments without a picture: {blank}")
            browser.close()
    finally:
        front_end.close()
        shutil.rmtree(folder)
        shutil.rmtree(home, ignore_errors=True)


def open_and_watch(front_end, browser, name):
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    front_end.open(page, f"{name}.ipynb")
    front_end.run_all(page)
    page.wait_for_selector(".attnlib-live svg" if name in VIEWS else ".jp-OutputArea img")
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)
    front_end.handles(page).first.focus()
    return page


def alive(browser, folder):
    """Open the first view as a page from a file, where a script of ours changes it."""
    scope = {}
    exec(OURS.replace("VIEW", VIEWS["weights_view"]), scope)
    still = f'<div class="jp-OutputArea"><div data-attnlib="{pack_stops(scope["view"])}"></div></div>'
    file = folder / "page.html"
    folder_of_scripts = Path(live.__file__).parent
    script = "".join((folder_of_scripts / name).read_text("utf-8") for name in ("motion.js", "frames.js"))
    file.write_text(f'<meta charset="utf-8">{still}<script>{script}</script>', "utf-8")
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    page.goto(file.as_uri())
    page.evaluate("window.attnlib")
    page.evaluate(WATCH)
    page.get_by_role("slider").first.focus()
    return page


def press(page, key):
    """Return milliseconds from one arrow key to the next changed picture."""
    page.bring_to_front()
    page.evaluate("watch.start()")
    page.keyboard.press(key)
    page.wait_for_function("watch.frames.length > 0", timeout=10_000)
    page.wait_for_timeout(150)
    return page.evaluate("watch.frames[0] - watch.keys[0]")


def drag(page):
    """Press 30 arrow keys quickly; return (frames shown, ms from the last key to the last frame, blank moments)."""
    page.bring_to_front()
    page.evaluate("watch.start()")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(10)
    page.wait_for_timeout(2000)
    return page.evaluate("[watch.frames.length, watch.frames.at(-1) - watch.keys.at(-1), watch.blank]")
