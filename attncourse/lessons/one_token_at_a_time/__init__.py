"""One token at a time: decoding, and its cache."""

from .exercises import EXERCISES
from .mistakes import MISTAKES

__all__ = ["EXERCISES", "MISTAKES"]
