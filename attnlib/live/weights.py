"""Views of attention weights that depend on d_k (or on another number), and the numbers they tell."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arguments, core, plot, svg
from ..validation import ShapeError
from .controls import choice, slider, values_of
from .view import LiveView

__all__ = ["readings", "weights_view"]

WIDE = 500  # pixels of a map with twice as many keys as queries, so that each letter of a text keeps its label
PAIRED = 232  # pixels of each of two maps: beside each other at 1024 x 768, too, with values for up to 8 tokens
PLAIN, SCALED = "not scaled", "divided by sqrt(d_k)"  # titles of maps with and without the scale


def weights_view(
    weights_at: Callable[..., dict],
    *,
    still: Sequence[Any],
    start: Any = None,
    row: int | None = None,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    attn_mask: ArrayLike | None = None,
    trained: bool = False,
    row_name: str = "query",
    label: str | None = None,
    **values: Any,
) -> LiveView:
    """Show attention weights that depend on one number or several, with a slider for each.

    Parameters
    ----------
    weights_at : callable
        Called with the values of the sliders; returns {title: weights}, weights (n_q, n_k). Maps with one row are drawn
        as bars, others as heatmaps.
    still : sequence
        The values of the first slider in the static figure.
    start : number, optional
        Where the first slider starts; by default at the middle one of `still`. Others start in the middle.
    row : int, optional
        The query that is chosen at the start: its weights are drawn as bars, too. A click chooses another.
    queries, keys : sequence of str, optional
        Token labels.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend; other cells are hatched.
    trained : bool
        The weights come out of training, whose last digits differ from machine to machine: leave the numbers out of
        the text that stands for the static figure. The live picture shows them.
    row_name : str
        What a row is, where it is no query; "rule, share" says what a column is, too.
    label : str, optional
        What the first slider moves, where its name says too little.
    **values : (int, int) or sequence
        One for each slider; its name is the slider's label. A pair (lowest, highest) makes a slider over whole numbers;
        for ``d_k=(1, 128)`` over logarithmic stops. A list makes one over just those values, or over (text, value)
        pairs, ``num_heads=[("1, d_k = 8", 1), ("2, d_k = 4", 2)]``. After the first, lists only.

    Returns
    -------
    LiveView
        An ipywidgets VBox; show it by naming it on the last line of a cell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> query, key = rng.normal(size=(2, 4, 64))
    >>> def weights_at(d_k):
    ...     return {"not scaled": core.softmax(query[:, :d_k] @ key[:, :d_k].T)}
    >>> view = weights_view(weights_at, d_k=(1, 64), still=(1, 64))
    >>> view.sliders["d_k"].value = 64
    >>> view.shown["not scaled"].shape
    (4, 4)
    """
    still, row = arguments.several(still, "still"), None if row is None else arguments.whole(row, "row", 0)
    maps_at, controls = _validating(weights_at, values), _sliders(values, still, start, label)
    (name, *others), still = controls, list(dict.fromkeys(still))
    queries, keys = arguments.labels(queries, "queries"), arguments.labels(keys, "keys")
    attn_mask = None if attn_mask is None else arguments.mask(attn_mask)

    def panels(*value):
        """Compute the maps; where the first slider's value alone is given, the others are where they stand."""
        value += tuple(controls[other].value for other in others[len(value) - 1 :])
        return maps_at(*value)

    labels = {"queries": queries, "keys": keys, "attn_mask": attn_mask, "row_name": row_name}

    def render(*chosen):
        *value, query, key = chosen
        shown = panels(*value)
        return draw_maps(shown, row=query, column=key, bars=row is not None, **labels), shown

    def static():
        figure, text = draw_static(name, {value: panels(value) for value in still}, row=row, **labels)
        return figure, text.splitlines()[0] if trained else text

    def moving(figure, value):
        return redraw_static(figure, len(still) // 2, name, value, panels(value), **labels)

    view = LiveView(
        controls,
        render,
        static,
        moving=(moving, still[len(still) // 2]),
        picked={"query": row, "key": None},
        labels=lambda: (queries, keys, attn_mask),
    )
    view.row_name = row_name
    if row is not None:
        arguments.whole(row, "row", 0, max(map(len, view.shown.values())) - 1)
    return view


def _validating(weights_at, names):
    """Return a function that looks at what `weights_at` returns."""
    arguments.function(weights_at, "weights_at", f"weights_at({', '.join(names)})")

    def maps_at(*value):
        maps = weights_at(*value)
        if not isinstance(maps, dict) or not maps or not all(isinstance(title, str) for title in maps):
            raise TypeError(
                f"weights_at must return a dict of titles and weights, got {maps!r:.60}. "
                'Fix: return {"weights": weights}.'
            )
        return {title: _weights(title, weights) for title, weights in maps.items()}

    return maps_at


def _sliders(values, still, start, label):
    """Return a slider for each of `values`; only the first has a place where it starts."""
    if not values or {"query", "key"} & values.keys():  # these two are what a click chooses
        raise ValueError(
            f"weights_view needs a slider, and none called query or key, got {', '.join(values) or 'none'}. "
            "Fix: weights_view(weights_at, still=(1, 128), d_k=(1, 128))."
        )
    name, *others = values
    controls = {name: slider(name, values[name], still, start, label)}
    for other in others:
        stops = values_of(other, values[other])
        middle = stops[len(stops) // 2]
        controls[other] = choice(other, stops, middle[1] if isinstance(middle, tuple) else middle)
    return controls


def draw_maps(
    shown: Mapping[str, np.ndarray],
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    attn_mask: ArrayLike | None = None,
    row: int | None = None,
    column: int | None = None,
    bars: bool = False,
    free: str = "",
    row_name: str = "query",
) -> str:
    """Return a panel per title: a map (bars if it has one row), `bars` of query `row` below it, and the readings.

    With `free`, words for a row of NaN, such a row is empty and says so; what one reads there is no mean over rows.
    `attn_mask` may be a dict, with a mask or None for each title.
    """
    figures = []
    for title, weights in shown.items():
        side = PAIRED if len(shown) > 1 else WIDE if _is_wide(weights.shape) else svg.SIDE
        # What was chosen in a larger map is not framed in this one.
        i, j = (at if at is not None and at < n else None for at, n in zip((row, column), weights.shape, strict=True))
        mask = attn_mask.get(title) if isinstance(attn_mask, dict) else attn_mask
        mask, words = arguments.mask(mask, weights.shape), {}
        if free and np.isnan(weights).any():
            words, mask = {"dead": free}, ~np.isnan(weights)
        if len(weights) == 1:
            drawing = svg.bars(weights[0], title=title, keys=keys, attn_mask=None if mask is None else mask[0])
        else:
            labels = {"queries": queries, "keys": keys, "attn_mask": mask, "side": side, "row_name": row_name}
            drawing = svg.heatmap(weights, title=title, row=i, column=j, bars=bars and i is not None, **labels, **words)
            if side == WIDE and not bars:
                drawing = svg.layouts(drawing, _stack(drawing, weights, title, labels, words))
        silent = free or attn_mask is not None or len(weights) == 1
        figures.append(panel([drawing], {} if silent else readings(weights, i if bars else None, row_name)))
    return "".join(figures)


def _stack(whole, weights, title, labels, words):
    """Return a wide map as a phone has it: keys that have room for their weights, the others below."""
    queries, keys, mask = (labels[name] for name in ("queries", "keys", "attn_mask"))
    names, drawn = queries or map(str, range(len(weights))), []
    said = "(?s)<title>.*?</desc>"  # the first part speaks for all, of all keys
    most = svg.columns_on_a_phone(names, weights.shape[1])
    for first in range(0, weights.shape[1], most):
        part = np.s_[:, first : first + most]
        now = {
            "keys": (keys or [*map(str, range(weights.shape[1]))])[part[1]],
            "attn_mask": None if mask is None else mask[part],
        }
        drawing = svg.heatmap(weights[part], title="" if first else title, **labels | now, **words)
        hidden = drawing.replace('role="img"', 'aria-hidden="true"', 1)
        drawn.append(hidden if first else re.sub(said, lambda _: re.search(said, whole)[0], drawing, count=1))
    return "".join(drawn)


def _is_wide(shape):
    """Tell whether a map, (n_q, n_k), has at least twice as many keys as queries."""
    return shape[1] >= 2 * shape[0] > 2


def draw_static(
    name: str,
    columns: Mapping[Any, Mapping[str, np.ndarray]],
    *,
    row: int | None = None,
    row_name: str = "query",
    **labels: Any,
) -> tuple[Any, str]:
    """Return (Figure, text) with a column of maps per slider value; `columns` is {value: {title: weights}}."""
    titles = list(next(iter(columns.values())))
    text = [f"The picture at {name} = {', '.join(map(_stop, columns))}; run the cell for a slider."]
    for value, shown in columns.items():
        for title, weights in shown.items():
            if sentence := in_words(readings(weights, row, row_name)):
                text.append(f"{name} = {_stop(value)}, {title}: {sentence}")
    shapes = {columns[value][title].shape for title in titles for value in columns}
    if len(shapes) > 1:
        raise ShapeError(
            f"all maps of the static figure must have one shape, got {', '.join(map(str, sorted(shapes)))}. "
            "Fix: values in `still` that give maps of one shape."
        )
    maps = np.stack([columns[value][title] for title in titles for value in columns])
    titles = [f"{title}\n{name} = {_stop(value)}" for title in titles for value in columns]
    if maps.shape[1] == 1:
        figure = plot.bar_grid(maps[:, 0], titles=titles, keys=labels.get("keys"), columns=len(columns))
    else:
        beside = 1 if _is_wide(maps.shape[1:]) else len(columns)
        figure = plot.head_grid(maps, titles=titles, columns=beside, row_name=row_name, **labels)
    return figure, "\n".join(text)


def redraw_static(figure: Any, column: int, name: str, value: Any, shown: Mapping[str, Any], **labels: Any) -> Any:
    """Draw another value into a column of the figure of `draw_static`; return its axes."""
    maps = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    moved = maps[column :: len(maps) // len(shown)]  # of each title the map in this column
    for ax, (title, weights) in zip(moved, shown.items(), strict=True):
        for artist in (*ax.images, *ax.collections, *ax.artists, *ax.patches, *ax.texts):
            artist.remove()  # ax.clear() would make all ticks anew, which takes longer than the rest
        title = f"{title}\n{name} = {_stop(value)}"
        if len(weights) == 1:
            plot.bar_chart(weights[0], title=title, keys=labels.get("keys"), ax=ax)
        else:
            plot.attention_heatmap(weights, title=title, ax=ax, colorbar=False, **labels)
            ax.label_outer()
    return moved


def readings(weights: ArrayLike, row: int | None = None, row_name: str = "query") -> dict[str, float]:
    """Return what a view tells in numbers: the largest weight of a row and its entropy in nats.

    Of the only row, or the one chosen, else means. Rows that are no queries are unlike things: of them nothing.

    Examples
    --------
    >>> readings(np.array([[0.5, 0.5], [1.0, 0.0]]))["mean largest"]
    0.75
    >>> readings(np.array([[0.5, 0.5], [1.0, 0.0]]), 1)["largest"], readings(np.eye(2), row_name="rule")
    (1.0, {})
    """
    weights = arguments.to_array(weights, "weights")
    if weights.ndim == 0 or weights.size == 0:
        raise ShapeError(f"weights must be (..., n_k) with at least one, got shape {weights.shape}. Fix: a whole map.")
    if row_name != "query":
        return {}
    largest, entropy = weights.max(-1), core.entropy(weights)
    if row is not None or largest.size == 1:
        return {"largest": float(largest.flat[row or 0]), "entropy": float(entropy.flat[row or 0])}
    return {"mean largest": float(largest.mean()), "mean entropy": float(entropy.mean())}


def in_words(values: Mapping[str, float]) -> str:
    """Return readings as one line of the text that stands for a static figure.

    Examples
    --------
    >>> in_words({"mean largest": 0.75, "tokens": 5})
    'mean largest 0.7500, tokens 5'
    """
    return ", ".join(f"{what} {_format(x, 4)}" for what, x in values.items())


def _weights(title, weights):
    weights = arguments.to_array(weights, f"weights of {title!r}")
    weights = weights[None] if weights.ndim == 1 else weights
    return arguments.array_of(weights, f"weights of {title!r}", "(n_q, n_k)", "pick one head and one sequence")


def _stop(value):
    """Return a slider's value in at most four digits: titles of maps stand side by side."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _format(value, places=2):
    return str(value) if isinstance(value, int) else f"{value:.{places}f}"


def panel(drawings: Sequence[str], values: Mapping[str, float]) -> str:
    """Return drawings below each other, and numbers below them, as one <figure>."""
    caption = " ".join(f"<span>{html.escape(what)} <b>{_format(value)}</b></span>" for what, value in values.items())
    # The caption is wrapped to the width of the drawings, so that two panels fit beside each other.
    return f"<figure>{''.join(drawings)}<figcaption>{caption}</figcaption></figure>"
