"""Cases by symptom, a page that is measured: each bug shows a symptom, what is healthy none, every link leads on."""

import re

import pytest
import torch

from attncourse.clinic import CASES, DECODERS, Attention, Decoder, fresh
from attnlib.diagnose import diagnose
from tools import symptoms
from tools.series import ROOT, find_notebook

PAGE = symptoms.TARGET.read_text("utf-8")


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
