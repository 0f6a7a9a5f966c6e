"""What `diagnose` says of strangers' modules is true, and points to the right place; what it promises it keeps."""

import warnings
from pathlib import Path

import pytest
import torch
from test_diagnose import caught
from torch import nn

from attncourse.clinic import Attention
from attnlib.diagnose import diagnose
from attnlib.diagnose._caller import Caller
from tests.diagnose_corpus import layers, other_styles, self_attention, two_masks
from tests.diagnose_corpus.cases import CASES

SIZES = {"embed_dim": 32, "num_heads": 4}


def of(module, **more):
    torch.manual_seed(0)
    return diagnose(module, **{**SIZES, **more})


@pytest.mark.parametrize(
    "make, bug, only",
    [
        (two_masks.Plain, "mask changed in place", "inputs untouched"),
        (two_masks.Plain, "global maximum", "large inputs"),
        (two_masks.Plain, "squeeze", "batch consistency"),
        (two_masks.Plain, "twice the heads", "heads differ"),
        (two_masks.BothMasks, "pairs transposed", "causality"),
        (layers.Keeps, "scale of embed_dim", "score scale"),
        (layers.CompiledInside, "multiplied by the root", "score scale"),
        (layers.wrapped_inside, "scale of embed_dim", "score scale"),
        (layers.MapAround, "attends over the batch", "batch consistency"),
    ],
)
def test_one_bug_is_one_finding(make, bug, only):
    torch.manual_seed(0)  # the weights are drawn here, not when tests are collected
    assert of(make(bug=bug)).wrong == [only]


def test_a_softmax_over_the_batch_is_not_called_heads_that_are_alike():
    for module in (two_masks.Plain, layers.TalkingHeads):
        diagnosis = of(module(bug="softmax over the batch"))
        assert "batch consistency" in diagnosis.wrong and "heads differ" not in caught(diagnosis)
        assert diagnosis["score scale"].verdict == "ok"  # a convolution of heads does not undo the scale


@pytest.mark.parametrize(
    "module, probe, look_at",
    [
        (layers.Keeps(), "determinism", "what forward keeps in self"),
        (self_attention.Bert(bug="dropout that never stops"), "determinism", "F.dropout without"),
        (two_masks.BothMasks(bug="pairs transposed"), "causality", "rows are the queries"),
        (other_styles.Annotated(bug="rows and columns of the mask"), "causality", "rows are the queries"),
        (other_styles.Graph(bug="edges turned round"), "causality", "rows are the queries"),
        (two_masks.BothMasks(bug="pairs filled with 0"), "causality", "whether the mask reaches"),
        (two_masks.Plain(bug="squeeze"), "batch consistency", "squeeze()"),
        (two_masks.Plain(bug="global maximum"), "large inputs", "of each row, not of all"),
        (two_masks.Plain(bug="dropout on the scores"), "row sums", "after the softmax"),
        (two_masks.Plain(bug="W_Q is 0"), "dead parameters", "how the projections begin"),
        (two_masks.Past(bug="last entry lost"), "cache", "which entries of it are kept"),
        (other_styles.Annotated(bug="fill of -1e20"), "float16", "a fill beyond 65504"),
    ],
)
def test_it_points_to_the_right_place(module, probe, look_at):
    diagnosis = of(module)
    assert probe in caught(diagnosis) and look_at in diagnosis[probe].look_at, diagnosis


def test_a_large_bias_is_not_called_a_fill():
    class Biased(two_masks.Plain):
        def weights(self, scores):
            return (scores + self.bias).softmax(-1)

    module = Biased()
    module.bias = nn.Parameter(torch.tensor(1e5))
    assert "with or without a mask" in of(module)["float16"].look_at


def test_a_closure_in_the_place_of_forward_is_not_run():
    """The copy is examined: what the patch counts, and what the module itself holds, stay as they are."""
    module, calls = layers.wrapped(), []
    old = module.forward

    def counted(x):
        calls.append(len(x))
        return old(x)

    module.forward = counted
    module.register_forward_hook(lambda module, inputs, output: calls.append("hook"))
    assert of(module).ok and calls == []
    assert module.forward is counted
    module(torch.randn(1, 3, 32))
    assert calls == [1, "hook"]


