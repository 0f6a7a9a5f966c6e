"""Drive Firefox by WebDriver BiDi, which it speaks itself: playwright drives only a build of its own.

Of the protocol only what the tests need: open a page, run a script in it, press a key, hear of its errors.
"""

import json
import os
import re
import shutil
import subprocess
import time

from websocket import create_connection

FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
KEYS = {"Home": "\ue011", "End": "\ue010"}
SPEAKS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
# Nothing is asked of the network: no settings from afar, no updates, no measurements.
QUIET = {
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class Firefox:
    """A Firefox with one page and a new profile in `home`; `problems` are the errors of the page."""

    def __init__(self, home, width=1366, height=900):
        self.count, self.problems = 0, []
        settings = "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in QUIET.items())
        (home / "user.js").write_text(settings, "utf-8")
        self.log = home / "firefox.log"
        command = [FIREFOX, "--headless", "--no-remote", "--profile", str(home), "--remote-debugging-port", "0"]
        with self.log.open("w", encoding="utf-8") as log:
            own = {"env": {**os.environ, "HOME": str(home)}, "stdout": log, "stderr": subprocess.STDOUT}
            self.process = subprocess.Popen([*command, "about:blank"], **own)
        self.socket = create_connection(f"{self._address()}/session", timeout=60, suppress_origin=True)
        self.version = self._ask("session.new", capabilities={})["capabilities"]["browserVersion"]
        self._ask("session.subscribe", events=["log.entryAdded"])
        self.context = self._ask("browsingContext.getTree")["contexts"][0]["context"]
        viewport = {"width": width, "height": height}
        self._ask("browsingContext.setViewport", context=self.context, viewport=viewport)

    def _address(self):
        for _ in range(600):
            if found := SPEAKS.search(self.log.read_text("utf-8", errors="replace")):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(self.log.read_text("utf-8", errors="replace"))

    def _ask(self, method, **params):
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            told = json.loads(self.socket.recv())
            if told.get("type") == "event":
                entry = told["params"]
                if entry["level"] == "error":
                    self.problems.append(entry["text"])
            elif told["id"] == self.count:
                assert told["type"] == "success", (method, told)
                return told["result"]

    def open(self, address):
        self.problems.clear()
        self._ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def prepare(self, script):
        """Run the text of a script in each page that is opened from now on."""
        self._ask("script.addPreloadScript", functionDeclaration=f"function () {{{script}}}")

    def evaluate(self, expression):
        """Return what an expression of the page is, once it has settled."""
        told = self._ask(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then(JSON.stringify)",
            target={"context": self.context},
            awaitPromise=True,
        )
        assert told["type"] == "success", told["exceptionDetails"]["text"]
        return json.loads(told["result"].get("value", "null"))

    def press(self, key):
        actions = [{"type": kind, "value": KEYS[key]} for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        self._ask("input.performActions", context=self.context, actions=[keyboard])

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)
