"""Turn each built notebook into a deck of slides, _slides/NN_name.html: one file that needs no network.

    python -m tools.slides          all
    python -m tools.slides 03 05    those whose name starts so

By rule, a heading starts a slide, and the browser breaks what does not fit. Imports, guesses, check cells and
solutions stay out. Where the rule is not enough, a cell says so in its source, as Jupyter does:
# %% slideshow={"slide_type": "skip"}, or "slide" (a new one), "-" (no new one), "notes" (for the speaker).
"""

import argparse
import html
import re
from importlib.util import find_spec
from pathlib import Path
from string import Template

import nbformat

from .licence import licence_cell
from .page import FONTS, SCRIPT, STYLE, TOOLS, highlight_code, look, markdown, own_ids, still
from .series import ROOT, select_notebooks

# What a lecture leaves out: the solution, a check and its verdict, a guess, what only imports or sets up.
LEFT_OUT = re.compile(r"<details>|verdict = |guess_\w+ = None|(from|import) .*")
FOLD = re.compile("<details>.*?</details>", re.DOTALL)
GUESS = re.compile(r"\n?^predict\.(\w+\(guess_\w+\)|before_\w+\(.*)$", re.MULTILINE)
LIVE = re.compile(r"\blive\.(?!progress\b)\w+\(")


def output_html(output, how):
    """Return the HTML of an output, empty for a verdict: nobody has answered yet."""
    data = output.get("data", {})
    if "image/png" in data:
        return still(output, how)
    if "text/html" in data:
        return data["text/html"].replace("<table", f'<table class="{how}"', 1) if "<table" in data["text/html"] else ""
    text = output.get("text") or data.get("text/plain", "")
    return f'<pre class="printed {how}">{html.escape(text.rstrip())}</pre>' if text.strip() else ""


def slide(cell):
    """Return the HTML of one cell; the script of the page makes slides of them. A click shows what was to predict."""
    predict = cell.metadata.get("jupyter", {}).get("outputs_hidden")
    kind = cell.metadata.get("slideshow", {}).get("slide_type", "")
    source = GUESS.sub("", cell.source).strip()
    outputs = "".join(output_html(output, "fragment" if predict else "") for output in cell.get("outputs", []))
    if kind == "skip" or not source or (not kind and LEFT_OUT.match(source) and not outputs):
        return '<div data-type="exercise-ends"></div>' if "<details>" in source else ""
    if cell.cell_type == "markdown":
        body = markdown(FOLD.sub("", source))  # nobody opens a fold while others look
    else:
        live = f'<p class="live">Live in the notebook: cell [{cell.execution_count}]</p>'
        body = highlight_code(source, hangs=False)
        body += (live if LIVE.search(source) and "<img" in outputs else "") + outputs
    return f'<aside class="notes">{body}</aside>' if kind == "notes" else f'<div data-type="{kind}">{body}</div>'


def in_reveal(kind, title, slides):
    """Return a page that shows HTML by reveal.js, with the script of its kind: "slides" or "lecture"."""
    revealjs = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    return Template((TOOLS / "deck.html").read_text("utf-8")).substitute(
        title=html.escape(title),
        kind="broken" if kind == "slides" else kind,
        reveal_css=(revealjs / "dist" / "reveal.css").read_text("utf-8"),
        reveal_js=(revealjs / "dist" / "reveal.js").read_text("utf-8"),
        notes_js=(revealjs / "plugin" / "notes" / "notes.js").read_text("utf-8"),
        deck_js=(TOOLS / "deck.js").read_text("utf-8"),
        own_js=(TOOLS / f"{kind}.js").read_text("utf-8"),
        style=look(*FONTS) + STYLE + (TOOLS / "deck.css").read_text("utf-8"),
        view_js=SCRIPT,
        slides=own_ids(slides),
    )


def deck(path):
    """Return the deck of one notebook."""
    cells = [*nbformat.read(path, as_version=4).cells, licence_cell()]
    title = next(cell.source for cell in cells if cell.source.startswith("# ")).splitlines()[0][2:]
    return in_reveal("slides", title, "\n".join(map(slide, cells)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="*", help="numbers of notebooks, all by default")
    parser.add_argument("--to", type=Path, default=ROOT / "_slides", help="folder to write to")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    for notebook in select_notebooks(arguments.prefixes):
        target = arguments.to / f"{notebook.name}.html"
        target.write_text(deck(notebook.built), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
