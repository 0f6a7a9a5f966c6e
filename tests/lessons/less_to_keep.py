"""Answers of the lesson less_to_keep, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al
from attnlib.rounding import rounded as ours

swap = np.swapaxes


def rounding(
    lowest="x.min(axis, keepdims=True)",
    highest="x.max(axis, keepdims=True)",
    step="(highest - lowest) / (2**bits - 1)",
    whole="np.rint((x - lowest) / np.where(step > 0, step, 1))",
    end="lowest + step * whole",
):
    """Return a rounding from the lines a student would write."""

    def answer(x, bits, axis=-1):
        names = {"np": np, "x": x, "bits": bits, "axis": axis}
        for name, line in (("lowest", lowest), ("highest", highest), ("step", step), ("whole", whole)):
            names[name] = eval(line, names)
        return eval(end, names)

    return answer


def slice_by_slice(x, bits, axis=-1):
    def one(row):
        low, high = row.min(), row.max()
        if low == high:
            return row
        levels = low + (high - low) * np.arange(2**bits) / (2**bits - 1)
        return levels[np.abs(row[:, None] - levels).argmin(-1)]

    return np.apply_along_axis(one, axis, x)


def in_torch(x, bits, axis=-1):
    x = torch.as_tensor(x)
    low, high = x.amin(axis, keepdim=True), x.amax(axis, keepdim=True)
    step = ((high - low) / (2**bits - 1)).clamp(min=1e-9)
    return ((x - low) / step).round() * step + low


def groups(stop="x.shape[-2] // size * size", one="ours(part, bits, -2)", start="0"):
    def answer(x, bits, size):
        names = {"np": np, "ours": ours, "x": x, "bits": bits, "size": size}
        out, first = x.copy(), eval(start, names)
        for i in range(first, first + eval(stop, names), size):
            out[..., i : i + size, :] = eval(one, names | {"part": x[..., i : i + size, :]})
        return out

    return answer


def by_reshape(x, bits, size):
    *lead, n, d = x.shape
    done = n // size * size
    parts = ours(x[..., :done, :].reshape(*lead, done // size, size, d), bits, -2) if done else x[..., :0, :]
    return np.concatenate([parts.reshape(*lead, done, d), x[..., done:, :]], axis=-2)


def by_split(x, bits, size):
    parts = np.split(x, range(size, x.shape[-2], size), axis=-2)
    return np.concatenate([ours(p, bits, -2) if p.shape[-2] == size else p for p in parts], axis=-2)


def best(
    least="np.sort(s, -1)[..., -min(best, s.shape[-1]), None]",
    kept="np.where(s >= least, s, -np.inf)",
    rest="al.softmax(kept) @ v",
    masked="s if m is None else np.where(m, s, -np.inf)",
):
    """Return attention to the best keys from the lines a student would write."""

    def answer(q, k, v, m=None, best=8):
        names = {"np": np, "al": al, "m": m, "v": v, "best": best, "raw": q @ swap(k, -1, -2) / q.shape[-1] ** 0.5}
        names["s"] = eval(masked, names | {"s": names["raw"]})
        names["least"] = eval(least, names)
        names["kept"] = eval(kept, names)
        return eval(rest, names)

    return answer


def renormalised(q, k, v, m=None, best=8):
    """The best weights, divided by their sum."""
    w = al.attention_trace(q, k, v, m).weights
    least = np.partition(w, -min(best, w.shape[-1]), axis=-1)[..., -min(best, w.shape[-1]), None]
    w = np.where((w >= least) & (w > 0), w, 0)
    return w / np.where((total := w.sum(-1, keepdims=True)) > 0, total, 1) @ v


def by_partition(q, k, v, m=None, best=8):
    """A mask of the best, handed to attention."""
    s = q @ swap(k, -1, -2)
    s = s if m is None else np.where(m, s, -np.inf)
    least = np.partition(s, -min(best, s.shape[-1]), axis=-1)[..., -min(best, s.shape[-1])]
    mask = (s >= least[..., None]) & np.isfinite(s)
    return al.scaled_dot_product_attention(q, k, v, mask)


def by_topk(q, k, v, m=None, best=8):
    """In torch, whose products are added up in another order."""
    s = torch.as_tensor(q) @ torch.as_tensor(k).mT / q.shape[-1] ** 0.5
    s = s if m is None else s.masked_fill(~torch.as_tensor(m), -torch.inf)
    least = s.topk(min(best, s.shape[-1])).values[..., -1:]
    return torch.softmax(s.masked_fill(s < least, -torch.inf), -1).nan_to_num() @ torch.as_tensor(v)


def clipped(x, bits, axis=-1):
    """Numbers that lie far out are clipped first."""
    middle, off = x.mean(axis, keepdims=True), 2 * x.std(axis, keepdims=True)
    return ours(np.clip(x, middle - off, middle + off), bits, axis)


def exactly(order):
    """As many keys as are asked for: of ties the first ones, or the last."""

    def answer(q, k, v, m=None, best=8):
        s = q @ swap(k, -1, -2) / q.shape[-1] ** 0.5
        s = s if m is None else np.where(m, s, -np.inf)
        ranked = np.argsort(-s if order > 0 else s, axis=-1, kind="stable")
        ranked = ranked[..., :best] if order > 0 else ranked[..., -best:]
        kept = np.full_like(s, -np.inf)
        np.put_along_axis(kept, ranked, np.take_along_axis(s, ranked, -1), -1)
        return al.softmax(kept) @ v

    return answer


def latent(
    inside="q @ swap(W_UK, -1, -2)",
    scores="inside @ c.T / q.shape[-1] ** 0.5",
    rest="al.softmax(s) @ c @ W_UV",
):
    """Return a latent attention from the lines a student would write."""

    def answer(q, c, W_UK, W_UV, m=None):
        names = {"np": np, "al": al, "swap": swap, "q": q, "c": c, "W_UK": W_UK, "W_UV": W_UV}
        names["inside"] = eval(inside, names)
        s = eval(scores, names)
        names["s"] = s if m is None else np.where(m, s, -np.inf)
        return eval(rest, names)

    return answer


def keys_made(q, c, W_UK, W_UV, m=None):
    return al.scaled_dot_product_attention(q, c @ W_UK, c @ W_UV, m)


def by_einsum(q, c, W_UK, W_UV, m=None):
    inside = np.einsum("...id,...rd->...ir", q, W_UK)
    s = np.einsum("...ir,jr->...ij", inside, c) / np.sqrt(W_UK.shape[-1])
    w = al.softmax(s if m is None else np.where(m, s, -np.inf))
    return np.einsum("...ij,jr,...rv->...iv", w, c, W_UV, optimize=["einsum_path", (0, 1), (0, 1)])


def handed_to_attention(q, c, W_UK, W_UV, m=None):
    """Latents are keys and values of an attention whose divisor has to be mended."""
    r, d_k = W_UK.shape[-2:]
    inside = q @ swap(W_UK, -1, -2) * (r / d_k) ** 0.5
    c = np.broadcast_to(c, (*q.shape[:-2], *c.shape))
    return al.scaled_dot_product_attention(inside, c, c, m) @ W_UV


EVERY = set(range(1, 31))


def missed_most(lost, at_most=5, end=-1):
    """Return the layers, from 1, with the largest losses, or with the smallest."""
    ranked = sorted(EVERY, key=lost)
    return ranked[-at_most:] if end < 0 else ranked[:at_most]


def add_the_best(narrowed, at_most=5):
    kept = set()
    while len(kept) < at_most:
        kept.add(min(EVERY - kept, key=lambda i: narrowed(EVERY - kept - {i})[1]))
    return kept


def narrow_the_cheapest(narrowed, at_most=5):
    gone = []
    while len(gone) < 30 - at_most:
        gone.append(min(EVERY - {*gone}, key=lambda i: narrowed([*gone, i])[1]))
    return tuple(EVERY - {*gone})


def by_argsort(narrowed, at_most=5, judge=1, first=1):
    lost = np.array([narrowed([i])[judge] for i in range(1, 31)])
    return np.argsort(-lost)[:at_most] + first


RIGHT = {
    "layers": [by_argsort, add_the_best, narrow_the_cheapest, lambda n, m=5: missed_most(lambda i: n([i])[1], m)],
    "rounded": [rounding(), slice_by_slice, in_torch, ours],
    "in_groups": [groups(), by_reshape, by_split],
    "best_keys": [best(), renormalised, by_partition, by_topk],
    "latent_attention": [latent(), by_einsum, handed_to_attention],
}

WRONG = {
    "layers": {
        "judged_by_the_next_word": [
            lambda n, m=5: by_argsort(n, m, judge=0),
            lambda n, m=5: missed_most(lambda i: n([i])[0], m),
        ],
        "same_for_every_model": [
            *(lambda n, m=5, of=of: of for of in ([6, 12, 18, 24, 30], range(1, 31, 6), [1, 2, 3, 4, 5])),
            lambda n, m=5: list(range(1, m + 1)),
        ],
        "largest_sinks": [lambda n, m=5: [19, 21, 24, 25, 27]],
        "least_missed": [lambda n, m=5: missed_most(lambda i: n([i])[1], m, end=1)],
        "layers_from_zero": [lambda n, m=5: by_argsort(n, m, first=0)],
        None: [
            lambda n, m=5: missed_most(lambda i: sum(n([i])), m),  # both losses, added
            lambda n, m=5: [*EVERY],
            lambda n, m=5: [18],
            lambda n, m=5: EVERY - {*by_argsort(n, m)},  # those to narrow
            lambda n, m=5: sorted(range(1, 30), key=lambda i: n([i])[1])[-m:],  # the last one never asked
        ],
    },
    "rounded": {
        "one_scale_for_all": [rounding("x.min()", "x.max()")],
        "scale_along_other_axis": [rounding("x.min(-3 - axis, keepdims=True)", "x.max(-3 - axis, keepdims=True)")],
        "lowest_not_added": [rounding(end="step * whole")],
        "grid_starts_at_zero": [
            rounding("0"),
            rounding("0 * x", whole="np.rint(x / np.where(step == 0, 1, step))"),
            rounding(whole="np.rint(x / np.where(step > 0, step, 1))", end="step * whole"),
        ],
        "levels_off_by_one": [rounding(step="(highest - lowest) / 2**bits")],
        "rounded_down": [
            rounding(whole="((x - lowest) / np.where(step > 0, step, 1)).astype(int)"),
            rounding(whole="(x - lowest) // np.where(step > 0, step, 1)"),
        ],
        None: [clipped],
        "levels_returned": [rounding(end="whole")],
        "flat_slice_lost": [rounding(whole="np.rint((x - lowest) / step)")],
        "argument_ignored": [rounding("x.min(-1, keepdims=True)", "x.max(-1, keepdims=True)")],
    },
    "in_groups": {
        "rest_not_waiting": [groups("x.shape[-2]")],
        "groups_from_the_end": [groups(start="x.shape[-2] % size")],
        "scale_along_other_axis": [groups(one="ours(part, bits, -1)")],
        "scale_of_whole_text": [
            lambda x, bits, size: np.concatenate(
                [ours(x[..., :e, :], bits, -2) if (e := x.shape[-2] // size * size) else x[..., :0, :], x[..., e:, :]],
                -2,
            )
        ],
    },
    "best_keys": {
        "forbidden_keys_counted": [best("np.sort(raw, -1)[..., -min(best, s.shape[-1]), None]")],
        "one_ranking_for_all": [best("np.sort(s, None)[-min(best, s.size)]")],
        "not_renormalised": [best(rest="np.where(s >= least, al.softmax(s), 0) @ v")],
        "argument_ignored": [lambda q, k, v, m=None, best=8: al.scaled_dot_product_attention(q, k, v, m)],
        "ties_cut": [exactly(1), exactly(-1)],
        "best_off_by_one": [
            best("np.sort(s, -1)[..., -min(best + 1, s.shape[-1]), None]"),
            best(kept="np.where(s > least, s, -np.inf)"),
        ],
        "smallest_kept": [
            best("np.sort(s, -1)[..., min(best, s.shape[-1]) - 1, None]", "np.where(s <= least, s, -np.inf)")
        ],
        "dropped_score_zero": [best(kept="np.where(s >= least, s, 0)")],
    },
    "latent_attention": {
        "scale_of_the_latent": [latent(scores="inside @ c.T / c.shape[-1] ** 0.5")],
        "no_scale": [latent(scores="inside @ c.T")],
        "key_matrix_forgotten": [latent("q")],
        "absorbed_the_wrong_way": [latent("q @ W_UK")],
        "value_matrix_forgotten": [latent(rest="al.softmax(s) @ c")],
        "up_matrices_exchanged": [latent("q @ swap(W_UV, -1, -2)", rest="al.softmax(s) @ c @ W_UK")],
    },
}

LEARNERS = {
    "layers": {
        "counted from 0": (
            None,
            lambda n, m=5: sorted(range(30), key=lambda i: n([i])[1])[-m:],
            "layers are 1 to 30",
            "as if",
        ),
        "asked from 0, returned from 1": (
            None,
            lambda n, m=5: np.argsort([n([i])[1] for i in range(30)])[-m:] + 1,
            "layers are 1 to 30",
        ),
    },
    "in_groups": {
        "the rest rounded": ("rest_not_waiting", groups("x.shape[-2]"), "Tried on 7 tokens in groups of 4", "float32"),
        "the rest dropped": (
            "waiting_tokens_dropped",
            lambda x, bits, size: groups()(x, bits, size)[..., : x.shape[-2] // size * size, :],
            "left out",
        ),
        "the rest 0": (
            "waiting_tokens_dropped",
            lambda x, bits, size: (
                groups()(x, bits, size) * (np.arange(x.shape[-2])[:, None] < x.shape[-2] // size * size)
            ),
        ),
    },
    "latent_attention": {"keys made": (None, keys_made, "memory grows by 24 numbers a token or more", "as if")},
}
