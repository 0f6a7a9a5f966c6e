"""What changes its number with the order of the lessons: built notebooks, and numbers in pages written by hand.

The build calls it first. The old numbers are those of the built notebooks, so it follows a new order once. What may be
a number of a notebook in a page, such as a bare 15 in a sentence, it prints and leaves to you.
"""

import re

import nbformat

from .numbering import NUMBERS, ROOT, exercises
from .series import NOTEBOOKS

FOLDERS = ("*.md", "docs/*.md", "docs/book/*.md", "docs/*/README.md", "lite/*.md")
NOT_BY_HAND = {"CHANGELOG.md", "checks.md", "votes.md"}  # the first says what was
PAGES = [path for folder in FOLDERS for path in sorted(ROOT.glob(folder)) if path.name not in NOT_BY_HAND]
NAMES = "|".join(NUMBERS)
JOINED = r"(?:, and |, or |, | and | or | to )"
LIST = rf"\d\d(?:{JOINED}\d\d)*"
EXERCISES = rf"\d+\.\d+(?:{JOINED}\d+\.\d+)*"
# Where a number in a page is sure to be one of a notebook or an exercise; the group of a pattern holds one or more.
SURE = (
    rf"\b[Nn]otebooks? ({LIST})\b",
    rf"\b(\d\d)_(?:{NAMES})\b",
    r"^#+ (\d\d) · ",
    r"\[(\d\d)\b[^\]]*\]\([^)\s]*\d\d_\w+\.ipynb",  # the words of a link
    r"<!-- /?(?:replies|goals) (\d\d) -->",
    rf"^\| ({LIST}) \| (?=[a-zA-Z\[])",  # a row about a notebook
    r"^\| (\d\d) \| \d+ \| \d+ \| \d+ \|",  # TEACHING: a session; below, a row of a plan
    r"^\| \d+ \| (\d\d) \| \*\*",
    rf"\(({LIST})\)$",  # REFERENCES: where a source is used
    rf"(?<![\d.,:])(?<!e-)((?:\d\d{JOINED})*0\d(?:{JOINED}\d\d)*)(?![\d:%]|\.\d)",  # a list with one that begins with 0
    rf"\b[Ee]xercises? ({EXERCISES})(?!\d)",
    r"^\*(\d+\.\d+) \w",  # TEACHING: replies
    rf"^\| \d\d (?:\| \d+ ){{3}}\| ({EXERCISES}) \|",
)


def old_numbers():
    """Return {old number: new number} of the notebooks and exercises that had another one when they were built."""
    becomes = {}
    for path in NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"):
        name = path.stem[3:]
        if name in NUMBERS:
            text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
            heading = r"^### Exercise (\d+\.\d+) · (?:(?!^### )[\s\S])+?\bcheck\.(\w+)\("
            old = dict(re.findall(heading, text, re.MULTILINE))
            new = {exercise: number for exercise, (number, _) in exercises(name).items()}
            becomes |= {path.stem[:2]: NUMBERS[name]} | {was: new.get(name, was) for was, name in old.items()}
    return {old: new for old, new in becomes.items() if old != new}


def renumber(text, becomes):
    """Return a page with its new numbers, found in the old text, so that two may change places; and doubtful lines."""
    spans = {}
    for match in (match for pattern in SURE for match in re.finditer(pattern, text, re.MULTILINE)):
        for found in re.finditer(r"\d+\.\d+|\d\d", match[1]):
            spans[match.start(1) + found.start(), match.start(1) + found.end()] = becomes.get(found[0], found[0])
    sure = {i for span in spans for i in range(*span)}
    before = "in|of|and|from|to|with|see|by|then|Take"
    doubt = re.compile(rf"\b(?:{before}) ({'|'.join(map(re.escape, becomes))})(?![\w.]?\d|[\w%])")
    lines = {text.count("\n", 0, found.start()) for found in doubt.finditer(text) if found.start(1) not in sure}
    for (start, end), new in sorted(spans.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return text, [text.splitlines()[line] for line in sorted(lines)]


def has_followed(text, becomes):
    """Tell whether a page links to a notebook that has moved, under its new number: as when pages are merged first."""
    links = re.findall(rf"\b(\d\d)_({NAMES})\b", text)
    return any(NUMBERS[name] == number and number in becomes.values() for number, name in links)


def chapters_that_follow(text):
    """Return the chapters of which a page names exercises, each with the number that its title has now."""
    titles = {number: title for name in NUMBERS for number, title in exercises(name).values()}
    told = re.findall(r"[Ee]xercise (\d+\.\d+) · ([^*|\n]+)", text)
    told += re.findall(r"^\*(\d+\.\d+) (.+)\*$", text, re.MULTILINE)
    wrong = {number.partition(".")[0] for number, title in told if titles.get(number) != title}
    return {number.partition(".")[0] for number, _ in told} - wrong


def follow_the_order():
    """Give pages and built notebooks the numbers that the order has now."""
    becomes = old_numbers()
    for path in PAGES if becomes else ():
        old = path.read_text("utf-8")
        if has_followed(old, becomes):
            continue
        done = chapters_that_follow(old)  # the page was written before the notebooks were built
        text, doubtful = renumber(old, {was: new for was, new in becomes.items() if was.partition(".")[0] not in done})
        if text != old:
            path.write_text(text, encoding="utf-8", newline="\n")
        for line in doubtful:
            print(f"look at {path.relative_to(ROOT)}: {line[:150]}")
    for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        name = path.stem[3:]
        new = NOTEBOOKS / f"{NUMBERS.get(name, path.stem[:2])}_{name}.ipynb"
        if not new.exists():  # without a source it keeps its number: `new` is the file itself
            path.rename(new)
