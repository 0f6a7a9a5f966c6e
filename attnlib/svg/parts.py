"""The parts that pictures are made of: pure functions from numbers and words to SVG text.

Text takes the colour of the page (currentColor), so that it can be read in a light and in a dark theme, and whatever a
learner can type is escaped. Every part takes its place in whole pixels: at a fraction of one, neighbouring cells leave
seams that look like groups.
"""

import base64
import html
import io
from collections import defaultdict
from functools import lru_cache

import numpy as np
from PIL import Image

from .. import colours
from ..colours import BELOW, KEY, NOT_FINITE, SHARES, inks, levels, map_name, rgb, token
from ..colours import QUERY as QUERY  # examples name it
from ..symbols import maths, speech

LABEL = 10  # most characters of a label
SIZE, LARGE = 13, 16  # of all words, of titles
MANY_CELLS = 256 * 256  # more of them are an image with a palette, where a small one would only be larger for it
AIR = 1.5  # pixels between two numbers in a row, at least; a sign is air, too
TIMES = "\u00d7"  # of shapes: 3 by 4
# Widths of letters in DejaVu Sans and of a minus in Inter, at size 1, at most.
ADVANCE = defaultdict(lambda: 0.64, {"-": 0.47} | dict.fromkeys(" .,:;|'!il", 0.33) | dict.fromkeys("mwMW@%", 0.9))
OPACITIES = [f' opacity="{share:.2f}"' for share in SHARES.tolist()]
NO_FILL = ' fill="none" pointer-events="all"'  # a cell without a colour has a tooltip, too
FONT = 'font-family="var(--sans,system-ui,sans-serif)" fill="currentColor"'

# A slider draws much of a picture where it stood, and that is written once. Typed: 12 and 12.0 are one key otherwise.
cached = lru_cache(maxsize=1024, typed=True)
escape = cached(html.escape)


def picture(width, height, title, description, parts, *, at=None, grow=1, tall=None, whole=None, least=None):
    """Return an <svg> element of this size, with a name and a description for screen readers.

    `at` is its corner among the pictures of a view that stand beside or below each other, where a still draws them all
    as one; `grow` is by how much it may grow where there is room, `tall` the share of the window's height that it may
    then fill. A part of a picture that grows takes its share of the room: `whole` is the width of all of it. `least`
    is the share to which a part may shrink that stands on one line with others.

    >>> picture(10, 10, "a < b", "two letters", [])[:36]
    '<svg role="img" viewBox="0 0 10 10" '
    """
    window = "" if tall is None else f",{100 * tall * width / height:.0f}vh"
    wide = f'width="{width:.0f}" style="max-width:100%;{f"min-width:{np.ceil(width * least):.0f}px;" if least else ""}'
    if grow != 1:
        share = 100 * width / (whole or width)
        wide = f'style="min-width:{width:.0f}px;width:min({share:.4g}%,{width * grow:.0f}px{window});'
    place = "" if at is None else f' data-at="{at[0]:g} {at[1]:g}"'
    return (
        f'<svg role="img" viewBox="0 0 {width:.0f} {height:.0f}" {wide}height:auto"{place} {FONT}>'
        f"<title>{speech(title)}</title>"
        f"<desc>{speech(description)}</desc>{''.join(parts)}</svg>"
    )


def layouts(across, down):
    """Return two layouts of one picture, of which a page shows the one it has room for."""
    return f'<div class="attnlib-across">{across}</div><div class="attnlib-down">{down}</div>'


def beside(panels, *, top=0, **options):
    """Return pictures beside each other on one line, below each other on a phone; a panel is what `picture` takes.

    In a still the line begins at `top`.

    >>> beside([(10, 10, "a", "", []), (10, 10, "b", "", [])]).count('data-at="10 0"')
    1
    """
    lefts = np.cumsum([0, *(width for width, *_ in panels)]).tolist()
    low = max(height for _, height, *_ in panels)
    corners = [(left, top + low - height) for left, (_, height, *_) in zip(lefts, panels, strict=False)]
    pictures = (picture(*panel, at=corner, **options) for panel, corner in zip(panels, corners, strict=True))
    return f'<div class="attnlib-parts">{"".join(pictures)}</div>'


