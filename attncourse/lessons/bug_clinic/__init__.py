"""Bug clinic: modules with one bug each."""

from .questions import QUESTIONS, RECALL

__all__ = ["QUESTIONS", "RECALL"]
