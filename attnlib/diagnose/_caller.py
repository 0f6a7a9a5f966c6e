"""Call anybody's attention module as (query, key, value, mask arguments) -> output, whatever its own signature is."""

import copy
import inspect
import itertools
import math
import traceback
from collections.abc import Callable
from typing import NamedTuple

import torch

from ..following import tensors
from ._forms import is_mask
from ._verdicts import describe

_ROLES = {
    "query": {"q", "xq", "query", "querie", "query_state", "query_layer", "input_q", "q_in", "q_input"},
    "key": {"k", "xk", "key", "key_state", "key_layer", "input_k", "k_in", "k_input"},
    "value": {"v", "xv", "value", "value_state", "value_layer", "input_v", "v_in", "v_input"},
    "context": {
        "context", "memory", "mem", "kv", "xa", "x_kv", "encoder_hidden_state", "key_value_state", "encoder_output",
        "enc_out", "enc_output", "cond", "src_kv",
    },
}  # fmt: skip

_NOT_SEQUENCES = ("cos", "sin", "freq", "rope", "rot", "pos", "bias", "emb", "cache", "step", "len", "size", "shape")
OFFSETS = {"start_pos", "offset", "start", "past_len", "past_length", "seq_offset", "position_offset"}
_SIZES = {"h", "w", "n", "b", "t"}


def _is_sequence(name):
    return name.lower() not in _SIZES and not any(word in name.lower() for word in _NOT_SEQUENCES)


class _Layout(NamedTuple):
    """How tokens (b, n, d) are laid out for the module, and its output is laid back."""

    name: str
    axes: int
    into: Callable  # of tokens and the number of heads
    back: Callable


def _same(x, heads=None):
    return x


def _swapped(x, heads=None):
    return x.transpose(0, 1).contiguous()


def _heads_after(x, heads):
    return x.unflatten(-1, (heads, -1))


def _heads_before(x, heads):
    return _heads_after(x, heads).transpose(1, 2)


def _channels(x, heads=None):
    return x.mT.contiguous()


def _square(x, heads=None):
    return x.unflatten(1, (math.isqrt(x.shape[1]), -1))


SEQUENCE_FIRST = _Layout("(tokens, batch, features)", 3, _swapped, _swapped)
LAYOUTS = (
    _Layout("(batch, tokens, features)", 3, _same, _same),
    SEQUENCE_FIRST,
    _Layout("(batch, heads, tokens, features)", 4, _heads_before, lambda y: y.transpose(1, 2).flatten(2)),
    _Layout("(batch, tokens, heads, features)", 4, _heads_after, lambda y: y.flatten(2)),
    _Layout("(tokens, features)", 2, _same, _same),
    _Layout("(batch, features, 1, tokens)", 4, lambda x, heads: _channels(x)[:, :, None], lambda y: y.flatten(2).mT),
    _Layout("(batch, features, tokens)", 3, _channels, _channels),
    _Layout("(batch, rows, columns, features)", 4, _square, lambda y: y.flatten(1, 2)),
    _Layout("(batch, features, rows, columns)", 4, lambda x, h: _square(x).movedim(3, 1), lambda y: y.flatten(2).mT),
)


