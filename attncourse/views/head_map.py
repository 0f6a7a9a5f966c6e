"""All heads of a model as one grid, a cell for each, to click: what it measures, and where that head looks."""

import html

import numpy as np

from attnlib import live, svg
from attnlib.live.controls import buttons
from attnlib.live.weights import panel

SIDE = 240  # of the chosen head's map


def ranks(table):
    """Return the place of each entry, 1 for the largest.

    >>> ranks(np.array([[0.1, 0.9], [0.5, 0.2]])).tolist()
    [[4, 1], [2, 3]]
    """
    order = np.argsort(-table, axis=None, kind="stable")
    places = np.empty(table.size, dtype=int)
    places[order] = np.arange(1, table.size + 1)
    return places.reshape(table.shape)


def head_map(tables, weights, tokens, *, attn_mask=None, layer=1, head=1):
    """Show one number for every head of a model; a click on a head shows where it looks in a sentence.

    Parameters
    ----------
    tables : dict of str to ndarray, (layers, heads)
        What was measured, by name; not negative. Buttons choose one.
    weights : ndarray, (layers, heads, n, n)
        Of one sentence.
    tokens : sequence of str, (n,)
    attn_mask : ndarray of bool, (n, n), or None
        True = may attend; the other cells are hatched.
    layer, head : int
        The head that is chosen at the start, counted from 1.

    Returns
    -------
    LiveView

    Examples
    --------
    >>> view = head_map({"a": np.eye(2), "b": 1 - np.eye(2)}, np.full((2, 2, 1, 1), 1.0), ["word"], layer=2)
    >>> view.choose(head=1)
    >>> list(view.shown)
    ['layer 2, head 2']
    """
    tables = {name: np.asarray(table) for name, table in tables.items()}
    places = {name: np.array([ranks(layer) for layer in table]) for name, table in tables.items()}

    def render(name, layer, head, query, key):
        title = f"layer {layer + 1}, head {head + 1}"
        shown = np.asarray(weights[layer][head])
        readings = "; ".join(
            f"{other} {tables[other][layer, head]:.2f} (rank {places[other][layer, head]})"
            for other in dict.fromkeys((name, *tables))
        )
        readings += f". Ranks are among the {tables[name].shape[1]} heads of the layer."
        labels = {"queries": tokens, "keys": tokens, "row": query, "column": key, "attn_mask": attn_mask}
        chosen = panel([svg.heatmap(shown, title=title, side=SIDE, **labels)], {})
        words = f'<div style="width:100%;min-height:3em">{title}: {html.escape(readings, quote=False)}</div>'
        grid = svg.heads(tables[name], layer, head, name)
        if len(tables[name]) > 12:  # else a phone has room for it
            grid = f'<div class="attnlib-layers">{grid}</div>'
        return panel([grid], {}) + chosen + words, {title: shown}

    return live.LiveView(
        {"measured": buttons("measured", list(tables), next(iter(tables)))},
        render,
        picked={"layer": layer - 1, "head": head - 1, "query": None, "key": None},
        labels=lambda: (tokens, tokens, None),
        main="measured",
    )
