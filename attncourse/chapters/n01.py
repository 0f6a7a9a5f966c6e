"""By hand: its exercises, questions, and what only they need."""

import math

import numpy as np

from attnlib.core import softmax
from attnlib.examples import SENTENCE, WORDS

from ..engine.compare import RIGHT
from ..engine.exercise import Design, Number
from ..engine.questions import Question
from ..engine.run import Unfit, numbers
from ..engine.steps import Steps, replaced
from ..mistakes.mistake import Mistake

OWN = (
    Mistake(
        "counted_from_one",
        behaves_as_if="it belongs to the token before the one asked for",
        symptom="Words are counted from 0: Anna is token 0, so Ben is token 2 and she is token 3.",
        hint="Which index does the fourth word have, if the first word has 0?",
        then="It has 3: she is x[3], and her query is Q[3].",
    ),
    Mistake(
        "wrong_token",
        behaves_as_if="it belongs to another token than the one asked for",
        symptom="Every token has a query, a key and a value of its own.",
        hint="Which row of x is the token that is asked for?",
        then="Anna is row 0 and she is row 3, in x as in Q, K and V.",
    ),
    Mistake(
        "wrong_projection",
        behaves_as_if="the right token was multiplied by another matrix",
        symptom="W_Q gives its query and W_V its value; a key comes from W_K.",
        hint="Which of W_Q, W_K and W_V makes this vector?",
        then="A key is asked for: take the matrix that has K in its name.",
    ),
    Mistake(
        "feature_left_out",
        behaves_as_if="a feature had been left out",
        symptom="A dot product adds up the products of all features. One feature alone gives fewer or smaller numbers.",
        hint="Which features of the token, or of its query, are not 0?",
        then="There are two of them. Take the product of each, and add.",
    ),
    Mistake(
        "feature_or_token",
        behaves_as_if="one feature of Anna had been left out, or it belongs to another token",
        symptom="A name alone is the key of Ben, and female alone is the key of she. Anna is both.",
        hint="Which row of x is Anna, and which of its numbers are not 0?",
        then="It is row 0. Two of its features have a number in W_K: add their rows of W_K.",
    ),
    Mistake(
        "feature_or_column",
        behaves_as_if="the first feature of her query had been left out, or queries and keys had changed places",
        symptom="Both give these four numbers: her query without what is sought first, and the column of she in the "
        "scores.",
        hint="Is the first number of her query 0? And does row 3 of Q meet the rows of K, or row 3 of K the rows of Q?",
        then="It is not 0: take all products. Her query is Q[3], and it meets every row of K.",
    ),
    Mistake(
        "query_met_others",
        behaves_as_if="the vectors that were compared are not the query and the keys",
        symptom="A score compares what one token looks for with how another can be found: a row of Q with a row of K.",
        hint="Which two matrices do the two vectors of your dot product come from?",
        then="One vector is a row of Q, and the others are all rows of K.",
    ),
    Mistake(
        "powers_of_two",
        behaves_as_if="powers of 2 had been taken, where powers of e belong",
        symptom="The row sums to 1, but it is too pale: one point of score doubles the weight, where it should give e "
        "= 2.72 times as much.",
        hint="What does math.exp(1) return, and what is 2**1?",
        then="Softmax takes powers of e: write math.exp(s) in place of 2**s.",
    ),
    Mistake(
        "exp_of_zero",
        behaves_as_if="exp(0) were 0",
        symptom="The key with the score 0 then gets no weight, and all others get a little too much.",
        hint="What is a number to the power of 0?",
        then="It is 1, of e as well. So the score 0 adds 1 to the sum.",
    ),
    Mistake(
        "too_few_digits",
        behaves_as_if="the weights were right, with too few digits",
        symptom="Four decimals are asked for. A weight that is rounded here moves the output later.",
        hint="Give four decimals.",
        then="Do not round before the end: in Python round(weight, 4) comes last.",
    ),
    Mistake(
        "in_per_cent",
        behaves_as_if="the weights were right, in per cent",
        symptom="They sum to 100. Weights sum to 1.",
        hint="What is 84 per cent as a share of 1?",
        then="Divide each number by 100.",
    ),
    Mistake(
        "turned_round",
        behaves_as_if="the right numbers stood in reverse order",
        symptom="Each number then counts for another word, or another feature.",
        hint="What does your first number belong to?",
        then="The order is that of the words, Anna first. In a key or an output it is that of its features.",
    ),
    Mistake(
        "divided_by_largest",
        behaves_as_if="all were divided by the largest of them, not by the sum",
        symptom="The largest weight is then 1, and the row sums to more.",
        hint="What do the weights of one query have to sum to?",
        then="To 1. So divide by the sum of the exponentials.",
    ),
    Mistake(
        "column_instead_of_row",
        behaves_as_if="it is a column, where a row is asked for",
        symptom="A column holds one feature of all tokens. All features of one token are a row.",
        hint="One row is one token.",
        then="Take the whole row of the token that is asked for, as many numbers as there are columns.",
    ),
    Mistake(
        "looks_for_itself",
        behaves_as_if="every word looked for what it is",
        symptom="Then W_Q is W_K, and a word finds itself, as by likeness alone.",
        hint="What does a pronoun look for, if not for pronouns?",
        then="A pronoun looks for a name: its number belongs in the column in which names are found.",
    ),
    Mistake(
        "wish_too_faint",
        behaves_as_if="every query pointed to the right word, but one or more were too small to take 0.9 from it",
        symptom="What counts is the distance to the next score: 4 over 1.73 becomes 2.3, and takes 0.77 beside three "
        "zeros.",
        hint="The direction is right. What would a query three times as large do to the distances between scores?",
        then="It makes them three times as large. Make the numbers of W_Q larger until 0.9 is reached.",
    ),
    Mistake(
        "any_name",
        behaves_as_if="a word looked for a name, whoever it is",
        symptom="Anna and Ben are both found as names, with the same score.",
        hint="In what do the keys of Anna and of Ben differ?",
        then="Anna's key has a 1 for female, and Ben's has a 0. The middle column of W_Q can prefer one of them.",
    ),
    Mistake(
        "subject_for_object",
        behaves_as_if="the verb looked for the one who saw, where the one who was seen is wanted",
        symptom="The verb finds Anna. Whoever was seen is the other name, and nothing in its key is female.",
        hint="With which sign does a number in W_Q make a score smaller?",
        then="With a minus. In the middle column of the verb's row it makes Anna's score the smaller one.",
    ),
    Mistake(
        "one_wish_for_all",
        behaves_as_if="everybody looked for a name, Anna and Ben, too",
        symptom="Anna and Ben are names themselves, so they find names: each other, or themselves.",
        hint="What should row 0, that of a name, look for?",
        then="For the verb: its number belongs in the column in which verbs are found.",
    ),
    Mistake(
        "looks_for_nothing",
        behaves_as_if="a word looked for nothing",
        symptom="A query of zeros scores 0 with every key, so the word takes from all words alike.",
        hint="Which rows of W_Q become the query of this word?",
        then="Those of its features. At least one of these rows needs a number that is not 0.",
    ),
    Mistake(
        "wish_turned_round",
        behaves_as_if="every sign in W_Q were turned round",
        symptom="The right word then has the smallest score of the row, and gets the smallest weight.",
        hint="What sign must a score have to beat zeros?",
        then="A positive one: exchange plus and minus everywhere.",
    ),
)

