"""Steps of probes as if they had been taken, for facts to be worked out of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mcptest.core.capture import AnyRecord, Frame, HttpResponse, Sse
from mcptest.probe.compliance.course import ProbeSeen, Taken
from mcptest.probe.compliance.observed_facts import FACTS
from mcptest.suite.observed import SeenExchange


def came(message: Any, stream: int | None = None, sse: Sse | None = None) -> Frame:
    return Frame(sender="server", raw=json.dumps(message).encode(), stream=stream, sse=sse)


def sent(message: Any, stream: int | None = None) -> Frame:
    return Frame(sender="client", raw=json.dumps(message).encode(), stream=stream)


def answer(identifier: Any, result: Any = None, stream: int | None = None) -> Frame:
    return came({"jsonrpc": "2.0", "id": identifier, "result": result or {}}, stream)


def notice(method: str, params: Any = None, stream: int | None = None) -> Frame:
    return came({"jsonrpc": "2.0", "method": method, "params": params or {}}, stream)


def request(identifier: Any, stream: int | None = None) -> Frame:
    return sent({"jsonrpc": "2.0", "id": identifier, "method": "ping"}, stream)


def gave(result: Any, **more: Any) -> Taken:
    return Taken(exchange=SeenExchange(result=result), **more)


def refused(code: int, **more: Any) -> Taken:
    return Taken(exchange=SeenExchange(error={"code": code, "message": "no"}), **more)


def saw(*records: AnyRecord, identifier: Any = 1, **more: Any) -> Taken:
    return Taken(records=records, identifier=identifier, **more)


def listing(*names: str, method: str = "tools/list") -> Taken:
    return Taken(lists={method: [{"name": name} for name in names]})


def fact(probe: str, name: str, declared: Any = None, /, **taken: Taken) -> Any:
    return FACTS[probe, name](ProbeSeen(taken=taken, capabilities=declared or {}))


def events(*records: AnyRecord, kind: str = "text/event-stream") -> Sequence[AnyRecord]:
    response = HttpResponse(stream=1, status=200, headers=(("Content-Type", kind),))
    return (request(1, 1), response, *records)
