"""The questions of Train and look: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("no_positions", right="b", tempting="c").because(
        a="That is guessing blindly. Which tokens there are, and how often, can be seen without any order.",
        b="The model sees which tokens there are, and how often each. A frequent token is a better guess.",
        c="More training does not help: every query mixes the same set, so the order cannot get into the output.",
    ),
    Question("pale_diagonal", right="b", tempting="a").because(
        a="With ten tokens the pale diagonal appears in both seeds, and with nine tokens hardly in either.",
        b="Position i must name the token at 9 - i, and no whole number solves i = 9 - i. So with ten tokens the own "
        "token is never the answer. With nine, it is the answer at 1 of 9 positions, as any other token is.",
        c="Then nine tokens would show a pale diagonal, too, and they hardly do.",
    ),
    Question("two_heads", right="b", tempting="a").because(
        a="The parameters are equally many. What differs is the number of rows of weights per query.",
        b="A head has one row of weights per query, so one mixture of both places, and the read-out here is linear. "
        "Two heads keep the places apart.",
        c="The one large head fails: both neighbours end up in one sum. Two heads do not.",
    ),
    Question("one_layer", right="b", tempting="a").because(
        a="Its keys do not know what stood before them. Yet with twelve heads it names most answers, place by place.",
        b="Two layers need one head each. One layer begins to learn with eight heads, place by place, and with twelve "
        "it is right in most cases here.",
        c="Two heads in one layer learn nothing here: they work side by side, and neither reads what the other wrote.",
    ),
    Question("patching", right="b", tempting="a").because(
        a="The query only says which letter asks, and the letter knows that without layer 1.",
        b="The query looks for a key that says 'before me stood B'. Only layer 1 can tell a key which letter stood "
        "before it.",
        c="The value only has to say which letter it is, and the letter knows that without layer 1.",
    ),
)

RECALL = (
    Question("poke", right="c", tempting="b").because(
        a="Another divisor changes the weights, but not which keys get any.",
        b="That changes the weights, but what the mask blocks stays blocked.",
        c="Under a causal mask no query sees a later token. So a change there must not move an earlier output.",
    ),
    Question("found_by_numbers", right="c", tempting="a").because(
        a="That gives away a model that sees what it should guess. This one guesses nearly as well as the right one.",
        b="That gives away a model that looks ahead. Its mask is right.",
        c="It trains nearly as well, and writes as well. Compare its scores with a row that you compute yourself.",
    ),
    Question("typical_score", right="b", tempting="c").because(
        a="Each single product has variance 1. The sum of 64 products has more.",
        b="The variance of the sum of 64 products is 64, and its root is 8.",
        c="64 is the variance. A typical score is as large as its root.",
    ),
)
