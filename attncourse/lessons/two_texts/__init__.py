"""Two texts: attention from one to another."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL
from .translators import translators

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL", "translators"]
