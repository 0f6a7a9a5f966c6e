"""The questions of Multi-head: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

RECALL = (
    Question("recall_newest", right="c", tempting="a").because(
        a="That is the mask of a text's first token. The newest one would not even see itself.",
        b="Row 0 of the square mask, lined up at the upper left, has one True; the last row has five.",
        c="The newest token is the last of five: its row is the last one of the square mask, all five keys.",
    ),
    Question("recall_stored", right="b", tempting="a").because(
        a="That is how it stands in a formula, x W. nn.Linear stores the transpose.",
        b="nn.Linear stores its matrix as (out, in) and multiplies by its transpose.",
        c="A square matrix fits both ways, and is wrong in one of them without a word.",
    ),
    Question("recall_variance", right="a", tempting="c").because(
        a="32 independent products of variance 1 are added up, and variances add up.",
        b="The root of 32 is the standard deviation.",
        c="1 is the variance of one product, or of the score divided by the root of 32.",
    ),
)

QUESTIONS = (
    Question("reshape", right="b", tempting="a").because(
        a="That is what split_heads gives. It takes a reshape to (n, h, d_k), and then a swap.",
        b="reshape keeps the order of the numbers in memory, where the features of a word stand together. So the first "
        "half of the numbers is the first half of the words.",
        c="reshape never fails if the number of entries is right, and 24 = 2 * 4 * 3.",
    ),
    Question("head_divisor", right="c", tempting="a").because(
        a="That is the root of 768, the width of the layer. But a score adds up the products of one head.",
        b="64 is the d_k of one head, 768 / 12. The divisor is its root.",
        c="One head has 768 / 12 = 64 features, so a score adds up 64 products, and the root of 64 is 8.",
    ),
)
