"""What the notebooks ask: exercises whose check says which mistake was made, and questions to answer before a result.

>>> import numpy as np
>>> check.softmax(lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)).mistake
'unstable_softmax'

``import attncourse`` needs NumPy only; the exercises about torch modules import torch when used. What only some
notebooks need is imported by its name: `clinic`, `training`, `real_model`.
"""

from . import mine
from .catalogue import EXERCISES, MISTAKES, PREDICTIONS, RECALLS, check, predict
from .engine.verdict import Verdict
from .mistakes.mistake import Mistake

__all__ = ["EXERCISES", "MISTAKES", "PREDICTIONS", "RECALLS", "Mistake", "Verdict", "check", "mine", "predict"]
