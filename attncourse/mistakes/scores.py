"""Mistakes in the scores and in their scale."""

from copy import copy

import numpy as np

from attnlib.core import softmax

from ..engine.steps import swap
from .mistake import Mistake, scaled_behind_a_mask_by, scaled_by


def _first_axis(s, x):
    """Return the length of axis 0; with heads that of the last axis, as is right, or it would be their number."""
    return x.shape[0 if s.num_heads is None else -1]


def _swap_query_and_key(s):
    """Compute the scores of the exercise with queries and keys in each other's place."""
    other = copy(s)
    other.q, other.k = s.k, s.q
    return type(s).__mro__[1].scores.func(other)


SHARED = (
    # --- scores
    Mistake(
        "swapped_query_key",
        behaves_as_if="queries and keys have changed places",
        symptom="With n_q = n_k everything runs: row i holds what the others ask of token i, not what token i asks.",
        hint="Which of the two arrays gives the rows of the score matrix?",
        then="Row i of the scores belongs to query i: the queries stand on the left of the product, the keys on the "
        "right.",
        variants=(
            {"scores": _swap_query_and_key},
            {"q": lambda s: s.split(s.key @ s.W_Q), "k": lambda s: s.split(s.query @ s.W_K)},
            {"q": lambda s: s.split(s.query @ s.W_K), "k": lambda s: s.split(s.key @ s.W_Q)},
        ),
    ),
    Mistake(
        "swapped_key_value",
        behaves_as_if="keys and values have changed places",
        symptom="Queries are compared with the content, and what comes back are labels.",
        hint="Which array is compared with the queries, and which one is averaged?",
        then="Queries meet the keys in the scores. The weights that come of it mix the values.",
        variants=(
            {"scores": lambda s: s.q @ swap(s.v), "output": lambda s: s.weights @ s.k},
            {"k": lambda s: s.split(s.key @ s.W_V), "v": lambda s: s.split(s.value @ s.W_K)},
            {"k": lambda s: s.split(s.value @ s.W_K), "v": lambda s: s.split(s.key @ s.W_V)},
        ),
    ),
    Mistake(
        "swapped_query_value",
        behaves_as_if="query and value have changed places, as in code that takes (values, keys, query)",
        symptom="No error where the shapes agree; the output is that of another question.",
        hint="Compare the order of your arguments with the order in the exercise.",
        then="The first array asks, the second is compared with it, the third is mixed.",
        variants=(
            {"scores": lambda s: s.v @ swap(s.k), "output": lambda s: s.weights @ s.q},
            {"q": lambda s: s.split(s.value @ s.W_Q), "v": lambda s: s.split(s.query @ s.W_V)},
            # A class that takes (values, keys=None, query=None): without the third both come from the first.
            {
                "q": lambda s: s.split((s.query if s.arguments[2] is None else s.value) @ s.W_Q),
                "v": lambda s: s.split(s.query @ s.W_V),
            },
        ),
    ),
    Mistake(
        "untransposed_key",
        behaves_as_if="it multiplies by the keys without transposing them",
        symptom="An error in most shapes; if n_k = d_k it runs, and mixes features with positions.",
        hint="A score is the dot product of two rows. What does @ combine?",
        then="@ combines rows on the left with columns on the right, so each key has to become a column.",
        variants=({"scores": lambda s: s.q @ s.k}, {"scores": lambda s: swap(s.q) @ s.k}),
    ),
    Mistake(
        "key_reshaped",
        behaves_as_if="it reshapes the keys, where it should transpose them",
        symptom="The shape is right, but a column then holds numbers of several keys.",
        hint="Print K, its transpose, and its reshape. In which of the last two is a key still together?",
        then="In the transpose: each key becomes a column. A reshape keeps the order in memory and cuts the rows "
        "elsewhere.",
        variants=({"scores": lambda s: s.q @ s.k.reshape(*s.k.shape[:-2], s.k.shape[-1], s.k.shape[-2])},),
    ),
    Mistake(
        "products_not_summed",
        behaves_as_if="it multiplies query and key feature by feature and never adds the products up",
        symptom="One number per feature where one number per pair of tokens belongs.",
        hint="A dot product has two parts: multiply, then ...?",
        then="Add the products up over the features: the last axis disappears.",
        variants=(
            {"raw_scores": lambda s: s.q[..., :, None, :] * s.k[..., None, :, :]},
            {"scores": lambda s: s.q * s.k},
        ),
    ),
    Mistake(
        "scaled_already",
        behaves_as_if="it scales the scores, where the raw ones are asked for",
        symptom="Scaled scores are smaller by the factor sqrt(d_k), and their weights are paler.",
        hint="Read the exercise again: which step of attention comes in a later exercise?",
        then="Leave the division by sqrt(d_k) out for now.",
        variants=({"raw_scores": lambda s: s.scaled_scores},),
    ),
    # --- scale
    Mistake(
        "no_scale",
        behaves_as_if="the scores are never scaled",
        symptom="The weights are too sharp, and the more so the larger d_k is.",
        hint="What does the formula divide the scores by?",
        then="Divide every score by the square root of d_k, the length of one query, before the softmax.",
        variants=(scaled_by(lambda s: 1),),
    ),
    Mistake(
        "no_scale_with_mask",
        behaves_as_if="the scores are scaled without a mask, and not scaled with one",
        symptom="Without a mask every number is right. Behind one the weights are too sharp.",
        hint="Compare the two branches of your function. Which step does only one of them have?",
        then="Divide the scores by the square root of d_k in the branch with a mask, too, before the mask comes.",
        variants=(scaled_behind_a_mask_by(lambda s: 1),),
    ),
    Mistake(
        "scale_by_d_k",
        behaves_as_if="the scores are divided by d_k itself",
        symptom="The weights are too pale, and the more so the larger d_k is.",
        hint="What would you divide by if d_k were 100? What does the formula say?",
        then="Take the square root of d_k, the length of one query.",
        variants=(scaled_by(lambda s: 1 / s.q.shape[-1]), scaled_behind_a_mask_by(lambda s: 1 / s.q.shape[-1])),
    ),
    Mistake(
        "half_for_root",
        behaves_as_if="the scores are divided by d_k and by 2, or by half of d_k",
        symptom="In Python the power comes first: d_k**1/2 is d_k / 2, and s / d_k**1/2 is s / d_k / 2.",
        hint="What does Python give for 100**1/2, and what is the root of 100?",
        then="50.0, and 10. np.sqrt(d_k), d_k**0.5 and d_k**(1/2) are the root.",
        variants=(scaled_by(lambda s: 2 / s.q.shape[-1]), scaled_by(lambda s: 1 / (2 * s.q.shape[-1]))),
    ),
    Mistake(
        "scale_by_d_v",
        behaves_as_if="the scale is taken from the width of the values",
        symptom="Invisible where d_v = d_k, wrong everywhere else.",
        hint="Which two arrays enter the dot product? Only their width matters.",
        then="Queries and keys enter it, values do not: take the length of one query.",
        variants=(
            scaled_by(lambda s: s.v.shape[-1] ** -0.5),
            scaled_behind_a_mask_by(lambda s: s.v.shape[-1] ** -0.5),
            scaled_by(lambda s: 1 / s.v.shape[-1]),
        ),
    ),
    Mistake(
        "scale_by_n",
        behaves_as_if="the scale is taken from the number of tokens",
        symptom="The same two tokens score differently in a longer sequence.",
        hint="How many numbers are added up in one dot product?",
        then="As many as a query has features, however many tokens there are: take its last axis.",
        variants=(
            scaled_by(lambda s: s.k.shape[-2] ** -0.5),
            scaled_by(lambda s: 1 / s.k.shape[-2]),
            scaled_by(lambda s: s.q.shape[-2] ** -0.5),
            scaled_by(lambda s: 1 / s.q.shape[-2]),
        ),
    ),
    Mistake(
        "scale_by_embed_dim",
        behaves_as_if="the scale is taken from the width of the tokens, not of the vectors that the dot product "
        "multiplies",
        symptom="The weights are too pale where a head is narrower than the tokens; invisible where both are equally "
        "wide.",
        hint="The dot product is taken after projecting (and splitting into heads). How long are the vectors then?",
        then="Take the last axis of the query as it is when the dot product is computed.",
        variants=(
            scaled_by(lambda s: s.query.shape[-1] ** -0.5),
            scaled_by(lambda s: 1 / s.query.shape[-1]),
            scaled_by(lambda s: s.key.shape[-1] ** -0.5),
        ),
    ),
    Mistake(
        "scale_by_first_axis",
        behaves_as_if="the scale is taken from an axis that is counted from the front",
        symptom="Of (tokens, d_k) axis 1 is d_k and axis 0 the number of tokens; with a batch or with heads neither "
        "is d_k.",
        hint="Print query.shape and the number you divide by, once with a batch and once without.",
        then="The length of one query is always the last axis: shape[-1].",
        variants=(
            scaled_by(lambda s: s.q.shape[1] ** -0.5),
            scaled_by(lambda s: 1 / s.q.shape[1]),
            scaled_by(lambda s: s.k.shape[1] ** -0.5),
            scaled_by(lambda s: _first_axis(s, s.q) ** -0.5),
            scaled_by(lambda s: _first_axis(s, s.k) ** -0.5),
        ),
    ),
    Mistake(
        "multiply_by_sqrt_d_k",
        behaves_as_if="the scores are multiplied by sqrt(d_k)",
        symptom="The weights are almost 0 or 1.",
        hint="Should scaling make the scores larger or smaller?",
        then="Smaller: divide by the root, where you multiply by it.",
        variants=(scaled_by(lambda s: s.q.shape[-1] ** 0.5),),
    ),
    Mistake(
        "scale_after_softmax",
        behaves_as_if="it scales after the softmax",
        symptom="The weights of a query no longer sum to 1, and they are as sharp as without any scale.",
        hint="Sum one row of your weights.",
        then="Divide the scores, and take the softmax of what comes out.",
        variants=(
            {
                "scaled_scores": lambda s: s.scores,
                "weights": lambda s: softmax(s.masked_scores) / np.sqrt(s.q.shape[-1]),
            },
            {"scaled_scores": lambda s: s.scores, "output": lambda s: s.weights @ s.v / np.sqrt(s.q.shape[-1])},
        ),
    ),
    Mistake(
        "another_scale",
        behaves_as_if="the scores are multiplied by another number than 1 / sqrt(d_k)",
        symptom="Too large a number makes the weights too sharp, too small a one too pale.",
        hint="What do you divide the scores by, and where does that number come from?",
        then="Divide by the square root of the length of one query, once, before the softmax.",
    ),
    Mistake(
        "root_forgotten",
        behaves_as_if="the root was left out",
        symptom="That gives a variance, where a standard deviation, or a divisor of scores, is asked for.",
        hint="Scores divided by c have a variance divided by c times c.",
        then="So divide by the root of the variance, which is the standard deviation.",
    ),
)
