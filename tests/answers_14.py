"""Answers to the exercises of notebook 14 as learners hand them in, for the tests of the checks."""

import numpy as np
import torch

import attnlib as al


def online(
    new="max(m, s.max())", factor="np.exp(m - new)", z="factor * z + e.sum()", o="factor * o + e @ v", end="o / z"
):
    """Return online softmax from the lines a student would write."""

    def answer(blocks):
        names = {"np": np, "m": -np.inf, "z": 0.0, "o": 0.0, "largest_size": largest_size}
        for names["s"], names["v"] in blocks:
            names["new"] = eval(new, names)
            if names["new"] > -np.inf:
                names["factor"], names["e"] = eval(factor, names), np.exp(names["s"] - names["new"])
                names["z"], names["o"], names["m"] = eval(z, names), eval(o, names), names["new"]
        return eval(end, names)

    return answer


def without_a_guard(blocks):
    m, z, o = -np.inf, 0.0, 0.0
    for s, v in blocks:
        new = max(m, s.max())
        factor, e = np.exp(m - new), np.exp(s - new)
        m, z, o = new, factor * z + e.sum(), factor * o + e @ v
    return o / z


def starting_at_zero(blocks):
    m, z, o = 0.0, 0.0, 0.0
    for s, v in blocks:
        new = max(m, s.max())
        factor, e = np.exp(m - new), np.exp(s - new)
        m, z, o = new, factor * z + e.sum(), factor * o + e @ v
    return o / z


def skipping_blocks(blocks):
    """Leave out a whole block for one blocked key."""
    return online()([(s + 0, v + 0) for s, v in blocks if np.isfinite(s).all()])


def two_passes(blocks):
    scores, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return al.softmax(scores) @ values


def without_maximum(blocks):
    z = o = 0.0
    for s, v in blocks:
        z, o = z + np.exp(s).sum(), o + np.exp(s) @ v
    return o / z


def kept_in_a_list(blocks):
    kept = list(blocks)
    return al.softmax(np.concatenate([s for s, _ in kept])) @ np.concatenate([v for _, v in kept])


def twice_through(blocks):
    m = max(s.max() for s, _ in blocks)
    z, o = 0.0, 0.0
    for s, v in blocks:
        z, o = z + np.exp(s - m).sum(), o + np.exp(s - m) @ v
    return o / z


def largest_size(s):
    return np.abs(s[np.isfinite(s)]).max(initial=-np.inf)


def by_log_sum_exp(blocks):
    """Merge outputs by the logarithms of their sums."""
    total, out = -np.inf, 0.0
    for s, v in blocks:
        own = np.logaddexp.reduce(s)
        if own > -np.inf:
            both = np.logaddexp(total, own)
            out = np.exp(total - both) * out + np.exp(own - both) * (np.exp(s - own) @ v)
            total = both
    return out


def key_by_key(blocks):
    m, z, o = -np.inf, 0.0, 0.0
    for s, v in ((s, v) for scores, values in blocks for s, v in zip(scores, values, strict=True)):
        if s > m:
            z, o, m = z * np.exp(m - s), o * np.exp(m - s), s
        if s > -np.inf:
            z, o = z + np.exp(s - m), o + np.exp(s - m) * v
    return o / z


def returning_in_the_loop(blocks):
    m, z, o = -np.inf, 0.0, 0.0
    for s, v in blocks:
        new = max(m, s.max())
        factor, e = np.exp(m - new), np.exp(s - new)
        z, o = factor * z + e.sum(), factor * o + e @ v
        return o / z


def one_block(which):
    """Return the softmax of the first block, or of the last."""

    def answer(blocks):
        return [al.softmax(s) @ v for s, v in blocks][which]

    return answer


def sink(
    largest="np.maximum(s.max(-1, keepdims=True), k)",
    e="np.exp(s - m)",
    of_sink="np.exp(k - m)",
    w="e / (e.sum(-1, keepdims=True) + z)",
):
    """Return the softmax with a sink from the lines a student would write."""

    def answer(scores, sink):
        names = {"np": np, "al": al, "s": scores, "k": sink}
        names["m"] = eval(largest, names)
        names["e"], names["z"] = eval(e, names), eval(of_sink, names)
        return eval(w, names)

    return answer


