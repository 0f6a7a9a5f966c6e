"""The view of what dividing by sqrt(d_k) does."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from .. import arguments, core, svg
from .controls import FEATURES, buttons, choice, integers, stops
from .view import LiveView
from .weights import draw_maps, draw_static, redraw_static

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN, SCALED = "not scaled", "divided by sqrt(d_k)"


def scaling(
    n: int = 8,
    *,
    d_k: tuple[int, int] = (1, 512),
    still: Sequence[int] | None = None,
    seed: int = 0,
    row: int | None = 0,
    size: float = 1.0,
) -> LiveView:
    """Show what dividing by sqrt(d_k) does: unscaled beside scaled weights of unit-normal queries and keys.

    The vectors are nested: 64 queries and keys are drawn once with the largest d_k. The sliders take the first tokens
    and their first d_k entries, so that the picture moves continuously.

    Parameters
    ----------
    n : int
        Number of tokens at the start, 2 to 64.
    d_k : (int, int)
        Range of the slider; it moves on logarithmic stops and starts at 64, or at the end that is nearest.
    still : sequence of int, optional
        d_k of the static figure; by default both ends of the range, and 64 (or 8) where it lies between.
    seed : int
        The first draw; the slider "draw" makes others.
    row : int or None
        The query that is chosen at the start, and whose weights are drawn as bars; None draws none.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: d_k, tokens, maps (both, or one of them), draw.

    Examples
    --------
    >>> view = scaling(n=4)
    >>> view.sliders["d_k"].value = 512
    >>> bool(view.shown["not scaled"].max() > view.shown["divided by sqrt(d_k)"].max())
    True
    """
    low, high = arguments.span(d_k, "d_k")
    n, seed = arguments.whole(n, "n", 2, 64), arguments.whole(seed, "seed", 0)
    row = None if row is None else arguments.whole(row, "row", 0, n - 1)
    if still is None:
        still = sorted({low, high, *[d for d in (64, 8) if low < d < high][:1]})
    still = [arguments.whole(d, "each entry of still", low, high) for d in arguments.several(still, "still")]
    still = list(dict.fromkeys(still))
    grid = stops(low, high, *still)
    nested = _Nested(high)

    def render(d_k, n, maps, seed, query, key):
        shown = nested.weights(d_k, n, seed)
        if maps != "both":
            shown = {maps: shown[maps]}
        query = None if query is None else min(query, n - 1)
        drawn = {"row": query, "column": key, "bars": row is not None}
        pictures = draw_maps(shown, upstream=nested.vectors(seed)[2][:n, :n], **drawn)
        line = svg.curve(grid, nested.largest(tuple(grid), n, seed), mark=d_k, title="largest weight", x_name="d_k")
        return f"{pictures}<div>{line}</div>", shown

    def static():
        upstream = nested.vectors(seed)[2][:n, :n]
        return draw_static("d_k", {d: nested.weights(d, n, seed) for d in still}, upstream=upstream)

    def moving(figure, d_k):
        return redraw_static(figure, len(still) // 2, "d_k", d_k, nested.weights(d_k, n, seed))

    controls = {
        "d_k": choice("d_k", grid, min(max(64, low), high), FEATURES),
        "tokens": integers("tokens", 2, 64, n),
        "maps": buttons("maps", ["both", PLAIN, SCALED]),
        "draw": integers("draw", seed, seed + 20, seed),
    }
    options = {"picked": {"query": row, "key": None}, "moving": (moving, still[len(still) // 2])}
    return LiveView(controls, render, static, size=size, **options)


class _Nested:
    """Queries and keys of which every d_k takes the first entries, so that the picture moves continuously."""

    def __init__(self, d_k):
        self.d_k = d_k
        self.vectors = lru_cache(maxsize=4)(self._draw)
        self.largest = lru_cache(maxsize=16)(self._largest)

    def _draw(self, seed):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(64, self.d_k)), rng.normal(size=(64, self.d_k)), rng.normal(size=(64, 64))

    def weights(self, d_k, n, seed):
        query, key, _ = self.vectors(seed)
        scores = query[:n, :d_k] @ key[:n, :d_k].T  # (n, n)
        return {PLAIN: core.softmax(scores), SCALED: core.softmax(scores / np.sqrt(d_k))}

    def _largest(self, d_ks, n, seed):
        at = [self.weights(d, n, seed) for d in d_ks]
        return {title: [float(shown[title].max(-1).mean()) for shown in at] for title in at[0]}
