"""Firefox: start_here and scaling as pages to read. `make test-firefox` runs it, where a Firefox is installed."""

from pathlib import Path

import nbformat
import pytest
from firefox import Firefox

from tools import reading
from tools.series import SERIES, find_notebook

NAMES = [find_notebook("start_here").name, find_notebook("scaling").name]
ASK = Path(__file__).with_name("page.js").read_text("utf-8")


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    browser = Firefox(tmp_path_factory.mktemp("firefox"))
    browser.prepare(ASK)
    yield browser
    browser.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_to_read_is_alive(firefox, tmp_path, name):
    (path,) = (notebook.built for notebook in SERIES if notebook.name == name)
    reading.write({name: nbformat.read(path, as_version=4)}, tmp_path)
    firefox.open((tmp_path / f"{name}.html").as_uri())
    count = firefox.evaluate("ask.stills()")
    assert count == len(firefox.evaluate("ask.views()")) > 0
    for i in range(count):
        firefox.evaluate(f"ask.focusSlider({i})")
        firefox.press("Home")
        first = firefox.evaluate("ask.views()")
        firefox.press("End")
        last = firefox.evaluate("ask.views()")
        assert [k for k in range(count) if first[k] != last[k]] == [i]
    assert firefox.evaluate("ask.fitsAcross()") and firefox.evaluate("ask.imagesAreShown()")
    assert firefox.problems == []
