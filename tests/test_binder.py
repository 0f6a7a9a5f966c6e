"""The image Binder builds from binder/: cheap checks of its files, and `make test-binder`, which installs them."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomllib

from tools import setup_env
from tools.series import find_notebook

ROOT = Path(__file__).resolve().parent.parent
BINDER = ROOT / "binder"


def pins(path):
    lines = path.read_text("utf-8").splitlines()
    return {line.split("==")[0]: line for line in lines if line and not line.startswith("#")}


def test_binder_installs_the_versions_of_requirements_txt():
    ours, here = pins(ROOT / "requirements.txt"), pins(BINDER / "requirements.txt")
    # torch comes by postBuild as its CPU build; nobody runs the tests in Binder.
    assert sorted(here.values()) == sorted(line for name, line in ours.items() if name not in TORCH_AND_TESTS)


TORCH_AND_TESTS = ("torch", "nbval", "pytest")


def test_binder_asks_for_the_python_of_the_pins():
    # A Python with a minor version is what repo2docker honours; any other line would mean its default.
    (version,) = re.findall(r"^python-(3\.\d+)$", (BINDER / "runtime.txt").read_text("utf-8"), re.MULTILINE)
    assert f"Python {version}" in (ROOT / "requirements.txt").read_text("utf-8")
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert [int(n) for n in version.split(".")] >= [int(n) for n in lowest.removeprefix(">=").split(".")]


def test_post_build_is_a_program_that_cannot_bring_cuda():
    path = BINDER / "postBuild"
    text = path.read_text("utf-8")
    assert text.startswith("#!")
    listed = subprocess.run(
        ["git", "ls-files", "--stage", path], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    assert listed.returncode != 0 or listed.stdout.startswith("100755"), "not executable in git: Binder would skip it"
    installs = [line for line in text.splitlines() if "install" in line and not line.startswith("#")]
    assert not [line for line in installs if "torch==" in line or "-r " in line], "torch comes by setup_env.py alone"
    bash = shutil.which("bash")
    if bash and os.name != "nt":  # on Windows this name may start a Linux of its own, which knows no such path
        done = subprocess.run([bash, "-n", path], capture_output=True, encoding="utf-8", check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_no_image_is_built_without_a_cpu_build_of_torch(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["setup_env.py", "binder"])
    monkeypatch.setattr(setup_env, "install_torch", lambda python: False)
    with pytest.raises(SystemExit, match="Fix: build where PyTorch's CPU index can be reached"):
        setup_env.main()
    monkeypatch.setattr(setup_env, "install_torch", lambda python: python == sys.executable)
    monkeypatch.setattr(setup_env, "write_bytecode", lambda python: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    setup_env.main()
    assert [path for path in setup_env.SETTINGS.values() if not (tmp_path / path).exists()] == []


@pytest.mark.binder
def test_the_image(tmp_path, capsys):
    """Do what Binder does, in a new environment: its requirements.txt, then postBuild; then run two notebooks there.

    torch is found by pip's own settings (find-links or an index with +cpu builds) where they know one, else by uv.
    """
    if sys.platform != "linux":
        pytest.skip("the image is Linux: its torch is not the one of this system")
    start, repository, venv = time.perf_counter(), tmp_path / "repository", tmp_path / "venv"
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, encoding="utf-8").splitlines():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, repository / name)
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    # What the caller has set for its own Python must not leak in.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join([str(venv / "bin"), environment["PATH"]])

    def run(*command):
        done = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    run("pip", "install", "--no-cache-dir", "-r", "binder/requirements.txt")
    run(str(repository / "binder" / "postBuild"))
    took = time.perf_counter() - start
    files = [path for path in venv.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files) / 1e6
    installed = run("pip", "list", "--format=freeze").lower()
    assert "nvidia" not in installed and "triton" not in installed and "uv==" not in installed
    assert "attnlib" in installed
    assert run("python", "-c", "import torch; print(torch.version.cuda)").strip() == "None"
    for name in (find_notebook("by_hand").name, find_notebook("pytorch_module").name):
        run("jupyter", "execute", f"notebooks/{name}.ipynb")
    with capsys.disabled():
        print(f"\nBinder: installed in {took:.0f} s, {size:.0f} MB, two notebooks ran")
