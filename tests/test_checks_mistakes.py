"""Mistakes as learners write them: named, or not named, and nothing untrue said about them."""

import functools
import itertools
import types

import numpy as np
import pytest
import torch
from test_checks import as_module, named, right, student, submit
from torch import nn

import attnlib as al
from attnlib.checks import EXERCISES, MISTAKES, check
from attnlib.checks.naming import explain
from attnlib.checks.pipeline import STEPS
from attnlib.clinic import CASES

torch.set_num_threads(1)


def sm(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def masked_softmax(fill=-np.inf, softmax=al.softmax, mask=lambda m: m):
    return lambda s, m=None: softmax(s if m is None else np.where(mask(m), s, fill))


def nan_rows(becomes):
    """NaN rows replaced by `becomes(row of weights, values)`."""

    def attention(q, k, v, m=None):
        s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        s = s if m is None else np.where(m, s, -np.inf)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        w = e / e.sum(axis=-1, keepdims=True)
        return becomes(w, v)

    return attention


def uniform(w, v):
    return np.where(np.isnan(w), 1 / w.shape[-1], w) @ v


def mean_of_values(w, v):
    out = w @ v
    return np.where(np.isnan(out), v.mean(axis=-2, keepdims=True), out)


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


def single(q="x @ W_Q", k="c @ W_K", v="c @ W_V", scale="q.shape[-1] ** 0.5", out="w @ v"):
    """Return cross-attention from the lines a student would write."""

    def attention(x, c, W_Q, W_K, W_V, m=None):
        names = dict(np=np, x=x, c=c, W_Q=W_Q, W_K=W_K, W_V=W_V)
        names |= {name: eval(line, names) for name, line in (("q", q), ("k", k), ("v", v))}
        s = names["q"] @ np.swapaxes(names["k"], -1, -2) / eval(scale, names)
        names["w"] = al.softmax(s if m is None else np.where(m, s, -np.inf))
        return eval(out, names)

    return attention


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


def only_batches(self, query, key=None, value=None, *, attn_mask=None):
    _b, _n, _d = query.shape
    return Layer.forward(self, query, key, value, attn_mask=attn_mask)


A, M, MODULE = "scaled_dot_product_attention", "multi_head_attention", "MultiHeadAttention"

# exercise, what is named (None: nothing), what the verdict says, what it does not say, the answer
ROWS = {
    # --- named wrongly
    "NaN -> uniform": (A, "finite_fill", "so does a NaN row", "behaves as if blocked", nan_rows(uniform)),
    "NaN -> mean of values": (A, "finite_fill", "behaves as if a query", "", nan_rows(mean_of_values)),
    "fill 1e-9": (A, "mask_multiplies_scores", "1e-9", "", student(mask="np.where(m, s, 1e-9)")),
    "fill 1e-9, 5.4": ("masked_softmax", "mask_multiplies_scores", "behaves as if", "", masked_softmax(1e-9)),
    "0 times inf": (A, "zero_times_infinity", "NaN", "", student(mask="s * m + (1 - m) * -np.inf")),
    "masked after exp": (
        "masked_softmax",
        "unstable_softmax",
        "",
        "",
        lambda s, m=None: (e := np.exp(s) * (1 if m is None else m)) / e.sum(-1, keepdims=True),
    ),
    "5.5 all swapped": ("cross_attention", None, "raises", "as if", single("c @ W_Q", "x @ W_K", "x @ W_V")),
    # --- told wrongly
    "1.3 scaled": ("weights_1", "scaled_already", "flatter", "every number", al.softmax(np.array([2, 4, 4]) / 3**0.5)),
    "1.4 scaled": ("output_1", "scaled_already", "flatter", "same factor", [1.8639, 6.3194, 1.7042]),
    "1.3 shares": ("weights_1", "no_exponential", "positive scores hide it", "there are negative", [0.2, 0.4, 0.4]),
    "5.2 inverted": (
        "padding_mask",
        "mask_inverted",
        "A padding mask then shows nothing but padding",
        "every token looks",
        lambda n, n_k: ~al.padding_mask(n, n_k),
    ),
    "5.5 keys of x": (
        "cross_attention",
        "context_half_ignored",
        "but not both",
        "does not change",
        single(k="x @ W_K"),
    ),
    "5.5 both of x": ("cross_attention", "context_ignored", "does not change", "", single(k="x @ W_K", v="x @ W_V")),
    "negative weights": (A, None, "should be positive", "yours sum to 1", student(softmax="2 * al.softmax(s) - 0.2")),
    "6.3 no head axis": (M, "mask_without_head_axis", "head axis", "counts axes", multi_head(mask="m")),
    # --- common
    "2.1 over everything": (
        "softmax",
        "softmax_over_everything",
        "",
        "",
        lambda x, axis=-1: np.exp(x) / np.sum(np.exp(x)),
    ),
    "2.3 over everything": (A, "softmax_over_everything", "", "", student(softmax="np.exp(s) / np.sum(np.exp(s))")),
    "2.1 keepdims": ("softmax", "keepdims_forgotten", "", "", lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis)),
    "2.1 keepdims, maximum": (
        "softmax",
        "keepdims_forgotten",
        "",
        "",
        lambda x, axis=-1: (e := np.exp(x - x.max(axis=axis))) / e.sum(axis=axis),
    ),
    "2.3 keepdims": (A, "keepdims_forgotten", "", "", student(softmax="(e := np.exp(s - s.max())) / e.sum(axis=-1)")),
    "1.1 k1": ("k2", "wrong_token", "another token", "", [0, 1, 1]),
    "1.1 k3": ("k2", "counted_from_zero", "the next token", "", [2, 3, 1]),
    "1.2 row 1": ("scores_2", "wrong_token", "", "", [2, 4, 4]),
    "4.3 d_in": (
        "SelfAttention",
        "scale_by_embed_dim",
        "before they are projected",
        "every head you add",
        as_module(
            lambda x, W_Q, W_K, W_V, m=None: (
                single(scale="x.shape[-1] ** 0.5")(x, x, W_Q, W_K, W_V, m),
                single(scale="x.shape[-1] ** 0.5", out="w")(x, x, W_Q, W_K, W_V, m),
            ),
            "SelfAttention",
        ),
    ),
    "5.5 d_in of the context": (
        "cross_attention",
        "scale_by_embed_dim",
        "",
        "",
        single(scale="c.shape[-1] ** 0.5"),
    ),
    "2.2 np.dot, T": ("attention_scores", "dot_instead_of_matmul", "np.dot", "", lambda q, k: np.dot(q, k.T)),
    "2.2 np.dot": (
        "attention_scores",
        "dot_instead_of_matmul",
        "np.dot",
        "",
        lambda q, k: np.dot(q, np.swapaxes(k, -1, -2)),
    ),
    "2.2 transpose(0, 2, 1)": (
        "attention_scores",
        "fixed_number_of_axes",
        "fixed number of axes",
        "",
        lambda q, k: q @ k.transpose(0, 2, 1),
    ),
    "2.3 transpose(0, 2, 1)": (
        A,
        "fixed_number_of_axes",
        "",
        "",
        lambda q, k, v, m=None: right(q, np.zeros(()) + k.transpose(0, 2, 1).transpose(0, 2, 1), v, m),
    ),
    "2.2 einsum without batch": (
        "attention_scores",
        "fixed_number_of_axes",
        "",
        "",
        lambda q, k: np.einsum("qd,kd->qk", q, k),
    ),
    "6.1 only batches": (
        "split_heads",
        "fixed_number_of_axes",
        "",
        "",
        lambda x, h: x.reshape(len(x), x.shape[1], h, x.shape[2] // h).transpose(0, 2, 1, 3),
    ),
    "6.2 only batches": (
        "merge_heads",
        "fixed_number_of_axes",
        "",
        "",
        lambda x: x.transpose(0, 2, 1, 3).reshape(len(x), x.shape[2], -1),
    ),
    "6.4 only batches": (MODULE, "fixed_number_of_axes", "", "", layer(forward=only_batches)),
    "no scale, -1e9": (
        A,
        "no_scale + finite_fill",
        "Two mistakes",
        "",
        student(scale="1", mask="np.where(m, s, -1e9)"),
    ),
    "6.4 no scale, -1e9": (
        MODULE,
        "no_scale + finite_fill",
        "",
        "",
        layer(
            divisor=lambda self: 1,
            fill=lambda self, s, m: s.masked_fill(~m, -1e9),
            softmax=lambda self, s: s.softmax(-1),
        ),
    ),
    "~mask, -1e9": (A, "mask_inverted + finite_fill", "", "", student(mask="np.where(~m, s, -1e9)")),
    "~mask, -1e9 added": (A, "mask_inverted + finite_fill", "", "", student(mask="s + m * -1e9")),
    "5.4 ~mask, -1e9": ("masked_softmax", "mask_inverted + finite_fill", "", "", masked_softmax(-1e9, mask=np.invert)),
    "over queries, -1e9": (
        A,
        "softmax_over_queries + finite_fill",
        "",
        "",
        student(mask="np.where(m, s, -1e9)", softmax="al.softmax(s, -2)"),
    ),
    "5.1 k = 1": ("causal_mask", "mask_shows_the_next", "", "", lambda q, k=None: np.tri(q, k or q, 1, dtype=bool)),
    "5.2 left": (
        "padding_mask",
        "padding_on_the_left",
        "",
        "",
        lambda n, n_k: np.arange(n_k) >= (n_k - n)[:, None, None],
    ),
    "6.3 W.T": (
        M,
        "projection_transposed",
        "",
        "softmax",
        multi_head("split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)"),
    ),
    "6.3 W.T everywhere": (
        M,
        "projection_transposed",
        "",
        "softmax",
        multi_head("split(query @ W_Q.T)", "split(key @ W_K.T)", "split(value @ W_V.T)", out="merge(w @ v) @ W_O.T"),
    ),
    "6.3 W_O.T": (M, "projection_transposed", "", "", multi_head(out="merge(w @ v) @ W_O.T")),
    "6.3 residual": (M, "residual_added", "", "softmax", multi_head(out="merge(w @ v) @ W_O + query")),
    "6.4 residual": (MODULE, "residual_added", "", "", layer(give=lambda self, o, w, x: (self.W_O(o) + x, w))),
    "6.3 value = key": (M, "keys_for_values", "", "softmax", multi_head(v="split(key @ W_V)")),
    "2.3 value = key": (A, "keys_for_values", "", "", student(rest="w @ k")),
    "1.4 value = key": (
        "output_1",
        "keys_for_values",
        "",
        "",
        al.softmax(np.array([2.0, 4, 4])) @ [[0, 1, 1], [4, 4, 0], [2, 3, 1]],
    ),
    "6.2 heads averaged": ("merge_heads", "heads_averaged", "", "", lambda x: x.mean(-3)),
    "6.2 heads added": ("merge_heads", "heads_averaged", "averages (or adds)", "", lambda x: x.sum(-3)),
    "6.4 weights averaged": (
        MODULE,
        "weights_averaged",
        "",
        "",
        layer(give=lambda self, o, w, x: (self.W_O(o), w.mean(-3))),
    ),
    "2.3 rounded": (A, "rounded_weights", "", "moves the output", student(softmax="al.softmax(s).round(2)")),
    "6.4 rounded": (  # a rounded number has no slope
        MODULE,
        "rounded_weights + gradient_cut",
        "",
        "",
        layer(softmax=lambda self, s: s.softmax(-1).nan_to_num().round(decimals=1)),
    ),
    "1.3 two digits": ("weights_1", "rounded_weights", "", "", [0.06, 0.47, 0.47]),
    "1.3 exp": ("weights_1", "exp_not_divided", "", "", [7.389, 54.598, 54.598]),
    "2.1 exp": ("softmax", "exp_not_divided", "", "", lambda x, axis=-1: np.exp(x - x.max(axis=axis, keepdims=True))),
    "2.3 exp": (A, "exp_not_divided", "", "", student(softmax="np.exp(s)")),
}


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


# right answers in forms near to a mistake
NEAR = [
    ("softmax", lambda x, axis=-1: (e := np.exp(x - np.max(x, axis, keepdims=True))) / np.sum(e, axis, keepdims=True)),
    ("softmax", lambda x, axis=-1: np.moveaxis(al.softmax(np.moveaxis(x, axis, -1)), -1, axis)),
    ("attention_scores", lambda q, k: np.matmul(q, np.moveaxis(k, -1, -2))),
    ("attention_scores", lambda q, k: q @ k.T if k.ndim == 2 else q @ k.transpose(0, 2, 1)),
    (A, by_where),
    (A, added),
    (
        A,
        student(
            mask="np.where(m, s, np.finfo(s.dtype).min) + 0 * s",
            softmax="al.softmax(s)",
            rest="(w * m if m is not None else w) @ v",
        ),
    ),
    (A, student(mask="np.where(m, s, -1e9)", rest="(w if m is None else w * m.any(-1, keepdims=True)) @ v")),
    (A, student(mask="s + np.where(m, 0, -np.inf)")),
    ("masked_softmax", masked_softmax(-np.inf)),
    ("causal_mask", lambda n_q, n_k=None: ~np.triu(np.ones((n_q, n_k or n_q), bool), k=1 + (n_k or n_q) - n_q)),
    ("causal_mask", lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool)[-n_q:]),
    ("padding_mask", lambda n, n_k: np.arange(n_k) < n.reshape(-1, 1, 1)),
    ("padding_mask", lambda n, n_k: np.tri(n_k + 1, n_k, -1, dtype=bool)[n][:, None]),
    ("combine_masks", lambda *m: functools.reduce(np.logical_and, [x for x in m if x is not None]).copy()),
    ("split_heads", lambda x, h: np.moveaxis(np.array(np.array_split(x, h, axis=-1)), 0, -3)),
    ("merge_heads", lambda x: np.concatenate(np.moveaxis(x, -3, 0), axis=-1)),
    (M, multi_head()),
    (M, multi_head(scale="(W_Q.shape[0] / h) ** 0.5", mask="m[:, None, :, :]")),
    ("cross_attention", single()),
    ("cross_attention", single(v="(c @ W_V.T.T)", out="(w @ c) @ W_V")),
    (MODULE, Layer),
    (MODULE, layer(fill=lambda self, s, m: torch.where(m, s, -torch.inf))),
    ("weights_1", [0.0634, 0.4683, 0.4683]),
    ("output_1", [1.937, 6.683, 1.595]),
]


