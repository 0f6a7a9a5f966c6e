"""Cases by symptom, a page that is measured: each bug shows a symptom, what is healthy none, every link leads on."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attncourse import EXERCISES, check
from attncourse.clinic import Attention, Decoder, cured, fresh
from attnlib.diagnose import diagnose
from attnlib.diagnose._probes import PROBES
from attnlib.rotary import rope
from attnlib.torch_layers import KVCache
from tools import symptoms
from tools.numbering import render
from tools.relatives import RELATIVES, TOLD, BatchFirstForgotten, Rotary, rotate
from tools.series import ROOT, find_notebook
from tools.symptoms import BUGS, CAUSAL, call, differ, in_chunks, tokens

PAGE = symptoms.TARGET.read_text("utf-8")


def test_a_diagnosis_leads_here_by_the_probes_that_the_page_names():
    said = re.findall(r"`diagnose` says ((?:`[^`]+`(?:, )?)+)", PAGE)
    told = {name for names in said for name in re.findall("`(.+?)`", names)}
    assert told == {probe.name for probe in PROBES} - {"allowed keys"}


def test_the_page_is_up_to_date():
    assert symptoms.page() == PAGE, "Fix: python -m tools.symptoms"


@pytest.mark.parametrize("strikes", symptoms.SYMPTOMS, ids=lambda strikes: strikes.__name__)
def test_what_is_healthy_shows_no_symptom(strikes):
    with torch.no_grad():
        assert not any(strikes(fresh(kind).eval()) for kind in (Attention, Decoder, Rotary))


def test_every_bug_shows_a_symptom_and_is_told_once():
    seen = PAGE.partition("## What does diagnose say?")[0]
    titles = [symptoms.title(name) for name in BUGS]
    assert [title for title in titles if f"[{title}](#{symptoms.anchor(title)})" not in seen] == []
    assert sorted(re.findall(r"^### (.+)$", PAGE, re.MULTILINE)) == sorted(titles)


@pytest.mark.parametrize("name", sorted(BUGS))
def test_what_the_page_says_that_diagnose_says_it_says(name):
    case = BUGS[name]
    found = diagnose(fresh(case.module), embed_dim=24, num_heads=4)
    assert tuple(one.probe for one in found if one.verdict in ("wrong", "beware")) == case.caught_by


def test_every_link_leads_to_a_heading_and_every_thread_to_a_case():
    for name, target in re.findall(r"/(\w+)\.ipynb#([\w-]+)\)", PAGE):
        source = render(find_notebook(name).source.read_text("utf-8"))
        assert target in map(symptoms.anchor, re.findall(r"^# #+ (.+)", source, re.MULTILINE)), (
            f"{name} has no {target}"
        )
    references = (ROOT / "REFERENCES.md").read_text("utf-8")
    threads = set(re.findall(r"https://github\.com/[\w./-]+", PAGE))
    assert len(threads) > 10 and all(thread in references for thread in threads)


@pytest.mark.parametrize("name", RELATIVES)
def test_what_is_no_case_is_told_where_the_page_says(name):
    where, what = TOLD[name]
    if where in EXERCISES:
        assert what in EXERCISES[where].names
    else:
        assert f"## {what}\n" in find_notebook(where).source.read_text("utf-8")


@pytest.mark.parametrize("name", [name for name, (where, _) in TOLD.items() if where in EXERCISES])
def test_the_check_of_the_exercise_names_the_relative_as_the_page_says(name):
    kind, (where, what) = RELATIVES[name].module, TOLD[name]

    def masked_softmax(scores, attn_mask=None):
        module = fresh(kind)
        module.with_head_axis = lambda mask: mask  # there are no heads
        allowed = None if attn_mask is None else torch.tensor(attn_mask)
        return module.softmax(module.masked_scores(torch.tensor(scores), allowed)).numpy()

    handed = {"masked_softmax": masked_softmax, "MultiHeadAttention": kind}[where]
    assert getattr(check, where)(handed).mistake == what


def test_batch_first_forgotten_is_what_torch_does_and_rotate_is_rope():
    ours = fresh(BatchFirstForgotten)
    theirs = nn.MultiheadAttention(24, 4)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]))
        theirs.in_proj_bias.zero_()
    theirs.out_proj = ours.W_O
    x = tokens()
    assert not differ(theirs(x, x, x)[0], ours(x)[0])
    assert not differ(rotate(x, 3), torch.tensor(rope(x.numpy(), range(3, 8))))


# --- what tells suspects apart: true of the bug, and of no other one under the same heading


def seen(module, mask=CAUSAL):
    return call(module, tokens(), mask)[1]  # (b, h, n_q, n_k)


def hidden(module):
    return seen(module)[..., ~CAUSAL]


def alike_in_a_row(module, mask=CAUSAL):
    """Whether the keys that CAUSAL hides have one weight above 0 in each row."""
    first = seen(module, mask)[..., 0, 1:]  # those hidden from query 0
    return bool((first > 0.01).all()) and not differ(first, first[..., :1])


def sums_to_one(module, axis):
    return not differ(seen(module).sum(axis), torch.ones(()))


def follow(module):
    order = torch.tensor([2, 0, 4, 1, 3])
    moved = module(tokens()[:, order])[1]
    return not differ(moved, module(tokens())[1][:, :, order][..., order])


def as_sdpa(module, mask=CAUSAL, handed=CAUSAL, **options):
    """Whether a module behind a mask gives what sdpa gives when that is handed another, or options."""
    x = tokens()
    fused = F.scaled_dot_product_attention(*module.project(x, x, x), attn_mask=handed, **options)
    return not differ(call(module, x, mask)[0].nan_to_num(), module.W_O(module.merge(fused)).nan_to_num())


def never_matters(module, place):
    """Whether, token by token, another vector at some places changes nothing."""
    before = in_chunks(module, tokens(), 1)
    with torch.no_grad():
        module.places[place] += 1
    return not differ(before, in_chunks(module, tokens(), 1))


def wrong(module, x):
    one, whole = in_chunks(module, x, 1), module(x)[0]
    return [differ(one[:, k], whole[:, k]) for k in range(x.shape[1])]


def on_first_key(module):
    cache = KVCache()
    weights = [module(token, cache)[1] for token in tokens().split(1, dim=1)][-1]
    return not differ(weights[..., 0], torch.ones(()))


def first_text_alone_is_right(module):
    x = tokens()
    one, whole = in_chunks(module, x, 1), module(x)[0]
    return not differ(one[0], whole[0]) and differ(one[1], whole[1])


def alone(module, b=1):
    return call(module, tokens()[:b])[0]


def each_moves_itself(module):
    """Whether in a text alone a token moves its own output and no other."""
    x = tokens()[:1]
    other = torch.cat([x[:, :4], -x[:, 4:]], 1)
    before, after = module(x)[0], module(other)[0]
    return differ(before[:, 4], after[:, 4]) and not differ(before[:, :4], after[:, :4])


def gradients_are_nan(module):
    with torch.enable_grad():
        y = call(module, tokens(), CAUSAL & False)[0]
        gradients = torch.autograd.grad(y.sum(), list(module.parameters()), allow_unused=True)
    return bool(y.isfinite().all()) and any(g is not None and bool(g.isnan().any()) for g in gradients)


def zero_above(module):
    return not hidden(module).any()


def looks_right(module):
    return zero_above(module) and sums_to_one(module, -1)


def keeps_its_share(module):
    """Whether weight on hidden keys falls by 1/e beside allowed ones."""
    ratio = seen(module) / seen(module, None)
    return zero_above(module) is False and not differ(ratio[..., 0, 1:] * math.e, ratio[..., 0, :1].expand(5, 4, 4))


def sharp_alone(module):
    """Whether weights are too sharp without a mask."""
    x = tokens()[..., : module.embed_dim]
    return module(x)[1].amax(-1).mean() > cured(module)(x)[1].amax(-1).mean() + 0.015


def hidden_sums(module):
    return seen(module).sum(-1)[..., :-1]  # of all queries from which a key is hidden


HOLDS = {
    symptoms.future_moves_the_past: {
        "hidden_scores_zero": lambda m: alike_in_a_row(m) and not symptoms.pales(m) and as_sdpa(m, None, None),
        "case_01": lambda m: not seen(m).nan_to_num()[..., CAUSAL].any(),
        "case_02": lambda m: not differ(seen(m), seen(m, None)),
        "case_03": lambda m: zero_above(m) and bool((hidden_sums(m) < 0.99).all()),
        "mask_added_as_numbers": keeps_its_share,
        "case_35": lambda m: bool((seen(m)[:, 1:, 0, 1:] > 0).all()) and not seen(m)[:, 0][..., ~CAUSAL].any(),
        "case_33": lambda m: alike_in_a_row(m) and symptoms.pales(m) and differ(seen(m, None), seen(cured(m), None)),
        "case_07": lambda m: zero_above(m) and sums_to_one(m, -2),
        "case_19": lambda m: looks_right(m) and not follow(m),
        "case_20": lambda m: looks_right(m) and follow(m),
    },
    symptoms.gives_nan: {
        "case_14": lambda m: bool(call(m, tokens(), CAUSAL & False)[0].isnan().any()),
        "case_22": lambda m: bool(m(1e3 * tokens())[0].isnan().any()),
        "minus_infinity_added": gradients_are_nan,
    },
    symptoms.neighbours_matter: {
        "batch_first_forgotten": lambda m: differ(alone(m), alone(m, 2)[:1]) and each_moves_itself(m),
        "case_11": lambda m: (
            isinstance(m, Attention) and not differ(alone(m), alone(m, 2)[:1]) and symptoms.takes_mask(m)
        ),
        "past_of_first_sequence": lambda m: isinstance(m, Decoder) and first_text_alone_is_right(m),
        "case_05": lambda m: not differ(alone(m), m(tokens()[1:2])[0]),
    },
    symptoms.cache_differs: {
        "places_restart": lambda m: (
            wrong(m, tokens()[:1])[1] and not on_first_key(m) and never_matters(m, slice(1, None))
        ),
        "places_one_ahead": lambda m: wrong(m, tokens()[:1])[1] and never_matters(m, 1) and not never_matters(m, 2),
        "chunk_upper_left": lambda m: wrong(m, tokens()[:1])[1] and on_first_key(m),
        "keys_rotated_twice": lambda m: wrong(m, tokens()[:1])[:3] == [False, False, True],
        "past_of_first_sequence": lambda m: not any(wrong(m, tokens()[:1])) and first_text_alone_is_right(m),
    },
    symptoms.fused_differs: {
        "case_01": lambda m: as_sdpa(m, handed=~CAUSAL),
        "case_02": lambda m: as_sdpa(m, handed=None),
        "case_03": lambda m: zero_above(m) and bool((hidden_sums(m) < 0.99).all()),
        "case_29": lambda m: as_sdpa(m, scale=1),
        "hidden_scores_zero": alike_in_a_row,
        "mask_added_as_numbers": lambda m: as_sdpa(m, handed=CAUSAL.float()),
        "case_35": lambda m: (
            not differ(seen(m)[:, 0], seen(cured(m))[:, 0]) and differ(seen(m)[:, 1], seen(cured(m))[:, 1])
        ),
    },
    symptoms.pales: {
        "case_06": lambda m: not symptoms.pales(fresh(type(m), 24, 1)),
        "case_33": lambda m: symptoms.pales(fresh(type(m), 24, 1)) and bool(hidden(m).any()),
    },
    symptoms.sharpens: {
        "case_21": lambda m: not sharp_alone(fresh(type(m), 16, 4)) and sharp_alone(m),
        "case_23": lambda m: all(sharp_alone(fresh(type(m), *sizes)) for sizes in ((24, 4), (16, 4), (24, 2))),
        "case_29": lambda m: not sharp_alone(m),
    },
    symptoms.rows_do_not_sum_to_one: {
        "case_03": lambda m: not differ(seen(m, None).sum(-1), torch.ones(())) and bool((hidden_sums(m) < 0.99).all()),
        "case_07": lambda m: sums_to_one(m, -2),
        "case_25": lambda m: not differ(10 * seen(m, None), (10 * seen(m, None)).round()),
        "case_01": lambda m: bool((seen(m).sum(-1)[..., :-1] > 0.9999).all()) and not seen(m)[..., -1, :].any(),
    },
    symptoms.tokens_are_mixed: {"case_19": lambda m: not follow(m), "case_20": follow},
}


@pytest.mark.parametrize("strikes", symptoms.APART, ids=lambda strikes: strikes.__name__)
def test_what_tells_suspects_apart_is_true_of_each_and_of_it_alone(strikes):
    assert HOLDS[strikes].keys() == symptoms.APART[strikes].keys() == set(symptoms.suspects(strikes))
    with torch.no_grad():
        for name, holds in HOLDS[strikes].items():
            assert [other for other in HOLDS[strikes] if holds(fresh(BUGS[other].module).eval())] == [name]


def test_patients_of_exercises_are_not_called_by_their_names():
    assert not [name for name in symptoms.OF_EXERCISES if name in PAGE]


# --- five modules with a bug of their own, made up in the style in which public threads show them


class Video(nn.Module):  # one matrix for three, a buffer for the mask, the scale of the whole width
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.register_buffer("tril", torch.tril(torch.ones(64, 64)))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        wei = q @ k.transpose(-2, -1) * c**-0.5
        wei = wei.masked_fill(self.tril[:n, :n] == 0, float("-inf")).softmax(-1)
        return self.proj((wei @ v).transpose(1, 2).reshape(b, n, c))


class Annotated(nn.Module):  # heads joined by a bare view
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, self.linears = heads, nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q, k, v = (
            lin(x).view(b, -1, self.heads, x.size(-1) // self.heads).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -torch.inf)
        x = scores.softmax(-1).nan_to_num() @ v
        return self.linears[-1](x.contiguous().view(b, -1, query.size(-1)))


class Tutorial(nn.Module):  # a Linear(d_k, d_k) that all heads share
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, d = heads, dim // heads
        self.values, self.keys, self.queries = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.fc_out = nn.Linear(dim, dim)

    def forward(self, query, key, value, mask=None):
        b, n, dim = query.shape
        q, k, v = (x.reshape(b, x.shape[1], self.heads, -1) for x in (query, key, value))
        energy = torch.einsum("nqhd,nkhd->nhqk", self.queries(q), self.keys(k))
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -torch.inf)
        attention = torch.softmax(energy / (dim // self.heads) ** 0.5, dim=-1).nan_to_num()
        return self.fc_out(torch.einsum("nhqk,nkhd->nqhd", attention, self.values(v)).reshape(b, n, dim))


class Dropping(nn.Module):  # F.dropout without training=
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, self.to_qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if attn_mask is not None:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        return self.out((F.dropout(scores.softmax(-1).nan_to_num(), 0.2) @ v).transpose(1, 2).flatten(-2))


class Library(nn.Module):  # the mask never reaches the scores once there is a weight to return
    def __init__(self, dim=24, heads=4):
        super().__init__()
        self.heads, self.to_qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, attn_mask=None):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(-2)), weights


@pytest.mark.parametrize(
    ("module", "suspect"),
    [
        (Video, "Scale by embed dim"),
        (Annotated, "Merge without transpose"),
        (Tutorial, "Shared small projection"),
        (Dropping, "Dropout always"),
        (Library, "Mask ignored"),
    ],
)
def test_the_row_of_what_diagnose_finds_in_a_strange_module_holds_its_bug(module, suspect):
    torch.manual_seed(0)
    found = [one.probe for one in diagnose(module(), embed_dim=24, num_heads=4) if one.verdict in ("wrong", "beware")]
    (row,) = re.findall(rf"^\| {re.escape(symptoms.probes(found))} \| (.+) \|$", PAGE, re.MULTILINE)
    assert f"[{suspect}](#" in row
