"""The mistakes that only Train and look knows, and its steps."""

from functools import cached_property, partial
from itertools import permutations

import numpy as np

from attnlib.core import entropy

from ...engine.steps import Steps
from ...mistakes.mistake import Mistake
from .known_heads import DISTANCES, after_copy, behind, copies

PARTS = "queries", "keys", "values"


def mean_on(weights, cells):
    """Return (h,): the weight (b, h, n_q, n_k) on the True cells (b, n_q, n_k), a mean over batch and queries."""
    return (weights * cells[:, None]).sum(-1).mean((0, -1))


def next_letter(tokens):
    """Return (b, n_q, n_k), True where key j holds the letter that comes after query i."""
    cells = np.zeros_like(copies(tokens))
    cells[:, :-1] = copies(tokens)[:, 1:]
    return cells


class HeadSteps(Steps):
    head_scores = cached_property(lambda s: mean_on(s.weights, after_copy(s.tokens)))
    # The vectors as they would be without layer 1.
    bare = cached_property(lambda s: s.x - s.written)
    # What queries, keys and values are made of.
    handed = cached_property(lambda s: [s.bare if part == s.part else s.x for part in PARTS])
    patched = cached_property(lambda s: s.layer(*s.handed))


def _choose_inputs(choose):
    """Replace what queries, keys and values are made of by `choose(steps, part)`."""
    return {"handed": lambda s: [choose(s, part) for part in PARTS]}


def _reorder_parts(order):
    """Take the part that was asked for as another one."""
    other = dict(zip(PARTS, order, strict=True))
    return _choose_inputs(lambda s, part: s.bare if part == other[s.part] else s.x)


def _bare(change):
    return {"bare": lambda s: change(s.x, s.written)}


def _ranked_on(cells):
    """Rank the heads by their weight on other `cells(tokens)`."""
    return {"head_scores": lambda s: mean_on(s.weights, cells(s.tokens))}