@pytest.mark.parametrize("name, answer", NEAR)
def test_a_right_answer_near_to_a_mistake_is_not_accused(name, answer):
    verdict = EXERCISES[name](answer)
    assert verdict.passed and verdict.mistake is None, verdict
    assert not verdict.message or "attnlib's own" in verdict.message  # some of them call al.softmax


@pytest.mark.parametrize("row", ROWS)
def test_a_learners_mistake_is_named_and_told_truly(row):
    name, id, says, never, answer = ROWS[row]
    verdict = EXERCISES[name](answer)
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict
    assert says in verdict.message and (not never or never not in verdict.message), verdict


@pytest.mark.parametrize("id", ["no_scale", "mutates_input", "returns_float16", "finite_fill"])
def test_a_name_says_that_it_rests_on_behaviour(id):
    exercise = EXERCISES[A]
    verdict = exercise(exercise.wrong[id][0])
    assert verdict.message.startswith(f"Your code behaves as if {MISTAKES[id].does}. ")


def test_every_mistake_completes_the_sentence():
    for mistake in MISTAKES.values():
        start = mistake.does[0]
        assert start.islower() or mistake.does.startswith(("True", "nn.")), mistake
        assert not mistake.does.endswith("."), mistake


# --- one name for one mistake


@pytest.mark.parametrize("id", CASES)
def test_a_patient_of_the_clinic_has_the_name_that_the_check_gives_it(id):
    verdict = check.MultiHeadAttention(CASES[id].module)
    assert id in named(verdict) or not named(verdict), verdict  # some work for batches only, which is a second mistake


