"""One seat of a class: what a student's browser asks of JupyterHub, without drawing anything."""

import asyncio
import json
import time

import nbformat
import requests
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1
from requests.cookies import get_cookie_header
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

PATIENCE = 150  # seconds until something that does not answer counts as a failure
DRAG = 12  # steps of a slider in one go; a front end sends the next one when the last is answered
PROTOCOL = "v1.kernel.websocket.jupyter.org"  # the one JupyterLab asks for


class Browser:
    """The cookies of one account, and its requests; each one blocks."""

    def __init__(self, address, account):
        self.address, self.account = address, account
        self.base = f"{address}/user/{account}/"
        self.web = requests.Session()
        self.web.trust_env = False  # a proxy for the internet has no say on the way to 127.0.0.1

    def log_in(self):
        """Give name and password, and wait until the account's server runs."""
        page = self._ask("GET", f"{self.address}/hub/login")
        form = {"username": self.account, "password": "any", "_xsrf": self._token("/hub/")}
        self._ask("POST", page.url, data=form)
        page = self._ask("GET", f"{self.address}/hub/spawn/{self.account}")
        if "/spawn-pending/" in page.url:
            progress = f"{self.address}/hub/api/users/{self.account}/server/progress"
            *_, last = self._events(progress, {"_xsrf": self._token("/hub/")})
            if not last.get("ready"):
                raise RuntimeError(f"the server did not start: {last.get('message')}")
        self._ask("GET", f"{self.base}lab")

    def follow(self, repository):
        """Follow nbgitpuller's link: the first time it clones the repository, later it brings what is new."""
        link = {"repo": repository, "branch": "main"}
        self._ask("GET", f"{self.address}/hub/user-redirect/git-pull", params=link)
        events = list(self._events(f"{self.base}git-pull/api", {**link, "_xsrf": self._token()}))
        if events[-1]["phase"] != "finished":
            raise RuntimeError(f"the link brought no files: {events[-1].get('message')}")

    def open(self, path):
        """Load the page of a notebook; return the notebook, and the id of the kernel that was started for it."""
        self._ask("GET", f"{self.base}lab/tree/{path}")
        content = self._ask("GET", f"{self.base}api/contents/{path}", params={"type": "notebook"}).json()["content"]
        wanted = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        session = self._ask("POST", f"{self.base}api/sessions", json=wanted).json()
        return nbformat.from_dict(content), session["kernel"]["id"]

    def save(self, path, notebook):
        self._ask("PUT", f"{self.base}api/contents/{path}", json={"type": "notebook", "content": notebook})

    def channels(self, kernel):
        """Return the request that opens the websocket of a kernel."""
        url = f"{self.base}api/kernels/{kernel}/channels?_xsrf={self._token()}"
        cookies = get_cookie_header(self.web.cookies, requests.Request("GET", url).prepare())
        headers = {"Cookie": cookies, "Origin": self.address}
        return HTTPRequest(url.replace("http", "ws", 1), headers=headers, request_timeout=PATIENCE)

    def _ask(self, method, url, **options):
        if method != "GET" and "/hub/" not in url:
            options["headers"] = {"X-XSRFToken": self._token()}
        answer = self.web.request(method, url, timeout=PATIENCE, **options)
        answer.raise_for_status()
        return answer

    def _events(self, url, options):
        """Yield the events of a stream, as a page listens to them."""
        with self.web.get(url, params=options, stream=True, timeout=PATIENCE) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    def _token(self, path=None):
        """Return the word against forged requests, which each server puts into a cookie."""
        return self.web.cookies.get("_xsrf", path=path or f"/user/{self.account}/")


class Kernel:
    """One open notebook: its kernel, spoken to over the websocket."""

    def __init__(self, socket):
        self.socket = socket
        self.session = Session()
        self.models = {}  # comm id -> state of the widget

    @classmethod
    async def connect(cls, request):
        socket = await websocket_connect(request, subprotocols=[PROTOCOL], max_message_size=100_000_000)
        kernel = cls(socket)
        await kernel._answer(await kernel._send("kernel_info_request", {}))
        return kernel

    async def execute(self, code):
        """Execute a cell; return its outputs, or raise RuntimeError if it fails."""
        outputs, _ = await self._answer(await self._send("execute_request", {"code": code, "allow_stdin": False}))
        return outputs

    async def move(self, slider, value):
        """Set a slider as a front end does; return the seconds until the changed picture was here."""
        key = "index" if "index" in self.models[slider] else "value"
        self.models[slider][key] = value
        data = {"method": "update", "state": {key: value}, "buffer_paths": []}
        start = time.perf_counter()
        _, seen = await self._answer(await self._send("comm_msg", {"comm_id": slider, "data": data}))
        if seen is None:
            raise RuntimeError("a slider moved, and its picture did not")
        return seen - start

    async def drag(self, slider, values):
        """Drag a slider some way and back again, one step at a time; return the seconds of each step."""
        length = min(DRAG, len(values)) // 2
        now = self.models[slider].get("index", self.models[slider].get("value"))
        at = values.index(now) if now in values else 0
        way = 1 if at + length < len(values) else -1
        there = [values[at + way * i] for i in range(1, length + 1)]
        back = [*there[-2::-1], values[at]]
        return [await self.move(slider, value) for value in there + back]

    def sliders(self):
        """Return [(comm id, values)] of the sliders there are now."""
        found = []
        for comm, state in self.models.items():
            if state.get("_model_name") == "IntSliderModel":
                found.append((comm, range(state["min"], state["max"] + 1)))
            elif state.get("_model_name") == "SelectionSliderModel":
                found.append((comm, range(len(state["_options_labels"]))))
        return found

    async def _send(self, kind, content):
        message = self.session.msg(kind, content)
        await self.socket.write_message(serialize_msg_to_ws_v1(message, "shell", self.session.pack), binary=True)
        return message["header"]["msg_id"]

    async def _answer(self, request):
        """Read until the kernel is idle again; return the outputs, and the moment when a picture changed."""
        outputs, seen = [], None
        while True:
            frame = await asyncio.wait_for(self.socket.read_message(), PATIENCE)
            if frame is None:
                raise RuntimeError("the websocket was closed")
            _, parts = deserialize_msg_from_ws_v1(frame)
            header, parent, _, content = (json.loads(part) for part in parts[:4])
            if parent.get("msg_id") != request:
                continue
            kind = header["msg_type"]
            if kind == "error":
                raise RuntimeError(f"{content['ename']}: {content['evalue']}")
            if kind in ("stream", "display_data", "execute_result"):
                outputs.append(nbformat.v4.output_from_msg({"header": header, "content": content}))
            if self._is_picture(kind, content):
                seen = time.perf_counter()
            if kind == "status" and content["execution_state"] == "idle":
                return outputs, seen

    def _is_picture(self, kind, content):
        """Keep what a message says of a widget; return whether it brings a picture."""
        if kind == "comm_open":
            self.models[content["comm_id"]] = content["data"].get("state", {})
        if kind != "comm_msg" or content["data"].get("method") != "update":
            return False
        state, new = self.models[content["comm_id"]], content["data"]["state"]
        state.update(new)
        if state.get("_model_name") != "HTMLModel" or not new.get("value"):
            return False
        if "<pre>" in new["value"]:
            raise RuntimeError("a view shows an error")
        return True
