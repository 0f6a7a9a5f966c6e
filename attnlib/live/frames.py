"""What a view shows at the stops of its controls: for pages in which no kernel runs.

One picture is kept whole, and of all others only what differs from it: attributes of elements, and the insides of the
smallest elements whose texts or children differ, each by the controls that change it. frames.js puts them into a page
and needs to know nothing else, so that it serves every view. All numbers come from Python.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html
import io
import itertools
import json
import math
import re
import zlib
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

MOST_STOPS = 32  # at most; of a control with more values evenly spaced ones are taken
MOST_PICTURES, MOST_BYTES = 500, 60_000  # of all controls together; bytes of a packed view
COARSE, FEW = 16, 3  # stops that the main control keeps before others are thinned to few
TAG = re.compile(r"<(/?)([\w:-]+)((?:\s+[\w:-]+=\"[^\"]*\")*)\s*(/?)>")
ATTRIBUTE = re.compile(r"([\w:-]+)=\"([^\"]*)\"")
# Which cell a pointer may choose: row, how many rows, column, how many columns, the number of the first row.
TARGET = re.compile(r'data-row="(\w*)" data-rows="(\d+)" data-column="(\w*)" data-columns="(\d+)" data-first="(\d+)"')
VOID = ("br", "hr", "img", "wbr")  # elements of HTML that have no end


class Knob(NamedTuple):
    """A control, or what a click chooses."""

    key: str  # what the view calls it
    name: str  # what a page calls it
    stops: list[tuple[str, Any]]  # (label, value)
    at: Any  # the value where it stands
    choice: bool = False  # a row of options, and no slider
    alone: bool = False  # moves only while those that are not stand where they stood at first

    def every_other_stop(self) -> Knob:
        """Return it with every other stop, both ends, and the one where it stands."""
        last = len(self.stops) - 1
        stays = {0, last, *(i for i, (_, value) in enumerate(self.stops) if value == self.at)}
        every_other = stays | {*range(0, last, 2)}
        return self._replace(stops=[self.stops[i] for i in sorted(every_other if len(every_other) <= last else stays)])

    def as_json(self) -> dict[str, Any]:
        """Return what a page wants to know of it."""
        values = [value for _, value in self.stops]
        page: dict[str, Any] = {"key": self.key, "name": self.name, "labels": [label for label, _ in self.stops]}
        page["at"] = values.index(self.at)
        whole = all(isinstance(value, int) for value in values) and values != [*range(len(values))]
        kinds = {"choice": self.choice, "alone": self.alone}
        return page | ({"values": values} if whole else {}) | {kind: True for kind, has in kinds.items() if has}


def pack_stops(view: Any) -> str | None:
    """Return what a view shows at the stops of its controls as a short text, see `unpack_stops`.

    All controls that change it are in it, and what a click chooses, as far as there is room: stops are thinned, then
    the last controls left out; if none is left, it is the picture alone. None if that cannot be drawn, or is too large.
    """

    @functools.cache
    def picture(keys, values):
        return _svg_root(view.draw(**dict(zip(keys, values, strict=True)))[0])

    with contextlib.redirect_stdout(io.StringIO()):  # a reader's own function may print
        try:
            knobs = [] if view.sliders and view.main is None else knobs_of(view)
            while True:
                over = 1.0
                if math.prod(len(knob.stops) for knob in knobs) <= MOST_PICTURES:
                    frames = _frames(view, knobs, picture)
                    moves = {control for *_, controls, _, _ in frames["changes"] for control in controls}
                    if len(moves) < len(knobs):
                        knobs = [knobs[k] for k in sorted(moves)]
                        continue
                    written = json.dumps(frames, ensure_ascii=False, separators=(",", ":"))
                    small = zlib.compress(written.encode(), 9)
                    if len(small) <= MOST_BYTES:
                        return base64.b64encode(small).decode()
                    over = len(small) / MOST_BYTES
                if not knobs:
                    return None
                knobs = _fewer(knobs, over)
        except Exception:
            return None  # the view itself shows what went wrong
        finally:
            with contextlib.suppress(Exception):
                view.draw()  # a view keeps something of its last picture: that must be the one that it shows


def knobs_of(view: Any) -> list[Knob]:
    """Return what can be moved in a view, the main control first: controls with stops, then what a click chooses."""
    order = sorted(view.sliders.items(), key=lambda item: item[0] != view.main)
    wanted = [(name, control) for name, control in order if name != view.fills and has_stops(control)]
    knobs = [Knob(n, c.description, stops_of(c), c.value, hasattr(c, "button_style")) for n, c in wanted]
    places: dict[str, int] = {}
    for row, rows, column, columns, first in TARGET.findall(view.draw()[0]):
        for name, count in ((row, int(first) + int(rows)), (column, int(columns))):
            places[name] = max(places.get(name, 0), count)
    for name, at in view.picked.items():
        if at is not None and places.get(name, 0) > 1 and name in (view.clicks or view.picked):
            stops = [(view.name_of(name, i), i) for i in range(places[name])]
            knobs.append(Knob(name, name, stops, at, alone=view.clicks is not None))
    return [knob for knob in knobs if len(knob.stops) > 1]


def _fewer(knobs, over):
    """Return the controls with fewer stops: half of the longest, the main one last; where all are short, one less.

    `over` is how many times too large they were: what is far too large gains nothing from a coarse main control.
    """
    main, *others = knobs
    longest = max((len(knob.stops) for knob in others), default=0)
    coarse = main.every_other_stop()
    can = len(coarse.stops) < len(main.stops)
    if can and len(main.stops) > COARSE and len(main.stops) >= longest:
        return [coarse, *others]
    if longest > FEW:
        at = next(i for i, knob in enumerate(others) if len(knob.stops) == longest)
        return [main, *others[:at], others[at].every_other_stop(), *others[at + 1 :]]
    return [coarse, *others] if can and others and over < 1.5 and len(main.stops) > COARSE / 2 else knobs[:-1]


def _frames(view, knobs, picture):
    """Return what a page wants to know of all pictures of some controls."""
    keys, shape, fields = tuple(k.key for k in knobs), [len(k.stops) for k in knobs], [k.as_json() for k in knobs]
    values = [[value for _, value in knob.stops] for knob in knobs]

    def stops_shown(at):
        alone = any(knob.alone and value != knob.at for knob, value in zip(knobs, at, strict=True))
        return tuple(knob.at if alone and not knob.alone else v for knob, v in zip(knobs, at, strict=True))

    # The main control innermost: views keep what does not change with it.
    rounds = ((*at[-1:], *at[:-1]) for at in itertools.product(*values[1:], *values[:1]))
    by_stops = {at: picture(keys, stops_shown(at)) for at in rounds}
    pictures = [by_stops[at] for at in itertools.product(*values)]
    at = [*itertools.product(*map(range, shape))].index(tuple(knob["at"] for knob in fields))
    frames = {"knobs": fields, "picture": pictures[at].inside, "changes": _changes(pictures, at, shape)}
    if view.fills:
        stages = view.sliders[view.fills]
        frames |= {"fills": [words for words, _ in stops_of(stages)], "filled": stages.value or 0}
        if stages.value is None:
            frames["asks"] = stages.description
    return frames


def unpack_stops(text: str) -> dict[str, Any]:
    """Return the dict that `pack_stops` made a text of: knobs, picture, changes; perhaps asks, fills, filled."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def _changes(roots, at, shape):
    """Return how the others of several parsed pictures differ from picture `at`.

    Pictures are HTML with every element closed, one for each combination of stops; `shape` has the number of stops of
    each control, of which the last moves first. A change is [element, attribute, before, after, controls, which,
    values]: `element` counts the elements of picture `at` from 1 in the order of their tags; 0 is the picture itself.
    Its `attribute` is before + value + after, or is missing if the value is None; the attribute "" is what stands
    inside. The value depends on the stops of `controls` alone: of all their combinations the k-th has
    values[ord(which[k]) - 48], or values[k] where `which` is empty. Like attributes stand together, which makes them
    small when packed.

    >>> pictures = map(_svg_root, ['<g><b x="10">a</b></g>', '<g><b x="20">a<i>c</i></b></g>'])
    >>> _changes([*pictures], 0, [2])
    [[2, '', 'a', '', [0], '', ['', '<i>c</i>']], [2, 'x', '', '0', [0], '', ['1', '2']]]
    """
    differences, count = [], 0

    def compare(same):
        nonlocal count
        one = same[at]
        if any(element.written != one.written for element in same):
            attributes = [_attributes(element.written) for element in same]
            for name in dict.fromkeys(name for each in attributes for name in each):
                note(count, name, [each.get(name) for each in attributes])
        # Where children are others, nothing below corresponds: what stands inside is kept whole.
        if len({(tuple(child.name for child in element.children), *element.texts) for element in same}) > 1:
            note(count, "", [element.inside for element in same])
            count += one.size
            return
        for children in zip(*(element.children for element in same), strict=True):
            count += 1
            compare(children)

    def note(element, attribute, values):
        if len(set(values)) > 1:
            before, after, values = _split_common_ends(values)
            differences.append([element, attribute, before, after, *_by_control(values, shape)])

    compare(roots)
    return sorted(differences, key=lambda change: change[1])


