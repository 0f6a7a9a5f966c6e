"""The exercises of Masks, and the inputs on which they are tried."""

import numpy as np

from attnlib import core, masks

from ...engine import locate, probes
from ...engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, Kept, step_options
from ...engine.probes import EXTREME, MASK, Draw, Probe
from .design import FEW, TOKENS, judge_masks
from .mistakes import MaskSteps


def masked_softmax(scores, attn_mask=None):
    """Softmax over the keys that a query may attend to; a query without any gets zeros."""
    return core.softmax(masks.apply_mask(scores, attn_mask))


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
    )
    heads = draw(3, 2, 4, 3), draw(3, 2, 5, 3), draw(3, 2, 5, 2)
    return (
        with_mask,  # comes first: where only the branch without a mask is written, the exercise has not been tried
        without,
        *others,
        Probe("one mask (n_q, n_k) for (b, h, n_q, d_k)", (*heads, MASK)),
        Probe("d_k = 5, where it was 3 before", (draw(4, 5), draw(6, 5), draw(6, 2))),
    )


EXERCISES = (
    Function(
        "causal_mask",
        "causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and all before it.",
        (
            "Tokens stand at positions 0 .. n_k - 1, and the last query is the last token. Where is the first query?",
            "Compare the positions of the queries, as a column, with those of the keys, as a row.",
            "np.arange(n_k - n_q, n_k)[:, None] is the column. The dtype has to be bool. Where n_q = n_k this is the "
            "lower triangle, np.tril. In code where True means blocked, it is the upper one without the diagonal.",
        ),
        probes=(
            Probe("n_q = 4", (4,)),
            Probe("n_q = 1", (1,)),
            Probe("n_q = n_k = 3", (3, 3)),
            Probe("the last 3 of 5 tokens as queries", (3, 5)),
            Probe("one new token after 4 others", (1, 5)),
            Probe("the last 2 of 40 tokens as queries", (2, 40)),  # a window is wrong where the past is longer
        ),
        **step_options("causal", "n_q n_k", of=MaskSteps, axes=MAP_AXES, stage="mask"),
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
        **step_options("weights", "scaled_scores mask", axes=MAP_AXES, stage="softmax"),
        kept=Kept("masked_softmax", "attncourse.lessons.masks.masked_softmax", grown_from="softmax"),
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
        our_functions=("scaled_dot_product_attention", "attention_trace"),
        kept=Kept("attention", "attnlib.scaled_dot_product_attention"),  # that of lesson vectorized, grown
        probes=attention_probes(),
        **step_options("output", "q k v mask", axes=OUTPUT_AXES),
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
        judge=judge_masks,
        names=("key_ahead", "too_many_keys", "no_key_left", "reach_too_short", "mask_inverted"),
    ),
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
        **step_options("padding", "lengths n_k", of=MaskSteps, axes=MAP_AXES, stage="mask"),
    ),
)
