"""Attention that a model writes out: a product, a softmax, a product with the values, followed tensor by tensor."""

from collections import namedtuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

from .. import following

# What changes the shape of a tensor, or its type, and leaves it what it is.
_SHAPES = {
    "view", "reshape", "transpose", "permute", "contiguous", "unsqueeze", "squeeze", "expand", "flatten", "__get__",
    "unflatten", "chunk", "split", "unbind", "to", "float", "type", "type_as", "half", "bfloat16", "clone", "repeat",
    "__getitem__", "swapaxes", "movedim", "view_as", "expand_as", "repeat_interleave", "cat", "pad", "detach",
    "dropout", "narrow", "select", "double", "view_as_complex", "view_as_real",
}  # fmt: skip
# What adds to scores or hides keys; whatever else is done to them makes other scores of them.
_ADDS = {"add", "sub", "masked_fill", "where", "max", "maximum", "clamp", "clamp_min", "iadd", "radd", "isub"}
_SUMS = {"neg", "add", "sub", "stack"}
# What a tensor may be: multiplied by a constant, perhaps the features of a linear layer; the product of queries and
# keys, times `factor`; out of a softmax over `axis`, of what `masked` was, perhaps with its last axes exchanged.
Scaled = namedtuple("Scaled", "factor origin", defaults=[""])
_Scores = namedtuple("_Scores", "query key factor notes", defaults=[()])
_Weights = namedtuple("_Weights", "scores masked axis exchanged dropout notes", defaults=[False, 0.0, ()])
_ORDER, _NO_SCORES = [Scaled, _Scores, _Weights], _Scores(None, None, 1.0)


