"""PyTorch module: attention that learns."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL"]
