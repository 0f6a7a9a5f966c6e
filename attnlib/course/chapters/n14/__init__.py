"""Notebook 14, long texts."""

from .exercises import EXERCISES, QUESTIONS, RECALL
from .long_texts import OWN

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL"]
