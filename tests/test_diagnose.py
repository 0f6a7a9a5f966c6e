"""`diagnose` finds each bug of the clinic by the right probe and by no wrong one, and nothing in healthy modules."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlib as al
from attnlib import torch_layers
from attnlib.course import clinic
from attnlib.course.clinic import CASES, Attention
from attnlib.diagnose import diagnose

torch.set_num_threads(1)

PROBES = {
    "determinism",
    "inputs untouched",
    "row sums",
    "permutation",
    "batch consistency",
    "causality",
    "padding",
    "fully masked row",
    "dead parameters",
    "heads differ",
    "score scale",
    "large inputs",
    "float16",
    "argument order",
}


def caught(diagnosis):
    return {finding.probe for finding in diagnosis if finding.verdict in ("wrong", "beware")}


def padding_only(module, query, key, value, mask):
    """Adapt a module that takes a padding mask (b, n) and no other."""
    if mask is None:
        return module(query, key, value)
    if not (mask == mask[:, :1]).all():
        raise ValueError("this module takes padding masks only")
    return module(query, key, value, mask[:, 0])


@pytest.mark.parametrize("embed_dim, num_heads", [(24, 4), (40, 5)])
@pytest.mark.parametrize("id", CASES)
def test_every_bug_is_caught_by_the_right_probe_and_by_no_other(id, embed_dim, num_heads):
    case = CASES[id]
    for seed in range(3):
        torch.manual_seed(seed)
        call = padding_only if id == "padding_read_as_queries" else None
        diagnosis = diagnose(case.module(embed_dim, num_heads), embed_dim=embed_dim, num_heads=num_heads, call=call)
        assert caught(diagnosis) == set(case.caught_by), diagnosis
        assert diagnosis[case.caught_by[0]].look_at


def test_every_probe_but_none_too_many_is_needed_for_the_clinic():
    assert {probe for case in CASES.values() for probe in case.caught_by} == PROBES


HEALTHY = {
    "ours": (torch_layers.MultiHeadAttention(24, 4), 4, set()),
    "ours, no bias": (torch_layers.MultiHeadAttention(40, 5, bias=False), 5, set()),
    "clinic": (Attention(24, 4), 4, set()),
    "SelfAttention": (torch_layers.SelfAttention(24, 24), 1, {"heads differ", "argument order"}),
    "torch": (nn.MultiheadAttention(24, 4, batch_first=True), 4, set()),
    "torch, batch second, dropout": (nn.MultiheadAttention(24, 4, dropout=0.5), 4, set()),
    "torch, no bias": (nn.MultiheadAttention(40, 5, bias=False, batch_first=True), 5, set()),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_modules_pass_everything_that_applies(name):
    module, num_heads, unknown = HEALTHY[name]
    embed_dim = getattr(module, "embed_dim", 24)
    diagnosis = diagnose(module, embed_dim=embed_dim, num_heads=num_heads)
    assert {finding.probe for finding in diagnosis} == PROBES
    assert diagnosis.wrong == []
    assert {f.probe for f in diagnosis if f.verdict == "could not tell"} == unknown
    # A fully masked row is NaN in torch's own module: worth a warning, not a fault of its user.
    expected = {"fully masked row"} if name.startswith("torch") else set()
    assert caught(diagnosis) == expected


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
    assert diagnosis["padding"].verdict == diagnosis["permutation"].verdict == "could not tell"
    assert diagnose(Causal(leaks=True), embed_dim=24, num_heads=4, causal=True).wrong == ["causality"]
    assert diagnose(Causal(scale=24**-0.5), embed_dim=24, num_heads=4, causal=True).wrong == ["score scale"]


def test_call_adapts_any_signature():
    class Strange(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch_layers.MultiHeadAttention(24, 4)

        def forward(self, values, keys, query, blocked):
            return {"out": self.inner(query, keys, values, attn_mask=None if blocked is None else ~blocked)}

    def call(module, query, key, value, mask):
        return module(value, key, query, None if mask is None else ~mask)["out"]

    assert caught(diagnose(Strange(), embed_dim=24, num_heads=4, call=call)) == set()
    with pytest.raises(TypeError, match="Fix: call="):
        diagnose(Strange(), embed_dim=24, num_heads=4)


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
        diagnosis = diagnose(CASES["projections_unused"].module(24, 4), embed_dim=24, num_heads=4)
    assert diagnosis.wrong == ["dead parameters"]


def test_what_goes_wrong_inside_a_probe_is_a_finding_not_an_error():
    class Picky(Attention):
        def forward(self, query, key=None, value=None, attn_mask=None):
            if query.shape[0] == 1 or attn_mask is not None:
                raise RuntimeError("only batches, <b>no masks</b>")
            return super().forward(query, key, value)

    diagnosis = diagnose(Picky(24, 4), embed_dim=24, num_heads=4)
    unknown = {f.probe for f in diagnosis if f.verdict == "could not tell"}
    assert unknown == {"batch consistency", "causality", "padding", "fully masked row"}
    assert "only batches" in diagnosis["batch consistency"].measured
    assert "<b>" not in diagnosis._repr_html_()


def test_the_table_says_what_was_measured():
    diagnosis = diagnose(CASES["scale_by_embed_dim"].module(24, 4), embed_dim=24, num_heads=4)
    assert diagnosis["score scale"].measured == "0.2041 = 1/sqrt(embed_dim); 1/sqrt(head_dim) = 0.4082"
    lines = repr(diagnosis).splitlines()
    assert lines[0].split() == ["probe", "verdict", "measured", "look", "at"]
    assert len(lines) == len(PROBES) + 1
    assert diagnosis._repr_html_().count("<tr>") == len(PROBES) + 1
    dead = diagnose(CASES["projections_unused"].module(24, 4), embed_dim=24, num_heads=4)
    assert dead["dead parameters"].measured.startswith("432 of 1032 parameters do nothing: W_Q.weight")
    assert dead["heads differ"].measured == "first see to dead parameters"


@pytest.mark.parametrize(
    "module, kwargs, message",
    [
        (al.softmax, {}, "takes an nn.Module, got function"),
        (nn.Linear(3, 3), {}, "could not call the module"),
        (nn.Identity(), {"call": lambda m, q, k, v, mask: "text"}, "must be a tensor"),
        (nn.Identity(), {"call": lambda m, q, k, v, mask: q[0]}, "must be a tensor"),
    ],
)
def test_errors_say_what_to_do(module, kwargs, message):
    with pytest.raises(TypeError, match=message) as error:
        diagnose(module, embed_dim=24, num_heads=4, **kwargs)
    assert "Fix: " in str(error.value)


def test_embed_dim_must_be_divisible():
    with pytest.raises(al.ShapeError, match="divisible"):
        diagnose(Attention(24, 4), embed_dim=24, num_heads=5)


def test_the_clinic_looks_healthy():
    """No case raises, and the shapes are right: that is what makes these bugs hard to see."""
    x = torch.randn(2, 5, 24)
    for case in CASES.values():
        output, weights = case.module(24, 4)(x.clone(), x.clone(), x.clone())
        assert output.shape == (2, 5, 24) and weights.shape == (2, 4, 5, 5)
        assert output.isfinite().all()


def test_the_healthy_one_of_the_clinic_equals_ours():
    clinic, ours = Attention(24, 4), torch_layers.MultiHeadAttention(24, 4, bias=True)
    with torch.no_grad():
        for c in "QKVO":
            getattr(ours, f"W_{c}").weight.copy_(getattr(clinic, f"W_{c}").weight)
        ours.W_O.bias.copy_(clinic.W_O.bias)
    x = torch.randn(2, 5, 24)
    mask = torch.rand(2, 5, 5) < 0.5
    mask[0, 1] = False
    for a, b in zip(clinic(x, attn_mask=mask), ours(x, attn_mask=mask), strict=True):
        torch.testing.assert_close(a, b)


def test_unknown_patients_have_neutral_names_and_a_bug_that_is_named():
    for number in range(1, 6):
        patient = clinic.patient(number)
        assert type(patient).__name__ == f"Patient{number}" and "Patient" in repr(patient)
        states = {id: clinic.name_bug(number, id) for id in CASES}
        (right,) = [id for id, verdict in states.items() if verdict.passed]
        assert isinstance(patient, CASES[right].module)
        assert caught(diagnose(patient, embed_dim=24, num_heads=4)) == set(CASES[right].caught_by)
        assert all(right not in verdict.message for verdict in states.values())
        assert clinic.name_bug(number, None).state == "not tried"
        assert "did you mean 'no_scale'" in clinic.name_bug(number, "no_scal").message
        assert all(right not in hint for hint in clinic.name_bug(number, None).hints)
    assert "Near: both fail the same probes" in clinic.name_bug(3, "split_without_transpose").message
    with pytest.raises(ValueError, match="patients 1 to 5"):
        clinic.patient(6)
