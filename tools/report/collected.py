"""What a learning platform or nbgrader hands out: who handed in each file, which came late, and its place in a course.

Canvas calls a file ``name_[LATE_]user_handin_file`` and alone says what came late; Moodle calls a folder or a file
``name_participant_assignsubmission_file_``; a participant has another number in each assignment.
"""

import ast
import builtins
import re
import shutil
import tempfile
import time
import unicodedata
import zipfile
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise, permutations
from os import utime
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..series import SERIES

MOST_BYTES = 50_000_000  # of a file; with all its outputs a notebook of the series has less than one million
MOST_FILES = 3  # that one student hands in for a notebook; more of one name are those of many people
CANVAS = re.compile(r"(?P<name>[^_/]+)_(?P<late>LATE_)?(?P<number>\d+)_\d+_(?=.)")
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_[a-z]+(?:_|$)")
# What a program appends to the name of a copy: " (1)" in browsers and Windows, "-Copy1" in Jupyter, "copy" alone.
_COPY = r"[\s_-]*\(\d+\)|(?<![^\W_])copy\d*(?![^\W_])"


@contextmanager
def unpack(path):
    """Give the folder of what was handed in: the path itself, or that of the notebooks of a zip, with their times."""
    if path.is_dir():
        yield path
        return
    if not zipfile.is_zipfile(path):
        raise FileNotFoundError(
            f"{path} is no folder and no zip. Expected the zip that a learning platform gives, or a folder with what "
            "was handed in. Fix: look at the path."
        )
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(path) as zipped:
        for one in zipped.infolist():
            parts = [part for part in PurePosixPath(one.filename.replace("\\", "/")).parts if part.strip("./")]
            if not one.filename.endswith(".ipynb"):
                continue
            target = Path(folder, *parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_content(zipped, one))
            when = time.mktime((*one.date_time, 0, 0, -1))
            utime(target, (when, when))
        yield Path(folder)


def _content(zipped, one):
    """Return what a file in a zip holds, one byte more than is read of any; nothing where that is spoilt."""
    try:
        with zipped.open(one) as file:
            return file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError):
        return b""


class Owner(NamedTuple):
    """Who handed in a file: a key that all files of a student share, () for nobody known, a name, and if late."""

    key: tuple
    name: str
    late: bool | None = None
    number: str = ""  # that the platform gives


def owners(paths, notebooks, of_nbgrader=False, students=()):
    """Return the Owner of each file.

    Parameters
    ----------
    paths : list of Path
        Inside the folder that was handed out.
    notebooks : list of str or None
        The number of the notebook that each file is.
    of_nbgrader : bool
        Whether the first part of each path is a student.
    students : list of list of str
        Names and numbers of each student, as `read_students` gives them.
    """
    if of_nbgrader:
        found = [Owner(path.parts[:1], path.parts[0]) for path in paths]
    else:
        found = [_of_platform(path) for path in paths]
        # Two numbers of one name that handed in the same notebook are two people.
        numbers = {}
        for notebook, owner in zip(notebooks, found, strict=True):
            if owner:
                name, number, assignment = owner.key
                numbers.setdefault((name, assignment, notebook), set()).add(number)
        twins = {name for (name, _, _), several in numbers.items() if len(several) > 1}
        found = [one and one._replace(key=one.key[: 2 if one.name in twins else 1]) for one in found]
        others = iter(
            _by_name([(path, which) for path, which, one in zip(paths, notebooks, found, strict=True) if not one])
        )
        found = [one or next(others) for one in found]
    for i, path in enumerate(paths):
        # A number or an address decides over the name: two may be called alike.
        numbered = [j for j, words in enumerate(students) if _has_number(words, path, found[i].name)]
        fits = numbered or [j for j, words in enumerate(students) if _has_name(words, path, found[i].name)]
        if len(fits) == 1:
            found[i] = found[i]._replace(key=("list", fits[0]), name=students[fits[0]][0])
    return found


def _of_platform(path):
    """Return the Owner whom Canvas or Moodle names, by (name, number, folder of the assignment), or None."""
    for i, part in enumerate(path.parts):
        if moodle := MOODLE.match(part):
            return Owner((moodle["name"], moodle["number"], path.parts[:i]), moodle["name"], None, moodle["number"])
    canvas = CANVAS.match(path.name)
    # The number in Canvas is the student's own.
    name, number = canvas.group("name", "number") if canvas else ("", "")
    return canvas and Owner((f"{name} {number}", "", ()), name, bool(canvas["late"]), number)


