"""Answers of the lesson todays_head, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al

BASE = 10_000.0


def by_complex_numbers(x, positions, base=BASE, pairing="halves"):
    """RoPE as a product with e^(i p omega): each pair is one complex number."""
    d_k, interleaved = x.shape[-1], pairing == "neighbours"
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., : d_k // 2], x[..., d_k // 2 :])
    turned = (a + 1j * b) * np.exp(1j * np.outer(positions, base ** (-np.arange(0, d_k, 2) / d_k)))
    if interleaved:
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def halves(x, start=0, base=BASE):
    return by_complex_numbers(x, start + np.arange(x.shape[-2]), base)


def neighbours(x, start=0):
    return by_complex_numbers(x, start + np.arange(x.shape[-2]), pairing="neighbours")


def by_matrices(x, positions, base=BASE, pairing="halves"):
    """One block-diagonal matrix for each position."""
    n, d_k = x.shape[-2:]
    out = np.zeros_like(x)
    for i in range(n):
        matrix = np.zeros((d_k, d_k))
        for c in range(d_k // 2):
            t = positions[i] / base ** (2 * c / d_k)
            pair = [2 * c, 2 * c + 1] if pairing == "neighbours" else [c, c + d_k // 2]
            matrix[np.ix_(pair, pair)] = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        out[..., i, :] = x[..., i, :] @ matrix.T
    return out


def in_torch(x, positions, base=BASE, pairing="halves"):
    x = torch.as_tensor(x)
    omega = 1 / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = torch.as_tensor(positions)[:, None] * omega
    if pairing == "halves":
        angle, partner = angle.repeat(1, 2), torch.cat([-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1)
    else:
        angle = angle.repeat_interleave(2, dim=-1)
        partner = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return (x * angle.cos() + partner * angle.sin()).numpy()


def rope(
    omega="base ** (-np.arange(0, d, 2) / d)",
    position="positions",
    halves='pairing == "halves"',
    back='pairing == "halves"',
    new_a="a * cos - b * sin",
    new_b="a * sin + b * cos",
):
    """Return RoPE from the lines a student would write."""

    def answer(x, positions, base=BASE, pairing="halves"):
        n, d = x.shape[-2:]
        names = {"np": np, "x": x, "positions": positions, "base": base, "pairing": pairing, "n": n, "d": d}
        angle = np.outer(eval(position, names), eval(omega, names))
        names |= {"angle": angle, "cos": np.cos(angle), "sin": np.sin(angle)}
        a, b = (x[..., : d // 2], x[..., d // 2 :]) if eval(halves, names) else (x[..., 0::2], x[..., 1::2])
        names |= {"a": a, "b": b}
        names["A"] = A = eval(new_a, names)
        B = eval(new_b, names)
        return np.concatenate([A, B], -1) if eval(back, names) else np.stack([A, B], -1).reshape(x.shape)

    return answer


def in_one(way="halves", **lines):
    """Return RoPE with lines that are wrong in one of its two branches."""
    wrong, right = rope(**lines), rope()
    return lambda x, positions, base=BASE, pairing="halves": (wrong if pairing == way else right)(
        x, positions, base, pairing
    )


def rotate_half(x, positions, base=BASE, pairing="halves"):
    """Partners by halves, angles by neighbours: two conventions in one line."""
    d = x.shape[-1]
    angle = np.outer(positions, base ** (-np.arange(0, d, 2) / d)).repeat(2, axis=-1)
    partner = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], axis=-1)
    return x * np.cos(angle) + partner * np.sin(angle)


def side_by_side(angle):
    return np.repeat(angle, 2, axis=-1)


def one_after_another(angle):
    return np.tile(angle, 2)


def rotated_half(*lays):
    """Return x cos + partner sin, with partners by `pairing`, and angles laid out for halves and for neighbours."""

    def answer(x, positions, base=BASE, pairing="halves"):
        d, of_halves = x.shape[-1], pairing == "halves"
        angle = lays[not of_halves](np.outer(positions, base ** (-np.arange(0, d, 2) / d)))
        if of_halves:
            partner = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], axis=-1)
        else:
            partner = np.stack([-x[..., 1::2], x[..., 0::2]], axis=-1).reshape(x.shape)
        return x * np.cos(angle) + partner * np.sin(angle)

    return answer


def norm(x, gain=1.0):
    return gain * x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def unit(x, gain):
    return gain * x / np.sqrt((x**2).sum(-1, keepdims=True))


def layer_norm(x, gain):
    return gain * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)  # as torch has it


def head(
    q="halves(norm(q, g_q), n_k - n_q)",
    k="halves(norm(k, g_k))",
    v="v",
    mask="np.tri(n_q, n_k, n_k - n_q, dtype=bool)",
    scale="d ** 0.5",
):
    """Return the head of today from the lines a student would write."""

    def answer(query, key, value, g_q, g_k):
        names = {"np": np, "norm": norm, "halves": halves, "neighbours": neighbours, "g_q": g_q, "g_k": g_k}
        names |= {
            "unit": unit,
            "layer": layer_norm,
            "by_tokens": lambda x, gain: gain * x / np.sqrt((x**2).mean(-2, keepdims=True) + 1e-6),
            "q": query,
            "k": key,
            "v": value,
            "d": query.shape[-1],
            "n_q": query.shape[-2],
            "n_k": key.shape[-2],
        }
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
    arrays = (halves(norm(query, g_q), 100 + n_k - n_q), halves(norm(key, g_k), 100), value)  # every position + 100
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


def product_of_queries(amplitude=8.0, key=alternating):
    def answer(d_k, near, far):
        _, k = key(d_k, near, far)
        return amplitude * halves(k[None], -near)[0] * halves(k[None], -far)[0], k

    return answer


def slowed(
    turns="trained * omega / (2 * np.pi)", few="1", many="32", mixed="omega * keep + omega / factor * (1 - keep)"
):
    """Return the frequencies by parts from the lines a student would write."""

    def answer(omega, factor, trained):
        names = {"np": np, "omega": omega, "factor": factor, "trained": trained}
        names["turns"] = eval(turns, names)
        low, high = eval(few, names), eval(many, names)
        names["keep"] = np.clip((names["turns"] - low) / (high - low), 0, 1)
        return eval(mixed, names)

    return answer


def slowed_by_interpolation(omega, factor, trained):
    keep = np.interp(trained / (2 * np.pi / omega), [1, 32], [0, 1])
    return omega / factor + keep * (omega - omega / factor)


def slowed_in_torch(omega, factor, trained):
    omega = torch.as_tensor(omega)
    keep = ((trained * omega / (2 * torch.pi) - 1) / 31).clamp(0, 1)
    return torch.lerp(omega / factor, omega, keep).numpy()


def slowed_pair_by_pair(omega, factor, trained):
    out = []
    for one in omega:
        turns = trained * one / (2 * np.pi)
        keep = 1 if turns >= 32 else 0 if turns <= 1 else (turns - 1) / 31
        out.append(one * (keep + (1 - keep) / factor))
    return np.array(out)


RIGHT = {
    "slowed": [slowed(), slowed_by_interpolation, slowed_in_torch, slowed_pair_by_pair],
    "rope": [by_complex_numbers, by_matrices, in_torch, rope(), al.rope, rotated_half(one_after_another, side_by_side)],
    "rotary_attention": [head(), head_by_the_whole_sequence, head_in_torch],
    "look_back": [look_back(), alternating, key_turned_forwards, look_back(20.0)],
}

WRONG = {
    "slowed": {
        "no_pair_slowed": [slowed("trained / (2 * np.pi * omega)")],
        "every_pair_slowed": [
            slowed("omega / (2 * np.pi)"),
            slowed(mixed="omega / factor"),
            slowed(few="1e8", many="2e8"),
        ],
        "wrong_end_slowed": [slowed(mixed="omega * (1 - keep) + omega / factor * keep")],
        "radians_for_turns": [slowed("trained * omega"), slowed("trained * omega", "1.0", "32.0")],
        "turns_of_the_new_length": [slowed("trained * factor * omega / (2 * np.pi)")],
        "ramp_is_a_step": [slowed(few="16 - 1e-9", many="16"), slowed(few="32 - 1e-9"), slowed(many="1 + 1e-9")],
        "ramp_not_in_turns": [
            slowed("np.log(trained * omega / (2 * np.pi))", "0", "np.log(32)"),
            slowed("2 * np.pi / (trained * omega)", many="1 / 32"),
        ],
        "ramp_ends_elsewhere": [slowed(few="0"), slowed(few="0", many="31"), slowed(many="33")],
        "frequencies_not_mixed": [
            slowed(mixed="1 / (keep / omega + (1 - keep) * factor / omega)"),
            slowed(mixed="omega**keep * (omega / factor) ** (1 - keep)"),
        ],
        "ramp_not_clipped": [slowed(mixed="omega / factor + (turns - 1) / 31 * (omega - omega / factor)")],
        None: [
            slowed(few="4", many="32"),  # 9 per cent off
            slowed(few="8", many="8 + 1e-9"),  # it does depend on `trained`
        ],
        "factor_multiplied": [slowed(mixed="omega * keep + omega * factor * (1 - keep)")],
    },
    "rope": {
        "pairings_mixed": [
            rope(halves='pairing == "neighbours"', back='pairing == "neighbours"'),
            rope(halves="False"),
            rotate_half,
            rotated_half(side_by_side, side_by_side),
            rotated_half(one_after_another, one_after_another),
        ],
        "pairs_put_elsewhere": [rope(back="True"), rope(back="False")],
        "pairing_ignored": [rope(halves="True", back="True"), rope(halves="False", back="False")],
        "base_ignored": [rope("10_000.0 ** (-np.arange(0, d, 2) / d)")],
        "frequencies_from_one": [rope("base ** (-2 * np.arange(1, d // 2 + 1) / d)")],
        "sign_lost": [
            rope(new_a="a * cos + b * sin"),
            rope(new_b="b * cos - a * sin"),
            rope(new_b="a * sin - b * cos"),
            in_one(new_a="a * cos + b * sin"),
            in_one("neighbours", new_a="a * cos + b * sin"),
            in_one("neighbours", new_b="b * cos - a * sin"),
        ],
        "sine_and_cosine_exchanged": [rope(new_a="a * sin - b * cos", new_b="a * cos + b * sin")],
        "constant_result": [rope(new_a="0 * a", new_b="0 * b")],
        "positions_added": [rope(new_a="a + sin", new_b="b + cos"), rope(new_a="a + cos", new_b="b + sin")],
        "positions_counted": [rope(position="np.arange(n)"), rope(position="positions[0] + np.arange(n)")],
        None: [
            rope(position="np.asarray(positions) % 500"),
            rope("base ** (-np.arange(0, d, 2) / (d - 1))"),
            rope(position="np.asarray(positions) / (2 * np.pi)"),
            rotated_half(side_by_side, one_after_another),
        ],
        "another_unit_of_angle": [
            rope(position="np.radians(positions)"),
            rope("np.degrees(base ** (-np.arange(0, d, 2) / d))"),
            rope(position="2 * np.pi * np.asarray(positions)"),
        ],
        "positions_from_one": [rope(position="positions + 1")],
        "first_half_overwritten": [
            rope(new_b="A * sin + b * cos"),
            in_one(new_b="A * sin + b * cos"),
            in_one("neighbours", new_b="A * sin + b * cos"),
        ],
        "base_as_exponent": [
            rope("(1 - np.arange(0, d, 2) / d) ** base"),
            rope("np.exp(-base * np.arange(0, d, 2) / d)"),
        ],
        "rotation_forgotten": [
            lambda x, positions, base=BASE, pairing="halves": x,
            rope("(np.arange(0, d, 2) / d) ** base"),  # 0 for every pair
        ],
        "frequencies_rising": [rope("base ** (np.arange(0, d, 2) / d)")],
        "frequencies_half_as_far": [
            rope("base ** (-np.arange(d // 2) / d)"),
            in_one(omega="base ** (-np.arange(d // 2) / d)"),
            in_one("neighbours", omega="base ** (-np.arange(d // 2) / d)"),
        ],
        "frequencies_to_the_end": [
            rope("base ** -np.linspace(0, 1, d // 2)"),
            rope("base ** (-np.arange(d // 2) / (d // 2 - 1))"),
        ],
        "rotated_backwards": [
            rope("-(base ** (-np.arange(0, d, 2) / d))"),
            rope(new_a="a * cos + b * sin", new_b="b * cos - a * sin"),
            in_one(new_a="a * cos + b * sin", new_b="b * cos - a * sin"),
            in_one("neighbours", position="-np.asarray(positions)"),
        ],
        "pairing_ignored + positions_counted": [rope(position="np.arange(n)", halves="True", back="True")],
    },
    "rotary_attention": {
        "value_rotated": [head(v="halves(v)")],
        "offset_forgotten": [
            head(q="halves(norm(q, g_q))"),
            head(q="halves(norm(q, g_q))", mask="np.tri(n_q, n_k, dtype=bool)"),
            head(k="halves(norm(k, g_k), n_k - n_q)"),
        ],
        "mask_from_the_first_key": [head(mask="np.tri(n_q, n_k, dtype=bool)")],
        "triangle_turned": [
            head(mask="np.tri(n_k, n_q, dtype=bool).T"),
            head(mask="np.tri(n_k, n_q, n_k - n_q, bool).T"),
        ],
        "triangle_moved_back": [head(mask="np.tri(n_q, n_k, n_q - n_k, dtype=bool)")],
        "chunk_without_itself": [head(mask="np.tri(n_q, n_k, n_k - n_q - 1, dtype=bool)")],
        "pairings_mixed": [
            head("neighbours(norm(q, g_q), n_k - n_q)", "neighbours(norm(k, g_k))"),
            head(k="neighbours(norm(k, g_k))"),
        ],
        "only_one_side_rotated": [head(k="norm(k, g_k)")],
        "rotation_forgotten": [head("norm(q, g_q)", "norm(k, g_k)")],
        "plain_attention": [head("q", "k")],
        "norm_after_rotation": [head("norm(halves(q, n_k - n_q), g_q)", "norm(halves(k), g_k)")],
        "norm_forgotten": [
            head("halves(q, n_k - n_q)", "halves(k)"),
            head("halves(g_q * q, n_k - n_q)", "halves(g_k * k)"),
            head(q="halves(g_q * q, n_k - n_q)"),
            head(k="halves(g_k * k)"),
            head(k="halves(k)"),
        ],
        "gain_forgotten": [
            head("halves(norm(q), n_k - n_q)", "halves(norm(k))"),
            head(k="halves(norm(k))"),
            head(q="halves(norm(q), n_k - n_q)"),
        ],
        "no_scale": [head(scale="1")],
        "mask_ignored": [head(mask="True")],
        "rotation_forgotten + gain_forgotten": [head("norm(q)", "norm(k)")],
        "value_rotated + no_scale": [head(v="halves(v)", scale="1")],
        "another_gain": [
            head("halves(norm(q, g_k), n_k - n_q)", "halves(norm(k, g_q))"),
            head(k="halves(norm(k, g_q))"),
            head("halves(norm(q, 1 + g_q), n_k - n_q)", "halves(norm(k, 1 + g_k))"),
            head("halves(norm(q, g_q**2), n_k - n_q)", "halves(norm(k, g_k**2))"),
        ],
        "queries_misplaced": [
            head(q="halves(norm(q, g_q), n_k)"),
            head(q="halves(norm(q, g_q), n_q)"),
            head(q="halves(norm(q, g_q), n_k - n_q + 1)"),
            head(q="halves(norm(q, g_q), n_k - 1)"),
            head(q="halves(norm(q, g_q), n_q - 1)"),
            head(q="halves(norm(q, g_q), n_k if n_k > n_q else 0)"),
        ],
        "normed_to_length_one": [head("halves(unit(q, g_q), n_k - n_q)", "halves(unit(k, g_k))")],
        "normed_over_tokens": [
            head("halves(by_tokens(q, g_q), n_k - n_q)", "halves(by_tokens(k, g_k))"),
            head(k="halves(by_tokens(k, g_k))"),
        ],
        "value_normed": [head(v="norm(v)")],
        "mean_subtracted": [
            head("halves(layer(q, g_q), n_k - n_q)", "halves(layer(k, g_k))"),
            head(q="halves(layer(q, g_q), n_k - n_q)"),
        ],
        "base_ignored": [
            head(f"halves(norm(q, g_q), n_k - n_q, {b})", f"halves(norm(k, g_k), 0, {b})")
            for b in ("500.0", "1e5", "5e5", "1e6")
        ],
        None: [head("halves(norm(q, g_q), n_k - n_q, 1e3)", "halves(norm(k, g_k), 0, 1e3)")],
    },
    "look_back": {
        "looks_at_itself": [look_back(turned=lambda near, far: (0, 0)), look_back(turned=lambda near, far: (0,))],
        "looks_ahead": [
            look_back(turned=lambda near, far: (near, far)),
            lambda d_k, near, far: alternating(d_k, near, far)[::-1],
            lambda d_k, near, far: key_turned_forwards(d_k, near, far)[::-1],
        ],
        "looks_elsewhere": [
            look_back(turned=lambda near, far: (-near - 1, -far - 1)),
            look_back(turned=lambda near, far: (near + 1, far + 1)),
            look_back(turned=lambda near, far: (-(near + far) / 2,)),
        ],
        "one_position_only": [look_back(turned=lambda near, far: (-near,)), look_back(shares=(1.0, 0.5))],
        "too_soft": [look_back(1.0)],
        "product_of_queries": [product_of_queries(), product_of_queries(1.0), product_of_queries(key=look_back())],
    },
}

LEARNERS = {
    "rotary_attention": {
        "one too late": ("queries_misplaced", head(q="halves(norm(q, g_q), n_k - n_q + 1)"), "one beside any of these"),
        "one too early": ("queries_misplaced", head(q="halves(norm(q, g_q), n_k - n_q - 1)")),
        "not causal": ("mask_ignored", head(mask="True"), "every query sees all of them"),
    },
    "look_back": {
        "zeros": (None, lambda d, near, far: np.zeros((2, d)), "all that it sees the same weight", "as if"),
        "inf": (None, lambda d, near, far: np.full((2, d), np.inf), "finite numbers", "as if"),
        "NaN": (None, lambda d, near, far: np.full((2, d), np.nan), "finite numbers", "as if"),
        "too large": (None, lambda d, near, far: np.full((2, d), 1e200), "finite numbers", "as if"),
    },
}
