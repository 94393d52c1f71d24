"""Faults of the HTTP transports: statuses, headers, sessions, streams and authorization."""

from __future__ import annotations

from tests.mutants.mutant import TOKEN, mutant
from tests.mutants.seams import patch, question_of

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.mutants.seams import Fault, Obj

GUARDED = ("--token", TOKEN)
STREAMED = ("--response", "sse")


def _nothing(original: Any) -> Any:
    return lambda *words: None


def _rejects(place: str, when: Callable[[Any], bool], status: int) -> Fault:
    """Requests of which `when` holds are answered with a status, before all else."""

    def make(route: Any) -> Any:
        def routed(self: Any, request: Any, connection: Any) -> None:
            if when(request):
                connection.respond(status)
            else:
                route(self, request, connection)

        return routed

    return patch(place, make)


def _endpoint(when: Callable[[Any], bool], status: int) -> Fault:
    return _rejects("demo.http_server:DemoSite._endpoint", when, status)


# -- who may ask, and how ----------------------------------------------------------------------

mutant("HTTP-101", "any Origin may ask", patch("demo.http_server:check_sender", _nothing))
mutant(
    "HTTP-102",
    "GET is answered with 400",
    _endpoint(lambda request: request.method == "GET", 400),
    also="changes are announced on the GET stream, which is not to be had",
)
mutant(
    "HTTP-103",
    "DELETE is answered with 200",
    _endpoint(lambda request: request.method == "DELETE", 200),
    options=("--era", "stateless"),
)
mutant(
    "HTTP-129",
    "a message that is none is accepted",
    _endpoint(lambda request: b'"method": 7' in request.body, 202),
)


def _statuses(change: Callable[[int], int]) -> Fault:
    def make(respond: Any) -> Any:
        def responding(self: Any, status: int, *words: Any, **more: Any) -> None:
            respond(self, change(status), *words, **more)

        return responding

    return patch("http_connection:HttpConnection.respond", make)


mutant(
    "HTTP-001",
    "a notification is answered with 200",
    _statuses(lambda status: 200 if status == 202 else status),
)


def _as_text(respond: Any) -> Any:
    def responding(self: Any, status: int, body: bytes = b"", kind: str = "", **more: Any) -> None:
        is_prompt = b'"messages"' in body
        other = "text/plain" if is_prompt else "application/json"
        respond(self, status, body, other, **more)

    return responding


mutant(
    "HTTP-002",
    "a result is called plain text",
    patch("http_connection:HttpConnection.respond", _as_text),
    also="what is no message is not read as one, so there was no answer",
)

# -- sessions ----------------------------------------------------------------------------------


def _session_id(make_id: Callable[[], str]) -> Fault:
    def make(init: Any) -> Any:
        def made(self: Any, world: Any) -> None:
            init(self, world)
            self.identifier = make_id()

        return made

    return patch("demo.http_server:HttpSession.__init__", make)


def _counted() -> Callable[[], str]:
    count = [0]

    def next_id() -> str:
        count[0] += 1
        return f"session {count[0]}"

    return next_id


mutant("HTTP-004", "a session id has a space", _session_id(_counted()))
mutant(
    "HTTP-104",
    "a missing session id is answered with 404",
    _endpoint(
        lambda request: (
            request.method == "POST"
            and request.header("mcp-session-id") is None
            and b'"initialize"' not in request.body
        ),
        404,
    ),
)


def _unknown_is(status: int) -> Fault:
    def make(find: Any) -> Any:
        def finding(self: Any, request: Any) -> Any:
            from mcptest.servers.http_connection import Rejected

            try:
                return find(self, request)
            except Rejected as rejected:
                if rejected.status == 404:
                    raise Rejected(status, "There is no such session") from None
                raise

        return finding

    return patch("demo.http_server:Sessions._find", make)


