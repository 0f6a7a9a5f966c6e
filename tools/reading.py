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
from .page import (
    FONTS,
    ICON,
    SCRIPT,
    STYLE,
    TOOLS,
    breakable,
    glyph,
    highlight_code,
    inline,
    look,
    markdown,
    revive,
    whole_powers,
)
from .series import ROOT, find_notebook, has_tag, select_notebooks

PRINTED = (TOOLS / "printed.css").read_text("utf-8")  # what columns_html and name_cells make
PAPER = re.search("@page.*", (TOOLS / "reading.css").read_text("utf-8"), re.DOTALL)[0]
OWN = look(*FONTS) + STYLE + asked.STYLE + PRINTED + (TOOLS / "reading.css").read_text("utf-8")
OWN = re.sub(r"/\*.*?\*/|^ +", "", OWN, flags=re.DOTALL | re.MULTILINE)  # what nobody reads there
PHONE = 41  # letters of what is printed that a phone has on a line
PLAIN_CELLS = re.compile(
    r"(?<==\")padding:2px 10px;|;font-variant-numeric:tabular-nums"
)  # of a table: the page says so
ACROSS = 56  # letters of the longest words of a table's columns, which a phone has beside each other
FIRST = 400  # letters of text below the question, and a phone still shows the picture behind them
BRIEF, FEW = 4, 7  # printed lines that stay below their code on paper, and that two columns need to keep their places
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
        led = lead(cells)
        revive(cells)
        contents = [found for cell in cells for found in show(cell)]
        told = {"before": before, "this": this, "after": after, "cells": cells, "contents": contents, "led": led}
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


def lead(cells):
    """Let a picture stand on the first screen: one below long texts goes up to the question. Return if one does."""
    begin = next(k for k, cell in enumerate(cells) if cell.source.startswith("# ")) + 1
    end = next((k for k, cell in enumerate(cells) if cell.source.startswith("## ")), len(cells))
    shown = [k for k in range(begin, end) if "image/png" in str(cells[k].get("outputs"))]
    if shown and sum(len(cell.source) for cell in cells[begin : shown[0]] if cell.cell_type == "markdown") > FIRST:
        cell = cells.pop(shown[0])
        cell.metadata.jupyter = {**cell.metadata.get("jupyter", {}), "source_hidden": True}
        cells.insert(begin, cell)
    return bool(shown)


def cards(cells):
    """Yield the cells; from an exercise, or a cell tagged card, to the fold with the solution they make a card."""
    inside = None
    for cell in cells:
        first, last = cell.metadata.get("around", ["", ""])
        begins = has_tag(cell, "exercise", "card")
        if inside and (begins or re.match("#{1,3} ", cell.source)):
            inside.metadata["around"][1] += "</section>"
            inside = None
        if begins:
            first, inside = f'<section class="card">{first}', cell
        cell.metadata["around"] = [first, last]
        if inside and cell.source.startswith("<details>"):
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
    cell.covered, cell.out = hidden.get("outputs_hidden"), "".join(map(output_html, cell.outputs))


def name_cells(table):
    """Return a table; the cells of a wide one know their columns: on a phone they stand below each other."""
    names = [re.sub("<.*?>", "", name).strip() for name in re.findall("<th.*?>(.*?)(?=<t|</t)", table[0])]
    if len(names) < 4:
        return table[0]
    column = cycle(names)
    page = re.sub("<td", lambda cell: f'<td data-of="{next(column)}"', table[0])
    return re.sub('<table(?: class="(.*?)")?', r'<table class="wide \1"', page)


