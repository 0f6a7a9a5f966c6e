"""Attention as named steps that can be replaced one at a time.

The reference is the steps as they stand; a mistake is the same steps with one of them replaced. So the catalogue of
mistakes serves every exercise, and a mistake can never drift away from the reference in anything but itself.
"""

from functools import cached_property

import numpy as np

from ... import heads, steps

ATTENTION = {step.name: step for step in steps.STEPS}
HELD = {"query": "q", "key": "k", "value": "v"}  # what attention is handed: the projected tokens


def swap(x):
    """Swap the last two axes."""
    return np.swapaxes(x, -1, -2)


def attention_step(name):
    """Return a step of attention as it is, computed from what `Steps` holds."""
    step = ATTENTION[name]
    return cached_property(lambda s: step.function(*(getattr(s, HELD.get(taken, taken)) for taken in step.takes)))


class Steps:
    """Compute steps when they are asked for, from what is given and from the steps they need.

    Steps that only one notebook needs stand in a subclass, beside its exercises.

    `given` are values that are known; their steps never run.

    >>> q = np.array([[2.0, 0.0]])
    >>> Steps(q=q, k=q).scaled_scores.round(4)
    array([[2.8284]])
    >>> replaced(Steps, {"scaled_scores": lambda s: s.scores})(q=q, k=q).scaled_scores
    array([[4.]])
    """

    mask = None
    num_heads = None
    axis = -1
    fill = -np.inf  # what a blocked score becomes
    learning = ()  # names of matrices, where the gradient is asked for

    def __init__(self, **given):
        self.__dict__.update(given)  # where a cached property looks first

    @cached_property
    def split(self):
        return lambda x: x if self.num_heads is None else heads.split_heads(x, self.num_heads)

    @cached_property
    def q(self):
        return self.split(self.query @ self.W_Q)

    @cached_property
    def k(self):
        return self.split(self.key @ self.W_K)

    @cached_property
    def v(self):
        return self.split(self.value @ self.W_V)

    scores, scaled_scores, output = map(attention_step, ("scores", "scaled_scores", "output"))

    @cached_property
    def raw_scores(self):
        """The scores where an exercise asks for them."""
        return self.scores

    @cached_property
    def scale(self):
        return 1 / np.sqrt(self.q.shape[-1])

    @cached_property
    def allowed(self):
        return self.mask

    @cached_property
    def masked_scores(self):
        return self.scaled_scores if self.mask is None else np.where(self.allowed, self.scaled_scores, self.fill)

    @cached_property
    def weights(self):
        return ATTENTION["weights"].function(self.masked_scores, self.axis)

    @cached_property
    def shown(self):
        """The weights that a module returns with its output."""
        return self.weights

    @cached_property
    def merge(self):
        return heads.merge_heads

    @cached_property
    def projected(self):
        return self.merge(self.output) @ self.W_O

    @cached_property
    def gradient_fault(self):
        """For each matrix 1 if no gradient reaches it, 2 if the gradient is NaN, else 0."""
        return np.zeros(len(self.learning))

    @cached_property
    def finish(self):
        """What is done last to each returned array."""
        return lambda y: y


def replaced(steps, by):
    """Return the class `steps` with some of its steps replaced; `by` holds name -> function of the steps."""
    return type(steps.__name__, (steps,), {name: cached_property(step) for name, step in by.items()}) if by else steps
