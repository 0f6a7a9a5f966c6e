"""Tell from outside which stage of a wrong attention function is the first to differ.

The output is linear in the values: values that are known give the weights back. They are read on the very queries, keys
and mask of the probe that failed, and a second reading has to confirm the first. A stage is named only if the stages
before it are seen to be right; otherwise nothing is said.

Stages are reported in the order projections, scores, scale, mask, softmax, output; "heads" is all that is done with
several of them and not with one. A module returns its weights as well: those are compared themselves, and "returned
weights" are wrong beside a right output.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from attnlib.heads import merge_heads, split_heads

from .compare import allclose, close
from .probes import DEAD, HUGE, HUGE_MASKED, LOW_MASKED
from .run import call

RIGHT_BARE = "Without a mask your weights are right."


class Reveal(NamedTuple):
    """How to look inside a function of attention."""

    with_values: Callable  # (args, matrix) -> (args with values from `matrix` alone, these values, projected -> output)
    basis: Callable  # args -> a matrix for which the values show all keys apart
    columns: Callable  # args -> how many columns of it can be tried at once
    plain: Callable  # (args, q, k) -> args without a mask whose projections do nothing and give these queries and keys
    mask: int  # its place in args


class Reference(NamedTuple):
    """The right answer of an exercise, to ask it the same questions."""

    function: Callable
    steps_on: Callable  # args -> the right steps
    returns_weights: bool
    stage: str  # of an exercise about a single one
    reveal: Reveal | None

    def outcome(self, args):
        return call(self.function, args, returns_weights=self.returns_weights)


def _itself(x):
    return x


def _one_value_per_token(tokens):
    """Return a W_V that gives each token its own value; in a batch, all columns of the identity together do so."""
    n, width = tokens.shape[-2:]
    return np.linalg.pinv(tokens) if tokens.ndim == 2 and n <= width else np.eye(width)


def attention():
    def with_values(args, matrix):
        q, k, _, *mask = args
        v = np.broadcast_to(matrix, (*k.shape[:-2], *matrix.shape)).astype(k.dtype)
        return (q, k, v, *mask), v, _itself

    return Reveal(
        with_values,
        lambda args: np.eye(args[1].shape[-2]),
        lambda args: args[1].shape[-2],
        lambda args, q, k: (q, k, args[2]),
        3,
    )


def self_attention():
    def with_values(args, matrix):
        x, W_Q, W_K, _, *mask = args
        return (x, W_Q, W_K, matrix.astype(x.dtype), *mask), x @ matrix, _itself

    def plain(args, q, k):
        n, d_k = k.shape[-2:]
        x = np.concatenate([q, k, np.broadcast_to(np.eye(n), (*k.shape[:-1], n))], axis=-1)
        pick = np.eye(x.shape[-1])
        return (x, pick[:, :d_k], pick[:, d_k : 2 * d_k], pick)

    return Reveal(with_values, lambda args: _one_value_per_token(args[0]), lambda args: args[0].shape[-1], plain, 4)


def multi_head():
    def with_values(args, matrix):
        query, key, _, W_Q, W_K, _, _, h, *mask = args
        width = W_Q.shape[1]
        block = np.zeros((len(matrix), width // h))
        block[:, : matrix.shape[1]] = matrix
        value = np.broadcast_to(np.tile(block, h), (*key.shape[:-1], width)).astype(key.dtype)
        eye = np.eye(width, dtype=key.dtype)
        return (query, key, value, W_Q, W_K, eye, eye, h, *mask), block, lambda y: split_heads(y, h)

    def plain(args, q, k):
        h, eye = q.shape[-3], np.eye(q.shape[-3] * q.shape[-1])
        q, k = merge_heads(q), merge_heads(k)
        return (q, k, k, eye, eye, eye, eye, h)

    return Reveal(
        with_values, lambda args: np.eye(args[1].shape[-2]), lambda args: args[3].shape[1] // args[7], plain, 8
    )


def locate(function, difference, reference, probes):
    """Return (stage, what was measured), or (None, "") if the stage cannot be told."""
    probe, outcome = difference.probe, difference.outcome
    if probe.name in (DEAD, HUGE, HUGE_MASKED, LOW_MASKED) and np.isnan(outcome.values[0]).any():
        return "softmax", "On other numbers you are right; here some results are not even numbers."
    if reference.reveal is None:
        return _of_one_step(function, difference, reference)
    if reference.returns_weights and (stage := _of_returned(probe, outcome, reference)):
        return stage
    before = probes[: difference.place]
    look = _Look(function, reference, {reference.steps_on(other.args).q.shape[-1] for other in before})
    bare = probe.args[: reference.reveal.mask]
    right, (weights, sure) = reference.steps_on(bare), look.weights(bare)
    if weights is not None and _near(weights, right.weights):
        if len(bare) < len(probe.args):
            (masked, sure), steps = look.weights(probe.args), reference.steps_on(probe.args)
            if sure and _another_mask(masked, steps):
                return "mask", RIGHT_BARE
            if masked is None or not _near(masked, steps.weights):
                return None, f"{RIGHT_BARE} With one they are not: check scale, mask and axis there."
        return "output", "Your weights are right."
    if sure and (right.weights > 1e-9).all():
        return look.before_weights(bare, weights, right)
    return look.heads(bare, right)


def _of_returned(probe, outcome, reference):
    """Return the stage that the returned weights point to; None if they do not tell."""
    expected = reference.outcome(probe.args).values
    if len(outcome.values) != 2 or any(x.shape != y.shape for x, y in zip(outcome.values, expected, strict=True)):
        return None
    output, weights = (close(x, y, probe.tolerance) for x, y in zip(outcome.values, expected, strict=True))
    if output and not weights:
        return "returned weights", "Your output is right; the weights that you return beside it are not."
    if weights and not output and reference.steps_on(probe.args).num_heads is None:
        return "output", "The weights that you return are right."
    return None


def _of_one_step(function, difference, reference):
    """An exercise about a single step is its own stage; a masked softmax has two."""
    probe = difference.probe
    if reference.stage == "softmax" and len(probe.args) == 2 and isinstance(probe.args[1], np.ndarray):
        bare = call(function, probe.args[:1])
        if not bare.kind and close(bare.values[0], reference.function(probe.args[0]), probe.tolerance):
            masked = _another_mask(difference.outcome.values[0], reference.steps_on(probe.args))
            return ("mask", RIGHT_BARE) if masked else (None, "")
    return reference.stage or None, ""


def _another_mask(weights, right):
    """Tell whether wrong weights are those of the right scores, scale and axis under another mask.

    Where both masks allow two keys, the ratio of their weights is then the right one.
    """
    mask = np.broadcast_to(right.mask, right.weights.shape)
    if weights.shape != mask.shape or not allclose(weights.sum(axis=-1)[mask.any(axis=-1)], 1, atol=1e-3):
        return False
    both = mask & (weights > 1e-6)
    yours, expected = (np.where(both, w, 0) for w in (weights, right.weights))
    if not ((expected > 1e-2).sum(axis=-1) > 1).any():
        return False  # no query has two keys to compare
    total, expected_total = (w.sum(axis=-1, keepdims=True) for w in (yours, expected))
    return _near(yours * expected_total, expected * total) and not _near(weights, right.weights)


class _Look:
    """Experiments on a learner's attention function, which is right for every d_k in `known`."""

    def __init__(self, function, reference, known):
        self.function, self.reference, self.reveal, self.known = function, reference, reference.reveal, known

    def weights(self, args):
        """Return the weights that the function uses and whether a second reading confirms them, or (None, False)."""
        basis, columns = self.reveal.basis(args), self.reveal.columns(args)
        columns = min(columns, basis.shape[1])
        none, _ = self._output(args, 0 * basis[:, :columns])  # what does not come from the values
        parts = [self._output(args, basis[:, i : i + columns]) for i in range(0, basis.shape[1], columns)]
        if none is None or any(y is None for y, _ in parts):
            return None, False
        try:
            given = np.concatenate([v for _, v in parts], axis=-1)
            weights = np.concatenate([y - none for y, _ in parts], axis=-1) @ np.linalg.pinv(given)
            mixed = np.random.default_rng(0).normal(size=(len(basis), columns))
            output, values = self._output(args, mixed)
            sure = output is not None and _near(output - none, weights @ values)
        except (ValueError, np.linalg.LinAlgError):
            return None, False
        return weights, sure

    def _output(self, args, matrix):
        given, values, read = self.reveal.with_values(args, matrix)
        got, right = self._outcome(given), self.reference.outcome(given)
        if got.kind or got.values[0].shape != right.values[0].shape or not np.isfinite(got.values[0]).all():
            return None, values
        return read(got.values[0].astype(np.float64)), values

    def _outcome(self, args):
        return call(self.function, args, returns_weights=self.reference.returns_weights)

    def before_weights(self, args, weights, right):
        """Tell projections, heads, scores, scale and softmax apart, given weights that are wrong."""
        q, k = right.q.astype(float), right.k.astype(float)
        plain, sure = self.weights(self.reveal.plain(args, q, k))
        if plain is not None and _near(plain, right.weights):
            return "projections", "With projections that change nothing your weights are right."
        if not sure:
            return None, ""
        if not _near(plain, weights):
            return "projections", "The same queries and keys, projected or not, get different weights."
        if right.num_heads is not None:
            for i in range(right.num_heads):
                alone, sure = self.weights(self.reveal.plain(args, q[..., [i], :, :], k[..., [i], :, :]))
                if not sure or not _near(alone, weights[..., [i], :, :]):
                    return self.heads(args, right)
        stage = _of_weights(weights, right, self.known)
        return stage or (self._of_scores(args, weights, q, k) if _as_scores(weights, right) else (None, ""))

    def heads(self, args, right):
        """Say heads if one head gives the right output and several do not."""
        if right.num_heads is not None and right.num_heads > 1:
            one = (*args[:7], 1)
            expected, got = self.reference.outcome(one), self._outcome(one)
            if not got.kind and close(got.values[0], expected.values[0], 1e-3):
                return "heads", "With one head your output is right, with several it is not."
        return None, ""

    def _of_scores(self, args, weights, q, k):
        """Say scores if the weights depend on queries and keys."""
        others = (-q[..., ::-1], k), (q, -k[..., ::-1])
        changed = [self.weights(self.reveal.plain(args, *other))[0] for other in others]
        if any(x is None or _near(x, weights) for x in changed):
            return None, ""
        return "scores", "Your weights change with the queries and the keys, and not as the right scores do."