def test_most_patients_are_known_to_the_check():
    known = [id for id in CASES if id in named(check.MultiHeadAttention(CASES[id].module))]
    assert len(known) >= 12, known


# --- the first stage that differs is told truly, or not at all


def swapped(x):
    return np.swapaxes(x, -1, -2)


def squash(x):
    return x / (1 + np.abs(x))


def by_block(s, x, weight):
    """Split before projecting: every head uses the upper left corner of the matrix."""
    cut = s.split(x)
    return cut @ weight[: cut.shape[-1], : cut.shape[-1]]


def unsorted_split(s):
    return lambda x: STEPS["split"](s)(np.roll(x, 1, axis=-1))


def with_projections(*names):
    inputs = {"q": ("query", "W_Q"), "k": ("key", "W_K"), "v": ("value", "W_V")}
    return lambda change: {
        n: lambda s, n=n: s.split(change(getattr(s, inputs[n][0]), getattr(s, inputs[n][1]))) for n in names
    }


def noise(s, x):
    return x + 0.3 * np.sin(np.arange(x.size)).reshape(x.shape)


# what is replaced -> the stages that may be called the first to differ
STAGES = {
    "half a scale": ({"scaled": lambda s: s.scores / (2 * s.q.shape[-1])}, "scale"),
    "scale 1.3": ({"scaled": lambda s: 1.3 * s.scores / np.sqrt(s.q.shape[-1])}, "scale"),
    "scale -1": ({"scaled": lambda s: -s.scores / np.sqrt(s.q.shape[-1])}, "scale"),
    "squared keys": ({"scores": lambda s: s.q @ swapped(s.k**2)}, "scores"),
    "squared queries": ({"scores": lambda s: s.q**2 @ swapped(s.k)}, "scores"),
    "distances": ({"scores": lambda s: -((s.q[..., :, None, :] - s.k[..., None, :, :]) ** 2).sum(-1)}, "scores"),
    "cosines": ({"scores": lambda s: s.q / np.linalg.norm(s.q, axis=-1, keepdims=True) @ swapped(s.k)}, "scores scale"),
    "places added": ({"scores": lambda s: noise(s, s.q @ swapped(s.k))}, "scores"),
    "first feature left out": ({"scores": lambda s: s.q[..., 1:] @ swapped(s.k[..., 1:])}, "scores"),
    "clipped scores": ({"scaled": lambda s: np.clip(s.scores / np.sqrt(s.q.shape[-1]), -0.5, 0.5)}, "scale softmax"),
    "squashed scores": ({"scaled": lambda s: squash(s.scores)}, "scale softmax"),
    "squared weights": ({"weights": lambda s: al.softmax(s.masked, s.axis) ** 2}, "softmax"),
    "squared weights, shared out": (
        {"weights": lambda s: (w := al.softmax(s.masked) ** 2) / w.sum(-1, keepdims=True)},
        "scale softmax",
    ),
    "sigmoid": ({"weights": lambda s: 1 / (1 + np.exp(-s.masked))}, "softmax"),
    "relu": ({"weights": lambda s: np.maximum(np.where(np.isinf(s.masked), 0, s.masked), 0)}, "softmax"),
    "negative weights": ({"weights": lambda s: 2 * al.softmax(s.masked) - 0.2}, "softmax"),
    "queries shared out twice": (
        {"weights": lambda s: al.softmax(s.masked) / al.softmax(s.masked).sum(-2, keepdims=True)},
        "softmax",
    ),
    "uniform": ({"weights": lambda s: np.ones_like(s.scaled) / s.scaled.shape[-1]}, "scores scale softmax"),
    "mask lowers": ({"masked": lambda s: s.scaled if s.mask is None else s.scaled + np.where(s.mask, 1, -1)}, "mask"),
    "mask moved": ({"allowed": lambda s: np.roll(s.mask, 1, -1)}, "mask"),
    "cubed values": ({"context": lambda s: s.weights @ s.v**3}, "output"),
    "twice the output": ({"context": lambda s: 2 * s.weights @ s.v}, "output"),
    "one added": ({"context": lambda s: s.weights @ s.v + 1}, "output"),
    "rows turned": ({"context": lambda s: (s.weights @ s.v)[..., ::-1, :]}, "output"),
    "mean taken off": ({"context": lambda s: s.weights @ (s.v - s.v.mean(axis=-2, keepdims=True))}, "output"),
    "half a residual": ({"context": lambda s: s.weights @ s.v + 0.5 * s.v.mean()}, "output"),
}
PROJECTED = {
    "W turned round": (with_projections("q", "k", "v")(lambda x, W: x @ W[::-1]), "projections"),
    "W.T of the queries": (with_projections("q")(lambda x, W: x @ W.T), "projections"),
    "W.T of queries and keys": (with_projections("q", "k")(lambda x, W: x @ W.T), "projections"),
    "W.T of the values": (with_projections("v")(lambda x, W: x @ W.T), "projections output"),
    "queries not projected": (with_projections("q")(lambda x, W: x), "projections"),
    "queries twice projected": (with_projections("q")(lambda x, W: x @ W @ W), "projections"),
    "bent projections": (with_projections("q", "k")(lambda x, W: squash(x @ W)), "projections scores"),
    "keys by W_V": ({"k": lambda s: s.split(s.key @ s.W_V)}, "projections"),
    "queries by W_V": ({"q": lambda s: s.split(s.query @ s.W_V)}, "projections"),
    "queries by W_K": ({"q": lambda s: s.split(s.query @ s.W_K)}, "projections"),
    "centred tokens": (with_projections("q", "k")(lambda x, W: (x - x.mean(-1, keepdims=True)) @ W), "projections"),
    "scale and W": (with_projections("q")(lambda x, W: x @ W[::-1]) | STAGES["scale 1.3"][0], "projections"),
    "values by W_Q": ({"v": lambda s: s.split(s.value @ s.W_Q)}, "projections output"),
}
HEADS = {
    "split first": (
        {
            n: lambda s, x=x, w=w: by_block(s, getattr(s, x), getattr(s, w))
            for n, x, w in (("q", "query", "W_Q"), ("k", "key", "W_K"), ("v", "value", "W_V"))
        },
        "projections split heads",
    ),
    "split turned": ({"split": unsorted_split}, "split heads"),
    "split queries apart": ({"q": lambda s: unsorted_split(s)(s.query @ s.W_Q)}, "projections split heads"),
    "heads in another order": ({"merge": lambda s: lambda x: al.merge_heads(x[..., ::-1, :, :])}, "output heads"),
    "merge turned": ({"merge": lambda s: lambda x: np.roll(al.merge_heads(x), 1, -1)}, "output heads"),
    "twice a residual": ({"output": lambda s: s.merge(s.context) @ s.W_O + 2 * s.query}, "output"),
    "residual before W_O": ({"output": lambda s: (s.merge(s.context) + s.query) @ s.W_O}, "output"),
    "values added": ({"output": lambda s: s.merge(s.context) @ s.W_O + s.merge(s.context)}, "output"),
    "W_O twice": ({"output": lambda s: s.merge(s.context) @ s.W_O @ s.W_O}, "output"),
    "value = query": (
        {"v": lambda s: s.split((s.query @ s.W_V)[..., :4, :].repeat(2, -2)[..., : s.key.shape[-2], :])},
        "projections output",
    ),
    "weights averaged": (
        {"weights": lambda s: al.softmax(s.masked).mean(-3, keepdims=True).repeat(s.num_heads, -3)},
        "softmax heads",
    ),
    "softmax over heads": ({"weights": lambda s: al.softmax(s.scaled, -3)}, "softmax"),
    "heads see the first query": (
        {"q": lambda s: s.split(s.query @ s.W_Q)[..., :1, :, :].repeat(s.num_heads, -3)},
        "projections split heads",
    ),
}
UNNAMED = [
    (name, change)
    for name in (A, "cross_attention", "SelfAttention", M, MODULE)
    for change in STAGES | (PROJECTED if name != A else {}) | (HEADS if name in (M, MODULE) else {})
]


