"""The questions of Vectorized: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

RECALL = (
    Question("query_and_key", right="b", tempting="a").because(
        a="A vector has a dot product with itself, too. By likeness alone, 'she' would take most from herself.",
        b="'she' looks for a name, and is found as female. Two matrices keep the two apart.",
        c="Scores may be negative. Softmax makes positive weights of them.",
    ),
    Question("a_popular_key", right="a", tempting="b").because(
        a="A column adds up what all queries take from one key. In 'start here' every row sums to 1, "
        "and the column of 'When' to 9.69.",
        b="Rows must sum to 1. Columns need not.",
        c="What a token divides stands in its row, and that is always 1.",
    ),
    Question("what_d_k_counts", right="c", tempting="a").because(
        a="That is n_k. A key has d_k features.",
        b="That is d_in. W_Q and W_K turn d_in features into d_k.",
        c="Queries and keys have as many features, d_k, because they meet in a dot product.",
    ),
)

QUESTIONS = (
    Question("symmetric", right="c", tempting="b").because(
        a="In IDENTITY Q equals K, so a swap changes nothing there.",
        b="W_Q and W_K of KARIM differ, but its scores are symmetric all the same: "
        "mirrored at the diagonal, 4 meets 4, 4 meets 4, and 12 meets 12.",
        c="In the other two examples the scores equal their transpose, and a swap only transposes them.",
        d="A single dot product is the same both ways. But a swap exchanges the rows and columns of the scores.",
    ),
    Question("cube", right="c", tempting="a").because(
        a="K.T reverses all axes, and with sizes 3, 3, 3 the product is still defined.",
        b="The shapes agree, but the function summed and normalised along other axes.",
        c="With three equal axes every wrong axis fits, and the numbers are wrong.",
    ),
)
