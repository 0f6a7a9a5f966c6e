"""The view of softmax going flat: the weight of one of two keys, and its slope, as d_k grows."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import arguments, core, svg
from ..colours import LINE, QUERY
from .controls import FEATURES, choice, stops
from .view import LiveView
from .weights import PLAIN, SCALED

QUERIES, DOTS = 500, 40  # of the median, and in the picture
PANEL, APART, LEFT, HIGH, TOP = 262, 4, 28, 190, 34  # pixels: at 1024 x 768 there are 592 for two panels
REACH = 12  # the largest lead of the axis, to both sides; dots beyond it stand at its ends
LEADS = np.linspace(-REACH, REACH, 97)


def saturation(*, d_k: tuple[int, int] = (1, 1024)) -> LiveView:
    """Show the weight that softmax gives to one of two keys, by how much better it fits, and the slope of that curve.

    weight = 1 / (1 + exp(-lead)), slope = dweight / dlead = weight (1 - weight)

    The lead is q.k_0 - q.k_1 at the left, and that divided by sqrt(d_k) at the right. For unit-normal queries and keys
    its standard deviation is sqrt(2 d_k) and sqrt(2). So at the left the dots, random queries, run off to where the
    curve is flat as d_k grows, and at the right they stay.

    Parameters
    ----------
    d_k : (int, int)
        Range of the slider, on logarithmic stops; every d_k takes the first entries of the same vectors.

    Returns
    -------
    LiveView
        Controls: d_k. `shown` holds the weights of both keys for 500 queries.

    Notes
    -----
    Derived in the notebook "scaling".

    Examples
    --------
    >>> view = saturation()
    >>> view.sliders["d_k"].value = 1024
    >>> [bool(np.median(w[:, 0] * w[:, 1]) < 0.001) for w in view.shown.values()]
    [True, False]
    """
    low, high = arguments.span(d_k, "d_k")
    start = min(max(64, low), high)
    query, one, other = np.random.default_rng(0).normal(size=(3, QUERIES, high))
    leads = (query * (one - other)).cumsum(axis=1)  # (500, high): column d - 1 is the lead at d_k = d

    @lru_cache(maxsize=64)
    def at(d_k):
        lead = leads[:, d_k - 1]
        return {PLAIN: _panel_of(lead), SCALED: _panel_of(lead / np.sqrt(d_k))}

    def render(d_k):
        panels = []
        for title, panel in at(d_k).items():
            content = [f'<g transform="translate({LEFT} 0)">{_draw_panel(title, panel)}</g>']
            words = f"softmax going flat, {title}", f"d_k = {d_k}, {title}: median slope {_slope(panel)}"
            panels.append((LEFT + PANEL + APART, TOP + HIGH + 26, *words, content))
        return svg.beside(panels), {title: panel.weights for title, panel in at(d_k).items()}

    hint = f"The median is that of {QUERIES} random queries; {DOTS} of them are drawn as dots."
    return LiveView({"d_k": choice("d_k", stops(low, high, start), start, FEATURES)}, render, hint=hint)


class _Panel(NamedTuple):
    """Weights (500, 2), the leads of the dots, the median slope."""

    weights: np.ndarray
    leads: np.ndarray
    slope: float


def _panel_of(lead):
    weights = _two(lead)
    return _Panel(weights, lead[:DOTS], float(np.median(weights[:, 0] * weights[:, 1])))


def _two(lead):
    """Return the weights of two keys, (n, 2), of which the first leads by so much."""
    return core.softmax(np.stack([lead, np.zeros_like(lead)], axis=-1))


def _slope(panel):
    """Return the median slope as a panel has it: below 0.0001 its digits say nothing more."""
    return f"{panel.slope:.4f}" if panel.slope >= 1e-4 else "< 0.0001"


def _x(lead):
    return PANEL * (np.clip(lead, -REACH, REACH) / REACH + 1) / 2


def _y(weight):
    return TOP + HIGH * (1 - weight)


def _line(values):
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(_x(LEADS).tolist(), _y(values).tolist(), strict=True))


def _draw_panel(title, panel):
    """Return a panel: the slope as an area, the weight as a line, and the queries as dots on it."""
    curve = _two(LEADS)[:, 0]
    slope = f"0,{TOP + HIGH} {_line(curve * (1 - curve))} {PANEL},{TOP + HIGH}"
    elements = [
        svg.text(-LEFT, 17, title, bold=True, size=16, math=True),
        _axes(),
        svg.text(0, TOP + HIGH + 18, f"key 1 leads by {REACH}"),
        svg.text(PANEL, TOP + HIGH + 18, f"key 0 by {REACH}", anchor="end"),
        f'<polygon points="{slope}" fill="{LINE}" opacity="0.45"/>',
        f'<polyline points="{_line(curve)}" fill="none" stroke="{LINE}" stroke-width="2.5"/>',
    ]
    across, up = _x(panel.leads).tolist(), _y(panel.weights[:DOTS, 0]).tolist()
    dots = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4"/>' for x, y in zip(across, up, strict=True))
    names = svg.text(6, _y(0.9), "weight of key 0") + svg.text(PANEL - 4, _y(0.41), "its slope,", anchor="end")
    names += svg.text(PANEL - 4, _y(0.29), f"median {_slope(panel)}", anchor="end")
    return "".join([*elements, f'<g fill="{QUERY}">{dots}</g>{names}'])


@lru_cache(maxsize=1)
def _axes():
    """Return the horizontal lines with their weights."""
    elements = []
    for weight in (0, 0.5, 1):
        elements.append(f'<path d="M0 {_y(weight):g}h{PANEL}" stroke="{LINE}" opacity="0.5"/>')
        elements.append(svg.text(-6, _y(weight) + 4, f"{weight:g}", anchor="end"))
    return "".join(elements)
