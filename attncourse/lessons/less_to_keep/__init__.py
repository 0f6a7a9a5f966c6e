"""Less to keep: a smaller cache."""

from .exercises import EXERCISES
from .mistakes import MISTAKES
from .questions import QUESTIONS, RECALL
from .ways import best_keys, in_groups, latent_attention

__all__ = ["EXERCISES", "MISTAKES", "QUESTIONS", "RECALL", "best_keys", "in_groups", "latent_attention"]
