"""The view of what a byte buys: the loss of each way to keep less against its bytes, and what the model then writes."""

import html
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .. import arguments, svg
from ..colours import LINE, NEXT
from .controls import choice
from .speaking_view import MARGIN, ROW, Page, lines
from .view import LiveView

HALO = f'stroke="{svg.paint("paper")}" stroke-width="3" paint-order="stroke"'
MOST, FAMILIES = 32, 10  # points: for more a slider has no stops on a page; marks
LEFT, TOP = 54, 34  # of the axes, in pixels: the ring keeps clear of the words around them
BEND = 0.04  # nats above the lowest loss: to there its axis is even, from there on logarithmic
ACROSS, DOWN = Page(588, 13, 0, 3), Page(328, 13, 0, 5)
HIGH = {ACROSS: 264, DOWN: 400}
INKS = [svg.paint(name) for name in ("ink", "query-text", "key-text", "value-text", "next-text")]  # of families
TOLD = {"family": "text", "name": "text", "bytes": "number", "loss": "number", "text": "text"}  # who checks a part
JUDGES = {"loss": "next word", "again": "found again"}
AXES = {"loss": "loss (nats a token): lower is better", "again": "loss on a second copy: lower is better"}


def price(points: Sequence[Mapping[str, Any]]) -> LiveView:
    """Show loss against bytes a token, a point for each way to keep less, and what the model writes at the chosen one.

    Lines join the points of a family, whose name stands beside one of them, a wide band those that no other point
    beats in both. Bytes are on a logarithmic axis, and the loss on one that is stretched near its lowest.

    Parameters
    ----------
    points : sequence of dict
        2 to 32 of up to 10 families, the first with everything kept. Each holds family, name, bytes (a token), loss
        (in nats a token) and text, which the model writes; with own=True it is marked as the reader's. If all hold
        again, the loss on a text read before, a control switches the judge. codes, a share found again, is told, too.

    Returns
    -------
    LiveView
        Controls: point, and judge if there are two. A click chooses a point, too.

    Examples
    --------
    >>> whole = {"family": "whole", "name": "float32", "bytes": 256, "loss": 3.3, "text": " a robot"}
    >>> view = price([whole, {**whole, "family": "mine", "name": "4 bits", "bytes": 36, "loss": 3.5, "own": True}])
    >>> view.choose(point=1)
    >>> "36 bytes a token" in view.picture.value
    True
    """
    ways = [_way(point) for point in arguments.several(points, "points")]
    arguments.whole(len(ways), "the number of points", 2, MOST)
    arguments.whole(len({way["family"] for way in ways}), "the number of families", 1, FAMILIES)
    judges = [part for part in JUDGES if all(part in way for way in ways)]
    pictures = {judge: [_Picture(ways, page, judge) for page in (ACROSS, DOWN)] for judge in judges}

    def render(point, judge="loss"):
        shown = {part: np.array([way[part] for way in ways]) for part in ("bytes", judge)}
        return svg.layouts(*(picture.draw(point) for picture in pictures[judge])), shown

    labels = [(svg.shorten(f"{way['name']}, {way['family']}", 36), k) for k, way in enumerate(ways)]
    controls = {"point": choice("point", labels, 0)}
    if len(judges) > 1:
        controls["judge"] = choice("judge", [(JUDGES[judge], judge) for judge in judges])
    return _Price(controls, render)


class _Price(LiveView):
    hint = "Click a point, or choose it by Tab and arrow keys."

    def _titles(self):
        """Return the words for a point that was chosen by a key."""
        return html.escape(self.sliders["point"].label, quote=False)


def _way(given):
    """Return one point as a dict, checked."""
    missing = [part for part in TOLD if not hasattr(given, "keys") or part not in given]
    if missing:
        raise ValueError(f"each point must hold {', '.join(TOLD)}; missing: {', '.join(missing)}. Fix: add it.")
    told = TOLD | {part: "number" for part in ("again", "codes") if part in given}
    way = {part: getattr(arguments, check)(given[part], part) for part, check in told.items()}
    return {**way, "bytes": arguments.number(way["bytes"], "bytes", above=0), "own": bool(given.get("own"))}


