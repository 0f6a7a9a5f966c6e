"""attnlib: the mathematics of attention, small enough to read.

``import attnlib as al`` loads NumPy and nothing heavier. Import the other parts by name when you
need them: ``attnlib.torch_layers`` (torch), ``attnlib.plot`` (matplotlib), ``attnlib.live``
(ipywidgets).
"""

from .core import AttentionTrace, attention_trace, entropy, scaled_dot_product_attention, softmax
from .heads import KVCache, MultiHeadAttention, merge_heads, split_heads
from .masks import causal_mask, combine_masks, from_zero_blocked, padding_mask, to_additive, to_blocked
from .rotary import rope
from .validation import ShapeError

__version__ = "0.3.0"

__all__ = [
    "AttentionTrace",
    "KVCache",
    "MultiHeadAttention",
    "ShapeError",
    "attention_trace",
    "causal_mask",
    "combine_masks",
    "entropy",
    "from_zero_blocked",
    "merge_heads",
    "padding_mask",
    "rope",
    "scaled_dot_product_attention",
    "softmax",
    "split_heads",
    "to_additive",
    "to_blocked",
]
