"""Today's head: positions by rotation, normed queries and keys."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL"]
