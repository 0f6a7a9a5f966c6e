"""Every slide of every deck fits 1024 x 768: nothing leaves the slide, nothing scrolls, and it can be read."""

import nbformat
import pytest
from front_end import prepared

from tools import slides
from tools.series import SERIES


@pytest.mark.parametrize("path", [notebook.built for notebook in SERIES], ids=lambda path: path.stem)
def test_every_slide_fits(new_page, tmp_path, path):
    file = tmp_path / "deck.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    page, problems = prepared(new_page()), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url)
    )
    page.goto(file.as_uri())
    page.wait_for_selector(".reveal.ready")
    found = page.evaluate("ask.slides()")
    assert problems == [] and found["faults"] == []
    assert found["smallest"]["code"] >= 18 and found["smallest"]["prose"] >= 24
    revived = page.locator("[data-attnlib] .attnlib-live").count()
    assert revived == page.locator("[data-attnlib]").count() and (revived or path.stem != "03_scaling")
    headings = [c for c in nbformat.read(path, as_version=4).cells if c.source.startswith("#")]
    assert found["count"] >= len(headings)
    assert "Solution" not in found["text"] and "not tried yet" not in found["text"]
