"""Write attnlib/course/data/minilm_results.json: what notebook 09 replays where the model is not installed.

    make real-model && python -m tools.record_results && make notebooks NB=09

Runs the cells of notebooks/src/09_a_real_model.py in order and keeps every result that `measured` got. Run it after a
change of an experiment; tests/test_real_model.py compares fresh results with the file.
"""

import json
import sys
from pathlib import Path

import jupytext
import matplotlib

from attnlib.course import real_model

SOURCE = Path(__file__).resolve().parent.parent / "notebooks" / "src" / "09_a_real_model.py"
TARGET = real_model.DATA / "minilm_results.json"


def run_cells(source=SOURCE):
    """Run the code cells of a notebook source in one namespace and return it."""
    names = {"__name__": "__main__", "display": lambda *things: None}
    for cell in jupytext.read(source, fmt="py:percent").cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, str(source), "exec"), names)
    return names


def main():
    if real_model.missing():
        sys.exit(real_model.missing())
    matplotlib.use("agg")
    if not TARGET.exists():
        TARGET.write_text("{}", encoding="utf-8")
    fresh = run_cells()["measured"].fresh
    text = json.dumps(fresh, ensure_ascii=False, separators=(",", ":")).replace("]],", "]],\n")
    TARGET.write_text(text + "\n", encoding="utf-8")
    print(f"wrote {TARGET.name}: {len(fresh)} results, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
