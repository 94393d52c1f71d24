"""Servers with hostile answers, requests and processes: `python -I -S hostile_answers.py CASE`."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120 - quick to start

from tests.safety.hostile import Obj, asked, hang, note_pid, said_as, say, serve, text

CASES: dict[str, Callable[[Obj], Obj | None]] = {}


def on_a_call(function: Callable[[Obj], Obj | None]) -> Callable[[Obj], Obj | None]:
    """What the server does when a tool is called; otherwise it is an ordinary one."""
    CASES[function.__name__.replace("_", "-")] = lambda request: (
        function(request) if request["method"] == "tools/call" else {}
    )
    return function


def answers(name: str, **result: Any) -> None:
    CASES[name] = lambda request: result if request["method"] == "tools/call" else {}


def answer(request: Obj) -> bytes:
    message = {"jsonrpc": "2.0", "id": request["id"], "result": text("hello")}
    return json.dumps(message, separators=(",", ":")).encode()


def note_that(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n"


# -- what an answer is made of -----------------------------------------------------------------

answers("error-flag-is-a-text", content=[{"type": "text", "text": "hello"}], isError="yes")


@on_a_call
def numbers_beyond_floats(request: Obj) -> Obj | None:
    said_as(request, '{"a":1e400,"b":-1e400,"c":1e-400,"d":0.1e9999999999,"e":-0}')
    return None


@on_a_call
def wide_and_shallow(request: Obj) -> Obj | None:
    """300,000 members of one object, each with a name of its own."""
    said_as(request, "{" + ",".join(f'"k{n}":{n}' for n in range(300_000)) + "}")
    return None


# -- what it asks ------------------------------------------------------------------------------


@on_a_call
def asks_for_samples_without_end(request: Obj) -> Obj | None:
    message = {"role": "user", "content": {"type": "text", "text": "more"}}
    number = 0
    while True:
        number += 1
        say(asked("sampling/createMessage", f"s{number}", messages=[message], maxTokens=10**30))


@on_a_call
def keeps_promising(request: Obj) -> Obj | None:
    """Progress each tenth of a second, without end: it never is silent."""
    token = (request["params"].get("_meta") or {}).get("progressToken", "none")
    number = 0
    while True:
        number += 1
        say(note_that("notifications/progress", progressToken=token, progress=number))
        time.sleep(0.1)


# -- what becomes of its process ---------------------------------------------------------------


@on_a_call
def exits_well_in_a_call(request: Obj) -> Obj | None:
    os._exit(0)


@on_a_call
def killed_in_a_call(request: Obj) -> Obj | None:
    os.kill(os.getpid(), signal.SIGKILL)
    hang()


@on_a_call
def stopped_in_a_call(request: Obj) -> Obj | None:
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


@on_a_call
def closes_stdout_in_a_call(request: Obj) -> Obj | None:
    os.close(1)
    hang()


@on_a_call
def many_daemons(request: Obj) -> Obj | None:
    """Thirty processes in sessions of their own, which heed no signal and hold our pipes."""
    for _ in range(30):
        if not os.fork():
            os.setsid()
            if not os.fork():
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN)
                note_pid()
                hang()
            os._exit(0)
        os.wait()
    return {}


@on_a_call
def ends_its_group(request: Obj) -> Obj | None:
    """A signal to its whole process group, which must not be ours."""
    os.killpg(os.getpgid(0), signal.SIGTERM)
    hang()


@on_a_call
def stderr_without_lines(request: Obj) -> Obj | None:
    for _ in range(300):
        os.write(2, b"e" * 65536)
    return {}


@on_a_call
def stderr_in_utf16(request: Obj) -> Obj | None:
    os.write(2, "fatal: out of cheese\n\x1b[2J".encode("utf-16"))
    os._exit(9)


if __name__ == "__main__":
    note_pid()
    serve(CASES[sys.argv[1]])
