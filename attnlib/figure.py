"""The style of every matplotlib figure of the series: a print on paper, or an SVG in the colours of its page."""

from __future__ import annotations

import dataclasses
import io
import re
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import colors, font_manager, rc_context, rcParams
from matplotlib import pyplot as plt
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox

from . import arguments, colours
from .colours import EDGE, INK, KEY, LOOK, NEXT, NOT_FINITE, PAPER, QUIET, RULE, rgb, token
from .svg import charts, parts
from .symbols import speech
from .validation import kind_of

# Lines that are no queries, keys or values: none of their colours. Ink is the one that is told of.
SERIES = (INK, NEXT, EDGE)
# The gid of a text that stands on a cell, and of one whose cell is pale in the light.
ON_CELL, ON_PALE = "value", "pale"
PIXELS, PAD = 100 / 72, 3  # of an SVG: pixels of a page for a point, as in the PNG; points around it
SHEET = 8  # points of paper around it in a notebook
SIZE, TITLE = 13 / PIXELS, 16 / PIXELS  # points of all words, and of a title that has room
# Words take the shade of a role that can be read, and what was named black, gray or white is ink, quiet or paper.
WORDS = {token(role): token(f"{role}-text") for role in ("query", "key", "value", "next")}
WORDS |= {"#000000": INK, colors.to_hex("gray"): QUIET, EDGE: QUIET}
WHITE = "#ffffff"
# What a page may set for its own theme: the names of look/tokens.css; a dark page turns the first six.
NAMES = ["paper", "sunk", "ink", "quiet", "edge", "rule", "next", "value", "key", "query"]
INKS = {token(name): f"var(--{name},{token(name)})" for name in (*NAMES, *(f"{role}-text" for role in NAMES[-4:]))}
FONTS = sorted((LOOK / "fonts").glob("Inter-*.ttf"))
for font in FONTS:  # what is bold in the second is semibold in the first
    entry = font_manager.ttfFontProperty(font_manager.get_font(font))
    weight = 400 if font.stem.endswith("Regular") else 700
    font_manager.fontManager.ttflist.append(dataclasses.replace(entry, weight=weight))
# The second ships with matplotlib, and has what the first lacks.
FAMILY = [*(["Inter"] if FONTS else []), "DejaVu Sans"]
STYLE: Any = {
    "font.family": FAMILY,
    "font.size": SIZE,
    "mathtext.fontset": "custom",
    "mathtext.rm": FAMILY[0],
    "mathtext.cal": FAMILY[0],
    "mathtext.it": "STIXGeneral:italic",
    "mathtext.fallback": "stixsans",
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "axes.titlepad": 9,
    "axes.labelcolor": QUIET,
    "axes.edgecolor": EDGE,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "grid.color": RULE,
    **{f"{axis}tick.{kind}.size": 0 for axis in "xy" for kind in ("major", "minor")},
    **dict.fromkeys(("axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"), SIZE),
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKUP = (
    (r"\\math(?:rm|default){((?:[^{}]|{[^{}]*})*)}", r"\1"),
    (r"_{(\w+)}", r"_\1"),
    (r"\\sqrt{(.*?)}", r"sqrt(\1)"),
    (r" ?\\cdot ?", "."),
    (r"\\times", "\N{MULTIPLICATION SIGN}"),
    (r"\\,", " "),
    (r"\\(?=_)|(?<!\\)\$", ""),
    (r"\\\$", "$"),
)
CSS = "<style>.attnlib-figure{font-family:var(--sans,system-ui,sans-serif)}</style>"
# JupyterLab shows it as an image, which knows no token: a sheet of paper, so that dark ink stands on no dark page.
GROUND = f'<rect x="{{}}" y="{{}}" width="{{}}" height="{{}}" rx="6" style="fill:var(--paper,{PAPER})"/>'


def subplots(*args: Any, **options: Any) -> tuple[Figure, Any]:
    """Return (figure, axes) as pyplot's subplots does, in the style of the series.

    Examples
    --------
    >>> figure, ax = subplots(figsize=(6, 3))
    >>> line = ax.plot([0, 1])[0]
    >>> line.get_color() == SERIES[0]
    True
    """
    options = {"layout": "constrained", **options}
    plt.draw_if_interactive()  # loads the backend, which sets what the context below would undo: figures then go unseen
    with rc_context(STYLE):
        figure, axes = plt.subplots(*args, FigureClass=DescribedFigure, **options)
    for ax in figure.axes:
        ax.set_prop_cycle(color=SERIES)
    return figure, axes


def save(figure: Figure, dpi: float = 100) -> bytes:
    """Return a figure as the bytes of a PNG.

    Examples
    --------
    >>> save(subplots()[0])[:4]
    b'\\x89PNG'
    """
    if not isinstance(figure, Figure):
        raise TypeError(f"figure must be a Figure of matplotlib, got {kind_of(figure)}. Fix: ax.figure of axes.")
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=arguments.number(dpi, "dpi", above=0))
    return png.getvalue()


