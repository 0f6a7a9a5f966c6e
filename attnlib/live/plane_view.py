"""The view of attention in two dimensions, where a dot product and a weighted average can be seen."""

from __future__ import annotations

import math

import numpy as np

from .. import arguments, core, steps, svg
from ..colours import KEY, LINE, QUERY, VALUE
from ..svg import flow as drawing
from .controls import choice, integers
from .view import LiveView

KEYS = np.array([(2.0, 0.6), (-1.5, 1.6), (-0.4, -2.0)])
VALUES = np.array([(1.8, -1.0), (-0.2, 1.9), (-1.9, -1.3)])
LENGTHS = [x / 4 for x in range(17)]
SIDE, REACH, FAR = 226, 4.2, 2.375  # pixels of a plane, and the largest coordinate in that of keys and of values
GAP = 132  # beside the left plane, where the bars of the weights stand: a page of 390 pixels has room for both
WIDE = 2 * SIDE + GAP
GROW, TOP = 1.28, 28
GRID = 42  # places in a plane that can be clicked, across and down


def plane(*, angle: int = 60, length: float = 1.5) -> LiveView:
    """Show attention with d_k = d_v = 2: keys and values as points, the query as an arrow with an angle and a length.

    A dot product is the length of the query times the length of the key along it: the feet of the dashed lines. The
    output is a weighted average, and stays inside the triangle of the values. A longer query is a sharper choice: the
    line in the right plane is the way of the output while the query grows from 0 to 4.

    Parameters
    ----------
    angle : int
        Direction of the query at the start, in degrees, counted from the first axis: 0 to 359.
    length : float
        Length of the query at the start: 0, 0.25, ... 4.

    Returns
    -------
    LiveView
        Controls: angle, length. A click into the left plane moves the query's tip there.

    Examples
    --------
    >>> view = plane()
    >>> largest = []
    >>> for view.sliders["length"].value in (0.0, 1.0, 4.0):
    ...     largest.append(round(float(view.shown["weights"].max()), 2))
    >>> largest[0] < largest[1] < largest[2]
    True
    """
    angle, length = arguments.whole(angle, "angle", 0, 359), arguments.one_of(length, "length", LENGTHS)

    def render(angle, length):
        trace = _attend(angle, length)
        return _picture(trace, angle, length), {"weights": trace.weights}

    controls = {"angle": integers("angle", 0, 359, angle), "length": choice("length", LENGTHS, length)}
    for control in controls.values():  # beside each other, over a picture that does not grow
        control.layout.width = "290px"
    return _Plane(controls, render)


class _Plane(LiveView):
    hint = "Click into the left plane: the tip of the query moves there."

    def choose(self, *, row, column):
        """Move the query's tip to a place of the left plane, counted from its upper left corner."""
        x, y = ((place + 0.5) / GRID * 2 * REACH - REACH for place in (column, GRID - 1 - row))
        length = min(LENGTHS, key=lambda stop: abs(stop - math.hypot(x, y)))
        super().choose(angle=round(math.degrees(math.atan2(y, x))) % 360, length=length)


def _attend(angle, length):
    turn = math.radians(angle)
    return core.attention_trace(length * np.array([[math.cos(turn), math.sin(turn)]]), KEYS, VALUES)