def by_a_column(scores, sink, kept=slice(-1)):
    column = np.full((*scores.shape[:-1], 1), sink)
    return al.softmax(np.concatenate([scores, column], axis=-1))[..., kept]


def sink_in_torch(scores, sink):
    scores = torch.as_tensor(scores)
    column = torch.full((*scores.shape[:-1], 1), sink, dtype=scores.dtype)
    return torch.cat([column, scores], -1).softmax(-1)[..., 1:].numpy()


def log_n(
    factor="np.log(np.arange(1, n + 1))[:, None] / np.log(n_0)",
    scores="f * (q @ np.swapaxes(k, -1, -2)) / d**0.5",
    mask="np.tri(n, dtype=bool)",
    w="al.softmax(np.where(mask, s, -np.inf))",
):
    """Return the head with a factor of log n from the lines a student would write."""

    def answer(query, key, n_0):
        n, d = query.shape[-2:]
        names = {"np": np, "al": al, "q": query, "k": key, "n": n, "d": d, "n_0": n_0}
        names["f"], names["mask"] = eval(factor, names), eval(mask, names)
        names["s"] = eval(scores, names)
        return eval(w, names)

    return answer


def log_n_by_rows(query, key, n_0):
    """One query after the other, which scales the query itself."""
    out = np.zeros((*query.shape[:-1], key.shape[-2]))
    for i in range(query.shape[-2]):
        q = query[..., i, :] * np.log(i + 1) / np.log(n_0) / query.shape[-1] ** 0.5
        out[..., i, : i + 1] = al.softmax(np.einsum("...d,...jd->...j", q, key[..., : i + 1, :]))
    return out


def log_n_in_torch(query, key, n_0):
    q, k = (torch.as_tensor(np.asarray(x, dtype=np.float64)) for x in (query, key))
    n = q.shape[-2]
    s = q @ k.mT / q.shape[-1] ** 0.5 * torch.log(1.0 + torch.arange(n))[:, None] / np.log(n_0)
    return s.masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf).softmax(-1).numpy()


RIGHT = {
    "online_softmax": [by_log_sum_exp, key_by_key, online()],
    "sink_weights": [sink(), by_a_column, sink_in_torch],
    "log_n_weights": [log_n(), log_n_by_rows, log_n_in_torch],
}

