"""The picture of a view as a matplotlib figure: what readers without a kernel see is what the view draws."""

import base64
import html
import io
import re
import textwrap
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D
from PIL import Image

from ..colours import INK, LINE, PAPER
from ..figure import ON_CELL, subplots

DPI = 100  # a pixel of the SVG is one of the PNG
POINTS = 72 / DPI
APART, SHEET = 16, 12  # pixels between pictures in a row; of paper around them
HELD = ("fill", "font-size", "text-anchor")  # what a group hands on to its elements


def figure(content: str) -> Any:
    """Return the SVGs in what a view shows as one Figure: where they have a place, those that do, else in a row.

    It reads what attnlib.svg writes: rect, path, circle, polyline, polygon, text, image and g. A frame of a moving
    picture is `figure(view.picture.value)`, after a slider was set.

    >>> from attnlib import svg
    >>> picture = figure(svg.heatmap(np.eye(2), title="identity"))
    >>> [text.get_text() for text in picture.axes[0].texts][:2]
    ['identity', '1']
    """
    roots = [ElementTree.fromstring(picture) for picture in re.findall("<svg.*?</svg>", content, re.DOTALL)]
    roots = [root for root in roots if root.get("data-at")] or roots
    sizes = np.array([[float(x) for x in root.get("viewBox", "").split()[2:]] for root in roots])
    lefts = np.cumsum([0, *sizes[:-1, 0] + APART])
    places = [root.get("data-at", f"{left} 0").split() for root, left in zip(roots, lefts, strict=True)]
    corners = np.array([[float(x), float(y)] for x, y in places])
    wide, high = (corners + sizes).max(axis=0)
    figure, ax = subplots(figsize=((wide + 2 * SHEET) / DPI, (high + 2 * SHEET) / DPI), facecolor="none")
    figure.set_layout_engine("none")
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set(xlim=(-SHEET, wide + SHEET), ylim=(high + SHEET, -SHEET))
    sheet = (-SHEET, -SHEET), wide + 2 * SHEET, high + 2 * SHEET
    shape = {"boxstyle": "round,pad=0,rounding_size=8", "facecolor": PAPER, "linewidth": 0, "zorder": -1}
    figure.add_artist(FancyBboxPatch(*sheet, transform=ax.transData, **shape))
    for root, corner in zip(roots, corners, strict=True):
        _draw(ax, root, Affine2D().translate(*corner), {"fill": "currentColor", "font-size": "13"})
    return figure


def words(content: str) -> str:
    r"""Return what a view shows as text: the words for screen readers of each picture, and what stands beside it.

    >>> from attnlib import svg
    >>> words(svg.picture(1, 1, "a map", "one & all", []) + "<div>and <b>this</b></div>")
    'one & all\nand this'
    """
    parts = re.split(r"<svg.*?<desc>(.*?)</desc>.*?</svg>", content, flags=re.DOTALL)
    sentences = (" ".join(html.unescape(re.sub("<[^>]*>", " ", part)).split()) for part in parts)
    # A picture for narrow pages says the same as the wide one; a projector shows 88 columns.
    return "\n".join(textwrap.fill(part, 88) for part in dict.fromkeys(filter(None, sentences)))


def _draw(ax, parent, place, held):
    for element in parent:
        now = {**held, **{name: element.get(name) for name in HELD if element.get(name)}}
        at = _parse_transform(element.get("transform", "")) + place
        if element.get("visibility") == "hidden" or element.get("class") == "attnlib-down":
            continue
        if element.tag == "g":
            _draw(ax, element, at, now)
        elif element.tag == "text":
            _write(ax, element, at, now)
        elif element.tag == "image":
            _paste(ax, element, at)
        elif element.tag in SHAPES and element.get("class") != "attnlib-target":
            _shape(ax, element, at, now)


def _next(ax):
    """Return the place of the next element: what comes later covers what came before."""
    return len(ax.patches) + len(ax.texts) + len(ax.images)


def _parse_transform(transform):
    numbers = [float(v) for v in re.findall(r"-?[\d.]+", transform)]
    if transform.startswith("rotate"):
        return Affine2D().rotate_deg_around(*numbers[1:], numbers[0])
    return Affine2D().translate(*numbers) if numbers else Affine2D()


