"""The client: one interface over both eras and every transport.

It does what a careful client does and nothing behind anyone's back: no hidden retries, no repair
of what the server sent. Every answer is handed out as it came.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Unpack

import msgspec

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import DEFAULT_LIMITS, Deadline, Limits
from mcptest.core.message import Kind, Message
from mcptest.core.revision import Era, Revision
from mcptest.session.answers import Answers
from mcptest.session.connection import Connection, Params, Pending
from mcptest.session.lifecycle import HandshakeLifecycle, Lifecycle, ServerFacts, StatelessLifecycle
from mcptest.session.meeting import Manner, Meeting, Met
from mcptest.session.pages import LIST_MEMBERS, EndlessPages, distinct, walk_pages
from mcptest.transport.base import Sink, Transport, http_streams, is_clogged
from mcptest.wire.envelope import Faults, faults_of_answer
from mcptest.wire.mcp_headers import has_annotations

# -- Tools whose arguments travel as HTTP headers too --------------------------------------------

HEADER_MISMATCH = -32020


class HeaderSchemas:
    """Input schemas with such annotations, as far as they were listed, by their tools' names."""

    def __init__(self) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {}

    def learn(self, method: str, result: Mapping[str, Any]) -> None:
        if method != "tools/list":
            return
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, dict) else None
            if isinstance(schema, dict) and has_annotations(schema):
                self._schemas[str(tool.get("name"))] = schema

    def of(self, method: str, params: Params) -> Mapping[str, Any] | None:
        if method != "tools/call" or not self._schemas or params is None:
            return None
        return self._schemas.get(str(params.get("name")))

    def are_wanting(self, method: str, code: int | None, params: Params) -> bool:
        """The server misses a header, and the tool was never listed: that may be why."""
        return method == "tools/call" and code == HEADER_MISMATCH and not self.of(method, params)


# -- The client ----------------------------------------------------------------------------------

_ROUNDS_OF_INPUT = 10
_CLOSING = 5.0
_CLOSING_IN_A_HURRY = 2.0
"""Once the whole command is to end: its own limit, and whoever waits for it, come first."""
_CANCELLING = 1.0
_BURST = 32


class Reply(msgspec.Struct, frozen=True):
    """The answer to one request, as it came."""

    method: str
    message: Message
    status: int | None = None
    """The HTTP status, where there was one."""
    revision: Revision | None = None
    """The revision that was spoken."""

    @property
    def faults(self) -> Faults:
        """What is wrong with its form."""
        return faults_of_answer(self.message, self.revision, self.method)

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
        if type(code) is float and code.is_integer():
            return int(code)  # JSON has one type of number
        return code if type(code) is int else None


