"""Call a learner's function safely, and say what came back."""

import contextlib
import dis
import itertools
import linecache
import os
import re
import sys
import traceback
import types
import warnings
from collections.abc import Iterable
from numbers import Number, Real
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .sandbox import TimeUp, rehearse, time_limit

TIME_LIMIT = 5.0  # seconds for all probes of one check
MOST_ENTRIES = 10**6  # of an array; the largest right answer has some hundreds

_array_equal, _isfinite = np.array_equal, np.isfinite  # a notebook may patch NumPy's own

_OURS = tuple(os.path.join(str(Path(__file__).parents[2] / name), "") for name in ("attnlib", "attncourse"))
_LIBRARIES = (*_OURS, os.path.join(os.path.dirname(os.__file__), ""), "<frozen ", "<__array_function__")


_MATMUL = r"\1 (@): the inner sizes differ, \3 at the left and \2 at the right"

# The mistakes that an error proves by itself, and the words of the problem by which it is known.
PROVED = {
    "too_many_returned": "one array is expected. Fix: ",
    "mask_as_index": "an index has the shape of what it picks from; np.where(mask, scores, -np.inf) stretches axes of "
    "size 1.",
    "array_as_condition": "with more than one ",  # element, value: NumPy and torch
    "none_not_handled": "NoneType",
    "float_as_size": "'float' object cannot be interpreted as an integer",
}

# What to write in place of Python's own functions: for arrays, and for tensors.
_ALONG_AN_AXIS = {
    "max": ("x.max(axis=..., keepdims=True)", "x.amax(dim=..., keepdim=True)"),
    "min": ("x.min(axis=..., keepdims=True)", "x.amin(dim=..., keepdim=True)"),
    "sorted": ("np.sort(x, axis=...)", "x.sort(dim=...).values"),
}


class Outcome(NamedTuple):
    """What came back from one call: arrays, or a problem in words.

    `kind` is "" where arrays came back, else "untried", "raised", "late" (out of time), "ended" (Python) or "type".
    `told` is what a judge says, where many answers are right: (RIGHT, the id of a mistake or None; words). `values` is
    empty then.
    """

    values: tuple = ()
    kind: str = ""
    problem: str = ""
    mutated: bool = False
    tensor: bool = False
    told: tuple = ()

    @property
    def proved(self):
        """The mistake that an error proves by itself, or ""."""
        return next((id for id, words in PROVED.items() if words in self.problem), "")


def late(seconds):
    """Return the Outcome of code that did not end."""
    return Outcome(
        kind="late",
        problem=f"Your code was stopped: it did not finish within {seconds:g} seconds. "
        "Fix: look for a loop that never ends, or one with far too many steps.",
    )


def _ended_outcome(name):
    """Return the Outcome of code that ended Python by the signal `name`, or by "an exit"."""
    words = (
        "ends Python, or closes the files that it needs. Fix: leave out os._exit and os.closerange."
        if name == "an exit"
        else f"makes Python itself end ({name}). "
        "Fix: look for an array too large for this machine, or for a function that calls itself without end."
    )
    return Outcome(kind="ended", problem=f"Your code {words}")


class Unfit(Exception):
    """The answer cannot be tried at all; the message says why and what to do, `id` is that of a mistake, if any."""

    def __init__(self, words, id=None):
        super().__init__(words)
        self.id = id


class Unmeasured(Unfit):
    """It cannot be tried here, through no fault of the answer: what it takes to tell is missing."""


def outcomes(calls, *, copied):
    """Return the Outcome of each call, up to the first that does not end or was not tried.

    With `copied`, the calls run in a copy of the process first, if the platform allows one.
    """
    safe, stop = _rehearse_calls(calls) if copied else (len(calls), "")
    broken = stop and (late(TIME_LIMIT) if stop == "late" else _ended_outcome(stop))
    results = []
    try:
        with time_limit(TIME_LIMIT):
            for run in calls[:safe]:
                results.append(run())
                if results[0].kind == "untried":
                    return results
    except TimeUp:
        broken = late(TIME_LIMIT)
    return [*results, broken] if broken else results


def _rehearse_calls(calls):
    if sys.platform != "linux" or sys.gettrace():  # a debugger would follow the copy
        return len(calls), ""
    with contextlib.suppress(OSError):  # no room for a copy
        return rehearse(calls, TIME_LIMIT)
    return len(calls), ""


