"""The JupyterLite site: the NumPy notebooks run in the browser alone, and nothing is asked of another host.

Needs the folder of a Pyodide distribution: PYODIDE_DIST=<folder> make test-site. About five minutes on two cores.
"""

import contextlib
import functools
import json
import os
import re
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from front_end import BIN, CHROMIUM, FLAGS, ROOT, prepared

from lite import first_page
from tools.licence import LICENCE_LINK
from tools.numbering import numbers
from tools.series import SERIES, find_notebook

NUMPY = [notebook.name for notebook in SERIES if notebook.browser]
NAMES = [notebook.name for notebook in SERIES]
TORCH = [name for name in NAMES if name not in NUMPY]
LIVE = ".attnlib-live"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder, handler=Quiet):
    """Serve a folder as `python -m http.server` does, and give the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def build(folder, pyodide=None, **variables):
    command = [str(ROOT / ".venv-lite" / BIN / "python"), "-m", "lite.build_site", "--output", str(folder)]
    variables = {"PYODIDE_DIST": pyodide or os.environ["PYODIDE_DIST"], "REAL_DECODER": "", **variables}
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "a folder"
    result = build(folder)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="session")
def url(site):
    with served(site) as address:
        yield address


def watched(page):
    """Return a list to which every request of the page and its workers is added."""
    requests = []
    page.context.on("request", lambda request: requests.append(request.url))
    return requests


def elsewhere(requests, *addresses):
    return [request for request in requests if not request.startswith((*addresses, "data:", "blob:"))]


def open_live(page, url, name):
    """Open a notebook on the site and wait for its kernel."""
    prepared(page).goto(f"{url}/lab/index.html?path={name}.ipynb")
    page.wait_for_function("ask.idle()", timeout=180_000)


def run_all(page):
    page.evaluate("ask.runAll()")
    return page.evaluate("ask.codeCells()")


def problems(cells):
    outputs = [output for _, outputs in cells for output in outputs]
    return [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("name", NUMPY)
def test_runs_in_the_browser_and_asks_no_other_host(url, new_page, name):
    page = new_page()
    requests = watched(page)
    open_live(page, url, name)
    cells = run_all(page)
    assert problems(cells) == []
    assert [count for count, _ in cells] == list(range(1, len(cells) + 1))
    if name == SERIES[0].name:  # it has its slider when its question is answered
        assert page.locator(".attnlib-asks .mod-active").count() == 0
        page.locator(".attnlib-asks button").first.click()
    handle = page.locator(".jp-OutputArea .noUi-handle").first
    handle.scroll_into_view_if_needed()
    before = page.evaluate("ask.picture()")
    handle.focus()
    last = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    for _ in range(2):
        page.keyboard.press("ArrowLeft" if last else "ArrowRight")
    page.wait_for_function("ask.changed", arg=before)
    assert any("numpy" in request for request in requests), "what the kernel's worker loads is not watched"
    assert elsewhere(requests, url) == []


def test_what_a_cell_showed_stays_until_python_is_there_and_a_line_says_so(url, new_page):
    page = prepared(new_page())
    page.goto(f"{url}/lab/index.html?path={SERIES[0].built.name}", wait_until="commit")
    line = page.locator(".attnlib-loads")
    line.wait_for()
    page.wait_for_selector(".jp-OutputArea-child img")
    stored = page.locator(".jp-OutputArea-output").all_inner_texts()
    assert any("Shift+Enter" in text for text in stored) and not any("\n," in f"\n{text}" for text in stored)
    assert "seconds" in line.inner_text() and not page.evaluate("ask.idle()")
    page.evaluate("ask.runThePicture()")
    kept = page.locator(".attnlib-kept img")
    kept.first.wait_for()
    assert "Python is loading" in line.inner_text() and page.locator(LIVE).count() == 0
    page.wait_for_function("ask.idle()", timeout=180_000)
    page.locator(".attnlib-kept").first.wait_for(state="detached")
    line.wait_for(state="detached")


def test_an_address_that_is_none_has_a_page_that_leads_on(site):
    assert "There is no such page" in (site / "404.html").read_text("utf-8")


def test_a_request_to_another_host_would_be_seen(url, new_page):
    """The check above can fail: what Python in the browser fetches from elsewhere is in the list."""
    page = new_page()
    requests = watched(page)
    open_live(page, url, find_notebook("start_here").name)
    page.evaluate("code => ask.run(code)", "import js; js.fetch('http://elsewhere.test/numpy.whl')")
    assert set(elsewhere(requests, url)) == {"http://elsewhere.test/numpy.whl"}  # a fetch that fails may be tried again


@pytest.mark.parametrize("name", TORCH)
def test_a_torch_notebook_keeps_its_outputs_and_says_where_it_runs(url, new_page, name):
    page = new_page()
    requests = watched(page)
    open_live(page, url, name)
    saved = page.evaluate("ask.codeCells()")
    assert any("image/png" in output.get("data", {}) for _, outputs in saved for output in outputs)
    page.wait_for_function("ask.showsASavedPicture()", timeout=10_000)
    message = json.dumps(stopped := run_all(page)[0][1])  # the first cell stops the run
    assert len(stopped) == 1 and len(stopped[0]["traceback"]) == 1  # in one sentence
    assert "a browser cannot run it" in message and "To run it: " in message and "make lab" in message
    page.evaluate("ask.save()")
    open_live(page, url, name)  # "Saved outputs: reload before saving"; and saving changes nothing
    assert page.evaluate("ask.codeCells()") == saved
    assert elsewhere(requests, url) == []


def test_a_lecturers_laptop_serves_the_room(url, chromium):
    """At http:// and a name other than localhost a browser withholds service workers and more. It works without."""
    rules = "--host-resolver-rules=MAP laptop.test 127.0.0.1"
    browser = chromium.browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, rules])
    page = browser.new_page()
    requests, address = watched(page), url.replace("127.0.0.1", "laptop.test")
    open_live(page, address, find_notebook("start_here").name)
    assert page.evaluate("window.isSecureContext") is False
    assert problems(run_all(page)) == []
    assert elsewhere(requests, address) == []
    browser.close()


