"""The exercises of Train and look, and the inputs on which they are tried."""

import numpy as np

from attnlib.core import scaled_dot_product_attention

from ...engine.compare import RIGHT
from ...engine.exercise import TOKEN_AXES, Function, Number, step_options
from ...engine.probes import Draw, Probe
from ...engine.run import Unfit
from .known_heads import after_copy, heads_to_rank
from .mistakes import PARTS, HeadSteps, mean_on


def _layer_2():
    """Return a layer, (query, key, value) -> output, and vectors to hand it, three sequences of four tokens."""
    draw = Draw("patch")
    matrices = [draw.matrix(6, 6) for _ in PARTS]

    def layer(query, key, value):
        inputs = zip((query, key, value), matrices, strict=True)
        return scaled_dot_product_attention(*(np.asarray(x) @ W for x, W in inputs))

    return layer, draw(3, 4, 6), draw(3, 4, 6)


def vectors_to_patch():
    layer, x, written = _layer_2()
    return tuple(Probe(f"layer 1 kept from the {part}", (layer, x, written, part)) for part in PARTS)


def _judge_measure(scores, weights, tokens):
    """Judge a measure by the head for which it is largest."""
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
    yours, right = int(scores.argmax()), int(mean_on(weights, after_copy(tokens)).argmax())
    if yours == right:
        return RIGHT, ""
    return None, f"Largest at index {yours} of your result; the induction head is at index {right}."


EXERCISES = (
    Function(
        "patch",
        "patch(layer, x, written, part) -> (b, n, d). layer(query, key, value) is layer 2, x (b, n, d) what it "
        'receives, written (b, n, d) what layer 1 has added to it. part is "queries", "keys" or "values": this one '
        "without what layer 1 wrote, the other two as they are.",
        (
            "What would layer 2 have received if layer 1 had written nothing?",
            "`x - written`. The part that is named is made of that, the other two of x.",
            'With bare = x - written: for "keys" it is layer(x, bare, x).',
        ),
        probes=vectors_to_patch(),
        **step_options("patched", "layer x written part", of=HeadSteps, axes=TOKEN_AXES),
    ),
    Number(
        "bag_accuracy",
        "the best accuracy without positions for 4 tokens of 2 equally frequent kinds",
        (
            "A query knows its own token and which tokens there are. Which of these can the answer be?",
            "The answer is one of the other three, and each is equally likely: guess their more frequent token.",
            "The other three split 3 : 0 in 2 of 8 cases, 2 : 1 in 6 of 8. How often is the guess right in each?",
            "2/8 of the cases give accuracy 1, and 6/8 give 2/3. Add them up.",
        ),
        right=3 / 4,
        slips={
            "accuracy_in_per_cent": [75.0],
            "chance_assumed": [1 / 2],
            "digits_above_taken": [0.287],
            "order_assumed": [1.0],
            "own_token_forgotten": [11 / 16],
            "likeliest_bag_only": [2 / 3],
            "majority_as_coin_flip": [2 / 8 + 6 / 8 / 2],
            "bags_weighted_alike": [(1 + 2 / 3 + 2 / 3 + 1) / 4, (1 + 3 / 4 + 1 / 2 + 3 / 4 + 1) / 5],
        },
    ),
    Function(
        "induction_measure",
        "induction_measure(weights, tokens) -> (h,), one number per head, largest for the induction head. weights "
        "is (b, h, n_q, n_k), tokens (b, n). Any measure will do: the check ranks heads of known habits with it.",
        (
            "Which keys hold the letter of the query? tokens[:, :, None] == tokens[:, None, :] is (b, n_q, n_k).",
            "The induction head looks at the key just after such a key: move that map one column to the right.",
            "With that map, (b, n_q, n_k), as cells[:, None]: (weights * cells[:, None]).sum(-1).mean((0, -1)).",
        ),
        probes=heads_to_rank(),
        **step_options("head_scores", "weights tokens", of=HeadSteps),
        judge=_judge_measure,
    ),
)