@contextlib.contextmanager
def calls_into_libraries(names):
    """Yield a set that collects what ran of libraries: (whose, which of `names`), ("torch", "") for all else of it."""
    seen = set()

    def watch(frame, event, arg):  # runs at every call of the learner's code: the quickest question comes first
        if event == "call":
            code = frame.f_code
            if code.co_name in names and code.co_filename.startswith(_OURS):
                seen.add(("attnlib", code.co_name))
            elif code.co_name in names and "scipy" in Path(code.co_filename).parts:
                seen.add(("scipy", code.co_name))
        elif event == "c_call":
            of_torch = "torch", arg.__name__ if arg.__name__ in names else ""
            if of_torch not in seen and "torch" in (arg.__module__ or type(arg.__self__).__module__):
                ours = frame.f_code.co_filename.startswith(_OURS)
                seen.update(() if ours and not of_torch[1] else [of_torch])

    if sys.getprofile():  # %prun watches already, and one can
        yield seen
        return
    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def call(function, args, *, returns_weights=False, lists=False, judge=None, tensors=False):
    """Call `function` on copies of `args` and return an Outcome, whatever happens; a `judge` says what it finds."""
    given = [copy_of(a, tensors) for a in args]
    try:
        with np.errstate(all="ignore"), _settings_kept(), warnings.catch_warnings():
            if tensors:  # a second try: what torch says about NumPy code would only puzzle
                warnings.simplefilter("ignore")
            result = function(*given)
    except Unfit:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, NotImplementedError) and not tensors:  # of tensors torch says so, too
            return Outcome(kind="untried")
        return Outcome(kind="raised", problem=describe_error(error))
    mutated = was_written_to(tuple(args), tuple(given))
    if judge is not None and result is not None and result is not ...:
        return outcome_of_judge(judge, result, args, lists)._replace(mutated=mutated)
    parts = [r for r in result[:2] if r is not None] if returns_weights and isinstance(result, tuple) else [result]
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


@contextlib.contextmanager
def _settings_kept():
    """Let np.seterr do nothing: where it makes errors of warnings, each exp that becomes 0 would be one."""
    ours, np.seterr = np.seterr, lambda *args, **options: np.geterr()
    try:
        yield
    finally:
        np.seterr = ours


