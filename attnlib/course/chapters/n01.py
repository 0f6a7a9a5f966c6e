"""Notebook 01, by hand: its exercises, questions, and what only they need."""

import numpy as np

from ...core import softmax
from ...examples import BY_HAND
from ..engine.compare import RIGHT
from ..engine.exercise import Design, Number
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps, replaced
from ..mistakes.mistake import Mistake

OWN = (
    Mistake(
        "counted_from_zero",
        "it belongs to the next token",
        "Token 1 of the text has index 0 (x[0], scores[0]), token 2 has index 1.",
        "The exercises count tokens from 1, Python counts from 0.",
        "So token t has the index t - 1.",
    ),
    Mistake(
        "wrong_token",
        "it belongs to another token than the one asked for",
        "Every token has a query, a key and a value of its own.",
        "Which row of x is the token that is asked for?",
        "Token t is row t - 1, in x as in Q, K and V.",
    ),
    Mistake(
        "wrong_projection",
        "the right token was multiplied by another matrix",
        "W_Q gives its query and W_V its value; a key comes from W_K.",
        "Which of W_Q, W_K and W_V makes this vector?",
        "A key is asked for: take the matrix that has K in its name.",
    ),
    Mistake(
        "query_met_others",
        "other vectors met than the query and the keys",
        "A score compares what one token looks for with how another can be found: a row of Q with a row of K.",
        "Which two matrices do the two vectors of your dot product come from?",
        "The one vector is a row of Q, the others are all the rows of K.",
    ),
    Mistake(
        "factor_forgotten",
        "each 2 of the token had been taken for a 1",
        "In the dot product with a column, each entry of the column is multiplied by the feature of the token: "
        "2 * 1 + 2 * 1, not 1 + 1.",
        "By what is each entry of the column multiplied? Look at the 2s in x[1].",
        "By the token's own number at that place: write down each product, also those with 2, and add.",
    ),
    Mistake(
        "too_few_digits",
        "the weights were right, with too few digits",
        "Four decimals are asked for: what is rounded here is off in the output.",
        "Give four decimals.",
        "Do not round before the end: in Python round(weight, 4) comes last.",
    ),
    Mistake(
        "in_per_cent",
        "the weights were right, in per cent",
        "They sum to 100. Weights sum to 1.",
        "What is 47 per cent as a share of 1?",
        "Divide each number by 100.",
    ),
    Mistake(
        "divided_by_largest",
        "all were divided by the largest of them, not by the sum",
        "The largest weight is then 1, and the row sums to more.",
        "What do the weights of one query have to sum to?",
        "To 1. So divide by the sum of the three exponentials.",
    ),
    Mistake(
        "column_instead_of_row",
        "it is a column, where a row is asked for",
        "One feature of all tokens, where all features of one token belong.",
        "One row is one token.",
        "Take the whole row of the token that is asked for, as many numbers as there are columns.",
    ),
    Mistake(
        "looks_for_itself",
        "every word looked for what it is",
        "Then W_Q is W_K, and a word finds itself, as by likeness alone.",
        "What does a pronoun look for, if not for pronouns?",
        "A pronoun looks for a name: in row 3 the number belongs into the column in which names are found.",
    ),
    Mistake(
        "wish_too_faint",
        "every query pointed to the right word and was too short to take 0.9 from it",
        "Softmax sees scores divided by the root of 3: a score of 4 / 1.73 against two zeros is a weight of 0.83.",
        "Right direction. What would a query three times as long do to the scores?",
        "Three times as large scores. Make the numbers of W_Q larger until 0.9 is reached.",
    ),
    Mistake(
        "wish_and_feature_exchanged",
        "rows and columns were exchanged: a column says who looks, where a row should",
        "The row belongs to what a token is, the column to what it looks for.",
        "A name has only its first feature (and who): which row of W_Q does it pick?",
        "The first row. What stands there is what a name looks for.",
    ),
    Mistake(
        "one_wish_for_all",
        "everybody looked for a name, Anna too",
        "She is a name herself: who looks for a name finds her.",
        "What should the first row, that of a name, look for?",
        "For the verb: its number belongs into the second column.",
    ),
    Mistake(
        "only_pronouns_look",
        "only the pronoun preferred anybody, as in the text",
        "A query of zeros, or of three equal numbers, scores the same with every key, and shares out equally.",
        "Names and verbs look for something, too: rows 1 and 2.",
        "A verb looks for its name, so row 2 is like row 3. And a name looks for its verb.",
    ),
    Mistake(
        "name_looks_for_nothing",
        "the two others looked for a name, and the name for nothing",
        "A query of zeros scores the same with every key, so Anna takes from all alike.",
        "What does Anna need to know? Which row of W_Q becomes her query?",
        "She needs the verb. The first row becomes her query: put a number where verbs are found.",
    ),
    Mistake(
        "wish_turned_round",
        "every word preferred two words alike, which is what a wrong sign does",
        "A negative score is less than the 0 of the other keys: the right word gets least.",
        "What sign must a score have to beat two zeros?",
        "A positive one: take the minus away.",
    ),
)

