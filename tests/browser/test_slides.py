"""Every slide of every deck fits 1024 x 768: nothing leaves the slide, nothing scrolls, and it can be read."""

import nbformat
import pytest
from front_end import ROOT

from tools import slides

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# On each slide: what leaves it by more than a pixel, what scrolls, and what is too small to read from the last row.
FAULTS = """() => {
  const faults = [], smallest = { prose: 99, code: 99 };
  const slides = Reveal.getSlides();
  for (const slide of slides) {
    Reveal.slide(Reveal.getIndices(slide).h);
    const at = `slide ${Reveal.getSlidePastCount() + 1} (${slide.querySelector("h1, h2, h3")?.textContent}): `;
    const frame = slide.getBoundingClientRect();
    if (frame.width !== 1024 || frame.height !== 768) faults.push(at + `is ${frame.width} x ${frame.height}`);
    if (!slide.children.length) faults.push(at + "is empty");
    for (const element of slide.querySelectorAll("*:not(aside, aside *)")) {
      const box = element.getBoundingClientRect(), name = element.tagName + ": " + element.textContent.slice(0, 60);
      if (box.left < -1 || box.top < -1 || box.right > 1025 || box.bottom > 769) faults.push(at + "leaves it: " + name);
      if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth && !element.closest("math, svg"))
        faults.push(at + "scrolls: " + name);
      const size = parseFloat(getComputedStyle(element).fontSize);
      if (element.closest("pre")) smallest.code = Math.min(smallest.code, size);
      else if (element.matches("p, li")) smallest.prose = Math.min(smallest.prose, size);
    }
    const walker = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (walker.nextNode()) {
      range.selectNodeContents(walker.currentNode);
      for (const box of range.getClientRects())
        if (box.right > 1025 || box.bottom > 769) faults.push(at + "text leaves it: " + walker.currentNode.textContent);
    }
  }
  return { faults, smallest, count: slides.length, text: document.querySelector(".slides").textContent };
}"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_slide_fits(new_page, tmp_path, path):
    file = tmp_path / "deck.html"
    file.write_text(slides.deck(path), encoding="utf-8")
    page, problems = new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url)
    )
    page.goto(file.as_uri())
    page.wait_for_selector(".reveal.ready")
    found = page.evaluate(FAULTS)
    assert problems == [] and found["faults"] == []
    assert found["smallest"]["code"] >= 18 and found["smallest"]["prose"] >= 24
    headings = [c for c in nbformat.read(path, as_version=4).cells if c.source.startswith("#")]
    assert found["count"] >= len(headings)
    assert "Solution" not in found["text"] and "not tried yet" not in found["text"]
