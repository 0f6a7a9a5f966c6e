"""Program a head: set its matrices by hand."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL"]
