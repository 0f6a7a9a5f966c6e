"""Accuracies of notebook 08 over five seeds: its own cells, run with other first weights."""

import contextlib
import io
from pathlib import Path

import matplotlib
import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
SEEDS = range(5)


def sections():
    """Return the code cells of notebook 08 before its section 5, and those of the comparison over d_k in section 6."""
    from tools.build_notebooks import read_source

    cells = read_source(ROOT / "notebooks" / "src" / "08_train_and_look.py").cells

    def place(heading):
        return next(i for i, cell in enumerate(cells) if heading in cell.source)

    def code(start, stop):
        return [cell.source for cell in cells[start:stop] if cell.cell_type == "code"]

    return code(0, place("## 5 ·")), code(place("## 6 ·"), place("### Look inside"))


def run(cells, names, seed=0):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            exec(cell.replace("torch.manual_seed(0)", f"torch.manual_seed({seed})"), names)
    return names


def induction(names, layers):
    with torch.no_grad():
        logits, _ = names["inductors"][layers](names["letters"])
    return names["share_right"](logits)


def main():
    matplotlib.use("Agg")
    early, recall = sections()
    found = {}
    for seed in SEEDS:
        names = run(early, {}, seed)
        for name, accuracy in (
            ("reverse, with positions", names["accuracy"][True]),
            ("reverse, without", names["accuracy"][False]),
            ("induction, two layers", induction(names, 2)),
            ("induction, one layer", induction(names, 1)),
        ):
            found.setdefault(name, []).append(accuracy)
    for (d_k, scaled), accuracies in run(recall, names)["final"].items():
        found[f"recall, d_k = {d_k}, {'scaled' if scaled else 'not scaled'}"] = accuracies
    print(f"{'accuracy over ' + str(len(SEEDS)) + ' seeds':32s} worst   mean   best")
    for name, values in found.items():
        print(f"{name:32s} {np.min(values):.3f}  {np.mean(values):.3f}  {np.max(values):.3f}")


if __name__ == "__main__":
    main()
