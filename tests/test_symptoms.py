"""Cases by symptom, a page that is measured: each bug shows a symptom, what is healthy none, every link leads on."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attncourse.clinic import CASES, DECODERS, Attention, Decoder, fresh
from attnlib.diagnose import diagnose
from attnlib.diagnose._probes import PROBES
from attnlib.findings import ELSEWHERE
from tools import symptoms
from tools.series import ROOT, find_notebook

PAGE = symptoms.TARGET.read_text("utf-8")


def test_a_diagnosis_leads_here_by_the_probes_that_the_page_names():
    said = re.findall(r"`diagnose` says ((?:`[^`]+`(?:, )?)+)", PAGE)
    told = {name for names in said for name in re.findall("`(.+?)`", names)}
    assert told == {probe.name for probe in PROBES} - ELSEWHERE


def test_the_page_is_up_to_date():
    assert symptoms.page() == PAGE, "Fix: python -m tools.symptoms"


@pytest.mark.parametrize("strikes", symptoms.SYMPTOMS, ids=lambda strikes: strikes.__name__)
def test_what_is_healthy_shows_no_symptom(strikes):
    with torch.no_grad():
        assert not any(strikes(fresh(kind).eval()) for kind in (Attention, Decoder))


def test_every_bug_shows_a_symptom_and_is_told_once():
    seen = PAGE.partition("## What does diagnose say?")[0]
    titles = [symptoms.title(name) for name in CASES | DECODERS]
    assert [title for title in titles if f"[{title}](#{symptoms.anchor(title)})" not in seen] == []
    assert sorted(re.findall(r"^### (.+)$", PAGE, re.MULTILINE)) == sorted(titles)


@pytest.mark.parametrize("name", sorted(CASES | DECODERS))
def test_what_the_page_says_that_diagnose_says_it_says(name):
    case = (CASES | DECODERS)[name]
    found = diagnose(fresh(case.module), embed_dim=24, num_heads=4)
    assert tuple(one.probe for one in found if one.verdict in ("wrong", "beware")) == case.caught_by


def test_every_link_leads_to_a_heading_and_every_thread_to_a_case():
    for name, target in re.findall(r"\((\w+)\.ipynb#([\w-]+)\)", PAGE):
        source = find_notebook(name).source.read_text("utf-8")
        assert target in map(symptoms.anchor, re.findall(r"^# #+ (.+)", source, re.MULTILINE)), (
            f"{name} has no {target}"
        )
    references = (ROOT / "REFERENCES.md").read_text("utf-8")
    threads = set(re.findall(r"https://github\.com/[\w./-]+", PAGE))
    assert len(threads) > 10 and all(thread in references for thread in threads)


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
