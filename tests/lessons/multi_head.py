"""Answers of the lesson multi_head, right and wrong; what stands in which table, `__init__.py` says."""

import functools

import numpy as np
import torch
from answers import ATTENTIONS, as_module, loops, right
from torch import nn

import attnlib as al
from attnlib import torch_layers


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


class Layer(nn.Module):
    """A learner's module, one method per line that can go wrong."""

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


def heads_by_loop(attention):
    def multi_head(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
        d_k = W_Q.shape[1] // num_heads
        parts = [slice(i * d_k, (i + 1) * d_k) for i in range(num_heads)]
        outputs = [attention(query @ W_Q[:, c], key @ W_K[:, c], value @ W_V[:, c], attn_mask) for c in parts]
        return np.concatenate(outputs, axis=-1) @ W_O

    return multi_head


def weights_by_loop(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None):
    d_k, n_k = W_Q.shape[1] // num_heads, key.shape[-2]
    parts = [slice(i * d_k, (i + 1) * d_k) for i in range(num_heads)]
    same = np.broadcast_to(np.eye(n_k), (*key.shape[:-1], n_k))
    return np.stack([loops(query @ W_Q[:, c], key @ W_K[:, c], same, attn_mask) for c in parts], axis=-3)


class EinsumMultiHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query, key=None, value=None, attn_mask=None):
        key = query if key is None else key
        value = key if value is None else value
        q, k, v = (f(x).unflatten(-1, (self.h, -1)) for f, x in ((self.W_Q, query), (self.W_K, key), (self.W_V, value)))
        scores = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
        if attn_mask is not None:
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask[:, None]
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        return self.W_O(torch.einsum("...hqk,...khd->...qhd", weights, v).flatten(-2)), weights


OPPOSITE = np.roll(np.eye(4), 2, axis=1)


def jobs(one, other, shift=0, opposite=OPPOSITE):
    """What asks for the opposite token, and what for both neighbours; a shift of all scores changes nothing."""
    beside = 1 - np.eye(4) - OPPOSITE if other > 0 else np.eye(4) + OPPOSITE
    return np.hstack([one * opposite, other * beside]) + shift


def filled_layer(fill):
    def remember(self, scores, mask):
        self.mask = mask
        return scores.masked_fill(~mask, fill)

    def softmax(self, scores):
        mask, self.mask = getattr(self, "mask", None), None
        return scores.softmax(-1) if mask is None else scores.softmax(-1) * mask

    return layer(fill=remember, softmax=softmax)


