"""A class on a real JupyterHub: N accounts log in, get their notebooks, run them and move every slider in them.

The hub, its proxy, the servers and the kernels are those of a course, on this machine and its loopback address. What
is left out: the browsers, of which only the requests are made, the network, and what limits an account.

    make bench ARGS=hub                                    5, 10 and 20 accounts, one after the other
    python -m bench.hub --accounts 40 --think 8            other numbers
"""

import argparse
import asyncio
import collections
import concurrent.futures
import contextlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil

from tools.build_notebooks import has_tag
from tools.series import select_notebooks

from .local_hub import Hub, Lecturer, weigh
from .seat import Browser, Kernel
from .timing import verdict

NUMPY, TORCH = ("by_hand", "vectorized", "scaling"), ("pytorch_module", "multi_head")
THINK = 3.0  # mean pause after a cell, in seconds
LIMIT = 30  # minutes until a class that is not done is ended
MOST = 60  # accounts
SEAT = 0.7  # GB that must be free for each account, so that a machine in use is not filled up
WANTED = 472  # MB of an account, which is 450 MiB
DRAGS = 3  # when everybody moves a slider at once
CORRECTED, TRIED = "\n\n*Corrected by the lecturer.*", "# tried by"


class Class:
    """What one class does, and what was measured of it."""

    def __init__(self, hub, lecturer, notebooks, think):
        self.hub, self.lecturer, self.notebooks, self.think = hub, lecturer, notebooks, think
        self.kernels, self.failures = {}, []  # (account, notebook) -> Kernel
        self.seconds = collections.defaultdict(list)  # what was waited for -> how long, each time

    async def attend(self, accounts, lecture=True):
        """Let the accounts go through the notebooks; then all move a slider at once, and fetch a correction."""
        await asyncio.gather(*map(self.student, accounts))
        if lecture and not self.failures:
            await asyncio.gather(*map(self.all_move, accounts))
        if lecture and not self.failures:
            self.lecturer.correct(CORRECTED)
            await asyncio.gather(*map(self.fetch_correction, accounts))

    async def student(self, account):
        """Log in, follow the link to the notebooks, go through them."""
        rng = random.Random(account)
        await asyncio.sleep(rng.uniform(0, 20 * self.think))  # students arrive spread over time, not all at once
        browser = Browser(self.hub.address, account)
        with self.counting(f"{account}, at the door"):
            await self.time_call("logged in, server ready", browser.log_in)
            await self.time_call("link followed, files there", browser.follow, self.lecturer.address)
            for notebook in self.notebooks:
                with self.counting(f"{account}, notebook {notebook.slug}"):
                    await self.work(browser, notebook, rng)

    async def work(self, browser, notebook, rng):
        """Run a cell, think, move the sliders that have appeared; save what was tried, with its outputs."""
        path = f"attnlib/{notebook.built.name}"
        start = time.perf_counter()
        content, kernel_id = await asyncio.to_thread(browser.open, path)
        kernel = await Kernel.connect(browser.channels(kernel_id))
        self.kernels[browser.account, notebook.slug] = kernel
        self.seconds["notebook opened, kernel ready"].append(time.perf_counter() - start)
        first = next(i for i, cell in enumerate(content.cells) if has_tag(cell, "exercise"))
        content.cells[first + 1].source += f"\n{TRIED} {browser.account}"
        done = 0
        for cell in content.cells:
            if cell.cell_type != "code":
                continue
            start = time.perf_counter()
            cell.outputs = await kernel.execute(cell.source)
            self.seconds["a cell"].append(time.perf_counter() - start)
            await asyncio.sleep(rng.uniform(0, 2 * self.think))
            for slider, values in kernel.sliders()[done:]:
                self.seconds["a step of a slider"] += await kernel.drag(slider, values)
                done += 1
        await self.time_call("notebook saved", browser.save, path, content)

    async def all_move(self, account):
        """Move the last slider again and again: "now everybody move the slider"."""
        rng = random.Random(account)
        with self.counting(f"{account}, sliders at once"):
            kernel = self.kernels[account, self.notebooks[-1].slug]
            for _ in range(DRAGS):
                await asyncio.sleep(rng.uniform(0, 2))
                self.seconds["a step when all move one"] += await kernel.drag(*kernel.sliders()[-1])

    async def fetch_correction(self, account):
        """Follow the link again, all at once, and see that both are there: the correction and what was tried."""
        with self.counting(f"{account}, correction"):
            browser = Browser(self.hub.address, account)
            await asyncio.to_thread(browser.log_in)
            await self.time_call("link followed again, by all", browser.follow, self.lecturer.address)
            for notebook in self.notebooks:
                path = self.hub.home / account / "attnlib" / notebook.built.name
                text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
                for words in (CORRECTED, f"{TRIED} {account}"):
                    if words.strip() not in text:
                        raise RuntimeError(f"{notebook.slug} lacks {words.strip()!r}")

    async def time_call(self, what, call, *arguments):
        start = time.perf_counter()
        await asyncio.to_thread(call, *arguments)
        self.seconds[what].append(time.perf_counter() - start)

    @contextlib.contextmanager
    def counting(self, what):
        try:
            yield
        except Exception as error:
            self.failures.append(f"{what}: {type(error).__name__}: {error}")


