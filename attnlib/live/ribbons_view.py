"""The view that opens the series: where a word looks, and what comes next, from too sharp to too pale."""

from __future__ import annotations

import html
from typing import Any

from .. import svg
from .controls import DIVISOR, choice
from .stops import read
from .view import LiveView

WIDTH = "560px"  # of the control: a hint has room beside it


def ribbons(stops: dict[str, Any], *, query: int | None = None, middle: str = "right") -> LiveView:
    """Show where a word of a real sentence looks, and the next word, at each d_k: too sharp, right, too pale.

    Ribbons as wide as the weights of one head lead from a word to those it looks at. Every head of the model divides
    its scores by sqrt(d_k) with the d_k of the slider; at the model's own it is as it was trained.

    Parameters
    ----------
    stops : dict
        prompt, words (n tokens), layer and head (of the map, from 1), d_k (the model's own) and stops: for each its
        d_k; weights (n, n), or of a causal head rows of 1, 2, ... n numbers; and next, the likely next tokens as
        (token, probability), falling.
    query : int, optional
        The token that looks at first; by default the last, behind which the next word stands. A click chooses others.
    middle : str
        What the picture calls the stops whose next word is that of the model's own d_k, before that word.

    Returns
    -------
    LiveView
        Controls: d_k. It moves once by itself, from the model's own d_k to both ends and back.

    Raises
    ------
    TypeError, ValueError
        If `stops` is no such dict, or its numbers do not fit its words.

    Examples
    --------
    >>> stops = [{"d_k": d, "weights": [[1, 0], [0.5, 0.5]], "next": [(" c", 0.9)]} for d in (1, 64)]
    >>> view = ribbons({"words": ["a", " b"], "layer": 1, "head": 1, "d_k": 64, "stops": stops})
    >>> view.shown["weights"].shape
    (2, 2)
    """
    held = read(stops)
    n = len(held.words)
    query = n - 1 if query is None else query
    if not isinstance(query, int) or not 0 <= query < n:
        raise ValueError(f"query must be the number of one of the {n} words, from 0, got {query!r}. Fix: {n - 1}.")
    labels = [svg.visible(word) for word in held.words]

    def render(d_k, query):
        stop = held.at(d_k)
        verdict = f"{held.verdict(stop, middle)}: {svg.visible(stop.next[0][0])}"  # it is a verdict on that word
        return _picture(held, stop, query, verdict), {"weights": stop.weights}

    control = choice("d_k", [(f"{d:g}", d) for d in held.d_ks], held.own, DIVISOR)
    control.layout.width = WIDTH
    return _Ribbons(
        {"d_k": control},
        render,
        picked={"query": query},
        labels=lambda: (labels, labels, None),
        walk=(held.d_ks[0], held.own, held.d_ks[-1], held.own),
    )


class _Ribbons(LiveView):
    hint = "Click a word to see where it looks; or choose it by Tab and arrow keys."

    def _titles(self):
        """Return the words for a word that was chosen by a key."""
        labels, row = self._labels()[0], self.picked["query"]
        return html.escape(svg.describe_row(labels, self.shown["weights"][row], row), quote=False)


def _picture(held, stop, query, verdict):
    """Return the ribbons of one token at one stop: over the sentence, and beside it for a narrow page."""
    words = held.words, stop.weights[query], query, stop.next
    told = f"d_k = {stop.d_k:g}" + (", the model's own" if stop.d_k == held.own else "")
    options = {"verdict": verdict, "told": told, "head": held.head, "rows": range(len(held.words))}
    nexts = [other.next[0][0] for other in held.stops]
    return (
        f'<div class="attnlib-across">{svg.ribbons(*words, nexts=nexts, at=(0, 0), **options)}</div>'
        f'<div class="attnlib-down">{svg.ribbon_column(*words, **options)}</div>'
    )
