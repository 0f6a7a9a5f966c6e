"""It speaks: a language model, and what its heads do."""

from .exercises import EXERCISES, PATIENTS
from .mistakes import MISTAKES

__all__ = ["EXERCISES", "MISTAKES", "PATIENTS"]
