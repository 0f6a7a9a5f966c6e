"""What all live views share: the widget, its controls, and how it shows itself with and without a kernel."""

import html
import numbers
import traceback

import ipywidgets as widgets
import matplotlib.pyplot as plt
from IPython import get_ipython
from IPython.core.pylabtools import print_figure
from IPython.display import display

# The static figure is there for readers without a kernel; while the view lives, its output steps aside. The class
# names are JupyterLab's and Notebook 7's, then the classic notebook's.
HIDE_STILL = (
    "<style>.jp-OutputArea-child:has(+ .jp-OutputArea-child .attnlib-live){display:none}"
    ".output_area:has(+ .output_area .attnlib-live){display:none}</style>"
)
STYLE = {"description_width": "initial"}

# ipywidgets gives its sliders no accessible name: a screen reader would say "slider, 64" and not which. This copies the
# visible label onto the handle, once the front end has made it.
NAME_SLIDERS = """<style onload="const box = this.closest('.widget-vbox'); let tries = 0;
const timer = setInterval(() => { box.querySelectorAll('.widget-label').forEach(label =>
label.parentElement.querySelectorAll('.noUi-handle, .ui-slider-handle').forEach(handle =>
handle.setAttribute('aria-label', label.textContent))); if (++tries > 20) clearInterval(timer); }, 200)"></style>"""


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
    size : float
        1.5 enlarges the picture for a projector.

    Attributes
    ----------
    sliders : dict of str to widget
    shown : dict of str to ndarray
        What the picture shows now, by title.
    picture : widgets.HTML
    """

    def __init__(self, sliders, render, still, size=1.0):
        self.sliders, self.shown = sliders, {}
        self.picture = widgets.HTML()
        self._render, self._still, self._size = render, still, size
        for slider in sliders.values():
            slider.observe(self._update, "value")
        names = widgets.HTML(NAME_SLIDERS, layout=widgets.Layout(display="none"))
        super().__init__([*sliders.values(), self.picture, names])
        self._update()

    def _update(self, change=None):
        try:
            content, self.shown = self._render(*(slider.value for slider in self.sliders.values()))
        except Exception:
            # Jupyter drops what a callback raises: without this the picture would just stand still.
            content = f"<pre>{html.escape(traceback.format_exc(limit=-2))}</pre>"
        self.picture.value = (
            f'{HIDE_STILL}<div class="attnlib-live" style="display:flex;flex-wrap:wrap;gap:8px 32px;'
            f'line-height:1.4;zoom:{self._size}">{content}</div>'
        )

    def _ipython_display_(self, **kwargs):
        figure, text = self._still()
        png = print_figure(figure, "png", base64=True, dpi=72)
        plt.close(figure)
        display({"image/png": png, "text/plain": text}, raw=True)
        _display_widget(self)


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


def whole(name, low, high, value):
    """Return a slider over whole numbers."""
    return widgets.IntSlider(min=low, max=high, value=value, description=name, style=STYLE, layout=_wide())


def choice(name, options, value=None):
    """Return a slider over given values, or over (text, value) pairs."""
    options = list(options)
    first = options[0][1] if isinstance(options[0], tuple) else options[0]
    return widgets.SelectionSlider(
        options=options, value=first if value is None else value, description=name, style=STYLE, layout=_wide()
    )


def slider(name, values, still):
    """Return a slider over (low, high) or over a list of values; it starts at the first static value."""
    if isinstance(values, tuple) and len(values) == 2 and all(isinstance(v, numbers.Integral) for v in values):
        low, high = values
        outside = [v for v in still if not low <= v <= high]
        control = whole(name, low, high, still[0])
    else:
        choices = [v[1] if isinstance(v, tuple) else v for v in values]
        outside = [v for v in still if v not in choices]
        control = choice(name, values)
    if outside:
        raise ValueError(f"still must lie in the slider's range {values}, got {outside}. Fix: drop these values.")
    return control


def _wide():
    return widgets.Layout(width="420px", max_width="100%")


def _display_widget(widget):
    # Only the widget type, without a text/plain of the widget's repr: that says nothing to a reader. raw=True because
    # ipywidgets 7 does not use _repr_mimebundle_.
    if get_ipython() is None:
        return
    mime = "application/vnd.jupyter.widget-view+json"
    display({mime: {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}}, raw=True)
