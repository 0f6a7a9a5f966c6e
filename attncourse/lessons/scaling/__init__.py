"""Scaling: the size of a score."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL"]
