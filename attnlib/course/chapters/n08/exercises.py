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
    """Return the position where the last letter stood before; None if it did not."""
    positions = np.flatnonzero(tokens[:-1] == tokens[-1])
    return int(positions[0]) if len(positions) else None


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
    """Replace the sequence by a copy that `change(copy, position where its last letter stood before)` has altered."""

    def fooling(s):
        tokens = s.tokens.copy()
        change(tokens, copy_of_last(tokens))
        return tokens

    return {"fooling": fooling}


def _new_letter(tokens, position):
    tokens[position + 1] = tokens.max() + 1


def _reversed(tokens, position):
    tokens[:] = tokens[::-1]


def _rolled(tokens, position):
    tokens[:] = np.roll(tokens, 1)


def _nothing(tokens, position):
    pass


OWN = (
    Mistake(
        "chance_assumed",
        "it is the accuracy of guessing without looking at the tokens",
        "The model sees which tokens there are; it only does not see where they stand.",
        "Suppose that the other three tokens are the same. Which one would you guess?",
        "That one, and it is right. So guess the more frequent of the other three, and work out how often it is right.",
    ),
    Mistake(
        "order_assumed",
        "the model knew the order",
        "Without positions every query sees the same set of keys.",
        "Can the model tell position 1 from position 4?",
        "It cannot. So it guesses from the other tokens, and it is sometimes wrong.",
    ),
    Mistake(
        "own_token_forgotten",
        "it is how often the most frequent of all four tokens is right",
        "A query also knows which token is its own, and the answer stands at another position.",
        "Leave the own token out. Which of the other three would you name?",
        "The more frequent one. Three tokens of two kinds always have one.",
    ),
    Mistake(
        "likeliest_bag_only",
        "only the most likely split of the other three tokens, 2 : 1, was counted",
        "In 2 of 8 cases the other three agree.",
        "How often are the other three tokens the same?",
        "In 2 of 8 cases, and then the guess is always right. Weight both kinds of case by how often they occur.",
    ),
    Mistake(
        "majority_as_coin_flip",
        "where the other three tokens split 2 : 1, the guess was counted as right in half of the cases",
        "Each of the three is equally likely to be the answer, and two of them are of the same kind.",
        "The other three tokens are A, A and B. How often is A the answer?",
        "In 2 of 3 cases. So the guess is right more often than in half of them.",
    ),
    Mistake(
        "bags_weighted_alike",
        "all mixtures of the two kinds were taken as equally likely",
        "Of the 16 sequences, 1 has no token of the first kind, and 6 have two.",
        "How many of the 16 sequences have 0, 1, 2, 3 and 4 tokens of the first kind?",
        "1, 4, 6, 4 and 1. Weight each mixture by that, or count the other three tokens directly.",
    ),
    Mistake(
        "accuracy_in_per_cent",
        "the accuracy is right, but in per cent",
        "An accuracy is a share: of 1, not of 100.",
        "What is 40 per cent as a share of 1?",
        "Divide your number by 100.",
    ),
    Mistake(
        "previous_letter_measured",
        "it looks for the head that looks at the letter just before",
        "That head only prepares induction, in layer 1. A map of copies that is moved the wrong way finds it, too.",
        "Where does your measure use the letter of the query?",
        "The letter of the query should choose the keys: first find the earlier positions that hold the same letter.",
        _ranked_on(lambda tokens: behind(tokens, 1)),
    ),
    Mistake(
        "copy_itself_measured",
        "it looks for the head that looks at the earlier copy itself",
        "The query knows its own letter already. The letter to predict is the one after the copy.",
        "Does the letter to predict stand just before the earlier copy, or just after it?",
        "Just after it: move the map of the copies by one column to the right.",
        _ranked_on(lambda tokens: after_copy(tokens, 0)),
    ),
    Mistake(
        "before_copy_measured",
        "it looks for the head that looks at the letter before the earlier copy",
        "The map is moved in the wrong direction: the letter to predict stands after the copy.",
        "Key j counts if the letter just before it is the letter of the query.",
        "So compare the letter of the query with the letter at j - 1, not with the one at j + 1.",
        _ranked_on(lambda tokens: after_copy(tokens, -1)),
    ),
    Mistake(
        "fixed_distance_measured",
        "it looks for the head that looks a fixed number of letters back",
        "The distance to the earlier copy differs from sequence to sequence.",
        "Find the copy by its letter, not by its distance.",
        "Compare letters, tokens[:, :, None] == tokens[:, None, :]. The only step is from the copy to the next key.",
        # The furthest are left out: a measure of the weight on key 0 chooses them, too.
        *(_ranked_on(partial(behind, by=by)) for by in DISTANCES if by < 12),
    ),
    Mistake(
        "next_letter_measured",
        "it looks for the head that looks at the letter which comes next in the text",
        "No head can know that letter yet. Where letters come back at random, another letter followed the copy.",
        "What can the query know? Its own letter, and what stands before it.",
        "So find its own letter among the earlier ones, and measure the weight on the key just after it.",
        _ranked_on(next_letter),
    ),
    Mistake(
        "sharpest_head_measured",
        "it looks for the head with the sharpest weights",
        "A head can be sharp on the wrong key.",
        "Which key should the weight be on?",
        "On the key just after an earlier copy of the query's letter: add up the weight there.",
        _ranked_by(lambda s: s.weights.max(-1).mean((0, -1))),
    ),
    Mistake(
        "broadest_head_measured",
        "it looks for the head that spreads its weights evenly",
        "An induction head has most of its weight on a few keys. Is a sign wrong?",
        "Should a good head have a large measure or a small one?",
        "A large one. Measure the weight on the right keys, not how even the weights are.",
        _ranked_by(lambda s: _entropy(s.weights)),
    ),
    Mistake(
        "letters_changed",
        "it changes which letters there are, or how often",
        "One layer sees which letters there are, so it can tell the two sequences apart.",
        "Keep the same letters, and change only their order.",
        "Exchange two entries of a copy: other[[i, j]] = tokens[[j, i]].",
        _fool_with(_new_letter),
    ),
    Mistake(
        "last_letter_changed",
        "it changes the last letter",
        "The query of the last position comes from that letter, so one layer can tell the two sequences apart.",
        "The last letter asks the question. Keep it.",
        "Exchange two of the other letters, and leave index -1 as it is.",
        _fool_with(_reversed),
        _fool_with(_rolled),
    ),
    Mistake(
        "same_answer_left",
        "it keeps the letter that follows the earlier copy of the last letter",
        "Both sequences have the same right answer, so the layer may be right on both.",
        "Which letter is the right answer? That letter has to change.",
        "It stands just after the earlier copy of the last letter: exchange it with another letter before the end.",
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
    if yours == right:
        return RIGHT, ""
    return None, f"Largest at index {yours} of your result; the induction head is at index {right}."


def _judge_fooling(other, tokens):
    """Judge a sequence that should fool one layer."""
    other = np.asarray(other)
    if other.shape != tokens.shape:
        raise Unfit(
            f"Your function must return a sequence of the length it was given, shape {tokens.shape}; you return shape "
            f"{other.shape}. Fix: work on tokens.copy(): the check tries other sequences than the one in the text, too."
        )
    if other[-1] != tokens[-1]:  # before the letters: a new last one changes them, too
        return None, "The last letters of the two sequences differ."
    if sorted(other.tolist()) != sorted(tokens.tolist()):
        return None, "The two sequences do not have the same letters."
    if other[copy_of_last(other) + 1] == tokens[copy_of_last(tokens) + 1]:
        return None, "The right answer is the same for both sequences."
    return RIGHT, ""


EXERCISES = (
    Number(
        "bag_accuracy",
        "the best accuracy without positions for 4 tokens of 2 equally frequent kinds",
        (
            "A query knows its own token and which tokens there are. Which of these can the answer be?",
            "The answer is one of the other three, and each is equally likely: guess their more frequent token.",
            "The other three split 3 : 0 in 2 of 8 cases, 2 : 1 in 6 of 8. How often is the guess right in each?",
            "2/8 of the cases give accuracy 1, and 6/8 give 2/3. Add them up.",
        ),
        right=3 / 4,
        slips={
            "accuracy_in_per_cent": [75.0],
            "chance_assumed": [1 / 2],
            "order_assumed": [1.0],
            "own_token_forgotten": [11 / 16],
            "likeliest_bag_only": [2 / 3],
            "majority_as_coin_flip": [2 / 8 + 6 / 8 / 2],
            "bags_weighted_alike": [(1 + 2 / 3 + 2 / 3 + 1) / 4, (1 + 3 / 4 + 1 / 2 + 3 / 4 + 1) / 5],
        },
    ),
    Function(
        "induction_measure",
        "induction_measure(weights, tokens) -> (h,), one number per head, largest for the induction head. weights "
        "is (b, h, n_q, n_k), tokens (b, n). Any measure will do: the check ranks heads of known habits with it.",
        (
            "Which keys hold the letter of the query? tokens[:, :, None] == tokens[:, None, :] is (b, n_q, n_k).",
            "The induction head looks at the key just after such a key: move that map one column to the right.",
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
        "these at the last position, though another next letter is right. The last letter of tokens (n,) stood there "
        "once before; all others stand there once.",
        (
            "At the last position one layer computes a weighted mean. When do two sequences give the same mean?",
            "A sum stays the same if its terms are reordered. So keep the letters, and keep the last one last.",
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
        a="That is guessing blindly. Which tokens there are, and how often, can be seen without any order.",
        b="The model sees which tokens there are, and how often each. A frequent token is a better guess.",
        c="More training does not help: every query mixes the same set, so the order cannot get into the output.",
    ),
    Question(
        "dark_diagonal",
        right="b",
        tempting="a",
        a="With ten tokens the dark diagonal appears in both seeds, and with nine tokens hardly in either.",
        b="Position i must name the token at 9 - i, and no whole number solves i = 9 - i. So with ten tokens the own "
        "token is never the answer. With nine, it is the answer at 1 of 9 positions, as any other token is.",
        c="Then nine tokens would show a dark diagonal, too, and they hardly do.",
    ),
    Question(
        "one_layer",
        right="b",
        tempting="a",
        a="Every head makes its keys from the same vectors, and these know only their own letter and position. At this "
        "width, 32, four heads learn no more than one. (Set by hand and wider, one layer can do it by position alone.)",
        b="What is learned here matches letters: a key must know which letter stood before it, and only a layer below "
        "can tell it. At this width, 32, one layer stays below 0.4.",
        c="The mask hides later letters. The earlier copy and the letter that followed it stand before the query.",
    ),
    Question(
        "patching",
        right="b",
        tempting="a",
        a="The query only says which letter asks, and the letter knows that without layer 1.",
        b="The query looks for a key that says 'before me stood B'. Only layer 1 can tell a key which letter stood "
        "before it.",
        c="The value only has to say which letter it is, and the letter knows that without layer 1.",
    ),
    Question(
        "new_period",
        right="c",
        tempting="a",
        a="That would be so if it had learned distances. It matches letters.",
        b="One layer reaches about 0.3. Here both heads work, and the same two steps work at these distances.",
        c="Each key says which letter stood before it, and the query asks for that. The distance does not matter.",
    ),
    Question(
        "scale_and_training",
        right="b",
        tempting="c",
        a="At d_k = 8 the scores are small even without the scale, so softmax stays mixed.",
        b="The standard deviation of the scores grows as sqrt(d_k). So 128 starts with the largest scores, and "
        "softmax starts out peaky.",
        c="Given time, it does. But softmax starts out peaky, and there the gradients are nearly 0: it takes longer.",
    ),
)

RECALL = (
    Question(
        "poke",
        right="c",
        tempting="b",
        a="Another divisor changes the weights, but not which keys get any.",
        b="That changes the weights, but what the mask blocks stays blocked.",
        c="Under a causal mask no query sees a later token. So a change there must not move an earlier output.",
    ),
    Question(
        "divisor_of_a_head",
        right="a",
        tempting="c",
        a="Each head has 128 / 8 = 16 features, and the root of 16 is 4.",
        b="8 is the number of heads.",
        c="That is the root of d_model. Scores are computed after the split, from 16 features.",
    ),
    Question(
        "typical_score",
        right="b",
        tempting="c",
        a="Each single product has variance 1. The sum of 64 products has more.",
        b="The variance of the sum of 64 products is 64, and its root is 8.",
        c="64 is the variance. A typical score is as large as its root.",
    ),
)
