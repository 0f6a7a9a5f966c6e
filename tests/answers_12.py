"""Answers to the exercises of notebook 12 as learners hand them in, for the tests of the checks."""

import numpy as np
import torch

import attnlib as al

THETA = 10_000.0


def by_complex_numbers(x, places, theta=THETA, interleaved=True):
    """RoPE as a product with e^(i p omega): each pair is one complex number."""
    d_k = x.shape[-1]
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., : d_k // 2], x[..., d_k // 2 :])
    turned = (a + 1j * b) * np.exp(1j * np.outer(places, theta ** (-np.arange(0, d_k, 2) / d_k)))
    if interleaved:
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def halves(x, start=0, theta=THETA):
    return by_complex_numbers(x, start + np.arange(x.shape[-2]), theta, interleaved=False)


def neighbours(x, start=0):
    return by_complex_numbers(x, start + np.arange(x.shape[-2]))


def by_matrices(x, places, theta=THETA):
    """One block-diagonal matrix for each place."""
    n, d_k = x.shape[-2:]
    out = np.zeros_like(x)
    for i in range(n):
        matrix = np.zeros((d_k, d_k))
        for c in range(d_k // 2):
            t = places[i] / theta ** (2 * c / d_k)
            matrix[2 * c : 2 * c + 2, 2 * c : 2 * c + 2] = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        out[..., i, :] = x[..., i, :] @ matrix.T
    return out


def in_torch(x, places, theta=THETA):
    x = torch.as_tensor(x)
    omega = 1 / theta ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = (torch.as_tensor(places)[:, None] * omega).repeat_interleave(2, dim=-1)
    partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return (x * angle.cos() + partner * angle.sin()).numpy()


def rope(
    omega="theta ** (-np.arange(0, d, 2) / d)",
    place="places",
    out="np.stack([A, B], -1)",
    b="a * np.sin(angle) + b * np.cos(angle)",
):
    """Return RoPE from the lines a student would write."""

    def answer(x, places, theta=THETA):
        n, d = x.shape[-2:]
        names = {"np": np, "x": x, "places": places, "theta": theta, "n": n, "d": d}
        names["angle"] = angle = np.outer(eval(place, names), eval(omega, names))
        names["a"], names["b"] = a, second = x[..., 0::2], x[..., 1::2]
        names["A"] = a * np.cos(angle) - second * np.sin(angle)
        names["B"] = eval(b, names)
        return eval(out, names).reshape(x.shape)

    return answer


def rotate_half(x, places, theta=THETA):
    """Partners by halves, angles by neighbours: two conventions in one line."""
    d = x.shape[-1]
    angle = np.outer(places, theta ** (-np.arange(0, d, 2) / d)).repeat(2, axis=-1)
    partner = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], axis=-1)
    return x * np.cos(angle) + partner * np.sin(angle)


def online(
    new="max(m, s.max())", factor="np.exp(m - new)", z="factor * z + e.sum()", o="factor * o + e @ v", end="o / z"
):
    """Return online softmax from the lines a student would write."""

    def answer(blocks):
        names = {"np": np, "m": -np.inf, "z": 0.0, "o": 0.0}
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


def norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def head(
    q="halves(norm(q, g_q), n_k - n_q)",
    k="halves(norm(k, g_k))",
    v="v",
    mask="np.tri(n_q, n_k, n_k - n_q, dtype=bool)",
    scale="d ** 0.5",
):
    """Return the head of 12.3 from the lines a student would write."""

    def answer(query, key, value, g_q, g_k):
        names = {"np": np, "norm": norm, "halves": halves, "neighbours": neighbours, "g_q": g_q, "g_k": g_k}
        names |= {"q": query, "k": key, "v": value, "d": query.shape[-1], "n_q": query.shape[-2], "n_k": key.shape[-2]}
        q_, k_, v_ = eval(q, names), eval(k, names), eval(v, names)
        scores = q_ @ np.swapaxes(k_, -1, -2) / eval(scale, names)
        return al.softmax(np.where(eval(mask, names), scores, -np.inf)) @ v_

    return answer


def head_by_the_whole_sequence(query, key, value, g_q, g_k):
    """Fill the missing queries up, compute all, and keep the last."""
    n_q, n_k = query.shape[-2], key.shape[-2]
    full = np.concatenate([np.ones((*query.shape[:-2], n_k - n_q, query.shape[-1])), query], axis=-2)
    whole = al.scaled_dot_product_attention(halves(norm(full, g_q)), halves(norm(key, g_k)), value, is_causal=True)
    return whole[..., n_k - n_q :, :]


def head_in_torch(query, key, value, g_q, g_k):
    n_q, n_k = query.shape[-2], key.shape[-2]
    arrays = (halves(norm(query, g_q), 100 + n_k - n_q), halves(norm(key, g_k), 100), value)  # every place + 100
    q, k, v = (torch.as_tensor(np.asarray(a, dtype=np.float64)) for a in arrays)
    mask = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).numpy()


def look_back(amplitude=8.0, turned=lambda near, far: (-near, -far), shares=(1.0, 1.0)):
    def answer(d_k, near, far):
        key = np.full(d_k, amplitude)
        parts = zip(shares, turned(near, far), strict=False)
        return sum(share * halves(key[None], start)[0] for share, start in parts), key

    return answer


