"""Mistakes after the weights (output, heads), before them (projections), and around them (arrays, numbers by hand)."""

import numpy as np

from ..core import softmax
from .mistake import Mistake, masked_by, scaled_by, weights_by
from .pipeline import swap


def _first_head_columns(name, weight):
    """Project with the columns of head 0 for every head."""

    def step(s):
        matrix = getattr(s, weight)
        d_k = matrix.shape[-1] // s.num_heads
        return s.split(getattr(s, name) @ np.tile(matrix[:, :d_k], s.num_heads))

    return step


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


def _flatten_last(x):
    return x.reshape(*x.shape[:-2], -1)


def _split_interleaved(s):
    return lambda x: np.moveaxis(x.reshape(*x.shape[:-1], -1, s.num_heads), -1, -3)


def _merge_interleaved(s):
    return lambda x: _flatten_last(np.moveaxis(x, -3, -1))


def _average(s):
    return s.context.mean(axis=-3)


def _overwriting(s):
    def finish(y):
        y = np.array(y)
        for array in s.arguments:
            if isinstance(array, np.ndarray):
                array[...] = 0
        return y

    return finish


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def _entropy_by(change):
    """Replace the entropy by `change(weights)`."""
    return {"entropy": lambda s: change(s.weights)}


def _surprise(w, axis=-1, log=np.log):
    return -(w * log(np.where(w > 0, w, 1))).sum(axis=axis)