class Follower:
    """Knows of each tensor what it is, as long as it lives; hands weights that multiply values to `keep`."""

    def __init__(self, keep):
        self.keep, self.tags = keep, WeakIdKeyDictionary()

    def look(self, name, args, kwargs, result, first):
        """See one function: its name, what it was given, what it returned, and its first tensor as it was before."""
        if name in ("linear", "addmm"):
            self._mark(result, "linear")
        elif name in following.PRODUCTS:
            place, *names = following.PRODUCTS[name]
            x, y = (_argument(args, kwargs, i, key) for i, key in enumerate(names, place))
            if min(x.dim(), y.dim()) > 1:
                self._product("...ic,...cj,...ij", x, y, result, kwargs.get("alpha", 1.0))
        elif name == "einsum":
            pair = [*following.tensors(args[1:])]
            if isinstance(args[0], str) and "->" in args[0] and len(pair) == 2:
                self._product(args[0].replace(" ", "").replace("->", ","), *pair, result)
        else:
            self._elementwise(name, args, kwargs, result, first)

    def weigh(self, x):
        """Tell whether a tensor came out of a softmax."""
        return isinstance(self.tags.get(x), _Weights)

    def _mark(self, x, origin):
        if x.shape[-1] > 1:  # one number of each pair may still be a score
            self.tags[x] = Scaled(1.0, origin)

    def _elementwise(self, name, args, kwargs, result, first):
        tagged = [(tag, x) for x in following.tensors(args) if (tag := self.tags.get(x))]
        tag, most = max(tagged, key=lambda pair: _ORDER.index(type(pair[0])), default=(None, None))
        new, bare = name not in _SHAPES, name.strip("_")
        by_hand = bare == "exp" and isinstance(tag, _Scores)
        if by_hand or (bare in following.SOFTMAX and not isinstance(tag, _Weights)):
            axis = _argument(args, kwargs, 1, "dim", -1)
            features = isinstance(tag, Scaled) and tag.origin  # of a linear layer, as of a router: no map of pairs
            scores = tag if isinstance(tag, _Scores) else None
            tag = None if features else _Weights(scores, first.detach(), axis % first.dim() - first.dim())
        elif bare in following.SCALES and len(args) > 1:
            # A table of numbers leaves the factor what it is, a parameter or a norm does not.
            features = [other for other, _ in tagged if not isinstance(other, Scaled) or other != Scaled(1.0)]
            table = len(features) < 2 and not any(isinstance(x, torch.nn.Parameter) for x in args[:2])
            tag = _scaled_by(features[0] if table and features else tag, args, following.SCALES[bare], table)
        elif name == "normalize":
            tag = Scaled(1.0, "norm")
        elif bare in ("cos", "sin"):
            tag = None  # positions times frequencies are a product, too
        elif isinstance(tag, _Scores) and new and (bare not in _ADDS or ("sub" in bare and args[0] is not most)):
            tag = _note_change(tag, bare)
        elif isinstance(tag, _Weights) and name == "dropout":
            p, training = _argument(args, kwargs, 1, "p", 0.5), _argument(args, kwargs, 2, "training", True)
            tag = tag._replace(dropout=p * training)
        elif isinstance(tag, _Weights) and new and sum(isinstance(other, _Weights) for other, _ in tagged) > 1:
            tag = tag._replace(notes=("made of two maps, the scores are those of one",))
        elif isinstance(tag, Scaled) and new:
            factors = {getattr(self.tags.get(x), "factor", 1.0) for x in following.tensors(args)}
            tag = tag if bare in _SUMS and len(factors) == 1 else _without_factor(tag)  # a sum of two, as in rotations
        if isinstance(tag, _Scores | _Weights) and most is not None and following.exchanges_axes(most, result):
            scores = isinstance(tag, _Scores)
            tag = tag._replace(**{"query": tag.key, "key": tag.query} if scores else {"exchanged": not tag.exchanged})
        for x in following.tensors(result) if tag else ():
            # A weight that is spread over features, as a router's, is no map of pairs any more.
            whole = most is None or not new or (x.shape[-1:] == most.shape[-1:] and x.dim() >= most.dim())
            if x.is_floating_point() and whole:
                self.tags[x] = tag

    def _product(self, equation, x, y, result, alpha=1.0):
        """See a product of two tensors: scores, or weights that multiply values; letters name the axes."""
        parts = zip(equation.split(","), (x, y, result), strict=True)
        a, b, out = (part.replace("...", "ABCDEF"[6 - z.dim() + len(part.replace("...", "")) :]) for part, z in parts)
        if self.weigh(y):
            a, b, x, y = b, a, y, x
        if len(b) == 2 and (len(a) > 2 or isinstance(y if y._base is None else y._base, torch.nn.Parameter)):
            tag = self.tags.get(x)  # a table for all is a layer, or mixes heads
            if not isinstance(tag, _Scores | _Weights) or out[-1] != a[-1]:
                return self._mark(result, "linear")
            self.tags[result] = _note_change(tag, "a product") if isinstance(tag, _Scores) else tag
            return None
        # Heads that share keys stand on one side alone, as queries do: their letter, or the order, tells them.
        inner, ends = set(a) & set(b) - set(out), [set(a) & set(out) - set(b), set(b) & set(out) - set(a)]
        if len(inner) != 1 or not all(ends) or self.weigh(y):
            return None
        (c,), (i, j) = inner, [max(only, key=lambda x: (x.lower() not in "hgr", out.index(x))) for only in ends]
        lead = [letter for letter in (a if self.weigh(x) else out) if letter not in (i, j, c)]

        def in_order(x, letters, *ends):
            missing = "".join(letter for letter in lead if letter not in letters)
            return x[(..., *[None] * len(missing))].permute([(letters + missing).index(i) for i in (*lead, *ends)])

        if self.weigh(x):
            order = [a.index(letter) for letter in (*lead, i, c)]
            self._use(x, y, in_order(y, b, c, j), in_order(result, out, i, j), order)
            return self._mark(result, "mixed")
        f, g = (tag.factor if isinstance(tag := self.tags.get(side), Scaled) else 1.0 for side in (x, y))
        query, key = in_order(x, a, i, c).detach() / f, in_order(y, b, j, c).detach() / g
        query, key = (key, query) if out.index(i) > out.index(j) else (query, key)
        self.tags[result] = _Scores(query, key, f * g * alpha)

    def _use(self, weights, source, value, out, order):
        """Hand over weights at the moment when they multiply the values; `order` makes them (..., n_q, n_k)."""
        tag = self.tags[weights]
        scores, masked, axis, notes = tag.scores or _NO_SCORES, tag.masked, tag.axis, [*tag.notes]
        mixed = getattr(self.tags.get(source), "origin", "") == "mixed"  # by a softmax, as in linear attention
        if scores.query is None and (axis != -1 or min(weights.dim(), value.dim()) < 3 or mixed):
            return  # no attention, but experts or a kernel
        if tag.exchanged:
            masked, axis = masked.mT, {-1: -2, -2: -1}.get(axis, axis)
        if masked.numel() == weights.numel() and masked.shape[-2:] == weights.shape[-2:]:
            masked = masked.reshape(weights.shape)  # heads were folded into the batch
        if tag.exchanged != (order[-1] < order[-2]):
            scores = scores._replace(query=scores.key, key=scores.query)
        if masked.dim() == weights.dim():
            masked, axis = masked.permute(order), order.index(axis % weights.dim()) - weights.dim()
        weights, n_k = weights.permute(order), value.shape[-2]
        if axis != -1:
            notes.append("softmax over the queries" if axis == -2 else "softmax over neither queries nor keys")
        if scores.query is not None and (more := masked.shape[-1] - n_k) > 0:
            notes.append(following.sink(more))
            last = torch.allclose(masked.softmax(-1)[..., -n_k:].to(weights.dtype), weights)
            masked = masked[..., -n_k:] if last else masked[..., :n_k]
        if scores.query is None or (scores.query.shape[-2], scores.key.shape[-2]) != weights.shape[-2:]:
            notes += ["the scores were cut into other shapes"] * (scores.query is not None)
            scores, masked = _NO_SCORES, None
        some = {"query": scores.query, "key": scores.key, "value": value, "output": out, "masked": masked}
        same = masked is not None and masked.shape == weights.shape
        soft = masked.softmax(-1).to(weights.dtype) if same else weights
        if not same or not torch.allclose(soft, weights, atol=1e-6, equal_nan=True):
            some["weights"] = weights  # else one array (n_q, n_k) is enough
            if same and not tag.dropout and not notes:
                notes = [following.no_softmax(weights, soft, masked)]
        scale, notes = None if masked is None else scores.factor, [*scores.notes, *notes]
        self.keep("written out", some, scale, dropout=tag.dropout, notes=notes)


def _argument(args, kwargs, place, name, default=None):
    return args[place] if len(args) > place else kwargs.get(name, default)


def _note_change(scores, name):
    return scores._replace(notes=(*scores.notes, f"scores changed by {name}"))


def _scaled_by(tag, args, power, table):
    number = following.constant(args[1]) or (power > 0 and following.constant(args[0]))
    if isinstance(tag, _Weights) or getattr(tag, "origin", "") == "norm":  # a number after a norm is part of it
        return tag
    if number and (tag or (isinstance(args[0], torch.Tensor) and args[0].dim() > 1)):
        tag = tag or Scaled(1.0)
        return tag._replace(factor=tag.factor * number**power)
    if isinstance(tag, _Scores):
        mask = power > 0 and any(isinstance(x, torch.Tensor) and bool((x * x == x).all()) for x in args[:2])  # 0 and 1
        return tag if mask else _note_change(tag, "a factor that is not one number")
    return tag if tag is None or (table and power > 0) else _without_factor(tag)


def _without_factor(tag):
    return Scaled(1.0, tag.origin) if tag.origin else None
