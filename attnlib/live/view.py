"""What all live views share: the widget, the mouse, and how a view shows itself with and without a kernel."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
import io
import json
import math
import os
import sys
import traceback
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import matplotlib.pyplot as plt
from IPython import get_ipython
from IPython.display import display
from PIL import Image
from traitlets import TraitError

from .. import arguments, svg
from ..colours import LOOK, sheet
from ..figure import save
from ..progress import display_widget
from .frames import pack_stops, stops_of
from .moving import moving_png
from .still import figure as drawn_again
from .still import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    class VBox:
        """What a type checker needs of ipywidgets.VBox, which has no types."""

        def __init__(self, children: Sequence[Any]) -> None: ...
        def add_class(self, name: str) -> Any: ...

else:
    from ipywidgets import VBox

__all__ = ["LiveView"]

HERE = Path(__file__).parent
SCRIPT = html.escape("".join((HERE / name).read_text("utf-8") for name in ("motion.js", "view.js")))
STYLE = sheet(".attnlib-view") + (HERE / "view.css").read_text("utf-8")
# Of a kernel, the first view brings the font, upright and italic; the page keeps it.
CUTS = (base64.b64encode((LOOK / "fonts" / f"{cut}.woff2").read_bytes()).decode() for cut in ("inter", "inter-italic"))
FONTS = iter([f'data-fonts="{" ".join(f"data:font/woff2;base64,{cut}" for cut in CUTS)}"'])
RESTS = 1.0  # seconds after which a picture that was moved is sent whole
WITH_STOPS = (widgets.IntSlider, widgets.SelectionSlider)
# Stands between the static figure and the widget. A saved notebook that is opened again, or one whose kernel was
# restarted, has a widget without a kernel: its style hides that, and the line says what to do.
NOTE = """<style>.jp-OutputArea-child:has(.attnlib-note) + .jp-OutputArea-child:not(:has(
.attnlib-view:not(.jupyter-widgets-disconnected) .attnlib-live)){display:none}</style>
<p class="attnlib-note">Run this cell (Shift+Enter) to move the picture.</p>"""


class Picture(widgets.HTML):
    """An HTML widget that, while a reader moves a control, sends only the elements that the front end lacks.

    What the front end has already is a hole in what is sent, and view.js fills it. `value` is always whole: a front end
    that opens the view anew gets that, and so do all others RESTS seconds after the last step, so no saved state has a
    hole.
    """

    _known: frozenset[str] = frozenset()  # the elements that the front end has by now
    _holes = ""  # what is sent in place of `value` while a reader moves it
    _rest: asyncio.TimerHandle | None = None  # sends the whole once nothing moves

    def show(self, picture: str, kept: Sequence[str], moved: bool) -> None:
        """Show a picture; `kept` are elements of it that may stay, `moved` tells that a reader waits for it."""
        whole, holes, end, names = "", "", 0, set()
        for part in kept:
            at = picture.find(part[:99], end)  # quicker than to look for all of it; startswith confirms
            if part and picture.startswith(part, at):
                name, named, hole = _named_part(part)
                whole += picture[end:at] + named
                holes += picture[end:at] + (hole if name in self._known else named)
                end = at + len(part)
                names.add(name)
        whole, holes, self._known = whole + picture[end:], holes + picture[end:], frozenset(names)
        if moved and holes != whole and sys.platform != "emscripten":
            with contextlib.suppress(RuntimeError):  # where no loop runs, nothing would send the whole later
                later = asyncio.get_running_loop().call_later(RESTS, self.send_state, "value")
                if self._rest:
                    self._rest.cancel()
                self._holes, self._rest = holes, later
        self.value, self._holes = whole, ""

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> dict[str, Any]:
        """Return what is sent: while `value` changes, the picture with holes."""
        return {"value": self._holes} if key == "value" and self._holes else super().get_state(key, drop_defaults)


class LiveView(VBox):
    """Controls above one picture; made by the functions of this package.

    Parameters
    ----------
    sliders : dict of str to widget
        Anything with a `value`.
    render : callable
        Called with the values of the sliders in order, then with what is chosen by a click; returns (html, shown).
    still : callable or dict, optional
        For readers without a kernel: returns (Figure, text). By default the picture as it is at the start, and its
        words; with a dict, as it is with these values of controls.
    picked : dict of str to int or None, optional
        What a click chooses and no slider does: "query", "key". A click on what has a slider moves the slider.
    labels : callable, optional
        Returns (queries, keys, attn_mask), for the words that tell a cell; each may be None, the mask a dict by title.
    main : str, optional
        The control that also moves the picture where no kernel runs; by default the first that has stops.
    moving : (callable, value), optional
        Makes a still that moves by itself: (figure, value) -> the axes into which it drew another value of `main`, and
        the value that the still shows there. Without it the still does not move; with None in place of the callable it
        does not move either, and has 256 colours: for notebooks with many stills.
    hint : str, optional
        What the readout says where no cell is chosen.
    kept : list of str, optional
        Elements of the picture, in their order, that stay through many steps. `render` may change the list.

    Attributes
    ----------
    sliders : dict of str to widget
    main : str or None
    shown : dict of str to ndarray
        What the picture shows now, by title.
    size : float
        1.5 enlarges the picture for a projector; the controls keep their size.
    picture : Picture
    readout : widgets.HTML
        One line: the cell under the mouse, else the one that is chosen.
    free : str
        What the readout says of a cell that holds NaN, "nan" by default.
    row_name : str
        What the readout calls a row of the map; "rule, share" says what a column is, too.
    fills : str or None
        The control that fills a picture stage by stage; a page without a kernel has a button for each of its values.
    clicks : tuple of str, or None
        On a page without a kernel: which choices a click can make while all controls are at their first values. By
        default all of them, at every stop.
    """

    layout: Any  # of every widget; ipywidgets has no types
    hint: str = "Point at a cell for its value; a click or Tab and arrow keys choose it."
    free = "nan"
    row_name = "query"
    fills: str | None = None
    clicks: tuple[str, ...] | None = None

    def __init__(
        self,
        sliders: dict[str, Any],
        render: Callable[..., Any],
        still: Callable[..., Any] | Mapping[str, Any] | None = None,
        *,
        picked: Mapping[str, int | None] | None = None,
        labels: Callable[..., Any] | None = None,
        main: str | None = None,
        moving: tuple[Any, ...] | None = None,
        hint: str | None = None,
        kept: Sequence[str] = (),
    ) -> None:
        self.kept = kept
        self.sliders: dict[str, Any] = sliders
        self.shown: dict[str, Any] = {}
        self.picked: dict[str, int | None] = dict(picked or {})
        self.readout: widgets.HTML = widgets.HTML(layout=widgets.Layout(height="auto", margin="0"))
        self.picture: Picture = Picture()
        self.mouse: widgets.Text = widgets.Text(layout=widgets.Layout(display="none"))
        for part, name in ((self.picture, "picture"), (self.readout, "readout"), (self.mouse, "mouse")):
            part.add_class(f"attnlib-{name}")
        self._render, self._moving = render, moving
        self._size, self.hint = 1.0, self.hint if hint is None else hint
        moves = (name for name, x in sliders.items() if isinstance(x, WITH_STOPS) and len(stops_of(x)) > 1)
        self.main: str | None = next(moves, None) if main is None else main
        self._labels, self._held = labels or (lambda: (None, None, None)), False
        for slider in sliders.values():
            slider.observe(self._update, "value")
        self.mouse.observe(self._on_mouse, "value")
        # Front ends drop a <script>, and run what a <style> does once it has loaded.
        script = widgets.HTML(
            f'<style {next(FONTS, "")} onload="{SCRIPT}">{STYLE}{_readouts(sliders.values())}</style>'
        )
        script.layout.display = "none"
        controls = widgets.Box(list(sliders.values()), layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([controls, self.picture, self.readout, self.mouse, script])
        self.add_class("attnlib-view")
        least = max((getattr(one, "least", 0) for one in sliders.values()), default=0)  # the track of the widest slider
        self.layout.min_width = f"min({least}px, 100%)"
        first = "" if callable(still) else self.draw(**still or {})[0]
        self._still = still if callable(still) else lambda: (drawn_again(first), words(first))
        self._show(*self.draw())  # arguments that do not fit raise here, in the cell that makes the view

    @property
    def size(self) -> float:
        return self._size

    @size.setter
    def size(self, size: float) -> None:
        self._size = arguments.number(size, "size", above=0)
        self._update()

    def _update(self, change=None):
        if self._held:
            return
        try:
            content, shown = self.draw()
        except Exception as error:
            # Jupyter drops what a callback raises: without this the picture would just stand still.
            content, shown = _error_html(error), self.shown
        self._show(content, shown)

    def _show(self, content, shown):
        self.shown = shown
        chosen = {name: at for name, at in self._values().items() if at is None or isinstance(at, int)}
        attributes = f'data-chosen="{html.escape(json.dumps(chosen))}" style="zoom:{self._size}"'
        # A change that comes from a front end is locked there until all of it is done.
        moved = any(getattr(part, "_property_lock", None) for part in (*self.sliders.values(), self.mouse))
        self.picture.show(f'<div class="attnlib-live" {attributes}>{content}</div>', self.kept, moved)
        self.readout.value = self._line_below()

    def draw(self, **values: Any) -> tuple[str, dict[str, Any]]:
        """Return (html, what is shown) for the values of the controls, some of them replaced by name.

        A picture that waits for a guess is then that of its first answer: a page without a kernel hides it until there
        is one.
        """
        if values and self.fills and self.sliders[self.fills].value is None:
            values = {self.fills: 1, **values}
        return self._render(*{**self._values(), **values}.values())

    def _values(self):
        return {**{name: slider.value for name, slider in self.sliders.items()}, **self.picked}

    def _on_mouse(self, change):
        event = json.loads(change["new"])
        if event["what"] in ("click", "key"):
            self.choose(**{event[axis]: event[at] for axis, at in (("row", "i"), ("column", "j")) if event[axis]})
            if event["what"] == "key":  # no pointer is on a cell: describe the chosen one
                shown = event.get("shown")
                self.readout.value = (
                    self._tell(shown, event["i"], event["j"]) if shown else self._line_below(self._titles())
                )
        elif event["what"] == "over":
            self.readout.value = self._tell(event["shown"], event["i"], event["j"])
        else:
            self.readout.value = self._line_below()

    def choose(self, **chosen: int | None) -> None:
        """Choose by name what a click chooses: ``view.choose(query=2, key=0)``.

        Names that this view does not know are ignored, and so is a number that its slider does not have.
        """
        for name in chosen.keys() & self.picked.keys():
            if chosen[name] is not None:
                arguments.whole(chosen[name], name, 0)
        self._held = True  # several controls may move: one new picture, not one for each
        for name, number in chosen.items():
            if name in self.picked:
                self.picked[name] = number
            elif name in self.sliders:
                try:
                    self.sliders[name].value = number
                except TraitError:
                    continue
        self._held = False
        self._update()

    def __repr__(self) -> str:
        now = ", ".join(f"{name}={value!r:.40}" for name, value in self._values().items())
        return f"<live view of {', '.join(self.shown) or 'nothing'}: {now}>"

    def name_of(self, picked: str, number: int) -> str:
        """Return what a page calls one of what a click chooses: a token, else its number from 1."""
        axis = ("query", "key").index(picked) if picked in ("query", "key") else None
        return str(number + 1) if axis is None else _token_name(number, self._labels()[axis])

    def _titles(self):
        return ", ".join(svg.maths(title, "html") for title in self.shown)

    def _line_below(self, otherwise=None):
        """Return the line about the cell that is chosen, or `otherwise`: by default what a reader can do."""
        values = self._values()
        i, j = values.get("query"), values.get("key")
        maps = [title for title, x in self.shown.items() if None not in (i, j) and x.ndim == 2 and i < len(x) > 1]
        maps = [title for title in maps if j < self.shown[title].shape[1]][-2:]  # more would not fit on a line
        return " &nbsp; ".join(self._tell(title, i, j) for title in maps) or otherwise or self.hint

    def _tell(self, title, i, j):
        """Return a cell in words: its map, query, key and exact value."""
        shown, (queries, keys, mask) = self.shown.get(title), self._labels()
        if shown is None or i >= len(shown) or j >= shown.shape[-1]:
            return self.hint
        names = [_token_name(x, labels) for x, labels in ((i, queries), (j, keys))]
        mask = mask.get(title) if isinstance(mask, dict) else mask
        blocked = mask is not None and not mask[i if len(mask) == len(shown) else 0, j]
        number = float(shown[i, j])
        value = "blocked" if blocked else self.free if math.isnan(number) else svg.exact(number)
        row, column = svg.charts.names_of(self.row_name)
        words = html.escape(f"{row} {names[0]}, {column} {names[1]}:", quote=False)
        return f"{svg.maths(title, 'html')}: {words} <b>{value}</b>"

    def _ipython_display_(self, **kwargs):
        if _in_vscode():
            display_widget(self)
            return
        figure, text = self._still()
        png = self._animated_png(figure)
        if png is None:  # the try may have left the figure at another value
            plt.close(figure)
            figure, text = self._still()
            png = encode_png(figure)
        still = {"image/png": base64.b64encode(png).decode(), "text/plain": text}
        # As metadata, which every front end passes over. Only a page wants them, and they take seconds.
        pictures = pack_stops(self) if os.environ.get("ATTNLIB_PAGES") else None
        display(still, raw=True, metadata={"attnlib": pictures} if pictures else None)
        plt.close(figure)
        display({"text/html": NOTE, "text/plain": "Run this cell to move the picture."}, raw=True)
        display_widget(self)

    def _animated_png(self, figure):
        """Return the animated still, or None; a browser's Python would take seconds for it."""
        if self._moving is None or sys.platform == "emscripten":
            return None
        change, start = self._moving
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return moving_png(figure, change, [value for _, value in stops_of(self.sliders[self.main])], start)
        except Exception:
            return None  # at some stop; the view shows what went wrong there


