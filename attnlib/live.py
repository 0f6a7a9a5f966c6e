"""Live views: sliders that move a picture of attention weights.

A view is one persistent ``widgets.HTML`` that gets a new SVG string at each slider step. Beside it, its output holds
a static figure over several slider values, which readers see where no kernel runs.
"""

import html
import numbers
import traceback

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
from IPython import get_ipython
from IPython.core.pylabtools import print_figure
from IPython.display import display

from . import core, masks, plot, svg
from .validation import ShapeError

# The static figure is there for readers without a kernel; while the view lives, its output steps aside. The class
# names are JupyterLab's and Notebook 7's, then the classic notebook's.
HIDE_STILL = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .attnlib-live){display:none}"
    ".output_area:has(+ .output_area .attnlib-live){display:none}</style>"
)
DEAD = 1e-3  # a query whose gradients on the scores are all smaller than this learns almost nothing


def weights_view(
    weights_at, *, still, row=None, queries=None, keys=None, attn_mask=None, upstream=None, trained=False, **slider
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
    **slider : (int, int) or sequence
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
    if len(slider) != 1:
        raise ValueError(
            f"weights_view takes exactly one slider, got {sorted(slider)}. "
            "Fix: weights_view(weights_at, still=(1, 128), d_k=(1, 128))."
        )
    ((name, values),) = slider.items()

    def panels(value):
        return {title: _weights(title, weights) for title, weights in weights_at(value).items()}

    def render(value):
        shown = panels(value)
        figures = []
        for title, weights in shown.items():
            mask = None if attn_mask is None else np.broadcast_to(attn_mask, weights.shape)
            drawings = []
            if len(weights) > 1:
                drawings.append(
                    svg.heatmap(weights, title=title, queries=queries, keys=keys, attn_mask=mask, highlight=row)
                )
            if len(weights) == 1 or row is not None:
                i = row or 0
                text = title if len(weights) == 1 else f"query {i if queries is None else queries[i]}"
                blocked = None if mask is None else mask[i]
                drawings.append(svg.bars(weights[i], title=text, keys=keys, attn_mask=blocked))
            figures.append(_panel(drawings, readings(weights, upstream)))
        return "".join(figures), shown

    def static():
        columns = {value: panels(value) for value in still}
        titles = list(columns[still[0]])
        text = [f"The picture at {name} = {', '.join(map(str, still))}; run the cell for a slider."]
        for value, shown in columns.items() if not trained else ():
            for title, weights in shown.items():
                told = ", ".join(f"{what} {_format(what, x)}" for what, x in readings(weights, upstream).items())
                text.append(f"{name} = {value}, {title}: {told}")
        maps = np.stack([columns[value][title] for title in titles for value in still])
        titles = [f"{title}\n{name} = {value}" for title in titles for value in still]
        if maps.shape[1] == 1:
            figure = plot.bar_grid(maps[:, 0], titles=titles, keys=keys, columns=len(still))
        else:
            figure = plot.head_grid(
                maps, titles=titles, queries=queries, keys=keys, attn_mask=attn_mask, columns=len(still)
            )
        return figure, "\n".join(text)

    return LiveView({name: _slider(name, values, still)}, render, static)


def scaling(n=8, *, d_k=(1, 512), still=None, seed=0, attn_mask=None, row=0):
    """Show what dividing by sqrt(d_k) does: unscaled beside scaled weights of unit-normal queries and keys.

    The vectors are nested: n queries and keys are drawn once with the largest d_k, and the slider takes their first
    d_k entries, so that the picture moves continuously.

    Parameters
    ----------
    n : int
        Number of tokens.
    d_k : (int, int)
        Range of the slider.
    still : sequence of int, optional
        d_k of the static figure; by default both ends of the range, and 8 and 64 where they lie between.
    seed : int
    attn_mask : ndarray of bool, (n, n), optional
        True = may attend.
    row : int or None
        The query whose weights are drawn as bars.

    Returns
    -------
    LiveView

    Examples
    --------
    >>> view = scaling(n=4)
    >>> view.sliders["d_k"].value = 512
    >>> bool(view.shown["not scaled"].max() > view.shown["divided by sqrt(d_k)"].max())
    True
    """
    low, high = d_k
    if still is None:
        still = (low, *(d for d in (8, 64) if low < d < high), high)
    rng = np.random.default_rng(seed)
    query, key, upstream = rng.normal(size=(n, high)), rng.normal(size=(n, high)), rng.normal(size=(n, n))

    def weights_at(d_k):
        scores = query[:, :d_k] @ key[:, :d_k].T  # (n, n)
        return {
            "not scaled": core.softmax(masks.apply_mask(scores, attn_mask)),
            "divided by sqrt(d_k)": core.softmax(masks.apply_mask(scores / np.sqrt(d_k), attn_mask)),
        }

    return weights_view(weights_at, d_k=d_k, still=still, row=row, attn_mask=attn_mask, upstream=upstream)


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


def progress(iterable, description=""):
    """Return `iterable` with a progress bar in the notebook.

    tqdm's own display call also writes the bar as text, with times that differ from run to run; this shows the widget
    alone, so that a saved notebook stays the same.

    Examples
    --------
    >>> sum(progress([1, 2, 3], "adding"))
    6
    """
    from tqdm.notebook import tqdm

    bar = tqdm(iterable, desc=description, display=False)
    _display_widget(bar.container)
    return bar


class LiveView(widgets.VBox):
    """Controls above one picture; made by the functions of this module.

    Parameters
    ----------
    sliders : dict of str to widget
        Anything with a `value`.
    render : callable
        Called with the values of the sliders in order; returns (html, shown).
    still : callable
        Returns (Figure, text) for readers without a kernel.

    Attributes
    ----------
    sliders : dict of str to widget
    shown : dict of str to ndarray
        What the picture shows now, by title.
    picture : widgets.HTML
    """

    def __init__(self, sliders, render, still):
        self.sliders, self.shown = sliders, {}
        self.picture = widgets.HTML()
        self._render, self._still = render, still
        for slider in sliders.values():
            slider.observe(self._update, "value")
        super().__init__([*sliders.values(), self.picture])
        self._update()

    def _update(self, change=None):
        try:
            content, self.shown = self._render(*(slider.value for slider in self.sliders.values()))
        except Exception:
            # Jupyter drops what a callback raises: without this the picture would just stand still.
            content = f"<pre>{html.escape(traceback.format_exc(limit=-2))}</pre>"
        self.picture.value = (
            f'{HIDE_STILL}<div class="attnlib-live" style="display:flex;flex-wrap:wrap;gap:8px 32px;'
            f'line-height:1.4">{content}</div>'
        )

    def _ipython_display_(self, **kwargs):
        figure, text = self._still()
        png = print_figure(figure, "png", base64=True, dpi=72)
        plt.close(figure)
        display({"image/png": png, "text/plain": text}, raw=True)
        _display_widget(self)


def _display_widget(widget):
    # Only the widget type, without a text/plain of the widget's repr: that says nothing to a reader. raw=True because
    # ipywidgets 7 does not use _repr_mimebundle_.
    if get_ipython() is None:
        return
    mime = "application/vnd.jupyter.widget-view+json"
    display({mime: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}, raw=True)


def _slider(name, values, still):
    style, layout = {"description_width": "initial"}, widgets.Layout(width="420px", max_width="100%")
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, numbers.Integral) for v in values):
        low, high = values
        outside = [v for v in still if not low <= v <= high]
        slider = widgets.IntSlider(min=low, max=high, value=still[0], description=name, style=style, layout=layout)
    else:
        choices = [v[1] if isinstance(v, tuple) else v for v in values]
        outside = [v for v in still if v not in choices]
        slider = widgets.SelectionSlider(options=list(values), description=name, style=style, layout=layout)
    if outside:
        raise ValueError(f"still must lie in the slider's range {values}, got {outside}. Fix: drop these values.")
    return slider


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
    return f"{value:.0%}" if what == "dead queries" else f"{value:.4f}"


def _panel(drawings, told):
    caption = " &nbsp; ".join(f"{what} <b>{_format(what, value)}</b>" for what, value in told.items())
    return (
        '<figure style="margin:0;max-width:100%;display:flex;flex-direction:column">'
        f"{''.join(drawings)}<figcaption>{caption}</figcaption></figure>"
    )
