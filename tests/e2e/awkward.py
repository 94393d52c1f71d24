"""Small servers of the handshake era with one peculiarity each. Standard library only.

Run as `awkward.py PECULIARITY [ARGUMENT]`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


TOOL = {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


def answer(method: str) -> dict[str, Any]:
    """The `result` or `error` of an ordinary, small server."""
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "awkward", "version": "1"},
        },
        "ping": {},
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": "seen"}]},
    }
    if method in results:
        return {"result": results[method]}
    return {"error": {"code": -32601, "message": "Method not found"}}


def serve(before: Callable[[str], None] = lambda method: None, outcome: Any = answer) -> None:
    """Answer requests until the end of input; `before` may do something to a method first."""
    for line in sys.stdin:
        request = json.loads(line)
        if "method" in request:
            before(request["method"])
        if "id" in request and "method" in request:
            say({"jsonrpc": "2.0", "id": request["id"], **outcome(request["method"])})


# -- peculiarities -------------------------------------------------------------------------


def ordinary() -> None:
    serve()


def banner() -> None:
    """Greets on stdout before it serves."""
    sys.stdout.write("Welcome to the \x1b[1mawkward\x1b[0m server!\n")
    sys.stdout.flush()
    serve()


def only_banner() -> None:
    """Greets, and never answers."""
    sys.stdout.write("::error::Welcome! Listening on port 3000\n")
    sys.stdout.flush()
    silent()


def silent() -> None:
    for _ in sys.stdin:
        pass


def exits() -> None:
    complain("cannot find the database")
    sys.exit(7)


def dies_of_discover() -> None:
    def before(method: str) -> None:
        if method == "server/discover":
            complain("unknown method, giving up")
            sys.exit(1)

    serve(before)


def dies_later() -> None:
    def before(method: str) -> None:
        if method == "tools/call":
            complain("out of memory")
            os.kill(os.getpid(), signal.SIGKILL)

    serve(before)


def deaf() -> None:
    """Answers nothing, ignores the end of input and polite signals; says its process id."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Path(sys.argv[2]).write_text(str(os.getpid()))
    while True:
        signal.pause()


def slow_call() -> None:
    """Hangs in a tool up to the end of its input, and says so in a file."""

    def before(method: str) -> None:
        if method == "tools/call":
            Path(sys.argv[2]).write_text(str(os.getpid()))
            closed = select.poll()
            closed.register(0, 0)  # not for what there is to read
            closed.poll()
            sys.exit()

    serve(before)


def stuck_call() -> None:
    """Hangs in a tool until a signal ends it, and says so in a file."""

    def before(method: str) -> None:
        if method == "tools/call":
            Path(sys.argv[2]).write_text(str(os.getpid()))
            signal.pause()

    serve(before)


def tells_all() -> None:
    """Repeats a secret of its environment everywhere, in many spellings."""
    secret = os.environ["AWKWARD_SECRET"]
    spellings = [
        secret,
        quote(secret, safe=""),
        base64.b64encode(f"x{secret}y".encode()).decode(),
        json.dumps(secret),
        "".join(f"\\u{ord(letter):04X}" for letter in secret),
    ]
    complain(f"my secret is {secret}")

    def outcome(method: str) -> dict[str, Any]:
        if method == "tools/call":
            return {"error": {"code": -32000, "message": f"secret: {secret}"}}
        done = answer(method)
        if method == "initialize":
            done["result"]["instructions"] = " ".join(spellings)
            done["result"]["serverInfo"]["name"] = secret
        if method == "tools/list":
            tool = {**TOOL, "name": f"look-{secret}", "description": spellings[-1]}
            # the same letters, each as an escape
            text = json.dumps([tool]).replace(json.dumps(spellings[-1])[1:-1], spellings[-1])
            sys.stdout.write(f'{{"jsonrpc":"2.0","method":"x","params":{{"a":{text}}}}}\n')
            done["result"]["tools"] = [tool]
        return done

    serve(outcome=outcome)


def tells_all_and_exits() -> None:
    complain(f"bad credentials: {os.environ['AWKWARD_SECRET']}")
    sys.exit(1)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
