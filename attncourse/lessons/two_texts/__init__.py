"""Two texts: attention from one to another."""

from .translators import translators

__all__ = ["translators"]
