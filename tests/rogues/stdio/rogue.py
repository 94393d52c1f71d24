"""Misbehaving stdio servers, one function each: `python -I -S rogue.py CASE`.

Standard library only, and quick to start. A case behaves well until it does the one thing that it
is named for. Where it then stays silent it writes `ready` to stderr, so that nobody has to guess
how long to wait. Each process that a case starts writes its id to the file in ROGUE_PIDS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

CASES: dict[str, Callable[[], object]] = {}
_pending = b""


def case(function: Callable[[], object]) -> Callable[[], object]:
    CASES[function.__name__.replace("_", "-")] = function
    return function


# What the cases are made of


def write(descriptor: int, data: bytes | str) -> None:
    rest = memoryview(data.encode() if isinstance(data, str) else data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def say(data: bytes | str) -> None:
    write(1, data)


def complain(data: bytes | str) -> None:
    write(2, data)


def ready() -> None:
    complain("ready\n")


def read_line() -> bytes:
    """The next line on stdin; at its end the process exits as a good server does."""
    global _pending  # noqa: PLW0603 - a script with one stdin
    while b"\n" not in _pending:
        chunk = os.read(0, 65536)
        if not chunk:
            sys.exit(0)
        _pending += chunk
    line, _, _pending = _pending.partition(b"\n")
    return line


def ask() -> dict[str, Any]:
    """The next request. The stateless era is refused properly, so that `initialize` comes."""
    while True:
        message = json.loads(read_line())
        if "id" not in message or "method" not in message:
            continue
        if message["method"] != "server/discover":
            return message
        say(dump(failure(message)))


def dump(message: object) -> str:
    return json.dumps(message, separators=(",", ":")) + "\n"


def failure(request: dict[str, Any]) -> dict[str, Any]:
    error = {"code": -32601, "message": "Method not found"}
    return {"jsonrpc": "2.0", "id": request["id"], "error": error}


def reply(request: dict[str, Any], **changes: object) -> dict[str, Any]:
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": request.get("params", {}).get("protocolVersion", "2025-11-25"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "rogue", "version": "1"},
        },
        "tools/list": {
            "tools": [{"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}]
        },
        "tools/call": {"content": [{"type": "text", "text": "hello"}]},
        "ping": {},
    }
    if request["method"] not in results:
        return failure(request)
    good = {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}
    return good | changes


def answer(request: dict[str, Any] | None = None) -> None:
    say(dump(reply(request or ask())))


def serve() -> NoReturn:
    while True:
        answer()


def hang() -> NoReturn:
    while True:
        signal.pause()


def die(number: int) -> NoReturn:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), number)
    hang()


def note_pid() -> None:
    path = os.environ.get("ROGUE_PIDS")
    if path:
        with open(path, "a") as file:  # noqa: PTH123 - one small write, pathlib is slow to import
            file.write(f"{os.getpid()}\n")


def beget(life: Callable[[], object]) -> int:
    """Fork a child that lives this life; returns once its id is written down."""
    there, here = os.pipe()
    pid = os.fork()
    if pid:
        os.close(here)
        os.read(there, 1)
        os.close(there)
        return pid
    os.close(there)
    note_pid()
    os.write(here, b"x")
    os.close(here)
    life()
    os._exit(0)


NOTIFICATION = dump(
    {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "info", "data": "flood"},
    }
).encode()


# It exits


@case
def exits_at_once() -> None:
    sys.exit(0)


@case
def exits_at_once_with_code() -> None:
    complain("fatal: no configuration file\n")
    sys.exit(3)


@case
def raises_at_import() -> None:
    raise ValueError("broken on purpose")


@case
def killed_at_once() -> None:
    die(signal.SIGKILL)


@case
def segfaults_at_once() -> None:
    die(signal.SIGSEGV)


@case
def dies_mid_answer() -> None:
    request = ask()
    say(dump(reply(request))[:25])
    sys.exit(1)


@case
def dies_after_handshake() -> None:
    answer()
    ask()
    complain("out of cheese\n")
    sys.exit(7)


@case
def aborts_on_a_call() -> None:
    answer()
    ask()
    die(signal.SIGABRT)


@case
def exits_with_output_unread() -> None:
    request = ask()
    say(NOTIFICATION * 300)
    answer(request)
    sys.exit(0)


@case
def answers_without_newline_and_exits() -> None:
    request = ask()
    say(dump(reply(request)).rstrip())
    sys.exit(0)


# It is silent or slow


@case
def never_answers() -> None:
    ask()
    ready()
    while True:
        read_line()


@case
def answers_half_a_line() -> None:
    say(dump(reply(ask()))[:20])
    ready()
    hang()


@case
def writes_one_byte_and_hangs() -> None:
    ask()
    say("{")
    ready()
    hang()


@case
def stops_itself() -> None:
    ask()
    ready()
    os.kill(os.getpid(), signal.SIGSTOP)
    serve()


@case
def answers_byte_by_byte() -> None:
    while True:
        for byte in dump(reply(ask())).encode():
            say(bytes([byte]))


@case
def forgets_to_flush() -> None:
    request = ask()
    ready()
    try:
        read_line()
        read_line()
    finally:
        answer(request)


# It says what is no message


@case
def banner_on_stdout() -> None:
    say("Rogue server v1.0 listening on stdio\n")
    serve()


@case
def logs_on_stdout() -> None:
    while True:
        request = ask()
        say(f"INFO handling {request['method']}\n")
        answer(request)
        say("INFO done\n")


@case
def colours_on_stdout() -> None:
    say("\x1b[32m✔ started\x1b[0m\n::error::injected\n")
    serve()


@case
def blank_lines() -> None:
    while True:
        request = ask()
        say("\n\r\n\n")
        answer(request)


@case
def binary_garbage() -> None:
    say(bytes(range(256)) * 4 + b"\n")
    serve()


@case
def invalid_utf8() -> None:
    request = ask()
    say(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\xff\xfe\xc3"}}\n')
    answer(request)
    serve()


@case
def byte_order_mark() -> None:
    say(b"\xef\xbb\xbf" + NOTIFICATION)
    serve()


@case
def carriage_returns() -> None:
    while True:
        say(dump(reply(ask())).replace("\n", "\r\n"))


@case
def nul_bytes() -> None:
    say(b"\0\0\0\n" + NOTIFICATION.replace(b"flood", b"fl\0od"))
    serve()


@case
def utf16() -> None:
    while True:
        say(dump(reply(ask())).encode("utf-16"))
        ready()


@case
def pretty_printed() -> None:
    while True:
        say(json.dumps(reply(ask()), indent=2) + "\n")
        ready()


@case
def content_length_framing() -> None:
    while True:
        body = dump(reply(ask())).strip()
        say(f"Content-Length: {len(body)}\r\n\r\n{body}")
        ready()


@case
def help_text_and_exit() -> None:
    say("usage: rogue [-h] --root DIR\n")
    complain("rogue: error: the following arguments are required: --root\n")
    sys.exit(2)


# It says too much


@case
def huge_line() -> None:
    request = ask()
    for _ in range(20):
        say(b"x" * 1024 * 1024)
    say("\n")
    answer(request)
    serve()


@case
def endless_line() -> None:
    ask()
    block = b"x" * 65536
    for count in range(1 << 30):
        say(block)
        if count == 320:
            ready()


@case
def large_answer() -> None:
    request = ask()
    say(dump(reply(request) | {"padding": "x" * 15_000_000}))
    serve()


@case
def notification_flood() -> None:
    request = ask()
    for _ in range(200):
        say(NOTIFICATION * 1000)
    answer(request)
    serve()


@case
def endless_notifications() -> None:
    ask()
    for count in range(1 << 30):
        say(NOTIFICATION * 500)
        if count == 20:
            ready()


@case
def tiny_lines() -> None:
    request = ask()
    for _ in range(10):
        say(b"x\n" * 20_000)
    answer(request)
    serve()


@case
def server_request_flood() -> None:
    request = ask()
    for first in range(0, 10_000, 500):
        pings = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in range(first, first + 500)]
        say("".join(map(dump, pings)))
    answer(request)
    serve()


@case
def deep_json() -> None:
    request = ask()
    say(b"[" * 100_000 + b"]" * 100_000 + b"\n")
    answer(request)
    serve()


@case
def not_a_number() -> None:
    say('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":NaN}}\n')
    serve()


@case
def duplicate_keys() -> None:
    say('{"jsonrpc":"2.0","method":"notifications/message","method":"other"}\n')
    serve()


@case
def huge_integer() -> None:
    say('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":' + "9" * 5000 + "}}\n")
    serve()


@case
def lone_surrogate() -> None:
    say('{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\ud800"}}\n')
    serve()


# stderr


@case
def stderr_flood() -> None:
    request = ask()
    block = (b"warning: " + b"y" * 118 + b"\n") * 512
    for _ in range(100 * 1024 * 1024 // len(block)):
        complain(block)
    answer(request)
    serve()


@case
def stderr_without_newline() -> None:
    request = ask()
    for _ in range(5):
        complain(b"z" * 1024 * 1024)
    answer(request)
    serve()


@case
def stderr_garbage() -> None:
    complain(bytes(range(256)) + b"\n\x1b[2J\x1b[H\n::set-output name=a::b\n")
    serve()


@case
def stderr_closed() -> None:
    os.close(2)
    serve()


@case
def stderr_endless() -> None:
    ask()
    ready()
    block = b"spam\n" * 10_000
    while True:
        complain(block)


@case
def secrets_on_stderr() -> None:
    complain("connecting with token sk-rogue-secret-0123456789\n")
    serve()


# The pipes


@case
def stdout_closed_but_alive() -> None:
    ask()
    os.close(1)
    hang()


@case
def stdin_closed_but_alive() -> None:
    request = ask()
    os.close(0)
    answer(request)
    hang()


@case
def stdin_never_read() -> None:
    hang()


@case
def writes_before_it_reads() -> None:
    """With a client that writes a lot first, both pipes are full."""
    for _ in range(20):
        say(NOTIFICATION * 1000)
    serve()


@case
def closes_stdout_mid_flood() -> None:
    ask()
    for _ in range(50):
        say(NOTIFICATION * 100)
    say(NOTIFICATION[:30])
    os.close(1)
    hang()


# It will not end


@case
def ignores_eof() -> None:
    try:
        serve()
    finally:
        hang()


@case
def ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ignores_eof()


@case
def floods_when_asked_to_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        serve()
    finally:
        while True:
            say(NOTIFICATION * 500)


@case
def says_goodbye() -> None:
    try:
        serve()
    finally:
        complain("goodbye\n")
        say(NOTIFICATION)


@case
def fails_at_the_end() -> None:
    try:
        serve()
    finally:
        os._exit(9)


@case
def exits_on_sigterm_only() -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    ignores_eof()


# It has a family


@case
def grandchild_holds_the_pipes() -> None:
    beget(hang)
    answer()
    ask()
    sys.exit(0)


@case
def grandchild_goes_on_writing() -> None:
    def chatter() -> None:
        while True:
            say(NOTIFICATION * 100)

    answer()
    ask()
    beget(chatter)
    sys.exit(4)


@case
def grandchild_in_its_own_session() -> None:
    def life() -> None:
        os.setsid()
        hang()

    beget(life)
    serve()


@case
def grandchild_ignores_sigterm() -> None:
    def life() -> None:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        hang()

    beget(life)
    serve()


@case
def grandchild_in_its_own_group() -> None:
    def life() -> None:
        os.setpgid(0, 0)
        hang()

    beget(life)
    serve()


def _daemon(last: Callable[[], object]) -> None:
    def middle() -> None:
        os.setsid()
        beget(last)

    os.waitpid(beget(middle), 0)


@case
def daemon() -> None:
    _daemon(hang)
    serve()


@case
def daemon_without_environment() -> None:
    script = "import signal\nwhile True: signal.pause()"

    def life() -> None:
        os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", script], {})

    _daemon(life)
    serve()


@case
def family_of_four_generations() -> None:
    def generation(left: int) -> None:
        os.setsid()
        if left:
            beget(lambda: generation(left - 1))
        hang()

    beget(lambda: generation(3))
    serve()


@case
def zombie_children() -> None:
    for _ in range(20):
        beget(lambda: os._exit(0))
    serve()


@case
def forks_when_terminated() -> None:
    def respawn(*_: object) -> None:
        beget(life)

    def life() -> None:
        os.setsid()
        signal.signal(signal.SIGTERM, respawn)
        hang()

    beget(life)
    serve()


# It breaks the protocol


@case
def answers_twice() -> None:
    while True:
        request = ask()
        answer(request)
        answer(request)


@case
def wrong_id() -> None:
    say(dump(reply(ask(), id=999)))
    ready()
    serve()


@case
def id_as_string() -> None:
    request = ask()
    say(dump(reply(request, id=str(request["id"]))))
    ready()
    serve()


@case
def id_is_null() -> None:
    say(dump(reply(ask(), id=None)))
    ready()
    serve()


@case
def answers_before_it_is_asked() -> None:
    say(dump({"jsonrpc": "2.0", "id": 77, "result": {}}))
    serve()


@case
def result_and_error() -> None:
    while True:
        say(dump(reply(ask(), error={"code": -1, "message": "both"})))


@case
def batch_where_none_belongs() -> None:
    say(dump([reply(ask())]))
    ready()
    serve()


@case
def answers_a_notification() -> None:
    answer()
    while True:
        message = json.loads(read_line())
        if "id" in message:
            answer(message)
        else:
            say(dump({"jsonrpc": "2.0", "id": None, "result": {}}))


@case
def no_jsonrpc_member() -> None:
    while True:
        answered = reply(ask())
        del answered["jsonrpc"]
        say(dump(answered))


@case
def echoes_the_client() -> None:
    first = read_line()
    say(first + b"\n")
    ready()
    while True:
        say(read_line() + b"\n")


@case
def behaves() -> None:
    serve()


if __name__ == "__main__":
    note_pid()
    CASES[sys.argv[1]]()
