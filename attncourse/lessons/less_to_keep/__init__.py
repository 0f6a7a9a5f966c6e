"""Less to keep: a smaller cache."""

from .ways import best_keys, in_groups, latent_attention

__all__ = ["best_keys", "in_groups", "latent_attention"]
