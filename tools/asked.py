"""The questions of a notebook on its page: options to click, the reply to each, and behind a fold what comes out.

An exercise whose answer is a few numbers has a field, which knows the right numbers and all mistakes that have a name.
The replies are those of `predict` and `check` in a notebook; nothing is written twice.
"""

import copy
import json
import re
from itertools import takewhile

import nbformat
import numpy as np

from attncourse.catalogue import EXERCISES, PREDICTIONS, RECALLS
from attncourse.engine.exercise import Number

from .page import markdown
from .series import OPTION, ROOT

SCRIPT, STYLE = ((ROOT / "tools" / f"asked.{kind}").read_text("utf-8") for kind in ("js", "css"))
GUESS = re.compile(r"guess_\w+ = None")
ASKS = re.compile(r"predict\.(\w+)\(")
STUB, CHECK = re.compile(r"my_\w+ = None  # (.*)$"), re.compile(r"verdict = check\.(\w+)\(")
OPTIONS = re.compile(r"(?:^- \*\*[a-z]\*\* (?:.+\n?)+)+", re.MULTILINE)
# ACTS: code in which the reader does something. GOES_ON: where a text stops to speak of a result, or has a new word.
ACTS = re.compile(r"\blive\.|^(?:guess_|predict\.|my_|mine\.)|check\.", re.MULTILINE)
GOES_ON = re.compile(r"^#|\*\*\w")
EXERCISE = re.compile(r"^### Exercise", re.MULTILINE)
WRITE = '<p class="attnlib-write"><a href="{}">Write and check it in your browser</a></p>'
FOLD = '<details class="attnlib-answer" id="{}"><summary>What comes out? Your own answer first, then look.</summary>'


def answer_by_clicks(cells, run=None):
    """Return the cells of a page: no guesses to write, but options to click; behind a fold what answers a question.

    What stands before and after a cell as HTML is in its metadata, under "around". An exercise in code has one link to
    the same cell at the address `run`, where it can be written.
    """
    found, cells, goal = [], list(cells), None
    while cells:
        cell = cells.pop(0)
        goal = cell if EXERCISE.search(cell.source) else goal
        recall = ASKS.match(cells[0].source) if cells and cells[0].cell_type == "code" else None
        if recall and recall[1] in RECALLS:
            cells.pop(0)
            questions = RECALLS[recall[1]].questions
            found += option_buttons(cell, {f"{recall[1]}-{i}": question for i, question in enumerate(questions, 1)})
        elif cells and cells[0].cell_type == "code" and GUESS.match(cells[0].source):
            end = next(i for i, later in enumerate(cells) if ASKS.match(later.source))
            name, between = ASKS.match(cells[end].source)[1], cells[1:end]
            cells = cells[end + 1 :]
            shown, cells = about_the_result(cells)
            found += option_buttons(cell, {name: PREDICTIONS[name]}, fold_of(name))
            found += answer_by_clicks(
                [without(one, outputs=True) for one in between], run
            )  # 8.1 stands before the result
            found += fold_cells([without(one, source=True) for one in between if one.get("outputs")] + shown, name)
        elif to_predict(cell):
            between = [cell, *takewhile(to_predict, cells)]
            shown, cells = about_the_result(cells[len(between) - 1 :])
            found += [without(one, outputs=True) for one in between]
            found += fold_cells([without(one, source=True) for one in between if one.get("outputs")] + shown, cell.id)
        elif (stub := STUB.match(cell.source)) and isinstance(exercise := checked_by(cells[0]), Number):
            cells.pop(0)
            found.append(text_cell(field(exercise, stub[1])))
        else:
            found.append(cell)
            if run and goal and cell.source.startswith("verdict = "):
                found.append(text_cell(WRITE.format(f"{run}#cell-id={goal.id}")))
                goal = None
    return found


def to_predict(cell):
    """Return whether a cell shows what a reader is to predict, or to find first, without options to choose from."""
    return bool(cell.get("outputs")) and bool(cell.metadata.get("jupyter", {}).get("outputs_hidden"))


def checked_by(cell):
    """Return the exercise whose check a cell calls, or None."""
    called = CHECK.match(cell.source)
    return EXERCISES[called[1]] if called else None


def field(exercise, wanted):
    """Return a field for the numbers that an exercise asks for, and the verdicts on all that it knows, on one line."""
    known = [exercise.right, *(value for values in exercise.slips.values() for value in values)]
    known = [np.atleast_1d(np.asarray(value, dtype=float)).tolist() for value in known]
    verdicts = [(json.dumps(value), exercise(value if len(value) > 1 else value[0])) for value in known]
    other = exercise(exercise.right * 0 + 98765.4)  # none of these
    other.message = other.picture = ""  # they hold these numbers
    verdicts += [("other", other), ("none", exercise(None))]
    replies = "".join(f"<template data-of='{value}'>{verdict._repr_html_()}</template>" for value, verdict in verdicts)
    box = f'<label>Your answer, {wanted} <input type="text" autocomplete="off"></label> <button>Check</button>'
    told = f'data-name="{exercise.name}" data-tolerance="{exercise.probes[0].tolerance}"'
    reply = '<div class="attnlib-reply" aria-live="polite"></div>'
    return f'<form class="attnlib-asked" {told}>{box}{reply}{replies}</form>'.replace("\n", " ")