def _in_vscode():
    """Return whether a notebook of VS Code shows the view, which gives every output a place that no other can clear.

    There the still would stand above the picture, and is left out. VS Code's Jupyter extension puts the name of the
    notebook into the namespace of its kernels.
    """
    return "__vsc_ipynb_file__" in getattr(get_ipython(), "user_ns", {})


@lru_cache(maxsize=16)
def _named_part(part):
    """Return a name for an element, the element with this name, and an empty one that stands for it."""
    name, tag = f"{zlib.crc32(part.encode()):x}", part[1 : part.index(" ")]
    return name, part.replace(" ", f' data-part="{name}" ', 1), f'<{tag} data-hole="{name}"></{tag}>'


def _error_html(error):
    """Return an error for the picture: our words alone, and of a reader's own function where it failed."""
    if isinstance(error, TypeError | ValueError) and ". Fix: " in str(error):
        return f"<div>{html.escape(str(error), quote=False)}</div>"
    return f"<pre>{html.escape(traceback.format_exc(limit=-2))}</pre>"


def _token_name(number, labels):
    """Return a token's number, and its label where that says more."""
    named = labels is not None and labels[number] != str(number)
    return f"{number} “{svg.shorten(labels[number], 24)}”" if named else str(number)


def _readouts(sliders):
    """Return the rules that give the readout of each slider its width."""
    widths = sorted({slider.readout_width for slider in sliders if hasattr(slider, "readout_width")})
    return "".join(
        f".attnlib-readout-{w} .widget-readout {{ flex: 0 1 {w}px; min-width: min({w}px, 40%) }}\n" for w in widths
    )


def encode_png(figure: Any) -> bytes:
    """Return a figure as a PNG, with the colours it was drawn in.

    A palette of 256 colours would be smaller, but it is chosen by frequency: thin lines in a role's colour lose it.
    """
    png = io.BytesIO()
    Image.open(io.BytesIO(save(figure))).save(png, "PNG", optimize=True)
    return png.getvalue()
