"""Today's head: positions by rotation, normed queries and keys."""

from .exercises import EXERCISES
from .mistakes import MISTAKES, slow_by_parts
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "slow_by_parts"]