def alternating(d_k, near, far):
    key = 9.0 * (-1.0) ** np.arange(d_k)
    return halves(key[None], -near)[0] + halves(key[None], -far)[0], key


def key_turned_forwards(d_k, near, far):
    query = np.full(d_k, 8.0)
    return np.stack([query, halves(query[None], near)[0] + halves(query[None], far)[0]])


RIGHT = {
    "rope": [by_complex_numbers, by_matrices, in_torch, rope()],
    "online_softmax": [by_log_sum_exp, key_by_key, online()],
    "rotary_attention": [head(), head_by_the_whole_sequence, head_in_torch],
    "look_back": [look_back(), alternating, key_turned_forwards, look_back(20.0)],
}

# exercise, what is named (None: nothing), the answer
WRONG = [
    ("rope", "pairings_mixed", lambda x, places, theta=THETA: by_complex_numbers(x, places, theta, False)),
    ("rope", "pairings_mixed", rope(out="np.concatenate([A, B], -1)")),
    ("rope", "pairings_mixed", rotate_half),
    ("rope", "places_counted", rope(place="np.arange(n)")),
    ("rope", "places_counted", rope(place="places[0] + np.arange(n)")),
    ("rope", "first_half_overwritten", rope(b="A * np.sin(angle) + b * np.cos(angle)")),
    ("rope", "theta_as_exponent", rope("(1 - np.arange(0, d, 2) / d) ** theta")),
    ("rope", "rotation_forgotten", lambda x, places, theta=THETA: x),
    ("rope", "rotation_forgotten", rope("(np.arange(0, d, 2) / d) ** theta")),  # 0 for every pair
    ("rope", "theta_as_exponent", rope("np.exp(-theta * np.arange(0, d, 2) / d)")),
    ("rope", "frequencies_rising", rope("theta ** (np.arange(0, d, 2) / d)")),
    ("rope", "frequencies_half_as_far", rope("theta ** (-np.arange(d // 2) / d)")),
    ("rope", "turned_backwards", rope("-(theta ** (-np.arange(0, d, 2) / d))")),
    ("rope", "pairings_mixed + places_counted", rope(place="np.arange(n)", out="np.concatenate([A, B], -1)")),
    ("rope", None, rope("10_000.0 ** (-np.arange(0, d, 2) / d)")),  # theta is never read
    ("rope", None, rope(place="places + 1")),
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
    ("online_softmax", None, online(factor="np.exp(new - m)")),
    ("rotary_attention", "value_rotated", head(v="halves(v)")),
    ("rotary_attention", "offset_forgotten", head(q="halves(norm(q, g_q))")),
    ("rotary_attention", "offset_forgotten", head(q="halves(norm(q, g_q))", mask="np.tri(n_q, n_k, dtype=bool)")),
    ("rotary_attention", "mask_from_the_first_key", head(mask="np.tri(n_q, n_k, dtype=bool)")),
    ("rotary_attention", "pairings_mixed", head("neighbours(norm(q, g_q), n_k - n_q)", "neighbours(norm(k, g_k))")),
    ("rotary_attention", "pairings_mixed", head(k="neighbours(norm(k, g_k))")),
    ("rotary_attention", "only_one_side_rotated", head(k="norm(k, g_k)")),
    ("rotary_attention", "rotation_forgotten", head("norm(q, g_q)", "norm(k, g_k)")),
    ("rotary_attention", "plain_attention", head("q", "k")),
    ("rotary_attention", "norm_after_rotation", head("norm(halves(q, n_k - n_q), g_q)", "norm(halves(k), g_k)")),
    ("rotary_attention", "norm_forgotten", head("halves(q, n_k - n_q)", "halves(k)")),
    ("rotary_attention", "gain_forgotten", head("halves(norm(q), n_k - n_q)", "halves(norm(k))")),
    ("rotary_attention", "gain_forgotten", head(k="halves(norm(k))")),
    ("rotary_attention", "offset_forgotten", head(k="halves(norm(k, g_k), n_k - n_q)")),
    ("rotary_attention", "no_scale", head(scale="1")),
    ("rotary_attention", "mask_ignored", head(mask="True")),
    ("rotary_attention", "rotation_forgotten + gain_forgotten", head("norm(q)", "norm(k)")),
    ("rotary_attention", "value_rotated + no_scale", head(v="halves(v)", scale="1")),
    ("rotary_attention", "gains_exchanged", head("halves(norm(q, g_k), n_k - n_q)", "halves(norm(k, g_q))")),
    ("rotary_attention", "gains_exchanged", head(k="halves(norm(k, g_q))")),
    ("rotary_attention", "queries_behind_the_keys", head(q="halves(norm(q, g_q), n_k)")),
    ("rotary_attention", None, head(q="halves(norm(q, g_q), n_q)")),
    ("look_back", "looks_at_itself", look_back(turned=lambda near, far: (0, 0))),
    ("look_back", "looks_at_itself", look_back(turned=lambda near, far: (near, far))),
    ("look_back", "looks_elsewhere", look_back(turned=lambda near, far: (-near - 1, -far - 1))),
    ("look_back", "looks_elsewhere", look_back(turned=lambda near, far: (-(near + far) / 2,))),
    ("look_back", "one_place_only", look_back(turned=lambda near, far: (-near,))),
    ("look_back", "one_place_only", look_back(shares=(1.0, 0.5))),
    ("look_back", "too_soft", look_back(1.0)),
]
