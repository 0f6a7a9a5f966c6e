"""The view of causal attention in tiles: m, z and o of each row, tile after tile, and what is held and moved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import arguments, core, svg
from ..colours import KEY, LINE, QUERY, VALUE
from ..svg.parts import TIMES, number
from ..validation import ShapeError
from .controls import choice
from .view import LiveView

MOST, CELL, LEFT, TOP, WIDE = 8, 32, 34, 48, (294, 322)  # tokens; pixels of a cell, beside and above the map, of halves
LINE_HIGH = 19  # of a line of words
ENDS = (72, 134, 184, 250, 312)  # where the columns m, factor, z and o end


class _Row(NamedTuple):
    """A row of queries in one tile: (m, z, o) as carried so far, and as carried on."""

    before: tuple[float, float, np.ndarray]
    factor: float
    terms: np.ndarray  # e^(s - m), of the keys that it may attend to
    after: tuple[float, float, np.ndarray]

    @property
    def shrinks(self):
        return 0 < self.factor < 1


class _Tile(NamedTuple):
    i: int
    j: int
    rows: dict[int, _Row]
    moved: int  # numbers so far


def tiles(query: Any, key: Any, value: Any, *, size: int = 2) -> LiveView:
    """Compute causal attention tile by tile, queries outside and keys inside, and show what each row carries along.

    Parameters
    ----------
    query, key, value : array_like, (n, d_k), (n, d_k), (n, 2)
        Up to 8 tokens.
    size : int
        Queries and keys of a tile; it divides n.

    Returns
    -------
    LiveView
        Controls: tile; row, of the tile: the one whose arithmetic is told. It opens where the sums of one row shrink
        and those of another stay. A click chooses the row, too. `shown` holds the outputs so far.

    Raises
    ------
    ValueError
        If shapes do not fit, or size does not divide n.

    Examples
    --------
    >>> view = tiles(np.eye(4), np.eye(4), np.eye(4)[:, :2])
    >>> view.sliders["tile"].value = 3
    >>> view.shown["output"].round(2).tolist()
    [[1.0, 0.0], [0.38, 0.62], [0.27, 0.27], [0.22, 0.22]]
    """
    given = {"query": query, "key": key, "value": value}
    query, key, value = (arguments.array_of(x, name, "(n, d)", "a row for each token") for name, x in given.items())
    n = arguments.whole(len(query), "the number of tokens", 1, MOST)
    if key.shape != query.shape or value.shape != (n, 2):
        raise ShapeError(
            f"query and key must be (n, d_k) and value (n, 2), got {query.shape}, {key.shape}, {value.shape}. "
            "Fix: as many keys and values as queries, two features of a value."
        )
    if n % arguments.whole(size, "size", 1, n):
        raise ValueError(f"size must divide the {n} tokens, got {size}. Fix: size=1, or another divisor.")
    scores = core.attention_trace(query, key, value, is_causal=True).masked_scores
    steps = _steps(scores, value, size, query.shape[1])
    picture = _Picture(scores, value, size, query.shape[1], steps)

    def render(tile, row):
        done = {i: one.after for step in steps[:tile] if step.i == step.j for i, one in step.rows.items()}
        return picture.at(tile, row), {"output": np.array([o / z for _, z, o in done.values()])}

    # Open where the sums of one row shrink and those of another stay, with the first of these rows chosen.
    mixed = [{one.shrinks for one in step.rows.values() if one.factor} == {True, False} for step in steps]
    opening = mixed.index(True) if True in mixed else 0
    at = next((k for k, one in enumerate(steps[opening].rows.values()) if one.shrinks), 0)
    labels = [(f"{t} of {len(steps)}", t) for t in range(1, len(steps) + 1)]
    hint = "Move to the next tile. Click one of its rows for the arithmetic of that row."
    rows = choice("row", [(f"{k + 1} of {size}", k) for k in range(size)], at)
    if size == 1:  # nothing to choose
        rows.layout.display = "none"
    return LiveView({"tile": choice("tile", labels, opening + 1), "row": rows}, render, hint=hint)


def _steps(scores, value, size, d_k):
    """Return every tile that is visited, in order."""
    n, steps, moved = len(scores), [], 0
    for i in range(0, n, size):
        carried = {r: (-np.inf, 0.0, np.zeros(2)) for r in range(i, i + size)}
        moved += size * d_k  # the queries
        for j in range(0, i + size, size):
            rows = {r: _row(carried[r], scores[r, j : min(j + size, r + 1)], value[j:]) for r in carried}
            carried = {r: row.after for r, row in rows.items()}
            moved += size * (d_k + 2) + (j == i) * size * 2  # keys and values, in the end the outputs
            steps.append(_Tile(i, j, rows, moved))
    return steps


def _row(before, scores, value):
    m, z, o = before
    new = float(max(m, scores.max()))
    factor, terms = float(np.exp(m - new)), np.exp(scores - new)
    return _Row(before, factor, terms, (new, factor * z + float(terms.sum()), factor * o + terms @ value[: len(terms)]))


def _short(x, places=2):
    return number(x, 0 if abs(x - round(x)) < 1e-9 else places)


def _pair(o):
    return f"({_short(o[0])}, {_short(o[1])})"


def _name(x, y, words, role, held):
    return svg.tag(x, y, words, role) if held else svg.text(x, y, words, anchor="middle")


class _Picture(NamedTuple):
    scores: np.ndarray
    value: np.ndarray
    size: int
    d_k: int
    steps: list[_Tile]

    def at(self, t, chosen):
        """Return the picture of tile number `t`: the map, what its rows carry, the arithmetic of one of them."""
        now, halves, low = self.steps[t - 1], [], TOP + len(self.scores) * CELL
        row = now.i + chosen
        both = zip(
            (self._map(t, now), self._rows_so_far(t, now)), self._arithmetic(now, row), self._cost(now), strict=True
        )
        for k, (parts, sentences, cost) in enumerate(both):
            band = f'<rect x="0" y="{TOP + row * CELL}" width="{WIDE[k]}" height="{CELL}" fill="{LINE}" opacity="0.2"/>'
            lines = [*sentences, *[""] * (4 - len(sentences)), cost]
            parts += [svg.text(4, low + 26 + LINE_HIGH * i, line) for i, line in enumerate(lines)]
            parts.append(svg.target(0, TOP + now.i * CELL, WIDE[k], self.size * CELL, row="row", rows=self.size))
            title = ("the map in tiles", "what each row carries")[k]
            words = " ".join([title, *sentences, cost])
            halves.append((WIDE[k], low + 116, title, words, [band, *self._queries(now), *parts]))
        return svg.beside(halves)

    def _queries(self, now):
        """Name the rows of both halves: a narrow page has them below each other."""
        for k in range(len(self.scores)):
            yield _name(16, TOP + (k + 0.5) * CELL + 5, f"q{k}", QUERY, k in now.rows)

    def _map(self, t, now):
        n, b, parts = len(self.scores), self.size, []
        for k in range(n):
            for name, y, role in (("k", 17, KEY), ("v", 36, VALUE)):
                held = now.j <= k < now.j + b
                parts.append(_name(LEFT + (k + 0.5) * CELL, y, f"{name}{k}", role, held))
        for step in self.steps:
            if step is not now:
                how = 'fill="none" stroke-dasharray="3 3"' if step.moved < now.moved else f'fill="{LINE}" opacity="0.3"'
                corner = f'x="{LEFT + step.j * CELL + 2}" y="{TOP + step.i * CELL + 2}"'
                parts.append(f'<rect {corner} width="{b * CELL - 4}" height="{b * CELL - 4}" stroke="{LINE}" {how}/>')
        blocked = tuple((r, c) for r in range(n) for c in range(r + 1, n))
        parts.append(f'<g transform="translate({LEFT} {TOP})">{svg.hatch(blocked, CELL)}</g>')
        for r, row in now.rows.items():
            for c, score in enumerate(self.scores[r, now.j : now.j + len(row.terms)].tolist(), now.j):
                at = LEFT + (c + 0.5) * CELL, TOP + (r + 0.5) * CELL + 5
                parts.append(svg.text(*at, _short(score, 1), anchor="middle", bold=score == row.after[0]))
        return [*parts, svg.frame(LEFT + now.j * CELL - 2, TOP + now.i * CELL - 2, b * CELL + 4, b * CELL + 4, LINE)]

    def _rows_so_far(self, t, now):
        """Return m, the factor, z and o of the rows of the tile, and the outputs of those that are done."""
        heads = ("largest", "old sums", "sum", "", "weighted values"), ("m", TIMES, "z", "", "o")
        parts = [
            svg.text(x, 17 + 19 * k, name, anchor="end", bold=k == 1)
            for k in (0, 1)
            for x, name in zip(ENDS, heads[k], strict=True)
        ]
        states = {r: (row, step is now) for step in self.steps[:t] for r, row in step.rows.items()}
        for r, (row, running) in states.items():
            (m, z, o), old = row.after, _short(row.factor) if row.factor else "new"
            cells = [_short(m), old, f"{z:.2f}"] if running else ["", "", "o / z ="]
            cells += [number(x, 2) for x in (o if running else o / z)]
            for k, (x, words) in enumerate(zip(ENDS, cells, strict=True)):
                bold = running and (k != 1 or row.shrinks)
                parts.append(svg.text(x, TOP + (r + 0.5) * CELL + 5, words, anchor="end", bold=bold))
        return parts

    def _arithmetic(self, now, r):
        """Spell out one row's arithmetic, in lines for the left half and for the right."""
        row = now.rows[r]
        (m, z, o), (new, total, sums) = row.before, row.after
        values, terms = self.value[now.j : now.j + len(row.terms)], [_short(e, 3) for e in row.terms]
        top, factor = _short(self.scores[r, now.j : now.j + len(terms)].max()), _short(row.factor, 3)
        how = [f"Query {r}, first tile: m = {top}.", "Each term is e^(score - m)."]
        if row.factor:
            how = [f"Query {r}: {top} does not beat {_short(m)}.", f"The old sums stay: {TIMES} 1"]
        if row.shrinks:
            less = _short(new) if new >= 0 else f"({_short(new)})"
            how = [
                f"Query {r}: {top} beats {_short(m)}. Old sums shrink:",
                f"{TIMES} e^({_short(m)} - {less}) = {factor}",
            ]
        times, few = f"{factor} · " if row.shrinks else "", len(terms) < 3
        sums_of = [f"{times}{z:.2f}"] * bool(row.factor) + (terms if few else [f"{len(terms)} terms"])
        parts = [f"{times}{_pair(o)}"] * bool(row.factor)
        parts += [f"{e} · {_pair(v)}" for e, v in zip(terms, values, strict=True)] if few else ["terms · values"]
        right = [f"o = {' + '.join(parts[:2])}", f"{''.join(f' + {part}' for part in parts[2:])} = {_pair(sums)}"]
        end = [f"Last tile: o / z = {_pair(sums / total)}"] * (now.i == now.j)
        return [*how, f"z = {' + '.join(sums_of)}" + f" = {total:.2f}" * (sums_of != ["1"])], [*right, *end]

    def _cost(self, now):
        """Return how many numbers are held and moved, in tiles and with the whole map."""
        n, b, d_k = len(self.scores), self.size, self.d_k
        return (
            f"Held now: {b * (2 * d_k + 6) + b * b} numbers. The map: {n * n}.",
            f"Moved: {now.moved} of {self.steps[-1].moved}. With the map: {4 * n * n + 2 * n * (d_k + 2)}.",
        )
