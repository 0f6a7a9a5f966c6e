"""A full class on this machine: N students run notebooks 01 to 03 at the same time and move every slider in them.

Each student is a Jupyter kernel for each notebook, started and driven as a Jupyter server does it; a slider moves as a
front end moves it, by a message that sets the widget's value, and the step ends when the new picture has come back.
Left out: the servers (one is started and weighed), the browsers, the network, logins.

    python -m bench class                                  10, 20 and 40 students
    python -m bench.class --students 60 --think 5          other numbers
"""

import argparse
import asyncio
import contextlib
import itertools
import math
import os
import queue
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
from jupyter_client import AsyncKernelManager

from .timing import verdict

ROOT = Path(__file__).resolve().parent.parent
NUMPY, TORCH = ("01", "02", "03"), ("04", "06")
# Many kernels share few cores: a kernel that starts a thread for each core slows all others down, and gains nothing.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
MB = 1e6
PATIENCE = 300  # seconds until a kernel that does not answer counts as a failure
DRAG = 12  # steps of a slider in one go; a front end sends the next one when the last is answered


class Kernel:
    """One notebook of one student."""

    def __init__(self):
        self.manager = AsyncKernelManager()
        self.models = {}  # comm id -> state of the widget

    async def start(self):
        await self.manager.start_kernel(
            extra_arguments=["--log-level=ERROR"],  # without it each kernel warns of TCP, which is all Jupyter uses
            env={**os.environ, **ONE_THREAD},
            cwd=str(ROOT / "notebooks"),
        )
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=PATIENCE)
        self.process = psutil.Process(self.manager.provisioner.pid)
        return self

    async def run(self, code):
        """Execute a cell; raise RuntimeError if it fails."""
        return await self._answer(self.client.execute(code, allow_stdin=False))

    async def move(self, slider, value):
        """Set a slider as a front end does; return the seconds until the changed picture was here."""
        key = "index" if "index" in self.models[slider] else "value"
        self.models[slider][key] = value
        data = {"method": "update", "state": {key: value}, "buffer_paths": []}
        message = self.client.session.msg("comm_msg", {"comm_id": slider, "data": data})
        start = time.perf_counter()
        self.client.shell_channel.send(message)
        seen = await self._answer(message["header"]["msg_id"], start)
        if seen is None:
            raise RuntimeError("a slider moved, and its picture did not")
        return seen

    def sliders(self):
        """Return [(comm id, values)] of the sliders there are now."""
        found = []
        for comm, state in self.models.items():
            if state.get("_model_name") == "IntSliderModel":
                found.append((comm, range(state["min"], state["max"] + 1)))
            elif state.get("_model_name") == "SelectionSliderModel":
                found.append((comm, range(len(state["_options_labels"]))))
        return found

    async def _answer(self, request, start=0.0):
        """Read what the kernel sends until it is idle again; return when a picture changed, counted from `start`."""
        seen = None
        while True:
            try:
                message = await self.client.get_iopub_msg(timeout=PATIENCE)
            except queue.Empty:
                raise RuntimeError(f"no answer in {PATIENCE} s") from None
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            if kind == "comm_open":
                self.models[content["comm_id"]] = content["data"].get("state", {})
            if kind == "comm_msg" and content["data"].get("method") == "update":
                state = self.models[content["comm_id"]]
                if state.get("_model_name") == "HTMLModel" and content["data"]["state"].get("value"):
                    if "<pre>" in content["data"]["state"]["value"]:
                        raise RuntimeError("a view shows an error")
                    seen = time.perf_counter() - start
                state.update(content["data"]["state"])
            if kind == "status" and content["execution_state"] == "idle":
                return seen

    async def close(self):
        if hasattr(self, "client"):
            self.client.stop_channels()
        with contextlib.suppress(RuntimeError):
            await self.manager.shutdown_kernel(now=True)


class Class:
    """What one class has open, and what was measured."""

    def __init__(self, think):
        self.think = think
        self.kernels, self.failures = {}, []  # (student, notebook) -> Kernel
        self.steps, self.at_once = [], []  # seconds of each slider step

    async def open(self, student, notebook):
        kernel = self.kernels[student, notebook] = Kernel()
        return await kernel.start()

    async def student(self, number, notebooks):
        """Go through the notebooks: run a cell, think, move the sliders that have appeared."""
        rng = random.Random(number)
        await asyncio.sleep(rng.uniform(0, 20 * self.think))  # nobody comes at the same second
        for notebook in notebooks:
            with self.counting(f"student {number}, notebook {notebook}"):
                kernel = await self.open(number, notebook)
                path = next((ROOT / "notebooks").glob(f"{notebook}_*.ipynb"))
                done = 0
                for cell in nbformat.read(path, as_version=4).cells:
                    if cell.cell_type != "code":
                        continue
                    await kernel.run(cell.source)
                    await asyncio.sleep(rng.uniform(0, 2 * self.think))
                    for slider, values in kernel.sliders()[done:]:
                        self.steps += await drag(kernel, slider, values, rng)
                        done += 1

    async def lecture(self, number, notebook, drags):
        """Move the last slider again and again: "now everybody move the slider"."""
        rng = random.Random(number)
        with self.counting(f"student {number}, sliders at once"):
            kernel = self.kernels[number, notebook]
            for _ in range(drags):
                await asyncio.sleep(rng.uniform(0, 2 * self.think))
                self.at_once += await drag(kernel, *kernel.sliders()[-1], rng)

    @contextlib.contextmanager
    def counting(self, what):
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {error}")

    async def close(self):
        await asyncio.gather(*(kernel.close() for kernel in self.kernels.values()), return_exceptions=True)


