"""How answers are run: errors, what they print and patch, time and memory."""

import contextlib
import copy
import os
import re
import select
import subprocess
import sys
import time
import tracemalloc
import warnings

import numpy as np
import pytest
from answers import MODULE, M

import attnlib as al
from attncourse import EXERCISES, check
from attncourse.engine import run as running
from attncourse.engine.compare import near
from attncourse.engine.probes import LOW_MASKED, with_negated_queries
from attncourse.lessons.masks import exercises as masks
from attncourse.lessons.pytorch_module import exercises as pytorch_module
from attncourse.lessons.scaling import exercises as scaling
from attncourse.lessons.train_and_look.known_heads import heads_to_rank
from attncourse.lessons.vectorized import exercises as vectorized


def test_numbers_are_near_where_numpy_says_so():
    numbers = np.array([np.nan, np.inf, -np.inf, 0, 1e-9, 0.3, 0.30001, 0.31, 1, -1, 2, 1e300, -1e300])
    x, y = (numbers.repeat(len(numbers)), np.tile(numbers, len(numbers)))
    assert (near(x, y, 1e-3) == np.isclose(x, y, rtol=1e-3, atol=1e-3, equal_nan=True)).all()
    small = np.array([0, 1e-6])  # where all is small, the tolerance is, too
    assert near(small + 5e-10, small, 1e-3).all() and not near(small + 5e-9, small, 1e-3).any()
    assert near(np.array([5e-4]), np.array([0.0]), 1e-3).all()


def test_an_error_in_a_helper_shows_the_helpers_line():
    namespace = {"np": np}
    exec(compile("def turn(k):\n    return np.swapaxes(k, 7, 8)  # helper", "<another cell>", "exec"), namespace)
    message = check.attention_scores(lambda q, k: q @ namespace["turn"](k)).message
    assert "AxisError" in message and re.search(r"\nLine 2$", message), message


def test_an_error_inside_attnlib_shows_the_line_that_called_it():
    message = check.attention_scores(lambda q, k: al.softmax("no")).message  # the caller
    assert "# the caller" in message


def test_printing_inside_an_answer_is_left_alone(capsys):
    def chatty(x, axis=-1):
        print("here")
        return al.softmax(x, axis)

    assert check.softmax(chatty).passed
    assert "here" in capsys.readouterr().out


def test_a_second_try_with_tensors_says_nothing():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert check.attention_scores(lambda q, k: q @ k.T).mistake == "wrong_batch_axis"
    assert not caught


@pytest.mark.parametrize("name", ["allclose", "isclose", "array_equal"])
def test_a_patched_numpy_changes_nothing(monkeypatch, name):
    monkeypatch.setattr(np, name, lambda a, b, **options: np.ones(np.shape(a), bool) if name == "isclose" else True)
    assert not check.softmax(lambda x, axis=-1: 0 * x).passed
    assert not check.key_of_anna([0, 0, 0]).passed
    told = check.masked_attention(lambda q, k, v, mask=None: np.zeros((*q.shape[:-1], v.shape[-1])))
    assert told.stage is None  # the output is 0 whatever the values are, so nothing is known of the weights

    def writes(query, key):
        scores = query @ np.swapaxes(key, -1, -2)
        query *= 0
        return scores

    assert check.attention_scores(writes).mistake == "mutates_input"


def double(array):
    array *= 2


@pytest.mark.parametrize(
    "argument, spoil",
    [
        ((np.ones(2), np.ones(3)), lambda past: double(past[1])),
        ([np.ones(2)], lambda past: past.append(0)),
        ({"keys": [np.ones(2)]}, lambda past: double(past["keys"][0])),
        ({"keys": np.ones(2)}, lambda past: past.update(values=0)),
        (([1, 2], 3), lambda past: past[0].reverse()),
        ([np.ones(2), None], lambda past: past.__setitem__(0, None)),
    ],
)
def test_writing_into_what_an_argument_holds_is_seen(argument, spoil):
    def answer(past):
        spoil(past)
        return 1.0

    before = copy.deepcopy(argument)
    assert running.call(answer, (argument,)).mutated and not running.call(lambda past: 1.0, (argument,)).mutated
    assert not running.was_written_to(before, argument)  # what the probe holds is never handed out


