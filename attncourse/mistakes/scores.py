"""Mistakes in the scores and in their scale."""

from copy import copy

import numpy as np

from attnlib.core import softmax

from ..engine.steps import swap
from .mistake import Mistake, scaled_behind_a_mask_by, scaled_by


def _first_axis(s, x):
    """Return the length of axis 0; with heads that of the last axis, as is right, or it would be their number."""
    return x.shape[0 if s.num_heads is None else -1]


def _exchanged(s):
    """Compute the scores of the exercise with queries and keys in each other's place."""
    other = copy(s)
    other.q, other.k = s.k, s.q
    return type(s).__mro__[1].scores.func(other)


SHARED = (
    # --- scores
    Mistake("swapped_query_key").as_if(
        "queries and keys have changed places",
        "With n_q = n_k everything runs: row i holds what the others ask of token i, not what token i asks.",
        "Which of the two arrays gives the rows of the score matrix?",
        "Row i of the scores belongs to query i: the queries stand on the left of the product, the keys on the right.",
        {"scores": _exchanged},
        {"q": lambda s: s.split(s.key @ s.W_Q), "k": lambda s: s.split(s.query @ s.W_K)},
        {"q": lambda s: s.split(s.query @ s.W_K), "k": lambda s: s.split(s.key @ s.W_Q)},
    ),
    Mistake("swapped_key_value").as_if(
        "keys and values have changed places",
        "Queries are compared with the content, and what comes back are labels.",
        "Which array is compared with the queries, and which one is averaged?",
        "Queries meet the keys in the scores. The weights that come of it mix the values.",
        {"scores": lambda s: s.q @ swap(s.v), "output": lambda s: s.weights @ s.k},
        {"k": lambda s: s.split(s.key @ s.W_V), "v": lambda s: s.split(s.value @ s.W_K)},
        {"k": lambda s: s.split(s.value @ s.W_K), "v": lambda s: s.split(s.key @ s.W_V)},
    ),
    Mistake("swapped_query_value").as_if(
        "query and value have changed places, as in code that takes (values, keys, query)",
        "No error where the shapes agree; the output is that of another question.",
        "Compare the order of your arguments with the order in the exercise.",
        "The first array asks, the second is compared with it, the third is mixed.",
        {"scores": lambda s: s.v @ swap(s.k), "output": lambda s: s.weights @ s.q},
        {"q": lambda s: s.split(s.value @ s.W_Q), "v": lambda s: s.split(s.query @ s.W_V)},
        # A class that takes (values, keys=None, query=None): without the third both come from the first.
        {
            "q": lambda s: s.split((s.query if s.arguments[2] is None else s.value) @ s.W_Q),
            "v": lambda s: s.split(s.query @ s.W_V),
        },
    ),
    Mistake("untransposed_key").as_if(
        "it multiplies by the keys without transposing them",
        "An error in most shapes; if n_k = d_k it runs, and mixes features with positions.",
        "A score is the dot product of two rows. What does @ combine?",
        "@ combines rows on the left with columns on the right, so each key has to become a column.",
        {"scores": lambda s: s.q @ s.k},
        {"scores": lambda s: swap(s.q) @ s.k},
    ),
    Mistake("key_reshaped").as_if(
        "it reshapes the keys, where it should transpose them",
        "The shape is right, but a column then holds numbers of several keys.",
        "Print K, its transpose, and its reshape. In which of the last two is a key still together?",
        "In the transpose: each key becomes a column. A reshape keeps the order in memory and cuts the rows elsewhere.",
        {"scores": lambda s: s.q @ s.k.reshape(*s.k.shape[:-2], s.k.shape[-1], s.k.shape[-2])},
    ),
    Mistake("products_not_summed").as_if(
        "it multiplies query and key feature by feature and never adds the products up",
        "One number per feature where one number per pair of tokens belongs.",
        "A dot product has two parts: multiply, then ...?",
        "Add the products up over the features: the last axis disappears.",
        {"raw_scores": lambda s: s.q[..., :, None, :] * s.k[..., None, :, :]},
        {"scores": lambda s: s.q * s.k},
    ),
    Mistake("scaled_already").as_if(
        "it scales the scores, where the raw ones are asked for",
        "Scaled scores are smaller by the factor sqrt(d_k), and their weights are paler.",
        "Read the exercise again: which step of attention comes in a later exercise?",
        "Leave the division by sqrt(d_k) out for now.",
        {"raw_scores": lambda s: s.scaled_scores},
    ),
    # --- scale
    Mistake("no_scale").as_if(
        "the scores are never scaled",
        "The weights are too sharp, and the more so the larger d_k is.",
        "What does the formula divide the scores by?",
        "Divide every score by the square root of d_k, the length of one query, before the softmax.",
        scaled_by(lambda s: 1),
    ),
    Mistake("no_scale_with_mask").as_if(
        "the scores are scaled without a mask, and not scaled with one",
        "Without a mask every number is right. Behind one the weights are too sharp.",
        "Compare the two branches of your function. Which step does only one of them have?",
        "Divide the scores by the square root of d_k in the branch with a mask, too, before the mask comes.",
        scaled_behind_a_mask_by(lambda s: 1),
    ),
    Mistake("scale_by_d_k").as_if(
        "the scores are divided by d_k itself",
        "The weights are paler than the formula has them. With random vectors large d_k makes a plain average of "
        "attention; weights that were trained with this divisor make up for it.",
        "What would you divide by if d_k were 100? What does the formula say?",
        "Take the square root of d_k, the length of one query.",
        scaled_by(lambda s: 1 / s.q.shape[-1]),
        scaled_behind_a_mask_by(lambda s: 1 / s.q.shape[-1]),
    ),
    Mistake("half_for_root").as_if(
        "the scores are divided by d_k and by 2, or by half of d_k",
        "In Python the power comes first: d_k**1/2 is d_k / 2, and s / d_k**1/2 is s / d_k / 2.",
        "What does Python give for 100**1/2, and what is the root of 100?",
        "50.0, and 10. np.sqrt(d_k), d_k**0.5 and d_k**(1/2) are the root.",
        scaled_by(lambda s: 2 / s.q.shape[-1]),
        scaled_by(lambda s: 1 / (2 * s.q.shape[-1])),
    ),
    Mistake("scale_by_d_v").as_if(
        "the scale is taken from the width of the values",
        "Invisible where d_v = d_k, wrong everywhere else.",
        "Which two arrays enter the dot product? Only their width matters.",
        "Queries and keys enter it, values do not: take the length of one query.",
        scaled_by(lambda s: s.v.shape[-1] ** -0.5),
        scaled_behind_a_mask_by(lambda s: s.v.shape[-1] ** -0.5),
        scaled_by(lambda s: 1 / s.v.shape[-1]),
    ),
    Mistake("scale_by_n").as_if(
        "the scale is taken from the number of tokens",
        "The same two tokens score differently in a longer sequence.",
        "How many numbers are added up in one dot product?",
        "As many as a query has features, however many tokens there are: take its last axis.",
        scaled_by(lambda s: s.k.shape[-2] ** -0.5),
        scaled_by(lambda s: 1 / s.k.shape[-2]),
        scaled_by(lambda s: s.q.shape[-2] ** -0.5),
        scaled_by(lambda s: 1 / s.q.shape[-2]),
    ),
    Mistake("scale_by_embed_dim").as_if(
        "the scale is taken from the width of the tokens, not of the vectors that the dot product multiplies",
        "The weights are too pale where a head is narrower than the tokens; invisible where both are equally wide.",
        "The dot product is taken after projecting (and splitting into heads). How long are the vectors then?",
        "Take the last axis of the query as it is when the dot product is computed.",
        scaled_by(lambda s: s.query.shape[-1] ** -0.5),
        scaled_by(lambda s: 1 / s.query.shape[-1]),
        scaled_by(lambda s: s.key.shape[-1] ** -0.5),
    ),
    Mistake("scale_by_first_axis").as_if(
        "the scale is taken from an axis that is counted from the front",
        "Of (tokens, d_k) axis 1 is d_k and axis 0 the number of tokens; with a batch or with heads neither is d_k.",
        "Print query.shape and the number you divide by, once with a batch and once without.",
        "The length of one query is always the last axis: shape[-1].",
        scaled_by(lambda s: s.q.shape[1] ** -0.5),
        scaled_by(lambda s: 1 / s.q.shape[1]),
        scaled_by(lambda s: s.k.shape[1] ** -0.5),
        scaled_by(lambda s: _first_axis(s, s.q) ** -0.5),
        scaled_by(lambda s: _first_axis(s, s.k) ** -0.5),
    ),
    Mistake("multiply_by_sqrt_d_k").as_if(
        "the scores are multiplied by sqrt(d_k)",
        "The weights are almost 0 or 1.",
        "Should scaling make the scores larger or smaller?",
        "Smaller: divide by the root, where you multiply by it.",
        scaled_by(lambda s: s.q.shape[-1] ** 0.5),
    ),
    Mistake("scale_after_softmax").as_if(
        "it scales after the softmax",
        "The weights of a query no longer sum to 1, and they are as sharp as without any scale.",
        "Sum one row of your weights.",
        "Divide the scores, and take the softmax of what comes out.",
        {"scaled_scores": lambda s: s.scores, "weights": lambda s: softmax(s.masked_scores) / np.sqrt(s.q.shape[-1])},
        {"scaled_scores": lambda s: s.scores, "output": lambda s: s.weights @ s.v / np.sqrt(s.q.shape[-1])},
    ),
    Mistake("another_scale").as_if(
        "the scores are multiplied by another number than 1 / sqrt(d_k)",
        "Too large a number makes the weights too sharp, too small a one too pale.",
        "What do you divide the scores by, and where does that number come from?",
        "Divide by the square root of the length of one query, once, before the softmax.",
    ),
    Mistake("root_forgotten").as_if(
        "the root was left out",
        "That gives a variance, where a standard deviation, or a divisor of scores, is asked for.",
        "Scores divided by c have a variance divided by c times c.",
        "So divide by the root of the variance, which is the standard deviation.",
    ),
)
