"""The style of every matplotlib figure of the series: no ground, text that every page carries, a repr in words."""

from __future__ import annotations

import io
import re
from typing import Any

from matplotlib import colors, patheffects
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from . import arguments
from .colours import INK, LINE, PAPER
from .validation import kind_of

# Lines that are no queries, keys or values: none of their colours, and visible on a white and on a dark page.
SERIES = ("#7B61D9", "#808080", "#B8468B")
ON_CELL = "value"  # the gid of a text that stands on a cell, whose colour carries it


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
    figure, axes = plt.subplots(*args, FigureClass=DescribedFigure, frameon=False, **options)
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


class DescribedFigure(Figure):
    """A figure without a ground, whose text has a halo, and whose repr says in words what it shows.

    No one colour has a contrast of 4.5 : 1 both to a white page and to JupyterLab's dark one (#111111): a halo carries
    dark text over every page. The repr is the text that a notebook stores beside the picture. It tells sizes, titles
    and labels, and no weights: trained ones differ from machine to machine.
    """

    def draw(self, renderer: Any) -> None:
        for ax in self.axes:
            ax.patch.set_visible(False)
            for spine in ax.spines.values():
                spine.set_color(LINE)
            ax.tick_params(color=LINE, which="both")
        for legend in self.findobj(Legend):
            legend.set_frame_on(False)
        for text in self.findobj(Text):
            box = text.get_bbox_patch()
            if (box is None or not box.get_facecolor()[-1]) and text.get_gid() != ON_CELL:
                text.set_path_effects([patheffects.withStroke(linewidth=3, foreground=PAPER)])
                if colors.to_hex(text.get_color()) == "#000000":
                    text.set_color(INK)
        super().draw(renderer)

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
            text += f". {n_q} {shown[0].get_ylabel()} by {n_k} keys (columns)"
        elif kind == "Line chart" and shown:
            labels = (line.get_label() for line in shown[0].lines)
            lines = [" ".join(_plain(label).split()) for label in map(str, labels) if not label.startswith("_")]
            text += f": {_plain(shown[0].get_ylabel())} over {_plain(shown[0].get_xlabel())}" + (
                f"; {', '.join(lines)}" if lines else ""
            )
        return f"{text}."


def _plain(label):
    """Return a label as words: its mathematics without markup.

    Examples
    --------
    >>> _plain(r"divided by $\\sqrt{d_k}$")
    'divided by sqrt(d_k)'
    """
    return re.sub(r"\\sqrt{(.*?)}", r"sqrt(\1)", label).replace("$", "")
