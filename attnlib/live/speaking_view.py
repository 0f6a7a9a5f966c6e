"""The view of what a model writes at each d_k, and of its loss there: readable only near its own."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from .. import svg
from ..colours import LINE, NEXT
from .controls import DIVISOR, choice
from .stops import parse_stops
from .view import LiveView

MARGIN, ROW = 0, 24  # pixels beside the picture, and of a line of text
LEFT, HIGH, LEGEND = 44, 112, 104  # of the curve: where it begins, how high it is, and the room of its names
DASHES = ("none", "7 4", "2 4")


class Page(NamedTuple):
    """The pixels of a picture and of its letters; how many lines of the prompt, and of what is written, it has."""

    wide: int
    size: int
    prompt: int
    written: int


ACROSS, DOWN = Page(588, 16, 2, 4), Page(328, 16, 4, 8)  # the latter for a narrow page


def speaking(stops: dict[str, Any]) -> LiveView:
    """Show what a model writes at each d_k, and its loss over d_k with the point where the slider stands.

    Every head divides its scores by sqrt(d_k) with the d_k of the slider, whatever the model was trained with.

    Parameters
    ----------
    stops : dict
        As `ribbons` takes it; each stop also holds text, which the model writes behind the prompt, and loss, by the
        name of a text (up to three), in nats a token.

    Returns
    -------
    LiveView
        Controls: d_k.

    Raises
    ------
    TypeError, ValueError
        If `stops` is no such dict, or its numbers do not fit its words.

    Examples
    --------
    >>> given = {"words": ["a"], "layer": 1, "head": 1, "d_k": 64}
    >>> stop = {"weights": [[1]], "next": [("b", 1)], "text": "b b", "loss": {"prose": 3.0}}
    >>> view = speaking({**given, "stops": [{**stop, "d_k": 1}, {**stop, "d_k": 64}]})
    >>> "b b" in view.picture.value
    True
    """
    held = parse_stops(stops, writes=True)
    pictures = [_Picture(held, page) for page in (ACROSS, DOWN)]

    def render(d_k):
        stop = held.at(d_k)
        return svg.layouts(*(picture.draw(stop) for picture in pictures)), {"weights": stop.weights}

    control = choice("d_k", [(f"{d:g}", d) for d in held.d_ks], held.own, DIVISOR)
    return LiveView({"d_k": control}, render, hint="")


class _Picture:
    """What is written, and below it the loss, on a page of one width."""

    def __init__(self, held, page):
        self.held, self.page = held, page
        self.prompt = lines("".join(held.words), page, page.prompt, last=True)
        self.written = {stop.d_k: lines(stop.text, page, page.written) for stop in held.stops}
        self.rows = max(map(len, self.written.values()))
        self.curve = _Curve(held, page.wide - LEFT - LEGEND)

    def draw(self, stop):
        size, text = self.page.size, 34 + ROW * (len(self.prompt) + 1)
        parts = [
            svg.text(MARGIN, 22, f"d_k = {stop.d_k:g}", size=20, bold=True, math=True),
            svg.text(MARGIN + 130, 22, "the model's own" if stop.d_k == self.held.own else ""),
            *(svg.text(MARGIN, 54 + ROW * i, line, size=size) for i, line in enumerate(self.prompt)),
            svg.tag(MARGIN, text - 9, "the model goes on", NEXT, anchor="start"),
            f'<rect x="{MARGIN}" y="{text - 4}" width="4" height="{ROW * self.rows + 6}" fill="{NEXT}"/>',
        ]
        lines = self.written[stop.d_k]
        for i in range(self.rows):
            line = lines[i] if i < len(lines) else ""
            parts.append(svg.text(MARGIN + 14, text + 18 + ROW * i, line, size=size, bold=True))
        top = text + ROW * self.rows + 30
        parts.append(f'<g transform="translate(0 {top})">{self.curve.fixed}{self.curve.point(stop)}</g>')
        losses = ", ".join(f"{name} {value:.2f}" for name, value in stop.loss.items())
        sentence = f"At d_k = {stop.d_k:g} the model writes: {stop.text.strip()} Its loss: {losses}."
        options = {"at": (0, 0), "grow": 2, "tall": 0.66} if self.page == ACROSS else {}
        size = self.page.wide, top + HIGH + 44
        return svg.picture(*size, "what the model writes, and its loss", sentence, parts, **options)


def lines(words: str, page: Page, most: int, last: bool = False) -> list[str]:
    """Return a text as lines that fit; of a longer one the first lines, or the last."""
    lines, room = [""], page.wide - 2 * MARGIN - 20
    for word in re.sub(r"\n+", lambda ends: f" {svg.visible(ends[0])} ", words).split():
        while word:
            line = f"{lines[-1]} {word}".strip()
            if svg.length(line, page.size * 1.16) <= room:
                lines[-1], word = line, ""
            elif lines[-1]:
                lines.append("")
            else:  # one word longer than a line
                most_letters = room // round(0.8 * page.size)
                lines[-1], word = word[:most_letters], word[most_letters:]
    if len(lines) > most:
        lines = ["… " + lines[-most], *lines[1 - most :]] if last else [*lines[: most - 1], lines[most - 1] + " …"]
    return lines


class _Curve:
    """The loss of each text over d_k, on a logarithmic axis; only its points move."""

    def __init__(self, held, field):
        self.field = field
        self.names = list(held.stops[0].loss)[: len(DASHES)]
        losses = [[stop.loss[name] for name in self.names] for stop in held.stops]
        self.low = np.floor(np.min(losses))
        self.high = max(np.ceil(np.max(losses)), self.low + 1)
        logs = np.log2(held.d_ks)
        places = LEFT + self.field * (logs - logs[0]) / (logs[-1] - logs[0])
        self.x = dict(zip(held.d_ks, places.round(1).tolist(), strict=True))
        self.fixed = "".join([*self._ground(held), *(self._line(held, i) for i in range(len(self.names)))])

    def y(self, loss):
        return round(HIGH * (1 - float((loss - self.low) / (self.high - self.low))), 1)

    def _ground(self, held):
        """Yield the grid, the ticks that have room, and the model's own d_k."""
        yield svg.text(LEFT, -12, "loss (nats a token): lower is better", bold=True)
        for loss in (self.low, self.high):
            yield f'<path d="M{LEFT} {self.y(loss):g}h{self.field}" stroke="{LINE}" opacity="0.6"/>'
            yield svg.text(LEFT - 8, round(self.y(loss)) + 4, f"{loss:g}", anchor="end")
        own = self.x[held.own]
        yield f'<path d="M{own} 20v{HIGH - 20}" stroke="{LINE}" stroke-width="1.5" stroke-dasharray="4 3"/>'
        yield svg.text(own, 14, f"its own: {held.own:g}", anchor="middle")
        yield svg.text(LEFT, HIGH + 38, "too sharp")
        yield svg.text(LEFT + self.field, HIGH + 38, "too pale", anchor="end")
        taken = []
        for d_k in sorted(held.d_ks, key=lambda d_k: (d_k != held.own, -abs(self.x[d_k] - own))):
            if all(abs(self.x[d_k] - x) > 36 for x in taken):
                taken.append(self.x[d_k])
                yield svg.text(self.x[d_k], HIGH + 18, f"{d_k:g}", anchor="middle", bold=d_k == held.own)
        yield svg.text(LEFT + self.field + 26, HIGH + 18, "d_k", math=True)

    def _line(self, held, i):
        points = " ".join(f"{self.x[stop.d_k]:g},{self.y(stop.loss[self.names[i]]):g}" for stop in held.stops)
        stroke = f'stroke="currentColor" stroke-width="2" stroke-dasharray="{DASHES[i]}"'
        x, y = LEFT + self.field + 18, 14 + 36 * i
        name = svg.text(x + 30, y + 4, svg.shorten(self.names[i], 8))
        return f'<polyline points="{points}" fill="none" {stroke}/><path d="M{x} {y}h24" {stroke}/>{name}'

    def point(self, stop):
        """Return where a stop lies on each line, and its losses in numbers."""
        x, parts = self.x[stop.d_k], []
        for i, name in enumerate(self.names):
            loss = stop.loss[name]
            parts.append(f'<circle class="attnlib-moves" cx="{x}" cy="{self.y(loss)}" r="6"/>')
            parts.append(svg.text(LEFT + self.field + 48, 34 + 36 * i, f"{loss:.2f}", size=16, bold=True))
        return "".join(parts)
