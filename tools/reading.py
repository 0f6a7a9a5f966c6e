"""Write each built notebook as a page to read, _html/NN_name.html: one file that needs no network, its views alive.

python -m tools.reading          all
python -m tools.reading 03 05    those whose name starts so
"""

import argparse
import re
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbconvert import HTMLExporter

from . import asked
from .licence import licence_cell
from .page import SCRIPT, STYLE, markdown, revive
from .series import ROOT, find_notebook, select_notebooks

ICON = ROOT / "docs" / "book" / "icon.svg"


class Reading(HTMLExporter):
    @pass_context
    def markdown2html(self, context, source):
        return markdown(source)


def write(notebooks, folder):
    """Write name.html for each name: notebook, with links to those before and after."""
    exporter = Reading(template_file=str(ROOT / "tools" / "reading.html.j2"))
    folder.mkdir(exist_ok=True)
    entries = [entry(name, notebook) for name, notebook in notebooks.items()]
    for before, this, after in zip([None, *entries], entries, [*entries[1:], None], strict=False):
        notebook = notebooks[this["name"]]
        notebook.metadata["title"] = this["plain"]
        # Who reads runs nothing: the cell that looks for attnlib would only stand in the way.
        shown = asked.answer_by_clicks(cell for cell in notebook.cells if cell.id != "setup")
        notebook.cells = [*shown, licence_cell()]
        revive(notebook.cells)
        around = {"before": before, "this": this, "after": after}
        around |= {"script": SCRIPT + asked.SCRIPT, "style": STYLE + asked.STYLE, "icon": ICON.read_text("utf-8")}
        page, _ = exporter.from_notebook_node(notebook, around)
        (folder / f"{this['name']}.html").write_text(page, "utf-8")


def entry(name, notebook):
    """Return what the pages say of a notebook: its title, what it is about, and whether it runs in the browser."""
    first = next(cell.source for cell in notebook.cells if cell.source.startswith("# "))  # badges stand above it
    title, text, *_ = first.removeprefix("# ").split("\n\n")
    return {
        "name": name,
        "plain": re.sub(r"[$\\]", "", title),
        "title": markdown(title).strip().removeprefix("<p>").removesuffix("</p>"),
        "text": markdown(text),
        "about": " ".join(re.sub(r"[$\\*]|\[|\]\(.*?\)", "", text).split()),
        "runs_here": find_notebook(name).browser,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="*", help="numbers or names of notebooks, all by default")
    parser.add_argument("--to", type=Path, default=ROOT / "_html", help="folder to write to")
    arguments = parser.parse_args()
    notebooks = {
        notebook.name: nbformat.read(notebook.built, as_version=4) for notebook in select_notebooks(arguments.prefixes)
    }
    write(notebooks, arguments.to)
    for name in notebooks:
        page = (arguments.to / f"{name}.html").read_text("utf-8")
        views = [3 * len(kept) // 4 for kept in re.findall('data-attnlib="(.*?)"', page)]
        print(
            arguments.to / f"{name}.html", f"{len(page.encode()):,} bytes; its views:", *(f"{one:,}" for one in views)
        )


if __name__ == "__main__":
    main()
