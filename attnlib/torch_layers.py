"""The torch twins: the same names, arguments, order and masks as in `attnlib.core` and `attnlib.heads`.

Masks may be torch tensors or NumPy arrays, so that ``al.causal_mask(5)`` can be passed as it is.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import heads, masks, validation
from .core import AttentionTrace


def scaled_dot_product_attention(query, key, value, attn_mask=None, *, is_causal=False, scale=None):
    """Compute softmax(Q K^T * scale + mask) V with torch's fused kernel.

    Takes the arguments of `attnlib.scaled_dot_product_attention` as tensors and raises the same errors. It differs
    from torch.nn.functional.scaled_dot_product_attention in four points: a query that may attend to no key gets
    exactly 0 (torch: 0, NaN or a mean, depending on the path); `is_causal` together with `attn_mask` means both
    (torch raises); `is_causal` with n_q != n_k raises and names both alignments (torch takes the upper left); a mask
    with other numbers of axes than 2 or the scores' raises (torch broadcasts it).

    Parameters
    ----------
    query, key, value : Tensor, (..., n_q, d_k), (..., n_k, d_k), (..., n_k, d_v)
        Floating tensors of one dtype.
    attn_mask : Tensor or ndarray, bool or float, optional
        True = may attend; floating: added to the scaled scores.
    is_causal : bool
        Query i attends to keys 0..i only; needs n_q = n_k. Otherwise pass `attnlib.causal_mask` with its `align`.
    scale : float, optional
        1/sqrt(d_k) by default.

    Returns
    -------
    Tensor, (..., n_q, d_v)

    Examples
    --------
    >>> x = torch.eye(2)
    >>> scaled_dot_product_attention(x, x, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[1.6605, 2.6605],
            [2.3395, 3.3395]])
    """
    shape = _check(query, key, value)
    scale = validation.attention_scale(scale, query.shape[-1])
    if attn_mask is None:
        if is_causal:
            validation.one_causal_mask(*shape[-2:])
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)
    mask, dead = _open_dead_rows(_mask(attn_mask, is_causal, shape, query))
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    return output if dead is None else output.masked_fill(dead, 0)


def attention_trace(query, key, value, attn_mask=None, *, is_causal=False, scale=None):
    """Compute attention and keep every intermediate as a tensor; see `attnlib.attention_trace`.

    Examples
    --------
    >>> x = torch.eye(2)
    >>> attention_trace(x, x, x).weights
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    shape = _check(query, key, value)
    scale = validation.attention_scale(scale, query.shape[-1])
    mask = _mask(attn_mask, is_causal, shape, query)
    scores = query @ key.transpose(-1, -2)  # (..., n_q, n_k)
    scaled_scores = scores * scale
    masked_scores = scaled_scores
    if mask is not None:
        masked_scores = (
            scaled_scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scaled_scores + mask
        )
    fully_masked = torch.isneginf(masked_scores).all(-1)
    dead = fully_masked[..., None]
    weights = masked_scores.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0)
    return AttentionTrace(
        query=query,
        key=key,
        value=value,
        scores=scores,
        scale=scale,
        scaled_scores=scaled_scores,
        attn_mask=mask,
        masked_scores=masked_scores,
        weights=weights,
        output=weights @ value,
        fully_masked=fully_masked,
    )


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
    Derived in notebook 04. Source: Vaswani et al. 2017, section 3.2.1.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> output, weights = SelfAttention(4, 3)(torch.ones(2, 5, 4))
    >>> output.shape, weights.shape
    (torch.Size([2, 5, 3]), torch.Size([2, 5, 5]))
    """

    def __init__(self, d_in, d_k, d_v=None, *, bias=False):
        super().__init__()
        self.d_in = validation.positive_int(d_in, "d_in")
        self.d_k = validation.positive_int(d_k, "d_k")
        self.d_v = self.d_k if d_v is None else validation.positive_int(d_v, "d_v")
        self.W_Q = nn.Linear(d_in, self.d_k, bias=bias)
        self.W_K = nn.Linear(d_in, self.d_k, bias=bias)
        self.W_V = nn.Linear(d_in, self.d_v, bias=bias)

    def forward(self, x, *, attn_mask=None, is_causal=False, need_weights=True):
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
        _layer_input(x, "x", self.W_Q)
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        return _attend(q, k, v, attn_mask, is_causal, need_weights)


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

    Attributes
    ----------
    W_Q, W_K, W_V, W_O : nn.Linear
        Their `.weight` is (out, in): the transpose of the W in the formula. Xavier-uniform at the start.

    Notes
    -----
    Derived in notebook 06. Source: Vaswani et al. 2017, section 3.2.2. Names in other libraries: nn.MultiheadAttention
    packs W_Q, W_K, W_V into `in_proj_weight` and calls W_O `out_proj`; its boolean masks say True = blocked; it has
    the batch second unless batch_first=True.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> output, weights = MultiHeadAttention(8, 2)(torch.ones(3, 5, 8))
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 2, 5, 5]))
    """

    def __init__(self, embed_dim, num_heads, *, kdim=None, vdim=None, bias=True):
        super().__init__()
        self.d_k = validation.head_dim(embed_dim, num_heads)
        self.embed_dim, self.num_heads = int(embed_dim), int(num_heads)
        self.kdim = self.embed_dim if kdim is None else validation.positive_int(kdim, "kdim")
        self.vdim = self.embed_dim if vdim is None else validation.positive_int(vdim, "vdim")
        self.W_Q = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.W_K = nn.Linear(self.kdim, embed_dim, bias=bias)
        self.W_V = nn.Linear(self.vdim, embed_dim, bias=bias)
        self.W_O = nn.Linear(embed_dim, embed_dim, bias=bias)
        for linear in self._projections():
            nn.init.xavier_uniform_(linear.weight)
            if bias:
                nn.init.zeros_(linear.bias)

    def _projections(self):
        return self.W_Q, self.W_K, self.W_V, self.W_O

    def forward(
        self,
        query,
        key=None,
        value=None,
        *,
        attn_mask=None,
        is_causal=False,
        need_weights=True,
        average_attn_weights=False,
    ):
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
            Combined with `attn_mask`; needs n_q = n_k.
        need_weights : bool
            False takes torch's fused kernel, which never stores an n_q x n_k array.
        average_attn_weights : bool
            Average the weights over the heads.

        Returns
        -------
        output : Tensor, (..., n_q, embed_dim)
        weights : Tensor, (..., h, n_q, n_k), or (..., n_q, n_k) averaged, or None
        """
        key = query if key is None else key
        value = key if value is None else value
        _layer_input(query, "query", self.W_Q)
        _layer_input(key, "key", self.W_K)
        _layer_input(value, "value", self.W_V)
        q = self._split(self.W_Q(query))  # (..., h, n_q, d_k)
        k = self._split(self.W_K(key))  # (..., h, n_k, d_k)
        v = self._split(self.W_V(value))  # (..., h, n_k, d_k)
        if attn_mask is not None:
            shape = validation.attention_shapes(q.shape, k.shape, v.shape)
            attn_mask = heads.add_head_axis(_mask_tensor(attn_mask, q.device), shape)
        output, weights = _attend(q, k, v, attn_mask, is_causal, need_weights)
        output = self.W_O(output.transpose(-2, -3).flatten(-2))  # (..., n_q, embed_dim)
        if need_weights and average_attn_weights:
            weights = weights.mean(-3)
        return output, weights

    def _split(self, x):
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(-2, -3)

    @classmethod
    def from_torch(cls, module):
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
        packed = module.in_proj_weight
        if packed is not None:
            weights = packed.chunk(3)
        else:
            weights = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        with torch.no_grad():
            for linear, weight in zip(ours._projections(), (*weights, module.out_proj.weight), strict=True):
                linear.weight.copy_(weight)
            if bias:
                biases = (*module.in_proj_bias.chunk(3), module.out_proj.bias)
                for linear, b in zip(ours._projections(), biases, strict=True):
                    linear.bias.copy_(b)
        return ours.train(module.training)

    def to_torch(self):
        """Return an nn.MultiheadAttention (batch_first=True) with copies of these weights; the outputs are equal.

        Its boolean masks have the opposite polarity: pass ``~attn_mask``, or `attnlib.to_blocked` of a NumPy mask.
        """
        bias = self.W_O.bias is not None
        theirs = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, bias=bias, kdim=self.kdim, vdim=self.vdim, batch_first=True
        ).to(self.W_O.weight)
        q, k, v, out = self._projections()
        with torch.no_grad():
            if theirs.in_proj_weight is not None:
                theirs.in_proj_weight.copy_(torch.cat([q.weight, k.weight, v.weight]))
            else:
                theirs.q_proj_weight.copy_(q.weight)
                theirs.k_proj_weight.copy_(k.weight)
                theirs.v_proj_weight.copy_(v.weight)
            theirs.out_proj.weight.copy_(out.weight)
            if bias:
                theirs.in_proj_bias.copy_(torch.cat([q.bias, k.bias, v.bias]))
                theirs.out_proj.bias.copy_(out.bias)
        return theirs.train(self.training)

    def to_numpy(self):
        """Return the NumPy twin, `attnlib.MultiHeadAttention`, with copies of these weights as (in, out).

        NumPy has no bfloat16: such weights become float32, which holds each of them exactly.
        """
        bias = self.W_O.bias is not None
        twin = heads.MultiHeadAttention(self.embed_dim, self.num_heads, kdim=self.kdim, vdim=self.vdim, bias=bias)

        def array(tensor):
            tensor = tensor.detach().cpu()
            return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()

        for letter, linear in zip("QKVO", self._projections(), strict=True):
            setattr(twin, f"W_{letter}", array(linear.weight.T))
            if bias:
                setattr(twin, f"b_{letter}", array(linear.bias))
        return twin

    def extra_repr(self):
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, d_k={self.d_k}"


def _attend(q, k, v, attn_mask, is_causal, need_weights):
    """Return softmax(Q K^T / sqrt(d_k) + mask) V and the weights, or (output, None) through the fused kernel."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal), None
    mask, dead = _open_dead_rows(_mask(attn_mask, is_causal, _check(q, k, v), q))
    q = q * validation.attention_scale(None, q.shape[-1])
    scores = q @ k.contiguous().transpose(-1, -2)  # (..., n_q, n_k); heads copied before the transpose: cheaper
    weights = _softmax(scores, mask)
    if dead is not None:
        weights = weights.masked_fill(dead, 0)
    return weights @ v, weights


