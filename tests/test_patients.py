"""A learner's name for a patient is judged with a probe, and a learner's probe by modules with and without a leak."""

import contextlib
import inspect
import re
import time

import pytest
import torch
from torch import nn

import attnlib as al
from attncourse import clinic
from attncourse.clinic import (
    CASES,
    DECODERS,
    Attention,
    Decoder,
    ProjectionsUnused,
    SharedSmallProjection,
    cured,
    fresh,
    healthy,
    patients,
    twins,
)
from attncourse.clinic.ward import TutorialAttention, sick_lines
from attnlib.diagnose import diagnose
from attnlib.torch_layers import KVCache
from tests.test_diagnose import ROOT, caught, off
from tools.build_notebooks import code_between, read_source
from tools.series import find_notebook


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
    assert f"for none of the {3 if number > 3 else 22} others of {'DE' if number > 3 else ''}C" in states[right].message
    assert isinstance(patient, cases[right].module)
    assert caught(diagnose(patient, embed_dim=24, num_heads=4)) == set(cases[right].caught_by)
    bug = cases[right].bug
    assert f"for this bug, {bug}, and" in states[right].message
    for told in (*(states[id].message for id in states if id != right), *patients.name_bug(number, None).hints):
        assert right not in told and bug not in told
    assert patients.name_bug(number, None).state == "not tried"


def test_a_wrong_name_is_answered():
    assert "did you mean 'case_23'" in patients.name_bug(1, "case23").message
    for number, near in (
        (1, "case_24"),
        (2, "case_15"),
        (2, "case_13"),
        (3, "case_32"),
        (4, "past_of_first"),
        (5, "place_one_ahead"),
    ):
        assert "did you mean" not in patients.name_bug(number, near).message  # it would name the answer
    assert "Fix: sorted(CASES) shows all names" in patients.name_bug(1, "places_restart").message
    assert "Fix: sorted(DECODERS) shows all names" in patients.name_bug(4, "case_23").message
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
    for verdict in (patients.name_bug(1, "case_34", endless), patients.try_probe(endless)):
        assert verdict.state == "wrong" and "did not finish within 0.1 seconds" in verdict.message


def test_an_error_of_a_probe_that_cannot_say_what_it_is_does_not_escape():
    assert patients.name_bug(1, "case_34", mute).message == "Your probe raises Mute"
    assert patients.try_probe(mute).message.endswith("a healthy module: Mute")


@pytest.mark.parametrize(
    "number, bug, proof", [(1, "case_34", lambda m: float(moved(m) < 1e-5)), (3, "case_33", at_most_e)]
)
def test_another_probe_of_this_bug_alone_is_as_good(number, bug, proof):
    assert patients.name_bug(number, bug, proof).passed


def causal_weights(module):
    return module(torch.randn(2, 5, 24), attn_mask=torch.ones(5, 5, dtype=torch.bool).tril())[1]


def plain_weights(module):
    x = torch.randn(2, 5, 24, generator=torch.Generator().manual_seed(0))
    return module(x)[1]


@pytest.mark.parametrize(
    "tuned",
    [
        lambda m: float(plain_weights(m).max() < 0.27),
        lambda m: float(plain_weights(m).std() < 0.02),
        lambda m: max(0.0, 0.27 - plain_weights(m).max().item()),
        lambda m: float(plain_weights(m).min() > 0.15),
    ],
)
def test_a_bound_that_fits_one_draw_of_weights_is_no_proof(tuned):
    """Each strikes for patient 3 alone, until the scores of a healthy module are four times as small."""
    assert patients.struck(tuned) == ["case_33"]
    verdict = patients.name_bug(3, "case_33", tuned)
    assert verdict.state == "wrong" and "with other weights it gives not 0 for" in verdict.message
    assert "Fix: ask for what the bug does whatever the weights are" in verdict.message


def test_a_number_that_the_bug_has_whatever_the_weights_is_a_proof():
    """e / (e + 4), from a row whose weights should be 1, 0, 0, 0, 0."""
    assert patients.name_bug(3, "case_33", lambda m: float(abs(causal_weights(m)[0, 0, 0, 0] - 0.4046) < 1e-3)).passed


