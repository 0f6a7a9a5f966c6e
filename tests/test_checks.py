"""The checks, tested as hard as they test: every mistake named, every right variant accepted, nothing named falsely."""

import contextlib
import copy
import functools
import itertools
import pathlib
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlib as al
from attnlib import torch_layers
from attnlib.checks import EXERCISES, MISTAKES, calling, check
from attnlib.checks.__main__ import page, table
from attnlib.checks.verdict import luminance, text_on, viridis

torch.set_num_threads(1)


def as_module(function, name, cut=()):
    """Wrap a NumPy solution of a module exercise in the class a learner would hand in; `cut` drops gradients."""

    def run(module, inputs, mask, *sizes):
        matrices = [getattr(module, f"W_{c}").weight for c in module.letters]
        mask = () if mask is None else (mask.numpy(),)
        result = function(*(x.numpy() for x in inputs), *(w.detach().numpy().T for w in matrices), *sizes, *mask)
        # NumPy knows no gradient: one is led past it, with the value 0.
        led = [w for w, dropped in zip(matrices, cut or [False] * len(matrices), strict=True) if not dropped]
        gradient = sum((w - w.detach()).sum() for w in led)
        return tuple(torch.as_tensor(y) + (gradient if y.dtype.kind == "f" else 0) for y in result)

    class SelfAttention(nn.Module):
        letters = "QKV"

        def __init__(self, d_in, d_k, d_v=None):
            super().__init__()
            self.W_Q, self.W_K = nn.Linear(d_in, d_k), nn.Linear(d_in, d_k)
            self.W_V = nn.Linear(d_in, d_v or d_k)

        def forward(self, x, *, attn_mask=None):
            return run(self, (x,), attn_mask)

    class MultiHeadAttention(nn.Module):
        letters = "QKVO"

        def __init__(self, embed_dim, num_heads):
            super().__init__()
            self.num_heads = num_heads
            for c in self.letters:
                setattr(self, f"W_{c}", nn.Linear(embed_dim, embed_dim))

        def forward(self, query, key=None, value=None, *, attn_mask=None):
            return run(self, (query, key, value), attn_mask, self.num_heads)

    return {"SelfAttention": SelfAttention, "MultiHeadAttention": MultiHeadAttention}[name]


def submit(exercise, function):
    """Hand in an implementation of the catalogue the way a learner would."""
    if exercise.slips is not None:
        return exercise(function())
    if exercise.many:
        cut = ()
        with contextlib.suppress(ValueError):  # a mistake that runs in some shapes only
            cut = list(function(*copy.deepcopy(exercise.probes[-1].args))[0])
        return exercise(as_module(function, exercise.name, cut))
    return exercise(function)


PAIRS = [(exercise, id) for exercise in EXERCISES.values() for id in exercise.wrong]
WRONG_PAIRS = [(e, id) for e, id in PAIRS if not MISTAKES[id].accepted]


def ids(pair):
    return f"{pair[0].name}-{pair[1]}"


@pytest.mark.parametrize("pair", WRONG_PAIRS, ids=ids)
def test_every_mistake_is_rejected_and_named(pair):
    exercise, id = pair
    for function in exercise.wrong[id]:
        verdict = submit(exercise, function)
        assert (verdict.state, verdict.mistake) == ("wrong", id)
        assert MISTAKES[id].does in verdict.message


def test_every_mistake_of_the_catalogue_is_made_somewhere():
    assert {id for _, id in PAIRS} == set(MISTAKES)


