"""What may import what, how long its functions are, and that every public name comes with an example that runs."""

import ast
import doctest
import importlib
import inspect
import io
import pathlib
import re
import subprocess
import sys
import tokenize

import pytest
from importlinter.cli import lint_imports

import attnlib as al
from attnlib import diagnose, live, plot, torch_layers, watch
from tools import stub
from tools.series import tomllib

PACKAGE = pathlib.Path(al.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parent.parent
COURSE = ROOT / "attncourse"
HEAVY = ("torch", "matplotlib", "ipywidgets", "IPython", "tqdm", "PIL")


def test_the_house_stands():
    """The contracts are in pyproject.toml; a broken one is printed with the imports that break it."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def layers_on_the_page():
    """Return {package: its layers, each a set of names} as docs/house.md draws them; `|` joins a line to that above."""
    found, page = {}, (ROOT / "docs" / "house.md").read_text("utf-8")
    for package, drawing in re.findall(r"^`([\w.]+)`:\n\n```\n(.*?)```", page, re.M | re.S):
        layers = found[package] = []
        for line in drawing.splitlines():
            names = set(re.split(r" {2,}", line)[0].strip("| ").split(", "))
            if line.startswith("|"):
                layers[-1] |= names
            else:
                layers.append(names)
    return found


def test_the_page_of_the_house_draws_the_contracts():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    held = {
        contract["containers"][0]: [set(layer.split(" | ")) for layer in contract["layers"]]
        for contract in contracts
        if "containers" in contract
    }
    assert layers_on_the_page() == held, "docs/house.md draws the contracts of pyproject.toml. Fix one of them"


def imported(path):
    """Return all modules that a file may import, also those that are names in a package."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def test_what_only_lecturers_and_recorders_need_is_not_in_the_wheel():
    """Each module is imported by another, by a notebook or by the site; catalogue finds lessons, and what they hold."""
    sources = [
        path for folder in ("attnlib", "attncourse", "notebooks/src", "lite") for path in (ROOT / folder).rglob("*.py")
    ]
    used = {name for path in sources for name in imported(path)}
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in (PACKAGE, COURSE)
        for path in package.rglob("[!_]*.py")
    }
    found = re.compile(r"attncourse\.lessons\.\w+\.(exercises|mistakes|payoffs)")
    alone = {module for module in modules - used if not found.fullmatch(module)}
    # The reader of lesson one_token_at_a_time is told to import the first; the second says where the course is.
    assert alone == {"attncourse.training.decoder", "attnlib.course"}


FOLDERS = ("assess", "attnlib", "attncourse", "bench", "lite", "tests", "tools")
CODE = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
NO_CODE = {getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")}


def lines_of_code(source):
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {line for t in tokens if t.type not in NO_CODE for line in range(t.start[0], t.end[0] + 1)}


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_function_is_above_40_lines(path):
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno - node.lineno > 40:
            first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0].lineno
            assert len(lines_of_code(source) & set(range(first, node.end_lineno + 1))) <= 40, node.name


# Participles without the ending -ed, and `run`, which does not say what is run. `split` and `put` are also verbs.
PARTICIPLES = """
    begun bought bound broken built caught chosen cut done drawn driven fed felt found given gone grown held
    hidden kept known laid left lost made meant met paid read run said seen sent shown sold sought spent spoken
    struck taken taught thrown told torn understood worn written
"""
NO_PARTICIPLES = {"bed", "embed", "feed", "need", "seed", "speed", "unembed"}
# Old names that may stay: notebooks call them, exercises are called so, or diagnose has them. Never add to these.
BARE = """
attncourse/clinic/__init__.py cured
attncourse/clinic/patients.py mended struck
attncourse/dates.py recorded
attncourse/lessons/long_texts/tiles.py tiled
attncourse/model_files.py stored
attncourse/ships.py pictured
attncourse/smollm/results.py recorded
attncourse/training/decoder.py trained
attncourse/training/neighbours.py measured trained
attncourse/training/previous_letter.py trained
attncourse/writer/__init__.py measured recorded stored
attnlib/diagnose/_asking.py _asked
attnlib/diagnose/_cache.py _missed cached fed
attnlib/diagnose/_caller.py _swapped tried
attnlib/diagnose/_invariance_probes.py _counted untouched
attnlib/diagnose/_patient.py _uncompiled copied moved run turned
attnlib/diagnose/_reach_probes.py _mixed allowed run
attnlib/diagnose/_watch.py _convolved _reweighted _scaled
attnlib/diagnose/_weight_probes.py _named
attnlib/rounding.py rounded
"""