def test_what_is_compiled_is_examined_as_it_was_written():
    for make in (layers.compiled, layers.CompiledInside):
        diagnosis = of(make())
        assert caught(diagnosis) == set()
        assert diagnosis["score scale"].verdict == diagnosis["dead parameters"].verdict == "ok"


def test_nothing_is_compiled_and_the_module_stays_compiled():
    """A kernel of a real backend hides its operations."""
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    inside = nn.Sequential(nn.LayerNorm(32), torch.compile(self_attention.FusedCausal(), backend=backend))
    in_place = self_attention.FusedCausal(bug="v is k")
    in_place.compile(backend=backend)
    assert of(inside).wrong == [] and of(in_place).wrong == ["dead parameters"]
    assert compiled == []
    assert in_place._compiled_call_impl is not None and "_orig_mod" in inside[1]._modules


def test_where_no_run_is_left_nothing_is_said_of_parameters():
    class NaN(two_masks.Plain):
        def forward(self, x):
            return super().forward(x) * torch.nan

    assert of(NaN())["dead parameters"][1:3] == ("could not tell", "no run gives a finite output")


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 32, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


class Mean(nn.Linear):
    def forward(self, x):
        return super().forward(x + x.mean(1, keepdim=True))


@pytest.mark.parametrize("module", [Recurrent(), Mean(32, 32)])
def test_what_weighs_nothing_is_no_attention(module):
    with pytest.raises(TypeError, match="is not an attention module"):
        of(module)


def test_a_softmax_without_a_product_is_attention():
    class Elementwise(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

        def forward(self, x):
            scores = (self.q(x)[:, :, None] * self.k(x)[:, None]).sum(-1) / 32**0.5
            return (scores.softmax(-1)[..., None] * self.v(x)[:, None]).sum(2)

    assert of(Elementwise(), num_heads=1).ok


def test_torchscript_is_refused_by_name():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = torch.jit.trace(nn.Linear(32, 32), torch.randn(2, 5, 32))
    with pytest.raises(TypeError, match=r"got one of TorchScript.*Fix: "):
        of(module)


def test_a_boolean_mask_that_is_added_breaks_what_was_said():
    module = two_masks.Plain(bug="boolean mask added")
    assert [of(module, blocked=said)["mask polarity"].verdict for said in (None, False, True)] == [
        "beware",
        "wrong",
        "wrong",
    ]


def test_positions_that_were_said_are_held_to_behind_a_window_too():
    assert of(two_masks.Plain(positions=True), positions=True)["permutation"].verdict == "ok"
    diagnosis = of(two_masks.CausalPlaces(bug="the same place for all"), causal=True, positions=True)
    assert diagnosis.wrong == ["permutation"] and "no positions" in diagnosis["permutation"].measured
    assert of(two_masks.CausalPlaces(bug="the same place for all")).ok  # nothing was said


def test_adapters_on_frozen_weights_are_no_finding():
    assert of(layers.LowRank())["dead parameters"].verdict == "ok"
    assert "the queries" in of(two_masks.Plain(bug="W_Q frozen"))["dead parameters"].measured
    assert of(two_masks.Plain().requires_grad_(False))["dead parameters"].verdict == "ok"  # not being trained


def test_the_page_counts_the_calls(monkeypatch):
    called, old = [], Caller.__call__
    monkeypatch.setattr(Caller, "__call__", lambda self, *given, **more: called.append(1) or old(self, *given, **more))
    of(Attention(32, 4))
    page = Path(__file__).parent.parent / "docs" / "diagnose.md"
    assert 70 < len(called) < 140 and "about a hundred times" in page.read_text(encoding="utf-8")


def test_the_styles_of_the_corpus_are_there():
    modules = {case.style.__module__.rpartition(".")[2] for case in CASES}
    older = {"self_attention", "other_styles", "newer_styles", "layers", "two_masks", "strangers"}
    assert modules == older | {"real_code", "public_styles"}
    assert len({case.style for case in CASES if case.style.__module__.endswith("public_styles")}) >= 20