def outcome_of_judge(judge, result, args, lists):
    """Return the Outcome in which the judge has spoken, or one that says why it cannot read the result."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Casting complex")  # NumPy would drop the imaginary part
            return Outcome(told=judge(result.detach() if _is_tensor(result) else result, *args))
    except Unfit:
        raise
    except Exception as error:
        problem = (
            f"You {'hand in' if lists else 'return'} {_kind(result)} that cannot be read as an answer "
            f"({type(error).__name__}: {words_of(error)}). Fix: compare its form with the task."
        )
        return Outcome(kind="type", problem=problem)


def numbers(result, *, lists=False):
    """Return what a judge is given as an array of float64; raise Unfit where it does not hold numbers."""
    try:
        if np.asarray(result).dtype.kind != "U":
            return np.asarray(result, dtype=np.float64)
        array, problem = _as_array(result, lists)
    except (TypeError, ValueError):
        array, problem = _as_array(result, lists)
    if problem:
        raise Unfit(problem)
    return array.astype(np.float64)


def copy_of(x, tensors=False):
    """Return a copy of an argument, of the arrays inside it too, as tensors if asked for."""
    if type(x) in (tuple, list):
        return type(x)(copy_of(a, tensors) for a in x)
    if type(x) is dict:
        return {name: copy_of(a, tensors) for name, a in x.items()}
    if not isinstance(x, np.ndarray):
        return x
    return sys.modules["torch"].from_numpy(x.copy()) if tensors else x.copy()


def was_written_to(before, after):
    """Tell whether an argument was written to: an array, or anything inside tuples, lists and dicts."""
    if isinstance(before, np.ndarray):
        return not _array_equal(before, np.asarray(after))
    if type(before) not in (tuple, list, dict, int, float, bool, str):
        return False  # functions and other objects are not looked into
    if type(before) is not type(after):
        return True
    if type(before) is dict:
        before, after = tuple(before.items()), tuple(after.items())
    if type(before) not in (tuple, list):
        return before != after
    return len(before) != len(after) or any(map(was_written_to, before, after))


def _is_tensor(x):
    return "torch" in sys.modules and isinstance(x, sys.modules["torch"].Tensor)


def _as_array(x, lists):
    """Return (array, "") or (None, problem)."""
    if _is_tensor(x):
        if x.numel() > MOST_ENTRIES:
            return None, _too_large(tuple(x.shape))
        x = x.detach().cpu()
        x = (x.float() if x.dtype == sys.modules["torch"].bfloat16 else x).numpy()
    elif lists and isinstance(x, Iterable) and not isinstance(x, (np.ndarray, list, tuple, str, bytes, dict, set)):
        x = list(itertools.islice(x, MOST_ENTRIES))  # a generator, map, or a column of a table
    elif problem := _no_numbers(x, lists):
        return None, problem
    try:
        number = isinstance(x, Number)
        x = np.asarray(x)
        if x.size > MOST_ENTRIES:
            return None, _too_large(x.shape)
        if x.dtype == object and (lists or number):  # fractions, decimals, integers beyond int64
            x = x.astype(np.float64)
    except OverflowError:
        return None, "One of your numbers is too large: a float ends near 1.8e308. Fix: print it; which step made it?"
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: tensors that require a gradient
        return None, "Your list does not hold numbers only. Fix: rows of the same length, numbers in each."
    if x.dtype.kind not in "bfiu":
        return None, f"Your array has dtype {x.dtype}, real numbers are expected. Fix: np.array(..., dtype=float)."
    if lists:  # by hand True is 1, and a row or a column a list
        x = x.astype(np.float64).ravel() if 1 < x.size == max(x.shape) else x.astype(np.float64)
    return x, ""


def _no_numbers(x, lists):
    """Say what keeps an answer that is no tensor from being numbers; "" if nothing does at first sight."""
    if isinstance(x, (list, tuple)) and not lists:
        fix = "np.array(...) around it, all rows of the same length"
        if isinstance(x, list) and len(x) == 1:
            fix = "return what stands in the brackets, without them"
        elif isinstance(x, tuple):
            fix = "return only what the exercise asks for"
        elif any(isinstance(part, np.ndarray) or _is_tensor(part) for part in x):
            fix = "np.stack(..., axis=...) makes one of them, and the axis says where in the shape their number stands"
        wanted = "one array is expected" if isinstance(x, tuple) else "the result is an array"
        return f"You return a {type(x).__name__} of {len(x)}, where {wanted}. Fix: {fix}."
    if isinstance(x, (np.ndarray, np.generic, Number, list, tuple)):
        return ""
    if lists:
        letter = isinstance(x, str) and len(x) == 1 and x.isalpha()
        fix = (
            "the number that belongs to this letter" if letter else "numbers without quotes, several as a list: [1, 2]"
        )
        return f"You hand in {_kind(x)}, where numbers are expected. Fix: {fix}."
    return f"You return {_kind(x)}, where an array of numbers is expected. Fix: return the array itself."


def _too_large(shape):
    return f"Your result has shape {shape}, far more numbers than any answer here. Fix: print the shape of each step."


def _kind(x):
    name = type(x).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def words_of(error):
    """Return what an error says, if it is long its beginning; "" where it cannot: a `__str__` may raise."""
    try:
        return shorten(str(error), 1000)
    except Exception:
        return ""


def shorten(text, most):
    return text if len(text) <= most else f"{text[:most]} ..."


def describe_error(error):
    """Say what was raised, and in which line of the learner's own code: the last one outside libraries."""
    message = re.sub(r"(matmul): Input operand .*\(size (\d+) is different from (\d+)\)", _MATMUL, words_of(error))
    text = f"Your code raises {type(error).__name__}: {message.split(' Hint: ')[0]}".rstrip(": ")
    own = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__) if not _in_library(f)]
    code = ""
    if own:
        file, line = own[-1]
        code = shorten(linecache.getline(file, line).strip(), 200)
        text += f"\nLine {line}: {code}".rstrip(": ")
    fix = _fix(words_of(error), code.partition("#")[0])
    return text + (f"\nFix: {fix}" if fix else "")


