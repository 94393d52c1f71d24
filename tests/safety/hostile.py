"""Servers whose lists or answers are hostile, one function each: `python -I -S hostile.py CASE`.

They meet a client as they should, and then do the one thing that they are named for. Standard
library only. The process writes its id to the file in ROGUE_PIDS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

Obj = dict[str, Any]
READS = {"readOnlyHint": True}
WORDS = "Says hello to whoever calls it, and returns nothing else."
MANY_TOOLS = 2_000
CASES: dict[str, Callable[[Obj], Obj | None]] = {}
"""The result for a request; None is no answer, and an empty object is an ordinary one."""


def case(function: Callable[[Obj], Obj | None]) -> Callable[[Obj], Obj | None]:
    CASES[function.__name__.replace("_", "-")] = function
    return function


def say(data: bytes | str | Obj) -> None:
    if isinstance(data, dict):
        data = json.dumps(data, separators=(",", ":")) + "\n"
    rest = memoryview(data.encode() if isinstance(data, str) else data)
    while rest:
        rest = rest[os.write(1, rest) :]


def tool(name: str = "echo", **members: object) -> Obj:
    schema: Obj = {"type": "object"}
    good = {"name": name, "description": WORDS, "inputSchema": schema, "annotations": READS}
    return good | members


def text(words: str, **more: object) -> Obj:
    return {"content": [{"type": "text", "text": words}], **more}


def ordinary(request: Obj) -> Obj | None:
    """The result of a small, healthy server; None where there is no such method."""
    asked = request.get("params", {}).get("protocolVersion", "2025-11-25")
    return {
        "initialize": {
            "protocolVersion": asked,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        },
        "tools/list": {"tools": [tool()]},
        "tools/call": text("hello"),
        "ping": {},
    }.get(request["method"])


def note(request: Obj, words: object) -> bytes:
    """A notification that belongs to a request."""
    params = {"level": "info", "data": words}
    message = {"jsonrpc": "2.0", "method": "notifications/message", "params": params}
    return (json.dumps(message, separators=(",", ":")) + "\n").encode()


def hang() -> NoReturn:
    while True:
        signal.pause()


# What a tool's schema says

BITS = 28


def bomb(leaf: Obj) -> Obj:
    """A schema of 3 kB in which one value is checked 2^28 times."""
    definitions: Obj = {f"d{BITS}": leaf}
    for level in range(BITS):
        reference = {"$ref": f"#/$defs/d{level + 1}"}
        definitions[f"d{level}"] = {"allOf": [reference, reference]}
    return definitions


@case
def schema_bomb(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        schema = {
            "type": "object",
            "properties": {"text": {"$ref": "#/$defs/d0"}},
            "required": ["text"],
            "$defs": bomb({"type": "string"}),
        }
        return {"tools": [tool(inputSchema=schema)]}
    return {}


@case
def output_schema_bomb(request: Obj) -> Obj | None:
    schema = {
        "type": "object",
        "properties": {"text": {"$ref": "#/$defs/d0"}},
        "$defs": bomb({"type": "string"}),
    }
    if request["method"] == "tools/list":
        return {"tools": [tool(outputSchema=schema)]}
    if request["method"] == "tools/call":
        return text("hello", structuredContent={"text": "hello"})
    return {}


@case
def pattern_bomb(request: Obj) -> Obj | None:
    properties = {"text": {"type": "string", "pattern": "^(a+)+$", "minLength": 28}}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    return {"tools": [tool(inputSchema=schema)]} if request["method"] == "tools/list" else {}


@case
def recursive_schema(request: Obj) -> Obj | None:
    properties = {"child": {"$ref": "#"}, "text": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    return {"tools": [tool(inputSchema=schema)]} if request["method"] == "tools/list" else {}


@case
def remote_schema(request: Obj) -> Obj | None:
    elsewhere = {"$ref": "http://169.254.169.254/schema.json"}
    schema = {"type": "object", "properties": {"text": elsewhere}}
    return {"tools": [tool(inputSchema=schema)]} if request["method"] == "tools/list" else {}


# What is listed


@case
def same_cursor_again(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        return {"tools": [tool()], "nextCursor": "more"}
    return {}


@case
def cursors_without_end(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        page = int(request.get("params", {}).get("cursor", 0))
        return {"tools": [tool(f"tool-{page}")], "nextCursor": str(page + 1)}
    return {}


@case
def many_tools(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        return {"tools": [tool("echo"), *(tool(f"echo-{n}") for n in range(MANY_TOOLS))]}
    return {}


@case
def hostile_names(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        names = ["echo", "../../escape", "\x1b[2J::error::x", "<script>alert(1)</script>", "a\n::b"]
        return {"tools": [tool(name) for name in names]}
    return {}


@case
def huge_description(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        return {"tools": [tool(description="word " * 1_000_000)]}
    return {}


@case
def list_never_answered(request: Obj) -> Obj | None:
    return None if request["method"] == "tools/list" else {}


@case
def list_is_no_list(request: Obj) -> Obj | None:
    return {"tools": "echo"} if request["method"] == "tools/list" else {}


@case
def list_flood(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        while True:
            say(note(request, "flood") * 500)
    return {}


# What becomes of a call


@case
def call_never_answered(request: Obj) -> Obj | None:
    return None if request["method"] == "tools/call" else {}


@case
def call_ends_the_server(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(7)
    return {}


@case
def call_flood(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        while True:
            say(note(request, "flood") * 500)
    return {}


@case
def call_asks_without_end(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        ping = '{"jsonrpc":"2.0","id":"p%d","method":"ping"}\n'
        number = 0
        while True:
            say("".join(ping % n for n in range(number, number + 200)))
            number += 200
    return {}


@case
def call_answer_too_large(request: Obj) -> Obj | None:
    return text("x" * 20_000_000) if request["method"] == "tools/call" else {}


@case
def call_answer_large(request: Obj) -> Obj | None:
    return text("hello " * 1_500_000) if request["method"] == "tools/call" else {}


@case
def call_answer_deep(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        deep = "[" * 50_000 + "]" * 50_000
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":'
        say(head + '{"content":[],"structuredContent":{"a":' + deep + "}}}\n")
        return None
    return {}


@case
def call_cut_off(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        say('{"jsonrpc":"2.0","id":')
        hang()
    return {}


@case
def late_answer(request: Obj) -> Obj | None:
    """A correct answer, written in the moment in which the server is asked to end."""
    if request["method"] != "tools/call":
        return {}
    message = {"jsonrpc": "2.0", "id": request["id"], "result": text("hello " * 50_000)}

    def finish(*_: object) -> None:
        say(message)
        os._exit(0)

    signal.signal(signal.SIGTERM, finish)
    hang()


# What it offers, and how it says so


@case
def other_tools_each_time(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        return {"tools": [tool("echo"), tool(f"tool-{os.urandom(4).hex()}")]}
    return {}


@case
def long_name(request: Obj) -> Obj | None:
    return {"tools": [tool(), tool("n" * 1_000_000)]} if request["method"] == "tools/list" else {}


@case
def long_introduction(request: Obj) -> Obj | None:
    if request["method"] == "initialize":
        info = {"name": "hostile\x1b[2J " * 100_000, "version": "::error::1" * 100_000}
        return {**(ordinary(request) or {}), "serverInfo": info, "instructions": "do " * 1_000_000}
    return {}


@case
def growing_cursors(request: Obj) -> Obj | None:
    """Each cursor is twice as long as the one before."""
    if request["method"] == "tools/list":
        cursor = request.get("params", {}).get("cursor", "c")
        return {"tools": [tool(f"tool-{len(cursor)}")], "nextCursor": cursor * 2}
    return {}


@case
def many_choices(request: Obj) -> Obj | None:
    choices = {"type": "string", "enum": [f"choice {n}" for n in range(100_000)]}
    schema = {"type": "object", "properties": {"one": choices}, "required": ["one"]}
    return {"tools": [tool(inputSchema=schema)]} if request["method"] == "tools/list" else {}


@case
def lists_change_without_end(request: Obj) -> Obj | None:
    """After each list it says that the list has changed."""
    if request["method"] == "tools/list":
        say({"jsonrpc": "2.0", "id": request["id"], "result": {"tools": [tool()]}})
        for _ in range(1_000):
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return None
    return {}


# What it asks in return


def asked(method: str, identifier: object, **params: object) -> Obj:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


@case
def asks_in_the_middle(request: Obj) -> Obj | None:
    """Before every answer it asks whatever a server may ask."""
    form = {"type": "object", "properties": {"a": {"type": "string"}}}
    message = {"role": "user", "content": {"type": "text", "text": "hello"}}
    say(asked("elicitation/create", f"e{request['id']}", message="?", requestedSchema=form))
    say(asked("sampling/createMessage", f"s{request['id']}", messages=[message], maxTokens=1))
    say(asked("roots/list", f"r{request['id']}"))
    return {}


@case
def asks_with_long_ids(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        for number in range(5):
            say(asked("ping", f"{number}" * 1_000_000))
    return {}


@case
def cancels_everything(request: Obj) -> Obj | None:
    params = {"requestId": request["id"], "reason": "no"}
    say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    return {}


@case
def progress_of_nobody(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        params = {"progressToken": "nobody's", "progress": 1}
        note_ = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        while True:
            say((json.dumps(note_) + "\n") * 500)
    return {}


# The form of an answer to a call


def said_as(request: Obj, structured: str, words: str = "hello") -> None:
    head = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":'
    content = f'"content":[{{"type":"text","text":"{words}"}}]'
    say(f'{head}{{{content},"structuredContent":{structured}}}}}\n')


def nested(request: Obj, levels: int) -> None:
    """An answer whose deepest value is so many levels down."""
    inner = levels - 2
    said_as(request, '{"a":' * inner + "1" + "}" * inner)


@case
def call_answer_just_deep_enough(request: Obj) -> Obj | None:
    return nested(request, 511) if request["method"] == "tools/call" else {}


@case
def call_answer_just_too_deep(request: Obj) -> Obj | None:
    return nested(request, 514) if request["method"] == "tools/call" else {}


@case
def call_answer_repeats_a_key(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        said_as(request, "{" + ",".join(['"a":1'] * 100_000) + "}")
        return None
    return {}


@case
def call_answer_overlong(request: Obj) -> Obj | None:
    """A slash in two bytes, which UTF-8 forbids."""
    if request["method"] == "tools/call":
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":'
        say(head.encode() + b'{"content":[{"type":"text","text":"hello \xc0\xaf"}]}}\n')
        return None
    return {}


@case
def call_answer_with_nul(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        message = {"jsonrpc": "2.0", "id": request["id"], "result": text("hello")}
        say(b"\0\0" + json.dumps(message).encode() + b"\0\n")
        return None
    return {}


@case
def call_answer_is_a_large_image(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        image = {"type": "image", "mimeType": "image/png", "data": "AAAA" * 3_000_000}
        return {"content": [{"type": "text", "text": "hello"}, image]}
    return {}


@case
def call_answer_is_almost_too_large(request: Obj) -> Obj | None:
    return text("hello " * 2_600_000) if request["method"] == "tools/call" else {}


@case
def call_answer_has_many_values(request: Obj) -> Obj | None:
    """Small on the wire, and 24 times as large for whoever reads it."""
    if request["method"] == "tools/call":
        said_as(request, '{"a":[' + "{}," * 4_000_000 + "{}]}")
        return None
    return {}


@case
def call_answer_steers_terminals(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        return text("hello\n" + "\x1b[2J\x1b]0;owned\x07\n::error::x\n##[error]\u202e" * 20_000)
    return {}


@case
def call_error_is_large(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        error = {"code": -32000, "message": "no " * 1_000_000, "data": ["x" * 1_000_000] * 4}
        say({"jsonrpc": "2.0", "id": request["id"], "error": error})
        return None
    return {}


@case
def call_drips(request: Obj) -> Obj | None:
    """An answer of a byte each tenth of a second."""
    if request["method"] == "tools/call":
        for byte in json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("h" * 999)}):
            say(byte)
            time.sleep(0.1)
        return None
    return {}


@case
def call_moves_to_a_child(request: Obj) -> Obj | None:
    """The process ends, and then a child that it leaves behind goes on answering."""
    if request["method"] == "tools/call":
        at_end, held = os.pipe()
        if os.fork():
            os._exit(0)
        os.close(held)
        os.read(at_end, 1)  # nothing is written: it returns once the parent is gone
        note_pid()
    return {}


@case
def answers_on_stderr(request: Obj) -> Obj | None:
    message = {"jsonrpc": "2.0", "id": request["id"], "result": ordinary(request)}
    os.write(2, json.dumps(message).encode() + b"\n")
    return None


# What is of another type than it should be


@case
def cursor_is_a_number(request: Obj) -> Obj | None:
    if request["method"] == "tools/list":
        return {"tools": [tool()], "nextCursor": 7}
    return {}


@case
def version_is_a_number(request: Obj) -> Obj | None:
    if request["method"] == "initialize":
        return {**(ordinary(request) or {}), "protocolVersion": 20251125}
    return {}


@case
def capabilities_are_a_text(request: Obj) -> Obj | None:
    if request["method"] == "initialize":
        return {**(ordinary(request) or {}), "capabilities": "tools"}
    return {}


@case
def tool_is_a_number(request: Obj) -> Obj | None:
    return {"tools": [tool(), 7, None]} if request["method"] == "tools/list" else {}


@case
def call_content_is_a_text(request: Obj) -> Obj | None:
    return {"content": "hello"} if request["method"] == "tools/call" else {}


@case
def file_schema(request: Obj) -> Obj | None:
    schema = {"type": "object", "properties": {"text": {"$ref": "file:///etc/passwd"}}}
    return {"tools": [tool(inputSchema=schema)]} if request["method"] == "tools/list" else {}


@case
def names_turn_around(request: Obj) -> Obj | None:
    """Bidirectional controls, zero widths and a link of a terminal."""
    if request["method"] == "tools/list":
        names = ["echo", "\u202eohce\u202c", "e\u200bcho", "\x1b]8;;http://a\x1b\\e\x1b]8;;\x1b\\"]
        return {"tools": [tool(name) for name in names]}
    return {}


@case
def call_answer_trails(request: Obj) -> Obj | None:
    """A whole answer, and more behind it on its line."""
    if request["method"] == "tools/call":
        message = {"jsonrpc": "2.0", "id": request["id"], "result": text("hello")}
        say(json.dumps(message) + " done!\n")
        return None
    return {}


@case
def call_answer_has_a_huge_number(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        said_as(request, '{"a":' + "9" * 5_000 + "}")
        return None
    return {}


@case
def call_answer_has_half_a_character(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        said_as(request, '{"a":"\\ud800"}')
        return None
    return {}


@case
def call_answer_has_many_parts(request: Obj) -> Obj | None:
    if request["method"] == "tools/call":
        return {"content": [{"type": "text", "text": "hello"}] * 20_000}
    return {}


@case
def call_answered_before(request: Obj) -> Obj | None:
    """The answer to a call comes before it, with every id that it may have."""
    if request["method"] == "tools/list":
        for number in range(1, 20):
            say({"jsonrpc": "2.0", "id": number, "result": text("not asked for")})
    return {}


@case
def stops_reading(request: Obj) -> Obj | None:
    """It meets the client, and then never reads again."""
    if request["method"] == "initialize":
        say({"jsonrpc": "2.0", "id": request["id"], "result": ordinary(request)})
        hang()
    return {}


@case
def stderr_steers_terminals(request: Obj) -> Obj | None:
    if request["method"] == "initialize":
        os.write(2, b"\x1b]0;owned\x07\x1b[2J\n::error::x\n" + b"[" * 60_000 + b"\xff\xfe\n")
    return {}


def note_pid() -> None:
    if "ROGUE_PIDS" in os.environ:
        with open(os.environ["ROGUE_PIDS"], "a") as file:  # noqa: PTH123 - quick to start
            file.write(f"{os.getpid()}\n")


def serve(behaviour: Callable[[Obj], Obj | None]) -> None:
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
        except ValueError:
            error: Obj = {"code": -32700, "message": "Parse error"}
            say({"jsonrpc": "2.0", "id": None, "error": error})
            continue
        if not isinstance(request, dict) or "id" not in request or "method" not in request:
            continue
        result = ordinary(request)
        if result is None:
            error = {"code": -32601, "message": "Method not found"}
            say({"jsonrpc": "2.0", "id": request["id"], "error": error})
            continue
        special = behaviour(request)
        if special is not None:
            say({"jsonrpc": "2.0", "id": request["id"], "result": special or result})


if __name__ == "__main__":
    note_pid()
    serve(CASES[sys.argv[1]])
