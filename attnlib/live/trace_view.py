"""The view that walks through one attention call."""

import html
import math
import re

import numpy as np

from .. import plot, svg
from .controls import buttons, choice, whole
from .view import LiveView

STEPS = ["scores", "scaled_scores", "masked_scores", "weights", "output"]
HIDDEN = ("masked_scores", "weights")  # the steps in which blocked cells are hatched
TERMS = 6  # a sum of more terms is written with an ellipsis
LARGE = 20  # scores beyond are written relative to the largest one
SIDE = 288
BOX = re.compile(r'viewBox="0 0 (\d+) (\d+)"')


def trace(trace, *, queries=None, keys=None, size=1.0):
    """Walk through an AttentionTrace: choose a step, a query and a key; the numbers behind the cell are written out.

    Parameters
    ----------
    trace : AttentionTrace
        Of NumPy arrays or torch tensors. With batch and head axes, sliders choose one sequence and head.
    queries, keys : sequence of str, optional
        Token labels; numbers from 0 by default.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: step, query, key, and one per leading axis.

    Examples
    --------
    >>> import attnlib
    >>> x = np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> view = trace(attnlib.attention_trace(x, x, x))
    >>> view.sliders["query"].value, view.sliders["step"].value = 1, "weights"
    >>> "query 1 · key 0 = 2*1 + 1*0 = 2" in view.picture.value
    True
    """
    call = _Call(trace, queries, keys)

    def render(step, i, j, *at):
        return call.draw(step, i, j, at), {step: call.arrays[step][at]}

    def static():
        at = (0,) * len(call.leading)
        weights, mask = call.arrays["weights"][at], call.mask_at(at)
        labels = {"queries": call.queries, "keys": call.keys, "attn_mask": mask}
        text = [
            f"Weights of {len(weights)} queries and {weights.shape[-1]} keys; run the cell to walk through every step."
        ]
        text.append(svg.describe(weights, call.queries, call.keys, mask))
        return plot.attention_heatmap(weights, title="weights", **labels).figure, "\n".join(text)

    controls = {
        "step": buttons("step", STEPS, "weights"),
        "query": choice("query", _pairs(call.queries)),
        "key": choice("key", _pairs(call.keys)),
    }
    leading = call.leading
    names = {1: ["map"], 2: ["sequence", "head"]}.get(len(leading), [f"axis {axis}" for axis in range(len(leading))])
    controls |= {name: whole(name, 0, length - 1, 0) for name, length in zip(names, leading, strict=True)}

    def labels():
        hidden = call.mask_at(tuple(controls[name].value for name in names))
        return call.queries, call.keys, hidden if controls["step"].value in HIDDEN else None

    return LiveView(controls, render, static, size=size, labels=labels)


