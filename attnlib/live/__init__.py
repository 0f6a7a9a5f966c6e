"""Live views: controls that move a picture of attention.

A view is one persistent ``widgets.HTML`` that gets a new SVG string at each step. Beside it, its output holds a static
figure, which readers see where no kernel runs.
"""

from ..progress import progress
from .heads_view import heads
from .masks_view import masks
from .scaling_view import scaling
from .sentence_view import sentence
from .trace_view import trace
from .view import LiveView
from .weights import dead_share, readings, weights_view

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
