"""Mistakes about trained heads: what can be learned without order, measures of heads, what one layer cannot tell."""

import numpy as np

from ..core import entropy
from .mistake import Mistake
from .pipeline import after_copy, copies, copy_of_last, mean_on


def _ranked_by(score):
    """Replace the measure of the heads by `score(steps)`, one number per head."""
    return {"head_scores": score}


def _ranked_on(cells):
    return _ranked_by(lambda s: mean_on(s.weights, cells(s.tokens)))


def _behind(tokens, by):
    """Return (b, n_q, n_k), True where the key stands `by` places before the query."""
    i = np.arange(tokens.shape[-1])
    return np.broadcast_to(i[:, None] - by == i, (*tokens.shape, tokens.shape[-1]))


def _entropy(weights):
    return entropy(weights).mean((0, -1))


def _fool_with(change):
    """Replace the sequence by a copy that `change(copy, place of the earlier copy of the last letter)` has altered."""

    def fooling(s):
        tokens = s.tokens.copy()
        change(tokens, copy_of_last(tokens))
        return tokens

    return {"fooling": fooling}


def _new_letter(tokens, place):
    tokens[place + 1] = tokens.max() + 1


def _new_last(tokens, place):
    tokens[-1] = tokens.max() + 1


def _reversed(tokens, place):
    tokens[:] = tokens[::-1]


def _rolled(tokens, place):
    tokens[:] = np.roll(tokens, 1)


def _nothing(tokens, place):
    pass


MISTAKES = (
    # --- numbers
    Mistake(
        "chance_assumed",
        "it is the accuracy of guessing without looking at the tokens",
        "The model sees which tokens there are, only not where.",
        "Which token would you guess if you knew that the other three are the same?",
    ),
    Mistake(
        "order_assumed",
        "the model knew the order",
        "Without positions every place gets the same choice of keys.",
        "Can the model tell place 1 from place 4?",
    ),
    Mistake(
        "own_token_forgotten",
        "it is how often the most frequent of all four tokens is right",
        "Each place also knows its own token, and that is never the one to name: the answer stands in another place.",
        "Leave the own token out. Which of the other three would you name?",
    ),
    Mistake(
        "likeliest_bag_only",
        "only the most likely split of the other three tokens, 2 : 1, was counted",
        "In 2 of 8 cases the other three agree.",
        "How often do the other three tokens agree?",
    ),
    Mistake(
        "bags_weighted_alike",
        "all bags were equally likely",
        "Of the 16 sequences 1 has no token of the first kind, and 6 have two.",
        "How many sequences belong to each bag?",
    ),
    # --- measures of heads
    Mistake(
        "previous_letter_measured",
        "it looks for the head that looks at the letter just before",
        "That head prepares induction in layer 1; it does not do it.",
        "Where does the present letter itself come into your measure?",
        (_ranked_on(lambda tokens: _behind(tokens, 1)),),
    ),
    Mistake(
        "copy_itself_measured",
        "it looks for the head that looks at the earlier copy itself",
        "The copy says which letter it is, and that is known. The letter after it is the one to predict.",
        "One place further: which key is that, j - 1 or j + 1?",
        (
            _ranked_on(lambda tokens: after_copy(tokens, 0)),
            _ranked_on(lambda tokens: copies(tokens) & ~np.eye(tokens.shape[-1], dtype=bool)),
        ),
    ),
    Mistake(
        "before_copy_measured",
        "it looks for the head that looks at the letter before the earlier copy",
        "Moved one place in the wrong direction: the prediction stands after the copy.",
        "Key j is asked for if the letter at j - 1 is that of the query.",
        (_ranked_on(lambda tokens: after_copy(tokens, -1)),),
    ),
    Mistake(
        "fixed_distance_measured",
        "it looks for the head that looks a fixed number of places back",
        "The distance to the earlier copy differs from sequence to sequence.",
        "Find the copy by its letter, not by its distance.",
        (_ranked_on(lambda tokens: _behind(tokens, 5)),),
    ),
    Mistake(
        "sharpest_head_measured",
        "it looks for the head with the sharpest weights",
        "A head can be sharp on the wrong key.",
        "Which key should the weight be on?",
        (_ranked_by(lambda s: s.weights.max(-1).mean((0, -1))), _ranked_by(lambda s: -_entropy(s.weights))),
    ),
    Mistake(
        "broadest_head_measured",
        "it looks for the head that spreads its weights evenly",
        "An induction head has most of its weight on a few keys. Is a sign wrong?",
        "Should a good head have a large measure or a small one?",
        (_ranked_by(lambda s: _entropy(s.weights)), _ranked_by(lambda s: -s.weights.max(-1).mean((0, -1)))),
    ),
    # --- what one layer cannot tell
    Mistake(
        "letters_changed",
        "it changes which letters there are",
        "One layer sees the letters, and so it can tell the two sequences apart.",
        "Only swap; put nothing in and take nothing out.",
        (_fool_with(_new_letter), _fool_with(_new_last)),
    ),
    Mistake(
        "last_letter_changed",
        "it changes the last letter",
        "The query of the last place comes from it, so one layer can tell the two sequences apart.",
        "The last letter asks the question. Leave it.",
        (_fool_with(_reversed), _fool_with(_rolled)),
    ),
    Mistake(
        "same_answer_left",
        "it leaves the letter that follows the earlier copy of the last letter",
        "The right answer is the same for both, so the layer may well be right on both.",
        "Which letter is the right answer? That one has to change.",
        (_fool_with(_nothing),),
    ),
)
