"""Build the book, _book/: all notebooks with their saved outputs, and what stands beside them, as pages with a search.

python -m tools.book

Nothing is executed, and neither the build nor a page needs a network. A link that leads nowhere ends the build.
"""

import argparse
import posixpath
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat

from attnlib.colours import LOOK
from lite import first_page

from . import asked
from .licence import licence_cell
from .links import address, replace_marked
from .numbering import render
from .page import COURSE, FONTS, SCRIPT, STYLE, revive, tokens
from .reading import PAPER, PRINTED, output_html
from .series import ROOT, SERIES

SOURCES = ROOT / "docs" / "book"
BESIDE = ["REFERENCES.md", "TEACHING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
# The files of the repository that are pages of the book, and their names there.
PAGES = {file: f"{Path(file).stem.lower()}.md" for file in BESIDE}
PAGES |= {f"docs/book/{path.name}": path.name for path in SOURCES.glob("*.md")}
PAGES |= {f"notebooks/{notebook.built.name}": notebook.built.name for notebook in SERIES}
PREDICT = {"code_prompt_show": "What comes out? Your own answer first, then look.", "code_prompt_hide": "Hide it"}
RUN = '<p>What needs no torch <a href="../index.html">runs in your browser</a>.</p>\n'
DECK = r'<a href="../teach/lecture_\1.html">open it</a>'  # in the table of the guide
DECKS = '<p class="attnlib-run"><a href="../teach/index.html">Decks</a>: open them here, or save them.</p>\n'
SAVED = "Saved results: sliders move, a click answers a question."


def inward(text, file):
    """Return the Markdown of a file of the repository with links and anchors as the book has them.

    What is no page of the book is linked at the public address; without one the words stay.
    """
    where = address()

    def link(found):
        words, target, anchor = found.groups()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if target in PAGES:
            return f"[{words}]({PAGES[target]}{anchor})"
        return f"[{words}](https://github.com/{where.repo}/blob/{where.branch}/{target}{anchor})" if where else words

    text = re.sub(r"\[([^][]*)\]\((?!\w+:)([\w./-]+)((?:#[\w-]+)?)\)", link, text)
    return re.sub(r'<a id="([\w-]+)"></a>', r"[]{#\1}", text)


def page(notebook, lab, model):
    """Return a notebook as the book shows it; who reads runs nothing."""
    built = nbformat.read(notebook.built, as_version=4)
    shown = [cell for cell in built.cells if cell.id not in ("badges", "setup")]
    run = f"{lab}?path={notebook.built.name}" if lab and notebook.browser else None
    built.cells = [*around(join_folded(asked.answer_by_clicks(shown, run))), licence_cell()]
    title, text = built.cells[0].source.replace("**Question.** ", "", 1).split("\n", 1)
    built.cells[0].source = f"{title}\n{ways_to_run(notebook, run, lab, model)}{text}"
    for cell in built.cells:
        if cell.cell_type == "markdown":
            cell.source = inward(cell.source, f"notebooks/{notebook.built.name}")
        else:
            cell.source = cell.source.replace("\n\n\n", "\n\n")
            fold(cell)
    revive(built.cells)
    for cell in built.cells:
        if cell.cell_type == "code":
            shown = filter(None, map(output_html, cell.outputs))
            cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": one}) for one in shown]
    return built


def around(cells):
    """Yield the cells, and the HTML around them as cells of text."""
    for cell in cells:
        before, after = cell.metadata.pop("around", ["", ""])
        yield from (part if part is cell else asked.text_cell(part) for part in (before, cell, after) if part)


def join_folded(cells):
    """Yield the cells; folded code that shows nothing goes into the fold that follows at once: one line to click."""
    above = []
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if is_folded(cell) and not cell.outputs and following and is_folded(following):
            above.append(cell.source)
            continue
        if above:
            cell.source, above = "\n\n".join([*above, cell.source]), []
        yield cell


def is_folded(cell):
    return cell.cell_type == "code" and cell.metadata.get("jupyter", {}).get("source_hidden", False)


def fold(cell):
    """Fold what JupyterLab folds: code that only draws, and the output that a reader is to predict."""
    hidden = cell.metadata.get("jupyter", {})
    parts = [part for part, name in (("input", "source_hidden"), ("output", "outputs_hidden")) if hidden.get(name)]
    cell.metadata["tags"] = [f"hide-{part}" for part in parts]
    if cell.metadata.pop("transient", None):
        cell.metadata["tags"] = ["remove-input"]
    if parts == ["output"]:
        cell.metadata["mystnb"] = PREDICT


def ways_to_run(notebook, run, lab, model):
    """Return the line under a title that says what a page cannot do, and where this notebook runs."""
    ways = [SAVED]
    if run:
        ways.append(f'<a href="{run}">Run it in your browser</a>, at first about 40 MB.')
    if lab:
        first = "The model reads on the first page" if model and notebook.slug == "it_speaks" else "To the first page"
        ways.append(f'<a href="../index.html">{first}</a>')
    if where := address():
        words = where.words(notebook.name)
        ways.append(f'<a href="{words["colab"]}">Open it in Colab</a> or <a href="{words["binder"]}">in Binder</a>.')
    return f'\n<p class="attnlib-run">{" ".join(ways)}</p>\n'


def picture():
    """Return the first sentence and where it looks, in two layouts, and what one sees there."""
    told = f"A real language model reads this sentence. {first_page.still(first_page.first())['story']}"
    across, down = first_page.first_sentence(), first_page.first_sentence(short=True)
    drawn = f'<div class="attnlib-across">{across}</div><div class="attnlib-down">{down}</div>'
    return f'<div class="attnlib-sentence">{drawn}<p>{told}</p></div>\n'


def course(lab):
    """Return the list of notebooks, as the first page has it; only on a site does one run in the browser."""
    made = first_page.course([{"name": notebook.name, "read": f"{notebook.name}.html"} for notebook in SERIES])
    made = made if lab else made.replace('<span class="chip">runs in a browser</span>', "")
    return '<div class="course">' + made.replace("\n", "") + "</div>\n"


def gather(folder, lab, model):
    """Put what Sphinx reads into a folder."""
    shutil.copytree(SOURCES, folder)
    for file in (*BESIDE, *(f"docs/book/{path.name}" for path in SOURCES.glob("*.md"))):
        (folder / PAGES[file]).write_text(inward((ROOT / file).read_text("utf-8"), file), "utf-8")
    for notebook in SERIES:
        nbformat.write(page(notebook, lab, model), folder / notebook.built.name)
    index = folder / "index.md"
    text = replace_marked(index.read_text("utf-8"), "picture", picture())
    text = replace_marked(text, "course", course(lab))
    index.write_text(replace_marked(text, "run", RUN) if lab else text, "utf-8")
    if lab:
        guide = folder / PAGES["TEACHING.md"]
        text = re.sub(r"\n\n", f"\n\n{DECKS}\n", guide.read_text("utf-8"), count=1)
        guide.write_text(re.sub(r"`make slides PLAN=([\w-]+)`(?= \|)", DECK, text), "utf-8")
    start = SERIES[0]
    notation = inward(render(start.source.read_text("utf-8")), f"notebooks/{start.built.name}").split(
        "\n# ## Notation\n"
    )[1]
    glossary = folder / "glossary.md"
    text = replace_marked(glossary.read_text("utf-8"), "notation", re.sub("^# ?", "", notation, flags=re.MULTILINE))
    glossary.write_text(text, "utf-8")
    static = folder / "static"
    static.mkdir()
    shutil.copy(ROOT / "docs" / "card.png", static)
    for name in FONTS:
        shutil.copy(LOOK / "fonts" / f"{name}.woff2", static)
    style = tokens(*FONTS, at="./") + COURSE + STYLE + asked.STYLE + PRINTED
    style += PAPER.replace("main ", "article ")
    for name, ours in (("book.css", style), ("book.js", SCRIPT + asked.SCRIPT)):
        (static / name).write_text(ours + (folder / name).read_text("utf-8"), "utf-8")


def build(output, lab=None, model=False):
    """Make a folder anew; on a site `lab` is the address of JupyterLite, `model` tells if its first page has one."""
    from sphinx.cmd.build import main as sphinx  # here, as tests of links read this module where no Sphinx is

    shutil.rmtree(output, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        sources, trees, pages = (f"{scratch}/{name}" for name in ("sources", "trees", "pages"))
        gather(Path(sources), lab, model)
        if sphinx(["-W", "--keep-going", "-q", "-d", trees, sources, pages]):
            sys.exit("the book was not built, see above.")
        shutil.copytree(pages, output)  # myst-nb leaves copies of the notebooks beside the pages


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "_book", help="folder to make anew (default: _book)")
    build(parser.parse_args().to)


if __name__ == "__main__":
    main()
