"""Notebook 07, the bug clinic: its questions. Its cases stand in clinic.py, its exercises in patients.py."""

from ..engine.questions import Question

RECALL = (
    Question(
        "rows_per_query",
        right="c",
        tempting="a",
        a="One row gives one mixture. That was the trouble of a single head.",
        b="There are n queries, and each of them has its rows.",
        c="Each head compares the query with all keys in its own way, and has one row of weights for the result.",
    ),
    Question(
        "causal_triangle",
        right="a",
        tempting="b",
        a="Token i may look at token j if j is not later: j <= i, below the diagonal and on it.",
        b="That triangle is the future. Where True means blocked it would be right, but for the diagonal.",
        c="Then token 0 could look nowhere. Each token may look at itself.",
    ),
    Question(
        "variance_after_dividing",
        right="b",
        tempting="a",
        a="The standard deviation was 8. Divided by 8 it is 1, and so is the variance.",
        b="A factor of 1/8 takes the variance down by 1/64.",
        c="A variance goes with the square of the factor: 64 / 8 would be 8, and it is divided by 64.",
    ),
)

QUESTIONS = (
    Question(
        "pale",
        right="b",
        tempting="c",
        a="Then rows would not sum to 1, and these do: row_sums gives 0.",
        b="All rows sum to 1, nothing was masked, and the order of the cells is that of the healthy map: every score "
        "was only made smaller.",
        c="The map was drawn without a mask. And with one, future gives 0: no key comes in that should not.",
    ),
    Question(
        "sums",
        right="b",
        tempting="a",
        a="Rounded weights have a few decimals and sum to about 1. Here a row reaches 1.54.",
        b="Each column sums to 1: the weights of a key are shared out among the queries.",
        c="That takes weight away from rows, and no row could have more than 1.",
    ),
    Question(
        "too_good",
        right="b",
        tempting="a",
        a="The sequences of the test were drawn anew. What was learned by heart is of no use for them.",
        b="The next digit is drawn after all that a causal model may see. Who names it must have seen it.",
        c="Nothing can be learned about a die but that it is one. The healthy module stays at one in ten.",
    ),
    Question(
        "poison",
        right="b",
        tempting="a",
        a="NaN spreads to everything that is computed from it. Nothing is computed from W_Q here.",
        b="The projections are never applied, so nothing in the output depends on them.",
        c="That would take one projection that is used. None is.",
    ),
    Question(
        "demonstration",
        right="c",
        tempting="a",
        a="A peak needs scores that differ by several units. These differ by little more than a tenth.",
        b="Nothing makes a token look at itself: query and key come from unrelated tensors.",
        c="Numbers between 0 and 1 vary little; a divisor of 16, where sqrt(32) is right, shrinks their scores "
        "further.",
    ),
    Question(
        "company",
        right="b",
        tempting="a",
        a="Dropout gives another answer each time. This module gives the same one twice.",
        b="The other sequence has entered the sum. Its mean is taken along axis 0, which is the batch.",
        c="All sequences have five tokens, and no mask was given.",
    ),
)