# 1.5: what each word of the sentence needs, and from whom it should take at least so much.
_WANTED = {"Anna": {"saw"}, "saw": {"Ben"}, "Ben": {"saw"}, "she": {"Anna"}}
_ENOUGH = 0.9
_NAMES = {"Anna", "Ben"}
_SAME = 1e-9  # weights that differ by less are equal


def _judge_wishes(W_Q):
    try:
        W_Q = numbers(W_Q, lists=True)
    except Unfit:
        W_Q = np.empty(0)
    if W_Q.shape != SENTENCE.W_Q.shape or not np.isfinite(W_Q).all():
        raise Unfit(
            "W_Q must be 6 rows of 3 finite numbers: a row for each feature of a token, a column for each of a query. "
            "Fix: [[0, 0, 3], [0, 0, 0], [0, 2, 0], [1, 0, 0], [3, 0, 0], [0, 0, 0]] has the form."
        )
    looks = _looks(W_Q)
    if _all_right(looks):
        return RIGHT, ""
    if _all_right(_looks(W_Q * np.array([[1], [1], [1], [1], [1], [0]]))):
        return None, "Rows 0 to 4 alone would be right. Row 5 goes into the queries of Anna and Ben, times 2 and -2."
    sentence = " ".join(_whom_in_words(word, *looks[word]) for word in WORDS)
    return _mistake({word: whom for word, (whom, _) in looks.items()}), sentence


