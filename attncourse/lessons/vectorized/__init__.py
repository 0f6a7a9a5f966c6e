"""Vectorized: all queries at once."""

from .exercises import EXERCISES, stable_softmax
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "stable_softmax"]
