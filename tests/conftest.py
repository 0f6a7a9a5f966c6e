"""Shared by all tests: the NumPy library and its torch twin behind one face, and hypothesis made repeatable."""

import dataclasses
import gc
import os
import sys

import hypothesis
import numpy as np
import pytest
import torch
from processors import UNLISTED, listed
from torch.optim.optimizer import register_optimizer_step_pre_hook

import attnlib as al
from attncourse.engine import run
from attnlib import torch_layers

# jsonschema, which nbformat imports, would build 38 parsers of addresses of the web: a second in each process.
sys.modules.setdefault("rfc3987_syntax", None)
os.environ["ATTNLIB_MINE"] = ""  # what the person at this machine has kept is left alone
if "OMP_NUM_THREADS" not in os.environ:
    torch.set_num_threads(1)
hypothesis.settings.register_profile("attnlib", derandomize=True, deadline=None, database=None, max_examples=60)
hypothesis.settings.load_profile("attnlib")


def only_listed_tests_train(*_):
    """What trains depends on the processor, so `make test-processors` must know it; pytest says which test runs."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test.startswith("tests/"):
        assert listed(test), UNLISTED.format(test)


register_optimizer_step_pre_hook(only_listed_tests_train)


@pytest.fixture(autouse=True)
def _torch_is_left_as_it_was():
    """Cells of notebooks that run in this process switch gradients off, and small numbers to 0."""
    yield
    torch.set_grad_enabled(True)
    torch.set_flush_denormal(False)


def pytest_collection_finish():
    """What is imported by now stays: the garbage collector need not go through all of torch again and again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    """What the tests have left stays, too: Python ends sooner if it does not go through it."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def print_options():
    """Tests and fixtures that run cells of a notebook leave NumPy printing as they found it."""
    with np.printoptions():
        yield


class Twin:
    """The NumPy functions or the torch ones: arrays go in as NumPy and come out as NumPy, whichever they are."""

    def __init__(self, name):
        self.name = name
        self.module = {"numpy": al, "torch": torch_layers}[name]

    def array(self, x):
        return torch.tensor(x) if self.name == "torch" and isinstance(x, np.ndarray) else x

    def attend(self, *arrays, attn_mask=None, **options):
        arrays = [self.array(x) for x in arrays]
        output = self.module.scaled_dot_product_attention(*arrays, attn_mask=self.array(attn_mask), **options)
        return np.asarray(output)

    def trace(self, *arrays, attn_mask=None, **options):
        arrays = [self.array(x) for x in arrays]
        trace = self.module.attention_trace(*arrays, attn_mask=self.array(attn_mask), **options)
        assert type(trace) is al.AttentionTrace
        tensors = {f.name: getattr(trace, f.name) for f in dataclasses.fields(trace)}
        return al.AttentionTrace(**{k: np.asarray(v) if hasattr(v, "shape") else v for k, v in tensors.items()})


@pytest.fixture(params=["numpy", "torch"], scope="session")
def twin(request):
    return Twin(request.param)


@pytest.fixture(scope="session")
def twins():
    return Twin("numpy"), Twin("torch")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def no_rehearsal(request, monkeypatch):
    """Leave out the copy of the process for thousands of answers of ours, which all end; some tests are about it."""
    if "rehearsal" not in request.keywords:
        monkeypatch.setattr(run, "_rehearse_calls", lambda calls: (len(calls), ""))


@pytest.fixture(autouse=True)
def no_figure_is_left_over():
    """Which file ran before in this process depends on the number of processes."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
