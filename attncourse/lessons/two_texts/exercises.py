"""The exercises of Two texts, and the inputs on which they are tried."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnlib import masks

from ...engine.exercise import MAP_AXES, OUTPUT_AXES, Design, Function, step_options
from ...engine.probes import BATCH, CUBE, EXTREME, HUGE, PLAIN, SINGLE, Draw, Probe, single
from ...engine.run import Unfit
from .mistakes import TextSteps
from .translators import CAUSES, judge_translator


def _rows_settled(mask, lengths, written, n_k, n_q):
    """Return a mask as (b, n_q, n_k), with the right rows where the query is padding, since nobody reads these."""
    mask, right = np.asarray(mask), masks.padding_mask(lengths, n_k)
    if mask.shape not in {(len(right), rows, n_k) for rows in (1, n_q)}:
        return mask
    if mask.dtype != bool:
        return np.broadcast_to(mask, (len(right), n_q, n_k))
    return np.where(np.arange(n_q)[:, None] < np.asarray(written)[:, None, None], mask, right)


def _places_settled(positions, real):
    """Return positions with 0 at the padding, wherever a position stands there that has a vector."""
    positions, real = np.asarray(positions), np.asarray(real)
    if positions.shape != real.shape or positions.dtype == bool:
        return positions
    return np.where(~real & (positions >= 0) & (positions < real.shape[-1]), 0, positions)


@dataclass(frozen=True, kw_only=True, repr=False)
class _PartlyFree(Function):
    """A function of which some numbers are free: `settled` puts the right ones there, into (result, *arguments)."""

    settled: Callable
    whole: bool = False  # must all numbers be whole?

    def adapt(self, answer):
        answer = super().adapt(answer)

        def set_free_numbers(*args):
            result = answer(*args)
            if self.whole and np.asarray(result).dtype in (np.float32, np.float64):
                raise Unfit("Each position picks a vector, so it must be whole; yours are floats. Fix: .astype(int).")
            return result if result is None or result is ... else self.settled(result, *args)

        return set_free_numbers

    def _result(self, s):
        return self.settled(super()._result(s), *s.arguments)


def two_texts():
    """Return what a step between two texts is tried on: (written, text, W_Q, W_K, W_V), each of its own length."""
    draw = Draw("cross_attention")
    matrices = draw.matrix(6, 4), draw.matrix(6, 4), draw.matrix(6, 3)
    square = draw.matrix(4, 4), draw.matrix(4, 4), draw.matrix(4, 4)
    batch = draw(2, 3, 6), draw(2, 5, 6), draw.matrix(6, 2), draw.matrix(6, 2), draw.matrix(6, 3)
    one = draw(3, 6), draw(5, 6), *matrices
    return (
        Probe(PLAIN, one),
        Probe(BATCH, batch),
        Probe(CUBE, (draw(4, 4, 4), draw(4, 4, 4), *square)),
        Probe(SINGLE, single(*batch)),
        Probe(HUGE, (3e3 * one[0], *one[1:]), EXTREME),
    )


def _texts_at_the_right():
    def real(*lengths, n):
        return np.arange(n) >= n - np.array(lengths)[:, None]

    return (
        Probe("texts of 2, 5 and 3 letters", (real(2, 5, 3, n=5),)),
        Probe("texts of 4 and 1 letters among 6", (real(4, 1, n=6),)),
        Probe("as many texts as letters", (real(1, 3, 2, n=3),)),
    )


EXERCISES = (
    Function(
        "cross_attention",
        "cross_attention(written, text, W_Q, W_K, W_V) -> (..., n_q, d_v): each token of what is written, (..., n_q, "
        "d), looks at the text that is read, (..., n_k, d). Scores are divided by sqrt(d_k).",
        (
            "Who asks? Queries are made of what is written.",
            "Keys and values are both made of the text that is read.",
            "q = written @ W_Q, k = text @ W_K, v = text @ W_V, and then attention as in 'vectorized'.",
        ),
        probes=two_texts(),
        given=lambda written, text, W_Q, W_K, W_V: dict(query=written, key=text, value=text, W_Q=W_Q, W_K=W_K, W_V=W_V),
        result=lambda s: s.output,
        axes=OUTPUT_AXES,
    ),
    _PartlyFree(
        "context_mask",
        "context_mask(lengths, written, n_k, n_q) -> (b, n_q, n_k) or (b, 1, n_k) of bool, True = may attend. lengths "
        "(b,) are those of the texts that are read, written (b,) those of what is written. Rows of padding are free.",
        (
            "Which text stands in the columns?",
            "The one that is read: key j is a letter if j is less than its length. No triangle.",
            "np.arange(n_k) < lengths[:, None, None] is (b, 1, n_k).",
        ),
        probes=(
            Probe("texts of 3, 5 and 2 letters, 4 digits each", (np.array([3, 5, 2]), np.array([4, 4, 4]), 5, 4)),
            Probe("what is written is padded, too", (np.array([3, 5, 2]), np.array([2, 1, 4]), 5, 4)),
            Probe("as many letters as digits", (np.array([1, 4, 2]), np.array([4, 2, 3]), 4, 4)),
            Probe("more digits than letters", (np.array([2, 1]), np.array([5, 3]), 2, 5)),
        ),
        **step_options("between", "lengths written n_k n_q", of=TextSteps, axes=MAP_AXES, stage="mask"),
        settled=_rows_settled,
    ),
    _PartlyFree(
        "left_positions",
        "left_positions(real) -> (b, n) of int: the position of each letter in its text. real (b, n) is True at the "
        "letters, which stand at the right, behind their padding. At padding any position from 0 to n - 1 will do.",
        (
            "The first letter of each text stands at position 0, wherever it stands in its row.",
            "Count the letters from the left: a running sum of True, along the last axis.",
            "np.cumsum(real, axis=-1) - 1, and no -1 at the padding.",
        ),
        probes=_texts_at_the_right(),
        **step_options("positions", "real", of=TextSteps, axes=("texts", "letters")),
        settled=_places_settled,
        whole=True,
    ),
    Function(
        "packed_mask",
        "packed_mask(ids) -> (..., n, n) of bool for a causal model, True = may attend. ids (..., n) says which text "
        "each token of a row belongs to; texts have any numbers.",
        (
            "Two conditions hold together. Which are they?",
            "The key does not come after the query, and both belong to the same text.",
            "ids[..., :, None] == ids[..., None, :], and a triangle: al.causal_mask(n).",
        ),
        probes=(
            Probe("two texts of 2 and 3 tokens", (np.array([0, 0, 1, 1, 1]),)),
            Probe("three texts with other numbers", (np.array([7, 7, 3, 5, 5, 5]),)),
            Probe("a batch of rows", (np.array([[2, 2, 2, 1], [0, 4, 4, 4]]),)),
            Probe("as many rows as tokens", (np.array([[1, 1, 2], [2, 1, 1], [3, 2, 1]]),)),
        ),
        **step_options("packed", "ids", of=TextSteps, axes=MAP_AXES, stage="mask"),
    ),
    Design(
        "sick_translator",
        'which of the three translators is sick, and what it has, as two letters: ("A", "a")',
        (
            "Look at what they write before you look at maps. Give them one text, then several of different lengths.",
            "One is wrong about short texts beside longer ones. Where do its digits look then?",
            "At the padding behind the short text.",
        ),
        judge=judge_translator,
        names=("healthy_accused", *(id for id, _ in CAUSES.values())),
    ),
)
