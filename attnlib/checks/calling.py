"""Call a learner's function safely, and compare what comes back."""

import contextlib
import linecache
import signal
import sys
import threading
import traceback
import warnings
from typing import NamedTuple

import numpy as np

TIME_LIMIT = 5.0  # seconds for all probes of one check


class Outcome(NamedTuple):
    """What came back from one call: arrays, or a problem in words.

    `kind` is "" where arrays came back, else "untried", "raised", "late" (out of time) or "type".
    """

    values: tuple = ()
    kind: str = ""
    problem: str = ""
    mutated: bool = False
    tensor: bool = False


class Unfit(Exception):
    """The answer cannot be tried at all; the message says why and what to do."""


class TimeUp(BaseException):  # not an Exception: a learner's `except Exception` must not swallow it
    pass


@contextlib.contextmanager
def time_limit(seconds):
    """Raise TimeUp after `seconds` where the platform can: POSIX signals, main thread. Elsewhere there is no limit."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
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


def call(function, args, *, many=False, lists=False, judge=None, tensors=False):
    """Call `function` on copies of `args` and return an Outcome, whatever happens; `judge` says what of it counts."""
    given = [_copy(a, tensors) for a in args]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            if tensors:  # a second try: what torch says about NumPy code would only puzzle
                warnings.simplefilter("ignore")
            result = function(*given)
    except NotImplementedError:
        return Outcome(kind="untried")
    except Unfit:
        raise
    except (Exception, SystemExit) as error:
        return Outcome(kind="raised", problem=_describe(error, function))
    mutated = any(
        isinstance(before, np.ndarray) and not np.array_equal(before, np.asarray(after))
        for before, after in zip(args, given, strict=True)
    )
    if judge is not None and result is not None and result is not ...:
        result = judge(result, *args)
    parts = [r for r in result[:2] if r is not None] if many and isinstance(result, tuple) else [result]
    values, tensor = [], False
    for part in parts or [None]:
        if part is None or part is ...:
            return Outcome(kind="untried")
        tensor = tensor or _is_tensor(part)
        array, problem = _as_array(part, lists)
        if problem:
            return Outcome(kind="type", problem=problem)
        values.append(array)
    return Outcome(tuple(values), mutated=mutated, tensor=tensor)


def _copy(x, tensors):
    if isinstance(x, tuple):
        return tuple(_copy(a, tensors) for a in x)
    if not isinstance(x, np.ndarray):
        return x
    return sys.modules["torch"].from_numpy(x.copy()) if tensors else x.copy()


def _is_tensor(x):
    return "torch" in sys.modules and isinstance(x, sys.modules["torch"].Tensor)


def _as_array(x, lists):
    """Return (array, "") or (None, problem)."""
    if _is_tensor(x):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == sys.modules["torch"].bfloat16 else x).numpy()
    elif isinstance(x, (list, tuple)):
        if not lists:
            what = f"a {type(x).__name__} of {len(x)}"
            fix = (
                "return only what the exercise asks for"
                if isinstance(x, tuple)
                else "np.array(...) around it, all rows of the same length"
            )
            return None, f"You return {what}, where one array is expected. Fix: {fix}."
        try:
            x = np.array(x, dtype=np.float64)
        except (TypeError, ValueError):
            return None, "Your list does not hold numbers only. Fix: rows of the same length, numbers in each."
    elif not isinstance(x, (np.ndarray, np.generic, int, float)):
        return None, f"You return {_kind(x)}, where an array of numbers is expected. Fix: return the array itself."
    x = np.asarray(x)
    if x.dtype.kind not in "bfiu":
        return None, f"Your array has dtype {x.dtype}, real numbers are expected. Fix: np.array(..., dtype=float)."
    return x, ""


def _kind(x):
    return f"a {type(x).__name__}"


def _describe(error, function):
    """Say what was raised and in which line of the learner's own code."""
    text = f"Your code raises {type(error).__name__}: {error}".rstrip(": ")
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    mine = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    if mine:
        text += f"\nLine {mine[-1]}: {linecache.getline(file, mine[-1]).strip()}".rstrip(": ")
    return text


def close(x, y, tolerance):
    """Tell whether two arrays are the same answer: shape, kind of dtype and numbers, NaN equal to NaN."""
    half = x.dtype == np.float16
    if x.shape != y.shape or (x.dtype == bool) != (y.dtype == bool) or half != (y.dtype == np.float16):
        return False
    if x.dtype == bool:
        return bool((x == y).all())
    tolerance = 2e-2 if half else tolerance
    return np.allclose(x.astype(np.float64), y.astype(np.float64), rtol=tolerance, atol=tolerance, equal_nan=True)


def same(a, b, tolerance):
    """Tell whether two outcomes are the same; two errors count as the same whatever their text."""
    if a.kind or b.kind:
        return a.kind == b.kind == "raised"
    return a.mutated == b.mutated and all(close(x, y, tolerance) for x, y in zip(a.values, b.values, strict=False))
