"""What a client did, put in order for the checks: HTTP requests, and messages of both sides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from mcptest.core.capture import AnyRecord, Frame, HttpRequest, HttpResponse, Sender
from mcptest.core.errors import UsageError
from mcptest.core.message import Kind, Message
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import Ended
from mcptest.probe.conformance.scenario import Decided, Scenario, missing, object_in
from mcptest.rules.protocol import CLIENT_CAPABILITIES
from mcptest.servers.http_connection import headers_by_name
from mcptest.wire.envelope import decode, is_meant_as_message

_EXCERPT = 400


class Visited(msgspec.Struct):
    """One HTTP request of the client, with the status that it got."""

    place: int
    t: float
    stream: int
    method: str
    url: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: bytes = b""
    status: int | None = None
    answer_headers: Mapping[str, str] = {}
    """By name in lower case."""
    answer: bytes = b""
    """The body of the answer; of a stream the last message."""

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        """The body of a form, such as a token request has."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    @property
    def excerpt(self) -> str:
        return show(f"{self.method} {self.url}", _EXCERPT)


class SeenMessage(msgspec.Struct):
    """One message, with the HTTP request that carried it or that it answers."""

    place: int
    t: float
    sender: Sender
    message: Message
    visited: Visited | None = None

    @property
    def excerpt(self) -> str:
        return show(self.message.raw, _EXCERPT)

    def header(self, name: str) -> str | None:
        """Of the HTTP request that carried it; None on stdio."""
        return self.visited.headers.get(name) if self.visited else None

    @property
    def value(self) -> dict[str, Any]:
        return object_in(self.message.value)

    @property
    def method(self) -> str:
        method = self.value.get("method")
        return method if isinstance(method, str) else ""

    @property
    def params(self) -> dict[str, Any]:
        return object_in(self.value, "params")

    @property
    def meta(self) -> dict[str, Any]:
        return object_in(self.params, "_meta")


