"""Write every link and badge that names the public address of the repository.

    make links                                   as pyproject.toml says
    make links REPO=owner/name BRANCH=main       set it there first

The address stands in pyproject.toml and nowhere else. From it and from notebooks/series.toml are written: the marked
parts of README.md, the repository in CITATION.cff, and the first cells of the notebooks, without running them. A build
afterwards gives the same bytes. Without an address there is no badge and no link to it.
"""

import json
import re
import sys
from functools import cache, partial
from typing import NamedTuple

from .first_cells import first_cells
from .series import ROOT, SERIES

EXAMPLE = "Example: make links REPO=octocat/attnlib BRANCH=main"
UNSET = """\
> This copy has no public address, so it shows no badges: `make links REPO=owner/name` sets one. Until then Colab cannot
> fetch `attnlib`. Make its wheel here, `pip wheel --no-deps .`, upload it and the notebook there, and run in a new
> first cell `%pip install --no-deps attnlib-*.whl`.
"""
BADGES = """\
[![Tests]({page}/actions/workflows/test.yml/badge.svg?branch={branch})]({page}/actions/workflows/test.yml)
[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab})
[![Open in Binder](https://mybinder.org/badge_logo.svg)]({binder})
[![License: MIT and CC BY 4.0](https://img.shields.io/badge/license-MIT%20%2B%20CC%20BY%204.0-blue)](LICENSE)
"""
OPEN = """\
## Open it without installing

- [Colab]({colab}): all
  notebooks, with a Google account. The first cell installs `attnlib` and nothing else.
- [Binder]({binder}): all notebooks, in
  JupyterLab, without an account.
- [In this browser]({site}): the notebooks without torch run with no server at all; the others are
  there to read.
"""
COMMANDS = (
    "make lab     # open the series in JupyterLab",
    "make test    # prove it: lint, unit and property tests, every cell, slider and solution of every notebook",
)


class Address(NamedTuple):
    repo: str
    branch: str

    def words(self, name):
        """Return what links to this address are made of; `name` is the notebook that Colab and Binder open."""
        owner, project = self.repo.split("/")
        return {
            "page": f"https://github.com/{self.repo}",
            "branch": self.branch,
            "colab": f"https://colab.research.google.com/github/{self.repo}/blob/{self.branch}/notebooks/{name}.ipynb",
            "binder": f"https://mybinder.org/v2/gh/{self.repo}/{self.branch}?labpath=notebooks%2F{name}.ipynb",
            "site": f"https://{owner}.github.io/{project}/",
        }