class _Picture:
    """Axes, band and marks, which stand still; then lines and names, the ring, and the card of the chosen point."""

    def __init__(self, ways, page, judge):
        self.ways, self.page, self.judge, self.right = ways, page, judge, page.wide - LEFT - 14
        self.bottom = TOP + HIGH[page]
        self.families = [*dict.fromkeys(way["family"] for way in ways)]
        sizes, losses = np.log([way["bytes"] for way in ways]), [way[judge] for way in ways]
        self.low, self.high, self.best, self.worst = sizes.min() - 0.1, sizes.max() + 0.1, min(losses), max(losses)
        self.at = [(self.x(way["bytes"]), self.y(way[judge])) for way in ways]
        self.texts = [lines(way["text"], page, page.written) for way in ways]
        self.card = self.bottom + 74
        self.names = self._names()
        self.fixed = "".join([*self._axes(), *self._marks()])

    def x(self, size):
        return round(LEFT + float((np.log(size) - self.low) / (self.high - self.low)) * self.right, 1)

    def y(self, loss):
        bent = np.log1p((loss - self.best) / BEND) / (np.log1p((self.worst - self.best) / BEND) or 1)
        return round(self.bottom - HIGH[self.page] * float(bent), 1)

    def _axes(self):
        yield svg.text(0, 14, AXES[self.judge], bold=True)
        losses = [self.best, *(np.ceil(self.best / s + 1e-9) * s for s in (0.05, 0.1, 0.2, 0.5, 1, 2, 5)), self.worst]
        for loss in _apart(losses, self.y, 18):
            yield f'<path d="M{LEFT} {self.y(loss)}h{self.right}" stroke="{LINE}" opacity="0.4"/>'
            yield svg.text(LEFT - 6, round(self.y(loss)) + 4, f"{loss:.4g}", anchor="end")
        ticks = [m * 10**e for e in range(8) for m in (1, 2, 5)]
        for size in _apart([t for t in ticks if LEFT < self.x(t) < self.page.wide - 24], self.x, 50):
            yield f'<path d="M{self.x(size)} {self.bottom}v5" stroke="{LINE}"/>'
            yield svg.text(self.x(size), self.bottom + 26, f"{size:,}", anchor="middle")
        yield svg.text(LEFT, self.bottom + 44, "bytes a token: fewer at the left", bold=True)

    def _marks(self):
        """Yield the band of those that nothing beats; the mark of each point, the reader's on a plate."""
        front = []
        for k in sorted(range(len(self.ways)), key=lambda k: (self.ways[k]["bytes"], self.ways[k][self.judge])):
            if not front or self.ways[k][self.judge] < self.ways[front[-1]][self.judge]:
                front.append(k)
        yield self._polyline(front, f'stroke="{LINE}" stroke-width="11" opacity="0.3"')
        for k, (way, (x, y)) in enumerate(zip(self.ways, self.at, strict=True)):
            yield f'<circle cx="{x}" cy="{y}" r="10" fill="{NEXT}"/>' * way["own"]
            ink, hollow = self._style(way["family"])
            fill = svg.paint("paper") if hollow else ink
            yield f'<circle cx="{x}" cy="{y}" r="5" fill="{fill}" stroke="{ink}" stroke-width="1.8"/>'
            near = [max(abs(x - a), abs(y - b)) for j, (a, b) in enumerate(self.at) if j != k]
            side = min(max(min(near), 5), 24)  # as large as the neighbours leave room
            yield svg.target(x - side / 2, y - side / 2, side, side, row="point", first=k)

    def _style(self, family):
        """Return the colour of a family, and whether its points are hollow."""
        hollow, ink = divmod(self.families.index(family), len(INKS))
        return INKS[ink], hollow

    def _names(self):
        """Return {family: (distance, box of its name, the point it is near)}, clear of rings, names, most lines."""
        taken, found = np.array([(x - 13, y - 13, x + 13, y + 13) for x, y in self.at]), {}
        lines = np.empty((0, 2))
        for one in self.families:
            own = sorted(at for at, way in zip(self.at, self.ways, strict=True) if way["family"] == one)
            lines = np.vstack([lines, *(np.linspace(*pair, 24) for pair in pairwise(own))])
        for family in sorted(self.families, key=svg.width, reverse=True):
            wide = svg.width(family)
            own = np.array([at for at, way in zip(self.at, self.ways, strict=True) if way["family"] == family])
            right = max(round(self.page.wide - wide), LEFT + 5)
            spots = np.mgrid[LEFT + 5 : right : 6, TOP : self.bottom - 5 : 6].reshape(2, -1).T
            boxes = np.hstack([spots - (0, 12), np.add(spots, (wide, 4))])[:, None]  # left, top, right and bottom
            meet = (boxes[..., :2] < taken[:, 2:]).all(-1) & (taken[:, :2] < boxes[..., 2:]).all(-1)
            free = boxes[~meet.any(-1)]  # (places, 1, 4)
            beside = np.maximum(np.maximum(free[..., 0] - own[:, 0], own[:, 0] - free[..., 2]), 0)
            far = np.hypot(beside, free[..., 1] + 8 - own[:, 1])  # (places, points)
            if far.size:
                crossed = ((lines > free[..., :2] - 2) & (lines < free[..., 2:] + 2)).all(-1).sum(-1)
                place, point = np.unravel_index((far + 6 * crossed[:, None]).argmin(), far.shape)
                found[family] = far[place, point], free[place, 0].tolist(), own[point]
                taken = np.vstack([taken, free[place] + (-4, -6, 4, 6)])
        return found

    def _polyline(self, which, how):
        points = " ".join(f"{x},{y}" for x, y in sorted(self.at[k] for k in which))
        return f'<polyline points="{points}" fill="none" {how}/>'

    def draw(self, point):
        way, (x, y), top, rows = self.ways[point], self.at[point], self.card, max(map(len, self.texts))
        parts = [self.fixed]
        for family in self.families:
            ink, chosen = self._style(family)[0], family == way["family"]
            how = f'stroke="{ink}" stroke-width="{3 if chosen else 1.5}"'
            parts.append(self._polyline([k for k, one in enumerate(self.ways) if one["family"] == family], how))
            if family in self.names:
                far, (left, high, right, _), (a, b) = self.names[family]
                if far > 24:
                    leads = f"M{min(max(a, left), right):.0f} {high + 8:g}L{a} {b}"
                    parts.append(f'<path d="{leads}" stroke="{ink}" stroke-dasharray="2 2"/>')
                name = svg.text(left, high + 12, family, bold=chosen)
                parts.append(name.replace(">", f' {HALO} style="fill:{ink}">', 1))
        ring = 'r="12" fill="none" stroke="currentColor" stroke-width="2.5"'
        called = f"{way['family']}: {way['name']}"
        cost = [f"loss {way['loss']:.3f}, {way['bytes']:,.0f} bytes a token"]
        found = [f"loss {way['again']:.2f}"] if "again" in way else []
        found += [f"{way['codes']:.0%} of the codes"] if "codes" in way else []
        cost += [f"found again: {', '.join(found)}"] if found else []
        whole, wrote = self.ways[0]["text"].split(), way["text"].split()
        same = int(np.cumprod([a == b for a, b in zip(whole, wrote, strict=False)]).sum())
        lower = top + 20 * (len(cost) - 1)
        parts += [
            f'<circle class="attnlib-moves" cx="{x}" cy="{y}" {ring}/>',
            svg.text(MARGIN, top, svg.shorten(called, self.page.wide // 9), size=16, bold=True),
            *(svg.text(MARGIN, top + 20 * i, line) for i, line in enumerate(cost, 1)),
            svg.tag(MARGIN, lower + 46, "the model goes on", NEXT, anchor="start"),
            svg.text(MARGIN + 156, lower + 45, f"{same} of {len(wrote)} words the same"),
        ]
        for i, line in enumerate([*self.texts[point], *[""] * rows][:rows]):
            parts.append(svg.text(MARGIN, lower + 70 + ROW * i, line, size=self.page.size))
        words = f"{len(self.ways)} ways. {called}{', yours' * way['own']}: {'; '.join(cost)}. The model goes on: "
        words += way["text"].strip()
        size, at = (self.page.wide, lower + 58 + ROW * rows), (0, 0) if self.page == ACROSS else None
        return svg.picture(*size, "loss against bytes a token", words, parts, at=at)


def _apart(values, place, least):
    """Return those of some values whose places are so many pixels apart, the earlier ones first."""
    kept = []
    for value in values:
        kept += [value] * all(abs(place(value) - place(other)) >= least for other in kept)
    return kept
