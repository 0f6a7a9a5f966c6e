"""A real model: heads of a model that others trained."""

from .exercises import EXERCISES
from .mistakes import MISTAKES

__all__ = ["EXERCISES", "MISTAKES"]
