"""Every link, badge and anchor leads somewhere, all name one public address, and `make links` sets it. No network."""

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
SET = links.Address("octo-cat/Attn.lib", "v2")


def forms(where):
    """Return every form of a link to an address, the longer of two alike first."""
    owner, name = where.repo.split("/")
    page = f"https://github.com/{where.repo}"
    return [
        f"{page}/actions/workflows/test.yml/badge.svg?branch={where.branch}",
        *(f"{page}/{kind}/{where.branch}" for kind in ("blob", "tree")),
        f"{page}@{where.branch}",
        page,
        f"https://colab.research.google.com/github/{where.repo}/blob/{where.branch}",
        f"https://mybinder.org/v2/gh/{where.repo}/{where.branch}",
        f"https://{owner}.github.io/{name}",
    ]


def own(url, where):
    """Match a link to an address, if there is one, and no link to one whose name goes on."""
    alike = "|".join(map(re.escape, forms(where))) if where else "(?!)"
    return re.match(f"({alike})" + r"(?![\w-]|\.(?!git\b)\w)", url)


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
    if own(target, links.address(root)):
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
    where, found = links.address(root), []
    for path in texts(root):
        if path.suffix == ".py":  # code makes addresses of parts
            continue
        for url in map(lambda u: u.removeprefix("git+").rstrip(".,:;"), URL.findall(path.read_text(encoding="utf-8"))):
            at = own(url, where)
            plain_page = at and at[1] == f"https://github.com/{where.repo}"
            other_branch = plain_page and re.search(r"^/(blob|tree|raw)/|^@|[?&]branch=", url[at.end() :])
            if other_branch or (not at and foreign(url)):
                found.append(f"{path.name}: {url}")
    return found


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path):
    assert problems(path) == []


def test_all_links_name_one_address():
    assert strangers() == []


def test_what_make_links_writes_is_up_to_date(tmp_path):
    assert links.rewrite(links.address(), project(tmp_path)) == []


@pytest.mark.parametrize("notebook", SERIES, ids=lambda notebook: notebook.name)
def test_every_notebook_has_badges_that_open_it(public, notebook):
    badges, title, setup = nbformat.read(public / "notebooks" / notebook.built.name, as_version=4).cells[:3]
    assert (badges.id, setup.id) == ("badges", "setup") and title.source.startswith("# ")
    opened, (repo, branch) = targets_of(badges.source), SET
    assert f"https://colab.research.google.com/github/{repo}/blob/{branch}/notebooks/{notebook.name}.ipynb" in opened
    assert f"https://mybinder.org/v2/gh/{repo}/{branch}?labpath=notebooks%2F{notebook.name}.ipynb" in opened
    assert re.findall(r"!\[([^\]]+)\]", badges.source) == ["Open in Colab", "Open in Binder"]
    assert f'"git+https://github.com/{repo}@{branch}"' in setup.source


def test_without_an_address_there_is_no_badge_and_one_line_says_what_to_run(tmp_path):
    root = project(tmp_path)
    links.rewrite(None, root)
    readme = (root / "README.md").read_text("utf-8")
    assert readme.count("make links") == 1
    assert links.address(root) is None and strangers(root) == []
    for path in documents(root):
        assert "[![" not in path.read_text("utf-8")
        assert problems(path, root) == []
    for notebook in SERIES:
        cells = nbformat.read(root / "notebooks" / notebook.built.name, as_version=4).cells
        assert cells[0].source.startswith("# ") and cells[1].id == "setup"
        assert "Colab" not in cells[1].source and "git+" not in cells[1].source


def targets_of(markdown):
    return [t.attrs["href"] for token in MARKDOWN.parse(markdown) for t in token.children or [] if "href" in t.attrs]


# --- the checks see what they are for


def project(root):
    """Copy what holds links into an empty folder."""
    for path in [*texts(), *ROOT.glob("LICENSE*"), ROOT / "NOTICE", ROOT / "docs" / "live_view.png"]:
        if "src" not in path.parts:
            (root / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / path.relative_to(ROOT))
    return root


@pytest.fixture
def public(tmp_path):
    """Return a copy of the project with an address."""
    links.rewrite(SET, project(tmp_path))
    return tmp_path


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
def test_a_link_to_nowhere_is_found(public, link, why):
    repo, branch = SET
    page = public / "page.md"
    link = link.format(page=f"https://github.com/{repo}", repo=repo, branch=branch)
    page.write_text(
        f"# A & `b` page\n\n[here](#a--b-page) [x]({link})\n\n```\n[no link](none.md)\n```\n", encoding="utf-8"
    )
    (problem,) = problems(page, public)
    assert re.search(why, problem)


PLACES = [(file, change) for file in ("README.md", "notebooks/01_by_hand.ipynb") for change in ("repo", "branch")]


