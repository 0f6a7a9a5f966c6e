"""Turn a plan of TEACHING.md into one deck, _slides/lecture_NAME.html: one file that needs no network.

    python -m tools.lecture 45        or 90, half-day

A slide is a sentence and its picture. In the source of a notebook, the cell whose output is the picture is tagged "slide",
and "slide-code" where the code is the point; the picture tagged "board" goes to the notes. The sentence is the first one
below the picture. Where another one says it better, the cell quotes its first words: # %% tags=["slide"] says="Read a row".
A heading without a tag shows its first picture. What a plan, a question and TEACHING say is read there.
"""

import argparse
import html
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from string import Template

import nbformat
from pygments import highlight
from pygments.lexers import PythonLexer

from attnlib.course import PREDICTIONS

from . import plans
from .licence import LICENCE
from .page import SCRIPT, STYLE, markdown
from .series import ROOT, SERIES
from .slides import CODE, revealjs, shown
from .teaching import WORDS

LINK = re.compile(r" \((?:\[[^]]*\]\([^)]*\)(?:, )?)+\)|\[([^]]*)\]\([^)]*\)")
END = re.compile(r"(?:(?<=[.?!])|(?<=[.?!][*)”])|(?<=[.?!]\*\*))\s+(?=[A-Z*`$“])")


def tagged(cell, tag):
    return tag in cell.metadata.get("tags", [])


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
                outer = outer if tagged(cell, "exercise") else piece
                found[inner] = []
            elif piece.strip() or cell.cell_type == "code":
                found[inner].append(nbformat.from_dict({**cell, "source": piece.strip()}))
        if tagged(cell, "solution"):
            inner = outer
    return found


def sentences(cells):
    """Return the sentences of the texts among some cells. One that ends in a colon keeps the formula behind it."""
    found = []
    for cell in cells:
        if cell.cell_type == "code" or cell.source.startswith("<details>"):
            continue
        text = re.sub(r"^(# .+|\*\*(Question|Try|Remember)\.\*\*)\s+", "", cell.source, flags=re.MULTILINE)
        text = re.sub(r"\*\*Predict\.\*\*.*", "", text, flags=re.DOTALL)
        for paragraph in re.split(r"\n\s*\n|\n(?=- |\d\. )", LINK.sub(r"\1", text)):
            if paragraph.startswith("$$"):
                if found and found[-1].endswith(":"):
                    found[-1] += f"\n\n{paragraph}"
            elif paragraph.strip() and not paragraph.startswith(("|", "<", "```")):
                found += END.split(" ".join(re.sub(r"^(- |\d\. )", "", paragraph.strip()).split()))
    return found


def sentence(cell, cells, notebook):
    """Return what a slide says: the sentence that its cell quotes, else the first one below it, else the last above."""
    if quoted := cell.metadata.get("says"):
        for said in (*sentences(cells), *sentences(notebook)):
            if re.sub(r"[*`]", "", said).startswith(quoted):
                return said
        sys.exit(f"no sentence starts with {quoted!r}. Fix: quote its first words in says= above:\n{cell.source}")
    i = cells.index(cell)
    return next(iter([*sentences(cells[i:]), *reversed(sentences(cells[:i]))]), "")


def pictured(cells):
    """Return the cells that make a slide: those that are tagged, else the first with a picture, else with an output."""
    if marked := [cell for cell in cells if tagged(cell, "slide") or tagged(cell, "slide-code")]:
        return marked
    code = [cell for cell in cells if cell.cell_type == "code"]
    images = [cell for cell in code if any("image/png" in output.get("data", {}) for output in cell.outputs)]
    return (images or [cell for cell in code if any(shown(output, "") for output in cell.outputs)])[:1]


def question_of(cell, cells):
    """Return (HTML of the question that a cell answers, its right letter), both empty where it answers none.

    A question belongs to the first slide below it.
    """
    i = cells.index(cell)
    asks = [k for k, other in enumerate(cells) if "**Predict.**" in other.source]
    at = max((k for k in asks if k < i), default=i)
    if at == i or any(other in pictured(cells) for other in cells[at:i]):
        return "", ""
    after = min((k for k in asks if k > i), default=len(cells))
    asked = re.search(r"^predict\.(\w+)\(", "\n".join(c.source for c in cells[at:after]), re.MULTILINE)
    right = PREDICTIONS[asked[1]].right if asked else ""
    text = re.search(r"(?:.+\n)*.*\*\*Predict\.\*\*(?:.|\n)+", cells[at].source)[0].replace("**Predict.** ", "")
    marked = f'<li class="fragment custom" data-fragment-index="1"><strong>{right}</strong>'
    return markdown(LINK.sub(r"\1", text)).replace(f"<li><strong>{right}</strong>", marked), right


def slide(head, words, picture="", notes="", question="", kind=""):
    """Return the HTML of a slide. Below a question, the picture comes with a click, and with another the sentence."""

    def block(name, inner, click):
        hidden = f' fragment" data-fragment-index="{click}' if question and click is not None else ""
        return f'<div class="{name}{hidden}">{inner}</div>' if inner else ""

    asked, shown, said = block("question", question, None), block("picture", picture, 0), block("says", markdown(words), 1)
    body = asked + shown + said if question else said + shown
    return (
        f'<section data-kind="{kind}"><header>{markdown(head)}</header><div class="body">{body}</div>'
        f'<aside class="notes">{notes}</aside></section>'
    )


