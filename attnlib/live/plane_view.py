"""The view of attention in two dimensions, where a dot product and a weighted average can be seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import arguments, core, svg
from ..colours import KEY, LINE, QUERY, VALUE
from ..svg import flow as drawing
from ..validation import ShapeError
from . import still
from .controls import choice, integers
from .view import LiveView

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

KEYS = ((2.0, 0.6), (-1.5, 1.6), (-0.4, -2.0))
VALUES = ((1.8, -1.0), (-0.2, 1.9), (-1.9, -1.3))
LENGTHS = [x / 4 for x in range(17)]
SIDE, REACH = 226, 4.2  # pixels of a plane, and the largest coordinate in it
GAP, WIDE = 134, 588  # between the planes, where the bars of the weights stand; the whole: see flow_view.TABLE
GROW, TOP = 1.28, 28
GRID = 42  # places in a plane that can be clicked, across and down


def plane(
    keys: ArrayLike = KEYS, values: ArrayLike = VALUES, *, angle: int = 60, length: float = 1.5, size: float = 1.0
) -> LiveView:
    """Show attention with d_k = d_v = 2: keys and values as points, the query as an arrow with an angle and a length.

    A dot product is the length of the query times the length of the key along it: the feet of the dashed lines. The
    output is a weighted average, and stays inside the triangle of the values. A longer query is a sharper choice: the
    line in the right plane is the way of the output while the query grows from 0 to 4.

    Parameters
    ----------
    keys, values : array_like, (n_k, 2)
        2 to 6 points each; keys not farther than 4 from the axes.
    angle : int
        Direction of the query at the start, in degrees, counted from the first axis: 0 to 359.
    length : float
        Length of the query at the start: 0, 0.25, ... 4.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: angle, length. A click into the left plane moves the query's tip there.

    Raises
    ------
    ShapeError
        If keys and values are not (n_k, 2).
    TypeError, ValueError
        If a point lies too far away, or the query is none that the controls can make.

    Examples
    --------
    >>> view = plane()
    >>> largest = []
    >>> for view.sliders["length"].value in (0.0, 1.0, 4.0):
    ...     largest.append(round(float(view.shown["weights"].max()), 2))
    >>> largest[0] < largest[1] < largest[2]
    True
    """
    keys, values = (arguments.to_array(x).astype(float) for x in (keys, values))
    if keys.shape != values.shape or keys.shape[1:] != (2,) or not 2 <= len(keys) <= 6:
        raise ShapeError(
            f"keys and values must be 2 to 6 points in the plane, (n_k, 2), got {keys.shape} and {values.shape}. "
            "Fix: one value per key, two numbers each."
        )
    for name, points, far in (("keys", keys, LENGTHS[-1]), ("values", values, np.finfo(np.float32).max)):
        largest = np.abs(points).max()
        if not largest <= far:  # nor is NaN
            raise ValueError(f"{name} must lie within {far:g} of the axes, got {largest:g}. Fix: smaller {name}.")
    angle, length = arguments.whole(angle, "angle", 0, 359), arguments.one_of(length, "length", LENGTHS)

    def render(angle, length):
        trace = _attend(keys, values, angle, length)
        return _picture(trace, angle, length), {"weights": trace.weights}

    def static():
        told = [f"A query of length {length:g} at {angle} degrees; run the cell to turn and stretch it."]
        told += [_words(_attend(keys, values, angle, x), x) for x in (0.0, 1.0, 4.0)]
        picture = _picture(_attend(keys, values, angle, length), angle, length)
        return still.figure(picture), "\n".join(told)

    controls = {"angle": integers("angle", 0, 359, angle), "length": choice("length", LENGTHS, length)}
    return _Plane(controls, render, static, size=size)


class _Plane(LiveView):
    hint = "Click into the left plane: the tip of the query moves there."

    def choose(self, *, row, column):
        """Move the query's tip to a place of the left plane, counted from its upper left corner."""
        x, y = ((place + 0.5) / GRID * 2 * REACH - REACH for place in (column, GRID - 1 - row))
        length = min(LENGTHS, key=lambda stop: abs(stop - math.hypot(x, y)))
        super().choose(angle=round(math.degrees(math.atan2(y, x))) % 360, length=length)