@functools.cache
def staged(name, change):
    """Return the verdict on the right steps with one replaced, and the stages that are true."""
    steps, truth = (STAGES | PROJECTED | HEADS)[change]
    exercise = EXERCISES[name]
    return submit(exercise, exercise.solve(steps)), truth.split()


@pytest.mark.parametrize("name, change", UNNAMED)
def test_the_stage_is_told_truly_or_not_at_all(name, change):
    verdict, truth = staged(name, change)
    assert verdict.state == "wrong"
    assert verdict.mistake is None, verdict
    assert verdict.stage is None or set(verdict.stage.split(" or ")) & set(truth), verdict


def test_errors_alone_are_no_evidence_of_two_mistakes():
    """An answer that mostly raises may do so for any reason."""

    def broken(q, k, v, m=None):
        if q.ndim == 2 or m is not None:
            raise ValueError("anything")
        return q @ np.swapaxes(k, -1, -2) @ v

    assert check.scaled_dot_product_attention(broken).mistake is None


def test_the_score_of_row_i_with_row_i_alone_is_not_called_untransposed():
    """It raises where q @ k does, and its variance was once the same to 1 in 1000, by chance."""
    verdict = check.variance_of_scores(lambda query, key: (query * key).sum(axis=-1).var())
    assert (verdict.state, verdict.mistake) == ("wrong", None)
    assert check.variance_of_scores(lambda query, key: np.var(query @ key)).mistake == "untransposed_key"


