"""Notebook 04, a module in torch: its exercises, questions, and what only they need."""

import numpy as np

from . import stages
from .exercise import ATTENTION_HINTS, OUTPUT_AXES, Module, Number
from .mistakes.mistake import Mistake
from .prediction import Question
from .probes import MASK, Draw, edges, gradient


def self_attention_probes():
    draw = Draw("SelfAttention")
    w = draw.matrix(6, 4), draw.matrix(6, 4), draw.matrix(6, 3)
    equal = draw.matrix(3, 3), draw.matrix(3, 3), draw.matrix(3, 3)
    common = edges(
        lambda *b: (draw(*b, 5, 6), *w),
        lambda: (draw(3, 3, 3), *equal),
        lambda arrays: (arrays[0], 70 * w[0], 70 * w[1], w[2]),
        mask=np.vstack([MASK, [[1, 1, 0, 1, 0]]]).astype(bool),
    )
    return (*common, gradient((*common[0].args, None), ("W_Q", "W_K", "W_V")))


def _unpack(x, W_Q, W_K, W_V, mask=None, learning=()):
    weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
    return (W_Q.shape[0], W_Q.shape[1], W_V.shape[1]), weights, (x,), mask, learning


OWN = (
    Mistake(
        "xavier_assumed",
        "nn.Linear started as Xavier says, which it does not",
        "Measure: nn.Linear(768, 64).weight.std().",
        "Section 2 prints three formulas. Which of them was measured?",
    ),
    Mistake(
        "kaiming_assumed",
        "nn.Linear started as Kaiming says, with the gain for ReLU",
        "nn.Linear calls Kaiming's function with another, unusual gain. Measure: nn.Linear(768, 64).weight.std().",
        "Section 2 prints three formulas. Which of them was measured?",
    ),
    Mistake(
        "bound_instead_of_std",
        "it is the bound of the uniform draw",
        "Uniform numbers in -b .. b have the standard deviation b / sqrt(3).",
        "How far from 0 is a typical number, if all in -b .. b are equally likely?",
    ),
    Mistake(
        "square_matrices_assumed",
        "the matrices were square, d_in times d_in",
        "A head of the original Transformer maps 512 features to 64, not to 512.",
        "Which shape has W_Q of one head?",
    ),
    Mistake(
        "one_matrix_counted",
        "only one matrix was counted",
        "A head has one matrix each for queries, keys and values.",
        "How many projections has a head?",
    ),
)

EXERCISES = (
    Module(
        "SelfAttention",
        "class SelfAttention(nn.Module): __init__(d_in, d_k, d_v=None) makes nn.Linear W_Q, W_K (d_in -> d_k) and "
        "W_V (d_in -> d_v); forward(x, *, attn_mask=None) -> (output, weights), (..., n, d_v) and (..., n, n). "
        "Hand in the class. The gradient of the output must reach all three.",
        (*ATTENTION_HINTS, "d_v defaults to d_k; bias=False keeps to the formula."),
        probes=self_attention_probes(),
        given=lambda x, W_Q, W_K, W_V, mask=None, learning=(): dict(
            query=x, key=x, value=x, W_Q=W_Q, W_K=W_K, W_V=W_V, mask=mask, learning=learning
        ),
        result=lambda s: (s.context, s.shown),
        axes=OUTPUT_AXES,
        reveal=stages.self_attention(),
        unpack=_unpack,
    ),
    Number(
        "linear_std",
        "the standard deviation of a fresh nn.Linear(768, 64).weight",
        ("It depends on the number of inputs only.", "Uniform in +-1/sqrt(inputs).", "1 / sqrt(3 * inputs)."),
        right=(3 * 768) ** -0.5,
        slips={
            "xavier_assumed": [(2 / (768 + 64)) ** 0.5],
            "kaiming_assumed": [(2 / 768) ** 0.5],
            "bound_instead_of_std": [768**-0.5],
            "root_forgotten": [1 / (3 * 768)],
        },
    ),
    Number(
        "head_parameters",
        "the number of parameters in W_Q, W_K, W_V of one head that maps 512 features to 64, without bias",
        ("A matrix has rows times columns.", "512 rows, 64 columns.", "Three such matrices."),
        right=3.0 * 512 * 64,
        slips={"square_matrices_assumed": [3.0 * 512 * 512], "one_matrix_counted": [512.0 * 64]},
    ),
)

QUESTIONS = (
    Question(
        "square_weight",
        "b",
        "Copying (4, 3) into (3, 4) raises an error. A square matrix fits both ways, and nobody notices.",
        {
            "a": "Only the shapes are compared, and a square matrix has the shape of its transpose.",
            "c": "nn.Linear computes x times the transpose of its weight, so the matrix has to be turned round.",
        },
        "a",
    ),
    Question(
        "sum_of_weights",
        "c",
        "Each row of weights sums to 1 whatever the matrices are: the loss is a constant.",
        {
            "a": "W_V has no part in the weights, true. But the sum of a row is always 1, for any W_Q and W_K.",
            "b": "The weights depend on W_Q and W_K. Their sum does not.",
        },
        "a",
    ),
)