def svg(figure: Figure) -> str:
    """Return a figure as SVG with its words as text; each column of its axes is an <svg> inside, which can stand alone.

    >>> svg(subplots(1, 2)[0]).count("<svg ")
    3
    """
    named = [artist for ax in figure.axes for artist in (ax, ax.yaxis)]
    written, dpi, gids = io.StringIO(), figure.dpi, [artist.get_gid() for artist in named]
    figure.dpi = 72
    for k, artist in enumerate(named):
        artist.set_gid(f"{k // 2}{' rows' * (k % 2)}")
    try:
        with rc_context({"svg.hashsalt": "attnlib", "image.composite_image": False}):
            width, height = 72 * figure.get_size_inches()
            renderer = _Words(width, height, written)
            figure.draw(renderer)
            pieces = _pieces(figure, renderer)
            renderer.finalize()
    finally:
        figure.dpi = dpi
        for artist, gid in zip(named, gids, strict=True):
            artist.set_gid(gid)
    body = written.getvalue().partition("</defs>")[2].rpartition("</svg>")[0]  # the first are matplotlib's own styles
    body = re.sub(r"\n\s*|<!-- words -->", "", body)
    body = re.sub("<[^!][^>]*>", _drop_unused_attributes, body)
    columns, rows = [""] * len(pieces), {}
    for number, axis, part in re.findall("<!-- (.*?)( rows)? -->(.*?)(?=<!--|$)", f"<!--  -->{body}"):
        columns[next((i for i, (held, _) in enumerate(pieces) if number in held), -1)] += part
        if axis and "<text" in part:
            rows[number] = part
    whole, high = Bbox.union([box for _, box in pieces]), renderer.height
    x, y, wide, tall = _place(whole.padded(SHEET), high)
    inside = ""
    places = [_names_of_rows(figure, rows, held, pieces) for held, _ in pieces]
    for (_, box), part, (names, left) in zip(pieces, columns, places, strict=True):
        for number in rows:
            if any(f'data-of="{number}"' in other for other, _ in places):
                part = part.replace(rows[number], f'<g data-names="{number}">{rows[number]}</g>')
        place = 'x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}"'.format(*_place(box, high))
        wider = ' data-rows="{} {} {} {}"'.format(*_place(Bbox([(left, box.y0), box.max]), high)) if names else ""
        inside += f"<svg {place}{wider}>{part}{names}</svg>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="attnlib-figure" role="img" viewBox="{x} {y} {wide} {tall}" '
        f'width="{wide * PIXELS:.0f}" height="{tall * PIXELS:.0f}"><title>{speech(repr(figure))}</title>'
        f"{GROUND.format(x, y, wide, tall)}{CSS}{inside}</svg>"
    )


@lru_cache(maxsize=2)
def colour_map(veil: bool = False) -> Any:
    """Return the colours of maps: from an empty cell to the fill, or as a veil of the fill over a page."""
    table = np.ones((256, 4))
    table[:, :3] = np.array(rgb(KEY)) / 255 if veil else colours.colour_table() / 255
    table[:, 3] = colours.SHARES if veil else 1
    return colors.ListedColormap(table).with_extremes(bad=NOT_FINITE)


def _pieces(figure, renderer):
    """Return of each column of axes, and of what belongs to no axes, which axes it holds and its place."""
    boxes = [ax.get_tightbbox(renderer) for ax in figure.axes]
    columns: list[Any] = []  # [its right edge, its axes]: those that overlap, and the colour bar that follows them
    for ax in sorted(figure.axes, key=lambda ax: ax.get_position().x0):
        left, right = ax.get_position().intervalx
        if not columns or (left >= columns[-1][0] and ax.get_label() != "<colorbar>"):
            columns.append([right, []])
        columns[-1] = [max(right, columns[-1][0]), [*columns[-1][1], str(figure.axes.index(ax))]]
    places = [Bbox.union([boxes[int(k)] for k in held]) for _, held in columns]
    edges = [(one.x1 + other.x0) / 2 for one, other in pairwise(places)]
    edges = [places[0].x0 - PAD, *edges, places[-1].x1 + PAD]
    bottom, top = min(box.y0 for box in boxes) - PAD, max(box.y1 for box in boxes) + PAD
    pieces = [
        (held, Bbox([(left, bottom), (right, top)]))
        for (_, held), (left, right) in zip(columns, pairwise(edges), strict=True)
    ]
    beside = [artist.get_window_extent(renderer) for artist in (*figure.legends, *figure.texts)]
    return [*pieces, *([((), Bbox.union(beside).padded(PAD))] if beside else [])]


