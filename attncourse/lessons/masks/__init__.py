"""Masks: who may look where."""

from .exercises import EXERCISES, masked_softmax
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL", "masked_softmax"]