def first_nan(function, args):
    """Say in which line of the learner's NumPy code NaN arises first; "" if that cannot be told."""
    try:
        with np.errstate(invalid="raise"), _settings_kept(), time_limit(TIME_LIMIT):
            function(*(copy_of(a) for a in args))
    except FloatingPointError as error:
        return describe_error(error).replace("Your code raises FloatingPointError", "The first NaN arises here")
    except (Exception, SystemExit, TimeUp):
        pass  # it has run before: where it raises only now, nothing is known
    return ""


def _fix(message, code):
    """Return the likely fix of an error whose message hides its cause; "" if there is none to suggest."""
    if "modified by an inplace operation" in message:
        return (
            "what the gradient needs was written over (x[...] = ..., x += ...). masked_fill, torch.where and "
            "nan_to_num make a new tensor."
        )
    if "before Module.__init__() call" in message:
        return "begin `__init__` with `super().__init__()`: before that a module holds no layers."
    if "boolean index did not match" in message or "The shape of the mask" in message:
        return PROVED["mask_as_index"]
    if "only integer scalar arrays" in message:
        return "a slice x[a:b] wants numbers, and an array stands in it. An index may be an array, of positions."
    if found := re.search(r"broadcast together with shapes \(([\d,]+)\) \(([\d,]+)\)", message):
        shapes = [tuple(map(int, filter(None, shape.split(",")))) for shape in found.groups()]
        fewer, more = sorted(shapes, key=len)
        if fewer == more[:-1]:
            lost = f"{fewer} lacks the last axis of {more}. If a sum, mean or norm took it"
            return f"{lost}, keepdims=True leaves it there with size 1."
        if len(more) == 1:
            return f"x[:, None] makes a column of {fewer}, each entry of which meets all of {more}."
    of_tensor = "Boolean value of Tensor" in message
    if not (of_tensor or "truth value of an array" in message):
        return ""
    if re.search(r"[<>]=?((?!\b(if|else|and|or)\b|\) *[&|] *\()[^<>=])+[<>]", code):
        return "`0 <= x < n` asks whether a whole array is true. `(0 <= x) & (x < n)`, with brackets, compares entries."
    condition = re.search(r"\b(if|while|and|or|not)\b", code)
    python = re.search(r"(?<![\w.])(max|min|sorted)\(", code)
    if condition and not python:
        return (
            "an array is neither true nor false. `np.where(x > 0, a, b)` chooses entry by entry; `if x is not None` "
            "asks whether there is an array at all."
        )
    if python and not condition:
        name = python[1]
        return f"Python's {name} compares whole rows of an array; {_ALONG_AN_AXIS[name][of_tensor]} compares numbers."
    return ""


def read_from_notebook(answer):
    """Say which numbers and arrays a function or class reads from the notebook, not from its arguments; "" for none.

    A function without arguments can read them nowhere else: of it nothing is said.
    """
    values = {}
    for function in _functions(answer):
        if function.__code__.co_argcount and function.__globals__.get("__name__") == "__main__":
            names = dict.fromkeys(_globals_read(function.__code__))
            values |= {name: function.__globals__.get(name) for name in names}
    kinds = {name: kind for name, value in values.items() if (kind := _in_a_word(value))}
    if not kinds:
        return ""
    there = ", ".join(f"{name} {what}" for name, what in kinds.items())
    return (
        f"Your {'class' if isinstance(answer, type) else 'function'} reads {' and '.join(kinds)} from the notebook "
        f"(there {there}), not from its arguments."
    )


def _functions(answer):
    if not isinstance(answer, type):
        return [answer] if isinstance(answer, types.FunctionType) else []
    members = [member for cls in answer.__mro__ for member in vars(cls).values()]
    return [member for member in members if isinstance(member, types.FunctionType)]


def _globals_read(code):
    """Return the global names that bytecode loads, including those of nested functions."""
    inside = [_globals_read(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return sum(inside, [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"])


def _in_a_word(value):
    """Describe a number or an array; "" for anything else, and for constants such as inf, NaN and bools."""
    if isinstance(value, np.ndarray) or _is_tensor(value):
        return f"has shape {tuple(value.shape)}"
    if isinstance(value, Real) and not isinstance(value, bool) and _isfinite(float(value)):
        return f"is {value:.4g}" if isinstance(value, float) else f"is {value}"
    return ""


def _in_library(frame):
    file = frame.f_code.co_filename
    return file.startswith(_LIBRARIES) or not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
