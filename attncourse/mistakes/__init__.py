"""Mistakes that several notebooks share; those of one notebook stand in its file, and follow these.

Order matters in one case: two mistakes that an exercise cannot tell apart go by the name of the first.
"""

from . import around, scores, weights

SHARED = (*scores.SHARED, *weights.SHARED, *around.SHARED)
