"""Less to keep: its ways, exercises, questions and mistakes."""

from functools import cached_property

import numpy as np

from attnlib import core
from attnlib.rounding import rounded

from ..engine.exercise import OUTPUT_AXES, TOKEN_AXES, Function, Lean, asked
from ..engine.probes import BATCH, CUBE, DEAD, HUGE, MASK, PLAIN, PLAIN_MASKED, SINGLE, Draw, Probe, dead, single
from ..engine.questions import Question
from ..engine.steps import Steps, swap
from ..mistakes.mistake import Mistake


def in_groups(x, bits, size):
    """Round x (..., n, d) in groups of `size` tokens, a scale for each feature of a group; the last n % size wait.

    >>> in_groups(np.array([[0.0], [0.9], [3.0], [7.7]]), 2, 3).ravel()
    array([0. , 1. , 3. , 7.7])
    """
    return _Groups(x=x, bits=bits, size=size).in_groups


def best_keys(query, key, value, attn_mask=None, best=8):
    """Attend to the `best` allowed keys with the largest scores of each query, and to keys that tie with the last.

    >>> best_keys(np.ones((1, 1)), np.array([[3.0], [1.0], [2.0]]), np.eye(3), best=1)
    array([[1., 0., 0.]])
    """
    return _Best(q=query, k=key, v=value, mask=attn_mask, best=best).output


def latent_attention(query, latent, W_UK, W_UV, attn_mask=None):
    """Attend to keys latent W_UK and values latent W_UV, and make neither. Source: DeepSeek 2024.

    query (..., n_q, d_k), latent (n_k, r), W_UK (..., r, d_k) and W_UV (..., r, d_v) give (..., n_q, d_v).

    >>> latent_attention(np.ones((1, 2)), np.eye(3), np.zeros((3, 2)), np.eye(3)).round(2)
    array([[0.33, 0.33, 0.33]])
    """
    return _Latent(q=query, latent=latent, W_UK=W_UK, W_UV=W_UV, mask=attn_mask).output


class _Rounded(Steps):
    over = -1
    along = cached_property(lambda s: s.over)  # over which axis a scale reaches
    lowest = cached_property(lambda s: s.x.min(s.along, keepdims=True))
    highest = cached_property(lambda s: s.x.max(s.along, keepdims=True))
    most = cached_property(lambda s: 2**s.bits - 1)
    step = cached_property(lambda s: (s.highest - s.lowest) / s.most)
    divisor = cached_property(lambda s: np.where(s.step > 0, s.step, 1))
    in_steps = cached_property(lambda s: (s.x - s.lowest) / s.divisor)
    whole = cached_property(lambda s: np.rint(s.in_steps))
    back = cached_property(lambda s: s.lowest + s.step * s.whole)


