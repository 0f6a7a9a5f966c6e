"""Mistakes that show only where something is learned: every number is right."""

from itertools import product

import numpy as np

from .mistake import Mistake


def _cut(matrices):
    """Leave some of W_Q, W_K, W_V, W_O without a gradient."""
    return {"gradient_cut": lambda s: np.array(matrices[: len(s.learning)])}


MISTAKES = (
    Mistake(
        "gradient_cut",
        "the gradient were cut: weights that make the output never hear of the loss",
        "Every number is right, and training leaves these weights where they started.",
        "Which line leaves torch for NumPy or plain numbers, or detaches?",
        tuple(_cut(matrices) for matrices in product((False, True), repeat=4) if any(matrices)),
    ),
)