MISTAKES = (
    Mistake(
        "chance_assumed",
        behaves_as_if="it is the accuracy of guessing without looking at the tokens",
        symptom="The model sees which tokens there are; it only does not see where they stand.",
        hint="Suppose that the other three tokens are the same. Which one would you guess?",
        then="That one, and it is right. So guess the more frequent of the other three, and work out how often it is "
        "right.",
    ),
    Mistake(
        "order_assumed",
        behaves_as_if="the model knew the order",
        symptom="Without positions every query sees the same set of keys.",
        hint="Can the model tell position 1 from position 4?",
        then="It cannot. So it guesses from the other tokens, and it is sometimes wrong.",
    ),
    Mistake(
        "own_token_forgotten",
        behaves_as_if="it is how often the most frequent of all four tokens is right",
        symptom="A query also knows which token is its own, and the answer stands at another position.",
        hint="Leave the own token out. Which of the other three would you name?",
        then="The more frequent one. Three tokens of two kinds always have one.",
    ),
    Mistake(
        "likeliest_bag_only",
        behaves_as_if="only the most likely split of the other three tokens, 2 : 1, was counted",
        symptom="In 2 of 8 cases the other three agree.",
        hint="How often are the other three tokens the same?",
        then="In 2 of 8 cases, and then the guess is always right. Weight both kinds of case by how often they occur.",
    ),
    Mistake(
        "digits_above_taken",
        behaves_as_if="this were the task above, with ten tokens of ten kinds",
        symptom="That number belongs to the ten tokens above. Here a sequence has 4 tokens, of only 2 kinds.",
        hint="A query knows the other three tokens, but not their order. Which of them would you name?",
        then="The more frequent kind. Find how often the three agree, and how often they split 2 : 1.",
    ),
    Mistake(
        "majority_as_coin_flip",
        behaves_as_if="where the other three tokens split 2 : 1, the guess was counted as right in half of the cases",
        symptom="Each of the three is equally likely to be the answer, and two of them are of the same kind.",
        hint="The other three tokens are A, A and B. How often is A the answer?",
        then="In 2 of 3 cases. So the guess is right more often than in half of them.",
    ),
    Mistake(
        "bags_weighted_alike",
        behaves_as_if="all mixtures of the two kinds were taken as equally likely",
        symptom="Of the 16 sequences, 1 has no token of the first kind, and 6 have two.",
        hint="How many of the 16 sequences have 0, 1, 2, 3 and 4 tokens of the first kind?",
        then="1, 4, 6, 4 and 1. Weight each mixture by that, or count the other three tokens directly.",
    ),
    Mistake(
        "accuracy_in_per_cent",
        behaves_as_if="the accuracy is right, but in per cent",
        symptom="An accuracy is a share: of 1, not of 100.",
        hint="What is 40 per cent as a share of 1?",
        then="Divide your number by 100.",
    ),
    Mistake(
        "previous_letter_measured",
        behaves_as_if="it looks for the head that looks at the letter just before",
        symptom="That head only prepares induction, in layer 1. A map of copies that is moved the wrong way finds it, "
        "too.",
        hint="Where does your measure use the letter of the query?",
        then="The letter of the query should choose the keys: first find the earlier positions that hold the same "
        "letter.",
        variants=(_ranked_on(lambda tokens: behind(tokens, 1)),),
    ),
    Mistake(
        "copy_itself_measured",
        behaves_as_if="it looks for the head that looks at the earlier copy itself",
        symptom="The query knows its own letter already. The letter to predict is the one after the copy.",
        hint="Does the letter to predict stand just before the earlier copy, or just after it?",
        then="Just after it: move the map of the copies by one column to the right.",
        variants=(_ranked_on(lambda tokens: after_copy(tokens, 0)),),
    ),
    Mistake(
        "before_copy_measured",
        behaves_as_if="it looks for the head that looks at the letter before the earlier copy",
        symptom="The map is moved in the wrong direction: the letter to predict stands after the copy.",
        hint="Key j counts if the letter just before it is the letter of the query.",
        then="So compare the letter of the query with the letter at j - 1, not with the one at j + 1.",
        variants=(_ranked_on(lambda tokens: after_copy(tokens, -1)),),
    ),
    Mistake(
        "fixed_distance_measured",
        behaves_as_if="it looks for the head that looks a fixed number of letters back",
        symptom="The distance to the earlier copy differs from sequence to sequence.",
        hint="Find the copy by its letter, not by its distance.",
        then="Compare letters, tokens[:, :, None] == tokens[:, None, :]. The only step is from the copy to the next "
        "key.",
        # The furthest are left out: a measure of the weight on key 0 chooses them, too.
        variants=tuple(_ranked_on(partial(behind, by=by)) for by in DISTANCES if by < 12),
    ),
    Mistake(
        "next_letter_measured",
        behaves_as_if="it looks for the head that looks at the letter which comes next in the text",
        symptom="No head can know that letter yet. Where letters come back at random, another letter followed the "
        "copy.",
        hint="What can the query know? Its own letter, and what stands before it.",
        then="So find its own letter among the earlier ones, and measure the weight on the key just after it.",
        variants=(_ranked_on(next_letter),),
    ),
    Mistake(
        "sharpest_head_measured",
        behaves_as_if="it looks for the head with the sharpest weights",
        symptom="A head can be sharp on the wrong key.",
        hint="Which key should the weight be on?",
        then="On the key just after an earlier copy of the query's letter: add up the weight there.",
        variants=({"head_scores": lambda s: s.weights.max(-1).mean((0, -1))},),
    ),
    Mistake(
        "broadest_head_measured",
        behaves_as_if="it looks for the head that spreads its weights evenly",
        symptom="An induction head has most of its weight on a few keys. Is a sign wrong?",
        hint="Should a good head have a large measure or a small one?",
        then="A large one. Measure the weight on the right keys, not how even the weights are.",
        variants=({"head_scores": lambda s: entropy(s.weights).mean((0, -1))},),
    ),
    Mistake(
        "wrong_part_patched",
        behaves_as_if="layer 1 is kept from another part than the one that was asked for",
        symptom="Asked about the keys, the experiment answers about the queries or the values.",
        hint="In which order does `layer` take its three arguments?",
        then="Queries, keys, values. Compare `part` with the three names in this order.",
        variants=tuple(_reorder_parts(order) for order in permutations(PARTS) if order != PARTS),
    ),
    Mistake(
        "part_ignored",
        behaves_as_if="the same part is patched, whatever `part` says",
        symptom="Asked about each of the three, the experiment gives one answer three times.",
        hint="Where does your function use `part`?",
        then="Compare it with the three names: the one that is equal is made of vectors without what layer 1 wrote.",
        variants=tuple(_reorder_parts((name, name, name)) for name in PARTS),
    ),
    Mistake(
        "other_parts_patched",
        behaves_as_if="layer 1 is kept from the two other parts, and reaches only the one that was asked for",
        symptom="That asks whether the part is enough; the question was whether it is needed.",
        hint="Which of the three should do without layer 1: the part that is named, or the others?",
        then="The part that is named. The other two are made of `x`.",
        variants=(_choose_inputs(lambda s, part: s.x if part == s.part else s.bare),),
    ),
    Mistake(
        "every_part_patched",
        behaves_as_if="layer 1 is kept from all three parts, whatever `part` says",
        symptom="If the accuracy falls, nobody knows which of the three needed it.",
        hint="What do the two parts receive that are not named?",
        then="`x`, as it is. Only the part that is named is changed.",
        variants=(_choose_inputs(lambda s, part: s.bare),),
    ),
    Mistake(
        "nothing_patched",
        behaves_as_if="layer 2 receives its own input, with what layer 1 wrote, in all three parts",
        symptom="The output is that of the unchanged model, so every part looks as if it did not need layer 1.",
        hint="Which of your three arrays is without what layer 1 wrote?",
        then="`x` holds it, because layer 1 has added it. Subtract it for the part that is named.",
        variants=(_choose_inputs(lambda s, part: s.x),),
    ),
    Mistake(
        "written_alone",
        behaves_as_if="the part is made of what layer 1 wrote, and of nothing else",
        symptom="That takes everything away *but* layer 1, the letters themselves, too.",
        hint="What is left of `x` if layer 1 had written nothing?",
        then="`x` without `written`: the difference of the two.",
        variants=(_bare(lambda x, written: written), _bare(lambda x, written: -written)),
    ),
    Mistake(
        "written_twice",
        behaves_as_if="what layer 1 wrote is added once more",
        symptom="The part holds it twice, since `x` holds it already.",
        hint="Does `x` come before layer 1, or after it?",
        then="After it: so subtract.",
        variants=(_bare(lambda x, written: x + written),),
    ),
    Mistake(
        "everything_taken_away",
        behaves_as_if="the part is made of zeros",
        symptom="The letters themselves are gone, too, so the experiment says nothing about layer 1.",
        hint="What should the part still know?",
        then="Its own letter and position: `x` without what layer 1 wrote.",
        variants=(_bare(lambda x, written: 0 * x),),
    ),
    Mistake(
        "batch_mixed",
        behaves_as_if="what is subtracted belongs to another sequence, or is a mean over sequences",
        symptom="Each sequence has its own letters, so another one's letters remain in it.",
        hint="Which sequence of the batch did layer 1 write that for?",
        then="Subtract entry by entry, `x - written`: both are (b, n, d).",
        variants=(
            *(_bare(lambda x, written, by=by: x - np.roll(written, by, 0)) for by in (1, -1)),
            *(_bare(lambda x, written, by=by: np.roll(x - written, by, 0)) for by in (1, -1)),
            _bare(lambda x, written: x - written[::-1]),
            _bare(lambda x, written: (x - written)[::-1]),
            _bare(lambda x, written: x[::-1]),
            _bare(lambda x, written: x - written[:1]),
            _bare(lambda x, written: x - written.mean(0)),
            _bare(lambda x, written: x - written + written.mean(0)),
        ),
    ),
)
