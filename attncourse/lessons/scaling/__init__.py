"""Scaling: the size of a score."""