@cached
def text(x, y, words, *, size=SIZE, anchor="start", bold=False, math=False, turn=0):
    """Return a text with its baseline at (x, y); with `math` its symbols are set as mathematics.

    >>> text(0, 10, "a < b")
    '<text x="0" y="10" font-size="13">a &lt; b</text>'
    """
    extra = "" if anchor == "start" else f' text-anchor="{anchor}"'
    extra += ' font-weight="600"' if bold else ""
    extra += f' transform="rotate({turn} {x:g} {y:g})"' if turn else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{extra}>{maths(words) if math else escape(words)}</text>'


def shorten(label, length=LABEL):
    """Return a label of at most `length` characters.

    >>> shorten("internationalisation")
    'internati…'
    """
    return label if len(label) <= length else label[: length - 1] + "…"


@cached
def width(words, size=SIZE):
    """Return how wide a text is at most, in pixels, in the widest font that is usual (DejaVu Sans).

    >>> round(width("0.12", 12))
    27
    """
    return size * sum(map(ADVANCE.__getitem__, words))


@cached
def tag(x, y, words, colour, *, anchor="middle", turn=0):
    """Return words in the colour of their role.

    >>> "var(--key-text," in tag(50, 20, "keys (columns)", KEY)
    True
    """
    ink = paint(f"{colours.ROLES[colour]}-text")
    return text(x, y, words, anchor=anchor, bold=True, turn=turn).replace(">", f' style="fill:{ink}">', 1)


@cached
def frame(x, y, wide, high, colour, line=3):
    """Return a frame with a halo, which stands out from every colour of a map.

    >>> frame(0, 0, 10, 10, QUERY).count("stroke=")
    2
    """
    box = f'x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="none" pointer-events="none"'
    line = line if min(wide, high) >= 16 else 1.5  # narrow rows still show their colours
    halo, ink = f'stroke="{paint("paper")}" stroke-width="{2 * line:g}"', paint(map_name(colour) or "ink")
    return f'<rect {box} {halo}/><rect {box} stroke="{ink}" stroke-width="{line}"/>'


@cached
def hatch(cells, side, high=None):
    """Return the lines of blocked cells, `side` wide and `high` high; `cells` is a tuple of their (row, column).

    >>> hatch(((0, 0), (0, 1)), 20).count("M")
    2
    """
    high = side if high is None else high
    wide, tall = round(side * 0.52), round(high * 0.52)  # one line a cell
    x, y = (side - wide) // 2, (high + tall) // 2
    lines = "".join(f"M{j * side + x} {i * high + y}l{wide} {-tall}" for i, j in cells)
    style = f'stroke="{paint("edge", colours.HATCH)}" fill="none" pointer-events="none"'
    return f'<path d="{lines}" {style}/>' if lines else ""


def exact(value):
    """Return a number as it is told where somebody asks for it: 4 decimals, or a power of ten where these say nothing.

    >>> exact(0.25), exact(1.25e-7), exact(float("nan"))
    ('0.2500', '1.25e-07', 'nan')
    """
    return f"{value:.2e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"


def number(value, places):
    """Return a number with so many decimals, and none that rounds to 0 with a sign.

    >>> number(-0.2, 0), number(-0.2, 2)
    ('0', '-0.20')
    """
    words = f"{value:.{places}f}"
    return words[1:] if words[0] == "-" and not words.strip("-0.") else words


def decimals(values, room, most=2, least=None):
    """Return how many decimals all of `values` can have in cells `room` pixels wide, or None if they have no room.

    Whole numbers get none. Others get `most`, or no number is written at all: cells that differ in the second decimal
    would look alike with one. With `least` they get as many as have room, but at least so many.

    >>> decimals(np.array([0.25, 1.0]), 32), decimals(np.array([0.25, 1.0]), 20), decimals(np.array([3.0, 12.0]), 20)
    (2, None, 0)
    >>> decimals(np.array([0.25, 1.0]), 20, least=0), decimals(np.array([3.0, 12.0]), 20, least=1)
    (0, 0)
    """
    finite = values[np.isfinite(values)].tolist()
    if not finite:
        return None
    ends = min(finite), max(finite)
    most = 0 if all(v == round(v) for v in finite) else most
    least = most if least is None else min(least, most)
    for places in range(most, least - 1, -1):
        words = [f"{v:.{places}f}" for v in ends]
        if all(max(width(w) + 1, width(w.lstrip("-")) + AIR) <= room for w in words):
            return places
    return None