class _Call:
    """One attention call as arrays and labels, and how each of its steps is drawn and written out."""

    def __init__(self, trace, queries, keys):
        steps = {name: (plot.to_array(array), formula) for name, array, _, formula in trace.steps()}
        self.scale = trace.scale
        self.formulas = {name: formula for name, (_, formula) in steps.items()}
        self.leading = tuple(steps["scores"][0].shape[:-2])
        self.arrays = {
            name: np.broadcast_to(array, self.leading + array.shape[-2:]) for name, (array, _) in steps.items()
        }
        self.mask = None if trace.attn_mask is None else plot.to_array(trace.attn_mask)
        shape = self.arrays["scores"].shape
        if self.mask is not None:
            self.mask = np.broadcast_to(self.mask if self.mask.dtype == bool else self.mask > -np.inf, shape)
        self.queries = [str(i) for i in range(shape[-2])] if queries is None else list(queries)
        self.keys = [str(j) for j in range(shape[-1])] if keys is None else list(keys)
        sizes = [BOX.search(self.picture(step, 0, 0, (0,) * len(self.leading))).groups() for step in STEPS]
        self.box = [max(int(size[axis]) for size in sizes) for axis in (0, 1)]  # nothing moves from step to step

    def mask_at(self, at):
        return None if self.mask is None else self.mask[at]

    def draw(self, step, i, j, at):
        """Return the picture of a step beside the lines that lead from a query and a key to the output."""
        wide, high = self.box
        lines = "".join(
            f'<div style="opacity:{1 if name == step else 0.65}">{"▸" if name == step else "&nbsp;"} {line}</div>'
            for name, told in self.lines(i, j, at).items()
            for line in told
        )
        picture = f'<div style="min-height:{high}px;min-width:min({wide}px,100%)">{self.picture(step, i, j, at)}</div>'
        return f'{picture}<div class="attnlib-steps">{lines}</div>'

    def picture(self, step, i, j, at):
        array = self.arrays["weights" if step == "output" else step][at]
        if step == "output":
            return svg.bars(array[i], title=f"weights of query {self.queries[i]}", keys=self.keys)
        hide = self.mask_at(at) if step in HIDDEN else None
        low, high = (0.0, 1.0) if step == "weights" else _range(array)
        options = {"attn_mask": hide, "row": i, "column": j, "vmin": low, "vmax": high, "scale": True, "side": SIDE}
        title = f"{step} = {self.formulas[step]}"
        return svg.heatmap(array, title=title, queries=self.queries, keys=self.keys, **options)

    def lines(self, i, j, at):
        """Return for each step the lines that write it out, escaped."""
        one = {name: array[at] for name, array in self.arrays.items()}
        q, k = one["query"][i], one["key"][j]
        score, scaled, masked = (one[step][i, j] for step in STEPS[:3])
        root = math.isclose(self.scale, 1 / math.sqrt(len(q)), rel_tol=1e-6)
        how = f"{score:.4g}/√{len(q)}" if root else f"{score:.4g} * {self.scale:.4g}"
        names = [html.escape(labels[at]) for labels, at in ((self.queries, i), (self.keys, j))]
        mask = self.mask_at(at)
        return {
            "scores": [f"query {names[0]} · key {names[1]} = {_product(q, k)} = {score:.4g}"],
            "scaled_scores": [f"{how} = {scaled:.4g}"],
            "masked_scores": ["may attend" if mask is None or mask[i, j] else "blocked: -inf"],
            "weights": _softmax(one["masked_scores"][i], masked, one["weights"][i, j]),
            "output": self._mix(one["weights"][i], one["output"][i]),
        }

    def _mix(self, weights, output):
        pairs = zip(weights[:TERMS], self.keys[:TERMS], strict=True)
        terms = " + ".join(f"{w:.4f} * v[{html.escape(k)}]" for w, k in pairs)
        return [f"output = {terms}{' + ...' if len(weights) > TERMS else ''}", f"= ({_numbers(output)})"]


def _product(q, k):
    terms = " + ".join(f"{a:.4g}*{b:.4g}" for a, b in zip(q[:TERMS], k[:TERMS], strict=True))
    return terms + (f" + ... ({len(q)} terms)" if len(q) > TERMS else "")


def _softmax(row, score, weight):
    """Return the lines that take a score to its weight: exp, the sum over all keys, their ratio."""
    finite = row[np.isfinite(row)]
    if not finite.size:
        return ["no key to attend to: every weight is 0", "&nbsp;"]
    shift = float(finite.max()) if abs(finite).max() > LARGE else 0.0  # exp of more would hardly fit on a line
    less, total = (f" - {shift:.4g}" if shift else ""), float(np.exp(finite - shift).sum())
    one = float(np.exp(score - shift))
    return [
        f"exp({score:.4g}{less}) = {one:.4g}, sum over the keys {total:.4g}",
        f"softmax: {one:.4g}/{total:.4g} = {weight:.4f}",
    ]


def _numbers(row):
    shown = ", ".join(f"{v:.4f}" for v in row[:TERMS])
    return shown + (", ..." if len(row) > TERMS else "")


def _pairs(labels):
    return [(f"{i}: {svg.cut(label, 14)}" if label != str(i) else label, i) for i, label in enumerate(labels)]


def _range(x):
    """Return the smallest and largest finite number, (0, 1) where there is none: every key may be blocked."""
    finite = x[np.isfinite(x)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
