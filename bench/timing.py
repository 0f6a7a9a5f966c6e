"""Time things side by side.

Only ratios mean anything: machines differ, and so does the load of one machine from minute to minute.
"""

import statistics
import time

SAMPLE = 0.005  # seconds: calls much shorter than this are timed several at once


def alternate(contestants, seconds, rounds=5):
    """Time callables in turn, A B C, B C A, ...; return {name: [seconds per call, one for each round]}.

    Taking turns exposes all of them to the same load. Runs for about `seconds`, and for at least `rounds` rounds.
    """
    names = list(contestants)
    repeats = {}
    for name, call in contestants.items():
        call()  # warm up: allocators, threads, caches
        start = time.perf_counter()
        call()
        repeats[name] = max(1, round(SAMPLE / (time.perf_counter() - start)))
    times = {name: [] for name in names}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times[names[0]]) < rounds:
        for name in names:
            call, n = contestants[name], repeats[name]
            start = time.perf_counter()
            for _ in range(n):
                call()
            times[name].append((time.perf_counter() - start) / n)
        names.append(names.pop(0))
    return times


def compare(times, ours, theirs, wanted=None):
    """Say how long `ours` takes as a multiple of `theirs`: ratio of the medians, and median of the paired ratios.

    The verdict goes by the paired ratios, which a change of load in the middle of the run moves least.
    """
    medians = statistics.median(times[ours]) / statistics.median(times[theirs])
    paired = statistics.median(a / b for a, b in zip(times[ours], times[theirs], strict=True))
    return f"{medians:5.2f} {paired:5.2f}  {verdict(paired, wanted)}"


def verdict(figure, wanted):
    if wanted is None:
        return ""
    return f"wanted <= {wanted:.2f} {'ok' if figure <= wanted else 'MISSED'}"