def processors():
    """Return the seconds that all programs of the machine have computed."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system


def weights(hub):
    """Weigh what the hub has started, while it runs: {what: MB of each}, the fair share of all, their CPU seconds."""
    private, accounts = collections.defaultdict(list), collections.Counter()
    shared = seconds = 0.0
    for (account, what), processes in hub.processes().items():
        figures = [weigh(process) for process in processes]
        mb = sum(figure[0] for figure in figures)
        shared += sum(figure[1] for figure in figures)
        seconds += sum(sum(process.cpu_times()[:2]) for process in processes)
        private[what].append(mb)
        accounts[account] += mb
    accounts.pop("", None)
    return {**private, "account": list(accounts.values())}, shared, seconds


async def hold(room, hub, accounts, limit, lecture=True):
    """Let a class happen within its time, and weigh it before its kernels are closed; return the figures."""
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(len(accounts) + 2))
    start, machine, here = time.perf_counter(), processors(), time.process_time()
    try:
        await asyncio.wait_for(room.attend(accounts, lecture), 60 * limit)
    except asyncio.TimeoutError:
        room.failures.append(f"not done after {limit:g} minutes")
    seconds = time.perf_counter() - start
    private, shared, cpu = weights(hub)
    for kernel in room.kernels.values():
        kernel.socket.close()
    return {
        "seconds": seconds,
        "private": private,
        "shared": shared,
        "ours": (cpu + time.process_time() - here) / seconds,
        "all": (processors() - machine) / seconds,
        "cpu": cpu / len(accounts),
    }


def run_class(count, names, think, limit=LIMIT, lecture=True):
    """Start a hub, let a class happen, end the hub; return the class and its figures."""
    accounts = [f"student{number:02}" for number in range(1, count + 1)]
    home = Path(tempfile.mkdtemp(prefix="hub-"))
    try:
        notebooks = select_notebooks(names)
        lecturer, hub = Lecturer(home, notebooks), Hub(home)
        try:
            room = Class(hub, lecturer, notebooks, think)
            return room, asyncio.run(hold(room, hub, accounts, limit, lecture))
        finally:
            hub.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def spread(seconds, unit=1.0, digits=1):
    """Return "p50 / p95"."""
    if len(seconds) < 5:
        return "too few"
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return f"{statistics.median(seconds) * unit:.{digits}f} / {p95 * unit:.{digits}f}"


def median(figures):
    return f"{statistics.median(figures):.0f}" if figures else "none"


def column(room, figures):
    """Return what one class prints: {what: text}."""
    waits, private = room.seconds, figures["private"]
    slow = ("logged in, server ready", "link followed, files there", "notebook opened, kernel ready", "notebook saved")
    quick = ("a cell", "a step of a slider", "a step when all move one")
    return {
        "failures": str(len(room.failures)),
        "cells run": str(len(waits["a cell"])),
        "steps of sliders": str(sum(len(waits[what]) for what in quick[1:])),
        **{f"{what}, s": spread(waits[what]) for what in slow},
        **{f"{what}, ms": spread(waits[what], 1000, 0) for what in quick},
        "link followed again, by all, s": spread(waits["link followed again, by all"]),
        "server, MB": median(private.get("server")),
        **{f"kernel of {name}, MB": median(private.get(name)) for name in NUMPY},
        "account, MB": median(private.get("account")),
        "hub and proxy, MB": median(private.get("hub and proxy")),
        "all, fair share, GB": f"{figures['shared'] / 1000:.1f}",
        "processor time of an account, s": f"{figures['cpu']:.0f}",
        "cores busy: class / all programs": f"{figures['ours']:.1f} / {figures['all']:.1f}",
        "took, minutes": f"{figures['seconds'] / 60:.1f}",
    }


def table(columns):
    """Return the lines of a table: a row for each figure, a column for each class, {accounts: column}."""
    lines = [f"{'accounts':34}" + "".join(f"{count:>15}" for count in columns)]
    for what in next(iter(columns.values())):
        lines.append(f"{what:34}" + "".join(f"{one[what]:>15}" for one in columns.values()))
    return lines


def report(sizes, think, limit):
    print("Waits: p50 / p95. MB: private memory, the median of the class. Fair share: a shared page counted in parts.")
    columns, heaviest = {}, 0.0
    for count in sizes:
        room, figures = run_class(count, NUMPY, think, limit)
        columns[count] = column(room, figures)
        heaviest = max([heaviest, *figures["private"]["account"]])
        print(f"  {count} accounts, {len(room.failures)} failures", file=sys.stderr, flush=True)
        for failure in room.failures[:5]:
            print(f"  {failure}", file=sys.stderr, flush=True)
    print(*table(columns), sep="\n")
    print(f"the largest account: {heaviest:.0f} MB  {verdict(heaviest, WANTED)}")


def torch_kernels():
    room, figures = run_class(2, TORCH, 0, lecture=False)
    print("kernels with torch: " + ", ".join(f"{n}: {median(figures['private'].get(n))} MB" for n in TORCH))
    print(*room.failures, sep="\n", end="")


def check_counts(counts):
    """Return the numbers of accounts; end the program if one is too many for the machine as it is now."""
    free = psutil.virtual_memory().available / 1e9
    for count in counts:
        if not 1 <= count <= MOST:
            sys.exit(f"--accounts takes numbers from 1 to {MOST}, this is {count}.")
        if count * SEAT > free:
            sys.exit(
                f"{count} accounts may take {count * SEAT:.0f} GB of memory, and {free:.0f} GB are free. "
                f"Fix: --accounts {int(free / SEAT)}, or end other programs."
            )
    return counts


def main(arguments=()):
    parser = argparse.ArgumentParser(prog="python -m bench.hub")
    parser.add_argument("--accounts", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--think", type=float, default=THINK, help="mean pause after a cell, in seconds")
    parser.add_argument("--limit", type=float, default=LIMIT, help="minutes until a class is ended")
    options = parser.parse_args(arguments)
    sizes = check_counts(options.accounts)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the hub is ended, too
    total = psutil.virtual_memory().total / 1e9
    print(f"{psutil.cpu_count()} cores, {total:.0f} GB, load before: {psutil.getloadavg()[0]:.1f};", end=" ")
    print(f"one thread a kernel; a pause of 0 to {2 * options.think:g} s after a cell")
    report(sizes, options.think, options.limit)
    torch_kernels()


if __name__ == "__main__":
    main(sys.argv[1:])
