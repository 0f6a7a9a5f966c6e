"""The exercises of PyTorch module, and the inputs on which they are tried."""

import numpy as np

from attnlib.core import attention_trace

from ...engine import locate
from ...engine.compare import RIGHT, close
from ...engine.exercise import ATTENTION_HINTS, OUTPUT_AXES, Design, Kept, Module, Number
from ...engine.probes import Draw, Probe, edges, gradient
from ...engine.run import numbers
from ...engine.verdict import number


def self_attention_probes():
    draw = Draw("SelfAttention")
    w = draw.matrix(6, 4), draw.matrix(6, 4), draw.matrix(6, 3)
    equal = draw.matrix(3, 3), draw.matrix(3, 3), draw.matrix(3, 3)
    common = edges(
        lambda *b: (draw(*b, 5, 6), *w),
        lambda: (draw(3, 3, 3), *equal),
        lambda arrays: (arrays[0], 70 * w[0], 70 * w[1], w[2]),
        mask=None,
    )
    left_out = Probe("d_v left out, so that it is d_k", (draw(5, 6), w[0], w[1], draw.matrix(6, 4)))
    learning = gradient(common[0].args, ("W_Q", "W_K", "W_V"))
    return (*common[:2], left_out, *common[2:], learning)


def _unpack(x, W_Q, W_K, W_V, learning=()):
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    (d_in, d_k), d_v = W_Q.shape, W_V.shape[1]
    sizes = (d_in, d_k) if d_v == d_k else (d_in, d_k, d_v)  # the default is tried as well
    return sizes, weights, (x,), {}, learning


# Of alphabet_scores: what can be read off the map of a trained head, and differs a little from machine to machine.
LOWEST, HIGHEST = np.array([5.0, -2.0]), np.array([11.0, 2.0])


def _judge_reading(answer):
    read = numbers(answer, lists=True)
    if read.shape != (2,):
        return None, f"Two numbers are asked for, [with itself, with another]; yours have shape {read.shape}."
    if _on_the_map(read).all():
        return RIGHT, ""
    words = "Look again at the cells o" + ("ff" if _on_the_map(read)[0] else "n") + " the diagonal."
    if _on_the_map(read[::-1]).all():
        return "diagonal_and_rest_swapped", words
    return "weights_for_scores" if close(read, np.array([1.0, 0.0]), 1e-3) else None, words


def _on_the_map(read):
    return (read >= LOWEST) & (read <= HIGHEST)


# Of other_head: the letters of the memory, and the number stored with each.
MEMORY = {"a": 4, "c": 9, "f": 3, "h": 2, "k": 14, "m": 12, "n": 1, "p": 0}


# Of choose_W_Q: the keys of four letters, a to d; each query is to choose the next letter.
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
ENOUGH = 0.9
_TURNED = {0: "query_looks_for_itself", 3: "query_looks_for_previous", 2: "query_looks_across"}  # by how many letters


def _judge_queries(W_Q):
    queries = numbers(W_Q, lists=True)
    if queries.shape != KEYS.shape:
        return None, (
            f"W_Q has shape (d_in, d_k) = (4, 2), a query a row; yours has shape {queries.shape}. "
            "Fix: four lists of two."
        )
    weights = attention_trace(queries, KEYS, KEYS).weights if np.isfinite(queries).all() else np.full((4, 4), np.nan)
    cells = np.arange(4), (np.arange(4) + 1) % 4
    following, others = weights[cells], weights.copy()
    others[cells] = 0
    if (following >= ENOUGH).all():
        return RIGHT, ""
    if (following > others.max(-1) + 1e-9).all():
        row = int((following < ENOUGH).argmax())
        given = f"Letter {'abcd'[row]} gives {'bcda'[row]} {number(following[row])}"
        return "query_too_short", f"{given}, more than to any other, and {ENOUGH} is asked for."
    rows, keys = np.nonzero(weights > 0.5)
    turned = set((keys - rows) % 4) if len(rows) == 4 else set()
    row = int((~(following > 0.5)).argmax())
    words = f"Letter {'abcd'[row]} gives less than half of its weight to letter {'bcda'[row]}."
    return _TURNED.get(turned.pop()) if len(turned) == 1 else None, words


EXERCISES = (
    Design(
        "alphabet_scores",
        "[a letter's score with itself, its typical score with another], read off the map of the trained head",
        (
            "Go down the diagonal, from a with a to p with p. Around which number do these 16 cells lie?",
            "All other cells: some are above 0, some below. Around which number do they lie?",
            "One of the two is near 0.",
        ),
        judge=_judge_reading,
        names=("diagonal_and_rest_swapped", "weights_for_scores"),
    ),
    Number(
        "other_head",
        "what the second model answers when it is asked for c and remembers a 4, c 9, f 3, h 2, k 14, m 12, n 1, p 0",
        (
            "The letter that is asked for is the query: a row of the map.",
            "The strongest cell of that row stands in the column of the key that is looked for.",
            "Find that letter among the eight pairs.",
        ),
        right=float(MEMORY["h"]),
        slips={"own_letter_looked_up": [9.0], "map_read_by_columns": [1.0], "place_in_the_alphabet": [7.0, 8.0]},
    ),
    Design(
        "choose_W_Q",
        "W_Q, (4, 2): with the keys a (1, 0), b (0, 1), c (-1, 0), d (0, -1), each letter gives the next one, and d "
        "gives a, a weight of 0.9 or more",
        (
            "A token is one-hot, so row i of W_Q is the query of letter i.",
            "The query of a should point where the key of b lies. And that of d?",
            "Make all four longer: scores are divided by sqrt(2) before softmax.",
        ),
        judge=_judge_queries,
        names=(*_TURNED.values(), "query_too_short"),
    ),
    Module(
        "SelfAttention",
        "class SelfAttention(nn.Module): __init__(d_in, d_k, d_v=None) makes nn.Linear W_Q, W_K (d_in -> d_k) and "
        "W_V (d_in -> d_v), with bias=False; forward(x), of x (..., n, d_in) -> (output, weights), (..., n, d_v) and "
        "(..., n, n). Hand in the class. The gradient of the output must reach all three. Masks come in 'masks': a "
        "forward that takes one as well is as good.",
        (
            "`__init__` calls super().__init__() and makes three layers; `forward` calls each of them on x.",
            *ATTENTION_HINTS,
            "d_v defaults to d_k; bias=False keeps to the formula.",
        ),
        probes=self_attention_probes(),
        given=lambda x, W_Q, W_K, W_V, learning=(): dict(
            query=x, key=x, value=x, W_Q=W_Q, W_K=W_K, W_V=W_V, learning=learning
        ),
        result=lambda s: (s.output, s.shown),
        axes=OUTPUT_AXES,
        reveal=locate.self_attention(),
        unpack=_unpack,
        biases=False,
        kept=Kept("SelfAttention", "attnlib.torch_layers.SelfAttention"),
    ),
)