class Chapter:
    """A notebook in a lecture: its sections, its pictures, and what TEACHING says of it."""

    def __init__(self, guide, number):
        (self.notebook,) = (notebook for notebook in SERIES if notebook.number == number)
        self.cells = nbformat.read(self.notebook.built, as_version=4).cells
        self.sections = sections(self.cells)
        self.said = plans.said(guide, number)

    def notes(self, step, plan, heading):
        """Return the minutes of a row and what is said at a heading, "" for the opening."""
        when = f"**Minutes {step.begins} to {step.begins + step.minutes} of {plan.minutes}:** {', '.join(step.headings)}"
        said = [words for headings, words in self.said if heading in headings or not (heading or headings)]
        return markdown("\n\n".join([when, *said]))

    def picture(self, cell):
        code = highlight(cell.source, PythonLexer(), CODE) if tagged(cell, "slide-code") else ""
        return code + "".join(shown(output, "") for output in cell.get("outputs", []))

    def opening(self, step, plan, before):
        """Return the slide that leads from the notebook before to this one: its question, and the picture below it."""
        cells = self.sections[""]
        notes = self.notes(step, plan, "")
        if before:
            notes += markdown(f"**Coming from {before.notebook.number}.** {before.remember()}")
        notes += "".join(self.picture(cell) for cell in self.cells if tagged(cell, "board"))
        shows = [cell for cell in cells if tagged(cell, "slide")]
        asks = next(cell.source for cell in cells if cell.source.startswith("# "))
        asks = re.search(r"\*\*Question\.\*\*((?:.|\n(?!\n))+\?)", asks)
        words = asks[1] if asks else sentences(cells)[0]
        return slide(f"{self.notebook.number} · {self.notebook.title}", words, *map(self.picture, shows), notes=notes)

    def remember(self):
        """Return the first sentence of what a reader is to remember."""
        return next(iter(sentences([cell for cell in self.cells if tagged(cell, "remember")])), "")

    def slides(self, heading, step, plan):
        """Return the slides of a section; the first carries its notes."""
        if heading not in self.sections:
            near = get_close_matches(heading, self.sections, 1, 0) or [""]
            sys.exit(f"{self.notebook.name} has no heading {heading!r}, which TEACHING.md names. Fix: is it {near[0]!r}?")
        cells, notes = self.sections[heading], self.notes(step, plan, heading)
        if tagged(cells[0], "exercise"):
            return [self.exercise(heading, notes)]
        found = []
        for cell in pictured(cells):
            question, right = question_of(cell, cells)
            told = markdown(f"Vote first. Right is **{right}**.") if right else ""
            says = sentence(cell, cells, self.cells)
            found.append(slide(heading, says, self.picture(cell), notes + told, question))
        return found

    def exercise(self, heading, notes):
        """Return the slide of an exercise; its notes say what to reply to which mistake."""
        goal, _, task = self.sections[heading][0].source.partition("\n\n")
        number = re.search(r"\d+\.\d+", heading)[0]
        replies = "\n".join(f"- {shows}: {reply}" for shows, reply in WORDS["exercises"][number].values())
        return slide(heading, LINK.sub(r"\1", goal), markdown(task), notes + markdown(replies), kind="exercise")


def cover(plan):
    lead, _, rest = plan.lead.partition(". ")
    return slide("attnlib", f"# {plan.title}\n\n{lead.rstrip('.')}.\n\n{LICENCE}", notes=markdown(rest or lead), kind="cover")


def deck(name):
    """Return the page of a plan."""
    guide = plans.GUIDE.read_text("utf-8")
    plan = plans.read(guide, name)
    chapters = {step.number: Chapter(guide, step.number) for step in plan.steps if step.number}
    found, now = [cover(plan)], None
    for step in plan.steps:
        if not step.number:
            told = [f"- {chapter.remember()}" for chapter in chapters.values()] if step is plan.steps[-1] else []
            notes = markdown(f"**Minutes {step.begins} to {step.begins + step.minutes} of {plan.minutes}**")
            found.append(slide(step.headings[0], "", markdown("\n".join(told)), notes))
            continue
        if chapters[step.number] is not now:
            before, now = now, chapters[step.number]
            found.append(now.opening(step, plan, before))
        for heading in step.headings:
            found += now.slides(heading, step, plan)
    dist, plugin = revealjs() / "dist", revealjs() / "plugin" / "notes"
    return Template((ROOT / "tools" / "lecture.html").read_text("utf-8")).substitute(
        title=html.escape(f"attnlib · {plan.title}"),
        reveal_css=(dist / "reveal.css").read_text("utf-8"),
        reveal_js=(dist / "reveal.js").read_text("utf-8"),
        notes_js=(plugin / "notes.js").read_text("utf-8"),
        lecture_js=(ROOT / "tools" / "lecture.js").read_text("utf-8"),
        view_css=STYLE,
        view_js=SCRIPT,
        code_css=CODE.get_style_defs(".code"),
        slides="\n".join(found),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="a plan of TEACHING.md: 45, 90 or half-day")
    parser.add_argument("--to", type=Path, default=ROOT / "_slides", help="folder to write to")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    target = arguments.to / f"lecture_{arguments.plan}.html"
    target.write_text(deck(arguments.plan), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
