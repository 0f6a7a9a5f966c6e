"""Multi-head: several heads side by side."""

from .exercises import multi_head

__all__ = ["multi_head"]
