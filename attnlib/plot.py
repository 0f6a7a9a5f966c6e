"""Static pictures of attention weights with matplotlib, for print and for readers without a kernel.

Queries are rows, keys are columns, in every picture of the series. Masked cells have one hairline, NaN and
infinite cells are pink; neither is ever drawn as a small weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from numpy.typing import ArrayLike

from . import arguments, colours
from .arguments import to_array
from .colours import INK, KEY, PAPER, QUERY, QUIET, SUNK, inks, levels
from .figure import ON_CELL, ON_PALE, SERIES, SIZE, colour_map, save, subplots
from .svg.charts import names_of_axes
from .svg.parts import decimals, number, width
from .symbols import SYMBOL
from .tables import table
from .validation import kind_of

__all__ = ["SERIES", "attention_heatmap", "bar_chart", "bar_grid", "head_grid", "save", "subplots", "table", "to_array"]

LABELS_PER_AXIS = 32
LABEL_LENGTH = 24
MOST_PLACES = 17  # decimals: a float has no more
WIDEST = 9.5  # inches of a grid: in a page 700 pixels wide its text is still 10 pixels high
SMALLEST = 8.0  # points of the values in cells; what can't be read in a page 700 pixels wide is not written
GAPS = 32  # cells along an axis that stand apart


def attention_heatmap(
    weights: ArrayLike,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    attn_mask: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    vmin: float | None = 0.0,
    vmax: float | None = 1.0,
    colorbar: bool = True,
    places: int | None = 2,
    row_name: str = "query",
) -> Axes:
    """Draw one map of attention weights: row i shows where query i looks.

    Parameters
    ----------
    weights : ndarray or Tensor, (n_q, n_k)
        Weights, or any array of that shape (scores: set vmin and vmax to None).
    queries, keys : sequence of str, optional
        Token labels, shown as they are: no `$` or `<` is interpreted, characters that the font cannot draw appear as
        U+XXXX, what is longer than 24 characters is cut with an ellipsis. Numbers from 0 by default.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend. Other cells are hatched.
    title : str, optional
    ax : matplotlib Axes, optional
        A new figure by default.
    vmin, vmax : float or None
        Ends of the colour scale; None takes the smallest and largest finite value.
    colorbar : bool
        Beside a map of more than 6 cells along an axis, and of less if they have no numbers.
    places : int or None
        Decimals of the values in the cells. None writes none, nor are any written that do not fit their cells.
    row_name : str
        What a row is, where it is no query; "rule, share" says what a column is, too.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ShapeError
        If `weights` is not (n_q, n_k), or labels or mask do not fit it.
    TypeError, ValueError
        If something is of another kind, or a number is out of range.

    Examples
    --------
    >>> import attnlib as al
    >>> ax = attention_heatmap(al.softmax(np.eye(3)), queries=list("abc"), keys=list("abc"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('keys (columns)', 'queries (rows)')
    """
    fix = "pick one head and one sequence, weights[0, 0], or use head_grid for (h, n_q, n_k)"
    weights = arguments.array_of(weights, "one map", "(n_q, n_k)", fix)
    allowed, written = arguments.mask(attn_mask, weights.shape), places is not None
    places = arguments.whole(places if written else 0, "places", 0, MOST_PLACES)
    masked = np.zeros(weights.shape, dtype=bool) if allowed is None else ~allowed
    for end, name in ((vmin, "vmin"), (vmax, "vmax")):
        if end is not None:
            arguments.number(end, name)
    if ax is None:
        _, ax = subplots(figsize=_size(weights.shape[0], weights.shape[1], places=places))
    _axes(ax)
    finite = weights[~masked & np.isfinite(weights)]
    vmin = (finite.min() if finite.size else 0) if vmin is None else vmin
    vmax = (finite.max() if finite.size else 1) if vmax is None else vmax
    if vmin > vmax:
        raise ValueError(f"vmin must not be above vmax, got {vmin:g} and {vmax:g}. Fix: vmin=None, vmax=None.")
    cells = np.ma.masked_invalid(np.where(masked, vmin, weights))
    image = ax.imshow(cells, cmap=colour_map(), vmin=vmin, vmax=vmax, aspect="equal", interpolation="nearest")
    ax.set_facecolor(SUNK)
    if masked.any():
        _hatch(ax, masked)
    _set_apart(ax, weights.shape)
    if written:
        ax.add_artist(_Values(image, weights, masked, places))
    cell = _cell(ax, *weights.shape)
    _ticks(ax.xaxis, keys, weights.shape[1], "keys", cell)
    _ticks(ax.yaxis, queries, weights.shape[0], "queries", cell)
    for axis, name, colour in zip((ax.yaxis, ax.xaxis), names_of_axes(row_name), (QUERY, KEY), strict=True):
        _name_axis(axis, name, colour)
    if title is not None:
        _title(ax, title)
    if colorbar and (max(weights.shape) > 6 or not written):
        _scale(image, ax)
    return ax


def head_grid(
    weights: ArrayLike,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    attn_mask: ArrayLike | None = None,
    titles: Sequence[str] | None = None,
    columns: int = 4,
    vmax: float = 1.0,
    row_name: str = "query",
    width: float = WIDEST,
) -> Figure:
    """Draw the maps of several heads (or of anything else) side by side, on one colour scale from 0 to `vmax`.

    Parameters
    ----------
    weights : ndarray or Tensor, (h, n_q, n_k)
    queries, keys : sequence of str, optional
        As in `attention_heatmap`.
    attn_mask : ndarray of bool, (n_q, n_k) or (h, n_q, n_k), optional
        True = may attend.
    titles : sequence of str, optional
        "head 1", "head 2", ... by default.
    columns : int
        Maps in one row.
    vmax : float
        The upper end of the colour scale.
    row_name : str
        As in `attention_heatmap`.
    width : float
        Inches that the figure has at most. The text keeps its size, so it is larger beside smaller maps.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ShapeError, TypeError, ValueError
        If the maps are not (h, n_q, n_k), if labels, titles or mask do not fit them, or a number is out of range.

    Examples
    --------
    >>> figure = head_grid(np.full((2, 3, 3), 1 / 3))
    >>> [ax.get_title() for ax in figure.axes[:2]]
    ['head 1', 'head 2']
    """
    weights = arguments.array_of(weights, "head_grid takes maps that", "(h, n_q, n_k)", "pick one sequence, weights[0]")
    h, n_q, n_k = weights.shape
    titles = arguments.labels(titles, "titles", h) or [f"head {i + 1}" for i in range(h)]
    masks: Any = [None] * h if attn_mask is None else arguments.mask(attn_mask, weights.shape)
    columns, vmax = min(arguments.whole(columns, "columns", 1), h), arguments.number(vmax, "vmax", above=0)
    rows = -(-h // columns)
    wide, high = _size(n_q, n_k, colorbar=False)
    shrink = min(1.0, arguments.number(width, "width", above=0) / (wide * columns))
    size = (wide * columns * shrink, high * rows * shrink)
    # "constrained" would leave no room for slanted tokens: it does not know that the cells are squares.
    figure, axes = subplots(rows, columns, figsize=size, squeeze=False, layout="compressed")
    for ax in axes.flat[h:]:
        ax.set_axis_off()
    for i, (ax, title, mask) in enumerate(zip(axes.flat[:h], titles, masks, strict=True)):
        labels = {"queries": queries, "keys": keys, "attn_mask": mask, "title": title, "row_name": row_name}
        attention_heatmap(weights[i], ax=ax, vmax=vmax, colorbar=False, **labels)
        ax.label_outer()
    _scale(axes[0, 0].images[0], axes)
    return figure


def bar_grid(
    weights: ArrayLike, *, titles: Sequence[str], keys: Sequence[str] | None = None, columns: int = 4
) -> Figure:
    """Draw several queries' weights as bar charts, on one scale from 0 to 1.

    Parameters
    ----------
    weights : ndarray or Tensor, (charts, n_k)
    titles : sequence of str
    keys : sequence of str, optional
        As in `attention_heatmap`.
    columns : int
        Charts in one row.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> figure = bar_grid(np.array([[0.25, 0.75]]), titles=["one query"])
    >>> figure.axes[0].get_title()
    'one query'
    """
    weights = arguments.array_of(weights, "weights", "(charts, n_k)", "row[None] for a single chart")
    titles = arguments.labels(arguments.several(titles, "titles"), "titles", len(weights))
    columns = min(arguments.whole(columns, "columns", 1), len(weights))
    rows = -(-len(weights) // columns)
    names = keys or [str(row.shape[0]) for row in weights]
    longest = max((width(printable(name), SIZE) for name in names), default=0) / 72
    high = 0.6 + 0.22 * weights.shape[1]
    figure, axes = subplots(rows, columns, figsize=(min(2.4 * columns + longest, WIDEST), high * rows), squeeze=False)
    for ax in axes.flat[len(weights) :]:
        ax.set_axis_off()
    for ax, row, title in zip(axes.flat[: len(weights)], weights, titles, strict=True):
        bar_chart(row, title=title, keys=keys, ax=ax)
        if ax not in axes[:, 0]:
            ax.tick_params(labelleft=False)
            ax.set_ylabel("")
    return figure


def bar_chart(row: ArrayLike, *, title: str, ax: Axes, keys: Sequence[str] | None = None) -> None:
    """Draw one query's weights as bars.

    Parameters
    ----------
    row : ndarray, (n_k,)
    title : str
    ax : matplotlib Axes
    keys : sequence of str, optional
        As in `attention_heatmap`.

    Raises
    ------
    ShapeError, TypeError, ValueError
        If `row` is not (n_k,), has a weight that is not between 0 and 1, or labels do not fit it.
    """
    row = arguments.array_of(row, "row", "(n_k,)", "pick one query, weights[0]")
    if not ((row >= 0) & (row <= 1 + 1e-6)).all():
        raise ValueError(
            f"row must hold weights between 0 and 1, got {row.min():.4g} to {row.max():.4g}. Fix: softmax(scores)."
        )
    _axes(ax)
    # They lie, so that no word needs turning; the first key is on top.
    bars = ax.barh(range(len(row)), row, height=0.62, color=KEY)
    ax.set(xlim=(0, 1.25), ylim=(len(row) - 0.4, -0.6), xticks=[])
    ax.spines["bottom"].set_visible(False)
    for bar, weight in zip(bars, row, strict=True):
        shown = number(weight, 2)
        if float(shown):
            strong = {"color": KEY, "weight": "bold"} if weight == row.max() else {"color": QUIET}
            place = (weight + 0.02, bar.get_y() + bar.get_height() / 2)
            ax.text(*place, shown, fontsize=SIZE, va="center_baseline", **strong)
    figure: Any = ax.figure
    high = ax.get_position().height * figure.get_figheight()
    _ticks(ax.yaxis, keys, len(row), "keys", 0.9 * high / len(row))
    _name_axis(ax.yaxis, "keys", KEY)
    _title(ax, title)


def _scale(image, axes):
    """Draw the colours of a map beside it: a thin bar without a frame, with numbers at its ends."""
    bar = image.axes.figure.colorbar(image, ax=axes, shrink=0.5, aspect=24, pad=0.03, ticks=image.get_clim())
    bar.ax.set_facecolor(SUNK)  # under a veil, as below the map
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.set_yticklabels([f"{end:.3g}" for end in image.get_clim()], fontsize=SIZE)


def _set_apart(ax, shape):
    """Draw gaps between the cells of a map that is not too large for them."""
    if max(shape) <= GAPS:
        (n, m), line = shape, {"colors": PAPER, "linewidth": 1 if max(shape) <= 16 else 0.5, "zorder": 1.5}
        ax.vlines(np.arange(m - 1) + 0.5, -0.5, n - 0.5, **line)
        ax.hlines(np.arange(n - 1) + 0.5, -0.5, m - 0.5, **line)


def _size(n_q, n_k, colorbar=True, places=2):
    """Return inches that leave room for values in small maps and stay on a screen for large ones."""
    n = max(n_q, n_k)
    cell = 0.25 + 0.125 * places if n <= 6 else 0.5 if n <= 12 else 6 / n
    return cell * n_k + 1.3 + 0.9 * colorbar, cell * n_q + 1.1


def _axes(ax):
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be axes of matplotlib, got {kind_of(ax)}. Fix: figure, ax = plot.subplots().")


def _hatch(ax, masked):
    if masked.size <= 4096:
        corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
        cells = np.argwhere(masked)[:, None, ::-1]  # (cells, 1, 2) as x, y
        ground = Path.make_compound_path(*map(Path, cells + corners))
        lines = Path.make_compound_path(*map(Path, cells + np.array([(-0.26, 0.26), (0.26, -0.26)])))
        ax.add_patch(PathPatch(ground, facecolor=colours.MASKED, linewidth=0))
        ax.add_patch(PathPatch(lines, facecolor="none", edgecolor=colours.HATCH, linewidth=0.6))
        return
    stripes = np.zeros((*masked.shape, 4), dtype=np.uint8)  # thousands of hatched polygons are slow
    stripes[masked] = colours.stripe_pixels(*np.nonzero(masked))
    ax.imshow(stripes, interpolation="nearest")


class _Values(Artist):
    """The values in the cells of a map: written when they are first drawn, in the size that fits the cells, or not."""

    def __init__(self, image, weights, masked, places):
        super().__init__()
        self.set_zorder(2.5)  # after the image, before the texts
        self.set_in_layout(False)
        cells = np.argwhere(~masked) if weights.size - masked.sum() <= 20**2 else ()
        count = decimals(weights[~masked], np.inf, most=places) or 0 if len(cells) else 0
        self.words = {(i, j): number(weights[i, j], count) for i, j in cells}
        self.image, self.weights, self.texts = image, weights, []

    def draw(self, renderer):
        size = self._size(renderer) if self.words and self.get_visible() else None
        # Only once they are seen: of a large map they are thousands of texts that no cell has room for.
        new = [] if self.texts or size is None else self._write_weights()
        self.texts += new
        for text in self.texts:
            text.set_visible(size is not None)
            text.set_fontsize(size or text.get_fontsize())
        for text in new:  # the axes have begun to draw, and do not know of them yet
            text.draw(renderer)

    def _size(self, renderer):
        """Return the largest size in which the longest value fits its cell, or None."""
        corners = self.axes.transData.transform([(0, 0), (1, 1)])
        wide, high = abs(corners[1] - corners[0])
        longest = Text(text=max(self.words.values(), key=len), figure=self.axes.figure)
        for size in (SIZE, SMALLEST):
            if 1.05 * size >= self.axes.figure.get_figwidth():
                longest.set_fontsize(size)
                box = longest.get_window_extent(renderer)
                if box.width <= 0.9 * wide and box.height <= 0.9 * high:
                    return size
        return None

    def _write_weights(self):
        ends, texts = self.image.get_clim(), []
        for (i, j), word in self.words.items():
            known = np.isfinite(self.weights[i, j])
            ink = inks()[levels(self.weights[i, j], *ends)] if known else "#000000"
            pale = ink != "#000000"  # on a dark page its cell is dark
            look = {"color": INK if pale else ink, "gid": ON_PALE if pale else ON_CELL}
            texts.append(self.axes.text(j, i, word, ha="center", va="center", **look))
            texts[-1].set_in_layout(False)
        return texts


def _name_axis(axis, text, colour):
    """Name an axis in the colour of its role, which its words have in a shade that can be read."""
    axis.set_label_text(text, color=colour, fontsize=SIZE, weight="bold")
    axis.labelpad = 6


def _title(ax, title):
    """Set a title as it is, with d_k, sqrt(d_k), W_Q, K^T and q.k as mathematics; `$` is never interpreted."""

    def symbol(match):
        if match["root"]:
            inside = SYMBOL.sub(symbol, match["root"])
            if inside == match["root"]:  # a name such as embed_dim: its underscore is none of mathematics
                inside = r"\mathrm{{{}}}".format(inside.replace("_", r"\_"))
            return rf"\sqrt{{{inside}}}"
        if match["letter"]:
            sub = match["sub"] if len(match["sub"]) == 1 else rf"\mathrm{{{match['sub']}}}"
            return f"{match['letter']}_{{{sub}}}{match['prime']}"
        return f"{match['up']}^T" if match["up"] else r"q\cdot k"

    words = arguments.text(title, "title").replace("$", r"\$")
    math = SYMBOL.sub(lambda match: f"${symbol(match)}$", words)
    ax.set_title(title if math == words else math, parse_math=math != words, gid=title)


def _ticks(axis, labels, n, name, cell):
    """Label as many tokens as have room in cells of `cell` inches; words that are wider than theirs are slanted."""
    labels = arguments.labels(labels, name, n)
    texts = [str(i) if labels is None else printable(labels[i]) for i in range(n)]
    longest = max(width(text, SIZE) for text in texts) / 72
    words = not all(text.isdecimal() for text in texts)
    slanted = name == "keys" and axis.axis_name == "x" and longest > cell and words
    line = 1.3 * SIZE / 72
    step = max(-(-n // LABELS_PER_AXIS), ceil((line if slanted or axis.axis_name == "y" else longest) / cell))
    turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    axis.set_ticks(range(0, n, step), texts[::step], parse_math=False, fontsize=SIZE, color=INK, **turned)


def _cell(ax, n_q, n_k):
    """Return about how many inches a cell will have: the layout leaves a little less than the place of `ax`."""
    place, (wide, high) = ax.get_position(), ax.figure.get_size_inches()
    return 0.85 * min(place.width * wide / n_k, place.height * high / n_q)


def printable(label: Any) -> str:
    """Return a label that matplotlib's font can draw, with U+XXXX for what it cannot, at most 24 characters long."""
    glyphs = _glyphs()
    text = "".join(c if ord(c) in glyphs and c.isprintable() else f"U+{ord(c):04X}" for c in str(label))
    return text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"


@lru_cache(maxsize=1)
def _glyphs():
    path = font_manager.findfont("DejaVu Sans")  # ships with matplotlib: the same picture on every machine
    return frozenset(font_manager.get_font(path).get_charmap())
