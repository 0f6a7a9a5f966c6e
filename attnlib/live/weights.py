"""Views of attention weights that depend on d_k (or on another number), and the numbers they tell."""

from functools import lru_cache

import numpy as np

from .. import core, plot, svg
from ..validation import ShapeError
from .view import LiveView, choice, slider, whole

DEAD = 1e-3  # a query whose gradients on the scores are all smaller than this learns almost nothing


def weights_view(
    weights_at,
    *,
    still,
    row=None,
    queries=None,
    keys=None,
    attn_mask=None,
    upstream=None,
    trained=False,
    size=1.0,
    **values,
):
    """Show attention weights that depend on one number, with a slider for it.

    Parameters
    ----------
    weights_at : callable
        Called with the slider's value; returns {title: weights}, weights (n_q, n_k). Maps with one row are drawn as
        bars, others as heatmaps.
    still : sequence
        The slider values of the static figure.
    row : int, optional
        A query whose weights are drawn as bars, too.
    queries, keys : sequence of str, optional
        Token labels.
    attn_mask : ndarray of bool, (n_q, n_k), optional
        True = may attend; other cells are hatched.
    upstream : ndarray, (n_q, n_k), optional
        A gradient on the weights. With it the view also tells the share of dead queries, see `dead_share`.
    trained : bool
        The weights come out of training, whose last digits differ from machine to machine: leave the numbers out of
        the text that stands for the static figure. The live picture shows them.
    size : float
        1.5 enlarges the picture for a projector.
    **values : (int, int) or sequence
        Exactly one; its name is the slider's label. A pair (lowest, highest) makes a slider over whole numbers,
        ``d_k=(1, 128)``. A list makes one over just those values, or over (text, value) pairs,
        ``num_heads=[("1, d_k = 8", 1), ("2, d_k = 4", 2)]``.

    Returns
    -------
    LiveView
        An ipywidgets VBox; show it by naming it on the last line of a cell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> query, key = rng.normal(size=(2, 4, 64))
    >>> def weights_at(d_k):
    ...     return {"not scaled": core.softmax(query[:, :d_k] @ key[:, :d_k].T)}
    >>> view = weights_view(weights_at, d_k=(1, 64), still=(1, 64))
    >>> view.sliders["d_k"].value = 64
    >>> view.shown["not scaled"].shape
    (4, 4)
    """
    if len(values) != 1:
        raise ValueError(
            f"weights_view takes exactly one slider, got {sorted(values)}. "
            "Fix: weights_view(weights_at, still=(1, 128), d_k=(1, 128))."
        )
    ((name, values),) = values.items()

    def panels(value):
        return {title: _weights(title, weights) for title, weights in weights_at(value).items()}

    labels = {"queries": queries, "keys": keys, "attn_mask": attn_mask}

    def render(value):
        shown = panels(value)
        return draw_maps(shown, row=row, upstream=upstream, **labels), shown

    def static():
        figure, text = draw_static(name, {value: panels(value) for value in still}, upstream=upstream, **labels)
        return figure, text.splitlines()[0] if trained else text

    return LiveView({name: slider(name, values, still)}, render, static, size=size)


def scaling(n=8, *, d_k=(1, 512), still=None, seed=0, row=0, size=1.0):
    """Show what dividing by sqrt(d_k) does: unscaled beside scaled weights of unit-normal queries and keys.

    The vectors are nested: 64 queries and keys are drawn once with the largest d_k. The sliders take the first tokens
    and their first d_k entries, so that the picture moves continuously.

    Parameters
    ----------
    n : int
        Number of tokens at the start, 2 to 64.
    d_k : (int, int)
        Range of the slider.
    still : sequence of int, optional
        d_k of the static figure; by default both ends of the range, and 8 and 64 where they lie between.
    seed : int
        The first draw; the slider "draw" makes others.
    row : int or None
        The query whose weights are drawn as bars.
    size : float
        1.5 enlarges the picture for a projector.

    Returns
    -------
    LiveView
        Controls: d_k, tokens, maps (both, or one of them), draw.

    Examples
    --------
    >>> view = scaling(n=4)
    >>> view.sliders["d_k"].value = 512
    >>> bool(view.shown["not scaled"].max() > view.shown["divided by sqrt(d_k)"].max())
    True
    """
    low, high = d_k
    if not 2 <= n <= 64:
        raise ValueError(f"n must lie between 2 and 64 tokens, got {n}. Fix: scaling(n=8).")
    if still is None:
        still = (low, *(d for d in (8, 64) if low < d < high), high)
    grid = [low, *(2**e for e in range(1, 20) if low < 2**e < high), high]

    @lru_cache(maxsize=4)
    def vectors(seed):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(64, high)), rng.normal(size=(64, high)), rng.normal(size=(64, 64))

    def weights_at(d_k, n, seed):
        query, key, _ = vectors(seed)
        scores = query[:n, :d_k] @ key[:n, :d_k].T  # (n, n)
        return {"not scaled": core.softmax(scores), "divided by sqrt(d_k)": core.softmax(scores / np.sqrt(d_k))}

    @lru_cache(maxsize=16)
    def largest(n, seed):
        at = [weights_at(d, n, seed) for d in grid]
        return {title: [float(shown[title].max(-1).mean()) for shown in at] for title in at[0]}

    def render(d_k, n, maps, seed):
        shown = weights_at(d_k, n, seed)
        if maps != "both":
            shown = {maps: shown[maps]}
        framed = None if row is None else min(row, n - 1)
        pictures = draw_maps(shown, row=framed, upstream=vectors(seed)[2][:n, :n])
        line = svg.curve(grid, largest(n, seed), mark=d_k, title="largest weight", x_name="d_k")
        return f"{pictures}<div>{line}</div>", shown

    def static():
        return draw_static("d_k", {d: weights_at(d, n, seed) for d in still}, upstream=vectors(seed)[2][:n, :n])

    controls = {
        "d_k": whole("d_k", low, high, still[0]),
        "tokens": whole("tokens", 2, 64, n),
        "maps": choice("maps", ["both", "not scaled", "divided by sqrt(d_k)"]),
        "draw": whole("draw", seed, seed + 20, seed),
    }
    return LiveView(controls, render, static, size=size)


