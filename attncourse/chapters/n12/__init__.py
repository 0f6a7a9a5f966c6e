"""Notebook 12, today's head."""

from .exercises import EXERCISES, OWN, QUESTIONS, RECALL

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL"]