class Caller:
    """One way to call a module.

    `roles` says which argument takes what: "query", "key", "value", "context", or "x" for the only sequence; `masks`
    are those that take a mask, as their names say. `swallows`: the module takes any keyword, so that a mask may vanish
    without a word. `neutral`, (n_q, n_k, batch) -> the mask that allows everything, is for a module that insists on
    one. `hands_mask`: a mask reaches the module; a call of one's own may drop it. `held` is what a decoder reads
    besides: by argument, the same tokens for each sequence. `ignored` is called as a context, and does nothing.
    """

    def __init__(self, module, own, num_heads):
        self.own, self.num_heads, self.layout = own, num_heads, LAYOUTS[0]
        self.neutral, self.hands_mask, self.ignored, self.held = None, True, None, None
        parameters = list(inspect.signature(module.forward).parameters.values())
        self.swallows = own is None and any(p.kind is p.VAR_KEYWORD for p in parameters)
        self.parameters = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self.required = {p.name for p in self.parameters if p.default is p.empty}
        masks = [p.name for p in self.parameters if is_mask(p.name) and not isinstance(p.default, bool)]
        self.masks = masks if own is None else ["mask"]
        self.by_name = {}
        for role, names in _ROLES.items():
            for p in self.parameters:
                if p.name.lower().removesuffix("s") in names and role not in self.by_name:
                    self.by_name[role] = p.name
        self.roles = {}

    def tried(self, layout, roles):
        """Return a Caller of the same signature that calls this way."""
        one = copy.copy(self)
        one.layout, one.roles, one.required = layout, roles, set(self.required)
        return one

    def ways(self):
        """Yield every assignment of roles to arguments that the signature suggests, the likeliest first."""
        if self.own is not None:
            yield {"query": "query", "key": "key", "value": "value"}
            return
        names = [p.name for p in self.parameters]
        free = [name for name in names if name not in self.masks]
        required = [name for name in free if name in self.required]
        named = self.by_name
        if {"key", "value"} <= set(named):
            first = named.get("query") or next((n for n in free if n not in named.values()), None)
            if first:
                yield {"query": first, "key": named["key"], "value": named["value"]}
        if not names:  # forward(*args)
            yield {"query": 0, "key": 1, "value": 2}
            yield {"x": 0}
            return
        if free:
            x = named.get("query", free[0])
            others = [n for n in required if n != x and _is_sequence(n)]
            context = named.get("context")
            if not others or others == [context]:
                yield {"x": x, **({"context": context} if context else {})}
            elif len(others) == 2:
                yield {"query": x, "key": others[0], "value": others[1]}
            elif len(others) == 1:
                yield {"x": x, "context": others[0]}
        if len(free) >= 3 and all(map(_is_sequence, free[1:3])):
            yield {"query": free[0], "key": free[1], "value": free[2]}
        if free:
            yield {"x": free[0]}

    @property
    def one_by_one(self):
        return self.layout.axes == 2

    @property
    def insisted(self):
        """The masks that must be given."""
        return [name for name in self.masks if name in self.required] if self.own is None else []

    @property
    def guessed(self):
        """Arguments whose names do not say that they are what they were taken for."""
        known = {0, 1, 2, *self.by_name.values()} if self.own is None else self.roles.values()
        return [name for role, name in self.roles.items() if role != "x" and name not in known]

    @property
    def left_out(self):
        """What must be given, and is not known: None is given."""
        known = {*self.roles.values(), *self.insisted, *(self.held or {}), *OFFSETS}
        return sorted(self.required - known) if self.own is None else []

    @property
    def three(self):
        return "value" in self.roles

    @property
    def two(self):
        return "context" in self.roles

    @property
    def order(self):
        """The roles in the order of the signature."""
        return sorted(self.roles, key=lambda role: [p.name for p in self.parameters].index(self.roles[role]))

    def __call__(self, module, query, key=None, value=None, masks=None):
        """Return the output (b, n_q, features) and everything the module returned."""
        key = query if key is None else key
        value = key if value is None else value
        if self.own is not None:
            inputs = (self.layout.into(x, self.num_heads) for x in (query, key, value))
            result = self.own(module, *inputs, (masks or {}).get("mask"))
            return self.layout.back(_output(result, query, self.layout)), result
        if self.one_by_one:
            one_by_one = [self._call(module, *x, masks, x[0]) for x in zip(query, key, value, strict=True)]
            return torch.stack([output for output, _ in one_by_one]), None
        return self._call(module, query, key, value, masks, query)

    def _call(self, module, query, key, value, masks, like):
        if self.neutral is not None:
            neutral = self.neutral(query.shape[-2], key.shape[-2], 1 if query.ndim == 2 else len(query))
            masks = neutral | (masks or {})
        given = {"query": query, "key": key, "value": value, "x": query}
        if self.two and key is not query:
            given["context"] = key
        arguments = dict.fromkeys(self.left_out) | {name: 0 for name in self.required & OFFSETS}
        arguments |= dict.fromkeys(self.insisted)
        for role, name in self.roles.items():
            if role != "context" or "context" in given or name in self.required:
                arguments[name] = self.layout.into(given.get(role, query), self.num_heads)
        for name, memory in (self.held or {}).items():
            memory = memory.to(query.dtype).expand(len(query), -1, -1) if query.ndim == 3 else memory.to(query.dtype)
            arguments[name] = self.layout.into(memory.clone(), self.num_heads)
        arguments |= masks or {}
        leading = [arguments.pop(name) for name in self._leading(arguments)]
        result = module(*leading, **arguments)
        return self.layout.back(_output(result, like, self.layout)), result

    def _leading(self, arguments):
        """Names of the arguments that can be given by position: all before the first one that is left out."""
        names = [0, 1, 2] if 0 in arguments else [p.name for p in self.parameters if p.kind is not p.KEYWORD_ONLY]
        return list(itertools.takewhile(arguments.__contains__, names))


def _output(result, like, layout=LAYOUTS[0]):
    """Return the first tensor that can be the output; `like` is (b, n, d), or one sequence (n, d)."""
    fitting = [
        tensor
        for tensor in tensors(result)
        if tensor.is_floating_point()
        and tensor.ndim == layout.axes
        and tensor.numel()
        and layout.back(tensor).shape[:-1] == like.shape[:-1]
    ]
    if fitting:  # weights are as wide as there are tokens: rather take another one
        return next((x for x in fitting if layout.back(x).shape[-1] != like.shape[-2]), fitting[0])
    returned = [tuple(x.shape) for x in tensors(result)] or type(result).__name__
    raise NoOutput(
        f"the output must be a tensor (batch, tokens, features), expected {tuple(like.shape[:-1])} and features, "
        f"got {returned}. Fix: call=, returning the output."
    )


class NoOutput(TypeError):
    """The module was called, and returned nothing that can be its output."""


def refusal(errors, embed_dim, lengths):
    """Return the error to raise, of [(layout, error)]: the guess that came furthest into the module explains most."""
    usual = [error for layout, error in errors if layout is errors[0][0]]
    error = max(usual, key=lambda e: (isinstance(e, NoOutput), len(list(traceback.walk_tb(e.__traceback__)))))
    if isinstance(error, NoOutput):
        return error.with_traceback(None)
    return TypeError(
        "diagnose could not call the module: expected module(query, key, value) or module(x) to work on "
        f"(batch, tokens, {embed_dim}), got {describe(error)}. It may insist on a number of tokens: those tried are "
        f"{', '.join(map(str, lengths))}. Fix: call=lambda module, query, key, value, mask: module(...)."
    )


def combinations(caller, batch_first=True):
    """Yield every (layout, roles), the likeliest first."""
    layouts = LAYOUTS if batch_first else (SEQUENCE_FIRST, LAYOUTS[0], *LAYOUTS[2:])
    layouts = layouts if caller.own is None else layouts[:2]
    yield from itertools.product(layouts, list(caller.ways()))
