"""Mistakes on the way from scaled scores to weights: softmax and masks."""

import numpy as np

from attnlib import masks
from attnlib.core import softmax

from ..engine.steps import swap
from .mistake import Mistake, allowed_by, filled_with, masked_by, weights_by


def _after_softmax(change):
    """Replace the weights by `change(unmasked weights, what is allowed)`; without a mask nothing changes."""

    def weights(s):
        unmasked = softmax(s.scaled_scores, s.axis)
        return unmasked if s.mask is None else change(unmasked, s.allowed)

    return {"weights": weights}


def _over_sum(x, axis=-1, guarded=False):
    total = x.sum(axis=axis, keepdims=True)
    return x / np.where(total == 0, 1, total) if guarded else x / total


def exp_over_sum(x, axis, largest=0.0, guarded=False):
    return _over_sum(np.exp(x - largest), axis, guarded)


def _masked_exp(s):
    """Take exp of all scores, blocked ones too, and set those to 0."""
    return np.exp(s.scaled_scores) if s.mask is None else np.exp(s.scaled_scores) * s.allowed


def _one_hot(x, axis):
    n = x.shape[axis]
    return np.moveaxis(np.eye(n)[x.argmax(axis=axis)], -1, axis)


def _fill(value):
    return [filled_with(value), masked_by(lambda s: s.scaled_scores + np.where(s.allowed, 0, value))]


def _filled_then_zeroed(value, zeroed=lambda allowed: allowed):
    """Fill blocked scores, take the softmax, and set those weights to 0 as well, or only rows without any key."""

    def weights(s):
        w = softmax(s.masked_scores, s.axis)
        return w if s.mask is None else w * zeroed(s.allowed)

    ways = masked_by(lambda s: np.where(s.allowed, s.scaled_scores, value)), _fill(value)[1]
    return [way | {"weights": weights} for way in ways]


def _some(allowed):
    return allowed.any(axis=-1, keepdims=True)


def _without_keepdims(largest):
    """Divide by sums that have lost their axis; `largest` says what becomes of the maximum."""

    def weights(x, axis):
        e = np.exp(x - largest(x, axis))
        return e / e.sum(axis=axis)

    return weights_by(weights)


def _one_maximum(guarded=False):
    """Subtract the maximum of all rows from each; not with heads, where NaN spreads and hides whose it was."""

    def weights(s):
        if s.num_heads is not None:
            return softmax(s.masked_scores, s.axis)
        return exp_over_sum(s.masked_scores, s.axis, s.masked_scores.max(), guarded)

    return {"weights": weights}


def _row_maximum(x, axis):
    largest = x.max(axis=axis, keepdims=True)
    return np.where(np.isneginf(largest), 0, largest)


def triangle(s, moved=0):
    """Return the causal mask of the last n_q of n_k tokens, its edge moved to the right."""
    return np.tri(s.n_q, s.n_k, k=s.n_k - s.n_q + moved, dtype=bool)


