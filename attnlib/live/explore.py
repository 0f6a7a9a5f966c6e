"""Views to walk through one attention call, its masks, its heads, and a sentence of the reader's own."""

import html
import math
import re
import zlib

import ipywidgets as widgets
import numpy as np

from .. import core, plot, svg
from .. import heads as heads_
from .. import masks as masks_
from ..validation import ShapeError
from .view import STYLE, LiveView, choice, whole
from .weights import panel, readings

STEPS = ["scores", "scaled_scores", "masked_scores", "weights", "output"]
TERMS = 6  # a dot product of more terms is written with an ellipsis
SMALL = 130  # side of a head's map in a grid of heads


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
    >>> x = np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> view = trace(core.attention_trace(x, x, x))
    >>> view.sliders["query"].value, view.sliders["step"].value = 1, "weights"
    >>> "query 1 . key 0 = 2*1 + 1*0 = 2" in view.picture.value
    True
    """
    steps = {name: (array, formula) for name, array, _, formula in trace.steps()}
    leading = tuple(steps["scores"][0].shape[:-2])
    arrays = {name: plot.to_array(array) for name, (array, _) in steps.items()}
    arrays = {name: np.broadcast_to(array, leading + array.shape[-2:]) for name, array in arrays.items()}
    mask = None if trace.attn_mask is None else plot.to_array(trace.attn_mask)
    if mask is not None:
        mask = np.broadcast_to(mask if mask.dtype == bool else mask > -np.inf, arrays["scores"].shape)
    n_q, n_k = arrays["scores"].shape[-2:]
    queries = [str(i) for i in range(n_q)] if queries is None else list(queries)
    keys = [str(j) for j in range(n_k)] if keys is None else list(keys)

    def render(step, i, j, *at):
        one = {name: array[at] for name, array in arrays.items()}
        allowed = None if mask is None else mask[at]
        told = _dot_product(one, trace.scale, allowed, i, j, queries, keys)
        shown = {step: one[step]}
        formula = f"{step} = {steps[step][1]}"
        if step == "output":
            picture = svg.bars(one["weights"][i], title=f"weights of query {queries[i]}", keys=keys)
            pairs = zip(one["weights"][i][:TERMS], keys[:TERMS], strict=True)
            terms = " + ".join(f"{w:.4f} * v[{html.escape(k)}]" for w, k in pairs)
            more = " + ..." if n_k > TERMS else ""
            told += [f"output = {terms}{more}", f"= ({_numbers(one['output'][i])})"]
        else:
            hide = allowed if step in ("masked_scores", "weights") else None
            low, high = (0.0, 1.0) if step == "weights" else _range(one[step])
            picture = svg.heatmap(
                one[step],
                title=formula,
                queries=queries,
                keys=keys,
                attn_mask=hide,
                row=i,
                column=j,
                vmin=low,
                vmax=high,
            )
        lines = "".join(f"<div>{line}</div>" for line in told)
        text = f'<div style="font-family:monospace;max-width:460px">{lines}</div>'
        return f"{panel([picture], {})}{text}", shown

    def static():
        at = (0,) * len(leading)
        weights = arrays["weights"][at]
        text = [f"Weights of {n_q} queries and {n_k} keys; run the cell to walk through every step."]
        text.append(svg.describe(weights, queries, keys, None if mask is None else mask[at]))
        figure = plot.attention_heatmap(
            weights, queries=queries, keys=keys, attn_mask=None if mask is None else mask[at], title="weights"
        ).figure
        return figure, "\n".join(text)

    controls = {
        "step": choice("step", STEPS, "weights"),
        "query": choice("query", _pairs(queries)),
        "key": choice("key", _pairs(keys)),
    }
    names = {1: ["map"], 2: ["sequence", "head"]}.get(len(leading), [f"axis {axis}" for axis in range(len(leading))])
    controls |= {name: whole(name, 0, length - 1, 0) for name, length in zip(names, leading, strict=True)}
    return LiveView(controls, render, static, size=size)


def masks(n=6, *, d_k=(1, 128), seed=0, size=1.0):
    """Show who may look where, under no mask, a causal one, a padding one, or both, and the weights that result.

    Parameters
    ----------
    n : int
        Number of tokens.
    d_k : (int, int)
        Range of the slider; the vectors are nested, as in `scaling`.
    seed : int
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: mask, length (real tokens; 0 leaves every query without a key), d_k.

    Examples
    --------
    >>> view = masks(n=4)
    >>> view.sliders["mask"].value, view.sliders["length"].value = "padding", 2
    >>> float(view.shown["divided by sqrt(d_k)"][:, 2:].max())
    0.0
    """
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, n, d_k[1]))

    def at(kind, length, d_k):
        mask = np.ones((n, n), dtype=bool)
        if kind in ("causal", "both"):
            mask = mask & masks_.causal_mask(n)
        if kind in ("padding", "both"):
            mask = mask & masks_.padding_mask([length], n)[0]
        scores = query[:, :d_k] @ key[:, :d_k].T  # (n, n)
        return mask, {
            "not scaled": core.softmax(masks_.apply_mask(scores, mask)),
            "divided by sqrt(d_k)": core.softmax(masks_.apply_mask(scores / math.sqrt(d_k), mask)),
        }

    def render(kind, length, d_k):
        mask, shown = at(kind, length, d_k)
        dead = int((~mask.any(-1)).sum())
        panels = [panel([svg.heatmap(w, title=title, attn_mask=mask)], readings(w)) for title, w in shown.items()]
        allowed = f"{int(mask.sum())} of {n * n} pairs may attend"
        return "".join(panels) + f'<div style="width:100%">{allowed}; rows without a key: {dead}</div>', shown

    def static():
        kinds = ("none", "causal", "padding", "both")
        drawn = {kind: at(kind, n - 2, d_k[1]) for kind in kinds}
        figure = plot.head_grid(
            np.stack([shown["divided by sqrt(d_k)"] for _, shown in drawn.values()]),
            titles=[f"mask: {kind}" for kind in kinds],
            attn_mask=np.stack([mask for mask, _ in drawn.values()]),
        )
        told = [f"mask {kind}: {int(mask.sum())} of {n * n} pairs may attend" for kind, (mask, _) in drawn.items()]
        return figure, "\n".join([f"The masks with {n - 2} of {n} tokens real; run the cell for controls.", *told])

    controls = {
        "mask": choice("mask", ["none", "causal", "padding", "both"], "both"),
        "length": whole("length", 0, n, max(n - 2, 1)),
        "d_k": whole("d_k", *d_k, d_k[0]),
    }
    return LiveView(controls, render, static, size=size)


def heads(weights=None, *, n=6, d_model=64, seed=0, queries=None, keys=None, attn_mask=None, size=1.0):
    """Show the maps of all heads side by side, and one of them (or their average) large.

    Parameters
    ----------
    weights : ndarray or Tensor, (h, n_q, n_k), optional
        The weights of a layer. Without them n random tokens go through random projections, and a slider sets the
        number of heads at fixed d_model, so that d_k = d_model / h changes.
    n, d_model, seed : int
        Used without `weights`.
    queries, keys : sequence of str, optional
        Token labels.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: head (0 is the average), and num_heads where `weights` are not given.

    Examples
    --------
    >>> view = heads(np.stack([np.eye(3), np.full((3, 3), 1 / 3)]))
    >>> view.sliders["head"].value = 2
    >>> view.shown["head 2"][0].round(2).tolist()
    [0.33, 0.33, 0.33]
    """
    if weights is None:
        rng = np.random.default_rng(seed)
        query, key = rng.normal(size=(2, n, d_model))
        counts = [h for h in range(1, d_model + 1) if d_model % h == 0 and h <= 16]

        def layer(h):
            return core.attention_trace(*(heads_.split_heads(x, h) for x in (query, key, key))).weights

        controls = {
            "num_heads": choice("num_heads", [(f"{h}, so d_k = {d_model // h}", h) for h in counts], counts[-1])
        }
    else:
        fixed = plot.to_array(weights)
        if fixed.ndim != 3 or 0 in fixed.shape:
            raise ShapeError(
                f"heads takes weights (h, n_q, n_k), got shape {fixed.shape}. Fix: pick one sequence, weights[0]."
            )
        controls = {}

        def layer(h=None):
            return fixed

    cache = {}

    def all_heads(*h):
        if cache.get("h") != h:
            cache.update(h=h, maps=layer(*h), grid=None)
        return cache["maps"]

    def render(*values):
        *h, head = values
        maps = all_heads(*h)
        head = min(head, len(maps))
        title = "average of all heads" if head == 0 else f"head {head}"
        chosen = maps.mean(0) if head == 0 else maps[head - 1]
        top = colour_top(maps)
        large = svg.heatmap(chosen, title=title, queries=queries, keys=keys, attn_mask=attn_mask, vmax=top)
        if cache["grid"] is None:
            cache["grid"] = [
                svg.thumbnail(m, title=f"head {i}", side=SMALL, vmax=top) for i, m in enumerate(maps, start=1)
            ]
        framed = [
            f'<div style="outline:{3 if i == head else 0}px solid {plot.QUERY};padding:4px">{picture}</div>'
            for i, picture in enumerate(cache["grid"], start=1)
        ]
        grid = f'<div style="display:flex;flex-wrap:wrap;gap:6px;max-width:600px">{"".join(framed)}</div>'
        told = readings(chosen)
        if top < 1:
            told["colours end at"] = top
        return f"{panel([large], told)}{grid}", {title: chosen}

    def static():
        start = [control.value for control in list(controls.values())[:-1]]
        maps = layer(*start)
        told = [
            f"head {i}: " + ", ".join(f"{what} {x:.4f}" for what, x in readings(m).items())
            for i, m in enumerate(maps, start=1)
        ]
        figure = plot.head_grid(maps, queries=queries, keys=keys, attn_mask=attn_mask)
        return figure, "\n".join([f"The maps of {len(maps)} heads; run the cell to choose one.", *told])

    most = 16 if weights is None else len(fixed)
    controls["head"] = whole("head", 0, most, 1)
    return LiveView(controls, render, static, size=size)


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

    def render(text, head, module):
        tokens = tokenize(text)
        if not tokens:
            return "<div>Type a sentence: words and punctuation marks become tokens.</div>", {}
        weights = plot.to_array(attend[module](tokens))
        head = min(head, len(weights))
        title = f"average of {len(weights)} heads" if head == 0 else f"head {head}"
        chosen = weights.mean(0) if head == 0 else weights[head - 1]
        side = 300 if len(tokens) <= svg.CELLS else 460
        top = colour_top(chosen)
        picture = svg.heatmap(chosen, title=title, queries=tokens, keys=tokens, side=side, vmax=top)
        told = {"tokens": len(tokens), **readings(chosen)}
        if top < 1:
            told["colours end at"] = top
        return panel([picture], told), {title: chosen}

    def static():
        tokens = tokenize(text)[: svg.CELLS] or ["(empty)"]
        name = next(iter(attend))
        weights = plot.to_array(attend[name](tokens))
        told = [f"{len(weights)} heads of {name} on {len(tokens)} tokens; run the cell to type your own sentence."]
        told.append(svg.describe(weights[0], tokens, tokens, None))
        figure = plot.head_grid(weights, queries=tokens, keys=tokens)
        return figure, "\n".join(told)

    controls = {
        "text": widgets.Text(value=text, description="text", style=STYLE, layout=widgets.Layout(width="100%")),
        "head": whole("head", 0, len(plot.to_array(next(iter(attend.values()))(["a"]))), 1),
        "module": choice("module", list(attend)),
    }
    if len(attend) == 1:
        controls["module"].layout.display = "none"
    return LiveView(controls, render, static, size=size)


def colour_top(weights):
    """Return where the colour scale ends: at 1, or for many tokens, whose weights are all small, at the largest one."""
    return 1.0 if weights.shape[-1] <= svg.CELLS else float(weights.max())


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


def _dot_product(one, scale, allowed, i, j, queries, keys):
    """Return the lines that take one query and one key from their dot product to their weight."""
    q, k = one["query"][i], one["key"][j]
    terms = " + ".join(f"{a:.4g}*{b:.4g}" for a, b in zip(q[:TERMS], k[:TERMS], strict=True))
    terms += f" + ... ({len(q)} terms)" if len(q) > TERMS else ""
    score, scaled = one["scores"][i, j], one["scaled_scores"][i, j]
    root = math.isclose(scale, 1 / math.sqrt(len(q)), rel_tol=1e-6)
    how = f"{score:.4g}/sqrt({len(q)})" if root else f"{score:.4g} * {scale:.4g}"
    lines = [
        f"query {html.escape(queries[i])} . key {html.escape(keys[j])} = {terms} = {score:.4g}",
        f"{how} = {scaled:.4g}",
    ]
    if allowed is not None and not allowed[i, j]:
        return [*lines, "blocked: -inf"]
    return [*lines, f"softmax -&gt; {one['weights'][i, j]:.4f}"]


def _numbers(row):
    shown = ", ".join(f"{v:.4f}" for v in row[:TERMS])
    return shown + (", ..." if len(row) > TERMS else "")


def _pairs(labels):
    return [(f"{i}: {label}" if label != str(i) else label, i) for i, label in enumerate(labels)]


def _range(x):
    """Return the smallest and largest finite number, (0, 1) where there is none: every key may be blocked."""
    finite = x[np.isfinite(x)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
