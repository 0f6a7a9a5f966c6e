"""What a check says, as text and as HTML that holds in light and dark themes."""

import html
import re
import sys
from dataclasses import dataclass

import numpy as np

from attnlib.colours import KEY, LINE, VALUE
from attnlib.symbols import CODE, maths

from .compare import isclose
from .pictures import ROW, beside, tint_cell, words

_MARKS = {"right": "✓", "wrong": "✗", "not tried": "…"}
TINTS = {"✓": VALUE, "✗": KEY, "…": LINE}
BOX = "background:{}22;border-radius:8px;color:currentColor;padding:12px 16px;max-width:100%"  # a veil, in both themes
_BUTTON = (
    f"cursor:pointer;display:inline-block;border:1px solid {LINE};border-radius:6px;padding:4px 12px;margin:6px 0 0"
)
_MOST_ROWS = 12  # and columns, of a heatmap
_MOST_WORDS = 4000  # characters of a message: an answer can have a name, or an error, of any length


@dataclass(repr=False, eq=False)
class Verdict:
    """The result of one check. It shows itself in a notebook.

    Attributes
    ----------
    exercise : str
        The name of its check.
    state : "not tried", "wrong" or "right"
    message : str
        What was found, in words.
    mistake : str or None
        Id of the mistake in `attncourse.MISTAKES` that explains the whole answer; None if no single one does.
    stage : str or None
        Where a wrong answer first departs from the right one, if that could be told: scores, scale, mask, softmax,
        output, ...
    yours, expected : ndarray or None
        The first pair of arrays that differ.
    heading : str
        Number and title of the exercise, as the notebook has them.
    meaning, picture, next : str
        What a right answer means, in a sentence; a picture of it, as HTML; and what comes next.

    Examples
    --------
    >>> from attncourse import check
    >>> check.key_of_anna(None)
    … 1.1 · A key: not tried yet
    >>> check.key_of_anna([1, 1, 0]).passed
    True
    """

    exercise: str
    state: str
    message: str
    mistake: str | None = None
    stage: str | None = None
    yours: np.ndarray | None = None
    expected: np.ndarray | None = None
    axes: tuple = ()
    hints: tuple = ()
    heading: str = ""
    meaning: str = ""
    picture: str = ""
    next: str = ""
    _shown: int = 0

    def __post_init__(self):
        """Shorten a long message. Drop a hint that repeats an earlier one: exercise and mistake may share words."""
        if len(self.message) > _MOST_WORDS:
            self.message = f"{self.message[:_MOST_WORDS]} ..."
        self.hints = tuple(hint for i, hint in enumerate(self.hints) if not any(hint in h for h in self.hints[:i]))

    @property
    def passed(self):
        return self.state == "right"

    def __bool__(self):
        return self.passed  # so that `assert check.key_of_anna(answer)` in a grader does not pass a wrong answer

    def hint(self):
        """Return the next hint; each call goes one step further, the last one stops just before the solution."""
        if self.passed:
            return "No hint needed: this is right."
        self._shown = min(self._shown + 1, len(self.hints))
        return f"Hint {self._shown} of {len(self.hints)}: {self.hints[self._shown - 1]}"

    def _title(self):
        state = {"right": "", "wrong": ": wrong", "not tried": ": not tried yet"}[self.state]
        return f"{_MARKS[self.state]} {self.heading or self.exercise}{state}"

    def __repr__(self):
        title = self._title() + (": right" if self.passed else f" ({self.mistake})" if self.mistake else "")
        return "\n".join(filter(None, (title, self.meaning.replace("*", ""), self.message, self.next.replace("*", ""))))

    def __str__(self):
        return printable(repr(self))

    def _repr_html_(self):
        both = {"yours": (self.yours, self.expected), "expected": (self.expected, self.yours)}
        arrays = [(title, *pair) for title, pair in both.items() if pair[0] is not None]
        maps = [_heatmap(*array, self.axes, self._range()) for array in arrays]
        shown = (beside(*maps) if maps else "") + self.picture
        return (
            f'<div class="attnlib-{self.state}" style="{BOX.format(TINTS[_MARKS[self.state]])}">'
            f"<strong>{maths(self._title(), 'html')}</strong>"
            + _line(words(self.meaning))
            + _line(as_html(self.message))
            + (f'<div style="overflow:auto;margin-top:6px">{shown}</div>' if shown else "")
            + _line(words(self.next), "opacity:.8;")
            + ("" if self.passed else self._hints_to_open())
            + "</div>"
        )

    def _hints_to_open(self):
        """Return the hints, each folded into the one before: the fold is a button that no kernel need answer."""
        inner, count = "", len(self.hints)
        for i, hint in reversed([*enumerate(self.hints, 1)]):
            asked = "Give me a hint" if i == 1 else "The next hint"
            inner = (
                f'<details><summary style="{_BUTTON}">▸ {asked} ({i} of {count})</summary>'
                f"{_line(as_html(hint))}{inner}</details>"
            )
        return inner

    def _range(self):
        """Return one colour scale for both maps, set by the expected one: a wild answer must not flatten it."""
        finite = self.expected[np.isfinite(self.expected)] if self.expected is not None else np.empty(0)
        return (finite.min(), finite.max()) if finite.size else (0, 1)


