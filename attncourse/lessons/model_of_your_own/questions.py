"""The questions of A model of your own: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("bits_a_letter", right="b", tempting="c").because(
        a="Guessing among 94 kinds of letters costs 6.6 bits. How frequent each letter is brings 4.7, without looking.",
        b="Six letters of the past and good counting bring it to about 2: that is what a model has to beat.",
        c="Half a bit would be nearly sure of every letter. Nobody knows which word comes next that well.",
    ),
    Question("lowest_loss", right="c", tempting="a").because(
        a="The first six are far below any honest table: they see what they should guess. The right model is seventh.",
        b="It is honest, but a mistake holds it back. The right model is the best of the last four.",
        c="Six losses lie far below what a table of letters reaches: these models see what they should guess.",
    ),
    Question("at_the_last_position", right="a", tempting="b").because(
        a="At the last position of a window nothing later is handed in, so there the model has to guess after all.",
        b="It has not learned to guess, because it never had to. Where nothing can be copied, its loss jumps.",
        c="The first position has the shortest past, but the next letter is in sight there as well.",
    ),
)

RECALL = (
    Question("reshaped_heads", right="b", tempting="a").because(
        a="That is what a swap of two axes after the reshape gives. Without it, rows are cut by words.",
        b="A bare reshape deals out words, not features: the first head gets the first half of the sentence.",
        c="The shape fits, so nothing is raised.",
    ),
    Question("pupil_with_worksheet", right="c", tempting="b").because(
        a="It raises nothing: all shapes are right.",
        b="What it learned is to copy. Its loss says nothing about texts that end.",
        c="There is nothing to copy at the end of a text, and it has learned nothing else.",
    ),
    Question("divided_by_wrong_root", right="a", tempting="c").because(
        a="A larger divisor brings scores closer together, and softmax makes them nearly equal.",
        b="Sharper needs larger scores, so a smaller divisor.",
        c="Softmax does not see a shift, but it does see a factor.",
    ),
)
