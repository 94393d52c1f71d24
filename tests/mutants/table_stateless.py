"""Faults of the stateless era: what each request carries, caching, logging and subscriptions."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import (
    accept,
    beside,
    calls,
    copied,
    notice,
    on_answer,
    on_error,
    on_message,
    on_result,
    once,
    params_of,
    patch,
    refuse,
    rewrite,
)

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from typing import Any

    from tests.mutants.seams import Obj

PREFIX = "io.modelcontextprotocol/"
DISCOVER = "server/discover"
META: Obj = {PREFIX + "serverInfo": {"name": "mutant", "version": "1"}}
LOG = notice("notifications/message", level="error", data="a mutant")
UPDATED = "notifications/resources/updated"
ASKING = "test_input_required_result_elicitation"


def meta_of(request: Obj) -> Obj:
    meta = params_of(request).get("_meta")
    return meta if isinstance(meta, dict) else {}


def _lacks(member: str) -> Any:
    def when(request: Obj) -> bool:
        meta = meta_of(request)
        return request.get("method") == DISCOVER and bool(meta) and PREFIX + member not in meta

    return when


# -- what each request carries -----------------------------------------------------------------


def _later() -> Any:
    """Every server/discover but the first of a process, by which the revision is found."""
    seen: list[Any] = []

    def later(request: Obj) -> bool:
        if request.get("method") == DISCOVER and not seen:
            seen.append(request.get("id"))
        return request.get("method") == DISCOVER and request.get("id") != seen[0]

    return later


mutant(
    "PROTO-010",
    "server/discover works once",
    refuse(_later()),
    also="much else is asked of server/discover, which every server answers",
)
mutant(
    "PROTO-011",
    "a missing version is refused with -32603",
    on_error(_lacks("protocolVersion"), code=-32603),
)
mutant(
    "PROTO-012",
    "missing capabilities are refused with -32603",
    on_error(_lacks("clientCapabilities"), code=-32603),
)


def _without_meta(request: Obj) -> bool:
    return request.get("method") == DISCOVER and not meta_of(request)


mutant(
    "PROTO-013",
    "a missing _meta is refused with -32603",
    on_error(_without_meta, code=-32603),
    also="another rule sends a request without _meta, after a complete one",
)
mutant(
    "PROTO-014",
    "the error for a version names another one as requested",
    rewrite(
        lambda message: message.get("error", {}).get("code") == -32022,
        lambda message: message["error"]["data"].update(requested="2000-01-01"),
    ),
)


def _remembers_meta() -> None:
    def make(serve: Any) -> Any:
        latest: list[Obj] = []

        def serving(message: Obj, world: Any, exchange: Any) -> None:
            if message["method"] == DISCOVER:
                meta = meta_of(message)
                if PREFIX + "clientCapabilities" in meta and PREFIX + "protocolVersion" in meta:
                    latest[:] = [meta]
                elif not meta and latest:
                    message = {**message, "params": {"_meta": latest[0]}}
            serve(message, world, exchange)

        return serving

    patch("demo.stdio_server:serve", make)()


mutant(
    "PROTO-016",
    "the _meta of an earlier request is remembered",
    _remembers_meta,
    also="another rule sends a request without _meta on a connection that was used",
)


def _remembers_capabilities(missing: Any) -> Any:
    seen: Obj = {}

    def lenient(ask: Any, declared: Obj) -> Any:
        seen.update(declared)
        return missing(ask, seen)

    return lenient


mutant(
    "PROTO-017",
    "the capabilities of an earlier request are remembered",
    patch("demo.stateless_era:missing_capability", _remembers_capabilities),
    also="input is then asked of a client that can't give it",
)
mutant(
    "PROTO-018",
    "a missing capability has the code of invalid params",
    on_error(calls(ASKING), code=-32602),
)


def _changing_prompts() -> None:
    state = {"calls": 0}

    def change(message: Obj, request: Obj) -> Obj:
        if request.get("method") == "tools/call" and params_of(request).get("name") == "add":
            state["calls"] += 1
        elif request.get("method") == "prompts/list" and state["calls"] % 2:
            message.get("result", {}).get("prompts", [0]).pop()
        return message

    on_answer(lambda request: True, change)()


mutant("PROTO-019", "a call changes the list of prompts", _changing_prompts, over="http")
mutant(
    "PROTO-020", "initialize is refused without a word about versions", refuse("initialize", -32602)
)
mutant("PROTO-021", "ping is answered", accept("ping", {"resultType": "complete", "_meta": META}))


def _capability(name: str, value: Any) -> Any:
    def change(result: Obj) -> None:
        result["capabilities"][name] = value

    return change


mutant(
    "PROTO-022",
    "an extension has a name without a prefix",
    on_result(DISCOVER, _capability("extensions", {"just a name": {}})),
)


def _by_name(message: Obj, request: Obj) -> Obj:
    name = meta_of(request).get(PREFIX + "clientInfo", {}).get("name")
    if "result" in message:
        message["result"]["instructions"] = f"Hello {name}."
    return message


mutant(
    "PROTO-023",
    "the instructions depend on the client's name",
    on_answer(lambda request: request.get("method") == DISCOVER, _by_name),
)


def _own_cursors() -> None:
    import os

    mark = f"-{os.getpid()}"

    def change(message: Obj, request: Obj) -> Obj:
        result = message.get("result")
        if isinstance(result, dict) and "nextCursor" in result:
            result["nextCursor"] += mark
        return message

    def make(read: Any) -> Any:
        return lambda cursor, name, count: read(
            cursor.removesuffix(mark) if isinstance(cursor, str) else cursor, name, count
        )

    patch("demo.offers:_read_cursor", make)()
    on_answer(lambda request: True, change)()


mutant(
    "PROTO-024",
    "a cursor is known on its own connection only",
    _own_cursors,
    over="stdio",
    also="lists can't be walked across connections",
)
for _rule, _part in (
    ("JSONRPC-008", "tools"),
    ("JSONRPC-009", "resources"),
    ("JSONRPC-010", "prompts"),
):
    mutant(
        _rule,
        f"{_part}/list is refused with -32602 where there are no {_part}",
        on_error(f"{_part}/list", code=-32602, message="No."),
        options=("--hide", _part),
    )


def _in_meta(**members: Any) -> Any:
    def change(result: Obj) -> None:
        result["_meta"] = {**result.get("_meta", {}), **members}

    return change


mutant(
    "JSONRPC-012",
    "a key of _meta uses the reserved prefix",
    on_result("tools/list", _in_meta(**{PREFIX + "secret": 1})),
)
mutant(
    "JSONRPC-013",
    "traceparent has another form",
    on_result(DISCOVER, _in_meta(traceparent="somewhere")),
)

# -- what each result carries ------------------------------------------------------------------


def _drop(*names: str) -> Any:
    def change(result: Obj) -> None:
        for name in names:
            result.pop(name, None)

    return change


mutant("META-002", "a result does not name the server", on_result("prompts/list", _drop("_meta")))
mutant(
    "META-003",
    "a result has no resultType",
    on_result("prompts/list", _drop("resultType")),
    also="the shape of results says the same",
)
mutant(
    "META-004",
    "a list does not say how long it may be kept",
    on_result("prompts/list", _drop("ttlMs")),
    also="the shape of results says the same",
)
mutant(
    "META-005",
    "the server makes a request",
    once(beside, DISCOVER, {"jsonrpc": "2.0", "id": 7201, "method": "roots/list"}),
    also="no request of a server has a shape in this revision",
)
mutant(
    "META-007",
    "server/discover does not tell the versions",
    on_result(_later(), _drop("supportedVersions")),
    also="the shape of the result says the same",
)


def _stateless_over_sse(take: Any) -> Any:
    def taking(self: Any, value: Any) -> None:
        from mcptest.servers.demo.exchange import SharedStream
        from mcptest.servers.demo.stateless_era import is_stateless, serve

        method = value.get("method") if isinstance(value, dict) else None
        old = self.session.version is not None or method == "initialize"
        if "id" in value and isinstance(method, str) and (is_stateless(value) or not old):
            exchange = SharedStream(value["id"], self.session.in_flight, self)
            serve(value, self.session.world, exchange)
        else:
            take(self, value)

    return taking


mutant(
    "HTTP-130",
    "the revision is spoken over HTTP+SSE",
    patch("demo.http_server:SseClient.take", _stateless_over_sse),
)
mutant(
    "CACHE-001",
    "a question may be kept",
    on_result(calls(ASKING), lambda result: result.update(ttlMs=1000, cacheScope="private")),
)

# -- logging -----------------------------------------------------------------------------------


def _log_at_any_level(log: Any) -> Any:
    def logging(self: Any, level: str, data: Any) -> None:
        if self.level is not None:
            self.level = "debug"
        log(self, level, data)

    return logging


mutant(
    "LOG-103",
    "the level that was asked for is not looked at",
    patch("demo.exchange:Call.log", _log_at_any_level),
    also="nobody asked for messages below the level",
)


def _any_level(meta: Obj) -> Obj:
    meta = copied(meta)
    meta["properties"].pop(PREFIX + "logLevel")
    return meta


mutant("LOG-104", "an unknown log level is taken", patch("demo.stateless_era:_META", _any_level))


def _log_always(log: Any) -> Any:
    def logging(self: Any, level: str, data: Any) -> None:
        if self.level is None:
            self.level = "debug"
        log(self, level, data)

    return logging


mutant(
    "LOG-105",
    "a call that did not ask gets log messages",
    patch("demo.exchange:Call.log", _log_always),
    also="on every transport, the server logs only for requests that ask for it",
)
mutant("LOG-004", "the server logs unasked", once(beside, DISCOVER, LOG))
mutant(
    "LOG-106",
    "logging/setLevel is answered",
    accept("logging/setLevel", {"resultType": "complete", "_meta": META}),
)

# -- subscriptions -----------------------------------------------------------------------------

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def _id_as_text(params: Obj) -> None:
    name = PREFIX + "subscriptionId"
    params["_meta"][name] = str(params["_meta"][name])


mutant(
    "SUBS-101",
    "a number as id comes back as a text",
    on_message(ACKNOWLEDGED, _id_as_text),
    also="what is acknowledged is then no open subscription",
)
mutant(
    "SUBS-102",
    "changes are promised that were never declared",
    on_message(
        ACKNOWLEDGED, lambda params: params["notifications"].update(resourcesListChanged=True)
    ),
)


def _update_first(acknowledge: Any) -> Any:
    def acknowledging(self: Any) -> None:
        for uri in self.accepted.get("resourceSubscriptions", ())[:1]:
            self.updated(uri)
        acknowledge(self)

    return acknowledging


mutant(
    "SUBS-001",
    "an update comes before the acknowledgement",
    patch("demo.stateless_era:Listening.acknowledge", _update_first),
)
mutant(
    "SUBS-002",
    "an update does not name its subscription",
    on_message(UPDATED, lambda params: params.pop("_meta") and None),
)


def _log_on_it(acknowledge: Any) -> Any:
    def acknowledging(self: Any) -> None:
        acknowledge(self)
        log = {"_meta": self._meta, "level": "error", "data": "a mutant"}
        self.exchange.send(notice("notifications/message", **log))

    return acknowledging


mutant(
    "SUBS-003",
    "a log message comes on a subscription",
    patch("demo.stateless_era:Listening.acknowledge", _log_on_it),
    also="the subscription did not ask for log messages either",
)
mutant(
    "SUBS-107",
    "resources/subscribe is refused with -32602",
    on_error("resources/subscribe", code=-32602, message="No."),
    also="every method that is not found has that code, says another rule",
)
