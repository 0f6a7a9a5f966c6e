"""Train and look: what a trained head has learned."""

from .exercises import EXERCISES
from .mistakes import MISTAKES

__all__ = ["EXERCISES", "MISTAKES"]
