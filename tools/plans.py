"""The plans of TEACHING.md as data: which headings of which notebooks, in how many minutes, and what to say there."""

import re
import sys
from itertools import accumulate
from typing import NamedTuple

from .series import ROOT

GUIDE = ROOT / "TEACHING.md"


class Step(NamedTuple):
    """A row of a plan; a break and the questions have no number."""

    begins: int
    minutes: int
    number: str
    headings: list


class Plan(NamedTuple):
    """What is said under the heading of a plan, and its rows."""

    title: str
    lead: str
    steps: list

    @property
    def minutes(self):
        return sum(step.minutes for step in self.steps)


def part(guide, title, marks):
    """Return the text under a heading of the guide, up to the next heading of its depth or above."""
    (text,) = re.findall(rf"^{marks} {title}.*\n((?:(?!#{{1,{len(marks)}}} ).*\n)*)", guide, re.MULTILINE)
    return text


def rows(text, columns):
    """Return the cells of each row of the tables with so many columns, without their heads."""
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    heads = [i - 1 for i, row in enumerate(split) if set(row[0]) == {"-"}]
    return [row for i, row in enumerate(split) if len(row) == columns and i not in heads and set(row[0]) != {"-"}]


def bold(text):
    """Return the headings that a text names."""
    return re.findall(r"\*\*(.+?)\*\*", " ".join(text.split()))


def names(guide):
    """Return {what PLAN= takes: heading of the plan}."""
    titles = re.findall(r"^### (.+)\n(?:(?!#).*\n)*?\| minutes \|", part(guide, "Plans", "##"), re.MULTILINE)
    return {title.lower().replace("-minute lecture", "").replace(" ", "-"): title for title in titles}


def read(guide, name):
    """Return the plan of a name such as "45"."""
    known = names(guide)
    if name not in known:
        sys.exit(f"TEACHING.md has no plan {name!r}. Fix: PLAN={' or PLAN='.join(known)}")
    text = part(guide, known[name], "###")
    found = rows(text, 3)[:-1]  # the last row is the total
    begins = accumulate((int(minutes) for minutes, _, _ in found), initial=0)
    steps = [
        Step(begin, int(minutes), number, bold(named) or [named.capitalize()])
        for begin, (minutes, number, named) in zip(begins, found, strict=False)
    ]
    return Plan(known[name], " ".join(text.split("\n\n|")[0].split()), steps)


def said(guide, number):
    """Return [(headings, words)] of what TEACHING says under *Say* of a notebook; no heading: at the opening."""
    (items,) = re.findall(r"^\*Say\.\*\n\n((?:.+\n)+)", part(guide, number, "##"), re.MULTILINE)
    return [(bold(item) if item.startswith("**") else [], " ".join(item.split())) for item in items[2:].split("\n- ")]
