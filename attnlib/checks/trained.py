"""Exercises of notebook 08: what training can reach without order, which head does induction, why one layer fails."""

import numpy as np

from .by_hand import number
from .calling import Unfit
from .exercise import Exercise, Judged
from .pipeline import copy_of_last
from .probes import heads_to_rank, sequences_to_fool


def _largest(scores, weights, tokens):
    """Return the number of the head with the largest measure."""
    scores, h = np.asarray(scores), weights.shape[1]
    if scores.shape != (h,):
        raise Unfit(
            f"Your measure must return one number for each of the {h} heads, shape ({h},); you return shape "
            f"{scores.shape}. Fix: sum over the keys, then take the mean over batch and queries, .mean((0, -1))."
        )
    if np.isnan(scores).any():
        raise Unfit(
            "Your measure must be a number for every head; it is NaN for some. Fix: where a query has no earlier copy "
            "of its letter, count 0 or leave it out; do not divide by 0."
        )
    return int(scores.argmax())


_NOT_FOOLED = ("", "letters differ", "last letter differs", "right answer is the same")


def _fools(other, tokens):
    """Return what is wrong with a sequence that should fool one layer: 0 for nothing, else a place of _NOT_FOOLED."""
    other = np.asarray(other)
    if other.shape != tokens.shape:
        raise Unfit(
            f"Your function must return a sequence of the length it was given, shape {tokens.shape}; you return shape "
            f"{other.shape}. Fix: work on tokens.copy()."
        )
    if sorted(other.tolist()) != sorted(tokens.tolist()):
        return 1
    if other[-1] != tokens[-1]:
        return 2
    return 0 if other[copy_of_last(other) + 1] != tokens[copy_of_last(tokens) + 1] else 3


def trained():
    """Return the exercises about trained heads."""
    return (
        number(
            "bag_accuracy",
            "the best accuracy without positions for 4 places and 2 equally frequent tokens",
            3 / 4,
            {
                "chance_assumed": [1 / 2],
                "order_assumed": [1.0],
                "own_token_forgotten": [11 / 16],
                "likeliest_bag_only": [2 / 3],
                "bags_weighted_alike": [(1 + 2 / 3 + 2 / 3 + 1) / 4, (1 + 3 / 4 + 1 / 2 + 3 / 4 + 1) / 5],
            },
            (
                "A place knows its own token and which tokens there are. Which of these can the answer be?",
                "The answer is one of the other three, each as likely as the next: guess their more frequent token.",
                "The other three split 3 : 0 in 2 of 8 cases, 2 : 1 in 6 of 8. How often is the guess right in each?",
                "2/8 of the cases give accuracy 1, 6/8 give 2/3. Add up.",
            ),
        ),
        Exercise(
            "induction_measure",
            "induction_measure(weights, tokens) -> (h,), one number per head, largest for the induction head. weights "
            "is (b, h, n_q, n_k), tokens (b, n). Any measure will do: the check ranks heads of known habits with it.",
            (
                "Which keys hold the letter of the query? tokens[:, :, None] == tokens[:, None, :] is (b, n_q, n_k).",
                "The induction head looks one place behind such a key: move that map one column to the right.",
                "With that map, (b, n_q, n_k), as cells[:, None]: (weights * cells[:, None]).sum(-1).mean((0, -1)).",
            ),
            heads_to_rank(),
            lambda weights, tokens: {"weights": weights, "tokens": tokens},
            lambda s: s.head_scores,
            judged=Judged(_largest, lambda yours, right: f"Largest for head {yours}; the induction head is {right}."),
        ),
        Exercise(
            "fool_one_layer",
            "fool_one_layer(tokens) -> (n,), other tokens that one attention layer without positions cannot tell from "
            "these at the last place, though another next letter is right. The last letter of tokens (n,) stood there "
            "once before; all others stand there once.",
            (
                "At the last place one layer computes a weighted mean over keys. When do two sequences give the same?",
                "A sum does not change if its terms change places. So keep the letters, and keep the last one last.",
                "Swap the letter that follows the earlier copy of the last one with any other letter before the end.",
            ),
            sequences_to_fool(),
            lambda tokens: {"tokens": tokens},
            lambda s: s.fooling,
            judged=Judged(_fools, lambda yours, right: f"Of both sequences: the {_NOT_FOOLED[int(yours)]}."),
        ),
    )
