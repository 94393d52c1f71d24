"""Building small captures in memory, message by message, for the tests of the rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcptest.core.capture import (
    AnyRecord,
    Closed,
    Frame,
    HttpRequest,
    HttpResponse,
    Opened,
    Sse,
    StreamEnd,
)
from mcptest.core.message import ABSENT
from mcptest.rules.protocol import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION, SERVER_INFO
from mcptest.wire.capture_forms import SessionSource

A, B, C, D, E = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
Part = AnyRecord | list[Any]


def raw(sender: str, text: bytes | str, **facts: Any) -> Frame:
    content = text if isinstance(text, bytes) else text.encode()
    return Frame(sender="client" if sender == "client" else "server", raw=content, **facts)


def message(sender: str, value: Any, **facts: Any) -> Frame:
    return raw(sender, json.dumps(value), **facts)


def ask(identifier: Any, method: str, params: Any = ABSENT, *, by: str = "client", **facts: Any):
    value = {"jsonrpc": "2.0", "id": identifier, "method": method}
    if params is not ABSENT:
        value["params"] = params
    return message(by, value, **facts)


def answer(identifier: Any, result: Any, *, by: str = "server", **facts: Any) -> Frame:
    return message(by, {"jsonrpc": "2.0", "id": identifier, "result": result}, **facts)


def fail(identifier: Any, code: Any, text: Any = "no", data: Any = ABSENT, *, by="server", **facts):
    error = {"code": code, "message": text}
    if data is not ABSENT:
        error["data"] = data
    value = {"jsonrpc": "2.0", "error": error}
    if identifier is not ABSENT:
        value["id"] = identifier
    return message(by, value, **facts)


def tell(method: str, params: Any = ABSENT, *, by: str = "server", **facts: Any) -> Frame:
    value = {"jsonrpc": "2.0", "method": method}
    if params is not ABSENT:
        value["params"] = params
    return message(by, value, **facts)


def call(identifier: Any, method: str, params: Any, result: Any) -> list[Frame]:
    """A request of the client and its result."""
    return [ask(identifier, method, params), answer(identifier, result)]


INFO = {"name": "test", "version": "1"}


def initialize(
    version: str = D, server: Any = None, client: Any = None, **facts: Any
) -> list[Frame]:
    offer = {"protocolVersion": version, "capabilities": client or {}, "clientInfo": INFO}
    agreed = {"protocolVersion": version, "capabilities": server or {}, "serverInfo": INFO}
    return [ask("init", "initialize", offer, **facts), answer("init", agreed, **facts)]


def handshake(version: str = D, server: Any = None, client: Any = None) -> list[Frame]:
    return [*initialize(version, server, client), initialized()]


def initialized(**facts: Any) -> Frame:
    return tell("notifications/initialized", by="client", **facts)


def meta(capabilities: Any = None, **extra: Any) -> dict[str, Any]:
    return {
        PROTOCOL_VERSION: E,
        CLIENT_CAPABILITIES: capabilities or {},
        CLIENT_INFO: INFO,
        **extra,
    }


def modern(
    identifier: Any, method: str, params: Any = None, capabilities: Any = None, **facts: Any
) -> Frame:
    """A request of the stateless era."""
    whole = {"_meta": meta(capabilities), **(params or {})}
    return ask(identifier, method, whole, **facts)


def complete(**members: Any) -> dict[str, Any]:
    """A result of the stateless era."""
    return {"resultType": "complete", "_meta": {SERVER_INFO: INFO}, **members}


def modern_call(identifier: Any, method: str, params: Any, result: Any) -> list[Frame]:
    return [modern(identifier, method, params), answer(identifier, result)]


CACHED = {"ttlMs": 0, "cacheScope": "private"}


def discover(capabilities: Any = None) -> list[Frame]:
    result = complete(supportedVersions=[E], capabilities=capabilities or {}, **CACHED)
    return modern_call("discover", "server/discover", {}, result)


def posted(stream: int, body: Frame, headers: Any = (), method: str = "POST") -> list[AnyRecord]:
    """A client's message as an HTTP request."""
    pairs = tuple(dict({"accept": "application/json, text/event-stream"} | dict(headers)).items())
    request = HttpRequest(stream=stream, method=method, url="http://127.0.0.1/mcp", headers=pairs)
    return [request, Frame(sender=body.sender, raw=body.raw, stream=stream)]


def got(stream: int, headers: Any = ()) -> HttpRequest:
    pairs = tuple(dict({"accept": "text/event-stream"} | dict(headers)).items())
    return HttpRequest(stream=stream, method="GET", url="http://127.0.0.1/mcp", headers=pairs)


def replied(stream: int, body: Frame | None = None, status: int = 200, headers: Any = ()):
    """A server's message as an HTTP response."""
    names = dict({"content-type": "application/json"} if body else {}) | dict(headers)
    records: list[AnyRecord] = [
        HttpResponse(stream=stream, status=status, headers=tuple(names.items()))
    ]
    if body is not None:
        records.append(Frame(sender=body.sender, raw=body.raw, stream=stream))
    return [*records, StreamEnd(stream=stream)]


def event(stream: int, body: Frame, identifier: str) -> Frame:
    return Frame(sender="server", raw=body.raw, stream=stream, sse=Sse(id=identifier))


def http_handshake(version: str = D, session: str = "s1") -> list[AnyRecord]:
    first, agreed = initialize(version, {"tools": {}})
    headers = {"mcp-session-id": session, "mcp-protocol-version": version}
    return [
        *posted(1, first),
        *replied(1, agreed, headers={"mcp-session-id": session}),
        *posted(2, initialized(), headers),
        *replied(2, status=202),
    ]


def flat(parts: Iterable[Part]) -> Iterator[AnyRecord]:
    for part in parts:
        if isinstance(part, list):
            yield from flat(part)
        else:
            yield part


def full(
    *parts: Part, transport: Any = "stdio", ended: bool = True, label: str = "test", **facts: Any
) -> SessionSource:
    """A session of the full form, from its opening to its end."""
    opened = Opened(server_label=label, transport=transport, **facts)
    records = [opened, *flat(parts), *([Closed()] if ended else [])]
    return SessionSource(
        label=label,
        file="memory",
        form="full",
        records=iter(list(enumerate(records))),
        transport=transport,
        channel=opened.channel,
    )


def public(*exchanges: Any, capabilities: Any = ABSENT, label: str = "test") -> SessionSource:
    """A session of the public form; each exchange is a request and maybe its response."""
    records: list[tuple[int, AnyRecord]] = []
    for place, (request, response) in enumerate(exchanges):
        records.append((place, message("client", request, stream=place)))
        if response is not None:
            records.append((place, message("server", response, stream=place)))
    return SessionSource(
        label=label,
        file="memory",
        form="exchanges",
        records=iter(records),
        server_capabilities=capabilities,
    )