def matrix(
    values,
    side,
    *,
    high=None,
    vmin=0.0,
    vmax=1.0,
    tint=None,
    blocked=None,
    hidden="blocked",
    rows=None,
    columns=None,
    names=("query", "key"),
    most=2,
    least=None,
    inset=0,
):
    """Return a matrix as cells of `side` pixels with its corner at (0, 0): numbers where they fit, all in tooltips.

    A cell is `high` pixels high, by default `side`, and `inset` of them stay free beside a number. Colours go from
    `vmin` to `vmax`, or by how far from 0 in the `tint` of a role. Cells that are `blocked`, (n, m), are hatched, and
    their tooltips say what is `hidden`; where that is another word, they are empty, not hatched. `rows` and `columns`
    are labels in the tooltips, by default numbers from 0, and `names` what a row and a column is. Numbers that are not
    whole get as many decimals as have room, from `least` to `most`; by default `most` or none.

    >>> "query 0, key 1: 0.7500" in matrix(np.array([[0.25, 0.75]]), 40)
    True
    """
    n, m = values.shape
    high = side if high is None else high
    room = values if blocked is None else values[~blocked]
    places = decimals(room, side - inset, most=most, least=least) if side >= LABEL and high >= SIZE + 3 else None
    flat = values.ravel().tolist()
    scale = levels(abs(values) if tint else values, vmin, vmax).ravel().tolist()
    hovers = [exact(value) for value in flat]
    shown = [None] * len(flat) if places is None else [number(value, places) for value in flat]
    painted, plain = [OPACITIES[level] for level in scale], inks(tint)
    written = ["" if plain[level] == plain[0] else f' fill="{plain[level]}"' for level in scale]
    for k in np.flatnonzero(~np.isfinite(values)):
        painted[k], written[k] = f' fill="{NOT_FINITE}"', ' fill="#000000"'
        shown[k] = number(flat[k], 2) if side >= 28 else None
    striped = () if blocked is None else tuple(map(tuple, np.argwhere(blocked).tolist()))
    empty = f' fill="{paint("paper", colours.MASKED)}"' if hidden == "blocked" else NO_FILL
    for k in (i * m + j for i, j in striped):
        painted[k], hovers[k], shown[k] = empty, hidden, None
    at = _at(tuple(rows or range(n)), tuple(columns or range(m)), side, high, names)
    cells = [f"{a}{fill}{b}{words}</title></rect>" for (a, b, _), fill, words in zip(at, painted, hovers, strict=True)]
    numbers = [f"{c}{ink}>{words}</text>" for (_, _, c), ink, words in zip(at, written, shown, strict=True) if words]
    stripes = hatch(striped, side, high) if hidden == "blocked" else ""
    end = paint(map_name(tint)) if map_name(tint) else tint  # the colour of the largest
    return (
        f'<g fill="{end}" shape-rendering="crispEdges">{_ground(side * m, high * n)}{"".join(cells)}</g>'
        f"{_gaps(n, m, side, high)}{stripes}"
        f'<g fill="{plain[0]}" text-anchor="middle" font-size="{SIZE}" pointer-events="none">'
        f"{''.join(numbers)}</g>"
    )


def paint(name, alone=None):
    """Return a token of the page as the colour of a shape, with what it is where a page has none.

    >>> paint("key")
    'var(--key,#d55e00)'
    """
    return f"var(--{name},{alone or token(name)})"


def _ground(wide, high):
    """Return the ground of a map, the colour of an empty cell."""
    return f'<rect x="0" y="0" width="{wide:g}" height="{high:g}" fill="{paint("sunk")}"/>'


def _gaps(n, m, side, high):
    """Return lines that set the cells of a map apart, where these are large enough for a line."""
    if min(side, high) < 12 or n * m == 1:
        return ""
    lines = "".join(f"M{j * side} 0v{n * high}" for j in range(1, m))
    lines += "".join(f"M0 {i * high}h{m * side}" for i in range(1, n))
    return f'<path d="{lines}" stroke="{paint("paper")}" shape-rendering="crispEdges" pointer-events="none"/>'


