"""The numbers of notebook 01, worked out by hand and handed in as lists."""

import numpy as np

from ..examples import BY_HAND
from .exercise import Exercise
from .pipeline import Steps
from .probes import Probe


def number(name, task, right, slips, hints):
    """Return an exercise whose answer is a number or a vector; `slips` are wrong answers: id -> values."""
    return Exercise(
        name,
        task,
        hints,
        (Probe("your numbers", (), 1e-3),),  # by hand: four decimals are plenty
        dict,
        lambda s: right,
        adapt=lambda answer: lambda: answer,
        lists=True,
        slips=slips,
    )


def by_hand():
    """Return the exercises about numbers of the worked example."""
    q, k, v = BY_HAND.project()
    raw = Steps({"scaled": lambda s: s.scores}, q=q, k=k, v=v)
    scaled = Steps({}, q=q, k=k, v=v)
    rounded = [np.array([0, 0.5, 0.5]), *(raw.weights[0].round(n) for n in (1, 2))]  # 0.063 becomes 0, 0.1 or 0.06
    exp = np.exp(raw.scores[0])
    rows = "One row of x times a matrix: multiply each column of the matrix with the row and add up."
    dots = "Each entry is a dot product: multiply feature by feature, then add."
    mix = "The output is a weighted sum of the rows of V: weight 1 times row 1, plus ..."

    def vector(name, matrix, i, letter, *wrong):
        slips = {
            "wrong_projection": [w[i] for w in wrong],
            "counted_from_zero": list(matrix[i + 1 : i + 2]),
            "wrong_token": [*matrix[:i], *matrix[i + 2 :]],
            "column_instead_of_row": [matrix[:, i]],
        }
        return number(
            name,
            f"{letter} of token {i + 1} in the worked example, as 3 numbers",
            matrix[i],
            slips,
            (rows, f"You need row {i + 1} of x and W_{letter[0].upper()}.", "Write x[i] @ W with the right i and W."),
        )

    return (
        vector("q1", q, 0, "query", k, v),
        vector("k2", k, 1, "key", q, v),
        vector("v3", v, 2, "value", k, q),
        number(
            "scores_2",
            "the raw scores of query 2 against all 3 keys",
            raw.scores[1],
            {
                "counted_from_zero": [raw.scores[2]],
                "wrong_token": [raw.scores[0]],
                "scaled_already": [scaled.scaled[1]],
                "wrong_projection": [q[1] @ q.T, k[1] @ k.T, q[1] @ v.T],
                "untransposed_key": [q[1] @ k],
            },
            (dots, "Take query 2 and go through the keys one by one.", "Write Q[i] @ K.T with the right i."),
        ),
        number(
            "weights_1",
            "the attention weights of query 1 (softmax of its raw scores, not scaled)",
            raw.weights[0],
            {
                "counted_from_zero": [raw.weights[1]],
                "wrong_token": [raw.weights[2]],
                "exp_not_divided": [exp, exp / exp.max()],
                "rounded_weights": rounded,
                "scaled_already": [scaled.weights[0]],
                "no_softmax": [raw.scores[0]],
                "no_exponential": [raw.scores[0] / raw.scores[0].sum()],
                "softmax_over_everything": [np.exp(raw.scores[0]) / np.exp(raw.scores).sum()],
                "argmax_instead_of_softmax": [np.array([0.0, 1.0, 0.0])],
            },
            ("Take exp of each score.", "Divide each by the sum of the three.", "softmax([2, 4, 4]), four digits."),
        ),
        number(
            "output_1",
            "the output of query 1 (weights from raw scores, not scaled, not rounded)",
            raw.context[0],
            {
                "counted_from_zero": [raw.context[1]],
                "wrong_token": [raw.context[2]],
                "exp_not_divided": [exp @ v, exp / exp.max() @ v],
                "rounded_weights": [w @ v for w in rounded],
                "scaled_already": [scaled.context[0]],
                "no_softmax": [raw.scores[0] @ v],
                "weights_returned": [raw.weights[0]],
                "weights_transposed": [v @ raw.weights[0]],
                "keys_for_values": [raw.weights[0] @ k],
            },
            (mix, "Use the exact weights of weights_1.", "Write weights_1 @ V."),
        ),
        number(
            "scaled_output_1",
            "the output of query 1 with scaled scores",
            scaled.context[0],
            {
                "counted_from_zero": [scaled.context[1]],
                "wrong_token": [scaled.context[2]],
                "no_scale": [raw.context[0]],
                "scale_by_d_k": [Steps({"scaled": lambda s: s.scores / 3}, q=q, k=k, v=v).context[0]],
                "multiply_by_sqrt_d_k": [Steps({"scaled": lambda s: s.scores * 3**0.5}, q=q, k=k, v=v).context[0]],
                "scale_after_softmax": [raw.context[0] / 3**0.5],
                "rounded_weights": [scaled.weights[0].round(n) @ v for n in (1, 2)],
                "keys_for_values": [scaled.weights[0] @ k],
                "weights_returned": [scaled.weights[0]],
            },
            ("Scale the scores of query 1 first.", "Here d_k = 3.", "softmax([2, 4, 4] / sqrt(3)) @ V."),
        ),
    )
