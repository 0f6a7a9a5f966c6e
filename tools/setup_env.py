"""Make .venv and install what the notebooks (and, with --tests, the tests) need. Run by `make lab` and `make test`.

    python tools/setup_env.py            what running the notebooks needs
    python tools/setup_env.py --tests    also what tests and builds need

A second call starts no installer: a stamp in .venv remembers the files it was made from.
"""

import argparse
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
INPUTS = ["requirements.txt", "tests/requirements.txt", "pyproject.toml", "tools/setup_env.py"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", action="store_true")
    tests = parser.parse_args().tests
    if sys.version_info[:2] < (3, 11):
        sys.exit(
            f"Python 3.11 or newer is needed for the pinned packages, this is {platform.python_version()} "
            f"({sys.executable}). Fix: make PYTHON=python3.11 ..."
        )
    # The path is part of it: a virtual environment does not survive being moved.
    digest = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in INPUTS) + str(ROOT).encode()).hexdigest()
    stamps = [VENV / f"attnlib-{kind}-{digest[:16]}" for kind in ("run", "tests")]
    if PYTHON.exists() and stamps[tests].exists():
        return
    make_venv()
    if not PYTHON.exists():
        sys.exit(f"{PYTHON} is missing after making .venv. Fix: make clean, then try again.")
    install_torch()
    requirements = ROOT / ("tests/requirements.txt" if tests else "requirements.txt")
    print(f"installing {requirements.relative_to(ROOT)} into .venv", flush=True)
    pip("-r", str(requirements))
    pip("--no-deps", "-e", str(ROOT))
    for stamp in stamps[: tests + 1]:
        stamp.touch()


def make_venv():
    if PYTHON.exists():
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "this Python cannot make virtual environments: its venv module lacks ensurepip. "
            "Fix on Debian or Ubuntu: apt install python3-venv; elsewhere install Python from its official installer."
        )
    print("making .venv", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)


def install_torch():
    """Install the pinned torch, as its CPU-only build where one can be had.

    On Linux the build that pip finds by default brings several GB of CUDA libraries. The local version +cpu exists
    only where pip has been told of a place that holds it (find-links or an index in pip's own settings). Failing
    that, uv knows PyTorch's CPU index by name.
    """
    pin = next(
        line for line in (ROOT / "requirements.txt").read_text("utf-8").split("\n") if line.startswith("torch==")
    )
    if sys.platform != "linux":
        return  # there the default build is CPU-only (or has Metal), and requirements.txt brings it
    if installed("torch") == pin.removeprefix("torch==") or installed("torch") == f"{pin.removeprefix('torch==')}+cpu":
        return
    print(f"installing {pin}, CPU-only build (about 200 MB)", flush=True)
    if pip(f"{pin}+cpu", quiet=True):
        return
    if pip("uv", quiet=True):
        command = [
            str(PYTHON),
            "-m",
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python",
            str(PYTHON),
            "--torch-backend",
            "cpu",
        ]
        if subprocess.run([*command, pin], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return
    print("no CPU-only build within reach: downloading the default build, on Linux about 3 GB with CUDA", flush=True)


def installed(package):
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    result = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)
    return result.stdout.strip()


def pip(*arguments, quiet=False):
    """Run pip install in .venv; pip's own environment variables and settings apply. Return whether it worked."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
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
        sys.exit(f"pip install {' '.join(arguments)} failed, see above.")
    return result.returncode == 0


if __name__ == "__main__":
    main()
