"""The view of all heads that were watched: a number of each, and the map of the one that is clicked."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import svg
from .view import LiveView
from .weights import draw_maps

TITLE = "At how many keys a query looks, on average: all heads"


def grid(heads: Any) -> LiveView:
    """Show all heads of a model that was watched, and the map of the one that a click chooses.

    Parameters
    ----------
    heads : Grid
        What `seen.grid()` of `attnlib.watch` returns: for each layer, a number and a small map of every head.

    Returns
    -------
    LiveView

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> view = grid(SimpleNamespace(keys=[np.ones(2)], maps=[np.stack([np.eye(3)] * 2)]))
    >>> view.choose(layer=0, head=1)
    >>> view.shown["layer 1, head 2"].shape
    (3, 3)
    """
    try:
        most = max(map(len, heads.keys))
        table = np.array([np.pad(keys, (0, most - len(keys))) for keys in heads.keys])
    except (AttributeError, TypeError, ValueError):
        got = type(heads).__name__
        raise TypeError(f"grid expects what seen.grid() returns, got {got}. Fix: live.grid(seen.grid()).") from None

    def render(layer, head):
        head = min(head, len(heads.maps[layer]) - 1)  # a layer may have fewer
        shown = {f"layer {layer + 1}, head {head + 1}": heads.maps[layer][head]}
        return svg.heads(table, layer, head, TITLE) + draw_maps(shown), shown

    hint = "Click a cell to see the map of this head; or choose it by Tab and arrow keys."
    return LiveView({}, render, picked={"layer": 0, "head": 0}, hint=hint)
