"""STDIO, HTTP and SSE: pipes that carry messages only; headers and statuses as far as recorded."""

from __future__ import annotations

from functools import partial
from typing import Any

from mcptest.core.capture import Frame, HttpRequest, HttpResponse, SseEvent, Trouble
from mcptest.core.errors import ErrorKind
from mcptest.core.message import Kind
from mcptest.core.revision import (
    HANDSHAKE_ERA,
    SINCE_MARCH_2025,
    STATELESS_ERA,
    Era,
    Revision,
    Window,
)
from mcptest.core.safe_text import show
from mcptest.core.verdict import Severity, Side
from mcptest.rules.declaration import MESSAGES, Check, Watching, session_rule
from mcptest.rules.protocol import PROTOCOL_VERSION
from mcptest.rules.session import NO_MESSAGE, Step
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
    "stdout carries nothing but messages",
    side=Side.SERVER,
    sender="server",
    conversations="any",
    root_cause="banner",
)
def stdout_carries_messages_only(check: Check, step: Step) -> None:
    """Each line that a server writes to stdout is one MCP message.

    A banner, a log line or a stray print breaks clients that read line by line: some drop the
    connection. An empty line counts too, and so does a log line in JSON: a message has `jsonrpc`,
    or at least the members of JSON-RPC and no others. A malformed message is judged by the rules
    about messages. Diagnostics belong on stderr.
    """
    _judge_line(check, step, "stdout", "JSON-RPC messages only; diagnostics go to stderr")


def _judge_line(check: Check, step: Step, pipe: str, expected: str) -> None:
    if step.in_batch:
        return
    check.saw(step)
    if step.message is NO_MESSAGE:
        check.violated(step, f"a line on {pipe} that is no message", expected)


@_line_rule("STDIO-002", "stdin carries nothing but messages", side=Side.CLIENT, sender="client")
def stdin_carries_messages_only(check: Check, step: Step) -> None:
    """Each line that a client writes to the server's stdin is one MCP message.

    A server may end the session on anything else.
    """
    _judge_line(check, step, "stdin", "JSON-RPC messages only")


