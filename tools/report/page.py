"""A Report as text, as a page and as CSV. Names of files, which may be names of people, appear only where asked for."""

import csv
import html
import io
import re
import textwrap

from attncourse import EXERCISES, MISTAKES, PREDICTIONS
from attncourse.engine.describe import in_words
from attncourse.engine.verdict import as_html
from attnlib import svg
from attnlib.colours import LINE, colour_table, text_on

from ..series import REPLIES
from . import STATES, collected

WIDE, HIGH = 300, 22  # pixels of a bar
# Right is the lightest, so that a dark row is one to talk about; what says nothing of anybody has no colour.
_RIGHT, _WRONG = (f"#{bytes(colour_table()[i]).hex()}" for i in (200, 70))
COLOURS = {"right": _RIGHT, "wrong": _WRONG, "could not tell": "#ffffff", "not tried": "#ffffff"}
STYLE = """
body { font-family: system-ui, sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; line-height: 1.4 }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
th, td { text-align: left; vertical-align: top; padding: .2rem .5rem; border-bottom: 1px solid #ccc }
.slide { box-sizing: border-box; break-before: page; font-size: max(1.1rem, 2.6vw) }
.slide { margin: 0 calc(50% - 48vw); min-height: 100vh; padding-top: 2vh }
.slide pre { background: #f3f3f3; color: #111; overflow-x: auto; padding: .6em 1em }
.slide a { font-size: 1rem }
@media print { .slide { font-size: 18pt; margin: 0 } }
"""


def symptom_and_reply(exercise, mistake):
    """Return (how a mistake shows, what to reply): the lecturer's words for both, else those of the check."""
    for ids, words in REPLIES.get(exercise, {}).items():
        if mistake in ids.split(", "):
            return [plain(one) for one in words]
    return (MISTAKES[mistake].symptom, MISTAKES[mistake].hints[0]) if mistake in MISTAKES else ("", "")


def plain(words):
    """Return words without the marks of Markdown, and formulas in signs; what stands between backticks stays."""
    parts = re.split("(`[^`]+`)", words)
    for i, part in enumerate(parts[::2]):
        part = re.sub(r"\\sqrt\{(.+?)\}", r"√\1", part).replace(r"\infty", "∞")
        parts[2 * i] = re.sub(r"\*(\S[^*]*)\*", r"\1", re.sub(r"[${}]", "", part))
    return "".join(parts)


def rows_of(report, task):
    """Return [(how many answers, mistake or "no name", how it shows, what to reply), ...] of an exercise."""
    rows = [(n, id or "no name", *symptom_and_reply(task.key, id)) for id, n in report.mistakes(task.number)]
    return rows + [(n, "right, with a remark", remark, "") for remark, n in report.remarks(task.number)]


def first_to_discuss(report):
    """Return a dict for each mistake to discuss first, in plain words: heading, cell, shows, asks, mistake."""
    tasks = {task.number: (task, notebook) for notebook in report.notebooks.values() for task in notebook.tasks}
    found = []
    for id, n, row in report.first():
        task, notebook = tasks[row["number"]]
        students = len({one.student for one in report.handed_in(notebook)})
        exercise = EXERCISES[task.judge[1]]
        mistake = next((one for one in exercise.mistakes if one.id == id), MISTAKES[id])
        shows, asks = symptom_and_reply(task.key, id)
        heading = f"{n} of {students} students · Exercise {task.number} {task.title}"
        subject = exercise.subject.replace("Your", "The")
        words = {"heading": heading, "cell": row["cell"], "shows": shows[:1].upper() + shows[1:], "asks": asks}
        found.append({**words, "mistake": in_words([mistake], subject)})
    return found


def who(submission, names):
    """Return what a submission is called: its student's number, with its path only where names are wanted."""
    return f"{submission.student} {submission.shown}" if names else f"{submission.student}"


