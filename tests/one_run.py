"""A pytest plugin: nbval runs a notebook once, and the same kernel then does what a reader does.

    python -m pytest -p tests.one_run --nbval notebooks

nbval's own items stay as they are. Between them stand: each cell a second time, and each solution in the place of its
stub. After the last cell every slider is moved. All this without a network, and in a folder that cannot be written to.
"""

# ruff: noqa: E402
import os
import re
import sys
from collections import defaultdict

import pytest

sys.modules.setdefault("rfc3987_syntax", None)  # as in conftest.py, which comes too late: plugins are imported first

from nbformat.v4 import new_code_cell
from nbval.plugin import IPyNbCell, IPyNbFile

from tests.processors import UNLISTED, listed
from tools.handouts import exercises
from tools.series import SERIES

FREE = {notebook.name for notebook in SERIES if notebook.d_k == "free"}
WITHOUT_TORCH = {notebook.name for notebook in SERIES if notebook.torch == "no"}

os.environ["ATTNLIB_MINE"] = ""  # what the person at this machine has kept is left alone

# Python tells a hook before it opens a file or a connection. What the hook raises is what a folder without write
# permission, or a machine without a network, would raise; neither could be had for a test that runs as root.
OFFLINE_AND_READ_ONLY = """
import os as _os, sys as _sys

def _forbid(event, arguments):
    if event in ("open", "os.mkdir", "os.remove", "os.rename"):
        writes = event != "open" or arguments[2] & (_os.O_WRONLY | _os.O_RDWR | _os.O_CREAT)
        path = arguments[0]
        if writes and isinstance(path, str | bytes) and _os.path.abspath(_os.fsdecode(path)).startswith(_root):
            raise PermissionError(f"this folder cannot be written to: {path}")
    elif event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        address = arguments[1] if event in ("socket.connect", "socket.sendto") else arguments
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost", None):
            raise OSError(f"no network: {address[0]}")

_root = _os.path.dirname(_os.getcwd())
_sys.addaudithook(_forbid)
"""

# Where torch is installed, a notebook that needs none has none, either.
NO_TORCH = """
def _miss(event, arguments):
    if event == "import" and arguments[0] == "torch":
        raise ModuleNotFoundError("No module named 'torch'")

_sys.addaudithook(_miss)
"""

# A cell that trains gives the second time what it gave the first time: the same seeds, the same weights. So the second
# time they are put back, and the minutes of training are spent once.
# Two modules of the course train with the same loop; they take it from `training` when a cell imports them.
TRAINS = r"attncourse.*\b(training|neighbours|previous_letter)\b"
TRAIN_ONCE = """
from attncourse import training as _training

_train = _training.train

def _train_once(model, *arguments, **options):
    if _second_time:
        weights, history = _trained.pop(0)
        model.load_state_dict(weights)
        return history
    history = _train(model, *arguments, **options)
    _trained.append(({name: tensor.clone() for name, tensor in model.state_dict().items()}, history))
    return history

_training.train = _train_once
"""

# What trains depends on the processor, so `make test-processors` must know it, as conftest.py says of tests.
TRAIN_NEVER = """
from torch.optim.optimizer import register_optimizer_step_pre_hook as _before_each_step

def _refuse(*_):
    raise AssertionError({!r})

_before_each_step(_refuse)
"""

# What TRAIN_ONCE does, for the stills of live views, whose frames are most of what it takes to show a view.
DRAW_ONCE = """
from attnlib import live as _live

_move, _moved, _trained, _second_time = _live.LiveView._animated_png, {}, [], False

def _move_once(view, figure):
    first = view.picture.value
    if first not in _moved or not _second_time:
        _moved[first] = _move(view, figure)
    return _moved[first]

_live.LiveView._animated_png = _move_once
"""

# Views without a name count, too. Of the two that a cell made by running twice, which start alike, one is moved.
MOVE_EVERY_SLIDER = """
import gc as _gc
from attnlib import live as _live

def _values(slider):
    if isinstance(slider.value, str) and not hasattr(slider, "options"):
        return [slider.value, "<b>two</b> words"]
    if hasattr(slider, "options"):
        return [value for _, value in slider._options_full]
    step = max(1, (slider.max - slider.min) // 40)
    return list(range(slider.min, slider.max, step)) + [slider.max]

_views = {_v.picture.value: _v for _v in _gc.get_objects() if issubclass(type(_v), _live.LiveView)}
assert _views, "no live view"
for _view in _views.values():
    for _name, _slider in _view.sliders.items():
        _start, _pictures, _peak = _slider.value, [], []
        for _value in _values(_slider):
            _slider.value = _value
            assert "<pre>" not in _view.picture.value, _view.picture.value
            _pictures.append(_view.picture.value)
            _peak.append({title: float(w.max(-1).mean()) for title, w in _view.shown.items()})
        print(_name, len(_pictures), len(set(_pictures)))
        for _title in _peak[0].keys() & _peak[-1].keys():  # a message shows no map
            print("|".join([_title, f"{_peak[0][_title]:.6f}", f"{_peak[-1][_title]:.6f}"]))
        _slider.value = _start
"""


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    files = yield
    return [Notebook.from_parent(parent, path=file_path) if isinstance(file, IPyNbFile) else file for file in files]


