"""The layers that learn: one head, and several."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from .. import heads, masks, validation
from .attention import attend
from .inputs import layer_input, mask_tensor, with_causal


class KVCache(heads.KVCache):
    """The keys and values of all tokens so far, of one layer and one batch of sequences; see `attnlib.KVCache`.

    Attributes
    ----------
    key, value : Tensor, (..., num_kv_heads, n, d_k), or None before the first token

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> mha, x, cache = MultiHeadAttention(8, 2), torch.randn(1, 5, 8), KVCache()
    >>> steps = [mha(token, is_causal=True, cache=cache)[0] for token in x.split(1, dim=1)]
    >>> len(cache), torch.allclose(torch.cat(steps, 1), mha(x, is_causal=True)[0], atol=1e-6)
    (5, True)
    """

    _kind = torch.Tensor
    _join = staticmethod(lambda old, new: torch.cat([old, new], dim=-2))


class SelfAttention(nn.Module):
    """One head of self-attention: Q = X W_Q, K = X W_K, V = X W_V, output = softmax(Q K^T / sqrt(d_k)) V.

    Parameters
    ----------
    d_in : int
        Features of a token.
    d_k : int
        Features of queries and keys.
    d_v : int, optional
        Features of values and output; d_k by default.
    bias : bool
        Give the three projections a bias.

    Attributes
    ----------
    W_Q, W_K, W_V : nn.Linear
        Their `.weight` is (out, in): the transpose of the W in the formula.

    Notes
    -----
    Derived in the notebook "PyTorch module". Source: Vaswani et al. 2017, section 3.2.1.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> output, weights = SelfAttention(4, 3)(torch.ones(2, 5, 4))
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 3]), torch.Size([2, 5, 5]))
    """

    def __init__(self, d_in: int, d_k: int, d_v: int | None = None, *, bias: bool = False) -> None:
        super().__init__()
        self.d_in: int = validation.positive_int(d_in, "d_in")
        self.d_k: int = validation.positive_int(d_k, "d_k")
        self.d_v: int = self.d_k if d_v is None else validation.positive_int(d_v, "d_v")
        self.W_Q: nn.Linear = nn.Linear(d_in, self.d_k, bias=bias)
        self.W_K: nn.Linear = nn.Linear(d_in, self.d_k, bias=bias)
        self.W_V: nn.Linear = nn.Linear(d_in, self.d_v, bias=bias)

    def forward(
        self,
        x: Tensor,
        *,
        attn_mask: Tensor | np.ndarray | None = None,
        is_causal: bool = False,
        need_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend within one sequence.

        Parameters
        ----------
        x : Tensor, (..., n, d_in)
        attn_mask : Tensor or ndarray, bool or float, optional
            True = may attend.
        is_causal, need_weights : bool

        Returns
        -------
        output : Tensor, (..., n, d_v)
        weights : Tensor, (..., n, n), or None if `need_weights` is False (then torch's fused kernel runs)
        """
        layer_input(x, "x", self.W_Q)
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        return attend(q, k, v, attn_mask, is_causal, need_weights)


