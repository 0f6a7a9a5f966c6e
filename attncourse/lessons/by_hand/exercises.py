"""The exercises of By hand, and the inputs on which they are tried."""

import math

import numpy as np

from attnlib.core import softmax
from attnlib.examples import SENTENCE, WORDS

from ...engine.exercise import Design, Number
from ...engine.steps import Steps, replace_steps
from .wishes import judge_wishes


def _steps(**given):
    """Return the steps of the sentence; `given` replaces some of them by functions of the steps."""
    return replace_steps(Steps, given)(q=q, k=k, v=v)


def _scaled_by(factor):
    return _steps(scaled_scores=lambda s: s.scores * factor)


q, k, v = SENTENCE.project()
anna, _, ben, she = range(4)
raw, scaled = _scaled_by(1), _steps()
exchanged = Steps(q=k, k=q, v=v)
exp = np.exp(raw.scores[she])
zeros_lost = [e * (raw.scores[she] != 0) for e in (exp, np.exp(scaled.scaled_scores[she]))]  # as if exp(0) were 0
d_in, d_v, n = SENTENCE.x.shape[1], v.shape[1], len(WORDS)

EXERCISES = (
    Number(
        "key_of_anna",
        "the key of Anna, token 0, as 3 numbers",
        (
            "A token times a matrix: multiply each feature by its row of the matrix, and add these rows up.",
            "Anna is x[0], because words are counted from 0. The matrix is W_K.",
            "Write vector_times_matrix(x[i], W_K) with the right i.",
        ),
        right=k[anna],
        slips={
            "wrong_projection": [q[anna], v[anna]],
            "feature_or_token": [k[ben], k[she]],  # only a name, only female: nobody can tell which it was
            "wrong_token": [k[1]],
            "column_instead_of_row": [k[:, 0], k[:, 1]],
            "turned_round": [k[anna][::-1]],
        },
    ),
    Number(
        "scores_of_she",
        "the raw scores of she against all 4 keys",
        (
            "Each score is a dot product: multiply feature by feature, then add.",
            "Take her query, Q[3], and go through the keys one by one.",
            "Write dot(Q[i], key) for each key in K, with the right i.",
        ),
        right=raw.scores[she],
        slips={
            "feature_or_column": [raw.scores[:, she]],  # nobody can tell which it was
            "counted_from_one": [raw.scores[ben]],
            "wrong_token": [raw.scores[0], raw.scores[1]],
            "scaled_already": [scaled.scaled_scores[she]],
            "scale_by_d_k": [raw.scores[she] / 3],
            "turned_round": [raw.scores[she, ::-1]],
            "feature_left_out": [q[she, 0] * k[:, 0]],
            "query_met_others": [q[she] @ q.T, k[she] @ k.T, SENTENCE.x[she] @ SENTENCE.x.T],
        },
    ),
    Number(
        "weights_of_she",
        "the attention weights of she (softmax of her raw scores, not scaled)",
        (
            "Take math.exp of each score.",
            "Add the four up, and divide each by that sum.",
            "exp(5) = 148.4132, exp(0) = 1, exp(3) = 20.0855 and exp(2) = 7.3891. Give three decimals.",
        ),
        right=raw.weights[she],
        slips={
            "swapped_query_key": [softmax(raw.scores[:, she])],
            "softmax_over_queries": [softmax(raw.scores, 0)[she], softmax(raw.scores, 0)[:, she]],
            "counted_from_one": [raw.weights[ben]],
            "wrong_token": [raw.weights[0], raw.weights[1]],
            "powers_of_two": [_scaled_by(math.log(2)).weights[she]],
            "exp_of_zero": [zeros_lost[0] / zeros_lost[0].sum()],
            "exp_not_divided": [exp],
            "divided_by_largest": [exp / exp.max(), raw.scores[she] / raw.scores[she].max()],
            "in_per_cent": [100 * raw.weights[she].round(digits) for digits in (9, 4, 3, 2)],
            "too_few_digits": [raw.weights[she].round(digits) for digits in (1, 2)],
            "scaled_already": [scaled.weights[she]],
            "no_softmax": [raw.scores[she]],
            "no_exponential": [raw.scores[she] / raw.scores[she].sum()],
            "softmax_over_everything": [exp / np.exp(raw.scores).sum()],
            "argmax_instead_of_softmax": [np.eye(n)[anna]],
            "turned_round": [raw.weights[she, ::-1]],
        },
    ),
    Number(
        "output_of_she",
        "the output of she with scaled scores, as 2 numbers",
        (
            "Divide her scores first.",
            "Here d_k = 3. Give the divided scores to softmax.",
            "weighted_sum(softmax(her four divided scores), V)",
        ),
        right=scaled.output[she],
        slips={
            "swapped_query_key": [exchanged.output[she]],
            "softmax_over_queries": [(softmax(s, 0) @ v)[she] for s in (scaled.scaled_scores, raw.scores)],
            "counted_from_one": [scaled.output[ben]],
            "wrong_token": [scaled.output[0], scaled.output[1]],
            "powers_of_two": [_scaled_by(math.log(2) / math.sqrt(3)).output[she]],
            "exp_of_zero": [zeros_lost[1] / zeros_lost[1].sum() @ v],
            "argmax_instead_of_softmax": [v[anna]],
            "no_scale": [raw.output[she]],
            "scale_by_d_k": [_scaled_by(1 / 3).output[she]],
            "half_for_root": [_scaled_by(f).output[she] for f in (2 / 3, 1 / 6)],
            "scale_by_embed_dim": [_scaled_by(f).output[she] for f in (d_in**-0.5, 1 / d_in)],
            "scale_by_d_v": [_scaled_by(d_v**-0.5).output[she]],  # d_v itself is the root of n here
            "scale_by_n": [_scaled_by(f).output[she] for f in (n**-0.5, 1 / n)],
            "multiply_by_sqrt_d_k": [_scaled_by(math.sqrt(3)).output[she]],
            "scale_after_softmax": [raw.output[she] / math.sqrt(3)],
            "rounded_weights": [scaled.weights[she].round(digits) @ v for digits in (1, 2)],
            "keys_for_values": [scaled.weights[she] @ k],
            "no_softmax": [s[she] @ v for s in (scaled.scaled_scores, raw.scores)],
            "no_exponential": [raw.scores[she] / raw.scores[she].sum() @ v],  # scaled ones give the same shares
            "weights_returned": [scaled.weights[she]],
            "turned_round": [scaled.output[she, ::-1]],
        },
    ),
    Design(
        "what_words_look_for",
        "W_Q, 6 rows of 3 numbers: she finds Anna, saw finds Ben, Anna and Ben find saw, each by 0.9 or more",
        (
            "Rows 0, 3 and 4 of W_Q are those of a name, a verb and a pronoun. Which key does each have to match?",
            "Columns are name, female and verb. Anna's key and Ben's differ in the middle one.",
            "A minus sign keeps a word away. How large must a score be to get 0.9 against three others?",
        ),
        judge=judge_wishes,
        names=(
            "looks_for_itself",
            "wish_too_faint",
            "any_name",
            "subject_for_object",
            "one_wish_for_all",
            "looks_for_nothing",
            "wish_turned_round",
        ),
    ),
)
