"""One attention call as a picture: every matrix stands where its product leaves it.

Of a product A B, A stands to the left of the result and B above it: row i of A and column j of B meet in the cell that
they make. So K^T stands above the scores, V above the output, and query i is one line through the whole picture.
"""

import math
from typing import NamedTuple

import numpy as np

from ..colours import KEY, LINE, QUERY, VALUE
from . import parts
from .charts import CELLS, _spacing, whole
from .parts import TIMES, cut, frame, tag, target, text, width

# Pixels that cells take at most: a row of the picture, maps downwards, K^T and V, features of a token (of many tokens).
WIDE, LOWER, UPPER, FEATURES, MANY = 830, 192, 112, 200, 64
LARGEST, ARROW = 38, 50  # pixels of a cell at most, and of an arrow, which the cells do not get
LETTERS = 8  # of a label
SLOT, NEAR = 70, 14  # room of a caption; between two matrices that meet in a product
KEYS, ROW, NAME, SUM = 12, 19, 132, 76  # of the table: columns for keys, height of a row, width of its name and its sum
GREY = "#5F5F5F"  # tint of the tokens, which have no role
TINTS = {"x": GREY, "query": QUERY, "key": KEY, "value": VALUE, "output": VALUE}


class Place(NamedTuple):
    """Where a matrix stands: its corner, its cells, and the pixels of a cell."""

    x: int
    y: int
    rows: int
    columns: int
    wide: float
    high: float

    @property
    def right(self):
        return self.x + self.columns * self.wide

    @property
    def bottom(self):
        return self.y + self.rows * self.high

    def frame(self, i=None, j=None, colour=QUERY):
        """Return a frame around row i or all rows, column j or all columns."""
        x, wide = (self.x, self.right - self.x) if j is None else (self.x + j * self.wide, self.wide)
        y, high = (self.y, self.bottom - self.y) if i is None else (self.y + i * self.high, self.high)
        line = 3 if j is None else 2
        return frame(x - 1.5, y - 1.5, wide + 3, high + 3, colour, line=line)  # beside the numbers, not on them


class Layout(NamedTuple):
    """The place of each matrix by name, words on arrows as (words, x, y), and the size of it all."""

    places: dict
    arrows: list
    wide: int
    high: int


