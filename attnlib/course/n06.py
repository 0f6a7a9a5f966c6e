"""Notebook 06, several heads: its exercises, questions, and what only they need."""

import numpy as np

from . import stages
from .exercise import OUTPUT_AXES, TOKEN_AXES, Function, Module
from .mistakes.around import flatten_last
from .mistakes.mistake import Mistake, allowed_by
from .prediction import Question
from .probes import BATCH, CUBE, PLAIN, SINGLE, Draw, Probe, edges, gradient, single


def split_probes():
    draw = Draw("split_heads")
    return (
        Probe(PLAIN, (draw(5, 6), 3)),
        Probe(BATCH, (draw(2, 4, 15), 3)),
        Probe(CUBE, (draw(4, 4, 16), 4)),
        Probe(SINGLE, (*single(draw(5, 8)), 2)),
    )


def merge_probes():
    draw = Draw("merge_heads")
    return (
        Probe(PLAIN, (draw(3, 5, 2),)),
        Probe(BATCH, (draw(2, 3, 4, 5),)),
        Probe(CUBE, (draw(4, 4, 4, 4),)),
        Probe(SINGLE, single(draw(3, 4, 2))),
    )


def multi_head_probes(name, same_width=False):
    """Return the probes of multi-head attention; `same_width` leaves out keys and values of another width."""
    draw, width, h = Draw(name), 8, 2

    def matrices(d, kdim=None, vdim=None):
        return draw.matrix(d, d), draw.matrix(kdim or d, d), draw.matrix(vdim or d, d), draw.matrix(d, d)

    w = matrices(width)
    common = edges(
        lambda *b: (draw(*b, 4, width), draw(*b, 5, width), draw(*b, 5, width), *w, h),
        lambda: (draw(3, 3, 9), draw(3, 3, 9), draw(3, 3, 9), *matrices(9), 3),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )
    if same_width:
        return (*common, gradient((*common[0].args, None), ("W_Q", "W_K", "W_V", "W_O")))
    others = (draw(4, width), draw(5, 6), draw(5, 7), *matrices(width, 6, 7), 4)
    return (*common, Probe("keys and values of other widths", others))


def _first_head_only(mask, s):
    if s.num_heads is None:
        return mask
    mask = np.broadcast_to(mask, s.scaled.shape).copy()
    mask[..., 1:, :, :] = True
    return mask


