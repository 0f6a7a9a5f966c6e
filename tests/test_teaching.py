"""TEACHING.md agrees with the notebooks: headings, questions and their answers, exercises, mistakes, minutes."""

import functools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from attncourse import EXERCISES, PREDICTIONS, RECALLS
from attncourse.clinic import CASES
from tools import plans, teaching
from tools.build_notebooks import read_source
from tools.plans import bold, rows
from tools.report.notebooks import key
from tools.series import SERIES, find_notebook

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
SHEET = (ROOT / "docs" / "votes.md").read_text(encoding="utf-8")
SOURCES = {notebook.number: notebook.source for notebook in SERIES}
PLANS = {"45-minute lecture": 40, "90-minute lecture": 85, "Half day": 240}  # minutes that are planned
QUESTION_MINUTES = 2  # for a question with options: vote, run, answer


class Task(NamedTuple):
    """An exercise of a notebook."""

    title: str
    minutes: int
    check: str = ""  # none: a patient is named
    key: str = ""

    @property
    def wrong(self):
        """The names that its check knows. To make all these mistakes takes seconds: only the test that asks does."""
        return EXERCISES[self.check].names if self.check else {case.bug for case in CASES.values()}


class Contents:
    """What stands in a notebook: its headings, the headings above each question, its exercises by number."""

    def __init__(self, path):
        self.headings, self.questions, self.exercises = set(), {}, {}
        above, last = {}, None
        for cell in read_source(path).cells:
            if cell.cell_type == "markdown":
                for marks, heading in re.findall(r"^(##+) (.+)$", cell.source, re.MULTILINE):
                    above = {depth: h for depth, h in above.items() if depth < len(marks)} | {len(marks): heading}
                    self.headings.add(heading)
                if exercise := re.search(r"^### Exercise (\d+\.\d+) · (.+)$", cell.source, re.MULTILINE):
                    minutes = re.search(r"\*(\d+)\s+minutes,", cell.source)[1]
                    last, title = exercise[1], exercise[2]
                    self.exercises[last] = Task(title, int(minutes))
            elif check := re.search(r"^verdict = (?:check\.(\w+)|patients\.\w+)\(", cell.source, re.MULTILINE):
                self.exercises[last] = self.exercises[last]._replace(check=check[1] or "", key=key(cell.source))
            elif question := re.search(r"^predict\.(?!before_)(\w+)\(", cell.source, re.MULTILINE):
                self.questions[question[1]] = set(above.values())


@functools.cache
def contents(number):
    return Contents(SOURCES[number])


def part(title, marks):
    return plans.part(GUIDE, title, marks)


def minutes_of(plan):
    """Return (minutes, notebook, headings) of each row of a plan but the total, and the total."""
    found = [(int(minutes), number, bold(headings)) for minutes, number, headings in rows(part(plan, "###"), 3)]
    return found[:-1], found[-1][0]


@pytest.fixture(params=SOURCES)
def number(request):
    return request.param


@pytest.fixture
def notebook(number):
    return contents(number)


@pytest.fixture
def text(number):
    return part(number, "##")


@pytest.mark.parametrize("plan", PLANS)
def test_the_minutes_of_a_plan_add_up(plan):
    found, printed = minutes_of(plan)
    assert sum(minutes for minutes, _, _ in found) == printed == PLANS[plan]


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_names_headings_and_leaves_time_for_their_questions_and_exercises(plan):
    for minutes, number, headings in minutes_of(plan)[0]:
        if not number:
            continue
        notebook = contents(number)
        assert headings and set(headings) <= notebook.headings, f"{number}: {set(headings) - notebook.headings}"
        asked = [name for name, above in notebook.questions.items() if above & set(headings)]
        tasks = [task.minutes for n, task in notebook.exercises.items() if f"Exercise {n} · {task.title}" in headings]
        assert minutes >= sum(tasks) + QUESTION_MINUTES * len(asked), f"{plan}, {number}: {headings}"


