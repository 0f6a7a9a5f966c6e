"""Build notebooks/NN_name.ipynb from notebooks/src/name.py: convert, execute in a fresh kernel, write.

    python -m tools.build_notebooks              all
    python -m tools.build_notebooks 03 masks     those whose number or name starts so
    python -m tools.build_notebooks --fresh 03   also where the outputs could be kept

A notebook is run where something has changed that its outputs depend on (tools/builds.py); else it keeps them.

The written file is a function of the source, of the public address (tools/links.py) and of what the cells print: cell
ids come from the code, no timestamps, no widget models. Two builds on one machine give the same bytes: a cell that
measures time is tagged "timed" and keeps what it printed in the build before, as long as its text is the same.

The source says nothing of where a notebook is opened: tools/first_cells.py does.
"""

import argparse
import copy
import functools
import hashlib

import jupytext
import nbformat

from . import builds, links
from .first_cells import first_cells
from .moves import follow_the_order
from .numbering import render
from .series import ROOT, SERIES, find_notebook, has_tag, select_notebooks

METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


def read_source(path):
    """Return the notebook of a py:percent file and its first cells, without outputs, with ids made from the cells."""
    notebook = copy.deepcopy(parse_percent(render(path.read_text("utf-8"))))
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen, above, texts = {}, "top", 0
    for cell in notebook.cells:
        if "<!-- series -->" in cell.source:  # lesson start_here lists all others
            cell.source = cell.source.replace("<!-- series -->", rows())
        if cell.cell_type == "code":
            digest = hashlib.sha256(f"code\n{cell.source}".encode()).hexdigest()[:8]
            seen[digest] = seen.get(digest, 0) + 1
            above, texts = f"{digest}-{seen[digest]}", 0
        texts += cell.cell_type == "markdown"
        cell.id = f"{above}-text-{texts}" if texts else above  # so a changed sentence changes no id
    badges, setup = (
        cell and nbformat.from_dict(cell) for cell in first_cells(find_notebook(path.stem), links.address())
    )
    title, *others = notebook.cells
    notebook.cells = [*([badges] if badges else []), title, setup, *others]  # a reader wants the title first
    hide_answers(notebook)
    return notebook


@functools.cache
def parse_percent(text):
    """Return the notebook of a py:percent text; a text is parsed once, since tests and tools read each many times."""
    return jupytext.reads(text, fmt="py:percent")


def rows():
    from attnlib.symbols import SYMBOL  # and NumPy with it, which the hook of git must do without

    return "\n".join(
        f"| {n.number} | [{n.title}]({n.name}.ipynb) | {maths} | {n.minutes} | {n.exercise_minutes} | {n.torch} |"
        for n in SERIES[1:]
        for maths in [SYMBOL.sub(r"$\g<0>$", n.question)]
    )


def hide_answers(notebook):
    """Save outputs that answer a question or an exercise hidden: JupyterLab and Notebook 7 show them after a run.

    They are those of the code cells below a text tagged "predict" or "solution", up to the next text. That something
    is kept answers nothing.
    """
    asked = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            asked = has_tag(cell, "predict", "solution")
        elif asked and not cell.source.startswith(("guess_", "predict.", "mine.")):
            cell.metadata.setdefault("jupyter", {})["outputs_hidden"] = True


def code_between(name, start, stop):
    """Return the code cells of a source from the cell that holds one heading to the one that holds another."""
    cells = read_source(find_notebook(name).source).cells
    first, last = (next(i for i, cell in enumerate(cells) if heading in cell.source) for heading in (start, stop))
    return [cell.source for cell in cells[first:last] if cell.cell_type == "code"]


def keep_times(notebook, built):
    """Give cells tagged "timed" the outputs of the same cells in the notebook `built` before, if there was one."""
    before = {cell.id: cell for cell in built.cells} if built else {}
    for cell in notebook.cells:
        if "timed" in cell.metadata.get("tags", []) and cell.id in before:
            cell.outputs = before[cell.id].outputs
    return notebook


def hide_first_line(notebook):
    """Put an output without data in front of hidden ones: JupyterLab tells the first line of the first output."""
    for cell in notebook.cells:
        hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden")
        if hidden and cell.outputs and cell.outputs[0].get("data") != {}:
            cell.outputs.insert(0, nbformat.v4.new_output("display_data"))
    return notebook


def build(entry, fresh=False):
    """Write a notebook; say whether it was run, and why."""
    notebook, built = read_source(entry.source), builds.read_built(entry.built)
    changed = ["--fresh"] if fresh else builds.find_changes(entry.slug, notebook, built, ROOT)
    print(f"{entry.built.name}:", f"run, for {', '.join(changed)}" if changed else "outputs kept", flush=True)
    if not changed:
        nbformat.write(hide_first_line(builds.copy_outputs(built, notebook)), entry.built)
        return
    from . import execute  # matplotlib and more, only where something runs

    before = builds.sum_inputs(notebook, (), ROOT)
    imported = execute.execute_and_list(notebook)
    nbformat.write(hide_first_line(keep_times(notebook, built)), entry.built)
    builds.write_entry(entry.slug, notebook, builds.read_built(entry.built), imported, before, ROOT)


def write_moved_texts(entry):
    """Write the texts of a notebook that was not asked for where a number or a list in them has moved."""
    notebook, built = read_source(entry.source), builds.read_built(entry.built)
    texts = [[cell.source for cell in one.cells if cell.cell_type == "markdown"] for one in (notebook, built) if one]
    if texts[0] == texts[-1]:
        return
    if builds.find_changes(entry.slug, notebook, built, ROOT):
        print(f"{entry.built.name}: older than its source. Fix: make notebooks NB={entry.slug}")
    else:
        build(entry)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefixes", nargs="*", help="numbers or names of notebooks, all by default")
    parser.add_argument("--fresh", action="store_true", help="run them even where nothing has changed")
    given = parser.parse_args()
    follow_the_order()
    wanted = select_notebooks(given.prefixes)
    for entry in wanted:
        build(entry, given.fresh)
    for entry in SERIES:
        if entry not in wanted:
            write_moved_texts(entry)
    links.rewrite(links.address())  # the list in README


if __name__ == "__main__":
    main()
