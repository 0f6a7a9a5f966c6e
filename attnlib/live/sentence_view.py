"""The view of a sentence that the reader types, and of where the heads of a model look in it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from .. import arguments, plot, svg
from ..validation import ShapeError
from .controls import integers, text_field
from .view import LiveView
from .weights import panel, readings

__all__ = ["sentence"]

TYPED = 10_000  # characters of a sentence shown back in a message
SIDE, LARGE = 272, 368  # of the map: of a short sentence labels are slanted, and bars stand below


def sentence(
    attend: Callable, text: str, *, layer: int = 1, head: int = 1, still: Sequence[tuple[int, int]] = ((1, 1),)
) -> LiveView:
    """Show where the heads of a model look in a sentence the reader types.

    Any text is shown as typed; nothing in it is executed.

    Parameters
    ----------
    attend : callable
        Called with a text; returns (tokens, weights (layers, heads, n, n)). What it raises as ValueError or LookupError
        is shown as a message.
    text : str
        The sentence at the start and in the static figure.
    layer, head : int
        Counted from 1.
    still : sequence of (int, int)
        Layers and heads of the static figure.

    Returns
    -------
    LiveView
        Controls: sentence, layer, head.

    Raises
    ------
    ShapeError, TypeError
        If `attend` is no function, or does not return as many tokens as its weights have queries and keys.

    Examples
    --------
    >>> view = sentence(lambda text: (text.split(), np.full((2, 3, 2, 2), 0.5)), "two words")
    >>> view.sliders["head"].value = 3
    >>> list(view.shown)
    ['layer 1, head 3']
    """
    attend = _validating(attend)
    tokens, weights = attend(arguments.text(text, "text"))
    sliders = {"sentence": text_field("sentence", text, continuous_update=False)}
    for name, value, last in (("layer", layer, len(weights)), ("head", head, len(weights[0]))):
        sliders[name] = integers(name, 1, last, arguments.whole(value, name, 1, last))
    now = {"text": text, "tokens": tokens}

    def render(text, layer, head, query, key):
        problem = ""
        try:
            now.update(text=text, tokens=attend(text)[0])
        except (ValueError, LookupError) as error:  # the last picture stays
            problem = html.escape(str(error.args[0]))[:TYPED] + "<br>The map still shows the last sentence."
        tokens, weights = attend(now["text"])
        shown, title = weights[layer - 1, head - 1], f"layer {layer}, head {head}"
        line = f'<div style="width:100%;min-height:1.1em">{problem}</div>'
        return line + _draw_panel(title, shown, tokens, query, key), {title: shown}

    def static():
        maps = np.stack([weights[layer - 1, head - 1] for layer, head in still])
        titles = [f"layer {layer}, head {head}" for layer, head in still]
        figure = plot.head_grid(maps, queries=tokens, keys=tokens, titles=titles, columns=2)
        return figure, f"{', '.join(titles)}, where each word looks:\n{text}"

    picked = {"query": 0, "key": None}
    return LiveView(sliders, render, static, picked=picked, labels=lambda: (now["tokens"], now["tokens"], None))


def _validating(function):
    """Return a function that keeps what `function` returned for the last texts, and looks at it."""
    arguments.function(function, "attend", "attend(text)")

    @lru_cache(maxsize=8)
    def attend(text):
        tokens, weights = function(text)
        weights, n = arguments.to_array(weights), len(tokens)
        if weights.ndim != 4 or 0 in weights.shape or weights.shape[2:] != (n, n):
            raise ShapeError(
                f"attend must return weights (layers, heads, n, n): expected (..., {n}, {n}) for {n} tokens, got "
                f"{weights.shape}. Fix: weights of one sentence, without a batch axis."
            )
        return list(tokens), weights

    return attend


def _draw_panel(title, weights, tokens, query, key):
    """Return the panel of one map over the tokens of a sentence, with the weights of the chosen token as bars."""
    n = len(tokens)
    row, column = (None if at is None or at >= n else at for at in (query, key))
    large = n > svg.CELLS
    options = {"row": row, "column": column, "bars": row is not None and not large, "scale": True}
    options |= {"queries": tokens, "keys": tokens, "side": LARGE if large else SIDE, "vmax": colour_top(weights)}
    return panel([svg.heatmap(weights, title=title, **options)], {"tokens": n, **readings(weights)})


def colour_top(weights: np.ndarray) -> float:
    """Return where the colour scale ends: at 1, or if all weights are small, at the next tenth (or hundredth) above.

    Examples
    --------
    >>> colour_top(np.array([0.82])), colour_top(np.array([0.31])), colour_top(np.array([0.021]))
    (1.0, 0.4, 0.03)
    """
    largest = float(np.max(weights, initial=0, where=np.isfinite(weights)))
    if not 0 < largest <= 0.5:
        return 1.0
    step = 0.1 if largest > 0.1 else 0.01
    return round(math.ceil(round(largest / step, 6)) * step, 2)
