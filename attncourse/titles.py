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
    """Return a text with the number of each exercise that it names, [[causal_mask]], as sources of notebooks do."""
    return re.sub(r"\[\[(\w+)\]\]", lambda name: heading(name[1]).partition(" ")[0], text)