@pytest.fixture(scope="module")
def kit():
    """The probes that lesson bug_clinic hands out."""
    names = {"torch": torch, "al": al, "x": torch.randn(2, 5, 24)}
    for cell in code_between("bug_clinic", "## A ·", "## B ·"):
        if re.search(r"^def (future|row_sums|company)", cell, re.MULTILINE):
            exec(cell, names)
    return [names[name] for name in ("row_sums", "future", "order", "company", "again")]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_probe_that_strikes_for_other_bugs_as_well_is_no_proof(number, kit):
    bug = patients._UNKNOWN[number].name
    for probe in (*kit, upper):
        verdict = patients.name_bug(number, bug, probe)
        assert verdict.state == "wrong", (probe, verdict)
        assert bug not in verdict.message
    if number > 1:
        message = patients.name_bug(number, "case_02", upper).message
        assert "it strikes for case_02 and case_01 as well, and for 1 more. Fix" in message


def test_a_name_for_which_the_own_probe_gives_0_is_refused_by_that():
    assert "So by your own probe" in patients.name_bug(2, "case_02", upper_by_head).message
    assert "answers in two ways" in patients.name_bug(2, "case_17", upper_by_head).message


def test_healthy_modules_stand_beside_a_patient():
    """The same at each call, torch's random state as it was; a shape that does not fit is told."""
    state = torch.get_rng_state()
    broken, fixed = twins("case_23")
    assert type(broken) is CASES["case_23"].module and type(fixed) is type(healthy()) is Attention
    assert all(torch.equal(a, b) for a, b in zip(broken.parameters(), fixed.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(healthy().parameters(), fixed.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())
    for kind in (ProjectionsUnused, SharedSmallProjection):
        with pytest.raises(ValueError, match=r"W_Q must be \(24, 24\) .+ Fix: compare with healthy\(\)"):
            cured(fresh(kind))


def test_fresh_modules_do_not_depend_on_what_was_drawn_before():
    first, _, second = healthy(), torch.rand(1), healthy()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_class_of_part_f_mended_line_by_line_is_healthy():
    """The first "Try it" of lesson bug_clinic."""
    source = inspect.getsource(TutorialAttention)
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


def pages(*names):
    return "".join((ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8") for name in names)


def test_the_exercises_ask_for_bugs_that_the_notebooks_do_not_tell():
    """Their names stand in the folded solutions only; the numbers of the casebook do not lead to them."""
    source = pages("bug_clinic", "casebook")
    told = re.sub(r"<details>(.|\n)+?</details>", "", source)
    for number in (1, 2, 3):
        (name,) = [id for id in CASES if patients.name_bug(number, id, PROOFS[number]).passed]
        assert f'"{name}"' in source and name not in told and CASES[name].bug not in source
    for letter in "ABCDE":
        assert f'patients.patient("{letter}"' in source
        assert type(patients.patient(letter)).__name__ == f"Patient{letter}"


def test_a_name_says_nothing_of_its_bug():
    assert all(re.fullmatch(r"case_\d\d", name) for name in CASES) and list(CASES) == sorted(CASES)
    assert len({case.bug for case in CASES.values()}) == len(CASES)
    kinds = [kind for kind in vars(clinic).values() if isinstance(kind, type) and issubclass(kind, Attention)]
    sick = [kind for kind in kinds if kind is not Attention and not issubclass(kind, Decoder)]
    assert {case.module for case in CASES.values()} == set(sick)  # none is lost by a number given twice


def test_a_case_has_the_number_under_which_a_page_tells_it_and_is_pinned_to_the_step_it_replaces():
    told = {
        int(number)
        for numbers in re.findall(r"^# ### Cases? ([\d, ]+) ·", pages("bug_clinic", "casebook"), re.MULTILINE)
        for number in numbers.split(",")
    }
    on_no_page = {33, 34, 35}  # patients 1 to 3 of lesson bug_clinic, told in its solutions; pinned, so no number tells
    assert {int(name[-2:]) for name in CASES} - told == on_no_page
    names = {}
    for line in re.findall(r"^STEPS \|?= .+", pages("bug_clinic"), re.MULTILINE):
        exec(line, names)
    step_of = {int(number): step for step, numbers in names["STEPS"].items() for number in numbers.split()}
    assert set(step_of) == told | on_no_page
    replaced = {
        "forward": {"x", "mask"},
        "make_projections": {"W_Q W_K W_V"},
        "project": {"W_Q W_K W_V"},
        "split": {"split"},
        "scaled_scores": {"scale"},
        "divisor": {"scale", "x", "scores"},
        "masked_scores": {"mask", "scale"},
        "with_head_axis": {"mask"},
        "weights": {"softmax"},
        "softmax": {"softmax", "dropout"},
        "merge": {"merge"},
    }
    for name, case in CASES.items():
        methods = [method for method, code in vars(case.module).items() if inspect.isfunction(code)]
        assert methods and all(step_of[int(name[-2:])] in replaced[method] for method in methods), name


@pytest.mark.parametrize("name", CASES)
def test_what_is_shown_of_a_case_is_what_it_replaces(name):
    """Lines without a sign and those with "+" are the case's own methods, whole; "-" marks those of the healthy one."""
    lines = sick_lines(name).splitlines()
    own = [code for code in vars(CASES[name].module).items() if inspect.isfunction(code[1])]
    for sign, codes in (("+", [code for _, code in own]), ("-", [getattr(Attention, method) for method, _ in own])):
        shown = [line[1:].strip() for line in lines if line[0] in " " + sign]
        assert shown == [line.strip() for code in codes for line in inspect.getsource(code).splitlines()]


def test_the_names_for_which_a_probe_strikes():
    torch.manual_seed(0)
    assert patients.struck(upper) == ["case_01", "case_02", "case_33", "case_35"]
    assert patients.struck(raises) == []
    assert {"case_16", "case_17"}.isdisjoint(patients.struck(lambda module: 1.0))


@pytest.fixture(scope="module")
def stranger():
    """The class of exercise mended."""
    names = {"torch": torch}
    (cell,) = (
        cell
        for cell in code_between("bug_clinic", "### A module from", "A stranger's module")
        if "class TextToClips" in cell
    )
    exec(cell, names)
    return names["TextToClips"]


def test_the_stranger_s_module_is_right_for_one_sequence_and_for_one_mask(stranger):
    """What the solution says of it, and why only `padding` sees it."""
    module, x = fresh(stranger), torch.randn(2, 5, 24)
    mask = torch.rand(2, 5, 5) < 0.5
    mask |= torch.eye(5, dtype=torch.bool)
    alone = torch.cat([module(x[i : i + 1], x[i : i + 1], mask[i : i + 1]) for i in range(2)])
    assert (module(x, x, mask) - alone).abs().max() > 0.01
    shared = mask[:1].expand(2, 5, 5)
    alone = torch.cat([module(x[i : i + 1], x[i : i + 1], mask[:1]) for i in range(2)])
    torch.testing.assert_close(module(x, x, shared), alone)
    assert diagnose(module, embed_dim=24, num_heads=4).wrong == ["padding"]


def of_stranger(stranger, **methods):
    return type("Mine", (stranger,), methods)


def interleaved(self, mask):
    return mask.repeat_interleave(self.heads, 0)


@pytest.mark.parametrize(
    "change, says",
    [
        (None, "diagnose says of its padding: wrong. 8 real outputs"),
        (
            lambda self, mask: torch.ones_like(mask).repeat(self.heads, 1, 1),
            "causality: beware. mask: no form of mask has any effect",
        ),
        (lambda self, mask: ~interleaved(self, mask), "causality: wrong"),
        (lambda self, mask: mask[:1].expand(len(mask) * self.heads, -1, -1), "padding: wrong"),
        (lambda self, mask: mask, "Your code raises RuntimeError"),
        (
            lambda self, mask: mask.repeat_interleave(self.heads, 1),
            "must match the size of tensor b (5) at non-singleton",
        ),
        (lambda self, mask: mask.any(1), "Your code raises RuntimeError"),
        (
            lambda self, mask: interleaved(self, mask).any(1, keepdim=True),
            "Does each row of each sequence's mask still",
        ),
    ],
)
def test_a_class_that_is_not_mended_is_told_what_diagnose_finds(stranger, change, says):
    verdict = patients.mended(of_stranger(stranger, for_all_heads=change) if change else stranger)
    assert verdict.state == "wrong" and says in verdict.message, verdict
    assert "call=" not in verdict.message and "no mask reached it" not in verdict.message


def test_a_mended_class_is_right(stranger):
    assert patients.mended(of_stranger(stranger, for_all_heads=interleaved)).passed
    assert patients.mended(None).state == "not tried"
    assert "expected a subclass of nn.Module, got 3. Fix" in patients.mended(3).message
    assert "Fix: no ()" in patients.mended(stranger(24, 4)).message


def test_a_mended_class_that_does_not_end_is_stopped(stranger, monkeypatch):
    monkeypatch.setattr(patients, "TIME_LIMIT", 0.1)
    assert "did not finish" in patients.mended(of_stranger(stranger, forward=endless)).message


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


def jacobian(module, x):
    """All derivatives of all outputs: slow, and right."""
    most = 0.0
    for i in range(x.shape[1]):
        J = torch.autograd.functional.jacobian(lambda t, i=i: module(t.clone(), attn_mask=column(t.shape[1], i))[0], x)
        off = J[..., i, :].abs()  # of (b, n, d, b, n, d) what comes from the blocked token
        off[:, i] = 0
        most = max(most, off.max().item())
    return most


def slow(module, x):
    """As slow as a Jacobian on another machine: within the limit at each call, and not all together."""
    time.sleep(0.06)
    return any_moves(module, x)


def aliased(module, x):
    y = x
    y[:, -1] = torch.randn_like(y[:, -1])
    off = module(y, attn_mask=column(x.shape[1]))[0] - module(x, attn_mask=column(x.shape[1]))[0]
    return off[:, :-1].abs().max()


@pytest.mark.slow
def test_a_slow_probe_is_not_called_endless(monkeypatch):
    monkeypatch.setattr(patients, "TIME_LIMIT", 1.0)
    assert patients.try_probe(slow).passed
    assert patients.try_probe(endless).message.startswith("Your code was stopped")


@pytest.mark.slow
def test_the_full_jacobian_is_a_right_probe():
    assert patients.try_probe(jacobian).passed


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
        (aliased, "wrong", "All your calls get the same tokens"),
        (lambda m, x: any_moves(m, x, poke=torch.clone), "wrong", "All your calls get the same tokens"),
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


def test_the_answer_of_lesson_one_token_at_a_time_proves_both_decoders():
    cells = read_source(find_notebook("one_token_at_a_time").source).cells
    (code,) = [cell.source for cell in cells if "name_bug(5" in cell.source]
    (test,) = [cell.source for cell in cells if cell.source.startswith("def apart")]
    names = {"torch": torch, "TorchCache": KVCache, "patients": patients, "DECODERS": DECODERS}
    exec(f"{test}\n{code.split('```python')[1].split('```')[0]}", names)
    text, two = torch.randn(1, 6, 24), torch.randn(2, 6, 24)
    assert names["apart"](patients.patient(4), text, 3).max() < 1e-5  # as handed out it finds nothing, ...
    assert names["apart"](patients.patient(4), two, 3).max() > 0.1
    for name in {*DECODERS} - {"past_of_first_sequence"}:  # ... and each other bug at once
        assert names["apart"](fresh(DECODERS[name].module), text, 3).max() > 0.1, name
    assert patients.name_bug(4, names["my_bug"], names["my_probe"]).passed
    assert patients.name_bug(5, "places_one_ahead", names["probe_5"]).passed
    assert patients.name_bug(4, None, None).state == "not tried"
