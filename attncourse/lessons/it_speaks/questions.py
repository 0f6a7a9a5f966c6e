"""The questions of It speaks: before a result, and from memory. Their text stands in the notebook."""

from ...engine.questions import Question

QUESTIONS = (
    Question("next_word_in_sight", right="b", tempting="a").because(
        a="It is a mistake, and yet the loss falls from 3.32 to 1.89.",
        b="The next word stands in the input, so the model need not guess it.",
        c="Each token now takes from other keys than before, so the loss cannot stay.",
    ),
    Question("unseen_mistake", right="c", tempting="b").because(
        a="Without positions it writes 'was a small, a small, a small': you see that at once.",
        b="It writes 'was a young, a young': each new token believes that the text has just begun.",
        c="The text is as fluent as before. Only a loss over a text, 3.46 against 3.32, shows that something is wrong.",
    ),
)

RECALL = (
    Question("what_rotation_leaves", right="c", tempting="b").because(
        a="Queries and keys are rotated. Values are not.",
        b="Each vector is rotated by its own position, but the score does not know that position.",
        c="Both are rotated, so their angle changes by the difference of their positions alone.",
    ),
    Question("what_is_kept", right="a", tempting="b").because(
        a="A new token needs the keys and values of all tokens so far. Nobody asks for an old query again.",
        b="The weights of a new token are new. Old ones are never used again.",
        c="The outputs of a layer feed the next layer once. What later tokens ask for are keys and values.",
    ),
    Question("scores_not_divided", right="a", tempting="c").because(
        a="Scores lie far apart, and softmax gives nearly everything to the largest.",
        b="That is the other end of the slider: divided by too much, all scores become nearly equal.",
        c="The order of the scores stays, but their distances grow, and softmax sees distances.",
    ),
)
