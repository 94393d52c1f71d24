"""Write a large capture to judge: so many exchanges, so many bytes, in either form.

python benchmarks/make_capture.py big.json --exchanges 200000 --megabytes 100
python benchmarks/make_capture.py big.jsonl --form full --exchanges 200000 --megabytes 100
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mcptest.core.capture import AnyRecord, Closed, Frame, Opened
from mcptest.wire.capture_forms import encode_records

VERSION = "2025-11-25"
INFO = {"name": "bench", "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}}
TOOL = {
    "name": "echo",
    "description": "Says it again",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def exchanges(count: int, padding: int) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """The handshake, one list, and then calls of a tool."""
    offer = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": INFO}
    agreed = {"protocolVersion": VERSION, "capabilities": CAPABILITIES, "serverInfo": INFO}
    yield _request(0, "initialize", offer), _result(0, agreed)
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}, None
    yield _request(1, "tools/list", {}), _result(1, {"tools": [TOOL]})
    text = "x" * padding
    for number in range(2, count - 1):
        said = f"{number} {text}"
        params = {
            "name": "echo",
            "arguments": {"text": "again"},
            "_meta": {"progressToken": number},
        }
        content = [{"type": "text", "text": said}]
        result = {"content": content, "structuredContent": {"text": "again"}, "isError": False}
        yield _request(number, "tools/call", params), _result(number, result)


def _request(number: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _result(number: int, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def write_public(file: IO[bytes], count: int, padding: int) -> None:
    head = {"server_label": "bench", "server_capabilities": CAPABILITIES}
    file.write(json.dumps(head)[:-1].encode() + b', "exchanges": [\n')
    for place, (request, response) in enumerate(exchanges(count, padding)):
        entry = {"request": request} | ({} if response is None else {"response": response})
        file.write((b",\n" if place else b"") + json.dumps(entry).encode())
    file.write(b"\n]}\n")


def write_full(file: IO[bytes], count: int, padding: int) -> None:
    def put(record: AnyRecord) -> None:
        file.writelines(encode_records([record]))

    put(Opened(server_label="bench", transport="stdio", channel="bench"))
    for place, (request, response) in enumerate(exchanges(count, padding)):
        put(Frame(t=place / 1000, sender="client", raw=_compact(request)))
        if response is not None:
            put(Frame(t=place / 1000 + 0.0005, sender="server", raw=_compact(response)))
    put(Closed())


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--form", choices=("exchanges", "full"), default="exchanges")
    parser.add_argument("--exchanges", type=int, default=200_000)
    parser.add_argument("--megabytes", type=int, default=100)
    arguments = parser.parse_args()
    overhead = 390  # of one call and its answer, without the padding
    padding = max(0, arguments.megabytes * 1_000_000 // arguments.exchanges - overhead)
    write = write_full if arguments.form == "full" else write_public
    with arguments.out.open("wb") as file:
        write(file, arguments.exchanges, padding)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