def _handed_in(report, notebook):
    files = report.handed_in(notebook)
    students = len({one.student for one in files})
    words = f"{students} student{'s' * (students != 1)}"
    words += f", {len(files)} notebooks handed in" if len(files) > students else ""
    late = len({one.student for one in files if one.late})
    return words + (f", {late} late" if late else "")


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
                f"{svg.shorten(f'{task.number} {task.title}', 43):<44}" + "".join(f"{states[s]:>16}" for s in STATES)
            )
            lines += [f"{n:>8}  {id:<32}{asks or shows}".rstrip() for n, id, shows, asks in rows_of(report, task)]
        votes = report.votes(notebook)
        if votes:
            lines += ["", f"{'prediction (* is right)':<44}votes"]
        for name, letters in votes.items():
            right = PREDICTIONS[name].right
            lines.append(f"{name:<44}" + "   ".join(f"{a}{'*' * (a == right)} {n}" for a, n in letters.items()))
        lines.append("")
    for one in first_to_discuss(report):
        lines += [f"to discuss first: {one['heading']}", "", textwrap.indent(one["cell"], "    "), ""]
        lines += [f"{one['shows']}. {one['mistake']}", one["asks"], ""]
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
    first = first_to_discuss(report)
    links = "".join(f'<li><a href="#discuss-{i}">{as_html(one["heading"])}</a></li>' for i, one in enumerate(first, 1))
    parts = [f"<h2>To discuss first</h2><ol>{links}</ol>"] * bool(first)
    parts += [_of_notebook(report, notebook) for notebook in report.notebooks.values()]
    troubles = [[who(one, names), number, why] for one, number, why in report.troubles()]
    if troubles:
        parts.append(f"<h2>Could not tell</h2>{_table(('notebook handed in', 'exercise', 'why'), troubles)}")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Report of a class</title>'
        f"<style>{STYLE}</style></head><body><h1 id='top'>Report of a class</h1>"
        f"{''.join(parts + [_slide(i, one, one is first[-1]) for i, one in enumerate(first, 1)])}</body></html>\n"
    )


def _of_notebook(report, notebook):
    parts = [f"<h2>{html.escape(notebook.path.stem)}</h2><p>{_handed_in(report, notebook)}.</p>"]
    rows = []
    for task in notebook.tasks:
        name, states = f"{task.number} {task.title}", report.states(task.number)
        rows.append([name, bar(name, {state: states[state] for state in STATES}, COLOURS), ""])
        rows += [["", f"{n} {id}\n{shows}", asks] for n, id, shows, asks in rows_of(report, task)]
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


def _slide(i, one, last):
    """Return a screen to project: a cell and a question; the mistake is told by a click."""
    wide = max(map(len, one["cell"].splitlines()))
    return (
        f'<section class="slide" id="discuss-{i}"><h2>{as_html(one["heading"])}</h2>'
        f'<pre style="font-size: min(1em, {145 / wide:.1f}vw)">{html.escape(one["cell"])}</pre>'
        f"<p>{as_html(one['shows'])}</p><p>{as_html(one['asks'])}</p>"
        f"<details><summary>The mistake</summary>{as_html(one['mistake'])}</details>"
        f'<p><a href="#{"top" if last else f"discuss-{i + 1}"}">{"Table" if last else "Next"}</a></p></section>'
    )


# --- as CSV


def table(report, names=False):
    """Return one row for each student, as CSV: what became of each exercise, and the letter of each vote."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    numbers = [task.number for notebook in report.notebooks.values() for task in notebook.tasks]
    questions = [name for notebook in report.notebooks.values() for name in notebook.guesses.values()]
    cells = {(row["student"], row["number"]): _result(row) for row in report.judged}
    votes = (vote for notebook in report.notebooks.values() for vote in report.latest_votes(notebook))
    cells |= {(student, name): letter for student, name, letter in votes}
    writer.writerow(["student", "right", *numbers, *questions, "late", "could not tell", *["files"] * names])
    troubles = report.troubles()
    for student in sorted({one.student for one in report.submissions}):
        mine = [one for one in report.submissions if one.student == student]
        files = " | ".join(one.shown for one in mine)
        late = " ".join(sorted({one.notebook or "?" for one in mine if one.late}))
        late = "not known" if mine and all(one.late is None for one in mine) else late
        why = " | ".join(f"{number or _file_of(one)}: {why}" for one, number, why in troubles if one.student == student)
        right = sum(cells.get((student, number), "").startswith("right") for number in numbers)
        row = [cells.get((student, column), "") for column in (*numbers, *questions)]
        writer.writerow([student, right, *row, late, why, *[files] * names])
    return file.getvalue()


def _file_of(submission):
    """Say of which notebook an unreadable file is, where its name tells."""
    number = collected.notebook_named(submission.shown)
    return f"a file of {number}" if number else "a file"


def _result(row):
    """Return what became of an answer, in the words of a table: "wrong: no_scale", "right: a remark"."""
    return ": ".join(filter(None, [row["state"], " ".join(row["mistakes"]) or row["remark"]]))
