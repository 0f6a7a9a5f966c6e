"""It speaks: a language model, and what its heads do."""

from .exercises import PATIENTS

__all__ = ["PATIENTS"]
