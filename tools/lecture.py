"""Turn a plan of TEACHING.md into one deck, _slides/lecture_NAME.html: one file that needs no network.

    python -m tools.lecture 45        or 90, half-day

Which cells make slides, plans.py says. Notes for the speaker (S) come from TEACHING, the picture tagged "board" from a
notebook.
"""

import argparse
import re
from pathlib import Path

import nbformat

from . import plans
from .build_notebooks import tagged
from .licence import LICENCE
from .page import markdown
from .series import ROOT, SERIES
from .slides import coloured, in_reveal, shown
from .teaching import WORDS

RIGHT = '<li class="fragment custom" data-fragment-index="1"><strong>{}</strong>'  # the right answer, on a click


def slide(head, words, picture="", notes="", question="", kind=""):
    """Return the HTML of a slide. Below a question, the picture comes with a click, and with another the sentence."""

    def block(name, inner, click):
        hidden = f' fragment" data-fragment-index="{click}' if question and click is not None else ""
        return f'<div class="{name}{hidden}">{inner}</div>' if inner else ""

    asked, shown, said = (
        block("question", question, None),
        block("picture", picture, 0),
        block("says", markdown(words), 1),
    )
    body = asked + shown + said if question else said + shown
    return (
        f'<section data-kind="{kind}"><header>{markdown(head)}</header><div class="body">{body}</div>'
        f'<aside class="notes">{notes}</aside></section>'
    )


def minutes(step, plan):
    """Return when a row of a plan begins and ends, and its headings."""
    return f"**Minutes {step.begins} to {step.begins + step.minutes} of {plan.minutes}:** {', '.join(step.headings)}"


class Chapter:
    """A notebook in a lecture: its sections, its pictures, and what TEACHING says of it."""

    def __init__(self, guide, number):
        (self.notebook,) = (notebook for notebook in SERIES if notebook.number == number)
        self.cells = nbformat.read(self.notebook.built, as_version=4).cells
        self.sections = plans.sections(self.cells)
        self.said = plans.said(guide, number)

    def notes(self, step, plan, heading):
        """Return the minutes of a row and what is said at a heading, "" for the opening."""
        said = [words for headings, words in self.said if heading in headings or not (heading or headings)]
        return markdown("\n\n".join([minutes(step, plan), *said]))

    def picture(self, cell):
        code = re.sub(r"\nprint\(.*\)$", "", cell.source, flags=re.MULTILINE)  # what it prints is shown
        code = coloured(code) if tagged(cell, "slide-code") else ""
        return code + "".join(shown(output, "") for output in cell.get("outputs", []))

    def opening(self, step, plan, before):
        """Return the slide that leads from the notebook before to this one: its question, and the picture below it."""
        notes = self.notes(step, plan, "")
        if before:
            notes += markdown(f"**Coming from {before.notebook.number}.** {plans.remember(before.cells)}")
        notes += "".join(self.picture(cell) for cell in self.cells if tagged(cell, "board"))
        shows = "".join(self.picture(cell) for cell in self.sections[""] if tagged(cell, "slide"))
        return slide(f"{self.notebook.number} · {self.notebook.title}", plans.opening(self.sections[""]), shows, notes)

    def slides(self, heading, step, plan):
        """Return the slides of a section. Each carries the notes of the section."""
        cells = plans.section(self.sections, heading, self.notebook.name)
        notes = self.notes(step, plan, heading)
        head = f"{self.notebook.number} · {heading}"
        if tagged(cells[0], "exercise"):
            return [self.exercise(heading, head, notes)]
        found = []
        for cell in plans.pictured(cells):
            question, right = plans.question_of(cell, cells)
            told = markdown(f"Vote first. Right is **{right}**.") if right else ""
            question = markdown(question).replace(f"<li><strong>{right}</strong>", RIGHT.format(right))
            says = plans.sentence(cell, cells, self.cells)
            picture = self.picture(cell)
            if question and "attnlib-still" in picture:  # a view needs the room
                found.append(slide(head, "", "", notes + told, question))
                question = told = ""
            found.append(slide(head, says, picture, notes + told, question))
        return found

    def exercise(self, heading, head, notes):
        """Return the slide of an exercise; its notes say what to reply to which mistake."""
        goal, _, task = self.sections[heading][0].source.partition("\n\n")
        number = re.search(r"\d+\.\d+", heading)[0]
        replies = "\n".join(f"- {shows}: {reply}" for shows, reply in WORDS["exercises"][number].values())
        return slide(head, plans.without_links(goal), markdown(task), notes + markdown(replies), kind="exercise")


def cover(plan):
    lead, _, rest = plan.lead.partition(". ")
    return slide("attnlib", f"# {plan.title}\n\n{lead.rstrip('.')}.\n\n{LICENCE}", notes=markdown(rest or lead))


def deck(name):
    """Return the page of a plan."""
    guide = plans.GUIDE.read_text("utf-8")
    plan = plans.read(guide, name)
    chapters = {step.number: Chapter(guide, step.number) for step in plan.steps if step.number}
    found, now = [cover(plan)], None
    *steps, last = plan.steps
    for step in steps:
        if not step.number:
            found.append(slide("attnlib", f"# {step.headings[0]}", notes=markdown(minutes(step, plan))))
            continue
        if chapters[step.number] is not now:
            before, now = now, chapters[step.number]
            found.append(now.opening(step, plan, before))
        for heading in step.headings:
            found += now.slides(heading, step, plan)
    told = markdown("\n".join(f"- {plans.remember(chapter.cells)}" for chapter in chapters.values()))
    found.append(slide(last.headings[0], "", told, markdown(minutes(last, plan))))
    return in_reveal("lecture", f"attnlib · {plan.title}", "\n".join(found))


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
