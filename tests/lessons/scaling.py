"""Answers of the lesson scaling, right and wrong; what stands in which table, `__init__.py` says."""

import statistics

import numpy as np
import torch
import torch.nn.functional as F

import attnlib as al


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def standard(x):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def cosine(q, k):
    return (q / np.linalg.norm(q, axis=-1, keepdims=True)) @ (k / np.linalg.norm(k, axis=-1, keepdims=True)).T


def entropy_by_loop(weights):
    n_q, n_k = weights.shape
    entropies = np.zeros(n_q)
    for i in range(n_q):
        for j in range(n_k):
            if weights[i, j] > 0:
                entropies[i] -= weights[i, j] * np.log(weights[i, j])
    return entropies


RIGHT = {
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
    "uniform_divisor": [2, 2.0, np.sqrt(36) / 3],
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
}

WRONG = {
    "variance_of_scores": {
        "std_instead_of_variance": [lambda q, k: (q @ k.T).std(ddof=1)],
    },
    "entropy": {
        "zero_times_log_zero": [lambda w: -np.sum(w * np.log(w), axis=-1)],
        "another_logarithm": [lambda w: np.sum(w * np.log2(1 / np.maximum(w, 1e-300)), axis=-1)],
    },
}

LEARNERS = {
    "variance_of_scores": {
        "squares": ("mean_of_squares", lambda q, k: ((q @ k.T) ** 2).mean(), "about the mean"),
        "rows first": ("mean_of_row_variances", lambda q, k: (q @ k.T).var(axis=1).mean(), "lost"),
        "rows first, one by one": (
            "mean_of_row_variances",
            lambda q, k: statistics.mean(statistics.variance(map(float, row)) for row in q @ k.T),
            "about its own mean",
        ),
        "row by row": ("matching_pairs_only", lambda q, k: (q * k).sum(-1).var(), "query i with key i"),
        "diagonal": ("matching_pairs_only", lambda q, k: np.diag(q @ k.T).var(), "may be"),
        "zip": ("matching_pairs_only", lambda q, k: np.var([a @ b for a, b in zip(q, k, strict=False)])),
        "the first query": (None, lambda q, k: np.var(q[0] @ k.T), "Tried on", "as if"),
        "d_k, as theory has it": ("variance_by_theory", lambda q, k: float(q.shape[-1]), "on average"),
        "theory with both variances": ("variance_by_theory", lambda q, k: q.shape[1] * q.var() * k.var()),
    },
    "entropy": {
        "epsilon": ("logarithm_moved", lambda w: -(w * np.log(w + 1e-3)).sum(-1), "every small weight"),
        "epsilon, smaller": ("logarithm_moved", lambda w: -np.sum(w * np.log(w + 1e-5), axis=-1), "below 0.001"),
        "epsilon, odd": ("nearly_right", lambda w: -(w * np.log(w + 2e-4)).sum(-1)),
        "clipped": ("logarithm_moved", lambda w: -(w * np.log(np.clip(w, 1e-3, None))).sum(-1), "stands there"),
        "keepdims": (
            "rearranged",
            lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(-1, keepdims=True),
            "shape (4, 1), expected (4,)",
        ),
        "an axis in front": ("rearranged", lambda w: al.entropy(w)[None], "shape (1, 4)"),
        "small weights dropped": (
            None,
            lambda w: -np.where(w > 1e-3, w * np.log(np.where(w > 1e-3, w, 1)), 0).sum(-1),
            "below 0.001",
        ),
        "log10": ("another_logarithm", lambda w: -(w * np.log10(np.where(w > 0, w, 1))).sum(-1), "0.43 times"),
        "row by row": ("one_map_at_a_time", lambda w: np.array([-(r[r > 0] * np.log(r[r > 0])).sum() for r in w])),
        "two sizes": ("one_map_at_a_time", entropy_by_loop, "more axes", "as if it returns"),
        "mean": ("entropy_divided", lambda w: -(w * np.log(np.where(w > 0, w, 1))).mean(-1), "by their number"),
        "from 0 to 1": (
            "entropy_divided",
            lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(-1) / np.log(w.shape[-1]),
            "by its logarithm",
        ),
        "logarithms alone": ("weight_left_out", lambda w: -np.log(w).sum(axis=-1)),
        "logarithms alone, 0 left out": (
            "weight_left_out",
            lambda w: -np.log(np.where(w > 0, w, 1)).sum(axis=-1),
            "without the weights in front",
        ),
        "over everything": ("entropy_over_queries", lambda w: -np.sum(w * np.log(w))),
        "Python's sum": ("entropy_over_queries", lambda w: -sum(w * np.log(w))),
        "axis 0": ("entropy_over_queries", lambda w: -(w * np.log(np.where(w > 0, w, 1))).sum(0)),
    },
    "uniform_divisor": {
        "a factor and the root": ("factor_and_root_forgotten", 12, "or a root"),
        "an entry alone": ("features_not_added_up", 3**0.5),
        "a list": (None, [2.0], "without brackets", "shape"),
    },
    "scores_in_range": {
        "keepdims": (
            None,
            lambda q, k: (q / q.std(-1)) @ (k / k.std(-1, keepdims=True)).T / q.shape[-1] ** 0.5,
            "keepdims=True leaves it there with size 1",
        ),
        "keepdims, behind the product": (None, lambda q, k: q @ k.T / np.linalg.norm(q, axis=-1), "(60,) lacks"),
        "queries alone": ("one_factor_counted", lambda q, k: q / q.std(-1, keepdims=True) @ k.T / q.shape[-1] ** 0.5),
        "keys alone": ("one_factor_counted", lambda q, k: q @ (k / k.std(-1, keepdims=True)).T / q.shape[-1] ** 0.5),
        "no root of d_k": (
            "root_of_d_k_left_out",
            lambda q, k: (q / (q**2).mean(-1, keepdims=True) ** 0.5) @ (k / (k**2).mean(-1, keepdims=True) ** 0.5).T,
            "the division by sqrt(d_k) is missing",
        ),
        "no root of d_k, standardised": ("root_of_d_k_left_out", lambda q, k: standard(q) @ standard(k).T, "about d_k"),
        "divided by the spread": ("scores_of_the_crowd", lambda q, k: (r := cosine(q, k)) / r.std(), "the sixth"),
        "spread of a row": (
            "scores_of_the_crowd",
            lambda q, k: (r := cosine(q, k)) / r.std(-1, keepdims=True),
            "5 tokens, to which a sixth comes",
            "divides",
        ),
        "mean of a row": (
            "scores_of_the_crowd",
            lambda q, k: (r := q.shape[-1] ** 0.5 * cosine(q, k)) - r.mean(-1, keepdims=True),
            "the sixth",
            "divides",
        ),
        "centred keys": (
            "scores_of_the_crowd",
            lambda q, k: q.shape[-1] ** 0.5 * cosine(q, k - k.mean(0)),
            "the sixth",
            "divides",
        ),
    },
}