SHARED = (
    # --- softmax
    Mistake(
        "softmax_over_queries",
        behaves_as_if="it normalises over the queries: columns sum to 1",
        symptom="Every key hands out one unit of attention, where every query should.",
        hint="Whose weights have to sum to 1: those of one query, or those of one key?",
        then="Each row belongs to one query, so maximum and sum both run over the keys, the last axis.",
        variants=(
            {"axis": lambda s: -2},
            {"axis": lambda s: -1 if s.mask is None else -2},
            weights_by(lambda x, axis: softmax(x, -2)),
            weights_by(lambda x, axis: softmax(x, 0)),
        ),
    ),
    Mistake(
        "softmax_over_everything",
        behaves_as_if="it normalises over the whole array at once",
        symptom="All numbers together sum to 1; a single row sums to much less.",
        hint="Sum one row of your weights, then all of them.",
        then="Each query divides a 1 of its own: take the sum of its row alone.",
        variants=(
            weights_by(lambda x, axis: softmax(x.reshape(-1)).reshape(x.shape)),
            weights_by(lambda x, axis: softmax(x.reshape(*x.shape[:-2], -1)).reshape(x.shape)),
            weights_by(lambda x, axis: exp_over_sum(x, None)),
            weights_by(lambda x, axis: exp_over_sum(x, None, largest=_row_maximum(x, axis))),
        ),
    ),
    Mistake(
        "no_softmax",
        behaves_as_if="the scores are used as weights",
        symptom="Negative weights, and rows that do not sum to 1.",
        hint="What must be true of numbers that are used as shares?",
        then="Positive, and with sum 1: take exp of every score and divide each row by its sum.",
        variants=(
            weights_by(lambda x, axis: x),
            weights_by(lambda x, axis: x - x.max(axis=axis, keepdims=True)),
            weights_by(lambda x, axis: np.where(np.isneginf(x), 0, x)),
        ),
    ),
    Mistake(
        "no_exponential",
        behaves_as_if="it divides the scores by their sum, without exp",
        symptom="Rows sum to 1, so with positive scores they look right. A negative score gets a negative weight.",
        hint="What makes every number positive before it is divided by the sum?",
        then="exp does. Take it of every score first, then divide by the sum.",
        variants=(
            weights_by(lambda x, axis: x / x.sum(axis=axis, keepdims=True)),
            weights_by(lambda x, axis: _over_sum(np.where(np.isneginf(x), 0, x), guarded=True)),
        ),
    ),
    Mistake(
        "exp_not_divided",
        behaves_as_if="it takes exp of the scores and never divides by the sum",
        symptom="All weights are positive, but a row of them sums to anything.",
        hint="What do the weights of one query have to sum to?",
        then="To 1: divide each number by the sum of its row.",
        variants=(
            weights_by(lambda x, axis: np.exp(x)),
            weights_by(lambda x, axis: np.exp(x - _row_maximum(x, axis))),
            weights_by(lambda x, axis: np.exp(x - x.max())),
        ),
    ),
    Mistake(
        "keepdims_forgotten",
        behaves_as_if="a sum or a maximum along the axis has lost that axis, so that row i meets the number of "
        "another row",
        symptom="An error in most shapes; where the axes are equally long it runs, and rows do not sum to 1.",
        hint="Which shape has the sum over the keys, and which one do you need to divide row by row?",
        then="Keep the axis with size 1: keepdims=True, for the maximum and for the sum.",
        variants=(
            _without_keepdims(_row_maximum),
            _without_keepdims(lambda x, axis: 0),
            _without_keepdims(lambda x, axis: x.max(axis=axis)),
            _without_keepdims(lambda x, axis: x.max()),
            weights_by(lambda x, axis: exp_over_sum(x, axis, largest=x.max(axis=axis))),
        ),
    ),
    Mistake(
        "rounded_weights",
        behaves_as_if="the weights are rounded before they are used",
        symptom="Small weights vanish, rows need no longer sum to 1, and the error goes on into every later step.",
        hint="Keep at least four digits until the end.",
        then="Round for showing only, and go on with the numbers as they were.",
        variants=tuple(weights_by(lambda x, axis, n=n: softmax(x, axis).round(n)) for n in (1, 2, 3, 0)),
    ),
    Mistake(
        "double_softmax",
        behaves_as_if="it takes the softmax twice",
        symptom="Weights nearly equal: all between 1/n and e/n. Blocked keys get weight again.",
        hint="Print your weights. Are they paler than the scores suggest?",
        then="Look for a second softmax: on weights, or around a function that has taken one already.",
        variants=(weights_by(lambda x, axis: softmax(softmax(x, axis), axis)),),
    ),
    Mistake(
        "argmax_instead_of_softmax",
        behaves_as_if="all weight goes to the largest score",
        symptom="Weights of exactly 0 and 1: nothing is mixed.",
        hint="What should happen to a score that is only a little smaller than the largest?",
        then="It should get a little less weight, not none: exp of each score, divided by their sum.",
        variants=(weights_by(_one_hot), weights_by(lambda x, axis: _one_hot(x, axis) * ~np.isneginf(x))),
    ),
    Mistake(
        "one_maximum_for_all",
        behaves_as_if="it subtracts one maximum, that of the whole array, from every row",
        symptom="A row whose scores all lie about 745 or more below that maximum becomes 0 / 0.",
        hint="What is the largest exponent of each row, after your subtraction?",
        then="It is 0 in one row only. Each row needs its own maximum.",
        variants=(_one_maximum(), _one_maximum(guarded=True)),
    ),
    Mistake(
        "unstable_softmax",
        behaves_as_if="it takes exp of large scores without subtracting the maximum of each row",
        symptom="Fine for small scores; NaN (or rows of 0) as soon as a score passes about 700 or all lie below -745.",
        hint="Which number can you subtract from a whole row without changing its softmax?",
        then="Its maximum: then the largest exponent is 0, and nothing overflows.",
        variants=(
            weights_by(lambda x, axis: exp_over_sum(x, axis)),
            weights_by(lambda x, axis: exp_over_sum(x, axis, guarded=True)),
            weights_by(lambda x, axis: np.nan_to_num(exp_over_sum(x, axis))),
            weights_by(lambda x, axis: exp_over_sum(x, axis, largest=x.max())),
            weights_by(lambda x, axis: exp_over_sum(x, axis, largest=x.max(), guarded=True)),
            {"weights": lambda s: _over_sum(_masked_exp(s))},
            {"weights": lambda s: _over_sum(_masked_exp(s), guarded=True)},
        ),
    ),
    # --- mask
    Mistake(
        "mask_ignored",
        behaves_as_if="no key is blocked: every query sees all of them",
        symptom="Tokens see what they must not see.",
        hint="Name a key that some query must not see. Which line of yours keeps it out?",
        then="There the mask has to be False. Where it is False, the scaled score becomes -inf before the softmax.",
        variants=(
            masked_by(lambda s: s.scaled_scores)
            | {
                "causal": lambda s: np.ones((s.n_q, s.n_k), bool),
                "padding": lambda s: np.ones((len(s.lengths), 1, s.n_k), bool),
            },
        ),
    ),
    Mistake(
        "mask_inverted",
        behaves_as_if="True and False have changed roles: what may be seen is hidden, what is hidden is seen",
        symptom="A padding mask then shows nothing but padding, a causal mask nothing but the future. The shapes look "
        "fine.",
        hint="In attnlib, does True mean 'may attend' or 'blocked'?",
        then="True means: may attend. It belongs where a query may look, and scores are blocked where the mask is "
        "False.",
        variants=(
            allowed_by(lambda mask, s: ~mask)
            | {
                "causal": lambda s: ~triangle(s),
                "padding": lambda s: np.arange(s.n_k) >= np.asarray(s.lengths)[:, None, None],
            },
            {"causal": lambda s: ~np.tri(s.n_q, s.n_k, dtype=bool)},
            {"packed": lambda s: ~(s.same_text & np.tri(s.same_text.shape[-1], dtype=bool))},
        ),
    ),
    Mistake(
        "mask_after_softmax",
        behaves_as_if="it sets weights to 0 after the softmax and leaves it at that",
        symptom="The remaining weights sum to less than 1: the blocked keys took their share with them.",
        hint="Sum one row of the weights. Who got the rest?",
        then="The blocked keys did. Block them before: their scores become -inf, and the others share all of the 1.",
        variants=(_after_softmax(lambda w, mask: w * mask),),
    ),
    Mistake(
        "mask_renormalised",
        behaves_as_if="it masks after the softmax and then divides by what is left, or subtracts a maximum over "
        "blocked keys, too",
        symptom="Right as long as the blocked keys leave some weight. Where their scores lie far above the others "
        "they take all of it, and the query gets 0, or 0 / 0.",
        hint="What does a blocked score have to be before the maximum is taken, and before exp?",
        then="-inf, at the very beginning. Then the maximum and the sum see allowed keys only.",
        variants=(
            _after_softmax(lambda w, mask: _over_sum(w * mask, guarded=True)),
            _after_softmax(lambda w, mask: w * mask / ((w * mask).sum(axis=-1, keepdims=True) + 1e-9)),
        ),
    ),
    Mistake(
        "mask_multiplies_scores",
        behaves_as_if="blocked scores become 0: multiplied by the mask, or filled with a number next to 0, such as "
        "1e-9",
        symptom="A score of 0 still gets weight: exp(0) = 1. It even beats negative scores.",
        hint="Which score gets weight 0 after exp?",
        then="Only -inf does, since exp(-inf) = 0. Fill it in where the mask is False.",
        variants=(filled_with(0), filled_with(1)),
    ),
    Mistake(
        "mask_added_as_numbers",
        behaves_as_if="the mask is added to the scores as it is: True adds 1, and False adds 0",
        symptom="Allowed scores rise by 1, and no key is blocked. A query that may attend to all sees no difference.",
        hint="Which number must a score become, so that its weight is 0?",
        then="-inf. Choose with np.where (in torch masked_fill): the score where the mask is True, -inf elsewhere.",
        variants=(masked_by(lambda s: s.scaled_scores + s.allowed),),
    ),
    Mistake(
        "zero_times_infinity",
        behaves_as_if="it multiplies the mask by infinity, or has 0 where the scores of allowed keys belong",
        symptom="0 times inf is NaN: the keys that are allowed get NaN, and with them the whole row. nan_to_num makes "
        "0 of it.",
        hint="Which number comes out of `0 * -np.inf`? How else can -inf get into the blocked places only?",
        then="NaN comes out. Choose in place of multiplying: np.where (in torch masked_fill) writes -inf where it "
        "belongs.",
        variants=(
            masked_by(lambda s: s.scaled_scores + np.where(s.allowed, np.nan, -np.inf)),
            masked_by(lambda s: np.where(s.allowed, np.zeros_like(s.scaled_scores), -np.inf)),
            masked_by(lambda s: np.where(s.allowed, np.zeros_like(s.scaled_scores), np.finfo(float).min)),
            # 0 everywhere, also where a new token alone may see all keys, may have any cause.
            _after_softmax(lambda w, mask: w if w.shape[-2] == 1 and np.all(mask) else 0 * w),
        ),
    ),
    Mistake(
        "finite_fill",
        behaves_as_if="scores that are all blocked get equal weights",
        symptom="Blocked scores of -1e9, or any large finite number, do that; so do equal weights in the place of NaN.",
        hint="What should the output of a query be that may look at nothing? What is it in your code?",
        then="It should be 0. Fill with -inf, and make the NaN of such a row 0 afterwards.",
        variants=tuple(way for value in (-1e9, -1e4, -1e3, -100) for way in _fill(value)),
    ),
    Mistake(
        "fill_not_low_enough",
        behaves_as_if="blocked scores become a number that is not far below every allowed score",
        symptom="Where all allowed scores of a row are as low as that number, or lower, blocked keys take weight. "
        "Setting it to 0 afterwards does not give it back.",
        hint="Which number is lower than any score there can be?",
        then="-inf is. No row that has a key left is harmed by it.",
        variants=(
            *(way for value in (-1e4, -1e3, -10) for way in _filled_then_zeroed(value)),
            *(way for value in (-1e4, -1e3) for way in _filled_then_zeroed(value, _some)),
        ),
    ),
    Mistake(
        "nan_on_fully_masked",
        behaves_as_if="a query that may attend to no key gets NaN: its row is 0 / 0, or -inf minus -inf if a maximum "
        "is subtracted",
        symptom="One NaN row spreads through every later layer.",
        hint="What are the maximum and the sum of a row in which everything is blocked? What should its output be?",
        then="Its weights should be 0: turn NaN into 0, or subtract 0 for a maximum of -inf and divide by 1 for a sum "
        "of 0.",
        variants=(
            weights_by(lambda x, axis: exp_over_sum(x, axis, largest=x.max(axis=axis, keepdims=True))),
            _after_softmax(lambda w, mask: _over_sum(w * mask)),
        ),
    ),
    Mistake(
        "another_mask",
        behaves_as_if="the mask does something else than to block the keys where it is False",
        symptom="Without a mask the weights are right, and with one the keys that may be seen have the right ratio.",
        hint="Print your masked scores for one row of the mask. Where is -inf, and where should it be?",
        then="Where the mask is False, and nowhere else: the scaled score becomes -inf there, before the softmax.",
    ),
    Mistake(
        "padding_masks_queries",
        behaves_as_if="the mask is transposed: rows are hidden where columns should be",
        symptom="Of a padding mask: real tokens still attend to padding, and padded rows attend to nothing.",
        hint="Padding must not be *looked at*. Is that a row or a column of the score matrix?",
        then="A column. The axis of the keys is the last one; the one before it, that of the queries, has size 1.",
        variants=(
            allowed_by(lambda mask, s: swap(mask))
            | {"padding": lambda s: (np.arange(s.n_k) < np.asarray(s.lengths)[:, None])[:, :, None]},
        ),
    ),
)

