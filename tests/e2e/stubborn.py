"""A server that won't go, or is slow to say what it has to. Standard library.

Run as `stubborn.py PIDS WORD…`: it writes the ids of its processes to the file PIDS and does what
each word says.

    stateless                      speaks 2026-07-28 and nothing else; otherwise the handshake
    deaf-to-eof, deaf-to-signals   stays, whatever it is told politely
    leaves-with=N                  ends with this code when it gets SIGTERM, SIGINT or SIGHUP
    farewell                       says so in a line on stdout when it gets one of them, and ends
    grandchild                     starts a process in a session of its own, which is deaf
    flood                          writes notifications without end, from the first call on, as long
                                   as somebody reads them
    flood-of-errors                writes to stderr without end, from the first call on
    moves-to-a-child               exits in a call; a child answers that one and what follows
    hangs                          never answers a call
    half                           writes half of the answer to a call, and nothing more
    half-and-exits                 the same, then exits with code 7
    noise-and-half                 a line that is no message, then half of the answer
    prompt                         `> ` without a newline instead of an answer
    no-newline                     the whole answer to a call, without its newline
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

WORDS = sys.argv[2:]
POLITE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESULTS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "stubborn", "version": "1"},
    },
    "ping": {},
    "logging/setLevel": {},
    "tools/list": {
        "tools": [
            {
                "name": "look",
                "description": "Looks, and says what it has seen.",
                "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            }
        ]
    },
    "tools/call": {"content": [{"type": "text", "text": "seen " * 2000}]},
}
STATELESS = "2026-07-28"
DISCOVERY = {
    "supportedVersions": [STATELESS],
    "capabilities": RESULTS["initialize"]["capabilities"],
}
SIGNATURE = {"io.modelcontextprotocol/serverInfo": RESULTS["initialize"]["serverInfo"]}
GRANDCHILD = """
import signal
for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True: signal.pause()
"""


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def stand_still() -> None:
    """Say that we do, then do nothing whatever happens on stdin."""
    with contextlib.suppress(BrokenPipeError):  # nobody listens
        os.write(2, b"standing still\n")
    threading.Event().wait()


def leave(code: int) -> Any:
    return lambda number, frame: os._exit(code)


def say_farewell(number: int, frame: object) -> None:
    write(b"Terminated, good bye\n")
    os._exit(0)


def answer_to(request: dict[str, Any], *, stateless: bool = False) -> bytes:
    """The whole answer to a request."""
    method, known = request["method"], dict(RESULTS)
    if stateless:
        del known["initialize"], known["ping"], known["logging/setLevel"]
        known["server/discover"] = DISCOVERY
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
    if method not in known:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    elif stateless:
        cached = {} if method == "tools/call" else {"ttlMs": 0, "cacheScope": "public"}
        answer["result"] = {**known[method], "resultType": "complete", "_meta": SIGNATURE, **cached}
    else:
        answer["result"] = known[method]
    return json.dumps(answer).encode()


def move_to_a_child() -> None:
    at_end, held = os.pipe()
    if os.fork():
        os._exit(0)
    os.close(held)
    os.read(at_end, 1)  # nothing is written: it returns once the parent is gone
    note_processes([os.getpid()])


def note_processes(pids: list[int]) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{' '.join(map(str, pids))}\n")


def answer_call(line: bytes) -> None:
    half = line[: len(line) // 2]
    if "flood" in WORDS:
        os.write(2, b"standing still\n")
        note = {"jsonrpc": "2.0", "method": "notifications/message"}
        note["params"] = {"level": "info", "data": "x" * 200}  # type: ignore[assignment]
        try:
            while True:
                write(json.dumps(note).encode() + b"\n")
        except BrokenPipeError:
            stand_still()
    if "flood-of-errors" in WORDS:
        os.write(2, b"standing still\n")
        while True:
            os.write(2, b"still here\n")
    if "noise-and-half" in WORDS:
        write(b"Loading the tools ...\n")
    if {"half", "half-and-exits", "noise-and-half"} & set(WORDS):
        write(half)
    if "half-and-exits" in WORDS:
        os._exit(7)
    if "prompt" in WORDS:
        write(b"> ")
    if "no-newline" in WORDS:
        write(line)
    if {"half", "hangs", "noise-and-half", "prompt", "no-newline"} & set(WORDS):
        stand_still()
    write(line + b"\n")


def main() -> None:
    pids = [os.getpid()]
    for word in WORDS:
        if word == "farewell":
            for number in POLITE:
                signal.signal(number, say_farewell)
        if word == "deaf-to-signals" or word.startswith("leaves-with="):
            code = word.partition("=")[2]
            for number in POLITE:
                signal.signal(number, leave(int(code)) if code else signal.SIG_IGN)
    if "grandchild" in WORDS:
        child = subprocess.Popen(
            [sys.executable, "-c", GRANDCHILD],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdout is not None
        child.stdout.readline()
        pids.append(child.pid)
    note_processes(pids)
    for text in sys.stdin:
        request = json.loads(text)
        if "id" not in request or "method" not in request:
            continue
        line = answer_to(request, stateless="stateless" in WORDS)
        if request["method"] == "tools/call":
            if "moves-to-a-child" in WORDS:
                move_to_a_child()
            answer_call(line)
        else:
            write(line + b"\n")
    if "deaf-to-eof" in WORDS:
        stand_still()


if __name__ == "__main__":
    main()
