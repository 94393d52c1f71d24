"""HTTP and SSE: headers and statuses of the transports with a handshake, as far as recorded."""

from __future__ import annotations

from mcptest.model.capture import Frame, HttpRequest, HttpResponse, SseEvent, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.message import Kind
from mcptest.model.revision import Revision, Window
from mcptest.model.show import show
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.session import Step
from mcptest.wire.correlation import IdSet
from mcptest.wire.http_rules import JSON_TYPE, SSE_TYPE, is_legal_session_id, media_type

_SPEC = "basic/transports#streamable-http"
_WITH_SESSIONS = Window(Revision.V2025_03_26, Revision.V2026_07_28)
_WITH_VERSION_HEADER = Window(Revision.V2025_06_18, Revision.V2026_07_28)
_MESSAGES = (Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR)
_SESSION = "mcp-session-id"


def _has(accept: str | None, kind: str) -> bool:
    return kind in {media_type(part) for part in (accept or "").split(",")}


@session_rule(
    "HTTP-001",
    "an accepted notification or response is answered with 202",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=Window(since=Revision.V2025_03_26),
    transports=("http",),
    listens=(HttpResponse, Frame, Trouble),
)
def notifications_get_202(check: Check) -> Watching:
    """A POST that holds a notification (or a response) and is accepted gets 202 and no body.

    With 200 clients look for a message in the body and find none. A body below a 202, even `null`
    or `Accepted`, is taken for a message by some. An error status is fine for one that is refused.
    A body that is a message is judged by the rules about answers.
    """
    while step := (yield):
        stream = step.stream
        posted = stream.posted if stream is not None else None
        response = stream.response if stream is not None else None
        if stream is None or posted is None or response is None or response.status >= 300:
            continue
        if stream.wants_answer or posted.kind is Kind.INVALID:
            continue
        if step.record is response:
            check.saw(step)
            if response.status != 202:
                check.violated(
                    step,
                    f"a {posted.kind.value} is answered with status {response.status}",
                    expected="202",
                    actual=str(response.status),
                )
        elif response.status == 202 and (body := _body_of(step)):
            check.violated(
                step,
                f"a {posted.kind.value} is answered with status 202 and a body",
                expected="no body",
                actual=body,
            )


def _body_of(step: Step) -> str:
    """What came below the head, where it is no message."""
    record = step.record
    if isinstance(record, Frame):
        return show(record.raw, 100) if step.sender == "server" else ""
    is_body = isinstance(record, Trouble) and record.error == ErrorKind.BAD_CONTENT_TYPE.value
    return record.excerpt if is_body and isinstance(record, Trouble) else ""


@session_rule(
    "HTTP-002",
    "a request is answered with JSON or an event stream",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec=_SPEC,
    window=Window(since=Revision.V2025_03_26),
    transports=("http",),
    listens=(HttpResponse,),
)
def requests_get_json_or_events(check: Check) -> Watching:
    """The answer to a POSTed request is `application/json` or `text/event-stream`.

    The content type tells the client how to read the body. Looked at are successful answers.
    """
    while step := (yield):
        stream, response = step.stream, step.record
        posted = stream.posted if stream is not None else None
        if posted is None or posted.kind is not Kind.REQUEST:
            continue
        if not isinstance(response, HttpResponse) or not 200 <= response.status < 300:
            continue
        check.saw(step)
        kind = media_type(response.header("content-type"))
        if kind not in {JSON_TYPE, SSE_TYPE}:
            check.violated(
                step,
                f"{posted.method!r} is answered with content type {kind or 'none'!r}",
                expected=f"{JSON_TYPE} or {SSE_TYPE}",
                actual=response.header("content-type") or "no content type",
            )


@session_rule(
    "HTTP-003",
    "the client accepts both JSON and event streams",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec=_SPEC,
    window=Window(since=Revision.V2025_03_26),
    transports=("http",),
    listens=(HttpRequest,),
)
def client_accepts_both(check: Check) -> Watching:
    """`Accept` lists `application/json` and `text/event-stream` on a POST, the latter on a GET.

    The server chooses how to answer. Many refuse a request that does not accept both.
    """
    while step := (yield):
        request = step.record
        if not isinstance(request, HttpRequest) or request.method not in {"POST", "GET"}:
            continue
        check.saw(step)
        accept = step.stream.sent_header("accept") if step.stream else None
        needed = [SSE_TYPE] if request.method == "GET" else [JSON_TYPE, SSE_TYPE]
        missing = [kind for kind in needed if not _has(accept, kind)]
        if missing:
            check.violated(
                step,
                f"{request.method} does not accept {' and '.join(missing)}",
                expected=", ".join(needed),
                actual=accept or "no Accept header",
            )


@session_rule(
    "HTTP-004",
    "a session id is visible ASCII",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#session-management",
    window=_WITH_SESSIONS,
    transports=("http",),
    listens=(HttpResponse,),
)
def session_ids_are_visible_ascii(check: Check) -> Watching:
    """`Mcp-Session-Id` holds characters from 0x21 to 0x7E only.

    Others do not survive every HTTP library on the way back.
    """
    while step := (yield):
        response = step.record
        value = response.header(_SESSION) if isinstance(response, HttpResponse) else None
        if value is None:
            continue
        check.saw(step)
        if not is_legal_session_id(value):
            check.violated(
                step, "the session id is not visible ASCII", expected="0x21 to 0x7E", actual=value
            )


