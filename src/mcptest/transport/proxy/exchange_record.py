"""The record of one exchange that goes through an HTTP proxy: a copy, in bounded memory.

What is too large to be kept is told and still passed on: nothing in here touches the stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec

from mcptest.core.capture import AnyRecord, Frame, Headers, HttpRequest, Note, SseEvent
from mcptest.core.errors import ErrorKind, UsageError
from mcptest.core.limits import DEFAULT_LIMITS, Limits
from mcptest.core.safe_text import show
from mcptest.transport.base import Clock, Sink
from mcptest.transport.egress import Origin, Url
from mcptest.transport.http.response import Answer, EnoughError
from mcptest.transport.listener import LOOPBACK, foreign_header
from mcptest.wire.http1 import FRAMING_HEADERS, RequestHead, ResponseHead, WireError
from mcptest.wire.mcp_headers import SESSION_HEADER

# -- Who may use a proxy, and what of a request and an answer has to be said differently on the --

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "host", "origin"}
)
_FROM_NEAR = frozenset({"same-origin", "same-site", "none"})
_PORT = re.compile(r"[0-9]{1,5}")


class RefusedRequest(Exception):  # noqa: N818 - an answer, not a defect
    """The request is not passed on: the status to answer with before hanging up, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


def listening_address(words: str) -> tuple[str, int]:
    """`HOST:PORT` of --listen; only on this machine, since whoever reaches it reaches the server"""
    host, separator, port = words.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not _PORT.fullmatch(port) or int(port) > 65535:
        raise UsageError(f"--listen takes HOST:PORT, not {show(words, 80)!r}")
    if host not in LOOPBACK:
        raise UsageError(
            f"--listen works on this machine only, not on {show(host, 80)!r}",
            hint="use 127.0.0.1, ::1 or localhost; port 0 picks a free port",
        )
    return host, int(port)


def check_sender(head: RequestHead) -> None:
    """Raises RefusedRequest unless the request came from this machine and no foreign page."""
    if head.header("host") is None:  # more than one is refused when the request is read
        raise RefusedRequest(400, "the Host header is missing")
    foreign = foreign_header(head.headers, "localhost")
    if foreign is not None:
        raise RefusedRequest(403, f"{foreign[0]} {show(foreign[1], 80)!r} is not this machine")
    site = head.header("sec-fetch-site")
    if head.header("origin") is None and site is not None and site not in _FROM_NEAR:
        raise RefusedRequest(403, "a page from another site sent this")


