"""Program a head: set its matrices by hand."""

from .exercises import EXERCISES
from .mistakes import MISTAKES

__all__ = ["EXERCISES", "MISTAKES"]