class _Groups(Steps):
    first = 0  # token of the first group
    complete = cached_property(lambda s: s.x.shape[-2] // s.size * s.size)
    stops = cached_property(lambda s: range(s.first, s.first + s.complete, s.size))
    one = cached_property(lambda s: lambda x: rounded(x, s.bits, -2))

    @cached_property
    def in_groups(self):
        result = np.array(self.x)
        for start in self.stops:
            result[..., start : start + self.size, :] = self.one(self.x[..., start : start + self.size, :])
        return result


class _Best(Steps):
    ranked = cached_property(lambda s: s.masked_scores)
    least = cached_property(lambda s: np.sort(s.ranked, -1)[..., -min(s.best, s.ranked.shape[-1]), None])
    chosen = cached_property(lambda s: s.ranked >= s.least)
    kept = cached_property(lambda s: np.where(s.chosen, s.weights, 0))
    best_weights = cached_property(lambda s: s.kept / np.where((total := s.kept.sum(-1, keepdims=True)) > 0, total, 1))
    output = cached_property(lambda s: s.best_weights @ s.v)


class _Latent(Steps):
    up = cached_property(lambda s: s.W_UK)
    inside = cached_property(lambda s: s.q @ swap(s.up))  # (..., n_q, r): the query among latents
    scores = cached_property(lambda s: s.inside @ swap(s.latent))
    mixed = cached_property(lambda s: s.weights @ s.latent)  # (..., n_q, r)
    out = cached_property(lambda s: s.W_UV)
    output = cached_property(lambda s: s.mixed @ s.out)


def _arrays_to_round():
    draw = Draw("rounded")
    x, square = 3 * draw(5, 4) + 2, 2 * draw(4, 4) - 1
    stripe = draw(3, 16) + 9 * (np.arange(16) == 5)
    flat = draw(5, 4) + np.array([0, 9.0, 0, -4])
    flat[:, 2], flat[3] = 1.5, 1.5
    return (
        Probe("keys, 2 bits, a scale for each token", (x, 2)),
        Probe("keys, 2 bits, a scale for each feature", (x, 2, -2)),
        Probe("3 bits", (flat[:3, :2] - 7, 3, -1)),
        Probe("1 bit", (draw(3, 5), 1, -2)),
        Probe("keys with a stripe", (stripe, 3, -1)),
        Probe("as many tokens as features", (square, 2, -2)),
        Probe("several heads, (h, n, d)", (draw(2, 5, 4) + 1, 2, -2)),
        Probe("several heads, a scale for each token", (draw(2, 3, 4) - 2, 3, -1)),
        Probe(SINGLE, (*single(draw(2, 6, 3)), 4, -2)),
        Probe("a feature that is the same in every token", (flat[:3], 2, -2)),
        Probe("a token with one number only", (flat, 2, -1)),
    )


def _texts_to_group():
    draw = Draw("in_groups")
    return (
        Probe("7 tokens in groups of 3", (draw(7, 4), 2, 3)),
        Probe("groups that fit: 6 tokens by 3", (2 * draw(6, 4) + 1, 2, 3)),
        Probe("8 tokens in groups of 3", (draw(8, 3), 1, 3)),
        Probe("fewer tokens than a group", (draw(2, 4), 2, 3)),
        Probe("several heads, (h, n, d)", (draw(2, 9, 3), 2, 4)),
        Probe("as many features as tokens", (draw(5, 5), 2, 2)),
        Probe(SINGLE, (*single(draw(2, 11, 3)), 3, 4)),
    )


def _best_probes():
    draw = Draw("best_keys")

    def arrays(n_q, n_k, *lead):
        return draw(*lead, n_q, 6), draw(*lead, n_k, 6), draw(*lead, n_k, 3)

    one, causal = arrays(4, 5), np.tri(6, dtype=bool)
    query, key, value = draw(3, 4).round(), draw(6, 4).round(), draw(6, 3)  # whole numbers tie in any order of adding
    key[4], key[5] = key[1], key[2]  # equal keys have equal scores
    return (
        Probe(PLAIN, (*one, None, 2)),
        Probe(PLAIN_MASKED, (*one, MASK, 2)),
        Probe("a causal mask", (*arrays(6, 6), causal, 3)),
        Probe("heads behind a causal mask", (*arrays(6, 6, 3), causal, 2)),
        Probe(BATCH, (*arrays(3, 7, 2, 2), None, 4)),
        Probe(CUBE, (draw(4, 4, 4), draw(4, 4, 4), draw(4, 4, 4), None, 2)),
        Probe("keys that tie", (query, key, value, None, 3)),
        Probe("keys that tie for the first place", (query, key, value, None, 1)),
        Probe("fewer keys than are asked for", (*one, None, 9)),
        Probe(SINGLE, (*single(*arrays(6, 6, 2)), causal, 3)),
        Probe(DEAD, (*one, dead(MASK), 2)),
        Probe(HUGE, (3e3 * one[0], *one[1:], None, 2), 5e-3),
    )


def _latent_probes():
    draw = Draw("latent_attention")

    def arrays(n_q, n_k, r=3, d_k=5, d_v=2, *lead):
        return draw(*lead, n_q, d_k), draw(n_k, r), draw(*lead, r, d_k), draw(*lead, r, d_v)

    one, heads = arrays(4, 5), arrays(3, 6, 4, 2, 5, 3)
    return (
        Probe(PLAIN, one),
        Probe(PLAIN_MASKED, (*one, MASK)),
        Probe("keys as wide as values", arrays(4, 7, 3, 6, 6)),
        Probe("a latent as wide as keys and values", arrays(3, 5, 4, 4, 4)),
        Probe("three heads, one latent", heads),
        Probe("heads behind a causal mask", (*arrays(6, 6, 3, 4, 2, 2), np.tri(6, dtype=bool))),
        Probe(CUBE, arrays(4, 4, 4, 4, 4, 4)),
        Probe(SINGLE, single(*heads)),
        Probe(DEAD, (*one, dead(MASK))),
        Probe(HUGE, (3e3 * one[0], *one[1:]), 5e-3),
    )


def _on_long_texts(attention, n):
    wide = np.ones((2, 64))
    return attention(np.ones((1, 64)), np.ones((n, 2)), wide, wide)


def _by_argsort(scores, best, order):
    """Return which keys are kept where exactly `best` may stay, of ties the first or the last ones."""
    ranked = np.argsort(-scores, axis=-1, kind="stable")
    if order < 0:
        ranked = scores.shape[-1] - 1 - np.argsort(-scores[..., ::-1], axis=-1, kind="stable")
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, ranked[..., :best], True, axis=-1)
    return chosen & np.isfinite(scores)