class Client:
    """One session with one server. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        transport: Transport | None = None,
        *,
        answers: Answers | None = None,
        limits: Limits = DEFAULT_LIMITS,
        timeout: float = 30.0,
        before_waiting: Callable[[], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        **manner: Unpack[Manner],
    ) -> None:
        """`transport` is one connection to the server, for who has just that instead of `reach`."""
        self._before_waiting = before_waiting
        self._should_stop = should_stop
        self.timeout = timeout
        self._answers = answers if answers is not None else Answers()
        self._limits = limits
        self._lifecycle: Lifecycle | None = None
        self._header_schemas = HeaderSchemas()
        self.on_reply: Callable[[Reply], None] | None = None
        """Is told of every answer before whoever waits for it."""
        self.meeting = Meeting(transport, self._connection, self._lifecycle_of, **manner)
        """How the session begins, for who wants more of that than `connect`."""
        self.connection = self.meeting.first.connection

    def _connection(self, transport: Transport, sink: Sink) -> Connection:
        return Connection(transport, self._limits, self._before_waiting, self._should_stop, sink)

    def _lifecycle_of(self, connection: Connection, revision: Revision) -> Lifecycle:
        era = StatelessLifecycle if revision.era is Era.STATELESS else HandshakeLifecycle
        return era(connection, revision, self._answers)

    # -- beginning and ending --------------------------------------------------------------

    def connect(self, deadline: Deadline | None = None) -> Client:
        """Begin the session. Raises PeerError; `close` is needed all the same."""
        try:
            begun = self.meeting.settle(deadline or Deadline.after(self.timeout))
        except PeerError:
            self.connection = self.meeting.latest.connection  # who asks why looks there
            raise
        self.connection, self._lifecycle = begun.connection, begun.lifecycle
        return self

    def close(self, deadline: Deadline | None = None) -> None:
        deadline = deadline or Deadline.after(_CLOSING)
        if self._should_stop is not None and self._should_stop():
            deadline = deadline.within(_CLOSING_IN_A_HURRY)
        try:
            if self._lifecycle is not None:
                self._lifecycle.leave(deadline)
        finally:
            self.meeting.close(deadline)

    def __enter__(self) -> Client:
        try:
            return self.connect()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- facts -----------------------------------------------------------------------------

    @property
    def has_begun(self) -> bool:
        return self._lifecycle is not None

    @property
    def lifecycle(self) -> Lifecycle:
        if self._lifecycle is None:
            raise PeerError(ErrorKind.PROTOCOL, "the session has not started")
        return self._lifecycle

    @property
    def revision(self) -> Revision:
        return self.lifecycle.revision

    @property
    def met(self) -> Met:
        """What the meeting found out, and why."""
        return Met(self.revision, self.meeting.reason, self.connection.transport.name)

    @property
    def server(self) -> ServerFacts:
        return self.lifecycle.server

    @property
    def beginning(self) -> Reply | None:
        """The answer that began the session. It came before any revision was agreed on."""
        first = self.lifecycle.first_answer
        stateless = self.revision.era is Era.STATELESS
        return Reply("server/discover" if stateless else "initialize", first) if first else None

    def declares(self, capability: str) -> bool:
        return isinstance(self.server.capabilities.get(capability), dict)

    # -- requests --------------------------------------------------------------------------

    def start(
        self, method: str, params: Params = None, deadline: Deadline | None = None
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
            is_heard = not is_clogged(self.connection.transport)
            if error.kind is ErrorKind.TIMEOUT and self._lifecycle is not None and is_heard:
                with contextlib.suppress(PeerError):  # the first error is the one that counts
                    self._lifecycle.cancel(pending, "timed out", Deadline.after(_CANCELLING))
            raise
        revision = self._lifecycle.revision if self._lifecycle is not None else None
        reply = Reply(pending.method, answer, pending.status, revision)
        if self.on_reply is not None:
            self.on_reply(reply)
        return reply

    def request(
        self, method: str, params: Params = None, deadline: Deadline | None = None
    ) -> Reply:
        """Ask and wait. Where the server asks for input first, it is given and the call retried."""
        deadline = deadline or Deadline.after(self.timeout)
        pending = self.start(method, params, deadline)
        return self.complete_call(self.wait(pending, deadline), params, deadline)

    def complete_call(self, reply: Reply, params: Params, deadline: Deadline) -> Reply:
        """Give the input that an answer asks for and call again, until there is a final one.

        So with headers that repeat arguments: which ones there are, only the list of tools says.
        """
        if self._header_schemas.are_wanting(reply.method, reply.error_code, params):
            for _ in self.pages("tools/list", deadline):
                if self._header_schemas.of(reply.method, params) is not None:
                    reply = self.wait(self.start(reply.method, params, deadline), deadline)
                    break
        for _ in range(_ROUNDS_OF_INPUT):
            more = self.lifecycle.wants_input(reply.method, reply.message)
            if more is None:
                return reply
            again = self.start(reply.method, {**(params or {}), **more}, deadline)
            reply = self.wait(again, deadline)
        if self.lifecycle.wants_input(reply.method, reply.message) is None:
            return reply
        raise PeerError(
            ErrorKind.PROTOCOL,
            f"{reply.method} still asks for input after {_ROUNDS_OF_INPUT} rounds",
        )

    def many(
        self,
        calls: Iterable[tuple[str, Params]],
        in_flight: int = 64,
        deadline: Deadline | None = None,
    ) -> Iterator[Reply]:
        """Many requests with a bounded number under way; the answers come in the order asked."""
        deadline = deadline or Deadline.after(self.timeout)
        waiting: deque[Pending] = deque()
        source = iter(calls)
        prepare, headers = self.lifecycle.prepare, self.lifecycle.headers
        while True:
            # Small bursts keep both sides busy: the server works on one while we write the next.
            while burst := [
                (method, sent := prepare(params), headers(method, sent))
                for method, params in islice(source, min(_BURST, in_flight - len(waiting)))
            ]:
                waiting.extend(self.connection.burst(burst, deadline))
            if not waiting:
                return
            self.connection.settle(waiting[0], deadline)
            while waiting and waiting[0].done:
                yield self.wait(waiting.popleft(), deadline)

    def batch(
        self, calls: Sequence[tuple[str, Params]], deadline: Deadline | None = None
    ) -> list[Reply]:
        """Many requests in one array, where the revision knows batches."""
        if self.revision is not Revision.V2025_03_26:
            raise PeerError(ErrorKind.PROTOCOL, f"{self.revision} has no batches")
        deadline = deadline or Deadline.after(self.timeout)
        headers = self.lifecycle.headers("", None)
        started = self.connection.batch(calls, deadline, headers)
        return [self.wait(pending, deadline) for pending in started]

    def notify(self, method: str, params: Params = None, deadline: Deadline | None = None) -> None:
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
        return self.connection.transport.send(payload, deadline, headers or {})

    # -- the methods of MCP ----------------------------------------------------------------

    def pages(
        self, method: str, deadline: Deadline | None = None, cursor: str | None = None
    ) -> Iterator[Reply]:
        """Every page of a list from `cursor` on, until there is no next or the server refuses."""

        def ask(params: Params) -> Reply:
            reply = self.request(method, params, deadline)
            if http_streams(self.connection.transport) is not None:
                self._header_schemas.learn(method, reply.result)
            return reply

        return walk_pages(
            method,
            ask,
            lambda reply: reply.result,
            seconds=self.timeout if deadline is None else deadline.remaining(),
            cursor=cursor,
            most=self._limits.pages,
        )

    def list_all(self, method: str, deadline: Deadline | None = None) -> list[Any]:
        """The items of all pages of one list, as they came."""
        items: list[Any] = []
        for _ in self.walk(method, items, deadline):
            pass
        return items

    def walk(
        self, method: str, found: list[Any], deadline: Deadline | None = None
    ) -> Iterator[Reply]:
        """Every page of a list, with what it names added to `found`.

        Raises EndlessPages; what such a list names again and again is found once.
        """
        member = LIST_MEMBERS[method]
        try:
            for reply in self.pages(method, deadline):
                items = reply.result.get(member)
                found.extend(items if isinstance(items, list) else ())
                if len(found) > self._limits.items:
                    raise EndlessPages(
                        ErrorKind.PAGES_EXCEEDED,
                        f"{method} names more than {self._limits.items} items",
                    )
                yield reply
        except EndlessPages:
            found[:] = distinct(found)
            raise

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
