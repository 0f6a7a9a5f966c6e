"""Run a learner's code within a time limit, and first in a copy of this process: a loop inside C can only be stopped by
ending its process.

The copy is made by fork, so that it needs no import and no pickle, and it is silent. Its results are thrown away; what
is kept is how far it came. Linux only: macOS libraries do not bear a fork, Windows has none.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
import warnings


class TimeUp(BaseException):  # not an Exception: a learner's `except Exception` must not swallow it
    pass


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeUp after `seconds`. That takes POSIX signals and the main thread; elsewhere print how to stop."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        with _reminder(seconds):
            yield
        return

    def stop(signum, frame):
        raise TimeUp

    previous = signal.signal(signal.SIGALRM, stop)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)
        signal.signal(signal.SIGALRM, previous)


@contextlib.contextmanager
def _reminder(seconds):
    """Print after `seconds` that the code still runs. Windows and browsers allow no more."""
    text = f"Your code has been running for {seconds:g} seconds. If it does not end, interrupt the kernel (■)."
    timer = threading.Timer(seconds, print, (text,))
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # a browser starts no threads
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def rehearse(calls, seconds):
    """Return how many of `calls` are safe to make here, and why the next is not: "late", a signal's name, or "".

    Nothing is said of code that only waits: a fork can cause that, and a signal can end it.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads: the copy uses none of them
        pid = os.fork()
    if pid == 0:
        _perform(calls, write, seconds)
    os.close(write)
    done, timed_out = 0, True
    try:
        deadline = time.monotonic() + seconds
        while select.select([read], [], [], max(0, deadline - time.monotonic()))[0]:
            news = os.read(read, 64)
            done += len(news)
            if not news or done > len(calls):
                timed_out = False
                break
    finally:
        if timed_out:
            os.kill(pid, signal.SIGKILL)
        os.close(read)
        _, status, usage = os.wait4(pid, 0)
    if timed_out and usage.ru_utime + usage.ru_stime > seconds / 10:
        return done, "late"
    if not timed_out and os.WIFSIGNALED(status):
        return done, signal.Signals(os.WTERMSIG(status)).name
    return len(calls), ""


def _perform(calls, write, seconds):
    """Make the calls silently, send a byte after each and one at the end; never return."""
    with contextlib.suppress(BaseException):
        import resource  # not on Windows

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds)  # also if nobody is left to end it
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        sys.stdout = sys.stderr = os.fdopen(silence, "w", encoding="utf-8")
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # the threads of the pool were not copied
        for call in calls:
            call()
            os.write(write, b".")
        os.write(write, b".")
    os._exit(0)