def test_the_first_page_leads_everywhere(url, site, new_page):
    page = prepared(new_page())
    page.goto(url)
    links = [a.get_attribute("href") for a in page.locator("a").all()]
    wanted = [f"read/{name}.html" for name in NAMES] + ["read/teaching.html", "teach/index.html"]
    wanted += [f"notebooks/index.html?path={NAMES[0]}.ipynb"]
    files = ["LICENSE.txt", "LICENSE-CC-BY-4.0.txt", "NOTICE.txt", "attention.zip"]
    cited = {f"read/{find_notebook(lesson).name}.html" for _, _, lesson, _ in first_page.MISTAKES.values()}
    assert cited <= set(wanted)
    inside = {"#guess", "#course", "./"}
    assert {link for link in links if not link.startswith("#s=")} == {*wanted, *files, *inside, LICENCE_LINK}
    wanted += files
    assert all((site / link.partition("?")[0]).exists() for link in wanted)
    assert page.locator("#own").count() == 0  # this site has no place to load a model from
    assert page.locator("#course svg.glyph").count() == len(NAMES)  # each notebook has its picture


def test_on_a_phone_the_first_page_leads_to_the_pages(url, new_page):
    page = prepared(new_page(390, 844))
    page.goto(url)
    assert page.evaluate("ask.fitsAcross()")
    page.get_by_role("link", name="Read the course").click()
    assert page.url.endswith(f"read/{NAMES[0]}.html")


def test_the_first_page_says_what_a_first_start_loads(site, chromium):
    class Counting(Quiet):
        sent = 0

        def send_header(self, keyword, value):
            if keyword == "Content-Length":
                Counting.sent += int(value)
            super().send_header(keyword, value)

    context = chromium.new_context()  # not new_page: what it does to requests turns the browser's cache off
    with served(site, Counting) as url:
        page = prepared(context.new_page())
        page.goto(url)
        says = int(re.search(r"about (\d+) MB", page.inner_text("body"))[1])
        page.get_by_role("link", name="Run it here").click()
        page.wait_for_function("ask.idle()", timeout=180_000)
        context.close()
    assert abs(Counting.sent / 1e6 - says) < 3, Counting.sent


