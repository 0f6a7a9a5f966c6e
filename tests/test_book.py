"""What `make book` would end with, seen without Sphinx: contents that lack a page, questions that lead nowhere."""

import re

import pytest

from tools.book import PAGES, inward
from tools.series import ROOT, SERIES, find_notebook

SOURCES = ROOT / "docs" / "book"


def anchor(heading):
    """Return the address of a heading: its letters and digits, without formulas and without a number at its start."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\$.*?\$", "", heading).lower()).strip("-").lstrip("0123456789-")


def test_the_contents_have_every_page_once():
    listed = re.findall(r"^(\w+)$", (SOURCES / "index.md").read_text("utf-8"), re.MULTILINE)
    there = [path.stem for folder in (ROOT / "docs", SOURCES) for path in folder.glob("*.md") if path.stem != "index"]
    there += ["references", "teaching", *(notebook.name for notebook in SERIES)]
    assert sorted(listed) == sorted(there)
    assert [name for name in listed if name[0].isdigit()] == [notebook.name for notebook in SERIES]


def test_every_question_leads_to_a_heading_that_is_there():
    links = re.findall(r"\(\.\./\.\./notebooks/(\w+)\.ipynb#([\w-]+)\)", (SOURCES / "questions.md").read_text("utf-8"))
    assert len(links) > 20
    for name, target in links:
        source = find_notebook(name).source.read_text("utf-8")
        assert target in map(anchor, re.findall(r"^# #+ (.+)", source, re.MULTILINE)), f"{name} has no {target}"


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.md")), ids=lambda path: path.name)
def test_every_link_leads_to_a_file_in_the_repository_and_to_a_page_in_the_book(path):
    link, text = r"\]\((?!\w+:)([^)#]+)", path.read_text("utf-8")
    here = re.findall(link, text)
    assert [target for target in here if not (path.parent / target).is_file()] == []
    there = re.findall(link, inward(text, path.relative_to(ROOT).as_posix()))
    assert len(there) == len(here) and set(there) <= set(PAGES.values())
    assert len(here) > 30 or path.stem not in ("questions", "symptoms")


def test_the_glossary_is_in_order():
    glossary = (SOURCES / "glossary.md").read_text("utf-8").split("```")[1]
    terms = re.findall(r"^(\w.*)$", glossary, re.MULTILINE)
    assert terms == sorted(terms, key=str.lower) and len(terms) > 15
