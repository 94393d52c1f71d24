"""The client: one interface over both eras and every transport.

It does what a careful client does and nothing behind anyone's back: no hidden retries, no repair
of what the server sent. Every answer is handed out as it came.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import Any

import msgspec

from mcptest import __version__
from mcptest.model.capture import TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.limits import DEFAULT_LIMITS, Limits
from mcptest.model.message import Kind, Message
from mcptest.model.revision import NEWEST_HANDSHAKE, NEWEST_STATELESS, Era, Revision
from mcptest.peer.answers import Answers
from mcptest.peer.connection import Connection
from mcptest.peer.detect import settle_the_era, speaks_the_old_transport
from mcptest.peer.handshake import HandshakeLifecycle
from mcptest.peer.header_schemas import HeaderSchemas
from mcptest.peer.lifecycle import Lifecycle, ServerFacts
from mcptest.peer.pending import Pending
from mcptest.peer.stateless import StatelessLifecycle
from mcptest.transport.base import Sink, Transport

_ROUNDS_OF_INPUT = 10
_CLOSING = 5.0
_CANCELLING = 1.0
_BURST = 32
LIST_MEMBERS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request, as it came."""

    method: str
    message: Message
    status: int | None = None
    """The HTTP status, where there was one."""

    @property
    def ok(self) -> bool:
        return self.message.kind is Kind.RESULT

    @property
    def result(self) -> Mapping[str, Any]:
        """The result, or an empty object when it is missing or none."""
        result = self.message.result
        return result if isinstance(result, dict) else {}

    @property
    def error_code(self) -> int | None:
        error = self.message.error
        code = error.get("code") if isinstance(error, dict) else None
        return code if type(code) is int else None


