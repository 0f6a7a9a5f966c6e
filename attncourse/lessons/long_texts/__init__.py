"""Long texts: attention in tiles, and by blocks of keys."""

from .tiles import blocks, tiled

__all__ = ["blocks", "tiled"]
