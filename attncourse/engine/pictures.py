"""Small pictures of plain HTML for a verdict: they need no kernel, no script and no trust of a notebook.

JupyterLab takes every <svg> out of an untrusted notebook, and of borders those with ``currentColor``. So all is made of
tables, and a border has a colour of its own.
"""

import numpy as np

from attnlib.colours import KEY, LINE, levels, veil
from attnlib.symbols import maths

PALE = "·"  # stands where nothing is known yet
ROW = '<tr style="background:transparent">'  # without the stripes of JupyterLab, which would show through a tint
_TABLE = '<table style="border-collapse:{};border-spacing:2px;color:currentColor;margin:6px 0;font-size:93%">'


def words(text):
    """Return plain words as HTML, with *she* in italics.

    >>> words("*she* < Anna")
    '<i>she</i> &lt; Anna'
    """
    parts = maths(text, "html").split("*")
    return "".join(f"<i>{part}</i>" if i % 2 else part for i, part in enumerate(parts))


def chip(text, colour):
    """Return a word with a line below it in the colour of keys or of values: no ink of theirs is read on all pages."""
    return f'<span style="display:inline-block;border-bottom:2px solid {colour}">{words(text)}</span>'


def bar(value, most=1.0, text=None, colour=KEY):
    """Return a number with a bar below it, 48 pixels long where it is `most`."""
    text = f"{value:.3f}" if text is None else text
    length = round(48 * min(max(value / most, 0), 1))
    return f'{words(text)}<div style="height:8px;background:{colour};width:{length}px;margin:2px auto 0"></div>'


def table(rows, marked=None):
    """Return a table of cells of HTML, the first of each row a heading; `marked` is the row that has just been filled.

    A row shorter than the first one has a last cell as wide as what is missing. A cell that is None is still empty.
    """
    width, lines = max(map(len, rows)), []
    for i, row in enumerate(rows):
        edge = LINE if i == marked else "transparent"
        cells = [f'<td style="padding:3px 4px;text-align:left;border-left:3px solid {edge}">{row[0]}</td>']
        for j, cell in enumerate(row[1:], 1):
            last = j == len(row) - 1 and width - j
            span, side = (f' colspan="{last}"', "left") if last and last > 1 else ("", "center")
            told = f'<span style="opacity:.5">{PALE}</span>' if cell is None else cell
            cells.append(f'<td{span} style="padding:3px 4px;text-align:{side}">{told}</td>')
        lines.append(f"{ROW}{''.join(cells)}</tr>")
    return f"{_TABLE.format('collapse')}<tbody>{''.join(lines)}</tbody></table>"


def beside(*pictures):
    """Return pictures beside each other, below each other where there is no room."""
    return f'<div style="display:flex;flex-wrap:wrap;gap:0 24px">{"".join(f"<div>{x}</div>" for x in pictures)}</div>'


def tint_cell(text, value, limits=(0, 1), tint=KEY, style="padding:2px 4px;text-align:right;"):
    """Return a cell coloured by its value; NaN and infinities have a dashed border and no colour."""
    if np.isfinite(value):
        style += f"background:{veil(levels(value, *limits), tint)};"
    else:
        style += f"border:1px dashed {LINE};color:currentColor;"
    return f'<td style="{style}">{text}</td>'


def heatmap(array, rows, columns, *, limits=(0, 1), places=2, tint=KEY, texts=None):
    """Return a matrix as a map with its rows and columns named; `texts` stand in the cells in place of the numbers."""
    array = np.asarray(array, dtype=float)
    head = "".join(f'<td style="padding:2px 4px;text-align:center">{words(str(c))}</td>' for c in columns)
    lines = [f"{ROW}<td></td>{head}</tr>"]
    for i, name in enumerate(rows):
        told = [f"{x:.{places}f}" if texts is None else words(str(texts[i][j])) for j, x in enumerate(array[i])]
        cells = "".join(tint_cell(text, x, limits, tint) for text, x in zip(told, array[i], strict=True))
        lines.append(f'{ROW}<td style="padding:2px 8px;text-align:right">{words(str(name))}</td>{cells}</tr>')
    return f"{_TABLE.format('separate')}<tbody>{''.join(lines)}</tbody></table>"