def _shape(ax, element, at, held):
    fill, stroke = (_colour(colour, LINE) for colour in (held["fill"], element.get("stroke", "none")))
    dash = element.get("stroke-dasharray", "none")
    ax.add_patch(
        PathPatch(
            SHAPES[element.tag](element),
            facecolor=fill,
            edgecolor=stroke,
            linewidth=POINTS * float(element.get("stroke-width", 1)) if stroke != "none" else 0,
            linestyle="-" if dash == "none" else (0, [POINTS * float(v) for v in dash.split()]),
            alpha=float(element.get("opacity", 1)),
            antialiased=element.tag != "rect" or stroke != "none",  # no seams between cells
            transform=at + ax.transData,
            zorder=_next(ax),
        )
    )


def _colour(colour, current):
    """Return what a colour is in print: a token of the page is what it is without one, and the page's ink `current`."""
    return current if colour == "currentColor" else re.sub(r"^var\(--[\w-]+,(.*)\)$", r"\1", colour)


def _write(ax, element, at, held):
    x, y = at.transform((float(element.get("x")), float(element.get("y"))))
    angle = np.degrees(np.arctan2(*at.get_matrix()[1::-1, 0]))
    fill = _colour(re.sub("^fill:", "", element.get("style") or "") or held["fill"], INK)
    math = len(element) > 0
    text = ax.text(
        x,
        y,
        _mathtext(element) if math else element.text or "",
        fontsize=POINTS * float(held["font-size"]),
        color=fill,
        ha={"middle": "center", "end": "right"}.get(held.get("text-anchor"), "left"),
        va="baseline",
        rotation=-angle,
        rotation_mode="anchor",
        weight="bold" if element.get("font-weight") else "normal",
        parse_math=math,
        zorder=_next(ax),
    )
    if fill != INK:
        text.set_gid(ON_CELL)  # it keeps its colour


def _mathtext(element):
    """Return the italics and indices that `svg.maths` has set as matplotlib's mathematics."""
    words = [(element.text or "").replace("$", r"\$")]
    for part in element:
        inner = (part.text or "").replace("\u200b", "")
        if part.get("font-style"):
            words.append(f"${inner}$")
        elif inner:
            words.append(f"${'_' if part.get('dy') == '3' else '^'}{{{inner}}}$")
        words.append((part.tail or "").replace("$", r"\$"))
    return "".join(words).replace("$$", "")


def _paste(ax, element, at):
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(element.get("href").split(",")[1]))).convert("RGBA"))
    (left, top), (right, bottom) = at.transform([(0, 0), (float(element.get("width")), float(element.get("height")))])
    box, limits = (left, right, bottom, top), (ax.get_xlim(), ax.get_ylim())
    ax.imshow(pixels, extent=box, aspect="auto", interpolation="nearest", zorder=_next(ax))
    ax.set(xlim=limits[0], ylim=limits[1])


def _rect(element):
    x, y, wide, high = (float(element.get(name)) for name in ("x", "y", "width", "height"))
    return Path([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)], closed=True)


def _circle(element):
    return Path.circle((float(element.get("cx")), float(element.get("cy"))), float(element.get("r")))


def _points(element):
    points = [tuple(map(float, point.split(","))) for point in element.get("points").split()]
    return Path(points + points[:1], closed=True) if element.tag == "polygon" else Path(points)


def _path(element):
    """Return the lines of a path of M, m, L, l, H, h, V, v, C and z."""
    points, codes, x, y, start = [], [], 0.0, 0.0, (0.0, 0.0)
    for letter, rest in re.findall(r"([MmLlHhVvCZz])([^A-Za-z]*)", element.get("d")):
        numbers = [float(v) for v in re.findall(r"-?[\d.]+", rest)]
        if letter == "C":  # two points that pull, and the end
            points += zip(numbers[:4:2], numbers[1:4:2], strict=True)
            codes += [Path.CURVE4] * 2
            numbers = numbers[4:]
        base = (x, y) if letter.islower() else (0.0, 0.0)
        if letter in "Zz":
            x, y = start
        elif letter in "Hh":
            x = base[0] + numbers[0]
        elif letter in "Vv":
            y = base[1] + numbers[0]
        else:
            x, y = base[0] + numbers[0], base[1] + numbers[1]
        start = (x, y) if letter in "Mm" else start
        points.append((x, y))
        codes.append({"M": Path.MOVETO, "Z": Path.CLOSEPOLY, "C": Path.CURVE4}.get(letter.upper(), Path.LINETO))
    return Path(points, codes)


SHAPES: dict[str, Any] = {"rect": _rect, "circle": _circle, "polyline": _points, "polygon": _points, "path": _path}