def _looks(W_Q):
    """Return for each word those from which it takes most, and whether that is enough."""
    _, key, _ = SENTENCE.project()
    weights = softmax(SENTENCE.x @ W_Q @ key.T / math.sqrt(key.shape[-1]))
    most = weights.max(axis=-1)
    return {
        word: ({other for other, w in zip(WORDS, row, strict=True) if w > top - _SAME}, bool(top >= _ENOUGH))
        for word, row, top in zip(WORDS, weights, most, strict=True)
    }


def _all_right(looks):
    return all(looks[word] == (wanted, True) for word, wanted in _WANTED.items())


def _mistake(whom):
    """Return the id of what explains from whom each word takes most; None if nothing does."""
    wrong = {word: looks for word, looks in whom.items() if looks != _WANTED[word]}
    if not wrong:
        return "wish_too_faint"
    if all(looks == {*WORDS} for looks in wrong.values()):  # scores are equal for a query of zeros alone
        return "looks_for_nothing"
    if all(looks <= _NAMES for looks in whom.values()):
        return "one_wish_for_all"
    if wrong.keys() <= {"saw", "she"} and all(looks == _NAMES for looks in wrong.values()):
        return "any_name"
    if wrong == {"saw": {"Anna"}}:
        return "subject_for_object"
    return _PATTERNS.get(tuple(frozenset(whom[word]) for word in WORDS))


def _whom_in_words(word, whom, enough):
    """Say what is wanted beside what was found; that a share is too small only where it is of the right word."""
    wanted = _WANTED[word]
    *some, last = (other for other in WORDS if other in whom)
    others = f"{', '.join(some)} and {last}" if some else last
    if len(whom) == len(WORDS):
        sentence = f"{word} takes from all words alike"
    elif len(whom) > 1:
        sentence = f"{word} cannot decide between {others}"
    else:
        sentence = f"{word} {'finds' if enough else 'takes most from'} {others}"
    if whom == wanted:
        return f"{sentence}." if enough else f"{sentence}, but less than {_ENOUGH}."
    return f"{sentence} (wanted: {min(wanted)})."


def _pattern(W_Q):
    looks = _looks(W_Q)
    return tuple(frozenset(looks[word][0]) for word in WORDS)


# One of many right answers: names look for verbs, the verb for a name that is not female.
_WISHES = np.array([[0.0, 0, 6], [0, 0, 0], [0, 0, 0], [6, -6, 0], [6, 6, 0], [0, 0, 0]])
_PATTERNS = {_pattern(SENTENCE.W_K): "looks_for_itself", _pattern(-_WISHES): "wish_turned_round"}


def _steps(**given):
    """Return the steps of the sentence; `given` replaces some of them by functions of the steps."""
    return replaced(Steps, given)(q=q, k=k, v=v)


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
            "exp(5) = 148.4132, exp(0) = 1, exp(3) = 20.0855 and exp(2) = 7.3891. Give four decimals.",
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
        judge=_judge_wishes,
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

RECALL = (
    Question("rows_sum_to_1", right="b", tempting="c").because(
        a="A column is one key. Everybody may take from it, or nobody: it need not sum to 1.",
        b="A row is one query, which divides one unit of attention.",
        c="Only queries divide. What everybody takes from one key can add up to more than 1.",
    ),
    Question("row_asks", right="a", tempting="c").because(
        a="The token that takes stands at the row, the one from which it takes at the column.",
        b="That cell says how much 'Mary' takes from 'to'.",
        c="In the map of 'start here', the last 'to' takes 0.69 from 'Mary', and 'Mary' takes nothing from 'to'.",
    ),
    Question("where_tokens_meet", right="c", tempting="b").because(
        a="There each token is looked up by itself: 'to' starts with the same numbers in both sentences.",
        b="All other steps of a layer handle each token by itself.",
        c="Attention is the one step in which a token takes something from others.",
    ),
)

QUESTIONS = (
    Question("softmax_by_hand", right="c", tempting="a").because(
        a="5 : 3 : 2 is what dividing by the sum gives. That fails where the sum is 0. "
        "Softmax takes e to the power of each score first.",
        b="Only the largest score would count. But e to the power of any score is more than 0: nobody gets nothing.",
        c="Softmax compares by differences: 5 is 2 more than 3, so Anna gets e * e = 7.4 times the weight of Ben.",
    ),
    Question("two_names", right="b", tempting="c").because(
        a="Anna comes first in the sentence, but her weight is that of Ben, and he has -2 there.",
        b="Equal weights on 2 and on -2 add up to 0.",
        c="A sum of numbers is one number, and 'who' has room for one.",
    ),
)
