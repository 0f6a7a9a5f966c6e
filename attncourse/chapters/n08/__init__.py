"""Train and look."""

from .exercises import EXERCISES, OWN, QUESTIONS, RECALL

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL"]