async def drag(kernel, slider, values, rng):
    """Drag to a place and back again, one step at a time; return the seconds of each step."""
    length = min(DRAG, len(values)) // 2
    now = kernel.models[slider].get("index", kernel.models[slider].get("value"))
    at = values.index(now) if now in values else 0
    way = 1 if at + length < len(values) else -1
    there = [values[at + way * i] for i in range(1, length + 1)]
    back = [*there[-2::-1], values[at]]
    return [await kernel.move(slider, value) for value in there + back]


def memory(process):
    """Return (private, fair share) in bytes: USS is what nobody else holds, PSS counts a shared page in parts."""
    info = process.memory_full_info()
    return info.uss, getattr(info, "pss", info.uss)


async def run_class(students, notebooks, think, drags=3):
    room, bare = Class(think), Class(think)
    start = time.perf_counter()
    try:
        for number in range(2):  # a bare kernel is weighed among others: alone, it would not share a page
            await (await bare.open(number, "bare")).run("1")
        await asyncio.gather(*(room.student(number, notebooks) for number in range(students)))
        if not room.failures and drags:
            await asyncio.gather(*(room.lecture(number, notebooks[-1], drags) for number in range(students)))
        seconds = time.perf_counter() - start
        alone = statistics.median(memory(kernel.process)[0] for kernel in bare.kernels.values())
        above, share, cpu = {}, 0, 0.0
        for (number, notebook), kernel in room.kernels.items():
            with room.counting(f"student {number}, notebook {notebook}, at the end"):
                private, fair = memory(kernel.process)
                above.setdefault(notebook, []).append((private - alone) / MB)
                share += fair / MB
                cpu += sum(kernel.process.cpu_times()[:2])
        return room, alone / MB, above, share, cpu, seconds
    finally:
        await room.close()
        await bare.close()


def milliseconds(steps):
    if len(steps) < 20:
        return "too few"
    return f"{statistics.median(steps) * 1e3:.0f} / {statistics.quantiles(steps, n=20)[-1] * 1e3:.0f}"


COLUMNS = "{:>8} {:>8} {:>5} {:>5} {:>5} {:>11} {:>9} {:>13} {:>13} {:>8} {:>7}"


def table(sizes, think):
    print("MB above a bare kernel: private memory, the median of each notebook. Student, class: fair share of all.")
    print("Slider: ms from the message to the picture, p50 / p95; at once: when all students move one.")
    print(
        COLUMNS.format(
            "students", "failures", *NUMPY, "student, MB", "class, GB", "slider", "at once", "CPU, s", "took, s"
        )
    )
    most = {}
    for students in sizes:
        room, bare, above, share, cpu, seconds = asyncio.run(run_class(students, NUMPY, think))
        most[students] = max(itertools.chain(*above.values()), default=math.inf)
        medians = [f"{statistics.median(above.get(name, [math.nan])):.0f}" for name in NUMPY]
        figures = f"{share / students:.0f}", f"{share / 1e3:.1f}", milliseconds(room.steps), milliseconds(room.at_once)
        row = students, len(room.failures), *medians, *figures, f"{cpu / students:.1f}", f"{seconds:.0f}"
        print(COLUMNS.format(*row), flush=True)
        for failure in room.failures[:5]:
            print(f"  {failure}")
    print(f"a bare kernel: {bare:.0f} MB; the largest of all above it: {max(most.values()):.0f} MB  ", end="")
    print(verdict(max(most.values()), 150))


def torch_kernels():
    _, _, above, *_ = asyncio.run(run_class(2, TORCH, 0, drags=0))
    medians = ", ".join(f"{name}: {statistics.median(figures):.0f} MB" for name, figures in above.items())
    print(f"kernels with torch, above a bare one, {medians}")


def server():
    """Weigh one JupyterLab server: under JupyterHub every student has one."""
    from tests.browser.front_end import FrontEnd

    home = Path(tempfile.mkdtemp())
    try:
        front_end = FrontEnd("lab", ROOT / "notebooks", home)
        try:
            time.sleep(3)
            print(
                f"a JupyterLab server, no kernel open: {memory(psutil.Process(front_end.process.pid))[0] / MB:.0f} MB"
            )
        finally:
            front_end.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main(arguments=()):
    parser = argparse.ArgumentParser(prog="python -m bench.class")
    parser.add_argument("--students", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--think", type=float, default=0.5, help="mean pause after a cell, in seconds")
    options = parser.parse_args(arguments)
    total = psutil.virtual_memory().total / 1e9
    print(
        f"{os.cpu_count()} cores, {total:.0f} GB, load before: {psutil.getloadavg()[0]:.1f}; one thread a kernel;",
        end=" ",
    )
    print(f"a pause of 0 to {2 * options.think:g} s after a cell")
    server()
    table(options.students, options.think)
    torch_kernels()


if __name__ == "__main__":
    main(sys.argv[1:])
