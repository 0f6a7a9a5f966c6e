"""The bench of a class on JupyterHub: its pieces, and `make test-hub`, two accounts on a real hub.

What docs/class.md says of handing out by a link is done here, too.
"""

import asyncio
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import psutil
import pytest
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1

from bench import hub as bench
from bench.local_hub import VENV, Hub, Lecturer, weigh
from bench.seat import Kernel
from tools import handouts, setup_env
from tools.series import find_notebook

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "class.md").read_text("utf-8")
NAME = "vectorized"


class Socket:
    """A websocket that answers each message with frames that were put in before."""

    def __init__(self, *answers):
        self.session, self.answers, self.sent, self.frames = Session(), list(answers), [], []

    async def write_message(self, frame, binary):
        _, parts = deserialize_msg_from_ws_v1(frame)
        parent, _, _, content = map(self.session.unpack, parts)
        self.sent.append(content)
        other = {**parent, "msg_id": "of somebody else"}
        answer = [(kind, content, parent) for kind, content in self.answers.pop(0)]
        idle = ("status", {"execution_state": "idle"})
        for kind, content, asked in [(*idle, other), *answer, (*idle, parent)]:
            message = self.session.msg(kind, content) | {"parent_header": asked}
            self.frames.append(serialize_msg_to_ws_v1(message, "iopub", self.session.pack))

    async def read_message(self):
        return self.frames.pop(0) if self.frames else None


def widget(comm, model, **state):
    return ("comm_open", {"comm_id": comm, "data": {"state": {"_model_name": model, **state}}})


def update(comm, **state):
    return ("comm_msg", {"comm_id": comm, "data": {"method": "update", "state": state}})


SLIDERS = [
    widget("int", "IntSliderModel", min=1, max=4, value=2),
    widget("choice", "SelectionSliderModel", _options_labels=["a", "b", "c"], index=0),
    widget("picture", "HTMLModel", value="<svg>"),
]


def test_a_cell_gives_its_outputs_and_its_sliders():
    kernel = Kernel(Socket([("stream", {"name": "stdout", "text": "4"}), *SLIDERS]))
    (output,) = asyncio.run(kernel.execute("2 + 2"))
    assert (output.text, kernel.socket.sent[0]["code"]) == ("4", "2 + 2")
    assert kernel.sliders() == [("int", range(1, 5)), ("choice", range(3))]


def test_a_slider_is_dragged_and_comes_back():
    steps = [[update("int", value=3), update("picture", value="<svg>")], [update("picture", value="<svg>")]]
    kernel = Kernel(Socket(SLIDERS, *steps * 2))
    asyncio.run(kernel.execute(""))
    seconds = asyncio.run(kernel.drag("int", range(1, 5)))
    assert [sent["data"]["state"] for sent in kernel.socket.sent[1:]] == [{"value": v} for v in (3, 4, 3, 2)]
    assert len(seconds) == 4 and all(0 < s < 1 for s in seconds)
    kernel.socket.answers = steps
    asyncio.run(kernel.drag("choice", range(3)))
    assert [sent["data"]["state"] for sent in kernel.socket.sent[5:]] == [{"index": 1}, {"index": 0}]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([("error", {"ename": "ValueError", "evalue": "no"})], "ValueError: no"),
        ([update("picture", value="<pre>Traceback</pre>")], "a view shows an error"),
        ([update("int", value=3)], "its picture did not"),
    ],
)
def test_what_goes_wrong_in_a_kernel_is_a_failure(answer, says):
    kernel = Kernel(Socket(SLIDERS, answer))
    asyncio.run(kernel.execute(""))
    with pytest.raises(RuntimeError, match=says):
        asyncio.run(kernel.move("int", 3))


def test_a_closed_websocket_is_a_failure():
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(Kernel(Socket())._answer("never asked"))


