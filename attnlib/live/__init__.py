"""Live views: controls that move a picture of attention.

flow          one whole attention call, with the arithmetic of a chosen query, key and feature
weights_view  maps that depend on d_k or on another number, with a slider for each
one_row       one row of attention, from the query to the vector plus what it takes, stage by stage
scores        how far scores spread as d_k grows, and what softmax makes of them
saturation    where softmax goes flat
plane         attention in two dimensions: an arrow, points, their average
masks         who may look where
head_arrows   what each head of a layer adds to a vector, tip to tail
split_heads   where each feature goes when heads are split and merged
keys_map      keys kept in fewer bits, and whom a query then looks at
price         loss against bytes a token, and what a model writes for it
tiles         attention tile by tile, and what each row carries along
sentence      where the heads of a model look in a sentence that the reader types
grid          all heads of a model that was watched, and the map of one
ribbons       where a word looks, and the next word, at each d_k
writing       a model that writes, word by word
speaking      what a model writes at each d_k, and its loss
rotations     queries and keys that rotate with their position
compare       what is wanted beside what there is, on a typed text

Each returns a LiveView, an ipywidgets VBox. Beside them, progress is a bar for loops, readings the numbers of a map.
"""

from ..progress import progress
from .compare_view import compare
from .flow_view import flow
from .grid_view import grid
from .head_arrows_view import head_arrows
from .keys_view import keys_map
from .masks_view import masks
from .one_row_view import one_row
from .plane_view import plane
from .price_view import price
from .ribbons_view import ribbons
from .rotary_view import rotations
from .saturation_view import saturation
from .scores_view import scores
from .sentence_view import sentence
from .speaking_view import speaking
from .split_view import split_heads
from .tiles_view import tiles
from .view import LiveView
from .weights import readings, weights_view
from .writing_view import writing

__all__ = [
    "LiveView",
    "compare",
    "flow",
    "grid",
    "head_arrows",
    "keys_map",
    "masks",
    "one_row",
    "plane",
    "price",
    "progress",
    "readings",
    "ribbons",
    "rotations",
    "saturation",
    "scores",
    "sentence",
    "speaking",
    "split_heads",
    "tiles",
    "weights_view",
    "writing",
]
