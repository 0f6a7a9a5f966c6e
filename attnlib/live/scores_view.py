"""The view of how scores grow with d_k, and of the weights that softmax makes of them."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import arguments, core, svg
from ..colours import LINE, QUERY
from ..svg.parts import paint
from .controls import FEATURES, choice, integers, stops
from .view import LiveView
from .weights import PLAIN, SCALED

PAIRS, KEYS = 96, 8  # as many queries as keys: 96 of each make the histogram, 8 the map
PANEL, APART, MARGIN, HIGH, BARS, TOP = 282, 12, 6, 100, 80, 30  # pixels: at 1024 x 768 there are 592 for two panels
LEFT, CELL, ROW = 26, 32, 18  # pixels: beside map and bars, a column of both, a row of the map
MAP_ENDS = TOP + HIGH + KEYS * ROW + 92


def scores(*, d_k: tuple[int, int] = (4, 256)) -> LiveView:
    """Show how far scores of unit-normal queries and keys spread as d_k grows, and the weights softmax makes of them.

    At the left the scores as they are, at the right divided by sqrt(d_k), on the same axis. Below, the map of weights
    of 8 queries and 8 keys. The points under a histogram are the scores of the framed query; the bars are its weights.
    The axis ends at 4 standard deviations of the largest scores; what lies beyond stands at its ends.

    Parameters
    ----------
    d_k : (int, int)
        Range of the slider, on logarithmic stops; every d_k takes the first entries of the same vectors.

    Returns
    -------
    LiveView
        Controls: d_k, query, draw.

    Examples
    --------
    >>> view = scores()
    >>> view.sliders["d_k"].value = 256
    >>> bool(view.shown["not scaled"].max() > view.shown["divided by sqrt(d_k)"].max())
    True
    """
    low, high = arguments.span(d_k, "d_k")
    start = min(max(64, low), high)
    vectors = lru_cache(maxsize=4)(lambda draw: np.random.default_rng(draw).normal(size=(2, PAIRS, high)))
    reach = 4 * np.sqrt(high)

    @lru_cache(maxsize=64)
    def at(d_k, draw):
        """Return what does not depend on the chosen query, for the raw and the scaled scores."""
        query, key = vectors(draw)[..., :d_k]
        dots = query @ key.T  # (96, 96)
        return {
            title: _Spread(x[:KEYS, :KEYS], core.softmax(x[:KEYS, :KEYS]), float(x.std()), _histogram(x, reach))
            for title, x in ((PLAIN, dots), (SCALED, dots / np.sqrt(d_k)))
        }

    def render(d_k, query, draw, key):
        panels, bars = [], []
        for title, one in at(d_k, draw).items():
            content = _panel(title, one, query, reach) + _map(title, one.weights, query)
            spread = f"standard deviation {one.deviation:.2f}, largest weight {one.weights[query].max():.4f}"
            words = f"scores and their softmax, {title}", f"d_k = {d_k}, {title}: {spread}"
            panels.append((PANEL + APART, MAP_ENDS, *words, [f'<g transform="translate({MARGIN} 0)">{content}</g>']))
            words = f"weights of query {query}, {title}", f"largest weight {one.weights[query].max():.4f}"
            bars.append((PANEL + APART, BARS + 50, *words, [_bars(one.weights[query])]))
        # A phone would have no room for the bars, and has their numbers in the map.
        lower = svg.beside(bars, top=MAP_ENDS).replace("attnlib-parts", "attnlib-parts attnlib-across", 1)
        return f"<div>{svg.beside(panels)}{lower}</div>", {title: one.weights for title, one in at(d_k, draw).items()}

    controls = {
        "d_k": choice("d_k", stops(low, high, start), start, FEATURES),
        "query": integers("query", 0, KEYS - 1, 0),
        "draw": integers("draw", 0, 20, 0),
    }
    for control in controls.values():
        control.layout.width = "290px"  # three beside each other
    hint = "Choose a cell of a map for its exact weights, by a click, or by Tab and arrow keys."
    return LiveView(controls, render, picked={"key": None}, hint=hint)


class _Spread(NamedTuple):
    """Scores of one d_k: those of the map, their weights, the standard deviation of all, and their histogram as SVG."""

    scores: np.ndarray  # (8, 8)
    weights: np.ndarray  # (8, 8)
    deviation: float
    outline: str


def _histogram(x, reach):
    """Return the outline of a histogram over -reach..reach, as high as the panel."""
    counts, edges = np.histogram(np.clip(x, -reach, reach), bins=95, range=(-reach, reach))
    across, tops = PANEL * (edges / reach + 1) / 2, HIGH * (1 - counts / counts.max())
    first, last = np.flatnonzero(counts)[[0, -1]]
    steps = "".join(f"V{tops[b]:.0f}H{across[b + 1]:.1f}" for b in range(first, last + 1))
    line = f"M{across[first]:.1f} {HIGH}{steps}V{HIGH}z"
    return f'<path d="{line}" fill="{LINE}" opacity="0.75"/>'


def _x(score, reach):
    return PANEL * (min(max(score / reach, -1), 1) + 1) / 2


def _panel(title, one, query, reach):
    """Return a histogram, and below it the scores of one query with its keys, in the colours of their weights."""
    row, weights = one.scores[query].tolist(), one.weights[query].tolist()
    deviation = f"std. deviation {one.deviation:.1f}"
    elements = [svg.text(0, 17, title, bold=True, size=16, math=True), svg.text(PANEL, 17, deviation, anchor="end")]
    elements.append(
        f'<g transform="translate(0 {TOP})">{one.outline}<path d="M0 {HIGH}h{PANEL}" stroke="{LINE}"/>{_ticks(reach)}'
    )
    name = "scores q.k" if title == PLAIN else "scores q.k / sqrt(d_k)"
    elements.append(svg.text(PANEL / 2, HIGH + 52, name, anchor="middle", math=True))
    for j in sorted(range(KEYS), key=weights.__getitem__):  # the largest weight on top
        place = f'cx="{_x(row[j], reach):.1f}" cy="{HIGH + 10}" r="6"'
        hover = f"<title>key {j}: {svg.exact(row[j])}</title>"
        elements.append(f'<circle {place} fill="{paint("sunk")}" stroke="{paint("edge")}"/>')
        elements.append(f'<circle {place} fill="{paint("weight")}" opacity="{weights[j]:.2f}">{hover}</circle>')
    return "".join([*elements, "</g>"])


def _map(title, weights, query):
    """Return the map of weights with the row of one query framed."""
    names = [str(j) for j in range(KEYS)]
    elements = [f'<g transform="translate({LEFT} {TOP + HIGH + 86})">', svg.matrix(weights, CELL, high=ROW)]
    elements.append(svg.text(-LEFT, -8, "weights: queries (rows), keys (columns)"))
    elements += [svg.text(-8, (i + 0.5) * ROW + 4, name, anchor="end") for i, name in enumerate(names)]
    elements.append(svg.frame(0, query * ROW, KEYS * CELL, ROW, QUERY, line=2))
    clicks = {"row": "query", "rows": KEYS, "column": "key", "columns": KEYS, "shown": title}
    elements.append(svg.target(0, 0, KEYS * CELL, KEYS * ROW, **clicks))
    return "".join([*elements, "</g>"])


def _bars(weights):
    """Return the weights of one query as bars over the columns of the map."""
    names = [str(j) for j in range(KEYS)]
    elements = [f'<g transform="translate({MARGIN + LEFT} 22)">', svg.columns(weights, CELL, BARS, names)]
    elements += [svg.text((j + 0.5) * CELL, BARS + 16, name, anchor="middle") for j, name in enumerate(names)]
    elements.append(svg.target(0, 0, KEYS * CELL, BARS + 20, column="key", columns=KEYS))
    return "".join([*elements, "</g>"])


@lru_cache(maxsize=8)
def _ticks(reach):
    step = next(step for k in range(6) for step in (10**k, 2 * 10**k, 5 * 10**k) if reach / step <= 4)
    marks = [k * step for k in range(-int(reach // step), int(reach // step) + 1)]
    return "".join(
        svg.text(min(max(_x(mark, reach), 13), PANEL - 13), HIGH + 34, str(mark), anchor="middle") for mark in marks
    )
