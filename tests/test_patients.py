"""A learner's name for a patient is judged with a probe, and a learner's probe by modules with and without a leak."""

import contextlib
import re
import time

import pytest
import torch
from torch import nn

import attnlib as al
from attnlib.course import patients
from attnlib.course.clinic import CASES, DECODERS, Attention, cured, fresh, healthy, twins
from attnlib.diagnose import diagnose
from tests.test_diagnose import ROOT, caught, off
from tools.build_notebooks import code_between


def moved(module):
    """How far another context moves the output."""
    x, one, other = torch.randn(2, 5, 24), *torch.randn(2, 2, 7, 24)
    return (module(x.clone(), one)[0] - module(x.clone(), other)[0]).abs().max()


def keys(module):
    return module(torch.randn(2, 5, 24), torch.randn(2, 7, 24))[1].shape[-1] - 7


def upper(module):
    return module(torch.randn(2, 5, 24), attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())[1].triu(1).max()


def upper_by_head(module):
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    leak = module(torch.randn(2, 5, 24), attn_mask=causal)[1].triu(1).amax((0, 2, 3))
    return leak.max() if leak[0] == 0 else 0.0


def softmax_of_softmax(module):
    row = module(torch.randn(2, 5, 24), attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())[1][0, 0, 0]
    return float(torch.allclose(row, torch.eye(5)[0].softmax(-1)))


def at_most_e(module):
    weights = module(10 * torch.randn(2, 5, 24))[1]
    return float((weights.amax(-1) / weights.amin(-1)).max() < 2.8)


def second_alone(module):
    first, second = off(module, torch.randn(2, 5, 24), [3, 1, 1])
    return float(first < 1e-5 < second)


def one_place_ahead(module):
    x = torch.randn(2, 2, 24)
    if off(module, x, [1, 1]).max() < 1e-5:
        return 0.0
    module.places.data[2] = module.places.data[1]
    return float(off(module, x, [1, 1]).max() < 1e-5)


def chunks(module):
    return off(module, torch.randn(2, 5, 24), [3, 1, 1]).max().item() > 1e-5


PROOFS = {1: keys, 2: upper_by_head, 3: softmax_of_softmax, 4: second_alone, 5: one_place_ahead}


@pytest.mark.parametrize("number", PROOFS)
def test_unknown_patients_have_neutral_names_and_a_bug_that_is_named(number):
    cases = DECODERS if number > 3 else CASES
    patient = patients.patient(number)
    assert type(patient).__name__ == f"Patient{number}" and "Patient" in repr(patient)
    states = {id: patients.name_bug(number, id, PROOFS[number]) for id in cases}
    (right,) = [id for id, verdict in states.items() if verdict.passed]
    assert f"for none of the {3 if number > 3 else 21} others of {'DE' if number > 3 else ''}C" in states[right].message
    assert isinstance(patient, cases[right].module)
    assert caught(diagnose(patient, embed_dim=24, num_heads=4)) == set(cases[right].caught_by)
    assert all(right not in verdict.message for verdict in states.values())
    assert patients.name_bug(number, None).state == "not tried"
    assert all(right not in hint for hint in patients.name_bug(number, None).hints)


def test_a_wrong_name_is_answered():
    assert "did you mean 'no_scale'" in patients.name_bug(1, "no_scal").message
    assert "Fix: sorted(CASES) shows all names" in patients.name_bug(1, "places_restart").message
    assert "Fix: sorted(DECODERS) shows all names" in patients.name_bug(4, "no_scale").message
    assert "gives 0 for this patient" in patients.name_bug(4, "places_restart", chunks_of_one).message
    for number, bug in ((4, "past_of_first_sequence"), (5, "places_one_ahead")):
        assert "strikes for" in patients.name_bug(number, bug, chunks).message
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
        (moved, "the other way round"),
        (lambda module: float("nan"), "gives nan for a healthy module"),
        (raises, "raises KeyError"),
        (lambda module: None, "is its `return` missing"),
    ],
)
def test_a_name_is_judged_only_with_a_probe_that_shows_the_bug(probe, says):
    for id in CASES:
        verdict = patients.name_bug(1, id, probe)
        assert verdict.state == "wrong" and says in verdict.message, verdict


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("never")


def mute(*inputs):
    raise Mute


def endless(*inputs):
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.01)


def test_a_probe_that_does_not_end_is_stopped(monkeypatch):
    monkeypatch.setattr(patients, "TIME_LIMIT", 0.1)
    for verdict in (patients.name_bug(1, "context_ignored", endless), patients.try_probe(endless)):
        assert verdict.state == "wrong" and "did not finish within 0.1 seconds" in verdict.message


def test_an_error_of_a_probe_that_cannot_say_what_it_is_does_not_escape():
    assert patients.name_bug(1, "context_ignored", mute).message == "Your probe raises Mute"
    assert patients.try_probe(mute).message.endswith("a healthy module: Mute")


@pytest.mark.parametrize(
    "number, bug, proof", [(1, "context_ignored", lambda m: float(moved(m) < 1e-5)), (3, "double_softmax", at_most_e)]
)
def test_another_probe_of_this_bug_alone_is_as_good(number, bug, proof):
    assert patients.name_bug(number, bug, proof).passed


