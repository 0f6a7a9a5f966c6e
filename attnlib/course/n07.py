"""Notebook 07, the bug clinic: its questions. Its cases stand in clinic.py."""

from .prediction import Question

QUESTIONS = (
    Question(
        "poison",
        "b",
        "The projections are never applied, so nothing in the output depends on them.",
        {
            "a": "NaN spreads to everything that is computed from it. Nothing is computed from W_Q here.",
            "c": "That would take one projection that is used. None is.",
        },
        "a",
    ),
    Question(
        "forbidden",
        "c",
        "All scores of the row become the same -1e20, and the softmax of equal scores is uniform.",
        {
            "a": "e to the power -1e20 is 0, but softmax compares within the row, and nothing larger is in it.",
            "b": "0 / 0 gives NaN, and -inf leads there. -1e20 minus the row maximum is 0, and e to the 0 is 1.",
        },
        "a",
    ),
)
