"""What may import what, and that every public name comes with an example that runs."""

import doctest
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest
from importlinter.cli import lint_imports

import attnlib as al
from attnlib import torch_layers

PACKAGE = pathlib.Path(al.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAVY = ("torch", "matplotlib", "ipywidgets", "IPython", "tqdm", "PIL")


def test_importing_attnlib_loads_numpy_and_nothing_heavier():
    code = f"import sys, attnlib; print([name for name in {HEAVY} if name in sys.modules], 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("[] True", "")


def test_the_house_stands():
    """The contracts are in pyproject.toml; a broken one is printed with the imports that break it."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("colours", ("matplotlib", "ipywidgets", "IPython", "PIL")),
        ("svg", ("matplotlib", "ipywidgets", "IPython")),
        ("tables", ("matplotlib", "ipywidgets", "IPython")),
        ("course.training", ("matplotlib", "ipywidgets", "IPython")),
    ],
)
def test_pictures_and_training_load_no_more_than_they_need(module, without):
    if module == "course.training":
        pytest.importorskip("torch")
    code = f"import sys, attnlib.{module}; print([name for name in {without} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_exercises_load_torch_only_where_modules_are_handed_in():
    modules = {f"attnlib.course.{path.stem}" for path in (PACKAGE / "course").glob("[!_]*.py")}
    heavy = ("clinic", "head_map", "patients", "previous_letter", "real_model", "training", "writer")
    light = modules - {f"attnlib.course.{name}" for name in heavy}
    code = f"import sys, {', '.join(light)}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_masked_call_imports_no_other_library():
    """torch.broadcast_shapes imports sympy when it is first called: a second, or on a busy machine five."""
    code = (
        "import sys, torch; from attnlib.torch_layers import SelfAttention; before = set(sys.modules)\n"
        "SelfAttention(6, 3)(torch.rand(4, 6), attn_mask=torch.ones(4, 4, dtype=torch.bool))\n"
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - {'torch'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


def test_all_is_sorted_and_complete():
    assert al.__all__ == sorted(al.__all__, key=lambda name: (not name[0].isupper(), name))
    public = {name for name, thing in vars(al).items() if callable(thing) and not name.startswith("_")}
    assert public == set(al.__all__)


OWN = [
    getattr(torch_layers, name)
    for name, thing in vars(torch_layers).items()
    if not name.startswith("_") and getattr(thing, "__module__", "").startswith("attnlib.torch_layers.")
]


@pytest.mark.parametrize(
    "thing", [getattr(al, name) for name in al.__all__] + OWN, ids=lambda t: t.__module__ + t.__name__
)
def test_every_public_name_has_an_example(thing):
    text = inspect.getdoc(thing)
    first = text.splitlines()[0]
    assert first.endswith((".", ":"))
    assert "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize(
    "name",
    ["core", "examples", "heads", "masks", "torch_layers.attention", "torch_layers.modules", "validation"],
)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"attnlib.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0
