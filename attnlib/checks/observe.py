"""Call anybody's attention module in one way, and watch what reaches its softmax."""

import contextlib

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
_FACTORS = {
    aten.mul.Tensor: 1,
    aten.mul.Scalar: 1,
    aten.mul_.Tensor: 1,
    aten.mul_.Scalar: 1,
    aten.div.Tensor: -1,
    aten.div.Scalar: -1,
    aten.div_.Tensor: -1,
    aten.div_.Scalar: -1,
}


class Watch(TorchDispatchMode):
    """Record the first softmax over scores: its weights, and the constant factors applied on the way to it.

    Attributes
    ----------
    weights : Tensor, (..., n_q, n_k), or None if no softmax was seen
    scale : float
        Product of all constants that queries, keys or scores were multiplied with before that softmax.
    """

    def __init__(self, n_q, n_k):
        super().__init__()
        self.shape, self.weights, self.scale = (n_q, n_k), None, 1.0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if self.weights is None:
            if function in _FACTORS:
                factor = _constant(args[1])
                if factor and args[0].is_floating_point() and args[0].numel() > 1:
                    self.scale *= factor ** _FACTORS[function]
            elif function is aten._softmax.default and tuple(result.shape[-2:]) == self.shape:
                self.weights = result.detach().clone()
            elif "scaled_dot_product" in str(function):
                query, key = args[:2]
                scale = (kwargs or {}).get("scale") or query.shape[-1] ** -0.5
                self.scale *= scale
                self.weights = (query.detach() @ key.detach().transpose(-1, -2) * scale).softmax(-1)
        return result


def _constant(x):
    if isinstance(x, torch.Tensor):
        return float(x) if x.ndim == 0 else None
    return float(x)


class Caller:
    """Call a module as (query, key, value, mask) -> (output, weights or None), whatever its own signature is.

    Masks are boolean, (b, n_q, n_k), True = may attend. `three` says whether the module takes key and value; a module
    that insists on a mask is given None where there is none.
    """

    def __init__(self, call, embed_dim, num_heads):
        self._own, self.embed_dim, self.num_heads = call, embed_dim, num_heads
        self.three, self._no_mask, self._mask_form = True, (), None

    def choose(self, module, x):
        """Find out how to call the module; TypeError if no usual way works."""
        if self._own is not None or isinstance(module, nn.MultiheadAttention):
            return self(module, x, x, x)
        errors = []
        for self.three, self._no_mask in ((True, ()), (True, (None,)), (False, ()), (False, (None,))):
            try:
                return self(module, x, x, x)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
        raise TypeError(
            "diagnose could not call the module: expected module(query, key, value) or module(x) to work on "
            f"(batch, tokens, {self.embed_dim}), got {errors[0]!r} and {errors[2]!r}. "
            "Fix: call=lambda module, query, key, value, mask: module(...)."
        )

    def __call__(self, module, query, key, value, mask=None):
        if self._own is not None:
            result = self._own(module, query, key, value, mask)
        elif isinstance(module, nn.MultiheadAttention):
            result = self._torch(module, query, key, value, mask)
        else:
            inputs = (query, key, value) if self.three else (query,)
            result = module(*inputs, *self._no_mask) if mask is None else self._masked(module, inputs, mask)
        parts = result if isinstance(result, tuple) else (result,)
        weights = parts[1] if len(parts) > 1 and isinstance(parts[1], torch.Tensor) else None
        return parts[0], weights

    def _torch(self, module, query, key, value, mask):
        if mask is not None:
            mask = (~mask).repeat_interleave(self.num_heads, dim=0)  # (b * h, n_q, n_k), True = blocked
        inputs = (query, key, value)
        if not module.batch_first:
            inputs = tuple(x.transpose(0, 1) for x in inputs)
        output, weights = module(*inputs, attn_mask=mask, average_attn_weights=False)
        return (output if module.batch_first else output.transpose(0, 1)), weights

    def _masked(self, module, inputs, mask):
        """Pass the mask by name or by position, with or without a head axis: whatever is accepted first, always."""
        forms = [(name, axis) for axis in (False, True) for name in ("attn_mask", "mask", None)]
        for name, axis in [self._mask_form] if self._mask_form else forms:
            shaped = mask[:, None] if axis else mask
            with contextlib.nullcontext() if self._mask_form else contextlib.suppress(Exception):
                result = module(*inputs, **{name: shaped}) if name else module(*inputs, shaped)
                self._mask_form = (name, axis)
                return result
        raise TypeError(
            "the module takes no mask as attn_mask=, mask= or last argument. Fix: pass call=, which gets a boolean "
            "mask (b, n_q, n_k), True = may attend."
        )
