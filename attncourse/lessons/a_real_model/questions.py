"""The questions of A real model: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("named_head", right="b", tempting="a").because(
        a="A head with a job that can be named need not change the result much.",
        b="The head has rank 7 of 12. A sentence vector is a mean over all tokens, and what this head adds to one "
        "pronoun is a small part of that mean.",
        c="The head adds something: five heads of its layer cost less.",
    ),
    Question("parking", right="c", tempting="a").because(
        a="Taking the head away loses only what the head adds, and that is short.",
        b="The weight is the same, but the values are not: the value of a word is much longer.",
        c="Taken away, the head leaves out a short sum. Forbidden to look at [CLS], it must spend its weight on words, "
        "and their values are long.",
    ),
    Question("one_word_turned", right="b", tempting="a").because(
        a="The meaning has turned round, but the head has not: 0.65 on the trophy, 0.17 on the suitcase.",
        b="One word has turned the meaning round, and the head looks at the trophy again, with 0.65.",
        c="The head chooses: 0.65 on the trophy, 0.17 on the suitcase.",
    ),
    Question("one_sentence", right="b", tempting="a").because(
        a="Without the scale the best of twelve sentences has a cosine of 0.88.",
        b="A single sentence has no padding, so there is nothing to mask. Only a batch of sentences with different "
        "lengths shows the mistake.",
        c="Without the transpose the best of twelve sentences has a cosine of 0.41.",
        d="Without W_O the best of twelve sentences has a cosine of 0.36.",
    ),
)

RECALL = (
    Question("what_the_keys_need", right="b", tempting="c").because(
        a="The pattern may have any length, so no distance is right.",
        b="The query says which letter stands here. The head looks for a key that says: this letter stood before me.",
        c="The value carries the next letter. The key must say why this position is the right one.",
    ),
    Question("swapped_arguments", right="a", tempting="c").because(
        a="The shapes agree, so nothing complains. Only the numbers tell.",
        b="Values of another width change the shape of the output. Here the shape is right.",
        c="Rounding changes the last digits, and 0.44 is far more than that.",
    ),
    Question("what_an_output_is", right="c", tempting="b").because(
        a="Keys meet queries in the scores. They do not get into the output.",
        b="Softmax leaves every key a share, and the output mixes all values by these shares.",
        c="Keys decide how much is taken, and the values are what is taken.",
    ),
)
