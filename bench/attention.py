"""How fast attnlib's attention is, as ratios to what people would otherwise use.

Every wanted figure is printed with ok or MISSED and nothing fails: timings on a shared machine are noisy.
"""

import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import attnlib as al
from attnlib.torch_layers import MultiHeadAttention

from .timing import alternate, compare, verdict

ROWS = [  # (b, n, d_model, h), is_causal
    ((32, 10, 256, 8), False),
    ((8, 256, 256, 8), False),
    ((2, 1024, 256, 8), False),
    ((1, 4096, 256, 8), False),
    ((2, 1024, 256, 8), True),
]
SECONDS = 1.5  # per row of the table
ROOT = pathlib.Path(__file__).resolve().parent.parent


class TutorialAttention(nn.Module):
    """Multi-head attention as widely copied tutorial code writes it: the scores of all heads by einsum, always."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads, self.d_k = num_heads, embed_dim // num_heads
        self.W_Q = nn.Linear(embed_dim, embed_dim)
        self.W_K = nn.Linear(embed_dim, embed_dim)
        self.W_V = nn.Linear(embed_dim, embed_dim)
        self.W_O = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, key, value, mask=None):
        b, n_q, embed_dim = query.shape
        q = self.W_Q(query).reshape(b, n_q, self.num_heads, self.d_k)
        k = self.W_K(key).reshape(b, -1, self.num_heads, self.d_k)
        v = self.W_V(value).reshape(b, -1, self.num_heads, self.d_k)
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e20)
        attention = torch.softmax(energy / math.sqrt(self.d_k), dim=-1)
        output = torch.einsum("nhqk,nkhd->nqhd", attention, v).reshape(b, n_q, embed_dim)
        return self.W_O(output)


def layers(size, is_causal, *, training, need_weights):
    """Return {name: callable} for one row: the three layers with equal weights on the same input."""
    b, n, d_model, h = size
    torch.manual_seed(0)
    ours = MultiHeadAttention(d_model, h).train(training)
    theirs = ours.to_torch()
    tutorial = TutorialAttention(d_model, h).train(training)
    tutorial.load_state_dict(ours.state_dict())
    x = torch.randn(b, n, d_model, requires_grad=training)
    gradient = torch.randn(b, n, d_model)
    mask = torch.ones(n, n, dtype=torch.bool).tril() if is_causal else None  # True = may attend
    torch_options = {"need_weights": need_weights, "average_attn_weights": False}
    if is_causal:
        torch_options |= {"attn_mask": ~mask, "is_causal": True}
    forwards = {
        "ours": (ours, lambda: ours(x, is_causal=is_causal, need_weights=need_weights)[0]),
        "torch": (theirs, lambda: theirs(x, x, x, **torch_options)[0]),
        "tutorial": (tutorial, lambda: tutorial(x, x, x, mask)),
    }

    def inference(module, forward):
        with torch.no_grad():  # with eval(), this lets nn.MultiheadAttention take its fast path
            return forward()

    def train(module, forward):
        module.zero_grad()
        x.grad = None
        forward().backward(gradient)

    expected = inference(*forwards["tutorial"])
    for name in ("ours", "torch"):
        torch.testing.assert_close(inference(*forwards[name]), expected, msg=f"{name} computes something else")
    step = train if training else inference
    return {name: lambda pair=pair: step(*pair) for name, pair in forwards.items()}


def layer_table():
    print(f"torch {torch.__version__}, threads: {torch.get_num_threads()}. Self-attention, float32.")
    print("Ratios of time, below 1 = attnlib is faster: ratio of medians, median of paired ratios.")
    print(f"{'(b, n, d_model, h)':24} {'ours':>9}  {'/ nn.MultiheadAttention':34}  / tutorial class")
    for training in (False, True):
        for need_weights in (False, True):
            print(
                f"{'forward + backward, train' if training else 'forward, eval, no_grad'}, "
                f"{'with weights per head' if need_weights else 'without weights'}"
            )
            for size, is_causal in ROWS:
                contestants = layers(size, is_causal, training=training, need_weights=need_weights)
                times = alternate(contestants, SECONDS)
                label = f"{size}{' causal' if is_causal else ''}"
                wanted = 1.1 if need_weights else 1.0
                third = 1 / 3 if size[1] >= 1024 and not need_weights else None
                print(
                    f"{label:24} {statistics.median(times['ours']) * 1e3:6.1f} ms  "
                    f"{compare(times, 'ours', 'torch', wanted):34}  {compare(times, 'ours', 'tutorial', third)}",
                    flush=True,
                )


PEAK = """
import torch
from attnlib.torch_layers import MultiHeadAttention