# The sentence of the first design: Anna sleeps, she. Features: name, verb, pronoun, who.
_WORDS = ("Anna", "sleeps", "she")
_SENTENCE = np.array([[2.0, 0, 0, 5], [0, 2, 0, 0], [0, 0, 2, 0]])
_FOUND_AS = np.eye(4, 3)
_ENOUGH = 0.9
_WANTED = ("sleeps", "Anna", "Anna")  # by Anna, by sleeps and by her

# Whom Anna, sleeps and she prefer, and whether all of them by less than enough.
_NAMED = {
    ("Anna", "sleeps", "she", ""): "looks_for_itself",
    ("Anna", "sleeps", "she", "faint"): "looks_for_itself",
    ("sleeps", "Anna", "Anna", "faint"): "wish_too_faint",
    ("two", "Anna", "all", ""): "wish_and_feature_exchanged",
    ("Anna", "Anna", "Anna", ""): "one_wish_for_all",
    ("Anna", "Anna", "Anna", "faint"): "one_wish_for_all",
    ("all", "all", "Anna", ""): "only_pronouns_look",
    ("all", "all", "Anna", "faint"): "only_pronouns_look",
    ("all", "Anna", "Anna", ""): "name_looks_for_nothing",
    ("all", "Anna", "Anna", "faint"): "name_looks_for_nothing",
    ("two", "two", "two", ""): "wish_turned_round",
}


def _judge_wishes(W_Q):
    try:
        W_Q = np.asarray(W_Q, dtype=np.float64)
    except (TypeError, ValueError):
        W_Q = np.empty(0)
    if W_Q.shape != (4, 3) or not np.isfinite(W_Q).all():
        raise Unfit(
            "W_Q must be 4 rows of 3 finite numbers: a row for each feature of a token, a column for each of a query. "
            "Fix: [[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]] has the form."
        )
    found, without_who = (_found(_SENTENCE[:, :n] @ W_Q[:n]) for n in (4, 3))
    right = [(word, True) for word in _WANTED]
    if found == right:
        return RIGHT, ""
    if without_who == right:
        return None, "Rows 1 to 3 alone would be right. Row 4 goes into Anna's query as well, times 5."
    faint = {not enough for word, enough in found if word in _WORDS}
    mistake = _NAMED.get((*(word for word, _ in found), "faint" * (True in faint))) if len(faint) < 2 else None
    return mistake, " ".join(map(_whom_in_words, _WORDS, found, _WANTED))


def _found(queries):
    """Return for each query the word it prefers, "two" or "all" where it cannot choose, and whether by enough."""
    found = []
    for row in softmax(queries @ (_SENTENCE @ _FOUND_AS).T / 3**0.5):
        top = np.flatnonzero(row > row.max() - 1e-9)
        found.append(((_WORDS[top[0]], "two", "all")[len(top) - 1], bool(row[top[0]] >= _ENOUGH)))
    return found


def _whom_in_words(word, found, wanted):
    """Say what is wanted beside what was found; that a share is too small only where it is of the right word."""
    other, enough = found
    unsure = {"two": "cannot decide between two words", "all": "takes from all words alike"}
    told = f"{word} " + unsure.get(other, f"finds {other}" if enough else f"takes most from {other}")
    if other == wanted:
        return f"{told}." if enough else f"{told}, but less than {_ENOUGH}."
    return f"{told} (wanted: {wanted})."


def _unscaled(factor):
    """Return the steps of the worked example with scores times `factor`, not divided by sqrt(3)."""
    return replaced(Steps, {"scaled": lambda s: s.scores * factor})(q=q, k=k, v=v)


q, k, v = BY_HAND.project()
raw, scaled = _unscaled(1), Steps(q=q, k=k, v=v)
rounded = [np.array([0, 0.5, 0.5]), *(raw.weights[0].round(n) for n in (1, 2))]  # 0.063 becomes 0, 0.1 or 0.06
exp = np.exp(raw.scores[0])


