"""A real model: its exercises, questions, and what only they need."""

from functools import cached_property

import numpy as np

from attnlib.core import softmax

from ..engine.compare import RIGHT
from ..engine.exercise import Design, Function, Number, asked
from ..engine.probes import Draw, Probe
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps
from ..mistakes.mistake import Mistake


class _Steps(Steps):
    @cached_property
    def features(self):
        """The features of the concatenated heads that belong to the head, an index."""
        d_k = len(self.W_O) // self.num_heads
        return slice(self.head * d_k, (self.head + 1) * d_k)

    @cached_property
    def without(self):
        """W_O as nn.Linear stores it, (out, in): what comes in from the head is a block of columns."""
        result = self.W_O.copy()
        result[:, self.features] = 0
        return result


def _keep_only(s):
    result = np.zeros_like(s.W_O)
    result[:, s.features] = s.W_O[:, s.features]
    return result


def _rows(s):
    result = s.W_O.copy()
    result[s.features] = 0
    return result


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
    match, words, length = _measured(*answer)
    sentence = (  # digits cut off, not rounded: 0.8999 is less than 0.9
        f"Of your head: a match gets {np.floor(1e3 * match) / 1e3:.3f} of the weight. Without one the words keep "
        f"{words:.3f}, and the output is up to {length:.3f} long."
    )
    if match < 0.9:
        return "parking_drowns_the_match", sentence
    if length <= 0.1:
        return RIGHT, ""
    match, _, other = _measured(*answer[::-1])
    if answer[0] >= 0 and match >= 0.9 and other <= 0.1:
        return "score_and_length_exchanged", sentence
    if words > 0.1:
        return "no_room_to_park", sentence
    return ("words_add_too" if answer[1] <= 0.1 else "parked_on_a_long_value"), sentence


def _measured(score, length):
    """Return the weight of a match, and without one the weight of the words and the length of the output at most."""
    idle = softmax(np.array([score] + [0.0] * WORDS))  # nothing matches
    busy = softmax(np.array([score, MATCH] + [0.0] * (WORDS - 1)))
    return busy[1], idle[1:].sum(), idle[1:].sum() + idle[0] * length


