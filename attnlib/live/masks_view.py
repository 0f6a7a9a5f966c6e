"""The view of who may look where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arguments, core, plot
from ..masks import apply_mask, causal_mask, padding_mask
from ..validation import ShapeError
from .controls import FEATURES, buttons, choice, integers, stops
from .view import LiveView
from .weights import PLAIN, SCALED, draw_maps

KINDS = ["none", "causal", "padding", "both"]
OWN = "weights"  # title of the map of given vectors


def masks(
    n: int = 6,
    *,
    query: ArrayLike | None = None,
    key: ArrayLike | None = None,
    tokens: Sequence[str] | None = None,
    kinds: Sequence[str] = KINDS,
    d_k: tuple[int, int] = (1, 128),
) -> LiveView:
    """Show who may look where, under no mask, a causal one, a padding one, or both, and the weights that result.

    Parameters
    ----------
    n : int
        Number of tokens, 2 to 64.
    query, key : array_like, (n, d_k), optional
        Vectors of your own: the view shows one map, of scores divided by sqrt(d_k). They replace `n` and `d_k`.
        Without them unit-normal ones are drawn, and the map without the division stands beside.
    tokens : sequence of str, optional
        Labels of the rows and columns.
    kinds : sequence of str
        Which of "none", "causal", "padding" and "both" can be chosen; starts with "both", or else with the first.
    d_k : (int, int)
        Range of the slider, on logarithmic stops; every d_k takes the first entries of the same vectors.

    Returns
    -------
    LiveView
        Controls: mask, length (real tokens, 0 leaves every query without a key; only where a kind has padding), and d_k
        of drawn vectors.

    Raises
    ------
    ShapeError, TypeError, ValueError
        If query and key are not two arrays of one shape, or a kind is another word.

    Examples
    --------
    >>> view = masks(n=4)
    >>> view.sliders["mask"].value, view.sliders["length"].value = "padding", 2
    >>> float(view.shown["divided by sqrt(d_k)"][:, 2:].max())
    0.0
    >>> own = masks(query=np.eye(3), key=np.eye(3), kinds=["causal"])
    >>> own.shown["weights"][0]
    array([1., 0., 0.])
    """
    kinds = [arguments.one_of(kind, "each of kinds", KINDS) for kind in arguments.several(kinds, "kinds")]
    if query is None and key is None:
        n, d_k = arguments.whole(n, "n", 2, 64), arguments.span(d_k, "d_k")
        rng = np.random.default_rng(0)
        scene = _Scene(rng.normal(size=(2, n, d_k[1])), random=True)
    else:
        scene = _Scene(_pair(query, key), random=False)
        n, d_k = arguments.whole(len(scene.query), "the number of tokens", 2, 64), (1, scene.query.shape[1])
    tokens, now = arguments.labels(tokens, "tokens", n), {"mask": None}  # of the picture that is shown

    def render(kind, *rest):
        *rest, row, column = rest
        chosen = {"length": n, "d_k": d_k[1]} | dict(zip(list(controls)[1:], rest, strict=True))
        now["mask"], shown = scene.at(kind, **chosen)
        dead = int((~now["mask"].any(-1)).sum())
        panels = draw_maps(shown, queries=tokens, keys=tokens, attn_mask=now["mask"], row=row, column=column)
        allowed = f"{int(now['mask'].sum())} of {n * n} pairs may attend"
        return f'{panels}<div style="width:100%">{allowed}; rows without a key: {dead}</div>', shown

    padded = {"length": integers("length", 0, n, max(n - 2, 1))} if {"padding", "both"} & set(kinds) else {}
    sharpness = {"d_k": choice("d_k", stops(*d_k), min(max(64, d_k[0]), d_k[1]), FEATURES)} if scene.random else {}
    controls = {"mask": buttons("mask", kinds, "both" if "both" in kinds else kinds[0]), **padded, **sharpness}
    options: dict[str, Any] = {"picked": {"query": None, "key": None}, "labels": lambda: (tokens, tokens, now["mask"])}
    return LiveView(controls, render, lambda: _static(scene, kinds, tokens), main="mask", **options)


class _Scene:
    """Queries and keys, of which every d_k takes the first entries; `random` says that nobody chose them."""

    def __init__(self, vectors, random):
        (self.query, self.key), self.random = vectors, random

    def at(self, kind, length, d_k):
        """Return the mask, (n, n), and the weights behind it by title."""
        n = len(self.query)
        mask = np.ones((n, n), dtype=bool)
        if kind in ("causal", "both"):
            mask = mask & causal_mask(n)
        if kind in ("padding", "both"):
            mask = mask & padding_mask([length], n)[0]
        scores = self.query[:, :d_k] @ self.key[:, :d_k].T  # (n, n)
        scaled = core.softmax(apply_mask(scores / math.sqrt(d_k), mask))
        if self.random:
            return mask, {PLAIN: core.softmax(apply_mask(scores, mask)), SCALED: scaled}
        return mask, {OWN: scaled}


def _pair(query, key):
    """Return query and key as arrays of one shape, (n, d_k)."""
    fix = "both vectors of the same tokens, one row each"
    if query is None or key is None:
        raise TypeError(
            f"masks takes query and key together, got only {'key' if query is None else 'query'}. Fix: {fix}."
        )
    query, key = (arguments.array_of(x, name, "(n, d_k)", fix) for x, name in ((query, "query"), (key, "key")))
    if query.shape != key.shape:
        raise ShapeError(f"query and key must have one shape, (n, d_k), got {query.shape} and {key.shape}. Fix: {fix}.")
    return query, key


def _static(scene, kinds, tokens):
    """Return (Figure, text): a map for each kind."""
    n, d_k = scene.query.shape
    maps = {kind: scene.at(kind, n - 2, d_k) for kind in kinds}
    figure = plot.head_grid(
        np.stack([shown[SCALED if scene.random else OWN] for _, shown in maps.values()]),
        titles=[f"mask: {kind}" for kind in kinds],
        attn_mask=np.stack([mask for mask, _ in maps.values()]),
        queries=tokens,
        keys=tokens,
    )
    padded = f" with {n - 2} of {n} tokens real" if {"padding", "both"} & set(kinds) else ""
    sentences = [f"mask {kind}: {int(mask.sum())} of {n * n} pairs may attend" for kind, (mask, _) in maps.items()]
    return figure, "\n".join([f"The masks{padded}; run the cell for controls.", *sentences])