def test_the_table_has_every_figure_of_every_class():
    def measured(count):
        room = bench.Class(None, None, (), 0)
        room.seconds |= {"a cell": [0.001 * i for i in range(1, 102)], "notebook saved": [1.0] * 4}
        room.failures += ["student01"] * (count - 1)
        private = {"server": [100.0, 130.0, 110.0], "by_hand": [90.0], "account": [400.0], "hub and proxy": [120.0]}
        figures = {"private": private, "shared": 2345.0, "cpu": 17.4, "ours": 0.51, "all": 1.26, "seconds": 150}
        return bench.column(room, figures)

    lines = bench.table({1: measured(1), 20: measured(20)})
    rows = {line[:34].strip(): re.split(r"  +", line[34:].strip()) for line in lines}
    assert rows["accounts"] == ["1", "20"] and rows["failures"] == ["0", "19"]
    assert rows["a cell, ms"] == ["51 / 96"] * 2 and rows["notebook saved, s"] == ["too few"] * 2
    assert rows["server, MB"] == ["110"] * 2 and rows["kernel of vectorized, MB"] == ["none"] * 2
    assert rows["all, fair share, GB"] == ["2.3"] * 2 and rows["took, minutes"] == ["2.5"] * 2
    assert rows["cores busy: class / all programs"] == ["0.5 / 1.3"] * 2


@pytest.mark.parametrize(
    ("counts", "free", "says"),
    [
        ([5, 0], 99, "from 1 to 60, this is 0"),
        ([61], 99, "this is 61"),
        ([5, 20], 8, r"20 .+ 14 GB .+ 8 GB .+Fix: .+ 11"),
    ],
)
def test_a_class_too_large_for_the_machine_is_refused(monkeypatch, counts, free, says):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(available=free * 1e9))
    with pytest.raises(SystemExit, match=says):
        bench.check_counts(counts)
    assert bench.check_counts([5]) == [5]


def test_a_class_ends_in_its_time_with_a_failure():
    room = bench.Class(None, None, (), 0)
    room.attend = lambda accounts, lecture: asyncio.sleep(60)
    hub = types.SimpleNamespace(processes=dict)
    figures = asyncio.run(bench.hold(room, hub, ["ada"], limit=0.001))
    assert room.failures == ["not done after 0.001 minutes"] and figures["seconds"] < 10


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"


@pytest.mark.slow
def test_a_hub_ends_what_it_started_and_nothing_else(tmp_path):
    """Its server has lost its parent, and neither heeds the signal to end."""
    hub = object.__new__(Hub)
    hub.home = tmp_path
    ours = {**os.environ, "JUPYTER_PATH": str(tmp_path / "jupyter")}
    launch = [sys.executable, "-c"]
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}])"
    subprocess.run([*launch, parent], env={**ours, "JUPYTERHUB_USER": "ada"}, stdout=subprocess.DEVNULL, check=True)
    with subprocess.Popen([*launch, STUBBORN], stdout=subprocess.PIPE) as other:
        hub.process = psutil.Popen([*launch, STUBBORN], env=ours, stdout=subprocess.PIPE)
        hub.process.stdout.readline()
        found = hub.processes()
        assert sorted(found) == [("", "hub and proxy"), ("ada", "server")]
        private, share = weigh(found["ada", "server"][0])
        assert 1 < private <= share < 100
        hub.close(patience=1)
        hub.process.stdout.close()
        assert not list(hub.find_processes()) and other.poll() is None
        other.kill()


@pytest.mark.parametrize(
    ("found", "version", "says"),
    [
        ({}, "", "node was not found. Fix: install Node.js 20"),
        ({"node": "node"}, "", "npm was not found"),
        ({"node": "node", "npm": "npm"}, "v18.19.0", r"20 or newer, this is v18.19.0 \(node\). Fix"),
    ],
)
def test_without_node_the_hub_says_what_to_install(monkeypatch, found, version, says):
    monkeypatch.setattr(setup_env.shutil, "which", found.get)
    monkeypatch.setattr(setup_env.subprocess, "run", lambda *a, **k: types.SimpleNamespace(stdout=version))
    monkeypatch.setattr(setup_env.os, "name", "posix")
    with pytest.raises(SystemExit, match=says):
        setup_env.npm_of_node_20()
    monkeypatch.setattr(setup_env.os, "name", "nt")
    with pytest.raises(SystemExit, match="Linux and macOS"):
        setup_env.npm_of_node_20()