OWN = (
    Mistake(
        "root_of_ratio_forgotten",
        behaves_as_if="the divisors were 384 and 32",
        symptom="12 is 384/32. The class divides by the root of 384, and the model wants the root of 32.",
        hint="Write down both divisors. What is their ratio?",
        then="Scores are divided by roots. So take the root of that ratio.",
    ),
    Mistake(
        "repair_inverted",
        behaves_as_if="the scores were too large",
        symptom="The root of 384 is the larger divisor. So the scores come out too small, and W_Q must make them "
        "larger.",
        hint="Are the scores too large or too small when they are divided by a larger number?",
        then="Too small. So the factor is larger than 1: turn your fraction over.",
    ),
    Mistake(
        "inverse_of_the_ratio",
        behaves_as_if="the scores were too large, and the divisors were 384 and 32",
        symptom="1/12 is 32/384. The class divides by the root of 384, which is larger than the root of 32. So the "
        "scores come out too small, by the root of a ratio.",
        hint="Are the scores too large or too small? And which two divisors are compared, 384 and 32?",
        then="Too small, so the factor is larger than 1. The divisors are roots, so the factor is a root as well.",
    ),
    Mistake(
        "repair_shared_with_keys",
        behaves_as_if="the factor were shared with W_K",
        symptom="Only W_Q is multiplied here, so W_Q takes the whole factor.",
        hint="What happens to q.k if q alone is multiplied by c?",
        then="The product is multiplied by c, too. So c alone must make up for the whole ratio.",
    ),
    Mistake(
        "old_divisor_kept",
        behaves_as_if="the divisor that the model wants were the factor",
        symptom="The root of 32 is 5.66. But the class still divides by the root of 384.",
        hint="The class divides by the root of 384. Which factor makes a division by the root of 32 of that?",
        then="One divisor over the other: the root of 384 divided by the root of 32.",
    ),
    Mistake(
        "scale_undone",
        behaves_as_if="the scores had to be the raw ones, without any scale",
        symptom="The model was trained with a scale: the right scores are q.k divided by the root of 32.",
        hint="Which divisor was the model trained with?",
        then="With the root of 32. So multiply by the divisor of the class, and divide by the divisor of the model.",
    ),
    Mistake(
        "rows_silenced",
        behaves_as_if="it sets a block of rows to 0",
        symptom="A row of W_O makes one feature of the output, from all heads. nn.Linear stores (out, in), so the "
        "input from one head meets a block of columns.",
        hint="Which axis of W_O meets the heads, the axis of the inputs or the axis of the outputs?",
        then="The axis of the inputs, which are the columns of (out, in). Write 0 into result[:, ...].",
        variants=({"without": _rows},),
    ),
    Mistake(
        "heads_counted_from_one",
        behaves_as_if="the heads were counted from 1",
        symptom="Here head 0 is the first.",
        hint="Where do the features of head 0 begin?",
        then="At 0. Head h begins at h times d_k.",
        variants=({"features": lambda s: slice((s.head - 1) * (d := len(s.W_O) // s.num_heads), s.head * d)},),
    ),
    Mistake(
        "head_columns_interleaved",
        behaves_as_if="every h-th feature belonged to the head",
        symptom="The heads stand side by side: first all features of head 0, then all of head 1.",
        hint="Look at merge_heads in 'multi-head'. Which features of the merged vector come from head 0?",
        then="The first d_k features. They are one block of columns, side by side.",
        variants=({"features": lambda s: slice(s.head, None, s.num_heads)},),
    ),
    Mistake(
        "block_as_wide_as_heads",
        behaves_as_if="a head had as many features as there are heads",
        symptom="A head has d_model / h features.",
        hint="12 features, 3 heads. How many features has one head?",
        then="12 / 3 = 4. In code it is len(W_O) // num_heads.",
        variants=({"features": lambda s: slice(s.head * s.num_heads, (s.head + 1) * s.num_heads)},),
    ),
    Mistake(
        "width_of_minilm",
        behaves_as_if="every head had 32 features, as in MiniLM",
        symptom="Here a head has d_model / h features.",
        hint="Which number in your code would change with the model?",
        then="The 32. Compute it: len(W_O) // num_heads.",
        variants=({"features": lambda s: slice(s.head * 32, (s.head + 1) * 32)},),
    ),
    Mistake(
        "only_that_head_kept",
        behaves_as_if="it takes all other heads away and keeps this one",
        symptom="This head should add nothing, and the other heads should add what they added before.",
        hint="Which columns stay as they are?",
        then="All columns except those of this head. Begin with a copy of W_O and write 0 into the block of this head.",
        variants=({"without": _keep_only},),
    ),
    Mistake(
        "no_room_to_park",
        behaves_as_if="the score of [CLS] were too low to take the weight when nothing matches",
        symptom="Weights sum to 1. The weight that [CLS] does not take stays on the words, and their values are added.",
        hint="Without a match all eight words have score 0. Must the score of [CLS] be higher or lower?",
        then="Higher: exp(score) must be at least nine times the 8 that the words have together.",
    ),
    Mistake(
        "score_and_length_exchanged",
        behaves_as_if="the length came first, and the score of [CLS] second",
        symptom="The other way round both numbers do what is asked.",
        hint="Which of the two numbers is asked for first?",
        then="The score: my_parking = [score, length].",
    ),
    Mistake(
        "parked_on_a_long_value",
        behaves_as_if="you had not counted the value of [CLS]",
        symptom="The weight on [CLS] is large, so nearly the whole value of [CLS] is added.",
        hint="Nearly all weight is on [CLS] when nothing matches. How long may the value of [CLS] be?",
        then="The words use up a part of 0.1, and the value may use the rest. A length of 0 is always short enough.",
    ),
    Mistake(
        "words_add_too",
        behaves_as_if="you had counted the value of [CLS] alone",
        symptom="That value is short enough by itself. But the words keep a part of the weight, and what they add "
        "counts, too.",
        hint="How much weight do the words keep without a match? Their values have length 1.",
        then="Their part of 0.1 and the length of the value of [CLS] add up. A length of 0 is always short enough.",
    ),
    Mistake(
        "parking_drowns_the_match",
        behaves_as_if="a match needed less than 0.9 of the weight: the score of [CLS] is too high",
        symptom="A match has score 10. What it does not get, [CLS] takes.",
        hint="With a match the two large terms are exp(10) and exp(score). Which ratio do they need?",
        then="9 to 1. So the score must be at least 2.2 below 10, and a little more for the other words.",
    ),
)

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
        **asked("without", "W_O head num_heads", of=_Steps),
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

QUESTIONS = (
    Question("named_head", right="b", tempting="a").because(
        a="A head with a job that can be named need not change the result much.",
        b="The head has rank 7 of 12. A sentence vector is a mean over all tokens, and what this head adds to one "
        "pronoun is a small part of that mean.",
        c="The head adds something: five heads of its layer cost less.",
    ),
    Question("parking", right="c", tempting="a").because(
        a="Taking the head away loses only what the head adds, and that is short.",
        b="The weight is the same, but the values are not: the value of a word is much longer.",
        c="Taken away, the head leaves out a short sum. Forbidden to look at [CLS], it must spend its weight on words, "
        "and their values are long.",
    ),
    Question("one_word_turned", right="b", tempting="a").because(
        a="The meaning has turned round, but the head has not: 0.65 on the trophy, 0.17 on the suitcase.",
        b="One word has turned the meaning round, and the head looks at the trophy again, with 0.65.",
        c="The head chooses: 0.65 on the trophy, 0.17 on the suitcase.",
    ),
    Question("one_sentence", right="b", tempting="a").because(
        a="Without the scale the best of twelve sentences has a cosine of 0.88.",
        b="A single sentence has no padding, so there is nothing to mask. Only a batch of sentences with different "
        "lengths shows the mistake.",
        c="Without the transpose the best of twelve sentences has a cosine of 0.41.",
        d="Without W_O the best of twelve sentences has a cosine of 0.36.",
    ),
)

RECALL = (
    Question("what_the_keys_need", right="b", tempting="c").because(
        a="The pattern may have any length, so no distance is right.",
        b="The query says which letter stands here. The head looks for a key that says: this letter stood before me.",
        c="The value carries the next letter. The key must say why this position is the right one.",
    ),
    Question("swapped_arguments", right="a", tempting="c").because(
        a="The shapes agree, so nothing complains. Only the numbers tell.",
        b="Values of another width change the shape of the output. Here the shape is right.",
        c="Rounding changes the last digits, and 0.44 is far more than that.",
    ),
    Question("what_an_output_is", right="c", tempting="b").because(
        a="Keys meet queries in the scores. They do not get into the output.",
        b="Softmax leaves every key a share, and the output mixes all values by these shares.",
        c="Keys decide how much is taken, and the values are what is taken.",
    ),
)