mutant(
    "HTTP-105",
    "an unknown session is answered with 400",
    _unknown_is(400),
    also="a session that was ended is an unknown one",
)


def _lives_on(delete: Any) -> Any:
    def deleting(self: Any, request: Any, connection: Any) -> None:
        connection.respond(200)

    return deleting


mutant(
    "HTTP-106",
    "a session lives on after its end",
    patch("demo.http_server:Sessions.delete", _lives_on),
)
mutant(
    "HTTP-109",
    "every session has the same id",
    _session_id(lambda: "the-session"),
    also="one session takes the messages of the other",
)


def _any_version(check: Any) -> Any:
    return lambda request, negotiated: None


mutant(
    "HTTP-107",
    "any version header is taken",
    patch("demo.http_server:_check_version_header", _any_version),
)
mutant(
    "HTTP-108",
    "without a version header there is no answer",
    _endpoint(
        lambda request: (
            request.method == "POST"
            and request.header("mcp-protocol-version") is None
            and b'"ping"' in request.body
        ),
        400,
    ),
)

# -- streams -----------------------------------------------------------------------------------


def _open_after_ping(deliver: Any) -> Any:
    def delivering(self: Any, message: Obj) -> None:
        if isinstance(message, dict) and question_of(message).get("method") == "ping":
            self.send(message)
        else:
            deliver(self, message)

    return delivering


mutant(
    "HTTP-110",
    "a stream stays open after the answer",
    patch("demo.http_server:Post.deliver", _open_after_ping),
    options=STREAMED,
)


def _same_ids(send: Any) -> Any:
    def sending(self: Any, message: Any) -> None:
        self._last = 0
        send(self, message)

    return sending


mutant(
    "HTTP-008",
    "all events of a stream have one id",
    patch("demo.http_server:ServerStream.send", _same_ids),
    options=STREAMED,
)


def _on_the_get_stream(deliver: Any) -> Any:
    def delivering(self: Any, message: Obj) -> None:
        general = self._http_session._general
        asked = question_of(message).get("method") if isinstance(message, dict) else ""
        if asked == "resources/templates/list" and general is not None and general.attached:
            general.send(message)
            self.drop()
        else:
            deliver(self, message)

    return delivering


mutant(
    "HTTP-009",
    "a response comes on the GET stream",
    patch("demo.http_server:Post.deliver", _on_the_get_stream),
)


def _unprimed(attach: Any) -> Any:
    def attaching(self: Any, connection: Any, headers: Any, prime: bool) -> None:
        request = connection._request
        calls = request is not None and b'"tools/call"' in request.body
        attach(self, connection, headers, prime and calls)

    return attaching


mutant(
    "HTTP-131",
    "a stream does not begin with an id",
    patch("demo.http_server:ServerStream.attach", _unprimed),
    options=STREAMED,
)


def _pause_without_retry(pause: Any) -> Any:
    def pausing(self: Any) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end_stream()

    return pausing


mutant(
    "HTTP-132",
    "a stream is closed early without a word on when to return",
    patch("demo.http_server:ServerStream.pause", _pause_without_retry),
)


def _other_event(send: Any) -> Any:
    def sending(self: Any, message: Any) -> None:
        self._connection.stream(b"event: surprise\ndata: {}\n\n")
        send(self, message)

    return sending


mutant(
    "SSE-101",
    "an event has a name of its own",
    patch("demo.http_server:SseClient.send", _other_event),
)


def _message_first(begin: Any) -> Any:
    def beginning(self: Any) -> None:
        stream = self._connection.stream
        state = {"first": True}

        def streaming(data: bytes) -> None:
            if state["first"]:
                state["first"] = False
                stream(
                    b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/mutant"}\n\n'
                )
            stream(data)

        self._connection.stream = streaming
        begin(self)

    return beginning


mutant(
    "SSE-001",
    "a message comes before the endpoint",
    patch("demo.http_server:SseClient.begin", _message_first),
)

