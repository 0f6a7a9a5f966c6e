"""Make a virtual environment and install what the notebooks, the tests or the browser tests need.

    python -m tools.setup_env run         .venv: what running the notebooks needs (`make lab`)
    python -m tools.setup_env tests       .venv: also what tests and builds need (`make test`)
    python -m tools.setup_env slides      .venv: also what slides and pages to read need (`make slides`, `make html`)
    python -m tools.setup_env browser     .venv: also what drives Chromium (`make test-browser`)
    python -m tools.setup_env notebook7   .venv-notebook7: Notebook 7
    python -m tools.setup_env colab       .venv-colab: the classic notebook with the versions of Colab
    python -m tools.setup_env graders     .venv-graders: nbgrader and otter (`make test-graders`)
    python -m tools.setup_env hub         .venv-hub: JupyterHub, its proxy, nbgitpuller (`make bench ARGS=hub`)
    python -m tools.setup_env binder      the Python that runs this, in the image of Binder: the CPU-only torch
    python -m tools.setup_env lite        .venv-lite: what builds the site and the book (`make site`, `make book`)

requirements.txt and the dependency groups of pyproject.toml name the packages. A second call starts no installer: a
stamp in the environment remembers the files it was made from.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IN_MAIN = ("run", "tests", "slides", "browser")  # each holds all of the one before it
OTHERS = ("notebook7", "colab", "graders", "lite", "hub")  # each has an environment of its own
PROXY = "configurable-http-proxy@5.2.0"  # of npm; JupyterHub starts it, and it needs Node.js 20
# For JupyterLab: no question about news over the first page, no tab that is unsaved before anything was typed, and
# sliders that wait for no packet.
SETTINGS = {
    "tools/lab/overrides.json": "share/jupyter/lab/settings/overrides.d/attnlib.json",
    "tools/lab/jupyter_server_config.py": "etc/jupyter/jupyter_server_config.py",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment", choices=[*IN_MAIN, *OTHERS, "binder"])
    name = parser.parse_args().environment
    if sys.version_info[:2] < (3, 11):
        sys.exit(
            f"Python 3.11 or newer is needed for the pinned packages, this is {platform.python_version()} "
            f"({sys.executable}). Fix: make PYTHON=python3.11 ..."
        )
    if name == "binder":
        # binder/requirements.txt is installed by then, and an image with CUDA would be too big
        if not install_torch(sys.executable):
            sys.exit("Fix: build where PyTorch's CPU index can be reached.")
        ship_settings(Path(sys.prefix))
        write_bytecode(sys.executable)
        return
    venv = ROOT / (".venv" if name in IN_MAIN else f".venv-{name}")
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    held = IN_MAIN[: IN_MAIN.index(name) + 1] if name in IN_MAIN else (name,)
    if name == "lite":
        held += ("book",)  # the site also builds the book
    stamps = [venv / f"attnlib-{n}-{digest()}" for n in held]
    if python.exists() and stamps[-1].exists():
        return
    npm = npm_of_node_20() if name == "hub" else None  # before anything is installed
    make_venv(venv, python, newest_python() if name == "colab" else sys.executable)
    if name in (*IN_MAIN, "hub"):
        ship_settings(venv)
    if name in IN_MAIN:
        install_torch(python)
    print(f"installing what {name} needs into {venv.name}", flush=True)
    install(python, held)
    if npm:
        options = ("--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
        subprocess.run([npm, "install", *options, "--prefix", str(venv), PROXY], check=True)
    if name in ("run", "hub"):  # tests need a third of it, and Python writes that as it goes
        write_bytecode(python)
    for stamp in stamps:
        stamp.touch()


def install(python, held):
    """Install the packages of some parts of .venv, or of one other environment."""
    import tomllib  # not at the top: a Python before 3.11 lacks it, and main says so

    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    packages = [package for name in held if name not in ("run", "slides") for package in groups[name]]
    if held[0] != "colab":
        packages += ["-r" if held[0] == "run" else "-c", str(ROOT / "requirements.txt")]
    if held[0] not in ("colab", "lite", "hub"):  # the first cell brings attnlib; the hub's kernels are those of .venv
        packages += ["-e", str(ROOT)]
    pip(python, *packages)
    if {"slides", "lite"} & set(held):  # the site has decks
        pip(python, "--no-deps", *groups["slides"])


def digest():
    """Return a word that changes with any file the environments are made from, and with the place they stand in."""
    files = ["requirements.txt", "pyproject.toml", "tools/setup_env.py", *SETTINGS]
    content = b"".join((ROOT / file).read_bytes() for file in files)
    return hashlib.sha256(content + str(ROOT).encode()).hexdigest()[:16]


def ship_settings(environment):
    """Put the settings where Jupyter looks for those of this environment; a reader's own settings come after them."""
    for source, target in SETTINGS.items():
        (environment / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, environment / target)


