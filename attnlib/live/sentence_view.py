"""The view of a sentence that the reader types."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

import numpy as np

from .. import arguments, plot, svg
from .. import heads as heads_
from ..validation import ShapeError
from .controls import buttons, integers, typed
from .heads_view import colour_top, one_head
from .view import LiveView
from .weights import panel, readings

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 256  # tokens: the time of a step grows with their square
WIDTH = 64  # d_model of the random projections
SIDE = 272  # of the map of a short sentence: its labels are slanted, and bars stand below it


def sentence(
    text: str = "The cat sat on the mat, because it was tired.",
    *,
    attend: Callable | dict[str, Callable] | None = None,
    num_heads: int = 4,
    size: float = 1.0,
) -> LiveView:
    """Let readers type a sentence and see heads on it.

    Words and punctuation marks become tokens. Any text is shown as typed; nothing in it is executed.

    Parameters
    ----------
    text : str
        The first sentence. The view shows up to 256 words and punctuation marks.
    attend : callable or dict of str to callable, optional
        From a list of tokens to weights (h, n, n). By default random projections of a vector that is the same for the
        same word, so that equal words look alike and nothing more is meant.
    num_heads : int
        Heads of the random projections.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: text, head (0 is the average), and module where `attend` names several.

    Raises
    ------
    ShapeError, TypeError, ValueError
        If the text is longer than that, or `attend` does not return weights (h, n, n).

    Examples
    --------
    >>> view = sentence("One <b>two</b>!")
    >>> view.shown["head 1"].shape
    (10, 10)
    """
    _long(tokenize(arguments.text(text, "text")))
    attend = _modules(attend, num_heads)
    now = {"tokens": []}

    def render(text, head, module, query, key):
        tokens = now["tokens"] = _long(tokenize(text))
        if not tokens:
            return "<div>Type a sentence: words and punctuation marks become tokens.</div>", {}
        maps = attend[module](tokens)
        title, chosen = one_head(maps, head)
        return draw_sentence(title, chosen, tokens, query, key, colour_top(maps)), {title: chosen}

    def static():
        tokens = tokenize(text)[: svg.CELLS] or ["(empty)"]
        name = next(iter(attend))
        weights = attend[name](tokens)
        told = [f"{len(weights)} heads of {name} on {len(tokens)} tokens; run the cell to type your own sentence."]
        told.append(svg.describe(weights[0], tokens, tokens, None))
        figure = plot.head_grid(weights, queries=tokens, keys=tokens, vmax=colour_top(weights))
        return figure, "\n".join(told)

    controls = {
        "text": typed("text", text),
        "head": integers("head", 0, len(next(iter(attend.values()))(["a"])), 1),
        "module": buttons("module", list(attend)),
    }
    if len(attend) == 1:
        controls["module"].layout.display = "none"
    return LiveView(
        controls,
        render,
        static,
        size=size,
        picked={"query": 0, "key": None},
        labels=lambda: (now["tokens"], now["tokens"], None),
    )


def _long(tokens):
    """Return tokens, if the view is quick enough for so many."""
    if len(tokens) > MOST:
        raise ValueError(
            f"sentence shows up to {MOST} words and punctuation marks, got {len(tokens)}. Fix: cut the text."
        )
    return tokens


def _modules(attend, num_heads):
    """Return functions from tokens to maps by name, each of which looks at what it returns."""
    if attend is None:
        attend = {"random projections": random_heads(arguments.whole(num_heads, "num_heads", 1, WIDTH))}
    attend = {"module": attend} if callable(attend) else attend
    if not isinstance(attend, dict) or not attend:
        raise TypeError(
            "attend must be a function from tokens to weights (h, n, n), or a dict of such functions by name, "
            f"got {attend!r:.60}. Fix: attend={{'mine': my_function}}."
        )

    def checked(name, function):
        def maps(tokens):
            n, found = len(tokens), arguments.to_array(function(tokens))
            if found.ndim != 3 or found.shape[1:] != (n, n) or len(found) == 0:
                raise ShapeError(
                    f"attend must return weights (h, n, n): expected (h, {n}, {n}) of {name} for {n} tokens, "
                    f"got {found.shape}. Fix: weights of one sentence, without a batch axis."
                )
            return found

        return maps

    return {
        arguments.text(name, "a name in attend"): checked(
            name, arguments.function(function, f"attend[{name!r}]", "attend(tokens)")
        )
        for name, function in attend.items()
    }


def draw_sentence(title, weights, tokens, query, key, top):
    """Return the panel of one map over the tokens of a sentence, with the weights of the chosen token as bars."""
    n = len(tokens)
    row, column = (None if at is None or at >= n else at for at in (query, key))
    large = n > svg.CELLS
    drawn = {"row": row, "column": column, "bars": row is not None and not large, "scale": True, "vmax": top}
    picture = svg.heatmap(weights, title=title, queries=tokens, keys=tokens, side=400 if large else SIDE, **drawn)
    return panel([picture], {"tokens": n, **readings(weights)})


def tokenize(text):
    """Split text into words and punctuation marks, all shown as typed.

    Examples
    --------
    >>> tokenize("It's 3 < 4!")
    ['It', "'", 's', '3', '<', '4', '!']
    """
    return re.findall(r"\w+|[^\w\s]", text)


def random_heads(num_heads, d_model=WIDTH, seed=0):
    """Return a function from tokens to the weights of random heads; the same word always has the same vector."""
    layer = heads_.MultiHeadAttention(d_model, num_heads, rng=np.random.default_rng(seed))

    def attend(tokens):
        x = np.stack([np.random.default_rng(zlib.crc32(t.encode())).normal(size=d_model) for t in tokens])
        return layer(x)[1]  # (h, n, n)

    return attend