@pytest.mark.parametrize(
    "name, applicable",
    {
        "softmax": "no_softmax double_softmax argmax_instead_of_softmax unstable_softmax softmax_over_queries "
        "softmax_over_everything mutates_input returns_float16",
        "attention_scores": "swapped_query_key untransposed_key scaled_already wrong_batch_axis",
        "scaled_dot_product_attention": "no_scale scale_by_d_k scale_by_d_v scale_by_n multiply_by_sqrt_d_k "
        "scale_after_softmax softmax_over_queries softmax_over_everything no_softmax double_softmax "
        "argmax_instead_of_softmax unstable_softmax swapped_query_key swapped_key_value untransposed_key "
        "weights_returned weights_transposed mask_ignored mask_inverted mask_after_softmax mask_multiplies_scores "
        "finite_fill nan_on_fully_masked padding_masks_queries wrong_batch_axis mutates_input returns_float16",
        "causal_mask": "mask_inverted mask_future_only mask_blocks_diagonal causal_upper_left mask_as_numbers",
        "padding_mask": "mask_inverted padding_masks_queries padding_without_query_axis padding_off_by_one",
        "combine_masks": "mask_ignored mask_inverted masks_joined_with_or mutates_input",
        "masked_softmax": "mask_ignored mask_inverted mask_after_softmax mask_multiplies_scores finite_fill "
        "nan_on_fully_masked",
        "split_heads": "split_without_transpose heads_interleaved wrong_batch_axis",
        "merge_heads": "merge_without_transpose heads_interleaved heads_averaged wrong_batch_axis",
        "multi_head_attention": "scale_by_embed_dim one_mask_for_first_head_only split_without_transpose "
        "merge_without_transpose heads_interleaved heads_averaged no_output_projection projections_unused "
        "projections_shared no_scale mask_inverted wrong_batch_axis mutates_input returns_float16",
        "SelfAttention": "no_scale scale_by_embed_dim projections_unused projections_shared mask_ignored",
        "MultiHeadAttention": "scale_by_embed_dim one_mask_for_first_head_only split_without_transpose "
        "merge_without_transpose heads_averaged no_output_projection projections_unused projections_shared",
        "cross_attention": "context_ignored swapped_key_value projections_unused no_scale",
        "variance_of_scores": "products_not_summed scaled_already std_instead_of_variance",
        "output_1": "rounded_weights weights_returned",
        "entropy": "zero_times_log_zero log2_instead_of_ln minus_forgotten entropy_over_queries",
        "head_divisor": "scale_by_embed_dim scale_by_d_k scale_by_num_heads",
        "linear_std": "xavier_assumed kaiming_assumed bound_instead_of_std root_forgotten",
    }.items(),
)
def test_the_mistakes_that_belong_to_an_exercise_are_among_its_own(name, applicable):
    assert set(applicable.split()) <= set(EXERCISES[name].wrong)


# --- right answers in other forms


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


def renormalised(scores, attn_mask=None):
    weights = al.softmax(scores)
    if attn_mask is None:
        return weights
    weights = weights * attn_mask
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total == 0, 1, total)


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


def projected(attention):
    return lambda x, context, W_Q, W_K, W_V, attn_mask=None: attention(x @ W_Q, context @ W_K, context @ W_V, attn_mask)


class FunctionalSelfAttention(nn.Module):
    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
        self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)

    def forward(self, x, attn_mask=None):
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        n = x.shape[-2]
        weights = F.scaled_dot_product_attention(q, k, torch.eye(n, dtype=x.dtype), attn_mask).nan_to_num()
        return F.scaled_dot_product_attention(q, k, v, attn_mask).nan_to_num(), weights


class EinsumMultiHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def forward(self, query, key=None, value=None, attn_mask=None):
        q, k, v = (f(x).unflatten(-1, (self.h, -1)) for f, x in ((self.W_Q, query), (self.W_K, key), (self.W_V, value)))
        scores = torch.einsum("...qhd,...khd->...hqk", q, k) / q.shape[-1] ** 0.5
        if attn_mask is not None:
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask[:, None]
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).nan_to_num()
        return self.W_O(torch.einsum("...hqk,...khd->...qhd", weights, v).flatten(-2)), weights


ATTENTIONS = [
    loops,
    einsum,
    mask_before_scale,
    torch_inside,
    al.scaled_dot_product_attention,
    attention_with(log_sum_exp),
    attention_with(finite_fill_with_dead_rows, scale_query=True),
]


def rows(x, axis=-1):
    return np.apply_along_axis(lambda row: np.exp(row - row.max()) / np.exp(row - row.max()).sum(), axis, x)


def combine_in_a_loop(*masks):
    combined = True
    for mask in masks:
        if mask is not None:
            combined = combined & mask
    return combined.copy()


def by_matching_letters(weights, tokens):
    """In torch: the letter before key j is the letter of query i."""
    weights, tokens = torch.as_tensor(weights), torch.as_tensor(tokens)
    before = torch.cat([torch.full_like(tokens[:, :1], -1), tokens[:, :-1]], dim=1)
    return (weights * (before[:, None, :] == tokens[:, :, None])[:, None]).sum(-1).mean((0, -1))


