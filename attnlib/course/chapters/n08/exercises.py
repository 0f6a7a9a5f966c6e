"""Notebook 08, trained heads: its exercises, questions, and what only they need."""

from functools import cached_property, partial

import numpy as np

from ....core import entropy
from ...engine.compare import RIGHT
from ...engine.exercise import Function, Number
from ...engine.probes import Probe
from ...engine.questions import Question
from ...engine.run import Unfit
from ...engine.steps import Steps
from ...mistakes.mistake import Mistake
from .known_heads import DISTANCES, after_copy, behind, copies, heads_to_rank


def mean_on(weights, cells):
    """Return (h,): the weight (b, h, n_q, n_k) on the True cells (b, n_q, n_k), a mean over batch and queries."""
    return (weights * cells[:, None]).sum(-1).mean((0, -1))


def next_letter(tokens):
    """Return (b, n_q, n_k), True where key j holds the letter that comes after query i."""
    cells = np.zeros_like(copies(tokens))
    cells[:, :-1] = copies(tokens)[:, 1:]
    return cells


def copy_of_last(tokens):
    """Return the place where the last letter stood before; None if it did not."""
    places = np.flatnonzero(tokens[:-1] == tokens[-1])
    return int(places[0]) if len(places) else None


class _Steps(Steps):
    @cached_property
    def head_scores(self):
        return mean_on(self.weights, after_copy(self.tokens))

    @cached_property
    def fooling(self):
        """Swap the letter after the earlier copy of the last one with another."""
        answer = copy_of_last(self.tokens) + 1
        other = next(j for j in range(len(self.tokens) - 1) if j not in (answer - 1, answer))
        result = self.tokens.copy()
        result[[answer, other]] = self.tokens[[other, answer]]
        return result


def sequences_to_fool():
    return (
        Probe("D A B C E A", (np.array([3, 0, 1, 2, 4, 0]),)),
        Probe("B C D E F A B", (np.array([1, 2, 3, 4, 5, 0, 1]),)),
        Probe("A F B D E C D", (np.array([0, 5, 1, 3, 4, 2, 3]),)),
    )


def _ranked_by(score):
    """Replace the measure of the heads by `score(steps)`, one number per head."""
    return {"head_scores": score}


def _ranked_on(cells):
    return _ranked_by(lambda s: mean_on(s.weights, cells(s.tokens)))


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


