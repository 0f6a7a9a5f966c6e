"""Long texts: attention in tiles."""

from .tiles import tiled

__all__ = ["tiled"]
