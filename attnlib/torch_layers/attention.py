"""Attention on tensors: by torch's fused kernel, with every intermediate kept, and with its weights."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import steps, validation
from ..core import AttentionTrace
from .inputs import check, mask_for


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
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
        True = may attend; floating: added to the scaled scores. Under torch.compile nobody looks for NaN in it.
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
    shape = check(query, key, value)
    scale = validation.attention_scale(scale, query.shape[-1])
    if attn_mask is None:
        if validation.flag(is_causal, "is_causal"):
            validation.one_causal_mask(*shape[-2:])
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal, scale=scale)
    mask, dead = _open_dead_rows(mask_for(attn_mask, is_causal, shape, query))
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    return output if dead is None else output.masked_fill(dead, 0)


def attention_trace(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> AttentionTrace:
    """Compute attention and keep every intermediate as a tensor; see `attnlib.attention_trace`.

    Examples
    --------
    >>> x = torch.eye(2)
    >>> attention_trace(x, x, x).weights
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    shape = check(query, key, value)
    scale = validation.attention_scale(scale, query.shape[-1])
    mask = mask_for(attn_mask, is_causal, shape, query)
    given = {"query": query, "key": key, "value": value, "scale": scale, "attn_mask": mask}
    if query.dtype == torch.float16:  # holds 65504 at most: raw scores may overflow where scaled ones do not
        given["scaled_scores"] = steps.product(query * scale, key)
    values = steps.compute_steps(given, {"masked_scores": _mask_scores, "weights": _weights})
    return AttentionTrace(**values, fully_masked=torch.isneginf(values["masked_scores"]).all(-1))


def _mask_scores(scores, mask):
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask


def _weights(scores):
    """Return softmax over the keys, 0 in a row of -inf, through which no NaN comes back to the scores."""
    dead = torch.isneginf(scores).all(-1, keepdim=True)
    return scores.masked_fill(dead, 0).softmax(-1).masked_fill(dead, 0)


def attend(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | np.ndarray | None, is_causal: bool, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Return softmax(Q K^T / sqrt(d_k) + mask) V and the weights, or (output, None) through the fused kernel."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal), None
    mask, dead = _open_dead_rows(mask_for(attn_mask, is_causal, check(q, k, v), q))
    q = q * validation.attention_scale(None, q.shape[-1])
    scores = steps.product(q, k.contiguous())  # (..., n_q, n_k); heads copied before the transpose: cheaper
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
