"""Every wrong input and the message it gets: the rule, what was expected, what came, and the likely fix."""

import ast
import functools
import pathlib

import matplotlib
import numpy as np
import pytest
import torch
from torch import nn
from views import attend

matplotlib.use("agg")

import attnlib as al
from attncourse import letters, writer
from attnlib import ShapeError, live, plot, torch_layers
from attnlib.rounding import rounded


def a(*shape, dtype=float):
    return np.ones(shape, dtype)


Q, K, V = a(3, 4), a(5, 4), a(5, 6)
BATCH = a(2, 3, 4), a(2, 5, 4), a(2, 5, 6)
HEADS = a(2, 3, 3, 4), a(2, 3, 5, 4), a(2, 3, 5, 6)
T = torch.ones(3, 4)
POINT = {"family": "whole", "name": "float32", "bytes": 256, "loss": 3.3, "text": ""}
TWO_WAYS = (
    "need n_q = n_k: got n_q = 3, n_k = 5",
    'causal_mask(3, 5, align="lower_right") for queries that continue',
    "(the last query sees all keys)",
    'align="upper_left"',
    "(query i sees keys 0..i)",
)
NO_FIT = ("does not broadcast to the scores", "Expected (n_q, n_k) = (3, 5)", "or 4 axes")
NO_HEADS = (*NO_FIT, "or 1. Fix: a mask for each sequence, (batch, n_q, n_k), needs its head axis, attn_mask[:, None].")

# What both twins refuse, in the function and in the trace: name, arguments, options, exception, parts of the message.
ATTENTION = [
    (
        "d_k differs",
        (a(2, 3), a(5, 4), V),
        {},
        ShapeError,
        ("key has d_k = 4 but query has d_k = 3: query (2, 3), key (5, 4). Q and K must share their last axis; ",),
    ),
    ("query a number", (a(), K, V), {}, ShapeError, ("query must have at least 2 axes", "got shape ()", "[None, :]")),
    ("query a vector", (a(4), K, V), {}, ShapeError, ("query must have at least 2 axes", "(4,)", "query[None, :]")),
    ("key a vector", (Q, a(4), V), {}, ShapeError, ("key must have at least 2 axes", "got shape (4,)", "key[None, :]")),
    ("value a vector", (Q, K, a(6)), {}, ShapeError, ("value must have at least 2 axes", "(6,)", "value[None, :]")),
    (
        "n_k differs",
        (Q, K, a(4, 6)),
        {},
        ShapeError,
        ("value has 4 positions but key has n_k = 5: key (5, 4), value (4, 6)", "its own value", "the same sequence"),
    ),
    (
        "batch differs",
        (BATCH[0], a(3, 5, 4), a(3, 5, 6)),
        {},
        ShapeError,
        (
            "leading (batch, head) axes",
            "query (2, 3, 4), key (3, 5, 4), value (3, 5, 6)",
            "Expected equal",
            "same batch",
        ),
    ),
    ("no queries", (a(0, 4), K, V), {}, ShapeError, ("query must not be empty", "at least 1 position", "(0, 4)")),
    ("no keys", (Q, a(0, 4), a(0, 6)), {}, ShapeError, ("key must not be empty", "got shape (0, 4)", "drop empty")),
    (
        "an empty batch",
        (a(0, 3, 4), a(0, 5, 4), a(0, 5, 6)),
        {},
        ShapeError,
        ("query must not be empty", "at least 1 sequence (and 1 head)", "(0, 3, 4)", "skip an empty batch"),
    ),
    ("no features", (a(3, 0), a(5, 0), V), {}, ShapeError, ("query must not be empty", "1 feature", "(3, 0)")),
    ("a ragged list", (Q, [[1.0, 2.0], [3.0]], V), {}, TypeError, ("key must be a", "got list")),
    ("nothing", (Q, K, None), {}, TypeError, ("value must be a", "got NoneType")),
    ("booleans", (Q > 0, K, V), {}, TypeError, ("query must hold", "got", "bool")),
    ("complex", (Q, K + 1j, V), {}, TypeError, ("key must hold", "complex128")),
    ("mask does not fit", (Q, K, V), {"attn_mask": a(5, 3) > 0}, ShapeError, ("attn_mask (5, 3) does not", "(3, 5)")),
    (
        "mask with an axis of another size",
        BATCH,
        {"attn_mask": a(3, 1, 5) > 0},
        ShapeError,
        ("or 1. Fix: axis 0 of the mask is 3, that of the scores is 2.",),
    ),
    (
        "mask (b, n_k), batch",
        BATCH,
        {"attn_mask": a(2, 5) > 0},
        ShapeError,
        ("(2, 5) does not", "(2, 3, 5)", "None, :]"),
    ),
    (
        "mask (b, n_k), heads",
        HEADS,
        {"attn_mask": a(2, 5) > 0},
        ShapeError,
        (*NO_FIT, "lacks, attn_mask[:, None, None, :]."),
    ),
    (
        "mask (n_k, n_k), heads",
        HEADS,
        {"attn_mask": a(5, 5) > 0},
        ShapeError,
        (*NO_FIT, "Fix: a row for each query and a column for each key, (3, 5)."),
    ),
    ("mask (b, 1, n_k), heads", HEADS, {"attn_mask": a(2, 1, 5) > 0}, ShapeError, NO_HEADS),
    ("mask (b, n_q, n_k), heads", HEADS, {"attn_mask": a(3, 3, 5) > 0}, ShapeError, NO_HEADS),
    ("mask (1, n_q, n_k), heads", HEADS, {"attn_mask": a(1, 3, 5) > 0}, ShapeError, NO_HEADS),
    ("mask (n_k,)", (Q, K, V), {"attn_mask": a(5) > 0}, ShapeError, ("attn_mask (5,) does not", "(3, 5)")),
    ("mask ()", (Q, K, V), {"attn_mask": np.array(True)}, ShapeError, ("attn_mask () does not", "(3, 5)")),
    (
        "mask larger than the scores",
        (Q, K, V),
        {"attn_mask": a(2, 3, 5) > 0},
        ShapeError,
        ("(2, 3, 5) does not", "Fix: the mask has 3 axes and the scores have 2; leave out those in front."),
    ),
    ("floating mask does not fit", BATCH, {"attn_mask": -a(2, 5)}, ShapeError, ("(2, 5) does not", "(2, 3, 5)")),
    ("empty mask", (Q, K, V), {"attn_mask": a(0, 5) > 0}, ShapeError, ("attn_mask (0, 5) does not",)),
    (
        "mask that does not fit, causal",
        BATCH,
        {"attn_mask": a(2, 5) > 0, "is_causal": True},
        ShapeError,
        ("(2, 5) does not", "(2, 3, 5)"),
    ),
    ("causal, n_q != n_k", (Q, K, V), {"is_causal": True}, ShapeError, TWO_WAYS),
    ("causal and a mask, n_q != n_k", BATCH, {"attn_mask": a(3, 5) > 0, "is_causal": True}, ShapeError, TWO_WAYS),
    *(
        (
            f"mask of {np.dtype(kind)}",
            (Q, K, V),
            {"attn_mask": a(3, 5, dtype=kind)},
            TypeError,
            ("must be boolean (True = may attend) or floating", str(np.dtype(kind)), "from_zero_blocked(attn_mask)"),
        )
        for kind in (np.int64, np.uint8)
    ),
    (
        "complex mask",
        (Q, K, V),
        {"attn_mask": a(3, 5) + 1j},
        TypeError,
        ("must be boolean", "complex128", "comparison"),
    ),
    ("mask with NaN", (Q, K, V), {"attn_mask": a(3, 5) * np.nan}, ValueError, ("finite numbers or -inf", "got NaN or")),
    ("mask with +inf", (Q, K, V), {"attn_mask": a(3, 5) * np.inf}, ValueError, ("got NaN or +inf", "to_additive(")),
    (
        "mask with +1e9 for float16",
        tuple(x.astype(np.float16) for x in (Q, K, V)),
        {"attn_mask": a(3, 5).astype(np.float32) + 1e9},
        ValueError,
        ("got NaN or +inf in", "float16", "Fix: 0 where a query may attend"),
    ),
    (
        "mask of 0.0 and 1.0",
        (Q, K, V),
        {"attn_mask": np.tril(a(3, 5))},
        ValueError,
        (
            "is added to the scores",
            "holds only 0 and 1",
            "astype(bool)",
            "from_zero_blocked(attn_mask)",
            "attn_mask - 1",
        ),
    ),
    ("is_causal a word", (Q, Q, Q), {"is_causal": "no"}, TypeError, ("is_causal must be True or False, got 'no'",)),
    ("is_causal 0", (Q, Q, Q), {"is_causal": 0}, TypeError, ("is_causal must be True or False, got 0",)),
    ("mask a list", (Q, K, V), {"attn_mask": [[True] * 5] * 3}, TypeError, ("attn_mask must be a", "got list")),
    ("mask a ragged list", (Q, K, V), {"attn_mask": [[True], []]}, TypeError, ("attn_mask must be a", "got list")),
    ("mask True", (Q, K, V), {"attn_mask": True}, TypeError, ("attn_mask must be a", "got bool")),
    ("scale NaN", (Q, K, V), {"scale": np.nan}, ValueError, ("scale must be finite, got nan", "1/sqrt(d_k)")),
    ("scale infinite", (Q, K, V), {"scale": -np.inf}, ValueError, ("scale must be finite, got -inf", "leave it out")),
    ("scale a string", (Q, K, V), {"scale": "sqrt"}, TypeError, ("scale must be one real number, got str", "1/sqrt")),
    ("scale True", (Q, K, V), {"scale": True}, TypeError, ("scale must be one real number, got bool", "leave it out")),
    ("scale complex", (Q, K, V), {"scale": 1j}, TypeError, ("scale must be one real number, got complex", "leave")),
    ("scale an array", (Q, K, V), {"scale": a(1)}, TypeError, ("scale must be one real number, got", "leave it out")),
]

