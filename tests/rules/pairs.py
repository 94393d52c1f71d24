"""For every rule one capture that violates it and one that conforms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcptest.core.capture import Sse, SseEvent, Trouble
from mcptest.core.message import ABSENT
from mcptest.rules.protocol import LOG_LEVEL, SUBSCRIPTION_ID
from mcptest.wire.capture_forms import SessionSource
from tests.rules.captures import (
    CACHED,
    INFO,
    A,
    B,
    C,
    D,
    E,
    answer,
    ask,
    call,
    complete,
    discover,
    event,
    fail,
    full,
    got,
    handshake,
    http_handshake,
    initialize,
    initialized,
    message,
    meta,
    modern,
    modern_call,
    posted,
    raw,
    replied,
    tell,
)


@dataclass(frozen=True)
class Pair:
    violating: Callable[[], SessionSource]
    conforming: Callable[[], SessionSource]


def pair(violating: list[Any], conforming: list[Any], transport: str = "stdio") -> Pair:
    return Pair(
        lambda: full(violating, transport=transport), lambda: full(conforming, transport=transport)
    )


TOOLS = {"tools": {}}
NO_ARGUMENTS = {"type": "object"}
TOOL = {"name": "add", "inputSchema": NO_ARGUMENTS}
TYPED_TOOL = {**TOOL, "outputSchema": {"type": "object", "required": ["sum"]}}
TEXT = {"content": [{"type": "text", "text": "hi"}]}


def tools_list(identifier: int, *tools: Any, **more: Any) -> list[Any]:
    return call(identifier, "tools/list", {}, {"tools": list(tools), **more})


def called(result: Any, identifier: int = 9) -> list[Any]:
    return call(identifier, "tools/call", {"name": "add"}, result)


def listed(method: str, member: str, *items: Any) -> list[Any]:
    return [handshake(server={member: {}}), call(1, method, {}, {member: list(items)})]


def page(identifier: int, cursor: Any, following: Any, **more: Any) -> list[Any]:
    params = {} if cursor is None else {"cursor": cursor}
    result = {"tools": [], **more} | ({} if following is None else {"nextCursor": following})
    return call(identifier, "tools/list", params, result)


def tracked(identifier: Any, token: Any) -> Any:
    return ask(identifier, "tools/call", {"name": "add", "_meta": {"progressToken": token}})


def progress(token: Any, value: Any) -> Any:
    return tell("notifications/progress", {"progressToken": token, "progress": value})


def logged(level: str = "info", **more: Any) -> Any:
    return tell("notifications/message", {"level": level, **({"data": "x"} | more)})


def cancelled(identifier: Any, by: str = "client", **facts: Any) -> Any:
    return tell("notifications/cancelled", {"requestId": identifier}, by=by, **facts)


def listening(identifier: Any, **wanted: Any) -> Any:
    return modern(identifier, "subscriptions/listen", {"notifications": wanted})


def acknowledged(identifier: Any) -> Any:
    params = {"_meta": {SUBSCRIPTION_ID: identifier}, "notifications": {}}
    return tell("notifications/subscriptions/acknowledged", params)


def changed(identifier: Any = ABSENT, what: str = "tools") -> Any:
    tag = {} if identifier is ABSENT else {"_meta": {SUBSCRIPTION_ID: identifier}}
    return tell(f"notifications/{what}/list_changed", tag)


def asking(identifier: int = 1, method: str = "tools/call", **members: Any) -> list[Any]:
    """A modern request that can elicit, and the result that asks for input."""
    first = modern(identifier, method, {"name": "add"}, {"elicitation": {}})
    return [first, answer(identifier, {"resultType": "input_required", **members})]


QUESTION = {"inputRequests": {"q": {"method": "elicitation/create", "params": {}}}}


def retry(identifier: int, **members: Any) -> Any:
    return modern(identifier, "tools/call", {"name": "add", **members}, {"elicitation": {}})


INVARIANTS = {
    "INV-001": pair([ask(1, "ping"), handshake()], [handshake()]),
    "INV-002": pair([initialize(), ask(1, "tools/list")], [handshake()]),
    "INV-003": pair(
        [handshake(), call(1, "tools/list", {}, {"tools": []})],
        [handshake(server=TOOLS), call(1, "tools/list", {}, {"tools": []})],
    ),
    "INV-004": pair(
        [handshake(server=TOOLS), ask(1, "tools/list"), fail(1, -32603)],
        [handshake(server=TOOLS), ask(1, "tools/call"), fail(1, -32603), tools_list(2)],
    ),
    "INV-005": pair([handshake(), called({"isError": "no"})], [handshake(), called(TEXT)]),
    "INV-006": pair(
        [handshake(), ask(1, "x"), fail(1, "-32601")], [handshake(), ask(1, "x"), fail(1, -32601)]
    ),
    "INV-007": pair(
        [handshake(), ask(1, "tools/list"), fail(1, -32603, "Unknown method: tools/list")],
        [handshake(), ask(1, "nope/nope"), fail(1, -32601, "Method not found")],
    ),
}

MESSAGES = {
    "MSG-001": pair([handshake(), message("server", {"id": 1, "result": {}})], [handshake()]),
    "MSG-002": pair(
        [handshake(), raw("server", b'{"jsonrpc":"2.0","method":"x","params":{"a":NaN}}')],
        [handshake()],
    ),
    "MSG-003": pair(
        [handshake(), raw("server", b'{"jsonrpc":"2.0","method":"x","method":"y"}')],
        [handshake(), raw("server", b'{"jsonrpc": "2.0", "method": "x"}')],
    ),
    "MSG-004": pair([handshake(), ask(None, "ping")], [handshake(), ask("a", "ping")]),
    "MSG-005": pair(
        [handshake(), call(1, "ping", {}, {}), call(1, "ping", {}, {})],
        [handshake(), call(1, "ping", {}, {}), call("1", "ping", {}, {})],
    ),
    "MSG-006": pair([handshake(), ask(1, "ping"), answer("1", {})], [handshake()]),
    "MSG-007": pair(
        [handshake(), call(1, "ping", {}, {}), answer(1, {})],
        [handshake(), call(1, "ping", {}, {})],
    ),
    "MSG-008": pair(
        [handshake(), message("server", {"jsonrpc": "2.0", "result": {}})], [handshake()]
    ),
    "MSG-009": pair(
        [handshake(), ask(1, "tools/list"), call(2, "ping", {}, {})],
        [handshake(), ask(1, "ping"), ask(2, "ping"), answer(2, {}), answer(1, {})],
    ),
    "MSG-010": pair([handshake(), fail(None, -32700)], [handshake(), fail(ABSENT, -32700)]),
    "MSG-011": pair(
        [handshake(C), message("client", [{"jsonrpc": "2.0", "id": 1, "method": "ping"}])],
        [handshake(C), call(1, "ping", {}, {})],
    ),
    "MSG-012": pair([handshake(), call(1, "ping", {}, [])], [handshake()]),
    "MSG-013": pair(
        [discover(), modern(1, "resources/read"), fail(1, -32002)],
        [discover(), modern(1, "resources/read"), fail(1, -32602)],
    ),
    "MSG-014": pair(
        [discover(), modern(1, "tools/list"), fail(1, -32001)],
        [discover(), modern(1, "tools/list"), fail(1, -32603)],
    ),
    "MSG-015": pair(
        [modern(1, "tools/list"), fail(1, -32022)],
        [modern(1, "tools/list"), fail(1, -32022, data={"supported": [E], "requested": "x"})],
    ),
    "MSG-016": pair(
        [handshake(), tell("x", {"_meta": {"-bad": 1}})],
        [handshake(), tell("x", {"_meta": {"com.example/good": 1}})],
    ),
    "MSG-017": pair([handshake(), ask(1, "notifications/initialized")], [handshake()]),
}

LIFECYCLE = {
    "LIFE-001": pair(
        [initialize()[0], ask(1, "tools/list"), initialize()[1]],
        [handshake(), ask(1, "tools/list")],
    ),
    "LIFE-002": pair(
        [initialize(client={"roots": {}}), ask(1, "roots/list", by="server")],
        [handshake(client={"roots": {}}), ask(1, "roots/list", by="server")],
    ),
    "LIFE-003": pair([ask(1, "initialize", {"protocolVersion": D})], [initialize()]),
    "LIFE-004": pair(
        [initialize()[0], answer("init", {"protocolVersion": D, "capabilities": {}})],
        [initialize()],
    ),
    "LIFE-005": pair(
        [
            initialize()[0],
            answer("init", {"protocolVersion": "1.0", "capabilities": {}, "serverInfo": INFO}),
        ],
        [initialize(A)],
    ),
    "LIFE-006": pair(
        [initialize()[0], cancelled("init"), initialize()[1]],
        [handshake(), ask(1, "tools/list"), cancelled(1)],
    ),
    "LIFE-007": pair(
        [
            message("client", [{"jsonrpc": "2.0", "id": "init", "method": "initialize"}]),
            initialize(B)[1],
        ],
        [handshake(B)],
    ),
    "LIFE-008": pair(
        [handshake(), call(1, "ping", {}, {"pong": True})], [handshake(), call(1, "ping", {}, {})]
    ),
}

CAPABILITIES = {
    "CAP-001": pair(
        [handshake(), ask(1, "tools/list")], [handshake(server=TOOLS), ask(1, "tools/list")]
    ),
    "CAP-002": pair(
        [handshake(), ask(1, "roots/list", by="server")],
        [handshake(client={"roots": {}}), ask(1, "roots/list", by="server")],
    ),
    "CAP-003": pair(
        [handshake(server=TOOLS), changed()],
        [handshake(server={"tools": {"listChanged": True}}), changed()],
    ),
    "CAP-004": pair(
        [handshake(client={"roots": {}}), tell("notifications/roots/list_changed", by="client")],
        [
            handshake(client={"roots": {"listChanged": True}}),
            tell("notifications/roots/list_changed", by="client"),
        ],
    ),
}

PROGRESS = {
    "PROG-001": pair(
        [handshake(), tracked(1, "t"), progress("t", 2), progress("t", 2)],
        [handshake(), tracked(1, "t"), progress("t", 1), progress("t", 1.5)],
    ),
    "PROG-002": pair(
        [handshake(), tracked(1, 7), progress("7", 1)], [handshake(), tracked(1, 7), progress(7, 1)]
    ),
    "PROG-003": pair(
        [handshake(), tracked(1, "t"), answer(1, TEXT), progress("t", 1)],
        [handshake(), tracked(1, "t"), progress("t", 1), answer(1, TEXT)],
    ),
    "PROG-004": pair(
        [handshake(), tracked(1, "t"), tracked(2, "t")],
        [handshake(), tracked(1, "t"), answer(1, TEXT), tracked(2, "t")],
    ),
    "CANCEL-001": pair(
        [handshake(), ask(1, "tools/list"), cancelled("1")],
        [handshake(), ask(1, "tools/list"), cancelled(1)],
    ),
    "CANCEL-002": pair(
        [
            *(handshake(), ask(1, "tools/list"), cancelled(1, t=1.0)),
            *(ask(2, "ping", t=1.1), answer(2, {}, t=1.2), answer(1, {}, t=2.0)),
        ],
        [
            handshake(),
            ask(1, "tools/list"),
            cancelled(1, t=1.0),
            ask(2, "ping", t=1.1),
            answer(2, {}),
        ],
    ),
    "CANCEL-003": pair(
        [discover(), modern(1, "tools/list"), cancelled(1, by="server")],
        [discover(), listening(1), acknowledged(1), cancelled(1, by="server")],
    ),
}

PAGING = {
    "PAGE-001": pair(
        [handshake(server=TOOLS), page(1, None, "two"), page(2, "2", None)],
        [handshake(server=TOOLS), page(1, None, "two"), page(2, "two", None)],
    ),
    "PAGE-002": pair(
        [handshake(), call(1, "tools/list", {}, {"tools": [], "nextCursor": None})],
        [handshake(), page(1, None, "two")],
    ),
    "PAGE-003": pair(
        [handshake(), page(1, None, "a"), page(2, "a", "b"), page(3, "b", "a")],
        [handshake(), page(1, None, "a"), page(2, "a", None), page(3, None, "a")],
    ),
    "PAGE-004": pair(
        [
            modern_call(
                1, "tools/list", {}, complete(tools=[], nextCursor="a", cacheScope="public")
            ),
            modern_call(2, "tools/list", {"cursor": "a"}, complete(tools=[], cacheScope="private")),
        ],
        [
            modern_call(
                1, "tools/list", {}, complete(tools=[], nextCursor="a", cacheScope="public")
            ),
            modern_call(2, "tools/list", {"cursor": "a"}, complete(tools=[], cacheScope="public")),
        ],
    ),
}

TOOL_RULES = {
    "TOOL-001": pair(
        [handshake(), tools_list(1, TYPED_TOOL), called({"content": [], "structuredContent": {}})],
        [handshake(), tools_list(1, TYPED_TOOL), called({"structuredContent": {"sum": 3}})],
    ),
    "TOOL-002": pair(
        [handshake(), tools_list(1, {"name": "add", "inputSchema": {"type": "objekt"}})],
        [handshake(), tools_list(1, TOOL)],
    ),
    "TOOL-003": pair(
        [handshake(), tools_list(1, {"name": "add", "inputSchema": {}})],
        [handshake(), tools_list(1, TOOL)],
    ),
    "TOOL-004": pair(
        [handshake(), tools_list(1, {**TOOL, "name": "add numbers"})],
        [handshake(), tools_list(1, TOOL)],
    ),
    "TOOL-005": pair(
        [handshake(), tools_list(1, TOOL, TOOL)],
        [handshake(), tools_list(1, TOOL), tools_list(2, TOOL)],
    ),
}

CONTENT = {
    "CONTENT-001": pair(
        [handshake(), called({"content": [{"type": "image", "data": "?", "mimeType": "a/b"}]})],
        [handshake(), called({"content": [{"type": "image", "data": "AAAA", "mimeType": "a/b"}]})],
    ),
    "RES-001": pair(
        [handshake(), call(1, "resources/read", {}, {"contents": [{"uri": "a:b"}]})],
        [handshake(), call(1, "resources/read", {}, {"contents": [{"uri": "a:b", "text": ""}]})],
    ),
    "RES-002": pair(
        listed("resources/list", "resources", {"uri": "a:b"}),
        listed("resources/list", "resources", {"uri": "a:b", "name": "b"}),
    ),
    "PROMPT-001": pair(
        [handshake(), call(1, "prompts/get", {}, {"messages": [{"role": "user", "content": []}]})],
        [
            handshake(),
            call(
                1,
                "prompts/get",
                {},
                {"messages": [{"role": "user", "content": TEXT["content"][0]}]},
            ),
        ],
    ),
    "PROMPT-002": pair(
        listed("prompts/list", "prompts", {"name": "a", "arguments": [{}]}),
        listed("prompts/list", "prompts", {"name": "a", "arguments": [{"name": "b"}]}),
    ),
    "COMPLETE-001": pair(
        [handshake(), call(1, "completion/complete", {}, {"completion": {"values": ["x"] * 101}})],
        [handshake(), call(1, "completion/complete", {}, {"completion": {"values": ["x"]}})],
    ),
}

LOGGING = {
    "LOG-001": pair([handshake(), logged()], [handshake(server={"logging": {}}), logged()]),
    "LOG-002": pair([handshake(), logged("loud")], [handshake(), logged("alert")]),
    "LOG-003": pair(
        [handshake(), call(1, "logging/setLevel", {"level": "error"}, {}), logged("info")],
        [handshake(), call(1, "logging/setLevel", {"level": "info"}, {}), logged("error")],
    ),
    "LOG-004": pair(
        [modern(1, "tools/call"), logged()],
        [ask(1, "tools/call", {"_meta": meta(**{LOG_LEVEL: "info"})}), logged("error")],
    ),
}

STATELESS = {
    "META-001": pair([discover(), ask(1, "tools/list", {})], [discover()]),
    "META-002": pair([discover(), modern_call(1, "tools/list", {}, {})], [discover()]),
    "META-003": pair([discover(), modern_call(1, "tools/list", {}, {"tools": []})], [discover()]),
    "META-004": pair(
        [modern_call(1, "tools/list", {}, complete(tools=[], ttlMs=-1, cacheScope="public"))],
        [modern_call(1, "tools/list", {}, complete(tools=[], **CACHED))],
    ),
    "META-005": pair([discover(), ask(1, "roots/list", by="server")], [discover()]),
    "META-006": pair([discover(), answer(1, {}, by="client")], [discover()]),
    "META-007": pair(
        [modern_call(1, "server/discover", {}, complete(capabilities={}))], [discover()]
    ),
    "MRTR-001": pair([asking(1, "tools/list", **QUESTION)], [asking(1, **QUESTION)]),
    "MRTR-002": pair([asking()], [asking(requestState="s")]),
    "MRTR-003": pair(
        [modern(1, "tools/call"), answer(1, {"resultType": "input_required", **QUESTION})],
        [asking(**QUESTION)],
    ),
    "MRTR-004": pair(
        [
            asking(requestState="s", **QUESTION),
            retry(2, requestState="S", inputResponses={"q": {}}),
        ],
        [
            asking(requestState="s", **QUESTION),
            retry(2, requestState="s", inputResponses={"q": {}}),
        ],
    ),
    "SUBS-001": pair(
        [discover(), listening(1, toolsListChanged=True), changed(1), acknowledged(1)],
        [discover(), listening(1, toolsListChanged=True), acknowledged(1), changed(1)],
    ),
    "SUBS-002": pair(
        [discover(), listening(1, toolsListChanged=True), acknowledged(1), changed(1, "prompts")],
        [discover(), listening(1, toolsListChanged=True), acknowledged(1), changed(1)],
    ),
    "SUBS-003": pair(
        [
            discover(),
            listening(1),
            acknowledged(1),
            tell("notifications/message", {"level": "info", "_meta": {SUBSCRIPTION_ID: 1}}),
        ],
        [discover(), listening(1), acknowledged(1)],
    ),
}

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
NESTED_FORM = {"type": "object", "properties": {"name": {"type": "object"}}}
ELICITATION = {"mode": "url", "message": "m", "url": "https://example.org", "elicitationId": "e"}


def elicited(schema: Any, content: Any) -> list[Any]:
    return [
        handshake(client={"elicitation": {}}),
        ask(1, "elicitation/create", {"message": "m", "requestedSchema": schema}, by="server"),
        answer(1, {"action": "accept", "content": content}, by="client"),
    ]


SHAPES = {
    "SHAPE-001": pair(
        [handshake(), tools_list(1, {**TOOL, "annotations": {"readOnlyHint": "yes"}})],
        [handshake(), tools_list(1, {**TOOL, "annotations": {"readOnlyHint": True}, "new": 1})],
    ),
    "SHAPE-002": pair(
        [handshake(), tell("notifications/resources/updated", {"url": "a:b"})],
        [handshake(), tell("notifications/resources/updated", {"uri": "a:b"})],
    ),
    "SHAPE-003": pair(elicited(NESTED_FORM, {}), elicited(FORM, {})),
    "SHAPE-004": pair(
        [handshake(), ask(1, "tools/call", {"name": "add"}), fail(1, -32042, data={"url": "u"})],
        [
            handshake(),
            ask(1, "tools/call", {"name": "add"}),
            fail(1, -32042, data={"elicitations": [ELICITATION]}),
        ],
    ),
    "SHAPE-005": pair(
        [handshake(), call(1, "tools/call", {"name": "add", "arguments": None}, TEXT)],
        [handshake(), call(1, "tools/call", {"name": "add", "arguments": {}}, TEXT)],
    ),
    "SHAPE-006": pair(
        [
            handshake(),
            tell("notifications/cancelled", {"requestId": "init", "reason": 5}, by="client"),
        ],
        [handshake(), tell("notifications/roots/list_changed", by="client")],
    ),
    "SHAPE-007": pair(elicited(FORM, {"name": {"first": "A"}}), elicited(FORM, {"name": "A"})),
}

TRANSPORTS = {
    "STDIO-001": pair([raw("server", "Listening ..."), handshake()], [handshake()]),
    "STDIO-002": pair([handshake(), raw("client", "")], [handshake()]),
    "STDIO-003": pair(
        [handshake(), Trouble(error="truncated", detail="stdout ended in the middle of a line")],
        [handshake()],
    ),
}

SESSION = {"mcp-session-id": "s1", "mcp-protocol-version": D}
MODERN_HEADERS = {"mcp-protocol-version": E, "mcp-method": "tools/call", "mcp-name": "add"}
MODERN_CALL = modern(5, "tools/call", {"name": "add"})


def http_pair(violating: list[Any], conforming: list[Any], transport: str = "http") -> Pair:
    return pair(violating, conforming, transport)


def modern_post(without: str = "", **other: str) -> list[Any]:
    headers = {**MODERN_HEADERS, **{k.replace("_", "-"): v for k, v in other.items()}}
    headers.pop(without, None)
    return [*posted(5, MODERN_CALL, headers), *replied(5, answer(5, complete(**TEXT)))]


HTTP = {
    "HTTP-001": http_pair(
        [http_handshake(), posted(3, cancelled(1), SESSION), replied(3, status=200)],
        [http_handshake()],
    ),
    "HTTP-002": http_pair(
        [
            http_handshake(),
            posted(3, ask(1, "tools/list"), SESSION),
            replied(3, status=200, headers={"content-type": "text/html"}),
        ],
        [http_handshake()],
    ),
    "HTTP-003": http_pair(
        [http_handshake(), posted(3, ask(1, "ping"), {"accept": "application/json"})],
        [http_handshake(), got(3, SESSION)],
    ),
    "HTTP-004": http_pair([http_handshake(session="s 1")], [http_handshake()]),
    "HTTP-005": http_pair(
        [http_handshake(), posted(3, ask(1, "ping"), {"mcp-protocol-version": D})],
        [http_handshake(), posted(3, ask(1, "ping"), SESSION)],
    ),
    "HTTP-006": http_pair(
        [http_handshake(), posted(3, ask(1, "ping"), {"mcp-session-id": "s1"})], [http_handshake()]
    ),
    "HTTP-007": http_pair(
        [http_handshake(), posted(3, ask(1, "ping"), {**SESSION, "mcp-protocol-version": C})],
        [http_handshake()],
    ),
    "HTTP-008": http_pair(
        [http_handshake(), got(3, SESSION), event(3, logged(), "e"), event(3, logged(), "e")],
        [http_handshake(), got(3, SESSION), event(3, logged(), "e"), event(3, logged(), "f")],
    ),
    "HTTP-009": http_pair(
        [
            http_handshake(),
            got(3, SESSION),
            posted(4, ask(1, "ping"), SESSION),
            event(3, answer(1, {}), "e"),
        ],
        [http_handshake(), got(3, SESSION), event(3, logged(), "e")],
    ),
    "HTTP-010": http_pair([modern_post(mcp_protocol_version=D)], [modern_post()]),
    "HTTP-011": http_pair([modern_post("mcp-method")], [modern_post()]),
    "HTTP-012": http_pair([modern_post(mcp_name="sub")], [modern_post(mcp_name="=?base64?YWRk?=")]),
    "HTTP-013": http_pair(
        [modern_post(), posted(6, MODERN_CALL, MODERN_HEADERS), replied(6, fail(5, -32601), 200)],
        [modern_post(), posted(6, MODERN_CALL, MODERN_HEADERS), replied(6, fail(5, -32601), 404)],
    ),
    "HTTP-014": http_pair([modern_post(mcp_session_id="s1")], [modern_post()]),
    "HTTP-015": http_pair(
        [
            posted(5, MODERN_CALL, MODERN_HEADERS),
            replied(5, answer(5, complete(**TEXT)), headers={"mcp-session-id": "s1"}),
        ],
        [modern_post()],
    ),
    "SSE-001": http_pair(
        [got(1), event(1, logged(), "e"), handshake(A)],
        [
            got(1),
            SseEvent(stream=1, comment="hi"),
            SseEvent(stream=1, sse=Sse(event="endpoint"), data="/post"),
            handshake(A),
        ],
        "sse",
    ),
}

PAIRS: dict[str, Pair] = {
    **INVARIANTS,
    **MESSAGES,
    **LIFECYCLE,
    **CAPABILITIES,
    **PROGRESS,
    **PAGING,
    **TOOL_RULES,
    **CONTENT,
    **LOGGING,
    **STATELESS,
    **SHAPES,
    **TRANSPORTS,
    **HTTP,
}

__all__ = ["PAIRS", "Pair", "initialized"]
