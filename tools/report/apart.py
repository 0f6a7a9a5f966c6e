"""Run somebody's code in a copy of this process, and bring back plain data: numbers, texts, arrays, and nothing else.

The copy is made by fork. In it no file can be written or deleted, no program started, no connection opened and no
process ended: Python refuses what it announces before it does it, the kernel what a library in C does unannounced.
Memory and time are bounded. docs/grading.md says against what this protects. Linux only, as the trial of an answer in
attncourse/engine/sandbox.py.
"""

import base64
import contextlib
import ctypes
import gc
import json
import os
import re
import select
import signal
import struct
import sys
import time
import warnings

import numpy as np

from attncourse.engine.run import MOST_ENTRIES, TIME_LIMIT, words_of

MEMORY = 2**30  # bytes, beside what the process holds already
MOST_BYTES = 2**25  # of what comes back
# What Python announces of these modules is refused, but for what only looks.
_GUARDED = ("os.", "shutil.", "subprocess.", "socket.", "ctypes.", "pty.", "fcntl.", "signal.", "resource.", "sqlite3.")
_HARMLESS = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.putenv", "os.unsetenv"}
_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the system calls of Landlock
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class NoAnswer(Exception):
    """Nothing came back that could be judged; the message says why, in few words."""


# --- plain data


def encode(x):
    """Return a value as JSON can hold it; raise NoAnswer for what is no plain data."""
    if "torch" in sys.modules and isinstance(x, sys.modules["torch"].Tensor):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == sys.modules["torch"].bfloat16 else x).numpy()
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "bfiu" and x.size <= MOST_ENTRIES:
        x = np.ascontiguousarray(x).reshape(x.shape)
        return {"array": [x.dtype.str, list(x.shape), base64.b64encode(x.tobytes()).decode()]}
    if isinstance(x, list | tuple):
        return {type(x).__name__ if type(x) is list else "tuple": [encode(part) for part in x]}
    if isinstance(x, dict) and all(isinstance(key, str) for key in x):
        return {"dict": {key: encode(value) for key, value in x.items()}}
    if x is ...:
        return {"stub": None}
    if x is None or isinstance(x, bool | int | float | str):
        return x
    raise NoAnswer(f"its answer holds {'a class' if isinstance(x, type) else f'an object of type {type(x).__name__}'}")


def decode(x):
    """Return what `encode` was given; raise ValueError for anything else."""
    if not isinstance(x, dict):
        return x
    if len(x) != 1:
        raise ValueError("a value of two kinds")
    ((kind, data),) = x.items()
    if kind == "array":
        dtype, shape, raw = np.dtype(str(data[0])), tuple(map(int, data[1])), base64.b64decode(data[2])
        if dtype.kind not in "bfiu" or min(shape, default=0) < 0:
            raise ValueError("no array of numbers")
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    if kind == "dict":
        return {key: decode(value) for key, value in data.items()}
    return {"list": list, "tuple": tuple, "stub": lambda _: ...}[kind](map(decode, data) if data is not None else None)


# --- the copy