@_stdio_rule(
    "STDIO-003",
    "a message on stdout ends with a newline",
    side=Side.SERVER,
    listens=(*Kind, Trouble),
    conversations="any",
)
def messages_end_with_a_newline(check: Check, step: Step) -> None:
    """Messages are delimited by newlines, the last one too.

    A client that reads lines never sees a message whose newline does not come: for it the server is
    silent. A server that ends in the middle of a line has lost what it meant to say. A line that is
    cut because the server was told to end is not judged.
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
    "an accepted notification or response is answered with 202",
    listens=(HttpResponse, Frame, Trouble),
)
def notifications_get_202(check: Check, step: Step) -> None:
    """A POST that holds a notification (or a response) and is accepted gets 202 and no body.

    With 200 clients look for a message in the body and find none. A body below a 202, even `null`
    or `Accepted`, is taken for a message by some. An error status is fine for one that is refused.
    A body that is a message is judged by the rules about answers.
    """
    stream = step.stream
    posted = stream.posted if stream is not None else None
    response = stream.response if stream is not None else None
    if stream is None or posted is None or response is None or response.status >= 300:
        return
    if stream.wants_answer or posted.kind is Kind.INVALID:
        return
    if step.record is response:
        check.saw(step)
        if response.status != 202:
            told = f"a {posted.kind.value} is answered with status {response.status}"
            check.violated(step, told, "202", actual=str(response.status))
    elif response.status == 202 and (body := _body_of(step)):
        told = f"a {posted.kind.value} is answered with status 202 and a body"
        check.violated(step, told, "no body", actual=body)


def _body_of(step: Step) -> str:
    """What came below the head, where it is no message."""
    record = step.record
    if isinstance(record, Frame):
        return show(record.raw, 100) if step.sender == "server" else ""
    is_body = isinstance(record, Trouble) and record.error == ErrorKind.BAD_CONTENT_TYPE.value
    return record.excerpt if is_body and isinstance(record, Trouble) else ""


@_server_rule("HTTP-002", "a request is answered with JSON or an event stream")
def requests_get_json_or_events(check: Check, step: Step) -> None:
    """The answer to a POSTed request is `application/json` or `text/event-stream`.

    The content type tells the client how to read the body. Looked at are successful answers.
    """
    stream, response = step.stream, step.record
    posted = stream.posted if stream is not None else None
    if posted is None or posted.kind is not Kind.REQUEST:
        return
    if not isinstance(response, HttpResponse) or not 200 <= response.status < 300:
        return
    check.saw(step)
    kind = media_type(response.header("content-type"))
    if kind not in {JSON_TYPE, SSE_TYPE}:
        told = f"{posted.method!r} is answered with content type {kind or 'none'!r}"
        actual = response.header("content-type") or "no content type"
        check.violated(step, told, f"{JSON_TYPE} or {SSE_TYPE}", actual=actual)


@_client_rule("HTTP-003", "the client accepts both JSON and event streams", listens=(HttpRequest,))
def client_accepts_both(check: Check, step: Step) -> None:
    """`Accept` lists `application/json` and `text/event-stream` on a POST, the latter on a GET.

    The server chooses how to answer. Many refuse a request that does not accept both.
    """
    request = step.record
    if not isinstance(request, HttpRequest) or request.method not in {"POST", "GET"}:
        return
    check.saw(step)
    accept = step.stream.sent_header("accept") if step.stream else None
    needed = [SSE_TYPE] if request.method == "GET" else [JSON_TYPE, SSE_TYPE]
    given = {media_type(part) for part in (accept or "").split(",")}
    missing = [kind for kind in needed if kind not in given]
    if missing:
        told = f"{request.method} does not accept {' and '.join(missing)}"
        check.violated(step, told, ", ".join(needed), actual=accept or "no Accept header")


@_server_rule(
    "HTTP-004",
    "a session id is visible ASCII",
    "#session-management",
    window=_WITH_SESSIONS,
    conversations="any",
)
def session_ids_are_visible_ascii(check: Check, step: Step) -> None:
    """`Mcp-Session-Id` holds characters from 0x21 to 0x7E only.

    Others do not survive every HTTP library on the way back.
    """
    response = step.record
    value = response.header(_SESSION) if isinstance(response, HttpResponse) else None
    if value is None:
        return
    check.saw(step)
    if not is_legal_session_id(value):
        check.violated(step, "the session id is not visible ASCII", "0x21 to 0x7E", actual=value)


@_client_rule(
    "HTTP-005",
    "the client repeats the session id",
    "#session-management",
    window=_WITH_SESSIONS,
    listens=(HttpResponse, HttpRequest, *MESSAGES),
)
def session_id_is_repeated(check: Check) -> Watching:
    """Once the server gave a session id with the initialize response, each request carries it.

    That goes for POST, GET and DELETE. After 404 or a DELETE the session is over. Servers answer
    400 to a request without the id, or take it for a new client. A GET that may have been under way
    before the client had read the id is left alone.
    """
    session_id: str | None = None
    while step := (yield):
        stream, record = step.stream, step.record
        if stream is None:
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
            told = "a request without the session's id" if sent is None else "another session id"
            actual = sent or "no Mcp-Session-Id header"
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
    if step.stream is None or step.stream.request is None or not check.session.initialize_answered:
        return False
    return _is_later_request(step)


@_version_rule("HTTP-006", "every request after initialize names the protocol version")
def version_header_is_sent(check: Check, step: Step) -> None:
    """From 2025-06-18 on each HTTP request after the handshake has `MCP-Protocol-Version`.

    A server that finds none takes the client for one of 2025-03-26. A GET that may have been under
    way before the client had read the answer is left alone.
    """
    if step.stream is None or not _follows_the_handshake(step, check):
        return
    sent = step.stream.sent_header("mcp-protocol-version")
    if sent is None and _may_cross(step, check):
        return
    check.saw(step)
    if sent is None:
        expected = f"MCP-Protocol-Version: {check.session.agreed_version}"
        check.violated(step, "a request without MCP-Protocol-Version", expected)


@_version_rule("HTTP-007", "the version header keeps what was agreed", severity=Severity.SHOULD)
def version_header_is_kept(check: Check, step: Step) -> None:
    """`MCP-Protocol-Version` has the version that the initialize result named.

    A version is agreed once for a session; a server may treat each request by its header. A GET
    that may have been under way before the client had read the answer is left alone.
    """
    if step.stream is None or not _follows_the_handshake(step, check) or _may_cross(step, check):
        return
    sent = step.stream.sent_header("mcp-protocol-version")
    if sent is None:
        return
    check.saw(step)
    if sent != check.session.agreed_version:
        told = "the version header is not what was agreed"
        check.violated(step, told, str(check.session.agreed_version), actual=sent)


@_server_rule(
    "HTTP-008",
    "event ids are unique within the session",
    "#resumability-and-redelivery",
    window=_WITH_SESSIONS,
    listens=(SseEvent, *Kind),
)
def event_ids_are_unique(check: Check) -> Watching:
    """No two server-sent events of a session have the same id, whichever stream they came on.

    A client resumes with the last id it saw, and the server must know from it which stream that
    was. Streams that resume are left out: they repeat on purpose.
    """
    seen = IdSet()
    while step := (yield):
        record = step.record
        sse = record.sse if isinstance(record, SseEvent | Frame) else None
        if sse is None or not sse.id or step.in_batch:
            continue
        if step.stream is not None and step.stream.sent_header("last-event-id") is not None:
            continue
        check.saw(step)
        if not seen.add(sse.id):
            check.violated(
                step, f"the event id {sse.id!r} was used before", "a new id", actual=sse.id
            )


@_server_rule(
    "HTTP-009",
    "responses do not come on the GET stream",
    "#listening-for-messages-from-the-server",
    window=_WITH_SESSIONS,
    listens=MESSAGES,
    sender="server",
)
def get_streams_carry_no_responses(check: Check, step: Step) -> None:
    """A stream that the client opened with GET carries requests and notifications only.

    A response belongs on the stream of its request. It may come on a GET that resumes that stream
    with `Last-Event-ID`. The body of a GET that was refused is none of this.
    """
    stream = step.stream
    if stream is None or stream.request is None or stream.request.method != "GET":
        return
    check.saw(step)
    is_answer = step.kind is Kind.RESULT or step.kind is Kind.ERROR
    if is_answer and stream.sent_header("last-event-id") is None:
        check.violated(step, "a response on the GET stream", "the stream of its request")


@_server_rule(
    "SSE-001",
    "the first event names the endpoint",
    "#http-with-sse",
    window=HANDSHAKE_ERA,
    transports=("sse",),
    listens=(SseEvent, *Kind),
    conversations="any",
)
def endpoint_comes_first(check: Check) -> Watching:
    """On the old HTTP+SSE transport the first event is `endpoint`, with the URI to POST to.

    Until then a client has no place to send anything.
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
            check.violated(step, "the first event is no endpoint", "event: endpoint")
        return


