"""Masks: who may look where."""

from .exercises import EXERCISES, masked_softmax
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "masked_softmax"]
