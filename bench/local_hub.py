"""A JupyterHub on the loopback address, with its proxy, and the repository that a lecturer hands notebooks out from."""

import collections
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import requests

from tests.browser.front_end import free_port
from tools.handouts import student
from tools.series import ROOT

VENV = ROOT / ".venv-hub"
PROXY = VENV / "node_modules" / ".bin" / "configurable-http-proxy"
# Many kernels share few cores: a kernel that starts a thread for each core slows all others down, and gains nothing.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
# By itself the C library keeps ever more of what large arrays took. A fixed number of bytes makes it give memory back.
GIVE_BACK = {"MALLOC_TRIM_THRESHOLD_": "131072"}
MB = 1e6


class Hub:
    """JupyterHub over an empty folder: any name may log in, and gets a folder there but no account of the system.

    Servers run from .venv-hub, kernels from the environment that runs this, as `make lab` has it. `close` ends all that
    was started, and no other process.
    """

    def __init__(self, home):
        if not PROXY.exists():
            sys.exit(f"{VENV.name} is missing or not complete. Fix: make bench ARGS=hub makes it.")
        self.home = home
        (home / "hub").mkdir()
        self.address = f"http://127.0.0.1:{free_port()}"
        (home / "hub" / "settings.json").write_text(json.dumps(self._settings()), encoding="utf-8")
        self.log = home / "hub" / "log"
        environment = {**os.environ, "PATH": os.pathsep.join([str(VENV / "bin"), os.environ["PATH"]])}
        environment["JUPYTER_PATH"] = str(home / "jupyter")
        command = [VENV / "bin" / "python", "-m", "jupyterhub", "-f", "settings.json"]
        with self.log.open("wb") as log:
            self.process = psutil.Popen(command, cwd=home / "hub", env=environment, stdout=log, stderr=log)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _settings(self):
        kernel = self.home / "jupyter" / "kernels" / "python3"
        kernel.mkdir(parents=True)
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        words = {"argv": launch, "display_name": "Python 3 (ipykernel)", "language": "python"}
        (kernel / "kernel.json").write_text(json.dumps(words), encoding="utf-8")
        return {
            "JupyterHub": {
                "bind_url": self.address,
                "hub_bind_url": f"http://127.0.0.1:{free_port()}",
                "spawner_class": "simple",
                "authenticator_class": "dummy",
            },
            "ConfigurableHTTPProxy": {"api_url": f"http://127.0.0.1:{free_port()}", "command": [str(PROXY)]},
            "Authenticator": {"allow_all": True},
            "SimpleLocalProcessSpawner": {"home_dir_template": str(self.home / "{username}")},
            "Spawner": {
                "ip": "127.0.0.1",
                "start_timeout": 120,  # a class that logs in at once waits longer than the usual 60 and 30 seconds
                "http_timeout": 120,
                "args": ["--allow-root"],  # no harm where it is not root
                "environment": {**ONE_THREAD, **GIVE_BACK, "JUPYTER_PATH": str(self.home / "jupyter")},
            },
        }

    def _wait(self):
        for _ in range(300):
            with contextlib.suppress(requests.RequestException):
                requests.get(f"{self.address}/hub/health", timeout=2).raise_for_status()
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.2)
        raise RuntimeError("the hub did not start:\n" + self.log.read_text("utf-8", errors="replace")[-3000:])

    def find_processes(self):
        """Yield the hub and all that came of it, also what has lost its parent: all inherit one variable."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("JUPYTER_PATH") == str(self.home / "jupyter"):
                    yield process

    def processes(self):
        """Return {(account, what): [processes]}; what is "server" or the name of the notebook that a kernel has open.

        The hub and its proxy stand below the account "".
        """
        found = collections.defaultdict(list)
        for process in self.find_processes():
            with contextlib.suppress(psutil.Error):
                words = process.environ()
                account = words.get("JUPYTERHUB_USER", "")
                notebook = Path(words.get("JPY_SESSION_NAME", "")).stem[3:]  # without its number
                found[account, notebook or ("server" if account else "hub and proxy")].append(process)
        return found

    def close(self, patience=30):
        """End everything; what has not ended after `patience` seconds, twice, is killed."""
        if self.process.poll() is None:
            self.process.terminate()  # the hub then ends the servers, which end their kernels
        with contextlib.suppress(psutil.TimeoutExpired):
            self.process.wait(patience)
        left = [self.process if process.pid == self.process.pid else process for process in self.find_processes()]
        for ask in (psutil.Process.terminate, psutil.Process.kill):
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    ask(process)
            _, left = psutil.wait_procs(left, timeout=patience)


def weigh(process):
    """Return (private, fair share) in MB: USS is what nobody else holds, PSS counts a shared page in parts."""
    info = process.memory_full_info()
    return info.uss / MB, getattr(info, "pss", info.uss) / MB


class Lecturer:
    """The repository that a class gets its notebooks from, and the folder in which the lecturer changes them."""

    def __init__(self, home, notebooks):
        self.address, self.folder = (home / "attnlib").as_uri(), home / "lecturer"
        self._git(home, "init", "--quiet", "--bare", "--initial-branch=main", "attnlib")
        self._git(home, "init", "--quiet", "--initial-branch=main", "lecturer")
        for notebook in notebooks:
            nbformat.write(student(notebook.source), self.folder / notebook.built.name)
        self._publish("the notebooks of make student")

    def correct(self, words):
        """Add words to the title cell of every notebook, and publish that."""
        for path in self.folder.glob("*.ipynb"):
            notebook = nbformat.read(path, as_version=4)
            notebook.cells[0].source += words
            nbformat.write(notebook, path)
        self._publish("a correction")

    def _publish(self, subject):
        self._git(self.folder, "add", ".")
        self._git(self.folder, "commit", "--quiet", "-m", subject)
        self._git(self.folder, "push", "--quiet", self.address, "main")

    def _git(self, folder, *command):
        name = ["-c", "user.name=lecturer", "-c", "user.email=lecturer@localhost"]
        subprocess.run(["git", *name, "-C", folder, *command], check=True)