def _softmax(scores, mask):
    """Return softmax of the masked scores over the keys. May write over `scores`.

    Fresh memory for an n_q x n_k array costs more than the arithmetic done on it, so plain scores lend theirs: to a
    boolean mask always, unseen by autograd, for softmax passes no gradient to a weight of 0; to the weights only where
    no gradient is wanted.
    """
    if mask is not None and mask.dtype == torch.bool:
        # Not where the mask adds axes. By NumPy: torch's function of that name imports sympy, which takes a second.
        if _is_plain(scores, mask) and np.broadcast_shapes(scores.shape, mask.shape) == scores.shape:
            scores.detach().masked_fill_(~mask, -torch.inf)
        else:
            scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        scores = scores + mask
    if torch.is_grad_enabled() or not _is_plain(scores):
        return scores.softmax(-1)
    return torch.softmax(scores, -1, out=scores)


def _check(query, key, value):
    for name, x in (("query", query), ("key", key), ("value", value)):
        _check_tensor(x, name)
        if x.dtype != query.dtype:
            raise TypeError(
                f"query, key and value must share a dtype, got {query.dtype} and {x.dtype}. Fix: {name}.to(query)."
            )
    return validation.attention_shapes(query.shape, key.shape, value.shape)


def _check_tensor(x, name):
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(x).__name__}. "
            f"Fix: torch.tensor({name}, dtype=torch.float32), or what has the same name in attnlib itself for NumPy."
        )
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating numbers, got {x.dtype}. Fix: {name}.float().")


