"""Every link and anchor inside the project leads somewhere, and `make links` sets its public address. No network."""

import functools
import itertools
import re
import shutil
import subprocess
import sys
from urllib.parse import unquote

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt

import attnlib
from tools import build_notebooks as build
from tools import links
from tools.series import SERIES

ROOT = links.ROOT
MARKDOWN = MarkdownIt("commonmark").enable("table")
SET = links.Address("octo-cat/Attn.lib", "v2")


def tracked():
    """Return the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]


def documents(root):
    return sorted(
        [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("lite/*.md"), *root.glob("notebooks/*.ipynb")]
    )


def markdown(path):
    """Return the Markdown tokens of a page or a notebook, those inside a line of text included."""
    return parsed(path.read_text(encoding="utf-8"), path.suffix)


@functools.cache  # REFERENCES.md is read for each link that leads there
def parsed(text, suffix):
    if suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = MARKDOWN.parse(text)
    return [child for token in found for child in (token, *(token.children or []))]


def targets(path):
    """Return where the links and pictures of a document lead."""
    found = []
    for token in markdown(path):
        found += [token.attrs[name] for name in ("href", "src") if name in token.attrs]
        if token.type.startswith("html"):
            found += re.findall(r'(?:href|src)="([^"]*)"', token.content)
    return found


def anchors(path):
    """Return the anchors of a document: its headings, by the rule of GitHub or of Jupyter, and those it sets itself."""
    flat, found = markdown(path), set()
    for token, inline in itertools.pairwise(flat):
        if token.type.startswith("html"):
            found |= set(re.findall(r'(?:id|name)="([^"]+)"', token.content))
        if token.type == "heading_open":
            words = "".join(t.content for t in inline.children if t.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", words.lower()) if path.suffix == ".md" else words
            found.add(slug.replace(" ", "-"))
    return found


def leads_nowhere(target, path, root):
    """Return what is wrong with one link of the document at `path`, or None."""
    if re.match(r"[a-z+]+:", target):
        return None if re.fullmatch(r"https://[\w.-]+\.[a-z]+(/[^\s<>{}]*)?", target) else "no https:// address"
    file, _, anchor = unquote(target).partition("#")
    there = path.parent / file if file else path
    if target.startswith("/") or not there.resolve().is_relative_to(root.resolve()):
        return "leads out of the repository"
    if not there.exists():
        return f"there is no {file}"
    return f"no heading has this anchor in {there.name}" if anchor and anchor not in anchors(there) else None


def problems(path, root=ROOT):
    return [f"{path.name}: {t}: {why}" for t in targets(path) if (why := leads_nowhere(t, path, root))]


@pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    assert problems(path) == []


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("notebooks/99_none.ipynb", "there is no notebooks/99_none.ipynb"),
        ("#no-such-heading", "no heading has this anchor in page.md"),
        ("README.md#two-command", "no heading has this anchor in README.md"),
        ("/README.md", "leads out of the repository"),
        ("../README.md", "leads out of the repository"),
        ("http://example.org/", "no https:// address"),
        ("https://localhost/", "no https:// address"),
        ("REFERENCES.md#nobody-1999", "no heading has this anchor in REFERENCES.md"),
    ],
)
def test_a_link_to_nowhere_is_found(tmp_path, link, why):
    for name in ("README.md", "REFERENCES.md"):
        shutil.copy(ROOT / name, tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# A & `b` page\n\n[here](#a--b-page) [x]({link})\n\n`[no link](none.md)`\n", encoding="utf-8")
    assert problems(page, tmp_path) == [f"page.md: {link}: {why}"]


# --- make links


@pytest.fixture
def copy(tmp_path):
    """Return a copy of the project."""
    for path in tracked():
        there = tmp_path / path.relative_to(ROOT)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)
    return tmp_path


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_make_links_sets_the_address_everywhere_and_takes_it_back(copy):
    assert links.rewrite(links.address(), copy) == []  # what is committed is up to date
    before = contents(copy)
    assert len(links.rewrite(SET, copy)) == 3 + len(SERIES)
    assert links.address(copy) == SET
    assert links.rewrite(SET, copy) == []
    first = contents(copy)
    other = links.Address("octo-cat/Attn.lib-2", "v2")  # its name begins alike
    links.rewrite(other, copy)
    links.rewrite(SET, copy)
    assert contents(copy) == first
    links.rewrite(links.address(), copy)
    assert contents(copy) == before


def test_links_to_the_public_address_name_files_that_exist(copy):
    links.rewrite(SET, copy)
    text = "".join(path.read_text("utf-8") for path in documents(copy))
    assert not re.findall(r"\{\w+\}", "".join(re.findall(rf"https://[^\s)]*{SET.repo}[^\s)]*", text)))
    pages = re.findall(rf"{SET.repo}/(?:blob/)?{SET.branch}(?:\?labpath=|/)([\w%./]+\.ipynb)", text)
    assert {unquote(page) for page in pages} == {f"notebooks/{notebook.built.name}" for notebook in SERIES}
    for workflow in re.findall(r"actions/workflows/(\w+\.yml)", text):
        assert (copy / ".github" / "workflows" / workflow).exists()


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.name)
def test_every_notebook_has_badges_that_open_it(notebook):
    text = links.ipynb(notebook, notebook.built.read_text("utf-8"), SET)
    badges, title, setup = nbformat.reads(text, as_version=4).cells[:3]
    assert (badges.id, setup.id) == ("badges", "setup") and title.source.startswith("# ")
    assert SET.words(notebook.name)["colab"] in badges.source and SET.words(notebook.name)["binder"] in badges.source
    assert re.findall(r"!\[([^\]]+)\]", badges.source) == ["Open in Colab", "Open in Binder"]
    assert f'"git+https://github.com/{SET.repo}@{SET.branch}"' in setup.source


def test_without_an_address_there_is_no_badge_and_one_line_says_what_to_run(copy):
    links.rewrite(None, copy)
    assert (copy / "README.md").read_text("utf-8").count("make links") == 1
    for path in documents(copy):
        assert "[![" not in path.read_text("utf-8")
        assert problems(path, copy) == []


def test_a_build_after_make_links_gives_the_same_bytes(monkeypatch):
    monkeypatch.setattr(links, "address", lambda: SET)
    for entry in SERIES:
        text = links.ipynb(entry, entry.built.read_text("utf-8"), SET)
        notebook, built = nbformat.reads(text, as_version=4), build.read_source(entry.source)
        for cell, ran in zip(built.cells, notebook.cells, strict=True):
            cell.update({key: ran[key] for key in ("outputs", "execution_count") if key in ran})
        assert nbformat.writes(built) + "\n" == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attnlib"], "REPO must be owner/name .* it is 'attnlib'"),
        (["https://github.com/octocat/attnlib"], "without https://"),
        (["octocat/attnlib.git"], "without https:// and .git"),
        (["octocat/attnlib/tree"], "REPO must be"),
        (["-cat/attnlib"], "REPO must be"),
        (["octocat/attnlib", "a branch"], "BRANCH must be one word .* it is 'a branch'. Example: make links REPO="),
        (["octocat/attnlib", "feature/x"], "BRANCH must be one word"),
    ],
)
def test_make_links_says_what_it_needs(arguments, message):
    with pytest.raises(SystemExit, match=message):
        links.main(*arguments)


def test_without_an_address_make_links_asks_for_one(monkeypatch):
    monkeypatch.setattr(links, "address", lambda: None)
    with pytest.raises(SystemExit, match=r"no public address yet, so it must be said\. Example: make links REPO="):
        links.main()


def test_make_links_runs_as_a_command(copy):
    command = [sys.executable, "-m", "tools.links", *SET]
    done = subprocess.run(command, cwd=copy, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == f"{SET.repo}, branch {SET.branch}: {3 + len(SERIES)} files written\n"
    assert links.address(copy) == SET


def test_the_citation_names_this_version_and_address():
    # That the file is valid CFF 1.2 was checked with cffconvert.
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == attnlib.__version__
    newest = re.search(r"^## (\S+), (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest.groups() == (attnlib.__version__, str(citation["date-released"]))
    where = links.address()
    assert citation.get("repository-code") == (f"https://github.com/{where.repo}" if where else None)
    assert citation["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= citation.keys()
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("(CITATION.cff)") == 1
