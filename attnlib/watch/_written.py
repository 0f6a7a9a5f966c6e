"""Attention that a model writes out: a product, a softmax, a product with the values, followed tensor by tensor."""

from collections import namedtuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

# What changes the shape of a tensor, or its type, and leaves it what it is.
_SHAPES = {
    "view", "reshape", "transpose", "permute", "contiguous", "unsqueeze", "squeeze", "expand", "flatten", "__get__",
    "unflatten", "chunk", "split", "unbind", "to", "float", "type", "type_as", "half", "bfloat16", "clone", "repeat",
    "__getitem__", "swapaxes", "movedim", "view_as", "expand_as", "repeat_interleave", "dropout", "cat", "pad",
}  # fmt: skip
_SCALES = {"mul": 1, "mul_": 1, "multiply": 1, "__rmul__": 1, "div": -1, "div_": -1, "true_divide": -1, "divide": -1}
_PRODUCTS = {"matmul": (0, "input", "other"), "bmm": (0, "input", "mat2"), "baddbmm": (1, "batch1", "batch2")}
# What a tensor may be: multiplied by a constant; the product of queries and keys, times `factor`; out of a softmax.
Scaled = namedtuple("Scaled", "factor")
_Scores = namedtuple("_Scores", "query key factor notes", defaults=[()])
_Weights = namedtuple("_Weights", "scores masked notes", defaults=[()])
_ORDER, _NO_SCORES = [Scaled, _Scores, _Weights], _Scores(None, None, 1.0)


class Follower:
    """Knows of each tensor what it is, as long as it lives; hands weights that multiply values to `keep`."""

    def __init__(self, keep):
        self.keep, self.tags = keep, WeakIdKeyDictionary()

    def look(self, name, args, kwargs, result, first):
        """See one function: its name, what it was given, what it returned, and its first tensor as it was before."""
        if name in _PRODUCTS:
            place, *names = _PRODUCTS[name]
            a, b = (args[i] if len(args) > i else kwargs[key] for i, key in enumerate(names, place))
            self._product(a, b, result, self.tags.get(a), self.tags.get(b), result, kwargs.get("alpha", 1))
        elif name == "einsum":
            if parts := _as_product(args[0], args[1:], result):
                self._product(*parts, *(self.tags.get(x) for x in _tensors(args[1:])), result)
        else:
            self._elementwise(name, args, kwargs, result, first)

    def _elementwise(self, name, args, kwargs, result, first):
        tagged = [(tag, x) for x in _tensors(args) if (tag := self.tags.get(x))]
        tag, most = max(tagged, key=lambda pair: _ORDER.index(type(pair[0])), default=(None, None))
        if name == "softmax" and not isinstance(tag, _Weights):
            axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
            notes = () if axis in (-1, first.dim() - 1) else ("softmax over the queries",)
            tag = _Weights(tag if isinstance(tag, _Scores) else None, first.detach(), notes)
        elif name in _SCALES and len(args) > 1:
            tag = _scaled_by(tag, args, _SCALES[name])
        elif name in ("exp", "exp_") and isinstance(tag, _Scores):
            tag = _Weights(tag, first.detach())
        elif name in ("tanh", "tanh_") and isinstance(tag, _Scores):
            tag = tag._replace(notes=(*tag.notes, "tanh of scores"))
        elif isinstance(tag, Scaled) and name not in _SHAPES:
            tag = None
        if isinstance(tag, _Scores) and most is not None and _exchanges_axes(most, result):
            tag = tag._replace(query=tag.key, key=tag.query)
        for x in _tensors(result if isinstance(result, tuple | list) else [result]) if tag else ():
            # A weight that is spread over features, as a router's, is no map of pairs any more.
            if x.is_floating_point() and (most is None or name in _SHAPES or x.shape[-1:] == most.shape[-1:]):
                self.tags[x] = tag

    def _product(self, a, b, product, first, second, result, alpha=1):
        """A product of two tensors, as matrices (..., i, c) and (..., c, j), with what is known of them."""
        weights = [isinstance(tag, _Weights) for tag in (first, second)]
        if weights == [True, False] and b.dim() > 1:
            self._use(a, first, b, product)
        elif weights == [False, True] and a.dim() > 2:
            self._use(b.mT, second, a.mT, product.mT)
        elif not any(weights) and min(a.dim(), b.dim()) > 1 and not isinstance(b, torch.nn.Parameter):
            before = [tag.factor if isinstance(tag, Scaled) else 1.0 for tag in (first, second)]
            query, key = (x.detach() if f == 1 else x.detach() / f for x, f in zip((a, b.mT), before, strict=True))
            self.tags[result] = _Scores(query, key, before[0] * before[1] * alpha)

    def _use(self, weights, tag, value, out):
        """Hand over weights at the moment when they multiply the values."""
        scores, masked, n_k = tag.scores or _NO_SCORES, tag.masked, weights.shape[-1]
        if scores.query is None and (tag.notes or weights.dim() < 3):
            return  # a softmax that is no attention, as over experts or over a kernel
        notes = [*scores.notes, *tag.notes]
        if scores.query is not None and (more := masked.shape[-1] - n_k) > 0:
            notes.append(f"the softmax saw {more} more column{'s' * (more > 1)}, as with a sink")
            last = torch.allclose(masked.softmax(-1)[..., -n_k:].to(weights.dtype), weights)
            masked = masked[..., -n_k:] if last else masked[..., :n_k]
        if scores.query is None or (scores.query.shape[-2], scores.key.shape[-2]) != weights.shape[-2:]:
            notes += ["the scores were cut into other shapes"] * (scores.query is not None)
            scores, masked = _NO_SCORES, None
        some = {"query": scores.query, "key": scores.key, "value": value, "output": out, "masked": masked}
        same = masked is not None and masked.shape == weights.shape
        if not same or not torch.allclose(masked.softmax(-1).to(weights.dtype), weights, atol=1e-6):
            some["weights"] = weights  # else one array (n_q, n_k) is enough
        self.keep("written out", some, None if masked is None else scores.factor, notes=notes)


