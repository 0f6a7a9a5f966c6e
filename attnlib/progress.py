"""A progress bar, and how a widget is shown, without a widget library at import: training alone needs none."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any, TypeVar

from . import arguments
from .validation import kind_of

T = TypeVar("T")


def progress(iterable: Iterable[T], description: str = "") -> Iterable[T]:
    """Return `iterable` with a progress bar in the notebook.

    tqdm's own display call also writes the bar as text, with times that differ from run to run; this shows the widget
    alone, so that a saved notebook stays the same. Where tqdm is not installed, as in a browser, there is no bar.

    Examples
    --------
    >>> sum(progress([1, 2, 3], "adding"))
    6
    """
    if importlib.util.find_spec("tqdm") is None:
        return iterable
    from tqdm.notebook import tqdm

    if not hasattr(iterable, "__iter__"):
        raise TypeError(f"iterable must be a list, a range or the like, got {kind_of(iterable)}. Fix: range(...).")
    arguments.text(description, "description")
    bar = tqdm(iterable, desc=description, display=False)
    display_widget(bar.container)
    return bar


def display_widget(widget: Any) -> None:
    """Show a widget where there is a notebook, without a text of its repr: that says nothing to a reader."""
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        return
    # raw=True because ipywidgets 7 does not use _repr_mimebundle_.
    mime = "application/vnd.jupyter.widget-view+json"
    display({mime: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}, raw=True)
