"""Vectorized: all queries at once."""

from .exercises import EXERCISES, stable_softmax
from .mistakes import MISTAKES
from .payoffs import PAYOFFS
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "QUESTIONS", "RECALL", "stable_softmax"]
