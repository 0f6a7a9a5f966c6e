"""The view of a sentence that the reader types."""

import re
import zlib

import numpy as np

from .. import heads as heads_
from .. import plot, svg
from .controls import buttons, integers, typed
from .heads_view import colour_top, one_head
from .view import LiveView
from .weights import panel, readings

SIDE = 272  # of the map of a short sentence: its labels are slanted, and bars stand below it


def sentence(text="The cat sat on the mat, because it was tired.", *, attend=None, num_heads=4, size=1.0):
    """Let readers type a sentence and see heads on it.

    Words and punctuation marks become tokens. Any text is shown as typed; nothing in it is executed.

    Parameters
    ----------
    text : str
        The first sentence.
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

    Examples
    --------
    >>> view = sentence("One <b>two</b>!")
    >>> view.shown["head 1"].shape
    (10, 10)
    """
    attend = {"random projections": random_heads(num_heads)} if attend is None else attend
    attend = {"module": attend} if callable(attend) else attend

    now = {"tokens": []}

    def render(text, head, module, query, key):
        tokens = now["tokens"] = tokenize(text)
        if not tokens:
            return "<div>Type a sentence: words and punctuation marks become tokens.</div>", {}
        maps = plot.to_array(attend[module](tokens))
        title, chosen = one_head(maps, head)
        return draw_sentence(title, chosen, tokens, query, key, colour_top(maps)), {title: chosen}

    def static():
        tokens = tokenize(text)[: svg.CELLS] or ["(empty)"]
        name = next(iter(attend))
        weights = plot.to_array(attend[name](tokens))
        told = [f"{len(weights)} heads of {name} on {len(tokens)} tokens; run the cell to type your own sentence."]
        told.append(svg.describe(weights[0], tokens, tokens, None))
        figure = plot.head_grid(weights, queries=tokens, keys=tokens, vmax=colour_top(weights))
        return figure, "\n".join(told)

    controls = {
        "text": typed("text", text),
        "head": integers("head", 0, len(plot.to_array(next(iter(attend.values()))(["a"]))), 1),
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


def random_heads(num_heads, d_model=64, seed=0):
    """Return a function from tokens to the weights of random heads; the same word always has the same vector."""
    layer = heads_.MultiHeadAttention(d_model, num_heads, rng=np.random.default_rng(seed))

    def attend(tokens):
        x = np.stack([np.random.default_rng(zlib.crc32(t.encode())).normal(size=d_model) for t in tokens])
        return layer(x)[1]  # (h, n, n)

    return attend
