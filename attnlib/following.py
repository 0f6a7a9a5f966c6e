"""Rules for following tensors from queries and keys to the weights that multiply values, for `diagnose` and `watch`.

The two look at different levels. `watch` sees the functions that a model calls, at any size and often: tensors that are
only filled with one number are no constants there, and a product with a bias is a layer. `diagnose` sees what those
functions run, on few tokens. So each keeps its own words for what a tensor is, and its own list of what leaves it that.
"""

from collections.abc import Iterator
from typing import Any

import torch

# Where the two factors of a product stand among its arguments, and their names.
PRODUCTS = {
    "mm": (0, "input", "mat2"),
    "bmm": (0, "input", "mat2"),
    "addmm": (1, "mat1", "mat2"),
    "baddbmm": (1, "batch1", "batch2"),
}
# By names without the underscores at their ends: the power to which a factor counts, and what makes weights of scores.
SCALES = {"mul": 1, "multiply": 1, "rmul": 1, "div": -1, "divide": -1, "true_divide": -1}
SOFTMAX = {"softmax", "safe_softmax"}


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


def sink(more: int) -> str:
    """Return the words for a softmax over more columns than there are keys."""
    return f"the softmax saw {more} more column{'s' * (more > 1)}, as with a sink"