def _picture(trace, angle, length):
    """Return the plane of the keys and the weights, the plane of the values, and a table; each may grow."""
    weights, names = trace.weights[0], [str(j) for j in range(len(trace.key))]
    keys = [svg.tag(0, 17, "query", QUERY, anchor="start"), svg.tag(62, 17, "keys", KEY, anchor="start")]
    keys += [svg.text(SIDE + GAP / 2, 17, "weights", bold=True, anchor="middle")]
    keys.append(f'<g transform="translate(0 {TOP})">{"".join(_keys(trace))}</g>')
    keys.append(f'<g transform="translate({SIDE + 33} {TOP + 24})">{_bars(weights, names)}</g>')
    values = [svg.tag(0, 17, "values", VALUE, anchor="start"), svg.text(70, 17, "output: average")]
    values.append(f'<g transform="translate(0 {TOP})">{"".join(_values(trace, angle))}</g>')
    span = {"vmin": -REACH * 2, "vmax": REACH * 2, "rows": ["0"]}
    rows = [(symbol, getattr(trace, name)[0], span, None) for name, symbol in steps.maps(trace).items()]
    rows[-1] = ("weight", weights, {"rows": ["0"]}, float(weights.sum()))
    table = drawing.steps_table(rows, names, None, SIDE + GAP)
    shares, (x, y) = [f"{name}: {weight:.4f}" for name, weight in zip(names, weights, strict=True)], trace.output[0]
    high, low, options = TOP + SIDE + 4, 4 + 4 * drawing.ROW, {"grow": GROW, "whole": WIDE}
    pictures = {
        "attention in the plane: keys": (SIDE + GAP, high, keys, (0, 0)),
        "attention in the plane: values": (SIDE, high, values, (SIDE + GAP, 0)),
        "its arithmetic": (SIDE + GAP, low, table, (0, high + 4)),
    }
    told, output = ", ".join(f"{w:.4f}" for w in weights), f"output ({x:.4f}, {y:.4f})"
    words = [f"Query at {angle} degrees, length {length:g}: weights {told}; {output}", output, ", ".join(shares)]
    drawings = [
        svg.picture(*size, title, word, parts, at=at, **options)
        for (title, (*size, parts, at)), word in zip(pictures.items(), words, strict=True)
    ]
    return f'<div class="attnlib-parts">{"".join(drawings[:2])}</div>{drawings[2]}'


def _at(point, reach=REACH):
    """Return the pixels of a point in its plane."""
    return SIDE / 2 * (1 + point[0] / reach), SIDE / 2 * (1 - point[1] / reach)


def _points(places):
    """Return the pixels of points among the values, (n, 2), as a line has them."""
    across, down = _at(places.T, FAR)
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True))


def _keys(trace):
    """Yield the left plane: the query and its line, the keys, and the foot of each on that line."""
    yield _axes()
    query = trace.query[0]
    long = math.hypot(*query)
    along = query / long if long else None
    places, lines = [_at(key) for key in trace.key.tolist()], []
    if long:
        lines.append(_clip_to_frame(*_at(-5 * along), *_at(5 * along)))
        yield _line(*lines[0], QUERY, 1)
    for (x, y), key in zip(places, trace.key, strict=True):
        if long:
            lines.append((x, y, *_at(((key @ along) * along).tolist())))
            yield _line(*lines[-1], KEY, 1.5, "4 4")
            yield f'<circle cx="{lines[-1][2]:.1f}" cy="{lines[-1][3]:.1f}" r="3" fill="{KEY}"/>'
    for j, (key, word) in enumerate(zip(trace.key, _place_labels(places, "key", lines), strict=True)):
        yield _point(*places[j], KEY, f"key {j}: ({key[0]:g}, {key[1]:g})") + word
    yield _arrow(query)
    yield svg.target(0, 0, SIDE, SIDE, row="row", rows=GRID, column="column", columns=GRID)


def _values(trace, angle):
    """Yield the right plane: the values, as large as their weights, their triangle, the output and its way."""
    yield _axes()
    yield f'<polygon points="{_points(VALUES)}" fill="{VALUE}" opacity="0.25"/>'
    turn = math.radians(angle)
    steps = np.linspace(0, LENGTHS[-1], 33)[:, None] * [math.cos(turn), math.sin(turn)]  # (33, 2)
    way = core.scaled_dot_product_attention(steps, trace.key, trace.value)
    dashed = f'stroke="{LINE}" stroke-width="2" stroke-dasharray="2 4"'
    yield f'<polyline points="{_points(way)}" fill="none" {dashed}/>'
    x, y = _at(trace.output[0].tolist(), FAR)
    places = [_at(value, FAR) for value in VALUES.tolist()]
    lines = [(*place, x, y) for place in places]
    edges = [(*a, *b) for a, b in zip(places, places[1:] + places[:1], strict=True)]
    half = SIDE / 2
    words = _place_labels(places, "value", [*lines, *edges, (half, 0, half, SIDE), (0, half, SIDE, half)])
    for j, (value, weight) in enumerate(zip(VALUES.tolist(), trace.weights[0].tolist(), strict=True)):
        yield _line(*lines[j], VALUE, 1 + 5 * weight)
        title = f"value {j}: ({value[0]:g}, {value[1]:g}), weight {svg.exact(weight)}"
        yield _point(*places[j], VALUE, title) + words[j]
    ring = f'r="8" fill="{VALUE}" stroke="#fff" stroke-width="2.5"'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" {ring}><title>output</title></circle>'