def test_values_in_another_order_are_not_called_scores():
    """From outside, weights on reversed keys and values in reversed order are the same."""

    def attention(q, k, v, m=None):
        return al.scaled_dot_product_attention(q, k, v, m)[..., ::1, :] if m is not None else reverse(q, k, v)

    def reverse(q, k, v):
        return al.attention_trace(q, k, v).weights @ v[..., ::-1, :]

    assert check.scaled_dot_product_attention(attention).stage is None


def test_a_hint_does_not_send_to_the_next_exercise():
    """The scale comes right after the scores in 2.2, and three exercises later in 1.2."""
    assert "a later exercise" in check.scores_2([4 / 3**0.5, 16 / 3**0.5, 12 / 3**0.5]).hint()


def test_several_explanations_are_none():
    exercise = EXERCISES["softmax"]
    found = exercise.wrong_outcomes["no_softmax"][0]
    assert [m.id for m in explain(exercise, found)] == ["no_softmax"]
    twice = types.SimpleNamespace(
        wrong_outcomes={"no_softmax": [found], "axis_ignored": [found]}, probes=exercise.probes, pairs=exercise.pairs
    )
    assert explain(twice, found) == ()


@pytest.mark.parametrize("name", [A, "masked_softmax"])
def test_a_mistake_unknown_to_the_catalogue_is_not_called_two_others(name):
    exercise = EXERCISES[name]
    for id, ways in exercise.wrong_outcomes.items():
        for outcomes in ways:
            assert not [ids for ids in exercise.pairs.fitting(outcomes) if id not in ids], id


def test_the_stage_can_be_told_for_most():
    told = [verdict.stage for verdict, _ in itertools.starmap(staged, UNNAMED) if "First" in verdict.message]
    assert len(told) > 100
    assert sum(stage is not None for stage in told) / len(told) > 0.6
