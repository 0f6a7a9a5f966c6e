"""A Report as text, as a page and as CSV. Names of files, which may be names of people, appear only where asked for."""

import csv
import html
import io

from attnlib import svg
from attnlib.colours import LINE, palette, text_on
from attnlib.course import MISTAKES, PREDICTIONS
from attnlib.course.engine.verdict import as_html

from ..series import REPLIES
from . import STATES

WIDE, HIGH = 300, 22  # pixels of a bar
# Right is the lightest, so that a dark row is one to talk about; what says nothing of anybody has no colour.
COLOURS = {"right": palette()[200][0], "wrong": palette()[70][0], "could not tell": "#ffffff", "not tried": "#ffffff"}
STYLE = """
body { font-family: system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; line-height: 1.4 }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
th, td { text-align: left; vertical-align: top; padding: .2rem .5rem; border-bottom: 1px solid #ccc }
td.number { text-align: right }
"""


def reply(exercise, mistake):
    """Return what to reply to a mistake in an exercise: the lecturer's words for both, else the hint of the check."""
    for ids, (_, words) in REPLIES["exercises"].get(exercise, {}).items():
        if mistake in ids.split(", "):
            return words
    return MISTAKES[mistake].hints[0] if mistake in MISTAKES else ""


def rows_of(report, task):
    """Return [(how many answers, mistake or "no name", what to reply), ...] of an exercise."""
    return [(n, id or "no name", reply(task.key, id)) for id, n in report.mistakes(task.number)]


def who(submission, names):
    """Return what a submission is called: its number, with its path only where names are wanted."""
    return f"{submission.which} {submission.shown}" if names else f"{submission.which}"


def _handed_in(report, notebook):
    n = len(report.handed_in(notebook))
    return f"{n} notebook{'s' * (n != 1)} handed in"


# --- printed


def text(report, names=False):
    """Return the report as text."""
    lines = []
    for notebook in report.notebooks.values():
        lines += [f"{notebook.path.stem}: {_handed_in(report, notebook)}", ""]
        lines.append(f"{'exercise':<44}" + "".join(f"{state:>16}" for state in STATES))
        for task in notebook.tasks:
            states = report.states(task.number)
            lines.append(
                f"{svg.cut(f'{task.number} {task.title}', 43):<44}" + "".join(f"{states[s]:>16}" for s in STATES)
            )
            lines += [f"{n:>8}  {id:<32}{words}".rstrip() for n, id, words in rows_of(report, task)]
        votes = report.votes(notebook)
        if votes:
            lines += ["", f"{'prediction (* is right)':<44}votes"]
        for name, letters in votes.items():
            right = PREDICTIONS[name].right
            lines.append(f"{name:<44}" + "   ".join(f"{a}{'*' * (a == right)} {n}" for a, n in letters.items()))
        lines.append("")
    troubles = report.troubles()
    if troubles:
        lines.append("could not tell" + (":" if names else "; --names says whose it is:"))
        lines += [f"{who(one, names):>8}  {number:<6}{why}" for one, number, why in troubles]
    return "\n".join(lines).rstrip()


# --- as a page


class Bar(str):
    """HTML of ours, to be put into a page as it is."""


def bar(title, counts, colours):
    """Return a bar as an <svg> element: one piece for each of the counts that is not 0, with its number."""
    total, left, parts = max(1, sum(counts.values())), 0, []
    for name, n in counts.items():
        wide = round(WIDE * n / total)
        if not n:
            continue
        parts.append(
            f'<rect x="{left}" y="0" width="{wide}" height="{HIGH}" fill="{colours[name]}" stroke="{LINE}">'
            f"<title>{html.escape(f'{name}: {n}')}</title></rect>"
        )
        label = f"{name} {n}" if svg.width(f"{name} {n}") < wide else str(n)
        if svg.width(label) < wide:
            parts.append(f'<g fill="{text_on(colours[name])}">{svg.text(left + 4, HIGH - 6, label)}</g>')
        left += wide
    sentence = ", ".join(f"{name} {n}" for name, n in counts.items())
    return Bar(svg.picture(WIDE, HIGH, title, sentence, parts))


def page(report, names=False):
    """Return the report as one HTML page that needs no network."""
    parts = [_of_notebook(report, notebook) for notebook in report.notebooks.values()]
    troubles = [[who(one, names), number, why] for one, number, why in report.troubles()]
    if troubles:
        parts.append(f"<h2>Could not tell</h2>{_table(('notebook handed in', 'exercise', 'why'), troubles)}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Report of a class</title>'
        f"<style>{STYLE}</style></head><body><h1>Report of a class</h1>{''.join(parts)}</body></html>\n"
    )


def _of_notebook(report, notebook):
    parts = [f"<h2>{html.escape(notebook.path.stem)}</h2><p>{_handed_in(report, notebook)}.</p>"]
    rows = []
    for task in notebook.tasks:
        name, states = f"{task.number} {task.title}", report.states(task.number)
        rows.append([name, bar(name, {state: states[state] for state in STATES}, COLOURS), ""])
        rows += [["", f"{n} {id}", words] for n, id, words in rows_of(report, task)]
    parts.append(_table(("exercise", "answers", "what to reply"), rows))
    rows = []
    for name, letters in report.votes(notebook).items():
        right = PREDICTIONS[name].right
        colours = {letter: COLOURS["right" if letter == right else "wrong"] for letter in letters}
        rows.append([name, bar(name, letters, colours), f"right: {right}"])
    return "".join(parts) + (_table(("prediction", "votes", ""), rows) if rows else "")


def _table(head, rows):
    def cell(words):
        return words if isinstance(words, Bar) else as_html(words)

    head = "".join(f"<th>{html.escape(words)}</th>" for words in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell(words)}</td>' for words in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# --- as CSV


def table(report, names=False):
    """Return one row for each answer and each vote, as CSV: what a statistics program reads."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["submission", "notebook", "item", "result", "mistakes", *["file"] * names])
    by_number = {one.which: one for one in report.submissions}

    def write(one, *columns):
        writer.writerow([one.which, one.notebook, *columns, *[one.shown] * names])

    for row in report.judged:
        write(by_number[row["which"]], row["number"], row["state"], " ".join(row["mistakes"]))
    for notebook in report.notebooks.values():
        for one, name, letter in report.cast(notebook):
            write(one, name, letter, "")
    return file.getvalue()
