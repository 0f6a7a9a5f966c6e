"""The questions of Long texts: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("tile_size", right="b", tempting="a").because(
        a="A tile of twice the side serves twice as many queries with the keys that it loads.",
        b="Keys and values are loaded once for each tile of queries. Half as many tiles of queries load them half as "
        "often.",
        c="Four times as many scores are held. What is moved are queries, keys, values and outputs.",
    ),
    Question("crowd", right="a", tempting="c").because(
        a="The scores stay, and the crowd grows: 16 times as many keys share what the needle does not get.",
        b="The score of a query with a key does not know how many other keys there are.",
        c="It would, if the needle's lead were enough for any crowd. "
        "A lead of 8 is worth about 3000 keys of score 0, and 1808 random ones, "
        "whose exp(s) is 1.65 in the mean.",
    ),
)

RECALL = (
    Question("parked_weight", right="b", tempting="a").because(
        a="NaN comes from rows in which every key is blocked. Here the first token is always allowed.",
        b="Each row sums to 1, so the weight must go somewhere. These heads have learned to put it on the first token.",
        c="Much of what it is worth is its place. Without it, weight that nothing deserves falls on other words.",
    ),
    Question("score_of_a_shift", right="c", tempting="b").because(
        a="How far from the start both stand does not matter.",
        b="Both angles change by the same amount, so the angle between query and key stays.",
        c="For a given query and key, the positions enter the score only through their distance.",
    ),
    Question("fused_kernel", right="a", tempting="b").because(
        a="It never holds the map, so it has no weights to return.",
        b="The output is exact: a fused kernel computes the same sum in another order.",
        c="A block of scores is masked like any other scores.",
    ),
)
