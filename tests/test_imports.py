"""What may import what, and that every public name comes with an example that runs."""

import ast
import doctest
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest

import attnlib as al
from attnlib import torch_layers

PACKAGE = pathlib.Path(al.__file__).parent
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
PARTS = sorted({path.parts[0].removesuffix(".py") for path in FILES})  # modules, and packages as a whole
HEAVY = ("torch", "matplotlib", "ipywidgets", "IPython", "tqdm", "PIL")

# A module, or a package as a whole, may import these of its siblings and no others.
MAY_IMPORT = {
    "validation": set(),
    "examples": set(),
    "masks": {"validation"},
    "core": {"masks", "validation"},
    "heads": {"core", "masks", "validation"},
    "torch_layers": {"core", "masks", "heads", "validation"},
    "colours": set(),
    "svg": {"colours"},
    "figure": {"colours"},
    "tables": {"colours", "svg"},
    "plot": {"colours", "figure", "svg", "tables", "validation"},
    "progress": set(),
    "live": {"colours", "core", "figure", "heads", "masks", "plot", "progress", "svg", "validation"},
    "training": {"progress", "validation"},
    "real_model": {"live", "plot"},
    "clinic": {"checks"},
    "checks": {"core", "masks", "heads", "validation", "examples"},
    "__init__": {"core", "masks", "heads", "validation"},
}


def test_importing_attnlib_loads_numpy_and_nothing_heavier():
    code = f"import sys, attnlib; print([name for name in {HEAVY} if name in sys.modules], 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("[] True", "")


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("colours", ("matplotlib", "ipywidgets", "IPython", "PIL")),
        ("svg", ("matplotlib", "ipywidgets", "IPython")),
        ("tables", ("matplotlib", "ipywidgets", "IPython")),
        ("training", ("matplotlib", "ipywidgets", "IPython")),
    ],
)
def test_pictures_and_training_load_no_more_than_they_need(module, without):
    if module == "training":
        pytest.importorskip("torch")
    code = f"import sys, attnlib.{module}; print([name for name in {without} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def siblings_imported(source, package=("attnlib",)):
    """The parts of attnlib that `source`, a module of `package`, imports anywhere in it; '' is attnlib itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = [*above, *(node.module.split(".") if node.module else [])]
            names = [base] if len(base) > 1 else [[*base, alias.name] for alias in node.names]
        else:
            continue
        for top, *rest in names:
            if top == "attnlib":
                found.add(rest[0] if rest and rest[0] in PARTS else "")
    return found - set(package[1:])


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from . import core, masks", {"core", "masks"}),
        ("from .core import softmax", {"core"}),
        ("import attnlib.heads as h", {"heads"}),
        ("from attnlib import masks", {"masks"}),
        ("from attnlib.core import softmax", {"core"}),
        ("def f():\n    from .heads import split_heads", {"heads"}),
        ("import attnlib as al", {""}),
        ("from . import softmax", {""}),
        ("import numpy as np\nfrom numpy import core", set()),
    ],
)
def test_the_reader_of_imports_sees_every_form(source, found):
    assert siblings_imported(source) == found


def test_the_reader_of_imports_knows_packages():
    source = "from .. import plot, svg\nfrom ..masks import causal_mask\nfrom . import view\nfrom .view import View"
    assert siblings_imported(source, ("attnlib", "live")) == {"plot", "svg", "masks"}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_modules_import_only_what_stands_below_them(path):
    part = path.parts[0].removesuffix(".py")
    assert part in MAY_IMPORT, f"say in MAY_IMPORT what {part} may import"
    source = (PACKAGE / path).read_text(encoding="utf-8")
    assert siblings_imported(source, ("attnlib", *path.parts[:-1])) <= MAY_IMPORT[part]


MAY_USE_TORCH = ("torch_layers.py", "training.py", "clinic.py", "checks")  # what checks may is said below


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] not in MAY_USE_TORCH], ids=str)
def test_torch_lives_in_one_module(path):
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {
        (n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
    }
    assert "torch" not in imported


CHECKS = sorted((PACKAGE / "checks").glob("*.py"))


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.stem)
def test_checks_import_torch_only_where_modules_are_examined(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_the_top = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
            at_the_top |= {(getattr(node, "module", None) or node.names[0].name).split(".")[0]}
    assert not at_the_top & set(HEAVY) - ({"torch"} if path.stem in ("diagnosis", "observe") else set())


def test_all_is_sorted_and_complete():
    assert al.__all__ == sorted(al.__all__, key=lambda name: (not name[0].isupper(), name))
    public = {name for name, thing in vars(al).items() if callable(thing) and not name.startswith("_")}
    assert public == set(al.__all__)


OWN = [
    getattr(torch_layers, name)
    for name, thing in vars(torch_layers).items()
    if not name.startswith("_") and getattr(thing, "__module__", "") == "attnlib.torch_layers"
]


@pytest.mark.parametrize(
    "thing", [getattr(al, name) for name in al.__all__] + OWN, ids=lambda t: t.__module__ + t.__name__
)
def test_every_public_name_has_an_example(thing):
    text = inspect.getdoc(thing)
    first = text.splitlines()[0]
    assert first.endswith((".", ":"))
    assert "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize("name", ["core", "examples", "heads", "masks", "torch_layers", "validation"])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"attnlib.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0
