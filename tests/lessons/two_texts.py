"""Answers of the lesson two_texts, right and wrong; what stands in which table, `__init__.py` says."""

import numpy as np
import torch

import attnlib as al

swap = np.swapaxes


def step(q="written @ W_Q", k="text @ W_K", v="text @ W_V", rest="al.scaled_dot_product_attention(q, k, v)"):
    """Return a step between two texts from the lines a student would write."""

    def answer(written, text, W_Q, W_K, W_V):
        names = {"np": np, "al": al, "written": written, "text": text, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
        names |= {"q": eval(q, names), "k": eval(k, names), "v": eval(v, names)}
        return eval(rest, names)

    return answer


def by_steps(written, text, W_Q, W_K, W_V):
    scores = (written @ W_Q) @ swap(text @ W_K, -1, -2) / W_K.shape[1] ** 0.5
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ (text @ W_V)


def values_projected_last(written, text, W_Q, W_K, W_V):
    scores = np.einsum("...id,dk,ek,...je->...ij", written, W_Q, W_K, text)
    return al.softmax(scores / np.sqrt(W_Q.shape[-1])) @ text @ W_V


def context(line):
    """Return a mask between two texts from the line a student would write; j are the letters, i the digits."""

    def answer(lengths, written, n_k, n_q):
        names = {"np": np, "al": al, "lengths": lengths, "written": written, "n_k": n_k, "n_q": n_q, "b": len(lengths)}
        return eval(line, names | {"j": np.arange(n_k), "i": np.arange(n_q)[:, None]})

    return answer


def by_loops(lengths, written, n_k, n_q):
    mask = np.zeros((len(lengths), n_q, n_k), dtype=bool)
    for one, length in zip(mask, lengths, strict=True):
        one[:, :length] = True
    return mask


def positions(line):
    return lambda real: eval(line, {"np": np, "real": real, "n": real.shape[1]})


def counted(real):
    found = np.zeros(real.shape, dtype=int)
    for row, letters in zip(found, real, strict=True):
        row[letters] = range(letters.sum())
    return found


def packed(line):
    return lambda ids: eval(line, {"np": np, "al": al, "ids": ids, "n": ids.shape[-1]})


SAME, TRIANGLE = "(ids[..., :, None] == ids[..., None, :])", "np.tri(n, dtype=bool)"


def cell_by_cell(ids):
    n = ids.shape[-1]
    mask = np.zeros((*ids.shape, n), dtype=bool)
    for i in range(n):
        for j in range(i + 1):
            mask[..., i, j] = ids[..., i] == ids[..., j]
    return mask


RIGHT = {
    "cross_attention": [step(), by_steps, values_projected_last],
    "context_mask": [
        context("j < lengths[:, None, None]"),
        by_loops,
        context("(j < lengths[:, None, None]) & (i < written[:, None, None])"),  # rows of padding see nothing
        context("np.broadcast_to(al.padding_mask(lengths, n_k), (b, n_q, n_k))"),
    ],
    "left_positions": [
        positions("np.maximum(np.cumsum(real, -1) - 1, 0)"),
        counted,
        positions("np.where(real, np.arange(n) - (~real).sum(-1)[:, None], 1)"),  # as some libraries do
        lambda real: (torch.as_tensor(real).long().cumsum(-1) - 1).clamp(min=0),
    ],
    "packed_mask": [packed(f"{SAME} & {TRIANGLE}"), cell_by_cell, packed(f"np.tril({SAME})")],
    "sick_translator": [("B", "c"), ["b", "C"], ("B", "C")],
}

WRONG = {
    "cross_attention": {
        "texts_exchanged": [step("text @ W_Q", "written @ W_K", "written @ W_V")],
        "reader_alone": [step("text @ W_Q")],
        "context_ignored": [step(k="written @ W_K", v="written @ W_V")],
        "context_half_ignored": [step(v="written @ W_V"), step(k="written @ W_K")],
        "swapped_query_key": [step("text @ W_Q", "written @ W_K")],
        "no_scale": [step(rest="al.softmax(q @ np.swapaxes(k, -1, -2)) @ v")],
        "softmax_over_queries": [
            step(rest="al.softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), axis=-2) @ v")
        ],
    },
    "context_mask": {
        "lengths_of_the_other_text": [context("j < written[:, None, None]")],
        "causal_between_texts": [
            context("(j < lengths[:, None, None]) & (j <= i)"),
            context("(j < lengths[:, None, None]) & (j <= i + n_k - n_q)"),
            context("np.broadcast_to(j <= i, (b, n_q, n_k))"),
        ],
        "padding_and_letters_exchanged": [context("j >= lengths[:, None, None]")],
        "shows_too_much": [context("j <= lengths[:, None, None]")],
        None: [context("j < lengths[:, None]")],  # n_q is not read, as in right answers
        "mask_as_numbers": [
            context("np.where(j < lengths[:, None, None], 0, -np.inf)"),
            context("1 * (j < lengths[:, None, None])"),
        ],
        "nothing_hidden": [context("np.ones((b, n_q, n_k), bool)")],
        "letters_as_rows": [context("np.repeat((j < lengths[:, None])[..., None], n_q, axis=-1)")],
    },
    "left_positions": {
        "counted_from_the_padding": [positions("np.tile(np.arange(n), (len(real), 1))")],
        None: [
            positions("np.maximum(np.cumsum(real, -1) - 1.0, 0)"),  # floats pick no vector
            lambda real: torch.as_tensor(real).float().cumsum(-1).sub(1).clamp(min=0),
        ],
        "letters_from_one": [positions("np.cumsum(real, -1)")],
        "padding_at_minus_one": [
            positions("np.cumsum(real, -1) - 1"),
            positions("np.arange(n) - (~real).sum(-1)[:, None]"),
        ],
        "padding_of_one_text": [positions("np.maximum(np.arange(n) - (~real[:1]).sum(-1)[:, None], 0) * real")],
        "moved_the_other_way": [positions("(np.arange(n) + (~real).sum(-1)[:, None]) * real")],
        "counted_backwards": [positions("np.arange(n)[::-1] * real")],
    },
    "packed_mask": {
        "texts_not_kept_apart": [packed(f"np.broadcast_to({TRIANGLE}, (*ids.shape, n))")],
        "future_of_its_text": [packed(SAME)],
        "other_texts_only": [packed(f"~{SAME} & {TRIANGLE}")],
        "mask_inverted": [packed(f"~({SAME} & {TRIANGLE})")],
        "texts_in_order_of_number": [packed(f"(ids[..., None, :] <= ids[..., :, None]) & {TRIANGLE}")],
        "hides_too_much": [packed(f"{SAME} & np.tri(n, k=-1, dtype=bool)")],
        "ahead_in_its_text": [packed(f"{SAME} & {TRIANGLE}.T")],
    },
    "sick_translator": {
        "healthy_accused": [("A", "c"), ("C", "e")],
        "own_text_read": [("B", "a")],
        "future_letters_hidden": [("B", "b")],
        "shifted_by_padding": [("B", "d")],
        "paler_is_not_wrong": [("B", "e")],
    },
}