def as_in_tutorials(self, query, key=None, value=None, *, attn_mask=None):
    """Axis 0 is always the batch."""
    key = query if key is None else key
    value = key if value is None else value
    layers = zip((self.W_Q, self.W_K, self.W_V), (query, key, value), strict=True)
    q, k, v = (f(x).reshape(x.size(0), -1, self.h, self.d // self.h).transpose(1, 2) for f, x in layers)
    scores = q @ k.transpose(-1, -2) / self.divisor()
    if attn_mask is not None:
        scores = self.fill(scores, attn_mask if attn_mask.ndim == 2 else attn_mask[:, None])
    weights = self.softmax(scores)
    return self.W_O((weights @ v).transpose(1, 2).reshape(query.size(0), -1, self.d)), weights


def with_mask(line):
    """Return multi-head attention that changes its mask `m` by a line."""

    def attention(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
        q, k, v = (al.split_heads(x, h) for x in (query @ W_Q, key @ W_K, value @ W_V))
        return al.merge_heads(right(q, k, v, m if m is None else eval(line, {"m": m}))) @ W_O

    return attention


def refused(line):
    """Return the same by attnlib's own attention, which refuses a mask that does not fit the scores."""

    def attention(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
        q, k, v = (al.split_heads(x, h) for x in (query @ W_Q, key @ W_K, value @ W_V))
        mask = m if m is None else eval(line, {"m": m})
        return al.merge_heads(al.scaled_dot_product_attention(q, k, v, mask)) @ W_O

    return attention


def one_head(query, key, value, W_Q, W_K, W_V, W_O, h, m=None):
    """Attend once over the whole width, divided by the root of what the width of a head would be."""
    scores = (query @ W_Q) @ np.swapaxes(key @ W_K, -1, -2) / (W_Q.shape[-1] / h) ** 0.5
    return al.softmax(scores if m is None else np.where(m, scores, -np.inf)) @ (value @ W_V) @ W_O


def only_batches(self, query, key=None, value=None, *, attn_mask=None):
    _b, _n, _d = query.shape
    return Layer.forward(self, query, key, value, attn_mask=attn_mask)


BESIDE = 1 - np.eye(4) - OPPOSITE

# The opposite place in head 1, the two beside it in head 2.
JOBS = 10 * np.hstack([np.roll(np.eye(4), 2, axis=1), np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)])

RIGHT = {
    "split_heads": [
        al.split_heads,
        lambda x, h: np.stack(np.split(x, h, axis=-1), axis=-3),
        lambda x, h: np.moveaxis(x.reshape(*x.shape[:-1], h, -1), -2, -3),
        lambda x, h: torch.tensor(x).unflatten(-1, (h, -1)).transpose(-2, -3),
    ],
    "merge_heads": [
        al.merge_heads,
        lambda x: np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1),
        lambda x: np.moveaxis(x, -3, -2).reshape(*x.shape[:-3], x.shape[-2], -1),
        lambda x: torch.tensor(x).transpose(-2, -3).flatten(-2),
    ],
    "multi_head_attention": [heads_by_loop(attention) for attention in ATTENTIONS],
    "MultiHeadAttention": [
        torch_layers.MultiHeadAttention,
        EinsumMultiHead,
        functools.partial(torch_layers.MultiHeadAttention, bias=False).func,
        as_module(lambda *a: (heads_by_loop(loops)(*a), weights_by_loop(*a)), "MultiHeadAttention"),
    ],
    "two_jobs": [jobs(10, 10), jobs(20, 9, -3).tolist(), torch.tensor(jobs(-30, -30, opposite=1 - OPPOSITE))],
}

NEAR = {
    "split_heads": [lambda x, h: np.moveaxis(np.array(np.array_split(x, h, axis=-1)), 0, -3)],
    "multi_head_attention": [multi_head(), multi_head(scale="(W_Q.shape[0] / h) ** 0.5", mask="m[:, None, :, :]")],
    "MultiHeadAttention": [Layer, layer(fill=lambda self, s, m: torch.where(m, s, -torch.inf))],
}

WRONG = {
    "split_heads": {
        "split_without_transpose": [lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], -1)],
    },
}

DESIGNS = {
    "two_jobs": {
        "heads_exchanged": [JOBS[:, [4, 5, 6, 7, 0, 1, 2, 3]]],
        "heads_interleaved": [JOBS[:, [0, 4, 1, 5, 2, 6, 3, 7]]],
        "scores_too_small": [JOBS / 10],
        "scores_negated": [-JOBS],
    },
}

