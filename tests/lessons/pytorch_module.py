"""Answers of the lesson pytorch_module, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch
import torch.nn.functional as F
from answers import as_module, loops, student
from torch import nn

from attnlib import torch_layers


class SelfAttention(nn.Module):
    """Right; what a learner writes wrong is one method of it."""

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


# The keys of four letters.
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])

RIGHT = {
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
    "alphabet_scores": [[8, 0], (7.5, -0.3), torch.tensor([10.0, 1.0])],
    "other_head": [2, 2.0, np.int64(2)],
    "choose_W_Q": [
        [[0, 5], [-5, 0], [0, -5], [5, 0]],
        [[3, 9], [-20, 8], [0, -4.5], [100, -7]],  # not straight at a key, and of different lengths
        torch.tensor([[0.0, 9], [-9, 0], [0, -9], [9, 0]]),
    ],
}

DESIGNS = {
    "alphabet_scores": {
        "diagonal_and_rest_swapped": [[0.0, 8.0]],
        "weights_for_scores": [[1.0, 0.0]],
    },
    "choose_W_Q": {
        "query_looks_for_itself": [6 * KEYS],
        "query_looks_for_previous": [6 * np.roll(KEYS, 1, axis=0)],
        "query_looks_across": [-6 * KEYS],
        "query_too_short": [2 * np.roll(KEYS, -1, axis=0)],
    },
}


class OfABatch(SelfAttention):
    """Written for (b, n, d_in) alone."""

    def forward(self, x):
        scores = torch.bmm(self.W_Q(x), self.W_K(x).transpose(1, 2)) / self.W_Q.out_features**0.5
        weights = torch.softmax(scores, -1)
        return torch.bmm(weights, self.W_V(x)), weights


LEARNERS = {
    "SelfAttention": {
        "only batches": ("fixed_number_of_axes", OfABatch, "Dimension out of range"),
        "d_k**1/2": (
            "half_for_root",
            type("S", (SelfAttention,), {"scale": lambda self, s: s / (self.W_Q.out_features**1 / 2)}),
        ),
        "causal": (
            "causal_mask_added",
            type(
                "S",
                (SelfAttention,),
                {
                    "scale": lambda self, s: (s / s.new_tensor(self.W_Q.out_features) ** 0.5).masked_fill(
                        ~torch.ones(s.shape[-2:], dtype=bool).tril(), -torch.inf
                    )
                },
            ),
        ),
        "d_in": (
            "scale_by_embed_dim",
            as_module(
                lambda x, W_Q, W_K, W_V, m=None: (
                    student(scale=str(x.shape[-1] ** 0.5))(x @ W_Q, x @ W_K, x @ W_V, m),
                    student(scale=str(x.shape[-1] ** 0.5), rest="w")(x @ W_Q, x @ W_K, x @ W_V, m),
                ),
                "SelfAttention",
            ),
            "not of the vectors that the dot product multiplies",
            "every head you add",
        ),
    },
    "alphabet_scores": {"words": (None, ["8", "0"], "real numbers are expected")},
    "other_head": {
        "a letter": (None, "h", "the number that belongs to this letter", "without quotes"),
    },
}
