"""Today's head: positions by rotation, normed queries and keys."""

from .mistakes import slow_by_parts

__all__ = ["slow_by_parts"]
