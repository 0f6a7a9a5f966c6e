"""One attention call as a picture: every matrix stands where its product leaves it.

Of a product A B, A stands to the left of the result and B above it: row i of A and column j of B meet in the cell that
they make. So K^T stands above the scores, V above the output, and query i is one line through the whole picture. Where
that line has no room, it is broken behind arrows: all that is drawn comes as (x, SVG text), x says in which part.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..colours import EDGE, KEY, LINE, QUERY, VALUE
from . import parts
from .charts import CELLS, _spacing, cell_side
from .parts import TIMES, frame, shorten, tag, target, text, width

WIDE, LEAST = 852, 0.918  # pixels of the picture at most, and the share to which it may shrink: numbers keep 11
# Pixels that cells take at most: maps downwards, K^T and V, features of a token (of many tokens).
LOWER, UPPER, FEATURES, MANY = 192, 112, 200, 64
LARGEST_CELL, LETTERS = 38, 8  # pixels of a cell at most, and letters of a label
SLOT, NEAR, ARROW, LINE_HIGH = 68, 14, 11, 14  # room of a caption; between matrices that meet in a product; around
# words on an arrow; height of a label
# Of the table: columns for keys, height of a row, width of its name and its sum, pixels of a column on a phone.
KEYS, ROW, NAME, SUM, NARROW = 9, 19, 104, 76, 42
GREY = EDGE  # of what has no role
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
        return frame(x - 0.5, y - 0.5, wide + 1, high + 1, colour, line=2)  # it leaves the rows beside it whole


class Layout(NamedTuple):
    """The place of each matrix by name, words on arrows as (words, x, y, baseline), the size of all, and its parts."""

    places: dict
    arrows: list
    wide: int
    high: int
    parts: list  # (left, top, right) of each: what does not stand below K^T or V is low


def layout(maps, queries, keys, d_in, d_k, d_v):
    """Return where everything stands, with cells as large as the picture has room for.

    `maps` has the names of the maps (n_q, n_k) in their order, each with what happens on the way to it; d_in is 0 where
    no tokens X are drawn.

    >>> place = layout({"scores": "q.k", "weights": "softmax"}, ["0", "1"], ["0", "1"], 0, 2, 2).places
    >>> place["key"].x == place["scores"].x, place["value"].x == place["output"].x
    (True, True)
    """
    for side in range(LARGEST_CELL, 1, -1):
        made = _with_cells(side, maps, queries, keys, (d_in, d_k, d_v))
        if made.wide <= WIDE and len(queries) * side <= LOWER:
            break
    return made


def _with_cells(side, maps, queries, keys, features):
    """Return the layout with cells of `side` pixels for a query and a key."""
    n_q, n_k, (d_in, d_k, d_v) = len(queries), len(keys), features
    f_in, f_k, f_v = (min(side, cell_side(FEATURES if d <= CELLS else MANY, d)) if d else 0 for d in features)
    k_high, v_high = (min(side, cell_side(UPPER if n_k <= CELLS else MANY, rows)) for rows in (d_k, n_k))
    v_high = max(v_high, LINE_HIGH) if n_k * LINE_HIGH <= FEATURES else v_high  # a label at each row
    y = 26 + round(max(20 + d_k * k_high, n_k * v_high)) + NEAR
    first = next(iter(maps))
    places, arrows, x = {}, [], 20 + round(max(width(shorten(label, LETTERS)) for label in queries))

    def stand(name, columns, wide, words=None):
        nonlocal x
        if words:
            arrows.append((words, x, y + n_q * side // 2, y - 4 if n_q == 1 else y + n_q * side // 2 - 4))
            x += ARROW + round(width(words))
        slot = max(round(columns * wide), SLOT)
        places[name] = Place(x + (slot - round(columns * wide)) // 2, y, n_q, columns, wide, side)
        x += slot

    if d_in:
        stand("x", d_in, f_in)
    stand("query", d_k, f_k, "W_Q" if d_in else None)
    x += NEAR
    for name, words in maps.items():
        stand(name, n_k, side, words if name != first else None)
    x += NEAR
    stand("output", d_v, f_v)
    over = places[first], places["output"]
    places["key"] = Place(over[0].x, y - NEAR - round(d_k * k_high), d_k, n_k, side, k_high)
    places["value"] = Place(over[1].x, y - NEAR - round(n_k * v_high), n_k, d_v, f_v, v_high)
    wide = 4 + max(x, places["value"].x + _caption_width("values", "V", n_k, d_v))
    past_keys = places["key"].x + _caption_width("keys", "K^T", d_k, n_k)
    high = y + n_q * side + 38
    # What is too wide for one line on most screens would stand too high on two: it scrolls as one.
    ends = [at + ARROW + round(width(words)) - 6 for words, at, *_ in arrows]  # frames are wider than matrices
    breaks = [end for end in ends if not over[0].x < end < past_keys and wide <= WIDE]
    parts = []
    for left, right in pairwise([0, *breaks, wide]):
        tops = [_above(name, places[name]) - 13 for name in ("key", "value") if left <= places[name].x < right]
        parts.append((left, min([*tops, y, y + n_q * side // 2 - 20]), right))
    return Layout(places, arrows, wide, high, parts)


def _above(name, at):
    """Return the baseline of the caption of K^T or V: the labels of keys stand between K^T and its caption."""
    return at.y - (29 if name == "key" else 9)


def _caption_width(role, symbol, rows, columns):
    """Return the width of the caption of K^T or V."""
    return round(width(role) + width(f"{symbol} {rows} {TIMES} {columns}")) + 24


def matrices(place, arrays, maps, queries, keys, blocked=None):
    """Return all matrices of a call with their captions, labels and targets, [(x, SVG)]: what no choice changes.

    `place` is a Layout, made of the same `maps`, and `arrays` has the names of its places; key is (n_k, d_k), as
    everywhere, `blocked` (n_q, n_k).
    """
    elements = [(at[1], _arrow(*at)) for at in place.arrows]
    for name, at in place.places.items():
        options = {"rows": queries, "columns": keys, "tint": TINTS.get(name)} | {
            "key": {"rows": None, "names": ("feature", "key")},
            "value": {"rows": keys, "columns": None, "names": ("value", "feature")},
        }.get(name, {} if name in maps else {"columns": None, "names": ("query", "feature")})
        if after(maps, name, "masked_scores"):
            options["blocked"] = blocked
        values = arrays[name].T if name == "key" else arrays[name]
        cells = f'<g transform="translate({at.x} {at.y})">{_cells(values, at, span(arrays, maps, name), options)}</g>'
        elements.append((at.x, cells + _caption(name, at) + _target(name, at)))
    return [*elements, *_labels(place, keys)]


def apart(place, elements):
    """Return what is drawn in each part of a Layout, as texts, moved to its own corner; `elements` are (x, SVG)."""
    elements = list(elements)
    return [
        f'<g transform="translate({-left} {-top})">{"".join(part for x, part in elements if left <= x < right)}</g>'
        for left, top, right in place.parts
    ]


def after(maps, name, step):
    """Tell whether `name` is a map that stands at `step` or after it; where that step is left out, at the weights."""
    order = list(maps)
    return name in maps and order.index(name) >= order.index(step if step in maps else "weights")


def span(arrays, maps, name):
    """Return the ends of a colour scale: maps before the weights share that of the scores, the output that of V."""
    if after(maps, name, "weights"):
        return 0.0, 1.0
    x = arrays["scores" if name in maps else "value" if name == "output" else name]
    x = x[np.isfinite(x)]
    if name not in maps:  # in the colour of a role it is told how far from 0 a number is
        return 0.0, float(abs(x).max(initial=0)) or 1.0
    return (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)


def _cells(values, at, span, options):
    sizes = {"high": at.high, "vmin": span[0], "vmax": span[1]}
    if max(values.shape) <= CELLS and min(at.wide, at.high) >= 4:
        # One decimal is better than none: the table below the picture has the numbers in full.
        return parts.matrix(values, at.wide, least=1, inset=2, **sizes, **options)
    return parts.image(values, at.wide, **sizes, tint=options.get("tint"), blocked=options.get("blocked"))


def matrix_name(name):
    """Return what a matrix without a role is called: a step as the trace has it, in words."""
    return "tokens" if name == "x" else name.replace("_", " ")


def _caption(name, at):
    """Return the name of a matrix, coloured if it has a role, and its shape: above K^T and V, below the others."""
    middle, shape = (at.x + at.right) / 2, f"{at.rows} {TIMES} {at.columns}"
    if name == "query":
        return tag(middle, at.bottom + 18, "queries", QUERY) + _small(middle, at.bottom + 34, f"Q  {shape}")
    if name in ("key", "value"):
        role, symbol, colour = ("keys", "K^T", KEY) if name == "key" else ("values", "V", VALUE)
        wide, y = round(width(role)) + 8, _above(name, at)
        return tag(at.x, y, role, colour, anchor="start") + text(at.x + wide + 8, y, f"{symbol}  {shape}", math=True)
    title = text(middle, at.bottom + 18, matrix_name(name), bold=True, anchor="middle")
    return title + _small(middle, at.bottom + 34, f"X  {shape}" if name == "x" else shape)


def _small(x, y, words):
    return text(x, y, words, anchor="middle", math=True)


def _arrow(words, x, y, base):
    long = ARROW - 12 + round(width(words))
    head = f'<path d="M{x + 4} {y + 4}h{long}m-6 -4l6 4l-6 4" stroke="{LINE}" stroke-width="1.5" fill="none"/>'
    return head + text(x + 4 + long / 2, base, words, anchor="middle", math=True)


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


def _labels(place, keys):
    """Yield the labels of K^T; keys that are wider than their columns have theirs beside V alone."""
    k = place.places["key"]
    every, slanted, _ = _spacing([shorten(key, LETTERS) for key in keys], k.wide)
    for j in () if slanted else range(0, k.columns, every):
        yield k.x, text(round(k.x + (j + 0.5) * k.wide), k.y - 6, shorten(keys[j], LETTERS), anchor="middle")


def _selected_labels(place, queries, keys, i, j):
    """Return the labels of the query and the key that are chosen, coloured, and those of the other rows."""
    first, k, v = (place.places[name] for name in (_first(place), "key", "value"))
    elements = [(k.x, tag(round(k.x + (j + 0.5) * k.wide), k.y - 6, shorten(keys[j], LETTERS), KEY))]
    for at, labels, row, colour in ((first, queries, i, QUERY), (v, keys, j, VALUE)):
        words = shorten(labels[row], LETTERS)
        chosen = tag(at.x - 8, _middle(at, row), words, colour, anchor="end")
        elements.append((at.x, "".join(_beside(at, labels, row)) + chosen))
    return elements


def _beside(at, labels, chosen):
    """Yield the labels of rows that have room; under that of the chosen one they are hidden, not left out.

    A page without a kernel changes what stands in elements, and needs the same ones at every stop.
    """
    for i in range(0, at.rows, math.ceil(14 / at.high)):
        hidden = ' visibility="hidden"' if abs(i - chosen) * at.high < 16 else ""
        yield f"<g{hidden}>{text(at.x - 8, _middle(at, i), shorten(labels[i], LETTERS), anchor='end')}</g>"


def _first(place):
    return "x" if "x" in place.places else "query"


def _middle(at, i):
    return round(at.y + (i + 0.5) * at.high + 4)


def beams(place, i, j, c):
    """Return what runs below the matrices: query i through them all, key j to its scores, feature c to the output."""
    at = place.places
    first, last, key, value = (at[name] for name in (_first(place), "output", "key", "value"))
    y = last.y + i * last.high
    boxes = [
        (key.x + j * key.wide, key.bottom, key.wide, y - key.bottom, KEY),
        (value.x + c * value.wide, value.bottom, value.wide, y - value.bottom, VALUE),
    ]
    ends = [first.x, *(left for left, _, _ in place.parts if first.x < left < last.right), last.right]
    boxes += [(x, y, end - x, last.high, QUERY) for x, end in pairwise(ends)]
    return [
        (x, f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{colour}" opacity="0.3"/>')
        for x, y, wide, high, colour in boxes
    ]


def lit(place, queries, keys, i, j, c):
    """Return frames around what makes the score of query i and key j, and feature c of output i."""
    at = place.places
    rows = [(at[name].x, at[name].frame(i)) for name in at if name not in ("key", "value")]
    cells = [(at[name].x, at[name].frame(i, j, KEY)) for name in at if name not in TINTS]
    made = [(at[name].x, at[name].frame(row, c, VALUE)) for name, row in (("value", None), ("output", i))]
    chosen = at["key"].x, at["key"].frame(None, j, KEY)
    return [*rows, chosen, *cells, *made, *_selected_labels(place, queries, keys, i, j)]


def steps_table(rows, keys, j, wide):
    """Return the way from scores to an output as a table: a column per key, a row per step, sums at the right.

    `rows` are (name, values (n_k,), options of `parts.matrix`, the sum over all keys where it means something); key j
    is framed; the table takes at most `wide` pixels, and goes on below itself where these are few: [part].
    """
    n = min(len(keys), KEYS)
    first = 0 if j is None else min(max(j - n // 2, 0), len(keys) - n)
    side = max(NARROW, min(72, (wide - NAME - SUM) // n))
    most, last = (wide - NAME) // side, (wide - NAME - SUM) // side  # columns without sums, and with them
    most = math.ceil(n / (1 + math.ceil((n - last) / most)))
    ends = [*range(first, first + n, most), first + n]
    return [_columns(rows, keys, j, *part, side, part[1] == first + n, n) for part in pairwise(ends)]


def _columns(rows, keys, j, first, end, side, sums, n):
    elements, right = [], NAME + (end - first) * side
    for k in range(first, end):
        x, words = NAME + (k - first + 0.5) * side, shorten(keys[k], max(2, min(LETTERS, side // 8)))
        elements.append(tag(x, 13, words, KEY) if k == j else text(x, 13, words, anchor="middle"))
    if n < len(keys):
        elements.append(text(NAME - 4, 13, f"{n} of {len(keys)} keys", anchor="end"))
    if sums:
        elements.append(text(right + SUM / 2, 13, "sum" if n == len(keys) else f"sum of {len(keys)}", anchor="middle"))
    for row, (name, values, options, total) in enumerate(rows, start=1):
        y = row * ROW + 1
        part = np.s_[None, first:end]
        shown, blocked = values[part], options.get("blocked")
        options = {**options, "blocked": None if blocked is None else blocked[part]}
        most = parts.decimals(shown, 0.85 * side, most=4, least=1) or 0
        cells = parts.matrix(shown, side, high=ROW, most=most, **options)
        elements.append(text(NAME - 4, y + 14, name, anchor="end", math=True))
        elements.append(f'<g transform="translate({NAME} {y})">{cells}</g>')
        if sums and total is not None:
            elements.append(text(right + SUM / 2, y + 14, f"{total:.5g}", anchor="middle", bold=True))
    if j is not None and first <= j < end:
        elements.append(frame(NAME + (j - first) * side, ROW + 1, side, len(rows) * ROW, KEY))
    return "".join(elements)
