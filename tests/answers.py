"""Answers as learners hand them in, for the tests of the checks."""

import contextlib
import copy

import numpy as np
import torch
from torch import nn

import attnlib as al

A, M, MODULE = "scaled_dot_product_attention", "multi_head_attention", "MultiHeadAttention"


def nan_backward(x):
    """Return x, and NaN on the way back."""
    x = x.clone()
    if x.requires_grad:
        x.register_hook(lambda gradient: gradient * torch.nan)
    return x


def as_module(function, name, faults=(), defaults=True):
    """Wrap a NumPy solution of a module exercise in a class; `faults`: gradients that are dropped (1) or NaN (2).

    Without `defaults` the function itself sees that a key or a value was left out.
    """

    def run(module, inputs, mask, *sizes):
        matrices = [getattr(module, f"W_{c}").weight for c in module.letters]
        mask = () if mask is None else (mask.numpy(),)
        inputs = (None if x is None else x.numpy() for x in inputs)
        result = function(*inputs, *(w.detach().numpy().T for w in matrices), *sizes, *mask)
        # NumPy knows no gradient: one is led past it, with the value 0.
        of_each = list(zip(matrices, faults or [0] * len(matrices), strict=True))
        gradient = sum((w - w.detach()).sum() for w, fault in of_each if fault != 1)
        if any((~m.any(-1)).any() for m in mask):
            gradient = gradient + sum(nan_backward((w - w.detach()).sum()) for w, fault in of_each if fault == 2)
        return tuple(torch.as_tensor(y) + (gradient if y.dtype.kind == "f" else 0) for y in result)

    class SelfAttention(nn.Module):
        letters = "QKV"

        def __init__(self, d_in, d_k, d_v=None):
            super().__init__()
            self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
            self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)

        def forward(self, x, *, attn_mask=None):
            return run(self, (x,), attn_mask)

    class MultiHeadAttention(nn.Module):
        letters = "QKVO"

        def __init__(self, embed_dim, num_heads):
            super().__init__()
            self.num_heads = num_heads
            for c in self.letters:
                setattr(self, f"W_{c}", nn.Linear(embed_dim, embed_dim, bias=False))  # NumPy would not see it

        def forward(self, query, key=None, value=None, *, attn_mask=None):
            if defaults:
                key = query if key is None else key
                value = key if value is None else value
            return run(self, (query, key, value), attn_mask, self.num_heads)

    return {"SelfAttention": SelfAttention, "MultiHeadAttention": MultiHeadAttention}[name]


def submit(exercise, function):
    """Hand in an implementation of the catalogue the way a learner would."""
    if not exercise.answer_is_code:
        return exercise(function())
    if exercise.returns_weights:
        faults = ()
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):  # a mistake that runs in some shapes only
            faults = list(function(*copy.deepcopy(exercise.probes[-1].args))[0])
        return exercise(as_module(function, exercise.name, faults, defaults=False))
    return exercise(function)


def named(verdict):
    """Return the ids of the mistakes that a verdict is sure to explain the answer by."""
    return set((verdict.mistake or "").split(" + ")) - {""}


def right(q, k, v, attn_mask=None):
    return al.scaled_dot_product_attention(q, k, v, attn_mask)


def student(scale="np.sqrt(q.shape[-1])", softmax="al.softmax(s)", mask="np.where(m, s, -np.inf)", rest="w @ v"):
    """Return an attention function from the lines a student would write; `m` is the mask."""

    def attention(q, k, v, m=None):
        names = {"np": np, "al": al, "q": q, "k": k, "v": v, "m": m}
        names["s"] = q @ np.swapaxes(k, -1, -2) / eval(scale, names)
        if m is not None:
            names["s"] = eval(mask, names)
        names["w"] = eval(softmax, names)
        return eval(rest, names)

    return attention


def masked_softmax(fill=-np.inf, softmax=al.softmax, mask=lambda m: m):
    return lambda s, m=None: softmax(s if m is None else np.where(mask(m), s, fill))


def multi_head(
    q="split(query @ W_Q)",
    k="split(key @ W_K)",
    v="split(value @ W_V)",
    scale="d_k ** 0.5",
    mask="m[:, None]",
    softmax="al.softmax(s)",
    out="merge(w @ v) @ W_O",
    split="np.swapaxes(x.reshape(*x.shape[:-1], h, -1), -2, -3)",
    merge="np.swapaxes(x, -2, -3).reshape(*x.shape[:-3], x.shape[-2], -1)",
):
    """Return multi-head attention from the lines a student would write."""

    def attention(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
        names = dict(np=np, al=al, query=query, key=key, value=value, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, h=h)
        names["split"] = lambda x: eval(split, names | {"x": x})
        names["merge"] = lambda x: eval(merge, names | {"x": x})
        names["d_k"] = W_Q.shape[-1] // h
        names |= {name: eval(line, names) for name, line in (("q", q), ("k", k), ("v", v))}
        names["s"] = names["q"] @ np.swapaxes(names["k"], -1, -2) / eval(scale, names)
        if m is not None:
            names["m"] = m
            names["s"] = np.where(m if m.ndim == 2 else eval(mask, names), names["s"], -np.inf)
        names["w"] = eval(softmax, names)
        return eval(out, names)

    return attention


class SelfAttention(nn.Module):
    """Right; the tests below change one method."""

    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
        self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)

    def forward(self, x, *, attn_mask=None):
        scores = self.scale(self.W_Q(x) @ self.W_K(x).mT)
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        weights = self.weigh(scores)
        return self.mix(weights, self.W_V(x)), weights

    def scale(self, scores):
        return scores / self.W_Q.out_features**0.5

    def weigh(self, scores):
        return scores.softmax(-1).nan_to_num()

    def mix(self, weights, values):
        return weights @ values


class Layer(nn.Module):
    """The learner's module of 6.4, one method per line that can go wrong."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.d, self.h = embed_dim, num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.h, -1)).transpose(-2, -3)

    def divisor(self):
        return (self.d // self.h) ** 0.5

    def fill(self, scores, mask):
        return scores.masked_fill(~mask, -torch.inf)

    def softmax(self, scores):
        return scores.softmax(-1).nan_to_num()

    def give(self, out, weights, query):
        return self.W_O(out), weights

    def forward(self, query, key=None, value=None, *, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = self.split(self.W_Q(query)), self.split(self.W_K(key)), self.split(self.W_V(value))
        scores = q @ k.transpose(-1, -2) / self.divisor()
        if attn_mask is not None:
            scores = self.fill(scores, attn_mask if attn_mask.ndim == 2 else attn_mask[:, None])
        weights = self.softmax(scores)
        return self.give((weights @ v).transpose(-2, -3).flatten(-2), weights, query)


def layer(**methods):
    return type("Layer", (Layer,), methods)


PARTS = "queries", "keys", "values"


def patch_by_branches(layer, x, written, part):
    if part == "queries":
        return layer(x - written, x, x)
    if part == "keys":
        return layer(x, x - written, x)
    return layer(x, x, x - written)


def patch_by_position(layer, x, written, part):
    three = [x, x, x]
    three[PARTS.index(part)] = x - written
    return layer(*three)


def patch_by_factor(layer, x, written, part):
    return layer(*(x + (part == name) * -1 * written for name in PARTS))
