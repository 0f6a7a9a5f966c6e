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
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))
HEAVY = ("torch", "matplotlib", "ipywidgets", "IPython", "tqdm", "PIL")

# A module may import these of its siblings and no others.
MAY_IMPORT = {
    "validation": set(),
    "examples": set(),
    "masks": {"validation"},
    "core": {"masks", "validation"},
    "heads": {"core", "masks", "validation"},
    "torch_layers": {"core", "masks", "heads", "validation"},
    "plot": {"core", "validation"},
    "svg": {"plot", "core"},
    "live": {"core", "examples", "heads", "masks", "plot", "svg", "validation"},
    "checks": {"core", "masks", "heads", "validation"},
    "training": {"live", "validation"},
    "real_model": {"live", "plot", "svg"},
    "__init__": {"core", "masks", "heads", "validation"},
}


def test_importing_attnlib_loads_numpy_and_nothing_heavier():
    code = f"import sys, attnlib; print([name for name in {HEAVY} if name in sys.modules], 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[] True", "")


def siblings_imported(source):
    """The modules of this package that `source` imports, anywhere in it; '' is the package itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ["attnlib"] * node.level + (node.module.split(".") if node.module else [])
            names = [base] if len(base) > 1 else [[*base, alias.name] for alias in node.names]
        else:
            continue
        for package, *rest in names:
            if package == "attnlib":
                found.add(rest[0] if rest and rest[0] in MODULES else "")
    return found


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


@pytest.mark.parametrize("name", MODULES)
def test_modules_import_only_what_stands_below_them(name):
    assert name in MAY_IMPORT, f"say in MAY_IMPORT what {name}.py may import"
    source = (PACKAGE / f"{name}.py").read_text(encoding="utf-8")
    assert siblings_imported(source) <= MAY_IMPORT[name]


@pytest.mark.parametrize("name", [name for name in MODULES if name not in ("torch_layers", "training", "checks")])
def test_torch_lives_in_one_module(name):
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {
        (n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
    }
    assert "torch" not in imported


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
