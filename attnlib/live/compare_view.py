"""The view of what is wanted beside what there is, on a text that the reader types."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from .. import arguments
from ..validation import ShapeError
from .controls import choice, text_field
from .view import LiveView
from .weights import draw_maps

TIMES = (0.1, 0.2, 0.5, 1, 2, 5, 10)


class Comparison(LiveView):
    """The widget of `compare`."""

    free = "anything goes"

    def _line_below(self, otherwise: str | None = None) -> str:
        return super()._line_below(otherwise) if self.shown else ""  # ships alone have no cell to point at


def compare(shown: Callable, **text: str) -> LiveView:
    """Show maps beside each other that depend on a text to be typed, and on a factor.

    Parameters
    ----------
    shown : callable
        Called with the text and the factor; returns (tokens, {title: weights}, below, line): labels of queries and
        keys, maps (n, n) with NaN in rows where anything goes, HTML that stands below them, and a line of text. A map
        may be a trace: what its mask forbids is hatched. Where the text cannot be read, there are no tokens, and the
        line says why.
    **text : str
        One: its name is the label of the field, its value the first text.

    Returns
    -------
    LiveView
        Controls: the text, and times, the factor, from 0.1 to 10.

    Raises
    ------
    TypeError
        If there is not exactly one text, or if it is called `times`.

    Examples
    --------
    >>> import numpy as np
    >>> def shown(text, times):
    ...     return list(text), {"wanted": np.eye(len(text))}, "", f"{len(text)} letters"
    >>> view = compare(shown, word="abc")
    >>> view.sliders["word"].value = "abcab"
    >>> view.shown["wanted"].shape, "5 letters" in view.picture.value
    ((5, 5), True)
    """
    label, first = _one_text(text)
    now: dict[str, Any] = {"tokens": [], "masks": {}}
    shown = _validating(shown)
    tokens, _, _, _, line = shown(arguments.text(first, label).strip(), 1)
    if not tokens:
        reason = line.rstrip(".")
        raise ValueError(f"{label} must be a text that can be shown, got {first!r}: {reason}. Fix: another one.")

    def render(text, times, query, key):
        now["tokens"], maps, now["masks"], below, line = shown(text.strip(), times)
        labels = {"queries": now["tokens"], "keys": now["tokens"], "attn_mask": now["masks"], "free": Comparison.free}
        panels = draw_maps(maps, row=query, column=key, **labels)
        return f'{panels}{below}<div style="width:100%">{html.escape(line, quote=False)}</div>', maps

    controls = {
        label: text_field(label, first),
        "times": choice("times", [(f"{factor:g}", factor) for factor in TIMES], 1),
    }
    for control in controls.values():  # beside each other, so that the picture stands high
        control.layout.width = "290px"
    picked = {"query": None, "key": None}
    options: dict[str, Any] = {"picked": picked, "labels": lambda: (now["tokens"], now["tokens"], now["masks"])}
    return Comparison(controls, render, moving=(None, 1), main="times", **options)


def _one_text(text):
    """Return the name and the first value of the one text, or say what `compare` wants."""
    if len(text) != 1 or "times" in text or not isinstance(*text.values(), str):
        given = ", ".join(f"{name}={value!r}" for name, value in text.items()) or "none"
        raise TypeError(
            f"compare takes one text under a name of your own, got {given}. Fix: compare(shown, word='abc'); "
            "the name becomes the label of the field, and `times` is the label of the factor."
        )
    return next(iter(text.items()))


def _validating(function):
    """Return a function that looks at what `function` returns."""
    arguments.function(function, "shown", "shown(text, times)")

    def show_and_validate(text, times):
        returned = function(text, times)
        try:
            tokens, maps, below, line = returned
            masks = {title: getattr(x, "attn_mask", None) for title, x in maps.items()}
            maps = {title: arguments.to_array(getattr(x, "weights", x)) for title, x in maps.items()}
        except (AttributeError, TypeError, ValueError):
            raise TypeError(
                "shown must return (tokens, {title: weights}, below, line), "
                f"got {returned!r:.60}. Fix: return all four, empty where there is nothing."
            ) from None
        if wrong := [x.shape for x in maps.values() if x.shape != (len(tokens), len(tokens))]:
            raise ShapeError(
                f"maps must be (n, n) for {len(tokens)} tokens, got {wrong[0]}. Fix: one row for each token."
            )
        return tokens, maps, masks, arguments.text(below, "below"), arguments.text(line, "line")

    return show_and_validate
