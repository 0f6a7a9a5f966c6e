"""Attention as named steps that can be replaced one at a time.

The reference is the steps as they stand; a mistake is the same steps with one of them replaced. So the catalogue of
mistakes serves every exercise, and a mistake can never drift away from the reference in anything but itself.
"""

from functools import cached_property

import numpy as np

from attnlib import heads, steps

ATTENTION = {step.name: step for step in steps.STEPS}
SHORT_NAMES = {"query": "q", "key": "k", "value": "v"}  # what attention is handed: the projected tokens


def swap(x):
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def attention_step(name):
    """Return a step of attention as it is, computed from what `Steps` holds."""
    step = ATTENTION[name]
    return cached_property(lambda s: step.function(*(getattr(s, SHORT_NAMES.get(x, x)) for x in step.takes)))


class Steps:
    """Compute steps when they are asked for, from what is given and from the steps they need.

    Steps that only one notebook needs stand in a subclass, beside its exercises, in the form that mistakes have.

    `given` are values that are known; their steps never run.

    >>> q = np.array([[2.0, 0.0]])
    >>> Steps(q=q, k=q).scaled_scores.round(4)
    array([[2.8284]])
    >>> replace_steps(Steps, {"scaled_scores": lambda s: s.scores})(q=q, k=q).scaled_scores
    array([[4.]])
    """

    mask = None
    num_heads = None
    axis = -1
    fill = -np.inf  # what a blocked score becomes
    learning = ()  # names of matrices, where the gradient is asked for

    def __init__(self, **given):
        self.__dict__.update(given)  # where a cached property looks first

    split = cached_property(lambda s: lambda x: x if s.num_heads is None else heads.split_heads(x, s.num_heads))
    q = cached_property(lambda s: s.split(s.query @ s.W_Q))
    k = cached_property(lambda s: s.split(s.key @ s.W_K))
    v = cached_property(lambda s: s.split(s.value @ s.W_V))

    scores, scaled_scores, output = map(attention_step, ("scores", "scaled_scores", "output"))

    # The scores where an exercise asks for them.
    raw_scores = cached_property(lambda s: s.scores)
    scale = cached_property(lambda s: 1 / np.sqrt(s.q.shape[-1]))
    allowed = cached_property(lambda s: s.mask)
    masked_scores = cached_property(
        lambda s: s.scaled_scores if s.mask is None else np.where(s.allowed, s.scaled_scores, s.fill)
    )

    weights = cached_property(lambda s: ATTENTION["weights"].function(s.masked_scores, s.axis))
    # The weights that a module returns with its output.
    shown = cached_property(lambda s: s.weights)
    merge = cached_property(lambda s: heads.merge_heads)
    projected = cached_property(lambda s: s.merge(s.output) @ s.W_O)
    # For each matrix 1 if no gradient reaches it, 2 if the gradient is NaN, else 0.
    gradient_fault = cached_property(lambda s: np.zeros(len(s.learning)))
    # What is done last to each returned array.
    finish = cached_property(lambda s: lambda y: y)


def replace_steps(steps, by):
    """Return the class `steps` with some of its steps replaced; `by` holds name -> function of the steps."""
    return type(steps.__name__, (steps,), {name: cached_property(step) for name, step in by.items()}) if by else steps