def test_sessions_take_the_minutes_of_the_readme_and_of_the_exercises(number, notebook):
    (session,) = [row for row in rows(part("One notebook a session", "###"), 5) if row[0] == number]
    (reading,) = (notebook.minutes for notebook in SERIES if notebook.number == number)
    exercises = sum(task.minutes for task in notebook.exercises.values())
    assert [int(n) for n in session[1:4]] == [reading, exercises, reading + exercises]


def test_the_parts_of_notebook_10_take_the_minutes_of_their_puzzles():
    text = "\n".join(
        cell.source
        for cell in read_source(find_notebook("program_a_head").source).cells
        if cell.cell_type == "markdown"
    )
    parts = re.split(r"^## [ABC] · ", text, flags=re.MULTILINE)[1:]
    A, B, C = (sum(map(int, re.findall(r"\*(\d+)\s+minutes,", part))) for part in parts)
    assert f"part A {A} minutes of puzzles, B {B}, C {C}." in text
    assert f"Puzzles take {A} minutes in part A, {B} in B, {C} in C." in GUIDE
    assert f"part A alone takes {A} minutes of exercises" in GUIDE


def test_all_bold_text_is_a_heading_of_the_notebook(notebook, text):
    assert bold(text) and set(bold(text)) <= notebook.headings, set(bold(text)) - notebook.headings


def test_the_tables_are_those_of_the_words_and_of_the_notebooks():
    assert teaching.fill_tables(GUIDE) == GUIDE, "Fix: python -m tools.teaching"
    assert teaching.votes() == SHEET, "Fix: python -m tools.teaching"


def test_every_question_has_its_words_and_stands_once_on_the_sheet_of_votes(number, notebook):
    said = teaching.words_by_question(next(entry for entry in SERIES if entry.number == number))
    for name in notebook.questions:
        assert set(said[name]) == {"asked", *PREDICTIONS[name].options}, name
        assert not PREDICTIONS[name].spoken.items() & teaching.options(SOURCES[number])[name].items(), name
        (row,) = (line for line in SHEET.splitlines() if line.startswith(f"| `predict.{name}`: "))
        assert row.endswith("".join(f" {letter.upper()} __ %" for letter in PREDICTIONS[name].options) + " |")
    assert "__ %" not in GUIDE


def test_a_question_is_whole_sentences_that_stand_alone():
    asked = {name: question.asked for name, question in PREDICTIONS.items()}
    assert {name: words for name, words in asked.items() if not re.match(r"[A-Z0-9*`$]", words)} == {}
    assert {name: words for name, words in asked.items() if words[-1] != "?" or len(words.split()) < 9} == {}
    led = re.compile(r"\b(above|here|this (module|model|head|map)|patient [A-Z])\b", re.IGNORECASE)
    assert {name: words for name, words in asked.items() if led.search(words)} == {}
    known = re.compile(
        r"start here|\b(slider|ships?|convoy|row_sums|notebook|you have (just )?set|150 steps are)\b", re.IGNORECASE
    )
    said = {name: " ".join([q.asked, *q.spoken.values(), *q.because.values()]) for name, q in PREDICTIONS.items()}
    assert {
        name: found[0] for name, words in said.items() if (found := known.search(words))
    } == {}  # Moodle has no notebook


def test_no_letter_is_right_much_more_often_than_another():
    letters = Counter(question.right for question in PREDICTIONS.values())
    assert all(0.25 <= letters[letter] / len(PREDICTIONS) <= 0.45 for letter in "abc"), letters


