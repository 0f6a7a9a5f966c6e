"""Masks: who may look where."""

from .exercises import masked_softmax

__all__ = ["masked_softmax"]
