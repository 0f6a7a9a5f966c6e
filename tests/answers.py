"""What the answers of several lessons are made of, and how a test hands one in."""

import contextlib
import copy

import numpy as np
import torch
import torch.nn.functional as F
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


def loops(query, key, value, attn_mask=None):
    lead = query.shape[:-2]
    n_q, n_k, d_k = query.shape[-2], key.shape[-2], query.shape[-1]
    out = np.zeros((*lead, n_q, value.shape[-1]))
    allowed = np.ones((*lead, n_q, n_k), bool) if attn_mask is None else np.broadcast_to(attn_mask, (*lead, n_q, n_k))
    for at in np.ndindex(*lead):
        for i in range(n_q):
            keys = [j for j in range(n_k) if allowed[(*at, i, j)]]
            scores = [sum(query[at][i] * key[at][j]) / d_k**0.5 for j in keys]
            e = [np.exp(s - max(scores)) for s in scores]
            for j, w in zip(keys, e, strict=True):
                out[(*at, i)] += w / sum(e) * value[at][j]
    return out


def einsum(query, key, value, attn_mask=None):
    scores = np.einsum("...qd,...kd->...qk", query, key) / np.sqrt(query.shape[-1])
    return np.einsum("...qk,...kd->...qd", log_sum_exp(scores, attn_mask), value)


def log_sum_exp(scores, attn_mask=None):
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf)
    m = np.max(scores, axis=-1, keepdims=True)
    m = np.where(np.isinf(m), 0, m)
    with np.errstate(divide="ignore"):
        lse = m + np.log(np.exp(scores - m).sum(axis=-1, keepdims=True))
    return np.exp(scores - np.where(np.isinf(lse), 0, lse))


def finite_fill_with_dead_rows(scores, attn_mask=None):
    if attn_mask is None:
        return al.softmax(scores)
    weights = al.softmax(np.where(attn_mask, scores, -1e9))
    return np.where(np.any(attn_mask, axis=-1, keepdims=True), weights, 0)


def attention_with(weights, scale_query=False):
    def attention(query, key, value, attn_mask=None):
        root = np.sqrt(query.shape[-1])
        if scale_query:
            return weights((query / root) @ np.swapaxes(key, -1, -2), attn_mask) @ value
        return weights(query @ np.swapaxes(key, -1, -2) / root, attn_mask) @ value

    return attention


def mask_before_scale(query, key, value, attn_mask=None):
    scores = query @ np.swapaxes(key, -1, -2)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf)
    return al.softmax(scores / np.sqrt(query.shape[-1])) @ value


def torch_inside(query, key, value, attn_mask=None):
    q, k, v = (torch.tensor(x) for x in (query, key, value))
    mask = None if attn_mask is None else torch.tensor(attn_mask)
    return torch.nan_to_num(F.scaled_dot_product_attention(q, k, v, mask)).numpy()


ATTENTIONS = [
    loops,
    einsum,
    mask_before_scale,
    torch_inside,
    al.scaled_dot_product_attention,
    attention_with(log_sum_exp),
    attention_with(finite_fill_with_dead_rows, scale_query=True),
]


def back(n_q, n_k):
    return np.arange(n_k - n_q, n_k)[:, None]


def by_where(q, k, v, m=None):
    s = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    m = np.ones_like(s, bool) if m is None else np.broadcast_to(m, s.shape)
    e = np.exp(s - s.max(-1, keepdims=True, where=m, initial=-1e300), where=m, out=np.zeros_like(s))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, where=total > 0, out=np.zeros_like(e)) @ v


def added(q, k, v, m=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-1])
    with np.errstate(divide="ignore"):
        s = s if m is None else s + np.log(m)
    return np.nan_to_num((e := np.exp(s - s.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)) @ v
