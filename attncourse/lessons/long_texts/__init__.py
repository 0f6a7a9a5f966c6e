"""Long texts: attention in tiles."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL
from .tiles import tiled

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL", "tiled"]