def _axes():
    half = SIDE // 2
    return (
        f'<path d="M0 0h{SIDE}v{SIDE}h-{SIDE}z" fill="none" stroke="{LINE}" opacity="0.6"/>'
        f'<path d="M0 {half}h{SIDE}M{half} 0v{SIDE}" fill="none" stroke="{LINE}" opacity="0.4"/>'
    )


def _line(x1, y1, x2, y2, colour, wide, dash="none"):
    style = f'stroke="{colour}" stroke-width="{wide:.1f}" stroke-dasharray="{dash}" fill="none"'
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" {style}/>'


def _clip_to_frame(x1, y1, x2, y2):
    """Return the ends of the line of the query through the middle of the plane, cut at its frame."""
    half = SIDE / 2
    part = min(1.0, half / max(abs(x2 - half), abs(y2 - half)))
    return [half + part * (v - half) for v in (x1, y1, x2, y2)]


def _point(x, y, colour, title):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{colour}"><title>{title}</title></circle>'


ALONG = np.linspace(0, 1, 65)
# Where a label may stand beside its point: its anchor, how far across and down; the first that is free is taken.
BESIDE = (
    *(("start", 10, -8), ("end", -10, -8), ("start", 10, 18), ("end", -10, 18), ("middle", 0, -13), ("middle", 0, 22)),
    *(("end", 14, 22), ("start", 12, 4), ("end", -12, 4)),
)


def _place_labels(places, name, lines):
    """Return the labels of points as SVG, each beside all lines and other points if there is such a place.

    Point j at (x, y) is called by the name and j; a line is (x1, y1, x2, y2).
    """
    ends = np.array([*lines, *((x, y, x, y) for x, y in places)]).reshape(-1, 2, 1, 2)
    along = ALONG[:, None]
    dots = (ends[:, 0] * (1 - along) + ends[:, 1] * along).reshape(-1, 2)  # along every line, 6 pixels apart at most
    words = [f"{name} {j}" for j in range(len(places))]
    labels = []
    for (x, y), word in zip(places, words, strict=True):
        least = math.inf
        for option in BESIDE:
            covered = _count_covered(_box(x + option[1], y + option[2], word, option[0]), dots)
            if covered < least:
                least, (anchor, dx, dy) = covered, option
            if not least:
                break
        labels.append(svg.text(round(x + dx), round(y + dy), word, anchor=anchor))
    return labels


def _box(x, y, words, anchor):
    """Return left, top, right and bottom of a text, as a lecture draws it: a little larger."""
    wide = 1.25 * svg.width(words)
    left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - 12, left + wide, y + 4


def _count_covered(box, dots):
    """Return how many dots lie under a box; what leaves the plane is worse than any."""
    left, top, right, bottom = box
    if left < 0 or top < 0 or right > SIDE or bottom > SIDE:
        return len(dots)
    across, down = dots.T
    return int(((across > left - 3) & (across < right + 3) & (down > top - 3) & (down < bottom + 3)).sum())


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
    step = 99 // len(weights)
    labels = [svg.text((j + 0.5) * step, SIDE - 32, name, anchor="middle") for j, name in enumerate(names)]
    return svg.columns(weights, step, SIDE - 50, names) + "".join(labels)
