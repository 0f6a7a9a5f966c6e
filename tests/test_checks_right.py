"""Right answers in other forms pass, also those near to a mistake."""

import functools
import re

import answers_12
import answers_14
import answers_15
import answers_16
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answers import (
    MODULE,
    A,
    Layer,
    M,
    as_module,
    layer,
    masked_softmax,
    multi_head,
    patch_by_branches,
    patch_by_factor,
    patch_by_position,
    student,
)
from torch import nn

import attnlib as al
import attnlib.examples
from attncourse import EXERCISES, smollm
from attncourse.lessons.it_speaks import PATIENTS
from attncourse.lessons.program_a_head.claims import Claim
from attncourse.lessons.program_a_head.puzzle import Puzzle  # theirs: test_puzzles.py
from attnlib import torch_layers


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


class WithoutMask(FunctionalSelfAttention):
    def forward(self, x):
        return super().forward(x)


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


ATTENTIONS = [
    loops,
    einsum,
    mask_before_scale,
    torch_inside,
    al.scaled_dot_product_attention,
    attention_with(log_sum_exp),
    attention_with(finite_fill_with_dead_rows, scale_query=True),
]


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def rows(x, axis=-1):
    return np.apply_along_axis(lambda row: np.exp(row - row.max()) / np.exp(row - row.max()).sum(), axis, x)


def far_first():
    """Layer 1 makes large steps, layer 2 small ones."""
    back = np.arange(8)[:, None] - np.arange(8)
    return np.stack([np.isin(back, (0, 3, 6)), (back >= 0) & (back < 3)])


def for_the_last_query_alone():
    """Only what the last query needs; the others see themselves."""
    masks = np.tile(np.eye(8, dtype=bool), (2, 1, 1))
    masks[0, 7, 5:8] = masks[0, 4, 2:5] = masks[0, 1, :2] = masks[1, 7, [1, 4, 7]] = True
    return masks.tolist()


def by_thirds():
    """Layer 1: places 2, 5 and 7 gather what stands before them; layer 2: the last query looks at these three."""
    first, second = np.eye(8, dtype=bool), np.eye(8, dtype=bool)
    first[2, :3] = first[5, 3:6] = first[7, 6:] = second[7, [2, 5]] = True
    return torch.tensor(np.stack([first, second]))


OPPOSITE = np.roll(np.eye(4), 2, axis=1)


def jobs(one, other, shift=0, opposite=OPPOSITE):
    """What asks for the opposite token, and what for both neighbours; a shift of all scores changes nothing."""
    beside = 1 - np.eye(4) - OPPOSITE if other > 0 else np.eye(4) + OPPOSITE
    return np.hstack([one * opposite, other * beside]) + shift


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


def back(n_q, n_k):
    return np.arange(n_k - n_q, n_k)[:, None]


def len_ratio(q, k):
    return q.shape[-3] // k.shape[-3]


