"""What was handed in: the notebooks of a folder, which of the series each is, its votes, the cells of an exercise."""

import ast
import hashlib
import re
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path

from attncourse.engine.questions import letter

from .collected import MOST_BYTES, owners
from .notebooks import CHECKS, code_of, read_cells, shown_options

_VOTE = re.compile(r"^(guess_\w+)\s*=\s*([\"'])(.+?)\2", re.MULTILINE)


@dataclass(frozen=True)
class Submission:
    """One notebook as it was handed in.

    Attributes
    ----------
    which, student : int
        Its number, and that of who handed it in: they say nothing of the file's name.
    path : Path
    shown : str
        Its path inside the folder.
    cells : list of dict
    notebook : str or None
        The number of the notebook of the series that it is.
    trouble : str
        Why it cannot be judged at all; "" for nothing.
    when : float
        When the file was written.
    owner : str
        Who handed it in, as the path or a list says; "" for nobody known.
    number : str
        Of who handed it in, as the platform says; "" for none.
    late : bool or None
        Whether its name says that it came late, None where names do not say it.
    listed : bool
        Whether it is somebody's on the list of a class.
    """

    which: int
    path: Path
    shown: str
    cells: list
    notebook: str | None = None
    trouble: str = ""
    when: float = 0.0
    student: int = 0
    owner: str = ""
    number: str = ""
    late: bool | None = None
    listed: bool = False

    def votes(self, notebook):
        """Return the letter of each question that has a guess, the last one that is written, as our notebook has it.

        An earlier edition may give an option another letter: its words count. "other" is what stands for no option.
        """
        shown, found = shown_options(self.cells), {}
        for cell in code_of(self.cells):
            for guess, _, written in _VOTE.findall(cell["source"]):
                if guess in notebook.guesses:
                    now = {words: letter for letter, words in notebook.options[guess].items()}
                    found[notebook.guesses[guess]] = now.get(shown.get(guess, {}).get(letter(written)), "other")
        return found

    def as_checked(self, task):
        """Return an exercise with the name under which its check was given the answer, if somebody chose another."""
        call = re.compile(re.escape(".".join(task.judge)) + r"\(\s*(\w+)\s*\)")
        # Some editors drop the ids: then every call of the judge may be meant, and where they differ none is.
        checks = [cell for cell in self.cells if cell["id"] == task.ids[1]]
        calls = [call.search(cell["source"]) for cell in checks or code_of(self.cells)]
        names = [given[1] for given in calls if given and given[1].isidentifier() and not iskeyword(given[1])]
        name = names[0] if names and (checks or len(set(names)) == 1) else None
        given = f"{'.'.join(task.judge)}({name})"
        return task._replace(check=task.check.replace(ast.unparse(task.call), given)) if name else task

    def readings(self, task, known):
        """Return what `cells_of` gives up to the last call of the check, for all cells, and up to the first call.

        Below a check people break a right answer to see what happens, and others write a better one.
        """
        call = ast.unparse(task.call)
        code = [(i, cell) for i, cell in enumerate(self.cells) if cell["cell_type"] == "code"]
        calls = [i for i, cell in code if cell["id"] == task.ids[1] or call in cell["source"]] or [0]
        readings = {}
        for end in (calls[-1], len(self.cells), calls[0]):
            cells, others = self.cells_of(task, known, end)
            readings.setdefault(tuple(cells), others)
        return [(cells, others) for cells, others in readings.items() if cells]

    def cells_of(self, task, known, end):
        """Return (the cells of an exercise, all other code cells), as sources in their order.

        The cells of an exercise are its stub, whatever binds its answer, and cells of the student's own beside them, up
        to the place `end`; `known` are the ids of the series' cells. The check itself is none of them. An untouched
        stub comes first, so that it does not undo an answer above it.
        """
        binds = re.compile("|".join(rf"^(?:def|class)\s+{n}\b|^{n}\s*(?::[^=\n]+)?=(?!=)" for n in task.answers), re.M)
        grade_id = f"answer-{task.number.replace('.', '-')}"
        chosen = {
            i
            for i, cell in enumerate(self.cells)
            if cell["cell_type"] == "code"
            and (cell["id"] == task.ids[0] or _grade_id(cell) == grade_id or binds.search(cell["source"]))
        }
        known = known - {task.ids[1]}
        for i in sorted(chosen):
            for step in (-1, 1):
                chosen |= self._beside(i, step, known, chosen)
        chosen = {i for i in chosen if i < end}
        mine = [self.cells[i]["source"] for i in sorted(chosen)]
        mine.sort(key=lambda source: source.strip() != task.stub.strip())
        others = [
            cell["source"] for i, cell in enumerate(self.cells) if cell["cell_type"] == "code" and i not in chosen
        ]
        return [source for source in mine if source.strip() != task.check.strip()], others

    def _beside(self, i, step, known, chosen):
        """Return the places of the code cells next to one, up to a text, a cell of the series or one chosen already."""
        places, i = set(), i + step
        while 0 <= i < len(self.cells) and i not in chosen:
            if self.cells[i]["cell_type"] != "code" or self.cells[i]["id"] in known:
                break
            places.add(i)
            i += step
        return places


