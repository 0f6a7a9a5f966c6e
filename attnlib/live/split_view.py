"""The view of splitting and merging: where each number of the features goes, and where a bare reshape puts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import arguments, svg
from ..colours import EDGE, SHARES, inks
from .controls import choice
from .view import LiveView

STEPS = ["0: x", "1: cut", "2: heads", "3: swap back", "4: join"]
SIDE, HIGH, GAP, LEFT, TOP, BETWEEN = 34, 24, 14, 46, 48, 16  # pixels of a cell, and of the room around the blocks
MOST = 10  # tokens, and features: each has one digit


def split_heads(words: Sequence[str], *, num_heads: int = 2, d_k: int = 3) -> LiveView:
    """Show step by step how the features of tokens are split into heads and merged, beside the same by a bare reshape.

    (n, d_model) -> (n, h, d_k) -> (h, n, d_k) and back. Each token has a colour, so that a head with rows of two
    colours is seen to mix tokens. Each number says token and feature, both counted from 0.

    Parameters
    ----------
    words : sequence of str, n
        Up to 10 tokens.
    num_heads, d_k : int
        2 or more heads; d_model = num_heads * d_k is 10 at most.

    Returns
    -------
    LiveView
        Controls: step. `shown` holds the tokens of the right array and of the wrong one.

    Raises
    ------
    ValueError
        If there are more tokens or features than the picture has room for.

    Examples
    --------
    >>> view = split_heads(["she", "saw", "Ben"], d_k=2)
    >>> view.sliders["step"].value = 2
    >>> view.shown["one axis at a time"][0].tolist(), view.shown["a bare reshape"][0].tolist()  # tokens in head 1
    ([[0, 0], [1, 1], [2, 2]], [[0, 0], [0, 0], [1, 1]])
    """
    words = [str(word) for word in arguments.several(words, "words")]
    num_heads, d_k = arguments.whole(num_heads, "num_heads", 2, MOST), arguments.whole(d_k, "d_k", 1, MOST)
    if len(words) > MOST or num_heads * d_k > MOST:
        raise ValueError(
            f"the picture has room for {MOST} tokens of {MOST} features, got {len(words)} tokens of "
            f"{num_heads} * {d_k} features. Fix: fewer words, or a smaller num_heads or d_k."
        )
    ways = _ways(len(words), num_heads, d_k)

    def render(step):
        shown = {way: steps[step].array // (num_heads * d_k) for way, steps in ways.items()}
        return _picture(ways, step, words, num_heads, d_k), shown

    control = choice("step", [(label, k) for k, label in enumerate(STEPS)], 0)
    hint = "Each number is a token and a feature. Move the slider, or press the arrow keys."
    return LiveView({"step": control}, render, {"step": 2}, hint=hint)


class _Step(NamedTuple):
    """A line of code, the array that it makes, and whether its first axis is the heads; entries number the features."""

    code: str
    array: np.ndarray
    heads_first: bool = False


def _ways(n, num_heads, d_k):
    """Return the steps of the right way and of a bare reshape."""
    x = np.arange(n * num_heads * d_k).reshape(n, -1)  # (n, d_model)
    cut = x.reshape(n, num_heads, d_k)
    heads = cut.swapaxes(0, 1)
    wrong = _Step("x.reshape(h, n, d_k)", x.reshape(num_heads, n, d_k), heads_first=True)
    return {
        "one axis at a time": [
            _Step("x", x),
            _Step("x.reshape(n, h, d_k)", cut),
            _Step(".swapaxes(-2, -3)", heads, heads_first=True),
            _Step("heads.swapaxes(-2, -3)", cut),
            _Step(".reshape(n, d_model)", x),
        ],
        "a bare reshape": [
            _Step("x", x),
            wrong,
            wrong,
            _Step("the correct heads", heads, heads_first=True),
            _Step("heads.reshape(n, d_model)", heads.reshape(n, -1)),
        ],
    }


def _rows(step, words):
    """Tell in words whose features stand in the rows of head 1, or in the first row of what is no array of heads."""
    tokens = step.array // (step.array.size // len(words))
    rows = tokens[0] if step.heads_first else tokens[:1].reshape(1, -1)
    held = ", ".join("+".join(dict.fromkeys(words[t] for t in row)) for row in rows.tolist())
    return f"{'rows of head 1' if step.heads_first else 'first row'}: {held}"


def _picture(ways, k, words, num_heads, d_k):
    n, across = len(words), LEFT + num_heads * (d_k * SIDE + GAP)
    wide, high = across + BETWEEN, TOP + num_heads * (n * HIGH + GAP)
    rooms = (f"M{LEFT} {TOP + j * (n * HIGH + GAP)}h{d_k * SIDE}v{n * HIGH}H{LEFT}z" for j in range(1, num_heads))
    waits = f'<path d="{"".join(rooms)}" fill="none" stroke="{EDGE}" stroke-dasharray="2 4"/>'  # for a head
    sides = []
    for column, (way, step) in enumerate((way, steps[k]) for way, steps in ways.items()):
        parts = [svg.text(LEFT, 14, way, bold=True), svg.text(LEFT, 36, f"{step.code}   {step.array.shape}")]
        parts += [f"<g>{_labels(step, words, whole=column == 0 or step.array.ndim == 2)}</g>", waits, *_cells(step, n)]
        sides.append((wide, high, f"heads split and merged, {way}", f"{way}: {step.code}, {_rows(step, words)}", parts))
    return svg.beside(sides, grow=1.2, whole=len(ways) * wide)


def _labels(step, words, whole):
    """Return what stands beside the rows: words, where each row is `whole`, of one token; and the names of heads."""
    blocks, labels = len(step.array) if step.heads_first else 1, []
    for block in range(blocks):
        top = TOP + block * (len(words) * HIGH + GAP)
        if step.heads_first:
            labels.append(svg.text(LEFT + step.array.shape[-1] * SIDE + 10, top + 17, f"head {block + 1}"))
        for i, word in enumerate(words if whole else []):
            labels.append(svg.text(LEFT - 6, top + i * HIGH + 17, svg.shorten(word, 6), anchor="end"))
    return "".join(labels)


def _cells(step, n):
    """Yield the cells in the order of their numbers, each at its place in the array: so they move and stay the same."""
    shades = [(SHARES[level], inks(EDGE)[level]) for level in np.linspace(20, 180, n).astype(int)]
    for number, place in sorted((int(number), place) for place, number in np.ndenumerate(step.array)):
        (x, y), (token, feature) = _at(place, step, n), divmod(number, step.array.size // n)
        share, ink = shades[token]
        yield (
            f'<rect class="attnlib-moves" x="{x}" y="{y}" width="{SIDE - 1}" height="{HIGH - 1}" fill="{EDGE}" '
            f'fill-opacity="{share:.3g}"/>'
            f'<text x="{x + SIDE / 2 - 0.5:g}" y="{y + 16}" font-size="13" text-anchor="middle" style="fill:{ink}">'
            f"{token}{feature}</text>"
        )


def _at(place, step, n):
    """Return the pixels of a place in x (n, d_model), in what is cut (n, h, d_k), or in heads (h, n, d_k)."""
    *first, i, c = place
    if not first:
        return LEFT + c * SIDE, TOP + i * HIGH
    if step.heads_first:
        return LEFT + c * SIDE, TOP + first[0] * (n * HIGH + GAP) + i * HIGH
    return LEFT + (i * step.array.shape[-1] + c) * SIDE + i * GAP, TOP + first[0] * HIGH