@pytest.mark.parametrize(("file", "change"), [*PLACES, ("CITATION.cff", "repo")])
def test_one_link_to_another_address_is_found(public, file, change):
    repo, branch = SET
    path = public / file
    text = path.read_text(encoding="utf-8")
    old, new = (repo, "octocat/attnlib") if change == "repo" else (f"/{branch}", "/other")
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert len(strangers(public)) == 1


# --- make links


def contents(root):
    return {path: path.read_bytes() for path in texts(root)}


def test_make_links_sets_every_link_and_can_be_run_again(tmp_path):
    root = project(tmp_path)
    before = contents(root)
    changed = {path.name for path in links.rewrite(SET, root)}
    assert {"README.md", "CITATION.cff", "pyproject.toml", "00_start_here.ipynb", "09_a_real_model.ipynb"} <= changed
    assert links.address(root) == SET
    assert strangers(root) == [] and [p for path in documents(root) for p in problems(path, root)] == []
    after_first = contents(root)
    assert links.rewrite(SET, root) == []
    # Names that begin alike, a branch that is called as before, and back again.
    for second in (links.Address("octo-cat/Attn.lib-2", "v2"), links.Address("octo/octo", "main")):
        assert links.rewrite(second, root)
        assert strangers(root) == [] and links.address(root) == second
    links.rewrite(SET, root)
    assert contents(root) == after_first
    links.rewrite(links.address(), root)
    assert contents(root) == before


def test_line_ends_stay_as_they_are(tmp_path):
    readme = project(tmp_path) / "README.md"
    readme.write_bytes(readme.read_bytes().replace(b"\n", b"\r\n"))
    links.rewrite(SET, tmp_path)
    content = readme.read_bytes()
    assert SET.repo.encode() in content and content.count(b"\n") == content.count(b"\r\n")


def test_a_build_after_make_links_gives_the_same_bytes(public, monkeypatch):
    monkeypatch.setattr(links, "address", lambda: SET)
    for entry in SERIES:
        path = public / "notebooks" / entry.built.name
        notebook, built = nbformat.read(path, as_version=4), build.read_source(entry.source)
        for cell, ran in zip(built.cells, notebook.cells, strict=True):
            cell.update({key: ran[key] for key in ("outputs", "execution_count") if key in ran})
        assert nbformat.writes(built) + "\n" == path.read_text(encoding="utf-8")


def test_a_link_whose_name_goes_on_is_another():
    where = links.Address("a/b", "main")
    for text in (
        "https://github.com/a/b-c",
        "https://github.com/a/bc",
        "https://github.com/a/b.c",
        "https://github.com/x/a/b",
    ):
        assert not own(text, where), text
    for text in ("https://github.com/a/b", "https://github.com/a/b.git", "https://github.com/a/b."):
        assert own(text, where)[1] == "https://github.com/a/b"
    assert own("https://github.com/a/b/tree/main-2", where)[1] == "https://github.com/a/b"


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
        links.main(arguments)


def git(root, *arguments):
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://github.com/octo-cat/Attn.lib", "octo-cat/Attn.lib"),
        ("https://github.com/octo-cat/Attn.lib.git", "octo-cat/Attn.lib"),
        ("https://someone@github.com/octo-cat/Attn.lib/", "octo-cat/Attn.lib"),
        ("git@github.com:octo-cat/Attn.lib.git", "octo-cat/Attn.lib"),
        ("ssh://git@github.com/octo-cat/Attn.lib.git", "octo-cat/Attn.lib"),
        ("https://gitlab.com/octo-cat/Attn.lib.git", None),
        ("https://github.com.example.org/octo-cat/Attn.lib", None),
        ("../elsewhere", None),
    ],
)
def test_the_address_is_read_off_the_remote(tmp_path, url, found):
    git(tmp_path, "init", "-q")
    with pytest.raises(SystemExit, match="no remote called origin here"):
        links.origin(tmp_path)
    git(tmp_path, "remote", "add", "origin", url)
    if found:
        assert links.origin(tmp_path) == found
        return
    with pytest.raises(SystemExit, match=re.escape(f"must be a repository on GitHub, it is {url}. Example:")):
        links.origin(tmp_path)


def test_make_links_needs_no_argument_and_no_package(tmp_path):
    root = project(tmp_path)
    git(root, "init", "-q")
    git(root, "remote", "add", "origin", f"git@github.com:{SET.repo}.git")
    command = [sys.executable, "-S", "-m", "tools.links", "", SET.branch]  # -S: no site-packages
    done = subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{SET.repo}, branch {SET.branch}: " in done.stdout
    assert links.address(root) == SET and strangers(root) == []


def test_the_citation_names_this_version_and_address():
    # That the file is valid CFF 1.2 was checked with cffconvert.
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == attnlib.__version__
    where = links.address()
    assert citation.get("repository-code") == (f"https://github.com/{where.repo}" if where else None)
    assert citation["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= citation.keys()
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("(CITATION.cff)") == 1