def test_no_notebook_is_won_by_one_letter(notebook):
    letters = Counter(PREDICTIONS[name].right for name in notebook.questions)
    n = sum(letters.values())
    assert all(letters[letter] <= -(-n // 3) for letter in letters), letters
    assert n < 6 or all(0.25 <= letters[letter] / n <= 0.45 for letter in "abc"), letters


def test_the_answers_from_memory_are_listed(number):
    if recall := RECALLS.get(f"before_{SOURCES[number].stem[3:]}"):
        answers = ", ".join(f"{i} {question.right}" for i, question in enumerate(recall.questions, 1))
        assert f"*Before you start* (`predict.{recall.name}`): {answers}." in SHEET


def test_every_exercise_has_replies_to_mistakes_that_its_check_knows(notebook, text):
    for number, task in notebook.exercises.items():
        told = teaching.REPLIES[task.key]
        names = [id for ids in told for id in re.split(r", | \+ ", ids)]
        assert names and set(names) <= set(task.wrong), f"{number}: {set(names) - set(task.wrong)}"
        assert f"\n*{number} {task.title}*\n" in text


def test_each_goal_is_shown_by_an_exercise_or_a_question_of_its_notebook(number, notebook):
    (goals,) = (entry.goals for entry in SERIES if entry.number == number)
    sections = plans.sections(read_source(SOURCES[number]).cells)
    asked = {title for title, cells in sections.items() if re.search(r"\*\*(Predict|Try)\.", str(cells))}
    assert len({goal.sentence for goal in goals}) == 3
    for sentence, shown_by in goals:
        assert re.fullmatch(r"[A-Z][^.]*\.", sentence) and len(sentence.split()) <= 20, sentence
        shows = {task.key for task in notebook.exercises.values()} | set(notebook.questions) | asked
        assert shown_by and set(shown_by) <= shows, f"{sentence} {set(shown_by) - shows}"


def test_no_words_are_left_over():
    notebooks = [contents(number) for number in SOURCES]
    exercises = {task.key for notebook in notebooks for task in notebook.exercises.values()}
    assert set(teaching.REPLIES) == exercises


def numbers_of(words):
    """Return the numbers of exercises in some words; "1.2 to 1.4" names three."""
    spans = re.findall(r"\b(\d+)\.(\d)(?: to \1\.(\d))?", words)
    return {f"{lesson}.{n}" for lesson, first, last in spans for n in range(int(first), int(last or first) + 1)}


def test_homework_leaves_to_the_lab_what_the_lab_does():
    lab = (ROOT / "docs" / "lab.md").read_text("utf-8").partition("## The clock")[2].partition("## What to say")[0]
    assert {"1.2", "2.3"} <= numbers_of(lab) and numbers_of("3.2 to 3.4") == {"3.2", "3.3", "3.4"}
    for name in plans.names(GUIDE):
        alone, _, more = plans.plan_of(GUIDE, name).homework.partition("; where no lab follows")
        assert not numbers_of(alone) & numbers_of(lab), name
        assert not more or numbers_of(more) >= numbers_of(lab), name


def test_each_session_has_a_text_to_read():
    told = (ROOT / "docs" / "exam" / "README.md").read_text("utf-8")
    read = [number for line in re.findall(r"^\| (\d\d.*?) \|", told, re.MULTILINE) for number in line.split(", ")]
    assert read == list(SOURCES)


def test_the_clock_of_the_lab_runs_and_leaves_time_for_its_exercises():
    lab = (ROOT / "docs" / "lab.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d):(\d\d) \| (\d+) \| (.+) \|$", lab, re.MULTILINE)
    begins = [60 * int(hour) + int(minute) for hour, minute, *_ in rows]
    minutes = [int(n) for *_, n, _ in rows]
    assert len(rows) > 8 and begins == [sum(minutes[:i]) for i in range(len(rows))] and sum(minutes) == 90
    tasks = {n: task.minutes for number in SOURCES for n, task in contents(number).exercises.items()}
    for _, _, n, words in rows:
        assert int(n) >= sum(tasks[task] for task in re.findall(r"\b\d\.\d\b", words) if "read" not in words), words
    said = re.findall(r"\bAt (\d:\d\d)", lab) + re.findall(r"begin (\d:\d\d)", lab)
    assert len(said) > 4 and {*said} <= {f"{hour}:{minute}" for hour, minute, *_ in rows}
