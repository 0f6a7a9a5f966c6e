"""A model of your own: letters, a yardstick, and who cheats."""

from .exercises import bits, block, windows, write

__all__ = ["bits", "block", "windows", "write"]
