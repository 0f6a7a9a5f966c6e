"""Attention as named steps that can be replaced one at a time.

The reference is the steps as they stand; a mistake is the same steps with one of them replaced. So the catalogue of
mistakes serves every exercise, and a mistake can never drift away from the reference in anything but itself.
"""

import numpy as np

from .. import core, heads, masks


def swap(x):
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def self_width(s):
    """Return d_model, where the exercise has one."""
    return s.query.shape[-1]


def copies(tokens):
    """Return (b, n_q, n_k), True where key j holds the letter of query i."""
    return tokens[:, :, None] == tokens[:, None, :]


def after_copy(tokens, by=1):
    """Return (b, n_q, n_k), True where key j stands `by` places behind an earlier copy of the letter of query i."""
    n = tokens.shape[-1]
    earlier = copies(tokens) & np.tri(n, k=-1, dtype=bool)
    moved = np.zeros_like(earlier)
    moved[..., max(by, 0) : n + min(by, 0)] = earlier[..., max(-by, 0) : n - max(by, 0)]
    return moved


def mean_on(weights, cells):
    """Return (h,): the weight (b, h, n_q, n_k) on the True cells (b, n_q, n_k), a mean over batch and queries."""
    return (weights * cells[:, None]).sum(-1).mean((0, -1))


def copy_of_last(tokens):
    """Return the place where the last letter stood before; None if it did not."""
    places = np.flatnonzero(tokens[:-1] == tokens[-1])
    return int(places[0]) if len(places) else None


def fooling(tokens):
    """Swap the letter after the earlier copy of the last one with another."""
    answer = copy_of_last(tokens) + 1
    other = next(j for j in range(len(tokens) - 1) if j not in (answer - 1, answer))
    result = tokens.copy()
    result[[answer, other]] = tokens[[other, answer]]
    return result


def _split(s):
    if s.num_heads is None:
        return lambda x: x
    return lambda x: heads.split_heads(x, s.num_heads)


STEPS = {
    "mask": lambda s: None,
    "num_heads": lambda s: None,
    "axis": lambda s: -1,
    "split": _split,
    "q": lambda s: s.split(s.query @ s.W_Q),
    "k": lambda s: s.split(s.key @ s.W_K),
    "v": lambda s: s.split(s.value @ s.W_V),
    "scores": lambda s: s.q @ swap(s.k),
    "raw_scores": lambda s: s.scores,
    "variance": lambda s: np.var(s.raw_scores),
    "scaled": lambda s: s.scores / np.sqrt(s.q.shape[-1]),
    "allowed": lambda s: s.mask,
    "fill": lambda s: -np.inf,  # what a blocked score becomes
    "masked": lambda s: s.scaled if s.mask is None else np.where(s.allowed, s.scaled, s.fill),
    "weights": lambda s: core.softmax(s.masked, s.axis),
    "entropy": lambda s: core.entropy(s.weights),
    "shown": lambda s: s.weights,  # the weights that a module returns beside its output
    "context": lambda s: s.weights @ s.v,
    "merge": lambda s: heads.merge_heads,
    "output": lambda s: s.merge(s.context) @ s.W_O,
    "causal": lambda s: masks.causal_mask(s.n_q, s.n_k, align="lower_right"),
    "padding": lambda s: masks.padding_mask(s.lengths, s.n_k),
    "combined": lambda s: masks.combine_masks(*s.masks),
    "head_scores": lambda s: mean_on(s.weights, after_copy(s.tokens)),
    "fooling": lambda s: fooling(s.tokens),
    "learning": lambda s: (),  # names of matrices, where the gradient is asked for
    "gradient_cut": lambda s: np.zeros(len(s.learning), dtype=bool),  # which matrices get no gradient
    "finish": lambda s: lambda y: y,  # the last thing done to whatever is returned
}


class Steps:
    """Compute steps when they are asked for, from what is given and from the steps they need.

    Parameters
    ----------
    replaced : dict of str to callable
        Steps that differ from `STEPS`: name -> function of this object.
    **given
        Values that are known; their steps never run.

    Examples
    --------
    >>> q = np.array([[2.0, 0.0]])
    >>> Steps({}, q=q, k=q).scaled.round(4)
    array([[2.8284]])
    >>> Steps({"scaled": lambda s: s.scores}, q=q, k=q).scaled
    array([[4.]])
    """

    def __init__(self, replaced, **given):
        self.__dict__.update(given)
        self._steps = STEPS | replaced

    def __getattr__(self, name):
        steps = self.__dict__["_steps"]
        if name not in steps:
            raise AttributeError(f"{name} is neither given nor a step")
        value = steps[name](self)
        setattr(self, name, value)
        return value
