"""Live views: controls that move a picture of attention.

A view is one persistent ``widgets.HTML`` that gets a new SVG string at each step. Beside it, its output holds a static
figure, which readers see where no kernel runs.
"""

from ..progress import progress
from .compare_view import compare
from .flow_view import flow
from .heads_view import heads
from .masks_view import masks
from .one_row_view import one_row
from .plane_view import plane
from .ribbons_view import ribbons
from .rotary_view import rotations
from .saturation_view import saturation
from .scaling_view import scaling
from .scores_view import scores
from .sentence_view import sentence
from .speaking_view import speaking
from .split_view import split_heads
from .view import LiveView
from .weights import dead_share, readings, weights_view
from .writing_view import writing

__all__ = [
    "LiveView",
    "compare",
    "dead_share",
    "flow",
    "heads",
    "masks",
    "one_row",
    "plane",
    "progress",
    "readings",
    "ribbons",
    "rotations",
    "saturation",
    "scaling",
    "scores",
    "sentence",
    "speaking",
    "split_heads",
    "weights_view",
    "writing",
]
