"""Write the tables of TEACHING.md, goals, what to reply to which mistake, how long a session takes; and docs/votes.md.

python -m tools.teaching

What a room hears of a question stands in questions.toml of each lesson, what to reply to mistakes in replies.toml: by
the name of the check (of a patient, with its number), then by mistake; several ids with one reply are joined by a
comma. Of each: how the mistake shows, and what to reply. Headings and titles come from the notebooks;
tests/test_teaching.py sees that the tables are up to date.
"""

import re

from attncourse import PREDICTIONS, RECALLS

from .build_notebooks import read_source
from .links import replace_marked
from .numbering import exercises as exercises_of
from .numbering import number
from .report.notebooks import key, shown_options
from .series import REPLIES, ROOT, SERIES, has_tag

GUIDE, SHEET = ROOT / "TEACHING.md", ROOT / "docs" / "votes.md"
LEAD = """\
# Votes

Every question with options, to print and to fill in: let the room vote by hands, write down the split, and only then
run the cell. Replies to the wrong letters are in the notes of a deck. Written by `python -m tools.teaching`.
"""


def title(notebook):
    return notebook.title[0].upper() + notebook.title[1:]


def contents(notebook):
    """Return ({question: heading above it}, {name of an exercise: its number and title}) of a notebook."""
    questions, exercises, heading = {}, {}, title(notebook)
    cells = read_source(notebook.source).cells
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            for found in re.findall(r"^##+ (.+)$", cell.source, re.MULTILINE):
                if has_tag(cell, "exercise") and (exercise := re.match(r"\w+ (\d+\.\d+) · (.+)", found)):
                    exercises[key(cells[i + 2].source)] = f"{exercise[1]} {exercise[2]}"
                else:
                    heading = found
        elif question := re.search(r"^predict\.(?!before_)(\w+)\(", cell.source, re.MULTILINE):
            questions[question[1]] = heading
    return questions, exercises


def options(source):
    """Return {question: {letter: what the notebook says}} of all questions that stand before a result."""
    cells = read_source(source).cells
    shown = shown_options(cells)
    asked = (re.search(r"^predict\.(\w+)\((guess_\w+)\)", cell.source, re.MULTILINE) for cell in cells)
    return {question[1]: shown[question[2]] for question in asked if question}


def words_by_question(notebook):
    """Return {question: what is asked, and each option by its letter} of a notebook, as the room hears it."""
    found = options(notebook.source).items()
    return {name: said | (known := PREDICTIONS[name]).spoken | {"asked": known.asked} for name, said in found}


def table(*rows):
    head, *rest = (f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest]) + "\n"


def votes():
    """Return the sheet of all questions, with blanks for the votes of a class."""
    found = [LEAD]
    for notebook in SERIES:
        recall, (questions, _) = RECALLS.get(f"before_{notebook.slug}"), contents(notebook)
        if recall or questions:
            found.append(f"## {notebook.number} · {title(notebook)}\n")
        if recall:
            right = ", ".join(f"{i} {question.right}" for i, question in enumerate(recall.questions, 1))
            found.append(f"*Before you start* (`predict.{recall.name}`): {right}.\n")
        if questions:
            found.append(question_table(questions, words_by_question(notebook)))
    return "\n".join(found)


def question_table(questions, said):
    """Return the table of the questions of a notebook, as the room hears them, with blanks for its votes."""
    rows = [("question", "options", "right, shown at", "split")]
    for name, heading in questions.items():
        words, question = said[name], PREDICTIONS[name]
        options = "; ".join(f"{letter} {words[letter]}" for letter in question.options)
        split = " ".join(f"{letter.upper()} __ %" for letter in question.options)
        rows.append((f"`predict.{name}`: {words['asked']}", options, f"{question.right}, **{heading}**", split))
    return table(*rows)


def replies(exercises):
    """Return the likely mistakes of each exercise, how they show, and a reply; several ids may have one reply."""
    found = []
    for name, title in exercises.items():
        found.append(f"\n*{title}*\n\n")
        for ids, (shows, reply) in REPLIES.get(name, {}).items():
            found.append(f"- {', '.join(f'`{id}`' for id in ids.split(', '))}: {shows}. {reply}\n")
    return "".join(found)


def shown_where(notebook, goal, questions):
    """Return what shows a goal: its exercises, else the headings of its questions."""
    numbers = [number(name) for name in goal.shown_by if name in exercises_of(notebook.slug)]
    headings = dict.fromkeys(f"**{questions.get(name, name)}**" for name in goal.shown_by)  # each once
    return ", ".join(numbers or headings)


def goals(notebook, questions):
    """Return what one can do after a notebook, and what shows it."""
    found = ["\n*Afterwards students can*\n\n"]
    for goal in notebook.goals:
        can = goal.sentence[0].lower() + goal.sentence[1:-1]
        found.append(f"- {can} ({shown_where(notebook, goal, questions)})\n")
    return "".join(found)


def fill_tables(text):
    """Return the text of TEACHING.md with its tables as they should be."""
    for notebook in SERIES:
        questions, exercises = contents(notebook)
        text = replace_marked(text, f"replies {notebook.number}", replies(exercises))
        text = replace_marked(text, f"goals {notebook.number}", goals(notebook, questions))
        text = with_minutes(text, notebook)
    return text


def with_minutes(text, notebook):
    """Return the text with the minutes of a notebook's session; what to take home is written by hand."""
    reading, exercises = notebook.minutes, notebook.exercise_minutes
    told = f"| {notebook.number} | {reading} | {exercises} | {reading + exercises} |"
    return re.sub(rf"^\| {notebook.number} \| \d+ \| \d+ \| \d+ \|", told, text, flags=re.MULTILINE)


def write():
    text = GUIDE.read_text("utf-8")
    if (new := fill_tables(text)) != text:
        GUIDE.write_text(new, encoding="utf-8", newline="\n")
    SHEET.write_text(votes(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write()
