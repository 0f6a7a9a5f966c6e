"""The questions of Program a head: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("head_of_zeros", right="b", tempting="a").because(
        a="A softmax always spends its 1, and equal scores share it equally.",
        b="All scores are 0, and the softmax of equal scores is uniform.",
        c="For that, the score of a ship with itself would have to be larger than its score with others.",
    ),
    Question("witness", right="a", tempting="c").because(
        a="There is one pilot, however many ships there are: it is one of two, and then one of three.",
        b="Without the pilot only the shares of the flags are left, and they are equal in both texts.",
        c="Without the pilot only the shares of the flags are left, and they are equal. With the pilot they differ.",
    ),
)

RECALL = (
    Question("score_ahead_by_8", right="c", tempting="a").because(
        a="Weights would be 8 times as large if softmax took the scores themselves. It takes exp of them.",
        b="64 is the square of 8, but softmax takes exp of the scores.",
        c="The ratio of two weights is exp of the difference of their scores, and exp(8) is 2981.",
    ),
    Question("row_of_scores", right="a", tempting="b").because(
        a="Row i of Q K^T holds the dot products of query i with every key.",
        b="That is column 2: key 2 with every query.",
        c="A token gives its value, and values come in after the softmax.",
    ),
    Question("given", right="c", tempting="b").because(
        a="A query works for its own token only.",
        b="The key is what a token is found by.",
        c="The query is what a token looks for, the key what it is found by, and the value what it gives.",
    ),
)