def _of_weights(weights, right, known):
    """Return what is wrong with weights whose scores are right up to a factor; else None."""
    sums = weights.sum(axis=-1)
    if allclose(sums, 1, atol=1e-3) and (weights > 1e-12).all():
        factor = _factor(np.log(weights), right.scaled_scores)
        return factor and ("scale", _of_scale(factor, right.q.shape[-1], known))
    if not _follows(weights, right.scaled_scores):
        return None
    # A factor on the output looks the same as one on the weights.
    if (weights < -1e-6).any():
        return "softmax or output", f"Weights should be positive; the smallest of yours is {weights.min():.4g}."
    if not allclose(sums, 1, atol=1e-3):
        worst = sums.flat[np.abs(sums - 1).argmax()]
        return "softmax or output", f"The weights of a query should sum to 1; yours sum to {worst:.4g}."
    return None


def _of_scale(factor, d_k, known):
    """Say by which factor the scores are off, and whether that scale fits another d_k."""
    text = f"Your scaled scores are {factor:.4g} times the expected ones."
    for other in known - {d_k}:
        if np.isclose(factor, np.sqrt(d_k / other), rtol=1e-3):
            text += f" The scale does not change with d_k: it was right for {other}, and here d_k is {d_k}."
    return text


def _factor(yours, expected):
    """Return the factor between scores that are known up to a constant in each row; None if no single factor fits."""
    yours, expected = (x - x.mean(axis=-1, keepdims=True) for x in (yours, expected))
    factor = float((yours * expected).sum() / (expected * expected).sum())
    fits = allclose(yours, factor * expected, atol=1e-3 * np.abs(yours).max())
    return factor if fits and abs(factor) > 1e-6 else None


def _follows(weights, scores):
    """Tell whether weights rise with the scores along the keys or along the queries."""
    if np.ptp(weights) < 1e-9:
        return False

    def rises(axis):
        order = scores.argsort(axis=axis)
        return (np.diff(np.take_along_axis(weights, order, axis), axis=axis) > -1e-6).all()

    return any(rises(axis) for axis in (-1, -2))


def _as_scores(weights, right):
    """Tell whether only different scores explain the weights: no rescaling and no other order of rows or keys does."""
    shares = (weights >= 1e-12).all() and allclose(weights.sum(axis=-1), 1, atol=1e-3)
    if not shares or _follows(weights, right.scaled_scores):
        return False
    if _near(np.sort(weights), np.sort(right.weights)):
        return False  # the right shares in another order: the values may have changed places as well
    rows = right.weights.reshape(-1, weights.shape[-1])
    return not any(_near(row, other) for row in weights.reshape(rows.shape) for other in rows)


def _near(x, y):
    return x.shape == y.shape and allclose(x, y, rtol=1e-3, atol=1e-3)
