"""The questions of Today's head: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("shifted", right="c", tempting="b").because(
        a="The distance between the two tokens is still 2, and only that counts.",
        b="Farther from the start, not farther apart. For given query and key only the distance counts.",
        c="Both are rotated further by the same angle, so the angle between them stays.",
    ),
    Question("beyond", right="b", tempting="a").because(
        a="A head for every length exists: you have just set it by hand. Training does not look for it.",
        b="Its weights leak to distances that training never showed it.",
        c="That happens to the learned vectors and the sinusoids. "
        "A distance up to 31 is the same at position 50 as at 20.",
    ),
    Question("no_mistake", right="g", tempting="e").because(
        a="Heads 2 and 3 then read keys of the other's group.",
        b="The output then depends on where the text begins.",
        c="A score then depends on where the query stands, not on the distance.",
        d="Queries and keys then rotate different features together.",
        e="Scores still depend on the distance alone, but weights fit one way to pair, and these were made for halves.",
        f="Only the first pair is as fast as before. In a short text that shows little.",
        g="For given queries and keys only the distance counts, and that has stayed.",
    ),
    Question("norm_order", right="a", tempting="b").because(
        a="A rotation keeps the length of a vector, so the norm may come before or after. A gain stretches features, "
        "and two features of one pair by different amounts.",
        b="The norm alone divides by the length, which no rotation changes.",
        c="A rotation mixes the two features of a pair; a gain then stretches the mixture.",
    ),
)

RECALL = (
    Question("cache_mask", right="b", tempting="a").because(
        a="That is the upper left: the first new token would see one key only.",
        b="The new tokens are the last ones, so the mask lines up at the lower right, and the last query sees all "
        "keys.",
        c="One token at a time it looks right. Several at once would see each other's future.",
    ),
    Question("larger_query", right="b", tempting="c").because(
        a="The order of the scores stays as it was, so the same key is first.",
        b="All its scores grow by the same factor: their order stays, and softmax picks harder.",
        c="Softmax does not see a number added to all scores. A factor it does see.",
    ),
    Question("divisor_of_a_head", right="b", tempting="a").because(
        a="That is the root of d_model. The dot product of one head adds up 256 terms, not 512.",
        b="A head has 512 / 2 = 256 features, and the divisor is the root of that.",
        c="256 is d_k. The divisor is its root, since variances add up and standard deviations do not.",
    ),
)
