"""Random and mutated input never ends the demo, and it never says anything that is not JSON-RPC."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.demo_peer import (
    D,
    E,
    Obj,
    StdioDemo,
    http_demo,
    initialize_params,
    meta,
    stateless_headers,
)

JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**40,
    "",
    "x",
    "\0",
    "ü\U0001f600",
    "a" * 5000,
    [],
    {},
    [[]],
    {"": {}},
    "demo://counter",
    "2026-07-28",
    {"method": "ping"},
]
SEEDS: list[Obj] = [
    {"method": "initialize", "params": initialize_params(D)},
    {"method": "ping"},
    {"method": "tools/list", "params": {"cursor": "746f6f6c733a3130"}},
    {"method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
    {"method": "tools/call", "params": {"name": "countdown", "_meta": {"progressToken": 1}}},
    {"method": "tools/call", "params": {"name": "log", "arguments": {"levels": ["info"]}}},
    {"method": "tools/call", "params": {"name": "ask_user", "arguments": {"question": "?"}}},
    {"method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "welcome.txt"}}},
    {"method": "tools/call", "params": {"name": "slow", "arguments": {"seconds": 0.01}}},
    {"method": "resources/read", "params": {"uri": "demo://notes/7"}},
    {"method": "resources/subscribe", "params": {"uri": "demo://counter"}},
    {"method": "prompts/get", "params": {"name": "greet", "arguments": {"name": "Ada"}}},
    {"method": "logging/setLevel", "params": {"level": "info"}},
    {"method": "notifications/cancelled", "params": {"requestId": 1}},
    {
        "method": "completion/complete",
        "params": {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "name", "value": "A"},
        },
    },
    {"method": "server/discover", "params": {"_meta": meta()}},
    {
        "method": "tools/call",
        "params": {"name": "list_roots", "requestState": "1.0", "_meta": meta()},
    },
    {"method": "subscriptions/listen", "params": {"notifications": {}, "_meta": meta()}},
    {"id": 1, "result": {"roots": []}},
]


def mutated(dice: random.Random, value: Any) -> Any:
    """The value with one part of it replaced, removed or doubled."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        if dice.random() < 0.15:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: mutated(dice, value[key])}
    if isinstance(value, list) and value and dice.random() < 0.8:
        place = dice.randrange(len(value))
        return [*value[:place], mutated(dice, value[place]), *value[place:]]
    return dice.choice(JUNK)


def random_line(dice: random.Random, number: int) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, **dice.choice(SEEDS)}
    if dice.random() < 0.1:
        del message["id"]
    for _ in range(dice.choice([0, 1, 1, 2, 4])):
        message = mutated(dice, message)
    if dice.random() < 0.05:
        message = [message, message]  # type: ignore[assignment]  # a batch, wanted or not
    line = json.dumps(message, ensure_ascii=dice.random() < 0.5).encode()
    if dice.random() < 0.2:
        place = dice.randrange(len(line))
        line = line[:place] + dice.randbytes(dice.randrange(4)) + line[place + dice.randrange(3) :]
    return line.replace(b"\n", b" ")


def check_spoken(message: Any) -> None:
    for item in message if isinstance(message, list) else [message]:
        assert item["jsonrpc"] == "2.0"
        kinds = [member for member in ("method", "result", "error") if member in item]
        assert len(kinds) == 1, item
        if kinds == ["error"]:
            assert item["error"]["code"] != -32603, item
        if kinds == ["result"]:
            assert isinstance(item["result"], dict)
            assert type(item["id"]) in {int, str}


@pytest.mark.parametrize("seed", range(6))
def test_hundreds_of_mutated_lines_do_not_end_it(seed: int) -> None:
    dice = random.Random(seed)
    with StdioDemo() as demo:
        if seed % 2:
            demo.initialize(dice.choice(["2025-03-26", D]))
        demo.answer = lambda request: dice.choice(JUNK)
        for number in range(1000, 1400):
            demo.write(random_line(dice, number) + b"\n")
        demo.assert_alive()
        for message in demo.seen:
            check_spoken(message)
        assert len(demo.seen) > 200


HOSTILE: dict[str, Callable[[], bytes]] = {
    "random bytes": lambda: random.Random(1).randbytes(100_000).replace(b"\n", b""),
    "invalid UTF-8": lambda: b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "a byte order mark": lambda: b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "not finite": lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    "infinite": lambda: b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
    "a huge integer": lambda: b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % (b"9" * 5000),
    "a lone surrogate": lambda: b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
    "deep arrays": lambda: b"[" * 100_000,
    "deep objects": lambda: b'{"a":' * 100_000,
    "deep and closed": lambda: b"[" * 50_000 + b"]" * 50_000,
    "10 MB": lambda: b'{"jsonrpc":"2.0","id":1,"method":"%s"}' % (b"x" * 10_000_000),
    "nothing but NUL": lambda: b"\0" * 1000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_gets_one_error_and_the_next_is_served(name: str) -> None:
    with StdioDemo() as demo:
        demo.write(HOSTILE[name]() + b"\n")
        answer = demo.receive()
        assert answer["error"]["code"] in {-32700, -32600}
        demo.assert_alive()
        assert len(demo.seen) == 2


HARMLESS = {
    "a huge float": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e999}}', {}),
    "duplicate keys": (b'{"jsonrpc":"2.0","id":1,"id":7,"method":"ping"}', {}),
    "carriage return": (b'{"jsonrpc":"2.0","id":7,"method":"ping"}\r', {}),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_an_odd_line_is_served(name: str) -> None:
    line, result = HARMLESS[name]
    with StdioDemo() as demo:
        demo.write(line + b"\n")
        assert demo.receive() == {"jsonrpc": "2.0", "id": 7, "result": result}


def test_a_line_without_its_newline_is_served_at_the_end_of_input() -> None:
    with StdioDemo() as demo:
        demo.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}')
        assert demo.process.stdin is not None
        demo.process.stdin.close()
        assert demo.receive()["result"] == {}


def test_deep_arguments_with_a_state_are_refused() -> None:
    deep = "[" * 900 + "]" * 900
    params = {"name": "list_roots", "requestState": "9999999999.00", "_meta": meta()}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    with StdioDemo() as demo:
        demo.write(
            line.replace('"list_roots"', f'"list_roots","arguments":{{"x":{deep}}}').encode()
            + b"\n"
        )
        assert demo.receive()["error"]["code"] in {-32602, -32700}
        demo.assert_alive()


@pytest.mark.parametrize("seed", range(2))
def test_mutated_bodies_do_not_end_it_over_http(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    with http_demo(tmp_path) as demo:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
        welcome = demo.ask("POST", {**hello, "params": initialize_params(D, {})})
        session = {"Mcp-Session-Id": welcome.headers["mcp-session-id"]}
        for number in range(150):
            line = random_line(dice, number)
            if b"listen" in line or b"1e308" in line:
                continue  # would rightly stay open for long
            headers = session if dice.random() < 0.7 else {"MCP-Protocol-Version": E}
            reply = demo.ask("POST", line, headers)
            assert reply.status in {200, 202, 400, 404}, (line, reply.status)
            for message in reply.messages:
                check_spoken(message)
        message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"}
        message["params"] = {"_meta": meta()}
        assert demo.ask("POST", message, stateless_headers(message)).status == 200
