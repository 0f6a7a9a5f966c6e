"""Bug clinic: modules with one bug each."""

from .questions import QUESTIONS, RECALL

__all__ = ["IN_CLINIC", "QUESTIONS", "RECALL"]

IN_CLINIC = ("name_bug_1", "name_bug_2", "name_bug_3", "try_probe", "mended")  # exercises judged by clinic/patients.py