def fit_phone(table):
    """Return a table; the cells of one whose longest words have no room beside each other know their columns."""
    table = [whole_powers(table[0])]
    rows = [re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row in table[0].split("<tr>")[1:]]
    longest = [
        max((len(word) for cell in column for word in re.sub("<.*?>", "", cell).split()), default=0)
        for column in zip(*rows, strict=True)
    ]
    if sum(longest) + len(longest) > ACROSS and len(longest) > 6:
        return name_cells(table)
    return re.sub(
        r"(?<=[> ])(?=[^\s<>]*[^\w\s<>]|[^\s<>]{17})[^_\s<>]{12,}(?=[ <])",
        lambda run: re.sub(r"([^\s&;]{8})(?=[^\s&;]{4})", r"\1<wbr>", run[0]),
        table[0],
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
        page = PLAIN_CELLS.sub("", data["text/html"])
        return re.sub('<table class="attnlib-table.*?</table>', fit_phone, page, flags=re.DOTALL)
    text = output.get("text") or data.get("text/plain", "")
    return columns_html(text.rstrip().split("\n")) if text.strip() else ""


def columns_html(lines):
    """Return printed lines as HTML. What is a column keeps its place; a phone leaves out room between columns.

    There a line that is too long goes on below itself, as the few of two columns do; others scroll. So many columns
    that a reader would be lost become a table: its letters are narrower there.
    """
    wide = max(map(len, lines))
    blank = "".join(" x"[any(line[k : k + 1].strip() for line in lines)] for k in range(wide))
    gaps = [(gap.start() + 2, gap.end()) for gap in re.finditer(r" {2,}", blank)]
    narrow = wide - sum(end - start for start, end in gaps)
    if len(lines) > 3 and not re.search(r"\S {2,}\S", lines[-1]) and re.search(r"\S {2,}\S", lines[-2]):
        return columns_html(lines[:-1]) + columns_html(lines[-1:])  # a line that is no row of what stands above it
    if narrow > PHONE and len(lines) > 2 and len(gaps) >= 5:
        return printed_table(lines, [(0, 0), *gaps])
    words = "\n".join(lines)
    kind = " columns" if re.search(r"\S {2,}\S|^ ", words, re.MULTILINE) else ""
    many = len(gaps) > 1 or (gaps and len(lines) >= FEW)
    kind += " aligned" * (bool(many) and len(re.findall(r"^.*?\S {2,}\S", words, re.MULTILINE)) > len(lines) / 2)
    kind += " brief" * (len(lines) < BRIEF)
    shown = []
    for line in lines:
        parts, last = [], 0
        for start, end in gaps:
            if len(line) > start:
                parts += [html.escape(line[last:start]), f"<i>{line[start:end]}</i>" if end > start else ""]
                last = end
        whole = "".join(parts) + html.escape(line[last:])
        if all(len(part) < PHONE - 2 for part in re.split(" {2,}", line)):  # it goes on with a column
            whole = re.sub(r"(?<=\S) (?=[^\s<])", "\xa0", whole)
        deep = len(line) - len(line.lstrip())
        whole = whole_powers(breakable(re.sub("(?:\xa0| )-&gt;", " -\u2060&gt;", whole)))  # an arrow stays whole
        shown.append(f"<span style=--in:{deep}>{whole}\n</span>" if len(line) > PHONE else f"{whole}\n")
    return f'<pre class="printed{kind}">{"".join(shown).rstrip()}</pre>'


def printed_table(lines, gaps):
    """Return printed lines as a table; a column of numbers, and its name, stand right."""
    cuts = list(zip([end for _, end in gaps], [*(start for start, _ in gaps[1:]), None], strict=True))
    rows = [[html.escape(line[start:end].strip()) for start, end in cuts] for line in lines]
    sides = [
        " class=right" * all(re.fullmatch(r"-?[\d.]+", x) for x in column[1:]) for column in zip(*rows, strict=True)
    ]
    kinds = ["th", *["td"] * (len(rows) - 1)]
    cells = (
        "".join(f"<{kind}{side}>{x}" for side, x in zip(sides, row, strict=True))
        for kind, row in zip(kinds, rows, strict=True)
    )
    table = f'<table class="printed"><tr>{"<tr>".join(cells)}</table>'
    return name_cells([table]) if len(cuts) > 8 else table


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
