"""`diagnose` calls modules of any signature, changes nothing, and says what it measured."""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from test_diagnose import PROBES, caught
from torch import nn

import attnlib as al
from attncourse.clinic import (
    Attention,
    CopiedHeads,
    DoubleSoftmax,
    OneMaskForFirstHeadOnly,
    ProjectionsUnused,
    ScaleByEmbedDim,
    SharedSmallProjection,
    fresh,
)
from attnlib import torch_layers
from attnlib.diagnose import Diagnosis, Finding, diagnose
from attnlib.diagnose.__main__ import main
from tests.diagnose_corpus import other_styles, self_attention


class Causal(nn.Module):
    """One sequence in, the output alone out; causal by itself, fused kernel."""

    def __init__(self, leaks=False, scale=None):
        super().__init__()
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)
        self.leaks, self.scale = leaks, scale

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 6)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not self.leaks, scale=self.scale)
        return self.out(y.transpose(1, 2).flatten(2))


def test_a_module_that_is_causal_by_itself_and_shows_no_weights():
    diagnosis = diagnose(Causal(), embed_dim=24, num_heads=4, causal=True)
    assert diagnosis.wrong == []
    assert diagnosis["causality"].verdict == diagnosis["score scale"].verdict == "ok"
    assert diagnosis["heads differ"].verdict == "ok"
    assert diagnosis["padding"].verdict == "could not tell"
    assert diagnose(Causal(), embed_dim=24, num_heads=4) == diagnosis[:0] + tuple(
        finding._replace(measured=finding.measured + " (causal by itself)") if finding.probe == "causality" else finding
        for finding in diagnosis
    )
    assert diagnose(Causal(leaks=True), embed_dim=24, num_heads=4, causal=True).wrong == ["causality"]
    assert diagnose(Causal(scale=24**-0.5), embed_dim=24, num_heads=4, causal=True).wrong == ["score scale"]