MODULES = {"numpy": al, "torch": torch_layers}
FUNCTIONS = "scaled_dot_product_attention", "attention_trace"
CALLS = [
    (
        f"{module}, {function.split('_')[0]}: {name}",
        lambda m=module, f=function, x=arrays, o=options: getattr(MODULES[m], f)(
            *(to_twin(m, each) for each in x), **{k: to_twin(m, v) for k, v in o.items()}
        ),
        error,
        parts,
    )
    for name, arrays, options, error, parts in ATTENTION
    for function in FUNCTIONS
    for module in MODULES
]


def axes():
    return plot.subplots()[1]


def to_twin(module, x):
    return torch.tensor(x) if module == "torch" and isinstance(x, np.ndarray) else x


def both_mha(*arrays, embed_dim=8, num_heads=2, make=None, **options):
    """One call for each multi-head module."""
    make = {"kdim": None, "vdim": None} | (make or {})

    def call(module):
        layer = MODULES[module].MultiHeadAttention(embed_dim, num_heads, **make)
        if module == "torch":
            layer.double()
        return layer(*(to_twin(module, x) for x in arrays), **{k: to_twin(module, v) for k, v in options.items()})

    return call


X = a(2, 3, 8)
LAYERS = [
    ("wrong width", both_mha(a(3, 7)), ShapeError, ("query must be (..., positions, 8)", "got (3, 7)", "8 features")),
    ("one token as a vector", both_mha(a(8)), ShapeError, ("query must be (..., positions, 8)", "(8,)", "is one row")),
    ("a number", both_mha(a()), ShapeError, ("query must be (..., positions, 8)", "got ()")),
    ("no tokens", both_mha(a(0, 8)), ShapeError, ("at least 1 position", "got (0, 8)")),
    (
        "an empty batch",
        both_mha(a(0, 3, 8)),
        ShapeError,
        ("at least 1 sequence", "got (0, 3, 8)", "skip an empty batch"),
    ),
    ("key of wrong width", both_mha(X, a(2, 3, 7)), ShapeError, ("key must be (..., positions, 8)", "(2, 3, 7)")),
    (
        "value of wrong width",
        both_mha(X, X, a(2, 3, 7)),
        ShapeError,
        ("value must be (..., positions, 8)", "(2, 3, 7)"),
    ),
    ("kdim forgotten", both_mha(X, make={"kdim": 5}), ShapeError, ("key must be (..., positions, 5)", "(2, 3, 8)")),
    ("vdim forgotten", both_mha(X, make={"vdim": 5}), ShapeError, ("value must be (..., positions, 5)", "(2, 3, 8)")),
    (
        "n_k differs",
        both_mha(X, X, a(2, 4, 8)),
        ShapeError,
        ("value has 4 positions but key has n_k = 3", "same sequence"),
    ),
    ("batch differs", both_mha(X, a(3, 3, 8)), ShapeError, ("leading (batch, head) axes do not fit", "same batch")),
    ("a ragged list", both_mha([[1.0] * 8, [1.0]]), TypeError, ("query must be a", "got list")),
    ("causal, n_q != n_k", both_mha(a(3, 8), a(5, 8), is_causal=True), ShapeError, TWO_WAYS),
    (
        "causal without weights, n_q != n_k",
        both_mha(a(3, 8), a(5, 8), is_causal=True, need_weights=False),
        ShapeError,
        TWO_WAYS,
    ),
    ("booleans", both_mha(X > 0), TypeError, ("query must hold", "bool")),
    ("complex", both_mha(X, X + 1j), TypeError, ("key must hold", "complex128")),
    (
        "mask (b, n_k)",
        both_mha(X, attn_mask=a(2, 3) > 0),
        ShapeError,
        ("(2, 3) does not broadcast", "attn_mask[:, None, None, :]"),
    ),
    ("mask of another batch", both_mha(X, attn_mask=a(4, 3, 3) > 0), ShapeError, ("(4, 3, 3) does not", "(2, 3, 3)")),
    (
        "mask of other heads",
        both_mha(X, attn_mask=a(2, 3, 3, 3) > 0),
        ShapeError,
        ("(2, 3, 3, 3) does not", "(2, 2, 3, 3)"),
    ),
    (
        "integer mask",
        both_mha(X, attn_mask=a(3, 3, dtype=int)),
        TypeError,
        ("must be boolean", "int64", "from_zero_blocked"),
    ),
    ("NaN in the mask", both_mha(X, attn_mask=a(3, 3) * np.nan), ValueError, ("finite numbers or -inf", "got NaN")),
    ("mask a list", both_mha(X, attn_mask=[[True] * 3] * 3), TypeError, ("attn_mask must be", "got list")),
    (
        "num_heads does not divide",
        both_mha(X, num_heads=3),
        ShapeError,
        ("embed_dim must be divisible by num_heads", "embed_dim = 8, num_heads = 3", "num_heads from [1, 2, 4, 8]"),
    ),
    (
        "num_heads 0",
        both_mha(X, num_heads=0),
        ValueError,
        ("num_heads must be at least 1, got 0", "positive num_heads"),
    ),
    ("num_heads 2.5", both_mha(X, num_heads=2.5), TypeError, ("num_heads must be a whole number, got float", "int(")),
    ("num_heads True", both_mha(X, num_heads=True), TypeError, ("num_heads must be a whole number, got bool",)),
    ("embed_dim -8", both_mha(X, embed_dim=-8), ValueError, ("embed_dim must be at least 1, got -8",)),
    ("embed_dim '8'", both_mha(X, embed_dim="8"), TypeError, ("embed_dim must be a whole number, got str",)),
    ("kdim 0", both_mha(X, make={"kdim": 0}), ValueError, ("kdim must be at least 1, got 0",)),
    ("vdim 2.0", both_mha(X, make={"vdim": 2.0}), TypeError, ("vdim must be a whole number, got float",)),
]
CALLS += [
    (f"{module}, module: {name}", lambda call=call, m=module: call(m), error, parts)
    for name, call, error, parts in LAYERS
    for module in MODULES
]

