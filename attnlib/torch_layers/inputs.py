"""Check tensors and masks, with the errors of the NumPy twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import masks, validation


def check(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple[int, ...]:
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_tensor(x, name)
        if x.dtype != query.dtype:
            raise TypeError(
                f"query, key and value must share a dtype, got {query.dtype} and {x.dtype}. Fix: {name}.to(query)."
            )
    return validation.attention_shapes(query.shape, key.shape, value.shape)


def check_tensor(x: Any, name: str) -> None:
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"{name} must be a torch.Tensor, got {type(x).__name__}. "
            f"Fix: torch.tensor({name}, dtype=torch.float32), or what has the same name in attnlib itself for NumPy."
        )
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating numbers, got {x.dtype}. Fix: {name}.float().")


def layer_input(x: torch.Tensor, name: str, linear: nn.Linear) -> None:
    check_tensor(x, name)
    validation.module_input(x.shape, name, linear.in_features)
    dtype = linear.weight.dtype
    if (x.dtype == torch.float64) != (dtype == torch.float64):  # other mixtures are legal under autocast
        raise TypeError(
            f"{name} must have the dtype of the layer's weights, {dtype}, got {x.dtype}. Fix: {name}.to({dtype})."
        )


def mask_tensor(mask: Any, device: Any) -> torch.Tensor:
    """Return a tensor or array as a tensor; an array is copied, for torch refuses read-only and reversed ones."""
    if isinstance(mask, np.ndarray):
        if not torch.compiler.is_compiling():  # torch.compile makes a tensor of it, which has no NumPy dtype
            validation.refuse_masked_array(mask, "attn_mask")
            validation.mask_kind(mask.dtype.kind, mask.dtype)
            mask = np.array(mask)
    elif not isinstance(mask, torch.Tensor):
        raise TypeError(
            "attn_mask must be a tensor or array, boolean (True = may attend) or floating, "
            f"got {type(mask).__name__}. Fix: torch.tensor(attn_mask)."
        )
    return torch.as_tensor(mask, device=device)


def mask_for(mask: Any, is_causal: bool, shape: Sequence[int], query: torch.Tensor) -> torch.Tensor | None:
    """Check a mask, bring it to the query's device (and dtype, where floating), and fold in the causal one."""
    validation.flag(is_causal, "is_causal")
    if mask is not None:
        mask = mask_tensor(mask, query.device)
        is_float, is_bool = mask.is_floating_point(), mask.dtype == torch.bool
        validation.mask_kind("f" if is_float else "b" if is_bool else "c" if mask.is_complex() else "i", mask.dtype)
        if is_float:
            mask = mask.to(query.dtype)
            if not torch.compiler.is_compiling():  # a graph has no branch on what a tensor holds
                validation.added_on_purpose(bool(mask.any()) and bool(((mask == 0) | (mask == 1)).all()))
                validation.mask_values(bool((mask.isnan() | mask.isposinf()).any()), mask.dtype)
        validation.mask_shape(mask.shape, shape)
    return with_causal(mask, masks.causal_mask(*shape[-2:]), query.device) if is_causal else mask


def with_causal(mask: Any, causal: Any, device: Any) -> torch.Tensor:
    """Combine a mask, or None, with a causal one of NumPy."""
    causal = torch.as_tensor(causal, device=device)
    if mask is None or mask.dtype == torch.bool:
        return causal if mask is None else mask & causal
    return mask.masked_fill(~causal, -torch.inf)