def by_loops_over_copies(weights, tokens):
    score, count = np.zeros(weights.shape[1]), 0
    for b, row in enumerate(tokens):
        for i in range(len(row)):
            for j in range(1, i):
                if row[j - 1] == row[i]:
                    score, count = score + weights[b, :, i, j], count + 1
    return score / count


def by_best_earlier_match(weights, tokens):
    """How often the key with the most weight is one that follows a copy."""
    best = np.asarray(weights).argmax(-1)  # (b, h, n)
    before = np.concatenate([np.full_like(tokens[:, :1], -1), tokens[:, :-1]], axis=1)
    return [np.mean([before[b, best[b, h]] == tokens[b] for b in range(len(tokens))]) for h in range(weights.shape[1])]


def swap_with_first_or_next(tokens):
    at = list(tokens).index(tokens[-1])
    j = 0 if at > 0 else 2
    other = tokens.copy()
    other[[at + 1, j]] = tokens[[j, at + 1]]
    return other


def in_place(tokens):
    tokens[:] = swap_with_first_or_next(tokens)
    return tokens


def swap_by_list(tokens):
    letters = list(tokens)
    at = letters.index(letters[-1])
    j = at - 1 if at else at + 2
    letters[j], letters[at + 1] = letters[at + 1], letters[j]
    return np.array(letters)


def reverse_or_swap(tokens):
    order = [*range(len(tokens) - 1)][::-1] if tokens[0] != tokens[-1] else [0, 2, 1, *range(3, len(tokens) - 1)]
    return tokens[[*order, len(tokens) - 1]]


RIGHT = {
    "softmax": [
        al.softmax,
        rows,
        lambda x, axis=-1: torch.softmax(torch.tensor(x), axis).numpy(),
        lambda x, axis=-1: np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True)),
        lambda x, axis=-1: F.softmax(x, axis),  # for tensors only
    ],
    "attention_scores": [
        lambda q, k: q @ np.swapaxes(k, -1, -2),
        lambda q, k: np.einsum("...qd,...kd->...qk", q, k),
        lambda q, k: (q[..., :, None, :] * k[..., None, :, :]).sum(-1),
        lambda q, k: q @ k.transpose(-1, -2),
    ],
    "scaled_dot_product_attention": [*ATTENTIONS, torch_layers.scaled_dot_product_attention],
    "causal_mask": [
        lambda n_q, n_k=None: al.causal_mask(n_q, n_k, align="lower_right"),
        lambda n_q, n_k=None: np.tril(np.ones((n_k or n_q, n_k or n_q), dtype=bool))[-n_q:],
        lambda n_q, n_k=None: np.arange((n_k or n_q) - n_q, n_k or n_q)[:, None] >= np.arange(n_k or n_q),
        lambda n_q, n_k=None: torch.ones(n_q, n_k or n_q, dtype=torch.bool).tril((n_k or n_q) - n_q),
    ],
    "padding_mask": [
        al.padding_mask,
        lambda lengths, n_k: np.array([[[j < n for j in range(n_k)]] for n in lengths]),
        lambda lengths, n_k: ~(np.arange(n_k)[None] >= lengths[:, None])[:, None],
    ],
    "combine_masks": [
        al.combine_masks,
        combine_in_a_loop,
        lambda *m: np.all(np.stack(np.broadcast_arrays(*(x for x in m if x is not None))), axis=0),
    ],
    "masked_softmax": [
        log_sum_exp,
        finite_fill_with_dead_rows,
        lambda s, m=None: al.softmax(s if m is None else np.where(m, s, -np.inf)),
        lambda s, m=None: torch.nan_to_num(
            torch.softmax(torch.tensor(s if m is None else np.where(m, s, -np.inf)), -1)
        ),
    ],
    "split_heads": [
        al.split_heads,
        lambda x, h: np.stack(np.split(x, h, axis=-1), axis=-3),
        lambda x, h: np.moveaxis(x.reshape(*x.shape[:-1], h, -1), -2, -3),
        lambda x, h: torch.tensor(x).unflatten(-1, (h, -1)).transpose(-2, -3),
    ],
    "merge_heads": [
        al.merge_heads,
        lambda x: np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-1),
        lambda x: torch.tensor(x).transpose(-2, -3).flatten(-2).numpy(),
    ],
    "multi_head_attention": [heads_by_loop(attention) for attention in ATTENTIONS],
    "SelfAttention": [
        torch_layers.SelfAttention,
        FunctionalSelfAttention,
        as_module(
            lambda x, W_Q, W_K, W_V, m=None: (
                loops(x @ W_Q, x @ W_K, x @ W_V, m),
                loops(x @ W_Q, x @ W_K, np.broadcast_to(np.eye(x.shape[-2]), (*x.shape[:-1], x.shape[-2])), m),
            ),
            "SelfAttention",
        ),
    ],
    "MultiHeadAttention": [
        torch_layers.MultiHeadAttention,
        EinsumMultiHead,
        functools.partial(torch_layers.MultiHeadAttention, bias=False).func,
        as_module(lambda *a: (heads_by_loop(loops)(*a), weights_by_loop(*a)), "MultiHeadAttention"),
    ],
    "cross_attention": [projected(attention) for attention in ATTENTIONS],
    "variance_of_scores": [
        lambda q, k: np.var(q @ k.T),
        lambda q, k: (q @ k.T).var(ddof=1),
        lambda q, k: torch.tensor(q @ k.T).var().item(),
    ],
    "entropy": [
        al.entropy,
        lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(-1),
        lambda w: torch.special.entr(torch.tensor(w)).sum(-1).numpy(),
    ],
    "score_std": [12, 12.0, np.sqrt(144)],
    "head_divisor": [8, 8.0, torch.tensor(64).sqrt()],
    "uniform_divisor": [2, 2.0, np.sqrt(36) / 3],
    "linear_std": [0.0208333, (3 * 768) ** -0.5, np.float32(0.0208333)],
    "head_parameters": [98304, 98_304.0, 3 * 512 * 64],
    "bag_accuracy": [0.75, 3 / 4, torch.tensor(0.75)],
    "induction_measure": [by_matching_letters, by_loops_over_copies, by_best_earlier_match],
    "fool_one_layer": [swap_with_first_or_next, swap_by_list, reverse_or_swap],
    "q1": [[1, 0, 2], (1, 0, 2), np.array([1.0, 0, 2])],
    "k2": [[4, 4, 0], (4, 4, 0), torch.tensor([4, 4, 0])],
    "v3": [[2, 6, 3], (2, 6, 3), np.array([2, 6, 3])],
    "scores_2": [[4, 16, 12], (4.0, 16.0, 12.0), np.array([4, 16, 12])],
    "weights_1": [[0.0634, 0.4683, 0.4683], al.softmax(np.array([2.0, 4, 4])), (0.063379, 0.46831, 0.46831)],
    "output_1": [[1.9366, 6.6831, 1.5951], (1.936621, 6.683105, 1.595068), np.array([1.9366, 6.6831, 1.5951])],
    "scaled_output_1": [
        [1.8639, 6.3194, 1.7042],
        (1.863874, 6.319371, 1.704189),
        torch.tensor([1.8639, 6.3194, 1.7042]),
    ],
}


