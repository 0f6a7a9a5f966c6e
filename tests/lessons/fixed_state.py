"""Answers of the lesson fixed_state, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

swap = np.swapaxes


def written(key="k / np.linalg.norm(k, axis=-1, keepdims=True)", change="b * (v - k @ S)", read="q @ S", first=False):
    """Return the delta rule, token by token, from the lines a student would write; `first` reads before it writes."""

    def answer(query, keys, value, beta):
        keys, S, reads = eval(key, {"np": np, "k": keys}), np.zeros(()), []
        for i in range(keys.shape[-2]):
            q, k, v = (x[..., i, None, :] for x in (query, keys, value))
            S = S + 0 * swap(k, -1, -2) @ v
            names = {"np": np, "swap": swap, "q": q, "k": k, "v": v, "b": beta[..., i, None, None], "S": S}
            S = S + swap(k, -1, -2) @ eval(change, names)
            reads.append(eval(read, names | ({} if first else {"S": S})))
        return np.concatenate(reads, axis=-2)

    return answer


def in_chunks(query, key, value, beta, size=2):
    """As layers of this kind are trained: within a chunk all at once, a state from chunk to chunk."""
    key, state, reads = key / np.sqrt((key**2).sum(-1, keepdims=True)), 0, []
    for i in range(0, key.shape[-2], size):
        q, k, v = (x[..., i : i + size, :] for x in (query, key, value))
        b, like = beta[..., i : i + size, None], k @ swap(k, -1, -2)
        old = k @ state if i else 0
        added = np.linalg.solve(np.eye(k.shape[-2]) + np.tril(b * like, -1), b * (v - old))
        reads.append((q @ state if i else 0) + np.tril(q @ swap(k, -1, -2)) @ added)
        state = state + swap(k, -1, -2) @ added
    return np.concatenate(reads, -2)


def in_long_chunks(diagonal=-1, solved=True, read=True, erased=True, own=0, kept=True):
    """In chunks of 16, with the slips of those who write it."""

    def answer(query, key, value, beta):
        key = key / np.linalg.norm(key, axis=-1, keepdims=True)
        S, reads = 0 * swap(key, -1, -2)[..., :1] @ value[..., :1, :], []
        for i in range(0, key.shape[-2], 16):
            q, k, v = (x[..., i : i + 16, :] for x in (query, key, value))
            b, S = beta[..., i : i + 16, None], S * kept
            earlier = np.tril(b * (k @ swap(k, -1, -2)), diagonal) * solved
            added = np.linalg.solve(np.eye(k.shape[-2]) + earlier, b * (v - erased * k @ S))
            reads.append(read * q @ S + np.tril(q @ swap(k, -1, -2), own) @ added)
            S = S + swap(k, -1, -2) @ added
        return np.concatenate(reads, -2)

    return answer


def state_kept(query, key, value, beta, faded=False):
    """The last state, read by all; or one that fades as a whole, and read in time."""
    key, reads = key / np.linalg.norm(key, axis=-1, keepdims=True), []
    S = 0 * swap(key, -1, -2) @ value
    for i in range(key.shape[-2]):
        q, k, v, b = (x[..., i, None, :] for x in (query, key, value, beta[..., None]))
        S = (1 - b) * S + b * swap(k, -1, -2) @ v if faded else S + b * swap(k, -1, -2) @ (v - k @ S)
        reads.append(q @ S)
    return np.concatenate(reads, -2) if faded else query @ S


def erased_then_written(query, key, value, beta):
    """By einsum: the state loses a share of what stands under the key, and gains the same share of the new value."""
    key = key / np.linalg.norm(key, axis=-1)[..., None]
    state, out = np.zeros((*key.shape[:-2], key.shape[-1], value.shape[-1])), np.empty_like(value)
    for i in range(key.shape[-2]):
        k, b = key[..., i, :], beta[..., i, None, None]
        state = state - b * np.einsum("...i,...j,...jv->...iv", k, k, state)
        state = state + b * np.einsum("...i,...v->...iv", k, value[..., i, :])
        out[..., i, :] = np.einsum("...i,...iv->...v", query[..., i, :], state)
    return out


def state_in_torch(query, key, value, beta):
    query, key, value, beta = map(torch.as_tensor, (query, key, value, beta))
    key = torch.nn.functional.normalize(key, dim=-1)
    state, reads = key.mT[..., :1] @ value[..., :1, :] * 0, []
    for q, k, v, b in zip(*(x.unbind(-2) for x in (query, key, value, beta[..., None])), strict=True):
        state = state + k[..., None] * (b * (v - (k[..., None, :] @ state)[..., 0, :]))[..., None, :]
        reads.append((q[..., None, :] @ state)[..., 0, :])
    return torch.stack(reads, -2)


RIGHT = {
    "state": [written(), in_chunks, in_long_chunks(), erased_then_written, state_in_torch],
}

WRONG = {
    "state": {
        "old_value_not_erased": [written(change="b * v"), written(change="v")],
        "read_before_written": [written(first=True)],
        "beta_on_one": [written(change="b * v - k @ S"), written(change="v - b * (k @ S)")],
        "key_not_normed": [
            written("k"),
            written("k / np.linalg.norm(k)"),
            written("k / np.linalg.norm(k, axis=-2, keepdims=True)"),
            written("k / np.sqrt((k**2).mean(-1, keepdims=True))"),
        ],
        "argument_ignored": [written(change="v - k @ S")],
        "factor": [written(read="q @ S / 2")],
        "last_state_read": [state_kept],
        "whole_state_faded": [lambda *arrays: state_kept(*arrays, faded=True)],
        "query_normed": [written(read="q / np.linalg.norm(q, axis=-1, keepdims=True) @ S")],
        None: [written(change="b * (v - q @ S)")],  # what stands under the query
    },
}

LEARNERS = {
    "state": {
        "forgets every 16 tokens": (None, in_long_chunks(kept=False), "the first difference is on 40 tokens", "as if"),
        "old state not read": (None, in_long_chunks(read=False), "the first difference is on 40 tokens", "as if"),
        "old state not erased": (None, in_long_chunks(erased=False), "the first difference is on 40 tokens", "as if"),
        "diagonal kept": (None, in_long_chunks(diagonal=0), "First difference at", "as if"),
        "no system solved": (None, in_long_chunks(solved=False), "First difference at", "as if"),
        "own token not seen": ("read_before_written", in_long_chunks(own=-1), "before its own token"),
    },
}
