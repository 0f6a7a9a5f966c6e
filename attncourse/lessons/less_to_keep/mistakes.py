"""The mistakes that only Less to keep knows."""

import numpy as np

from attnlib import core
from attnlib.rounding import rounded

from ...mistakes.mistake import Mistake

SINKS = (24, 25, 21, 27, 19)  # layers of the model of It speaks with most weight on the first token, on Alice


def _rank(scores):
    """Return the place of each score in its row, the largest first; of equal ones the first."""
    return np.argsort(np.argsort(-scores, axis=-1, kind="stable"), axis=-1)


def _rounded_at_once(s):
    """Round all complete groups as one."""
    complete, rest = np.split(s.x, [s.complete], axis=-2)
    return np.concatenate([rounded(complete, s.bits, -2), rest], axis=-2)


def _of_all(each):
    """Return the least score that is kept of all queries and heads together: of `best`, or of `best` for each."""

    def least(s):
        scores = np.sort(s.ranked, None)
        return scores[-min(s.best * (s.ranked[..., 0].size if each else 1), scores.size)]

    return least


def _of_each_head(s):
    """Return the least score that is kept of all queries of a head together."""
    scores = np.sort(s.ranked.reshape(*s.ranked.shape[:-2], 1, -1))
    return scores[..., -min(s.best, s.k.shape[-2]), None]


def _off_by(n):
    def least(s):
        ranked = np.sort(s.ranked, -1)
        return ranked[..., -min(max(s.best + n, 1), ranked.shape[-1]), None]

    return least


def _of_smallest(s):
    last = np.sort(s.ranked, -1)[..., min(s.best, s.ranked.shape[-1]) - 1, None]
    return core.softmax(np.where(s.ranked <= last, s.masked_scores, -np.inf))


def _others_zero(s, blocked):
    """Return weights where keys that are not among the best have the score 0, `blocked` ones -inf or 0, too."""
    gone = blocked & np.isneginf(s.masked_scores)
    return core.softmax(np.where(s.chosen | gone, s.masked_scores, 0.0))