def bare_participles(path):
    """Yield the functions and methods of a file that bear a bare participle; a property is no call, so it may."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            word, decorators = node.name.strip("_"), {ast.unparse(one) for one in node.decorator_list}
            regular = re.fullmatch("[a-z]+ed", word) and word not in NO_PARTICIPLES
            if (regular or word in PARTICIPLES.split()) and decorators.isdisjoint({"property", "cached_property"}):
                yield node.name


def test_a_function_is_named_by_what_it_does():
    allowed = {(path, name) for path, *names in map(str.split, BARE.strip().splitlines()) for name in names}
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in CODE
        if path.relative_to(ROOT).parts[0] != "tests"
        for name in bare_participles(path)
    }
    assert not found - allowed, "Fix: a verb and its object, such as load_results, or what is returned, error_text"
    assert not allowed - found, "Fix: take from BARE what is no longer there"
    assert len(allowed) <= 37, "the list may only shrink. Fix: another name for the new function"


def light():
    """Return the modules of the course that need no torch: exercises load it where modules are handed in."""
    files = (path.relative_to(ROOT) for path in COURSE.rglob("[!_]*.py"))
    modules = {".".join(path.with_suffix("").parts) for path in files}
    heavy = ("clinic.", "real_model", "ships", "training.", "views.", "writer.training")
    return sorted(name for name in modules if not name.removeprefix("attncourse.").startswith(heavy))


@pytest.mark.slow
def test_no_module_loads_more_than_it_needs():
    """One process imports them one after the other: each may load what stands in its row, and those before it less."""
    front_end = ("matplotlib", "ipywidgets", "IPython")
    rows = [
        (["attnlib"], HEAVY),
        (light(), HEAVY),
        (["attnlib.colours"], (*front_end, "PIL")),
        (["attnlib.svg", "attnlib.tables", "attncourse.training"], front_end),
    ]
    code = (
        f"import importlib, sys\nfor modules, without in {rows}:\n"
        "    for module in modules:\n"
        "        importlib.import_module(module)\n"
        "        loaded = [name for name in without if name in sys.modules]\n"
        "        assert not loaded, (module, loaded)\n"
        "    assert 'numpy' in sys.modules\n"
        # torch.broadcast_shapes imports sympy when it is first called: a second, or on a busy machine five.
        "import torch; from attnlib.torch_layers import SelfAttention; before = set(sys.modules)\n"
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


WITHOUT_ALL = [
    "core",
    "masks",
    "heads",
    "rotary",
    "rounding",
    "steps",
    "validation",
    "arguments",
    "tables",
    "torch_layers.inputs",
]


def public_functions():
    named = [(module, module.__all__) for module in (al, torch_layers, plot, live, diagnose, watch)]
    parts = [importlib.import_module(f"attnlib.{name}") for name in WITHOUT_ALL]
    own = {
        m: [n for n, x in vars(m).items() if n[0] != "_" and getattr(x, "__module__", "") == m.__name__] for m in parts
    }
    for module, names in (*named, *own.items()):
        for name in names:
            thing = getattr(module, name)
            methods = {of: getattr(thing, of) for of in vars(thing)} if inspect.isclass(thing) else {name: thing}
            for method, function in methods.items():
                public = method in ("__init__", "__call__") or not method.startswith("_")
                ours = str(getattr(function, "__module__", "")).startswith("attnlib")
                if public and ours and inspect.isroutine(function):
                    yield pytest.param(function, id=f"{module.__name__}.{name}.{method}")


@pytest.mark.parametrize("function", list(public_functions()))
def test_public_functions_have_type_hints(function):
    """And py.typed says so, in what is installed: pyproject.toml takes it along."""
    taken = inspect.signature(function)
    bare = [p.name for p in taken.parameters.values() if p.annotation is p.empty and p.name != "self"]
    assert (bare, taken.return_annotation is taken.empty) == ([], False)
    assert (PACKAGE / "py.typed").exists() and '"attnlib" = ["py.typed"]' in (ROOT / "pyproject.toml").read_text(
        "utf-8"
    )


def test_an_editor_completes_every_exercise_and_question():
    assert stub.TARGET.read_text("utf-8") == stub.stub_text(), "Fix: python -m tools.stub"
    assert stub.TITLES.read_text("utf-8") == stub.titles_text(), "Fix: python -m tools.stub"


@pytest.mark.parametrize(
    "name",
    ["core", "examples", "heads", "masks", "torch_layers.attention", "torch_layers.modules", "validation"],
)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"attnlib.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0
