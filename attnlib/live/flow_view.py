"""The view of one attention call as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import arguments, plot, steps, svg
from ..colours import KEY, QUERY, VALUE
from ..core import AttentionTrace
from ..svg import flow as drawing
from ..validation import ShapeError, kind_of
from .controls import BOTH, choice
from .view import LiveView

LARGE = 12  # scores beyond, whose exp has more than six digits, are written relative to the largest one
TITLES = {"query": "queries", "key": "keys", "value": "values"}  # of parts; maps are called as in the trace
MOST, MOST_TERMS = 64, 16  # tokens; terms of a sum that is written out
TABLE = 588  # pixels of the table: what JupyterLab has at 1024 x 768 beside its file browser


def flow(
    trace: AttentionTrace | Callable[[int], AttentionTrace],
    *,
    x: ArrayLike | None = None,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    query: int = 0,
    key: int = 0,
    feature: int = 0,
    features: Sequence[str] | None = None,
    d_k: Sequence[int] | None = None,
) -> LiveView:
    """Show a whole attention call: all its matrices, and how one query gets its weights and its output.

    K^T stands above the scores and V above the output, so that a cell is made by the row to its left and the column
    above it. Choose a query, a key and a feature by slider or click: what makes their numbers lights up, and the
    arithmetic stands below.

    Parameters
    ----------
    trace : AttentionTrace, or callable
        Of NumPy arrays or torch tensors; up to 64 tokens. With batch and head axes, sliders choose one sequence and
        head. With `d_k`, a function that returns the trace for a value of it.
    x : ndarray or Tensor, (..., n_q, d_in), optional
        The tokens that the queries were made of; they are drawn at the left.
    queries, keys : sequence of str, optional
        Token labels; numbers from 0 by default. If there are as many keys as queries, keys take the queries' labels.
    query, key, feature : int
        What is chosen at the start.
    features : sequence of str, optional
        The names of the features of values, for the slider and the arithmetic.
    d_k : sequence of int, optional
        Values of a slider for d_k, which starts at the last one: shows which matrices change their size with it.

    Returns
    -------
    LiveView
        Controls: query, key, feature (of the output), and one per batch or head axis with more than one place,
        and d_k where it is given.

    Raises
    ------
    ShapeError
        If there are more than 64 tokens, or `x` or labels do not fit the trace.
    TypeError, ValueError
        If `trace` is none, or what is chosen at the start is out of range.

    Examples
    --------
    >>> import attnlib
    >>> x = np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> view = flow(attnlib.attention_trace(x, x, x))
    >>> view.sliders["query"].value = 1
    >>> "2·1 + 1·0 = 2" in view.picture.value
    True
    """
    if d_k is not None:
        d_k = [arguments.whole(d, "each entry of d_k", 1, arguments.WIDEST) for d in arguments.several(d_k, "d_k")]
        arguments.function(trace, "trace, beside d_k,", "trace(d_k)")
    made: Any = trace
    call_at = lru_cache(maxsize=32)(lambda d_k: _Call(made if d_k is None else made(d_k), x, queries, keys, features))
    start = None if d_k is None else d_k[-1]
    call = call_at(start)
    kept: list[str] = []
    sizes = len(call.queries), len(call.keys), call.arrays["value"].shape[-1]
    query, key, feature = (
        arguments.whole(chosen, name, 0, n - 1)
        for chosen, name, n in zip((query, key, feature), ("query", "key", "feature"), sizes, strict=True)
    )

    def render(i, j, c, *at):
        call = call_at(at[-1] if d_k is not None else None)
        at = call.index(at)
        ends = len(call.queries), len(call.keys), call.arrays["value"].shape[-1]  # another d_k may have fewer
        i, j, c = (min(chosen, n - 1) for chosen, n in zip((i, j, c), ends, strict=True))
        kept[:] = call.base(at)[0]
        return "".join(call.draw(i, j, c, at)), {name: call.arrays[name][at] for name in call.maps}

    controls = {
        "query": choice("query", _pairs(call.queries), query),
        "key": choice("key", _pairs(call.keys), key),
        "feature": choice("feature", [(name, c) for c, name in enumerate(call.features)], feature),
    }
    for name, n in call.axes.items():
        first = name == "head"  # heads are counted from 1, as in every view
        controls[name] = choice(name, [(str(i + first), i) for i in range(n)], 0)
    for control in controls.values():  # three beside each other, so that the picture stands high
        control.layout.width = "290px"
        if len(control.options) == 1:  # nothing to choose
            control.layout.display = "none"
    if d_k is not None:
        controls["d_k"] = choice("d_k", d_k, start, BOTH)
    main = None if d_k is None else "d_k"
    return _Flow(controls, render, labels=lambda: (call.queries, call.keys, None), main=main, kept=kept)


class _Flow(LiveView):
    def _tell(self, title, i, j):
        """Call a map what it is called in the picture."""
        return super()._tell(title, i, j).replace(title, drawing.matrix_name(title), 1)


class _Call:
    """One attention call as arrays and labels, drawn and written out."""

    def __init__(self, trace, x, queries, keys, features):
        if not isinstance(trace, AttentionTrace):
            raise TypeError(
                f"trace must be an AttentionTrace, got {kind_of(trace)}. Fix: attention_trace(query, key, value), or "
                "beside d_k a function that returns it."
            )
        arrays = {name: plot.to_array(array) for name, array, _, _ in trace.steps()}
        self.leading, (n_q, n_k) = tuple(arrays["scores"].shape[:-2]), arrays["scores"].shape[-2:]
        if max(n_q, n_k) > MOST:
            raise ShapeError(
                f"flow shows up to {MOST} tokens, got {n_q} queries and {n_k} keys. "
                "Fix: cut the sequence, or draw trace.weights with plot.attention_heatmap."
            )
        if x is not None:
            x = arrays["x"] = self._tokens(x, n_q)
        self.arrays = {name: np.broadcast_to(array, self.leading + array.shape[-2:]) for name, array in arrays.items()}
        self.mask = None if trace.attn_mask is None else plot.to_array(trace.attn_mask)
        if self.mask is not None:
            self.mask = self.mask if self.mask.dtype == bool else self.mask > -np.inf
            self.mask = np.broadcast_to(self.mask, arrays["scores"].shape)
        self.queries = arguments.labels(queries, "queries", n_q) or [str(i) for i in range(n_q)]
        others = self.queries if n_q == n_k else [str(j) for j in range(n_k)]
        self.keys = arguments.labels(keys, "keys", n_k) or others
        d_k, d_v = arrays["query"].shape[-1], arrays["value"].shape[-1]
        self.features = arguments.labels(features, "features", d_v) or [str(c) for c in range(d_v)]
        self.mixes = [
            f"weight · V[:, {c}]" if features is None else f"{svg.TIMES} {f}" for c, f in enumerate(self.features)
        ]
        self.maps = steps.maps(trace)
        d_in = x.shape[-1] if x is not None else 0
        self.place = drawing.layout(self.maps, self.queries, self.keys, d_in, d_k, d_v)
        self.base = lru_cache(maxsize=16)(self._base)
        count = len(self.leading)
        names = {1: ["map"], 2: ["sequence", "head"]}.get(count, [f"axis {axis}" for axis in range(count)])
        self.axes = {name: n for name, n in zip(names, self.leading, strict=True) if n > 1}

    def _tokens(self, x, n_q):
        """Return the tokens X; where they have one axis fewer than the scores, heads share them."""
        x = plot.to_array(x)
        array = x[:, None] if x.ndim == 3 and len(self.leading) == 2 else x
        leading = array.shape[:-2][::-1]
        fits = array.ndim >= 2 and array.shape[-2] == n_q and array.shape[-1] and len(leading) <= len(self.leading)
        if not fits or any(m not in (1, n) for m, n in zip(leading, self.leading[::-1], strict=False)):
            raise ShapeError(
                f"x must be the tokens that the queries were made of, expected (..., {n_q}, d_in) before scores with "
                f"leading axes {self.leading}, got {x.shape}. Fix: x as it went into x @ W_Q."
            )
        return array

    def index(self, at):
        """Return the place of one sequence and head; axes of size 1 have no slider."""
        at = iter(at)
        return tuple(next(at) if n > 1 else 0 for n in self.leading)

    def at(self, at):
        """Return the arrays of one sequence and head, and the cells that its mask blocks (or None)."""
        return {name: x[at] for name, x in self.arrays.items()}, None if self.mask is None else ~self.mask[at]

    def _base(self, at):
        one, blocked = self.at(at)
        sentence = svg.describe(one["weights"], self.queries, self.keys, None if blocked is None else ~blocked)
        matrices = drawing.matrices(self.place, one, self.maps, self.queries, self.keys, blocked)
        return drawing.apart(self.place, matrices), sentence

    def draw(self, i, j, c, at):
        """Yield the pictures in which query i, key j and feature c of the output are chosen: parts, and a table."""
        place, (one, blocked), (base, sentence) = self.place, self.at(at), self.base(at)
        beams = drawing.apart(place, drawing.beams(place, i, j, c))
        lit = drawing.apart(place, drawing.lit(place, self.queries, self.keys, i, j, c))
        sums = self.words(i, j, c, at)
        words = f"{sums} {sentence}"
        yield '<div class="attnlib-parts attnlib-line">'
        for (left, top, right), *layers in zip(place.parts, beams, base, lit, strict=True):
            held = [
                TITLES.get(name) or drawing.matrix_name(name)
                for name, at in place.places.items()
                if left <= at.x < right
            ]
            options = {"at": (left, top), "least": drawing.LEAST}
            yield svg.picture(right - left, place.high - top, ", ".join(held), words, layers, **options)
            chosen = f"Query {self.queries[i]}, key {self.keys[j]}, feature {c}"
            words = f"{chosen} of the output {one['output'][i, c]:.4g}."  # the first part tells of all of them
        yield "</div>"
        rows = self._rows(one, None if blocked is None else blocked[i], i, c)
        tables = []
        for wide, at in ((TABLE, (0, place.high)), (svg.PHONE, None)):
            (product, y), high = self._product(one, i, j, wide), (len(rows) + 1) * drawing.ROW + 4
            blocks = drawing.steps_table(rows, self.keys, j, wide)
            lines = [f'<g transform="translate(0 {y + high * k})">{block}</g>' for k, block in enumerate(blocks)]
            tables.append(svg.picture(wide, y + high * len(blocks), "its arithmetic", sums, [product, *lines], at=at))
        yield svg.layouts(*tables)

    def _product(self, one, i, j, wide):
        """Return what makes a score: query and key, their products, the sum; and its height, on a phone two lines."""
        x, line = 8, []
        for name, label, colour in (("query", self.queries[i], QUERY), ("key", self.keys[j], KEY)):
            words = f"{name} {svg.shorten(label)}"
            line.append(svg.tag(x, 17, words, colour, anchor="start"))
            x += round(svg.width(words)) + 16
        x, y = (x, 17) if wide == TABLE else (8, 37)
        terms = _terms(one["query"][i], one["key"][j], one["scores"][i, j], wide - x - 58)
        return "".join([*line, svg.text(x, y, f"q.k = {terms}", math=True)]), y + 9

    def _rows(self, one, hidden, i, c):
        """Return the rows of the table: each step of query i as the trace has it, for all keys."""
        scores, values = (
            dict(zip(("vmin", "vmax"), drawing.span(one, self.maps, name), strict=True)) for name in ("scores", "value")
        )
        name, rows = {"rows": [self.queries[i]]}, []
        for step, before, symbol in self._ways():
            hatched = {"blocked": hidden} if drawing.after(self.maps, step, "masked_scores") else {}
            row = one[step][i]
            if step == "weights":
                shift, exp, total = _exp(one[before][i])
                plain = {"vmin": 0, "vmax": math.inf, "tint": drawing.GREY}
                rows.append((f"exp(s - {shift:.4g})" if shift else "exp", exp, name | plain, total))
                symbol = "÷ sum = weight"
            shares = drawing.after(self.maps, step, "weights")
            rows.append(
                (symbol, row, name | hatched | ({} if shares else scores), float(row.sum()) if shares else None)
            )
        mixed = row * one["value"][:, c] + 0.0  # no -0
        rows.append((self.mixes[c], mixed, name | values | {"tint": VALUE}, float(one["output"][i, c])))
        return rows

    def _ways(self):
        """Yield each map, the one that it was made of, and the symbol of its step."""
        return zip(self.maps, [None, *self.maps], self.maps.values(), strict=False)

    def words(self, i, j, c, at):
        """Return the arithmetic of the choice as text, step by step as the trace has it."""
        one, blocked = self.at(at)
        phrases = []
        for step, before, symbol in self._ways():
            value = one[step][i, j]
            if before is None:
                terms = _terms(one["query"][i], one["key"][j], value, 600)
                phrases.append(f"Query {self.queries[i]}, key {self.keys[j]}: q·k = {terms}")
            elif step == "weights":
                phrases += _share(one[before][i], j, value)
            elif step == "masked_scores" and value in (one[before][i, j], -math.inf):
                phrases.append("blocked: -inf" if blocked[i, j] else "may attend")
            else:
                phrases.append(f"{symbol}: {value:.4g}")
        return f"{'; '.join(phrases)}; feature {c} of the output {one['output'][i, c]:.4g}."


def _share(scores, j, weight):
    """Yield in words how softmax makes the weight of key j."""
    shift, exp, total = _exp(scores)
    if total:
        less = f" - {shift:.4g}" if shift else ""
        yield f"exp({scores[j]:.4g}{less}) = {exp[j]:.4g}, sum over the keys {total:.4g}"
        yield f"weight {exp[j]:.4g}/{total:.4g} = {weight:.4f}"
    else:
        yield "no key to attend to: every weight is 0"


def _terms(q, k, total, room):
    """Return the terms of a dot product, as many as have room, and their sum."""
    pairs = zip(q[:MOST_TERMS].tolist(), k[:MOST_TERMS].tolist(), strict=True)
    terms = [f"{a:.4g}·{b:.4g}" if b >= 0 else f"{a:.4g}·({b:.4g})" for a, b in pairs]
    more, room = f" + … ({len(q)} terms)", room - svg.width(f" = {total:.4g}")
    ends = np.cumsum([svg.width(f" + {term}") for term in terms])
    if len(terms) == len(q) and ends[-1] <= room:
        more = ""
    else:
        terms = terms[: max(1, int(np.searchsorted(ends, room - svg.width(more))))]
    return f"{' + '.join(terms)}{more} = {total:.4g}"


def _exp(row):
    """Return what is subtracted before exp, exp of each score, and their sum."""
    finite = row[np.isfinite(row)]
    shift = float(finite.max()) if finite.size and abs(finite).max() > LARGE else 0.0
    exp = np.exp(row - shift)
    return shift, exp, float(exp.sum())


def _pairs(labels):
    return [(f"{i}: {svg.shorten(label, 8)}" if label != str(i) else label, i) for i, label in enumerate(labels)]
