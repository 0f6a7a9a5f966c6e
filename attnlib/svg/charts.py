"""Whole pictures, made of parts: a map with its labels, bars, and all heads of a model."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import arguments
from ..colours import INK, KEY, LINE, NOT_FINITE, QUERY
from . import parts
from .parts import LARGE, exact, frame, picture, shorten, tag, target, text

CELLS = 16  # above this many tokens a map goes in as one image, not as rectangles
SIDE = 300  # pixels that a map takes at most; the text of 13 is then readable on a projector
LARGEST_CELL = 54  # pixels of a cell at most
PHONE, WITH_NUMBER = 353, 31  # pixels that a page of 390 has for labels and cells; of a cell with room for its weight
TOP, LINE_HEIGHT, SLANTED = 26, 14, 17  # room for the title, height of a label, room for a slanted one
BARS, HEADROOM = 54, 18  # height of the bars below a map, and room for the number above a bar
NO_KEY = "no key to attend to"
HEAD, HEADS_WIDE, HEADS_HIGH = 40, 480, 420  # pixels of a cell of the grid of heads, and of all of them, at most


class Layout(NamedTuple):
    """Where the parts of a map stand, in whole pixels."""

    left: int
    cell: float
    width: float
    height: float
    every: int  # a label stands at every so many tokens
    slanted: bool
    bottom: int  # room for the labels of the keys and the name of their axis


def heatmap(
    weights,
    *,
    title="",
    queries=None,
    keys=None,
    attn_mask=None,
    row=None,
    column=None,
    vmin=0.0,
    vmax=1.0,
    side=SIDE,
    bars=False,
    scale=False,
    dead=NO_KEY,
    row_name="query",
):
    """Return one map as an <svg> element; its cells and labels can be clicked.

    `weights` is (n_q, n_k): weights, or scores with their own ends of the colour scale, `vmin` and `vmax`. `title` is
    also the name under which the view finds the exact values. Queries and keys are labelled by numbers from 0, or as
    given. Where `attn_mask`, (n_q, n_k), is False cells are hatched, and a row without a key to attend to says so, in
    the words `dead`; with other words than `NO_KEY` such cells are free, not hatched, and the words stand in tooltips,
    too. A query `row` and a key `column` get a frame; with `bars` the weights of that query stand as bars below their
    columns, with `scale` the colour scale beside the map. The cells take `side` pixels at most. `row_name` says what a
    row is, where it is no query; `names_of` takes it apart.

    >>> heatmap(np.eye(2), title="identity")[:14]
    '<svg role="img'
    """
    queries, keys = _labels(weights, queries, keys)
    place = _layout(weights.shape, tuple(queries), tuple(keys), side)
    allowed = arguments.mask(attn_mask, weights.shape)
    blocked = None if allowed is None else ~allowed
    elements = [text(place.left, 17, title, size=LARGE, bold=True, math=True)]
    elements.append(f'<g transform="translate({place.left} {TOP})">')
    elements.append(_cells(weights, place, queries, keys, blocked, vmin, vmax, dead, row_name))
    if column is not None:
        elements.append(frame(column * place.cell, -1.5, place.cell, place.height + 3, KEY, line=2))
    if row is not None:
        elements.append(frame(-1.5, row * place.cell - 1.5, place.width + 3, place.cell + 3, QUERY))
    elements.append(_targets(weights.shape, place, title))
    if scale:
        bar = parts.colour_bar(place.height, vmin, vmax)
        elements.append(f'<g transform="translate({place.width + 12:g} 0)">{bar}</g>')
    elements.append("</g>")
    elements.append(_axis_labels(place, tuple(queries), tuple(keys), row_name))
    bottom = TOP + place.height + place.bottom
    if bars:
        chosen = None if blocked is None else blocked[row]
        elements.append(f'<g transform="translate({place.left} {bottom + HEADROOM:g})">')
        elements.append(f"{columns(weights[row], place.cell, BARS, keys, chosen)}</g>")
        bottom += BARS + HEADROOM + 8
    # The title must fit, also over a narrow map.
    wide = max(place.left + place.width + (58 if scale else 5), place.left + parts.width(title, LARGE) + 10)
    return picture(wide, bottom, title, describe(weights, queries, keys, allowed, dead, row_name), elements)


def _cells(weights, place, queries, keys, blocked, vmin, vmax, dead, row_name):
    """Return the cells: as rectangles with numbers and tooltips, or for many tokens as one image."""
    if max(weights.shape) > CELLS:
        return parts.image(weights, place.cell, vmin=vmin, vmax=vmax, blocked=blocked)
    labels = {"rows": queries, "columns": keys, "names": names_of(row_name)}
    labels["hidden"] = "blocked" if dead == NO_KEY else dead
    cells = parts.matrix(weights, place.cell, vmin=vmin, vmax=vmax, blocked=blocked, **labels)
    return cells + "".join(_dead_rows(blocked, place, dead))


def bars(weights, *, title="", keys=None, attn_mask=None):
    """Return one query's weights as a bar chart in an <svg> element.

    Where `attn_mask`, (n_k,), is False, bars are marked as blocked.

    >>> "key 1: 0.7500" in bars(np.array([0.25, 0.75]))
    True
    """
    n, high, left = len(weights), 110, 44
    _, keys = _labels(weights[None], None, keys)
    step = min(cell_side(SIDE, n), 100)
    allowed = arguments.mask(attn_mask, (n,))
    blocked = None if allowed is None else ~allowed
    targets = _targets((1, n), Layout(0, step, n * step, high, *[0] * 3), title)
    chart = columns(weights, step, high, keys, blocked) + targets
    elements = [text(0, 17, title, size=LARGE, bold=True, math=True)]
    elements.append(f'<g transform="translate({left} {TOP + 16})">{chart}</g>')
    place = Layout(left, step, n * step, high + 16, *_spacing(keys, step))
    elements.append(_axis_labels(place, (), tuple(keys)))
    size = left + n * step + 10, TOP + place.height + place.bottom
    sentence = describe(weights[None], ["0"], keys, None if allowed is None else allowed[None])
    return picture(*size, title, sentence, elements)


def names_of(row_name):
    """Return what a row of a map is, and what a column is.

    >>> names_of("rule"), names_of("block, part in common")
    (('rule', 'key'), ('block', 'part in common'))
    """
    row, _, column = row_name.partition(", ")
    return row, column or "key"


def names_of_axes(row_name):
    """Return the names of the vertical axis of a map and of the horizontal one.

    >>> names_of_axes("query"), names_of_axes("block, part in common")
    (('queries (rows)', 'keys (columns)'), ('blocks (rows)', 'part in common (columns)'))
    """
    row, column = names_of(row_name)
    rows = "queries (rows)" if row == "query" else f"{row}s (rows)"
    return rows, "keys (columns)" if column == "key" else f"{column} (columns)"


def count_along(n, axis):
    """Return a number with the name of an axis, in the singular if it is one.

    >>> count_along(4, "queries (rows)"), count_along(1, "queries (rows)"), count_along(1, "keys (columns)")
    ('4 queries (rows)', '1 query (row)', '1 key (column)')
    """
    return f"{n} " + (axis if n != 1 else axis.replace("queries", "query").replace("s (", " (").replace("s)", ")"))


def describe(weights, queries, keys, attn_mask, dead=NO_KEY, row_name="query"):
    """Return in words what a map shows: its size, and for every query (up to 16) the key it looks at most."""
    sentences = [" by ".join(map(count_along, weights.shape, names_of_axes(row_name))) + "."]
    row_name, column_name = names_of(row_name)
    row_name = row_name.capitalize()
    rows = weights[:CELLS] if attn_mask is None else np.where(attn_mask[:CELLS], weights[:CELLS], -1)
    most = zip(np.isfinite(rows).all(-1).tolist(), rows.argmax(-1).tolist(), rows.max(-1).tolist(), strict=True)
    for query, (finite, j, weight) in zip(queries, most, strict=False):
        if not finite:
            sentences.append(f"{row_name} {query}: weights that are not finite.")
        elif weight <= 0:
            sentences.append(f"{row_name} {query}" + (" may attend to no key." if dead == NO_KEY else f": {dead}."))
        else:
            sentences.append(f"{row_name} {query}: most on {column_name} {keys[j]}, {weight:.4f}.")
    return " ".join(sentences)


def cell_side(side, n):
    """Return the side of a cell in whole pixels, or the fraction of one where there are more cells than pixels.

    >>> cell_side(300, 8), cell_side(300, 600)
    (37, 0.5)
    """
    return side // n if side >= n else side / n


def _labels(weights, queries, keys):
    n_q, n_k = weights.shape
    return (
        arguments.labels(queries, "queries", n_q) or [str(i) for i in range(n_q)],
        arguments.labels(keys, "keys", n_k) or [str(j) for j in range(n_k)],
    )


def _spacing(keys, cell):
    """Return (a label at every so many tokens, whether they are slanted, room below for them and the axis name)."""
    longest = max(parts.width(shorten(key)) for key in keys)
    every = math.ceil((LINE_HEIGHT + 1) / cell)  # columns want more room than rows
    slanted = cell * every < longest + 4
    if slanted and all(key.isdecimal() for key in keys):  # fewer of them, upright
        every, slanted = math.ceil((longest + 6) / cell), False
    return every, slanted, round(32 + 0.77 * longest) if slanted else 44


def _room_for_labels(queries):
    return 32 + round(min(max(parts.width(shorten(query)) for query in queries), 80))


def columns_on_a_phone(queries, n):
    """Return how many of n keys a phone shows beside each other: as even parts as have their weights in the cells.

    >>> columns_on_a_phone(["whole"], 16)
    8
    """
    return math.ceil(n / math.ceil(n * WITH_NUMBER / (PHONE - _room_for_labels(queries))))


@lru_cache(maxsize=64)
def _layout(shape, queries, keys, side):
    n_q, n_k = shape
    cell = min(cell_side(side, max(n_q, n_k)), LARGEST_CELL)
    left = _room_for_labels(queries)
    fits = (PHONE - left) // n_k
    cell = fits if WITH_NUMBER <= fits < cell else cell
    return Layout(left, cell, cell * n_k, cell * n_q, *_spacing(keys, cell))


@lru_cache(maxsize=64)
def _axis_labels(place, queries, keys, row_name="query"):
    """Return the labels of tokens that have room, and the two names of the axes in their colours."""
    left, cell = place.left, place.cell
    below = TOP + place.height
    elements = [
        text(left - 6, round(TOP + (i + 0.5) * cell + 4), shorten(queries[i]), anchor="end")
        for i in range(0, len(queries), max(1, math.ceil(LINE_HEIGHT / cell)))
    ]
    for j in range(0, len(keys), math.ceil(SLANTED / cell) if place.slanted else place.every):
        x = round(left + (j + 0.5) * cell)
        if place.slanted:
            elements.append(text(x + 4, below + 14, shorten(keys[j]), anchor="end", turn=-50))
        else:
            elements.append(text(x, below + 16, shorten(keys[j]), anchor="middle"))
    rows, columns = names_of_axes(row_name)
    name = columns if queries else "keys"  # bars have no rows
    elements.append(tag(max(left + place.width / 2, 60), below + place.bottom - 6, name, KEY))
    if queries:
        elements.append(tag(15, max(TOP + place.height / 2, 52), rows, QUERY, turn=-90))
    return "".join(elements)


def _targets(shape, place, title):
    n_q, n_k = shape
    options = {"row": "query", "rows": n_q, "column": "key", "columns": n_k, "shown": title}
    labels = target(-place.left, 0, place.left, place.height, row="query", rows=n_q) if place.left else ""
    below = target(0, place.height, place.width, 22, column="key", columns=n_k)
    return target(0, 0, place.width, place.height, **options) + labels + below


def _dead_rows(blocked, place, dead):
    """Return the words over the rows of a map that may look nowhere."""
    for i in () if blocked is None else np.flatnonzero(blocked.all(-1)):
        x, y = place.width / 2, place.height * i / len(blocked) + place.cell / 2 + 4
        words = text(round(x), round(y), dead, anchor="middle", bold=True)
        # On hatched cells, or on the page.
        yield f'<g fill="{parts.paint("ink")}">{words}</g>' if dead == NO_KEY else words


def _grid(step, high, written):
    """Return lines at 0, 0.5 and 1 with their numbers, and gaps where a number is `written` above a bar: (words, y)."""
    elements = []
    for tick in (0, 0.5, 1):
        y, gap = round(high * (1 - tick)), parts.SIZE - 2
        line = "".join(
            f"H{(j + 0.5) * step - half:g}M{(j + 0.5) * step + half:g} {y}"
            for j, (words, low) in enumerate(written)
            for half in [round(parts.width(words, parts.SIZE) / 2) + 1]
            if low - gap < y < low + 3
        )
        elements.append(f'<path d="M0 {y}{line}H{step * len(written):g}" stroke="{LINE}" opacity="0.5"/>')
        elements.append(text(-6, y + 4, f"{tick:g}", anchor="end"))
    return "".join(elements)


def columns(weights, step, high, keys, blocked=None):
    """Return bars over columns of `step` pixels, their feet at y = `high`, numbers above them where they have room.

    >>> columns(np.array([0.25, 0.75]), 40, 100, ["a", "b"]).count("<rect")
    2
    """
    elements, written = [], []
    places = parts.decimals(weights, step)
    inset = max(1, round(step * 0.1)) if step >= 4 else 0
    for j, w in enumerate(weights.tolist()):
        hidden, finite = blocked is not None and blocked[j], math.isfinite(w)
        tall = round(high * min(max(w, 0), 1)) if finite else high
        hover = "blocked" if hidden else exact(w)
        fill = KEY if finite else NOT_FINITE
        elements.append(
            f'<rect x="{j * step + inset:g}" y="{high - tall}" width="{step - 2 * inset:g}" height="{tall}" '
            f'fill="{fill}"><title>key {parts.escape(keys[j])}: {hover}</title></rect>'
        )
        written.append(("", math.inf))
        if places is not None:
            written[j] = "-" if hidden else f"{w:.{places}f}", high - tall - 4
            elements.append(text((j + 0.5) * step, written[j][1], written[j][0], anchor="middle"))
    return "".join([_grid(step, high, written), *elements])


def heads(table, layer, head, title, *, vmax=None, at=None):
    """Return a number for every head of a model as a grid to click, layers from left to right, one head framed.

    `table` is (layers, heads), and the framed head is counted from 0. `vmax`, by default the largest number, has the
    darkest colour.

    >>> "head 2, layer 1: 0.5000" in heads(np.array([[0.25, 0.5]]), 0, 1, "a")
    True
    """
    layers, n = table.shape
    cell = min(HEAD, HEADS_WIDE // layers, HEADS_HIGH // n)
    every = 1 if cell >= 24 else 5
    sentence = f"Layer {layer + 1}, head {head + 1}: {table[layer, head]:.2f}. Largest {table.max():.2f}."
    options = {"names": ("head", "layer"), "rows": range(1, n + 1), "columns": range(1, layers + 1)}
    vmax = float(table.max() if vmax is None else vmax) or 1.0
    shown = [i for i in range(layers) if i == 0 or (i + 1) % every == 0]
    numbers = [text(30, 27 + cell * j + cell // 2, str(j + 1), anchor="end") for j in range(n)]
    aside = "" if every == 1 else ' class="attnlib-across"'  # a phone has room for every other one
    options["inset"] = 0 if every == 1 else cell  # numbers need cells that stay large
    cells = parts.matrix(table.T, cell, vmax=vmax, tint=KEY, least=1, **options)
    elements = [
        text(0, 15, title, size=LARGE),
        *(f"<g{aside * (j % 2)}>{number}</g>" for j, number in enumerate(numbers)),
        *(text(36 + cell * i + cell // 2, 39 + cell * n, str(i + 1), anchor="middle") for i in shown[1:]),
        text(36, 39 + cell * n, "L1"),
        f'<g transform="translate(36 22)">{cells}',
        frame(cell * layer, cell * head, cell, cell, INK),
        target(0, 0, layers * cell, n * cell, row="head", rows=n, column="layer", columns=layers),
        "</g>",
    ]
    wide = max(36 + layers * cell + 8, math.ceil(parts.width(title, LARGE)))  # the title must fit
    return picture(wide, 43 + n * cell, title, sentence, elements, at=at)