class Client:
    """One session with one server. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        transport: Transport,
        *,
        revision: Revision | None = None,
        answers: Answers | None = None,
        client_info: Mapping[str, Any] | None = None,
        limits: Limits = DEFAULT_LIMITS,
        timeout: float = 30.0,
        reopen: Callable[[TransportName], Transport] | None = None,
        before_waiting: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        sink: Sink | None = None,
    ) -> None:
        """`revision` None finds out the era; `reopen` makes a fresh transport to fall back on."""
        self._before_waiting = before_waiting
        self._should_stop = should_stop
        self._sink = sink
        self.timeout = timeout
        self._wanted = revision
        self._answers = answers if answers is not None else Answers()
        self._info = client_info or {"name": "mcptest", "version": __version__}
        self._limits = limits
        self._reopen = reopen
        self._lifecycle: Lifecycle | None = None
        self._begun: tuple[Lifecycle, Pending] | PeerError | None = None
        self._header_schemas = HeaderSchemas()
        self.connection = self._connection(transport)

    def _connection(self, transport: Transport) -> Connection:
        return Connection(
            transport, self._limits, self._before_waiting, self._should_stop, self._sink
        )

    # -- beginning and ending --------------------------------------------------------------

    def launch(self, deadline: Deadline | None = None) -> None:
        """Open the transport and send the first request, so that the server can get going."""
        deadline = deadline or Deadline.after(self.timeout)
        self.connection.transport.open(deadline)
        wanted = self._wanted or NEWEST_STATELESS
        era = StatelessLifecycle if wanted.era is Era.STATELESS else HandshakeLifecycle
        lifecycle = era(self.connection, wanted, self._answers, self._info)
        try:
            self._begun = (lifecycle, lifecycle.begin(deadline))
        except PeerError as error:
            self._begun = error  # it is `connect` that is asked whether the session came up

    def connect(self, deadline: Deadline | None = None) -> Client:
        """Begin the session. Raises PeerError; `close` is needed all the same."""
        deadline = deadline or Deadline.after(self.timeout)
        if self._begun is None:
            self.launch(deadline)
        try:
            self._lifecycle = self._finish_beginning(deadline)
        except PeerError as error:
            fallback = self._fallback_for(error)
            if fallback is None:
                raise
            self._start_over(fallback, deadline)
        return self

    def _finish_beginning(self, deadline: Deadline) -> Lifecycle:
        assert self._begun is not None
        if isinstance(self._begun, PeerError):
            raise self._begun
        lifecycle, pending = self._begun
        if self._wanted is None and isinstance(lifecycle, StatelessLifecycle):
            legacy = HandshakeLifecycle(
                self.connection, NEWEST_HANDSHAKE, self._answers, self._info
            )
            return settle_the_era(self.connection, lifecycle, pending, legacy, deadline)
        lifecycle.finish(pending, deadline)
        return lifecycle

    def _fallback_for(self, error: PeerError) -> TransportName | None:
        """What is worth one more try: HTTP+SSE, or a process that the era probe drove away."""
        if self._reopen is None:
            return None
        name = self.connection.transport.name
        handshake = self._wanted is None or self._wanted.era is Era.HANDSHAKE
        status = self.connection.last_status
        if name == "http" and handshake and speaks_the_old_transport(error, status):
            return "sse"
        gone = error.kind in {ErrorKind.EXITED, ErrorKind.CLOSED}
        return "stdio" if name == "stdio" and gone and self._wanted is None else None

    def _start_over(self, name: TransportName, deadline: Deadline) -> None:
        assert self._reopen is not None
        self.connection.transport.close(deadline.within(_CLOSING))
        self.connection = self._connection(self._reopen(name))
        self.connection.transport.open(deadline)
        offer = Revision.V2024_11_05 if name == "sse" else Revision.V2025_11_25
        lifecycle = HandshakeLifecycle(
            self.connection, self._wanted or offer, self._answers, self._info
        )
        self._lifecycle = lifecycle
        lifecycle.finish(lifecycle.begin(deadline), deadline)

    def close(self, deadline: Deadline | None = None) -> None:
        deadline = deadline or Deadline.after(_CLOSING)
        try:
            if self._lifecycle is not None:
                self._lifecycle.leave(deadline)
        finally:
            self.connection.transport.close(deadline)

    def __enter__(self) -> Client:
        try:
            return self.connect()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- facts -----------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        return self._lifecycle is not None

    @property
    def lifecycle(self) -> Lifecycle:
        if self._lifecycle is None:
            raise PeerError(ErrorKind.PROTOCOL, "the session has not begun")
        return self._lifecycle

    @property
    def revision(self) -> Revision:
        return self.lifecycle.revision

    @property
    def server(self) -> ServerFacts:
        return self.lifecycle.server

    def declares(self, capability: str) -> bool:
        return isinstance(self.server.capabilities.get(capability), dict)

    # -- requests --------------------------------------------------------------------------

    def start(
        self, method: str, params: Mapping[str, Any] | None = None, deadline: Deadline | None = None
    ) -> Pending:
        """Send a request and return at once; `wait` collects the answer."""
        lifecycle = self.lifecycle
        sent = lifecycle.prepare(params)
        headers = lifecycle.headers(method, sent, self._header_schemas.of(method, params))
        deadline = deadline or Deadline.after(self.timeout)
        return self.connection.request(method, sent, deadline, headers)

    def wait(self, pending: Pending, deadline: Deadline | None = None) -> Reply:
        """The answer to a started request. Raises PeerError when none can come.

        A request that is given up on is cancelled, as a considerate client does.
        """
        try:
            answer = self.connection.settle(pending, deadline or Deadline.after(self.timeout))
        except PeerError as error:
            if error.kind is ErrorKind.TIMEOUT and self._lifecycle is not None:
                with contextlib.suppress(PeerError):  # the first error is the one that counts
                    self._lifecycle.cancel(pending, "timed out", Deadline.after(_CANCELLING))
            raise
        return Reply(pending.method, answer, pending.status)

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, deadline: Deadline | None = None
    ) -> Reply:
        """Ask and wait. Where the server asks for input first, it is given and the call retried."""
        deadline = deadline or Deadline.after(self.timeout)
        pending = self.start(method, params, deadline)
        return self.complete_call(self.wait(pending, deadline), params, deadline)

    def complete_call(
        self, reply: Reply, params: Mapping[str, Any] | None, deadline: Deadline
    ) -> Reply:
        """Give the input that an answer asks for and call again, until there is a final one.

        So with headers that repeat arguments: which ones there are, only the list of tools says.
        """
        if self._header_schemas.are_wanting(reply.method, reply.error_code, params):
            for _ in self.pages("tools/list", deadline):
                if self._header_schemas.of(reply.method, params) is not None:
                    reply = self.wait(self.start(reply.method, params, deadline), deadline)
                    break
        for _ in range(_ROUNDS_OF_INPUT):
            more = self.lifecycle.wants_input(reply.message)
            if more is None:
                return reply
            again = self.start(reply.method, {**(params or {}), **more}, deadline)
            reply = self.wait(again, deadline)
        if self.lifecycle.wants_input(reply.message) is None:
            return reply
        raise PeerError(
            ErrorKind.PROTOCOL,
            f"{reply.method} still asks for input after {_ROUNDS_OF_INPUT} rounds",
        )

    def many(
        self,
        calls: Iterable[tuple[str, Mapping[str, Any] | None]],
        in_flight: int = 64,
        deadline: Deadline | None = None,
    ) -> Iterator[Reply]:
        """Many requests with a bounded number under way; the answers come in the order asked."""
        deadline = deadline or Deadline.after(self.timeout)
        waiting: deque[Pending] = deque()
        source = iter(calls)
        while True:
            # Small bursts keep both sides busy: the server works on one while we write the next.
            while burst := self._next_burst(source, min(_BURST, in_flight - len(waiting))):
                waiting.extend(self.connection.burst(burst, deadline))
            if not waiting:
                return
            self.connection.settle(waiting[0], deadline)
            while waiting and waiting[0].done:
                yield self.wait(waiting.popleft(), deadline)

    def _next_burst(
        self, source: Iterator[tuple[str, Mapping[str, Any] | None]], room: int
    ) -> list[tuple[str, Mapping[str, Any] | None, Mapping[str, str]]]:
        burst = []
        for method, params in islice(source, room):
            sent = self.lifecycle.prepare(params)
            burst.append((method, sent, self.lifecycle.headers(method, sent)))
        return burst

    def batch(
        self,
        calls: Sequence[tuple[str, Mapping[str, Any] | None]],
        deadline: Deadline | None = None,
    ) -> list[Reply]:
        """Many requests in one array, where the revision knows batches."""
        if self.revision is not Revision.V2025_03_26:
            raise PeerError(ErrorKind.PROTOCOL, f"{self.revision} has no batches")
        deadline = deadline or Deadline.after(self.timeout)
        headers = self.lifecycle.headers("", None)
        started = self.connection.batch(calls, deadline, headers)
        return [self.wait(pending, deadline) for pending in started]

    def notify(
        self, method: str, params: Mapping[str, Any] | None = None, deadline: Deadline | None = None
    ) -> None:
        deadline = deadline or Deadline.after(self.timeout)
        headers = self.lifecycle.headers(method, params)
        self.connection.notify(method, params, deadline, headers)

    def cancel(self, pending: Pending, reason: str = "no longer needed") -> None:
        self.lifecycle.cancel(pending, reason, Deadline.after(self.timeout))

    def send_raw(
        self,
        payload: bytes,
        headers: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> int | None:
        """Send any bytes at any time, also before the session has begun."""
        deadline = deadline or Deadline.after(self.timeout)
        return self.connection.raw(payload, deadline, headers or {})

    # -- the methods of MCP ----------------------------------------------------------------

    def pages(
        self, method: str, deadline: Deadline | None = None, cursor: str | None = None
    ) -> Iterator[Reply]:
        """Every page of a list from `cursor` on, until there is no next or the server refuses."""
        for _ in range(self._limits.pages):
            params = {"cursor": cursor} if cursor is not None else None
            reply = self.request(method, params, deadline)
            self._header_schemas.learn(method, reply.result)
            yield reply
            cursor = reply.result.get("nextCursor")
            if not isinstance(cursor, str):
                return
        raise PeerError(
            ErrorKind.PAGES_EXCEEDED,
            f"{method} did not end after {self._limits.pages} pages",
        )

    def list_all(self, method: str, deadline: Deadline | None = None) -> list[Any]:
        """The items of all pages of one list, as they came."""
        member = LIST_MEMBERS[method]
        items: list[Any] = []
        for reply in self.pages(method, deadline):
            found = reply.result.get(member)
            items.extend(found if isinstance(found, list) else ())
            if len(items) > self._limits.items:
                raise PeerError(
                    ErrorKind.PAGES_EXCEEDED, f"{method} names more than {self._limits.items} items"
                )
        return items

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress_token: str | int | None = None,
        deadline: Deadline | None = None,
    ) -> Reply:
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        if progress_token is not None:
            params["_meta"] = {"progressToken": progress_token}
        return self.request("tools/call", params, deadline)

    def read_resource(self, uri: str, deadline: Deadline | None = None) -> Reply:
        return self.request("resources/read", {"uri": uri}, deadline)

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> Reply:
        params: dict[str, Any] = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        return self.request("prompts/get", params, deadline)

    def complete(
        self,
        reference: Mapping[str, str],
        argument: Mapping[str, str],
        deadline: Deadline | None = None,
    ) -> Reply:
        params = {"ref": reference, "argument": argument}
        return self.request("completion/complete", params, deadline)

    def subscribe(self, uri: str, deadline: Deadline | None = None) -> Pending:
        return self.lifecycle.subscribe(uri, deadline or Deadline.after(self.timeout))

    def unsubscribe(
        self, subscription: Pending, deadline: Deadline | None = None
    ) -> Message | None:
        deadline = deadline or Deadline.after(self.timeout)
        return self.lifecycle.unsubscribe(subscription, deadline)

    def log_level(self, level: str, deadline: Deadline | None = None) -> Message | None:
        return self.lifecycle.log_level(level, deadline or Deadline.after(self.timeout))

    def await_notification(
        self, accept: Callable[[Message], bool], deadline: Deadline | None = None
    ) -> Message | None:
        """The next notification that is wanted, also one already here; None if none came."""
        deadline = deadline or Deadline.after(self.timeout)
        while True:
            message = self.connection.claim(accept)
            if message is not None:
                return message
            if not self.connection.pump(deadline):
                return None
