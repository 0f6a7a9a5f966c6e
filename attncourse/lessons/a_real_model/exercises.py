"""The exercises of A real model, and the inputs on which they are tried."""

import numpy as np

from attnlib.core import softmax

from ...engine.compare import RIGHT
from ...engine.exercise import Design, Function, Number, step_options
from ...engine.probes import Draw, Probe
from ...engine.run import Unfit
from .mistakes import LayerSteps


def _layers():
    draw = Draw("without_head")
    return (
        Probe("12 features, 3 heads, head 1", (draw(12, 12), 1, 3)),
        Probe("head 0 of 4", (draw(8, 8), 0, 4)),
        Probe("the last head of 5", (draw(10, 10), 4, 5)),
        Probe("64 features, 4 heads, head 1", (draw(64, 64), 1, 4)),  # 32 of them are neither none nor all
    )


WORDS, MATCH = 8, 10.0  # of the head that parks: words in its sentence, the score of one that matches


def _judge_parking(answer):
    """Judge a place to park: the score of [CLS] and the length of its value."""
    answer = np.asarray(answer, dtype=float)
    if answer.shape != (2,) or not np.isfinite(answer).all() or answer[1] < 0:
        raise Unfit(
            "Hand in two finite numbers, the score of [CLS] and the length of its value, which is not negative. "
            f"You hand in {answer.tolist()}. Fix: my_parking = [score, length]."
        )
    match, words, length = _weights_and_output(*answer)
    sentence = (  # digits cut off, not rounded: 0.8999 is less than 0.9
        f"Of your head: a match gets {np.floor(1e3 * match) / 1e3:.3f} of the weight. Without one the words keep "
        f"{words:.3f}, and the output is up to {length:.3f} long."
    )
    if match < 0.9:
        return "parking_drowns_the_match", sentence
    if length <= 0.1:
        return RIGHT, ""
    match, _, other = _weights_and_output(*answer[::-1])
    if answer[0] >= 0 and match >= 0.9 and other <= 0.1:
        return "score_and_length_exchanged", sentence
    if words > 0.1:
        return "no_room_to_park", sentence
    return ("words_add_too" if answer[1] <= 0.1 else "parked_on_a_long_value"), sentence


def _weights_and_output(score, length):
    """Return the weight of a match, and without one the weight of the words and the length of the output at most."""
    idle = softmax(np.array([score] + [0.0] * WORDS))  # nothing matches
    busy = softmax(np.array([score, MATCH] + [0.0] * (WORDS - 1)))
    return busy[1], idle[1:].sum(), idle[1:].sum() + idle[0] * length


EXERCISES = (
    Number(
        "divisor_repair",
        "the number by which W_Q and its bias are multiplied, so that a class that divides by sqrt(384) gives the "
        "weights of a model trained with sqrt(32)",
        (
            "What does the class compute from q.k, and what should it compute?",
            "c q.k / sqrt(384) = q.k / sqrt(32). Solve it for c.",
            "c = sqrt(384 / 32) = sqrt(12).",
        ),
        right=12**0.5,
        slips={
            "root_of_ratio_forgotten": [12.0],
            "repair_inverted": [12**-0.5],
            "inverse_of_the_ratio": [1 / 12],
            "repair_shared_with_keys": [12**0.25],
            "old_divisor_kept": [32**0.5],
            "scale_undone": [384**0.5, 384.0],
        },
    ),
    Function(
        "without_head",
        "without_head(W_O, head, num_heads) -> a copy of W_O (out, in), as nn.Linear stores it, with which this head "
        "adds nothing. Heads are counted from 0.",
        (
            "The input of W_O is the outputs of all heads, side by side. Which part comes from this head?",
            "In (out, in) an input is a column. Head h has columns h d_k to (h + 1) d_k - 1; d_k = d_model / heads.",
            "result = W_O.copy(); d_k = len(W_O) // num_heads; result[:, head * d_k : (head + 1) * d_k] = 0.",
        ),
        probes=_layers(),
        **step_options("without", "W_O head num_heads", of=LayerSteps),
    ),
    Design(
        "parking_place",
        "[score of [CLS], length of its value], so that the head adds nothing unless a word matches",
        (
            "Weights sum to 1. Where should they go when nothing matches, and what should be added from there?",
            "The words keep 8 / (8 + exp(score)) of the weight without a match. With one, the match has "
            "exp(10) / (exp(10) + 7 + exp(score)).",
            "The score must lie between 4.3 and 7.7. The value must be short, and 0 is always short enough.",
        ),
        judge=_judge_parking,
        names=(
            "no_room_to_park",
            "score_and_length_exchanged",
            "parked_on_a_long_value",
            "words_add_too",
            "parking_drowns_the_match",
        ),
    ),
)
