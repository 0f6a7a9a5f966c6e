"""What sees the calls while a model runs: torch's own hook for functions, of one thread, undone by any exception."""

import sys
import types

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ..following import tensors
from ._written import Follower
from .calls import Call, fits

# What modules call their number of heads: needed where heads are folded into the batch.
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads", "h", "num_attn_heads")

# A copy of torch's function that asks no hook itself, so its inner calls are seen.
_MULTI_HEAD = F.multi_head_attention_forward
_names = {**_MULTI_HEAD.__globals__, "has_torch_function": lambda _: False}
_multi_head = types.FunctionType(_MULTI_HEAD.__code__, _names, "multi_head", _MULTI_HEAD.__defaults__)


class Watching(TorchFunctionMode):
    """Sees each function of torch that this thread calls, and keeps those that are attention."""

    def __init__(self, seen, layers, most):
        super().__init__()
        self.paths = {id(part): name.removeprefix("_orig_mod").lstrip(".") for name, part in seen.model.named_modules()}
        self.held = [*seen.model.modules()]  # else a module that is made while it runs may get the id of one replaced
        self.seen, self.layers, self.left, self.written = seen, layers, most, Follower(self.keep)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is _MULTI_HEAD:
            with self:
                return _multi_head(*args, **kwargs)
        name = getattr(function, "__name__", "")
        first = args[0] if args else kwargs.get("input")
        if (name == "softmax" and "out" in kwargs) or name == "exp_":  # writes over what it was given
            first = first.clone()
        result = function(*args, **kwargs)
        try:
            if name == "scaled_dot_product_attention":
                self._see_fused(result, *args, **kwargs)
            elif name == "flex_attention" and isinstance(function, torch._ops.HigherOrderOperator):
                self._see_flex(result, *args)
            else:
                self.written.look(name, args, kwargs, result, first)
        except Exception as error:  # what cannot be followed must not stop the model
            if "attention" in name or any(map(self.written.weigh, tensors(args))):
                at, notes = self._where()[0], (f"could not be followed: {type(error).__name__}: {error}",)
                self.seen.append(Call(len(self.seen), at, name, *[0] * 6, None, 0.0, torch.float32, notes=notes))
        return result

    def _see_fused(self, out, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **more):
        _, module, names = self._where()
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        if (factor := getattr(self.written.tags.get(query), "factor", 1)) != 1:  # some multiply the queries before
            query, scale = query / factor, scale * factor
        groups = getattr(module, "num_key_value_groups", 1) if names else 1
        if groups > 1 and names.get("q_length") == 1 and query.shape[-2] == groups:
            # transformers hands the heads of one group over as queries: back to heads
            query, out = (x.reshape(x.shape[0], -1, 1, x.shape[-1]) for x in (query, out))
            if attn_mask is not None and attn_mask.shape[1] > 1:
                attn_mask = attn_mask.reshape(*query.shape[:2], 1, -1)
        elif groups > 1 and key.shape[1] == query.shape[1] and not more.get("enable_gqa"):
            key, value = key[:, ::groups], value[:, ::groups]  # transformers repeated them
        some = {"query": query, "key": key, "value": value, "output": out, "mask": attn_mask}
        self.keep("fused", some, scale, dropout=dropout_p, is_causal=is_causal)

    def _see_flex(self, out, query, key, value, score_mod, block_mask, scale, *rest):
        """Evaluate what was said of scores and mask, as functions of positions, for all pairs."""
        shape = (*query.shape[:-1], key.shape[-2])
        repeated = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        at, modified = [torch.arange(n, device=query.device) for n in shape], score_mod
        for i in (3, 2, 1, 0):
            modified = torch.func.vmap(modified, in_dims=(0, *(0 if j == i else None for j in range(4))))
        allowed = torch.nn.attention.flex_attention.create_mask(block_mask[-1], *shape, device=query.device)
        masked = modified(query @ repeated.mT * scale, *at).masked_fill(~allowed, -torch.inf)
        some = {"query": query, "key": key, "value": value, "masked": masked}
        self.keep("flex", some | {"output": out[0] if isinstance(out, tuple) else out}, scale)

    def keep(self, kind, tensors, scale, *, dropout=0.0, is_causal=False, notes=()):
        """List a call, and keep copies of its tensors, (..., n, d), as (b, h, n, d)."""
        path, module, _ = self._where()
        tensors, read = _four_axes({name: x.detach() for name, x in tensors.items() if x is not None}, module)
        value, dtype = tensors["value"], tensors["value"].dtype
        query, key = tensors.get("query", tensors.get("weights")), tensors.get("key", value)
        sizes = *query.shape[:2], key.shape[1], query.shape[-2], value.shape[-2], key.shape[-1]
        call = Call(len(self.seen), path, kind, *sizes, scale, float(dropout), dtype, bool(is_causal), (*notes, *read))
        self.seen.append(call)
        size = sum(x.numel() * x.element_size() for x in tensors.values())
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            call.notes += ("inside torch.vmap, which hides an axis",)
        elif self.layers is not None and not fits(self.layers, path):
            call.notes += ("another layer was asked for",)
        elif size > self.left:
            call.notes += (f"would take {size / 2**20:.0f} MB, and most= is used up",)
        else:
            self.left -= size
            call.kept = {name: x.clone() for name, x in tensors.items()}

    def _where(self):
        """Return the path of the module that calls, the module, and what transformers' own function knows."""
        frame, known = sys._getframe(1), {}
        while frame := frame.f_back:
            code = frame.f_code
            known = frame.f_locals if code.co_name == "sdpa_attention_forward" else known
            first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if isinstance(first, torch.nn.Module) and id(first) in self.paths:
                return self.paths[id(first)] or type(first).__name__, first, known
        return "(outside the model)", None, {}


def _four_axes(tensors, module):
    """Return tensors (..., n, d) as (b, h, n, d), and a note on how their axes were read, where that was not sure.

    Heads may be folded into the batch, be in groups, stand first, or be missing; the number of a module's heads tells.
    """
    lead = next(tensors[name] for name in ("weights", "masked", "query") if name in tensors).shape[:-2]
    heads = next((x for name in _HEADS if isinstance(x := getattr(module, name, None), int)), 0)
    groups = len(lead) == 3 and (1 in tensors["value"].shape[1:-2] or heads == lead[1:].numel())  # which share keys
    cut = 1 if len(lead) < 3 or (groups and heads != lead[2]) else -1
    both = lead[:cut].numel(), lead[cut:].numel()
    if len(lead) == 1 and heads and lead[0] % heads == 0:
        both = lead[0] // heads, heads

    def four(name, x):
        own = x.shape[:-2]
        if name == "mask" and x.dim() in (2, 4):
            x = x.expand(*(1,) * (4 - x.dim()), *x.shape)
        elif own.numel() == lead.numel():
            x = x.reshape(*both, *x.shape[-2:])
        elif not len(own) == len(lead) == 2:  # else groups share its heads
            x = x.expand(*lead, *x.shape[-2:]).reshape(*both, *x.shape[-2:])
        return x.transpose(0, 1) if first else x

    first = len(lead) == 2 and heads == lead[0] != lead[1]
    sure = lead.numel() == 1 or (len(lead) == 2 and (heads in lead or 1 in lead))
    read = f"axes of {' x '.join(map(str, lead))} read as batch {both[0]} x heads {both[1]}"
    return {name: four(name, x) for name, x in tensors.items()}, [] if sure else [read]