def _attend(keys, values, angle, length):
    turn = math.radians(angle)
    return core.attention_trace(length * np.array([[math.cos(turn), math.sin(turn)]]), keys, values)


def _words(trace, length):
    weights = ", ".join(f"{w:.4f}" for w in trace.weights[0])
    x, y = trace.output[0]
    return f"length {length:g}: weights {weights}; output ({x:.4f}, {y:.4f})"


def _picture(trace, angle, length):
    weights, names = trace.weights[0], [str(j) for j in range(len(trace.key))]
    right = SIDE + GAP
    drawn = [svg.tag(0, 17, "query", QUERY, anchor="start"), svg.tag(56, 17, "keys", KEY, anchor="start")]
    drawn += [svg.text(SIDE + GAP / 2, 17, "weights", bold=True, anchor="middle")]
    drawn += [
        svg.tag(right, 17, "values", VALUE, anchor="start"),
        svg.text(right + 66, 17, "output, their average"),
    ]
    drawn.append(f'<g transform="translate(0 {TOP})">{"".join(_keys(trace))}</g>')
    drawn.append(f'<g transform="translate({SIDE + 36} {TOP + 24})">{_bars(weights, names)}</g>')
    drawn.append(f'<g transform="translate({right} {TOP})">{"".join(_values(trace, angle))}</g>')
    low, high = -REACH * 2, REACH * 2
    span = {"vmin": low, "vmax": high, "rows": ["0"]}
    rows = [("q.k", trace.scores[0], span, None), ("÷ √2", trace.scaled_scores[0], span, None)]
    rows.append(("weight", weights, {"rows": ["0"]}, float(weights.sum())))
    drawn.append(f'<g transform="translate(0 {TOP + SIDE + 8})">{drawing.steps_table(rows, names, None, WIDE)}</g>')
    high = TOP + SIDE + 12 + 4 * drawing.ROW
    words = f"Query at {angle} degrees, {_words(trace, length)}"
    return svg.picture(WIDE, high, "attention in the plane", words, drawn, grow=GROW)


def _at(point, reach=REACH):
    """Return the pixels of a point in its plane."""
    return SIDE / 2 * (1 + point[0] / reach), SIDE / 2 * (1 - point[1] / reach)


def _points(places, reach):
    """Return the pixels of points, (n, 2), as a line has them."""
    across, down = _at(np.asarray(places).T, reach)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True))


def _keys(trace):
    """Yield the left plane: the query and its line, the keys, and the foot of each on that line."""
    yield _axes()
    query = trace.query[0]
    long = math.hypot(*query)
    along = query / long if long else None
    if long:
        (x1, y1), (x2, y2) = _at(-5 * along), _at(5 * along)
        yield _clipped(x1, y1, x2, y2)
    for j, key in enumerate(trace.key):
        x, y = _at(key.tolist())
        if long:
            foot_x, foot_y = _at(((key @ along) * along).tolist())
            yield _line(x, y, foot_x, foot_y, KEY, 1.5, "4 4")
            yield f'<circle cx="{foot_x:.1f}" cy="{foot_y:.1f}" r="3" fill="{KEY}"/>'
        yield _point(x, y, f"key {j}", KEY, f"key {j}: ({key[0]:g}, {key[1]:g})")
    yield _arrow(query)
    yield svg.target(0, 0, SIDE, SIDE, row="row", rows=GRID, column="column", columns=GRID)


