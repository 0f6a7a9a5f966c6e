"""Mistakes about single numbers: a variance, an entropy, a formula, arithmetic by hand."""

import numpy as np

from .mistake import Mistake


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


def _entropy_by(change):
    """Replace the entropy by `change(weights)`."""
    return {"entropy": lambda s: change(s.weights)}


def _surprise(w, axis=-1, log=np.log):
    return -(w * log(np.where(w > 0, w, 1))).sum(axis=axis)


MISTAKES = (
    # --- variance
    Mistake(
        "std_instead_of_variance",
        "it gives the standard deviation",
        "Grows with sqrt(d_k), where the variance grows with d_k.",
        "How does the result change if all numbers are doubled?",
        ({"variance": lambda s: np.std(s.raw_scores)},),
    ),
    Mistake(
        "variance_per_query",
        "it gives one variance per query",
        "An array, where one number for all scores is asked for.",
        "Along which axes do you average?",
        ({"variance": lambda s: np.var(s.raw_scores, axis=-1)}, {"variance": lambda s: np.var(s.raw_scores, axis=0)}),
    ),
    # --- entropy
    Mistake(
        "zero_times_log_zero",
        "it takes the logarithm of 0",
        "A row with a weight of exactly 0 gives NaN: 0 times -inf.",
        "What does your code do with [0.5, 0.5, 0]?",
        (_entropy_by(lambda w: -(w * _log(w)).sum(axis=-1)),),
    ),
    Mistake(
        "log2_instead_of_ln",
        "it takes the logarithm to base 2",
        "Bits, not nats: every entropy is 1.44 times as large.",
        "What should the entropy of ten equal weights be?",
        (_entropy_by(lambda w: _surprise(w, log=np.log2)), _entropy_by(lambda w: -(w * np.log2(w)).sum(axis=-1))),
    ),
    Mistake(
        "minus_forgotten",
        "it leaves out the minus sign",
        "Negative entropies: the logarithm of a number below 1 is negative.",
        "Which sign has ln 0.5?",
        (_entropy_by(lambda w: -_surprise(w)), _entropy_by(lambda w: (w * _log(w)).sum(axis=-1))),
    ),
    Mistake(
        "entropy_over_queries",
        "it sums over the wrong axis, or over all of them",
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
        "it is the variance, not its root",
        "The variance is d_k; a typical score is as large as its root.",
        "How do you get from a variance to a typical size?",
    ),
    Mistake(
        "unit_variance_assumed",
        "the entries had variance 1; these have another",
        "sqrt(d_k) makes the scores too flat here.",
        "What is the variance of one product of two such entries?",
    ),
    Mistake(
        "one_factor_counted",
        "the variance of one factor was taken, where a product of two has the product of both variances",
        "Halfway between no correction and the right one.",
        "A score multiplies two entries. Both are smaller than you may think.",
    ),
    Mistake(
        "scale_by_num_heads",
        "the scale is taken from the number of heads",
        "The scores of one head do not add up more terms when other heads stand beside it.",
        "How many numbers are added up in one dot product of one head?",
    ),
    Mistake(
        "root_forgotten",
        "the root was left out",
        "A variance where a standard deviation, or a divisor of scores, is asked for.",
        "Scores divided by c have a variance divided by c times c.",
    ),
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
    # --- numbers by hand
    Mistake(
        "counted_from_zero",
        "it belongs to the next token",
        "Token 2 of the text is row 1 in NumPy: x[1].",
        "The exercises count tokens from 1, NumPy counts from 0.",
    ),
    Mistake(
        "wrong_token",
        "it belongs to another token than the one asked for",
        "Every token has a query, a key and a value of its own.",
        "Which row of x is the token that is asked for?",
    ),
    Mistake(
        "wrong_projection",
        "the right token was multiplied by another W",
        "A query where a key is asked for, or the other way round.",
        "Which of W_Q, W_K and W_V makes this vector?",
    ),
    Mistake(
        "column_instead_of_row",
        "it is a column, where a row is asked for",
        "One feature of all tokens, where all features of one token belong.",
        "One row is one token.",
    ),
)
