"""The torch twins: the same names, arguments, order and masks as in `attnlib.core` and `attnlib.heads`.

Masks may be torch tensors or NumPy arrays, so that ``al.causal_mask(5)`` can be passed as it is.
"""

from .attention import attention_trace, scaled_dot_product_attention
from .modules import KVCache, MultiHeadAttention, SelfAttention

__all__ = ["KVCache", "MultiHeadAttention", "SelfAttention", "attention_trace", "scaled_dot_product_attention"]