def grouped_by_axes(q, k, v, mask=None, attention=al.scaled_dot_product_attention):
    """The groups as an axis of their own, over which keys and values broadcast."""
    *lead, h, n, d = q.shape
    q = q.reshape(*lead, k.shape[-3], h // k.shape[-3], n, d)
    return attention(q, k[..., :, None, :, :], v[..., :, None, :, :], mask).reshape(*lead, h, n, -1)


def grouped_head_by_head(q, k, v, mask=None, attention=al.scaled_dot_product_attention):
    """Call attention for each head alone, on arrays without an axis of heads."""
    times = len_ratio(q, k)
    heads = [
        attention(q[..., i, :, :], k[..., i // times, :, :], v[..., i // times, :, :], mask) for i in range(q.shape[-3])
    ]
    return np.stack(heads, axis=-3)


def decode_step(query, key, value, past, attention, lists=False):
    keys, values = (np.concatenate(pair, axis=-2) for pair in zip(past, (key, value), strict=True))
    mask = al.causal_mask(query.shape[-2], keys.shape[-2], align="lower_right")
    output = attention(query, keys, values, attn_mask=mask)
    return [output, [keys, values]] if lists else (output, (keys, values))


def decode_by_loop(query, key, value, past, attention):
    """One token after the other, within a chunk too: no mask is needed."""
    (keys, values), outputs = past, []
    for i in range(query.shape[1]):
        keys, values = np.hstack([keys, key[:, i : i + 1]]), np.hstack([values, value[:, i : i + 1]])
        outputs.append(attention(query[:, i : i + 1], keys, values))
    return np.hstack(outputs), (keys, values)


def accept_by_loop(logits, draft, past):
    chosen, agreed = logits.argmax(axis=-1), 0
    while agreed < len(draft) and draft[agreed] == chosen[agreed]:
        agreed += 1
    rejected = len(draft) - agreed
    return list(chosen[: agreed + 1]), [tuple(x[:, : x.shape[1] - rejected] for x in pair) for pair in past]


def accept_by_product(logits, draft, past):
    """One array of tokens, one of each layer's rows, copied."""
    chosen, draft = np.argmax(logits, axis=1), np.array(draft, dtype=int)
    agreed = int(np.cumprod(draft == chosen[:-1]).sum())
    rows = np.arange(past[0][0].shape[1] - len(draft) + agreed)
    return np.append(draft[:agreed], chosen[agreed]), tuple([k[:, rows], v.take(rows, 1)] for k, v in past)


def accept_recursively(logits, draft, past):
    first = int(logits[0].argmax())
    if draft and draft[0] == first:
        new, past = accept_recursively(logits[1:], draft[1:], past)
        return (first, *new), past
    rows = past[0][0].shape[-2] - len(draft)
    return (first,), [(keys[:, :rows], values[:, :rows]) for keys, values in past]


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
    "scaled_dot_product_attention": [
        lambda query, key, value: einsum(query, key, value),  # 2.3 asks for no mask, and minds none
        *ATTENTIONS,
        torch_layers.scaled_dot_product_attention,
    ],
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
    "sparse_masks": [far_first(), for_the_last_query_alone(), by_thirds()],
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
        lambda x: np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1),
        lambda x: np.moveaxis(x, -3, -2).reshape(*x.shape[:-3], x.shape[-2], -1),
        lambda x: torch.tensor(x).transpose(-2, -3).flatten(-2),
    ],
    "two_jobs": [jobs(10, 10), jobs(20, 9, -3).tolist(), torch.tensor(jobs(-30, -30, opposite=1 - OPPOSITE))],
    "multi_head_attention": [heads_by_loop(attention) for attention in ATTENTIONS],
    "SelfAttention": [
        WithoutMask,
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
    "masked_attention": ATTENTIONS,
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
    "scores_in_range": [
        lambda q, k: np.sqrt(q.shape[-1]) * unit(q) @ unit(k).T,
        lambda q, k: (q / q.std(-1, keepdims=True)) @ (k / k.std(-1, keepdims=True)).T / np.sqrt(q.shape[-1]),
        lambda q, k: (
            F.rms_norm(torch.tensor(q), q.shape[-1:]) @ F.rms_norm(torch.tensor(k), k.shape[-1:]).T / q.shape[-1] ** 0.5
        ),
        lambda q, k: (
            F.layer_norm(torch.tensor(q), q.shape[-1:]).numpy()
            @ F.layer_norm(torch.tensor(k), k.shape[-1:]).numpy().T
            / q.shape[-1] ** 0.5
        ),
    ],
    "uniform_divisor": [2, 2.0, np.sqrt(36) / 3],
    "alphabet_scores": [[8, 0], (7.5, -0.3), torch.tensor([10.0, 1.0])],
    "other_head": [2, 2.0, np.int64(2)],
    "choose_W_Q": [
        [[0, 5], [-5, 0], [0, -5], [5, 0]],
        [[3, 9], [-20, 8], [0, -4.5], [100, -7]],  # not straight at a key, and of different lengths
        torch.tensor([[0.0, 9], [-9, 0], [0, -9], [9, 0]]),
    ],
    "bag_accuracy": [0.75, 3 / 4, torch.tensor(0.75)],
    "induction_measure": [by_matching_letters, by_loops_over_copies, by_best_earlier_match],
    "patch": [patch_by_branches, patch_by_position, patch_by_factor],
    "window_mask": [
        lambda n_q, n_k, w: np.tri(n_k, dtype=bool)[-n_q:] & ~np.tri(n_k, k=-w, dtype=bool)[-n_q:],
        lambda n_q, n_k, w: np.array([[i - w < j <= i for j in range(n_k)] for i in range(n_k - n_q, n_k)]),
        lambda n_q, n_k, w: al.causal_mask(n_q, n_k, align="lower_right") & (np.arange(n_k) > back(n_q, n_k) - w),
    ],
    "grouped_attention": [
        lambda q, k, v, mask=None, attend=al.scaled_dot_product_attention: attend(
            q, *(np.repeat(x, len_ratio(q, k), -3) for x in (k, v)), mask
        ),
        grouped_by_axes,
        grouped_head_by_head,
    ],
    "decode_step": [decode_step, decode_by_loop, functools.partial(decode_step, lists=True)],
    "accept_draft": [accept_by_loop, accept_by_product, accept_recursively],
    "out_of_reach": [
        "the cats that the old dog sees",
        "the young bird that the happy farmers  follow",
        "the king that the old children hear",
    ],
    "divisor_repair": [3.4641, np.sqrt(12), torch.tensor(384 / 32).sqrt()],
    "without_head": [
        lambda W, h, n: np.where(np.arange(len(W)) // (len(W) // n) == h, 0, W),
        lambda W, h, n: (W.reshape(len(W), n, -1) * (np.arange(n) != h)[:, None]).reshape(W.shape),
        lambda W, h, n: W @ np.diag(np.repeat(np.arange(n) != h, len(W) // n)),
    ],
    "parking_place": [[6, 0], (5.0, 0.02), np.array([7.5, 0.05])],
    "key_of_anna": [[1, 1, 0], (1, 1, 0), torch.tensor([1, 1, 0])],
    "scores_of_she": [[5, 0, 3, 2], (5.0, 0.0, 3.0, 2.0), np.array([5, 0, 3, 2])],
    "weights_of_she": [
        [0.839, 0.0057, 0.1135, 0.0418],
        al.softmax(np.array([5.0, 0, 3, 2])),
        (0.839024, 0.005653, 0.113550, 0.041773),
    ],
    "what_words_look_for": [
        [[0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]],
        np.array([[0, 0, 18], [0, 0, 0], [0, 12, 0], [6, -6, 0], [18, 0, 0], [0, 0, 0]]),  # six times the text's
        torch.tensor([[0.0, 0, 0], [0, 0, 9], [0, 0, 9], [9, -9, 0], [9, 9, -9], [0, 0, 0]]),
    ],
    "example_that_tells": [
        [[[2, 0, 0], [0, 2, 0], [0, 0, 2]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]], [[1], [0], [3]]],
        ([[1, -1], [1, -2]], [[-3, -1], [3, 3]], [[2], [-3]]),  # two tokens
        # four tokens in a circle, in two features each
        ([[1, 0], [0, 1], [-1, 0], [0, -1]], np.array([[0, 1.0], [-1, 0], [0, -1], [1, 0]]), [[1.0], [0], [3], [5]]),
        (
            np.eye(3),
            [[0, 2, 1], [1, 0, 2], [2, 1, 0]],
            torch.tensor([[1.0, 0, 0, 2, 2], [0, 2, 0, 1, 0], [3, 0, 1, 1, 1]]),
        ),
    ],
    "output_of_she": [[0.885, 0.036], (0.884937, 0.036013), torch.tensor([0.8849, 0.036])],
    **answers_12.RIGHT,
    **answers_14.RIGHT,
    **answers_15.RIGHT,
    **answers_16.RIGHT,
    "to_halves": [
        lambda w, h: np.swapaxes(w.reshape(len(w), h, -1, 2), 2, 3).reshape(w.shape),
        lambda w, h: np.concatenate([np.hstack([x[:, ::2], x[:, 1::2]]) for x in np.split(w, h, axis=1)], axis=1),
        lambda w, h: w[:, np.arange(w.shape[1]).reshape(h, -1, 2).transpose(0, 2, 1).ravel()],
        smollm.to_halves,
    ],
    "three_patients": [dict(PATIENTS), dict(reversed(PATIENTS.items())), {**PATIENTS}],
    "kept_keys": [
        lambda n_q, n_k, w, s: np.array(
            [[j <= i and (i - j < w or j < s) for j in range(n_k)] for i in range(n_k - n_q, n_k)]
        ),
        lambda n_q, n_k, w, s: (
            al.causal_mask(n_q, n_k, align="lower_right")
            & ((back(n_q, n_k) - w < np.arange(n_k)) | (np.arange(n_k) < s))
        ),
        lambda n_q, n_k, w, s: (
            np.tri(n_q, n_k, n_k - n_q, dtype=bool)
            & (~np.tri(n_q, n_k, n_k - n_q - w, dtype=bool) | (np.arange(n_k) < s))
        ),
    ],
    "looks_back": [
        lambda w: np.diagonal(w, -1)[1:].mean(),
        lambda w: float(np.mean([w[i, i - 1] for i in range(2, len(w))])),
        lambda w: np.trace(w[2:, 1:]) / (len(w) - 2),
    ],
    "waking_prompt": [smollm.parking(prompt) for prompt in smollm.TRIED if re.match("seven|tick|river", prompt)],
}


@pytest.mark.parametrize("name", [n for n, e in EXERCISES.items() if not isinstance(e, Puzzle | Claim)])
def test_right_answers_in_other_forms_pass(name):
    assert len(RIGHT[name]) >= 3
    for answer in RIGHT[name]:
        verdict = EXERCISES[name](answer)
        assert verdict.passed and verdict.mistake is None, verdict


# --- near to a mistake


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
    (A, lambda q, k, v: al.softmax(q @ np.swapaxes(k, -1, -2) / k.shape[-1] ** 0.5) @ v),
    ("masked_attention", by_where),
    ("masked_attention", added),
    (
        "masked_attention",
        student(
            mask="np.where(m, s, np.finfo(s.dtype).min) + 0 * s",
            softmax="al.softmax(s)",
            rest="(w * m if m is not None else w) @ v",
        ),
    ),
    (
        "masked_attention",
        student(mask="np.where(m, s, -1e9)", rest="(w if m is None else w * m.any(-1, keepdims=True)) @ v"),
    ),
    ("masked_attention", student(mask="s + np.where(m, 0, -np.inf)")),
    ("masked_softmax", masked_softmax(-np.inf)),
    ("causal_mask", lambda n_q, n_k=None: ~np.triu(np.ones((n_q, n_k or n_q), bool), k=1 + (n_k or n_q) - n_q)),
    ("causal_mask", lambda n_q, n_k=None: np.tri(n_k or n_q, dtype=bool)[-n_q:]),
    ("padding_mask", lambda n, n_k: np.arange(n_k) < n.reshape(-1, 1, 1)),
    ("padding_mask", lambda n, n_k: np.tri(n_k + 1, n_k, -1, dtype=bool)[n][:, None]),
    ("split_heads", lambda x, h: np.moveaxis(np.array(np.array_split(x, h, axis=-1)), 0, -3)),
    (M, multi_head()),
    (M, multi_head(scale="(W_Q.shape[0] / h) ** 0.5", mask="m[:, None, :, :]")),
    (MODULE, Layer),
    (MODULE, layer(fill=lambda self, s, m: torch.where(m, s, -torch.inf))),
    ("window_mask", lambda n_q, n_k, w: (back(n_q, n_k) >= np.arange(n_k)) & (back(n_q, n_k) - w < np.arange(n_k))),
    ("grouped_attention", grouped_by_axes),
    ("decode_step", decode_by_loop),
    ("accept_draft", accept_by_product),
    ("weights_of_she", [0.839, 0.006, 0.114, 0.042]),
    ("output_of_she", [0.885, 0.036]),
]


@pytest.mark.parametrize("name, answer", NEAR)
def test_a_right_answer_near_to_a_mistake_is_not_accused(name, answer):
    verdict = EXERCISES[name](answer)
    assert verdict.passed and verdict.mistake is None, verdict
    assert not verdict.message or "attnlib's own" in verdict.message  # some of them call al.softmax