@pytest.mark.parametrize("name", EXERCISES)
def test_right_answers_in_other_forms_pass(name):
    assert len(RIGHT[name]) >= 3
    for answer in RIGHT[name]:
        verdict = EXERCISES[name](answer)
        assert verdict.passed and verdict.mistake is None, verdict


@pytest.mark.parametrize(
    "name, wrap", [("masked_softmax", lambda f: f), ("scaled_dot_product_attention", attention_with)]
)
def test_a_mask_after_the_softmax_passes_with_a_remark_if_renormalised(name, wrap):
    verdict = EXERCISES[name](wrap(renormalised))
    assert verdict.passed and verdict.message.startswith("Remark: your code behaves as if it masks after the softmax")


# --- nothing is named that is not there


@pytest.mark.parametrize("exercise", [e for e in EXERCISES.values() if e.slips is None], ids=lambda e: e.name)
def test_random_wrong_functions_are_rejected_and_never_named(exercise):
    rng = np.random.default_rng(0)
    for _ in range(15):
        factor, shift = rng.uniform(0.3, 3), rng.normal()

        def wrong(*args, factor=factor, shift=shift):
            right = exercise.reference(*args)
            changed = [
                rng.random(y.shape) < 0.5 if y.dtype == bool else factor * y + shift for y in np.atleast_1d(right)
            ]
            return tuple(changed) if exercise.many else changed[0].reshape(np.shape(right))

        def wrong_tuple(*args, factor=factor, shift=shift):
            return tuple(factor * y + shift for y in exercise.reference(*args))

        verdict = submit(exercise, wrong_tuple if exercise.many else wrong)
        assert (verdict.state, verdict.mistake) == ("wrong", None)


