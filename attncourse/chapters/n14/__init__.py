"""Long texts."""

from .exercises import EXERCISES, QUESTIONS, RECALL
from .mistakes import OWN
from .tiles import tiled

__all__ = ["EXERCISES", "OWN", "QUESTIONS", "RECALL", "tiled"]