# Of masks made by the reader: lessons masks and program_a_head hand it to their exercises.
FUTURE_ONLY = Mistake(
    "mask_future_only",
    behaves_as_if="the triangle is the upper one: a token sees the future and not the past",
    symptom="The last token sees nothing before it. A model trained with this mask would see the answers.",
    hint="Which rows should have the most True in them: the first or the last?",
    then="The last: key j is allowed if it stands at or before the place of the query.",
    variants=(
        {"causal": lambda s: ~triangle(s, -1)},
        {"causal": lambda s: ~np.tri(s.n_q, s.n_k, k=-1, dtype=bool)},
        {"causal": lambda s: triangle(s).T},
    ),
)


def _triangle(s, way, back=0, turned=False):
    """Return np.tri of queries and keys, moved by n_k - n_q one way or the other; or turned, of keys and queries."""
    n_q, n_k = s.scaled_scores.shape[-2:]
    tri = np.tri(*((n_k, n_q) if turned else (n_q, n_k)), k=way * (n_k - n_q) - back, dtype=bool)
    return tri.T if turned else tri


# Of a triangle behind a cache: lessons one_token_at_a_time and todays_head.
TRIANGLE = (
    Mistake(
        "triangle_turned",
        behaves_as_if="the triangle is the upper one: a token sees itself and what comes after it",
        symptom="Keys before it are hidden, so the last token of a text sees itself alone.",
        hint="Three queries, three keys: which keys does row 0 of your mask see, and which does row 2?",
        then="All, and itself; it should be the other way round. np.tri takes the queries first, then the keys.",
        variants=tuple({"mask": lambda s, way=way: _triangle(s, way, turned=True)} for way in (0, 1, -1)),
    ),
    Mistake(
        "triangle_moved_back",
        behaves_as_if="the triangle is moved the wrong way: by n_q - n_k, where n_k - n_q belongs",
        symptom="Right for n_q = n_k. Behind other tokens a new one sees too little, or nothing.",
        hint="np.tri with k lets query i see the keys up to i + k. One query, five keys: which k?",
        then="4, so that it sees all: k is n_k - n_q.",
        variants=({"mask": lambda s: _triangle(s, -1)},),
    ),
    Mistake(
        "chunk_without_itself",
        behaves_as_if="a new token sees the tokens before it, and not itself",
        symptom="The first token of a text then sees nothing at all.",
        hint="One query and 5 keys, of which the last is its own: which keys may it see?",
        then="All five. The last query sees every key, the one before it all but one.",
        variants=({"mask": lambda s: _triangle(s, 1, back=1)},),
    ),
)


