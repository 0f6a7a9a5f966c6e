"""Notebook 05, masks: its exercises, questions, and what only they need."""

from functools import cached_property

import numpy as np

from .. import masks
from . import stages
from .exercise import ATTENTION_HINTS, MAP_AXES, OUTPUT_AXES, Function
from .mistakes.mistake import Mistake
from .mistakes.weights import FUTURE_ONLY, given_masks, triangle
from .prediction import Question
from .probes import (
    CUBE_MASKED,
    DEAD,
    EXTREME,
    HUGE,
    HUGE_MASKED,
    MASK,
    MASK_CUBE,
    MASK_PADDING,
    PADDED,
    SINGLE,
    Draw,
    Probe,
    dead,
    edges,
    single,
)
from .steps import Steps


class _Steps(Steps):
    @cached_property
    def causal(self):
        return masks.causal_mask(self.n_q, self.n_k, align="lower_right")

    @cached_property
    def padding(self):
        return masks.padding_mask(self.lengths, self.n_k)

    @cached_property
    def combined(self):
        return masks.combine_masks(*self.masks)


def causal_probes():
    return (
        Probe("n_q = 4", (4,)),
        Probe("n_q = 1", (1,)),
        Probe("n_q = n_k = 3", (3, 3)),
        Probe("the last 3 of 5 tokens as queries", (3, 5)),
        Probe("one new token after 4 others", (1, 5)),
    )


def padding_probes():
    return (
        Probe("lengths 3, 1, 4, 2 of n_k = 6", (np.array([3, 1, 4, 2]), 6)),
        Probe("lengths 0 and 5 of n_k = 5", (np.array([0, 5]), 5)),
        Probe("as many sequences as positions", (np.array([2, 1, 3]), 3)),
    )


def combine_probes():
    draw = Draw("combine_masks")
    tri, padded = masks.causal_mask(5), masks.padding_mask([3, 4], 5)
    return (
        Probe("two masks of one shape", (MASK, masks.causal_mask(4, 5, align="lower_right"))),
        Probe("a causal and a padding mask", (tri, padded)),
        Probe("three masks", (tri, padded, draw.rng.random((5, 5)) < 0.7)),
        Probe("None among them", (None, tri, padded)),
        Probe("one mask", (tri,)),
    )


def masked_probes():
    draw = Draw("masked_softmax")
    x, batch = draw(4, 5), draw(2, 4, 5)
    offset = np.array([1e4, -1e4, 800, 0])[:, None]
    return (
        Probe("scores without a mask", (x,)),
        Probe("scores with a mask", (x, MASK)),
        Probe(PADDED, (batch, MASK_PADDING)),
        Probe(CUBE_MASKED, (draw(3, 3, 3), MASK_CUBE)),
        Probe(SINGLE, (*single(batch), np.stack([MASK, MASK[::-1]]))),
        Probe(DEAD, (x, dead(MASK))),
        Probe(HUGE, (x + offset,), EXTREME),
        Probe(HUGE_MASKED, (x + np.where(MASK, 0, 1e4), MASK), EXTREME),
    )


def cross_probes():
    draw = Draw("cross_attention")

    def arrays(*b):
        return draw(*b, 4, 6), draw(*b, 5, 7), *w

    w = draw.matrix(6, 3), draw.matrix(7, 3), draw.matrix(7, 2)
    return edges(
        arrays,
        lambda: (draw(3, 3, 3), draw(3, 3, 3), draw.matrix(3, 3), draw.matrix(3, 3), draw.matrix(3, 3)),
        lambda a: (5e3 * a[0], *a[1:]),
    )


def _numbers(convert):
    return {"finish": lambda s: lambda y: convert(y) if y.dtype == bool else y}


