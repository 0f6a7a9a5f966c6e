"""Rules for following tensors from queries and keys to the weights that multiply values, for `diagnose` and `watch`.

The two look at different levels. `watch` sees the functions that a model calls, at any size and often: tensors that are
only filled with one number are no constants there, and a product with a bias is a layer. `diagnose` sees what those
functions run, on few tokens. So each keeps its own words for what a tensor is, and its own list of what leaves it that.
How it is read stands here once: scales and their words, masks that are added, who sees whom, maps of long texts.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from . import core

# Where the two factors of a product stand among its arguments, and their names.
PRODUCTS = {
    "matmul": (0, "input", "other"),
    "mm": (0, "input", "mat2"),
    "bmm": (0, "input", "mat2"),
    "addmm": (1, "mat1", "mat2"),
    "baddbmm": (1, "batch1", "batch2"),
}
# By names without the underscores at their ends: the power to which a factor counts, and what makes weights of scores.
SCALES = {"mul": 1, "multiply": 1, "rmul": 1, "div": -1, "divide": -1, "true_divide": -1}
SOFTMAX = {"softmax", "safe_softmax"}
# Numbers of a configuration by which a model declares its scale.
_DECLARED = {"attention_multiplier": lambda x: x, "query_pre_attn_scalar": lambda x: x**-0.5}
BLOCKED = -9e3  # at or below it a number that is added hides a key: some models add -10000
BLOCK = 2**18  # numbers of a map that are held at once


def tensors(x: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a tuple, list, dict or ModelOutput, in order."""
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, dict | tuple | list):
        for part in x.values() if isinstance(x, dict) else x:
            yield from tensors(part)


def constant(x: Any, filled: bool = False) -> float | None:
    """Return the number that `x` is, else None; a tensor with axes may be one if `filled` with one and the same."""
    if not isinstance(x, torch.Tensor):
        return float(x) if isinstance(x, int | float) else None
    if isinstance(x, torch.nn.Parameter) or x.is_meta or x.is_complex() or not x.numel() or (x.dim() and not filled):
        return None
    first = x.detach().flatten()[0]
    same = bool((x == first).all()) if x.is_floating_point() else x.numel() == 1
    return float(first) if same else None


def exchanges_axes(before: torch.Tensor, after: Any) -> bool:
    """Tell whether queries and keys changed places."""
    if not isinstance(after, torch.Tensor) or after.data_ptr() != before.data_ptr() or before.dim() < 2:
        return False
    (i, j), turned = before.stride()[-2:], (after.stride()[:-3:-1], after.shape[:-3:-1])
    return i != j and (before.stride()[-2:], before.shape[-2:]) == turned


def declared_scales(config: Any) -> list[float]:
    """Return the scales of scores that a configuration of transformers declares, or one of its parts."""
    configs, parts = [config], ("config", "encoder", "decoder")
    for one in configs:  # which grow by its parts
        configs += [x for name, x in getattr(one, "__dict__", {}).items() if name.endswith(parts)]
    return [f(x) for one in configs for name, f in _DECLARED.items() if (x := getattr(one, name, None))]


def scale_in_words(scale: float, d_k: int, heads: int, declared: list[float]) -> str:
    """Return the words for a scale of scores; none where it is 1/sqrt(d_k), or is declared."""
    known = [(right, "") for right in (*declared, d_k**-0.5)]
    known += [((heads * d_k) ** -0.5, "1/sqrt of the layer's width"), (1, "no division")]
    other = f"{scale * d_k**0.5:.4g}/sqrt(d_k)"
    return next((words for right, words in known if abs(scale / right - 1) < 1e-3), other)