def apart(work, seconds=2 * TIME_LIMIT):
    """Return what ``work()`` returns in a copy of this process; raise NoAnswer where nothing usable comes back."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of threads: the copy uses none of them
        pid = os.fork()
    if pid == 0:
        _work_and_end(work, write)
    os.close(write)
    try:
        message, in_time = _receive(read, time.monotonic() + seconds)
    finally:
        os.close(read)
        with contextlib.suppress(OSError):  # what it has started, and then itself
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    if not in_time:
        raise NoAnswer(f"it did not finish within {seconds:g} seconds")
    try:
        message = json.loads(message)
        if "why" in message:
            raise NoAnswer(re.sub(r"[^ -~]", "?", str(message["why"]))[:80])
        return decode(message["found"])
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError, AttributeError):
        raise NoAnswer("it ended Python" if not message else "what came back cannot be read") from None


def _receive(read, deadline):
    """Return (what was sent, was it all sent in time); more than MOST_BYTES counts as nothing."""
    message = bytearray()
    while (left := deadline - time.monotonic()) > 0 and select.select([read], [], [], left)[0]:
        news = os.read(read, 2**16)
        message += news
        if not news or len(message) > MOST_BYTES:
            return bytes(message) if not news else b"", True
    return b"", False


def _work_and_end(work, write):
    """Do the work in a sealed copy, send what it returns, and never return."""
    gc.freeze()  # else the collector would go through all that the process holds, and have it copied
    with contextlib.suppress(BaseException):
        write = _seal_process(write)
        try:
            message = json.dumps({"found": encode(work())})
        except NoAnswer as error:
            message = json.dumps({"why": str(error)})
        except BaseException as error:
            message = json.dumps({"why": f"it raises {type(error).__name__}"})
        message = message.encode()
        while message:
            message = message[os.write(write, message) :]
    os._exit(0)


def _seal_process(write):
    """Take from this process what it does not need; return the new number of the pipe that is left to it."""
    import resource  # not on Windows

    os.setsid()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with open("/proc/self/statm", encoding="utf-8") as pages:
        held = int(pages.read().split()[0]) * resource.getpagesize()
    seconds = int(2 * TIME_LIMIT)
    limits = {"CORE": 0, "FSIZE": 0, "NPROC": 0, "AS": held + MEMORY, "CPU": seconds}  # CPU: if the parent is gone
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(silence, stream)
    os.dup2(write, 3)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stdout
    sys.dont_write_bytecode = True
    _restrict_writes()
    sys.addaudithook(_refuse)
    return 3


def landlock(number, *arguments):
    """Make a system call of Landlock; return -1 where the kernel does not know it."""
    return ctypes.CDLL(None).syscall(number, *arguments)


def _restrict_writes():
    """Have the kernel refuse writing, deleting and starting programs, also to libraries in C.

    Linux 5.13 and later can, by Landlock (REFERENCES.md): 6.2 refuses to truncate files, too, 6.7 TCP connections, 6.12
    signals to other processes. On an older kernel nothing happens here.
    """
    version = landlock(_CREATE, None, 0, 1)
    if version < 1:
        return
    # One bit for each right, as in linux/landlock.h. What stands in the rules is refused, unless it is added below.
    write, read, truncate = 0b10, 0b1100, 1 << 14
    files = (1 << min(12 + version, 15)) - 1 & ~read  # all that this version knows, but reading
    connections, signals = 0b11 * (version >= 4), 0b10 * (version >= 6)
    rules = landlock(_CREATE, struct.pack("3Q", files, connections, signals), 24, 0)
    silence = os.open(os.devnull, os.O_PATH)
    landlock(_ADD, rules, 1, struct.pack("=Qi", files & (write | truncate), silence), 0)
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS: Landlock requires it of anybody but root
    landlock(_RESTRICT, rules, 0)
    os.close(rules)
    os.close(silence)


def _refuse(event, arguments):
    """Raise where Python announces something that an answer has no need of."""
    if event == "open":
        if isinstance(arguments[2], int) and arguments[2] & _WRITING and arguments[0] != os.devnull:
            raise PermissionError("an answer writes no files here")
    elif event.startswith(_GUARDED) and event not in _HARMLESS:
        raise PermissionError(f"an answer does without {event} here")


# --- functions that are called


class Recorded:
    """A function of a student's; `log` holds what each call gave: (its result, None) or (None, what it raised)."""

    def __init__(self, function):
        self.function, self.log = function, []

    def __call__(self, *arguments, **options):
        try:
            result = self.function(*arguments, **options)
        except Exception as error:
            self.log.append((None, (type(error).__name__, words_of(error))))
            raise
        self.log.append((result, None))
        return result


class Replayed:
    """Gives what a Recorded function gave, call by call; `whole` is False once one was asked for that is not there."""

    def __init__(self, log):
        self.calls, self.whole = iter(log), True

    def __call__(self, *arguments, **options):
        try:
            result, raised = next(self.calls)
        except (StopIteration, TypeError, ValueError):
            self.whole = False
            return None
        if raised is not None:
            raise type(str(raised[0]), (Exception,), {})(str(raised[1]))
        return result
