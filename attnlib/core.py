"""Scaled dot-product attention in NumPy, once for its output and once with every intermediate kept.

Source of the formula: Vaswani et al. 2017, "Attention Is All You Need", equation 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import masks, steps, validation
from .columns import align
from .steps import softmax as softmax


def entropy(weights: ArrayLike, axis: int = -1) -> np.ndarray:
    """Measure how spread out attention weights are, in nats.

    H = -sum_j w_j ln w_j, with 0 ln 0 = 0

    0 if one key takes all the weight, ln(n_k) if all keys share it equally. A fully masked row has entropy 0.

    Parameters
    ----------
    weights : array_like, (..., n_k)
        Attention weights, each between 0 and 1.
    axis : int
        The axis of the keys.

    Returns
    -------
    ndarray, (...) without `axis`

    Notes
    -----
    Derived in the notebook "scaling". Source: Shannon 1948.

    Examples
    --------
    >>> entropy(np.array([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    weights = validation.real_array(weights, "weights")
    if (weights < 0).any() or (weights > 1 + 1e-3).any():
        raise ValueError(
            f"weights must lie between 0 and 1, got {np.nanmin(weights):.4g} to {np.nanmax(weights):.4g}. "
            "Fix: entropy takes softmax(scores), not the scores."
        )
    axis = validation.axis_of(weights, axis)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.abs((weights * logs).sum(axis=axis))  # the sum is at most 0; abs also turns -0.0 into 0.0


def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> np.ndarray:
    """Compute softmax(Q K^T * scale + mask) V.

    Parameters
    ----------
    query : array_like, (..., n_q, d_k)
    key : array_like, (..., n_k, d_k)
    value : array_like, (..., n_k, d_v)
        Arrays or lists of numbers. `...` are batch and head axes; they must be equal or 1. Integers are computed in
        float64.
    attn_mask : ndarray of bool or float, optional
        (n_q, n_k), or as many axes as the scores, each of the scores' size or 1.
        Boolean: True = may attend. Floating: added to the scaled scores. Integers raise; so do floats that mix 0 and 1.
    is_causal : bool
        Query i attends to keys 0..i only; needs n_q = n_k. If they differ, pass
        ``attn_mask=causal_mask(n_q, n_k, align=...)``. Together with `attn_mask` a query attends where both allow it.
    scale : float, optional
        Factor on Q K^T; 1/sqrt(d_k) by default.

    Returns
    -------
    ndarray, (..., n_q, d_v)
        A query that may attend to no key gets exactly 0.

    Raises
    ------
    ShapeError
        If shapes do not fit together, or `is_causal` is given and n_q != n_k.
    TypeError, ValueError
        If something is not an array of real numbers, or the mask is not boolean or floating.

    See Also
    --------
    attention_trace : the same with every intermediate.
    attnlib.torch_layers.scaled_dot_product_attention : the torch twin.

    Notes
    -----
    Derived in the notebooks "by hand", "vectorized" and "scaling"; masks in "masks". Source: Vaswani et al. 2017,
    equation 1. Same names and order as torch.nn.functional.scaled_dot_product_attention.

    Examples
    --------
    >>> query = np.array([[1.0, 0.0]])
    >>> key = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> value = np.array([[10.0], [20.0]])
    >>> scaled_dot_product_attention(query, key, value).round(4)
    array([[13.3024]])
    """
    q, k, v, mask, factor = _prepare(query, key, value, attn_mask, is_causal, scale)
    scores = q @ k.swapaxes(-1, -2)  # (..., n_q, n_k): each query meets each key
    scores = scores * factor  # 1/sqrt(d_k), so that longer vectors do not sharpen the weights
    scores = masks.apply_mask(scores, mask)  # -inf at keys that a query may not see
    weights = softmax(scores)  # each row sums to 1; a row of -inf gives zeros
    return weights @ v  # (..., n_q, d_v): a mean of the values, by these weights


def attention_trace(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> AttentionTrace:
    """Compute attention and keep every intermediate.

    Takes what `scaled_dot_product_attention` takes and raises what it raises.

    Returns
    -------
    AttentionTrace
        Its `output` equals scaled_dot_product_attention's.

    Examples
    --------
    >>> trace = attention_trace(np.eye(2), np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> trace.output.round(4)
    array([[1.6605, 2.6605],
           [2.3395, 3.3395]])
    """
    q, k, v, mask, factor = _prepare(query, key, value, attn_mask, is_causal, scale)
    # The five lines above as a table: a test holds the two to the same bits.
    values = steps.compute_steps({"query": q, "key": k, "value": v, "attn_mask": mask, "scale": factor})
    return AttentionTrace(**values, fully_masked=np.isneginf(values["masked_scores"]).all(axis=-1))


@dataclass(frozen=True, repr=False, eq=False)
class AttentionTrace:
    """Every intermediate of one attention call, NumPy arrays or torch tensors.

    Attributes
    ----------
    query, key, value : (..., n_q, d_k), (..., n_k, d_k), (..., n_k, d_v)
    scores : (..., n_q, n_k)
        Q K^T, raw: neither scaled nor masked.
    scale : float
    scaled_scores : (..., n_q, n_k)
        scores * scale
    attn_mask : boolean or floating, or None
        What was applied: the given mask and the causal one combined.
    masked_scores : (..., n_q, n_k)
        scaled_scores with -inf at blocked keys (or with a floating mask added); the scaled scores if there is no mask.
    weights : (..., n_q, n_k)
        softmax(masked_scores) over the keys.
    output : (..., n_q, d_v)
        weights @ value
    fully_masked : (..., n_q)
        True where a query may attend to no key; its weights and output are exactly 0.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> attention_trace(x, x, x, is_causal=True)
    AttentionTrace, scale = 0.7071
      query          (n_q, d_k)  (3, 2)  Q
      key            (n_k, d_k)  (3, 2)  K
      value          (n_k, d_v)  (3, 2)  V
      scores         (n_q, n_k)  (3, 3)  Q K^T
      scaled_scores  (n_q, n_k)  (3, 3)  scores * scale
      masked_scores  (n_q, n_k)  (3, 3)  scaled scores, -inf where blocked
      weights        (n_q, n_k)  (3, 3)  softmax over keys
      output         (n_q, d_v)  (3, 2)  weights V
    """

    query: Any
    key: Any
    value: Any
    scores: Any
    scale: float
    scaled_scores: Any
    attn_mask: Any
    masked_scores: Any
    weights: Any
    output: Any
    fully_masked: Any

    def steps(self) -> list[tuple[str, Any, str, str]]:
        """Return the steps in order, each as (name, array, dims, formula)."""
        leading = {2: "", 3: "b, ", 4: "b, h, "}
        rows = []
        for step in steps.STEPS:
            array = getattr(self, step.name)
            dims = f"({leading.get(len(array.shape), '..., ')}{step.dims})"
            rows.append((step.name, array, dims, steps.label_for(step.formula, self)))
        return rows

    def _summary(self):
        dead = int(self.fully_masked.sum())
        return f"scale = {self.scale:.4f}" + (f", fully masked rows: {dead}" if dead else "")

    def __repr__(self) -> str:
        rows = [(name, dims, str(tuple(array.shape)), formula) for name, array, dims, formula in self.steps()]
        return f"AttentionTrace, {self._summary()}\n{align([('', *row) for row in rows])}"

    def _repr_html_(self):
        import html  # only here: it would be a sixth of what `import attnlib` takes

        rows = "".join(
            f"<tr><td><code>{name}</code></td><td>{html.escape(formula)}</td><td>{dims}</td>"
            f"<td>{tuple(array.shape)}</td></tr>"
            for name, array, dims, formula in self.steps()
        )
        return (
            f"<table><caption>AttentionTrace, {self._summary()}</caption>"
            "<thead><tr><th>step</th><th>formula</th><th>dims</th><th>shape</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def _prepare(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: np.ndarray | None,
    is_causal: bool,
    scale: float | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, float]:
    """Check everything that came in; return it with the causal mask folded into the mask and the scale as a number."""
    query = validation.real_array(query, "query")
    key = validation.real_array(key, "key")
    value = validation.real_array(value, "value")
    shape = validation.attention_shapes(query.shape, key.shape, value.shape)
    if attn_mask is not None:
        masks.check_mask(attn_mask, shape)
    if validation.flag(is_causal, "is_causal"):
        attn_mask = masks.combine_masks(attn_mask, masks.causal_mask(*shape[-2:]))
    scale = validation.attention_scale(scale, query.shape[-1])
    return query, key, value, attn_mask, scale