def _compare_header(check: Check, step: Step, header: str, wanted: Any) -> None:
    """The header is there and says the same as the body, decoded first if it is encoded."""
    sent = step.stream.sent_header(header.lower()) if step.stream is not None else None
    check.saw(step)
    if sent is None:
        check.violated(step, f"{step.method!r} without {header}", f"{header}: {wanted}")
        return
    try:
        plain = decode_header_value(sent)
    except ValueError as error:
        check.violated(step, f"{header} can't be decoded: {error}", actual=sent)
        return
    if plain != wanted:
        check.violated(step, f"{header} does not match the body", str(wanted), actual=plain)


def _is_posted(step: Step) -> bool:
    return step.stream is not None and step.stream.request is not None


@_stateless_client_rule("HTTP-010", "every POST names the version of its body")
def version_header_matches_meta(check: Check, step: Step) -> None:
    """`MCP-Protocol-Version` is on each request and equals the version in its `_meta`.

    Proxies route by the header and servers by the body; where they differ a server answers 400
    with -32020. Notifications are not judged: the specification leaves them open.
    """
    version = step.meta.get(PROTOCOL_VERSION)
    if _is_posted(step) and isinstance(version, str):
        _compare_header(check, step, "MCP-Protocol-Version", version)


@_stateless_client_rule("HTTP-011", "Mcp-Method matches the body")
def method_header_matches(check: Check, step: Step) -> None:
    """`Mcp-Method` is on each request and equals its `method`, in the same case."""
    if _is_posted(step) and step.method != "initialize":
        _compare_header(check, step, "Mcp-Method", step.method)


