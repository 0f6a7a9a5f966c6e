"""Write each built notebook as a page to read, _html/NN_name.html: one file that needs no network, its views alive.

python -m tools.reading          all
python -m tools.reading 03 05    those whose name starts so
"""

import argparse
import html
import re
from itertools import cycle
from pathlib import Path

import nbformat
from jinja2 import Template

from . import asked
from .licence import LICENCE
from .page import FONTS, ICON, SCRIPT, STYLE, TOOLS, glyph, highlight_code, inline, look, markdown, revive
from .series import ROOT, find_notebook, has_tag, select_notebooks

OWN = look(*FONTS) + STYLE + asked.STYLE + (TOOLS / "reading.css").read_text("utf-8")
OWN = re.sub(r"/\*.*?\*/|^ +", "", OWN, flags=re.DOTALL | re.MULTILINE)  # what nobody reads there
PHONE = 45  # letters of what is printed that a phone has on a line
LONG = 13  # lines of code that stay on one sheet of paper
MOVES = re.sub(r"^ *//.*\n|^ +", "", SCRIPT + asked.SCRIPT, flags=re.MULTILINE)


def write(notebooks, folder):
    """Write name.html for each name: notebook, with links to those before and after."""
    page = Template((TOOLS / "reading.html.j2").read_text("utf-8"))
    folder.mkdir(exist_ok=True)
    entries = [entry(name, notebook) for name, notebook in notebooks.items()]
    around = {"script": MOVES, "style": OWN, "icon": ICON, "licence": markdown(LICENCE)}
    for before, this, after in zip([None, *entries], entries, [*entries[1:], None], strict=False):
        # Who reads runs nothing: badges, and the cell that looks for attnlib, would only stand in the way.
        cells = [cell for cell in notebooks[this["name"]].cells if cell.id not in ("badges", "setup")]
        cells = list(join_folds(cards(asked.answer_by_clicks(cells))))
        revive(cells)
        contents = [found for cell in cells for found in show(cell)]
        told = {"before": before, "this": this, "after": after, "cells": cells, "contents": contents}
        (folder / f"{this['name']}.html").write_text(page.render(**told, **around), "utf-8")


def entry(name, notebook):
    """Return what the pages say of a notebook: its title, what it is about, and whether it runs in the browser."""
    first = next(cell.source for cell in notebook.cells if cell.source.startswith("# "))  # badges stand above it
    title, text, *_ = first.removeprefix("# ").split("\n\n")
    known = find_notebook(name)
    return {
        "name": name,
        "number": known.number,
        "minutes": known.minutes,
        "exercises": known.exercise_minutes,
        "glyph": glyph(known.slug),
        "plain": re.sub(r"[$\\]", "", title),
        "title": inline(title.partition(" · ")[2] or title),
        "text": markdown(text),
        "about": " ".join(re.sub(r"[$\\*]|\[|\]\(.*?\)", "", text).split()),
        "runs_here": known.browser,
    }


def cards(cells):
    """Yield the cells; what stands around an exercise, from its heading to its solution, makes a card of it."""
    inside = None
    for cell in cells:
        first, last = cell.metadata.get("around", ["", ""])
        if inside and (has_tag(cell, "exercise") or re.match("#{1,3} ", cell.source)):
            inside.metadata["around"][1] += "</section>"
            inside = None
        if has_tag(cell, "exercise"):
            first, inside = f'<section class="card">{first}', cell
        cell.metadata["around"] = [first, last]
        if inside and has_tag(cell, "solution"):
            cell.metadata["around"][1] += "</section>"
            inside = None
        inside = inside and cell
        yield cell
    if inside:
        inside.metadata["around"][1] += "</section>"


def join_folds(cells):
    """Yield the cells; folded code that shows nothing stands in the fold of the folded code behind it."""
    before = None
    for cell in cells:
        folded = cell.cell_type == "code" and cell.metadata.get("jupyter", {}).get("source_hidden")
        alone = cell.metadata["around"] == ["", ""] and cell.source and not cell.metadata.get("transient")
        if before and folded and alone:
            cell.source = f"{before.source}\n\n\n{cell.source}"
        elif before:
            yield before
        before = cell if folded and alone and not cell.outputs else None
        if not before:
            yield cell
    if before:
        yield before