class MultiHeadAttention(nn.Module):
    """Multi-head attention; see `attnlib.MultiHeadAttention` for the formula.

    Parameters
    ----------
    embed_dim : int
        d_model, the width of query and output.
    num_heads : int
        h; must divide embed_dim. d_k = d_v = embed_dim / num_heads, and scores are divided by sqrt(d_k).
    kdim, vdim : int, optional
        Width of key and value inputs; embed_dim by default.
    bias : bool
        Give the four projections a bias (they start at 0).
    num_kv_heads : int, optional
        Heads of keys and values, h by default; must divide h. Each then serves h / num_kv_heads heads of queries, side
        by side: head i uses number i // (h / num_kv_heads). 1 is called multi-query attention, between 1 and h grouped.

    Attributes
    ----------
    W_Q, W_K, W_V, W_O : nn.Linear
        Their `.weight` is (out, in): the transpose of the W in the formula. Xavier-uniform at the start. W_K and W_V
        have num_kv_heads * d_k outputs.

    Notes
    -----
    Derived in the notebook "multi-head"; fewer heads of keys and values, and the cache, in the notebook "one token at a
    time". Source: Vaswani et al. 2017, section 3.2.2. Names in other libraries: nn.MultiheadAttention packs W_Q, W_K,
    W_V into `in_proj_weight` and calls W_O `out_proj`; its boolean masks say True = blocked; it has the batch second
    unless batch_first=True.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> output, weights = MultiHeadAttention(8, 2)(torch.ones(3, 5, 8))
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        num_kv_heads: int | None = None,
    ) -> None:
        super().__init__()
        self.d_k: int = validation.head_dim(embed_dim, num_heads)
        self.embed_dim: int = int(embed_dim)
        self.num_heads: int = int(num_heads)
        self.num_kv_heads: int = validation.key_value_heads(num_heads, num_kv_heads)
        self.kdim: int = self.embed_dim if kdim is None else validation.positive_int(kdim, "kdim")
        self.vdim: int = self.embed_dim if vdim is None else validation.positive_int(vdim, "vdim")
        self.W_Q: nn.Linear = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_K: nn.Linear = nn.Linear(self.kdim, self.num_kv_heads * self.d_k, bias=bias)
        self.W_V: nn.Linear = nn.Linear(self.vdim, self.num_kv_heads * self.d_k, bias=bias)
        self.W_O: nn.Linear = nn.Linear(embed_dim, embed_dim, bias=bias)
        for linear in self._projections():
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def _projections(self):
        return self.W_Q, self.W_K, self.W_V, self.W_O

    def _matrices(self):
        """Return the four weights, and the biases if there are any."""
        biases = [linear.bias for linear in self._projections() if linear.bias is not None]
        return [*(linear.weight for linear in self._projections()), *biases]

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        attn_mask: Tensor | np.ndarray | None = None,
        is_causal: bool = False,
        need_weights: bool = True,
        average_attn_weights: bool = False,
        cache: KVCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in every head and merge.

        Parameters
        ----------
        query : Tensor, (..., n_q, embed_dim)
        key : Tensor, (..., n_k, kdim), optional
            The query by default: self-attention.
        value : Tensor, (..., n_k, vdim), optional
            The key by default.
        attn_mask : Tensor or ndarray, bool or float, optional
            True = may attend. (n_q, n_k); or (..., n_q, n_k) without a head axis, for all heads alike; or
            (..., h, n_q, n_k).
        is_causal : bool
            Combined with `attn_mask`; needs n_q = n_k, unless a cache says that the queries continue its tokens.
        need_weights : bool
            False takes torch's fused kernel, which never stores an n_q x n_k array.
        average_attn_weights : bool
            Average the weights over the heads.
        cache : KVCache, optional
            Keys and values of the tokens before; those of `query` are appended. n_k then counts all of them, in
            `attn_mask` and the weights too.

        Returns
        -------
        output : Tensor, (..., n_q, embed_dim)
        weights : Tensor, (..., h, n_q, n_k), or (..., n_q, n_k) averaged, or None
        """
        key = query if key is None else key
        value = key if value is None else value
        before = 0 if cache is None else heads.tokens_in(cache, KVCache, self, query, key, value)
        q = self._project(query, "query", self.W_Q)  # (..., h, n_q, d_k)
        k = self._project(key, "key", self.W_K)  # (..., num_kv_heads, n_k, d_k)
        v = self._project(value, "value", self.W_V)  # (..., num_kv_heads, n_k, d_k)
        if cache is not None:
            k, v = cache.append(k, v)
        if self.num_kv_heads < self.num_heads:
            k, v = (x.repeat_interleave(self.num_heads // self.num_kv_heads, -3) for x in (k, v))
        if attn_mask is not None:
            shape = validation.attention_shapes(q.shape, k.shape, v.shape)
            attn_mask = heads.add_head_axis(mask_tensor(attn_mask, q.device), shape)
        if validation.flag(is_causal, "is_causal") and before:  # the queries are the last tokens
            causal = masks.causal_mask(q.shape[-2], k.shape[-2], align="lower_right")
            attn_mask, is_causal = with_causal(attn_mask, causal, q.device), False
        output, weights = attend(q, k, v, attn_mask, is_causal, need_weights)
        projected = self.W_O(output.transpose(-2, -3).flatten(-2))  # (..., n_q, embed_dim)
        if weights is not None and average_attn_weights:
            weights = weights.mean(-3)
        return projected, weights

    def _project(self, x, name, linear):
        """Project, and split into heads."""
        layer_input(x, name, linear)
        return linear(x).unflatten(-1, (-1, self.d_k)).transpose(-2, -3)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> MultiHeadAttention:
        """Copy the weights of an nn.MultiheadAttention; the outputs are equal.

        Ours always has the batch first. Raises ValueError for what has no counterpart here: dropout, bias_k / bias_v,
        add_zero_attn.
        """
        if not isinstance(module, nn.MultiheadAttention):
            raise TypeError(
                f"from_torch takes an nn.MultiheadAttention, got {type(module).__name__}. "
                "Fix: pass the attention module itself, for example encoder_layer.self_attn."
            )
        for name, set_ in (
            ("dropout", module.dropout != 0),
            ("add_bias_kv", module.bias_k is not None),
            ("add_zero_attn", module.add_zero_attn),
        ):
            if set_:
                raise ValueError(
                    f"from_torch cannot carry over {name}: expected it off, got {getattr(module, name, True)}. "
                    f"Fix: make the module without {name}; outputs would differ otherwise."
                )
        bias = module.in_proj_bias is not None
        ours = cls(module.embed_dim, module.num_heads, kdim=module.kdim, vdim=module.vdim, bias=bias)
        ours.to(module.out_proj.weight)
        with torch.no_grad():
            for own, other in zip(ours._matrices(), _matrices_of_torch(module), strict=True):
                own.copy_(other)
        return ours.train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Return an nn.MultiheadAttention (batch_first=True) with copies of these weights; the outputs are equal.

        Its boolean masks have the opposite polarity: pass ``~attn_mask``, or `attnlib.to_blocked` of a NumPy mask.
        Raises ValueError for fewer heads of keys and values than of queries, which it does not have.
        """
        if self.num_kv_heads != self.num_heads:
            raise ValueError(
                "to_torch cannot carry over num_kv_heads: nn.MultiheadAttention has as many heads of keys and values "
                f"as of queries, expected {self.num_heads}, got {self.num_kv_heads}. "
                "Fix: F.scaled_dot_product_attention with enable_gqa=True takes grouped heads."
            )
        bias = self.W_O.bias is not None
        theirs = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, bias=bias, kdim=self.kdim, vdim=self.vdim, batch_first=True
        ).to(self.W_O.weight)
        with torch.no_grad():
            for other, own in zip(_matrices_of_torch(theirs), self._matrices(), strict=True):
                other.copy_(own)
        return theirs.train(self.training)

    def to_numpy(self) -> heads.MultiHeadAttention:
        """Return the NumPy twin, `attnlib.MultiHeadAttention`, with copies of these weights as (in, out).

        NumPy has no bfloat16: such weights become float32, which holds each of them exactly.
        """
        bias = self.W_O.bias is not None
        widths = {"kdim": self.kdim, "vdim": self.vdim, "num_kv_heads": self.num_kv_heads}
        twin = heads.MultiHeadAttention(self.embed_dim, self.num_heads, bias=bias, **widths)

        def array(tensor):
            tensor = tensor.detach().cpu()
            return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()

        for letter, linear in zip("QKVO", self._projections(), strict=True):
            setattr(twin, f"W_{letter}", array(linear.weight.T))
            if bias:
                setattr(twin, f"b_{letter}", array(linear.bias))
        return twin

    def extra_repr(self) -> str:
        grouped = f", num_kv_heads={self.num_kv_heads}" if self.num_kv_heads != self.num_heads else ""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, d_k={self.d_k}{grouped}"


def _matrices_of_torch(module):
    """Return what `MultiHeadAttention._matrices` of an nn.MultiheadAttention would be: views of what it has packed."""
    own = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
    weights = own if module.in_proj_weight is None else module.in_proj_weight.chunk(3)
    biases = () if module.in_proj_bias is None else (*module.in_proj_bias.chunk(3), module.out_proj.bias)
    return [*weights, module.out_proj.weight, *biases]