def test_a_hub_without_its_environment_says_how_to_make_it(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.local_hub.PROXY", tmp_path / "missing")
    with pytest.raises(SystemExit, match="Fix: make bench ARGS=hub"):
        Hub(tmp_path)


def test_a_correction_is_published(tmp_path):
    lecturer = Lecturer(tmp_path, [find_notebook(NAME)])
    lecturer.correct("\n\nA correction.")
    subprocess.run(["git", "clone", "--quiet", lecturer.address, tmp_path / "ada"], check=True)
    (notebook,) = (tmp_path / "ada").glob("*.ipynb")
    assert notebook.name == find_notebook(NAME).built.name and "<summary>Solution" not in notebook.read_text("utf-8")
    assert nbformat.read(notebook, as_version=4).cells[0].source.endswith("A correction.")


def test_the_lines_of_the_page_publish_the_handouts(tmp_path, monkeypatch):
    """Those of docs/class.md, with one notebook, and a repository in a folder."""
    monkeypatch.setattr(handouts, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["handouts", "student", "vectorized"])
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", tmp_path / "repository"], check=True)
    (block,) = re.findall(r"```bash\n(git clone .+?)```", PAGE, re.DOTALL)
    lines = [line.split("#")[0].strip() for line in block.splitlines()]
    assert lines[1] == "make student"
    address = (tmp_path / "repository").as_uri()
    for key in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{key}_NAME", "lecturer")
        monkeypatch.setenv(f"{key}_EMAIL", "lecturer@localhost")
    for line in lines:
        if line == "make student":
            handouts.main()
        else:
            words = re.sub(r"https://\S+", address, line).replace("python3", sys.executable).split()
            subprocess.run(words, cwd=tmp_path, check=True)
    listed = subprocess.check_output(["git", "-C", tmp_path / "repository", "ls-tree", "--name-only", "main"])
    listed = listed.decode().split()
    assert [name for name in listed if name.endswith(".ipynb")] == [find_notebook(NAME).built.name]
    assert "attnlib" in listed


def test_no_message_of_a_kernel_waits_for_an_acknowledgement(monkeypatch):
    """Under JupyterHub a step of a slider takes 40 ms longer if it does."""
    settings = types.SimpleNamespace(ServerApp=types.SimpleNamespace())
    exec((ROOT / "tools" / "lab" / "jupyter_server_config.py").read_text("utf-8"), {"c": settings})
    connection = settings.ServerApp.kernel_websocket_connection_class
    monkeypatch.setattr(connection.__mro__[1], "connect", lambda self: "connected")
    one, told = connection.__new__(connection), []
    monkeypatch.setattr(connection, "websocket_handler", types.SimpleNamespace(set_nodelay=told.append))
    assert one.connect() == "connected" and told == [True]


@pytest.mark.hub
def test_two_accounts_on_a_real_hub():
    """Log in, follow the link, run lesson vectorized, move its sliders, keep what was tried when a correction comes."""
    if not VENV.exists():
        pytest.skip(".venv-hub is missing: make test-hub makes it")
    room, figures = bench.run_class(2, ("vectorized",), think=0.1, limit=5)
    assert room.failures == []
    code = [cell for cell in nbformat.read(find_notebook(NAME).built, as_version=4).cells if cell.cell_type == "code"]
    assert len(room.seconds["a cell"]) == 2 * len(code)
    assert len(room.seconds["a step of a slider"]) >= 2 * 2 * len(room.kernels)  # two sliders, there and back
    assert len(room.seconds["a step when all move one"]) >= 2 * bench.DRAGS * len(room.kernels)
    assert len(room.seconds["link followed again, by all"]) == 2
    assert sorted(figures["private"]) == ["account", "hub and proxy", "server", "vectorized"]
    assert all(20 < mb < 2000 for mbs in figures["private"].values() for mb in mbs)
    assert not room.hub.home.exists() and not list(room.hub.find_processes())