MISTAKES = (
    Mistake(
        "one_scale_for_all",
        behaves_as_if="all numbers shared one scale",
        symptom="One large feature makes the steps of all others wide.",
        hint="From which numbers do you take the lowest and the highest?",
        then="From those along one axis alone: min and max take it, with keepdims=True.",
        variants=(
            *({"along": lambda s, over=over: over} for over in ((-2, -1), None)),
            {"one": lambda s: lambda x: rounded(x.reshape(*x.shape[:-2], -1), s.bits).reshape(x.shape)},
        ),
    ),
    Mistake(
        "scale_along_other_axis",
        behaves_as_if="each token had a scale where each feature should, or the other way round",
        symptom="The result has the right shape, and it is rounded along the other axis.",
        hint="x is (n, d). What is left of it after min over axis -1: a number for each token, or for each feature?",
        then="For each token. Over axis -2, the tokens, one is left for each feature.",
        variants=({"along": lambda s: -3 - s.over}, {"one": lambda s: lambda x: rounded(x, s.bits)}),
    ),
    Mistake(
        "lowest_not_added",
        behaves_as_if="the lowest number were not put back",
        symptom="Every slice then begins at 0.",
        hint="A slice from 5 to 8: from where to where do your results reach?",
        then="From 0 to 3, since the lowest was subtracted. Add it at the end.",
        variants=({"back": lambda s: s.step * s.whole},),
    ),
    Mistake(
        "grid_starts_at_zero",
        behaves_as_if="the steps were counted from 0, not from the lowest number",
        symptom="The lowest number of a slice is then not exactly one of the levels.",
        hint="A slice from 5 to 8 with four levels: which numbers can a result be?",
        then="5, 6, 7 and 8: subtract the lowest before you divide by the step, and add it at the end.",
        variants=(
            {"back": lambda s: s.step * np.rint(s.x / s.divisor)},
            *({"lowest": lambda s: 0 * s.highest, **d} for d in ({}, {"divisor": lambda s: s.step + (s.step == 0)})),
        ),
    ),
    Mistake(
        "levels_off_by_one",
        behaves_as_if="there were one level more, or one fewer",
        symptom="Between 2^bits levels lie 2^bits - 1 steps.",
        hint="With 2 bits, how many different numbers can you write, and how many steps lie between them?",
        then="Four numbers, three steps: the range is divided by 2^bits - 1.",
        variants=(
            {"most": lambda s: 2**s.bits},
            {"most": lambda s: 2**s.bits, "whole": lambda s: np.minimum(np.rint(s.in_steps), 2**s.bits - 1)},
            {"most": lambda s: max(2**s.bits - 2, 1)},
        ),
    ),
    Mistake(
        "rounded_down",
        behaves_as_if="numbers were rounded down, or all of them up",
        symptom="The error is up to a whole step, and always to one side.",
        hint="Almost three steps above the lowest: which level is the nearest?",
        then="The third. Use np.rint or np.round, not a cast to int and not np.floor.",
        variants=(
            *({"whole": lambda s, to=to: to(s.in_steps)} for to in (np.floor, np.ceil)),
            {"whole": lambda s: (s.x - s.lowest) // s.divisor},  # 2 where 3 steps are 2.9999
        ),
    ),
    Mistake(
        "levels_returned",
        behaves_as_if="the numbers of the levels were returned, not what they stand for",
        symptom="The results are whole numbers from 0 to 2^bits - 1.",
        hint="What does level 3 of a slice stand for?",
        then="For the lowest number plus 3 steps.",
        variants=({"back": lambda s: s.whole},),
    ),
    Mistake(
        "flat_slice_lost",
        behaves_as_if="a slice of equal numbers had a step of 0 to divide by",
        symptom="0 / 0 is NaN.",
        hint="What is the step of a slice whose numbers are all 7?",
        then="0. Divide by 1 there, with np.where(step > 0, step, 1).",
        variants=({"divisor": lambda s: s.step},),
    ),
    Mistake(
        "rest_not_waiting",
        behaves_as_if="tokens that do not fill a group were rounded, too",
        symptom="Their scale would change with each token that comes.",
        hint="How many of 7 tokens lie in complete groups of 3?",
        then="6. The last one stays whole until two more have come.",
        variants=({"stops": lambda s: range(0, s.x.shape[-2], s.size)}, {"complete": lambda s: s.x.shape[-2]}),
    ),
    Mistake(
        "waiting_tokens_dropped",
        behaves_as_if="tokens that do not fill a group were left out, or set to 0",
        symptom="The newest words of a text could not be looked at.",
        hint="7 tokens in groups of 3: how many rows come back, and what stands in the last?",
        then="7, and the last is as it came: it waits for its group.",
        variants=(
            {"in_groups": lambda s: s.rounded[..., : s.complete, :]},
            {"in_groups": lambda s: s.rounded * (np.arange(s.x.shape[-2]) < s.complete)[:, None]},
        ),
    ),
    Mistake(
        "groups_from_the_end",
        behaves_as_if="groups were counted from the end",
        symptom="With each new token all groups would move.",
        hint="Which tokens wait: those that came first, or last?",
        then="Last. The first group begins at token 0.",
        variants=({"first": lambda s: s.x.shape[-2] % s.size},),
    ),
    Mistake(
        "scale_of_whole_text",
        behaves_as_if="all groups shared the scales of the whole text",
        symptom="That needs tokens that have not come yet.",
        hint="Which tokens have come when the first group is complete?",
        then="Its own. Each group has its own lowest numbers and steps.",
        variants=({"in_groups": _rounded_at_once},),
    ),
    Mistake(
        "forbidden_keys_counted",
        behaves_as_if="forbidden keys were among the best",
        symptom="They take places, and then the mask takes them away: fewer keys are left than were asked for.",
        hint="Which keys may take part in the ranking?",
        then="The allowed ones. Set the scores of the others to -inf before you rank.",
        variants=({"ranked": lambda s: s.scaled_scores},),
    ),
    Mistake(
        "one_ranking_for_all",
        behaves_as_if="several queries or heads shared one ranking",
        symptom="Some queries then keep many keys, and some none.",
        hint="How many keys does each query of each head keep?",
        then="Its own best ones: sort along the last axis alone.",
        variants=tuple({"least": least} for least in (_of_all(each=False), _of_all(each=True), _of_each_head)),
    ),
    Mistake(
        "not_renormalised",
        behaves_as_if="weights were dropped after the softmax, and the others stayed as they were",
        symptom="A row then sums to less than 1.",
        hint="What do the weights that are left sum to?",
        then="To less than 1. Set scores to -inf before the softmax, or divide by the new sum.",
        variants=({"best_weights": lambda s: s.kept},),
    ),
    Mistake(
        "ties_cut",
        behaves_as_if="of keys that tie for the last place some were dropped",
        symptom="Which of them stays depends on the order of sorting.",
        hint="Three keys have the same score, and two places are left. Which of them go?",
        then="None: keep each key whose score is at least the last one's that is kept.",
        variants=tuple({"chosen": lambda s, n=n: _rank(s.ranked[..., ::n])[..., ::n] < s.best} for n in (1, -1)),
    ),
    Mistake(
        "best_off_by_one",
        behaves_as_if="one key more were kept, or one fewer",
        symptom="The last that stays is the best-th largest score, itself among them.",
        hint="With best = 1: how many keys should be left in a row without ties?",
        then="One. Keep scores that are at least the best-th largest, with >=.",
        variants=(
            *({"least": _off_by(n)} for n in (1, -1)),
            {"chosen": lambda s: (s.ranked > s.least) & np.isfinite(s.ranked)},
        ),
    ),
    Mistake(
        "smallest_kept",
        behaves_as_if="keys with the smallest scores were kept",
        symptom="np.sort rises.",
        hint="At which end of a sorted row are the largest scores?",
        then="At its end: [..., -best].",
        variants=({"best_weights": _of_smallest},),
    ),
    Mistake(
        "dropped_score_zero",
        behaves_as_if="dropped keys had the score 0",
        symptom="The exponential of 0 is 1, so they still get weight.",
        hint="Which score has a key that gets no weight?",
        then="-inf, as behind a mask.",
        variants=tuple({"best_weights": lambda s, blocked=b: _others_zero(s, blocked)} for b in (True, False)),
    ),
    Mistake(
        "judged_by_the_next_word",
        behaves_as_if="layers were ranked by the loss on the next word",
        symptom="The next word hardly needs what stands far back, so this ranking does not see who finds it.",
        hint="narrowed(layers) returns two numbers. Which one do you rank by?",
        then="By the second, the loss on what is found again: narrowed([layer])[1].",
        variants=({"judge": lambda s: 0},),
    ),
    Mistake(
        "same_for_every_model",
        behaves_as_if="every sixth layer kept the whole text, or the first ones, whatever the model",
        symptom="Some models learn with every sixth. This one has learned without, and finds where it finds.",
        hint="Does your choice change if `narrowed` says something else?",
        then="It should: rank the layers by what narrowed([layer]) says of each.",
        variants=(
            *({"kept_whole": lambda s, first=first: range(first, 31, 6)} for first in (6, 1, 5)),
            {"kept_whole": lambda s: range(1, s.at_most + 1)},
            {"kept_whole": lambda s: range(1, 6)},
        ),
    ),
    Mistake(
        "largest_sinks",
        behaves_as_if="the layers that put most weight on the first token kept the whole text",
        symptom="Heads that find something park there while they wait, but others park there, too.",
        hint="What does a layer lose that looks at the first token, if it may always see the first token?",
        then="Nothing. Ask narrowed([layer]) what each layer loses.",
        variants=({"kept_whole": lambda s: SINKS[: s.at_most]}, {"kept_whole": lambda s: SINKS}),
    ),
    Mistake(
        "least_missed",
        behaves_as_if="the layers that are missed least kept the whole text",
        symptom="A low loss with a layer narrowed says that it needs no more.",
        hint="narrowed([layer])[1] is a loss. Is a layer with a large one needed, or not?",
        then="It is needed: take the layers with the largest losses.",
        variants=({"ranked": lambda s: 1 + np.argsort(s.lost, kind="stable")},),
    ),
    Mistake(
        "layers_from_zero",
        behaves_as_if="layers were counted from 0",
        symptom="Position 0 of an array belongs to layer 1.",
        hint="Which layer stands at position 0 of your list of losses?",
        then="Layer 1: add 1 to what np.argsort gives.",
        variants=({"ranked": lambda s: np.argsort(-s.lost, kind="stable")},),
    ),
    Mistake(
        "scale_of_the_latent",
        behaves_as_if="scores were divided by the root of the latent's width",
        symptom="The product is that of queries and keys, which have d_k features.",
        hint="How many features has the key that you did not make?",
        then="d_k, as the query has. Absorbing changes no score, so the divisor stays.",
        variants=({"scale": lambda s: s.latent.shape[-1] ** -0.5},),
    ),
    Mistake(
        "key_matrix_forgotten",
        behaves_as_if="queries met latents as if these were keys",
        symptom="It runs only where a latent is as wide as a key.",
        hint="Of which width is a latent, and of which a query?",
        then="r and d_k. W_UK stands between them.",
        variants=({"inside": lambda s: s.q},),
    ),
    Mistake(
        "absorbed_the_wrong_way",
        behaves_as_if="queries were multiplied by W_UK itself, not by its transpose",
        symptom="It runs only where r and d_k are equal.",
        hint="The score is q (c W_UK)^T. What is the transpose of a product?",
        then="W_UK^T c^T: the factors change places, so q meets W_UK transposed.",
        variants=({"inside": lambda s: s.q @ s.up},),
    ),
    Mistake(
        "value_matrix_forgotten",
        behaves_as_if="latents were mixed and W_UV was left out",
        symptom="The output then has r features.",
        hint="How wide should the output be?",
        then="d_v: multiply what was mixed, (n_q, r), by W_UV, (r, d_v).",
        variants=({"output": lambda s: s.mixed},),
    ),
    Mistake(
        "up_matrices_exchanged",
        behaves_as_if="the matrices of keys and of values had changed places",
        symptom="It runs where keys are as wide as values.",
        hint="Which matrix makes keys of latents?",
        then="W_UK makes keys. W_UV makes values, and comes after the weights.",
        variants=({"up": lambda s: s.W_UV, "out": lambda s: s.W_UK},),
    ),
)
