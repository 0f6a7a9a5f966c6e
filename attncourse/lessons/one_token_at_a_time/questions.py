"""The questions of One token at a time: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("hidden_bugs", right="b", tempting="c").because(
        a="Places that restart, if you counted them, are wrong from the second token on, one at a time as well.",
        b="A single new token may see all keys, in whatever order they are kept. A mask that is missing, or an order "
        "that is wrong, has nothing to spoil.",
        c="Two of them give exactly what is right, token by token.",
    ),
)

RECALL = (
    Question("sharper", right="b", tempting="a").because(
        a="V says what is handed over, not to whom one listens: the weights stay as they are.",
        b="Softmax sees the scores over sqrt(d_k). Twice the scores, and the weight on the best key grows.",
        c="A wider head with the same blocks has the same scores, over a larger root: its weights are softer.",
    ),
    Question("parked", right="c", tempting="a").because(
        a="W_O v was 3 % as long there as for a word, so the weight of 0.89 made up only 0.27 of the lengths that are "
        "added up.",
        b="Parked is not nothing: [CLS] made up 0.27 of the lengths that this head adds up, and up to 0.52 in another "
        "head.",
        c="Weight is not influence: what counts is the weight times the length of what is handed over.",
    ),
    Question("below_the_table", right="c", tempting="a").because(
        a="A loss far below what is possible is an alarm. It tells of the targets, not of the model.",
        b="Then it would not be low on held-out text, which it has never seen.",
        c="In training it copied the next letter. When it writes there is none to copy, and it never had to guess.",
    ),
)
