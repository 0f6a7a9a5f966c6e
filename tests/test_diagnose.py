"""`diagnose` finds each bug of the clinic and of the corpus by the right probe, and accuses no healthy module."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import attnlib as al
from attnlib import torch_layers
from attnlib.course import patients
from attnlib.course.clinic import CASES, DECODERS, Attention, Decoder
from attnlib.diagnose import diagnose

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests is no package of pytest's; the corpus is one, so that it runs by -m

from tests.diagnose_corpus import __main__ as corpus  # noqa: E402
from tests.diagnose_corpus import other_styles, self_attention  # noqa: E402

torch.set_num_threads(1)

PROBES = {
    "determinism",
    "layout",
    "inputs untouched",
    "row sums",
    "permutation",
    "batch consistency",
    "causality",
    "padding",
    "mask polarity",
    "allowed keys",
    "fully masked row",
    "dead parameters",
    "heads differ",
    "score scale",
    "keys matter",
    "values apart",
    "argument order",
    "cache",
    "large inputs",
    "float16",
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


# What the probe for a cache measures besides; nothing where none of it is so.
SEEN_OF_A_CACHE = {
    "places_restart": "the order of those before the newest does not count",
    "chunk_upper_left": r"the newest does not see the \d before it",
    "places_one_ahead": "",
    "past_of_first_sequence": "each sequence alone is right",
}


@pytest.mark.parametrize("embed_dim, num_heads", [(24, 4), (40, 5)])
@pytest.mark.parametrize("id", DECODERS)
def test_a_decoder_is_caught_by_its_cache_and_what_is_said_of_it_is_so(id, embed_dim, num_heads):
    for seed in range(3):
        torch.manual_seed(seed)
        diagnosis = diagnose(DECODERS[id].module(embed_dim, num_heads), embed_dim=embed_dim, num_heads=num_heads)
        assert caught(diagnosis) == {*diagnosis.wrong} == set(DECODERS[id].caught_by), diagnosis
        _, _, seen = diagnosis["cache"].measured.partition("; ")
        assert re.fullmatch(SEEN_OF_A_CACHE[id], seen), seen


def in_chunks(module, x, sizes):
    cache = torch_layers.KVCache()
    return torch.cat([module(chunk, cache)[0] for chunk in x.split(sizes, dim=1)], 1)


def off(module, x, sizes):
    """How far chunks are from all at once, of each sequence."""
    return (in_chunks(module, x, sizes) - module(x)[0]).abs().amax((1, 2))


def test_a_decoder_of_the_clinic_writes_and_is_right_all_at_once():
    """No case raises, and all are right on a prompt: the healthy one in chunks, too."""
    x = torch.randn(2, 6, 24)
    for module in (Decoder, *(case.module for case in DECODERS.values())):
        sick = patients._fresh(module)
        healthy = patients._fresh(Decoder)
        assert torch.equal(sick(x)[0], healthy(x)[0])
        assert (off(sick, x, [1] * 6).max() < 1e-5) == (off(sick, x, [2, 3, 1]).max() < 1e-5) == (module is Decoder)
        assert off(sick, x, [6]).max() < 1e-5
    assert off(patients.patient(4), x, [3, 3])[0] < 1e-5 < off(patients.patient(4), x, [3, 3])[1]


# What correct modules are warned of: each is so, and each is meant.
WARNED = {
    self_attention.ZerosAndOnes: {"fully masked row"},
    self_attention.BigHeads: {"fully masked row"},
    self_attention.RelativeBias: {"permutation"},
    self_attention.Image: {"score scale"},
    other_styles.Annotated: {"fully masked row", "float16"},
    other_styles.ValuesFirst: {"fully masked row", "argument order", "float16"},
    other_styles.SequenceFirst: {"layout"},
    other_styles.AxesOfXL: {"layout", "mask polarity", "fully masked row"},
    other_styles.Graph: {"fully masked row"},
    other_styles.Lengths: {"float16"},
}


@pytest.mark.parametrize("case", corpus.CASES, ids=lambda case: case.name)
def test_the_corpus(case):
    diagnosis = diagnose(case.module(), **case.arguments())
    if case.probe is None:
        assert diagnosis.wrong == [] and diagnosis.ok, diagnosis
        assert caught(diagnosis) == WARNED.get(case.style, set()), diagnosis
    else:
        assert case.probe in caught(diagnosis), diagnosis
        assert diagnosis[case.probe].look_at


def test_every_probe_is_needed():
    clinical = {probe for case in CASES.values() for probe in case.caught_by}
    assert clinical | {case.probe for case in corpus.CASES if case.probe} | {"layout"} == PROBES


def test_the_readme_says_what_the_corpus_says(capsys):
    corpus.main()
    assert capsys.readouterr().out in (ROOT / "README.md").read_text(encoding="utf-8")


HEALTHY = {
    "ours": (torch_layers.MultiHeadAttention(24, 4), 4, {"cache"}),
    "ours, no bias": (torch_layers.MultiHeadAttention(40, 5, bias=False), 5, {"cache"}),
    "clinic": (Attention(24, 4), 4, {"cache"}),
    "clinic, a decoder": (
        Decoder(24, 4),
        4,
        {"padding", "mask polarity", "fully masked row", "values apart", "argument order"},
    ),
    "SelfAttention": (
        torch_layers.SelfAttention(24, 24),
        1,
        {"heads differ", "values apart", "argument order", "cache"},
    ),
    "torch": (nn.MultiheadAttention(24, 4, batch_first=True), 4, {"cache"}),
    "torch, batch second, dropout": (nn.MultiheadAttention(24, 4, dropout=0.5), 4, {"cache"}),
    "torch, no bias": (nn.MultiheadAttention(40, 5, bias=False, batch_first=True), 5, {"cache"}),
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
    assert unknown == {"batch consistency", "causality", "padding", "mask polarity", "fully masked row", "cache"} | {
        "heads differ"  # looks at one sequence
    }
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


@pytest.mark.parametrize(
    "arguments, status, printed",
    [
        (["attnlib.course.clinic:Attention"], 0, "score scale        ok"),
        (["attnlib.course.clinic:ScaleByEmbedDim"], 1, "score scale        wrong"),
        (["attnlib.course.clinic:Attention", "--causal"], 1, "causality          wrong"),
        (
            ["attnlib.course.clinic:CASES", "--init", "CASES['nan_on_fully_masked'].module(24, 4)"],
            0,
            "fully masked row   beware",
        ),
        (["attnlib.course.clinic:Nobody"], 2, "has no attribute 'Nobody'"),
        (["attnlib.course.clinic"], 2, "expected package.module:Class"),
        (["torch.nn:Linear"], 2, "not an attention module"),
    ],
)
def test_the_command_line(arguments, status, printed):
    command = [sys.executable, "-m", "attnlib.diagnose", *arguments, "--embed-dim", "24", "--num-heads", "4"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == status, done.stderr
    assert printed in done.stdout + done.stderr


def test_heads_may_be_wider_than_a_share_of_embed_dim():
    module = self_attention.BigHeads(dim=30, heads=4, dim_head=16)
    assert diagnose(module, embed_dim=30, num_heads=4)["score scale"].verdict == "ok"


def test_sizes_are_whole_numbers_above_0():
    with pytest.raises(TypeError, match=r"embed_dim must be a whole number"):
        diagnose(Attention(24, 4), embed_dim=24.0)
    with pytest.raises(ValueError, match="num_heads must be at least 1"):
        diagnose(Attention(24, 4), embed_dim=24, num_heads=0)


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


def keys(module):
    return module(torch.randn(2, 5, 24), torch.randn(2, 7, 24))[1].shape[-1] - 7


def upper(module):
    return module(torch.randn(2, 5, 24), attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())[1].triu(1).max()


def chunks(module):
    return off(module, torch.randn(2, 5, 24), [3, 1, 1]).max().item() > 1e-5


PROOFS = {1: keys, 2: upper, 3: upper, 4: chunks, 5: chunks}


@pytest.mark.parametrize("number", PROOFS)
def test_unknown_patients_have_neutral_names_and_a_bug_that_is_named(number):
    cases = DECODERS if number > 3 else CASES
    patient = patients.patient(number)
    assert type(patient).__name__ == f"Patient{number}" and "Patient" in repr(patient)
    states = {id: patients.name_bug(number, id, PROOFS[number]) for id in cases}
    (right,) = [id for id, verdict in states.items() if verdict.passed]
    assert isinstance(patient, cases[right].module)
    assert caught(diagnose(patient, embed_dim=24, num_heads=4)) == set(cases[right].caught_by)
    assert all(right not in verdict.message for verdict in states.values())
    assert patients.name_bug(number, None).state == "not tried"
    assert all(right not in hint for hint in patients.name_bug(number, None).hints)


def test_a_wrong_name_is_answered():
    assert "did you mean 'no_scale'" in patients.name_bug(1, "no_scal").message
    assert "Fix: list(CASES) shows all names" in patients.name_bug(1, "places_restart").message
    assert "Fix: list(DECODERS) shows all names" in patients.name_bug(4, "no_scale").message
    assert "Near: both fail the same probes" in patients.name_bug(2, "double_softmax", upper).message
    assert "diagnose, cache. Feed one sequence" in patients.name_bug(4, "places_restart", chunks).message
    assert "gives 0 for this patient" in patients.name_bug(4, "places_restart", chunks_of_one).message
    with pytest.raises(ValueError, match="patients 1 to 5"):
        patients.patient(6)


def chunks_of_one(module):
    """A probe with a batch of one finds nothing in patient 4."""
    return off(module, torch.randn(1, 5, 24), [3, 1, 1]).max().item() > 1e-5


def raises(module):
    raise KeyError("no")


@pytest.mark.parametrize(
    "probe, says",
    [
        (None, "A name can be guessed"),
        (upper, "gives 0 for this patient, as for a healthy module"),
        (lambda module: 1.0, "gives 1 for a healthy module"),
        (lambda module: float("nan"), "gives nan for a healthy module"),
        (raises, "raises KeyError"),
    ],
)
def test_a_name_is_judged_only_with_a_probe_that_shows_the_bug(probe, says):
    for id in CASES:
        verdict = patients.name_bug(1, id, probe)
        assert verdict.state == "wrong" and says in verdict.message, verdict


def test_what_the_notebook_shows_leaves_out_the_bugs_of_the_exercises():
    assert set(CASES) - set(patients.SHOWN) == {patients._UNKNOWN[number].bug for number in (1, 2, 3)}


def test_the_exercises_ask_for_bugs_that_the_notebook_does_not_tell():
    """Their names stand in the folded solutions only."""
    source = (ROOT / "notebooks" / "src" / "07_bug_clinic.py").read_text(encoding="utf-8")
    told = re.sub(r"<details>(.|\n)+?</details>", "", source)
    for number in (1, 2, 3):
        (bug,) = [id for id in CASES if patients.name_bug(number, id, PROOFS[number]).passed]
        assert bug in source and bug not in told
    for letter in "ABCDF":
        assert f'patients.patient("{letter}"' in source or letter in "CDF"
        assert type(patients.patient(letter)).__name__ == f"Patient{letter}"


def column(n, blocked=-1):
    mask = torch.ones(n, n, dtype=torch.bool)
    mask[:, blocked] = False
    return mask


def blocked_weights(module, x):
    return module(x, attn_mask=column(x.shape[1]))[1][..., -1].max()


def blocked_sums(module, x):
    return (module(x, attn_mask=column(x.shape[1]))[1].sum(-1) - 1).abs().max()


def last_moves(module, x, mask=column, of=slice(-1), keep=torch.clone, poke=torch.randn_like, blocked=-1):
    first = module(keep(x), attn_mask=mask(x.shape[1], blocked))[0]
    other = x.clone()
    other[:, blocked] = poke(x[:, blocked])
    moved = (module(other, attn_mask=mask(x.shape[1], blocked))[0] - first).abs()
    if of:
        moved[:, blocked] = 0
    return moved.max()


def any_moves(module, x, **how):
    return max(last_moves(module, x, blocked=i, **how) for i in range(x.shape[1]))


def fixed_size(module, x):
    return any_moves(module, torch.ones(2, 5, 24).cumsum(1))


def causal_poke(module, x):
    return last_moves(module, x, mask=lambda n, _: torch.ones(n, n, dtype=torch.bool).tril())


@pytest.mark.parametrize(
    "probe, state, says",
    [
        (any_moves, "right", "10 of 10 leaks"),
        (lambda m, x: any_moves(m, x).item() > 1e-6, "right", "10 of 10 leaks"),
        (lambda m, x: ..., "not tried", ""),
        (lambda m, x: any_moves(m, x, of=None), "wrong", "for a healthy module, where it should be 0"),
        (lambda m, x: any_moves(m, x, mask=lambda n, i: None), "wrong", "for a healthy module, where it should be 0"),
        (
            lambda m, x: any_moves(m, x, mask=lambda n, i: ~column(n, i)),
            "wrong",
            "for a healthy module, where it should",
        ),
        (lambda m, x: any_moves(m, x, keep=lambda t: t), "wrong", "mutates_input, where it should be 0. That"),
        (lambda m, x: any_moves(m, x, poke=lambda t: t + 1), "wrong", "normalises its tokens (LayerNorm) and ignores"),
        (last_moves, "wrong", "gives 0 for a module that lets key 0 in"),
        (causal_poke, "wrong", "gives 0 for a module that lets key 0 in"),
        (lambda m, x: last_moves(m, x, blocked=0), "wrong", "gives 0 for a module that lets key n // 2 in"),
        (fixed_size, "wrong", "With x of shape (3, 4, 16): RuntimeError"),
        (blocked_sums, "wrong", "for a module with mask_ignored"),
        (blocked_weights, "wrong", "gives 0 for a module with mask_after_softmax"),
        (lambda m, x: float("nan"), "wrong", "gives NaN for a healthy module"),
        (lambda m, x: m(x, mask=column(x.shape[1])), "wrong", "TypeError"),
    ],
)
def test_a_probe_of_a_learner_is_tried_on_modules_with_and_without_a_leak(probe, state, says):
    verdict = patients.try_probe(probe)
    assert verdict.state == state and says in verdict.message, verdict


@pytest.mark.parametrize("leak", [who for who in patients._LEAKS if "module that" in who])
def test_the_kit_s_poke_of_the_future_does_not_see_the_hidden_leaks(leak):
    """Four are not seen under the causal mask; the fifth shows itself to noise only, not to a constant."""
    module, x = patients._fresh(patients._LEAKS[leak]), torch.randn(2, 5, 24)
    with torch.no_grad():
        if "LayerNorm" in leak:
            assert any_moves(module, x, poke=lambda t: t + 1) < 1e-5 < any_moves(module, x)
        else:
            assert causal_poke(module, x) < 1e-5 < any_moves(module, x)
