"""Start a real front end on the loopback address, to be driven with Chromium by the browser tests and the bench."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import ClassVar

from tools.links import Address
from tools.series import ROOT

PUBLIC = Address("octocat/attnlib", "main")  # where Colab believes to install from; never asked
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    f"--{flag}"
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]
BIN = "Scripts" if os.name == "nt" else "bin"


def slider_of(still):
    """Return the first slider of a view in a page without a kernel; a question before it is answered."""
    answers = still.locator(".attnlib-fills:has(span) button")
    if answers.count():
        answers.first.click()
    return still.get_by_role("slider").first


def ends_of(still):
    """Yield where the first control of a view in a page without a kernel stands at its first stop, and at its last."""
    slider, options = slider_of(still), still.get_by_role("radio")
    slider.or_(options.first).first.wait_for()  # a fragment of a slide is hidden until Chromium draws its next frame
    for key, option in (("Home", options.first), ("End", options.last)):
        if slider.count():
            slider.press(key)
        else:
            option.check()
        yield key


def offline(chromium, width=1024, height=768):
    """Return a context of Chromium whose pages reach nothing but this machine."""
    context = chromium.new_context(viewport={"width": width, "height": height})
    local = ("http://127.0.0.1", "data:", "blob:", "file:")
    context.route("**/*", lambda r: r.continue_() if r.request.url.startswith(local) else r.abort())
    return context


def prepared(page):
    """Let a page answer what page.js asks, and return it."""
    page.add_init_script(path=Path(__file__).with_name("page.js"))
    return page


def serious(page, **how):
    """Return what axe finds serious or critical on a page, or in the part of it that `context` includes."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], **how.pop("options", {})}  # what passes is not listed: that takes as long
    found = Axe().run(page, options=options, **how).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found if one["impact"] in ("serious", "critical")]


def colab(home):
    """Make an environment that looks like Colab without attnlib; return its Python and the variables to run it with.

    It lies over .venv-colab, which stays as it is, and imports `google.colab` at its start. Git takes the public
    address for a repository in `home` that holds the attnlib of this folder, committed or not.
    """
    below, venv, repository = ROOT / ".venv-colab", home / "venv", home / "repository"
    subprocess.run([str(below / BIN / "python"), "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.rglob("site-packages")
    (packages,) = below.glob(site.relative_to(venv).as_posix())
    (site / "colab.pth").write_text("import google.colab\n", encoding="utf-8")
    (site / "google" / "colab").mkdir(parents=True)
    (site / "google" / "colab" / "__init__.py").touch()
    for package in ("attnlib", "attncourse"):
        shutil.copytree(ROOT / package, repository / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-CC-BY-4.0", "NOTICE"):
        shutil.copy(ROOT / name, repository)
    repo, branch = PUBLIC
    git = ["git", "-c", "user.name=test", "-c", "user.email=test", "-C", str(repository)]
    for command in (["init", "-q", "-b", branch], ["add", "."], ["commit", "-q", "-m", "attnlib"]):
        subprocess.run([*git, *command], check=True)
    return venv / BIN / "python", {
        # Not by a .pth file: pip's isolated builds would read it, and find the setuptools of .venv-colab.
        "PYTHONPATH": str(packages),
        "JUPYTER_PATH": str(below / "share" / "jupyter"),
        "JUPYTER_CONFIG_PATH": str(below / "etc" / "jupyter"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{repository.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://github.com/{repo}",
    }


def variables(home, scripts):
    """Return those in which a front end runs: what it keeps lies in `home`, and its own programs come first."""
    return {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
    }


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class FrontEnd:
    """JupyterLab ("lab"), Notebook 7 ("notebook7") or the classic notebook as Colab ("classic") over a folder."""

    VENV: ClassVar = {"lab": ".venv", "notebook7": ".venv-notebook7", "classic": ".venv-colab"}

    def __init__(self, kind, folder, home):
        self.kind, self.folder, self.home = kind, folder, home
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        scripts = ROOT / self.VENV[kind] / BIN
        settings = home / "settings" / "@jupyterlab" / "notebook-extension"
        settings.mkdir(parents=True)
        # All cells are rendered: otherwise those off screen are not in the page.
        (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}', encoding="utf-8")
        environment = variables(home, scripts)
        python = scripts / "python"
        if kind == "classic":
            python, as_in_colab = colab(home)
            environment.update(as_in_colab)
        module = {"lab": "jupyterlab", "notebook7": "notebook", "classic": "notebook"}[kind]
        command = [str(python), "-m", module, "--no-browser", "--allow-root", "--ip=127.0.0.1"]
        if kind == "classic":
            command += [f"--port={port}", f"--notebook-dir={folder}", "--NotebookApp.token="]
        else:
            app = "LabApp" if kind == "lab" else "JupyterNotebookApp"
            command += [f"--ServerApp.port={port}", f"--ServerApp.root_dir={folder}", "--IdentityProvider.token="]
            command += [f"--{app}.expose_app_in_browser=True"]
        self.log = (home / "server.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.url}/api/kernels", timeout=2)
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError((home / "server.log").read_text("utf-8", errors="replace"))

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()

    def open(self, page, name):
        """Open a notebook and wait until its kernel is idle."""
        path = {"lab": "doc/tree", "notebook7": "notebooks", "classic": "notebooks"}[self.kind]
        prepared(page).goto(f"{self.url}/{path}/{name}")
        page.wait_for_function("ask.idleClassic()" if self.kind == "classic" else "ask.idle()", timeout=90_000)
        if self.kind == "classic":
            page.wait_for_timeout(1500)  # its widget manager first asks for old widgets; nothing tells its end

    def run_all(self, page):
        if self.kind == "classic":
            page.evaluate("Jupyter.notebook.execute_all_cells()")
            page.wait_for_function("ask.doneClassic()", timeout=300_000, polling=100)
        else:
            page.evaluate("ask.runAll()")

    def errors(self, page):
        selector = {
            "classic": ".output_error, .output_stderr",
        }.get(self.kind, '[data-mime-type$="stderr"], [data-mime-type$="error"]')
        return page.locator(selector).all_inner_texts()

    def handles(self, page):
        return page.locator(".ui-slider-handle" if self.kind == "classic" else ".jp-OutputArea .noUi-handle")
