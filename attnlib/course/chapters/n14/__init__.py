"""Notebook 14, long texts."""

from .exercises import EXERCISES, OWN, QUESTIONS, RECALL

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL"]
