"""Long texts: attention in tiles."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .tiles import tiled

__all__ = ["EXERCISES", "MISTAKES", "tiled"]