def upstream_head(
    head: RequestHead, server: Origin, ours: Origin, extra: Mapping[str, str]
) -> bytes:
    """The head as the server gets it: one connection for this request, everything else kept."""
    dropped = _HOP_BY_HOP | {name.lower() for name in extra}
    fields = [("Host", server.authority)]
    origin = head.header("origin")
    if origin is not None:
        # A page that came through us is at home on the server.
        fields.append(("Origin", str(server) if origin == str(ours) else origin))
    fields += [(name, value) for name, value in head.headers if name.lower() not in dropped]
    # What a client sent is held as latin-1, what the user wrote is text.
    fields += [(name, value.encode().decode("latin-1")) for name, value in extra.items()]
    fields.append(("Connection", "close"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{head.method} {head.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


def downstream_fields(headers: Headers, server: Origin) -> list[tuple[str, str]]:
    """The headers of an answer without those of its connection; the caller frames the body."""
    fields = []
    for name, value in headers:
        key = name.lower()
        if key in FRAMING_HEADERS or key in _HOP_BY_HOP:
            continue
        fields.append((name, through_us(value, server) if key == "location" else value))
    return fields


def through_us(url: str, server: Origin) -> str:
    """A URL that the server gave. One of its own is cut to its path, which leads here."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url
    if parts.scheme not in {"http", "https"} or port != server.port:
        return url
    host = (parts.hostname or "").lower()
    if host != server.host and not {host, server.host} <= LOOPBACK:
        return url
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.path or '/'}{query}"


# -- Which session of the capture an HTTP exchange belongs to ------------------------------------

_SESSION = SESSION_HEADER.lower()
_KEPT = 10_000
"""Names of sessions that are remembered. Those of the oldest are forgotten first."""
_IN_ALL = 3
"""All unfinished copies together may hold this many times the limit for one."""


class RecordedSession(msgspec.Struct, eq=False):
    sink: Sink
    legacy: bool = False
    spoken: bool = False
    """Whether a message was sent in it, and not only looked around."""


class SessionBook(msgspec.Struct, eq=False):
    """Finds or begins the session of each exchange; what all records of a proxy share."""

    server: Url
    begin: Callable[[], Sink]
    begins_session: Callable[[bytes], bool]
    """Whether a body is the first message of one."""
    legacy: bool = False
    limits: Limits = DEFAULT_LIMITS
    clock: Clock = msgspec.field(default_factory=Clock)
    streams: int = 0
    held: int = 0
    named: dict[str, RecordedSession] = {}
    """By session id, or by the path of an endpoint."""
    nameless: RecordedSession | None = None
    """The session of requests that name none: the last that began and got no name."""

    def of_request(self, head: RequestHead, body: bytes) -> RecordedSession:
        name = head.header(_SESSION) or head.target
        session = self.named.get(name)
        if session is None:
            is_get = self.legacy and head.method == "GET"
            is_stream = is_get and head.target == self.server.target
            begins = is_stream or self.begins_session(body)
            session = self._of_nameless(begins=begins)
        session.spoken = session.spoken or bool(body)
        return session

    def answered(self, session: RecordedSession, headers: Headers) -> None:
        """The server may have given the session its name."""
        for key, value in headers:
            if key.lower() == _SESSION:
                self._name(value, session)

    def note(self, text: str) -> None:
        """Something that belongs to no exchange."""
        self._of_nameless(begins=False).sink(Note(t=self.clock(), text=text))

    def hold(self, size: int) -> bool:
        """Count some more bytes of copies, or fewer; False when that is more than may be held."""
        self.held += size
        return self.held <= _IN_ALL * self.limits.message_bytes

    def _of_nameless(self, *, begins: bool) -> RecordedSession:
        session = self.nameless
        if session is None or (begins and session.spoken):
            session = self.nameless = self._begun()
        return session

    def _begun(self) -> RecordedSession:
        plain = self.begin()
        if not self.legacy:
            return RecordedSession(plain)

        def sink(record: AnyRecord) -> None:
            plain(record)
            if type(record) is SseEvent and record.sse.event == "endpoint":
                try:
                    path = self.server.join(record.data).target
                except ValueError:
                    path = through_us(record.data, self.server.origin)
                self._name(path, session)

        session = RecordedSession(sink, legacy=True)
        return session

    def _name(self, name: str, session: RecordedSession) -> None:
        self.named.setdefault(name, session)
        if self.nameless is session:
            self.nameless = None
        if len(self.named) > _KEPT:
            del self.named[next(iter(self.named))]


# -- The record of one exchange that goes through an HTTP proxy ----------------------------------


class ExchangeRecord:
    """Request first, then its answer; whatever happens, each stream that began also ends."""

    def __init__(self, book: SessionBook, head: RequestHead, server: Origin) -> None:
        book.streams += 1
        self._book = book
        self._stream = book.streams
        self._head = head
        self._url = f"{server}{head.target}"
        self._began = book.clock()
        self._pieces: list[bytes] | None = []
        self._held = 0
        self._session: RecordedSession | None = None
        self._answer: Answer | None = None
        self._over = False

    # -- the request -----------------------------------------------------------------------

    def body(self, piece: bytes) -> None:
        if self._pieces is None:
            return
        self._pieces.append(piece)
        if not self._hold(self._held + len(piece)):
            self._pieces = None
            self._hold(0)

    def sent(self) -> Answer:
        """The request is complete, or will never be: say it."""
        if self._answer is not None:
            return self._answer
        head, book = self._head, self._book
        body = b"".join(self._pieces or ())
        self._session = book.of_request(head, body)
        say, t = self._session.sink, self._began
        say(
            HttpRequest(
                t=t, stream=self._stream, method=head.method, url=self._url, headers=head.headers
            )
        )
        acknowledges = self._session.legacy and head.method == "POST"
        answer = Answer(self._stream, head.method, say, book.clock, book.limits, acknowledges)
        if body:
            say(Frame(t=book.clock(), sender="client", raw=body, stream=self._stream))
        elif self._pieces is None:
            detail = "the request body is too large to keep; it was passed on"
            answer.trouble(ErrorKind.BODY_TOO_LARGE, detail)
        self._answer, self._pieces = answer, None
        self._hold(0)
        return answer

    # -- the answer ------------------------------------------------------------------------

    def head(self, head: ResponseHead) -> None:
        answer = self.sent()
        try:
            answer.head(head)
        except WireError as fault:  # a coding that we can't undo
            self._give_up(answer, fault)
        assert self._session is not None  # since it was sent
        if head.status >= 200:
            self._book.answered(self._session, head.headers)

    def data(self, piece: bytes) -> None:
        answer = self.sent()
        if self._over:
            return
        try:
            answer.data(piece)
            if not self._hold(answer.held):
                raise WireError(
                    ErrorKind.BODY_TOO_LARGE, "the unfinished responses are too large to keep"
                )
        except EnoughError:
            self._over = True
        except WireError as fault:
            self._give_up(answer, fault)

    def end(self, rest: bytes) -> None:
        answer = self.sent()
        self._hold(0)
        if self._over:
            answer.end_stream(complete=True)
            return
        try:
            answer.end(rest)
        except WireError as fault:
            answer.fail(fault.kind, fault.detail, fault.excerpt)

    def fail(self, kind: ErrorKind, why: str, excerpt: str = "") -> None:
        self.sent().fail(kind, why, excerpt)
        self._hold(0)

    def cut(self, why: str) -> None:
        self.sent().cut(why)
        self._hold(0)

    def _give_up(self, answer: Answer, fault: WireError) -> None:
        answer.trouble(fault.kind, f"{fault.detail}; it was passed on", fault.excerpt)
        self._over = True
        self._hold(0)

    def _hold(self, size: int) -> bool:
        """Hold this much from now on; False when it is too much for one, or for all together."""
        more, self._held = size - self._held, size
        return self._book.hold(more) and size <= self._book.limits.message_bytes