def test_an_attention_that_is_handed_over_and_not_called_shows():
    """What two exercises are handed: of the usual one nobody could tell whether it was called."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 4, 5))
    usual = al.scaled_dot_product_attention
    other = with_negated_queries(usual)
    assert np.allclose(other(q, k, v), usual(-q, k, v))
    assert np.abs(other(q, k, v) - usual(q, k, v)).max() > 0.1
    mask = np.tri(4, dtype=bool)
    assert np.allclose(other(q, k, v, mask)[0], v[0])


def test_a_profiler_is_left_as_it_was():
    def mine(*event):
        pass

    sys.setprofile(mine)
    try:
        check.softmax(al.softmax)
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


def test_importing_the_checks_loads_no_torch():
    code = (
        "import sys; from attncourse import check; import numpy as np; "
        "assert check.softmax(None).state == 'not tried'; "
        "assert not {'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "make",
    [
        vectorized.softmax_probes,
        vectorized.attention_probes,
        masks.masked_probes,
        scaling.entropy_probes,
        pytorch_module.self_attention_probes,
        heads_to_rank,
    ],
)
def test_probes_do_not_depend_on_other_exercises(make):
    def flat(args):
        return [np.asarray(x) for x in args if isinstance(x, np.ndarray)]

    first, _, second = make(), masks.attention_probes(), make()
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(flat(a.args), flat(b.args), strict=True))
    assert not np.array_equal(vectorized.attention_probes()[0].args[0][:, :3], vectorized.scores_probes()[0].args[0])


@pytest.mark.parametrize(
    "name",
    ["masked_softmax", "masked_attention", M, MODULE],
)
def test_in_some_row_all_allowed_scores_are_lower_than_a_common_fill(name):
    """Otherwise a fill of -1e4, whose weights are set to 0 afterwards, would do."""
    exercise = EXERCISES[name]
    (probe,) = (probe for probe in exercise.probes if probe.name == LOW_MASKED)
    steps = exercise.steps_on(probe.args)
    assert np.where(steps.mask, steps.scaled_scores, -np.inf).max(axis=-1).min() < -9_999


# --- time and memory


def endless(q, k, v, attn_mask=None):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def test_an_endless_loop_is_stopped(monkeypatch):
    monkeypatch.setattr("attncourse.engine.run.TIME_LIMIT", 0.2)
    verdict = check.scaled_dot_product_attention(endless)
    assert verdict.state == "wrong" and "did not finish within 0.2 seconds" in verdict.message


def test_without_signals_there_is_no_limit_and_no_error(monkeypatch):
    monkeypatch.delattr("signal.setitimer")
    assert check.softmax(al.softmax).passed


def test_a_huge_answer_is_not_kept():
    tracemalloc.start()
    try:
        verdict = check.softmax(lambda x, axis=-1: np.zeros((20_000, 20_000), dtype=bool))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "shape (20000, 20000), far more" in verdict.message
    assert peak < 2.5 * 20_000**2  # one at a time, though there are nine probes
    assert "far more" in check.key_of_anna(np.broadcast_to(0.0, (10**9, 10**9))).message


ENDLESS_IN_C = """
from attncourse import check
from attncourse.engine import run
run.TIME_LIMIT = 1.0
verdict = check.{exercise}({answer})
print(verdict)
"""


def run(exercise, answer, **options):
    code = ENDLESS_IN_C.format(exercise=exercise, answer=answer)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a copy of the process")


@linux
@pytest.mark.slow
def test_a_loop_in_c_is_stopped():
    printed = run("softmax", "lambda x, axis=-1: sum(range(10**11))")
    assert "did not finish within 1 seconds" in printed


@linux
@pytest.mark.slow
def test_a_loop_in_c_is_found_where_it_starts():
    printed = run(
        "attention_scores", "lambda q, k: q @ k.T if q.ndim == 2 and q.dtype == float else sum(range(10**11))"
    )
    assert "Right so far; the first difference is on a batch of sequences." in printed
    assert "did not finish" in printed


@linux
def test_code_that_ends_python_does_not_end_the_notebook():
    printed = run("softmax", "lambda x, axis=-1: __import__('os').kill(__import__('os').getpid(), 9)")
    assert "makes Python itself end (SIGKILL)" in printed


ENDS = "(__import__('os').{}, __import__('time').sleep(0.1), __import__('attnlib').softmax(x, axis))[2]"


@linux
@pytest.mark.parametrize("call", ["_exit(0)", "_exit(3)", "closerange(0, 100)", "kill(__import__('os').getpid(), 15)"])
def test_a_rehearsal_that_ends_quietly_is_no_success(call):
    printed = run("softmax", f"lambda x, axis=-1: {ENDS.format(call)}")
    assert "Your code ends Python, or closes the files that it needs" in printed, printed


@linux
def test_an_exit_on_a_later_probe_leaves_the_first_ones_right():
    printed = run(
        "softmax", f"lambda x, axis=-1: __import__('attnlib').softmax(x) if x.ndim < 3 else {ENDS}".format("_exit(0)")
    )
    assert "Right so far; the first difference is on a batch." in printed, printed


SWALLOWS = """
import time
from attncourse import check
from attncourse.engine import run
run.TIME_LIMIT = 0.5
def answer(x, axis=-1):
    while True:
        try:
            {wait}
        except BaseException:
            pass
