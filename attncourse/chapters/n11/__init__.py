"""One token at a time."""

from .exercises import EXERCISES, OWN, QUESTIONS, RECALL

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL"]
