"""The plugin that continues in nbval's kernel: each fault it is there for, seen to fail."""

import gc
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from one_run import NO_TORCH, OFFLINE_AND_READ_ONLY, grows

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('written.txt', 'w')", PermissionError),
        ("__import__('os').mkdir('made')", PermissionError),
        ("__import__('urllib.request').request.urlopen('http://github.com')", OSError),
        ("__import__('socket').create_connection(('192.0.2.1', 80), 1)", OSError),
        (f"{NO_TORCH}\nimport torch.nn", ImportError),
    ],
)
def test_the_hooks_forbid_writing_connecting_and_torch(tmp_path, code, error):
    (tmp_path / "notebooks").mkdir()
    script = f"{OFFLINE_AND_READ_ONLY}\nopen(_sys.executable, 'rb').close()\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "notebooks", capture_output=True, encoding="utf-8", check=False
    )
    told = {PermissionError: "cannot be written", OSError: "no network", ImportError: "No module named 'torch'"}
    assert told[error] in done.stderr
    assert not list((tmp_path / "notebooks").iterdir())


def exercise(number, solution):
    """The four cells of an exercise: the key of Anna of lesson by_hand, which is [1, 1, 0]."""
    return [
        new_markdown_cell(
            f"### Exercise {number} · A key\n\n**Goal.** Compute the key. *2 minutes, easy.*",
            metadata={"tags": ["exercise"]},
        ),
        new_code_cell("my_key = None"),
        new_code_cell("verdict = check.key_of_anna(my_key)\nverdict"),
        new_markdown_cell(
            f"<details><summary>Solution</summary>\n\n```python\n{solution}\n```\n\n</details>",
            metadata={"tags": ["solution"]},
        ),
    ]


TRAIN = """torch.manual_seed(0)
model = torch.nn.Linear(1, 1)
options = {"steps": 3, "lr": 0.1}
history = training.train(model, lambda g: calls.append(1) or torch.randn(4, 1, generator=g), loss, **options)"""
CELLS = [
    new_code_cell("import torch\nfrom attnlib import live\nfrom attncourse import check, training"),
    new_code_cell("calls, counts = [], []\nloss = lambda model, batch: (model(batch) - batch).square().mean()"),
    new_code_cell(TRAIN),
    new_code_cell("assert len(calls) == 3 and len(history.losses) == 3, calls"),  # the second time nothing was drawn
    *exercise("1.1", "my_key = [1, 1, 0]"),
    *exercise("1.2", "my_key = [1, 1, 1]"),
    new_code_cell("assert my_key is None"),  # the solutions are gone
    new_code_cell("once = {1: 2}"),
    new_code_cell("del once[1]"),
    new_code_cell("open('written.txt', 'w')"),
    new_code_cell("view = live.masks(n=4, d_k=(1, 64))\nstuck = live.masks(n=4, d_k=(8, 8))"),
]


class Failures(list):
    """A plugin that keeps (item, what it says) of all that fails."""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.append((report.nodeid.split("::")[1], report.longreprtext))


@pytest.mark.slow
def test_a_notebook_with_every_fault(tmp_path):
    """Run by a pytest within this one: a process of its own would import again for five seconds."""
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "x.ipynb"
    nbformat.write(new_notebook(cells=CELLS), path)
    failures = Failures()
    command = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "tests.one_run", "-p", "no:xdist"]
    pytest.main([*command, "-p", "no:cacheprovider", "--nbval", str(path)], plugins=[failures])
    for file in gc.get_objects():  # nbval leaves open where it puts what a kernel writes to stderr
        # type, not isinstance: a weak proxy among them would ask for an object that is gone
        if type(file) is io.TextIOWrapper and file.name == os.devnull and file.mode == "w":
            file.close()
    assert [item for item, _ in failures] == [
        "Cell 7, solved",
        "Cell 10, a second time",
        "Cell 11",
        "Cell 11, a second time",
        "Cell 12, then every slider",
    ], failures
    told = "".join(text for _, text in failures)
    assert "KeyError" in told and "this folder cannot be written to" in told


@pytest.mark.parametrize(
    ("title", "first", "last"),
    [("not scaled", 0.5, 0.5), ("divided by sqrt(embed_dim)", 0.5, 0.5), ("divided by sqrt(d_k)", 0.5, 0.6)],
)
def test_what_the_maps_must_do_as_d_k_grows(title, first, last):
    with pytest.raises(AssertionError, match=re.escape(title)):
        grows(title, first, last)
    assert not grows("a trained map", first, last)
