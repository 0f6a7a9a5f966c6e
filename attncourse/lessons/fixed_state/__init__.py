"""A state of fixed size: what is kept does not grow with the text."""

from .ways import state

__all__ = ["state"]
