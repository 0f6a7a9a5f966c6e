"""Every link, badge and anchor leads somewhere, all name one public address, and `make links` sets it. No network."""

import re
import shutil
from urllib.parse import unquote

import build_notebooks as build
import links
import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt

import attnlib

ROOT = links.ROOT
MARKDOWN = MarkdownIt("commonmark").enable("table")
TEXT = (".cff", ".html", ".ipynb", ".json", ".md", ".py", ".toml", ".txt", ".yml")
BUILT = ("build", "node_modules")
URL = re.compile(r"(?:git\+)?https?://[^\s\"'<>()\[\]`\\]+")
# On these hosts a link names a repository: this one, or one that is listed here.
HOSTED = re.compile(
    r"https://(github\.com/.|raw\.github|colab\.research\.google\.com/github/|mybinder\.org/v2/|[\w.-]+\.github\.io)"
)
OTHERS = (
    "https://github.com/pyodide/",
    "https://github.com/aladdinpersson/Machine-Learning-Collection/blob/",
    "https://github.com/Open-Deep-ML/DML-OpenProblem/tree/",
    "https://github.com/rasbt/LLMs-from-scratch",
)
THREAD = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+$")  # of anybody: a source


def texts(root=ROOT):
    """Return the text files of the project: not hidden, not built."""
    tops = [path for path in root.iterdir() if not path.name.startswith((".", "_")) and path.name not in BUILT]
    found = [p for top in [*tops, root / ".github"] for p in ([top] if top.is_file() else top.rglob("*"))]
    return sorted(p for p in found if p.suffix in TEXT and ".ipynb_checkpoints" not in p.parts)


def documents(root=ROOT):
    return [path for path in texts(root) if path.suffix in (".md", ".ipynb")]


def tokens(path):
    """Return the Markdown tokens of a document, those inside a line of text included."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = MARKDOWN.parse(text)
    return [child for token in found for child in (token, *(token.children or []))]


def targets(path):
    """Return where the links and pictures of a document lead."""
    found = []
    for token in tokens(path):
        if token.type in ("html_block", "html_inline"):
            found += re.findall(r'(?:href|src)="([^"]*)"', token.content)
        found += [token.attrs[name] for name in ("href", "src") if name in token.attrs]
    return found


def anchors(path):
    """Return the anchors of a document's headings: by the rule of GitHub, and in notebooks by that of Jupyter."""
    found, flat = set(), tokens(path)
    for i, token in enumerate(flat):
        found |= set(re.findall(r'(?:id|name)="([^"]+)"', token.content if token.type.startswith("html") else ""))
        if token.type != "heading_open":
            continue
        words = "".join(t.content for t in flat[i + 1].children if t.type in ("text", "code_inline"))
        slug = re.sub(r"[^\w\- ]", "", words.lower()) if path.suffix == ".md" else words
        slug, again = slug.replace(" ", "-"), 0
        while (name := f"{slug}-{again}" if again else slug) in found:
            again += 1
        found.add(name)
    return found


def leads_nowhere(target, path, root):
    """Return what is wrong with one link of the document at `path`, or None."""
    if links.pattern(links.address(root)).match(target):
        return our_page(target, root)
    if re.match(r"[a-z+]+:", target):
        if not re.fullmatch(r"https://[\w.-]+\.[a-z]+(/[^\s<>{}]*)?", target):
            return "an external link must be https:// without blanks or placeholders"
        return "names another repository or branch" if foreign(target) else None
    if re.search(r"\s", target) or target.startswith("/"):
        return "a path must be relative and without blanks"
    file, _, anchor = unquote(target).partition("#")
    there = (path.parent / file) if file else path
    if not there.exists():
        return f"there is no {file}"
    if not there.resolve().is_relative_to(root.resolve()):
        return "leads out of the repository"
    return f"no heading has this anchor in {there.name}" if anchor and anchor not in anchors(there) else None


def foreign(url):
    """Tell whether a link names a repository that is neither this one nor a source."""
    return HOSTED.match(url) and not url.startswith(OTHERS) and not THREAD.match(url)


def our_page(url, root):
    """Return what is wrong with a link to this repository, or None."""
    page, _, anchor = unquote(url).partition("#")
    if workflow := re.search(r"/actions/workflows/([\w.-]+)", page):
        file = f".github/workflows/{workflow[1]}"
    elif inside := re.search(r"/(?:blob|tree)/[^/]+/(.+)|labpath=([^&]+)", page):
        file = inside[1] or inside[2]
    else:
        file = "README.md"  # the front page
    there = root / file
    if not there.exists():
        return f"there is no {file} in the repository"
    return f"no heading has this anchor in {there.name}" if anchor and anchor not in anchors(there) else None


