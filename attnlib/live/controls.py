"""The controls of views: sliders over whole numbers, stops or choices, and buttons for a few words."""

import numbers
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets
import numpy as np

from .. import arguments

LABEL = 76  # pixels of every label: nothing beside it moves
STYLE = {"description_width": f"{LABEL}px"}
RAIL, LEAST = 220, 144  # pixels of the track of a slider, and where a picture is narrow
# What a slider for d_k moves: the divisor alone (small is sharp), the length of the vectors (large is sharp), or both.
DIVISOR, FEATURES, BOTH = "divide by √d_k, d_k =", "features d_k", "features d_k, divisor follows"


def integers(name: str, low: int, high: int, value: int) -> Any:
    """Return a slider over whole numbers."""
    return _fix_readout_width(widgets.IntSlider(min=low, max=high, value=value, description=name, style=STYLE), [high])


def choice(name: str, options: Sequence[Any], value: Any = None, label: str | None = None) -> Any:
    """Return a slider over given values, or over (text, value) pairs; `label` says more than its name."""
    options = list(options)
    pairs = [option if isinstance(option, tuple) else (str(option), option) for option in options]
    value = pairs[0][1] if value is None else value
    control = widgets.SelectionSlider(options=options, value=value, description=label or name, style=STYLE)
    return _fix_readout_width(control, [words for words, _ in pairs])


def buttons(name: str, options: Sequence[Any], value: Any = None) -> Any:
    """Return a row of buttons, for a few choices that are words; without a value none of them is pressed."""
    style = {"description_width": _label_width(name), "button_width": "auto"}
    return widgets.ToggleButtons(options=options, value=value, description=name, style=style)


def text_field(name: str, value: str, **options: Any) -> Any:
    """Return a field to type a text into, over the whole width."""
    layout = widgets.Layout(width="min(640px, 100%)")
    field = widgets.Text(value=value, description=name, style=STYLE, layout=layout, **options)
    field.least = 520
    return field


def stops(low: int, high: int, *also: int) -> list[int]:
    """Return 1, 2, 3, 4, 6, 8, 12, ..., from `low` to `high`, and the numbers of `also`.

    Softmax changes with the logarithm of d_k: on a linear slider over 1 to 512, 80 % of the change is in the first 5 %.

    >>> stops(1, 16), stops(5, 20, 10)
    ([1, 2, 3, 4, 6, 8, 12, 16], [5, 6, 8, 10, 12, 16, 20])
    """
    steps = {x for e in range(high.bit_length()) for x in (2**e, 3 * 2**e) if low <= x <= high}
    return sorted(steps | {low, high} | {x for x in also if low <= x <= high})


def slider(name: str, values: Any, still: Sequence[Any], start: Any = None, label: str | None = None) -> Any:
    """Return a slider over (low, high), with logarithmic stops for d_k, or over a list of values.

    It starts at `start`, by default at the middle one of the static values: there both neighbours show what changes.
    """
    start = still[len(still) // 2] if start is None else start
    wanted = [*still, *([] if start in still else [start])]
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, int | np.integer) for v in values):
        low, high = arguments.span(values, name) if name == "d_k" else values
        if low > high:
            raise ValueError(f"{name} must be (lowest, highest), got {values}. Fix: {name}=({high}, {low}).")
        outside = [v for v in wanted if not isinstance(v, int | np.integer) or not low <= v <= high]
        if not outside:
            if name == "d_k":
                return choice(name, stops(low, high, *still, start), start, label)
            return integers(name, low, high, start)
    else:
        values = values_of(name, values)
        choices = [v[1] if isinstance(v, tuple) else v for v in values]
        outside = [v for v in wanted if isinstance(v, list | np.ndarray) or v not in choices]
        if not outside:
            return choice(name, values, start, label)
    raise ValueError(
        f"still, and start, must lie in the slider's range {values!r:.60}, got {outside}. Fix: drop these values."
    )


def values_of(name: str, values: Any) -> list[Any]:
    """Return the values of a slider, or (text, value) pairs, as a list.

    >>> values_of("T", [0.5, 1, 2])
    [0.5, 1, 2]
    """
    items = arguments.several(values, name)
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, numbers.Real) for v in values):
        raise ValueError(
            f"{name} must be a list of its values, got the pair {values}: only the first slider takes a range, and of "
            f"whole numbers. Fix: {name}={list(values)} for just these two."
        )
    if any(isinstance(v, tuple) and (len(v) != 2 or not isinstance(v[0], str)) for v in items):
        raise ValueError(f"{name} must hold values, or (text, value) pairs, got {items!r:.60}. Fix: one form for all.")
    return items


def _fix_readout_width(control, texts):
    """Give a slider a readout as wide as its longest text, so that neither is cut nor moves."""
    longest = max(len(str(text)) for text in texts) + 1
    readout, label = max(40, 8 * longest), _label_width(control.description)
    control.style = {"description_width": label}
    beside = int(label[:-2]) + readout + 24
    control.layout.width, control.layout.max_width = f"{beside + RAIL}px", "100%"
    control.layout.min_width = f"min({beside + LEAST}px, 100%)"
    control.add_class(f"attnlib-readout-{readout}")
    control.readout_width, control.least = readout, beside + LEAST
    return control


def _label_width(words):
    return f"{max(LABEL, 7 * len(words) + 8)}px"
