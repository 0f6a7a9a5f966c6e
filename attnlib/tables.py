"""Small tables of numbers that a reader compares: HTML with tinted cells, and the same as plain text."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import arguments
from .colours import EDGE, levels, veil
from .symbols import maths

TINT = EDGE  # no role's colour
CELL = "padding:2px 10px;text-align:{};font-variant-numeric:tabular-nums"


class Table:
    """A table, made by `table`."""

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[Any]], places: int, tint: Sequence[str]) -> None:
        self.names: list[str] = list(names)
        self.rows: list[list[Any]] = [list(row) for row in rows]
        self.places: int = places
        self._tint = set(tint)
        # Numbers stand right, so that their digits do; a column of words begins at the left.
        self._sides = ["left" if _words(column) else "right" for column in zip(*self.rows, strict=True)]

    def _text(self, value):
        if isinstance(value, (bool, np.bool_, numbers.Integral)) or not isinstance(value, numbers.Real):
            return str(value)
        return f"{value:.{self.places}f}"

    def __repr__(self) -> str:
        lines = [self.names, *([self._text(value) for value in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        signs = ["<" if side == "left" else ">" for side in self._sides]
        padded = (zip(line, signs, widths, strict=True) for line in lines)
        return "\n".join("   ".join(f"{text:{sign}{w}}" for text, sign, w in line).rstrip() for line in padded)

    def _repr_html_(self):
        tinted = [j for j, name in enumerate(self.names) if name in self._tint]
        largest = max((abs(row[j]) for row in self.rows for j in tinted), default=1)
        styles = [CELL.format(side) for side in self._sides]
        head = "".join(
            f'<th scope="col" style="{style}">{maths(name, "html")}</th>'
            for name, style in zip(self.names, styles, strict=True)
        )
        lines = [f"<tr>{head}</tr>"]
        for row in self.rows:
            cells = []
            for j, (value, style) in enumerate(zip(row, styles, strict=True)):
                if j in tinted:
                    style += f";background:{veil(int(levels(abs(value), 0, largest)), TINT)}"
                cells.append(f'<td style="{style}">{maths(self._text(value), "html")}</td>')
            lines.append(f"<tr>{''.join(cells)}</tr>")
        # With the body that a browser would add: a page without a kernel counts elements.
        return f'<table class="attnlib-table"><tbody>{"".join(lines)}</tbody></table>'


def _words(column):
    """Return whether a column holds words; numbers may be written as text, too."""
    return all(isinstance(x, str) for x in column) and any(x[:1].isalpha() for x in column)


def table(names: Sequence[str], rows: Sequence[Sequence[Any]], *, places: int = 2, tint: Sequence[str] = ()) -> Table:
    """Return a table for the last line of a cell: HTML in a notebook, padded text elsewhere.

    Parameters
    ----------
    names : sequence of str
        Of the columns; d_k, sqrt(d_k) and q.k are set as mathematics.
    rows : sequence of sequence
        Numbers or words. Whole numbers are written as they are, others with `places` decimals.
    places : int
    tint : sequence of str
        Columns whose cells are tinted, all on one scale from 0 to their largest number.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If a row has not one entry per column, or `tint` names no column.
    TypeError, ValueError
        If a tinted column holds a word, or a number that is not finite.

    Examples
    --------
    >>> table(["d_k", "variance"], [(1, 1.0), (64, 63.9)], tint=["variance"])
    d_k   variance
      1       1.00
     64      63.90
    """
    names, places = arguments.labels(arguments.several(names, "names"), "names"), arguments.whole(places, "places", 0)
    rows = [list(arguments.several(row, "a row")) for row in arguments.several(rows, "rows")]
    tint = arguments.labels(arguments.several(tint, "tint", least=0), "tint")
    wrong = [row for row in rows if len(row) != len(names)]
    if wrong:
        raise ValueError(
            f"a row has one entry per column: expected {len(names)}, got {len(wrong[0])} in {wrong[0]}. "
            "Fix: name every column."
        )
    if unknown := set(tint) - set(names):
        raise ValueError(f"tint must name columns, got {sorted(unknown)}. Fix: choose from {names}.")
    for row in rows:
        for name, value in zip(names, row, strict=True):
            if name in tint:
                arguments.number(value, f"what is tinted, {name!r},")
    return Table(names, rows, places, tint)