def problems(path, root=ROOT):
    return [f"{path.name}: {t}: {why}" for t in targets(path) if (why := leads_nowhere(t, path, root))]


def strangers(root=ROOT):
    """Return the URLs that name another repository or branch than the public address, wherever they stand."""
    own = links.pattern(links.address(root))
    found = []
    for path in links.files(root):
        for url in map(lambda u: u.removeprefix("git+").rstrip(".,:;"), URL.findall(path.read_text(encoding="utf-8"))):
            at = own.match(url)
            plain_page = at and at[1] == f"https://github.com/{links.address(root).repo}"
            other_branch = plain_page and re.search(r"^/(blob|tree|raw)/|^@|[?&]branch=", url[at.end() :])
            if other_branch or (not at and foreign(url)):
                found.append(f"{path.name}: {url}")
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    assert problems(path) == []


def test_all_links_name_one_address():
    assert strangers() == []


def test_the_address_stands_in_no_file_that_make_links_leaves_alone():
    words = (links.UNKNOWN, links.address().repo)
    left_alone = set(texts()) - set(links.files()) - {ROOT / "tools" / "links.py"}
    assert [p.name for p in left_alone if any(w in p.read_text(encoding="utf-8") for w in words)] == []


def test_the_readme_says_what_to_run_until_the_address_is_known():
    unknown = links.address().repo.startswith(links.UNKNOWN)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert (links.NOTE in readme) == (links.UNKNOWN in readme) == unknown


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_notebook_has_badges_that_open_it(path):
    badges, title, setup = nbformat.read(path, as_version=4).cells[:3]
    repo, branch = links.address()
    assert (badges.id, setup.id) == ("badges", "setup") and title.source.startswith("# ")
    opened = targets_of(badges.source)
    assert f"https://colab.research.google.com/github/{repo}/blob/{branch}/notebooks/{path.name}" in opened
    assert f"https://mybinder.org/v2/gh/{repo}/{branch}?labpath=notebooks%2F{path.name}" in opened
    assert re.findall(r"!\[([^\]]+)\]", badges.source) == ["Open in Colab", "Open in Binder"]
    assert f'"git+https://github.com/{repo}@{branch}"' in setup.source


def targets_of(markdown):
    return [t.attrs["href"] for token in MARKDOWN.parse(markdown) for t in token.children or [] if "href" in t.attrs]


# --- the checks see what they are for


def project(root):
    """Copy what holds links into an empty folder."""
    for path in [*texts(), ROOT / "LICENSE", ROOT / "docs" / "live_view.png"]:
        if "src" not in path.parts:
            (root / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to(ROOT))
    return root


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("notebooks/99_none.ipynb", "there is no notebooks/99_none.ipynb"),
        ("#no-such-heading", "no heading has this anchor in page.md"),
        ("README.md#two-command", "no heading has this anchor in README.md"),
        ("/README.md", "a path must be relative"),
        ("../README.md", "leads out of|there is no"),
        ("http://example.org/", "must be https://"),
        ("https://localhost/", "must be https://"),
        ("https://github.com/octocat/other", "names another repository"),
        ("https://github.com/octocat/other/issues/new", "names another repository"),
        ("REFERENCES.md#nobody-1999", "no heading has this anchor in REFERENCES.md"),
        ("https://OWNER.github.io/attnlib/", "names another repository"),
        ("{page}#nothing", "no heading has this anchor in README.md"),
        ("{page}/blob/{branch}/docs/none.md", "there is no docs/none.md in the repository"),
        ("{page}/actions/workflows/none.yml", "there is no .github/workflows/none.yml"),
        ("https://colab.research.google.com/github/{repo}/blob/{branch}/notebooks/none.ipynb", "there is no notebooks"),
        ("https://mybinder.org/v2/gh/{repo}/{branch}?labpath=notebooks%2Fnone.ipynb", "there is no notebooks/none"),
    ],
)
def test_a_link_to_nowhere_is_found(tmp_path, link, why):
    repo, branch = links.address()
    page = project(tmp_path) / "page.md"
    link = link.format(page=f"https://github.com/{repo}", repo=repo, branch=branch)
    page.write_text(
        f"# A & `b` page\n\n[here](#a--b-page) [x]({link})\n\n```\n[no link](none.md)\n```\n", encoding="utf-8"
    )
    (problem,) = problems(page, tmp_path)
    assert re.search(why, problem)


