"""STDIO, HTTP and SSE: pipes that carry only messages; headers and statuses where recorded."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.capture import Frame, HttpRequest, HttpResponse, SseEvent, Trouble
from mcptest.core.errors import ErrorKind
from mcptest.core.message import Kind
from mcptest.core.revision import HANDSHAKE_ERA, SINCE_MARCH_2025, STATELESS_ERA, Revision, Window
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity, Side
from mcptest.rules.declaration import MESSAGES, Check, Watching, session_rule
from mcptest.rules.protocol import PROTOCOL_VERSION
from mcptest.rules.session import NO_MESSAGE, NO_STREAM, Step
from mcptest.wire.correlation import IdSet
from mcptest.wire.mcp_headers import (
    JSON_TYPE,
    NAMED_BY,
    SSE_TYPE,
    decode_header_value,
    is_legal_session_id,
    media_type,
)

_stdio_rule = partial(
    session_rule, category="stdio", page="basic/transports#stdio", transports=("stdio",)
)

_line_rule = partial(_stdio_rule, listens=(*Kind, Frame), on_routine="count")


@_line_rule(
    "STDIO-001",
    "stdout carries only messages",
    side=Side.SERVER,
    sender="server",
    conversations="any",
    root_cause="banner",
)
def stdout_carries_messages_only(check: Check, step: Step) -> None:
    """Each line that a server writes to stdout is one MCP message.

    A banner, a log line or a stray print breaks clients that read line by line, and some of them
    drop the connection. An empty line and a log line in JSON count too. A message has `jsonrpc`, or
    at least only members of JSON-RPC. The rules about messages judge malformed messages.

    Fix: Write banners, logs and debug output to stderr, and write only JSON-RPC messages to stdout.
    """
    _judge_line(check, step, "stdout", "only JSON-RPC messages; diagnostics go to stderr")


def _judge_line(check: Check, step: Step, pipe: str, expected: str) -> None:
    if step.in_batch:
        return
    check.saw(step)
    if step.message is NO_MESSAGE:
        told = f"the {step.sender} wrote a line to {pipe} that is not a message"
        check.violated(step, told, expected)


@_line_rule("STDIO-002", "stdin carries only messages", side=Side.CLIENT, sender="client")
def stdin_carries_messages_only(check: Check, step: Step) -> None:
    """Each line that a client writes to the server's stdin is one MCP message.

    A server may end the session on anything else.

    Fix: Write only JSON-RPC messages to the server's stdin, one per line.
    """
    _judge_line(check, step, "stdin", "only JSON-RPC messages")


@_stdio_rule(
    "STDIO-003",
    "a message on stdout ends with a newline",
    side=Side.SERVER,
    listens=(*Kind, Trouble),
    conversations="any",
)
def messages_end_with_a_newline(check: Check, step: Step) -> None:
    """Newlines delimit messages, and the last message has one too.

    A client that reads lines never sees a message without its newline: to the client, the server is
    silent. A server that ends in the middle of a line has lost its message. A line that is cut
    because the server was asked to stop is not judged.

    Fix: Write `\\n` after every message and flush stdout.
    """
    if type(step.record) is Trouble:
        cut = step.record.error == ErrorKind.TRUNCATED.value
        if cut and step.record.sender == "server":
            check.violated(step, step.record.detail, "a newline after each message")
    elif step.sender == "server":
        check.saw(step)


_WITH_SESSIONS = Window(Revision.V2025_03_26, Revision.V2026_07_28)
_SESSION = "mcp-session-id"
_http_rule = partial(
    session_rule,
    category="http",
    transports=("http",),
    page="basic/transports#streamable-http",
    window=SINCE_MARCH_2025,
    listens=(HttpResponse,),
)
_client_rule = partial(_http_rule, side=Side.CLIENT)
_server_rule = partial(_http_rule, side=Side.SERVER)
_version_rule = partial(
    _client_rule,
    page="basic/transports#protocol-version-header",
    window=Window(Revision.V2025_06_18, Revision.V2026_07_28),
    listens=(HttpRequest, *MESSAGES),
    sender="client",
)
_stateless_rule = partial(_http_rule, page="basic/transports/streamable-http", window=STATELESS_ERA)
_stateless_client_rule = partial(
    _stateless_rule, side=Side.CLIENT, listens=(Kind.REQUEST,), sender="client"
)
_stateless_server_rule = partial(_stateless_rule, side=Side.SERVER)


@_server_rule(
    "HTTP-001",
    "an accepted notification or response gets status 202",
    listens=(HttpResponse, Frame, Trouble),
)
def notifications_get_202(check: Check, step: Step) -> None:
    """A POST with a notification (or a response) that the server accepts gets 202 and no body.

    With 200, clients look for a message in the body and find none. Some clients take a body with a
    202, even `null` or `Accepted`, for a message. A server may reject the message with an error
    status. The rules about responses judge a body that is a message.

    Fix: Return 202 with an empty body for notifications and responses.
    """
    posted, response = step.stream.posted, step.stream.response
    if posted is None or response is None or response.status >= 300:
        return
    if step.stream.wants_answer or posted.kind is Kind.INVALID:
        return
    if step.record is response:
        check.saw(step)
        if response.status != 202:
            told = f"the server answered a {posted.kind.value} with status {response.status}"
            check.violated(step, told, "202", actual=str(response.status))
    elif response.status == 202 and (body := _body_of(step)):
        told = f"the server answered a {posted.kind.value} with status 202 and a body"
        check.violated(step, told, "no body", actual=body)


def _body_of(step: Step) -> str:
    """The body of a response, where it is not a message."""
    record = step.record
    if isinstance(record, Frame):
        return show(record.raw, 100) if step.sender == "server" else ""
    is_body = isinstance(record, Trouble) and record.error == ErrorKind.BAD_CONTENT_TYPE.value
    return record.excerpt if is_body and isinstance(record, Trouble) else ""


@_server_rule("HTTP-002", "a request gets JSON or an event stream")
def requests_get_json_or_events(check: Check, step: Step) -> None:
    """The response to a POSTed request is `application/json` or `text/event-stream`.

    The content type tells the client how to read the body. The rule checks successful responses.

    Fix: Set `Content-Type` to `application/json` or `text/event-stream` on responses to requests.
    """
    posted, response = step.stream.posted, step.record
    if posted is None or posted.kind is not Kind.REQUEST:
        return
    if not isinstance(response, HttpResponse) or not 200 <= response.status < 300:
        return
    check.saw(step)
    kind = media_type(response.header("content-type"))
    if kind not in {JSON_TYPE, SSE_TYPE}:
        named = f"content type {kind!r}" if kind else "no content type"
        told = f"the server answered {posted.method!r} with {named}"
        actual = response.header("content-type") or "no content type"
        check.violated(step, told, f"{JSON_TYPE} or {SSE_TYPE}", actual=actual)


@_client_rule("HTTP-003", "the client accepts both JSON and event streams", listens=(HttpRequest,))
def client_accepts_both(check: Check, step: Step) -> None:
    """`Accept` lists `application/json` and `text/event-stream` on a POST, the latter on a GET.

    The server chooses the format of its response. Many servers reject a request that does not
    accept both.

    Fix: Send `Accept: application/json, text/event-stream` on each POST, and `Accept:
    text/event-stream` on each GET.
    """
    request = step.record
    if not isinstance(request, HttpRequest) or request.method not in {"POST", "GET"}:
        return
    check.saw(step)
    accept = step.stream.sent_header("accept")
    needed = [SSE_TYPE] if request.method == "GET" else [JSON_TYPE, SSE_TYPE]
    given = {media_type(part) for part in (accept or "").split(",")}
    missing = [kind for kind in needed if kind not in given]
    if missing:
        told = f"the client sent a {request.method} that does not accept {' and '.join(missing)}"
        check.violated(step, told, ", ".join(needed), actual=accept or "no Accept header")


@_server_rule(
    "HTTP-004",
    "a session id is visible ASCII",
    "#session-management",
    window=_WITH_SESSIONS,
    conversations="any",
)
def session_ids_are_visible_ascii(check: Check, step: Step) -> None:
    """`Mcp-Session-Id` has only characters from 0x21 to 0x7E.

    Not every HTTP library preserves other characters on the way back.

    Fix: Use a UUID, a hash or another string of visible ASCII characters as the session id.
    """
    response = step.record
    value = response.header(_SESSION) if isinstance(response, HttpResponse) else None
    if value is None:
        return
    check.saw(step)
    if not is_legal_session_id(value):
        told = "the server returned a session id that is not visible ASCII"
        check.violated(step, told, "0x21 to 0x7E", actual=value)


@_client_rule(
    "HTTP-005",
    "the client sends the session id with each request",
    "#session-management",
    window=_WITH_SESSIONS,
    listens=(HttpResponse, HttpRequest, *MESSAGES),
)
def session_id_is_repeated(check: Check) -> Watching:
    """After the server returns a session id with the initialize response, each request has it.

    This applies to POST, GET and DELETE. The session ends after a 404 or a DELETE. Servers answer a
    request without the id with 400, or take it for a new client. A GET that may have started before
    the client read the id is not judged.

    Fix: Store `Mcp-Session-Id` from the `initialize` response and send it with every later POST,
    GET and DELETE.
    """
    session_id: str | None = None
    while step := (yield):
        stream, record = step.stream, step.record
        if stream is NO_STREAM:
            continue
        if isinstance(record, HttpResponse):
            posted = stream.posted
            if posted is not None and posted.method == "initialize" and record.status < 300:
                session_id = record.header(_SESSION)
            elif record.status == 404 or (stream.request and stream.request.method == "DELETE"):
                session_id = None
            continue
        sent = stream.sent_header(_SESSION)
        unread = sent is None and _may_cross(step, check)
        if session_id is None or not _is_later_request(step) or unread:
            continue
        check.saw(step)
        if sent != session_id:
            fault = "without the session id" if sent is None else "with another session id"
            told, actual = f"the client sent a request {fault}", sent or "no Mcp-Session-Id header"
            check.violated(step, told, f"Mcp-Session-Id: {session_id}", actual=actual)


def _is_later_request(step: Step) -> bool:
    """A GET or DELETE, or a POST of something else than initialize."""
    if isinstance(step.record, HttpRequest):
        return step.record.method in {"GET", "DELETE"}
    return step.sender == "client" and step.method != "initialize" and not step.in_batch


def _may_cross(step: Step, check: Check) -> bool:
    """A GET that may have crossed the answer to initialize on its way.

    Some clients open their stream beside the handshake. When it arrives says nothing about what
    they knew then.
    """
    is_get = isinstance(step.record, HttpRequest) and step.record.method == "GET"
    return is_get and not check.session.answer_was_read


def _follows_the_handshake(step: Step, check: Check) -> bool:
    answered = step.stream.request is not None and check.session.initialize_answered
    return answered and _is_later_request(step)


@_version_rule("HTTP-006", "every request after initialize has MCP-Protocol-Version")
def version_header_is_sent(check: Check, step: Step) -> None:
    """From 2025-06-18 on, each HTTP request after the handshake has `MCP-Protocol-Version`.

    Without the header, a server assumes a client of 2025-03-26. A GET that may have started before
    the client read the response is not judged.

    Fix: Send `MCP-Protocol-Version` with the agreed version on every request after `initialize`.
    """
    if not _follows_the_handshake(step, check):
        return
    sent = step.stream.sent_header("mcp-protocol-version")
    if sent is None and _may_cross(step, check):
        return
    check.saw(step)
    if sent is None:
        expected = f"MCP-Protocol-Version: {check.session.agreed_version}"
        check.violated(step, "the client sent a request without MCP-Protocol-Version", expected)


@_version_rule("HTTP-007", "MCP-Protocol-Version is the agreed version", severity=Severity.SHOULD)
def version_header_is_kept(check: Check, step: Step) -> None:
    """`MCP-Protocol-Version` has the version that the initialize result named.

    A session agrees on its version once, but a server may treat each request by its header. A GET
    that may have started before the client read the response is not judged.

    Fix: Send the `protocolVersion` of the `initialize` result in the header, not the version that
    you offered.
    """
    if not _follows_the_handshake(step, check) or _may_cross(step, check):
        return
    sent = step.stream.sent_header("mcp-protocol-version")
    if sent is None:
        return
    check.saw(step)
    if sent != check.session.agreed_version:
        told = "the client sent another MCP-Protocol-Version than was agreed"
        check.violated(step, told, str(check.session.agreed_version), actual=sent)


@_server_rule(
    "HTTP-008",
    "event ids are unique within the session",
    "#resumability-and-redelivery",
    window=_WITH_SESSIONS,
    listens=(SseEvent, *Kind),
)
def event_ids_are_unique(check: Check) -> Watching:
    """No two server-sent events of a session have the same id, on any stream.

    A client resumes with the last id that it saw, and the server must know from it which stream
    that was. Streams that resume are exempt, because they repeat events on purpose.

    Fix: Take event ids from one counter per session, or put the stream's id into each event id.
    """
    seen = IdSet()
    while step := (yield):
        record = step.record
        sse = record.sse if isinstance(record, SseEvent | Frame) else None
        if sse is None or not sse.id or step.in_batch:
            continue
        if step.stream.sent_header("last-event-id") is not None:
            continue
        check.saw(step)
        if not seen.add(sse.id):
            told = f"the server used the event id {sse.id!r} again"
            check.violated(step, told, "a new id", actual=sse.id)


@_server_rule(
    "HTTP-009",
    "responses do not come on the GET stream",
    "#listening-for-messages-from-the-server",
    window=_WITH_SESSIONS,
    listens=MESSAGES,
    sender="server",
)
def get_streams_carry_no_responses(check: Check, step: Step) -> None:
    """A stream that the client opened with GET carries only requests and notifications.

    A response belongs on the stream of its request. It may come on a GET that resumes that stream
    with `Last-Event-ID`. The body of a rejected GET is exempt.

    Fix: Send each response on the stream of the POST that carried its request.
    """
    opened = step.stream.request
    if opened is None or opened.method != "GET":
        return
    check.saw(step)
    is_answer = step.kind is Kind.RESULT or step.kind is Kind.ERROR
    if is_answer and step.stream.sent_header("last-event-id") is None:
        told = "the server sent a response on the GET stream"
        check.violated(step, told, "the stream of its request")


@_server_rule(
    "SSE-001",
    "the first event is the endpoint",
    "#http-with-sse",
    window=HANDSHAKE_ERA,
    transports=("sse",),
    listens=(SseEvent, *Kind),
    conversations="any",
)
def endpoint_comes_first(check: Check) -> Watching:
    """On the old HTTP+SSE transport, the first event is `endpoint`, with the URI to POST to.

    Until then, a client cannot send anything.

    Fix: Send `event: endpoint` with the URI for POST requests as soon as the stream opens.
    """
    while step := (yield):
        record = step.record
        if not isinstance(record, SseEvent) and step.sender != "server":
            continue
        if isinstance(record, SseEvent) and record.comment is not None:
            continue
        check.saw(step)
        named = isinstance(record, SseEvent) and record.sse.event == "endpoint" and record.data
        if not named:
            told = "the server's first event is not an endpoint"
            check.violated(step, told, "event: endpoint")
        return


def _compare_header(check: Check, step: Step, header: str, wanted: Any) -> None:
    """The header is present and equals the member of the body, decoded first if it is encoded."""
    sent = step.stream.sent_header(header.lower())
    check.saw(step)
    if sent is None:
        told = f"the client sent {step.method!r} without {header}"
        check.violated(step, told, f"{header}: {wanted}")
        return
    try:
        plain = decode_header_value(sent)
    except ValueError as error:
        told = f"the client sent {header} with an invalid encoding: {error}"
        check.violated(step, told, actual=sent)
        return
    if plain != wanted:
        told = f"the client sent {header} that does not match the body"
        check.violated(step, told, str(wanted), actual=plain)


@_stateless_client_rule("HTTP-010", "MCP-Protocol-Version matches the body")
def version_header_matches_meta(check: Check, step: Step) -> None:
    """`MCP-Protocol-Version` is on each request and equals the version in its `_meta`.

    Proxies route by the header and servers by the body. If they differ, a server answers with
    status 400 and error -32020. Notifications are not judged, because the specification leaves them
    open.

    Fix: Set `MCP-Protocol-Version` to `io.modelcontextprotocol/protocolVersion` of the same
    request.
    """
    version = step.meta.get(PROTOCOL_VERSION)
    if step.stream.request is not None and isinstance(version, str):
        _compare_header(check, step, "MCP-Protocol-Version", version)


@_stateless_client_rule("HTTP-011", "Mcp-Method matches the body")
def method_header_matches(check: Check, step: Step) -> None:
    """`Mcp-Method` is on each request and equals its `method`, in the same case.

    Proxies route by the header and servers by the body.

    Fix: Set `Mcp-Method` to the `method` of the same request.
    """
    if step.stream.request is not None and step.method != "initialize":
        _compare_header(check, step, "Mcp-Method", step.method)


@_stateless_client_rule("HTTP-012", "Mcp-Name matches the body", methods=tuple(NAMED_BY))
def name_header_matches(check: Check, step: Step) -> None:
    """`Mcp-Name` repeats the name of the tool or prompt, the URI of the resource, or the task id.

    A value that HTTP cannot carry is base64 between `=?base64?` and `?=`. It is decoded before the
    comparison.

    Fix: Set `Mcp-Name` to `params.name`, `params.uri` or `params.taskId` of the same request,
    base64-encoded if HTTP cannot carry it.
    """
    name = step.params.get(NAMED_BY[step.method])
    if step.stream.request is not None and isinstance(name, str):
        _compare_header(check, step, "Mcp-Name", name)


_STATUS_OF: dict[int | None, int] = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}


@_stateless_server_rule(
    "HTTP-013", "errors have the matching HTTP status", listens=(Kind.ERROR,), sender="server"
)
def errors_have_their_status(check: Check, step: Step) -> None:
    """-32020, -32021 and -32022 come with status 400, an unknown method (-32601) with 404.

    Proxies and clients that look only at the status then still see the right thing.

    Fix: Return status 400 with -32020, -32021 and -32022, and status 404 with -32601.
    """
    code, response = step.error_code, step.stream.response
    expected = _STATUS_OF.get(code)
    if response is None or expected is None:
        return
    check.saw(step)
    if response.status != expected:
        told = f"the server sent error {code} with status {response.status}"
        check.violated(step, told, str(expected), actual=str(response.status))


@_stateless_client_rule(
    "HTTP-014",
    "the client uses only POST and no session id",
    severity=Severity.SHOULD,
    listens=(HttpRequest, Kind.REQUEST),
)
def client_uses_post_only(check: Check, step: Step) -> None:
    """In the stateless era, there is nothing to GET or DELETE, and there is no session.

    Servers answer other methods with 405 and ignore the session header.

    Fix: Send only POST requests, without `Mcp-Session-Id`.
    """
    if isinstance(step.record, HttpRequest):
        if step.record.method == "POST":
            return  # judged with its body, which tells the era
        check.violated(step, f"the client sent a {step.record.method} request", "POST")
    elif step.stream.request is not None:
        check.saw(step)
        if step.stream.sent_header("mcp-session-id") is not None:
            told = "the client sent a request with Mcp-Session-Id"
            check.violated(step, told, "no session header")


@_stateless_server_rule("HTTP-015", "the server returns no session id", severity=Severity.SHOULD)
def server_mints_no_session(check: Check, step: Step) -> None:
    """Responses to stateless requests have no `Mcp-Session-Id` header.

    There is no session, and a client might send the id back. Servers that speak both eras sometimes
    add one by mistake.

    Fix: Remove `Mcp-Session-Id` from responses to requests of a stateless revision.
    """
    posted = step.stream.posted
    if posted is None or not posted.stateless:
        return
    response = step.record
    check.saw(step)
    if isinstance(response, HttpResponse) and response.header("mcp-session-id") is not None:
        check.violated(step, "the server returned an Mcp-Session-Id header", "no session header")