def _names_of_rows(figure, rows, held, pieces):
    """Return places for what names the rows of axes that leave this to those beside them, and their left edge.

    They are empty, and outside of the column. A page that puts the column below another one fills and shows them.
    """
    names, left = "", np.inf
    for ax in (figure.axes[int(k)] for k in held if k not in rows):
        for number in rows:
            first = figure.axes[int(number)]
            place, other = ax.get_position(), first.get_position()
            shift = 72 * figure.get_figwidth() * (place.x0 - other.x0)
            same = np.allclose(place.intervaly, other.intervaly) and ax.get_ylim() == first.get_ylim()
            if ax.axison and same and shift > 0:
                names += f'<g data-of="{number}" transform="translate({shift:.1f} 0)"/>'
                left = min(left, shift + next(box.x0 for k, box in pieces if number in k))
                break
    return names, left


def _place(box, high):
    """Return the left, the top, the width and the height of a box on a page, where down is not up."""
    return tuple(round(value, 1) for value in (box.x0, high - box.y1, box.width, box.height))


def _drop_unused_attributes(tag):
    """Return a tag with numbers of four digits, and without what no page needs."""
    words = re.sub(r"-?\d+\.\d+(?![\w.])", lambda number: f"{float(number[0]):.4g}", tag[0])
    words = re.sub(r' (?=[MLCz">/])|(?<=[:;,MLC]) |xlink:|(?<= )id="image\w+" ', "", words)
    # Words have theirs already, with a comma before the colour.
    return re.sub(r"(?<=:)#\w{6}\b", lambda colour: INKS.get(colour[0], colour[0]), words)


class _Words(RendererSVG):
    """Writes words as text, and before what it draws of axes which ones they are."""

    def __init__(self, width, height, written):
        super().__init__(width, height, written)
        self.written = written

    def open_group(self, s, gid=None):
        if gid and s in ("axes", "matplotlib.axis"):
            self.writer.comment(gid)
            self.axes = gid.split()[0]

    def close_group(self, s):
        if s in ("axes", "matplotlib.axis"):
            self.writer.comment(self.axes if s != "axes" else "")

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        colour, turn = colors.to_hex(gc.get_rgb()), np.deg2rad(angle)
        # Of several lines matplotlib does not say how they are aligned: nearly all are centred, but for titles.
        bold = prop.get_weight() == "bold"
        anchor, share = {"left": ("start", 0), "right": ("end", 1)}.get(
            mtext.get_ha() if mtext else "left" * bold, ("middle", 0.5)
        )
        along = share * self.get_text_width_height_descent(s, prop, ismath)[0]
        place = round(x + along * np.cos(turn), 1), round(y - along * np.sin(turn), 1)
        words = parts.text(
            *place,
            _plain(s) if ismath else s,
            size=round(prop.get_size_in_points(), 1),
            anchor=anchor,
            bold=bold,
            math=bool(ismath),
            turn=-round(angle),
        )
        gid = mtext.get_gid() if mtext else None
        inside = gid in (ON_CELL, ON_PALE) or (mtext and mtext.get_bbox_patch())  # a cell or a box
        kind = "" if inside else ' class="attnlib-word"'
        fill = f"var(--on-pale,{colour})" if gid == ON_PALE else INKS.get(colour, colour)
        self.writer.comment("words")  # which ends the tag before
        self.written.write(words.replace("<text", f'<text{kind} style="fill:{fill}"', 1))

    def draw_quad_mesh(self, gc, transform, wide, high, coordinates, offsets, shift, facecolors, *rest):
        if wide > 1:  # else it is a colour bar, as an image of few bytes
            return super().draw_quad_mesh(gc, transform, wide, high, coordinates, offsets, shift, facecolors, *rest)
        (x, y), (right, top) = transform.transform([coordinates[0, 0], coordinates[-1, -1]])
        pixels = np.uint8(255 * facecolors.reshape(high, wide, 4))
        return self.draw_image(gc, x, y, pixels, Affine2D().scale(right - x, top - y))


