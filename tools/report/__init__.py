"""Which mistakes a class made: a report on the notebooks that were handed in.

python -m tools.report FOLDER       the text; --html and --csv write files

`collected` knows what a learning platform gives, `submissions` finds what was handed in, `judge` judges it, one
notebook in one process, `apart` runs each answer in a copy of that process, `page` writes what was found.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from attncourse import PREDICTIONS

from ..series import NOTEBOOKS, ROOT
from . import collected, submissions
from .notebooks import series

STATES = ("right", "wrong", "could not tell", "not tried")  # the first of these that a student's files have counts


@dataclass(frozen=True)
class Report:
    """What a class handed in.

    Attributes
    ----------
    notebooks : dict
        Number -> Series, of those that somebody handed in.
    submissions : list of Submission
    judged : list of dict
        Of each student and exercise: student, which submission, number, state, mistakes, why, cell, remark.
    """

    notebooks: dict
    submissions: list
    judged: list
    names: frozenset = frozenset()  # the words of the names of students: no cell that holds one is shown

    def states(self, number):
        """Return how many answers to an exercise are right, wrong and so on."""
        return Counter(row["state"] for row in self.judged if row["number"] == number)

    def mistakes(self, number):
        """Return [(mistake, how many answers), ...] of an exercise, the most frequent first; "" stands for no name."""
        wrong = (row["mistakes"] or [""] for row in self.judged if row["number"] == number and row["state"] == "wrong")
        return sorted(Counter(id for ids in wrong for id in ids).items(), key=lambda item: (not item[0], -item[1]))

    def remarks(self, number):
        """Return [(remark on right answers, how many), ...] of an exercise."""
        return Counter(row["remark"] for row in self.judged if row["number"] == number and row["remark"]).most_common()

    def first(self, most=3):
        """Return what to discuss first, [(mistake, its students, row), ...]: the mistakes of most students.

        Of those rows with the mistake that stand in the exercise where most made it, it is the one with the shortest
        cell, alone in its answer if there is such a one. What one student alone did there is nothing to show to all.
        """
        rows = {}
        for row in self.judged:
            for id in row["mistakes"]:
                rows.setdefault(id, []).append(row)
        found = []
        for id, made in rows.items():
            in_exercise = Counter(row["number"] for row in made)
            here = [row for row in made if row["number"] == in_exercise.most_common(1)[0][0]]
            nameless = [row for row in here if not collected.holds_a_name(row["cell"], self.names)]
            shown = min(nameless, key=lambda row: (len(row["mistakes"]), len(row["cell"])), default=None)
            if shown:
                found.append((id, len({row["student"] for row in here}), shown))
        return sorted((one for one in found if one[1] > 1), key=lambda one: -one[1])[:most]

    def votes(self, notebook):
        """Return {question: {letter: how many}} of a notebook."""
        counts = {name: dict.fromkeys(PREDICTIONS[name].options, 0) for name in notebook.guesses.values()}
        for _, name, letter in self.latest_votes(notebook):
            counts[name][letter] = counts[name].get(letter, 0) + 1
        return counts

    def latest_votes(self, notebook):
        """Return (student, question, letter) of each vote, the latest of a student; "other" if it is no option."""
        last = {}
        for submission in sorted(self.handed_in(notebook), key=lambda one: one.when):
            last |= {(submission.student, name): one for name, one in submission.votes(notebook).items()}
        return [(*key, letter) for key, letter in last.items()]

    def handed_in(self, notebook):
        return [submission for submission in self.submissions if submission.notebook == notebook.number]

    def troubles(self):
        """Return [(submission, exercise or "", why it could not be told), ...]."""
        of_files = [(submission, "", submission.trouble) for submission in self.submissions if submission.trouble]
        by_number = {submission.which: submission for submission in self.submissions}
        return of_files + [(by_number[row["which"]], row["number"], row["why"]) for row in self.judged if row["why"]]


def make_report(folder, jobs=1, students=()):
    """Return the Report on a folder.

    Parameters
    ----------
    folder : Path
        With notebooks anywhere below it, or a course of nbgrader.
    jobs : int
        How many processes judge at the same time.
    students : list of list of str
        Names and numbers of each student of the class, if they are known.
    """
    if sys.platform != "linux":
        raise OSError(
            f"the report runs on Linux only, here is {sys.platform}: elsewhere an answer cannot be kept apart from "
            "what judges it. Fix: run it in a container, or in the Linux of Windows (WSL)."
        )
    known = series(NOTEBOOKS)
    handed_in = submissions.found_in(folder, known, students)
    tasks = []
    for number, notebook in known.items():
        of_it = [submission for submission in handed_in if submission.notebook == number]
        # Each process runs the cells of the series once more: a few answers are not worth a second one.
        parts = min(jobs, max(1, len(of_it) // 10))
        tasks += [(notebook, of_it[i::parts]) for i in range(parts) if of_it]
    with ThreadPoolExecutor(jobs) as pool:  # each waits for a process of its own
        judged = [row for rows in pool.map(lambda task: _judge_notebook(*task), tasks) for row in rows]
    judged.sort(key=lambda row: (row["number"].split(".")[0], int(row["number"].split(".")[1]), row["which"]))
    names = collected.words_of_names([word for one in students for word in one] + [one.owner for one in handed_in])
    ours = [part for notebook in known.values() for task in notebook.tasks for part in (task.stub, task.check)]
    names -= collected.words_of_names(ours)  # a folder may be called attention
    shown = {notebook.number: notebook for notebook, _ in tasks}
    return Report(shown, handed_in, _of_students(judged, handed_in), names)


def _of_students(judged, handed_in):
    """Return one row for each student and exercise, of the best of their files, and of equals the latest."""
    files, best = {one.which: one for one in handed_in}, {}
    for row in sorted(judged, key=lambda row: (STATES.index(row["state"]), -files[row["which"]].when)):
        student = files[row["which"]].student
        best.setdefault((student, row["number"]), {"student": student, **row})
    return [best[one] for one in dict.fromkeys((files[row["which"]].student, row["number"]) for row in judged)]


def _judge_notebook(notebook, handed_in):
    """Return the judgements of a notebook, made in a process of their own."""
    asked = {
        "notebook": str(notebook.path.resolve()),
        "submissions": [[one.which, str(one.path.resolve()), one.shown] for one in handed_in],
    }
    command = [sys.executable, "-c", "from tools.report import judge; judge.main()"]
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "ATTNLIB_MINE": "", "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command,
        input=json.dumps(asked),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    last_line = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    why = f"the process that judges ended: {last_line}"
    nothing = {"state": "could not tell", "mistakes": [], "why": why, "cell": "", "remark": ""}
    return [{"which": one.which, "number": task.number, **nothing} for one in handed_in for task in notebook.tasks]
