"""Static pictures of attention weights with matplotlib, for print and for readers without a kernel.

Queries are rows, keys are columns, in every picture of the series. Masked cells are hatched, NaN and infinite cells
are pink; neither is ever drawn as a small weight.
"""

from functools import lru_cache

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib import pyplot as plt
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from .validation import ShapeError

# One colour each, in every figure and view of the series; the word always stands beside it.
QUERY, KEY, VALUE = "#0072B2", "#D55E00", "#009E73"
CMAP = "viridis"
NOT_FINITE = "#CC79A7"
MASKED = "#E8E8E8"
HATCH = "#767676"

LABELS_PER_AXIS = 32
LABEL_LENGTH = 24


def attention_heatmap(
    weights,
    *,
    queries=None,
    keys=None,
    attn_mask=None,
    title=None,
    ax=None,
    vmin=0.0,
    vmax=1.0,
    colorbar=True,
):
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

    Returns
    -------
    matplotlib Axes
        Maps up to 6 x 6 carry values with 4 decimals, up to 12 x 12 with 2, larger ones none.

    Raises
    ------
    ShapeError
        If `weights` is not (n_q, n_k), or labels or mask do not fit it.

    Examples
    --------
    >>> import attnlib as al
    >>> ax = attention_heatmap(al.softmax(np.eye(3)), queries=list("abc"), keys=list("abc"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('keys (columns)', 'queries (rows)')
    """
    weights = to_array(weights)
    if weights.ndim != 2 or weights.size == 0:
        raise ShapeError(
            f"one map is (n_q, n_k) with at least one cell, got shape {weights.shape}. "
            "Fix: pick one head and one sequence, weights[0, 0], or use head_grid for (h, n_q, n_k)."
        )
    n_q, n_k = weights.shape
    masked = _masked_cells(attn_mask, weights.shape)
    if ax is None:
        _, ax = plt.subplots(figsize=_size(n_q, n_k), layout="constrained", FigureClass=DescribedFigure)
    cmap = matplotlib.colormaps[CMAP].with_extremes(bad=NOT_FINITE)
    cells = np.ma.masked_invalid(np.where(masked, 0 if vmin is None else vmin, weights))
    drawn = cells[~masked & np.isfinite(weights)]
    vmin = (drawn.min() if drawn.size else 0) if vmin is None else vmin
    vmax = (drawn.max() if drawn.size else 1) if vmax is None else vmax
    image = ax.imshow(cells, cmap=cmap, vmin=vmin, vmax=vmax, aspect="equal", interpolation="nearest")
    if masked.any():
        _hatch(ax, masked)
    if max(n_q, n_k) <= 12:
        _write_values(ax, weights, masked, image, decimals=4 if max(n_q, n_k) <= 6 else 2)
    for axis, labels, n, colour, text in (
        (ax.xaxis, keys, n_k, KEY, "keys (columns)"),
        (ax.yaxis, queries, n_q, QUERY, "queries (rows)"),
    ):
        _ticks(axis, labels, n, text.split()[0])
        axis.set_label_text(text, color=colour, fontweight="bold")
    if title is not None:
        ax.set_title(title, parse_math=False)
    if colorbar:
        ax.figure.colorbar(image, ax=ax, shrink=0.8)
    return ax


def head_grid(weights, *, queries=None, keys=None, attn_mask=None, titles=None, columns=4):
    """Draw the maps of several heads (or of anything else) side by side, on one colour scale from 0 to 1.

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

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> figure = head_grid(np.full((2, 3, 3), 1 / 3))
    >>> [ax.get_title() for ax in figure.axes[:2]]
    ['head 1', 'head 2']
    """
    weights = to_array(weights)
    if weights.ndim != 3 or 0 in weights.shape:
        raise ShapeError(
            f"head_grid takes (h, n_q, n_k) with at least one head and cell, got shape {weights.shape}. "
            "Fix: pick one sequence of a batch, weights[0]."
        )
    h, n_q, n_k = weights.shape
    titles = [f"head {i + 1}" for i in range(h)] if titles is None else list(titles)
    if len(titles) != h:
        raise ShapeError(f"titles must hold one text per map: expected {h}, got {len(titles)}. Fix: leave them out.")
    masks = [None] * h if attn_mask is None else np.broadcast_to(to_array(attn_mask), weights.shape)
    rows, columns = -(-h // columns), min(columns, h)
    width, height = _size(n_q, n_k, colorbar=False)
    shrink = min(1.0, 14 / (width * columns))
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns * shrink, height * rows * shrink),
        squeeze=False,
        layout="constrained",
        FigureClass=DescribedFigure,
    )
    for ax in axes.flat[h:]:
        ax.set_axis_off()
    for i, (ax, title, mask) in enumerate(zip(axes.flat[:h], titles, masks, strict=True)):
        attention_heatmap(weights[i], queries=queries, keys=keys, attn_mask=mask, title=title, ax=ax, colorbar=False)
        ax.label_outer()
    figure.colorbar(axes[0, 0].images[0], ax=axes, shrink=0.8)
    return figure


def bar_grid(weights, *, titles, keys=None, columns=4):
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
    weights = to_array(weights)
    columns = min(columns, len(weights))
    rows = -(-len(weights) // columns)
    size = (3 * columns, 2.6 * rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained", FigureClass=DescribedFigure
    )
    for ax in axes.flat[len(weights) :]:
        ax.set_axis_off()
    for ax, row, title in zip(axes.flat, weights, titles, strict=False):
        bars = ax.bar(range(len(row)), row, color=[palette()[int(255 * w)][0] for w in row])
        ax.bar_label(bars, fmt="{:.4f}")
        ax.set_ylim(0, 1.15)
        _ticks(ax.xaxis, keys, len(row), "keys")
        ax.set_xlabel("keys (columns)", color=KEY, fontweight="bold")
        ax.set_ylabel("weight")
        ax.set_title(title, parse_math=False)
    return figure


class DescribedFigure(Figure):
    """A figure whose repr says in words what it shows: the text that a notebook stores beside the picture.

    It tells sizes, titles and labels, and no weights: trained ones differ from machine to machine.
    """

    def __repr__(self):
        drawn = [ax for ax in self.axes if ax.get_label() != "<colorbar>" and ax.axison]
        titles = [" ".join(ax.get_title().split()) for ax in drawn if ax.get_title()]
        kind = "Heatmap" if drawn and drawn[0].images else "Bar chart"
        text = f"{kind}{'s' if len(drawn) > 1 else ''}"
        if titles:
            text += f": {'; '.join(titles)}"
        if drawn and drawn[0].images:
            n_q, n_k = drawn[0].images[0].get_array().shape
            text += f". {n_q} queries (rows) by {n_k} keys (columns)"
        return f"{text}."


def to_array(x):
    """Return an ndarray, also of a torch tensor that needs a gradient or lies on another device."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.numpy() if str(x.dtype) == "torch.bool" else x.double().numpy()
    x = np.asarray(x)
    if x.dtype.kind not in "biuf":
        raise TypeError(f"a picture needs real numbers, got dtype {x.dtype}. Fix: pass the weights, not their labels.")
    return x


@lru_cache(maxsize=1)
def palette():
    """Return the 256 colours of the map as (hex, "#000000" or "#ffffff" for text on it)."""
    rgb = matplotlib.colormaps[CMAP](np.arange(256))[:, :3]
    return [(matplotlib.colors.to_hex(c), text_colour(c)) for c in rgb]


def text_colour(rgb):
    """Return black or white, whichever stands out more on `rgb` (at least 4.58 : 1, WCAG 2 contrast)."""
    rgb = np.asarray(rgb)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ (0.2126, 0.7152, 0.0722))
    return "#000000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def _size(n_q, n_k, colorbar=True):
    """Return inches that leave room for values in small maps and stay on a screen for large ones."""
    cell = 0.75 if max(n_q, n_k) <= 6 else 0.5 if max(n_q, n_k) <= 12 else 6 / max(n_q, n_k)
    return cell * n_k + 1.4 + 0.9 * colorbar, cell * n_q + 1.1


def _masked_cells(attn_mask, shape):
    if attn_mask is None:
        return np.zeros(shape, dtype=bool)
    attn_mask = to_array(attn_mask)
    if attn_mask.dtype != bool:
        raise TypeError(
            f"attn_mask of a picture must be boolean (True = may attend), got dtype {attn_mask.dtype}. "
            "Fix: from_zero_blocked(mask) for 0/1 masks, mask > -inf for additive ones."
        )
    try:
        return np.broadcast_to(~attn_mask, shape)
    except ValueError:
        raise ShapeError(
            f"attn_mask must be (n_q, n_k) = {shape} or broadcast to it, got {attn_mask.shape}. "
            "Fix: pick the mask of this sequence, attn_mask[0]."
        ) from None


def _hatch(ax, masked):
    if masked.size <= 4096:
        corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
        cells = np.argwhere(masked)[:, None, ::-1] + corners  # (cells, 4, 2) as x, y
        ax.add_collection(PolyCollection(cells, facecolor=MASKED, edgecolor=HATCH, hatch="///", linewidth=0))
        return
    rows, columns = np.indices(masked.shape)  # thousands of hatched polygons are slow: stripes of cells instead
    stripes = np.where((rows + columns) % 6 < 2, 0.45, 0.9)
    ax.imshow(np.ma.masked_where(~masked, stripes), cmap="gray", vmin=0, vmax=1, interpolation="nearest")


def _write_values(ax, weights, masked, image, decimals):
    for i, j in np.ndindex(weights.shape):
        if masked[i, j]:
            continue
        value = weights[i, j]
        colour = image.cmap(image.norm(value))[:3] if np.isfinite(value) else matplotlib.colors.to_rgb(NOT_FINITE)
        size = 11 if decimals == 4 else 9
        ax.text(j, i, f"{value:.{decimals}f}", ha="center", va="center", color=text_colour(colour), fontsize=size)


def _ticks(axis, labels, n, name):
    step = -(-n // LABELS_PER_AXIS)
    positions = list(range(0, n, step))
    if labels is not None and len(labels) != n:
        raise ShapeError(
            f"{name} must hold one label per token: expected {n}, got {len(labels)}. Fix: pass all tokens."
        )
    texts = [printable(labels[i]) if labels is not None else str(i) for i in positions]
    long = name == "keys" and max(map(len, texts)) > 3
    axis.set_ticks(positions, texts, parse_math=False, **({"rotation": 45, "ha": "right"} if long else {}))


def printable(label):
    """Return a label that matplotlib's font can draw, with U+XXXX for what it cannot, at most 24 characters long."""
    glyphs = _glyphs()
    text = "".join(c if ord(c) in glyphs and c.isprintable() else f"U+{ord(c):04X}" for c in str(label))
    return text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"


@lru_cache(maxsize=1)
def _glyphs():
    path = font_manager.findfont("DejaVu Sans")  # ships with matplotlib: the same picture on every machine
    return frozenset(font_manager.get_font(path).get_charmap())