class DescribedFigure(Figure):
    """A figure in one style, a print on paper: the same on a light and on a dark page, whose repr says what it shows.

    The repr is the text that a notebook stores beside the picture. It tells sizes, titles and labels, and no weights:
    trained ones differ from machine to machine. As SVG it has no ground, and takes the colours of the page.
    """

    def draw(self, renderer: Any) -> None:
        as_text, on_paper = isinstance(renderer, _Words), self.get_frameon()
        self._set_titles()
        self._set_words(rcParams["font.family"], rcParams["font.size"], rcParams["mathtext.fontset"])
        for ax in self.axes:
            if ax.images:
                ax.spines[:].set_visible(False)  # a map ends where its cells do
        for legend in self.findobj(Legend):
            legend.set_frame_on(False)
        found: Any = self.findobj(lambda one: isinstance(one, ScalarMappable)) if as_text else []
        maps = [drawn for drawn in found if drawn.get_cmap() == colour_map()]
        for image in found:
            if isinstance(image, AxesImage) and max(image.get_size()) <= 256:
                image.set_interpolation("none")  # a pixel for each cell, not for each of the page
        for drawn in maps:
            drawn.set_cmap(colour_map(veil=True))
        self.set_frameon(on_paper and not as_text)
        with rc_context(STYLE):
            super().draw(renderer)
        self.set_frameon(on_paper)
        for drawn in maps:
            drawn.set_cmap(colour_map())

    def _set_words(self, family, size, mathematics):
        """Give words what the style says, where the code of a cell has left them as matplotlib has them."""
        for text in self.findobj(Text):
            colour, box = colors.to_hex(text.get_color()), text.get_bbox_patch()
            if colour in WORDS and text.get_gid() not in (ON_CELL, ON_PALE):
                text.set_color(WORDS[colour])
            if box is not None and (fill := colors.to_hex(box.get_facecolor())) == WHITE:
                box.set_facecolor(PAPER)
            elif box is not None and box.get_facecolor()[3] == 1 and fill not in map(token, NAMES[:6]):
                text.set_color(colours.text_on(fill))
            if text.get_fontfamily() == family:
                text.set_fontfamily(FAMILY)
            if text.get_fontsize() == size:
                text.set_fontsize(SIZE)
            if text.get_math_fontfamily() == mathematics:
                text.set_math_fontfamily("custom")

    def _set_titles(self):
        """Let titles begin at the left; they are large if all have room."""
        sizes = [TITLE]
        for ax in self.axes:
            columns = ax.get_gridspec().ncols if ax.get_subplotspec() else 1
            for words in _plain(ax.get_title()).split("\n"):
                fits = 72 * self.get_figwidth() / columns >= parts.width(words, TITLE) + (columns > 1) * 2 * TITLE
                sizes.append(TITLE if fits else SIZE)
        for ax in self.axes:
            ax.title.set(x=0, ha="left", size=min(sizes), weight="bold")

    def _repr_svg_(self) -> str:
        return svg(self)

    def __repr__(self) -> str:
        axes = [ax for ax in self.axes if ax.get_label() != "<colorbar>"]
        shown = [ax for ax in axes if ax.axison] or axes
        titles = [" ".join((ax.title.get_gid() or _plain(ax.get_title())).split()) for ax in shown if ax.get_title()]
        kind = "Heatmap" if shown and shown[0].images else "Bar chart" if shown and shown[0].patches else "Line chart"
        kind = "Drawing" if shown and not shown[0].axison else kind  # a picture without axes measures nothing
        text = f"{kind}{'s' if len(shown) > 1 else ''}"
        if titles:
            text += f": {'; '.join(titles)}"
        if shown and shown[0].images and shown[0].get_ylabel():
            n_q, n_k = shown[0].images[0].get_size()
            axes_told = (
                charts.count_along(n_q, shown[0].get_ylabel()),
                charts.count_along(n_k, max((ax.get_xlabel() for ax in shown), key=len)),
            )
            text += f". {' by '.join(axes_told)}"
        elif kind == "Line chart" and shown:
            labels = (line.get_label() for line in shown[0].lines)
            lines = [" ".join(_plain(label).split()) for label in map(str, labels) if not label.startswith("_")]
            over = f": {_plain(shown[0].get_ylabel())}" * bool(shown[0].get_ylabel())  # else the title names it
            text += f"{over} over {_plain(shown[0].get_xlabel())}" + (f"; {', '.join(lines)}" if lines else "")
        return f"{text}."


def _plain(label):
    """Return a label as words: its mathematics without markup.

    >>> _plain(r"divided by $\\sqrt{d_k}$"), _plain(r"$\\mathdefault{10^{-2}}$")
    ('divided by sqrt(d_k)', '10⁻²')
    """
    for markup, words in MARKUP:
        label = re.sub(markup, words, label)
    return re.sub(r"\^{(-?\d+)}", lambda power: power[1].translate(RAISED), label)
