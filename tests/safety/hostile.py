"""Servers whose lists or answers are hostile, one function each: `python -I -S hostile.py CASE`.

They meet a client as they should, and then do the one thing that they are named for. Standard
library only. The process writes its id to the file in ROGUE_PIDS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
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
    if "ROGUE_PIDS" in os.environ:
        with open(os.environ["ROGUE_PIDS"], "a") as file:  # noqa: PTH123 - quick to start
            file.write(f"{os.getpid()}\n")
    serve(CASES[sys.argv[1]])
