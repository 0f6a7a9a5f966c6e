"""Rows of words as lines of text: how traces, diagnoses and what was watched show themselves."""

import itertools
from collections.abc import Sequence


def align(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of words as lines, in columns that begin at the left; rows may end early."""
    widths = [max(map(len, column)) for column in itertools.zip_longest(*rows, fillvalue="")]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
