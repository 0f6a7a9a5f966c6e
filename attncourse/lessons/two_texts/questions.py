"""The questions of Two texts: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("mask_between", right="b", tempting="c").because(
        a="A triangle says that a later key is not there yet. The whole text that is read is there from the start.",
        b="Each digit may look at every letter. Only the padding of the text that is read is hidden.",
        c="What is written has a causal mask of its own, in the decoder. The other text is complete before it begins.",
    ),
    Question("sharp_or_pale", right="c", tempting="a").because(
        a="That was so in 'start here'. Here each digit needs one place of the other text, or two.",
        b="Sharper weights stay where they were, on the letter with the largest score.",
        c="Sharper weights stay on the letter that was largest before. Paler ones mix all the others in.",
    ),
    Question("hidden_mistake", right="b", tempting="a").because(
        a="The letters of the year are hidden from the first digits, and what the encoder wrote into others is not.",
        b="The encoder carries the year to letters that the first digits may see.",
        c="Nearly: some dates are lost, and the loss is about ten times that of the healthy model.",
    ),
    Question("needed_letter", right="b", tempting="a").because(
        a="The weights are as sharp for the month. But what one letter says of it, other letters say as well.",
        b="The last digit of a year or a day stands in one letter. A month is said by several, and one may often go.",
        c="Some are needed: change the last digit of a year, and the one that is written changes.",
    ),
)

RECALL = (
    Question("greedy_word", right="c", tempting="a").because(
        a="That is drawing, at temperature 1.",
        b="It is chosen anew at each step, by the logits of the last position.",
        c="The word with the largest logit is taken, and becomes part of the input.",
    ),
    Question("louder_query", right="b", tempting="c").because(
        a="All scores become ten times as large, and so do the differences between them.",
        b="The lead of the largest score grows tenfold, and the exponential makes nearly all of it.",
        c="The order of the scores stays. So the key with the largest weight stays, too.",
    ),
    Question("padding_hidden_from", right="a", tempting="c").because(
        a="It says which keys are tokens. So it blocks columns, for every query alike.",
        b="Then a query that is padding would have no key at all, and the padding would still be seen.",
        c="Values have no mask of their own: a key with weight 0 brings no value.",
    ),
)