print(check.softmax(answer))
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("wait", ["time.sleep(0.01)", "sum(range(1000))", "time.sleep(1000)"])
def test_a_loop_that_swallows_every_exception_is_stopped(wait):
    code = SWALLOWS.format(wait=wait)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60)
    assert "did not finish within 0.5 seconds" in done.stdout, done


def test_much_that_is_printed_is_cut_and_little_is_not(capsys):
    def chatty(x, axis=-1):
        print("first")
        print("x" * 10**7)
        print("x" * 10**7, file=sys.stderr)
        return al.softmax(x, axis)

    assert check.softmax(chatty).passed
    out, err = capsys.readouterr()
    assert out.startswith("first\nxxx") and out.count("the rest is left out") == err.count("the rest is left out") == 1
    assert max(len(out), len(err)) < 21_000
    print("x" * 30_000)  # what the notebook itself prints afterwards is whole
    assert len(capsys.readouterr().out) == 30_001


def test_a_long_message_is_cut():
    def says(x, axis=-1):
        raise ValueError("y" * 10**7)

    for answer in (says, type("Z" * 10**6, (), {"__call__": lambda self, x, axis=-1: self})()):
        message = check.softmax(answer).message
        assert len(message) < 4_100 and ("yyy ..." in message or "ZZZ ..." in message), message[-300:]


@linux
@pytest.mark.rehearsal
def test_code_that_waits_is_not_accused_of_computing(monkeypatch):
    """A copy that stands still says nothing: it may be the copying that stopped it."""
    from attncourse.engine.sandbox import rehearse

    parent = os.getpid()
    calls = [lambda: None, lambda: time.sleep(60) if os.getpid() != parent else None]
    assert rehearse(calls, 0.5) == (2, "")


@linux
@pytest.mark.rehearsal
def test_a_rehearsal_leaves_nothing_behind(capfd):
    seen = []

    def answer(x, axis=-1):
        seen.append(os.getpid())
        print("once")
        os.write(1, b"once")
        return al.softmax(x, axis)

    open_files = len(os.listdir("/proc/self/fd"))
    assert check.softmax(answer).passed
    assert set(seen) == {os.getpid()} and len(seen) == 10  # the last for the picture
    assert capfd.readouterr().out.count("once") == 19
    assert len(os.listdir("/proc/self/fd")) == open_files
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no copy is left


@pytest.mark.slow
@linux
@pytest.mark.rehearsal
def test_torch_with_threads_can_be_rehearsed():
    """The threads of torch are not copied: a copy that waited for them would stand still until its time is up."""
    code = (
        "import time, torch; torch.set_num_threads(2); x = torch.rand(1000, 1000)\n"
        "work = lambda: (x @ x, x.exp().sum())\n"
        "from attncourse.engine.sandbox import rehearse\n"
        "work(); begin = time.monotonic(); print(rehearse([work], 30), time.monotonic() - begin < 29)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120)
    assert done.stdout == "(1, '') True\n", done


@linux
@pytest.mark.slow
def test_a_copy_ends_though_the_notebook_was_killed():
    code = (
        "import os, signal, threading; from attncourse.engine.sandbox import rehearse\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()\n"
        "rehearse([lambda: sum(range(10**11))], 1)"
    )
    read, write = os.pipe()
    subprocess.run([sys.executable, "-c", code], pass_fds=[write], timeout=60)
    os.close(write)
    assert select.select([read], [], [], 30)[0] == [read]  # closed: neither of the two is left
    os.close(read)


@pytest.mark.rehearsal
def test_without_room_for_a_copy_answers_are_checked_all_the_same(monkeypatch):
    def full():
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", full, raising=False)
    assert check.softmax(al.softmax).passed


@pytest.mark.rehearsal
@pytest.mark.parametrize("platform", ["win32", "darwin", "emscripten"])
def test_other_platforms_make_no_copy(monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delattr(os, "fork", raising=False)
    assert check.softmax(al.softmax).passed


def test_where_nothing_can_be_stopped_the_reader_is_told_how(monkeypatch, capsys):
    monkeypatch.delattr("signal.setitimer")
    monkeypatch.setattr(running, "TIME_LIMIT", 0.05)
    assert check.softmax(lambda x, axis=-1: (time.sleep(0.05), al.softmax(x, axis))[1]).passed
    assert capsys.readouterr().out.count("interrupt the kernel") == 1
    assert check.softmax(al.softmax).passed
    time.sleep(0.1)
    assert "interrupt" not in capsys.readouterr().out
