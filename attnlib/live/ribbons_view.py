"""The view that opens the series: where a word looks, and what comes next, from too sharp to too pale."""

from .. import svg
from . import still
from .controls import choice
from .stops import read
from .view import LiveView

WIDTH = "480px"  # of the control: a hint has room beside it


def ribbons(stops, *, query=None, middle="right", size=1.0):
    """Show where a word of a real sentence looks, and the next word, at each d_k: too sharp, right, too pale.

    Ribbons as wide as the weights of one head lead from a word to those it looks at. Every head of the model divides
    its scores by sqrt(d_k) with the d_k of the slider; at the model's own it is as it was trained.

    Parameters
    ----------
    stops : dict
        prompt, words (n tokens), layer and head (of the map, from 1), d_k (the model's own) and stops: for each
        its d_k, weights (n, n), and next, the likely next tokens as (token, probability), falling.
    query : int, optional
        The token that looks at first; by default the last, behind which the next word stands. A click chooses others.
    middle : str
        What the picture calls the stops whose next word is that of the model's own d_k.
    size : float
        1.5 enlarges the picture for a projector.

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
    nexts = [stop.next[0][0] for stop in held.stops]
    rows = range(n)

    def render(d_k, query):
        stop = held.at(d_k)
        told = f"d_k = {d_k:g}" + (", the model's own" if d_k == held.own else "")
        picture = svg.ribbons(
            held.words,
            stop.weights[query],
            query,
            stop.next,
            nexts=nexts,
            verdict=held.verdict(stop, middle),
            told=told,
            head=held.head,
            rows=rows,
            at=(0, 0),
        )
        return picture, {"weights": stop.weights}

    def static():
        picture, _ = render(held.own, query)
        lines = [f"“{stop.next[0][0].strip()}” {stop.next[0][1]:.2f} at d_k = {stop.d_k:g}" for stop in held.stops]
        return still.figure(picture), "The next word: " + ", ".join(lines) + "; run the cell to move d_k."

    control = choice("d_k", [(f"{d:g}", d) for d in held.d_ks], held.own)
    control.layout.width = WIDTH
    labels = [svg.visible(word) for word in held.words]
    return LiveView(
        {"d_k": control},
        render,
        static,
        size=size,
        picked={"query": query},
        labels=lambda: (labels, labels, None),
        walk=(held.d_ks[0], held.own, held.d_ks[-1], held.own),
    )