def newest_python():
    """Return a Python 3.13, which Colab runs, where this machine has one; else this Python."""
    found = shutil.which("python3.13")
    works = found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0
    return found if works else sys.executable


def npm_of_node_20():
    """Return npm, or end the program where JupyterHub cannot run."""
    if os.name == "nt":
        sys.exit("JupyterHub runs on Linux and macOS, and this is Windows. Fix: run it in WSL.")
    fix = "Fix: install Node.js 20 or newer with npm, on Debian or Ubuntu: apt install nodejs npm."
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        sys.exit(f"JupyterHub's proxy runs in Node.js, and {'npm' if node else 'node'} was not found. {fix}")
    version = subprocess.run([node, "--version"], capture_output=True, encoding="utf-8", check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < 20:
        sys.exit(f"JupyterHub's proxy needs Node.js 20 or newer, this is {version} ({node}). {fix}")
    return npm


def make_venv(venv, python, base):
    if python.exists():
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "this Python cannot make virtual environments: its venv module lacks ensurepip. "
            "Fix on Debian or Ubuntu: apt install python3-venv; elsewhere install Python from its official installer."
        )
    print(f"making {venv.name}", flush=True)
    subprocess.run([base, "-m", "venv", str(venv)], check=True)
    if not python.exists():
        sys.exit(f"{python} is missing after making {venv.name}. Fix: make clean, then try again.")


def install_torch(python):
    """Install the pinned torch, as its CPU-only build where one can be had; return False if there is none.

    On Linux the build that pip finds by default brings several GB of CUDA libraries. The local version +cpu exists
    only where pip has been told of a place that holds it (find-links or an index in pip's own settings). Failing
    that, uv knows PyTorch's CPU index by name.
    """
    pin = next(
        line for line in (ROOT / "requirements.txt").read_text("utf-8").split("\n") if line.startswith("torch==")
    )
    if sys.platform != "linux":
        return True  # there the default build is CPU-only (or has Metal), and requirements.txt brings it
    if installed_version(python, "torch").removesuffix("+cpu") == pin.removeprefix("torch=="):
        return True
    print(f"installing {pin}, CPU-only build (about 200 MB)", flush=True)
    if pip(python, f"{pin}+cpu", quiet=True):
        return True
    if pip(python, "uv", quiet=True):
        command = [
            str(python),
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            str(python),
            "--torch-backend",
            "cpu",
        ]
        if subprocess.run([*command, pin], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return True
    print("no CPU-only build of torch within reach; the default build for Linux is about 3 GB, with CUDA", flush=True)
    return False


def write_bytecode(python):
    """Compile what is installed on all cores; pip would use one. In a class the folder may be read-only afterwards."""
    code = "import compileall, sysconfig; compileall.compile_dir(sysconfig.get_path('purelib'), quiet=2, workers=0)"
    subprocess.run([str(python), "-c", code], check=False)


def installed_version(python, package):
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    result = subprocess.run([str(python), "-c", code], capture_output=True, encoding="utf-8", check=False)
    return result.stdout.strip()


def pip(python, *arguments, quiet=False):
    """Run pip install in .venv; pip's own environment variables and settings apply. Return whether it worked."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    result = subprocess.run(
        [*command, *arguments], stderr=subprocess.PIPE, encoding="utf-8", errors="replace", check=False
    )
    if result.returncode and not quiet:
        lines = result.stderr.splitlines()
        sys.stderr.write("\n".join(line for line in lines if "is ignored: it is neither" not in line) + "\n")
        # pip says "from versions: none" of a package that exists when it could not ask for its versions.
        signs = ("from versions: none", "NewConnectionError", "ConnectTimeout", "name resolution")
        if any(sign in result.stderr for sign in signs):
            sys.exit(
                "pip could not reach a package index: is this machine online? Fix: connect, or point pip to a local "
                "folder of packages (PIP_FIND_LINKS)."
            )
        sys.exit("pip install failed, see above.")
    return result.returncode == 0


if __name__ == "__main__":
    main()
