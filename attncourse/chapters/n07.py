"""The bug clinic: its questions. Its cases stand in clinic.py, its exercises in patients.py."""

from ..engine.questions import Question

RECALL = (
    Question("rows_per_query", right="c", tempting="a").because(
        a="One row gives one mixture. That was the trouble of a single head.",
        b="There are n queries, and each of them has h rows.",
        c="Each head compares the query with all keys in its own way, which gives one row of weights per head.",
    ),
    Question("causal_triangle", right="a", tempting="b").because(
        a="Token i may look at token j if j is not later: j <= i, below the diagonal and on it.",
        b="That triangle is the future. It would be right if True meant blocked.",
        c="Then token 0 could look nowhere. Each token may look at itself.",
    ),
    Question("variance_after_dividing", right="b", tempting="a").because(
        a="The standard deviation was 8. Divided by 8 it is 1, and so is the variance.",
        b="Numbers times 1/8 have a variance times 1/64.",
        c="The variance changes with the square of the factor, so it is divided by 64.",
    ),
)

QUESTIONS = (
    Question("pale", right="b", tempting="c").because(
        a="Then rows would not sum to 1, and these do: row_sums gives 0.",
        b="The scores of the healthy module are exactly twice as large. Smaller scores give paler maps, and leave the "
        "order of the cells as it was.",
        c="The map was drawn without a mask. With one, future gives 0: no key comes in that should stay out.",
    ),
    Question("sums", right="b", tempting="a").because(
        a="Rounded weights have a few decimals and sum to about 1. Here a row reaches 1.54.",
        b="Each column sums to 1: the softmax distributes the weight of a key among the queries.",
        c="Taking keys away lowers the sum of a row, and no row could sum to more than 1.",
    ),
    Question("too_good", right="b", tempting="a").because(
        a="The test uses new sequences, so what was learned by heart is of no use.",
        b="The digits are independent, so earlier ones say nothing about the next. A model that names it has seen it.",
        c="No training makes random digits predictable. The healthy module stays at one in ten.",
    ),
    Question("poison", right="b", tempting="a").because(
        a="NaN spreads to everything that is computed from it. Nothing is computed from W_Q here.",
        b="The projections are never applied, so nothing in the output depends on them.",
        c="That would need one projection that is used, and none is.",
    ),
    Question("demonstration", right="c", tempting="a").because(
        a="A peak needs scores that differ by several units, and these scores hardly differ.",
        b="Nothing makes a token look at itself: query and key come from unrelated tensors.",
        c="Numbers between 0 and 1 vary little; a divisor of 16, where sqrt(32) is right, shrinks their scores "
        "further.",
    ),
    Question("company", right="b", tempting="a").because(
        a="Dropout gives another answer each time. This module gives the same one twice.",
        b="A mean along axis 0 mixes the sequences of the batch. A sequence alone is its own mean.",
        c="All sequences have five tokens, and no mask was given.",
    ),
    Question("dropout_rows", right="c", tempting="b").because(
        a="Weights are dropped after the softmax, and nobody divides by the new sum.",
        b="Only without the division by 0.8, which keeps the mean at 1.",
        c="What survives is divided by 0.8. A row gains where little was dropped, and loses where much was.",
    ),
)
