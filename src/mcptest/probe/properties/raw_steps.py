"""Sending bytes as they are, and what came of them: an exchange that rules can look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mcptest.core.capture import AnyRecord
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.message import ABSENT, Message
from mcptest.probe.compliance.conversation import http_facts
from mcptest.probe.properties.example_server import ExampleServer
from mcptest.probe.properties.steps import AskStep, Send, encoded_message
from mcptest.report.property import Way
from mcptest.session.connection import Connection, Pending, encode, request_of
from mcptest.session.tape import Tape
from mcptest.suite.observed import SeenExchange
from mcptest.wire.envelope import decode


def asked_ids(message: Message) -> list[Any]:
    """The ids under which answers may come."""
    items = message.items or (message,)
    return [one.id for one in items if type(one.id) in (int, str)]


def with_unused_ids(message: Message, used: set[Any], unused: int) -> bytes:
    """A valid message whose requests have ids that the session has not seen yet.

    Within one session a client uses each id once, and examples know nothing of each other.
    """
    mine = asked_ids(message)
    if not mine or used.isdisjoint(mine):
        used.update(mine)
        return message.raw
    value = message.value
    items = value if isinstance(value, list) else [value]
    items = [
        {**one, "id": unused + place}
        if isinstance(one, dict) and one.get("id", ABSENT) in used
        else one
        for place, one in enumerate(items)
    ]
    used.update(one["id"] for one in items if isinstance(one, dict) and "id" in one)
    return encoded_message(items if isinstance(value, list) else items[0])


# -- Sending bytes as they are, and what came of them --------------------------------------------

_AFTER_THE_FENCE = 0.25
"""A server may work on two messages at once: how far the first may fall behind the second."""
_NO_ANSWER = frozenset(
    {ErrorKind.TIMEOUT, ErrorKind.PROTOCOL, ErrorKind.NOT_A_MESSAGE, ErrorKind.HTTP_STATUS}
)
"""Ends of one request that leave the connection as it was."""


class Sent(msgspec.Struct, frozen=True):
    """Bytes that were sent, and everything seen after them."""

    step: Send
    exchange: SeenExchange


class Played(msgspec.Struct):
    """An example that is played, and what was seen of it so far."""

    ended: Way | None = None
    """How the server ended, if it did."""
    detail: str = ""
    sent: list[Sent] = []
    scenes: list[tuple[Tape, list[AnyRecord]]] = []
    """The sessions that were left on the way, each with its records from its beginning on."""
    unanswered: bool = False
    """A request was waited for in vain."""
    silent: list[AskStep] = []
    """Calls of tools among them."""
    slowest: tuple[float, str] = (0.0, "")
    """The call that took the longest, in seconds, and its tool."""
    internal: str = ""
    """A request that the server answered with an internal error."""


class EveryStep(dict[str, SeenExchange]):
    """The steps of a probe: `after` is the fence, and whatever else a rule names is the message."""

    def __init__(self, own: SeenExchange, after: SeenExchange) -> None:
        super().__init__(after=after)
        self._own = own

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, self._own)


class Sending:
    def __init__(self, stage: ExampleServer, played: Played, owed: Callable[[Send], bool]) -> None:
        self.stage = stage
        self.played = played
        self.fenced: Connection | None = None
        """The connection on which nothing was sent since the last fence."""
        self._owed = owed

    def take(self, step: Send) -> None:
        """Send it, ask something that is always answered, and note what came."""
        stage, connection = self.stage, self.stage.connection
        tape = stage.tape
        message = tape.read(step.raw)
        if step.valid:
            unused = stage.next_fence() + 1_000
            message = tape.read(with_unused_ids(message, stage.used_ids, unused))
        unusable = len(tape.unusable)
        deadline = stage.deadline()
        stream, fence = self._sent_with_fence(message, deadline)
        own, unnamed = _expected(connection, message, stream, step)
        after = SeenExchange()
        alive = False
        try:
            if stream is not None:
                _pump(connection, lambda: all(one.done for one in own), deadline)
            after = self.fence(fence)
            self._wait_for_what_is_owed(step, own, unnamed, deadline)
            alive = True
        finally:
            for pending in (*own, *unnamed):
                connection.forget(pending)
            seen = self._seen((*own, *unnamed), stream, unusable, alive=alive)
            seen = msgspec.structs.replace(seen, steps=EveryStep(seen, after))
            self.played.sent.append(Sent(step, seen))

    def _sent_with_fence(
        self, message: Message, deadline: Deadline
    ) -> tuple[int | None, Pending | None]:
        """On a pipe the fence goes out with the message, in one piece; None: it is still to go."""
        stage, connection = self.stage, self.stage.connection
        send_many = getattr(connection.transport, "send_many", None)
        if send_many is None:
            headers = stage.client.lifecycle.headers(message.method or "", message.params or None)
            return connection.raw(message.raw, deadline, headers), None
        fence = connection.expect(stage.next_fence(), stage.alive_method)
        fence.params = stage.client.lifecycle.prepare(None)
        send_many((message.raw, encode(request_of(fence))), deadline)
        return None, fence

    def fence(self, asked: Pending | None = None) -> SeenExchange:
        """Ask what every server answers. Raises PeerError when this one does not."""
        stage = self.stage
        connection, lifecycle = stage.connection, stage.client.lifecycle
        if asked is None:
            params = lifecycle.prepare(None)
            headers = lifecycle.headers(stage.alive_method, params)
            asked = connection.request(
                stage.alive_method, params, stage.deadline(), headers, stage.next_fence()
            )
        answer = connection.settle(asked, stage.deadline())
        stage.tape.has_read(answer)
        self.fenced = connection
        return SeenExchange(result=answer.result, error=answer.error)

    def _wait_for_what_is_owed(
        self, step: Send, own: list[Pending], unnamed: list[Pending], deadline: Deadline
    ) -> None:
        """A request is waited for; anything else a moment, where a rule wants an answer to it."""
        connection = self.stage.connection
        if step.valid:
            for pending in own:
                # The fence was answered, so the server lives: silence is for the rules to judge.
                try:
                    self.stage.connection.settle(pending, deadline)
                except PeerError as error:
                    if error.kind not in _NO_ANSWER:
                        raise
                    self.stage.end_if_over()
                    if error.kind is ErrorKind.TIMEOUT:
                        self.played.unanswered = True
                        self.played.silent += called_in(step)
        elif _any_answer((*own, *unnamed)) is None and self._owed(step):
            grace = Deadline.after(_AFTER_THE_FENCE)
            _pump(connection, lambda: _any_answer((*own, *unnamed)) is not None, grace)

    def _seen(
        self, asked: Sequence[Pending], stream: int | None, unusable: int, *, alive: bool
    ) -> SeenExchange:
        """`unusable`: how much was no message before."""
        tape = self.stage.tape
        answer = _any_answer(asked)
        if answer is not None:
            tape.has_read(answer)
        return SeenExchange(
            result=answer.result if answer is not None else ABSENT,
            error=answer.error if answer is not None else ABSENT,
            http=http_facts(tape, stream) if stream in tape.responses else None,
            transport={
                "transport": self.stage.met.transport,
                "alive": alive and tape.exited is None,
                "unusable": len(tape.unusable) - unusable,
            },
        )


def called_in(step: Send) -> list[AskStep]:
    """The calls of tools that a raw message makes."""
    message = decode(step.raw)
    return [
        AskStep("tools/call", {key: part for key, part in one.params.items() if key != "_meta"})
        for one in message.items or (message,)
        if one.method == "tools/call" and isinstance(one.params.get("name"), str)
    ]


def _expected(
    connection: Connection, message: Message, stream: int | None, step: Send
) -> tuple[list[Pending], list[Pending]]:
    """Who may be answered: by any id in it; by no id, since none may have been readable."""
    wants = step.kind in {"request", "batch"}
    name = message.method or "a batch"
    ids = asked_ids(message) if wants else []
    own = [connection.expect(one, name, stream) for one in ids]
    if stream is not None and not own:
        own = [connection.expect(("stream", stream), "raw", stream)]
    unnamed = [] if step.valid else [connection.expect(one, "raw") for one in (None, ABSENT)]
    return own, unnamed


def _pump(connection: Connection, until: Callable[[], bool], deadline: Deadline) -> None:
    while not until():
        if not connection.pump(deadline) or deadline.expired:
            return


def _any_answer(pending: Sequence[Pending]) -> Message | None:
    return next((one.answer for one in pending if one.answer is not None), None)