# exercise, what is named (None: nothing), the answer
WRONG = [
    ("online_softmax", "output_not_rescaled", online(o="o + e @ v")),
    ("online_softmax", "sum_not_rescaled", online(z="z + e.sum()")),
    ("online_softmax", "output_not_rescaled + sum_not_rescaled", online(factor="1.0")),
    ("online_softmax", "block_maximum", online(new="s.max()")),
    ("online_softmax", "block_maximum", online(new="s.max()", factor="1.0")),
    ("online_softmax", "first_maximum_kept", online(new="s.max() if m == -np.inf else m")),
    ("online_softmax", "never_divided", online(end="o")),
    ("online_softmax", "nan_on_blocked_block", without_a_guard),
    ("online_softmax", None, skipping_blocks),
    ("online_softmax", "blocks_averaged", lambda blocks: np.mean([al.softmax(s) @ v for s, v in blocks], axis=0)),
    ("online_softmax", "blocks_kept", two_passes),
    ("online_softmax", "blocks_kept", kept_in_a_list),
    ("online_softmax", "no_maximum", without_maximum),
    ("online_softmax", None, online(new="max(m, s.mean())")),  # overflows where a block is wide
    ("online_softmax", "maximum_starts_at_zero", starting_at_zero),
    *[("online_softmax", "one_block_only", one_block(which)) for which in (0, -1)],
    ("online_softmax", "one_block_only", returning_in_the_loop),
    *[
        ("online_softmax", "maximum_of_sizes", online(new=f"max(m, {size})"))
        for size in ("np.abs(s).max()", "largest_size(s)")
    ],
    ("online_softmax", "blocks_averaged", lambda blocks: sum(al.softmax(s) @ v for s, v in blocks)),
    *[
        ("online_softmax", "divided_at_each_block", online(o="(factor * o + e @ v) / (factor * z + e.sum())", end=end))
        for end in ("o", "o / z")
    ],
    ("online_softmax", None, online(factor="np.exp(new - m)")),  # nothing but NaN, which any cause may have
    ("online_softmax", None, online(new="min(m, s.min())")),
    ("online_softmax", "factor_inverted", online(factor="np.exp(new - m) if m > -np.inf else 0.0")),
    ("online_softmax", "one_block_only", online(new="max(-np.inf, s.max())", factor="0.0")),
    ("sink_weights", "sink_left_out", sink(of_sink="0")),
    ("sink_weights", "sink_left_out", lambda s, sink: al.softmax(s)),
    ("sink_weights", "sink_returned", sink(w="np.concatenate([e, z], -1) / (e.sum(-1, keepdims=True) + z)")),
    ("sink_weights", "sink_without_exp", sink(of_sink="k")),
    ("sink_weights", "sink_not_shifted", sink(of_sink="np.exp(k)")),
    ("sink_weights", "sink_not_shifted", sink("s.max(-1, keepdims=True)", of_sink="np.exp(k)")),
    ("sink_weights", "argument_ignored", sink("np.maximum(s.max(-1, keepdims=True), 0)", of_sink="np.exp(-m)")),
    ("sink_weights", "sink_left_out_of_maximum", sink("s.max(-1, keepdims=True)")),
    ("sink_weights", "sink_without_maximum", sink("0.0")),
    *[
        ("sink_weights", "maximum_of_other_rows", sink(f"np.maximum(s.max({axis}), k)"))
        for axis in ("", "axis=(-1, -2), keepdims=True")
    ],
    *[("sink_weights", "maximum_of_other_rows", sink(f"np.maximum(s.max({a}, keepdims=True), k)")) for a in (-2, 0)],
    ("sink_weights", "sink_without_maximum", sink("k")),
    ("sink_weights", "last_key_cut_off", lambda s, sink: by_a_column(s, sink, slice(1, None))),
    (
        "sink_weights",
        "softmax_over_queries",
        sink("np.maximum(s.max(-2, keepdims=True), k)", w="e / (e.sum(-2, keepdims=True) + z)"),
    ),
    ("sink_weights", None, sink(w="e / (e.sum(-1, keepdims=True) + 2 * z)")),
    ("log_n_weights", "factor_of_whole_text", log_n("np.log(n) / np.log(n_0)")),
    ("log_n_weights", "factor_by_keys", log_n("np.log(np.arange(1, n + 1)) / np.log(n_0)")),
    ("log_n_weights", "keys_counted_from_zero", log_n("np.log(np.arange(n))[:, None] / np.log(n_0)")),
    ("log_n_weights", "keys_counted_from_zero", log_n("np.log(np.arange(2, n + 2))[:, None] / np.log(n_0)")),
    ("log_n_weights", "logarithm_left_out", log_n("np.arange(1, n + 1)[:, None] / n_0")),
    ("log_n_weights", "factor_upside_down", log_n("np.log(n_0) / np.log(np.arange(1, n + 1))[:, None]")),
    (
        "log_n_weights",
        "masked_before_factor",
        log_n(
            scores="np.where(mask, q @ np.swapaxes(k, -1, -2) / d**0.5, -np.inf) * f",
            w="np.exp(s - s.max(-1, keepdims=True)) / np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)",
        ),
    ),
    ("log_n_weights", "argument_ignored", log_n("1")),
    (
        "log_n_weights",
        "factor_on_weights",
        log_n(scores="q @ np.swapaxes(k, -1, -2) / d**0.5", w="al.softmax(np.where(mask, s, -np.inf)) * f"),
    ),
    ("log_n_weights", "no_scale", log_n(scores="f * (q @ np.swapaxes(k, -1, -2))")),
    ("log_n_weights", "mask_ignored", log_n(mask="True")),
    ("log_n_weights", None, log_n("1 + np.log(np.arange(1, n + 1))[:, None] / np.log(n_0)")),
]