def draw_maps(shown, *, queries=None, keys=None, attn_mask=None, row=None, upstream=None):
    """Return a panel per title: a map (bars if it has one row), the bars of query `row`, and the readings below."""
    figures = []
    for title, weights in shown.items():
        mask = None if attn_mask is None else np.broadcast_to(attn_mask, weights.shape)
        drawings = []
        if len(weights) > 1:
            drawings.append(svg.heatmap(weights, title=title, queries=queries, keys=keys, attn_mask=mask, row=row))
        if len(weights) == 1 or row is not None:
            i = row or 0
            text = title if len(weights) == 1 else f"query {i if queries is None else queries[i]}"
            blocked = None if mask is None else mask[i]
            drawings.append(svg.bars(weights[i], title=text, keys=keys, attn_mask=blocked))
        figures.append(panel(drawings, readings(weights, upstream)))
    return "".join(figures)


def draw_static(name, columns, *, queries=None, keys=None, attn_mask=None, upstream=None):
    """Return (Figure, text) with a column of maps per slider value; `columns` is {value: {title: weights}}."""
    titles = list(next(iter(columns.values())))
    text = [f"The picture at {name} = {', '.join(map(str, columns))}; run the cell for a slider."]
    for value, shown in columns.items():
        for title, weights in shown.items():
            told = ", ".join(f"{what} {_format(what, x)}" for what, x in readings(weights, upstream).items())
            text.append(f"{name} = {value}, {title}: {told}")
    maps = np.stack([columns[value][title] for title in titles for value in columns])
    titles = [f"{title}\n{name} = {value}" for title in titles for value in columns]
    if maps.shape[1] == 1:
        figure = plot.bar_grid(maps[:, 0], titles=titles, keys=keys, columns=len(columns))
    else:
        figure = plot.head_grid(
            maps, titles=titles, queries=queries, keys=keys, attn_mask=attn_mask, columns=len(columns)
        )
    return figure, "\n".join(text)


def dead_share(weights, upstream):
    """Return the share of queries through which almost no gradient reaches the scores.

    dL/dscores_j = w_j (g_j - sum_k w_k g_k), g = `upstream` = dL/dweights

    A query is dead if all its |dL/dscores_j| < 0.001.

    Parameters
    ----------
    weights, upstream : ndarray, (..., n_q, n_k)

    Returns
    -------
    float
        0 to 1.

    Notes
    -----
    Derived in notebook 03.

    Examples
    --------
    >>> dead_share(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]]))
    0.5
    """
    gradient = weights * (upstream - (weights * upstream).sum(-1, keepdims=True))
    return float((np.abs(gradient) < DEAD).all(-1).mean())


def readings(weights, upstream=None):
    """Return what a view tells in numbers: {name: value}, each a mean over the queries.

    Examples
    --------
    >>> readings(np.array([[0.5, 0.5], [1.0, 0.0]]))["largest weight"]
    0.75
    """
    told = {
        "largest weight": float(weights.max(-1).mean()),
        "entropy (nats)": float(core.entropy(weights).mean()),
    }
    if upstream is not None:
        told["dead queries"] = dead_share(weights, upstream)
    return told


def _weights(title, weights):
    weights = plot.to_array(weights)
    if weights.ndim == 1:
        weights = weights[None]
    if weights.ndim != 2 or weights.size == 0:
        raise ShapeError(
            f"weights of {title!r} must be (n_q, n_k), got shape {weights.shape}. Fix: pick one head and one sequence."
        )
    return weights


def _format(what, value):
    if isinstance(value, int):
        return str(value)
    return f"{value:.0%}" if what == "dead queries" else f"{value:.4f}"


def panel(drawings, told):
    """Return drawings below each other, and numbers below them, as one <figure>."""
    caption = " &nbsp; ".join(
        f'<span style="white-space:nowrap">{what} <b>{_format(what, value)}</b></span>' for what, value in told.items()
    )
    return (
        '<figure style="margin:0;max-width:100%;display:flex;flex-direction:column">'
        f"{''.join(drawings)}"
        # Wrapped to the width of the drawings, so that two panels fit beside each other.
        f'<figcaption style="width:0;min-width:100%">{caption}</figcaption></figure>'
    )
