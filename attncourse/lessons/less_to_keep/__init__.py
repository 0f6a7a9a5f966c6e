"""Less to keep: a smaller cache."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .ways import best_keys, in_groups, latent_attention

__all__ = ["EXERCISES", "MISTAKES", "best_keys", "in_groups", "latent_attention"]
