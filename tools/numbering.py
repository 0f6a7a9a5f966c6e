"""The numbers of notebooks and exercises, from their names: the order of attncourse/lessons has them, no text.

A source says ``[[masks]]`` where a reader is to read 05, ``[[masks.ipynb]]`` for the file of a link, and
``[[causal_mask]]`` for 5.2: an exercise counts on within its notebook, by its heading. The build renders them.
"""

import functools
import re
import runpy
from difflib import get_close_matches
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "notebooks" / "src"
# By its path, since tools.links runs where no NumPy is, which `import attncourse` needs.
ORDER = runpy.run_path(str(ROOT / "attncourse" / "lessons" / "__init__.py"))["ORDER"]
NAME = re.compile(r"\[\[([A-Za-z]\w*(?:\.ipynb)?)\]\]")
NUMBERS = {name: f"{number:02d}" for number, name in enumerate(ORDER)}


@functools.cache
def numbers():
    """Return {name: number as readers see it} of all notebooks, their files and their exercises."""
    files = {f"{name}.ipynb": f"{number}_{name}.ipynb" for name, number in NUMBERS.items()}
    return NUMBERS | files | {one: number for name in ORDER for one, (number, _) in exercises(name).items()}


def exercises(name):
    """Return {name: (number, title)} of the exercises of a notebook, in the order of their headings."""
    source = (SOURCES / f"{name}.py").read_text("utf-8")
    headings = re.findall(r"^# ### Exercise \[\[(\w+)\]\] · (.+)$", source, re.MULTILINE)
    return {exercise: (f"{int(NUMBERS[name])}.{place}", title) for place, (exercise, title) in enumerate(headings, 1)}


def render(text):
    """Return the text of a source with the number of each name in double brackets.

    What stands in front of the first # or " of a line is code, where ``[[word]]`` is a list of lists.
    """
    return re.sub(r"(?<=[#\"]).*", lambda words: NAME.sub(lambda name: number(name[1]), words[0]), text)


def number(name):
    """Return the number of a notebook or an exercise, or the file of a notebook; an unknown name raises."""
    if name in numbers():
        return numbers()[name]
    near = get_close_matches(name, numbers(), 1, 0)[0]
    raise ValueError(f"[[{name}]] must name a notebook or an exercise, and none is called so. Fix: is it [[{near}]]?")
