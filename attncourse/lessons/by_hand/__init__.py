"""By hand: one query, three products."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS"]
