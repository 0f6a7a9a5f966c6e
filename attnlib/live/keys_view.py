"""The view of the keys of one head in fewer bits: stripes that all tokens share, and whom a query then looks at."""

import html
from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from .. import arguments, core, svg
from ..colours import BELOW, KEY, LINE, QUERY
from ..rounding import bytes_kept, rounded
from ..validation import ShapeError
from .controls import buttons, choice
from .view import LiveView

MOST, WIDEST, TOP, ROWS = 40, 128, 42, 384  # tokens; features; pixels above the map, and of all rows at most
BITS = {"all": 32, "8": 8, "4": 4, "3": 3, "2": 2}
AXES = {"token": -1, "feature": -2}
SHARED = {"kept": 0, "kept apart": 1, "taken away": 2}
ACROSS, DOWN = (74, 384, 110), (54, 192, 94)  # pixels: of labels, of the map at most, of the bars


def keys_map(
    key: ArrayLike, query: ArrayLike, *, tokens: Sequence[str] | None = None, row: int | None = None
) -> LiveView:
    """Show the keys of one head as a map of tokens by features, and whom a query looks at once they are rounded.

    Bars are the weights with the keys as they are kept, ticks those with whole keys. Each token sees itself and those
    before it; scores are divided by sqrt(d_k). A scale is a lowest number and a step, in float16.

    Parameters
    ----------
    key, query : array_like, (n, d_k)
        Of one head, rotated where the model rotates: up to 40 tokens and 128 features.
    tokens : sequence of str, optional
        As the tokenizer gives them.
    row : int, optional
        The token that looks at first, by default the last. A click chooses another.

    Returns
    -------
    LiveView
        Controls: bits, axis (a scale per token or per feature), mean (over tokens, what all keys share: kept, kept
        apart in float16, taken away).

    Examples
    --------
    >>> view = keys_map([[9.0, 1.0], [9.0, -1.0]], np.eye(2))
    >>> view.sliders["mean"].value = 2
    >>> view.shown["keys"].tolist(), view.shown["weights"].round(2).tolist()
    ([[0.0, 1.0], [0.0, -1.0]], [[0.8, 0.2]])
    """
    fix = "one head, a row for each token"
    key, query = (arguments.array_of(x, name, "(n, d_k)", fix) for x, name in ((key, "key"), (query, "query")))
    if key.shape != query.shape:
        raise ShapeError(f"key and query must have one shape, (n, d_k), got {key.shape} and {query.shape}. Fix: {fix}.")
    n = arguments.whole(len(key), "the number of tokens", 2, MOST)
    arguments.whole(key.shape[1], "d_k", 1, WIDEST)
    row = n - 1 if row is None else arguments.whole(row, "row", 0, n - 1)
    given = arguments.labels(range(n) if tokens is None else tokens, "tokens", n)
    keys = _Keys(key, query, [svg.visible(token) for token in given])
    controls = {"bits": choice("bits", [*BITS.items()]), "axis": buttons("a scale per", [*AXES.items()], -1)}
    controls["mean"] = buttons("what all keys share", [*SHARED.items()], 0)
    return _KeysMap(controls, keys.draw, picked={"query": row}, labels=lambda: (keys.words, None, None))


class _KeysMap(LiveView):
    hint = "Point at a cell for its number. A click on a row asks from there, or Tab and arrow keys."

    def _tell(self, title, i, j):
        words = html.escape(f"key {self.name_of('query', i)}, feature {j}", quote=False)
        return f"{words}: <b>{svg.exact(float(self.shown[title][i, j]))}</b>"