OWN = (
    Mistake(
        "chance_assumed",
        "it is the accuracy of guessing without looking at the tokens",
        "The model sees which tokens there are, only not where.",
        "Which token would you guess if you knew that the other three are the same?",
        "That one, and you would be right. Guess the more frequent of the other three, and work out how often it is.",
    ),
    Mistake(
        "order_assumed",
        "the model knew the order",
        "Without positions every place gets the same choice of keys.",
        "Can the model tell place 1 from place 4?",
        "It cannot. So it names the best guess from the other tokens, and is sometimes wrong.",
    ),
    Mistake(
        "own_token_forgotten",
        "it is how often the most frequent of all four tokens is right",
        "Each place also knows which token is its own, and the answer stands in another place.",
        "Leave the own token out. Which of the other three would you name?",
        "The more frequent one. Of three tokens of two kinds there always is one.",
    ),
    Mistake(
        "likeliest_bag_only",
        "only the most likely split of the other three tokens, 2 : 1, was counted",
        "In 2 of 8 cases the other three agree.",
        "How often do the other three tokens agree?",
        "In 2 of 8 cases, and then the guess is always right. Weigh both kinds of case.",
    ),
    Mistake(
        "bags_weighted_alike",
        "all bags were equally likely",
        "Of the 16 sequences 1 has no token of the first kind, and 6 have two.",
        "How many sequences belong to each bag?",
        "1, 4, 6, 4 and 1 of 16: weigh each bag by that, or count the other three tokens directly.",
    ),
    Mistake(
        "accuracy_in_per_cent",
        "the accuracy is right, in per cent",
        "An accuracy is a share: of 1, not of 100.",
        "What is 40 per cent as a share of 1?",
        "Divide your number by 100.",
    ),
    Mistake(
        "previous_letter_measured",
        "it looks for the head that looks at the letter just before",
        "That head prepares induction in layer 1; it does not do it. (A map of copies that is moved the wrong way "
        "asks for it, too.)",
        "Where does the present letter itself come into your measure?",
        "It should choose the keys: first find the earlier places that hold the same letter.",
        _ranked_on(lambda tokens: behind(tokens, 1)),
    ),
    Mistake(
        "copy_itself_measured",
        "it looks for the head that looks at the earlier copy itself",
        "The copy says which letter it is, and that is known. The letter after it is the one to predict.",
        "Does the letter to predict stand one place before the earlier copy, or one place after it?",
        "One place after it: move the map of the copies by one column to the right.",
        _ranked_on(lambda tokens: after_copy(tokens, 0)),
        _ranked_on(lambda tokens: copies(tokens) & ~np.eye(tokens.shape[-1], dtype=bool)),
    ),
    Mistake(
        "before_copy_measured",
        "it looks for the head that looks at the letter before the earlier copy",
        "Moved one place in the wrong direction: the prediction stands after the copy.",
        "A key counts if the letter one place before it is that of the query.",
        "So compare the letter of the query with that at j - 1, not with that at j + 1.",
        _ranked_on(lambda tokens: after_copy(tokens, -1)),
    ),
    Mistake(
        "fixed_distance_measured",
        "it looks for the head that looks a fixed number of places back",
        "The distance to the earlier copy differs from sequence to sequence.",
        "Find the copy by its letter, not by its distance.",
        "Compare letters, tokens[:, :, None] == tokens[:, None, :], and use no distance but the one step to the right.",
        # The furthest are left out: a measure of the weight on key 0 chooses them, too.
        *(_ranked_on(partial(behind, by=by)) for by in DISTANCES if by < 12),
    ),
    Mistake(
        "next_letter_measured",
        "it looks for the head that looks at the letter which then comes next",
        "No head can know that letter yet. Where letters come back at random, another one came after the copy.",
        "What can the query know? Its own letter, and what stands before it.",
        "So look for its own letter in what stands before it, and for the place right behind.",
        _ranked_on(next_letter),
    ),
    Mistake(
        "sharpest_head_measured",
        "it looks for the head with the sharpest weights",
        "A head can be sharp on the wrong key.",
        "Which key should the weight be on?",
        "On the one right behind an earlier copy of the query's letter: add up the weight there.",
        _ranked_by(lambda s: s.weights.max(-1).mean((0, -1))),
        _ranked_by(lambda s: -_entropy(s.weights)),
    ),
    Mistake(
        "broadest_head_measured",
        "it looks for the head that spreads its weights evenly",
        "An induction head has most of its weight on a few keys. Is a sign wrong?",
        "Should a good head have a large measure or a small one?",
        "A large one. Measure the weight on the right keys, not how even the weights are.",
        _ranked_by(lambda s: _entropy(s.weights)),
        _ranked_by(lambda s: -s.weights.max(-1).mean((0, -1))),
    ),
    Mistake(
        "letters_changed",
        "it changes which letters there are, or how often",
        "One layer sees the letters, and so it can tell the two sequences apart.",
        "Only swap; put nothing in and take nothing out.",
        "Exchange two entries of a copy: other[[i, j]] = tokens[[j, i]].",
        _fool_with(_new_letter),
    ),
    Mistake(
        "last_letter_changed",
        "it changes the last letter",
        "The query of the last place comes from it, so one layer can tell the two sequences apart.",
        "The last letter asks the question. Leave it.",
        "Exchange two of the others, and let index -1 be.",
        _fool_with(_reversed),
        _fool_with(_rolled),
        _fool_with(_new_last),
    ),
    Mistake(
        "same_answer_left",
        "it leaves the letter that follows the earlier copy of the last letter",
        "The right answer is the same for both, so the layer may well be right on both.",
        "Which letter is the right answer? That one has to change.",
        "It stands right behind the earlier copy of the last letter: exchange it with another letter before the end.",
        _fool_with(_nothing),
    ),
)


def _judge_measure(scores, weights, tokens):
    """Judge a measure by the head for which it is largest."""
    scores, h = np.asarray(scores), weights.shape[1]
    if scores.shape != (h,):
        raise Unfit(
            f"Your measure must return one number for each of the {h} heads, shape ({h},); you return shape "
            f"{scores.shape}. Fix: sum over the keys, then take the mean over batch and queries, .mean((0, -1))."
        )
    if np.isnan(scores).any():
        raise Unfit(
            "Your measure must be a number for every head; it is NaN for some. Fix: where a query has no earlier copy "
            "of its letter, count 0 or leave it out; do not divide by 0."
        )
    yours, right = int(scores.argmax()), int(mean_on(weights, after_copy(tokens)).argmax())
    return (RIGHT, "") if yours == right else (None, f"Largest for head {yours}; the induction head is {right}.")


def _judge_fooling(other, tokens):
    """Judge a sequence that should fool one layer."""
    other = np.asarray(other)
    if other.shape != tokens.shape:
        raise Unfit(
            f"Your function must return a sequence of the length it was given, shape {tokens.shape}; you return shape "
            f"{other.shape}. Fix: work on tokens.copy(): the check tries other sequences than the one in the text, too."
        )
    if other[-1] != tokens[-1]:  # before the letters: a new last one changes them, too
        return None, "Of both sequences: the last letter differs."
    if sorted(other.tolist()) != sorted(tokens.tolist()):
        return None, "Of both sequences: the letters differ."
    if other[copy_of_last(other) + 1] == tokens[copy_of_last(tokens) + 1]:
        return None, "Of both sequences: the right answer is the same."
    return RIGHT, ""


