"""The questions of Masks: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

RECALL = (
    Question("recall_key", right="b", tempting="c").because(
        a="The right slot was drawn anew for every sequence, so no fixed position would do.",
        b="The query of the asked letter and the key of the same letter get a large score, in whatever slot the pair "
        "is.",
        c="W_V only says what a slot returns. Queries and keys decide which slot returns it.",
    ),
    Question("d_k_doubled", right="b", tempting="a").because(
        a="A score is a sum of d_k products. Twice as many independent products have twice the variance.",
        b="Each product has variance 1, and the variances of independent products add up. So we divide by sqrt(d_k).",
        c="That would need all products to push the same way. Independent ones cancel in part.",
    ),
    Question("added_to_all", right="c", tempting="b").because(
        a="All weights would have to grow, and they sum to 1.",
        b="Every exp grows by the same factor, and so does their sum.",
        c="Softmax compares by differences. That is why you may subtract the largest score of a row.",
    ),
)

QUESTIONS = (
    Question("writes_on", right="b", tempting="a").because(
        a="In the exam the next word stood in the text. When the head writes, the next word stands nowhere.",
        b="The newest token asks for a position that no key has. All its scores are 0, so it mixes the words so far.",
        c="A query that matches no key is no error: its scores are equal, and so are its weights.",
    ),
    Question("zero_after", right="b", tempting="a").because(
        a="The softmax made the row sum to 1 with all keys in it. Without some of them the sum is less than 1.",
        b="The blocked keys took their share in the softmax, and nobody gives it back.",
        c="The last row may look at everything and keeps its 1. Only a row without any key sums to 0.",
    ),
    Question("equal_sizes", right="c", tempting="a").because(
        a="An error needs sizes that disagree. Here 4 = 4.",
        b="NumPy and torch line up the last axes: (b, n_k) is read as (n_q, n_k), and is the same for every text.",
        c="Two axes that fit are read as (n_q, n_k). A mask cannot tell that you meant (b, n_k).",
    ),
)
