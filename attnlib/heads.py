"""Multi-head attention in NumPy: split the features into heads, attend in each, merge.

Source: Vaswani et al. 2017, section 3.2.2.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import core, masks, validation
from .validation import ShapeError


def split_heads(x: ArrayLike, num_heads: int) -> np.ndarray:
    """Cut the features of every token into heads.

    (..., n, d_model) -> (..., n, h, d_k) -> (..., h, n, d_k),  d_k = d_model / h

    The reshape cuts, the swap brings the head axis to the front. A reshape straight to (..., h, n, d_k) has the
    right shape and mixes tokens.

    Parameters
    ----------
    x : array_like, (..., n, d_model)
    num_heads : int

    Returns
    -------
    ndarray, (..., num_heads, n, d_k)

    Raises
    ------
    ShapeError
        If `num_heads` does not divide d_model.

    Notes
    -----
    Derived in the notebook "multi-head".

    Examples
    --------
    >>> split_heads(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), 2)
    array([[[1, 2],
            [5, 6]],
    <BLANKLINE>
           [[3, 4],
            [7, 8]]])
    """
    x = _at_least("x", x, 2, "(..., n, d_model)")
    d_k = validation.head_dim(x.shape[-1], num_heads)
    return np.swapaxes(x.reshape(*x.shape[:-1], num_heads, d_k), -2, -3)


def merge_heads(x: ArrayLike) -> np.ndarray:
    """Undo `split_heads`: (..., h, n, d_k) -> (..., n, h * d_k).

    Parameters
    ----------
    x : array_like, (..., h, n, d_k)

    Returns
    -------
    ndarray, (..., n, h * d_k)

    Notes
    -----
    Derived in the notebook "multi-head".

    Examples
    --------
    >>> merge_heads(split_heads(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), 2))
    array([[1, 2, 3, 4],
           [5, 6, 7, 8]])
    """
    x = _at_least("x", x, 3, "(..., h, n, d_k)")
    h, n, d_k = x.shape[-3:]
    return np.swapaxes(x, -2, -3).reshape(*x.shape[:-3], n, h * d_k)


class KVCache:
    """The keys and values of all tokens so far, of one layer and one batch of sequences.

    Under a causal mask the key and value of a token do not change when the sequence goes on. So decoding keeps them:
    each step projects the new tokens only, and their queries meet the keys kept here. ``len(cache)`` counts the tokens.

    Attributes
    ----------
    key, value : ndarray, (..., num_kv_heads, n, d_k), or None before the first token

    Notes
    -----
    Derived in the notebook "one token at a time". A cache belongs to the layer that used it first; another layer that
    is given it raises. Each step makes new arrays, which is simple and costs a copy of all that is kept; libraries
    write into memory that was set aside before. So ``copy.copy(cache)`` is a cheap branch: two continuations of one
    prompt do not disturb each other. Source: Shazeer 2019.

    Examples
    --------
    >>> mha, x = MultiHeadAttention(8, 2, rng=0), np.random.default_rng(1).normal(size=(5, 8))
    >>> cache = KVCache()
    >>> prompt, _ = mha(x[:3], is_causal=True, cache=cache)
    >>> rest, _ = mha(x[3:], is_causal=True, cache=cache)
    >>> len(cache), np.allclose(np.vstack([prompt, rest]), mha(x, is_causal=True)[0])
    (5, True)
    """

    _kind: type = np.ndarray
    _join: Callable[[Any, Any], Any] = staticmethod(lambda old, new: np.concatenate([old, new], axis=-2))

    def __init__(self) -> None:
        self.key: Any = None
        self.value: Any = None
        self._layer: Any = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[-2]

    def append(self, key: Any, value: Any) -> tuple[Any, Any]:
        """Keep new keys and values, (..., num_kv_heads, n, d_k), and return all of them: (keys, values).

        Raises TypeError if they are not arrays of the library that this cache is for. Raises ShapeError if a key has
        no value of its own, or if they are of another batch, width or dtype than what is kept.
        """
        validation.cache_input(key, value, self._kind)
        if self.key is not None:
            validation.check_cached(self.key, key, "key")
            validation.check_cached(self.value, value, "value")
            key, value = self._join(self.key, key), self._join(self.value, value)
        self.key, self.value = key, value
        return key, value


class MultiHeadAttention:
    """Multi-head attention with its own weights, the NumPy twin of `attnlib.torch_layers.MultiHeadAttention`.

    head_i = attention(X W_Q[:, i], X W_K[:, i], X W_V[:, i]);  output = concat(head_1, ..., head_h) W_O

    where W[:, i] are the d_k columns of head i. Here weights stand as in the formula, (in, out); torch's nn.Linear
    stores the transpose.

    Parameters
    ----------
    embed_dim : int
        d_model, the width of query and output.
    num_heads : int
        h; must divide embed_dim. d_k = d_v = embed_dim / num_heads.
    kdim, vdim : int, optional
        Width of key and value inputs; embed_dim by default.
    bias : bool
        Add b_Q, b_K, b_V, b_O (they start at 0).
    num_kv_heads : int, optional
        Heads of keys and values, h by default; must divide h. Each then serves h / num_kv_heads heads of queries, side
        by side: head i uses number i // (h / num_kv_heads). 1 is called multi-query attention, between 1 and h grouped.
    rng : numpy.random.Generator or int, optional
        Draws the weights: a generator or a seed, as ``np.random.default_rng`` takes it.

    Attributes
    ----------
    W_Q, W_K, W_V, W_O : ndarray, (embed_dim | kdim | vdim | embed_dim, embed_dim)
        Xavier uniform, in (-sqrt(6 / (in + out)), +sqrt(6 / (in + out))). W_K and W_V are num_kv_heads * d_k wide.
    b_Q, b_K, b_V, b_O : ndarray, (embed_dim,), or None

    Notes
    -----
    Derived in the notebook "multi-head"; fewer heads of keys and values, and the cache, in the notebook "one token at a
    time".

    Examples
    --------
    >>> mha = MultiHeadAttention(8, 2, rng=np.random.default_rng(0))
    >>> output, weights = mha(np.ones((5, 8)))
    >>> output.shape, weights.shape
    ((5, 8), (2, 5, 5))
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
        rng: np.random.Generator | int | None = None,
    ) -> None:
        self.d_k: int = validation.head_dim(embed_dim, num_heads)
        self.embed_dim: int = int(embed_dim)
        self.num_heads: int = int(num_heads)
        self.num_kv_heads: int = validation.key_value_heads(num_heads, num_kv_heads)
        self.kdim: int = embed_dim if kdim is None else validation.positive_int(kdim, "kdim")
        self.vdim: int = embed_dim if vdim is None else validation.positive_int(vdim, "vdim")
        generator = validation.generator(rng)

        def weight(d_in, d_out):
            limit = np.sqrt(6 / (d_in + d_out))
            return generator.uniform(-limit, limit, size=(d_in, d_out))

        kv_dim = self.num_kv_heads * self.d_k
        self.W_Q, self.W_K = weight(embed_dim, embed_dim), weight(self.kdim, kv_dim)
        self.W_V, self.W_O = weight(self.vdim, kv_dim), weight(embed_dim, embed_dim)
        self.b_Q: np.ndarray | None = np.zeros(embed_dim) if bias else None
        self.b_K: np.ndarray | None = np.zeros(kv_dim) if bias else None
        self.b_V: np.ndarray | None = np.zeros(kv_dim) if bias else None
        self.b_O: np.ndarray | None = np.zeros(embed_dim) if bias else None

    def __call__(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        attn_mask: np.ndarray | None = None,
        is_causal: bool = False,
        need_weights: bool = True,
        average_attn_weights: bool = False,
        cache: KVCache | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Attend in every head and merge.

        Parameters
        ----------
        query : array_like, (..., n_q, embed_dim)
        key : array_like, (..., n_k, kdim), optional
            The query by default: self-attention.
        value : array_like, (..., n_k, vdim), optional
            The key by default.
        attn_mask : ndarray of bool or float, optional
            True = may attend. (n_q, n_k); or (..., n_q, n_k) without a head axis, for all heads alike; or
            (..., h, n_q, n_k).
        is_causal : bool
            Combined with `attn_mask`; needs n_q = n_k, unless a cache says that the queries continue its tokens.
        need_weights : bool
            Return the weights too; None in their place otherwise.
        average_attn_weights : bool
            Average them over the heads.
        cache : KVCache, optional
            Keys and values of the tokens before; those of `query` are appended. n_k then counts all of them, in
            `attn_mask` and the weights too.

        Returns
        -------
        output : ndarray, (..., n_q, embed_dim)
        weights : ndarray, (..., h, n_q, n_k), or (..., n_q, n_k) averaged, or None
        """
        key = query if key is None else key
        value = key if value is None else value
        before = 0 if cache is None else tokens_in(cache, KVCache, self, query, key, value)
        inputs = []
        for name, x, width in (("query", query, self.embed_dim), ("key", key, self.kdim), ("value", value, self.vdim)):
            x = validation.real_array(x, name)
            validation.module_input(x.shape, name, width)
            inputs.append(x)
        query, key, value = inputs
        q = split_heads(_linear(query, self.W_Q, self.b_Q), self.num_heads)  # (..., h, n_q, d_k)
        k = split_heads(_linear(key, self.W_K, self.b_K), self.num_kv_heads)  # (..., num_kv_heads, n_k, d_k)
        v = split_heads(_linear(value, self.W_V, self.b_V), self.num_kv_heads)  # (..., num_kv_heads, n_k, d_k)
        if cache is not None:
            k, v = cache.append(k, v)
        if self.num_kv_heads < self.num_heads:
            k, v = (np.repeat(x, self.num_heads // self.num_kv_heads, axis=-3) for x in (k, v))
        if attn_mask is not None:
            shape = validation.attention_shapes(q.shape, k.shape, v.shape)
            attn_mask = add_head_axis(masks.check_mask(attn_mask), shape)
        if validation.flag(is_causal, "is_causal") and before:  # the queries are the last tokens
            causal = masks.causal_mask(q.shape[-2], k.shape[-2], align="lower_right")
            attn_mask, is_causal = masks.combine_masks(attn_mask, causal), False
        trace = core.attention_trace(q, k, v, attn_mask, is_causal=is_causal)
        projected = _linear(merge_heads(trace.output), self.W_O, self.b_O)  # (..., n_q, embed_dim)
        if not need_weights:
            return projected, None
        return projected, trace.weights.mean(axis=-3) if average_attn_weights else trace.weights

    def __repr__(self) -> str:
        return f"MultiHeadAttention(embed_dim={self.embed_dim}, num_heads={self.num_heads}), d_k = {self.d_k}"


def tokens_in(cache: Any, kind: type[KVCache], layer: Any, query: Any, key: Any, value: Any) -> int:
    """Return how many tokens a cache of the class `kind` holds, and check that `layer` may use it. For both twins."""
    # The cache of torch inherits from that of NumPy, and is none for NumPy's arrays.
    if not isinstance(cache, kind) or cache._kind is not kind._kind:
        raise TypeError(
            f"cache must be a KVCache of {kind.__module__}, got {validation.kind_of(cache)}. Fix: cache = KVCache() "
            "from where the layer comes from, one for each layer and each prompt."
        )
    if not query is key is value:
        raise ValueError(
            "a cache is for self-attention, where the sequence grows: expected the query alone, got a key or value "
            "beside it. Fix: leave out cache; the keys and values of a fixed context do not grow."
        )
    cache._layer = cache._layer or weakref.ref(layer)
    if cache._layer() is not layer:
        raise ValueError(
            "a cache belongs to one layer: expected the layer that used it first, got another, and its keys come from "
            "other weights. Fix: caches = [KVCache() for layer in layers], new ones for each prompt."
        )
    return len(cache)


def add_head_axis(mask: Any, scores_shape: Sequence[int]) -> Any:
    """Give a mask without a head axis one, where the scores are (..., h, n_q, n_k) with batch axes before h.

    Works on NumPy arrays and torch tensors. (n_q, n_k) stays; (b, n_q, n_k) becomes (b, 1, n_q, n_k).
    """
    if len(mask.shape) == len(scores_shape) - 1 and len(mask.shape) > 2:
        validation.mask_shape(mask.shape, (*scores_shape[:-3], *scores_shape[-2:]))
        return mask[..., None, :, :]
    validation.mask_shape(mask.shape, scores_shape)
    return mask


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return x @ weight if bias is None else x @ weight + bias


def _at_least(name: str, x: Any, axes: int, expected: str) -> np.ndarray:
    x = validation.as_array(x, name)
    if x.ndim < axes:
        raise ShapeError(f"{name} must be {expected}, at least {axes} axes, got shape {x.shape}. Fix: {name}[None].")
    return x
