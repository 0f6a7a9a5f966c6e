"""The catalogue: mistakes people make in attention code, each as steps that replace the right ones.

Order matters in one case: two mistakes that an exercise cannot tell apart go by the name of the first.
"""

from . import mistakes_elsewhere, mistakes_in_weights
from .mistake import Mistake

MISTAKES = {mistake.id: mistake for mistake in (*mistakes_in_weights.MISTAKES, *mistakes_elsewhere.MISTAKES)}

__all__ = ["MISTAKES", "Mistake"]
