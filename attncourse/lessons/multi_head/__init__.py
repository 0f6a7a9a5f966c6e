"""Multi-head: several heads side by side."""

from .exercises import EXERCISES, multi_head
from .mistakes import MISTAKES
from .payoffs import PAYOFFS
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "QUESTIONS", "RECALL", "multi_head"]