def show(cell):
    """Give a cell what the page shows of it, and yield (id, title) of its headings of the second level."""
    if cell.cell_type == "markdown":
        kind = exercise if has_tag(cell, "exercise") else opening if cell.source.startswith("# ") else markdown
        cell.html = re.sub("<table>.*?</table>", name_cells, kind(cell.source), flags=re.DOTALL)
        for title in re.findall("<h2>(.*?)</h2>", cell.html):
            name = re.sub(r"[^a-z0-9]+", "-", html.unescape(re.sub("<.*?>", "", title)).lower()).strip("-")
            cell.html = cell.html.replace(f"<h2>{title}", f'<h2 id="{name}">{title}', 1)
            yield name, title
        return
    hidden = cell.metadata.get("jupyter", {})
    shown = cell.source.strip() and not cell.metadata.get("transient", {}).get("remove_source")
    cell.code = highlight_code(cell.source) if shown else ""
    cell.folded, cell.lines = hidden.get("source_hidden"), cell.source.count("\n") + 1
    if cell.lines > LONG:
        cell.code = cell.code.replace('class="code"', 'class="code long"', 1)
    cell.covered, cell.out = hidden.get("outputs_hidden"), "".join(map(output_html, cell.outputs))


def name_cells(table):
    """Return a table; the cells of a wide one know their columns: on a phone they stand below each other."""
    names = [re.sub("<.*?>", "", name) for name in re.findall("<th.*?>(.*?)</th>", table[0])]
    if len(names) < 4:
        return table[0]
    column = cycle(names)
    return re.sub("<td", lambda cell: f'<td data-of="{next(column)}"', table[0]).replace(
        "<table", '<table class="wide"'
    )


def opening(source):
    """Return the first text of a notebook: its number and minutes stand above it, its question is larger."""
    text = markdown(re.sub(r"^# .*? · ", "# ", source))
    asks = r"<p>(?:<strong>Question\.</strong> )?(.*?)(?:\s<em>[^<]*minutes[^<]*</em>)?</p>"
    return re.sub(asks, r'<p class="story">\1</p>', text, count=1, flags=re.DOTALL)


def exercise(source):
    """Return the text of an exercise: its minutes stand beside its title."""
    taken = re.compile(r"</h3>\s*<p><strong>Goal\.</strong> (.*?) <em>([^<]*?)\.</em></p>", re.DOTALL)
    return taken.sub(r'<span class="chip">\2</span></h3><p>\1</p>', markdown(source), count=1)


def output_html(output):
    """Return an output as HTML."""
    data = output.get("data", {})
    if "text/html" in data:
        return data["text/html"]
    text = output.get("text") or data.get("text/plain", "")
    return columns_html(text.rstrip().split("\n")) if text.strip() else ""


def columns_html(lines):
    """Return printed lines as HTML. What is a column keeps its place; a phone leaves out room between columns.

    There a line that is too long goes on below itself, but for tables of so many columns that a reader would be lost.
    """
    wide = max(map(len, lines))
    blank = "".join(" x"[any(line[k : k + 1].strip() for line in lines)] for k in range(wide))
    gaps = [(gap.start() + 2, gap.end()) for gap in re.finditer(r" {2,}", blank)]
    narrow = wide - sum(end - start for start, end in gaps)
    kind = " table" if narrow > PHONE and len(lines) > 2 and len(gaps) >= 5 else ""
    kind = " columns" + kind if re.search(r"\S {2,}\S|^ ", "\n".join(lines), re.MULTILINE) else ""
    shown = []
    for line in lines:
        parts, last = [], 0
        for start, end in gaps:
            if len(line) > start:
                parts += [html.escape(line[last:start]), f"<i>{line[start:end]}</i>" if end > start else ""]
                last = end
        whole = "".join(parts) + html.escape(line[last:])
        if all(len(part) < PHONE for part in re.split(" {2,}", line)):  # it goes on with a column
            whole = re.sub(r"(?<=\S) (?=[^\s<])", "\xa0", whole)
        deep = len(line) - len(line.lstrip())
        shown.append(f"<span style=--in:{deep}>{whole}</span>" if len(line) > PHONE else f"{whole}\n")
    return f'<pre class="printed{kind}">{"".join(shown).rstrip()}</pre>'


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
