"""What the README prints is what its code prints, and what is named has its source."""

import contextlib
import io
import re
from pathlib import Path

import nbformat
import pytest

from attncourse import MISTAKES, dates
from tools.links import outward
from tools.series import find_notebook
from tools.symptoms import anchor

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = README + "".join((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("diagnose", "watch"))
EXAMPLES = re.findall(r"```python\n((?:(?!```).)+)```\n\n```text\n((?:(?!```).)+)```", PAGES, re.DOTALL)


@pytest.mark.parametrize("code, output", EXAMPLES, ids=["check", "diagnose", "watch"])
def test_the_output_in_the_readme_is_real(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def test_the_readme_counts_the_mistakes_that_have_a_name():
    assert f"It knows {len(MISTAKES)} mistakes by name." in README


def test_the_code_of_the_questions_prints_what_the_page_says():
    page, names = (ROOT / "docs" / "book" / "questions.md").read_text("utf-8"), {}
    snippets = re.findall(r"```python\n((?:(?!```).)+)```\n\n```text\n((?:(?!```).)+)```", page, re.DOTALL)
    assert len(snippets) == page.count("```python") > 5
    for code, output in snippets:  # one after the other, as a reader would run them
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "questions.md", "exec"), names)
        assert printed.getvalue() == output, code


HEADINGS = re.compile("^#+ (.+)", re.MULTILINE)


def test_a_link_into_a_notebook_leads_to_one_of_its_headings():
    """Else the book is not built; and where it is not, the link leads to the top of a page."""
    texts = {path.name: path.read_text("utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    links = [(file, *link) for file, text in texts.items() for link in re.findall(r"/\d\d_(\w+)\.ipynb#([\w-]+)", text)]
    headings = {}
    for name in {name for _, name, _ in links}:
        cells = nbformat.read(find_notebook(name).built, as_version=4).cells
        headings[name] = {anchor(one) for cell in cells for one in HEADINGS.findall(cell.source)}
    assert len(links) > 50 and [link for link in links if link[2] not in headings[link[1]]] == []


NAMED = re.compile(r"\b([A-Z]\w+)(?: et al\.| and [A-Z]\w+)?,? \(?((?:19|20)\d\d)\b")
SOURCES = [p for folder in ("notebooks/src", "attnlib", "attncourse") for p in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_paper_that_is_named_stands_in_the_references(path):
    references = (ROOT / "REFERENCES.md").read_text(encoding="utf-8")
    known = set(NAMED.findall(references))
    months = {name for month in dates.MONTHS for name in (month, month[:3])}  # lesson two_texts writes dates
    months |= {"Nowember", "Novomber", "Movember"}
    named = {(name, year) for name, year in NAMED.findall(path.read_text(encoding="utf-8")) if name not in months}
    assert named <= known, named - known


def test_every_notebook_names_its_sources():
    for path in sorted((ROOT / "notebooks" / "src").glob("*.py")):
        assert "](../REFERENCES.md" in path.read_text(encoding="utf-8"), path.stem


def test_every_source_is_linked_from_a_cell():
    references = (ROOT / "REFERENCES.md").read_text(encoding="utf-8")
    cells = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "notebooks" / "src").glob("*.py")))
    linked = set(re.findall(r"REFERENCES\.md#([a-z0-9-]+)", cells))
    texts = {f"s{i}" for i in range(5)} if "the-five-texts" in linked else set()
    assert set(re.findall(r'id="([a-z0-9-]+)"', references)) == linked - {"the-five-texts"} | texts


def test_a_public_thread_is_told_in_the_case_that_the_references_name():
    names = ("bug_clinic.py", "casebook.py")
    source = "".join((ROOT / "notebooks" / "src" / name).read_text(encoding="utf-8") for name in names)
    cases = re.split(r"^# ###? ", source, flags=re.MULTILINE)
    rows = re.findall(r"^\| .+ \| (\[.+) \| ([\d, ]+) \|$", (ROOT / "REFERENCES.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 10
    for threads, numbers in rows:
        for number in numbers.split(", "):
            heading = re.compile(rf".*\b[Cc]ases?(?: \d+,)* {number}\b")
            told = "".join(text for text in cases if heading.match(text))
            assert any(thread in told for thread in re.findall(r"\((http.+?)\)", threads)), (number, threads)


@pytest.mark.parametrize(
    ("project", "there"),
    [
        (
            '[project.urls]\nRepository = "https://github.com/octo-cat/a/tree/v2"\n',
            "[a](https://github.com/octo-cat/a/blob/v2/R.md#s3)",
        ),
        ("[project.urls]\n", "a"),  # no address: no link that leads nowhere
    ],
)
def test_links_out_of_the_notebooks_lead_to_the_public_pages(tmp_path, project, there):
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    assert outward("[a](../R.md#s3) [b](01_by_hand.ipynb)", tmp_path) == f"{there} [b](01_by_hand.ipynb)"


def test_without_an_address_a_source_leads_to_where_it_is_published(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project.urls]\n", encoding="utf-8")
    (tmp_path / "REFERENCES.md").write_text((ROOT / "REFERENCES.md").read_text("utf-8"), encoding="utf-8")
    paper, journal = "[Vaswani](../REFERENCES.md#vaswani-2017)", "[Shannon](../REFERENCES.md#shannon-1948)"
    assert outward(f"{paper}, {journal}", tmp_path) == "[Vaswani](https://arxiv.org/abs/1706.03762), Shannon"
    for name, words, number in (
        ("one_token_at_a_time", "Llama 2", "2307.09288"),
        ("one_token_at_a_time", "Gemma", "2403.08295"),
        ("todays_head", "softcap", "2408.00118"),
        ("todays_head", "sink", "2508.10925"),
    ):
        page = outward((ROOT / f"notebooks/src/{name}.py").read_text("utf-8"), tmp_path)
        assert f"[{words}](https://arxiv.org/abs/{number})" in page, words
