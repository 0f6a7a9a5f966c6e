"""How answers are run and compared: what must not pass, what must not be refused, and what must not hang."""

import decimal
import fractions
import os
import re
import select
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
import torch
from torch import nn

import attnlib as al
from attnlib import torch_layers
from attnlib.checks import calling, check, grading, probes

# --- modules: the gradient, and both results


class SelfAttention(nn.Module):
    """Right; the tests below change one method."""

    def __init__(self, d_in, d_k, d_v=None):
        super().__init__()
        self.W_Q, self.W_K = nn.Linear(d_in, d_k, bias=False), nn.Linear(d_in, d_k, bias=False)
        self.W_V = nn.Linear(d_in, d_v or d_k, bias=False)

    def forward(self, x, *, attn_mask=None):
        scores = self.scale(self.W_Q(x) @ self.W_K(x).mT)
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        weights = self.weigh(scores)
        return self.mix(weights, self.W_V(x)), weights

    def scale(self, scores):
        return scores / self.W_Q.out_features**0.5

    def weigh(self, scores):
        return scores.softmax(-1).nan_to_num()

    def mix(self, weights, values):
        return weights @ values


class Detached(SelfAttention):
    def weigh(self, scores):
        return super().weigh(scores).detach()


class ThroughNumPy(SelfAttention):
    def weigh(self, scores):
        return torch.from_numpy(al.softmax(scores.detach().numpy()))


class NumPyWithoutDetach(SelfAttention):
    def weigh(self, scores):
        return torch.from_numpy(al.softmax(scores.numpy()))


class WithoutGrad(SelfAttention):
    def forward(self, x, *, attn_mask=None):
        with torch.no_grad():
            return super().forward(x, attn_mask=attn_mask)


class ValuesDetached(SelfAttention):
    def mix(self, weights, values):
        return weights @ values.data


@pytest.mark.parametrize(
    "answer, matrices",
    [
        (Detached, "W_Q and W_K"),
        (ThroughNumPy, "W_Q and W_K"),
        (NumPyWithoutDetach, "W_Q and W_K and W_V"),
        (WithoutGrad, "W_Q and W_K and W_V"),
        (ValuesDetached, "W_V"),
    ],
)
def test_a_module_that_cuts_the_gradient_is_named(answer, matrices):
    verdict = check.SelfAttention(answer)
    assert (verdict.state, verdict.mistake) == ("wrong", "gradient_cut")
    assert f"depends on {matrices}, but no gradient comes back" in verdict.message
    assert check.SelfAttention(SelfAttention).passed


def test_the_gradient_must_reach_the_last_matrix_too():
    class OutputDetached(torch_layers.MultiHeadAttention):
        def forward(self, query, key=None, value=None, *, attn_mask=None):
            _, weights = super().forward(query, key, value, attn_mask=attn_mask)
            value = query if key is None else key if value is None else value
            v = self.W_V(value).unflatten(-1, (self.num_heads, -1)).transpose(-2, -3)
            merged = (weights @ v).transpose(-2, -3).flatten(-2)
            return merged @ self.W_O.weight.detach().T, weights

    verdict = check.MultiHeadAttention(OutputDetached)
    assert verdict.mistake == "gradient_cut" and "depends on W_O, but" in verdict.message


def test_a_matrix_that_is_not_used_is_no_cut_gradient():
    class Shared(SelfAttention):
        def forward(self, x, *, attn_mask=None):
            scores = self.scale(self.W_Q(x) @ self.W_Q(x).mT)
            weights = self.weigh(scores if attn_mask is None else scores.masked_fill(~attn_mask, -torch.inf))
            return self.mix(weights, self.W_V(x)), weights

    assert check.SelfAttention(Shared).mistake == "projections_shared"


def test_an_error_of_the_backward_pass_is_shown():
    class InPlace(SelfAttention):
        def weigh(self, scores):
            weights = scores.softmax(-1)
            weights[weights.isnan()] = 0  # the softmax needs its own result again for the gradient
            return weights

    verdict = check.SelfAttention(InPlace)
    assert verdict.state == "wrong" and verdict.mistake is None
    assert "the gradient of the output" in verdict.message and "inplace operation" in verdict.message


@pytest.mark.parametrize(
    "form, kind",
    [
        (lambda output, weights: output, "one Tensor"),
        (lambda output, weights: (output, None), "(output, None)"),
        (lambda output, weights: (output,), "a tuple of 1"),
        (lambda output, weights: (output, weights, weights), "a tuple of 3"),
    ],
)
@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention"])
def test_a_module_returns_output_and_weights(name, form, kind):
    class Other(getattr(torch_layers, name)):
        def forward(self, *inputs, attn_mask=None):
            return form(*super().forward(*inputs, attn_mask=attn_mask))

    verdict = getattr(check, name)(Other)
    assert verdict.state == "wrong"
    assert "(output, weights)" in verdict.message and f"returns {kind}." in verdict.message


# --- numbers


@pytest.mark.parametrize("exponent", [1, 2])
def test_the_variance_is_about_the_mean(exponent):
    verdict = check.variance_of_scores(lambda q, k: (np.abs(q @ k.T) ** exponent).mean() ** (2 / exponent))
    assert verdict.state == "wrong"
    assert (exponent == 1) == ("mean is not 0" not in verdict.message)


