"""The catalogue: mistakes people make in attention code, each as steps that replace the right ones.

Order matters in one case: two mistakes that an exercise cannot tell apart go by the name of the first.
"""

from . import mistakes_elsewhere, mistakes_in_modules, mistakes_in_weights, mistakes_when_trained
from .mistake import Mistake

_ALL = (
    *mistakes_in_weights.MISTAKES,
    *mistakes_elsewhere.MISTAKES,
    *mistakes_in_modules.MISTAKES,
    *mistakes_when_trained.MISTAKES,
)
MISTAKES = {mistake.id: mistake for mistake in _ALL}

__all__ = ["MISTAKES", "Mistake"]