def _with_causal(s, align, keep):
    """Put a causal mask over the scores, beside the mask that is given or in its place."""
    causal = masks.causal_mask(*s.scaled_scores.shape[-2:], align=align)
    return np.where(causal & s.mask if keep and s.mask is not None else causal, s.scaled_scores, -np.inf)


# Of attention that asks for no triangle: lessons vectorized, pytorch_module, masks, multi_head and one_token_at_a_time.
CAUSAL_ADDED = Mistake(
    "causal_mask_added",
    behaves_as_if="a causal mask is at work that nobody asked for",
    symptom="Right behind a causal mask. Elsewhere, as in a chunk behind a cache, it hides keys that may be seen.",
    hint="Which keys does your first query see if no mask is given?",
    then="All of them. Take the triangle out: what a query may see, only a mask that is handed in says.",
    variants=tuple(
        {"masked_scores": lambda s, align=align, keep=keep: _with_causal(s, align, keep)}
        for keep in (True, False)
        for align in ("lower_right", "upper_left")
    ),
)

# Of the mask of a sliding window: `back` tells how far each key lies behind a query, `near` the window.
WINDOW = (
    Mistake(
        "window_turned_round",
        behaves_as_if="the sign of the distance is turned round: a token sees itself and those after it",
        symptom="The last token sees itself alone, and in training the next token is in plain sight.",
        hint="Key 0 and query 3: is your distance 3 or -3?",
        then="3: the place of the query minus that of the key.",
        variants=({"back": lambda s: np.arange(s.n_k) - np.arange(s.n_k - s.n_q, s.n_k)[:, None]},),
    ),
    Mistake(
        "window_by_either",
        behaves_as_if="one of two conditions were enough: every key may be seen",
        symptom="Each key lies less than `window` places back, or not ahead. | lets all of them through.",
        hint="A key far back and a key ahead: which of your two conditions does each of them meet?",
        then="One of the two each, and neither may be seen: both must hold, so join them with &.",
        variants=({"near": lambda s: np.ones_like(s.back, dtype=bool)},),
    ),
    Mistake(
        "window_too_wide",
        behaves_as_if="the window is one key too wide: the token itself is not counted as one of its keys",
        symptom="Right shape. Each token sees one key more than the cache keeps.",
        hint="A window of 1: which keys does a token see? And a window of 2?",
        then="Itself alone; itself and the one before. So the key lies less than `window` places back.",
        variants=({"near": lambda s: (s.back >= 0) & (s.back <= s.window)},),
    ),
    Mistake(
        "window_too_narrow",
        behaves_as_if="the window is one key too narrow: window - 1 keys, where the token itself and window - 1 "
        "before it belong",
        symptom="Right shape. The oldest key that a token should see is lost.",
        hint="A window of 1: which keys does a token see? And a window of 2?",
        then="Itself alone; itself and the one before. So the key lies less than `window` places back.",
        variants=(
            {"near": lambda s: (s.back >= 0) & (s.back < max(s.window - 1, 1))},
            {"near": lambda s: (s.back >= 0) & (s.back < s.window - 1)},
        ),
    ),
    Mistake(
        "window_upper_left",
        behaves_as_if="the first query stands at the first key (upper left), although the queries are the last tokens",
        symptom="The same for n_q = n_k. One new token after five others sees the first of them only, not even itself.",
        hint="Give each query its place in the sequence: the last one is the last token.",
        then="The first query then stands at place n_k - n_q: count distances from there.",
        variants=({"back": lambda s: np.arange(s.n_q)[:, None] - np.arange(s.n_k)},),
    ),
    Mistake(
        "window_open_ahead",
        behaves_as_if="the window is open ahead: a token sees tokens that come later",
        symptom="In training the next token is in plain sight.",
        hint="How far may a key lie behind its query at least?",
        then="0 places: a key with a negative distance stands ahead, and is forbidden.",
        variants=({"near": lambda s: s.back < s.window}, {"near": lambda s: np.abs(s.back) < s.window}),
    ),
    Mistake(
        "window_without_itself",
        behaves_as_if="a token does not see itself",
        symptom="The first token then sees nothing at all.",
        hint="How far does a token lie behind itself? Does your condition allow it?",
        then="0 places, and that is allowed: write 0 <= distance.",
        variants=(
            {"near": lambda s: (s.back > 0) & (s.back < s.window)},
            {"near": lambda s: (s.back > 0) & (s.back <= s.window)},
        ),
    ),
)