class SeenSession(msgspec.Struct, dict=True):
    """All that there is to judge a client by, in one scenario. Pure: made from records, asked by
    checks."""

    records: Sequence[AnyRecord]
    revision: Revision
    transport: str
    urls: Mapping[str, str] = {}
    """By origin name; empty on stdio."""
    endpoint: str = "/mcp"
    """The path that the client was given."""
    mode: str = "probe"
    """How optional capabilities are judged: `permissive`, `strict` or `probe`."""
    claims: frozenset[str] = frozenset()
    """Capabilities that the client is said to support."""
    offered: tuple[Revision, ...] = ()
    """The revisions that the server speaks, the oldest first; empty where that is not known."""
    is_demanded: bool = True
    """Somebody asked for this revision. Otherwise it is the newest that the client speaks, and a
    scenario that it speaks in no revision says nothing about it."""
    ended: Ended | None = None
    """None when nobody knows: the capture was kept, and the client is long gone."""
    was_settled: bool = False
    launched: bool = True
    stderr: str = ""
    """The last of what the client wrote, without secrets."""
    unwritten: str = ""
    """Why the capture could not be written, if it could not."""

    @cached_property
    def visits(self) -> list[Visited]:
        return list(self._by_stream.values())

    def visited(self, origin: str, path: str) -> list[Visited]:
        """Requests to one path of an origin, which is called by its name."""
        return self._by_address.get((self.urls.get(origin, ""), path), [])

    @cached_property
    def _by_address(self) -> dict[tuple[str, str], list[Visited]]:
        found: dict[tuple[str, str], list[Visited]] = {}
        for one in self.visits:
            found.setdefault((one.origin, one.path), []).append(one)
        return found

    @cached_property
    def _by_stream(self) -> dict[int, Visited]:
        found: dict[int, Visited] = {}
        for place, record in enumerate(self.records):
            if isinstance(record, HttpRequest):
                headers = headers_by_name(record.headers)
                found[record.stream] = Visited(
                    place, record.t, record.stream, record.method, record.url, headers
                )
            elif isinstance(record, HttpResponse) and (one := found.get(record.stream)):
                one.status, one.answer_headers = record.status, headers_by_name(record.headers)
            elif isinstance(record, Frame) and (one := found.get(record.stream or 0)):
                setattr(one, "body" if record.sender == "client" else "answer", record.raw)
        return found

    @cached_property
    def said(self) -> list[SeenMessage]:
        """Every message of both sides, batches taken apart; not what went to other origins."""
        mcp = self.urls.get("mcp")
        found = []
        for place, record in enumerate(self.records):
            if not isinstance(record, Frame):
                continue
            visited = None if record.stream is None else self._by_stream.get(record.stream)
            if visited is not None and mcp is not None and visited.origin != mcp:
                continue
            message = decode(record.raw)
            if record.stream is None and not is_meant_as_message(message):
                message = Message(record.raw, Kind.INVALID, message.value, message.problems)
            items = message.items if message.kind is Kind.BATCH else (message,)
            found += [SeenMessage(place, record.t, record.sender, one, visited) for one in items]
        return found

    @cached_property
    def sent(self) -> list[SeenMessage]:
        """What the client said."""
        return [one for one in self.said if one.sender == "client"]

    def requests(self, method: str = "") -> list[SeenMessage]:
        """Requests of the client, of one method or of all."""
        requests = (one for one in self.sent if one.message.kind is Kind.REQUEST)
        return [one for one in requests if not method or one.method == method]

    def answers(self, identifier: Any) -> list[SeenMessage]:
        """What the client answered to the request of ours with this id."""
        return [
            one
            for one in self.sent
            if one.message.kind in {Kind.RESULT, Kind.ERROR} and one.value.get("id") == identifier
        ]

    def calls(self, tool: str = "") -> list[SeenMessage]:
        """Tool calls of the client, of one tool or of all."""
        return [
            one for one in self.requests("tools/call") if not tool or one.params.get("name") == tool
        ]

    def need_calls(self, tool: str) -> list[SeenMessage]:
        """The calls of a tool. Decided where there are none."""
        calls = self.calls(tool)
        if not calls:
            raise Decided(missing(f"the client did not call {tool}"))
        return calls

    def declares(self, wanted: Callable[[dict[str, Any]], bool]) -> bool:
        """Whether any request declares such capabilities."""
        return any(wanted(declared_on(said)) for said in self.requests())


def declared_on(said: SeenMessage) -> dict[str, Any]:
    """What one request declares: in `_meta`, or in initialize."""
    where = said.params.get("capabilities") if said.method == "initialize" else None
    return object_in(said.meta.get(CLIENT_CAPABILITIES) if where is None else where)


def declares_forms(declared: Mapping[str, Any]) -> bool:
    """Elicitation by form. An empty object means it, as it did before there was anything else."""
    elicitation = declared.get("elicitation")
    return isinstance(elicitation, dict) and ("form" in elicitation or "url" not in elicitation)


def offered_revisions(scenario: Scenario[Any], wanted: Revision | None) -> tuple[Revision, ...]:
    """What the server of a scenario speaks, the oldest first.

    Without a wish, all revisions that have the scenario: the client chooses. A wish for a revision
    with the handshake includes the older ones, as with any server that speaks it: a client that
    proposes one of them is answered in it. UsageError where the scenario is not for it.
    """
    if wanted is None:
        return tuple(sorted(scenario.revisions))
    if wanted not in scenario.revisions:
        known = ", ".join(str(one) for one in sorted(scenario.revisions))
        raise UsageError(
            f"scenario {scenario.name} does not support {wanted}", hint=f"it supports {known}"
        )
    older = (one for one in scenario.revisions if one.era is Era.HANDSHAKE and one <= wanted)
    return tuple(sorted({wanted, *older})) if wanted.era is Era.HANDSHAKE else (wanted,)
