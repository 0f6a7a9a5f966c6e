"""What must hold on Windows, under another encoding, in an odd folder: as far as it can be seen from here.

That the notebooks run offline and write nothing beside themselves is seen in test_notebooks.py, where they run anyway.
"""

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tools.series import find_notebook

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("assess", "attnlib", "attncourse", "bench", "lite", "notebooks/src", "tests", "tools")
    for path in (ROOT / folder).rglob("*.py")
)

POSIX_MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
POSIX_NAMES = {
    "os": {"chown", "fork", "geteuid", "getpgid", "getuid", "killpg", "mkfifo", "nice", "setsid", "uname", "wait"},
    "signal": {"ITIMER_REAL", "SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pause", "setitimer"},
}
# Asks whether the platform has them first: tests/test_checks_engine.py runs it without.
_TIMER = {"signal.ITIMER_REAL", "signal.SIGALRM", "signal.setitimer"}
ASKS_FIRST = {
    "attncourse/engine/sandbox.py": {*_TIMER, "signal.SIGKILL", "signal.SIGUSR1", "os.fork", "resource"},
    # Only on Linux: tools/report/__init__.py refuses elsewhere, and tests/test_report.py sees that it does.
    "tools/report/apart.py": {
        "signal.SIGALRM",
        "signal.SIGKILL",
        "os.fork",
        "os.killpg",
        "os.setsid",
        "resource",
    },
    "tests/test_report.py": {"os.getuid", "os.mkfifo"},  # skipped where it is not Linux
}


@functools.lru_cache(1)
def nodes(source):
    return list(ast.walk(ast.parse(source)))


def posix_only(source):
    """Return what `source` uses that Windows has not."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & POSIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} & POSIX_MODULES
            found |= {f"{node.module}.{a.name}" for a in node.names if a.name in POSIX_NAMES.get(node.module, ())}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in POSIX_NAMES.get(node.value.id, ()):
                found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.keyword) and node.arg in ("shell", "preexec_fn", "start_new_session"):
            found.add(f"{node.arg}=")
        elif isinstance(node, ast.Constant) and str(node.value).startswith(("/tmp", "/dev/", "/bin/", "/usr/")):
            found.add(node.value)
    return found


def leaves_encoding_open(source):
    """Return the lines that read or write text in whatever encoding the machine happens to have.

    ruff's PLW1514 would not do: it sees no path that is an argument or an expression, and no `text=True`.
    """
    lines = []
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if "encoding" in given:
            continue
        method = isinstance(node.func, ast.Attribute)
        mode = node.args[0 if method else 1 : 1 if method else 2] or [given.get("mode")]
        mode = getattr(mode[0], "value", None)
        if name == "open":
            # A method called open is a file's only if it is given a mode: Image.open, front_end.open are others.
            text = "b" not in mode if isinstance(mode, str) and set(mode) <= set("rwaxbt+") else not method
        elif name in ("read_text", "write_text"):
            text = len(node.args) < (1 if name == "read_text" else 2)
        else:
            text = getattr(given.get("text", given.get("universal_newlines")), "value", False) is True
        if text:
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_is_for_every_system(path):
    name, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if path.name != Path(__file__).name:  # it names what it looks for
        assert posix_only(source) == ASKS_FIRST.get(name, set()), "Windows has not"
    assert leaves_encoding_open(source) == [], "lines that need encoding='utf-8'"


@pytest.mark.parametrize(
    "source",
    [
        "import resource",
        "from pwd import getpwnam",
        "from os import fork",
        "os.uname()",
        "signal.SIGKILL",
        "subprocess.run('ls | wc', shell=True)",
        "Path('/" + "tmp/x')",
    ],
)
def test_the_reader_sees_what_only_posix_has(source):
    assert posix_only(source)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("open('a')", True),
        ("open('a', 'w')", True),
        ("open('a', mode='w')", True),
        ("path.open('w')", True),
        ("path.read_text()", True),
        ("path.write_text('x')", True),
        ("subprocess.run(a, text=True)", True),
        ("open('a', 'rb')", False),
        ("open('a', encoding='utf-8')", False),
        ("path.read_text('utf-8')", False),
        ("subprocess.run(a)", False),
        ("Image.open(data)", False),
        ("front_end.open(page, 'a.ipynb')", False),
    ],
)
def test_the_reader_sees_text_without_an_encoding(source, found):
    assert bool(leaves_encoding_open(source)) == found


WITH_SCRIPTS = [path for path in SOURCES if path.name != Path(__file__).name]


@pytest.mark.parametrize("path", WITH_SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_script_stands_in_a_python_string(path):
    # Where it could not be linted; what calls a function of a .js file may stand there.
    assert not re.findall(r"=>\s*\{|\bdocument\.(?:query|get|create)\w+", path.read_text("utf-8"))


def test_scripts_are_linted():
    oxlint = shutil.which("oxlint", path=str(Path(sys.executable).parent))
    done = subprocess.run(
        [oxlint, "--deny-warnings", "."], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout


# A machine whose encoding is not UTF-8: the C locale without Python's own remedies, and a console of Windows.
NOT_UTF8 = {"PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
CONSOLES = {"C locale": None, "Windows": "cp1252"}


def not_utf8(console=None, **more):
    environment = {**os.environ, **NOT_UTF8, **more}
    environment.pop("PYTHONIOENCODING", None)
    return {**environment, "PYTHONIOENCODING": console} if console else environment


def run(code, environment):
    return subprocess.run([sys.executable, *code], env=environment, cwd=ROOT, capture_output=True, check=False)


PRINT = """
import sys
assert sys.stdout.encoding.lower() != "utf-8"
from attncourse import check, predict
key, ask = check.key_of_anna, predict.softmax_by_hand
print(key(None)); print(key([1, 1, 0])); print(key([1, 2, 3])); print(key("\\u2713 caf\\xe9"))
print(ask(None)); print(ask("a")); print(ask("c"))
key(None).hint()
"""


@pytest.mark.parametrize("console", CONSOLES)
def test_verdicts_can_be_printed_on_any_console(console):
    done = run(["-W", "error", "-c", PRINT], not_utf8(CONSOLES[console]))
    assert done.returncode == 0, done.stderr.decode()[-500:]
    printed = done.stdout.decode(CONSOLES[console] or "ascii").splitlines()
    assert "1.1 A key: right" in printed
    assert "You chose a, right is c" in printed  # the mark before it is left out where it cannot be shown


def pictures(cell):
    return [output for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]


@pytest.mark.slow
def test_runs_from_a_folder_with_spaces_and_letters_of_any_script(tmp_path, monkeypatch):
    """A copy of the package and a notebook up to its first picture, in a kernel there, on a machine not of UTF-8."""
    folder = tmp_path / "Übung 1 · 注意 'ok' & more"
    for package in ("attnlib", "attncourse"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    notebook = nbformat.read(find_notebook("by_hand").built, as_version=4)
    first = next(i for i, cell in enumerate(notebook.cells) if pictures(cell))
    notebook.cells = notebook.cells[: first + 1]
    code = "import os, attnlib; assert os.path.samefile(attnlib.__file__, 'attnlib/__init__.py'), attnlib.__file__"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(code))
    for name, value in {**NOT_UTF8, "PYTHONPATH": str(folder)}.items():
        monkeypatch.setenv(name, value)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    assert pictures(notebook.cells[-1])
