"""Two texts: attention from one to another."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .translators import translators

__all__ = ["EXERCISES", "MISTAKES", "translators"]