def _layer_input(x, name, linear):
    _check_tensor(x, name)
    validation.module_input(x.shape, name, linear.in_features)
    dtype = linear.weight.dtype
    if (x.dtype == torch.float64) != (dtype == torch.float64):  # other mixtures are legal under autocast
        raise TypeError(
            f"{name} must have the dtype of the layer's weights, {dtype}, got {x.dtype}. Fix: {name}.to({dtype})."
        )


def _mask_tensor(mask, device):
    """Return a tensor or array as a tensor; an array is copied, for torch refuses read-only and reversed ones."""
    if isinstance(mask, np.ndarray):
        validation.mask_kind(mask.dtype.kind, mask.dtype)
        mask = np.array(mask)
    elif not isinstance(mask, torch.Tensor):
        raise TypeError(
            "attn_mask must be a tensor or array, boolean (True = may attend) or floating, "
            f"got {type(mask).__name__}. Fix: torch.tensor(attn_mask)."
        )
    return torch.as_tensor(mask, device=device)


def _mask(mask, is_causal, shape, query):
    """Check a mask, bring it to the query's device (and dtype, where floating), and fold in the causal one."""
    if mask is not None:
        mask = _mask_tensor(mask, query.device)
        is_float, is_bool = mask.is_floating_point(), mask.dtype == torch.bool
        validation.mask_kind("f" if is_float else "b" if is_bool else "c" if mask.is_complex() else "i", mask.dtype)
        if is_float:
            mask = mask.to(query.dtype)
            validation.mask_values(bool((mask.isnan() | mask.isposinf()).any()), mask.dtype)
        validation.mask_shape(mask.shape, shape)
    if not is_causal:
        return mask
    causal = torch.as_tensor(masks.causal_mask(*shape[-2:]), device=query.device)
    if mask is None or mask.dtype == torch.bool:
        return causal if mask is None else mask & causal
    return mask.masked_fill(~causal, -torch.inf)


def _open_dead_rows(mask):
    """Let rows that may attend to nothing attend to everything, and say which they are, (..., n_q, 1), or None.

    Their output is then finite and can be set to 0; masking them would give NaN, in the gradient too.
    """
    if mask is None:
        return None, None
    is_bool = mask.dtype == torch.bool
    dead = ~mask.any(-1, keepdim=True) if is_bool else torch.isneginf(mask).all(-1, keepdim=True)
    if _is_plain(dead) and not dead.any():
        return mask, None
    return (mask | dead if is_bool else mask.masked_fill(dead, 0)), dead


def _is_plain(*tensors):
    """Return True if numbers can be read and written over at once.

    Not while compiling, nor under a transform of torch.func such as vmap; and reading from a GPU would wait for it.
    """
    if torch.compiler.is_compiling() or any(type(x) is not torch.Tensor or not x.is_cpu for x in tensors):
        return False
    try:
        return all(x.data_ptr() for x in tensors)
    except RuntimeError:  # what a transform hands on has no memory of its own
        return False
