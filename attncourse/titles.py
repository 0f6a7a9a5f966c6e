"""The titles of exercises, and their numbers, which follow from their order in the notebooks.

`python -m tools.stub` stores them, since the course may be installed without its notebooks.
"""

import json
import re
from importlib import resources

from .lessons import ORDER

TITLES = json.loads(resources.files("attncourse.data").joinpath("titles.json").read_text("utf-8"))


def heading(name):
    """Return number and title of an exercise as its notebook has them; "" where it has none."""
    for lesson, titles in TITLES.items():
        if name in titles:
            return f"{ORDER.index(lesson)}.{list(titles).index(name) + 1} · {titles[name]}"
    return ""


def with_numbers(text):
    """Return a text with the numbers of what it names, [[masks]] or [[causal_mask]], as sources of notebooks do."""

    def number(name):
        return f"{ORDER.index(name):02d}" if name in ORDER else heading(name).partition(" ")[0]

    return re.sub(r"\[\[(\w+)\]\]", lambda found: number(found[1]), text)