def _of_all(each):
    """Return the least score that is kept of all queries and heads together: of `best`, or of `best` for each."""

    def least(s):
        scores = np.sort(s.ranked, None)
        return scores[-min(s.best * (s.ranked[..., 0].size if each else 1), scores.size)]

    return least


def _off_by(n):
    def least(s):
        ranked = np.sort(s.ranked, -1)
        return ranked[..., -min(max(s.best + n, 1), ranked.shape[-1]), None]

    return least


def _smallest(s):
    return np.sort(s.ranked, -1)[..., min(s.best, s.ranked.shape[-1]) - 1, None]


def _others_zero(s, blocked):
    """Return weights where keys that are not among the best have the score 0, `blocked` ones -inf or 0, too."""
    gone = blocked & np.isneginf(s.masked_scores)
    return core.softmax(np.where(s.chosen | gone, s.masked_scores, 0.0))


OWN = (
    Mistake(
        "one_scale_for_all",
        behaves_as_if="all numbers shared one scale",
        symptom="One large feature makes the steps of all others wide.",
        hint="From which numbers do you take the lowest and the highest?",
        then="From those along one axis alone: min and max take it, with keepdims=True.",
        variants=(
            {"along": lambda s: (-2, -1)},
            {"along": lambda s: None},
            {"one": lambda s: lambda x: rounded(x.reshape(*x.shape[:-2], -1), s.bits).reshape(x.shape)},
        ),
    ),
    Mistake(
        "scale_along_other_axis",
        behaves_as_if="each token had a scale where each feature should, or the other way round",
        symptom="The result has the right shape, and it is rounded along the other axis.",
        hint="x is (n, d). What is left of it after min over axis -1: a number for each token, or for each feature?",
        then="For each token. Over axis -2, the tokens, one is left for each feature.",
        variants=(
            {"along": lambda s: -3 - s.over},
            {"one": lambda s: lambda x: rounded(x, s.bits)},
        ),
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
        variants=({"back": lambda s: s.step * np.rint(s.x / s.divisor)},),
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
            {"whole": lambda s: np.floor(s.in_steps)},
            {"whole": lambda s: (s.x - s.lowest) // s.divisor},  # 2 where 3 steps are 2.9999
            {"whole": lambda s: np.ceil(s.in_steps)},
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
        variants=(
            {"stops": lambda s: range(0, s.x.shape[-2], s.size)},
            {"complete": lambda s: s.x.shape[-2]},
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
        variants=(
            {
                "in_groups": lambda s: np.concatenate(
                    [rounded(s.x[..., :e, :], s.bits, -2) if (e := s.complete) else s.x[..., :0, :], s.x[..., e:, :]],
                    -2,
                )
            },
        ),
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
        variants=(
            *({"least": _of_all(each)} for each in (False, True)),
            {
                "least": lambda s: np.sort(s.ranked.reshape(*s.ranked.shape[:-2], 1, -1))[
                    ..., -min(s.best, s.k.shape[-2]), None
                ]
            },
        ),
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
        variants=tuple({"chosen": lambda s, n=n: _by_argsort(s.ranked, s.best, n)} for n in (1, -1)),
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
        "all_keys_kept",
        behaves_as_if="every allowed key had stayed",
        symptom="That is attention as before, whatever `best` is.",
        hint="How many keys has a query with best=2 left?",
        then="Two. Set the scores of all others to -inf before the softmax.",
        variants=({"best_weights": lambda s: s.weights},),
    ),
    Mistake(
        "smallest_kept",
        behaves_as_if="keys with the smallest scores were kept",
        symptom="np.sort rises.",
        hint="At which end of a sorted row are the largest scores?",
        then="At its end: [..., -best].",
        variants=(
            {"best_weights": lambda s: core.softmax(np.where(s.ranked <= _smallest(s), s.masked_scores, -np.inf))},
        ),
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

EXERCISES = (
    Function(
        "rounded",
        "rounded(x, bits, axis=-1) -> x.shape: each number becomes the nearest of 2^bits, spread evenly from the "
        "lowest to the highest along `axis`. A slice of equal numbers stays as it is.",
        (
            "Per slice you need two numbers: the lowest, and the step from one level to the next.",
            "lowest = x.min(axis, keepdims=True); step is the range divided by 2**bits - 1.",
            "How many steps each number lies above the lowest, rounded by np.rint, times the step, plus the lowest. "
            "Divide by 1 where the step is 0.",
        ),
        probes=_arrays_to_round(),
        **asked("back", "x bits over", of=_Rounded, axes=TOKEN_AXES),
    ),
    Function(
        "in_groups",
        "in_groups(x, bits, size) -> x.shape: x is (..., n, d). Tokens are rounded in groups of `size`, from the first "
        "token on, with a scale for each feature of a group. Tokens that do not fill a group stay whole.",
        (
            "How many tokens lie in complete groups?",
            "n // size * size. Go through them group by group, in a copy of x.",
            "out[..., i : i + size, :] = rounded(x[..., i : i + size, :], bits, axis=-2).",
        ),
        probes=_texts_to_group(),
        **asked("in_groups", "x bits size", of=_Groups, axes=TOKEN_AXES),
    ),
    Function(
        "best_keys",
        "best_keys(query, key, value, attn_mask=None, best=8) -> (..., n_q, d_v): attention of each query to the "
        "`best` allowed keys with the largest scores alone. Keys that tie with the last stay. attn_mask is None "
        "or boolean, True = may attend; a query without a key gives 0.",
        (
            "Scores, scale and mask as in 'masks'. What comes between them and the softmax?",
            "Which is the smallest score of a row that stays? A sorted row has it.",
            "Sort each row; the least that stays is the best-th from the end, or the first where there are fewer keys. "
            "Scores below it become -inf.",
        ),
        probes=_best_probes(),
        **asked("output", "q k v mask best", of=_Best, axes=OUTPUT_AXES),
    ),
    Lean(
        "latent_attention",
        "latent_attention(query, latent, W_UK, W_UV, attn_mask=None) -> (..., n_q, d_v): attention of query (..., n_q, "
        "d_k) to keys latent @ W_UK and values latent @ W_UV, without making either. latent is (n_k, r), W_UK (..., r, "
        "d_k), W_UV (..., r, d_v), attn_mask None or boolean.",
        (
            "A score is q (c W_UK)^T. Write it without the bracket.",
            "q W_UK^T c^T: multiply the query by W_UK transposed, then meet the latents. The divisor stays sqrt(d_k).",
            "With the weights mix the latents, (n_q, r), and multiply the mixture by W_UV at the end.",
        ),
        called=_on_long_texts,
        where="with latents of 2 numbers and keys of 64",
        fix="multiply the query by W_UK, and what is mixed by W_UV, never the latents",
        probes=_latent_probes(),
        **asked("output", "q latent W_UK W_UV mask", of=_Latent, axes=OUTPUT_AXES),
    ),
)

QUESTIONS = (
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