def _grade_id(cell):
    grading = cell["metadata"].get("nbgrader") if isinstance(cell["metadata"], dict) else None
    return grading.get("grade_id") if isinstance(grading, dict) else None


def found_in(folder, notebooks, students=()):
    """Return the Submissions in a folder: all notebooks below it, or below submitted/ in a course of nbgrader.

    They are numbered in an order that says nothing of their names. `students` are names and numbers of a class.
    """
    root = folder / "submitted" if (folder / "submitted").is_dir() else folder
    paths = [path for path in root.rglob("*.ipynb") if not _is_hidden(path.relative_to(root)) and path.is_file()]
    if not paths:
        raise FileNotFoundError(
            f"{folder} holds no notebooks. Expected a zip, or a folder with .ipynb files, or with "
            "submitted/STUDENT/ASSIGNMENT/. Fix: name what was collected."
        )
    with_digest = sorted((_digest(path), path) for path in paths)
    found = [_submission(i, path, root, notebooks) for i, (_, path) in enumerate(with_digest, 1)]
    relative = [path.relative_to(root) for _, path in with_digest]
    numbers = {}
    for i, owner in enumerate(owners(relative, [one.notebook for one in found], root != folder, students)):
        student = numbers.setdefault(owner.key or i, len(numbers) + 1)
        found[i] = replace(
            found[i],
            student=student,
            owner=owner.name,
            number=owner.number,
            late=owner.late,
            listed=owner.key[:1] == ("list",),
        )
    return found


def _digest(path):
    """Return a sum of the content of a file; "" for one that cannot be read, which is listed later."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MOST_BYTES)).hexdigest()
    except OSError:
        return ""


def _is_hidden(relative):
    """Tell whether a path leads through .ipynb_checkpoints or the like."""
    return any(part.startswith((".", "__MACOSX")) for part in relative.parts)


def _submission(which, path, root, notebooks):
    # A name may hold what a terminal obeys, or what is no text at all, or begin as a formula of a spreadsheet.
    shown = "".join(x if x.isprintable() else "?" for x in path.relative_to(root).as_posix())
    shown = f"./{shown}" if shown.startswith(tuple("=+-@")) else shown
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"the file has more than {MOST_BYTES // 10**6} MB")
        cells = read_cells(path)
    except ValueError as error:
        return Submission(which, path, shown, [], trouble=str(error))
    number = _which_notebook(cells, notebooks)
    trouble = "" if number else "no cell of it belongs to a notebook of the series with exercises"
    return Submission(which, path, shown, cells, number, trouble, path.stat().st_mtime)


def _which_notebook(cells, notebooks):
    """Return the number of the notebook with which these cells share most ids, checks and questions."""
    ids = {cell["id"] for cell in cells}
    names = {name for cell in code_of(cells) for name in CHECKS.findall(cell["source"])}

    def count_shared(notebook):
        return len(ids & notebook.ids) - ("setup" in ids) + len(names & notebook.names)

    best = max(notebooks.values(), key=count_shared)
    return best.number if count_shared(best) > 0 else None
