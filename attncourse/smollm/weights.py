"""The weights of a Llama as its file holds them, sorted by layer and brought into the order that `rope` wants."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """The numbers of a Llama: layers, heads of queries, heads of keys and values, and so on."""

    layers: int
    heads: int
    kv_heads: int
    d_k: int
    context: int
    eps: float


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, each matrix as (in, out)."""

    attn_norm: np.ndarray
    attn_q: np.ndarray
    attn_k: np.ndarray
    attn_v: np.ndarray
    attn_output: np.ndarray
    ffn_norm: np.ndarray
    ffn_gate: np.ndarray
    ffn_up: np.ndarray
    ffn_down: np.ndarray


def shape_of(settings):
    d_model, heads = settings["llama.embedding_length"], settings["llama.attention.head_count"]
    return Shape(
        settings["llama.block_count"],
        heads,
        settings["llama.attention.head_count_kv"],
        d_model // heads,
        settings["llama.context_length"],
        settings["llama.attention.layer_norm_rms_epsilon"],
    )


def layer_of(weights, i, shape):
    """Return the weights of layer i as (in, out): views of the file's (out, in)."""
    matrices = {name: weights[f"blk.{i}.{name}.weight"].T for name in Layer.__dataclass_fields__}
    matrices["attn_q"] = to_halves(matrices["attn_q"], shape.heads)
    matrices["attn_k"] = to_halves(matrices["attn_k"], shape.kv_heads)
    return Layer(**matrices)


def to_halves(w, heads):
    """Reorder the columns of W_Q or W_K: the file has a pair's features side by side, `rope` wants them d_k/2 apart."""
    d_in, width = w.shape
    pairs = w.reshape(d_in, heads, width // heads // 2, 2)
    return np.ascontiguousarray(np.swapaxes(pairs, -1, -2).reshape(d_in, width).T).T
