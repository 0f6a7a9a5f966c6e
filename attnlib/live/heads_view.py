"""The view of all heads of a layer."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .. import arguments, core, plot, svg
from .. import heads as heads_
from ..validation import ShapeError
from .controls import choice, integers
from .view import LiveView
from .weights import in_words, panel, readings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

GRID, COLUMNS = 400, 4  # height of the grid of small maps, and how many stand beside each other
MOST = 36  # heads: their maps are then 14 pixels wide


def heads(
    weights: ArrayLike | None = None,
    *,
    n: int = 6,
    d_model: int = 64,
    seed: int = 0,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    attn_mask: ArrayLike | None = None,
    size: float = 1.0,
) -> LiveView:
    """Show the maps of all heads side by side, and one of them (or their average) large.

    Parameters
    ----------
    weights : ndarray or Tensor, (h, n_q, n_k), optional
        The weights of a layer of up to 36 heads. Without them n random tokens go through random projections, and a
        slider sets the number of heads at fixed d_model, so that d_k = d_model / h changes.
    n, d_model, seed : int
        Used without `weights`.
    queries, keys : sequence of str, optional
        Token labels.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: num_heads where `weights` are not given, and head (0 is the average), of which there are as many.

    Examples
    --------
    >>> view = heads(np.stack([np.eye(3), np.full((3, 3), 1 / 3)]))
    >>> view.sliders["head"].value = 2
    >>> view.shown["head 2"][0].round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    layer, controls = _random_layer(n, d_model, seed) if weights is None else _given(weights)
    queries, keys = arguments.labels(queries, "queries"), arguments.labels(keys, "keys")
    n_q, n_k = layer(*(control.value for name, control in controls.items() if name != "head")).shape[1:]
    attn_mask = None if attn_mask is None else arguments.mask(attn_mask, (n_q, n_k))
    cached = lru_cache(maxsize=2)(layer)
    small = lru_cache(maxsize=64)(lambda h, i, framed: _small(cached(*h), i, framed))
    labels = {"queries": queries, "keys": keys, "attn_mask": attn_mask}

    def render(*values):
        *h, head, query, key = values
        maps = cached(*h)
        title, chosen = one_head(maps, head)
        top = colour_top(maps)
        row, column = (
            None if at is None or at >= length else at for at, length in zip((query, key), chosen.shape, strict=True)
        )
        large = svg.heatmap(chosen, title=title, vmax=top, scale=True, row=row, column=column, **labels)
        return panel([large], readings(chosen)) + _grid(
            [small(tuple(h), i, i == head) for i in range(1, len(maps) + 1)]
        ), {title: chosen}

    def static():
        maps = layer(*(control.value for name, control in controls.items() if name != "head"))
        told = [f"head {i}: {in_words(readings(m))}" for i, m in enumerate(maps, start=1)]
        figure = plot.head_grid(maps, **labels)
        return figure, "\n".join([f"The maps of {len(maps)} heads; run the cell to choose one.", *told])

    picked = {"query": None, "key": None}
    return LiveView(controls, render, static, size=size, picked=picked, labels=lambda: (queries, keys, attn_mask))


def _random_layer(n, d_model, seed):
    """Return a function from a number of heads to the maps of random tokens, and the controls for it."""
    n, d_model = arguments.whole(n, "n", 1, 64), arguments.whole(d_model, "d_model", 1, arguments.WIDEST)
    query, key = np.random.default_rng(arguments.whole(seed, "seed", 0)).normal(size=(2, n, d_model))
    counts = [h for h in range(1, d_model + 1) if d_model % h == 0 and h <= 16]
    options = [(f"{h}, so d_k = {d_model // h}", h) for h in counts]
    start = counts[len(counts) // 2 + len(counts) // 4]
    number, head = choice("num_heads", options, start), integers("head", 0, start, 1)

    def layer(h):
        return core.attention_trace(*(heads_.split_heads(x, h) for x in (query, key, key))).weights

    def fewer(change):  # a slider that went to 16 would speak of head 7 of 1
        head.max = change["new"]

    number.observe(fewer, "value")
    return layer, {"num_heads": number, "head": head}


def _given(weights):
    fixed = arguments.shaped(weights, "weights", "(h, n_q, n_k)", "pick one sequence, weights[0]")
    if len(fixed) > MOST:
        raise ShapeError(f"heads shows up to {MOST} heads, got {len(fixed)}. Fix: weights[:{MOST}].")
    return lambda: fixed, {"head": integers("head", 0, len(fixed), 1)}


def _small(maps, i, framed):
    """Return head `i`, counted from 1, as large as all of them together can be."""
    side = min(112, GRID // -(-len(maps) // COLUMNS) - 30)
    return svg.thumbnail(maps[i - 1], title=f"head {i}", side=side, vmax=colour_top(maps), framed=framed, head=i)


def _grid(pictures):
    style = f"grid-template-columns:repeat({min(len(pictures), COLUMNS)},auto)"
    return f'<div class="attnlib-heads" style="{style}">{"".join(pictures)}</div>'


def one_head(maps, head):
    """Return (title, map) of one head, or of the average of all if `head` is 0; a number too high means the last one.

    Examples
    --------
    >>> one_head(np.stack([np.eye(2), np.ones((2, 2))]), 5)[0]
    'head 2'
    """
    head = min(head, len(maps))
    return ("average of all heads", maps.mean(0)) if head == 0 else (f"head {head}", maps[head - 1])


def colour_top(weights):
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
