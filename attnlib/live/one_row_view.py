"""The view of one row of attention as a whole: what a word looks for, what it takes, and what it is after that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from numpy.typing import ArrayLike

from .. import arguments, core, svg
from ..examples import Example
from ..svg import one_row as drawing
from ..symbols import maths
from ..validation import ShapeError
from .controls import DIVISOR, buttons, choice
from .view import LiveView

DIVISORS: dict[str, float] = {"1/4": 0.25, "1/2": 0.5, **{str(d): d for d in (1, 2, 3, 4, 8, 16, 32, 64)}}
MOST = {"words": 5, "features": 6, "asked": 3, "given": 2}  # for more the picture has no room
STAGES = [(name, k) for k, name in enumerate(drawing.STAGES, start=1)]


def one_row(
    example: Example,
    W_O: ArrayLike,
    *,
    query: int,
    line: str,
    stage: int = len(STAGES),
    d_k: float | None = None,
    **names: Sequence[str],
) -> LiveView:
    """Show one row of attention in one picture, from the query to the vector plus what it takes, stage by stage.

    Every number shows its arithmetic, by a click or under the mouse. Ribbons as wide as the weights fill the output.

    Parameters
    ----------
    example : Example
        Up to 5 tokens of 6 features, with W_Q and W_K of up to 3 columns and W_V of up to 2.
    W_O : ndarray, (d_v, d_in)
        Brings what is taken back to the features of a token.
    query : int
        The token that looks.
    line : str
        A feature that is drawn on a line, too, between the words that have least and most of it.
    stage : int
        How many stages are filled at the start: query, keys, scores, weights, output, added.
    d_k : float, optional
        The slider moves the divisor alone, sqrt(d_k), from 1/4 to 64; it starts at the d_k of the example.
    **names : sequence of str
        words, features (of words), asked (of queries and keys), given (of values): as `attnlib.examples.NAMES`.

    Returns
    -------
    LiveView
        Controls: d_k, stage.

    Examples
    --------
    >>> from attnlib.examples import NAMES, SENTENCE, W_O
    >>> view = one_row(SENTENCE, W_O, query=3, line="who", **NAMES)
    >>> view.choose(part=[*view.numbers()].index("output"), place=0)
    >>> view.readout.value
    'who: 0.885 = 0.6461·2 + 0.036·0 + 0.2036·(-2) + 0.1143·0'
    """
    row = arguments.whole(query, "query", 0, len(example.x) - 1)
    stage = arguments.whole(stage, "stage", 1, len(STAGES))
    named = _names(example, names, row)
    W_O = arguments.array_of(W_O, "W_O", "(d_v, d_in)", "who to who, for instance")
    f = named.features.index(arguments.one_of(line, "line", named.features))
    ends = sorted(zip(example.x[:, f].tolist(), named.words, strict=True))[:: len(named.words) - 1]
    projected = example.project()
    start = example.W_Q.shape[1] if d_k is None else arguments.one_of(d_k, "d_k", [*DIVISORS.values()])

    @lru_cache(maxsize=len(DIVISORS))
    def at(d_k):
        """Return the trace of the row, its numbers, and the divisor in words."""
        trace = core.attention_trace(projected[0][row : row + 1], *projected[1:], scale=1 / math.sqrt(d_k))
        root_of = next(words for words, stop in DIVISORS.items() if stop == d_k)
        root = f"√({root_of})" if d_k < 1 else f"√{root_of}"
        return trace, drawing.numbers(example, W_O, trace, named, root), root

    def render(d_k, stage, part, place):
        trace, numbers, root = at(d_k)
        picked = None if part is None else (list(numbers)[part], place)
        pictures = [
            drawing.OneRow(named, numbers, layout, picked).draw(stage, corner, root, W_O, (line, ends))
            for layout, corner in ((drawing.BESIDE, (0, 0)), (drawing.ABOVE, None))
        ]
        return svg.layouts(*pictures), {"scores": trace.scores, "weights": trace.weights}

    controls = {
        "d_k": choice("d_k", [*DIVISORS.items()], start, DIVISOR),
        "stage": buttons("filled up to", STAGES, stage),
    }
    view = _OneRow(controls, render, picked={"part": None, "place": None})
    view.numbers = lambda: at(controls["d_k"].value)[1]
    return view


def _names(example, names, row):
    """Return the names of words and features, checked; numbers where none are given."""
    counts = *example.x.shape, example.W_Q.shape[1], example.W_V.shape[1]
    if any(n > most for n, most in zip(counts, MOST.values(), strict=True)):
        raise ShapeError(f"one_row has room for {MOST}, got {counts}. Fix: live.flow shows larger calls.")
    for name in names:
        arguments.one_of(name, "what is named", list(MOST))
    labels = (arguments.labels(names.get(name, range(n)), name, n) for name, n in zip(MOST, counts, strict=True))
    return drawing.Names(*map(tuple, labels), row)


class _OneRow(LiveView):
    numbers: Callable[[], dict[str, list[drawing.Number]]]
    hint = "Choose a number to see its arithmetic, by a click, or by Tab and arrow keys."
    fills = "stage"

    def _line_below(self, otherwise=None):
        """Return the arithmetic of the number that is chosen."""
        part, place = self.picked.values()
        if part is None:
            return otherwise or self.hint
        return maths([*self.numbers().values()][part][place].how, "html")