SELF = torch_layers.SelfAttention(8, 2)
MHA = torch_layers.MultiHeadAttention(8, 2)
from_torch = torch_layers.MultiHeadAttention.from_torch
TWIN = ("attnlib.torch_layers",)
CALLS += [
    # the wrong twin
    ("tensor to NumPy", lambda: al.scaled_dot_product_attention(T, T, T), TypeError, ("got torch.Tensor", *TWIN)),
    ("tensor to NumPy's trace", lambda: al.attention_trace(Q, Q, T), TypeError, ("value must be a NumPy array", *TWIN)),
    ("tensor to softmax", lambda: al.softmax(T), TypeError, ("x must be a NumPy array", "got torch.Tensor")),
    ("tensor to entropy", lambda: al.entropy(T), TypeError, ("weights must be a NumPy array", "got torch.Tensor")),
    (
        "tensor to NumPy's module",
        lambda: al.MultiHeadAttention(8, 2)(torch.ones(3, 8)),
        TypeError,
        ("got torch", *TWIN),
    ),
    ("tensor mask to NumPy", lambda: al.attention_trace(Q, K, V, torch.ones(3, 5) > 0), TypeError, ("got Tensor",)),
    ("tensor to to_blocked", lambda: al.to_blocked(T > 0), TypeError, ("got Tensor", "mask.numpy()", "~mask")),
    ("tensor to split_heads", lambda: al.split_heads(T, 2), TypeError, ("x must be a NumPy array", "x.numpy()")),
    (
        "array to torch",
        lambda: torch_layers.scaled_dot_product_attention(Q, K, V),
        TypeError,
        ("query must be a torch.Tensor, got ndarray", "torch.tensor(query", "in attnlib itself for NumPy"),
    ),
    ("array to torch's trace", lambda: torch_layers.attention_trace(T, T, Q), TypeError, ("value must be", "ndarray")),
    ("array to SelfAttention", lambda: SELF(a(3, 8)), TypeError, ("x must be a torch.Tensor, got ndarray",)),
    ("array to torch's module", lambda: MHA(a(3, 8)), TypeError, ("query must be a torch.Tensor, got ndarray",)),
    # dtypes
    ("array of objects", lambda: al.softmax(np.array([1, None])), TypeError, ("real numbers", "got dtype object")),
    ("array of strings", lambda: al.attention_trace(np.array([["a"]]), K, V), TypeError, ("real numbers", "dtype <U1")),
    ("complex to NumPy", lambda: al.softmax(a(2) + 1j), TypeError, ("got dtype complex128", "taking the real part")),
    ("mask of objects", lambda: al.attention_trace(Q, K, V, a(3, 5, dtype=object)), TypeError, ("boolean", "object")),
    ("mask of objects, torch", lambda: MHA(torch.ones(3, 8), attn_mask=a(3, 3, dtype=object)), TypeError, ("object",)),
    (
        "integers in torch",
        lambda: torch_layers.attention_trace(T.int(), T, T),
        TypeError,
        ("torch.int32", "query.float()"),
    ),
    (
        "two dtypes in torch",
        lambda: torch_layers.scaled_dot_product_attention(T, T.double(), T),
        TypeError,
        ("must share a dtype", "got torch.float32 and torch.float64", "key.to(query)"),
    ),
    (
        "float64 into a float32 layer",
        lambda: MHA(torch.tensor(a(3, 8))),
        TypeError,
        (
            "query must have the dtype of the layer's weights, torch.float32",
            "got torch.float64",
            "query.to(torch.float32)",
        ),
    ),
    (
        "float32 into a float64 layer",
        lambda: torch_layers.SelfAttention(8, 2).double()(torch.ones(3, 8)),
        TypeError,
        ("x must have the dtype of the layer's weights, torch.float64", "got torch.float32", "x.to(torch.float64)"),
    ),
    ("integers into a layer", lambda: SELF(torch.ones(3, 8).long()), TypeError, ("got torch.int64", "x.float()")),
    # SelfAttention
    ("SelfAttention: wrong width", lambda: SELF(T), ShapeError, ("x must be (..., positions, 8)", "got (3, 4)")),
    ("SelfAttention: vector", lambda: SELF(torch.ones(8)), ShapeError, ("x must be (..., positions, 8)", "got (8,)")),
    ("SelfAttention: d_in 0", lambda: torch_layers.SelfAttention(0, 2), ValueError, ("d_in must be at least 1",)),
    ("SelfAttention: d_k 2.5", lambda: torch_layers.SelfAttention(8, 2.5), TypeError, ("d_k must be a whole number",)),
    ("SelfAttention: d_v 0", lambda: torch_layers.SelfAttention(8, 2, 0), ValueError, ("d_v must be at least 1",)),
    # softmax, entropy
    ("softmax of a number", lambda: al.softmax(a()), ShapeError, ("at least one score", "got shape ()", "whole row")),
    ("softmax of nothing", lambda: al.softmax(a(3, 0)), ShapeError, ("at least one score", "got shape (3, 0)")),
    (
        "softmax of a ragged list",
        lambda: al.softmax([[1.0, 2.0], [3.0]]),
        TypeError,
        ("x must be an array", "got list", "different lengths", "same length"),
    ),
    ("softmax of a dict", lambda: al.softmax({1: 2.0}), TypeError, ("x must be an array of real", "got dict")),
    ("softmax of a list with a gap", lambda: al.softmax([1.0, None]), TypeError, ("of real numbers, got list",)),
    ("softmax of a huge number", lambda: al.softmax([10**400, 0]), TypeError, ("of real numbers, got list",)),
    ("softmax of a string", lambda: al.softmax("2 4"), TypeError, ("must hold real numbers", "dtype <U3")),
    ("softmax of a list of booleans", lambda: al.softmax([True]), TypeError, ("must hold real numbers", "bool")),
    ("softmax of one number", lambda: al.softmax(3.0), ShapeError, ("at least one score", "got shape ()")),
    ("softmax over no axis", lambda: al.softmax([1, 2], axis=5), ShapeError, ("expected -1 to 0, got 5", "axis=-1")),
    ("softmax over all axes", lambda: al.softmax([1, 2], axis=None), TypeError, ("axis must be a whole", "NoneType")),
    (
        "entropy over no axis",
        lambda: al.entropy([0.5, 0.5], axis=1),
        ShapeError,
        ("shape (2,): expected -1 to 0, got 1",),
    ),
    ("softmax of an empty list", lambda: al.softmax([]), ShapeError, ("at least one score", "got shape (0,)")),
    ("entropy of a ragged list", lambda: al.entropy([[1.0], [0.5, 0.5]]), TypeError, ("weights must be an array",)),
    ("softmax of booleans", lambda: al.softmax(a(2) > 0), TypeError, ("x must hold real numbers", "bool", "astype")),
    (
        "entropy of scores",
        lambda: al.entropy(a(2) * 4),
        ValueError,
        ("between 0 and 1", "got 4 to 4", "softmax(scores)"),
    ),
    ("entropy below 0", lambda: al.entropy(-a(2)), ValueError, ("between 0 and 1", "got -1 to -1", "softmax(scores)")),
    ("entropy of scores and NaN", lambda: al.entropy(np.array([np.nan, 2])), ValueError, ("got 2 to 2",)),
    # heads
    ("split: ragged", lambda: al.split_heads([[1, 2], [3]], 2), TypeError, ("x must be an array", "different lengths")),
    (
        "split: list of one token",
        lambda: al.split_heads([1, 2], 2),
        ShapeError,
        ("(..., n, d_model)", "2 axes", "(2,)"),
    ),
    ("split: vector", lambda: al.split_heads(a(4), 2), ShapeError, ("(..., n, d_model)", "2 axes", "(4,)", "x[None]")),
    (
        "split: not divisible",
        lambda: al.split_heads(a(3, 4), 3),
        ShapeError,
        ("divisible by num_heads", "from [1, 2, 4]"),
    ),
    ("split: 0 heads", lambda: al.split_heads(a(3, 4), 0), ValueError, ("num_heads must be at least 1, got 0",)),
    (
        "split: 2.5 heads",
        lambda: al.split_heads(a(3, 4), 2.5),
        TypeError,
        ("num_heads must be a whole number", "float"),
    ),
    ("merge: two axes", lambda: al.merge_heads(a(3, 4)), ShapeError, ("(..., h, n, d_k)", "at least 3 axes", "(3, 4)")),
    (
        "merge: ragged",
        lambda: al.merge_heads([[[1]], [[1, 2]]]),
        TypeError,
        ("x must be an array", "different lengths"),
    ),
    # masks
    ("causal: 0", lambda: al.causal_mask(0), ValueError, ("n_q must be at least 1, got 0", "positive n_q")),
    ("causal: n_k -1", lambda: al.causal_mask(2, -1), ValueError, ("n_k must be at least 1, got -1",)),
    ("causal: 2.0", lambda: al.causal_mask(2.0), TypeError, ("n_q must be a whole number, got float",)),
    (
        "causal: more than there is",
        lambda: al.causal_mask(10**7),
        MemoryError,
        ("a mask (10000000, 10000000) takes 9.31e+04 GiB", "a block of queries at a time"),
    ),
    ("causal: longer than an axis", lambda: al.causal_mask(10**20), MemoryError, ("more than there is",)),
    (
        "a mask of np.ma",
        lambda: al.attention_trace(Q, K, V, np.ma.masked_array(a(3, 5), a(3, 5) > 0)),
        TypeError,
        ("attn_mask must be a plain array", "would be dropped", ".filled("),
    ),
    ("scores of np.ma", lambda: al.softmax(np.ma.masked_array(a(3))), TypeError, ("x must be a plain array",)),
    ("lengths of np.ma", lambda: al.padding_mask(np.ma.array([1]), 2), TypeError, ("lengths must be a plain array",)),
    ("to_blocked of np.ma", lambda: al.to_blocked(np.ma.array([True])), TypeError, ("mask must be a plain array",)),
    (
        "a mask of np.ma, in torch",
        lambda: torch_layers.attention_trace(T, T, T, np.ma.masked_array(a(3, 3) > 0)),
        TypeError,
        ("attn_mask must be a plain array",),
    ),
    ("rng a word", lambda: al.MultiHeadAttention(4, 2, rng="x"), TypeError, ("rng must be a seed", "got 'x'", "rng=0")),
    ("rng -1", lambda: al.MultiHeadAttention(4, 2, rng=-1), TypeError, ("rng must be a seed", "got -1")),
    ("writer, rng a word", lambda: writer.Writer(rng="x"), TypeError, ("rng must be a seed", "got 'x'")),
    (
        "a text of one's own, too short",
        lambda: letters.Corpus("a" * 349),
        ValueError,
        ("350 letters or more", "a window of 32", "got 349: 'aaa"),
    ),
    ("the name of a file for its text", lambda: letters.Corpus("my.txt"), ValueError, ("got 6: 'my.txt'", "open(")),
    ("a path for its text", lambda: letters.Corpus(pathlib.Path("my.txt")), ValueError, ("got 6: 'my.txt'",)),
    ("causal: n_q != n_k", lambda: al.causal_mask(3, 5), ShapeError, TWO_WAYS),
    (
        "causal: another word",
        lambda: al.causal_mask(3, 5, align="right"),
        ValueError,
        ('align must be "lower_right" or "upper_left", got \'right\'', "continue the sequence"),
    ),
    ("causal: another word, square", lambda: al.causal_mask(3, align=True), ValueError, ("align must be", "got True")),
    ("causal: a shape", lambda: al.causal_mask((2, 3)), TypeError, ("n_q must be a whole number, got tuple",)),
    (
        "padding: too long",
        lambda: al.padding_mask([2, 5], 4),
        ValueError,
        ("between 0 and n_k = 4", "got 2 to 5", "longest"),
    ),
    ("padding: negative", lambda: al.padding_mask([-1, 2], 4), ValueError, ("between 0 and n_k = 4", "got -1 to 2")),
    (
        "padding: floats",
        lambda: al.padding_mask([1.0], 4),
        TypeError,
        ("lengths must be whole", "float64", "token counts"),
    ),
    ("padding: a mask", lambda: al.padding_mask([True], 4), TypeError, ("got dtype bool", "from_zero_blocked")),
    ("padding: one number", lambda: al.padding_mask(3, 4), ShapeError, ("shape (b,)", "got shape ()", "[length]")),
    ("padding: two axes", lambda: al.padding_mask([[1, 0]], 4), ShapeError, ("shape (b,)", "got shape (1, 2)")),
    ("padding: none", lambda: al.padding_mask([], 4), ShapeError, ("one whole number per sequence", "got shape (0,)")),
    (
        "padding: ragged",
        lambda: al.padding_mask([[1], [1, 2]], 4),
        ShapeError,
        ("lengths must be one array", "different"),
    ),
    ("padding: n_k 0", lambda: al.padding_mask([0], 0), ValueError, ("n_k must be at least 1, got 0",)),
    (
        "combine: do not broadcast",
        lambda: al.combine_masks(a(3, 3) > 0, a(2, 1, 4) > 0),
        ShapeError,
        ("must broadcast against each other", "got shapes (3, 3), (2, 1, 4)", "padding_mask returns (b, 1, n_k)"),
    ),
    ("combine: integers", lambda: al.combine_masks(a(3, 3, dtype=int)), TypeError, ("boolean", "from_zero_blocked")),
    ("combine: list", lambda: al.combine_masks([[True]]), TypeError, ("attn_mask must be a NumPy array", "got list")),
    ("combine: NaN", lambda: al.combine_masks(a(3, 3) * np.nan), ValueError, ("finite numbers or -inf", "NaN")),
    (
        "to_blocked: integers",
        lambda: al.to_blocked(a(2, dtype=int)),
        TypeError,
        ("to_blocked takes", "int64", "from_zero"),
    ),
    (
        "to_blocked: list",
        lambda: al.to_blocked([True]),
        TypeError,
        ("to_blocked takes a boolean", "got list", "np.array(mask)"),
    ),
    (
        "to_additive: floats",
        lambda: al.to_additive(a(2)),
        TypeError,
        ("to_additive takes", "float64", "additive already"),
    ),
    ("0/1: 2", lambda: al.from_zero_blocked([0, 2]), ValueError, ("only 0 (blocked) and 1 (may attend)", "got [2]")),
    ("0/1: -inf", lambda: al.from_zero_blocked([0, -np.inf]), ValueError, ("got [-inf]", "is additive already")),
    ("0/1: NaN", lambda: al.from_zero_blocked([np.nan]), ValueError, ("only 0", "got [nan]")),
    ("0/1: strings", lambda: al.from_zero_blocked(["0"]), ValueError, ("only 0", "got <U1")),
    (
        "0/1: ragged",
        lambda: al.from_zero_blocked([[0], [0, 1]]),
        ShapeError,
        ("mask must be one array", "pad the rows"),
    ),
    # from_torch
    ("from_torch: a class", lambda: from_torch(nn.MultiheadAttention), TypeError, ("nn.MultiheadAttention, got type",)),
    ("from_torch: another module", lambda: from_torch(nn.Linear(2, 2)), TypeError, ("got Linear", "layer.self_attn")),
    *(
        (
            f"from_torch: {name}",
            lambda name=name, value=value: from_torch(nn.MultiheadAttention(4, 2, **{name: value})),
            ValueError,
            (f"cannot carry over {name}", f"expected it off, got {value}", f"without {name}"),
        )
        for name, value in (("dropout", 0.1), ("add_bias_kv", True), ("add_zero_attn", True))
    ),
]


