"""Multi-head: several heads side by side."""

from .exercises import EXERCISES, multi_head
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "multi_head"]
