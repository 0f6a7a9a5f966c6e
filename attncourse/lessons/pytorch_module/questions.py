"""The questions of PyTorch module: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

RECALL = (
    Question("spread_of_scores", right="b", tempting="c").because(
        a="Only after the division. A raw score is a sum of d_k products, so its spread grows with d_k.",
        b="The variance of a score is d_k, so its standard deviation grows like the root: from 4 to 8.",
        c="The variance does, from 16 to 64. The standard deviation is its root.",
    ),
    Question("why_asymmetric", right="b", tempting="c").because(
        a="The numbers are large enough to show it. But Q K^T and K Q^T happen to be the same matrix.",
        b="Q K^T is its own transpose there, so K Q^T is the same matrix, and the output stays.",
        c="Softmax sees only the scores. Here the scores of both orders are the same numbers.",
    ),
    Question("what_is_mixed", right="c", tempting="b").because(
        a="Anna's query asks for what Anna needs. Others never see it.",
        b="She is found by her key. What she gives is another vector.",
        c="Queries and keys decide the weights. What is averaged with these weights are the values.",
    ),
)

QUESTIONS = (
    Question("equal_weights", right="b", tempting="a").because(
        a="That is guessing blindly among 16. At most eight numbers are in memory, and the average shows which.",
        b="It sees which numbers are in memory and how often, and guesses the most frequent one.",
        c="An average of all eight slots is the same, whichever letter is asked for.",
    ),
    Question("square_weight", right="b", tempting="a").because(
        a="Only the shapes are compared, and a square matrix has the shape of its transpose.",
        b="Copying (6, 3) into (3, 6) raises an error. A square matrix fits both ways, and nobody notices.",
        c="nn.Linear computes x times the transpose of its weight, so the matrix has to be turned round.",
    ),
    Question("sum_of_weights", right="c", tempting="a").because(
        a="W_V has no part in the weights, true. But the sum of a row is always 1, for any W_Q and W_K.",
        b="The weights depend on W_Q and W_K. Their sum does not.",
        c="Each row of weights sums to 1 whatever the matrices are: the loss is a constant.",
    ),
)