def _by_name(files):
    """Return the Owners of files by their paths, without notebooks' names and marks of a copy.

    That is a folder whose files bear no names of several people, or else folder and name. The key is () where nothing
    is left, and where it would be one person's who handed in many files for one notebook.
    """
    left, names = [], {}
    for path, notebook in files:
        own = rf"(?<![^\W_])(?:{notebook}_[a-z_]+|{notebook})(?![^\W_])|{_COPY}"
        *folder, name = (re.sub(f"(?i){own}", "", part).strip(" _-.") for part in (*path.parts[:-1], path.stem))
        left.append((tuple(filter(None, folder)), name))
        names.setdefault(left[-1][0], set()).update({name} - {""})
    keys = [folder if folder and len(names[folder]) < 2 else (*folder, *[name] * bool(name)) for folder, name in left]
    count = Counter((key, notebook) for key, (_, notebook) in zip(keys, files, strict=True))
    return [
        Owner(key if count[key, notebook] <= MOST_FILES else (), " ".join(key))
        for key, (_, notebook) in zip(keys, files, strict=True)
    ]


def read_students(path):
    """Return the names and numbers of each line of a list; commas, semicolons or tabs stand between them."""
    lines = (re.split(r"[,;\t]", line) for line in path.read_text("utf-8-sig").splitlines())
    found = [[word.strip(' "') for word in line if word.strip(' "')] for line in lines]
    return [words for words in found if words]


def _words(text):
    """Return the runs of letters and digits of a text, in lower case and without accents."""
    text = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(r"[^\W_]+", "".join(x for x in text if not unicodedata.combining(x)))


def _has_number(student, path, name):
    """Tell whether a file is a student's by a number in its path, or by an address."""
    addresses = {"".join(_words(word.partition("@")[0])) for word in student if "@" in word}
    return (
        bool({word for word in student if word.isdigit()} & {*_words(str(path))}) or "".join(_words(name)) in addresses
    )


def _has_name(student, path, name):
    """Tell whether a file is a student's by all the words of the name."""
    there, joined = set(_words(str(path))), "".join(_words(name))
    words = [word for one in student if not one.isdigit() and "@" not in one for word in _words(one)][:5]
    orders = {"".join(order) for order in permutations(words)}
    return bool(words) and (set(words) <= there or joined in orders)


def words_of_names(names):
    """Return the words of names, of two letters or more, as a cell may hold them: alone, or all of a name as one."""
    words = [_words(name) for name in names]
    return frozenset(one for some in words for one in (*some, "".join(some)) if len(one) > 1 and not one.isdigit())


def holds_a_name(code, words):
    """Tell whether code names one of these people in a text or a name of its own; x.max is not Max."""
    found = []
    for node in ast.walk(ast.parse(code)):
        texts = (
            getattr(node, "id", ""),
            getattr(node, "arg", ""),
            getattr(node, "name", ""),
            getattr(node, "value", ""),
        )
        for text in texts:
            if isinstance(text, str) and text not in dir(builtins):
                some = _words(text)
                found += [*some, *("".join(pair) for pair in pairwise(some))]
    return not words.isdisjoint(found)


def notebook_named(shown):
    """Return the number of the notebook that the name of a file says, None for none."""
    named = (one.number for one in SERIES if re.search(rf"(?<![^\W_]){one.name}|(?<![^\W_]){one.number}_", shown))
    return next(named, None)


def sort_into(course, found, notebooks):
    """Copy what was handed in to submitted/STUDENT/ASSIGNMENT/ of a course of nbgrader, and return what is left over.

    Of several files of a student the newest is graded. A file that cannot be read goes where its name says, so that it
    is graded, too. Nothing that lies in the course is overwritten.

    Parameters
    ----------
    course : Path
    found : list of Submission
    notebooks : dict
        Number -> Series.
    """

    def folder_of(one):
        return "-".join(_words(one.owner)) or f"student{one.student}"

    left, alike = [], {}
    for one in found:
        alike.setdefault(folder_of(one), set()).add(one.student)
    for one in found:
        number = one.notebook or notebook_named(one.shown)
        if number not in notebooks:
            left.append(one)
            continue
        name = folder_of(one)
        # Of two students of one name each gets the number that the platform gives, or the list, else the report's.
        name = name if len(alike[name]) == 1 else f"{name}-{one.number or one.student}"
        target = course / "submitted" / name / notebooks[number].path.stem / f"{one.which}_{one.path.name}"
        if target.exists():
            raise FileExistsError(f"{target} is there. Fix: move what was sorted before out of the way.")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(one.path, target)
    return left