def test_the_book_runs_what_runs_here(url, new_page):
    """Its pages lead to the notebook alone; those that need torch offer nothing."""
    page, told = new_page(390, 844), set()
    for name in NAMES:
        page.goto(f"{url}/read/{name}.html")
        line = page.locator(".attnlib-run", has_text="in your browser")
        assert line.count() == (name in NUMPY), name
        assert name in NUMPY or page.locator(".attnlib-write").count() == 0, name
        told |= set(line.all_inner_texts())
        assert page.locator(".attnlib-run a[href='../index.html']").count() == 1
    page.goto(url)
    says = re.search(r"about \d+ MB", page.text_content("body"))[0]
    assert len(told) == 1 and says in told.pop()
    requests = watched(page)
    page.goto(f"{url}/read/{find_notebook('scaling').name}.html")
    prepared(page)
    page.click("text=Run it in your browser")
    page.wait_for_function("ask.idle()", timeout=180_000)
    assert problems(run_all(page)) == []
    assert page.locator(LIVE).count() and page.evaluate("ask.fitsAcross()")
    assert elsewhere(requests, url) == []


def test_the_link_of_an_exercise_leads_to_its_cell(url, new_page):
    page = prepared(new_page())
    page.goto(f"{url}/read/{find_notebook('multi_head').name}.html")
    write = page.locator(".attnlib-write a").last
    write.evaluate("link => link.click()")
    goal = page.locator(".jp-Cell.jp-mod-active", has_text=f"Exercise {numbers()['MultiHeadAttention']}")
    goal.wait_for(timeout=60_000)
    page.wait_for_function("ask.isInView", arg=goal.element_handle(), timeout=20_000)
    assert page.locator(".jp-Cell.jp-mod-selected").count() == 1


def test_pyodide_can_come_from_another_address(new_page, tmp_path):
    """As from the CDN: another origin, and a list of packages that knows neither attnlib nor ipywidgets."""
    pyodide = Path(os.environ["PYODIDE_DIST"])
    lock = json.loads((pyodide / "pyodide-lock.json").read_text("utf-8"))
    for name in ("comm", "ipywidgets", "jupyterlab-widgets", "widgetsnbextension"):
        del lock["packages"][name]

    class Elsewhere(Quiet):
        def end_headers(self):
            self.send_header("Access-Control-Allow-Origin", "*")
            super().end_headers()

        def do_GET(self):
            if not self.path.endswith("pyodide-lock.json"):
                return super().do_GET()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(lock).encode())

    with served(pyodide, Elsewhere) as cdn:
        result = build(tmp_path / "site", cdn)
        assert result.returncode == 0, result.stderr
        assert not list((tmp_path / "site").rglob("pyodide.mjs"))
        with served(tmp_path / "site") as url:
            page = new_page()
            requests = watched(page)
            open_live(page, url, find_notebook("start_here").name)
            assert problems(run_all(page)) == []
            assert page.locator(LIVE).count() == 3  # the ribbons of two sentences, and a whole call
            assert f"{cdn}/pyodide.mjs" in requests
            assert elsewhere(requests, url, cdn) == []


def test_what_is_wrong_with_the_source_is_said(tmp_path):
    result = build(tmp_path / "site", str(tmp_path))
    assert result.returncode == 1
    assert f"PYODIDE_DIST={tmp_path} holds no pyodide.mjs" in result.stderr
    result = build(tmp_path / "site", "http://127.0.0.1:9")
    assert result.returncode == 1
    assert result.stderr.startswith("http://127.0.0.1:9/pyodide-lock.json is out of reach")


def test_a_folder_that_is_no_site_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious", "utf-8")
    result = build(tmp_path)
    assert result.returncode == 1 and "holds something else than a site" in result.stderr
    assert (tmp_path / "thesis.txt").exists()
