"""Masks: who may look where."""

from .exercises import EXERCISES, masked_softmax
from .mistakes import MISTAKES
from .payoffs import PAYOFFS
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "QUESTIONS", "RECALL", "masked_softmax"]
