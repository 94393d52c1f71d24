"""The record of one exchange that goes through an HTTP proxy: a copy, in bounded memory.

What is too large to be kept is told and still passed on: nothing in here touches the stream.
"""

from __future__ import annotations

from mcptest.model.capture import Frame, HttpRequest, StreamEnd, Trouble
from mcptest.model.errors import ErrorKind
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.transport.base import Clock
from mcptest.transport.http_answer import Answer, EnoughError
from mcptest.transport.proxy_book import Session, SessionBook
from mcptest.transport.proxy_requests import RequestHead
from mcptest.transport.url import Origin
from mcptest.wire.fault import WireError
from mcptest.wire.http1 import Head

_IN_ALL = 3
"""All unfinished copies together may hold this many times the limit for one."""


class Copies:
    """What all exchanges of a proxy share: the book, the clock, and how much may be held."""

    def __init__(self, book: SessionBook, clock: Clock, limits: Limits = DEFAULT_LIMITS) -> None:
        self.book = book
        self.clock = clock
        self.limits = limits
        self.streams = 0
        self._held = 0

    def hold(self, size: int) -> bool:
        """Count some more bytes, or fewer; False when that is more than may be held."""
        self._held += size
        return self._held <= _IN_ALL * self.limits.message_bytes


class ExchangeRecord:
    """Request first, then its answer; whatever happens, each stream that began also ends."""

    def __init__(self, copies: Copies, head: RequestHead, server: Origin) -> None:
        copies.streams += 1
        self._copies = copies
        self._stream = copies.streams
        self._head = head
        self._url = f"{server}{head.target}"
        self._began = copies.clock()
        self._pieces: list[bytes] | None = []
        self._held = 0
        self._session: Session | None = None
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
        head, copies = self._head, self._copies
        body = b"".join(self._pieces or ())
        self._session = copies.book.of_request(head, body)
        say, t = self._session.sink, self._began
        say(
            HttpRequest(
                t=t, stream=self._stream, method=head.method, url=self._url, headers=head.headers
            )
        )
        if body:
            say(Frame(t=copies.clock(), sender="client", raw=body, stream=self._stream))
        elif self._pieces is None:
            detail = "the body of the request is too large to be kept; it was passed on"
            say(
                Trouble(
                    t=copies.clock(),
                    error=ErrorKind.BODY_TOO_LARGE.value,
                    detail=detail,
                    stream=self._stream,
                )
            )
        self._pieces = None
        self._hold(0)
        self._answer = Answer(self._stream, head.method, say, copies.clock, copies.limits)
        self._answer.only_acknowledges = self._session.legacy and head.method == "POST"
        return self._answer

    # -- the answer ------------------------------------------------------------------------

    def head(self, head: Head) -> None:
        answer = self.sent()
        try:
            answer.head(head)
        except WireError as fault:  # a coding that we can't undo
            self._give_up(answer, fault)
        assert self._session is not None  # since it was sent
        if head.status >= 200:
            self._copies.book.answered(self._session, head.headers)

    def data(self, piece: bytes) -> None:
        answer = self.sent()
        if self._over:
            return
        try:
            answer.data(piece)
            if not self._hold(answer.held):
                raise WireError(ErrorKind.BODY_TOO_LARGE, "too much is held for all answers")
        except EnoughError:
            self._over = True
        except WireError as fault:
            self._give_up(answer, fault)

    def end(self, rest: bytes) -> None:
        answer = self.sent()
        self._hold(0)
        if self._over:
            self._end_stream(complete=True)
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

    def _end_stream(self, *, complete: bool) -> None:
        assert self._session is not None
        t = self._copies.clock()
        self._session.sink(StreamEnd(t=t, stream=self._stream, complete=complete))

    def _hold(self, size: int) -> bool:
        """Hold this much from now on; False when it is too much for one, or for all together."""
        more, self._held = size - self._held, size
        return self._copies.hold(more) and size <= self._copies.limits.message_bytes