def _scaled_by(tag, args, power):
    constant = next((c for x in args[1::-1] if (c := _constant(x)) is not None), None)
    if not constant:
        return None if isinstance(tag, Scaled) else tag
    if tag is None:
        return Scaled(constant**power) if isinstance(args[0], torch.Tensor) and args[0].dim() > 1 else None
    return tag if isinstance(tag, _Weights) else tag._replace(factor=tag.factor * constant**power)


def _tensors(args):
    inside = (y for x in args for y in (x if isinstance(x, tuple | list) else [x]))
    return [x for x in inside if isinstance(x, torch.Tensor)]


def _exchanges_axes(before, after):
    """Tell whether queries and keys changed places."""
    if not isinstance(after, torch.Tensor) or after.data_ptr() != before.data_ptr() or before.dim() < 2:
        return False
    (i, j), turned = before.stride()[-2:], (after.stride()[:-3:-1], after.shape[:-3:-1])
    return i != j and (before.stride()[-2:], before.shape[-2:]) == turned


def _constant(x):
    if isinstance(x, torch.Tensor) and (x.dim() or isinstance(x, torch.nn.Parameter) or x.is_meta):
        return None
    return float(x) if isinstance(x, torch.Tensor | int | float) else None


def _as_product(equation, tensors, result):
    """Return both sides of an einsum and its result as those of a product (..., i, c) (..., c, j), or None."""
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
    if not isinstance(equation, str) or "->" not in equation or len(tensors) != 2:
        return None
    more = "ABCDEFG"[: tensors[0].dim() - len(equation.split(",")[0].replace(" ", "").replace("...", ""))]
    a, b, out = equation.replace(" ", "").replace("...", more).replace("->", ",").split(",")
    shared = [x for x in out if x in a and x in b]
    i, j, c = set(a) & set(out) - set(b), set(b) & set(out) - set(a), set(a) & set(b) - set(out)
    sides = ((a, (*i, *c), tensors[0]), (b, (*c, *j), tensors[1]), (out, (*i, *j), result))
    if any(len(x) != 1 for x in (i, j, c)) or any(len(side) != len(shared) + 2 for side, _, _ in sides):
        return None
    return [x.permute([side.index(letter) for letter in (*shared, *last)]) for side, last, x in sides]