def has_stops(control: Any) -> bool:
    """Tell whether a control has one stop after the other: a slider, or a row of buttons."""
    return hasattr(control, "_options_full") or isinstance(getattr(control, "max", None), int)


def stops_of(control: Any) -> list[tuple[str, Any]]:
    """Return (label, value) of every stop of a control."""
    pairs = getattr(control, "_options_full", None) or [(str(v), v) for v in range(control.min, control.max + 1)]
    step = -(-len(pairs) // MOST_STOPS)
    return [pair for i, pair in enumerate(pairs) if i % step == 0 or i == len(pairs) - 1 or pair[1] == control.value]


def _by_control(values, shape):
    """Return (the controls that change a value, which of the distinct ones each of their stops has, those)."""
    grid, controls = np.array(values, dtype=object).reshape(shape), []
    for axis in range(len(shape)):
        first = grid.take([0], axis)
        if (grid == first).all():
            grid = first
        else:
            controls.append(axis)
    values = grid.ravel().tolist()
    places = {value: i for i, value in enumerate(dict.fromkeys(values))}
    which = "" if len(places) == len(values) else "".join(chr(48 + places[value]) for value in values)
    return controls, which, list(places)


def _split_common_ends(values):
    """Return (what all values begin with, what they end with, what is left of each)."""
    if None in values:
        return "", "", values
    start = _alike(values)
    rest = [value[start:] for value in values]
    end = _alike([value[::-1] for value in rest])
    return values[0][:start], rest[0][len(rest[0]) - end :], [value[: len(value) - end] for value in rest]


def _alike(values):
    """Return with how many equal letters all texts begin."""
    return len(list(takewhile(lambda letters: len(set(letters)) == 1, zip(*values, strict=False))))


class _Element:
    """An element of a picture: `texts` stand around its children, and `size` counts the elements inside."""

    __slots__ = ("children", "inside", "name", "size", "texts", "written")  # there are hundreds of thousands

    def __init__(self, name, written):
        self.name, self.children, self.texts, self.inside, self.size = name, [], [], "", 0
        self.written = written  # the attributes: they are read only where two pictures differ


@functools.lru_cache(maxsize=10_000)
def _attributes(text):
    return {name: html.unescape(value) for name, value in ATTRIBUTE.findall(text)}


def _svg_root(picture):
    """Return the root of a picture as an element without a name."""
    stack, starts, end = [_Element("", "")], [0], 0
    for tag in TAG.finditer(picture):
        closes, name, attributes, empty = tag.groups()
        stack[-1].texts.append(picture[end : tag.start()])
        end = tag.end()
        if closes:
            done = stack.pop()
            done.inside = picture[starts.pop() : tag.start()]
            stack[-1].size += done.size
            continue
        element = _Element(name, attributes)
        stack[-1].children.append(element)
        stack[-1].size += 1
        if not empty and name not in VOID:
            stack.append(element)
            starts.append(end)
    stack[0].texts.append(picture[end:])
    stack[0].inside = picture
    return stack[0]
