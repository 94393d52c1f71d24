"""Which session of the capture an HTTP exchange belongs to: several clients may use one proxy.

A session is told by its header, or by the URL that the old transport gave its client. Whether a
request begins one is for the caller to say, who knows the protocol.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mcptest.model.capture import AnyRecord, Headers, Note, SseEvent
from mcptest.transport.base import Sink
from mcptest.transport.proxy_guard import through_us
from mcptest.transport.proxy_requests import RequestHead
from mcptest.transport.url import Url
from mcptest.wire.http_rules import SESSION_HEADER

_SESSION = SESSION_HEADER.lower()
_KEPT = 10_000
"""Names of sessions that are remembered. Those of the oldest are forgotten first."""


class Session(msgspec.Struct, eq=False):
    """One session of the capture."""

    sink: Sink
    legacy: bool = False
    spoken: bool = False
    """Whether a message was sent in it, and not only looked around."""


class SessionBook:
    """Finds or begins the session of each exchange."""

    def __init__(
        self,
        server: Url,
        begin: Callable[[], Sink],
        begins_session: Callable[[bytes], bool],
        *,
        legacy: bool = False,
    ) -> None:
        self._server = server
        self._begin = begin
        self._begins_session = begins_session
        self._legacy = legacy
        self._named: dict[str, Session] = {}
        """By session id, or by the path of an endpoint."""
        self._nameless: Session | None = None
        """The session of requests that name none: the last that began and got no name."""

    def of_request(self, head: RequestHead, body: bytes) -> Session:
        name = head.header(_SESSION) or head.target
        session = self._named.get(name)
        if session is None:
            begins = self._is_stream(head) or self._begins_session(body)
            session = self._of_nameless(begins=begins)
        session.spoken = session.spoken or bool(body)
        return session

    def answered(self, session: Session, headers: Headers) -> None:
        """The server may have given the session its name."""
        for key, value in headers:
            if key.lower() == _SESSION:
                self._name(value, session)

    def note(self, text: str, t: float) -> None:
        """Something that belongs to no exchange."""
        self._of_nameless(begins=False).sink(Note(t=t, text=text))

    def _of_nameless(self, *, begins: bool) -> Session:
        session = self._nameless
        if session is None or (begins and session.spoken):
            session = self._nameless = self._begun()
        return session

    def _is_stream(self, head: RequestHead) -> bool:
        return self._legacy and head.method == "GET" and head.target == self._server.target

    def _begun(self) -> Session:
        plain = self._begin()
        if not self._legacy:
            return Session(plain)

        def sink(record: AnyRecord) -> None:
            plain(record)
            if type(record) is SseEvent and record.sse.event == "endpoint":
                self._name(self._path_of(record.data), session)

        session = Session(sink, legacy=True)
        return session

    def _path_of(self, endpoint: str) -> str:
        try:
            return self._server.join(endpoint).target
        except ValueError:
            return through_us(endpoint, self._server.origin)

    def _name(self, name: str, session: Session) -> None:
        self._named.setdefault(name, session)
        if self._nameless is session:
            self._nameless = None
        if len(self._named) > _KEPT:
            del self._named[next(iter(self._named))]
