"""Run a learner's code within a time limit, and first in a copy of this process: a loop inside C can only be stopped by
ending its process.

The copy is made by fork, so that it needs no import and no pickle, and it is silent. Its results are thrown away; what
is kept is how far it came. Linux only: macOS libraries do not bear a fork, Windows has none.

What is not stopped, since this protects a notebook from slips, not a grader from an attacker (the report of
a class runs answers of others): an answer that writes or deletes files, sends, or starts programs; one that behaves
otherwise in a copy than in the notebook; one that goes on in a thread; what is written past `sys.stdout`, by `os.write`
or from C; and where no copy is made, also code that ends Python, closes its files, or swallows TimeUp.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
import warnings

MOST_WORDS = 20_000  # characters that one check lets through
_GRACE = 1.0  # seconds that code has to end after it was told to
_CALLED, _TOLD, _DONE = b".", b"t", b"!"


class TimeUp(BaseException):  # not an Exception: a learner's `except Exception` must not swallow it
    pass


class _FewWords:
    """A stream that passes on no more than MOST_WORDS characters."""

    def __init__(self, stream):
        self._stream, self._left = stream, MOST_WORDS

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        if self._left > 0:
            more = "" if len(text) <= self._left else "\n... Your code prints more; the rest is left out.\n"
            self._stream.write(text[: self._left] + more)
        self._left -= len(text)
        return len(text)


@contextlib.contextmanager
def few_words():
    """Keep what a learner's code prints short: no page can show a million lines, and the kernel would send them all."""
    with contextlib.redirect_stdout(_FewWords(sys.stdout)), contextlib.redirect_stderr(_FewWords(sys.stderr)):
        yield


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
    """Return how many of `calls` are safe to make here, and why the next is not: "late", a signal, "an exit", or "".

    Code that only waits is told to end, as it will be here, and called late if it goes on: a fork can make it wait.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads: the copy uses none of them
        pid = os.fork()
    if pid == 0:
        _perform(calls, write, seconds)
    os.close(write)
    news, ended = b"", False
    try:
        news, ended = _news(read, seconds)
        if not ended:
            os.kill(pid, signal.SIGUSR1)
            more, ended = _news(read, _GRACE)
            news += more
    finally:
        if _DONE not in news:
            os.kill(pid, signal.SIGTERM if ended else signal.SIGKILL)
        os.close(read)
        _, status, usage = os.wait4(pid, 0)
    done = news.count(_CALLED)
    if _DONE in news:
        return len(calls), ""
    if ended:  # the copy closed the pipe before it reported that all was done
        by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else signal.SIGTERM
        return done, "an exit" if by == signal.SIGTERM else signal.Signals(by).name
    late = _TOLD in news or usage.ru_utime + usage.ru_stime > seconds / 10
    return (done, "late") if late else (len(calls), "")


def _news(read, seconds):
    """Return what the copy sends within `seconds`, and whether it has come to its end."""
    news, deadline = b"", time.monotonic() + seconds
    while _DONE not in news and select.select([read], [], [], max(0, deadline - time.monotonic()))[0]:
        more = os.read(read, 64)
        if not more:
            return news, True
        news += more
    return news, _DONE in news


def _perform(calls, write, seconds):
    """Make the calls silently, send a byte after each and one at the end; never return."""

    def stop(signum, frame):
        os.write(write, _TOLD)
        raise TimeUp

    with contextlib.suppress(BaseException):
        import resource  # not on Windows

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + _GRACE)  # ends the copy even if the parent is gone
        signal.signal(signal.SIGUSR1, stop)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.setprofile(None)  # whose functions run is seen in the notebook
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        sys.stdout = sys.stderr = os.fdopen(silence, "w", encoding="utf-8")
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # the threads of the pool were not copied
        for call in calls:
            call()
            os.write(write, _CALLED)
    with contextlib.suppress(BaseException):  # also where a call raised: it will do so in the notebook
        os.write(write, _DONE)
    os._exit(0)
