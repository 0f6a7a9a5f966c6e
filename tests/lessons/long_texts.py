"""Answers of the lesson long_texts, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al

GUARD, OVER = "np.where(new > -np.inf, new, 0.0)", "o / np.where(z > 0, z, 1.0)"


def online(
    new="np.maximum(m, s.max(-1, keepdims=True))",
    safe=GUARD,
    factor="np.exp(m - safe)",
    e="np.exp(s - safe)",
    z="factor * z + e.sum(-1, keepdims=True)",
    o="factor * o + e @ v",
    end=OVER,
    begin=-np.inf,
):
    """Return online softmax from the lines a student would write."""

    def answer(tiles):
        names = {"np": np, "m": begin, "z": 0.0, "o": 0.0}
        for names["s"], names["v"] in tiles:
            for name, line in (("new", new), ("safe", safe), ("factor", factor), ("e", e)):
                names[name] = eval(line, names)
            names["z"], names["o"], names["m"] = eval(z, names), eval(o, names), names["new"]
        return eval(end, names)

    return answer


def skipping_tiles(tiles):
    """Leave out a whole tile for one blocked key."""
    return online()([(s + 0, v + 0) for s, v in tiles if np.isfinite(s).all()])


def two_passes(tiles):
    scores, values = zip(*tiles, strict=True)
    return al.softmax(np.concatenate(scores, -1)) @ np.concatenate(values)


def kept_in_a_list(tiles):
    kept = list(tiles)
    return al.softmax(np.concatenate([s for s, _ in kept], -1)) @ np.concatenate([v for _, v in kept])


def twice_through(tiles):
    m = max(s.max() for s, _ in tiles)
    return sum(np.exp(s - m) @ v for s, v in tiles)


def by_log_sum_exp(tiles):
    """Merge outputs by the logarithms of their sums."""
    total, out = -np.inf, 0.0
    for s, v in tiles:
        own = np.logaddexp.reduce(s, axis=-1)[:, None]
        both = np.logaddexp(total, own)
        seen = np.where(both > -np.inf, both, 0.0)
        out = np.exp(total - seen) * out + np.exp(s - seen) @ v
        total = both
    return out


def row_by_row(tiles):
    """Each query and each key alone, with an `if` where the maximum rises."""
    state = None
    for s, v in tiles:
        state = state or [[-np.inf, 0.0, np.zeros(v.shape[-1])] for _ in s]
        for row, scores in zip(state, s, strict=True):
            for x, value in zip(scores, v, strict=True):
                if x > row[0]:
                    row[1:] = row[1] * np.exp(row[0] - x), row[2] * np.exp(row[0] - x)
                    row[0] = x
                if x > -np.inf:
                    row[1], row[2] = row[1] + np.exp(x - row[0]), row[2] + np.exp(x - row[0]) * value
    return np.array([o / z if z else o for _, z, o in state])


def returning_in_the_loop(tiles):
    for s, v in tiles:
        return al.softmax(s) @ v


def merge(shares):
    return lambda outputs, lse, lengths: (
        eval(shares, {"np": np, "al": al, "L": lse, "n": lengths})[..., None] * outputs
    ).sum(0)


def one_after_the_other(outputs, lse, lengths):
    out, total = outputs[0], lse[0]
    for o, L in zip(outputs[1:], lse[1:], strict=True):
        both = np.logaddexp(total, L)
        seen = np.where(both > -np.inf, both, 0)
        out = np.exp(total - seen)[:, None] * out + np.exp(L - seen)[:, None] * o
        total = both
    return out


def merged_in_torch(outputs, lse, lengths):
    outputs, lse = torch.as_tensor(outputs), torch.as_tensor(lse)
    return torch.einsum("wn,wnd->nd", lse.softmax(0).nan_to_num(), outputs).numpy()


def shares_by_hand(top="L.max(0)", over="e / np.where(e.sum(0) > 0, e.sum(0), 1)"):
    return f"(lambda e: {over})(np.exp(L - (lambda t: np.where(t > -np.inf, t, 0))({top})))"


def by_cells(n, b_q, b_k):
    """Return which tiles of a causal map hold an allowed cell; every cell is asked."""
    mask, rows, columns = np.tri(n, dtype=bool), range(0, n, b_q), range(0, n, b_k)
    return np.array([[mask[i : i + b_q, j : j + b_k].any() for j in columns] for i in rows])


def blocks(
    cut="key[j : i + 1][:size]",
    starts="range(0, i + 1, size)",
    mean="x.mean(axis=0)",
    asked="query[:, i].sum(axis=0)",
    over="scores",
    first="np.inf",
    count="best",
):
    """Return the choice of blocks from the lines a student would write, one query after the other."""

    def answer(query, key, size, best):
        n = len(key)
        read = np.zeros((n, -(-n // size)), dtype=bool)
        for i in range(n):
            names = {"np": np, "query": query, "key": key, "size": size, "best": best, "i": i}
            parts = [eval(cut, names | {"j": j}) for j in eval(starts, names)]
            means = np.array([eval(mean, names | {"x": x}) for x in parts])
            scores = eval(over, names | {"scores": means @ eval(asked, names)})
            scores[0] = eval(first, names | {"scores": scores})
            read[i, np.argsort(-scores)[: eval(count, names)]] = True
        return read

    return answer


def by_cumulated_sums(query, key, size, best):
    """All queries at once: what stands in a block so far is a difference of two sums from the first key on."""
    n = len(key)
    start, now = np.arange(0, n, size), np.arange(n)[:, None]
    sums = np.concatenate([np.zeros((1, key.shape[-1])), np.cumsum(key.astype(float), axis=0)])
    end = np.minimum(start + size, now + 1)  # (n, blocks)
    means = (sums[end] - sums[start]) / np.maximum(end - start, 1)[..., None]
    scores = np.einsum("hnd,nbd->nb", query, means)
    scores[:, 0] = np.inf
    scores[start > now] = -np.inf
    rank = np.argsort(np.argsort(-scores, axis=-1), axis=-1)
    return (rank < best) & (start <= now)


def in_torch_by_padding(query, key, size, best):
    """Keys after a query count as 0 and are not counted."""
    query, key = torch.as_tensor(query), torch.as_tensor(key)
    n, count = len(key), -(-len(key) // size)
    seen = torch.zeros(n, count * size, dtype=bool)
    seen[:, :n] = torch.ones(n, n).tril() > 0
    scores = torch.zeros(n, count * size, dtype=query.dtype)
    scores[:, :n] = torch.einsum("hnd,md->nm", query, key)
    seen, scores = (x.reshape(n, count, size) for x in (seen, scores))
    scores = (scores * seen).sum(-1) / seen.sum(-1)  # 0 / 0 in blocks that have not begun
    scores = scores.nan_to_num(-torch.inf)
    scores[:, 0] = torch.inf
    chosen = torch.zeros(n, count, dtype=bool).scatter(1, scores.topk(min(best, count)).indices, True)
    return (chosen & seen.any(-1)).numpy()


def head_by_head(union):
    """Each head chooses alone; `union` of all sets, or a set for each."""

    def answer(query, key, size, best):
        read = np.stack([blocks()(one[None], key, size, best) for one in query])
        return read.any(axis=0) if union else read

    return answer


def own_always(query, key, size, best):
    """The own block, the first, and the best of those between."""
    read = np.zeros((len(key), -(-len(key) // size)), dtype=bool)
    for i in range(len(key)):
        scores = np.array([key[j : i + 1][:size].mean(0) for j in range(0, i + 1, size)]) @ query[:, i].sum(0)
        scores[0] = scores[-1] = np.inf
        read[i, np.argsort(-scores, kind="stable")[:best]] = True
    return read


def tiled(
    cut="attn_mask[i : i + block, j : j + block]",
    rows="range(0, query.shape[-2], block)",
    keys="range(0, key.shape[-2], block)",
    visit="mask.any()",
    scale="query.shape[-1] ** 0.5",
    **lines,
):
    """Return attention in tiles, made of `online` and of the lines a student would write around it."""

    def answer(query, key, value, attn_mask=None, block=64):
        names = {"np": np, "query": query, "key": key, "attn_mask": attn_mask, "block": block}
        output = np.zeros((*query.shape[:-1], value.shape[-1]), value.dtype)

        def tiles(i):
            for j in eval(keys, names):
                mask = np.True_ if attn_mask is None else eval(cut, names | {"i": i, "j": j})
                if eval(visit, names | {"mask": mask}):
                    s = query[..., i : i + block, :] @ np.swapaxes(key[..., j : j + block, :], -1, -2)
                    yield np.where(mask, s / eval(scale, names), -np.inf), value[..., j : j + block, :]

        for i in eval(rows, names):
            output[..., i : i + block, :] = online(**lines)(tiles(i))
        return output

    return answer


def keys_outside(query, key, value, attn_mask=None, block=64):
    """Tiles of keys outside, as in the first FlashAttention: m, z and o of all queries stand in slow memory."""
    lead = query.shape[:-1]
    m, z = np.full((*lead, 1), -np.inf), np.zeros((*lead, 1))
    o = np.zeros((*lead, value.shape[-1]))
    for j in range(0, key.shape[-2], block):
        for i in range(0, query.shape[-2], block):
            now, cols = np.s_[..., i : i + block, :], np.s_[..., j : j + block, :]
            s = query[now] @ np.swapaxes(key[cols], -1, -2) / np.sqrt(query.shape[-1])
            if attn_mask is not None:
                s = np.where(attn_mask[i : i + block, j : j + block], s, -np.inf)
            new = np.maximum(m[now], s.max(-1, keepdims=True))
            safe = np.where(np.isinf(new), 0, new)
            e, factor = np.exp(s - safe), np.exp(m[now] - safe)
            m[now], z[now] = new, factor * z[now] + e.sum(-1, keepdims=True)
            o[now] = factor * o[now] + e @ value[cols]
    return np.divide(o, z, out=np.zeros_like(o), where=z > 0)


def tiled_in_parts(query, key, value, attn_mask=None, block=64):
    """Attention of each tile by itself, put together by logsumexp."""
    d, rows = query.shape[-1], []
    for i in range(0, query.shape[-2], block):
        out, total = 0.0, -np.inf
        for j in range(0, key.shape[-2], block):
            s = np.einsum("...id,...jd->...ij", query[..., i : i + block, :], key[..., j : j + block, :]) / d**0.5
            if attn_mask is not None:
                s = s + np.log(attn_mask[i : i + block, j : j + block].astype(float))
            both = np.logaddexp(total, np.logaddexp.reduce(s, axis=-1))
            seen = np.where(both > -np.inf, both, 0.0)
            out = np.exp(total - seen)[..., None] * out + np.exp(s - seen[..., None]) @ value[..., j : j + block, :]
            total = both
        rows.append(out)
    return np.concatenate(rows, axis=-2)


def keys_only(query, key, value, attn_mask=None, block=64):
    """Tiles of keys, and all queries at once: the memory grows with the text."""
    mask = np.ones((query.shape[-2], key.shape[-2]), dtype=bool) if attn_mask is None else attn_mask

    def tiles():
        for j in range(0, key.shape[-2], block):
            s = query @ np.swapaxes(key[..., j : j + block, :], -1, -2) / query.shape[-1] ** 0.5
            yield np.where(mask[:, j : j + block], s, -np.inf), value[..., j : j + block, :]

    return online()(tiles())


def whole_map(query, key, value, attn_mask=None, block=64):
    return al.scaled_dot_product_attention(query, key, value, attn_mask)


RIGHT = {
    "online_softmax": [by_log_sum_exp, row_by_row, online()],
    "merge": [merge("al.softmax(L, 0)"), one_after_the_other, merged_in_torch],
    "blocks": [blocks(), by_cumulated_sums, in_torch_by_padding],
    "tiled": [tiled(), keys_outside, tiled_in_parts],
}

OLD = "np.where(np.isneginf(m), safe, m)"

WRONG = {
    "online_softmax": {
        "output_not_rescaled": [online(o="o + e @ v")],
        "sum_not_rescaled": [online(z="z + e.sum(-1, keepdims=True)")],
        "output_not_rescaled + sum_not_rescaled": [online(factor="1.0")],
        "new_keys_against_old_maximum": [
            online(e=f"np.exp(s - {OLD})"),
            online(e="np.exp(s - np.where(np.isneginf(m), 0, m))"),
        ],
        "one_tile_only": [
            online(z="e.sum(-1, keepdims=True)", o="e @ v"),
            lambda tiles: [al.softmax(s) @ v for s, v in tiles][-1],
            returning_in_the_loop,
        ],
        None: [
            online(e="np.exp(s - m)"),  # nothing but NaN, from the first tile on
            online(new="np.where(m == -np.inf, s.max(-1, keepdims=True), m)"),
            skipping_tiles,
            lambda tiles: sum(al.softmax(s) @ v for s, v in tiles),
            online(new="np.maximum(m, s.mean(-1, keepdims=True))"),
            online(new="np.maximum(m, np.abs(s).max(-1, keepdims=True))"),
            online(new="np.maximum(m, np.abs(np.where(s > -np.inf, s, 0)).max(-1, keepdims=True))"),
            online(new="np.minimum(m, s.min(-1, keepdims=True))"),
        ],
        "tile_maximum": [online(new="s.max(-1, keepdims=True)"), online(new="s.max(-1, keepdims=True)", factor="1.0")],
        "never_divided": [online(end="o")],
        "nan_without_any_key": [online(end="o / z")],
        "nan_on_blocked_tile": [online(safe="new"), online(safe="new", end="o / z")],
        "outputs_averaged": [lambda tiles: np.mean([al.softmax(s) @ v for s, v in tiles], axis=0)],
        "tiles_kept": [two_passes, kept_in_a_list],
        "no_maximum": [online(new="0.0")],
        "maximum_starts_at_zero": [online(begin=0.0)],
        "maximum_of_other_rows": [online(new="np.maximum(m, s.max())")],
        "divided_at_each_tile": [
            *[
                online(o=o, end=end)
                for o in ["(factor * o + e @ v) / np.where((n := factor * z + e.sum(-1, keepdims=True)) > 0, n, 1)"]
                for end in ("o", OVER)
            ]
        ],
        "factor_inverted": [online(factor="np.where(np.isneginf(m), 0.0, np.exp(safe - m))")],
    },
    "merge": {
        "outputs_averaged": [lambda outputs, lse, lengths: outputs.mean(axis=0)],
        "argument_ignored": [lambda outputs, lse, lengths: outputs.sum(axis=0)],
        "weighted_by_length": [
            merge("np.broadcast_to((n / n.sum())[:, None], L.shape)"),
            lambda o, L, n: np.average(o, axis=0, weights=n),
        ],
        None: [
            merge("L / L.sum(0)"),
            merge("np.exp(L) / np.exp(L).sum(0)"),  # two mistakes that look alike in a row of -inf
            merge("1 - al.softmax(L, 0)"),
        ],
        "shares_over_queries": [merge("al.softmax(L)")],
        "no_maximum": [merge("np.exp(L) / np.where((z := np.exp(L).sum(0)) > 0, z, 1)")],
        "maximum_of_other_rows": [merge(shares_by_hand("L.max()"))],
        "nan_without_any_key": [
            merge(shares_by_hand(over="e / e.sum(0)")),
            merge("np.exp(L - L.max(0)) / np.exp(L - L.max(0)).sum(0)"),
        ],
    },
    "blocks": {
        "averaged_with_zeros": [blocks(mean="x.sum(axis=0) / size"), blocks(mean="x.sum(axis=0)")],
        "first_block_not_kept": [blocks(first="scores[0]")],
        "first_block_beside": [blocks(count="best + 1")],
        "later_blocks_chosen": [blocks(cut="key[j : j + size]", starts="range(0, len(key), size)")],
        "later_keys_averaged": [blocks(cut="key[j : j + size]")],
        "own_block_left_out": [blocks(starts="range(0, max(i // size, 1) * size, size)"), own_always],
        "a_set_for_each_head": [head_by_head(union=True), head_by_head(union=False)],
        "largest_of_heads": [blocks(asked="query[:, i].T", over="scores.max(axis=1)")],
        None: [
            blocks(asked="query[0, i]"),
            blocks(asked="-query[:, i].sum(axis=0)"),
            blocks(mean="x[0]"),
            blocks(mean="x.max(axis=0)"),
            blocks(mean="x.mean(axis=0) / np.linalg.norm(x.mean(axis=0))"),
        ],
    },
    "tiled": {
        "output_not_rescaled": [tiled(o="o + e @ v")],
        "new_keys_against_old_maximum": [tiled(e=f"np.exp(s - {OLD})")],
        "nan_without_any_key": [tiled(end="o / z", visit="True")],
        "nan_on_blocked_tile": [tiled(safe="new", visit="True")],
        "diagonal_tiles_skipped": [tiled(visit="mask.all()")],
        "last_tile_dropped": [
            tiled(
                rows="range(0, query.shape[-2] // block * block, block)",
                keys="range(0, key.shape[-2] // block * block, block)",
            ),
            tiled(rows="range(0, query.shape[-2] - block + 1, block)"),
            tiled(keys="range(0, key.shape[-2] - block + 1, block)"),
        ],
        "maximum_starts_at_zero": [tiled(begin=0.0)],
        "mask_inverted": [
            tiled(cut="~attn_mask[i : i + block, j : j + block]"),
            tiled(cut="~attn_mask[i : i + block, j : j + block]", visit="True"),
        ],
        "no_scale": [tiled(scale="1.0")],
        "argument_ignored": [tiled(cut="np.True_")],
        None: [
            keys_only,
            whole_map,
            tiled(cut="attn_mask[: len(attn_mask[i : i + block]), : len(attn_mask[0, j : j + block])]"),
        ],
    },
}

LEARNERS = {
    "online_softmax": {
        "nothing but NaN": (
            None,
            lambda blocks: sum((s * 0 - np.inf + np.inf) @ v for s, v in blocks),
            "The first NaN arises here",
            "as if",
        ),
    },
}
