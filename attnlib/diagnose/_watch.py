"""Follow the inputs of a module through its operations, to the weights that multiply the values."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from .. import following

PARAMETER, FEATURES, SCORES, WEIGHTS = range(4)

_NORMS = {"native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm", "rms_norm"}
_WHOLE = {"t", "transpose", "permute", "view", "_unsafe_view", "expand", "unsqueeze", "squeeze", "clone", "detach"}
_RANDOM = {"native_dropout", "bernoulli", "bernoulli_"}

_PLUS_ONE = "exp and a division of its own, as in softmax plus one"
_DIFFERENCE = "one map is taken from another, as in differential attention"


class _Tag(NamedTuple):
    """What is known of a tensor that was computed from the inputs or from a parameter."""

    stage: int
    factor: float = 1.0  # constants it was multiplied by since the last layer
    learned: bool = False  # a parameter or a norm scaled it, too: `factor` is not the whole scale
    gated: bool = False  # of weights: something learned multiplied or mixed them, so rows sum to anything
    width: int | None = None  # of scores: how many features a query and a key have
    rms: tuple = ()  # of scores: root mean square of queries and of keys
    projected: bool = False  # of features: a parameter multiplied them
    queries: tuple = ()  # of scores: their Side
    keys: tuple = ()
    softmax: bool = False
    less: str = ""  # why the rows of weights may sum to less than 1 on purpose
    name: str | None = None  # of a parameter that is still whole


class Side(NamedTuple):
    """Queries, keys or values as they come into a product."""

    alike: bool  # the same for all tokens
    projected: bool
    trained: bool  # a gradient goes through
    features: torch.Tensor | None = None
    axis: int = -2  # of the tokens


class Use(NamedTuple):
    """Weights, at the moment they multiply the values: (slices, n_q, n_k), slices being heads and batch."""

    weights: torch.Tensor
    scores: _Tag
    projected: bool  # a parameter multiplied queries or keys before
    values: Side


class Watch(TorchDispatchMode):
    """Record what the values are multiplied by, and which constants and parameters took part on the way.

    ``start(x)`` names an input; what is computed from it is followed by identity, so constants, masks and positions
    stay apart. With ``alone=True`` each query's weights are replaced by 1 for its own token and 0 for the others: no
    token may reach another one then.

    Attributes
    ----------
    uses : list of Use
    multiplied : set of str
        Names of parameters that multiplied features as a whole matrix.
    convolves, dropout, multiplies, elsewhere : bool
        A convolution wider than 1, a dropout, a product of two tensors that both depend on the inputs, a product of
        weights and a parameter that is no mixing of heads was seen.
    weighs, normalises, drops_scores, opaque : bool
        A softmax or an exp of what depends on the inputs was seen, a softmax of scores, a dropout of scores, an
        operation not of torch.
    largest : float
        With ``sizes=True`` the largest finite number that any operation returned.
    single : bool
        Something was computed in float32 or less.
    """

    def __init__(self, module, n_q, n_k, alone=False, sizes=False):
        super().__init__()
        self.n_q, self.n_k, self.alone, self.sizes, self.largest = n_q, n_k, alone, sizes, 0.0
        self.uses, self.multiplied = [], set()
        self.convolves = self.dropout = self.single = self.multiplies = self.elsewhere = self._projected = False
        self.weighs = self.drops_scores = self.opaque = self.normalises = False
        self._tags = WeakIdKeyDictionary()
        for name, parameter in module.named_parameters():
            self._tags[parameter] = _Tag(PARAMETER, name=name)

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # nothing is compiled here; True would import torch's compiler, which takes seconds

    def start(self, x):
        self._tags[x] = _Tag(FEATURES)

    def _tag(self, x):
        return self._tags.get(x) if isinstance(x, torch.Tensor) else None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function._schema.name.removeprefix("aten::")
        bare = name.strip("_")
        # A tag says which stage of attention a tensor is: those that go in, and the operation, decide on the result.
        if name in following.PRODUCTS:
            at, *_ = following.PRODUCTS[name]
            args = self._leave_alone(at, [*args]) if self.alone else args
            tag = self._product(*args[at : at + 2], kwargs.get("alpha", 1))
        elif name == "convolution":
            self.convolves |= self._tag(args[0]) is not None and any(size > 1 for size in args[1].shape[2:])
            self._projected |= self._tag(args[0]) is not None
            tag = self._convolved(self._tag(args[0]))
        else:
            tag = self._elementwise(name, bare, args)
        result = function(*args, **kwargs)
        self.dropout |= name in _RANDOM
        self.drops_scores |= name in _RANDOM and tag is not None and tag.stage == SCORES
        self.opaque |= "::" in name  # what stands before the name of an operation of torch is removed
        self.weighs |= bare in {*following.SOFTMAX, "exp"} and tag is not None and tag.stage > PARAMETER
        for tensor in following.tensors(result):
            if self.sizes and tensor.is_floating_point() and tensor.numel():
                self.largest = max(self.largest, float(tensor.detach().abs().nan_to_num(0, 0).max()))
            if tag is not None:
                self.single |= tag.stage > PARAMETER and tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)
                self._tags[tensor] = tag
        return result

    def _elementwise(self, name, bare, args):
        tensors = [x for x in following.tensors(args) if x in self._tags]
        if not tensors:
            return None
        # Of scores plus a mask, or weights times a gate, the stage that is further on counts.
        first = max(tensors, key=lambda x: self._tag(x).stage)
        tag = self._tag(first)
        if tag.stage == PARAMETER:
            return tag if name in _WHOLE else tag._replace(name=None)
        if tag.stage == WEIGHTS:
            return self._reweighted(bare, tag, [self._tag(x) for x in tensors])
        if bare in following.SOFTMAX and (tag.stage == SCORES or self._over_pairs(args[0], args[1])):
            self.normalises = True
            more = args[0].shape[args[1]] - self.n_k
            less = following.sink(more) if 0 < more < self.n_k else ""
            return tag._replace(stage=WEIGHTS, softmax=True, less=less)
        if bare == "exp" and tag.stage == SCORES:
            return tag._replace(stage=WEIGHTS, softmax=True, less=_PLUS_ONE)
        if bare in following.SCALES:
            return self._scaled(following.SCALES[bare], *args[:2])
        if name in _NORMS:
            return tag._replace(factor=1.0, learned=True)
        return tag

    def _reweighted(self, name, tag, tags):
        """Weights after the softmax: gates and parameters change their sums, and so does a second map taken away."""
        gated = name in following.SCALES and any(other.stage != WEIGHTS for other in tags)
        gated = gated or any(other.gated or other.stage == PARAMETER for other in tags)
        subtracted = name == "sub" and sum(other.stage == WEIGHTS for other in tags) > 1
        return tag._replace(gated=gated, less=_DIFFERENCE if subtracted else tag.less)

    def _convolved(self, tag):
        """Features are projected; scores and weights are mixed, as by talking heads."""
        if tag is None or tag.stage < SCORES:
            return tag and tag._replace(factor=1.0, learned=False, projected=True)
        return tag._replace(learned=tag.learned or tag.stage == SCORES, gated=tag.stage == WEIGHTS)

    def _over_pairs(self, x, axis):
        """Scores that are no product, as in additive attention."""
        return x.shape[axis] == self.n_k and sum(size in (self.n_q, self.n_k) for size in x.shape) >= 2

    def _scaled(self, power, first, second):
        ours, other = self._tag(first), self._tag(second)
        if (ours is None or ours.stage == PARAMETER) and other is not None and other.stage > PARAMETER:
            if power < 0:
                return other._replace(learned=True)
            first, second, ours, other = second, first, other, ours
        if other is not None:
            return max(ours, other, key=lambda tag: tag.stage)._replace(learned=True)
        constant = following.constant(second, filled=True)
        return ours._replace(factor=ours.factor * constant**power) if constant else ours

    def _product(self, a, b, alpha):
        first, second = self._tag(a), self._tag(b)
        if first is None or second is None or PARAMETER in (first.stage, second.stage):
            return self._layer(a, b, first, second)
        self.multiplies = True
        stages = first.stage, second.stage
        # Features times features, as large as a map, are scores; a map times features is the use of attention.
        if stages == (FEATURES, FEATURES) and self._are_pairs(a.shape[-2], b.shape[-1]):
            factor = first.factor * second.factor * alpha
            rms = tuple(float(x.detach().square().mean()) ** 0.5 for x in (a, b))
            tag = _Tag(SCORES, factor, first.learned or second.learned, width=a.shape[-1], rms=rms)
            return tag._replace(queries=_side(a, -2, first), keys=_side(b, -1, second))
        if sum(stage >= SCORES for stage in stages) == 1:
            weights, tag = (a, first) if first.stage >= SCORES else (b.transpose(-1, -2), second)
            values = _side(b, -2, second) if first.stage >= SCORES else _side(a, -1, first)
            if self._fits(weights):
                seen = weights.detach().clone().reshape(-1, self.n_q, self.n_k)
                self.uses.append(Use(seen, tag, self._projected, values))
        return _Tag(FEATURES)

    def _layer(self, a, b, first, second):
        """A product with a parameter or a constant."""
        ours, other = (first, second) if first is not None and first.stage > PARAMETER else (second, first)
        if ours is None or ours.stage == PARAMETER:
            return ours and ours._replace(name=None)
        learned = other is not None
        if ours.stage == FEATURES:
            self._projected |= learned
            if learned and other.name:
                self.multiplied.add(other.name)
            return _Tag(FEATURES, projected=True) if learned else ours
        # A product that mixes heads leaves pairs of tokens; any other one is the end of them.
        pairs = self._are_pairs(a.shape[-2], b.shape[-1])
        self.elsewhere |= learned and not pairs and ours.stage == WEIGHTS
        mixed = {"gated": ours.gated or learned} if ours.stage == WEIGHTS else {"learned": ours.learned or learned}
        return ours._replace(**mixed) if pairs else _Tag(FEATURES)

    def _are_pairs(self, rows, columns):
        n_q, n_k = self.n_q, self.n_k
        return (rows % n_q == 0 and columns % n_k == 0) or (rows % n_k == 0 and columns % n_q == 0)

    def _fits(self, weights):
        return weights.shape[-1] == self.n_k and weights.shape[-2] % self.n_q == 0

    def _leave_alone(self, i, args):
        stages = [tag.stage if (tag := self._tag(x)) is not None else None for x in args[i : i + 2]]
        if FEATURES not in stages or not {SCORES, WEIGHTS} & set(stages):
            return args
        at = i if stages[0] != FEATURES else i + 1
        # Some write V^T weights^T: there the weights come second, and turned.
        weights = args[at] if at == i else args[at].transpose(-1, -2)
        if self._fits(weights):
            eye = torch.eye(self.n_k, dtype=weights.dtype).repeat(weights.shape[-2] // self.n_q, 1)
            eye = eye if at == i else eye.T
            tag, args[at] = self._tag(args[at]), eye.expand_as(args[at]).clone()
            self._tags[args[at]] = tag
            self.uses.append(Use(weights.detach(), tag, self._projected, Side(False, False, False)))
        return args


def _side(x, axis, tag):
    first = x.detach().narrow(axis, 0, 1)
    return Side(x.shape[axis] > 1 and bool((x == first).all()), tag.projected, x.requires_grad, x.detach(), axis)


@contextlib.contextmanager
def plain_attention():
    """Let torch's fused attention take its written-out path, whose products and softmax can be seen.

    A module may choose a backend itself, with sdpa_kernel around its call: the switches do nothing meanwhile.
    """
    switches = {name: getattr(torch._C, f"_set_sdp_use_{name}") for name in ("flash", "math")}
    enabled = torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.math_sdp_enabled()
    switches["flash"](False)
    switches["math"](True)
    try:
        for name in switches:
            setattr(torch._C, f"_set_sdp_use_{name}", lambda on: None)
        yield
    finally:
        for (name, switch), on in zip(switches.items(), enabled, strict=True):
            setattr(torch._C, f"_set_sdp_use_{name}", switch)
            switch(on)
