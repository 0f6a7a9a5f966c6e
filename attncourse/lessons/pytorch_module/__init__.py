"""PyTorch module: attention that learns."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS"]
