"""Masks: its exercises, questions, and what only they need."""

from functools import cached_property

import numpy as np

from attnlib import core, masks

from ..engine import locate, probes
from ..engine.compare import RIGHT
from ..engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, Kept, asked
from ..engine.probes import EXTREME, MASK, Draw, Probe
from ..engine.questions import Question
from ..engine.run import Unfit
from ..engine.steps import Steps
from ..mistakes.mistake import Mistake
from ..mistakes.weights import CAUSAL_ADDED, FUTURE_ONLY, triangle


def masked_softmax(scores, attn_mask=None):
    """Softmax over the keys that a query may attend to; a query without any gets zeros."""
    return core.softmax(masks.apply_mask(scores, attn_mask))


class _Steps(Steps):
    causal = cached_property(lambda s: masks.causal_mask(s.n_q, s.n_k, align="lower_right"))
    padding = cached_property(lambda s: masks.padding_mask(s.lengths, s.n_k))


def _less_than_1(yours, right):
    sentence = f"The only key of a query has the weight 1; yours is {yours.max():.7g}"
    return f"{sentence}. Is something added to the sum?" if 0.9 < yours.max() < 1 else f"{sentence}, and others are 0."


def masked_probes():
    draw = Draw("masked_softmax")
    x, batch = draw(4, 5), draw(2, 4, 5)
    offset = np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("scores without a mask", (x,)),
        Probe("scores with a mask", (x, MASK)),
        Probe(probes.PADDED, (batch, probes.MASK_PADDING)),
        Probe(probes.CUBE_MASKED, (draw(3, 3, 3), probes.MASK_CUBE)),
        Probe(probes.SINGLE, (*probes.single(batch), np.stack([MASK, MASK[::-1]]))),
        Probe(probes.DEAD, (x, probes.dead(MASK))),
        Probe("queries that may attend to one key only", (x, np.eye(4, 5, dtype=bool)), 1e-7, _less_than_1),
        Probe(probes.HUGE, (x + offset,), EXTREME),
        Probe(probes.HUGE_MASKED, (x + np.where(MASK, 0, 1e4), MASK), EXTREME),
        Probe(probes.LOW_MASKED, (x - np.where(MASK, 1e4, 0), MASK), EXTREME),
    )


def attention_probes():
    draw = Draw("masked_attention")
    without, with_mask, *others = probes.edges(
        lambda *b: (draw(*b, 4, 3), draw(*b, 5, 3), draw(*b, 5, 2)),
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw(3, 3, 3)),
        lambda arrays: (5e3 * arrays[0], *arrays[1:]),
    )
    heads = draw(3, 2, 4, 3), draw(3, 2, 5, 3), draw(3, 2, 5, 2)
    return (
        with_mask,  # comes first: where only the branch without a mask is written, the exercise has not been tried
        without,
        *others,
        Probe("one mask (n_q, n_k) for (b, h, n_q, d_k)", (*heads, MASK)),
        Probe("d_k = 5, where it was 3 before", (draw(4, 5), draw(6, 5), draw(6, 2))),
    )


# The design: which tokens reach the last position through two layers in which a query may look at few keys.
TOKENS, FEW = 8, 3
_place = np.arange(TOKENS)
_back = _place[:, None] - _place  # how far each key lies behind each query


def _arriving(masks):
    """Return which tokens reach the last position, (TOKENS,) of bool."""
    return (masks[1, -1, :, None] & masks[0]).any(axis=0)


def _fault(masks):
    """Return (id of a mistake, layer, query, what the query does), or None where every query has keys as it should."""
    keys = masks.sum(-1)
    if (ahead := np.argwhere(masks & (_back < 0))).size:
        return "key_ahead", *ahead[0][:2], f"looks ahead to key {ahead[0][2]}"
    for id, wrong in (("too_many_keys", keys > FEW), ("no_key_left", keys == 0)):
        if wrong.any():
            layer, query = np.argwhere(wrong)[0]
            return id, layer, query, f"has {keys[layer, query]} keys, allowed are 1 to {FEW}"
    return None


def _judge_masks(result):
    masks = np.asarray(result)
    if masks.shape != (2, TOKENS, TOKENS) or masks.dtype != bool:
        numbers = masks.shape == (2, TOKENS, TOKENS) and masks.dtype.kind in "iuf" and np.isin(masks, (0, 1)).all()
        fix = (
            "my_masks.astype(bool), if 1 means: may attend."
            if numbers
            else "np.stack([first, second]), each of them True where a query may look."
        )
        raise Unfit(
            f"This exercise asks for two masks, layer 1 and layer 2: shape (2, {TOKENS}, {TOKENS}) of bool. You hand "
            f"in shape {masks.shape} of {masks.dtype}. Fix: {fix}"
        )
    if not _fault(~masks) and _arriving(~masks).all():
        return "mask_inverted", "Inverted it is right."
    if fault := _fault(masks):
        id, layer, query, does = fault
        return id, f"In layer {layer + 1} query {query} {does}. Fix that first; then the check counts who reaches whom."
    if _arriving(masks).all():
        return RIGHT, ""
    *others, last = map(str, np.flatnonzero(~_arriving(masks)))
    missing = f"{', '.join(others)} and {last} do" if others else f"{last} does"
    count = int(_arriving(masks).sum())
    reach = "reaches" if count == 1 else "reach"
    return "reach_too_short", f"{count} of the {TOKENS} tokens {reach} the last position; {missing} not."