@pytest.fixture(scope="module")
def kit():
    """The probes that notebook 07 hands out."""
    names = {"torch": torch, "al": al, "x": torch.randn(2, 5, 24)}
    for cell in code_between("07", "## The probe kit", "## A ·")[:2]:
        exec(cell, names)
    return [names[name] for name in ("row_sums", "future", "order", "company", "again")]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_probe_that_strikes_for_other_bugs_as_well_is_no_proof(number, kit):
    bug = patients._UNKNOWN[number].bug
    for probe in (*kit, upper):
        verdict = patients.name_bug(number, bug, probe)
        assert verdict.state == "wrong", (probe, verdict)
        assert bug not in verdict.message
    if number > 1:
        message = patients.name_bug(number, "mask_ignored", upper).message
        assert "it strikes for mask_ignored and mask_inverted as well, and for 1 more. Fix" in message


def test_a_name_for_which_the_own_probe_gives_0_is_refused_by_that():
    assert "So by your own probe" in patients.name_bug(2, "mask_ignored", upper_by_head).message
    assert "answers in two ways" in patients.name_bug(2, "mutates_input", upper_by_head).message


def test_healthy_modules_stand_beside_a_patient():
    """The same at each call, torch's random state as it was; a shape that does not fit is told."""
    state = torch.get_rng_state()
    broken, fixed = twins("no_scale")
    assert type(broken) is CASES["no_scale"].module and type(fixed) is type(healthy()) is Attention
    assert all(torch.equal(a, b) for a, b in zip(broken.parameters(), fixed.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(healthy().parameters(), fixed.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())
    for name in ("projections_unused", "shared_small_projection"):
        with pytest.raises(ValueError, match=r"W_Q must be \(24, 24\) .+ Fix: compare with healthy\(\)"):
            cured(fresh(CASES[name].module))


def test_fresh_modules_do_not_depend_on_what_was_drawn_before():
    first, _, second = healthy(), torch.rand(1), healthy()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_class_of_part_f_mended_line_by_line_is_healthy():
    """The first "Try it" of notebook 07."""
    (source,) = [cell for cell in code_between("07", "## F ·", "### Case 8") if "class TutorialAttention" in cell]
    mends = {
        "nn.Linear(self.d_k, self.d_k, bias=False)": "nn.Linear(embed_dim, embed_dim, bias=False)",
        "values, keys, query, mask=None": "query, keys, values, mask=None",
        "for x in (values, keys, query))": "for x in (self.to_v(values), self.to_k(keys), self.to_q(query)))",
        "        v, k, q = self.to_v(v), self.to_k(k), self.to_q(q)\n": "",
        "-1e20": "-torch.inf",
        "(self.h * self.d_k) ** 0.5": "self.d_k**0.5",
        ".softmax(-1)": ".softmax(-1).nan_to_num()",
    }
    for ill, well in mends.items():
        assert ill in source, ill
        source = source.replace(ill, well)
    names = {"nn": nn, "torch": torch}
    exec(source, names)
    torch.manual_seed(0)
    diagnosis = diagnose(names["TutorialAttention"](24, 4), embed_dim=24, num_heads=4)
    assert not caught(diagnosis), diagnosis


def test_the_exercises_ask_for_bugs_that_the_notebook_does_not_tell():
    """Their names stand in the folded solutions only."""
    source = (ROOT / "notebooks" / "src" / "07_bug_clinic.py").read_text(encoding="utf-8")
    told = re.sub(r"<details>(.|\n)+?</details>", "", source)
    for number in (1, 2, 3):
        (bug,) = [id for id in CASES if patients.name_bug(number, id, PROOFS[number]).passed]
        assert bug in source and bug not in told
    for letter in "ABCDE":
        assert f'patients.patient("{letter}"' in source or letter in "ABC"
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


def poisoned(value, read=lambda off: off):
    """The right probe, with NaN or infinity in place of noise."""
    return lambda m, x: read(any_moves(m, x, poke=lambda t: torch.full_like(t, value)))


def gradient(module, x, keep=lambda t: t):
    """The largest gradient on a blocked token, of all outputs but its own."""
    most = 0.0
    for blocked in range(x.shape[1]):
        with torch.enable_grad():
            t = x.clone().requires_grad_()
            output = module(keep(t), attn_mask=column(x.shape[1], blocked))[0]
            others = [i for i in range(x.shape[1]) if i != blocked]
            output[:, others].square().sum().backward()
        most = max(most, t.grad[:, blocked].abs().max().item())
    return most


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
        (lambda m, x: gradient(m, x, torch.clone), "right", "10 of 10 leaks"),
        (gradient, "wrong", "with mutates_input: RuntimeError: a leaf Variable"),
        (gradient, "wrong", "an in-place operation. That module writes into what it is given. Fix: hand it a copy"),
        (lambda m, x: None, "wrong", "returns None. Fix: is its `return` missing?"),
        (poisoned(float("nan")), "wrong", "gives NaN for a healthy module. You put NaN or infinity into a token"),
        (poisoned(float("inf")), "wrong", "gives NaN for a healthy module. You put NaN or infinity into a token"),
        (poisoned(float("nan"), lambda off: 0.0 if off < 1e-5 else 1.0), "wrong", "gives 1 for a healthy module. You"),
        (poisoned(1e9), "right", "10 of 10 leaks"),
        (fixed_size, "wrong", "With x of shape (3, 4, 16) and a healthy module: RuntimeError"),
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
    module, x = fresh(patients._LEAKS[leak]), torch.randn(2, 5, 24)
    with torch.no_grad():
        if "LayerNorm" in leak:
            assert any_moves(module, x, poke=lambda t: t + 1) < 1e-5 < any_moves(module, x)
        else:
            assert causal_poke(module, x) < 1e-5 < any_moves(module, x)
