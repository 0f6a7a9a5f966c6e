"""Scaling: the size of a score."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .payoffs import PAYOFFS
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "QUESTIONS", "RECALL"]
