"""The view of who may look where."""

from __future__ import annotations

import math

import numpy as np

from .. import arguments, core, plot
from .. import masks as masks_
from .controls import buttons, choice, integers, stops
from .scaling_view import PLAIN, SCALED
from .view import LiveView
from .weights import draw_maps

KINDS = ["none", "causal", "padding", "both"]


def masks(n: int = 6, *, d_k: tuple[int, int] = (1, 128), seed: int = 0, size: float = 1.0) -> LiveView:
    """Show who may look where, under no mask, a causal one, a padding one, or both, and the weights that result.

    Parameters
    ----------
    n : int
        Number of tokens, 2 to 64.
    d_k : (int, int)
        Range of the slider, on logarithmic stops; the vectors are nested, as in `scaling`.
    seed : int
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: mask, length (real tokens; 0 leaves every query without a key), d_k.

    Examples
    --------
    >>> view = masks(n=4)
    >>> view.sliders["mask"].value, view.sliders["length"].value = "padding", 2
    >>> float(view.shown["divided by sqrt(d_k)"][:, 2:].max())
    0.0
    """
    n, d_k = arguments.whole(n, "n", 2, 64), arguments.span(d_k, "d_k")
    rng = np.random.default_rng(arguments.whole(seed, "seed", 0))
    query, key = rng.normal(size=(2, n, d_k[1]))
    now = {"mask": None}  # of the picture that is shown

    def at(kind, length, d_k):
        mask = np.ones((n, n), dtype=bool)
        if kind in ("causal", "both"):
            mask = mask & masks_.causal_mask(n)
        if kind in ("padding", "both"):
            mask = mask & masks_.padding_mask([length], n)[0]
        scores = query[:, :d_k] @ key[:, :d_k].T  # (n, n)
        return mask, {
            PLAIN: core.softmax(masks_.apply_mask(scores, mask)),
            SCALED: core.softmax(masks_.apply_mask(scores / math.sqrt(d_k), mask)),
        }

    def render(kind, length, d_k, query, key):
        mask, shown = at(kind, length, d_k)
        now["mask"] = mask
        dead = int((~mask.any(-1)).sum())
        panels = draw_maps(shown, attn_mask=mask, row=query, column=key)
        allowed = f"{int(mask.sum())} of {n * n} pairs may attend"
        return f'{panels}<div style="width:100%">{allowed}; rows without a key: {dead}</div>', shown

    def static():
        drawn = {kind: at(kind, n - 2, d_k[1]) for kind in KINDS}
        figure = plot.head_grid(
            np.stack([shown[SCALED] for _, shown in drawn.values()]),
            titles=[f"mask: {kind}" for kind in KINDS],
            attn_mask=np.stack([mask for mask, _ in drawn.values()]),
        )
        told = [f"mask {kind}: {int(mask.sum())} of {n * n} pairs may attend" for kind, (mask, _) in drawn.items()]
        return figure, "\n".join([f"The masks with {n - 2} of {n} tokens real; run the cell for controls.", *told])

    controls = {
        "mask": buttons("mask", KINDS, "both"),
        "length": integers("length", 0, n, max(n - 2, 1)),
        "d_k": choice("d_k", stops(*d_k), min(max(64, d_k[0]), d_k[1])),
    }
    picked = {"query": None, "key": None}
    labels = {"labels": lambda: (None, None, now["mask"])}
    return LiveView(controls, render, static, size=size, picked=picked, main="mask", **labels)