PLACES = [(file, change) for file in ("README.md", "notebooks/01_by_hand.ipynb") for change in ("repo", "branch")]


@pytest.mark.parametrize(("file", "change"), [*PLACES, ("CITATION.cff", "repo")])
def test_one_link_to_another_address_is_found(tmp_path, file, change):
    repo, branch = links.address()
    path = project(tmp_path) / file
    text = path.read_text(encoding="utf-8")
    old, new = (repo, "octocat/attnlib") if change == "repo" else (f"/{branch}", "/other")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert len(strangers(tmp_path)) == 1


# --- make links


def contents(root):
    return {path: path.read_bytes() for path in links.files(root)}


def test_make_links_sets_every_link_and_can_be_run_again(tmp_path):
    root = project(tmp_path)
    first = links.Address("octo-cat/Attn.lib", "v2")
    changed = {path.name for path in links.rewrite(first, root)}
    assert {"README.md", "CITATION.cff", "pyproject.toml", "00_start_here.ipynb", "09_a_real_model.ipynb"} <= changed
    assert links.address(root) == first
    assert strangers(root) == [] and [p for path in documents(root) for p in problems(path, root)] == []
    assert not any(links.UNKNOWN.encode() in content for content in contents(root).values())
    assert b"lead nowhere" not in (root / "README.md").read_bytes()
    after_first = contents(root)
    assert links.rewrite(first, root) == []
    # Names that begin alike, a branch that is called as before, and back again.
    for second in (links.Address("octo-cat/Attn.lib-2", "v2"), links.Address("octo/octo", "main")):
        assert links.rewrite(second, root)
        assert strangers(root) == [] and links.address(root) == second
    links.rewrite(first, root)
    assert contents(root) == after_first


def test_a_build_after_make_links_gives_the_same_bytes(tmp_path, monkeypatch):
    new = links.Address("octo-cat/Attn.lib", "v2")
    links.rewrite(new, project(tmp_path))
    monkeypatch.setattr(build, "address", lambda: new)
    for path in sorted((tmp_path / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        built = build.read_source(ROOT / "notebooks" / "src" / f"{path.stem}.py")
        for cell, ran in zip(built.cells, notebook.cells, strict=True):
            cell.update({key: ran[key] for key in ("outputs", "execution_count") if key in ran})
        assert nbformat.writes(built) + "\n" == path.read_text(encoding="utf-8")


def test_a_link_whose_name_goes_on_is_left_alone():
    pattern = links.pattern(links.Address("a/b", "main"))
    for text in (
        "https://github.com/a/b-c",
        "https://github.com/a/bc",
        "https://github.com/a/b.c",
        "https://github.com/x/a/b",
    ):
        assert not pattern.search(text), text
    for text in (
        "https://github.com/a/b",
        "https://github.com/a/b.git",
        "(https://github.com/a/b).",
        "https://github.com/a/b.",
    ):
        assert pattern.search(text)[1] == "https://github.com/a/b"
    assert pattern.search("https://github.com/a/b/tree/main-2")[1] == "https://github.com/a/b"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "REPO must be owner/name .* it is ''"),
        (["attnlib"], "REPO must be owner/name .* it is 'attnlib'"),
        (["https://github.com/octocat/attnlib"], "without https://"),
        (["octocat/attnlib.git"], "without https:// and .git"),
        (["octocat/attnlib/tree"], "REPO must be"),
        (["-cat/attnlib"], "REPO must be"),
        ([f"{links.UNKNOWN}/attnlib"], "REPO must be"),
        (["octocat/attnlib", ""], "BRANCH must be one word .* it is ''"),
        (["octocat/attnlib", "a branch"], "BRANCH must be one word .* it is 'a branch'. Example: make links REPO="),
        (["octocat/attnlib", "feature/x"], "BRANCH must be one word"),
        ([], "owner/name           branch main"),
    ],
)
def test_make_links_says_what_it_needs(arguments, message):
    with pytest.raises(SystemExit, match=message):
        links.main(arguments)


def test_the_citation_names_this_version_and_address():
    # That the file is valid CFF 1.2 was checked with cffconvert.
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == attnlib.__version__
    assert citation["repository-code"] == f"https://github.com/{links.address().repo}"
    assert citation["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= citation.keys()
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("(CITATION.cff)") == 1