def peak():  # VmHWM and not getrusage: the latter starts at what the parent process had
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

def run(n):
    x = torch.zeros(1, n, 256, requires_grad={training})
    with torch.set_grad_enabled({training}):
        output, _ = mha(x, need_weights={need_weights})
        if {training}:
            output.sum().backward()

mha = MultiHeadAttention(256, 8).train({training})
run(16)
before = peak()
run({n})
print(peak() - before)
"""


def memory():
    """Print the growth of peak memory; the line with weights shows that the measurement sees an n x n array."""
    if not pathlib.Path("/proc/self/status").exists():
        print("Peak memory: not measured, it needs Linux.")
        return
    print("Growth of peak memory, and what the weights of all 8 heads would take")
    for n, training, need_weights in ((16384, False, False), (16384, True, False), (4096, False, True)):
        growth = int(python(PEAK.format(n=n, training=training, need_weights=need_weights)))
        full = n * n * 8 * 4
        wanted = None if need_weights else 0.1  # q, k, v, their heads and the output are 2 % at this length
        print(
            f"n = {n:5}, {'train' if training else 'eval '}, {'with   ' if need_weights else 'without'} weights: "
            f"{growth / 1e6:6.0f} MB of {full / 1e6:6.0f} MB, {growth / full:5.2f}  {verdict(growth / full, wanted)}",
            flush=True,
        )


def numpy_function():
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        query, key, value = rng.standard_normal((3, 1024, 64)).astype(dtype)

        def plain(query=query, key=key, value=value):
            weights = np.exp(query @ key.T / math.sqrt(64))
            return weights / weights.sum(axis=-1, keepdims=True) @ value

        def stable(query=query, key=key, value=value):
            scores = query @ key.T / math.sqrt(64)
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            return weights / weights.sum(axis=-1, keepdims=True) @ value

        def ours(query=query, key=key, value=value):
            return al.scaled_dot_product_attention(query, key, value)

        np.testing.assert_allclose(ours(), plain(), rtol=1e-3, atol=1e-5)
        times = alternate({"ours": ours, "plain": plain, "stable": stable}, SECONDS)
        print(f"NumPy, n = 1024, d = 64, {np.dtype(dtype)}")
        print(f"  / plainest expression      {compare(times, 'ours', 'plain', 1.2)}")
        print(f"  / the same, minus the max  {compare(times, 'ours', 'stable')}", flush=True)


def import_time():
    """Time the import statement alone: with the interpreter's start counted in, every ratio would look good.

    Both are compiled in the first round, into a folder of their own: where Python may write no bytecode beside the
    source (PYTHONDONTWRITEBYTECODE), attnlib would else be compiled each time, and NumPy, compiled by pip, would not.
    """
    code = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"
    times = {"attnlib": [], "numpy": []}
    with tempfile.TemporaryDirectory() as folder:
        compiled = {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for i in range(31):
            for name, seconds in times.items():
                figure = float(python(code.format(name), **compiled))
                if i:
                    seconds.append(figure)
    print(f"import attnlib / import numpy  {compare(times, 'attnlib', 'numpy', 1.1)}", flush=True)


def python(code, **variables):
    command, environment = [sys.executable, "-c", code], {**os.environ, **variables}
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8"
    ).stdout


def main():
    import_time()
    numpy_function()
    memory()
    layer_table()


if __name__ == "__main__":
    main()
