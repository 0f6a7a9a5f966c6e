"""The questions of One token at a time: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("cheated", right="c", tempting="a").because(
        a="The lowest loss is for those who see the words before only. This model has the next word in sight.",
        b="It has not learned any sentence. It has learned to look one place ahead.",
        c="In training it copied the next word. When it writes there is no next word: it has never had to guess one.",
    ),
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
    Question("one_new_token", right="b", tempting="a").because(
        a="That is the upper left: query 0 sees key 0. It is right for the first token, not for the sixth.",
        b="The new token is the last of the six: in the lower right corner its row allows every key.",
        c="A causal mask hides what comes later, and nothing comes later than the newest token.",
    ),
)