def fold_of(name):
    """Return the id of the fold that the answer to a question opens."""
    return f"answer-{name.replace('_', '-')}"


def option_buttons(cell, questions, fold=""):
    """Return the text of a cell as cells in which the options of its questions, by name, are buttons."""
    texts, options = OPTIONS.split(cell.source), OPTIONS.findall(cell.source)
    if len(options) != len(questions):
        raise SystemExit(f"a text has {len(options)} lists of options for {len(questions)} questions:\n{cell.source}")
    found = []
    for text, listed, (name, question) in zip(texts, options, questions.items(), strict=False):
        found += [text_cell(text), text_cell(buttons(name, question, dict(OPTION.findall(listed)), fold))]
    found.append(text_cell(texts[-1]))
    return [one for one in found if one.source.strip()]


def buttons(name, question, options, fold):
    """Return the options of a question as a group of buttons, each with its reply, on one line."""
    if sorted(options) != question.options:
        raise SystemExit(f"{name} has replies to {question.options}, and its text the options {options}")
    shown = ""
    for letter, text in options.items():
        words = re.sub(r"^<p>|</p>$", "", markdown(text.replace("\n", " ")).strip())
        shown += (
            f'<button type="button" role="radio" aria-checked="false" value="{letter}"><b>{letter}</b>'
            f"<span>{words}</span></button>"
        )
        shown += f"<template>{question(letter)._repr_html_()}</template>"
    opens = f' data-right="{question.right}"' + (f' data-opens="{fold}"' if fold else "")
    group = f'<div role="radiogroup" aria-label="Your answer">{shown}</div>'
    reply = '<div class="attnlib-reply" aria-live="polite"></div>'
    again = '<button type="button" class="attnlib-again" hidden="">Try again</button>'
    whole = f'<div class="attnlib-asked" data-name="{name}"{opens}>{group}{reply}{again}</div>'
    return whole.replace("\n", " ")


def about_the_result(cells):
    """Return (what follows a result and tells more of it, all that comes after), each as cells.

    That is code that follows at once, such as a map of it, and then words, up to those that introduce what comes next.
    """
    place = 0
    while place < len(cells) and cells[place].get("outputs") and not ACTS.search(cells[place].source):
        place += 1
    shown, cells = cells[:place], cells[place:]
    if not cells or cells[0].cell_type != "markdown":
        return shown, cells
    parts, words = cells[0].source.split("\n\n"), []
    while parts and not ("\n\n".join(words).count("```") % 2 == 0 and GOES_ON.search(parts[0])):
        words.append(parts.pop(0))
    if words and not parts:
        words, parts = split_introduction(words, [cell.source for cell in takewhile(is_code, cells[1:])])
    rest = copy.copy(cells[0]) | {"source": "\n\n".join(parts)}
    shown = [*shown, *([text_cell("\n\n".join(words))] if words else [])]
    return shown, ([nbformat.from_dict(rest)] if parts else []) + cells[1:]


def is_code(cell):
    """Return whether a cell is code."""
    return cell.cell_type == "code"


def split_introduction(words, sources):
    """Return (the paragraphs about a result, those that introduce the code that follows).

    A view is introduced by the paragraph above it; other code by one that ends in a colon or a question, or if no other
    tells the result, by its last sentence.
    """
    *before, last = words
    if any("live." in source for source in sources):
        return before, [last]
    if not sources or not last.endswith((":", "?")):
        return words, []
    if before:
        return before, [last]
    *told, asks = re.split(r"(?<=[.?!])\s+(?=[A-Z*`])", last)
    return ([" ".join(told)] if told else []), [asks]


def fold_cells(cells, name):
    """Return cells behind one fold."""
    for place, cell in enumerate(cells):
        before = FOLD.format(fold_of(name)) if place == 0 else ""
        cell.metadata["around"] = [before, "</details>" if place == len(cells) - 1 else ""]
    return cells


def without(cell, *, source=False, outputs=False):
    """Return a code cell without its source, or without its outputs; a text as it is."""
    if cell.cell_type != "code":
        return cell
    cell = copy.deepcopy(cell)
    hidden = cell.metadata.get("jupyter", {})
    hidden.pop("outputs_hidden", None)
    if outputs:
        cell.outputs = []
    if source:
        hidden.pop("source_hidden", None)
        cell.metadata["transient"] = {"remove_source": True}
        cell.id += "-out"
    return cell


def text_cell(text):
    """Return a cell of text; it has no id of its own, since nothing refers to it."""
    return nbformat.v4.new_markdown_cell(text.strip("\n"))