def layout(maps, queries, keys, d_in, d_k, d_v, before):
    """Return where everything stands.

    Parameters
    ----------
    maps : sequence of str
        The names of the maps (n_q, n_k) in their order.
    queries, keys : sequence of str
    d_in, d_k, d_v : int
        d_in is 0 where no tokens X are drawn.
    before : dict of str to str
        What happens on the way to a map, in words.

    Returns
    -------
    Layout

    Examples
    --------
    >>> place = layout(["scores", "weights"], ["0", "1"], ["0", "1"], 0, 2, 2, {"weights": "softmax"}).places
    >>> place["key"].x == place["scores"].x, place["value"].x == place["output"].x
    (True, True)
    """
    n_q, n_k = len(queries), len(keys)
    side, (f_in, f_k, f_v), (k_high, v_high) = _sizes(
        n_q, n_k, (d_in, d_k, d_v), len(maps), WIDE - ARROW * (len(before) + bool(d_in))
    )
    y = 26 + round(max(20 + d_k * k_high, n_k * v_high)) + NEAR
    places, arrows, x = {}, [], 20 + round(max(width(cut(label, LETTERS)) for label in queries))

    def stand(name, columns, wide, words=None):
        nonlocal x
        if words:
            arrows.append((words, x, y + n_q * side // 2))
            x += 26 + round(width(words))
        slot = max(round(columns * wide), SLOT)
        places[name] = Place(x + (slot - round(columns * wide)) // 2, y, n_q, columns, wide, side)
        x += slot

    if d_in:
        stand("x", d_in, f_in)
    stand("query", d_k, f_k, "W_Q" if d_in else None)
    x += NEAR
    for name in maps:
        stand(name, n_k, side, before.get(name))
    x += NEAR
    stand("output", d_v, f_v)
    over = places[maps[0]], places["output"]
    places["key"] = Place(over[0].x, y - NEAR - round(d_k * k_high), d_k, n_k, side, k_high)
    places["value"] = Place(over[1].x, y - NEAR - round(n_k * v_high), n_k, d_v, f_v, v_high)
    caption = width(f"values V {n_k} {TIMES} {d_v}") + 24
    wide = max(x, places["value"].x + round(caption), NAME + SUM + 400)
    return Layout(places, arrows, wide + 8, y + n_q * side + 38)


def _sizes(n_q, n_k, features, maps, wide):
    """Return the pixels of a token's cell, the widths of a feature in X, Q and V, the heights of a row of K^T and V."""
    for side in range(LARGEST, 1, -1):
        sizes = [min(side, whole(FEATURES if d <= CELLS else MANY, d)) if d else 0 for d in features]
        across = maps * n_k * side + sum(d * f for d, f in zip(features, sizes, strict=True))
        if across <= wide and n_q * side <= LOWER:
            break
    return side, sizes, [min(side, whole(UPPER if n_k <= CELLS else MANY, rows)) for rows in (features[1], n_k)]


def matrices(place, arrays, names, queries, keys, blocked=None):
    """Return all matrices of a call with their captions, labels and targets: what no choice changes.

    Parameters
    ----------
    place : Layout
    arrays : dict of str to ndarray
        By the names of `place`; key is (n_k, d_k), as everywhere.
    names : dict of str to str
        The captions of the maps.
    queries, keys : sequence of str
    blocked : ndarray of bool, (n_q, n_k), optional

    Returns
    -------
    str
    """
    drawn = [_arrow(*arrow) for arrow in place.arrows]
    spans = {name: span(arrays, name) for name in place.places}
    for name, at in place.places.items():
        options = {"rows": queries, "columns": keys, "tint": TINTS.get(name)} | {
            "key": {"rows": None, "names": ("feature", "key")},
            "value": {"rows": keys, "columns": None, "names": ("value", "feature")},
            "masked_scores": {"blocked": blocked},
            "weights": {"blocked": blocked},
        }.get(name, {} if name not in TINTS else {"columns": None, "names": ("query", "feature")})
        values = arrays[name].T if name == "key" else arrays[name]
        drawn.append(f'<g transform="translate({at.x} {at.y})">{_cells(values, at, spans[name], options)}</g>')
        drawn.append(_caption(name, at, names.get(name, name)))
        drawn.append(_target(name, at))
    return "".join([*drawn, *_labels(place, queries, keys)])


def span(arrays, name):
    """Return the ends of a colour scale: scaled scores share that of the scores, outputs that of the values."""
    if name == "weights":
        return 0.0, 1.0
    x = arrays[{"output": "value", "scaled_scores": "scores", "masked_scores": "scores"}.get(name, name)]
    x = x[np.isfinite(x)]
    return (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)


def _cells(values, at, span, options):
    sizes = {"high": at.high, "vmin": span[0], "vmax": span[1]}
    if max(values.shape) <= CELLS and min(at.wide, at.high) >= 4:
        return parts.matrix(values, at.wide, inset=2, **sizes, **options)
    return parts.image(values, at.wide, **sizes, tint=options.get("tint"), blocked=options.get("blocked"))


def _caption(name, at, words):
    """Return the name of a matrix, on a plate if it has a role, and its shape: above K^T and V, below the others."""
    middle, shape = (at.x + at.right) / 2, f"{at.rows} {TIMES} {at.columns}"
    if name == "query":
        return tag(middle, at.bottom + 18, "queries", QUERY) + _small(middle, at.bottom + 34, f"Q  {shape}")
    if name in ("key", "value"):
        role, symbol, colour = ("keys", "K^T", KEY) if name == "key" else ("values", "V", VALUE)
        wide = round(width(role)) + 8
        return tag(at.x, 17, role, colour, anchor="start") + text(at.x + wide + 8, 17, f"{symbol}  {shape}", math=True)
    title = text(middle, at.bottom + 18, words, bold=True, anchor="middle")
    return title + _small(middle, at.bottom + 34, f"X  {shape}" if name == "x" else shape)


def _small(x, y, words):
    return text(x, y, words, anchor="middle", math=True)


def _arrow(words, x, y):
    long = 18 + round(width(words))
    head = f'<path d="M{x + 4} {y + 4}h{long}m-6 -4l6 4l-6 4" stroke="{LINE}" stroke-width="1.5" fill="none"/>'
    return head + text(x + 4 + long / 2, y - 4, words, anchor="middle", math=True)


def _target(name, at):
    """Return where a click chooses what: queries are rows, keys columns, features of the output columns of V."""
    axes = {
        "x": {"row": "query", "rows": at.rows},
        "query": {"row": "query", "rows": at.rows},
        "key": {"column": "key", "columns": at.columns},
        "value": {"row": "key", "rows": at.rows, "column": "feature", "columns": at.columns},
        "output": {"row": "query", "rows": at.rows, "column": "feature", "columns": at.columns},
    }
    default = {"row": "query", "rows": at.rows, "column": "key", "columns": at.columns, "shown": name}
    return target(at.x, at.y, at.right - at.x, at.bottom - at.y, **axes.get(name, default))


def _labels(place, queries, keys):
    """Yield the labels that have room; keys that are wider than their columns of K^T have theirs beside V alone."""
    first, k, v = (place.places[name] for name in (_first(place), "key", "value"))
    for at, labels in ((first, queries), (v, keys)):
        for i in range(0, at.rows, math.ceil(14 / at.high)):
            yield text(at.x - 8, _middle(at, i), cut(labels[i], LETTERS), anchor="end")
    every, slanted, _ = _spacing([cut(key, LETTERS) for key in keys], k.wide)
    for j in () if slanted else range(0, k.columns, every):
        yield text(round(k.x + (j + 0.5) * k.wide), k.y - 6, cut(keys[j], LETTERS), anchor="middle")


def _chosen(place, queries, keys, i, j):
    """Return the labels of the query and the key that are chosen, on plates."""
    first, k, v = (place.places[name] for name in (_first(place), "key", "value"))
    drawn = [tag(round(k.x + (j + 0.5) * k.wide), k.y - 6, cut(keys[j], LETTERS), KEY)]
    for at, label, row, colour in ((first, queries[i], i, QUERY), (v, keys[j], j, VALUE)):
        words = cut(label, LETTERS)
        drawn.append(tag(at.x - 12 - round(width(words)), _middle(at, row), words, colour, anchor="start"))
    return "".join(drawn)


def _first(place):
    return "x" if "x" in place.places else "query"


def _middle(at, i):
    return round(at.y + (i + 0.5) * at.high + 4)


def beams(place, i, j, c):
    """Return what runs below the matrices: query i through them all, key j to its scores, feature c to the output."""
    at = place.places
    first, last, key, value = (at[name] for name in (_first(place), "output", "key", "value"))
    y = last.y + i * last.high
    boxes = (
        (first.x, y, last.right - first.x, last.high, QUERY),
        (key.x + j * key.wide, key.bottom, key.wide, y - key.bottom, KEY),
        (value.x + c * value.wide, value.bottom, value.wide, y - value.bottom, VALUE),
    )
    return "".join(
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{colour}" opacity="0.3"/>'
        for x, y, wide, high, colour in boxes
    )


def lit(place, queries, keys, i, j, c):
    """Return frames around what makes the score of query i and key j, and feature c of output i."""
    at = place.places
    rows = [at[name].frame(i) for name in at if name not in ("key", "value")]
    cells = [at[name].frame(i, j, KEY) for name in at if name not in TINTS]
    made = [at["value"].frame(None, c, VALUE), at["output"].frame(i, c, VALUE)]
    return "".join([*rows, at["key"].frame(None, j, KEY), *cells, *made, _chosen(place, queries, keys, i, j)])


def table(rows, keys, j, wide):
    """Return the way from scores to an output as a table: a column per key, a row per step, sums at the right.

    Parameters
    ----------
    rows : sequence of (str, ndarray (n_k,), dict, float or None)
        Name, values, options of `parts.matrix`, and the sum over all keys where it means something.
    keys : sequence of str
    j : int or None
        The key that is framed.
    wide : int
        Pixels that the table takes at most.

    Returns
    -------
    str
    """
    n = min(len(keys), KEYS)
    first = 0 if j is None else min(max(j - n // 2, 0), len(keys) - n)
    side = min(72, (wide - NAME - SUM) // n)
    drawn = []
    for k in range(first, first + n):
        x, words = NAME + (k - first + 0.5) * side, cut(keys[k], max(2, min(LETTERS, side // 8)))
        drawn.append(tag(x, 15, words, KEY) if k == j else text(x, 15, words, anchor="middle"))
    right = NAME + n * side
    drawn.append(text(right + SUM / 2, 15, "sum" if n == len(keys) else f"sum of {len(keys)}", anchor="middle"))
    for row, (name, values, options, total) in enumerate(rows, start=1):
        y = row * ROW + 1
        part = np.s_[None, first : first + n]
        shown, blocked = values[part], options.get("blocked")
        options = {**options, "blocked": None if blocked is None else blocked[part]}
        most = next((most for most in (4, 3, 2, 1) if parts.decimals(shown, 0.85 * side, most=most) is not None), 0)
        cells = parts.matrix(shown, side, high=ROW, most=most, **options)
        drawn.append(text(NAME - 8, y + 14, name, anchor="end", math=True))
        drawn.append(f'<g transform="translate({NAME} {y})">{cells}</g>')
        if total is not None:
            drawn.append(text(right + SUM / 2, y + 14, f"{total:.5g}", anchor="middle", bold=True))
    if j is not None:
        drawn.append(frame(NAME + (j - first) * side, ROW + 1, side, len(rows) * ROW, KEY))
    return "".join(drawn)