@session_rule(
    "HTTP-005",
    "the client repeats the session id",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/transports#session-management",
    window=_WITH_SESSIONS,
    transports=("http",),
    listens=(HttpResponse, HttpRequest, *_MESSAGES),
)
def session_id_is_repeated(check: Check) -> Watching:
    """Once the server gave a session id with the initialize response, each request carries it.

    That goes for POST, GET and DELETE. After 404 or a DELETE the session is over. Servers answer
    400 to a request without the id, or take it for a new client. A GET that may have been under way
    before the client had read the id is left alone.
    """
    session_id: str | None = None
    crossing = _Crossing()
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
        may_cross = crossing.may_be(step)
        if session_id is None or not _is_later_request(step) or (may_cross and sent is None):
            continue
        check.saw(step)
        if sent != session_id:
            check.violated(
                step,
                "a request without the session's id" if sent is None else "another session id",
                expected=f"Mcp-Session-Id: {session_id}",
                actual=sent or "no Mcp-Session-Id header",
            )


def _is_later_request(step: Step) -> bool:
    """A GET or DELETE, or a POST of something else than initialize."""
    if isinstance(step.record, HttpRequest):
        return step.record.method in {"GET", "DELETE"}
    return step.sender == "client" and step.method != "initialize" and not step.in_batch


class _Crossing:
    """Tells which GET may have crossed the answer to initialize on its way.

    Some clients open their stream beside the handshake. When it arrives says nothing about what
    they knew then. Whoever sends `notifications/initialized`, or any message but a ping, has read
    the answer.
    """

    def __init__(self) -> None:
        self._answer_was_read = False

    def may_be(self, step: Step) -> bool:
        if isinstance(step.record, HttpRequest):
            return step.record.method == "GET" and not self._answer_was_read
        if step.sender == "client" and step.method == "initialize":
            self._answer_was_read = False
        elif step.sender == "client" and step.method != "ping":
            self._answer_was_read = True
        return False


def _follows_the_handshake(step: Step, check: Check) -> bool:
    if step.stream is None or step.stream.request is None or not check.session.initialize_answered:
        return False
    return _is_later_request(step)


@session_rule(
    "HTTP-006",
    "every request after initialize names the protocol version",
    category="http",
    severity=Severity.MUST,
    side=Side.CLIENT,
    spec="basic/transports#protocol-version-header",
    window=_WITH_VERSION_HEADER,
    transports=("http",),
    listens=(HttpRequest, *_MESSAGES),
    sender="client",
)
def version_header_is_sent(check: Check) -> Watching:
    """From 2025-06-18 on each HTTP request after the handshake has `MCP-Protocol-Version`.

    A server that finds none takes the client for one of 2025-03-26. A GET that may have been under
    way before the client had read the answer is left alone.
    """
    crossing = _Crossing()
    while step := (yield):
        may_cross = crossing.may_be(step)
        if not _follows_the_handshake(step, check) or step.stream is None:
            continue
        sent = step.stream.sent_header("mcp-protocol-version")
        if may_cross and sent is None:
            continue
        check.saw(step)
        if sent is None:
            check.violated(
                step,
                "a request without MCP-Protocol-Version",
                expected=f"MCP-Protocol-Version: {check.session.agreed_version}",
            )


@session_rule(
    "HTTP-007",
    "the version header keeps what was agreed",
    category="http",
    severity=Severity.SHOULD,
    side=Side.CLIENT,
    spec="basic/transports#protocol-version-header",
    window=_WITH_VERSION_HEADER,
    transports=("http",),
    listens=(HttpRequest, *_MESSAGES),
    sender="client",
)
def version_header_is_kept(check: Check) -> Watching:
    """`MCP-Protocol-Version` has the version that the initialize result named.

    A version is agreed once for a session; a server may treat each request by its header. A GET
    that may have been under way before the client had read the answer is left alone.
    """
    crossing = _Crossing()
    while step := (yield):
        may_cross = crossing.may_be(step)
        if may_cross or not _follows_the_handshake(step, check) or step.stream is None:
            continue
        sent = step.stream.sent_header("mcp-protocol-version")
        if sent is None:
            continue
        check.saw(step)
        if sent != check.session.agreed_version:
            check.violated(
                step,
                "the version header is not what was agreed",
                expected=str(check.session.agreed_version),
                actual=sent,
            )


@session_rule(
    "HTTP-008",
    "event ids are unique within the session",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#resumability-and-redelivery",
    window=_WITH_SESSIONS,
    transports=("http",),
    listens=(SseEvent, *tuple(Kind)),
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
                step, f"the event id {sse.id!r} was used before", expected="a new id", actual=sse.id
            )


@session_rule(
    "HTTP-009",
    "responses do not come on the GET stream",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#listening-for-messages-from-the-server",
    window=_WITH_SESSIONS,
    transports=("http",),
    listens=(Kind.REQUEST, Kind.NOTIFICATION, Kind.RESULT, Kind.ERROR),
    sender="server",
)
def get_streams_carry_no_responses(check: Check) -> Watching:
    """A stream that the client opened with GET carries requests and notifications only.

    A response belongs on the stream of its request. It may come on a GET that resumes that stream
    with `Last-Event-ID`. The body of a GET that was refused is none of this.
    """
    while step := (yield):
        stream = step.stream
        if stream is None or stream.request is None or stream.request.method != "GET":
            continue
        check.saw(step)
        is_answer = step.kind is Kind.RESULT or step.kind is Kind.ERROR
        if is_answer and stream.sent_header("last-event-id") is None:
            check.violated(
                step, "a response on the GET stream", expected="the stream of its request"
            )


@session_rule(
    "SSE-001",
    "the first event names the endpoint",
    category="http",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic/transports#http-with-sse",
    window=Window(until=Revision.V2026_07_28),
    transports=("sse",),
    listens=(SseEvent, *tuple(Kind)),
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
            check.violated(step, "the first event is no endpoint", expected="event: endpoint")
        return
