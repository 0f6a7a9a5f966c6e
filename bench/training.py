"""Accuracies of what three lessons train, over five seeds: their models, trained from other first weights."""

import contextlib
import io
from pathlib import Path

import matplotlib
import numpy as np
import torch

from attncourse.training import neighbours

ROOT = Path(__file__).resolve().parent.parent
SEEDS = range(5)


def sections():
    """Return the code cells of lesson train_and_look before its section 5."""
    from tools.build_notebooks import code_between

    return code_between("train_and_look", "# ", "## 5 ·")


def run_cells(cells, names, seed=0):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for cell in cells:
            cell = cell.replace("torch.manual_seed(0)", f"torch.manual_seed({seed})")
            exec(cell.replace("seed=0", f"seed={seed}"), names)
    return names


def induction(names, layers):
    with torch.no_grad():
        logits, _ = names["inductors"][layers](names["letters"])
    return names["share_right"](logits, names["wanted"])


def both_neighbours(num_heads, read_out, seed):
    """Return the share of places at which both neighbours are named right."""
    return neighbours.measured(neighbours.trained(num_heads, read_out, seed))["all right"]


def beyond(seed):
    """Return the accuracy of heads that learned to look one place back, by kind and length."""
    from attncourse.training.previous_letter import accuracy, trained

    found = {}
    for kind in ("RoPE", "learned", "sinusoids", "nothing"):
        model = trained(kind, seed)
        found |= {f"one back, {kind}, n = {n}": accuracy(model, n) for n in (32, 64, 128, 512)}
        found[f"one back, {kind}, n = 512, window"] = accuracy(model, 512, window=32)
    return found


def main():
    matplotlib.use("Agg")
    early = sections()
    found = {}
    for seed in SEEDS:
        names = run_cells(early, {}, seed)
        for name, accuracy in (
            ("both neighbours, 1 head, linear", both_neighbours(1, neighbours.linear, seed)),
            ("both neighbours, 2 heads, linear", both_neighbours(2, neighbours.linear, seed)),
            ("both neighbours, 1 head, hidden", both_neighbours(1, neighbours.with_hidden_layer, seed)),
            ("reverse, with positions", names["accuracy"][True]),
            ("reverse, without", names["accuracy"][False]),
            ("its weight on itself, without", names["on_itself"][1].item()),
            ("induction, two layers", induction(names, 2)),
            ("induction, one layer", induction(names, 1)),
            *beyond(seed).items(),
        ):
            found.setdefault(name, []).append(accuracy)
    print(f"{'accuracy over ' + str(len(SEEDS)) + ' seeds':32s} worst   mean   best")
    for name, values in found.items():
        print(f"{name:32s} {np.min(values):.3f}  {np.mean(values):.3f}  {np.max(values):.3f}")


if __name__ == "__main__":
    main()