EXERCISES = (
    Number(
        "k2",
        "key of token 2 in the worked example, as 3 numbers",
        (
            "A token times a matrix: each number is the dot product of the token with one column of the matrix.",
            "Token 2 is x[1], because Python counts from 0. The matrix is W_K.",
            "Write vector_times_matrix(x[i], W_K) with the right i.",
        ),
        right=k[1],
        slips={
            "wrong_projection": [q[1], v[1]],
            "counted_from_zero": [k[2]],
            "wrong_token": [k[0]],
            "column_instead_of_row": [k[:, 1]],
            "factor_forgotten": [(BY_HAND.x[1] != 0) @ BY_HAND.W_K],
        },
    ),
    Number(
        "scores_2",
        "the raw scores of query 2 against all 3 keys",
        (
            "Each entry is a dot product: multiply feature by feature, then add.",
            "Take query 2 and go through the keys one by one.",
            "Write dot(Q[i], key) for each key in K, with the right i.",
        ),
        right=raw.scores[1],
        slips={
            "counted_from_zero": [raw.scores[2]],
            "wrong_token": [raw.scores[0]],
            "scaled_already": [scaled.scaled[1]],
            "query_met_others": [q[1] @ q.T, k[1] @ k.T, q[1] @ v.T],
            "untransposed_key": [q[1] @ k],
        },
        remark="key 2 against all 3 queries gives the same numbers here, by a symmetry of this example. Asked for is "
        "query 2 against the keys: a row of Q with each row of K.",
    ),
    Number(
        "weights_1",
        "the attention weights of query 1 (softmax of its raw scores, not scaled)",
        (
            "Take math.exp of each score.",
            "Add the three up, and divide each by that sum.",
            "exp(2) = 7.3891 and exp(4) = 54.5982. Give four decimals.",
        ),
        right=raw.weights[0],
        slips={
            "counted_from_zero": [raw.weights[1]],
            "wrong_token": [raw.weights[2]],
            "exp_not_divided": [exp],
            "divided_by_largest": [exp / exp.max(), raw.scores[0] / raw.scores[0].max()],
            "in_per_cent": [100 * raw.weights[0], 100 * rounded[2], np.array([6.3, 46.8, 46.8])],
            "too_few_digits": rounded[1:],
            "rounded_weights": rounded[:1],
            "scaled_already": [scaled.weights[0]],
            "no_softmax": [raw.scores[0]],
            "no_exponential": [raw.scores[0] / raw.scores[0].sum()],
            "softmax_over_everything": [np.exp(raw.scores[0]) / np.exp(raw.scores).sum()],
            "argmax_instead_of_softmax": [np.array([0.0, 1.0, 0.0])],
        },
    ),
    Number(
        "scaled_output_1",
        "the output of query 1 with scaled scores",
        (
            "Divide the scores of query 1 first.",
            "Here d_k = 3. Give the divided scores to softmax.",
            "weighted_sum(softmax(your three divided scores), V)",
        ),
        right=scaled.context[0],
        slips={
            "counted_from_zero": [scaled.context[1]],
            "wrong_token": [scaled.context[2]],
            "no_scale": [raw.context[0]],
            "scale_by_d_k": [_unscaled(1 / 3).context[0]],
            "scale_by_embed_dim": [_unscaled(1 / BY_HAND.x.shape[1] ** 0.5).context[0]],
            "multiply_by_sqrt_d_k": [_unscaled(3**0.5).context[0]],
            "scale_after_softmax": [raw.context[0] / 3**0.5],
            "rounded_weights": [scaled.weights[0].round(n) @ v for n in (1, 2)],
            "keys_for_values": [scaled.weights[0] @ k],
            "weights_returned": [scaled.weights[0]],
        },
        remark="with Q and K exchanged these numbers are the same, by a symmetry of this example. Asked for is query 1 "
        "against the keys: a row of Q with each row of K.",
    ),
    Design(
        "what_words_look_for",
        "W_Q, 4 rows of 3 numbers, with which she and sleeps find Anna, and Anna finds sleeps, each by 0.9 or more",
        (
            "Rows 1, 2 and 3 of W_Q become the queries of a name, a verb and a pronoun, each times 2. Which key does "
            "each have to match?",
            "Names are found in the first column, verbs in the second. Which row is whose?",
            "Three entries are not 0. How large must a score be to get 0.9 against two zeros?",
        ),
        judge=_judge_wishes,
        names=tuple(dict.fromkeys(_NAMED.values())),
    ),
)

RECALL = (
    Question(
        "rows_sum_to_1",
        right="b",
        tempting="c",
        a="A column is one key. Everybody may take from it, or nobody: it need not sum to 1.",
        b="A row is one query, which divides one unit of attention.",
        c="Only queries divide. What everybody takes from one key can add up to more than 1.",
    ),
    Question(
        "row_asks",
        right="a",
        tempting="c",
        a="The token that takes stands at the row, the one from which it takes at the column.",
        b="That cell says how much river takes from bank.",
        c="In the map of notebook 00, the last to takes 0.69 from Mary, and Mary takes nothing from to.",
    ),
    Question(
        "where_tokens_meet",
        right="c",
        tempting="b",
        a="There each token is looked up by itself: to starts with the same numbers in both sentences.",
        b="All other steps of a layer handle each token by itself.",
        c="Attention is the one step in which a token takes something from others.",
    ),
)

QUESTIONS = (
    Question(
        "softmax_by_hand",
        right="c",
        tempting="b",
        a="2 : 4 : 4 is what dividing by the sum gives. Softmax takes e to the power of each score first.",
        b="Small is not 0: e to the power of any score is more than 0, so every key gets something.",
        c="Softmax compares by differences: 4 gets e * e = 7.4 times the weight of 2.",
    ),
    Question(
        "rounding",
        right="c",
        tempting="b",
        a="The first weight alone is off by 0.06, far more than 0.001.",
        b="A weight is off by up to 0.06. That is multiplied by values of up to 8 and added over three keys.",
        c="In the second number of the output the lost 0.063 goes from a value of 2 to values of 8 and 6: "
        "0.032 * 8 + 0.032 * 6 - 0.063 * 2 = 0.32.",
    ),
)