OWN = (
    Mistake(
        "padding_without_query_axis",
        "the padding mask is (b, n_k): the axis for the queries is missing",
        "An error later on, or, if b = n_q, a mask that is read as (n_q, n_k) without a word.",
        "Scores are (b, n_q, n_k). Which axis of yours has to stretch?",
        ({"padding": lambda s: np.arange(s.n_k) < np.asarray(s.lengths)[:, None]},),
    ),
    Mistake(
        "padding_off_by_one",
        "it lets one padded token through",
        "The first padding token gets weight in every sequence.",
        "A sequence of length 2: at which positions are its tokens, counted from 0?",
        ({"padding": lambda s: np.arange(s.n_k) <= np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "padding_on_the_left",
        "the padding stands in front of the tokens",
        "Real tokens at the beginning are hidden, padding at the end is seen.",
        "Which positions hold the tokens of a sequence of length 2: the first two or the last two?",
        ({"padding": lambda s: np.arange(s.n_k) >= s.n_k - np.asarray(s.lengths)[:, None, None]},),
    ),
    Mistake(
        "mask_blocks_diagonal",
        "a token may not attend to itself",
        "The first token may attend to nothing at all.",
        "What may the very first token look at?",
        ({"causal": lambda s: triangle(s, -1)}, {"causal": lambda s: np.tri(s.n_q, s.n_k, k=-1, dtype=bool)}),
    ),
    Mistake(
        "mask_shows_the_next",
        "a token may also attend to the one that follows it",
        "In training the token to be predicted is in plain sight.",
        "What may the very first token look at?",
        ({"causal": lambda s: triangle(s, 1)}, {"causal": lambda s: np.tri(s.n_q, s.n_k, k=1, dtype=bool)}),
    ),
    FUTURE_ONLY,
    Mistake(
        "causal_upper_left",
        "the first query stands at the first key (upper left), although the queries are the last tokens",
        "The same for n_q = n_k. One new token after four others sees the first of them only, not even itself.",
        "Give each token its place in the sequence. At which place stands the first query?",
        ({"causal": lambda s: np.tri(s.n_q, s.n_k, dtype=bool)},),
    ),
    Mistake(
        "masks_joined_with_or",
        "a query may attend where one mask allows it",
        "The combined mask hides less than each of them alone.",
        "Two locks on a door: when does it open?",
        ({"combined": lambda s: np.logical_or.reduce(given_masks(s))},),
    ),
    Mistake(
        "mask_as_numbers",
        "the mask is made of numbers, not of True and False",
        "The next reader cannot know what 0 means; `~mask` gives -1 and -2.",
        "Print the dtype of your mask.",
        (
            _numbers(lambda y: y.astype(int)),
            _numbers(lambda y: np.where(y, 0.0, -np.inf)),
            _numbers(lambda y: (~y).astype(int)),
        ),
    ),
)

EXERCISES = (
    Function(
        "causal_mask",
        "causal_mask(n_q, n_k=None) -> (n_q, n_k) of bool, True = may attend: the queries are the last n_q of n_k "
        "tokens, and each sees itself and all before it.",
        (
            "Tokens stand at places 0 .. n_k - 1, and the last query is the last token. Where is the first one?",
            "Compare the places of the queries, as a column, with those of the keys, as a row.",
            "np.arange(n_k - n_q, n_k)[:, None] is the column. The dtype has to be bool.",
        ),
        probes=causal_probes(),
        given=lambda n_q, n_k=None: {"n_q": n_q, "n_k": n_q if n_k is None else n_k},
        result=lambda s: s.causal,
        axes=MAP_AXES,
        stage="mask",
        steps=_Steps,
    ),
    Function(
        "padding_mask",
        "padding_mask(lengths, n_k) -> (b, 1, n_k) of bool, True where key j of sequence b is a real token.",
        (
            "A sequence of length 2 has its tokens at positions 0 and 1.",
            "Compare the positions 0 .. n_k-1 with the length of each sequence.",
            "lengths has shape (b,); as (b, 1, 1) it compares with all positions at once.",
        ),
        probes=padding_probes(),
        given=lambda lengths, n_k: {"lengths": lengths, "n_k": n_k},
        result=lambda s: s.padding,
        axes=MAP_AXES,
        stage="mask",
        steps=_Steps,
    ),
    Function(
        "combine_masks",
        "combine_masks(*masks) -> one boolean mask, True where every mask is True. None stands for no mask.",
        (
            "May attend only where all of them allow it.",
            "Boolean arrays broadcast against each other under &.",
            "Start from the first mask that is not None, and never write into it: a & b makes a new array.",
        ),
        probes=combine_probes(),
        given=lambda *masks: {"masks": masks},
        result=lambda s: s.combined,
        axes=MAP_AXES,
        stage="mask",
        steps=_Steps,
    ),
    Function(
        "masked_softmax",
        "masked_softmax(scores, attn_mask=None) -> weights of the shape of scores, over the last axis. "
        "True = may attend; a row that may attend to nothing gives zeros.",
        (
            "A blocked key must get weight 0 before the row is normalised.",
            "exp(-inf) = 0: np.where puts -inf in the right places.",
            "In a row of -inf the maximum is -inf too, and -inf - -inf is NaN: treat such rows separately.",
        ),
        probes=masked_probes(),
        given=lambda scores, mask=None: {"scaled": scores, "mask": mask},
        result=lambda s: s.weights,
        own=("softmax",),
        axes=MAP_AXES,
        stage="softmax",
    ),
    Function(
        "cross_attention",
        "cross_attention(x, context, W_Q, W_K, W_V, attn_mask=None) -> (..., n_q, d_v): queries from x, keys and "
        "values from context.",
        ("Three projections, of two different sequences.", *ATTENTION_HINTS),
        probes=cross_probes(),
        given=lambda x, context, W_Q, W_K, W_V, mask=None: dict(
            query=x, key=context, value=context, W_Q=W_Q, W_K=W_K, W_V=W_V, mask=mask
        ),
        result=lambda s: s.context,
        axes=OUTPUT_AXES,
        reveal=stages.cross_attention(),
    ),
)

QUESTIONS = (
    Question(
        "zero_after",
        "b",
        "The blocked keys took their share in the softmax, and nobody gives it back.",
        {
            "a": "The softmax made the row sum to 1 with all keys in it. Taking some away leaves less than 1.",
            "c": "Row 2 may look at everything and keeps its 1; a row is 0 only if every key is blocked.",
        },
        "a",
    ),
    Question(
        "equal_sizes",
        "c",
        "Two axes that fit are read as (n_q, n_k). No library can know that you meant (b, n_k).",
        {
            "a": "An error needs sizes that disagree. Here 10 = 10.",
            "b": "NumPy and torch line up the last axes: (b, n_k) lands on (n_q, n_k), the same for every sequence.",
        },
        "a",
    ),
)