class _Keys:
    def __init__(self, key, query, words):
        self.key, self.query, self.words, self.most = key, query, words, float(np.abs(key).max()) or 1.0
        self.shared = key.mean(0).astype(np.float16).astype(float)  # (d_k,)
        self.high = min(16, ROWS // len(key))
        self.kept, self.top = lru_cache(maxsize=32)(self._quantised_keys), lru_cache(maxsize=MOST)(self._top)

    def _quantised_keys(self, bits, axis, apart):
        """Return the keys as they are kept, with or without what all share, and their map for each layout."""
        rest = self.key - self.shared if apart else self.key
        kept = rest if bits == 32 else rounded(rest, bits, axis, np.float16)
        return kept, [self._image(kept, room, self.high) for _, room, _ in (ACROSS, DOWN)]

    def _image(self, values, room, high):
        return svg.signed_map(values, svg.cell_side(room, values.shape[1]), high, self.most)

    def weights(self, key, row):
        return core.softmax(self.query[row] @ key[: row + 1].T / self.query.shape[1] ** 0.5)

    def _top(self, row):
        """Return the largest weight of a query, however its keys are kept: so the scale of the bars stands still."""
        ways = product(BITS.values(), AXES.values(), (False, True))
        return max(self.weights(self.kept(*way)[0], row).max() for way in ways)

    def draw(self, bits, axis, mean, row):
        """Return the picture in both layouts, and what it shows."""
        (n, d_k), (kept, images) = self.key.shape, self.kept(bits, axis, mean > 0)
        weights, whole = (self.weights(key, row) for key in (kept + self.shared * (mean == 1), self.key))
        change = np.abs(weights - whole)
        most, held = int(change.argmax()), min(bits, 16)
        size = bytes_kept(n, d_k, held, axis) + (2 * d_k / n) * (mean == 1)
        asks, of = (f"“{svg.shorten(self.words[j])}”" for j in (row, most))
        moved = f"{change[most]:.4f}, on {of}" if change[most] >= 5e-5 else "0.0000"
        lines = f"Query {asks}, {size:.0f} bytes a token (whole: {2 * d_k}).", f"Largest change of a weight: {moved}."
        words = f"{n} keys of {d_k} features in {held} bits; what all share is {[*SHARED][mean]}. {' '.join(lines)}"
        pages, low = [], TOP + n * self.high
        for page, image in zip((ACROSS, DOWN), images, strict=True):
            parts = [*self._map(page, image, mean, row), *self._bars(page, weights, whole, row)]
            parts += [svg.text(4, low + 18 + 19 * k, line) for k, line in enumerate(lines)]
            size = sum(page) + 18, low + 44
            pages.append(svg.picture(*size, "the keys of a head", words, parts, at=(0, 0) if page == ACROSS else None))
        return svg.layouts(*pages), {"keys": kept, "weights": weights[None]}

    def _map(self, page, image, mean, row):
        """Yield labels and map, above it the legend and what all keys share."""
        (n, d_k), high, (left, room, _) = self.key.shape, self.high, page
        wide = svg.cell_side(room, d_k) * d_k
        for x, colour, side in ((left, KEY, "above zero"), (left + 92, BELOW, "below zero")):
            yield f'<rect x="{x}" y="4" width="10" height="10" fill="{colour}"/>{svg.text(x + 14, 13, side)}'
        strip, shown = self._image(self.shared[None], room, 12), "visible" if mean == 1 else "hidden"
        yield f'<g transform="translate({left} 22)" visibility="{shown}">{strip}</g>'
        dash = f'stroke="{LINE}" stroke-dasharray="{"none" if mean == 1 else "3 3"}" opacity="{min(mean, 1)}"'
        yield f'<rect x="{left}" y="22" width="{wide}" height="12" fill="none" {dash}/>'
        yield svg.text(left - 6, 32, ("", "shared", "gone")[mean], anchor="end")
        yield f'<g transform="translate({left} {TOP})">{image}</g>'
        every = -(-15 // high)  # rows are lower than a line of text; the one that looks has its name
        for j in (j for j in range(n) if j == row or (j % every == 0 and abs(j - row) >= every)):
            words = svg.text(left - 4, TOP + (j + 0.5) * high + 4, svg.shorten(self.words[j], left // 8), anchor="end")
            yield f'<g opacity="{1 if j <= row else 0.6}">{words}</g>'
        yield svg.frame(left - 1, TOP + row * high - 1, wide + 2, high + 2, QUERY)
        grid = {"row": "query", "rows": n, "column": "feature", "columns": d_k, "shown": "keys"}
        yield svg.target(left, TOP, wide, n * high, **grid) + svg.target(0, TOP, left, n * high, row="query", rows=n)

    def _bars(self, page, weights, whole, row):
        """Yield the weights with these keys as bars, and with whole ones as ticks."""
        left, room, most = page
        x, long, bars, ticks = left + room + 6, most / self.top(row), "", ""
        for j in range(len(self.key)):
            y, (w, v) = TOP + j * self.high, (weights[j], whole[j]) if j <= row else (0, 0)
            bars += f"M{x} {y + 2}h{w * long:.1f}v{self.high - 3}H{x}z"
            ticks += f"M{x + v * long:.1f} {y + 1}v{self.high - 2 if j <= row else 0}"
        yield svg.text(x, 13, "weights") + svg.text(x, 30, "tick: whole keys")
        yield f'<path class="attnlib-moves" d="{bars}" fill="{QUERY}"/>'
        yield f'<path d="{ticks}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