# -- the stateless era -------------------------------------------------------------------------


def _compares(change: Callable[[str, Any, str, Any], None]) -> Fault:
    """Put another comparison in place of that of one header and the body."""

    def make(compare: Any) -> Any:
        return lambda header, headers, expected: change(header, headers, expected, compare)

    return patch("demo.http_server:_compare", make)


def _skips(name: str, missing: bool) -> Callable[[str, Any, str, Any], None]:
    """A header that is missing, or one that differs, does not matter."""

    def change(header: str, headers: Any, expected: str, compare: Any) -> None:
        is_missing = headers.get(header.lower()) is None
        if header == name and is_missing is missing:
            return
        compare(header, headers, expected)

    return change


mutant(
    "HTTP-111", "the version header may differ", _compares(_skips("MCP-Protocol-Version", False))
)
mutant("HTTP-112", "the method header may be missing", _compares(_skips("Mcp-Method", True)))
mutant("HTTP-113", "the name header may be missing", _compares(_skips("Mcp-Name", True)))


def _other_method(header: str, headers: Any, expected: str, compare: Any) -> None:
    if header == "Mcp-Method" and headers.get("mcp-method") == "tools/list":
        return
    compare(header, headers, expected)


mutant("HTTP-114", "the method header may differ", _compares(_other_method))


def _other_name(header: str, headers: Any, expected: str, compare: Any) -> None:
    if header == "Mcp-Name" and headers.get("mcp-name") == "mcptest-another-name":
        return
    compare(header, headers, expected)


mutant("HTTP-115", "the name header may differ", _compares(_other_name))


def _not_decoded(decode: Any) -> Any:
    return lambda header, value: value if header == "Mcp-Name" else decode(header, value)


mutant(
    "HTTP-117",
    "base64 in a header is not decoded",
    patch("demo.http_server:decode_header", _not_decoded),
)


def _case_counts(by_name: Any) -> Any:
    return lambda headers: by_name([pair for pair in headers if pair[0] != "mCP-mETHOD"])


mutant(
    "HTTP-118",
    "names of headers are compared by case",
    patch("http_connection:headers_by_name", _case_counts),
)


def _any_case(header: str, headers: Any, expected: str, compare: Any) -> None:
    if header == "Mcp-Method" and (headers.get("mcp-method") or "").lower() == expected.lower():
        return
    compare(header, headers, expected)


mutant("HTTP-119", "values of headers are compared without case", _compares(_any_case))


def _param(change: Callable[[str, Any, Any, Any], None]) -> Fault:
    def make(compare: Any) -> Any:
        return lambda header, headers, value: change(header, headers, value, compare)

    return patch("demo.http_server:_compare_param", make)


def _may_be_missing(header: str, headers: Any, value: Any, compare: Any) -> None:
    if headers.get(header.lower()) is not None:
        compare(header, headers, value)


mutant("HTTP-120", "the header of an argument may be missing", _param(_may_be_missing))


def _must_be_there(header: str, headers: Any, value: Any, compare: Any) -> None:
    if value is None:
        from mcptest.servers.demo.jsonrpc import HEADER_MISMATCH, Refusal

        raise Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is missing")
    compare(header, headers, value)


mutant("HTTP-121", "the header of an argument that is not there is wanted", _param(_must_be_there))


def _bad_base64_is_fine(header: str, headers: Any, value: Any, compare: Any) -> None:
    if "!!!" not in (headers.get(header.lower()) or ""):
        compare(header, headers, value)


mutant("HTTP-122", "base64 that is none is taken", _param(_bad_base64_is_fine))
mutant(
    "HTTP-123",
    "42.0 in a header is not 42",
    patch("demo.http_server:_is_number", lambda same: lambda text, number: text == str(number)),
)
mutant(
    "HTTP-125",
    "a session id is looked up",
    _endpoint(lambda request: request.header("mcp-session-id") is not None, 404),
)
mutant(
    "HTTP-126",
    "Last-Event-ID is refused",
    _endpoint(lambda request: request.header("last-event-id") is not None, 400),
    options=("--era", "stateless"),
)


