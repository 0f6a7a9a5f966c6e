"""What a lecture is made of: the plans of TEACHING.md, what to say, and which cells of a notebook make slides.

A slide is a sentence and its picture. In the source of a notebook, the cell whose output is the picture is tagged
"slide", and "slide-code" where the code is the point. The sentence is the first one below the picture; where another
says it better, the cell quotes its first words: # %% tags=["slide"] says="Read a row". Several are a list. A heading
without a tag shows its first picture.
"""

import re
import sys
from difflib import get_close_matches
from itertools import accumulate
from typing import NamedTuple

import nbformat

from attncourse import PREDICTIONS

from .series import ROOT, has_tag

GUIDE = ROOT / "TEACHING.md"
LINK = re.compile(r" \((?:\[[^]]*\]\([^)]*\)(?:, )?)+\)|\[([^]]*)\]\([^)]*\)")
END = re.compile(r"(?:(?<=[.?!])|(?<=[.?!][*)”])|(?<=[.?!]\*\*))\s+(?=[A-Z*`$“])")


class Step(NamedTuple):
    """A row of a plan; a break and the questions have no number."""

    begins: int
    minutes: int
    number: str
    headings: list


class Plan(NamedTuple):
    """What is said under the heading of a plan, its rows, and its homework."""

    title: str
    lead: str
    steps: list
    homework: str

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


def plan_of(guide, name):
    """Return the plan of a name such as "45"."""
    known = names(guide)
    if name not in known:
        sys.exit(f"TEACHING.md has no plan {name!r}. Fix: one of {', '.join(known)}")
    text = part(guide, known[name], "###")
    found = rows(text, 3)[:-1]  # the last row is the total
    begins = accumulate((int(minutes) for minutes, _, _ in found), initial=0)
    steps = [
        Step(begin, int(minutes), number, bold(named) or [named[0].upper() + named[1:]])
        for begin, (minutes, number, named) in zip(begins, found, strict=False)
    ]
    at = 1 + list(known).index(name)
    homework = [row[at] for row in rows(guide, 4) if row[0].startswith("homework") and row[at]]
    home = "; where no lab follows, also ".join(map(without_links, homework))
    return Plan(known[name], " ".join(text.split("\n\n|")[0].split()), steps, home)


def words_to_say(guide, number):
    """Return [(headings, words)] of what TEACHING says under *Say* of a notebook; no heading: at the opening."""
    (items,) = re.findall(r"^\*Say\.\*\n\n((?:.+\n)+)", part(guide, number, "##"), re.MULTILINE)
    return [(bold(item) if item.startswith("**") else [], " ".join(item.split())) for item in items[2:].split("\n- ")]


def sections(cells):
    """Return {heading: cells} of a notebook. A text that holds a heading is cut there; what follows the solution of an
    exercise belongs to the section around it; the title is the heading ""."""
    found = {"": []}
    outer = inner = ""
    for cell in cells:
        pieces = [cell.source]
        if cell.cell_type == "markdown" and not cell.source.startswith("<details>"):
            pieces = re.split(r"^#{2,4} (.+)$", cell.source, flags=re.MULTILINE)
        for i, piece in enumerate(pieces):
            if i % 2:
                inner = piece
                outer = outer if has_tag(cell, "exercise") else piece
                found[inner] = []
            elif piece.strip() or cell.cell_type == "code":
                found[inner].append(nbformat.from_dict({**cell, "source": piece.strip()}))
        if has_tag(cell, "solution"):
            inner = outer
    return found


def without_links(text):
    """Return a text as it is read aloud: a link is its words, one in parentheses is left out."""
    return LINK.sub(r"\1", text)


def sentences(cells):
    """Return the sentences of the texts among some cells. One that ends in a colon keeps the formula behind it."""
    found = []
    for cell in cells:
        if cell.cell_type == "code" or cell.source.startswith("<details>"):
            continue
        text = re.sub(r"^(#+ .+|\*\*(Question|Try|Remember)\.\*\*)\s+", "", cell.source, flags=re.MULTILINE)
        text = re.sub(r"\*\*Predict\.\*\*.*", "", text, flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d\. )", without_links(text)):
            if paragraph.startswith("$$"):
                if found and found[-1].endswith(":"):
                    found[-1] += f"\n\n{paragraph}"
            elif paragraph.strip() and not paragraph.startswith(("|", "<", "```")):
                found += END.split(" ".join(re.sub(r"^(- |\d\. )", "", paragraph.strip()).split()))
    return found


def sentence(cell, cells, notebook):
    """Return what a slide says: what its cell quotes, else the first sentence below it, else the last one above."""
    if says := cell.metadata.get("says"):
        return " ".join(
            find_sentence(start, cell, cells, notebook) for start in ([says] if isinstance(says, str) else says)
        )
    i = cells.index(cell)
    return next(iter([*sentences(cells[i:]), *reversed(sentences(cells[:i]))]), "")


def find_sentence(start, cell, cells, notebook):
    """Return the sentence that starts with some words: one of the section of a cell, else one of the notebook."""
    for said in (*sentences(cells), *sentences(notebook)):
        if re.sub(r"[*`]", "", said).startswith(start):
            return said + "\n\n" * said.endswith("$$")
    sys.exit(f"no sentence starts with {start!r}. Fix: quote its first words in says= above:\n{cell.source}")


def slide_cells(cells):
    """Return the cells that make a slide: those that are tagged, else the first with a picture, else with an output."""
    if marked := [cell for cell in cells if has_tag(cell, "slide", "slide-code")]:
        return marked
    code = [cell for cell in cells if cell.cell_type == "code"]
    images = [cell for cell in code if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    return (images or [cell for cell in code if cell.outputs])[:1]


def question_of(cell, cells):
    """Return (the text of the question that a cell answers, its Question), "" and None where there is none.

    A question belongs to the first slide below it.
    """
    i = cells.index(cell)
    asks = [k for k, other in enumerate(cells) if "**Predict.**" in other.source]
    at = max((k for k in asks if k < i), default=i)
    if at == i or any(other in slide_cells(cells) for other in cells[at:i]):
        return "", None
    after = min((k for k in asks if k > i), default=len(cells))
    asked = re.search(r"^predict\.(\w+)\(", "\n".join(c.source for c in cells[at:after]), re.MULTILINE)
    text = re.search(r"(?:.+\n)*.*\*\*Predict\.\*\*(?:.|\n)+", cells[at].source)[0]
    text = re.sub(r"\*\*Predict\.\*\*\s+", "", text)
    return without_links(text), PREDICTIONS[asked[1]] if asked else None


def section(found, heading, name):
    """Return the cells under a heading among the sections of a notebook."""
    if heading not in found:
        near = get_close_matches(heading, found, 1, 0)[0]
        sys.exit(f"{name} has no heading {heading!r}, which TEACHING.md names. Fix: is it {near!r}?")
    return found[heading]


def remember(cells):
    """Return the first sentence of what a reader is to remember."""
    (cell,) = (cell for cell in cells if has_tag(cell, "remember"))
    return sentences([nbformat.from_dict({**cell, "source": cell.source.partition("**Remember.**")[2]})])[0]


def opening(cells):
    """Return the question of a notebook, else the first sentence below its title."""
    title = next(cell.source for cell in cells if cell.source.startswith("# "))
    asked = re.search(r"\*\*Question\.\*\*((?:.|\n(?!\n))+\?)", title)
    return without_links(asked[1].strip()) if asked else sentences(cells)[0]