def named(verdict):
    """Return the ids of the mistakes that a verdict is sure to explain the answer by."""
    return set((verdict.mistake or "").split(" + ")) - {""}


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "multi_head_attention", "masked_softmax"])
def test_two_mistakes_at_once_are_rejected_and_no_third_is_named(name):
    exercise = EXERCISES[name]
    mistakes = [m for m in MISTAKES.values() if m.id in exercise.wrong and not m.accepted and m.ways]
    tried = both = 0
    every = 5 if name == "multi_head_attention" else 1  # more than a thousand pairs: some of them will do
    for a, b in itertools.islice(itertools.combinations(mistakes, 2), 0, None, every):
        if set(a.ways[0]) & set(b.ways[0]):
            continue  # they replace the same step: only one of them can be made
        verdict = exercise(exercise.solve(a.ways[0] | b.ways[0]))
        tried += 1
        assert verdict.state == "wrong", (a.id, b.id)
        said = {m.id for m in MISTAKES.values() if m.does in verdict.message}
        assert said <= {a.id, b.id} and named(verdict) <= said, (a.id, b.id, verdict)
        both += named(verdict) == {a.id, b.id}
    assert tried > 20 and both > tried / 2, (tried, both)


# --- odd answers get a message of their own


def right(q, k, v, attn_mask=None):
    return al.scaled_dot_product_attention(q, k, v, attn_mask)


def endless(q, k, v, attn_mask=None):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def not_implemented(q, k, v, attn_mask=None):
    raise NotImplementedError


