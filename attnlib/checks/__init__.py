"""Exercises that say which mistake was made.

>>> import numpy as np
>>> check.softmax(lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)).mistake
'unstable_softmax'

``import attnlib.checks`` needs NumPy only; the exercises about torch modules import torch when used.
"""

from .exercises import EXERCISES, check
from .mistakes import MISTAKES, Mistake
from .predictions import PREDICTIONS, predict
from .verdict import Verdict

__all__ = ["EXERCISES", "MISTAKES", "PREDICTIONS", "Mistake", "Verdict", "check", "predict"]
