"""Turn a plan of TEACHING.md into one deck, _slides/lecture_NAME.html: one file that needs no network.

    python -m tools.lecture 45        or 90, half-day

Which cells make slides, plans.py says. Notes for the speaker (S) come from TEACHING, the picture tagged "board" from a
notebook.
"""

import argparse
import re
from pathlib import Path
from typing import NamedTuple

import nbformat

from . import plans
from .build_notebooks import tagged
from .licence import LICENCE
from .links import address
from .page import markdown
from .report.notebooks import key
from .series import REPLIES, ROOT, SERIES
from .slides import coloured, in_reveal, shown

ALIVE = "attnlib-still"  # the class of a live view, which needs the room of a question
FIGURE = "attnlib-figure"  # that of a picture of matplotlib
RIGHT = '<li class="fragment custom" data-fragment-index="1"><strong>{}</strong>'  # the right answer, on a click


class Slide(NamedTuple):
    """A sentence and its picture. Below a question, the picture comes with a click, and with another the sentence."""

    head: str
    words: str
    picture: str = ""
    notes: str = ""
    question: str = ""
    kind: str = ""
    minutes: str = ""

    @property
    def html(self):
        def block(name, inner, click):
            hidden = f' fragment" data-fragment-index="{click}' if self.question and click is not None else ""
            return f'<div class="{name}{hidden}">{inner}</div>' if inner else ""

        asked = block("question", self.question, None)
        shown, said = block("picture", self.picture, 0), block("says", markdown(self.words), 1)
        body = asked + shown + said if self.question else said + shown
        return (
            f'<section data-kind="{self.kind}"><header>{markdown(self.head)}</header><div class="body">{body}</div>'
            f'<aside class="notes">{markdown(self.minutes)}{self.notes}</aside></section>'
        )


def joined(opening, first, *rest):
    """Return the slides of a notebook. A question without a picture stands above what the first one prints."""
    if opening.picture or first.question or first.kind or FIGURE in first.picture:
        return [opening, first, *rest]
    return [first._replace(question=opening.question, notes=opening.notes + first.notes), *rest]


def minutes(step, plan):
    """Return when a row of a plan begins and ends, and its headings."""
    return f"**Minutes {step.begins} to {step.begins + step.minutes} of {plan.minutes}:** {', '.join(step.headings)}"


def vote(question):
    """Return what a speaker needs at a question with options: the right letter, and what to reply to each other one."""
    wrong = [f"- *{letter}*: {why}" for letter, why in question.why.items() if letter != question.right]
    return markdown("\n".join([f"Vote first. Right is **{question.right}**. What to reply to the others:\n", *wrong]))


class Chapter:
    """A notebook in a lecture: its sections, its pictures, and what TEACHING says of it."""

    def __init__(self, guide, number):
        (self.notebook,) = (notebook for notebook in SERIES if notebook.number == number)
        self.cells = nbformat.read(self.notebook.built, as_version=4).cells
        self.sections = plans.sections(self.cells)
        self.said = plans.said(guide, number)

    def notes(self, heading):
        """Return what is said at a heading, "" for the opening."""
        said = [words for headings, words in self.said if heading in headings or not (heading or headings)]
        return markdown("\n\n".join(said))

    def picture(self, cell):
        code = re.sub(r"\nprint\(.*\)$", "", cell.source, flags=re.MULTILINE)  # what it prints is shown
        code = coloured(code) if tagged(cell, "slide-code") else ""
        return code + "".join(shown(output, "") for output in cell.get("outputs", []))

    def opening(self, before):
        """Return the slide that leads from the notebook before to this one: its question, then its picture."""
        notes = self.notes("")
        if before:
            notes = markdown(f"**Coming from {before.notebook.number}.** {plans.remember(before.cells)}") + notes
        board = "".join(self.picture(cell) for cell in self.cells if tagged(cell, "board"))
        notes += markdown("**For the board:**") + board if board else ""
        shows = "".join(self.picture(cell) for cell in self.sections[""] if tagged(cell, "slide"))
        head, asks = f"{self.notebook.number} · {self.notebook.title}", plans.opening(self.sections[""])
        return Slide(head, "", shows, notes, markdown(asks))

    def slides(self, heading):
        """Return the slides of a section. Each carries the notes of the section."""
        cells = plans.section(self.sections, heading, self.notebook.name)
        notes = self.notes(heading)
        head = f"{self.notebook.number} · {heading}"
        if tagged(cells[0], "exercise"):
            return [self.exercise(heading, head, notes)]
        found = []
        for cell in plans.pictured(cells):
            question, asked = plans.question_of(cell, cells)
            told, question = vote(asked) if asked else "", markdown(question)
            if asked:
                question = question.replace(f"<li><strong>{asked.right}</strong>", RIGHT.format(asked.right))
            says = plans.sentence(cell, cells, self.cells)
            picture = self.picture(cell)
            if question and ALIVE in picture:
                found.append(Slide(head, "", "", told + notes, question))
                question = told = ""
            found.append(Slide(head, says, picture, told + notes, question))
        return found

    def exercise(self, heading, head, notes):
        """Return the slide of an exercise; its notes say what to reply to which mistake."""
        goal, _, task = self.sections[heading][0].source.partition("\n\n")
        name = key(self.sections[heading][2].source)
        replies = "\n".join(f"- {shows}: {reply}" for shows, reply in REPLIES["exercises"][name].values())
        return Slide(head, plans.without_links(goal), markdown(task), notes + markdown(replies), kind="exercise")


def cover(plan):
    lead, _, rest = plan.lead.partition(". ")
    words, notes = f"# {lead.rstrip('.')}\n\n{LICENCE}", markdown(rest or lead)
    return Slide(f"attnlib · {plan.title}", words, notes=notes, minutes=minutes(plan.steps[0], plan))


def told(chapters, plan):
    """Return the last slide: what a reader of each notebook is to remember, and where to go from here."""
    remember = "\n".join(f"- {plans.remember(chapter.cells)}" for chapter in chapters)
    last, notes = plan.steps[-1], "" if address() else markdown("Write on the board where the notebooks are.")
    words = markdown(f"{remember}\n\n{at_home(chapters)}")
    return Slide(last.headings[0], "", words, notes, minutes=minutes(last, plan))


def at_home(chapters):
    """Return what a listener can do next, and where."""
    numbers, where = ", ".join(chapter.notebook.number for chapter in chapters), address()
    page = f" {where.words(SERIES[0].name)['page']}," if where else ""
    (speaks,) = (notebook for notebook in SERIES if notebook.number == "13")
    return (
        f"**At home:**{page} notebooks {numbers} with their exercises. A check names your mistake. The way on leads to "
        f"{speaks.number} · {speaks.title}, where a language model speaks through your own code."
    )


def deck(name):
    """Return the page of a plan."""
    guide = plans.GUIDE.read_text("utf-8")
    plan = plans.read(guide, name)
    chapters = {step.number: Chapter(guide, step.number) for step in plan.steps if step.number}
    found, now = [cover(plan)], None
    for step in plan.steps[:-1]:
        slides = [Slide("attnlib", f"# {step.headings[0]}")]
        if step.number:
            before, now = now, chapters[step.number]
            slides = [slide for heading in step.headings for slide in now.slides(heading)]
            slides = slides if now is before else joined(now.opening(before), *slides)
        found += [slide._replace(minutes=minutes(step, plan)) for slide in slides]
    found.append(told(chapters.values(), plan))
    return in_reveal("lecture", f"attnlib · {plan.title}", "\n".join(slide.html for slide in found))


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
