"""The questions of Scaling: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

RECALL = (
    Question("shapes_of_a_call", right="a", tempting="b").because(
        a="Each of 5 queries has a weight for each of 5 keys. An output averages values, so it is as long as a value.",
        b="d_k is gone after the dot products: a query has one weight for each key.",
        c="The output is made of values, so it is as long as a value, d_v = 4.",
    ),
    Question("softmax_compares", right="b", tempting="a").because(
        a="That would be dividing by the sum. Softmax takes the exponential first.",
        b="Two weights have the ratio of their exponentials, whatever else stands in the row. Only differences count.",
        c="The other scores change the sum by which both are divided, but not the ratio of the two.",
    ),
    Question("small_divisor", right="a", tempting="b").because(
        a="A small divisor leaves the scores far apart, and softmax compares by differences.",
        b="That is what a large divisor does: it makes the scores nearly equal.",
        c="Softmax compares by differences, and a division changes them.",
    ),
)

QUESTIONS = (
    Question("score_std", right="b", tempting="c").because(
        a="The pushes cancel only on average: each adds its variance of 1, and 64 of them add up to 64.",
        b="The variances of 64 products add up to 64, and the standard deviation is the root of that.",
        c="64 is the variance, the mean of the squares.",
    ),
    Question("raised_by_a_tenth", right="c", tempting="a").because(
        a="That would be one for one. The weight is nearly 1 already, and little is left for it to take.",
        b="The slope at a lead of 8 is 0.0003352, and a tenth of a point gains about a tenth of that.",
        c="The slope there is w (1 - w) = 0.0003352, and a tenth of a point gains about a tenth of that: 0.000032.",
    ),
    Question("divided_by_d_k", right="c", tempting="b").because(
        a="That is without any division.",
        b="That is with the root. Divided by d_k, the scores have the variance 1/64 and not 1.",
        c="The scores differ by about 1/8 only, so all ten keys get nearly the same: the pale end of the slider.",
    ),
)
