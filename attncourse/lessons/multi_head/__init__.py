"""Multi-head: several heads side by side."""

from .exercises import EXERCISES, multi_head
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL", "multi_head"]