def address(root=ROOT):
    """Return the public address, read from the one place where it stands, or None."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^Repository = "https://github\.com/([^/]+/[^/]+)/tree/([^/"]+)"$', text, re.M)
    return Address(*found.groups()) if found else None


def outward(text, root=ROOT):
    """Return a notebook's Markdown with its links to pages beside notebooks/ as public ones.

    A deck, a handout and the site have no such pages. Without an address a source is linked where it has a link of its
    own, and of other links the words stay.
    """
    where = address(root)
    if where:
        return text.replace("](../", f"](https://github.com/{where.repo}/blob/{where.branch}/")
    sources = sources_of((root / "REFERENCES.md").read_text("utf-8")) if "](../REFERENCES.md#" in text else {}

    def link(found):
        words, page = found.groups()
        own = sources.get(page.removeprefix("REFERENCES.md#"))
        return f"[{words}]({own})" if own else words

    return re.sub(r"\[([^][]*)\]\(\.\./([^()]*)\)", link, text)


@cache
def sources_of(references):
    """Return the first public link of each source in the text of REFERENCES.md, by the name of its anchor."""
    entries = re.findall(r'^- <a id="([^"]+)"></a>(.*?)(?=^- |^#|\Z)', references, re.MULTILINE | re.DOTALL)
    links = {name: re.search(r"\]\((https?://[^()\s]+)\)", told) for name, told in entries}
    return {name: link[1] for name, link in links.items() if link}


def check_address(repo, branch="main"):
    """Return the Address of two words that somebody typed, or end with what is wrong with them."""
    if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.)[\w.-]+(?<!\.git)", repo, re.ASCII):
        sys.exit(f"REPO must be owner/name as GitHub spells it, without https:// and .git; it is {repo!r}. {EXAMPLE}")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", branch, re.ASCII):
        sys.exit(f"BRANCH must be one word of letters, digits, '.', '_' and '-'; it is {branch!r}. {EXAMPLE}")
    return Address(repo, branch)


def replace_marked(text, name, content):
    """Return a text whose part between <!-- name --> and <!-- /name --> is replaced."""
    pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->\n)"
    return re.sub(pattern, lambda _: content, text, count=1, flags=re.DOTALL)


def parts():
    """Return the parts of the series: what each is, its notebooks and how long they take."""
    begin = [k for k, notebook in enumerate(SERIES) if notebook.part]
    blocks = []
    for first, last in zip(begin, [*begin[1:], len(SERIES)], strict=True):
        room = SERIES[first:last]
        names = " · ".join(f"[{one.number} {one.title}](notebooks/{one.name}.ipynb)" for one in room)
        minutes, more = sum(one.minutes for one in room), sum(one.exercise_minutes for one in room)
        takes = f"{minutes} minutes" + (f", and {more} of exercises" if more else "")
        blocks.append(f"**{room[0].part}.** {room[0].about}\\\n{names}\\\n{takes}.\n")
    return "\n".join(blocks)


def commands(where):
    """Return the two commands of the README, behind the one that brings the series where its address is known."""
    clone = [f"git clone {where.words('')['page']} && cd {where.repo.partition('/')[2]}"] if where else []
    return "\n".join(["```", *clone, *COMMANDS, "```\n"])


def readme(text, where):
    words = where.words(SERIES[0].name) if where else {}
    text = replace_marked(text, "badges", BADGES.format(**words) if where else UNSET)
    text = replace_marked(text, "open", OPEN.format(**words) if where else "")
    text = replace_marked(text, "commands", commands(where))
    return replace_marked(text, "series", parts())


def pyproject(text, where):
    line = f'Repository = "https://github.com/{where.repo}/tree/{where.branch}"\n' if where else ""
    return re.sub(r"(?<=^\[project\.urls\]\n)(Repository = .*\n)?", line, text, count=1, flags=re.MULTILINE)


def citation(text, where):
    text = re.sub(r"^repository-code: .*\n", "", text, flags=re.MULTILINE)
    return text + (f'repository-code: "https://github.com/{where.repo}"\n' if where else "")


def ipynb(notebook, text, where):
    """Return the JSON of a built notebook with other first cells, as nbformat writes it."""
    content = json.loads(text)
    badges, setup = first_cells(notebook, where)
    (old,) = (cell for cell in content["cells"] if cell["id"] == "setup")
    old["source"] = setup["source"].splitlines(keepends=True)
    content["cells"] = [cell for cell in content["cells"] if cell["id"] != "badges"]
    if badges:
        content["cells"].insert(0, {**badges, "source": badges["source"].splitlines(keepends=True)})
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True, separators=(",", ": ")) + "\n"


def rewrite(where, root=ROOT):
    """Write what depends on the address, or on there being None; return the paths of the files that changed."""
    writers = {root / "pyproject.toml": pyproject, root / "CITATION.cff": citation, root / "README.md": readme}
    for notebook in SERIES:
        writers[root / "notebooks" / notebook.built.name] = partial(ipynb, notebook)
    changed = []
    for path, write in writers.items():
        old = path.read_text("utf-8") if path.exists() else ""  # a notebook may not be built yet
        if old and (new := write(old, where)) != old:
            path.write_text(new, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


def main(repo="", branch=""):
    where = check_address(repo, branch or "main") if repo else address()
    if where is None:
        sys.exit(f"this copy has no public address yet, so it must be said. {EXAMPLE}")
    print(f"{where.repo}, branch {where.branch}: {len(rewrite(where))} files written")


if __name__ == "__main__":
    main(*sys.argv[1:])