@pytest.mark.parametrize(
    "name, right, wrong",
    [
        ("linear_std", [0.0208, 0.02083], [0.02, 0.021, 0.0203]),
        ("head_parameters", [98304], [98304 + 3 * 64, 98000]),
        ("weights_1", [[0.0634, 0.4683, 0.4683], [0.063, 0.468, 0.468]], [[0.06, 0.47, 0.47], [0.1, 0.4, 0.5]]),
        ("score_std", [12.0], [12.1, -12]),
    ],
)
def test_the_tolerance_of_a_number_is_relative(name, right, wrong):
    assert all(getattr(check, name)(x).passed for x in right)
    assert not any(getattr(check, name)(x).passed for x in wrong)


@pytest.mark.parametrize(
    "answer",
    [
        fractions.Fraction(2),
        decimal.Decimal(2),
        np.array(fractions.Fraction(2)),
        np.int8(2),
        torch.tensor(2),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_kind_of_number_is_a_number(answer):
    assert check.uniform_divisor(answer).passed
    assert check.k2([2 * answer, answer + answer, 0 * answer]).passed


def test_a_number_that_is_nearly_right_is_told_so():
    close = "That is close. If you have rounded, give four digits or more."
    assert check.linear_std(0.02).message == f"Yours is 0.02. {close}"
    assert check.head_parameters(98000).message == f"Yours is 98000. {close}"
    assert check.linear_std(0.2).message == "Yours is 0.2."
    assert "close" not in check.weights_1([0.06, 0.47, 0.47]).message  # named: rounded_weights
    assert "close" not in check.k2([2, 3, 1.1]).message


def test_the_expected_number_is_not_given_away():
    for name, right in {"linear_std": "0.0208", "score_std": "12", "weights_1": "0.06338", "k2": "4"}.items():
        answer = [7.0, 7.0, 7.0] if name in ("weights_1", "k2") else 7.0
        assert right not in getattr(check, name)(answer).message


def test_numbers_that_are_none_get_a_message():
    assert "a str, where numbers are expected. Fix: numbers without quotes" in check.score_std("12").message
    assert "too large: a float ends" in check.k2([10**400, 0, 0]).message
    assert "too large: a float ends" in check.score_std(10**400).message
    assert "numbers only" in check.k2([[4], 4, 0]).message
    assert "real numbers are expected" in check.k2(["4", "4", "0"]).message
    assert "dtype complex128" in check.score_std(12 + 0j).message


# --- the library's own


@pytest.mark.parametrize(
    "name, answer",
    [
        ("softmax", al.softmax),
        ("scaled_dot_product_attention", al.scaled_dot_product_attention),
        ("scaled_dot_product_attention", lambda q, k, v, m=None: al.attention_trace(q, k, v, m).output),
        ("masked_softmax", lambda s, m=None: al.softmax(s if m is None else np.where(m, s, -np.inf))),
        ("MultiHeadAttention", torch_layers.MultiHeadAttention),
    ],
)
def test_attnlibs_own_function_passes_with_a_remark(name, answer):
    verdict = getattr(check, name)(answer)
    assert verdict.passed and verdict.mistake is None
    assert "Remark: attnlib's own" in verdict.message


def test_what_may_be_used_gets_no_remark():
    def attention(query, key, value, attn_mask=None):
        scaled = query @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])
        return al.softmax(scaled if attn_mask is None else np.where(attn_mask, scaled, -np.inf)) @ value

    assert check.scaled_dot_product_attention(attention).message == ""
    assert check.SelfAttention(SelfAttention).message == ""
    cross = check.cross_attention(lambda x, c, Q, K, V, m=None: attention(x @ Q, c @ K, c @ V, m))
    assert cross.passed and cross.message == ""


def test_a_profiler_is_left_as_it_was():
    def mine(*event):
        pass

    sys.setprofile(mine)
    try:
        check.softmax(al.softmax)
        assert sys.getprofile() is mine
    finally:
        sys.setprofile(None)


# --- patched NumPy


@pytest.mark.parametrize("name", ["allclose", "isclose", "array_equal"])
def test_a_patched_numpy_changes_nothing(monkeypatch, name):
    monkeypatch.setattr(np, name, lambda a, b, **options: np.ones(np.shape(a), bool) if name == "isclose" else True)
    assert not check.softmax(lambda x, axis=-1: 0 * x).passed
    assert not check.k2([0, 0, 0]).passed
    told = check.cross_attention(lambda x, context, Q, K, V, mask=None: np.zeros((*x.shape[:-1], V.shape[-1])))
    assert told.stage is None  # the output is 0 whatever the values are, so nothing is known of the weights

    def writes(query, key):
        scores = query @ np.swapaxes(key, -1, -2)
        query *= 0
        return scores

    assert check.attention_scores(writes).mistake == "mutates_input"


# --- errors show the learner's line


