"""Tell from outside which stage of a wrong attention function is the first to differ.

The trick: choose inputs for which the output *is* the weights (the values are the identity). The logarithm of the
weights gives the scores back, up to a constant in each row.
"""

import numpy as np

from .calling import call, close


def locate(exercise, function, probe, outcome):
    """Return (stage, what was measured), or (None, "") where it cannot be told.

    Stages are reported in the order scores, scale, mask, softmax, output. An exercise about a single step is its own
    stage.
    """
    if exercise.reveal is None:
        return exercise.stage or None, ""
    weights, right = [], []
    for args in exercise.reveal.args:  # without a mask, with one
        got, reference = (call(f, args, many=exercise.many) for f in (function, exercise.reference))
        right.append(exercise.steps(args))
        fits = not got.kind and got.values[0].shape == reference.values[0].shape
        weights.append(exercise.reveal.weights(got.values[0]) if fits else None)
    if weights[0] is None:
        return None, ""
    if not close(weights[0], right[0].weights, probe.tolerance):
        return _unmasked(weights[0], right[0])
    if weights[1] is not None and not close(weights[1], right[1].weights, probe.tolerance):
        return "mask", "Without a mask your weights are right."
    return ("softmax" if np.isnan(outcome.values[0]).any() else "output"), "On small scores your weights are right."


def _unmasked(weights, right):
    """Tell scores, scale and softmax apart where no mask is involved."""
    if np.isnan(weights).any():
        return None, ""
    sums = weights.sum(axis=-1)
    if not np.allclose(sums, 1, atol=1e-3) or (weights < 0).any():
        worst = sums.flat[np.abs(sums - 1).argmax()]
        return "softmax", f"The weights of a query should be positive and sum to 1; yours sum to {worst:.4g}."
    if (weights < 1e-12).any():
        return "softmax", "Some weights are 0 where no mask is involved."
    yours, expected = (x - x.mean(axis=-1, keepdims=True) for x in (np.log(weights), right.scaled))
    factor = float((yours * expected).sum() / (expected * expected).sum())
    if np.allclose(yours, factor * expected, atol=1e-3 * np.abs(yours).max()):
        return "scale", f"Your scaled scores are {factor:.4g} times the expected ones."
    return "scores", ""
