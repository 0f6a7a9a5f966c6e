"""Exercises that say which mistake was made, and `diagnose` for anybody's attention module.

>>> import numpy as np
>>> check.softmax(lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)).mistake
'unstable_softmax'

``import attnlib.checks`` needs NumPy only; `diagnose` and the exercises about torch modules import torch when used.
"""

from .exercises import EXERCISES, check
from .mistakes import MISTAKES, Mistake
from .predictions import PREDICTIONS, predict
from .verdict import Verdict

__all__ = ["EXERCISES", "MISTAKES", "PREDICTIONS", "Mistake", "Verdict", "check", "diagnose", "predict"]


def __getattr__(name):
    if name == "diagnose":
        from .diagnosis import diagnose

        return diagnose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