def test_an_error_in_a_module_shows_the_learners_line():
    class Broken(SelfAttention):
        def scale(self, scores):
            return scores / torch.ones(99)  # this line

    class BrokenInside(SelfAttention):
        def scale(self, scores):
            return nn.functional.linear(scores, torch.ones(2, 99))  # this line inside torch

    for answer in (Broken, BrokenInside):
        message = check.SelfAttention(answer).message
        assert re.search(r"Line \d+: return .*# this line", message), message


def test_an_error_in_a_helper_shows_the_helpers_line():
    namespace = {"np": np}
    exec(compile("def turn(k):\n    return np.swapaxes(k, 7, 8)  # helper", "<another cell>", "exec"), namespace)
    message = check.attention_scores(lambda q, k: q @ namespace["turn"](k)).message
    assert "AxisError" in message and re.search(r"\nLine 2$", message), message


def test_an_error_inside_attnlib_shows_the_line_that_called_it():
    message = check.attention_scores(lambda q, k: al.softmax("no")).message  # the caller
    assert "# the caller" in message


# --- hints


@pytest.mark.parametrize(
    "change, stage",
    [
        (lambda q, k, v, m: (1.3 * q, k, v, m), "scale"),
        (lambda q, k, v, m: (q, k**2, v, m), "scores"),
        (lambda q, k, v, m: (q, k, v, m if m is None else np.roll(m, 1, axis=-1)), "mask"),
        (lambda q, k, v, m: (q, k, v**2, m), "output"),
    ],
)
def test_hints_follow_the_stage_that_is_wrong(change, stage):
    verdict = check.scaled_dot_product_attention(
        lambda q, k, v, m=None: al.scaled_dot_product_attention(*change(q, k, v, m))
    )
    assert verdict.stage == stage
    first, second, third = (verdict.hint() for _ in range(3))
    assert (first.split(": ", 1)[1], second.split(": ", 1)[1]) == grading.STAGE_HINTS[stage]
    assert check.scaled_dot_product_attention.hints[0] in third


# --- each exercise has numbers of its own


@pytest.mark.parametrize(
    "make",
    [probes.softmax, probes.attention, probes.masked, probes.entropy, probes.self_attention, probes.heads_to_rank],
)
def test_probes_do_not_depend_on_other_exercises(make):
    def flat(args):
        return [np.asarray(x) for x in args if isinstance(x, np.ndarray)]

    first, _, second = make(), probes.cross(), make()
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(flat(a.args), flat(b.args), strict=True))
    assert not np.array_equal(probes.attention()[0].args[0][:, :3], probes.scores()[0].args[0])


# --- time and memory


def test_a_huge_answer_is_not_kept():
    tracemalloc.start()
    try:
        verdict = check.softmax(lambda x, axis=-1: np.zeros((20_000, 20_000), dtype=bool))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "shape (20000, 20000), far more" in verdict.message
    assert peak < 2.5 * 20_000**2  # one at a time, though there are nine probes
    assert "far more" in check.k2(np.broadcast_to(0.0, (10**9, 10**9))).message


ENDLESS_IN_C = """
from attnlib.checks import check, grading
grading.TIME_LIMIT = 1.0
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
def test_a_loop_in_c_is_stopped():
    printed = run("softmax", "lambda x, axis=-1: sum(range(10**11))")
    assert "did not finish within 1 seconds" in printed


@linux
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


@linux
@pytest.mark.rehearsal
def test_code_that_waits_is_not_accused_of_computing(monkeypatch):
    """A copy that stands still says nothing: it may be the copying that stopped it."""
    from attnlib.checks.rehearsal import rehearse

    parent = os.getpid()
    calls = [lambda: None, lambda: time.sleep(60) if os.getpid() != parent else None]
    assert rehearse(calls, 0.5) == (2, None)


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
    assert set(seen) == {os.getpid()} and len(seen) == 9
    assert capfd.readouterr().out.count("once") == 18
    assert len(os.listdir("/proc/self/fd")) == open_files
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no copy is left


@linux
@pytest.mark.rehearsal
def test_torch_with_threads_can_be_rehearsed():
    """The threads of torch are not copied: a copy that waited for them would stand still until its time is up."""
    code = (
        "import time, torch; torch.set_num_threads(2); x = torch.rand(1000, 1000)\n"
        "work = lambda: (x @ x, x.exp().sum())\n"
        "from attnlib.checks.rehearsal import rehearse\n"
        "work(); begin = time.monotonic(); print(rehearse([work], 30), time.monotonic() - begin < 29)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120)
    assert done.stdout == "(1, None) True\n", done


@linux
def test_a_copy_ends_though_the_notebook_was_killed():
    code = (
        "import os, signal, threading; from attnlib.checks.rehearsal import rehearse\n"
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
    monkeypatch.delattr(calling.signal, "setitimer")
    monkeypatch.setattr(grading, "TIME_LIMIT", 0.05)
    assert check.softmax(lambda x, axis=-1: (time.sleep(0.05), al.softmax(x, axis))[1]).passed
    assert capsys.readouterr().out.count("interrupt the kernel") == 1
    assert check.softmax(al.softmax).passed
    time.sleep(0.1)
    assert "interrupt" not in capsys.readouterr().out