ODD = {
    "raises": (lambda q, k, v, m=None: q @ k, "wrong", "raises ValueError"),
    "raises its line": (lambda q, k, v, m=None: q @ k, "wrong", "Line "),
    "exits": (lambda q, k, v, m=None: sys.exit(), "wrong", "raises SystemExit"),
    "None": (None, "not tried", ""),
    "...": (..., "not tried", ""),
    "returns None": (lambda q, k, v, m=None: None, "not tried", "`return` missing"),
    "returns ...": (lambda q, k, v, m=None: ..., "not tried", ""),
    "NotImplementedError": (not_implemented, "not tried", ""),
    "list": (lambda *a: right(*a).tolist(), "wrong", "You return a list of 4"),
    "tuple": (lambda *a: (right(*a), 1), "wrong", "You return a tuple of 2"),
    "string": (lambda *a: "<b>no</b>", "wrong", "You return a str"),
    "objects": (lambda *a: right(*a).astype(object), "wrong", "dtype object"),
    "complex": (lambda *a: right(*a) + 0j, "wrong", "dtype complex128"),
    "float16": (lambda *a: right(*a).astype(np.float16) + np.float16(1), "wrong", "dtype float16"),
    "tensor": (lambda *a: torch.tensor(right(*a)), "right", "you return torch tensors"),
    "shape": (lambda *a: right(*a)[..., :1], "wrong", "shape (4, 1), expected (4, 2)"),
    "NaN": (lambda *a: right(*a) * np.nan, "wrong", "holds NaN (8 of 8 entries)"),
    "no mask yet": (
        lambda q, k, v: right(q, k, v),
        "wrong",
        "Right so far; the first difference is on one sequence with",
    ),
    "not a function": (np.eye(2), "wrong", "asks for a function"),
    "None later": (
        lambda q, k, v, m=None: right(q, k, v) if m is None else None,
        "wrong",
        "Here your function returns",
    ),
    "mutates and wrong": (lambda q, k, v, m=None: q.__imul__(2)[..., :2], "wrong", "First difference"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_answers_get_a_message_of_their_own(case):
    answer, state, message = ODD[case]
    verdict = check.scaled_dot_product_attention(answer)
    assert verdict.state == state
    assert message in verdict.message
    assert verdict.mistake is None


def test_an_endless_loop_is_stopped(monkeypatch):
    monkeypatch.setattr("attnlib.checks.grading.TIME_LIMIT", 0.2)
    verdict = check.scaled_dot_product_attention(endless)
    assert verdict.state == "wrong" and "did not finish within 0.2 seconds" in verdict.message


def test_without_signals_there_is_no_limit_and_no_error(monkeypatch):
    monkeypatch.delattr(calling.signal, "setitimer")
    assert check.softmax(al.softmax).passed


def test_a_verdict_is_true_only_if_right():
    """A grader that writes `assert check.softmax(answer)` must not give points to a wrong answer."""
    assert check.softmax(al.softmax)
    assert not check.softmax(lambda x, axis=-1: x) and not check.softmax(None)


def test_the_stage_is_measured():
    def attention(q, k, v, m=None, scale=1.0, power=1, value=1, roll=0):
        m = m if m is None else np.roll(m, roll, axis=-1)
        return right(scale * q, k**power, v**value, m)

    cases = [
        (dict(scale=1.3), "scale", "1.3 times"),
        (dict(power=2), "scores", ""),
        (dict(value=2), "output", ""),
        (dict(roll=1), "mask", ""),
    ]
    for change, stage, detail in cases:
        verdict = check.scaled_dot_product_attention(functools.partial(attention, **change))
        assert verdict.stage == stage and detail in verdict.message
    assert check.scaled_dot_product_attention(lambda *a: right(*a) / 2).stage == "softmax or output"


@pytest.mark.parametrize("name", ["multi_head_attention", "cross_attention", "SelfAttention", "MultiHeadAttention"])
@pytest.mark.parametrize(
    "stage, steps",
    [
        ("scale", {"scaled": lambda s: 1.3 * s.scores / np.sqrt(s.q.shape[-1])}),
        ("scores", {"scores": lambda s: s.q @ np.swapaxes(s.k**2, -1, -2)}),
        ("mask", {"masked": lambda s: s.scaled if s.mask is None else s.scaled + np.where(s.mask, 1, -1)}),
        ("softmax or output", {"weights": lambda s: al.softmax(s.masked) ** 2}),
        ("output", {"context": lambda s: s.weights @ s.v**3}),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_the_stage_is_found_in_every_attention_exercise(name, stage, steps):
    exercise = EXERCISES[name]
    verdict = submit(exercise, exercise.solve(steps))
    assert (verdict.state, verdict.mistake, verdict.stage) == ("wrong", None, stage)


# --- the same mistakes as a learner writes them, not as the catalogue does


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


@pytest.mark.parametrize(
    "id, lines",
    [
        (None, {}),
        ("no_scale", {"scale": "1"}),
        ("scale_by_d_k", {"scale": "q.shape[-1]"}),
        ("scale_by_d_v", {"scale": "v.shape[-1] ** 0.5"}),
        ("scale_by_n", {"scale": "len(q.swapaxes(0, -2)) ** 0.5"}),
        ("multiply_by_sqrt_d_k", {"scale": "q.shape[-1] ** -0.5"}),
        ("softmax_over_queries", {"softmax": "al.softmax(s, axis=-2)"}),
        ("wrong_batch_axis", {"softmax": "al.softmax(s, axis=1)"}),
        ("softmax_over_everything", {"softmax": "np.exp(s - s.max()) / np.exp(s - s.max()).sum()"}),
        ("unstable_softmax", {"softmax": "np.exp(s) / np.exp(s).sum(-1)[..., None]"}),
        ("double_softmax", {"softmax": "al.softmax(al.softmax(s))"}),
        ("nan_on_fully_masked", {"softmax": "(e := np.exp(s - s.max(-1)[..., None])) / e.sum(-1)[..., None]"}),
        ("argmax_instead_of_softmax", {"softmax": "(s == s.max(-1)[..., None]) * np.isfinite(s)"}),
        ("finite_fill", {"mask": "np.where(m, s, -1e12)"}),
        ("finite_fill", {"mask": "s + ~m * -1e9"}),
        ("mask_inverted", {"mask": "np.where(m == False, s, -np.inf)"}),
        ("mask_multiplies_scores", {"mask": "s * m"}),
        ("mask_ignored", {"mask": "s"}),
        ("weights_returned", {"rest": "w"}),
        ("weights_transposed", {"rest": "w.swapaxes(-1, -2) @ v"}),
        ("scale_after_softmax", {"scale": "1", "softmax": "al.softmax(s) / q.shape[-1] ** 0.5"}),
        ("mutates_input", {"rest": "w @ v + 0 * q.__imul__(2).sum()"}),
        ("returns_float16", {"rest": "np.half(w @ v)"}),
    ],
)
def test_a_students_own_code_is_named_too(id, lines):
    verdict = check.scaled_dot_product_attention(student(**lines))
    assert verdict.mistake == id and verdict.passed == (id is None), verdict


@pytest.mark.parametrize(
    "exercise, id, answer",
    [
        ("causal_mask", "mask_as_numbers", lambda n_q, n_k=None: np.tri(n_k or n_q)[-n_q:]),
        ("causal_mask", "causal_upper_left", lambda n_q, n_k=None: np.tril(np.ones((n_q, n_k or n_q), bool))),
        ("causal_mask", "causal_upper_left", lambda n_q, n_k=None: np.arange(n_q)[:, None] >= np.arange(n_k or n_q)),
        ("causal_mask", "mask_inverted", lambda n_q, n_k=None: ~np.tri(n_k or n_q, dtype=bool)[-n_q:]),
        ("causal_mask", "mask_future_only", lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool).T[-n_q:]),
        ("causal_mask", "mask_blocks_diagonal", lambda n_q, n_k=None: np.tri(n_k or n_q, k=-1, dtype=bool)[-n_q:]),
        ("causal_mask", "mask_inverted", lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool), 1)),
        ("causal_mask", "mask_future_only", lambda n_q, n_k=None: np.triu(np.ones((n_q, n_k or n_q), bool))),
        (
            "padding_mask",
            "padding_without_query_axis",
            lambda n, n_k: np.array([[j < i for j in range(n_k)] for i in n]),
        ),
        ("padding_mask", "mask_as_numbers", lambda n, n_k: al.padding_mask(n, n_k).astype(float)),
        ("combine_masks", "masks_joined_with_or", lambda *m: sum(x for x in m if x is not None) > 0),
        ("softmax", "axis_ignored", lambda x, axis=-1: al.softmax(x)),
        ("softmax", "returns_float16", lambda x, axis=-1: np.half(al.softmax(x, axis))),
        ("split_heads", "split_without_transpose", lambda x, h: x.reshape(*x.shape[:-2], h, x.shape[-2], -1)),
        ("merge_heads", "merge_without_transpose", lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1)),
        ("attention_scores", "wrong_batch_axis", lambda q, k: q @ k.T),
        ("variance_of_scores", "std_instead_of_variance", lambda q, k: (q @ k.T).std(ddof=1)),
        ("cross_attention", "swapped_query_key", lambda x, c, Q, K, V, m=None: right(c @ K, x @ Q, c @ V, m)),
        ("output_1", "rounded_weights", lambda: [2, 7, 1.5]),
        ("entropy", "zero_times_log_zero", lambda w: -np.sum(w * np.log(w), axis=-1)),
        ("entropy", "log2_instead_of_ln", lambda w: np.sum(w * np.log2(1 / np.maximum(w, 1e-300)), axis=-1)),
    ],
)
def test_a_students_own_code_is_named_in_the_other_exercises(exercise, id, answer):
    verdict = EXERCISES[exercise](answer() if EXERCISES[exercise].slips else answer)
    assert (verdict.state, verdict.mistake) == ("wrong", id), verdict


