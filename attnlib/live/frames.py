"""What a view shows at every stop of its main control: for pages in which no kernel runs.

One picture is kept whole, and of all others only what differs from it: attributes of elements, and the insides of the
smallest elements whose texts or children differ. frames.js puts them into a page and needs to know nothing else, so
that it serves every view. All numbers come from Python.
"""

import base64
import contextlib
import html
import io
import json
import re
import time
import zlib
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

MOST_STOPS = 32  # at most; of a control with more values evenly spaced ones are taken
SECONDS = 10  # a reader waits for the pictures: a view whose own take longer, on any machine, has none
MOST_BYTES = 25_000  # bytes of a packed view
TAG = re.compile(r"<(/?)([\w:-]+)((?:\s+[\w:-]+=\"[^\"]*\")*)\s*(/?)>")
ATTRIBUTE = re.compile(r"([\w:-]+)=\"([^\"]*)\"")
VOID = ("br", "hr", "img", "wbr")  # elements of HTML that have no end


def packed(view: Any) -> str | None:
    """Return what a view shows at all stops of its main control as a short text, see `unpacked`.

    None if no control has stops, if a picture cannot be drawn, and if they take too long or too much room.
    """
    if view.main is None:
        return None
    control, begun, pictures = view.sliders[view.main], time.perf_counter(), []
    labels, values = zip(*stops_of(control), strict=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # a reader's own function may print
            for value in values:
                pictures.append(view.draw(**{view.main: value})[0])
                if time.perf_counter() - begun > SECONDS:
                    return None
            view.draw()  # what a view keeps of its last picture is that of the one it shows
    except Exception:
        return None  # the view itself shows what went wrong
    at = values.index(control.value)
    frames = {"name": control.description, "labels": labels, "at": at, "picture": pictures[at]}
    frames["changes"] = changes(pictures, at)
    if view.fills:
        stages = view.sliders[view.fills]
        frames |= {"fills": [words for words, _ in stops_of(stages)], "filled": stages.value or 0}
        if stages.value is None:
            frames["asks"] = stages.description
    small = zlib.compress(json.dumps(frames, ensure_ascii=False, separators=(",", ":")).encode(), 9)
    return base64.b64encode(small).decode() if len(small) <= MOST_BYTES else None


def unpacked(text: str) -> dict[str, Any]:
    """Return the dict that `packed` made a text of: name, labels, at, picture, changes; perhaps asks, fills, filled."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def changes(pictures: Sequence[str], at: int = 0) -> list[Any]:
    """Return how the others of several pictures differ from picture `at`.

    Parameters
    ----------
    pictures : sequence of str
        HTML with every element closed.
    at : int

    Returns
    -------
    list of [element, attribute, before, after, values]
        `element` counts the elements of picture `at` from 1 in the order of their tags; 0 is the picture itself. In
        picture k its `attribute` is before + values[k] + after, or is missing if values[k] is None; the attribute ""
        is what stands inside. Like attributes stand together, which makes them small when packed.

    Examples
    --------
    >>> changes(['<g><b x="10">a</b></g>', '<g><b x="20">a<i>c</i></b></g>'])
    [[2, '', 'a', '', ['', '<i>c</i>']], [2, 'x', '', '0', ['1', '2']]]
    """
    roots = [_parsed(picture) for picture in pictures]
    changes, count = [], 0

    def compare(same):
        nonlocal count
        one = same[at]
        for name in dict.fromkeys(name for element in same for name in element.attributes):
            note(count, name, [element.attributes.get(name) for element in same])
        if len({(tuple(child.name for child in element.children), *element.texts) for element in same}) > 1:
            note(count, "", [element.inside for element in same])
            count += one.size
            return
        for children in zip(*(element.children for element in same), strict=True):
            count += 1
            compare(children)

    def note(element, attribute, values):
        if len(set(values)) > 1:
            changes.append([element, attribute, *_shortened(values)])

    compare(roots)
    return sorted(changes, key=lambda change: change[1])


def stops_of(control: Any) -> list[tuple[str, Any]]:
    """Return (label, value) of every stop of a control."""
    pairs = getattr(control, "_options_full", None) or [(str(v), v) for v in range(control.min, control.max + 1)]
    step = -(-len(pairs) // MOST_STOPS)
    return [pair for i, pair in enumerate(pairs) if i % step == 0 or i == len(pairs) - 1 or pair[1] == control.value]


def _shortened(values):
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

    def __init__(self, name, attributes):
        self.name, self.children, self.texts, self.inside, self.size = name, [], [], "", 0
        self.attributes = {name: html.unescape(value) for name, value in ATTRIBUTE.findall(attributes)}


def _parsed(picture):
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