TRACE = al.attention_trace(Q, K, V)
ROWS = np.full((2, 3, 3), 1 / 3)
maps_at, view = functools.partial(live.weights_view, still=(1,), d_k=(1, 4)), live.weights_view
FLAT, WORDS = {"a": ROWS[0]}, ["the", "cat", "."]


def model(tokens):
    return np.zeros(3), {"head 1": np.ones(len(tokens))}


def one_convoy(text, times):
    tokens = list(text) if text.isalpha() else []
    return tokens, {"wanted": np.eye(len(tokens))}, "", "Letters only."


def one_map(text):
    return text.split(), np.eye(len(text.split()))


HEADS = {"name": "abc", "words": [*"abc"], "weights": a(2, 3), "before": a(2), "heads": a(2, 2), "says": {}}

# What views, pictures and tables refuse when they are made: name, call, exception, parts of the message.
PICTURES = [
    # the size of a view
    ("size", lambda: setattr(live.masks(), "size", "big"), TypeError, ("size must be a number, got str",)),
    ("size 0", lambda: setattr(live.masks(), "size", 0), ValueError, ("size must be finite and above 0, got 0",)),
    ("size NaN", lambda: setattr(live.masks(), "size", np.nan), ValueError, ("size must be finite", "got nan")),
    # labels and masks
    *(
        (f"{name}: {labels}", lambda make=make, labels=labels: make(**{labels: ["a"]}), ShapeError, parts)
        for name, make in (
            ("weights_view", functools.partial(maps_at, lambda d: FLAT)),
            ("flow", functools.partial(live.flow, al.attention_trace(a(3, 2), a(3, 2), a(3, 2)))),
            ("attention_heatmap", functools.partial(plot.attention_heatmap, ROWS[0])),
            ("head_grid", functools.partial(plot.head_grid, ROWS)),
        )
        for labels, parts in (
            ("queries", ("queries must hold one label each: expected 3, got 1",)),
            ("keys", ("keys",)),
        )
    ),
    (
        "too many features to split",
        lambda: live.split_heads(["a"] * 4, d_k=6),
        ValueError,
        ("room for 10 tokens", "4 tokens of 2 * 6", "smaller num_heads or d_k"),
    ),
    ("one head to split", lambda: live.split_heads(["a"], num_heads=1), ValueError, ("num_heads", "2")),
    ("three directions", lambda: live.head_arrows([HEADS], "abc"), ShapeError, ("towards", "expected 2, got 3")),
    (
        "no words",
        lambda: live.head_arrows([{"name": "a"}], "ab"),
        ValueError,
        ("needs name, words", "missing: words, "),
    ),
    (
        "weights of all words",
        lambda: live.head_arrows([HEADS | {"weights": np.ones((2, 3, 3))}], "ab"),
        ShapeError,
        ("sentence 1", "weights (h, 3)", "got (2, 3, 3)", "its last word alone"),
    ),
    (
        "sentences of two layers",
        lambda: live.head_arrows([HEADS, HEADS | {"weights": a(1, 3), "heads": a(1, 2)}], "ab"),
        ShapeError,
        ("as many heads, got [2, 1]", "one layer"),
    ),
    ("head 3 of 2", lambda: live.head_arrows([HEADS], "ab", head=3), ValueError, ("head must be", "2, got 3")),
    ("no labels", lambda: plot.head_grid(ROWS, keys=[]), ShapeError, ("expected 3, got 0", "or none")),
    ("labels None", lambda: plot.head_grid(ROWS, keys=[None] * 3), TypeError, ("keys must hold texts, got NoneType",)),
    ("labels 5", lambda: plot.attention_heatmap(ROWS[0], keys=5), TypeError, ("keys must be a sequence of labels",)),
    ("labels a dict", lambda: live.flow(TRACE, keys={"a": 1}), TypeError, ("sequence of labels, got dict",)),
    *(
        (f"{name}: mask", lambda make=make: make(attn_mask=np.tri(4, dtype=bool)), ShapeError, ("(3, 3)", "(4, 4)"))
        for name, make in (
            ("weights_view", functools.partial(maps_at, lambda d: FLAT)),
            ("attention_heatmap", functools.partial(plot.attention_heatmap, ROWS[0])),
            ("head_grid", functools.partial(plot.head_grid, ROWS)),
        )
    ),
    ("mask of numbers", lambda: plot.head_grid(ROWS, attn_mask=a(3, 3)), TypeError, ("boolean", "from_zero_blocked")),
    ("mask of words", lambda: plot.head_grid(ROWS, attn_mask="no"), TypeError, ("attn_mask must hold real numbers",)),
    ("mask, axes", lambda: maps_at(lambda d: FLAT, attn_mask=a(2, 3, 3) > 0), ShapeError, ("(n_q, n_k)", "(2, 3, 3)")),
    # maps
    ("one map", lambda: plot.attention_heatmap(ROWS), ShapeError, ("one map must be (n_q, n_k)", "head_grid")),
    ("bars: a map", lambda: plot.bar_chart(ROWS, title="a", ax=axes()), ShapeError, ("(n_k,)", "(2, 3, 3)")),
    ("bars: scores", lambda: plot.bar_chart([3, -1], title="a", ax=axes()), ValueError, ("got -1 to 3", "softmax")),
    ("bars: NaN", lambda: plot.bar_chart([np.nan], title="a", ax=axes()), ValueError, ("between 0 and 1, got nan",)),
    ("bar grid: a row", lambda: plot.bar_grid([0.5, 0.5], titles=["a"]), ShapeError, ("(charts, n_k)", "row[None]")),
    ("bar grid: titles", lambda: plot.bar_grid(ROWS[0], titles=["a"]), ShapeError, ("titles", "expected 3, got 1")),
    ("readings of nothing", lambda: live.readings([]), ShapeError, ("(..., n_k)", "got shape (0,)")),
    # numbers
    ("columns 0", lambda: plot.head_grid(ROWS, columns=0), ValueError, ("columns must be at least 1, got 0",)),
    ("columns 0, bars", lambda: plot.bar_grid(ROWS[0], titles=["a", "b", "c"], columns=0), ValueError, ("got 0",)),
    ("places -1", lambda: plot.attention_heatmap(ROWS[0], places=-1), ValueError, ("between 0 and 17, got -1",)),
    (
        "places 2.5",
        lambda: plot.table(["a"], [(1,)], places=2.5),
        TypeError,
        ("places must be a whole number, got 2.5",),
    ),
    ("width 0", lambda: plot.head_grid(ROWS, width=0), ValueError, ("width must be finite and above 0, got 0",)),
    ("vmax NaN", lambda: plot.head_grid(ROWS, vmax=np.nan), ValueError, ("vmax must be finite and above 0, got nan",)),
    (
        "vmin",
        lambda: plot.attention_heatmap(ROWS[0], vmin=2),
        ValueError,
        ("vmin must not be above vmax, got 2 and 1",),
    ),
    ("title 5", lambda: plot.attention_heatmap(ROWS[0], title=5), TypeError, ("title must be a text, got int",)),
    ("ax 5", lambda: plot.attention_heatmap(ROWS[0], ax=5), TypeError, ("axes of matplotlib, got int", "subplots()")),
    ("dpi", lambda: plot.save(axes().figure, dpi=0), ValueError, ("dpi must be finite and above 0, got 0",)),
    ("save axes", lambda: plot.save(axes()), TypeError, ("a Figure of matplotlib, got", "ax.figure")),
    ("tokens of masks", lambda: live.masks(n=1), ValueError, ("n must be between 2 and 64, got 1",)),
    ("masks of one", lambda: live.masks(query=np.eye(2)), TypeError, ("query and key together, got only query",)),
    (
        "masks of two shapes",
        lambda: live.masks(query=np.eye(3), key=np.ones((3, 2))),
        ShapeError,
        ("query and key must have one shape, (n, d_k), got (3, 3) and (3, 2)", "one row each"),
    ),
    ("masks of a number", lambda: live.masks(query=1, key=1), ShapeError, ("query must be (n, d_k)", "got shape ()")),
    (
        "masks of one token",
        lambda: live.masks(query=np.eye(1), key=np.eye(1)),
        ValueError,
        ("the number of tokens must be between 2 and 64, got 1",),
    ),
    ("kind of mask", lambda: live.masks(kinds=["window"]), ValueError, ("each of kinds must be one of", "'window'")),
    (
        "labels of masks",
        lambda: live.masks(tokens=["a"]),
        ShapeError,
        ("tokens must hold one label each: expected 6, got 1",),
    ),
    ("d_k turned", lambda: live.scores(d_k=(256, 4)), ValueError, ("(lowest, highest), got (256, 4)", "d_k=(4, 256)")),
    ("d_k 64", lambda: live.masks(d_k=64), TypeError, ("d_k must be a pair (lowest, highest), got 64",)),
    ("d_k 0", lambda: live.scores(d_k=(0, 8)), ValueError, ("each end of d_k must be between 1 and 65536, got 0",)),
    ("angle NaN", lambda: live.plane(angle=np.nan), TypeError, ("angle must be a whole number, got nan",)),
    ("angle 360", lambda: live.plane(angle=360), ValueError, ("angle must be between 0 and 359, got 360",)),
    ("length", lambda: live.plane(length=1.1), ValueError, ("length must be one of [0.0, 0.25", "4.0, got 1.1")),
    # flow
    ("no trace", lambda: live.flow(Q), TypeError, ("trace must be an AttentionTrace, got numpy.ndarray",)),
    ("trace of d_k", lambda: live.flow(TRACE, d_k=[1, 2]), TypeError, ("must be a function", "as trace(d_k)")),
    ("no d_k", lambda: live.flow(lambda d: TRACE, d_k=[]), ValueError, ("d_k must hold at least 1",)),
    ("query", lambda: live.flow(TRACE, query=3), ValueError, ("query must be between 0 and 2, got 3",)),
    ("key", lambda: live.flow(TRACE, key=-1), ValueError, ("key must be between 0 and 4, got -1",)),
    ("feature", lambda: live.flow(TRACE, feature=6), ValueError, ("feature must be between 0 and 5, got 6",)),
    ("x", lambda: live.flow(TRACE, x=a(4, 2)), ShapeError, ("x must be the tokens", "(..., 3, d_in)", "got (4, 2)")),
    # functions that a view calls
    ("no slider", lambda: view(lambda d: FLAT, still=(1,)), ValueError, ("needs a slider", "got none")),
    ("slider query", lambda: view(lambda q: FLAT, still=(1,), query=(1, 2)), ValueError, ("none called query or key",)),
    ("range", lambda: maps_at(lambda d: FLAT, d_k=(4, 1)), ValueError, ("(lowest, highest), got (4, 1)",)),
    ("floats", lambda: view(lambda T: FLAT, still=(0.5,), T=(0.5, 2.0)), ValueError, ("a list of its", "T=[0.5, 2.0]")),
    ("pairs", lambda: view(lambda T: FLAT, still=(1,), T=[1, (2, 3)]), ValueError, ("(text, value) pairs",)),
    ("empty values", lambda: view(lambda T: FLAT, still=(1,), T=[]), ValueError, ("T must hold at least 1",)),
    ("nothing still", lambda: maps_at(lambda d: FLAT, still=()), ValueError, ("still must hold at least 1",)),
    ("row of a map", lambda: maps_at(lambda d: FLAT, row=3), ValueError, ("row must be between 0 and 2, got 3",)),
    ("no function", lambda: maps_at(FLAT), TypeError, ("weights_at must be a function", "weights_at(d_k), got dict")),
    ("an array", lambda: maps_at(lambda d: ROWS), TypeError, ("must return a dict of titles and weights",)),
    ("no maps", lambda: maps_at(lambda d: {}), TypeError, ("a dict of titles and weights, got {}",)),
    ("heads", lambda: maps_at(lambda d: {"a": ROWS}), ShapeError, ("weights of 'a' must be (n_q, n_k)", "pick one")),
    (
        "stills of several shapes",
        lambda: view(lambda n: {"a": np.eye(n)}, still=(2, 3), n=(1, 3))._still(),
        ShapeError,
        ("one shape, got (2, 2), (3, 3)",),
    ),
    ("no vocabulary", lambda: live.writing(model, []), ValueError, ("vocabulary must hold at least 1",)),
    ("a word twice", lambda: live.writing(model, ["a", "a"]), ValueError, ("each word once", "dict.fromkeys")),
    ("longest", lambda: live.writing(model, WORDS, longest=0), ValueError, ("between 1 and 64, got 0",)),
    ("logits", lambda: live.writing(model, WORDS[1:]), ShapeError, ("logits (2,), one for each word", "got (3,)")),
    ("no weights", lambda: live.writing(lambda *_: np.zeros(3), WORDS), TypeError, ("must return (logits, {name",)),
    (
        "logits NaN",
        lambda: live.writing(lambda t: (a(3) * np.nan, {"head 1": a(len(t))}), WORDS),
        ValueError,
        ("logits must be finite, or -inf",),
    ),
    ("no convoy", lambda: live.compare(one_convoy, convoy="1"), ValueError, ("got '1': Letters only. Fix:",)),
    (
        "convoy 5",
        lambda: live.compare(one_convoy, convoy=5),
        TypeError,
        ("one text under a name of your own, got convoy=5", "Fix: compare(shown, word="),
    ),
    (
        "shown",
        lambda: live.compare(lambda t, f: None, convoy="a"),
        TypeError,
        ("(tokens, {title: weights},", "got None"),
    ),
    (
        "maps of others",
        lambda: live.compare(lambda t, f: (["a"], {"b": np.eye(2)}, "", ""), convoy="a"),
        ShapeError,
        ("maps must be (n, n) for 1 tokens, got (2, 2)",),
    ),
    ("text 5", lambda: live.sentence(attend, 5), TypeError, ("text must be a text, got int",)),
    ("attend 5", lambda: live.sentence(5, "a"), TypeError, ("attend must be a function", "got int")),
    ("attend to one", lambda: live.sentence(one_map, "a"), ShapeError, ("expected (..., 1, 1)", "got (1, 1)")),
    ("layer 3", lambda: live.sentence(attend, "a b", layer=3), ValueError, ("layer must be between 1 and 2, got 3",)),
    ("choose", lambda: live.masks().choose(query="1"), TypeError, ("query must be a whole number, got str",)),
    # tables
    (
        "a word is tinted",
        lambda: plot.table(["a"], [("b",)], tint=["a"]),
        TypeError,
        ("'a', must be a number, got str",),
    ),
    ("NaN is tinted", lambda: plot.table(["a"], [(np.nan,)], tint=["a"]), ValueError, ("must be finite, got nan",)),
    ("tint a text", lambda: plot.table(["ab"], [(1,)], tint="ab"), TypeError, ("tint must be a list, got str",)),
    ("tint", lambda: plot.table(["a"], [(1,)], tint=["b"]), ValueError, ("got ['b']. Fix: choose from ['a']",)),
    ("rows", lambda: plot.table(["a"], 5), TypeError, ("rows must be a list, got int",)),
    ("a long row", lambda: plot.table(["a"], [(1, 2)]), ValueError, ("one entry per column: expected 1, got 2",)),
    ("no rows", lambda: plot.table(["a"], []), ValueError, ("rows must hold at least 1",)),
    ("bits", lambda: rounded(K, 0), ValueError, ("bits must be at least 1, got 0", "Fix")),
    ("half a bit", lambda: rounded(K, 1.5), TypeError, ("bits must be a whole number, got float",)),
    ("keys of two heads", lambda: live.keys_map(a(2, 3, 4), Q), ShapeError, ("key must be (n, d_k)", "one head")),
    ("more keys", lambda: live.keys_map(K, Q), ShapeError, ("key and query must have one shape", "(5, 4) and (3, 4)")),
    ("41 keys", lambda: live.keys_map(a(41, 2), a(41, 2)), ValueError, ("tokens must be between 2 and 40, got 41",)),
    ("row of keys", lambda: live.keys_map(Q, Q, row=3), ValueError, ("row must be between 0 and 2, got 3",)),
    ("one point", lambda: live.price([{}]), ValueError, ("each point must hold family", "text", "Fix: add it")),
    ("pairs for points", lambda: live.price([(1, 2)] * 2), ValueError, ("each point must hold family, name",)),
    ("a lone point", lambda: live.price([POINT]), ValueError, ("points must be between 2 and 32, got 1",)),
    ("no points", lambda: live.price([]), ValueError, ("points must hold at least 1",)),
    ("bytes 0", lambda: live.price([{**POINT, "bytes": 0}] * 2), ValueError, ("bytes must be finite and above 0",)),
    ("loss NaN", lambda: live.price([{**POINT, "loss": np.nan}] * 2), ValueError, ("loss must be finite, got nan",)),
    (
        "11 families",
        lambda: live.price([{**POINT, "family": str(k)} for k in range(11)]),
        ValueError,
        ("families must be between 1 and 10, got 11",),
    ),
    ("33 points", lambda: live.price([POINT] * 33), ValueError, ("points must be between 2 and 32, got 33",)),
    ("progress", lambda: live.progress(3), TypeError, ("iterable must be a list, a range", "got int")),
]
CALLS += [(f"picture: {name}", *rest) for name, *rest in PICTURES]


@pytest.mark.parametrize(("call", "error", "parts"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_a_wrong_input_is_told_what_is_wrong(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error  # not a subclass: a ShapeError is a ValueError
    text = str(caught.value)
    for part in parts:
        assert part in text
    assert ". Fix: " in text and text.endswith(".")
    assert caught.value.__cause__ is None and (caught.value.__context__ is None or caught.value.__suppress_context__)


def test_a_shape_error_is_a_value_error():
    assert issubclass(ShapeError, ValueError)


def test_every_raise_in_the_library_names_a_fix():
    """The table above may miss a line; this reads the source."""
    missing = []
    house = pathlib.Path(al.__file__).parent
    parts = "core", "masks", "heads", "validation", "arguments", "figure", "plot", "progress", "tables"
    folders = (house / name for name in ("torch_layers", "svg", "live"))
    for path in [house / f"{name}.py" for name in parts] + [path for folder in folders for path in folder.glob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise) and node.exc and "Fix: " not in ast.unparse(node):
                missing.append(f"{path.name}:{node.lineno}")
    assert missing == []
