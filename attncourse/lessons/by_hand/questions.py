"""The questions of By hand: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

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