EXERCISES = (
    Number(
        "bag_accuracy",
        "the best accuracy without positions for 4 places and 2 equally frequent tokens",
        (
            "A place knows its own token and which tokens there are. Which of these can the answer be?",
            "The answer is one of the other three, each as likely as the next: guess their more frequent token.",
            "The other three split 3 : 0 in 2 of 8 cases, 2 : 1 in 6 of 8. How often is the guess right in each?",
            "2/8 of the cases give accuracy 1, 6/8 give 2/3. Add up.",
        ),
        right=3 / 4,
        slips={
            "accuracy_in_per_cent": [75.0],
            "chance_assumed": [1 / 2],
            "order_assumed": [1.0],
            "own_token_forgotten": [11 / 16],
            "likeliest_bag_only": [2 / 3],
            "bags_weighted_alike": [(1 + 2 / 3 + 2 / 3 + 1) / 4, (1 + 3 / 4 + 1 / 2 + 3 / 4 + 1) / 5],
        },
    ),
    Function(
        "induction_measure",
        "induction_measure(weights, tokens) -> (h,), one number per head, largest for the induction head. weights "
        "is (b, h, n_q, n_k), tokens (b, n). Any measure will do: the check ranks heads of known habits with it.",
        (
            "Which keys hold the letter of the query? tokens[:, :, None] == tokens[:, None, :] is (b, n_q, n_k).",
            "The induction head looks one place behind such a key: move that map one column to the right.",
            "With that map, (b, n_q, n_k), as cells[:, None]: (weights * cells[:, None]).sum(-1).mean((0, -1)).",
        ),
        probes=heads_to_rank(),
        given=lambda weights, tokens: {"weights": weights, "tokens": tokens},
        result=lambda s: s.head_scores,
        judge=_judge_measure,
        steps=_Steps,
    ),
    Function(
        "fool_one_layer",
        "fool_one_layer(tokens) -> (n,), other tokens that one attention layer without positions cannot tell from "
        "these at the last place, though another next letter is right. The last letter of tokens (n,) stood there "
        "once before; all others stand there once.",
        (
            "At the last place one layer computes a weighted mean over keys. When do two sequences give the same?",
            "A sum does not change if its terms change places. So keep the letters, and keep the last one last.",
            "Swap the letter that follows the earlier copy of the last one with any other letter before the end.",
        ),
        probes=sequences_to_fool(),
        given=lambda tokens: {"tokens": tokens},
        result=lambda s: s.fooling,
        judge=_judge_fooling,
        steps=_Steps,
    ),
)

QUESTIONS = (
    Question(
        "no_positions",
        right="b",
        tempting="c",
        a="That is guessing without looking. Which tokens occur, and how often, can be seen without any order.",
        b="The model sees which tokens there are, and how often. A token that is there more often is a better guess.",
        c="No training helps: every place mixes the same set, so the order cannot get into the output.",
    ),
    Question(
        "dark_diagonal",
        right="b",
        tempting="a",
        a="With ten places both seeds have the dark diagonal, and with nine neither has it.",
        b="With ten places, place i is to name the token of place 9 - i, and i = 9 - i has no solution. So its "
        "own token tells a place nothing about the answer. With nine, its own is right in 1 of 9 places, like "
        "any other key: nothing is gained by leaving it out.",
        c="Then it would do so with nine places, too, and there it hardly does.",
    ),
    Question(
        "one_layer",
        right="b",
        tempting="a",
        a="Every head of that layer reads the same keys, and these know their own letter and place only.",
        b="To find the place after an earlier copy, a key must know which letter stands before it. Here only a layer "
        "below can tell it.",
        c="The mask hides what comes later in the sequence. The earlier copy and what followed it stand before.",
    ),
    Question(
        "new_period",
        right="c",
        tempting="a",
        a="That would be so if it had learned distances. It matches letters.",
        b="One layer reaches about 0.3. Both heads are there, and the same two steps work at these distances.",
        c="The keys say which letter stood before them, and the query asks for that. It works as long as the first "
        "copy stands in the first twelve places, as it did in training.",
    ),
    Question(
        "scale_and_training",
        right="b",
        tempting="c",
        a="At d_k = 8 raw scores are small enough for softmax to stay mixed.",
        b="Of the three, 128 starts with the largest scores: their standard deviation grows as sqrt(d_k), so softmax "
        "starts out peaky.",
        c="Given time, it does. But the start is peaky, and there gradients are nearly 0: it takes longer.",
    ),
)

RECALL = (
    Question(
        "poke",
        right="c",
        tempting="b",
        a="Another divisor changes the weights, but not which keys have one.",
        b="That changes the weights. But what the mask blocks stays blocked.",
        c="Under a causal mask no query sees a later key, so a change there may move no earlier output.",
    ),
    Question(
        "divisor_of_a_head",
        right="a",
        tempting="c",
        a="Each head has 128 / 8 = 16 features, and the root of 16 is 4.",
        b="8 is the number of heads.",
        c="That is the root of d_model. Scores are made after the split, of 16 features.",
    ),
    Question(
        "typical_score",
        right="b",
        tempting="c",
        a="Each product has variance 1. Their sum has more.",
        b="The variance of the sum of 64 products is 64, and its root is 8.",
        c="64 is the variance. A typical score is as large as its root.",
    ),
)
