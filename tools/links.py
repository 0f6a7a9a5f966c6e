"""Set the public address of the repository in every link and badge: `make links REPO=owner/name BRANCH=main`.

    python tools/links.py owner/name           branch main
    python tools/links.py owner/name branch

The address stands in pyproject.toml; the links in the files of FILES are rewritten with it. Notebooks are not run: a
build afterwards gives the same bytes.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FILES = ["*.md", "*.cff", "pyproject.toml", "docs/*.md", "notebooks/*.ipynb", "binder/*", "lite/*", ".github/*/*.yml"]
UNKNOWN = "THE_OWNER"  # GitHub allows no underscore in a name: nobody can register it, so no link leads to a stranger
# What stands in README until the address is known.
NOTE = """> The links and badges lead nowhere until this repository has a public address. Set it, then commit:
> `make links REPO=owner/name BRANCH=main`

"""


class Address(NamedTuple):
    repo: str
    branch: str

    @property
    def forms(self):
        """Return every form of a link to this address, the longer of two alike first."""
        owner, name = self.repo.split("/")
        page = f"https://github.com/{self.repo}"
        return [
            f"{page}/actions/workflows/test.yml/badge.svg?branch={self.branch}",
            *(f"{page}/{kind}/{self.branch}" for kind in ("blob", "tree")),
            f"{page}@{self.branch}",
            page,
            f"https://colab.research.google.com/github/{self.repo}/blob/{self.branch}",
            f"https://mybinder.org/v2/gh/{self.repo}/{self.branch}",
            f"https://{owner}.github.io/{name}",
        ]


def address(root=ROOT):
    """Return the public address, read from the one place where it stands."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return Address(*re.search(r'^Repository = "https://github\.com/([^/]+/[^/]+)/tree/([^/"]+)"$', text, re.M).groups())


def outward(text, root=ROOT):
    """Return a notebook's Markdown with its links to pages beside notebooks/ as public ones.

    A deck, a handout and the site have no such pages.
    """
    repo, branch = address(root)
    return text.replace("](../", f"](https://github.com/{repo}/blob/{branch}/")


def checked(repo, branch="main"):
    """Return the Address of two words that somebody typed, or end with what is wrong with them."""
    example = "Example: make links REPO=octocat/attnlib BRANCH=main"
    if not re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*/(?!\.)[\w.-]+(?<!\.git)", repo, re.ASCII):
        sys.exit(f"REPO must be owner/name as GitHub spells it, without https:// and .git; it is {repo!r}. {example}")
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", branch, re.ASCII):
        sys.exit(f"BRANCH must be one word of letters, digits, '.', '_' and '-'; it is {branch!r}. {example}")
    return Address(repo, branch)


def files(root=ROOT):
    return sorted({path for pattern in FILES for path in root.glob(pattern) if path.is_file()})


def pattern(old):
    """Return the regular expression that finds a link to an address, and no link to one whose name goes on."""
    return re.compile(f"({'|'.join(map(re.escape, old.forms))})" + r"(?![\w-]|\.(?!git\b)\w)")


def rewrite(new, root=ROOT):
    """Turn every link to the present address to the new one; return the paths of the files that changed."""
    old = address(root)
    turned = dict(zip(old.forms, new.forms, strict=True))
    changed = {}
    for path in files(root):
        text = path.read_bytes().decode("utf-8")  # bytes: line ends stay as they are
        fresh = pattern(old).sub(lambda found: turned[found[1]], text.replace(NOTE, ""))
        if fresh != text:
            changed[path] = fresh
    for path, fresh in changed.items():
        path.write_bytes(fresh.encode("utf-8"))
    return list(changed)


def main(arguments):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    new = checked(*arguments)
    changed = rewrite(new)
    print(f"{new.repo}, branch {new.branch}: {len(changed)} files rewritten" if changed else f"{new.repo}: set already")


if __name__ == "__main__":
    main(sys.argv[1:])