def test_call_adapts_any_signature():
    class Strange(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch_layers.MultiHeadAttention(24, 4)

        def forward(self, pairs, rope):
            query, keys, values, blocked = pairs
            return {"out": self.inner(query, keys, values, attn_mask=None if blocked is None else ~blocked)}

    def call(module, query, key, value, mask):
        return module((query, key, value, None if mask is None else ~mask), rope=())

    diagnosis = diagnose(Strange(), embed_dim=24, num_heads=4, call=call)
    assert caught(diagnosis) == set()
    assert diagnosis["values apart"].verdict == "ok"
    with pytest.raises(TypeError, match="Fix: call="):
        diagnose(Strange(), embed_dim=24, num_heads=4)
    itself = diagnose(Strange(), embed_dim=24, num_heads=4, call=lambda m, q, k, v, mask: m((q, q, q, None), rope=()))
    assert itself.ok  # the call passes no mask on: nobody is accused of ignoring it
    assert itself["causality"].measured == "no mask reached it"


def test_a_mask_that_has_no_default_and_four_axes_is_found_out():
    class FourAxes(Attention):
        def forward(self, values, keys, query, mask):
            return super().forward(query, keys, values, mask)

        def with_head_axis(self, mask):
            return mask != 0  # (b, n_q, n_k) does not broadcast to (b, h, n_q, n_k)

    assert diagnose(FourAxes(24, 4), embed_dim=24, num_heads=4)["causality"].verdict == "ok"


def test_nothing_is_changed_by_the_examination():
    module = Attention(24, 4).train()
    before = {name: p.clone() for name, p in module.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = diagnose(module, embed_dim=24, num_heads=4)
    assert torch.equal(torch.rand(2), expected)
    assert module.training and all(p.grad is None for p in module.parameters())
    assert all(torch.equal(p, before[name]) for name, p in module.state_dict().items())
    assert first == diagnose(module, embed_dim=24, num_heads=4)


def test_where_gradients_are_off_the_diagnosis_is_the_same():
    with torch.no_grad():
        diagnosis = diagnose(ProjectionsUnused(24, 4), embed_dim=24, num_heads=4)
    assert diagnosis.wrong == ["dead parameters"]


def test_what_goes_wrong_inside_a_probe_is_a_finding_not_an_error():
    class Picky(Attention):
        def forward(self, query, key=None, value=None, attn_mask=None):
            if query.shape[0] == 1 or attn_mask is not None:
                raise RuntimeError("only batches, <b>no masks</b>")
            return super().forward(query, key, value)

    diagnosis = diagnose(Picky(24, 4), embed_dim=24, num_heads=4)
    unknown = {f.probe for f in diagnosis if f.verdict == "could not tell"}
    assert unknown == {"causality", "padding", "mask polarity", "fully masked row", "cache"} | {
        "heads differ"  # looks at one sequence
    }
    assert diagnosis["batch consistency"].verdict == "beware"
    assert "only batches" in diagnosis["batch consistency"].measured
    assert "<b>" not in diagnosis._repr_html_()


def test_heads_that_are_alike_are_counted_as_heads():
    """Four alike make six pairs: "6 pairs of heads" sounds like twelve. And one input was tried, not any."""
    for module, what in (
        (CopiedHeads, "on random tokens"),
        (SharedSmallProjection, "where all slices of the tokens are"),
    ):
        measured = diagnose(fresh(module), embed_dim=24, num_heads=4)["heads differ"].measured
        assert measured.startswith(f"4 of 4 heads have the weights of another {what}"), measured


def test_the_table_says_what_was_measured():
    diagnosis = diagnose(ScaleByEmbedDim(24, 4), embed_dim=24, num_heads=4)
    assert diagnosis["score scale"].measured == "0.2041 = 1/sqrt(embed_dim); 1/sqrt(head_dim) = 0.4082"
    lines = repr(diagnosis).splitlines()
    assert lines[0].split() == ["probe", "verdict", "measured", "look", "at"]
    assert len(lines) == len(PROBES) + 1
    assert diagnosis._repr_html_().count("<tr>") == len(PROBES) + 1
    assert "Cases by symptom" in diagnosis._repr_html_() and "Cases by symptom" not in repr(diagnosis)
    well = diagnose(Attention(24, 4), embed_dim=24, num_heads=4)
    odd = Diagnosis([Finding("allowed keys", "wrong", "", "")])
    assert not well.read_on and not odd.read_on and "<caption" not in odd._repr_html_()  # no bug of the page has these
    dead = diagnose(ProjectionsUnused(24, 4), embed_dim=24, num_heads=4)
    assert dead["dead parameters"].measured.startswith("432 of 1032 parameters do nothing: W_Q.weight")
    assert dead["heads differ"].measured == "first see to dead parameters"


@pytest.mark.parametrize(
    "module, kwargs, message",
    [
        (al.softmax, {}, "takes an nn.Module, got function"),
        (nn.LazyLinear(3), {}, "LazyLinear has lazy layers"),
        (nn.Conv1d(24, 24, 3, padding=1), {}, "Conv1d is not an attention module"),
        (nn.Linear(24, 3), {}, "Linear is not an attention module"),
        (nn.Linear(3, 3), {}, r"could not call the module.*mat1 and mat2"),
        (nn.Identity(), {"call": lambda m, q, k, v, mask: "text"}, "must be a tensor"),
        (nn.Identity(), {"call": lambda m, q, k, v, mask: q[0]}, "must be a tensor"),
    ],
)
def test_errors_say_what_to_do(module, kwargs, message):
    with pytest.raises(TypeError, match=message) as error:
        diagnose(module, embed_dim=24, num_heads=4, **kwargs)
    assert "Fix: " in str(error.value)


@pytest.mark.parametrize(
    "module, arguments, probe, verdict",
    [
        (other_styles.SequenceFirst(), {}, "layout", "beware"),
        (other_styles.SequenceFirst(), {"batch_first": False}, "layout", "ok"),
        (other_styles.SequenceFirst(), {"batch_first": True}, "layout", "wrong"),
        (other_styles.AxesOfXL(), {}, "mask polarity", "beware"),
        (other_styles.AxesOfXL(), {"blocked": True}, "mask polarity", "ok"),
        (other_styles.AxesOfXL(), {"blocked": False}, "mask polarity", "wrong"),
        (other_styles.Fused(bug="no scale"), {}, "score scale", "beware"),
        (other_styles.Fused(bug="no scale"), {"scale": 1.0}, "score scale", "ok"),
        (other_styles.Fused(bug="no scale"), {"scale": 0.25}, "score scale", "wrong"),
        (other_styles.Cosine(), {}, "score scale", "could not tell"),
        (self_attention.RelativeBias(), {}, "permutation", "beware"),
        (self_attention.RelativeBias(), {"positions": True}, "permutation", "ok"),
        (self_attention.FusedCausal(), {"causal": False}, "causality", "could not tell"),
        (self_attention.Swallows(), {}, "causality", "could not tell"),
        (self_attention.Swallows(), {"causal": True}, "causality", "wrong"),
    ],
)
def test_what_is_declared_is_held_and_what_is_not_is_no_fault(module, arguments, probe, verdict):
    diagnosis = diagnose(module, embed_dim=32, num_heads=4, **arguments)
    assert diagnosis[probe].verdict == verdict, diagnosis


def one_mask_for_all(kind):
    """The module with a mask (n_q, n_k) and no other; with as many sequences as tokens (b, n_k) fits it, too."""

    class OneMask(kind):
        def with_head_axis(self, mask):
            if mask.ndim != 2:
                raise ValueError("one mask for all sequences: (n_q, n_k)")
            return super().with_head_axis(mask)

    return OneMask(24, 4)


class CausalWithMask(Attention):
    """Causal by itself, and takes a mask (n_q, n_k) besides."""

    def with_head_axis(self, mask):
        return mask & torch.ones_like(mask).tril()

    def forward(self, query, key=None, value=None, attn_mask=None):
        n = query.shape[1]
        return super().forward(
            query, key, value, torch.ones(n, n, dtype=torch.bool) if attn_mask is None else attn_mask
        )


@pytest.mark.parametrize(
    "kind, causal, wrong",
    [
        (Attention, None, []),
        (Attention, True, ["causality"]),
        (OneMaskForFirstHeadOnly, None, ["causality"]),
        (DoubleSoftmax, None, ["causality"]),
        (CausalWithMask, None, []),
        (CausalWithMask, True, []),
    ],
)
def test_a_mask_for_all_sequences_is_not_accused_of_padding(kind, causal, wrong):
    for seed in range(3):
        torch.manual_seed(seed)
        diagnosis = diagnose(one_mask_for_all(kind), embed_dim=24, num_heads=4, causal=causal)
        assert diagnosis.wrong == wrong, diagnosis
        assert diagnosis["padding"][1:3] == ("could not tell", "it takes one mask for all sequences")


def test_the_form_that_is_named_is_one_that_the_module_takes():
    """Of a mask (b, n_k) that a module reads as (n_q, n_k) nothing is said where another form reaches the keys."""
    for kind in (OneMaskForFirstHeadOnly, DoubleSoftmax):
        assert "(b, 1, 1, n_k)" in diagnose(kind(24, 4), embed_dim=24, num_heads=4)["padding"].measured


def test_forms_of_masks_are_found():
    found = {
        style: diagnose(style(), embed_dim=32, num_heads=4)["causality"].measured.partition("(")[2]
        for style in (self_attention.Bert, other_styles.Annotated, other_styles.AxesOfXL, other_styles.SequenceFirst)
    }
    assert list(found.values()) == [
        "attention_mask, additive, (b, 1, n_q, n_k))",
        "mask, boolean, (b, n_q, n_k))",
        "attn_mask, blocked, (n_q, n_k))",
        "attn_mask, additive, (n_q, n_k))",
    ]


def test_a_module_that_has_run_and_keeps_its_weights():
    module = self_attention.KeepsItsWeights()
    module(torch.randn(1, 3, 32))
    kept = module.attention_weights
    assert diagnose(module, embed_dim=32, num_heads=4).ok
    assert module.attention_weights is kept and kept.grad_fn is not None


def test_zeros_at_the_start_hide_nothing():
    broken = self_attention.Vision(bug="multiplied by the root", init_zero=True)
    assert diagnose(broken, embed_dim=32, num_heads=4).wrong == ["score scale"]
    assert not broken.proj.weight.any()


def test_the_refusal_shows_what_went_wrong_deepest_inside():
    class Deep(Attention):
        def forward(self, tokens, other):
            if other is not None:
                raise ValueError("the first guess")
            return super().forward(tokens)

        def split(self, x):
            raise RuntimeError("the real reason")

    with pytest.raises(TypeError, match="the real reason"):
        diagnose(Deep(24, 4), embed_dim=24, num_heads=4)


SIZES = ["--embed-dim", "24", "--num-heads", "4"]


@pytest.mark.parametrize(
    "arguments, status, printed",
    [
        (["attncourse.clinic:Attention"], 0, "score scale        ok"),
        (["attncourse.clinic:Attention", "--causal"], 1, "causality          wrong"),
        (
            ["attncourse.clinic:CASES", "--init", "CASES['case_14'].module(24, 4)"],
            0,
            "fully masked row   beware",
        ),
        (["attncourse.clinic:ScaleByEmbedDim"], 1, "each with its line: Cases by symptom, docs/book/symptoms.md"),
        (["attncourse.clinic:Nobody"], 2, "has no attribute 'Nobody'"),
        (["attncourse.clinic"], 2, "expected package.module:Class"),
        (["torch.nn:Linear"], 2, "not an attention module"),
        (
            ["./attncourse/clinic/ward.py:TutorialAttention"],
            2,
            "Fix: python -m attnlib.diagnose attncourse.clinic.ward:TutorialAttention",
        ),
        (["attncourse.clinic:Attention", "--scale", "nan"], 2, "scale must be a finite number above 0, got nan"),
        (["attncourse.clinic:Attention", "--scale", "x"], 2, "argument --scale: invalid float value: 'x'"),
        (["torch.nn:ReLU"], 2, 'ReLU(24, 4). Fix: --init "ReLU(...)", with the arguments that it takes.'),
        (["sys:exit", "--init", "exit(0)"], 2, "called sys.exit(0)"),
        (["torch.nn:x", "--init", "Linear(24, 24, device='meta')"], 2, "is on the meta device"),
    ],
)
def test_the_command_line(monkeypatch, capsys, arguments, status, printed):
    monkeypatch.setattr(sys, "path", sys.path[:])
    try:
        returned = main([*arguments, *SIZES])
    except SystemExit as stop:  # argparse stops there
        returned = stop.code
    assert returned == status
    assert printed in "".join(capsys.readouterr())


@pytest.mark.slow
def test_the_command_line_as_a_command():
    command = [sys.executable, "-m", "attnlib.diagnose", "attncourse.clinic:ScaleByEmbedDim", *SIZES]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "score scale        wrong" in done.stdout


def test_heads_may_be_wider_than_a_share_of_embed_dim():
    module = self_attention.BigHeads(dim=30, heads=4, dim_head=16)
    assert diagnose(module, embed_dim=30, num_heads=4)["score scale"].verdict == "ok"


def test_sizes_are_whole_numbers_above_0():
    with pytest.raises(TypeError, match=r"embed_dim must be a whole number"):
        diagnose(Attention(24, 4), embed_dim=24.0)
    with pytest.raises(ValueError, match="num_heads must be at least 1"):
        diagnose(Attention(24, 4), embed_dim=24, num_heads=0)