JUDGED = {
    "one number per head": (check.induction_measure, lambda w, t: w.max(-1), "one number for each of the 7 heads"),
    "NaN": (check.induction_measure, lambda w, t: w.mean((0, 2, 3)) * np.nan, "count 0 or leave it out"),
    "no single mistake": (
        check.induction_measure,
        lambda w, t: w[..., 0].sum((0, -1)) if t.max() > 5 else w[..., 0].max((0, -1)) - w[..., 1].max((0, -1)),
        "the induction head is",
    ),
    "length": (check.fool_one_layer, lambda t: t[1:], "a sequence of the length it was given"),
    "two mistakes": (check.fool_one_layer, lambda t: t if len(t) > 6 else t[::-1], "the last letter differs"),
    "in place": (check.fool_one_layer, in_place, "the arrays you were given have changed"),
}


@pytest.mark.parametrize("case", JUDGED)
def test_free_answers_are_told_what_is_wrong(case):
    exercise, answer, message = JUDGED[case]
    verdict = exercise(answer)
    assert verdict.state == "wrong" and message in verdict.message, verdict


# --- modules


def test_module_exercises_say_what_they_need():
    assert "hand in an instance" in check.SelfAttention(torch_layers.SelfAttention(4, 3)).message
    assert "derived from nn.Module" in check.SelfAttention(al.softmax).message
    assert "nn.Linear called W_Q" in check.MultiHeadAttention(nn.MultiheadAttention).message
    assert check.SelfAttention(None).state == "not tried"

    class Stub(nn.Module):
        def __init__(self, d_in, d_k, d_v=None):
            super().__init__()
            raise NotImplementedError

    assert check.SelfAttention(Stub).state == "not tried"


