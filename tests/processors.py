"""All tests and notebooks that train, and what runs them as on other processors: `python -m tests.processors`.

Each processor adds numbers up in an order of its own, so last bits differ, and hundreds of steps make that visible.
What is said of a training must hold on all of them. This machine stands in for older ones by leaving out instructions.
"""

import os
import platform
import subprocess
import sys
import time
from itertools import product

from tools.numbering import ROOT
from tools.series import find_notebook

# A file, or one of its tests. conftest.py and one_run.py turn red what steps an optimizer and is not listed here.
TRAINS = (
    "tests/test_jumps.py::test_what_is_stored_can_be_trained_again",
    "tests/test_jumps.py::test_the_diagonal_stands_in_the_weights_of_other_trainings",
    "tests/test_jumps.py::test_at_half_the_rate_twelve_heads_learn_nearly_all_of_it",
    "tests/test_letters.py::test_a_rate_may_depend_on_the_step",
    "tests/test_letters.py::test_a_text_of_ones_own_runs_through_the_notebook",
    "tests/test_letters.py::test_what_is_stored_can_be_trained_again",
    "tests/test_neighbours.py",
    "tests/test_seeds.py::test_without_a_division_a_head_learns_late_and_with_a_small_start_early",
    "tests/test_seeds.py::test_layer_1_must_reach_the_keys_of_layer_2_and_nothing_else",
    "tests/test_statements.py::test_adam_moves_a_number_whose_gradient_has_become_0",
    "tests/test_statements.py::test_dropout_tells_copied_heads_apart_and_no_gradient_does",
    "tests/test_statements.py::test_a_head_that_divides_by_d_k_learns_to_recall_as_well",
    "tests/test_todays_head.py::test_with_another_seed_a_window_repairs_rope_too",
    "tests/test_training.py",
    "tests/test_two_texts.py::test_what_is_stored_can_be_trained_again",
    "tests/test_writer.py::test_the_stored_weights_are_those_of_the_code",
    "tests/test_writer.py::test_in_seed_3_where_a_head_looks_tells_the_number_of_the_noun_after_that",
    *(
        f"notebooks/{find_notebook(lesson).built.name}"
        for lesson in (
            "scaling",
            "pytorch_module",
            "model_of_your_own",
            "bug_clinic",
            "train_and_look",
            "todays_head",
            "casebook",
        )
    ),
)


def listed(test):
    """Say whether a test, by pytest's name of it, is one of those that train."""
    return any(test == name or test.startswith((f"{name}::", f"{name}[")) for name in TRAINS)


UNLISTED = "a test or notebook that trains must stand in TRAINS of tests/processors.py, {!r} does not. Fix: add it."

PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "tests.one_run", "--nbval")
CAPABILITIES = ("default", "avx2", "avx512")  # of torch, from old to new
OLD_KERNELS = {"x86_64": "Nehalem", "AMD64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}  # of OpenBLAS


def capabilities():
    """Return which of CAPABILITIES this machine has."""
    import torch

    newest = torch.backends.cpu.get_cpu_capability().lower()
    return CAPABILITIES[: CAPABILITIES.index(newest) + 1] if newest in CAPABILITIES else CAPABILITIES[:1]


def settings(capability, threads):
    """Return the variables by which torch computes as on another processor, and with "default" NumPy, too."""
    import numpy as np

    found = {"ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    if capability == "default":
        found["MKL_CBWR"] = "COMPATIBLE"  # with which torch multiplies matrices
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))
        if platform.machine() in OLD_KERNELS:
            found["OPENBLAS_CORETYPE"] = OLD_KERNELS[platform.machine()]
    return found


def main(wanted):
    """Run what trains with each capability and number of threads, or with those that are wanted, on one thread."""
    has, red = capabilities(), []
    for threads, capability in product("1" if wanted else "12", wanted or CAPABILITIES):
        run = f"{capability}, {threads} thread(s)"
        if capability not in has:
            print(f"{run}: left out, this machine does not have it")
            continue
        variables, start = settings(capability, threads), time.perf_counter()
        print(" ".join(f"{name}='{value}'" for name, value in variables.items()), flush=True)
        command = [*PYTEST, "-m", "not repeats", *TRAINS]  # cells once: `make test` has run them a second time
        if subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode:
            red.append(run)
        print(f"{run}: {time.perf_counter() - start:.0f} s", flush=True)
    if red:
        sys.exit("red: " + "; ".join(red))


if __name__ == "__main__":
    main(sys.argv[1:])