def _reshaped(straight):
    """Split without the swap: straight to (..., h, n, d_k), or left as (..., n, h, d_k)."""

    def split(s):
        def cut(x):
            *lead, n, width = x.shape
            axes = (s.num_heads, n) if straight else (n, s.num_heads)
            return x.reshape(*lead, *axes, width // s.num_heads)

        return cut

    return split


def _merge_straight(x):
    *lead, h, n, d = x.shape
    return x.reshape(*lead, n, h * d)


def _split_interleaved(s):
    return lambda x: np.moveaxis(x.reshape(*x.shape[:-1], -1, s.num_heads), -1, -3)


def _merge_interleaved(s):
    return lambda x: flatten_last(np.moveaxis(x, -3, -1))


def _average(s):
    return s.context.mean(axis=-3)


OWN = (
    Mistake(
        "one_mask_for_first_head_only",
        "the mask reaches the first head only",
        "One head behaves, the others see everything; averaged over heads it hardly shows.",
        "Print the masked scores of every head.",
        (allowed_by(_first_head_only),),
    ),
    Mistake(
        "mask_without_head_axis",
        "a mask (b, n_q, n_k) reaches scores (b, h, n_q, n_k) without a head axis",
        "NumPy lines up axes from the right: the mask of sequence i becomes that of head i, or the shapes do not fit.",
        "Which axis do the scores have between batch and queries?",
        (allowed_by(lambda mask, s: mask[:, 0] if mask.ndim == 4 else mask),),
    ),
    Mistake(
        "merge_without_transpose",
        "it reshapes the heads back without moving the head axis behind the tokens",
        "Right shape, but a row holds pieces of different tokens.",
        "Merging undoes splitting, step by step in reverse. What was the last step of splitting?",
        ({"merge": lambda s: _merge_straight}, {"merge": lambda s: flatten_last}),
    ),
    Mistake(
        "split_without_transpose",
        "it reshapes into heads without bringing the head axis to the front",
        "The shape may be right, but a head holds pieces of different tokens; or heads attend to heads.",
        "Number the entries 0, 1, 2, ... and print head 0.",
        (
            {"split": _reshaped(straight=True)},
            {"split": _reshaped(straight=False)},
            {"split": _reshaped(straight=False), "merge": lambda s: flatten_last},
            {"split": _reshaped(straight=True), "merge": lambda s: _merge_straight},
        ),
    ),
    Mistake(
        "heads_interleaved",
        "it deals the features out like cards: head i takes every h-th one",
        "Trains as well, but no weights of another library fit.",
        "Which features belong to head 0: the first d_k, or every h-th?",
        (
            {"split": _split_interleaved},
            {"merge": _merge_interleaved},
            {"split": _split_interleaved, "merge": _merge_interleaved},
        ),
    ),
    Mistake(
        "heads_averaged",
        "it averages (or adds) the heads, where they should stand side by side",
        "What one head found is blurred by the others; W_O can no longer tell them apart.",
        "How many features has the merged row, and how many has one head?",
        (
            {
                "merge": lambda s: lambda x: x.mean(axis=-3),
                "output": lambda s: np.tile(_average(s), s.num_heads) @ s.W_O,
            },
            {"output": _average},
            {"output": lambda s: _average(s) @ s.W_O[: s.context.shape[-1]]},
            {"merge": lambda s: lambda x: x.sum(axis=-3)},
        ),
    ),
    Mistake(
        "weights_averaged",
        "the weights it returns are averaged over the heads",
        "(..., n_q, n_k), where each head has a map of its own. nn.MultiheadAttention averages them, too.",
        "How many maps of weights should come back from a layer with h heads?",
        ({"shown": lambda s: s.weights if s.num_heads is None else s.weights.mean(axis=-3)},),
    ),
    Mistake(
        "no_output_projection",
        "the merged heads are returned without W_O",
        "The heads' features never mix.",
        "Which of the four matrices does your output not depend on?",
        ({"output": lambda s: s.merge(s.context)},),
    ),
)

_HEADS_TASK = (
    "Project, split, attend in every head, merge, project with W_O. attn_mask: True = may attend, "
    "(n_q, n_k) or (b, n_q, n_k), the same for all heads."
)


def _given(query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=()):
    """Name the arguments; a mask per sequence, (b, n_q, n_k), gets its head axis."""
    given = dict(query=query, key=key, value=value, W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O, num_heads=h, learning=learning)
    return given | {"mask": mask if mask is None or mask.ndim < 3 else mask[:, None]}


def _unpack(query, key, value, W_Q, W_K, W_V, W_O, h, mask=None, learning=()):
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
    return (W_Q.shape[0], h), weights, (query, key, value), mask, learning


EXERCISES = (
    Function(
        "split_heads",
        "split_heads(x, num_heads): (..., n, d_model) -> (..., num_heads, n, d_k).",
        (
            "Only the last axis is cut.",
            "First (..., n, h, d_k), then bring the head axis forward.",
            "reshape, then np.swapaxes(..., -2, -3).",
        ),
        probes=split_probes(),
        given=lambda x, num_heads: {"x": x, "num_heads": num_heads},
        result=lambda s: s.split(s.x),
        axes=TOKEN_AXES,
        stage="split",
    ),
    Function(
        "merge_heads",
        "merge_heads(x): (..., h, n, d_k) -> (..., n, h * d_k), the inverse of split_heads.",
        (
            "Undo split_heads in reverse order.",
            "First put the heads behind the tokens, then join the last two axes.",
            "np.swapaxes(x, -2, -3), then reshape.",
        ),
        probes=merge_probes(),
        given=lambda x: {"x": x},
        result=lambda s: s.merge(s.x),
        axes=TOKEN_AXES,
        stage="merge",
    ),
    Function(
        "multi_head_attention",
        "multi_head_attention(query, key, value, W_Q, W_K, W_V, W_O, num_heads, attn_mask=None) -> (..., n_q, d_model)."
        " " + _HEADS_TASK,
        (
            "You have written all parts: split_heads, scaled_dot_product_attention, merge_heads.",
            "Project first, with the whole matrix, then split.",
            "A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None].",
        ),
        probes=multi_head_probes("multi_head_attention"),
        given=_given,
        result=lambda s: s.output,
        axes=OUTPUT_AXES,
        reveal=stages.multi_head(),
    ),
    Module(
        "MultiHeadAttention",
        "class MultiHeadAttention(nn.Module): __init__(embed_dim, num_heads) makes nn.Linear W_Q, W_K, W_V, W_O "
        "(embed_dim -> embed_dim); forward(query, key=None, value=None, *, attn_mask=None) -> (output, weights), "
        "(..., n_q, embed_dim) and (..., h, n_q, n_k). Hand in the class. "
        "The gradient of the output must reach all four. " + _HEADS_TASK,
        (
            "Project with the whole matrix, then split: unflatten(-1, (h, d_k)) and transpose.",
            "key defaults to query, value to key. A mask (b, n_q, n_k) needs a head axis: attn_mask[:, None].",
            "Merge with transpose and flatten(-2), then W_O.",
        ),
        probes=multi_head_probes("MultiHeadAttention", same_width=True),
        given=_given,
        result=lambda s: (s.output, s.shown),
        axes=OUTPUT_AXES,
        reveal=stages.multi_head(),
        unpack=_unpack,
    ),
)

QUESTIONS = (
    Question(
        "two_heads",
        "b",
        "A head has one row of weights per query, so one mixture of both places, and the read-out here is linear. Two "
        "heads keep the places apart.",
        {
            "a": "The large head has more features, but one row of weights: both neighbours end up in one sum, which a "
            "linear read-out cannot take apart.",
            "c": "The parameters are equally many. What differs is the number of rows of weights per query.",
        },
        "c",
    ),
    Question(
        "reshape",
        "b",
        "reshape keeps the order of the numbers in memory, and there a token's features stand together.",
        {
            "a": "That is what split_heads gives. It takes a reshape to (n, h, d_k) and then a swap.",
            "c": "reshape never fails if the number of entries is right, and 12 = 2 * 3 * 2.",
        },
        "a",
    ),
    Question(
        "unrelated",
        "c",
        "Small random projections and a divisor of 16 leave hardly any difference between scores.",
        {
            "a": "A peak needs scores that differ by several units. These differ by hundredths.",
            "b": "Nothing makes a token look at itself: query and key come from unrelated tensors.",
        },
        "a",
    ),
)