def _line(text, style=""):
    """Return a line of a verdict, already HTML, or nothing where there are no words."""
    return f'<div style="{style}margin-top:3px;max-width:40em">{text}</div>' if text else ""


_LINE = r"(?<=\bLine \d: )[^\n]+|(?<=\bLine \d\d: )[^\n]+"  # of the reader's code, as run.describe_error quotes it


def as_html(text):
    """Return plain words as safe HTML: lines are kept, code is shown as such, sqrt(d_k) as mathematics.

    >>> as_html("d_k, np.sqrt(d_k)")
    '<i>d</i><sub>k</sub>, <code>np.sqrt(d_k)</code>'
    >>> as_html("Line 7: return f(q) @ W_O")
    'Line 7: <code>return f(q) @ W_O</code>'
    """
    found = re.split(f"({_LINE}|{CODE})", text)
    parts = (f"<code>{html.escape(x.strip('`'))}</code>" if i % 2 else maths(x, "html") for i, x in enumerate(found))
    return "".join(parts).replace("\n", "<br>")


def printable(text):
    """Return `text` in the console's encoding: on Windows (cp1252) and under LC_ALL=C there is no check mark."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for mark in _MARKS.values():
            text = text.replace(f"{mark} ", "")  # the words after a mark say the same
        text = text.replace(" · ", " ")
    return text.encode(encoding, "backslashreplace").decode(encoding)


def matrix_around(array, index):
    """Return the last two axes of `array` around `index`, as floats."""
    return np.atleast_2d(np.asarray(array[index[:-2]] if array.ndim > 2 else array, dtype=np.float64))


def number(x):
    """Write a number with four digits, the same on every machine; what a large score leaves of a weight is 0."""
    return f"{0.0 if abs(x) < 1e-15 else float(x):.4g}" if np.isfinite(x) else str(float(x))


def _heatmap(title, array, other, axes, limits):
    rows, columns = (min(size, _MOST_ROWS) for size in array.shape)
    cut = "" if array.shape == (rows, columns) else f" (the first {rows} x {columns})"
    cells = "".join(
        ROW
        + "".join(tint_cell(_cell_text(array, other, i, j), array[i, j], limits, None) for j in range(columns))
        + "</tr>"
        for i in range(rows)
    )
    where = f"<br>{html.escape(axes[0])} (rows), {html.escape(axes[1])} (columns)" if axes else ""
    return (
        '<table style="border-collapse:separate;border-spacing:2px;color:currentColor;margin:6px 0">'
        '<caption style="color:currentColor;text-align:left">'
        f"{title} {array.shape}{cut}{where}</caption>"
        f"<tbody>{cells}</tbody></table>"
    )


def _differ(a, b, i, j):
    there = i < b.shape[0] and j < b.shape[1]
    return not (there and isclose(a[i, j], b[i, j], rtol=1e-3, atol=1e-4, equal_nan=True))


def _cell_text(array, other, i, j):
    """Return what a cell says: its number, a mark if it differs, and "free" where the right answer allows anything."""
    if other is not None and _differ(array, other, i, j):
        return f"≠ {number(array[i, j])}"
    return "free" if other is not None and np.isnan(array[i, j]) else number(array[i, j])
