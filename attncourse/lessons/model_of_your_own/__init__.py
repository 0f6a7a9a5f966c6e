"""A model of your own: letters, a yardstick, and who cheats."""

from .exercises import EXERCISES, bits, block, windows
from .mistakes import MISTAKES
from .payoffs import PAYOFFS
from .questions import QUESTIONS, RECALL

__all__ = ["EXERCISES", "MISTAKES", "PAYOFFS", "QUESTIONS", "RECALL", "bits", "block", "windows"]