def split_mask(mask: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """Return who may attend by a mask, boolean or added to the scores, and whether it adds a bias, too."""
    if mask.dtype == torch.bool:
        return mask, False
    allowed = mask > BLOCKED
    return allowed, bool(((mask != 0) & allowed).any())


def plain_mask(mask: torch.Tensor) -> "torch.Tensor | None":
    """Return an additive mask that only hides keys as a boolean one; None for one that does nothing."""
    allowed, bias = split_mask(mask)
    if allowed is mask:
        return mask
    if bias or not allowed.any(-1).all():
        return mask.to(torch.promote_types(mask.dtype, torch.float32))
    return None if allowed.all() else allowed


def added_mask(masked: torch.Tensor, scaled: torch.Tensor, dtype: torch.dtype) -> "torch.Tensor | None":
    """Return what was done to the scaled scores before the softmax, as a mask."""
    # A maximum taken from each row changes no weight, and what is left of a difference is rounding.
    most = (added := masked - scaled).amax(-1, keepdim=True)
    added = (added - most.masked_fill(most <= BLOCKED, 0)).masked_fill(added.isnan(), 0)
    least = 8 * torch.finfo(dtype).eps * (1 + float(scaled.abs().amax()))
    return plain_mask(added * (added.abs() > least))


def groups_of(facts: Any, name: str) -> list[list[Any]]:
    """Return those that have the same attribute together, in order."""
    return [[f for f in facts if getattr(f, name) == key] for key in dict.fromkeys(getattr(f, name) for f in facts)]


def look_around(allowed: torch.Tensor, queries: torch.Tensor) -> tuple[bool, bool, torch.Tensor]:
    """Return whether some queries, (b, n_q), see later keys, and mostly their own; and which keys any of them sees."""
    asked, corner = allowed & queries[:, None, :, None], allowed.shape[-1] - allowed.shape[-2]
    own = 2 * asked.diagonal(corner, -2, -1).sum() >= asked.any(-1).sum()
    return bool(asked.triu(corner + 1).any()), bool(own), asked.any(-2)


def copied_heads(scores: torch.Tensor) -> int:
    """Return how many heads have the scores of another; weights alone may be alike where all take one key."""
    pairs, least = ((i, j) for j in range(scores.shape[1]) for i in range(j)), 1e-6 * scores.abs().amax()
    return len({j for i, j in pairs if (scores[:, i] - scores[:, j]).abs().amax() < least})


def shrink_maps(call: Any, batch: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return of every head how many keys count, and its map in few cells; one block of rows is held at a time."""
    rows, columns = min(side, call.n_q), min(side, call.n_k)
    row_of = np.arange(call.n_q) * rows // call.n_q
    starts = -(-np.arange(columns) * call.n_k // columns)
    keys, few = np.zeros(call.h), np.zeros((call.h, rows, columns))
    for head in range(call.h):
        for some in np.array_split(np.arange(call.n_q), min(call.n_q, -(-call.n_q * call.n_k // BLOCK))):
            weights = call.trace(batch, head, slice(some[0], some[-1] + 1)).weights
            np.add.at(few[head], row_of[some], np.add.reduceat(weights, starts, axis=-1))
            keys[head] += np.exp(core.entropy(weights)).sum()
    return keys / call.n_q, few / np.bincount(row_of)[:, None]


def not_called(paths: set[str], model: "torch.nn.Module | None", least: int) -> dict[str, str]:
    """Return words for modules without a call where more siblings, and so many at least, have one: not for adapters."""
    kinds: dict[Any, list[str]] = {}
    for path, part in () if model is None else model.named_modules():
        kinds.setdefault((re.sub(r"\d+", "*", path), type(part).__name__), []).append(path)
    counts = [(sum(path in paths for path in kind), kind) for kind in kinds.values()]
    told = [(n, path) for n, kind in counts if n >= max(least, len(kind) - n + 1) for path in kind if path not in paths]
    return {path: f"no call seen, its {n} siblings have one" for n, path in told}


def no_softmax(weights: torch.Tensor, soft: torch.Tensor, masked: torch.Tensor) -> str:
    """Return the words for weights that are not `soft`, the softmax of what is masked."""
    zeroed = torch.allclose(soft.where(masked.amax(-1, keepdim=True) > BLOCKED, 0), weights, atol=1e-6)
    return "rows that see nothing are set to 0" if zeroed else "the weights are no softmax of these scores"


def sink(more: int) -> str:
    """Return the words for a softmax over more columns than there are keys."""
    return f"the softmax saw {more} more column{'s' * (more > 1)}, as with a sink"