LEARNERS = {
    "split_heads": {
        "a float": ("float_as_size", lambda x, h: x.reshape(*x.shape[:-1], h, x.shape[-1] / h)),
        "as in tutorials": (
            "fixed_number_of_axes",
            lambda x, h: x.reshape(len(x), -1, h, x.shape[-1] // h).swapaxes(1, 2),
            "one axis is taken for another",
            "raises",
        ),
        "backwards": ("rearranged", lambda x, h: np.swapaxes(x.reshape(*x.shape[:-1], h, -1), -2, -3)[..., ::-1, :, :]),
        "a bare reshape of one": ("split_without_transpose", lambda x, h: x.reshape(h, len(x), -1)),
        "the same, with sizes": (
            "split_without_transpose",
            lambda x, h: x.reshape(h, x.shape[-2], x.shape[-1] // h),
            "pieces of different tokens",
        ),
        "stacked": ("wrong_batch_axis", lambda x, h: np.stack(np.split(x, h, axis=-1))),
        "only batches": (
            "fixed_number_of_axes",
            lambda x, h: x.reshape(len(x), x.shape[1], h, x.shape[2] // h).transpose(0, 2, 1, 3),
        ),
        "d_k heads": (
            "sizes_of_heads_exchanged",
            lambda x, h: np.swapaxes(x.reshape(*x.shape[:-1], -1, h), -2, -3),
            "d_k heads of h numbers",
            "like cards",
        ),
    },
    "merge_heads": {
        "only batches": ("fixed_number_of_axes", lambda x: x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1)),
        "a bare reshape": (
            "merge_without_transpose",
            lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1),
            "pieces of different tokens",
        ),
        "the mean of the heads": ("heads_averaged", lambda x: x.mean(-3), "side by side"),
        "concatenated": ("wrong_batch_axis", lambda x: np.concatenate(x, axis=-1)),
        "one sequence": ("wrong_batch_axis", lambda x: np.swapaxes(x, 0, 1).reshape(x.shape[1], -1)),
    },
    "multi_head_attention": {
        "no head axis": ("mask_without_head_axis", multi_head(mask="m"), "head axis", "counts axes"),
        "no head axis, refused": ("mask_without_head_axis", refused("m"), "head axis", "goes in as it is"),
        "a misspelt mask, the other": (None, refused("m if m.ndim == 2 else maks"), "NameError", "head axis"),
        "one head": (
            "features_never_split",
            multi_head(split="x", merge="x", mask="m", scale="W_Q.shape[-1] ** 0.5"),
            "never cut",
        ),
        "one head, the scale of several": ("features_never_split", one_head, "never cut"),
        "sqrt(h)": ("scale_by_num_heads", multi_head(scale="h ** 0.5"), "number of heads"),
        "every mask [:, None]": ("mask_always_three_axes", with_mask("m[:, None]"), "goes in as it is", "fixed number"),
        "a misspelt mask": (None, with_mask("m[:, None] if m.ndim == 3 else maks"), "NameError", "three axes"),
        "W.T": (
            "projection_transposed",
            multi_head("split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)"),
            "",
            "softmax",
        ),
        "W.T everywhere": (
            "projection_transposed",
            multi_head(
                "split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)", out="merge(w @ v) @ W_O.T"
            ),
            "",
            "softmax",
        ),
        "W_O.T": ("projection_transposed", multi_head(out="merge(w @ v) @ W_O.T")),
        "first head alone": ("heads_left_out", multi_head(out="(w @ v)[..., 0, :, :]"), "returns in its first", "Two"),
        "first head and its W_O": ("heads_left_out", multi_head(out="(w @ v)[..., 0, :, :] @ W_O[:d_k]"), "", "Two"),
        "last head alone": ("heads_left_out", multi_head(out="(w @ v)[..., -1, :, :]")),
        "all but the last head": (
            "heads_left_out",
            multi_head(out="merge((w @ v)[..., :-1, :, :]) @ W_O[: (h - 1) * d_k]"),
        ),
        "all but the first head": (
            "heads_left_out",
            multi_head(out="merge((w @ v) * (np.arange(h) > 0)[:, None, None]) @ W_O"),
        ),
        "the last head for all": ("heads_left_out", multi_head(out="np.tile((w @ v)[..., -1, :, :], h) @ W_O")),
        "half of each head": (None, multi_head(out="merge((w @ v) * (np.arange(d_k) > 0)) @ W_O"), "", "as if"),
        "lengths of the queries": (
            "as_many_keys_as_queries",
            multi_head(split="np.swapaxes(x.reshape(*query.shape[:-1], h, -1), -2, -3)"),
            "as many keys as queries",
        ),
        "residual": ("residual_added", multi_head(out="merge(w @ v) @ W_O + query"), "", "softmax"),
        "value = key": ("keys_for_values", multi_head(v="split(key @ W_V)"), "", "softmax"),
        "heads averaged": ("heads_averaged", multi_head(out="np.tile((w @ v).mean(-3), h) @ W_O")),
        "heads added": ("heads_averaged", multi_head(out="np.tile((w @ v).sum(-3), h) @ W_O"), "(or adds)"),
        "merged straight": ("merge_without_transpose", multi_head(merge="x.reshape(*x.shape[:-3], x.shape[-2], -1)")),
    },
    "MultiHeadAttention": {
        "fill -1e4": ("fill_not_low_enough", filled_layer(-1e4)),
        "as in tutorials": ("fixed_number_of_axes", layer(forward=as_in_tutorials), "must match the size"),
        "every mask [:, None]": (
            "mask_always_three_axes",
            layer(fill=lambda self, s, m: s.masked_fill(~(m[:, None] if m.ndim == 2 else m), -np.inf)),
            "goes in as it is",
        ),
        "only batches": ("fixed_number_of_axes", layer(forward=only_batches)),
        "no scale, -1e9": (
            "no_scale + finite_fill",
            layer(
                divisor=lambda self: 1,
                fill=lambda self, s, m: s.masked_fill(~m, -1e9),
                softmax=lambda self, s: s.softmax(-1),
            ),
        ),
        "first head alone": (
            "heads_left_out",
            layer(give=lambda self, o, w, x: (o[..., : self.d // self.h], w[..., 0, :, :])),
        ),
        "lengths of the queries": (
            "as_many_keys_as_queries",
            layer(
                forward=lambda self, query, *others, attn_mask=None: (
                    setattr(self, "n", query.shape[:-1]) or Layer.forward(self, query, *others, attn_mask=attn_mask)
                ),
                split=lambda self, x: x.reshape(*self.n, self.h, -1).transpose(-2, -3),
            ),
        ),
        "residual": ("residual_added", layer(give=lambda self, o, w, x: (self.W_O(o) + x, w))),
        "values first": (
            "swapped_query_value",
            layer(
                forward=lambda self, values, keys=None, query=None, *, attn_mask=None: Layer.forward(
                    self, values if query is None else query, keys, values, attn_mask=attn_mask
                )
            ),
        ),
        "value = query": (
            "value_defaults_to_query",
            layer(
                forward=lambda self, query, key=None, value=None, *, attn_mask=None: Layer.forward(
                    self, query, key, query if value is None else value, attn_mask=attn_mask
                )
            ),
            "belong to two tokens",
            "raises",
        ),
        "weights averaged": ("weights_averaged", layer(give=lambda self, o, w, x: (self.W_O(o), w.mean(-3)))),
        "rounded": (  # a rounded number has no slope
            "rounded_weights + gradient_cut",
            layer(softmax=lambda self, s: s.softmax(-1).nan_to_num().round(decimals=1)),
        ),
    },
    "two_jobs": {
        "exchanged": ("heads_exchanged", np.hstack([10 * BESIDE, 10 * OPPOSITE]), "job of head 2"),
        "too soft": ("scores_too_small", np.hstack([OPPOSITE, BESIDE]), "too little weight"),
        "nearly": (
            "scores_too_small",
            8 * np.hstack([OPPOSITE, BESIDE]),
            "in head 1 token 0 gives token 2 the weight 0.948; wanted is 1, within 0.05.",
        ),
        "one neighbour": (
            None,
            np.hstack([10 * OPPOSITE, 10 * np.eye(4)[[1, 2, 3, 0]]]),
            "In head 2 token 0 has the weights 0.01 0.98 0.01 0.01 on tokens 0 to 3; wanted are 0.00 0.50 0.00 0.50.",
            "as if",
        ),
        "one head": (None, OPPOSITE, "shape (4, 8)"),
    },
}
