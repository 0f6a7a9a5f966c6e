"""The view of rotary positions: arrows of a query and a key that rotate, and the angles between them that stay."""

from __future__ import annotations

import math

import numpy as np

from .. import rotary, svg
from ..colours import KEY, LINE, QUERY
from .controls import integers
from .view import LiveView

VECTOR = np.array([1.0] * 4 + [0.0] * 4)  # (d_k,): query and key alike, an arrow of length 1 in each of four pairs
FARTHEST, MOST = 40, 8  # where the sliders end
DIAL, GAP, TOP = 112, 18, (70, 14)  # pixels of a dial, between two, and above those of both halves


def rotations() -> LiveView:
    """Show how RoPE rotates a query and a key of 8 features, and that positions enter a score by their distance alone.

    One dial for each pair (features c and c + 4): the arrow of the key at its position, the arrow of the query
    `distance` positions behind it, and the angle between both. Move the position: all arrows rotate, and no angle
    changes. Query and key are equal, so at distance 0 their arrows are one.

    Returns
    -------
    LiveView
        Controls: position, of the key; distance, of the query behind it. `shown` holds the rotated query and key.

    Examples
    --------
    >>> view, scores = rotations(), []
    >>> for view.sliders["position"].value in (0, 7, 40):
    ...     scores.append(round(float(view.shown["query"] @ view.shown["key"]), 6))
    >>> scores[0] == scores[1] == scores[2]
    True
    """

    def render(position, distance):
        positions = [position + distance, position]
        query, key = rotary.rope(np.stack([VECTOR, VECTOR]), positions)
        return _picture(query, key, positions), {"query": query, "key": key}

    controls = {"position": integers("position", 0, FARTHEST, 5), "distance": integers("distance", 0, MOST, 2)}
    hint = "Move the position: every arrow rotates, and the angles between them stay."
    return LiveView(controls, render, hint=hint)


def _pairs(x):
    """Return the two features of each pair, (d_k / 2, 2)."""
    return np.stack(rotary.halves(x)[:2], axis=-1)


def _picture(query, key, positions):
    pairs = list(zip(_pairs(query).tolist(), _pairs(key).tolist(), strict=True))
    angles = [_between(q, k) for q, k in pairs]
    head = [
        svg.tag(0, 17, f"query at {positions[0]}", QUERY, anchor="start"),
        svg.tag(DIAL + GAP, 17, f"key at {positions[1]}", KEY, anchor="start"),
        svg.text(0, 40, f"q.k = {query @ key:.4f}", math=True),
    ]
    angles_in_words = [f"pair {c} {angle:.1f} degrees" for c, angle in enumerate(angles)]
    words = [f"Query at position {positions[0]}, key at {positions[1]}.", f"q.k = {query @ key:.4f}."]
    wide, panels = 2 * (DIAL + GAP), []
    for half, top in enumerate(TOP):
        dials = [] if half else head
        for i, c in enumerate((2 * half, 2 * half + 1)):
            parts = [svg.text(DIAL / 2, 0, f"pair {c}", anchor="middle"), *_dial(*pairs[c])]
            parts.append(svg.text(DIAL / 2, DIAL + 28, f"{angles[c]:.1f}° between", anchor="middle"))
            dials.append(f'<g transform="translate({i * (DIAL + GAP)} {top})">{"".join(parts)}</g>')
        between = f"{words[half]} Between them: {', '.join(angles_in_words[2 * half : 2 * half + 2])}"
        panels.append((wide, top + DIAL + 36, "a query and a key that rotate", between, dials))
    return svg.beside(panels, grow=1.15, whole=2 * wide)


def _between(q, k):
    """Return by how many degrees the query's arrow is rotated from the key's, from -180 to 180."""
    angle = math.atan2(k[0] * q[1] - k[1] * q[0], k[0] * q[0] + k[1] * q[1])
    return round(math.degrees(angle), 1) + 0.0  # no -0.0


def _dial(q, k):
    """Yield a circle with both arrows, (x, y) each; the key's is broader, so that both show where they are one."""
    half = DIAL / 2
    yield f'<circle cx="{half}" cy="{half + 10}" r="{half - 0.5:g}" fill="none" stroke="{LINE}" opacity="0.6"/>'
    for (x, y), colour, wide in ((k, KEY, 8), (q, QUERY, 3)):
        angle, long = math.atan2(-y, x), half * math.hypot(x, y)
        tip_x, tip_y = half + long * math.cos(angle), half + 10 + long * math.sin(angle)
        wings = [(tip_x - 12 * math.cos(angle + a), tip_y - 12 * math.sin(angle + a)) for a in (0.45, -0.45)]
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in ((tip_x, tip_y), *wings))
        shaft_x, shaft_y = tip_x - 9 * math.cos(angle), tip_y - 9 * math.sin(angle)
        yield (
            f'<path d="M{half:.1f} {half + 10:.1f}L{shaft_x:.1f} {shaft_y:.1f}" fill="none" stroke="{colour}" '
            f'stroke-width="{wide}"/><polygon points="{points}" fill="{colour}"/>'
        )
