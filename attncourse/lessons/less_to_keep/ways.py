"""Ways to keep less of a text, as functions and as steps."""

from functools import cached_property

import numpy as np

from attnlib.rounding import rounded

from ...engine.compare import RIGHT
from ...engine.run import Unfit, numbers
from ...engine.steps import Steps, swap


def in_groups(x, bits, size):
    """Round x (..., n, d) in groups of `size` tokens, a scale for each feature of a group; the last n % size wait.

    >>> in_groups(np.array([[0.0], [0.9], [3.0], [7.7]]), 2, 3).ravel()
    array([0. , 1. , 3. , 7.7])
    """
    return Groups(x=x, bits=bits, size=size).in_groups


def best_keys(query, key, value, attn_mask=None, best=8):
    """Attend to the `best` allowed keys with the largest scores of each query, and to keys that tie with the last.

    >>> best_keys(np.ones((1, 1)), np.array([[3.0], [1.0], [2.0]]), np.eye(3), best=1)
    array([[1., 0., 0.]])
    """
    return Best(q=query, k=key, v=value, mask=attn_mask, best=best).output


def latent_attention(query, latent, W_UK, W_UV, attn_mask=None):
    """Attend to keys latent W_UK and values latent W_UV, and make neither. Source: DeepSeek 2024.

    query (..., n_q, d_k), latent (n_k, r), W_UK (..., r, d_k) and W_UV (..., r, d_v) give (..., n_q, d_v).

    >>> latent_attention(np.ones((1, 2)), np.eye(3), np.zeros((3, 2)), np.eye(3)).round(2)
    array([[0.33, 0.33, 0.33]])
    """
    return Latent(q=query, latent=latent, W_UK=W_UK, W_UV=W_UV, mask=attn_mask).output


class Rounded(Steps):
    over = -1
    along = cached_property(lambda s: s.over)  # over which axis a scale reaches
    lowest = cached_property(lambda s: s.x.min(s.along, keepdims=True))
    highest = cached_property(lambda s: s.x.max(s.along, keepdims=True))
    most = cached_property(lambda s: 2**s.bits - 1)
    step = cached_property(lambda s: (s.highest - s.lowest) / s.most)
    divisor = cached_property(lambda s: np.where(s.step > 0, s.step, 1))
    in_steps = cached_property(lambda s: (s.x - s.lowest) / s.divisor)
    whole = cached_property(lambda s: np.rint(s.in_steps))
    back = cached_property(lambda s: s.lowest + s.step * s.whole)


class Groups(Steps):
    first = 0  # token of the first group
    complete = cached_property(lambda s: s.x.shape[-2] // s.size * s.size)
    stops = cached_property(lambda s: range(s.first, s.first + s.complete, s.size))
    one = cached_property(lambda s: lambda x: rounded(x, s.bits, -2))

    in_groups = cached_property(lambda s: s.rounded)

    @cached_property
    def rounded(self):
        result = np.array(self.x)
        for start in self.stops:
            result[..., start : start + self.size, :] = self.one(self.x[..., start : start + self.size, :])
        return result


class Best(Steps):
    ranked = cached_property(lambda s: s.masked_scores)
    least = cached_property(lambda s: np.sort(s.ranked, -1)[..., -min(s.best, s.ranked.shape[-1]), None])
    chosen = cached_property(lambda s: s.ranked >= s.least)
    kept = cached_property(lambda s: np.where(s.chosen, s.weights, 0))
    best_weights = cached_property(lambda s: s.kept / np.where((total := s.kept.sum(-1, keepdims=True)) > 0, total, 1))
    output = cached_property(lambda s: s.best_weights @ s.v)


class Latent(Steps):
    up = cached_property(lambda s: s.W_UK)
    inside = cached_property(lambda s: s.q @ swap(s.up))  # (..., n_q, r): the query among latents
    scores = cached_property(lambda s: s.inside @ swap(s.latent))
    mixed = cached_property(lambda s: s.weights @ s.latent)  # (..., n_q, r)
    out = cached_property(lambda s: s.W_UV)
    output = cached_property(lambda s: s.mixed @ s.out)


class Layers(Steps):
    judge = 1  # 0: the next word, 1: what is found
    lost = cached_property(lambda s: np.array([s.narrowed([i])[s.judge] for i in range(1, 31)]))
    ranked = cached_property(lambda s: 1 + np.argsort(-s.lost, kind="stable"))
    kept_whole = cached_property(lambda s: s.ranked[: s.at_most])


def judge_layers(result, narrowed, at_most=5):
    """Say which layers keep the whole text, and what both judges say if all others are narrowed."""
    every, kept = set(range(1, 31)), set(numbers(sorted(result)).ravel())
    if not all(number % 1 == 0 for number in kept):
        raise Unfit("Your function must return a list of layers, whole numbers from 1 to 30. Fix: [1, 2], say.")
    if len(kept) > at_most:
        return None, f"You keep the whole text in {len(kept)} layers, and at most {at_most} may."
    told = f"You keep the whole text in {', '.join(f'{i:.0f}' for i in sorted(kept)) or 'no layer'}."
    if not kept <= every:
        return None, f"{told} Layers are counted from 1 to 30."
    best = Layers(narrowed=narrowed, at_most=at_most).kept_whole.tolist()
    (word, found), (_, least) = (narrowed(every - {*chosen}) for chosen in (kept, best))
    if found <= least + 1e-9:
        return RIGHT, ""
    return None, f"{told} The next word then costs {word:.2f}, what is found {found:.2f}, and {least:.2f} can be had."