@_stateless_client_rule("HTTP-012", "Mcp-Name matches the body", methods=tuple(NAMED_BY))
def name_header_matches(check: Check, step: Step) -> None:
    """`Mcp-Name` repeats the name of the tool or prompt, the URI of the resource, the task's id.

    A value that HTTP can't carry is base64 between `=?base64?` and `?=`; it is decoded before it
    is compared.
    """
    name = step.params.get(NAMED_BY[step.method])
    if _is_posted(step) and isinstance(name, str):
        _compare_header(check, step, "Mcp-Name", name)


_STATUS_OF: dict[int | None, int] = {-32020: 400, -32021: 400, -32022: 400, -32601: 404}


@_stateless_server_rule(
    "HTTP-013", "errors travel with their HTTP status", listens=(Kind.ERROR,), sender="server"
)
def errors_have_their_status(check: Check, step: Step) -> None:
    """-32020, -32021 and -32022 come with status 400, an unknown method (-32601) with 404.

    Proxies and clients that look at the status alone then still see the right thing.
    """
    code = step.error_code
    response = step.stream.response if step.stream is not None else None
    expected = _STATUS_OF.get(code)
    if response is None or expected is None:
        return
    check.saw(step)
    if response.status != expected:
        told = f"error {code} with status {response.status}"
        check.violated(step, told, str(expected), actual=str(response.status))


@_stateless_client_rule(
    "HTTP-014",
    "the client uses POST only and no session",
    severity=Severity.SHOULD,
    listens=(HttpRequest, Kind.REQUEST),
)
def client_uses_post_only(check: Check, step: Step) -> None:
    """In the stateless era there is nothing to GET or DELETE, and no session to name.

    Servers answer 405 to other methods and ignore the session header.
    """
    if isinstance(step.record, HttpRequest):
        if step.record.method == "POST":
            return  # judged with its body, which tells the era
        check.violated(step, f"{step.record.method} is used", "POST")
    elif _is_posted(step) and step.stream is not None:
        check.saw(step)
        if step.stream.sent_header("mcp-session-id") is not None:
            check.violated(step, "a request with Mcp-Session-Id", "no session header")


@_stateless_server_rule("HTTP-015", "the server gives out no session id", severity=Severity.SHOULD)
def server_mints_no_session(check: Check, step: Step) -> None:
    """Answers to stateless requests have no `Mcp-Session-Id` header.

    There is no session to name, and a client might send it back. Servers that speak both eras
    sometimes add one by mistake.
    """
    posted = step.stream.posted if step.stream is not None else None
    revision = posted.revision if posted is not None else None
    if revision is None or revision.era is not Era.STATELESS:
        return
    response = step.record
    check.saw(step)
    if isinstance(response, HttpResponse) and response.header("mcp-session-id") is not None:
        check.violated(step, "an answer with Mcp-Session-Id", "no session header")