@lru_cache(maxsize=16, typed=True)  # each holds a whole matrix
def _at(rows, columns, side, high, names):
    """Return for each cell what no value changes: its rectangle up to the colour, its name, and its number's place."""
    return [
        (
            f'<rect x="{j * side}" y="{i * high}" width="{side}" height="{high}"',
            f"><title>{names[0]} {html.escape(str(row))}, {names[1]} {html.escape(str(column))}: ",
            f'<text x="{j * side + side / 2:g}" y="{i * high + high / 2 + 4:g}"',
        )
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def image(values, side, *, high=None, vmin=0.0, vmax=1.0, tint=None, blocked=None):
    """Return a matrix as one embedded PNG with a pixel per cell, `side` by `high`; blocked cells are striped.

    >>> image(np.eye(2), 10)[:22]
    '<g class="attnlib-map"'
    """
    n, m = values.shape
    wide, tall = side * m, (side if high is None else high) * n
    size = f'width="{wide:g}" height="{tall:g}"'
    level, finite = levels(abs(values) if tint else values, vmin, vmax), np.isfinite(values)
    veil, end = np.rint(255 * SHARES).astype(np.uint8), rgb(token(map_name(tint)) if map_name(tint) else tint)
    if values.size > MANY_CELLS and blocked is None and finite.all():
        indexed = Image.fromarray(level)  # a byte per cell instead of three: half the time of a large map is the PNG
        indexed.putpalette([*end] * 256)
        png = _png(indexed, size, transparency=veil.tobytes())
    else:
        pixels = np.empty((n, m, 4), dtype=np.uint8)
        pixels[..., :3], pixels[..., 3] = end, veil[level]
        pixels[~finite] = *rgb(NOT_FINITE), 255
        if blocked is not None:
            pixels[blocked] = colours.stripe_pixels(*np.nonzero(blocked))
        png = _png(Image.fromarray(pixels), size)
    return f'<g class="attnlib-map">{_ground(wide, tall)}{png}</g>'


@lru_cache(maxsize=32)
def colour_bar(high, vmin=0.0, vmax=1.0):
    """Return the scale of colours as a bar, 12 pixels wide and `high` high, with its ends written beside it.

    >>> ">0.25</text>" in colour_bar(100, 0, 0.25)
    True
    """
    bar = image(np.linspace(1, 0, 64)[:, None], 12, high=high / 64)
    return f"{bar}{text(16, 10, f'{vmax:.3g}')}{text(16, high, f'{vmin:.3g}')}"


def signed_map(values, side, high, most):
    """Return keys as one PNG: orange above zero, slate below, full at `most`; zero is clear and shows the page.

    >>> signed_map(np.array([[1.0, -1.0]]), 10, 8, 1.0)[:29]
    '<image width="20" height="8" '
    """
    strength = np.rint(15 * np.minimum(abs(values) / most, 1) ** 0.6).astype(np.uint8)
    indexed = Image.fromarray(strength + np.uint8(16) * (values > 0))
    indexed.putpalette([*rgb(BELOW) * 16, *rgb(KEY) * 16])
    size = f'width="{side * values.shape[1]:g}" height="{high * len(values):g}"'
    return _png(indexed, size, transparency=bytes([17 * k for k in range(16)] * 2), compress_level=9)


def _png(image, size, **options):
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **{"compress_level": 1, **options})
    data = base64.b64encode(buffer.getvalue()).decode()
    style = 'preserveAspectRatio="none" style="image-rendering:pixelated"'
    return f'<image {size} {style} href="data:image/png;base64,{data}"/>'


@cached
def target(x, y, wide, high, *, row=None, rows=1, column=None, columns=1, first=0, shown=None):
    """Return an invisible grid that a reader can click and hover: live/view.js tells the view which cell it was.

    `row` and `column` are what a click selects, by name: "query", "key", "head"; `rows` and `columns` how many there
    are of each, `first` the number of the first row. `shown` is the title of the map in the view's `shown` whose exact
    value is told while the mouse is over it.

    >>> 'data-row="head"' in target(0, 0, 10, 10, row="head", first=3)
    True
    """
    shown_as = "" if shown is None else f' data-shown="{html.escape(shown)}"'
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="none" pointer-events="none" '
        f'class="attnlib-target" data-row="{row or ""}" data-rows="{rows}" data-column="{column or ""}" '
        f'data-columns="{columns}" data-first="{first}"{shown_as}/>'
    )