def test_checking_a_module_leaves_torch_random_numbers_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    assert check.MultiHeadAttention(torch_layers.MultiHeadAttention).passed
    assert torch.equal(torch.rand(3), expected)


def test_wrong_weights_beside_a_right_output_are_rejected():
    class DropsTheMask(torch_layers.SelfAttention):
        def forward(self, x, *, attn_mask=None):
            output, _ = super().forward(x, attn_mask=attn_mask)
            return output, super().forward(x)[1]

    verdict = check.SelfAttention(DropsTheMask)
    assert verdict.state == "wrong" and "weights: First difference" in verdict.message


# --- the verdict


def test_hints_go_one_step_further_and_stop():
    verdict = check.softmax(lambda x, axis=-1: x)
    hints = [verdict.hint() for _ in range(6)]
    assert MISTAKES["no_softmax"].hint in hints[0]
    assert len(set(hints)) == 4 and hints[-1] == hints[-2]
    assert check.softmax(al.softmax).hint() == "No hint needed: this is right."


@pytest.mark.parametrize("name", [e.name for e in EXERCISES.values() if e.slips is not None])
def test_a_wrong_number_by_hand_does_not_show_the_right_one(name):
    verdict = EXERCISES[name](1.5 * np.asarray(EXERCISES[name].reference()) + 0.5)
    assert verdict.state == "wrong" and "expected" not in verdict.message
    assert verdict.expected is None


def test_html_escapes_what_a_learner_can_write():
    class Evil(Exception):
        pass

    def attack(x, axis=-1):
        raise Evil('<script>alert(1)</script> & "quotes"')

    page = check.softmax(attack)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_html_shows_both_maps_in_any_theme():
    page = check.scaled_dot_product_attention(
        EXERCISES["scaled_dot_product_attention"].wrong["no_scale"][0]
    )._repr_html_()
    assert page.count("<table") == 2 and "yours (4, 2)" in page and "expected (4, 2)" in page
    assert "queries (rows), features (columns)" in page
    assert page.count("color:#") == page.count("background:")  # a fixed text colour only on a coloured cell
    assert "≠" in page


def test_text_on_a_cell_has_enough_contrast():
    for t in np.linspace(0, 1, 101):
        a, b = sorted((luminance(viridis(t)), 0.0 if text_on(viridis(t)) == "#000" else 1.0))
        assert (b + 0.05) / (a + 0.05) >= 4.5


def test_nan_and_infinity_have_cells_of_their_own():
    page = check.causal_mask(lambda n_q, n_k=None: np.full((n_q, n_k or n_q), np.nan))._repr_html_()
    assert "expected bool" in page
    page = check.attention_scores(lambda q, k: np.full((4, 5), np.inf))._repr_html_()
    assert "dashed" in page and ">≠ inf<" in page


def test_an_unknown_exercise_says_which_was_meant():
    with pytest.raises(AttributeError, match="did you mean check"):
        _ = check.sofmax
    assert set(dir(check)) == set(EXERCISES)


def test_printing_inside_an_answer_is_left_alone(capsys):
    def chatty(x, axis=-1):
        print("here")
        return al.softmax(x, axis)

    assert check.softmax(chatty).passed
    assert "here" in capsys.readouterr().out


def test_the_table_has_a_mark_for_every_pair():
    text = table()
    assert text.count("●") + text.count("○") == len(PAIRS)
    assert len(text.splitlines()) == 2 + len(MISTAKES)


def test_the_page_of_the_table_is_up_to_date():
    written = pathlib.Path(__file__).parent.parent / "docs" / "checks.md"
    assert written.read_text(encoding="utf-8") == page() + "\n", "Fix: python -m attnlib.checks > docs/checks.md"


def test_importing_the_checks_loads_no_torch():
    code = (
        "import sys; from attnlib.checks import check; import numpy as np; "
        "assert check.softmax(None).state == 'not tried'; "
        "assert not {'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_second_try_with_tensors_says_nothing():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert check.attention_scores(lambda q, k: q @ k.T).mistake == "wrong_batch_axis"
    assert not caught
