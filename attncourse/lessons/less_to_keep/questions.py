"""The questions of Less to keep: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("window_finds", right="c", tempting="a").because(
        a="It hardly loses on Alice because Alice hardly asks for what stands far back. A code is nowhere else.",
        b="What lies outside the window is gone, in all layers: none is found.",
        c="Each code stands more than 64 tokens back, and keys in 4 bits find most of them for as many bytes.",
    ),
    Question("shared_by_all_keys", right="c", tempting="a").because(
        a="Large is not yet useful. What all keys share adds the same number to each score of a row.",
        b="Nothing of it is seen: the loss is the same to four digits.",
        c="It adds q·c to each score of a row, and a shift of a row changes no weight ('vectorized').",
    ),
    Question("scale_per_feature", right="a", tempting="c").because(
        a="The stripes are features that are large, or far from 0, in every token. A scale of its own fits each.",
        b="In 3 and 2 bits a scale for each feature makes values worse on all three texts.",
        c="Values have hardly any stripes. In 3 bits a scale for each feature costs them on all three texts.",
    ),
    Question("three_narrowed", right="c", tempting="a").because(
        a="Without what these three see, none is found. Narrow layer 19 alone, and 5 % are.",
        b="Not even that: none. Narrow layer 19 alone, and 5 % are found.",
        c="Three of thirty undo it, most of all layer 19, and Alice hardly costs more.",
    ),
    Question("whose_directions", right="b", tempting="c").because(
        a="They are not the same: a matrix may stretch directions into which no token ever points.",
        b="What is kept are the directions in which keys and values really lie, and those of another text are similar.",
        c="It was another text, and yet it serves: keys and values of two texts lie in nearly the same directions.",
    ),
)

RECALL = (
    Question("window_needs_first", right="c", tempting="a").because(
        a="One token more hardly helps: the loss falls by less than 0.5.",
        b="The mask allows it, and positions go on as before.",
        c="Many heads park on the first token. Without it their weight falls on words that should not get it.",
    ),
    Question("value_not_rotated", right="a", tempting="b").because(
        a="Only queries and keys meet in a score, so only they are rotated. Values are mixed as they are.",
        b="Then an output would depend on where in the text its words stand. 'It speaks' lists that as a mistake.",
        c="Nothing has to be undone: a value was never rotated.",
    ),
    Question("vectors_of_a_token", right="b", tempting="a").because(
        a="Several heads of queries share one head of keys and values, and queries are not kept.",
        b="A key and a value in each of three heads.",
        c="Weights are used once and forgotten. What is asked for again are keys and values.",
    ),
)
