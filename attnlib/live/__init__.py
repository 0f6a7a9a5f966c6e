"""Live views: controls that move a picture of attention.

A view is one persistent ``widgets.HTML`` that gets a new SVG string at each step. Beside it, its output holds a static
figure, which readers see where no kernel runs.
"""

from .explore import heads, masks, sentence, trace
from .view import LiveView, progress
from .weights import dead_share, readings, scaling, weights_view

__all__ = [
    "LiveView",
    "dead_share",
    "heads",
    "masks",
    "progress",
    "readings",
    "scaling",
    "sentence",
    "trace",
    "weights_view",
]
