"""A model of your own: letters, a yardstick, and who cheats."""

from .exercises import EXERCISES, bits, block, windows, write
from .mistakes import MISTAKES
from .payoffs import PAYOFFS

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "bits", "block", "windows", "write"]
