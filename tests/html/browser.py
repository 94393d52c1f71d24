"""A real browser, driven over a pipe: no port is opened, no driver has to be installed."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BOUND = 40.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The browser wants the pipes as descriptors 3 and 4, whatever they were before.
_WITH_PIPES = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "End": 35, "Tab": 9}


class Browser:
    """One page of a browser. What the page says on its console, and what its policy refused,
    is kept in `complaints`; whatever it asks the network for in `asked_for`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.complaints: list[str] = []
        self.asked_for: list[str] = []
        self.dialogs = 0
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return dict(message["result"])

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + BOUND
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser says nothing"
            block = os.read(self._in, 1 << 20)
            assert block, "the browser is gone"
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method in {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}:
            self.complaints.append(json.dumps(params)[:500])
        elif method == "Network.requestWillBeSent":
            self.asked_for.append(params["request"]["url"][:200])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs += 1

    def open(self, path: Path, place: str = "") -> None:
        self.complaints.clear()
        self.asked_for.clear()
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=path.as_uri() + (f"#{place}" if place else ""))
        self.wait("document.readyState === 'complete' && !document.getElementById('app').hidden")

    def value(self, expression: str) -> Any:
        done = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until it is true, looked at once for each frame that the page draws."""
        end = time.monotonic() + BOUND
        wrapped = f"(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()"
        frame = "new Promise((done) => setTimeout(done, 5))"
        while not self.value(wrapped):
            assert time.monotonic() < end, f"never true: {expression}"
            self.value(frame)

    def until(self, happened: Callable[[], bool]) -> None:
        """Until something outside of the page has happened."""
        end = time.monotonic() + BOUND
        while not happened():
            assert time.monotonic() < end, "it never happened"
            self.value("new Promise((done) => setTimeout(done, 5))")

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)}).textContent"))

    def click(self, selector: str) -> None:
        self.value(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str) -> None:
        """As a keyboard does it."""
        event: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, ord(key[0]))}
        if len(key) == 1:
            event["text"] = key
        self.send("Input.dispatchKeyEvent", type="keyDown", **event)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def media(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def size(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )


@contextmanager
def running_browser(folder: Path) -> Iterator[Browser]:
    assert CHROMIUM is not None
    browser_reads, we_write = os.pipe()
    we_read, browser_writes = os.pipe()
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-dev-shm-usage", f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    command += ["--disable-background-networking", "--disable-component-update"]
    process = subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-c",
            _WITH_PIPES,
            str(browser_reads),
            str(browser_writes),
            *command,
        ],
        pass_fds=(browser_reads, browser_writes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(browser_reads)
    os.close(browser_writes)
    try:
        yield Browser(we_write, we_read)
    finally:
        os.close(we_write)
        os.close(we_read)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