class Notebook(IPyNbFile):
    def collect(self):
        self.add_marker("slow")  # all its cells: `make test` selects them with what else takes long
        items = list(super().collect())
        solutions = {place + 1: (self.nb.cells[place].source, code) for place, _, code in exercises(self.nb)}
        places = [i for i, cell in enumerate(self.nb.cells) if cell.cell_type == "code"]
        for place, item in zip(places, items, strict=True):
            yield item
            yield SecondTime.after(item, "a second time", item.cell.source)
            if place in solutions:
                yield Solved.after(item, "solved", item.cell.source).between(*solutions[place])
        yield Sliders.after(items[-1], "then every slider", MOVE_EVERY_SLIDER)

    def setup(self):
        super().setup()
        self.skip_compare += ("image/svg+xml",)  # nbval leaves out PNG, too: training differs from machine to machine
        self.run(OFFLINE_AND_READ_ONLY)
        if self.path.stem in WITHOUT_TORCH:
            self.run(NO_TORCH)
        elif self.nodeid.startswith("notebooks/") and not listed(self.nodeid):
            self.run(TRAIN_NEVER.format(UNLISTED.format(self.nodeid)))
        self.run(DRAW_ONCE)
        if any(re.search(TRAINS, cell.source) for cell in self.nb.cells):
            self.run(TRAIN_ONCE)

    def run(self, code):
        NotCompared.from_parent(
            self, name="code of the tests", cell_num=0, cell=new_code_cell(code), options=RUN
        ).runtest()


RUN = defaultdict(bool)  # nbval compares nothing and expects no exception


class NotCompared(IPyNbCell):
    """Code that runs in the kernel of a notebook after one of its cells; nbval reports an exception as of any cell."""

    @classmethod
    def after(cls, item, what, code):
        options = RUN | {"check_exception": item.options["check_exception"]}
        cell = new_code_cell(code)
        name = f"{item.name}, {what}"
        made = cls.from_parent(item.parent, name=name, cell_num=item.cell_num, cell=cell, options=options)
        if cls is not Solved:
            made.add_marker("repeats")
        return made


class SecondTime(NotCompared):
    def runtest(self):
        self.parent.run("_second_time = True")
        try:
            super().runtest()
        finally:
            self.parent.run("_second_time = False; _trained.clear(); _moved.clear()")


class Solved(NotCompared):
    """The check of an exercise after its solution; then the stub again, for the cells that follow."""

    def between(self, stub, solution):
        self.stub, self.solution = stub, solution
        return self

    def runtest(self):
        self.parent.run(self.solution)
        super().runtest()
        verdict = self.test_outputs[-1].data["text/plain"]
        self.parent.run(f"{self.stub}\n{self.cell.source}")
        assert verdict.startswith("✓"), verdict


class Sliders(NotCompared):
    """Unscaled weights grow peakier with d_k; scaled ones do not. The number of heads lowers d_k, so it is reversed.

    Divided by sqrt(embed_dim) they grow sharper, too: that is how they get too pale as heads are added.
    """

    def runtest(self):
        super().runtest()
        seen = 0
        for line in "".join(output.text for output in self.test_outputs if output.output_type == "stream").splitlines():
            if "|" not in line:
                slider, steps, different = line.rsplit(maxsplit=2)
                assert int(different) > int(steps) / 2, line
            elif slider in ("d_k", "num_heads"):
                title, *ends = line.split("|")
                first, last = map(float, ends if slider == "d_k" else reversed(ends))
                seen += grows(title, first, last)
        # What is trained, or scaled by other rules, may be sharp or pale for good reasons. The features that
        # program_a_head adds are empty: without the division nothing grows. There only the moving counts.
        assert seen >= 2 or self.parent.path.stem in FREE


def grows(title, first, last):
    """Hold the weights of a known title to what the series says of them; return whether it says anything."""
    if title in ("not scaled", "divided by sqrt(embed_dim)"):
        assert last > first + 0.1, (title, first, last)
    elif title == "divided by sqrt(d_k)":
        assert last < first + 0.05, (title, first, last)
    elif title == "nn.Linear's default":  # how a fresh layer starts: always undecided
        assert abs(last - first) < 0.1, (title, first, last)
    elif title == "Xavier":  # its range shrinks
        assert last < first - 0.1, (title, first, last)
    else:
        return False
    return True