def _values(trace, angle):
    """Yield the right plane: the values, as large as their weights, the hull, the output and its way."""
    values = trace.value
    reach = max(1.0, 1.25 * float(np.abs(values).max()))
    yield _axes()
    yield f'<polygon points="{_points(_hull(values), reach)}" fill="{VALUE}" opacity="0.25"/>'
    turn = math.radians(angle)
    steps = np.linspace(0, LENGTHS[-1], 33)[:, None] * [math.cos(turn), math.sin(turn)]  # (33, 2)
    way = core.scaled_dot_product_attention(steps, trace.key, trace.value)
    dashed = f'stroke="{LINE}" stroke-width="2" stroke-dasharray="2 4"'
    yield f'<polyline points="{_points(way, reach)}" fill="none" {dashed}/>'
    x, y = _at(trace.output[0].tolist(), reach)
    for j, (value, weight) in enumerate(zip(values.tolist(), trace.weights[0].tolist(), strict=True)):
        told = f"value {j}: ({value[0]:g}, {value[1]:g}), weight {svg.exact(weight)}"
        px, py = _at(value, reach)
        yield _line(px, py, x, y, VALUE, 1 + 5 * weight)
        yield _point(px, py, f"value {j}", VALUE, told)
    ring = f'r="8" fill="{VALUE}" stroke="#fff" stroke-width="2.5"'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" {ring}><title>output</title></circle>'


def _hull(points):
    """Return the corners of the convex hull in order, by turning around it (Jarvis)."""
    corners, at = [], min(range(len(points)), key=lambda j: tuple(points[j]))
    while at not in corners:
        corners.append(at)
        ahead = points - points[at]
        nxt = (at + 1) % len(points)
        for j in range(len(points)):
            if ahead[nxt][0] * ahead[j][1] - ahead[nxt][1] * ahead[j][0] < 0:
                nxt = j
        at = nxt
    return points[corners]


def _axes():
    half = SIDE // 2
    return (
        f'<path d="M0 0h{SIDE}v{SIDE}h-{SIDE}z" fill="none" stroke="{LINE}" opacity="0.6"/>'
        f'<path d="M0 {half}h{SIDE}M{half} 0v{SIDE}" fill="none" stroke="{LINE}" opacity="0.4"/>'
    )


def _line(x1, y1, x2, y2, colour, wide, dash="none"):
    style = f'stroke="{colour}" stroke-width="{wide:.1f}" stroke-dasharray="{dash}" fill="none"'
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" {style}/>'


def _clipped(x1, y1, x2, y2):
    """Return the line of the query through the middle of the plane, cut at its frame."""
    half = SIDE / 2
    part = min(1.0, half / max(abs(x2 - half), abs(y2 - half)))
    ends = [half + part * (v - half) for v in (x1, y1, x2, y2)]
    return _line(*ends, QUERY, 1)


def _point(x, y, words, colour, told):
    left = x > SIDE - 52
    label = svg.text(x - 10 if left else x + 10, y - 8, words, anchor="end" if left else "start")
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{colour}"><title>{told}</title></circle>{label}'


def _arrow(query):
    (x, y), half = _at(query), SIDE / 2
    shaft = _line(half, half, x, y, QUERY, 4)
    if not query.any():
        return f'<circle cx="{half}" cy="{half}" r="5" fill="{QUERY}"/>'
    turn = math.atan2(y - half, x - half)
    wings = [(x + 14 * math.cos(turn + a), y + 14 * math.sin(turn + a)) for a in (2.7, -2.7)]
    tip = (x + 4 * math.cos(turn), y + 4 * math.sin(turn))
    points = " ".join(f"{px:.1f},{py:.1f}" for px, py in (tip, *wings))
    return f'{shaft}<polygon points="{points}" fill="{QUERY}"/>'


def _bars(weights, names):
    step = 93 // len(weights)
    labels = [svg.text((j + 0.5) * step, SIDE - 32, name, anchor="middle") for j, name in enumerate(names)]
    return svg.columns(weights, step, SIDE - 50, names) + "".join(labels)
