"""Write the notebooks as handouts: for students without solutions and outputs, or solved with every check green.

python -m tools.handouts student          _student/, with a zip of all
python -m tools.handouts solved           _solved/, executed, with a zip of all
python -m tools.handouts solved 02 05     those whose name starts so
"""

import argparse
import re
import shutil

import nbformat

from . import build_notebooks as build
from .links import outward
from .series import ROOT, chosen

# Regular expressions and not cell tags: they also give the code of a solution, and hold the form that readers see.
HEAD = re.compile(
    r"### Exercise (\d+)\.(\d+) · .+\n\n\*\*Goal\.\*\* (?:.|\n(?!\n))+?\*\d+\s+minutes,\s+(easy|medium|hard)\.\*"
)
SOLUTION = re.compile(
    r"<details><summary>Solution</summary>\n\n```python\n(.+?)\n```\n\n(?:.+\n\n)?</details>", re.DOTALL
)
CHECK = re.compile(r"verdict = \S+\(.*\)\nverdict")


def exercises(notebook):
    """Return (place of the stub, number, solution) of every exercise: text, stub, check, solution in this order."""
    found = []
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and "### Exercise" in cell.source:
            head = HEAD.search(cell.source)
            assert head, f"goal, minutes, difficulty: {cell.source[:80]}"
            stub, check, solution = notebook.cells[i + 1 : i + 4]
            assert [stub.cell_type, check.cell_type] == ["code", "code"] and CHECK.fullmatch(check.source), check.source
            folded = SOLUTION.fullmatch(solution.source)
            assert folded, f"no folded solution: {solution.source[:80]}"
            found.append((i + 1, f"{head[1]}.{head[2]}", folded[1]))
    return found


def student(source):
    """Return the notebook of a source without solutions and without outputs."""
    notebook = build.read_source(source)
    notebook.cells = [cell for cell in notebook.cells if not SOLUTION.fullmatch(cell.source)]
    for cell in notebook.cells:
        cell.source = outward(re.sub(r"\s*The solution is folded below\.", "", cell.source))
    return notebook


def solved(source):
    """Return the executed notebook with each solution in its stub, and the verdicts in order."""
    notebook = build.read_source(source)
    checks = []
    for place, _, solution in exercises(notebook):
        notebook.cells[place].source = solution
        checks.append(notebook.cells[place + 1])
    build.execute(notebook)
    for cell in notebook.cells:
        cell.source = outward(cell.source)
    return notebook, [check.outputs[0].data["text/plain"] for check in checks]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["student", "solved"])
    parser.add_argument("prefixes", nargs="*", help="numbers of notebooks, all by default")
    arguments = parser.parse_args()
    folder = ROOT / f"_{arguments.kind}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for notebook in chosen(arguments.prefixes):
        source, target = notebook.source, folder / notebook.built.name
        print(target, flush=True)
        if arguments.kind == "student":
            nbformat.write(student(source), target)
        elif not exercises(build.read_source(source)):
            shutil.copy(notebook.built, target)  # nothing to solve: it is built and executed
        else:
            notebook, verdicts = solved(source)
            wrong = [verdict for verdict in verdicts if not verdict.startswith("✓")]
            if wrong:
                raise SystemExit(f"{target.name}: a solution does not pass its check:\n" + "\n".join(wrong))
            nbformat.write(notebook, target)
    shutil.move(shutil.make_archive(str(folder), "zip", folder), folder)


if __name__ == "__main__":
    main()