OWN = (
    CAUSAL_ADDED,
    Mistake(
        "padding_without_query_axis",
        behaves_as_if="the padding mask is (b, n_k): the axis for the queries is missing",
        symptom="This raises later on. If b = n_q, it is read as (n_q, n_k), and nothing raises.",
        hint="Scores are (b, n_q, n_k). Which of these three axes does your mask not have?",
        then="The queries. Put an axis of size 1 between the two: it stands for all queries.",
        variants=({"padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths)[:, None]},),
    ),
    Mistake(
        "padding_on_other_axes",
        behaves_as_if="the padding mask is right, but its axes are not (b, 1, n_k)",
        symptom="It has one axis too many, or two axes have changed places, or it has a row for each query instead of "
        "one for all.",
        hint="Scores are (b, n_q, n_k). Which axis of your mask is which of these three?",
        then="The first is b, the last is n_k, and between them stands one axis of size 1.",
        variants=tuple(
            {"padding": lambda s, form=form: form(masks.padding_mask(s.lengths, s.n_k))}
            for form in (
                lambda mask: mask.repeat(mask.shape[-1], axis=1),  # (b, n_k, n_k)
                lambda mask: np.swapaxes(mask, 0, 1),  # (1, b, n_k)
                lambda mask: mask[:, None],  # (b, 1, 1, n_k)
            )
        ),
    ),
    Mistake(
        "row_for_a_column",
        behaves_as_if="the lengths (or the positions of the queries) are compared with the keys element by element",
        symptom="NumPy lines up axes from the end. Mostly that raises; where the sizes agree, you get one row instead "
        "of a map. A column has an axis of size 1 behind it.",
        hint="Which shape lets each of these numbers meet every key?",
        then="A column, (n, 1): put an axis of size 1 behind the numbers.",
        variants=(
            {
                "padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths),
                "causal": lambda s: np.arange(s.n_k) <= np.arange(s.n_k - s.n_q, s.n_k),
            },
            {
                "padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths)[None, None],
                "causal": lambda s: np.arange(s.n_k) <= np.arange(s.n_q),
            },
        ),
    ),
    Mistake(
        "padding_off_by_one",
        behaves_as_if="it lets one padded token through",
        symptom="The first padding token gets weight in every sequence.",
        hint="A sequence of length 2: at which positions are its tokens, counted from 0?",
        then="At 0 and 1: position j is a token if j is less than the length.",
        variants=({"padding": lambda s: np.arange(s.n_k) <= np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "padding_on_the_left",
        behaves_as_if="the padding stands in front of the tokens",
        symptom="Real tokens at the beginning are hidden, and padding at the end is seen.",
        hint="Which positions hold the tokens of a sequence of length 2: the first two or the last two?",
        then="The first two: position j is a token if j is less than the length.",
        variants=({"padding": lambda s: np.arange(s.n_k) >= s.n_k - np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "mask_blocks_diagonal",
        behaves_as_if="a token may not attend to itself",
        symptom="The first token may attend to nothing at all.",
        hint="What may the very first token look at?",
        then="At itself: key j is allowed up to and including the position of the query.",
        variants=(
            {"causal": lambda s: triangle(s, -1)},
            {"causal": lambda s: np.tri(s.n_q, s.n_k, k=-1, dtype=bool)},
        ),
    ),
    Mistake(
        "mask_shows_the_next",
        behaves_as_if="a token may also attend to the one that follows it",
        symptom="In training the token to be predicted is in plain sight.",
        hint="What may the very first token look at?",
        then="At itself alone: key j is allowed if it does not come after the query.",
        variants=(
            {"causal": lambda s: triangle(s, 1)},
            {"causal": lambda s: np.tri(s.n_q, s.n_k, k=1, dtype=bool)},
        ),
    ),
    FUTURE_ONLY,
    Mistake(
        "causal_upper_left",
        behaves_as_if="the first query stands at the first key (upper left), although the queries are the last tokens",
        symptom="This is right for n_q = n_k. But one new token after four others sees only the first of them, not "
        "even itself.",
        hint="Give each token its position in the sequence. At which position does the first query stand?",
        then="At n_k - n_q, because the last query is the last token. Compare the keys with these positions.",
        variants=({"causal": lambda s: np.tri(s.n_q, s.n_k, dtype=bool)},),
    ),
    Mistake(
        "causal_square",
        behaves_as_if="the mask has as many rows as columns, although there are more keys than queries",
        symptom="Scores are (n_q, n_k), so a square mask fits only in training, where n_q = n_k.",
        hint="One query asks five keys. How many rows and how many columns has its mask?",
        then="One row and five columns: np.tri(n_q, n_k, ...), or the last n_q rows of the square (n_k, n_k).",
        variants=(
            {"causal": lambda s: np.tri(s.n_q, dtype=bool)},
            {"causal": lambda s: np.tri(s.n_k, dtype=bool)},
        ),
    ),
    Mistake(
        "causal_offset_reversed",
        behaves_as_if="the queries are moved n_k - n_q positions towards the beginning, not towards the end",
        symptom="This is right for n_q = n_k. But one new token after four others has no key left.",
        hint="At which position does the last query stand? And at which position does your code put it?",
        then="At n_k - 1, because the last query is the last token: query q stands at n_k - n_q + q.",
        variants=({"causal": lambda s: np.tri(s.n_q, s.n_k, k=s.n_q - s.n_k, dtype=bool)},),
    ),
    Mistake(
        "no_mask_blocks_all",
        behaves_as_if="without a mask every key is blocked",
        symptom="np.where(None, scaled, -np.inf) takes -inf everywhere, because None counts as False.",
        hint="What does your code do where attn_mask is None?",
        then="Ask first whether attn_mask is None. Without a mask the scores stay as they are.",
        variants=(
            {"masked_scores": lambda s: np.where(False if s.mask is None else s.allowed, s.scaled_scores, s.fill)},
        ),
    ),
    Mistake(
        "key_ahead",
        behaves_as_if="a query may look at a token that comes after it",
        symptom="A model with such a mask can copy its answers, as in section 1.",
        hint="Which rows have a True to the right of the diagonal?",
        then="Make them False: query i may look at keys 0 to i.",
    ),
    Mistake(
        "no_key_left",
        behaves_as_if="a query may look at nothing",
        symptom="It returns nothing, and in other libraries NaN. Each query needs at least one key.",
        hint="Which of your rows has no True?",
        then="Let that query look at least at itself.",
    ),
    Mistake(
        "too_many_keys",
        behaves_as_if=f"a query may look at more than {FEW} keys",
        symptom=f"With all keys one layer would be enough. Here each query gets {FEW}.",
        hint="Sum your masks over the last axis.",
        then="No sum may be above 3: in each longer row, choose which three keys stay.",
    ),
    Mistake(
        "reach_too_short",
        behaves_as_if="some tokens never reach the last position",
        symptom="What a token gives in layer 1 must arrive at a position that the last query looks at in layer 2.",
        hint=f"The last query looks at {FEW} positions in layer 2. What did each of them see in layer 1, and what did "
        "two of them both see?",
        then="Choose three positions of which no two have seen the same token.",
    ),
)

EXERCISES = (
    Function(
        "padding_mask",
        "padding_mask(lengths, n_k) -> (b, 1, n_k) of bool, True where key j of sequence b is a real token.",
        (
            "A sequence of length 2 has its tokens at positions 0 and 1.",
            "Compare the positions 0 .. n_k-1 with the length of each sequence.",
            "lengths has shape (b,); as (b, 1, 1) it compares with all positions at once.",
        ),
        probes=(
            Probe("lengths 3, 1, 4, 2 of n_k = 6", (np.array([3, 1, 4, 2]), 6)),
            Probe("lengths 0 and 5 of n_k = 5", (np.array([0, 5]), 5)),
            Probe("as many sequences as positions", (np.array([2, 1, 3]), 3)),
        ),
        **asked("padding", "lengths n_k", of=_Steps, axes=MAP_AXES, stage="mask"),
    ),
    Function(
        "causal_mask",
        "causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and all before it.",
        (
            "Tokens stand at positions 0 .. n_k - 1, and the last query is the last token. Where is the first query?",
            "Compare the positions of the queries, as a column, with those of the keys, as a row.",
            "np.arange(n_k - n_q, n_k)[:, None] is the column. The dtype has to be bool.",
        ),
        probes=(
            Probe("n_q = 4", (4,)),
            Probe("n_q = 1", (1,)),
            Probe("n_q = n_k = 3", (3, 3)),
            Probe("the last 3 of 5 tokens as queries", (3, 5)),
            Probe("one new token after 4 others", (1, 5)),
            Probe("the last 2 of 40 tokens as queries", (2, 40)),  # a window is wrong where the past is longer
        ),
        given=lambda n_q, n_k=None: {"n_q": n_q, "n_k": n_q if n_k is None else n_k},
        result=lambda s: s.causal,
        axes=MAP_AXES,
        stage="mask",
        steps=_Steps,
    ),
    Function(
        "masked_softmax",
        "masked_softmax(scores, attn_mask=None) -> weights of the shape of scores, over the last axis. "
        "True = may attend; a row that may attend to nothing gives zeros.",
        (
            "A blocked key must get weight 0 before the row is normalised. Which score does softmax turn into 0?",
            "np.where puts -inf at the blocked keys of every row that has a key: a row of -inf alone is NaN for your "
            "softmax. attn_mask.any(axis=-1, keepdims=True) tells which rows have one.",
            "So has_key = attn_mask.any(...); -inf where neither attn_mask nor ~has_key is True; your softmax; and at "
            "the end 0 in the rows without a key.",
        ),
        probes=masked_probes(),
        **asked("weights", "scaled_scores mask", axes=MAP_AXES, stage="softmax"),
        kept=Kept("masked_softmax", "attncourse.chapters.n05.masked_softmax", grown_from="softmax"),
    ),
    Function(
        "masked_attention",
        "masked_attention(query, key, value, attn_mask=None) -> (..., n_q, d_v). attn_mask: True = may attend, (n_q, "
        "n_k) or with axes in front of it; a query that may attend to nothing gets 0.",
        (
            "Four steps: scores, scale, softmax, weighted sum. Between which two of them does the mask belong?",
            "Between scale and softmax: where attn_mask is False, the scaled score becomes -inf.",
            "Your masked softmax does both: masked_softmax(scaled, attn_mask), then times value.",
        ),
        # 2.3's function may stand in it, and attnlib's may stand in for that one: it gets no remark.
        our_functions=("attention_trace",),
        kept=Kept("attention", "attnlib.scaled_dot_product_attention", grown_from="plain_attention"),
        probes=attention_probes(),
        **asked("output", "q k v mask", axes=OUTPUT_AXES),
        reveal=locate.attention(),
    ),
    Design(
        "sparse_masks",
        f"masks of two layers, (2, {TOKENS}, {TOKENS}) of bool: no query looks ahead, at none or at more than {FEW} "
        "keys, and through both layers all tokens reach the last position. Many answers are right: what they do "
        "counts.",
        (
            f"In layer 2 the last query looks at {FEW} positions, and each of them has seen {FEW} in layer 1: at most "
            f"{FEW * FEW}. So no two of them should have seen the same token.",
            "Layer 1: each token looks at itself and the two before it. Which three positions have then seen all "
            "eight?",
            "Positions 7, 4 and 1. So in layer 2 a query looks at itself, three back and six back.",
        ),
        judge=_judge_masks,
        names=("key_ahead", "too_many_keys", "no_key_left", "reach_too_short", "mask_inverted"),
    ),
)

RECALL = (
    Question("recall_key", right="b", tempting="c").because(
        a="The right slot was drawn anew for every sequence, so no fixed position would do.",
        b="The query of the asked letter and the key of the same letter get a large score, in whatever slot the pair "
        "is.",
        c="W_V only says what a slot returns. Queries and keys decide which slot returns it.",
    ),
    Question("d_k_doubled", right="b", tempting="a").because(
        a="A score is a sum of d_k products. Twice as many independent products have twice the variance.",
        b="Each product has variance 1, and the variances of independent products add up. So we divide by sqrt(d_k).",
        c="That would need all products to push the same way. Independent ones cancel in part.",
    ),
    Question("added_to_all", right="c", tempting="b").because(
        a="All weights would have to grow, and they sum to 1.",
        b="Every exp grows by the same factor, and so does their sum.",
        c="Softmax compares by differences. That is why you may subtract the largest score of a row.",
    ),
)

QUESTIONS = (
    Question("writes_on", right="b", tempting="a").because(
        a="In the exam the next word stood in the text. When the head writes, the next word stands nowhere.",
        b="The newest token asks for a position that no key has. All its scores are 0, so it mixes the words so far.",
        c="A query that matches no key is no error: its scores are equal, and so are its weights.",
    ),
    Question("zero_after", right="b", tempting="a").because(
        a="The softmax made the row sum to 1 with all keys in it. Without some of them the sum is less than 1.",
        b="The blocked keys took their share in the softmax, and nobody gives it back.",
        c="The last row may look at everything and keeps its 1. Only a row without any key sums to 0.",
    ),
    Question("equal_sizes", right="c", tempting="a").because(
        a="An error needs sizes that disagree. Here 4 = 4.",
        b="NumPy and torch line up the last axes: (b, n_k) is read as (n_q, n_k), and is the same for every text.",
        c="Two axes that fit are read as (n_q, n_k). A mask cannot tell that you meant (b, n_k).",
    ),
)
