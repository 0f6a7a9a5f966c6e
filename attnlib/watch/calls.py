"""What was seen: one attention call, and all of them."""

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from .. import core, following, masks
from ..columns import align
from ..findings import Grid

# How far the output of a trace may be from the model's, as a share of its largest number.
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}
ALL, MOST_ROWS = slice(None), 60  # rows of a table


@dataclass(repr=False, eq=False)
class Call:
    """One attention call of a model. It shows itself as a row of a table."""

    number: int  # in the order of the calls
    path: str  # of the module, as in model.named_modules()
    kind: str  # "fused", "written out" or "flex"; of a call that could not be followed the operation
    b: int
    h: int
    h_kv: int  # smaller than h where heads share keys and values
    n_q: int
    n_k: int
    d_k: int
    scale: float | None  # what query @ key^T was multiplied by; None where there is no such product
    dropout: float
    dtype: torch.dtype
    is_causal: bool = False
    notes: tuple[str, ...] = ()
    # (b, h, n, d): query, key, value, output; mask, or of a call that is written out masked scores and perhaps weights.
    kept: dict[str, torch.Tensor] | None = None

    def trace(self, batch: int = 0, head: int | None = None, queries: slice = ALL) -> core.AttentionTrace:
        """Return every step of one sequence, whose output is the model's own up to rounding.

        `batch` and `head` count from 0; without a head it has all, (h, n_q, n_k). `queries` are the rows: the map of a
        long text may not fit into memory. LookupError says that the call was not kept, or has no product of queries and
        keys; ArithmeticError by how much the output computed again is not the model's own.
        """
        trace, off = self._recompute(batch, head, queries)
        if not off <= TOLERANCE[self.dtype]:
            why = f" Dropout of {self.dropout:g} was on. Fix: model.eval()." if self.dropout else ""
            raise ArithmeticError(
                f"{self._name}: the output computed again differs from the model's own by {off:.2g} of its largest "
                f"number, expected at most {TOLERANCE[self.dtype]:g}, so no trace is given.{why}"
            )
        return trace

    def _recompute(self, batch, head=None, queries=ALL):
        """Return the trace, and how far its output is from the model's, as a share of the largest number."""
        for name, index, size in (("batch", batch, self.b), ("head", head or 0, self.h)):
            if self.kept and index not in range(size):
                raise LookupError(f"{self._name}: {name} must be a number from 0 to {size - 1}, got {index!r}.")
        at = batch, ALL if head is None else head
        query, key, value, output = (self._part(name, at) for name in ("query", "key", "value", "output"))
        mask = self._mask(at, queries)
        if mask is not None and mask.dtype != torch.bool and ((mask == 0) | (mask == 1)).all():
            mask = mask - 1  # attnlib refuses 0 and 1, which are no mask; 1 less for all changes no weight
        arrays = [x.numpy(force=True) for x in (query[..., queries, :], key, value)]
        trace = core.attention_trace(*arrays, None if mask is None else mask.numpy(force=True), scale=self.scale)
        if "weights" in (self.kept or {}):  # with a sink, a gate or dropout they are no softmax: those used count
            weights = self._part("weights", at)[..., queries, :].numpy(force=True)
            if np.abs(weights - trace.weights).max() > 1e-3:
                trace = replace(trace, weights=weights, output=weights @ arrays[2])
        models = output[..., queries, :].numpy(force=True)
        nan = np.where(np.isnan(models).any(-1, keepdims=True), np.nan, 0)  # the model's own, where attnlib has 0
        trace = replace(trace, weights=trace.weights + nan, output=trace.output + nan)
        far = np.abs(trace.output - models)[nan[..., 0] == 0].max(initial=0)
        return trace, far / np.nanmax(np.abs(models), initial=1e-30)

    @property
    def plain(self) -> bool:
        """Whether it was kept, and its weights are softmax(scale * query @ key^T + mask), for all that was seen."""
        made = any(note.startswith(("scores changed", "softmax over")) for note in self.notes)
        return {"query", "weights"} & {*(self.kept or {})} == {"query"} and not made

    @property
    def _name(self):
        return f"call {self.number} ({self.path})"

    def _part(self, name, at):
        """Return what was kept of one sequence, (h, n, d) or (n, d), in float32 at least."""
        if name not in (self.kept or {}):
            why = f"was not kept: {'; '.join(self.notes)}"
            why += ". Fix: fewer, watch(model, layers=...), or a larger most=" * why.endswith(("asked for", "used up"))
            if self.kept:
                why = 'has no product of queries and keys, so no trace. Fix: see .kept["weights"], (b, h, n_q, n_k)'
            raise LookupError(f"{self._name} {why}.")
        x = self.kept[name]
        x = x if x.shape[1] in (1, self.h) else x.repeat_interleave(self.h // x.shape[1], 1)
        return x.expand(self.b, self.h, -1, -1)[at].to(torch.float64 if self.dtype == torch.float64 else torch.float32)

    def _mask(self, at, rows):
        """Return who may attend, or what is added to the scaled scores, of these rows; None: all may."""
        if self.is_causal:  # as torch has it: from the upper left corner
            return torch.arange(self.n_k) <= torch.arange(self.n_q)[rows, None]
        if "masked" in self.kept:
            query, key, masked = (self._part(name, at) for name in ("query", "key", "masked"))
            return following.added_mask(masked[..., rows, :], query[..., rows, :] @ key.mT * self.scale, self.dtype)
        if (x := self.kept.get("mask")) is None:
            return None
        x = x.expand(*(x.shape[:2] if at == (ALL, ALL) else (self.b, self.h)), self.n_q, self.n_k)
        return following.plain_mask(x[at][..., rows, :])

    def read_mask(self) -> tuple[torch.Tensor, bool]:
        """Return who may attend, (b or 1, h or 1, n_q, n_k), and whether a bias is added, too."""
        if (mask := self._mask((ALL, ALL), ALL)) is None:
            mask = torch.ones(self.n_q, self.n_k, dtype=torch.bool)
        allowed, bias = following.split_mask(mask)
        return allowed.expand(*(allowed.shape[:-2] or (1, 1)), -1, -1).cpu(), bias

    @cached_property
    def mask_in_words(self) -> str:
        """What kind of mask it is: none, causal, padding, and whether a bias is added."""
        if self.is_causal:
            return "causal" if self.n_q == self.n_k else "causal, upper left"
        if "query" not in (self.kept or {}):
            return "?"
        allowed, bias = self.read_mask()
        return (masks.in_words(allowed.numpy()) + " + bias" * bias).removeprefix("none + ")

    def _row(self):
        notes = [*self.notes, *[f"dropout {self.dropout:g}"] * (self.dropout > 0)]
        h, scale = str(self.h), "?" if self.scale is None else f"{self.scale:.4g}"
        h += f" on {self.h_kv}" * (self.h != self.h_kv)
        cells = self.number, self.path, self.kind, self.b, h, self.n_q, self.n_k, self.d_k, scale, self.mask_in_words
        return [*map(str, cells), str(self.dtype).removeprefix("torch."), "; ".join(notes)]

    def __repr__(self) -> str:
        return repr(Seen([self], None))


class Seen(list[Call]):
    """All attention calls of a model, in order. It shows itself as a table.

    A number gives a call. A pattern of paths, as ``"*.layers.3.*"``, gives the call that fits, or of several a `Seen`;
    a path gives all calls inside that module.
    """

    def __init__(self, calls: Iterable[Call], model: torch.nn.Module | None) -> None:
        super().__init__(calls)
        self.model = model

    def __getitem__(self, which: Any) -> Any:
        if not self:
            raise LookupError(_why_nothing(self.model))
        if not isinstance(which, str):
            found = super().__getitem__(which)
            return Seen(found, self.model) if isinstance(which, slice) else found
        if not (calls := [call for call in self if fits(which, call.path)]):
            paths = ", ".join(dict.fromkeys(call.path for call in self))
            raise LookupError(f"no call fits {which!r}: expected one of {paths}.")
        return calls[0] if len(calls) == 1 else Seen(calls, self.model)

    def trace(self, batch: int = 0, head: int | None = None, queries: slice = ALL) -> core.AttentionTrace:
        """Return the trace of the only call; where there are several, LookupError says which numbers they have."""
        if len(self) < 2:
            return self[0].trace(batch, head, queries)
        numbers = ", ".join(call._name.removeprefix("call ") for call in self[:MOST_ROWS])
        fix = f"Fix: the number of one, seen[{self[0].number}].trace(...)."
        raise LookupError(f"a trace is of one call, expected a choice of 1, got {len(self)}: {numbers}. {fix}")

    def grid(self, batch: int = 0, side: int = 16) -> Grid:
        """Return a number and a small map of every head, for all calls that were kept.

        A map has at most `side` cells across and down; a cell is the share of weight that its queries give to its keys.
        One block of rows at a time is computed again and proved, as by `Call.trace`, so memory stays small.
        """
        calls = [call for call in self if "query" in (call.kept or {})] or [self[0]]  # whose trace says why not
        keys, maps = zip(*(following.shrink_maps(call, batch, side) for call in calls), strict=True)
        return Grid(calls, [f"{call.number}, head {head}" for call in calls for head in range(call.h)], keys, maps)

    def stops(self, words: Sequence[str], following: Sequence[tuple[str, float]], batch: int = 0) -> dict[str, Any]:
        """Return what `live.ribbons` shows: where each word of a sentence looks in every head, and the next word.

        `words` are all n tokens, with the blank that begins a word; `following` the likely next ones and their
        probabilities, falling. Layers are the calls of n queries and keys that have the heads and scale of the first of
        them, and whose weights are a softmax of their scores; LookupError says that there are none.
        """
        n = len(words)
        fit = [call for call in self if call.plain and call.n_q == call.n_k == n and call.scale > 0]
        if not fit:
            got = dict.fromkeys(f"{c.n_q} x {c.n_k}" + f" ({'; '.join(c.notes)})" * bool(c.notes) for c in self)
            raise LookupError(
                f"ribbons show softmax(scale * query @ key^T + mask) of all words, expected a call of {n} x {n} that "
                f"was kept, got {', '.join(got) or 'no call'}. Fix: one word for each token, or trace() of one call."
            )
        d_k = round(fit[0].scale ** -2, 6)  # by whose root the scores are divided
        alike = [call for call in fit if call.h == fit[0].h and np.isclose(call.scale, fit[0].scale)]
        scores = np.stack([call.trace(batch).masked_scores for call in alike])
        stop = {"d_k": d_k, "weights": core.softmax(scores[0, 0]), "next": following}
        return {"words": words, "layer": 1, "head": 1, "d_k": d_k, "stops": [stop], "scores": scores}

    def __repr__(self) -> str:
        if not self:
            return _why_nothing(self.model)
        head = ["", "module", "kind", "b", "h", "n_q", "n_k", "d_k", "scale", "mask", "dtype", "notes"]
        more = f"\n... and {len(self) - MOST_ROWS} more" if len(self) > MOST_ROWS else ""
        return align([head, *(call._row() for call in self[:MOST_ROWS])]) + more


def fits(pattern: str, path: str) -> bool:
    """Tell whether the path of a module fits a pattern, or lies inside the module that is named."""
    wholes = (path, f".{path}", f"{path}.", f".{path}.")
    return f"{path}.".startswith(f"{pattern}.") or any(fnmatch.fnmatchcase(whole, pattern) for whole in wholes)


def _why_nothing(model):
    kind = str(getattr(getattr(model, "config", None), "_attn_implementation", ""))
    fix = f' Its attention is "{kind}". Fix: model.set_attn_implementation("sdpa").' if "flash" in kind else ""
    return (
        f"no attention call was seen.{fix} Seen are torch's fused attention, nn.MultiheadAttention, flex_attention, a "
        "softmax between two products (einsum: of two tensors), called by this thread inside the with block; "
        "not other kernels (flash_attn, xformers), TorchScript, threads of DataParallel, attention without a softmax."
    )