MISTAKES = (
    # --- output
    Mistake(
        "weights_returned",
        "Returns the attention weights, not the output.",
        "(..., n_q, n_k) where (..., n_q, d_v) belongs.",
        "Which array have you not used yet?",
        (
            {"context": lambda s: s.weights, "output": lambda s: s.weights},
            {"output": lambda s: s.weights.mean(axis=-3)},
        ),
    ),
    Mistake(
        "weights_transposed",
        "Multiplies the values by the transposed weights.",
        "Runs where n_q = n_k; each output is a sum over queries, and its weights do not sum to 1.",
        "Output i belongs to query i. Which row or column of the weights does it use?",
        ({"context": lambda s: swap(s.weights) @ s.v},),
    ),
    # --- heads
    Mistake(
        "merge_without_transpose",
        "Reshapes the heads back without moving the head axis behind the tokens.",
        "Right shape, but a row holds pieces of different tokens.",
        "Merging undoes splitting, step by step in reverse. What was the last step of splitting?",
        ({"merge": lambda s: _merge_straight}, {"merge": lambda s: _flatten_last}),
    ),
    Mistake(
        "split_without_transpose",
        "Reshapes into heads without bringing the head axis to the front.",
        "The shape may be right, but a head holds pieces of different tokens; or heads attend to heads.",
        "Number the entries 0, 1, 2, ... and print head 0.",
        (
            {"split": _reshaped(straight=True)},
            {"split": _reshaped(straight=False)},
            {"split": _reshaped(straight=False), "merge": lambda s: _flatten_last},
            {"split": _reshaped(straight=True), "merge": lambda s: _merge_straight},
        ),
    ),
    Mistake(
        "heads_interleaved",
        "Deals the features out like cards: head i takes every h-th one.",
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
        "Averages the heads, where they should stand side by side.",
        "What one head found is blurred by the others; W_O can no longer tell them apart.",
        "How many features has the merged row, and how many has one head?",
        (
            {
                "merge": lambda s: lambda x: x.mean(axis=-3),
                "output": lambda s: np.tile(_average(s), s.num_heads) @ s.W_O,
            },
            {"output": _average},
            {"output": lambda s: _average(s) @ s.W_O[: s.context.shape[-1]]},
        ),
    ),
    # --- projections
    Mistake(
        "no_output_projection",
        "The merged heads are returned without W_O.",
        "The heads' features never mix.",
        "Which of the four matrices does your output not depend on?",
        ({"output": lambda s: s.merge(s.context)},),
    ),
    Mistake(
        "projections_unused",
        "Attends with the inputs themselves; the projections are never applied.",
        "In self-attention the scores are symmetric, and W_Q, W_K, W_V never get a gradient.",
        "Set W_Q to zero. Does your output change?",
        (
            {
                "q": lambda s: s.split(s.query),
                "k": lambda s: s.split(s.key),
                "v": lambda s: s.split(s.value),
            },
        ),
    ),
    Mistake(
        "projections_shared",
        "One projection does the work of several.",
        "Queries equal keys, or every head sees the same: parameters that should differ do not.",
        "Count: how many different matrices does your output depend on?",
        (
            {"k": lambda s: s.split(s.key @ s.W_Q)},
            {"k": lambda s: s.split(s.key @ s.W_Q), "v": lambda s: s.split(s.value @ s.W_Q)},
            {"v": lambda s: s.split(s.value @ s.W_K)},
            {
                "q": _first_head_columns("query", "W_Q"),
                "k": _first_head_columns("key", "W_K"),
                "v": _first_head_columns("value", "W_V"),
            },
        ),
    ),
    Mistake(
        "context_ignored",
        "Keys and values come from the same sequence as the queries: this is self-attention.",
        "The other sequence can be replaced by anything; the output does not change.",
        "Which of your arrays depend on the second argument?",
        (
            {"k": lambda s: s.split(s.query @ s.W_K), "v": lambda s: s.split(s.query @ s.W_V)},
            {"k": lambda s: s.split(s.query @ s.W_K)},
            {"v": lambda s: s.split(s.query @ s.W_V)},
        ),
    ),
    # --- arrays
    Mistake(
        "wrong_batch_axis",
        "Counts axes from the front, so that a batch axis shifts them.",
        "Right for one sequence; with a batch an error, or wrong numbers if the axes happen to be equally long.",
        "Which axes stay where they are, whatever comes before them? Count from the other end.",
        (
            {"scores": lambda s: s.q @ s.k.T},
            scaled_by(lambda s: s.q.shape[1] ** -0.5),
            weights_by(lambda x, axis: softmax(x, 1) if axis == -1 else softmax(x, axis)),
            {"split": lambda s: lambda x: np.swapaxes(x.reshape(*x.shape[:-1], s.num_heads, -1), 0, 1)},
            {"merge": lambda s: lambda x: _flatten_last(np.swapaxes(x, 0, 1))},
            masked_by(lambda s: np.where(s.mask if s.mask.ndim < 4 else s.mask[:, 0], s.scaled, -np.inf)),
        ),
    ),
    Mistake(
        "mutates_input",
        "Writes into the arrays it was given.",
        "The result is right, and the caller's data are spoiled: the same cell run twice gives two answers.",
        "Look for +=, -=, *=, /= and for [...] = on the left of an argument.",
        ({"finish": _overwriting},),
    ),
    Mistake(
        "returns_float16",
        "Returns half precision.",
        "Three digits are left, and numbers above 65504 become inf.",
        "Print the dtype of what you return.",
        ({"finish": lambda s: lambda y: y if y.dtype == bool else y.astype(np.float16)},),
    ),
    # --- variance
    Mistake(
        "std_instead_of_variance",
        "Gives the standard deviation.",
        "Grows with sqrt(d_k), where the variance grows with d_k.",
        "How does the result change if all numbers are doubled?",
        ({"variance": lambda s: np.std(s.raw_scores)},),
    ),
    Mistake(
        "variance_per_query",
        "Gives one variance per query.",
        "An array, where one number for all scores is asked for.",
        "Along which axes do you average?",
        ({"variance": lambda s: np.var(s.raw_scores, axis=-1)}, {"variance": lambda s: np.var(s.raw_scores, axis=0)}),
    ),
    # --- entropy
    Mistake(
        "zero_times_log_zero",
        "Takes the logarithm of 0.",
        "A row with a weight of exactly 0 gives NaN: 0 times -inf.",
        "What does your code do with [0.5, 0.5, 0]?",
        (_entropy_by(lambda w: -(w * _log(w)).sum(axis=-1)),),
    ),
    Mistake(
        "log2_instead_of_ln",
        "Takes the logarithm to base 2.",
        "Bits, not nats: every entropy is 1.44 times as large.",
        "What should the entropy of ten equal weights be?",
        (_entropy_by(lambda w: _surprise(w, log=np.log2)), _entropy_by(lambda w: -(w * np.log2(w)).sum(axis=-1))),
    ),
    Mistake(
        "minus_forgotten",
        "Leaves out the minus sign.",
        "Negative entropies: the logarithm of a number below 1 is negative.",
        "Which sign has ln 0.5?",
        (_entropy_by(lambda w: -_surprise(w)), _entropy_by(lambda w: (w * _log(w)).sum(axis=-1))),
    ),
    Mistake(
        "entropy_over_queries",
        "Sums over the wrong axis, or over all of them.",
        "An entropy belongs to one query: its weights are one row.",
        "Along which axis do the weights sum to 1?",
        (
            _entropy_by(lambda w: _surprise(w, axis=-2)),
            _entropy_by(lambda w: _surprise(w, axis=None)),
            _entropy_by(lambda w: _surprise(w, axis=1)),
            _entropy_by(lambda w: _surprise(w).mean()),
        ),
    ),
    # --- numbers by formula
    Mistake(
        "variance_instead_of_std",
        "Gives the variance, not its root.",
        "The variance is d_k; a typical score is as large as its root.",
        "How do you get from a variance to a typical size?",
    ),
    Mistake(
        "unit_variance_assumed",
        "Takes entries of variance 1; these have another.",
        "sqrt(d_k) makes the scores too flat here.",
        "What is the variance of one product of two such entries?",
    ),
    Mistake(
        "one_factor_counted",
        "Takes the variance of one factor, where a product of two has the product of both variances.",
        "Halfway between no correction and the right one.",
        "A score multiplies two entries. Both are smaller than you may think.",
    ),
    Mistake(
        "scale_by_num_heads",
        "Uses the number of heads for the scale.",
        "The scores of one head do not add up more terms when other heads stand beside it.",
        "How many numbers are added up in one dot product of one head?",
    ),
    Mistake(
        "root_forgotten",
        "Leaves out the root.",
        "A variance where a standard deviation, or a divisor of scores, is asked for.",
        "Scores divided by c have a variance divided by c times c.",
    ),
    Mistake(
        "xavier_assumed",
        "Gives the start of Xavier, which nn.Linear does not use.",
        "Measure: nn.Linear(768, 64).weight.std().",
        "Section 2 prints three formulas. Which of them was measured?",
    ),
    Mistake(
        "kaiming_assumed",
        "Gives Kaiming's start with the gain for ReLU.",
        "nn.Linear calls Kaiming's function with another, unusual gain. Measure: nn.Linear(768, 64).weight.std().",
        "Section 2 prints three formulas. Which of them was measured?",
    ),
    Mistake(
        "bound_instead_of_std",
        "Gives the bound of the uniform draw.",
        "Uniform numbers in -b .. b have the standard deviation b / sqrt(3).",
        "How far from 0 is a typical number, if all in -b .. b are equally likely?",
    ),
    Mistake(
        "square_matrices_assumed",
        "Counts square matrices, d_in times d_in.",
        "A head of the original Transformer maps 512 features to 64, not to 512.",
        "Which shape has W_Q of one head?",
    ),
    Mistake(
        "one_matrix_counted",
        "Counts one matrix.",
        "A head has one matrix each for queries, keys and values.",
        "How many projections has a head?",
    ),
    # --- numbers by hand
    Mistake(
        "counted_from_zero",
        "The row of another token than the one asked for.",
        "Token 2 of the text is row 1 in NumPy.",
        "The exercises count tokens from 1, NumPy counts from 0.",
    ),
    Mistake(
        "wrong_projection",
        "The right token, multiplied by another W.",
        "A query where a key is asked for, or the other way round.",
        "Which of W_Q, W_K and W_V makes this vector?",
    ),
    Mistake(
        "column_instead_of_row",
        "A column, where a row is asked for.",
        "One feature of all tokens, where all features of one token belong.",
        "One row is one token.",
    ),
    Mistake(
        "rounded_weights",
        "The weights were rounded before they were used.",
        "Rounding [0.063, 0.468, 0.468] to [0, 0.5, 0.5] moves the output by up to 0.3.",
        "Keep at least four digits until the end.",
    ),
)