def _stream_headers(change: Callable[[Obj], None]) -> Fault:
    def make(head: Any) -> Any:
        def heading(self: Any, status: int, fields: Obj) -> bytes:
            change(fields)
            data: bytes = head(self, status, fields)
            return data

        return heading

    return patch("http_connection:HttpConnection._head", make)


mutant(
    "HTTP-127",
    "a proxy may keep a stream back",
    _stream_headers(lambda fields: fields.pop("X-Accel-Buffering", None)),
)
mutant(
    "HTTP-015",
    "a session id is given out",
    _stream_headers(lambda fields: fields.update({"Mcp-Session-Id": "a-session"})),
)


def _always_200(deliver: Any) -> Any:
    def delivering(self: Any, message: Obj) -> None:
        from mcptest.servers.demo.jsonrpc import encode

        unserved = message.get("error", {}).get("code") in {-32601, -32021}
        if unserved and not self._streaming:
            self._connection.respond(200, encode(message))
        else:
            deliver(self, message)

    return delivering


mutant(
    "HTTP-013",
    "an error travels with status 200",
    patch("demo.http_server:StatelessPost.deliver", _always_200),
)

# -- authorization -----------------------------------------------------------------------------


def _challenge(change: Callable[[str], str]) -> Fault:
    def change_fields(fields: Obj) -> None:
        if "WWW-Authenticate" in fields:
            fields["WWW-Authenticate"] = change(fields["WWW-Authenticate"])

    return _stream_headers(change_fields)


def _turned_away(when: Callable[[Any], bool], status: int) -> Fault:
    """Some of those without a token are told something else; status 0: they are let in."""

    def make(turn_away: Any) -> Any:
        def turning(request: Any, connection: Any, token: str, endpoint: str) -> bool:
            if not when(request):
                away: bool = turn_away(request, connection, token, endpoint)
                return away
            if status:
                connection.respond(status)
            return bool(status)

        return turning

    return patch("demo.http_server:is_turned_away", make)


def _has_no_token(request: Any) -> bool:
    return request.method == "POST" and request.header("authorization") is None


def _has_wrong_token(request: Any) -> bool:
    given = request.header("authorization")
    return given is not None and given != f"Bearer {TOKEN}"


mutant(
    "AUTH-001",
    "who has no token is told 403",
    _turned_away(_has_no_token, 403),
    options=GUARDED,
    also="with a session or without, it is the same request",
)
mutant("AUTH-004", "any token is taken", _turned_away(_has_wrong_token, 0), options=GUARDED)
mutant(
    "AUTH-007",
    "within a session, who has no token is told 403",
    _turned_away(
        lambda request: _has_no_token(request) and request.header("mcp-session-id") is not None, 403
    ),
    options=GUARDED,
    also="the rule about requests without a token asks within a session too",
)
mutant(
    "AUTH-002",
    "the challenge does not name the metadata",
    _challenge(lambda words: 'Bearer scope="demo"'),
    options=GUARDED,
)


def _metadata(**members: Any) -> Fault:
    def make(metadata: Any) -> Any:
        return lambda request, endpoint: {**metadata(request, endpoint), **members}

    return patch("http_connection:_metadata", make)


mutant(
    "AUTH-003",
    "the metadata names no authorization server",
    _metadata(authorization_servers=[]),
    options=GUARDED,
)
mutant(
    "AUTH-005",
    "the challenge names no scope",
    _challenge(lambda words: words.partition(", scope")[0]),
    options=GUARDED,
)
mutant(
    "AUTH-006",
    "the scope for refreshing is offered",
    _metadata(scopes_supported=["demo", "offline_access"]),
    options=GUARDED,
)
