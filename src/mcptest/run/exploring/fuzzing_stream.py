"""Calls in an unbroken stream: the next are made and judged while the server works on others.

Nobody is blamed in here. Where an answer is missing the stream ends, and says what is doubtful.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from mcptest.explore.fuzz.case import Case, params_of
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.peer.client import Client, Reply
from mcptest.peer.pending import Pending
from mcptest.run.exploring.fuzzing_pace import Pace
from mcptest.run.exploring.subject import Subject
from mcptest.transport.base import NO_HEADERS

_BURST = 64
_RECENT = 64
_CLOSING = 0.3
_FAULT = 400


class End(msgspec.Struct, frozen=True):
    """How a stream ended."""

    doubtful: tuple[int, ...] = ()
    """Sent without a message in answer, in the order of the numbers."""
    recent: tuple[int, ...] = ()
    """Answered last: if the server died, perhaps of one of these."""
    died: bool = False
    """Whether the server is gone; else it was slow, or silent, or refused calls over HTTP."""


class _Call(msgspec.Struct):
    number: int
    pending: Pending
    params: Mapping[str, Any]
    since: float = 0.0
    """When its burst was sent, if it is the last of it."""


class _SilentError(Exception):
    """No answer came for as long as patience lasts."""


class Stream:
    """The calls of one tool that are under way on one server."""

    def __init__(
        self, subject: Subject, tool: str, pace: Pace, take: Callable[[int, Reply], None]
    ) -> None:
        """`take` is given each answer, in the order of the numbers."""
        self._subject = subject
        self._tool = tool
        self._pace = pace
        self._take = take
        self._waiting: deque[_Call] = deque()
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._unsent: range = range(0)
        self._doubtful: list[int] = []
        self.next = 0
        """The number after the last that was sent."""

    def run(self, start: int, more: Callable[[int, int], Sequence[Case]]) -> End:
        """Until all were answered, or one is missing. Never raises for what the server does.

        `more(n, count)`: up to so many cases from number n on; none at the end.
        """
        self.next = start
        if self._subject.is_gone:
            self._subject.drop()
        try:
            client = self._subject.client
        except PeerError:
            self.next += len(more(start, 1))
            return End(tuple(range(start, self.next)), died=True)
        try:
            self._flow(client, more)
        except (PeerError, _SilentError):
            return self._broken(client)
        return End(tuple(self._doubtful), tuple(self._recent))

    def _flow(self, client: Client, more: Callable[[int, int], Sequence[Case]]) -> None:
        at_end = False
        while True:
            room = self._pace.width - len(self._waiting)
            # The server has something to do while the next are made.
            if not at_end and (room >= _BURST or 2 * room >= self._pace.width):
                wanted = min(room, _BURST)
                cases = more(self.next, wanted)
                at_end = len(cases) < wanted
                self._send(client, cases)
            if not self._waiting:
                return
            if not self._waiting[0].pending.done:
                self._settle(client, self._waiting[0].pending)
            self._collect(client)

    def _send(self, client: Client, cases: Sequence[Case]) -> None:
        if not cases:
            return
        params = [params_of(self._tool, case.arguments) for case in cases]
        numbers = range(self.next, self.next + len(cases))
        self.next, self._unsent = numbers.stop, numbers
        begun = time.monotonic()
        started = self._start(client, params, Deadline.after(self._pace.patience))
        self._unsent = range(0)
        self._waiting.extend(map(_Call, numbers, started, params))
        self._waiting[-1].since = begun

    def _start(
        self, client: Client, params: Sequence[Mapping[str, Any]], deadline: Deadline
    ) -> list[Pending]:
        if _is_over_http(client):  # where the arguments may have to travel as headers, too
            return [client.start("tools/call", one, deadline) for one in params]
        prepare = client.lifecycle.prepare
        calls = [("tools/call", prepare(one), NO_HEADERS) for one in params]
        return client.connection.burst(calls, deadline)

    def _settle(self, client: Client, first: Pending) -> None:
        """Wait for the first. Answers to others are a sign of life, whatever else comes is not."""
        begun, answered = time.monotonic(), self._answered()
        deadline = Deadline.after(self._pace.patience)
        while True:
            client.connection.pump(deadline)
            if first.done:
                self._pace.waited(time.monotonic() - begun)
                return
            if deadline.expired:
                before, answered = answered, self._answered()
                if answered == before:
                    raise _SilentError
                deadline = Deadline.after(self._pace.patience)

    def _answered(self) -> int:
        return sum(call.pending.done for call in self._waiting)

    def _collect(self, client: Client) -> None:
        """Hand on what was answered, up to the first that was not."""
        waiting, limit = self._waiting, Deadline.after(self._pace.patience)
        while waiting and waiting[0].pending.done:
            call = waiting.popleft()
            try:
                self._hand_on(client, call, limit)
            except PeerError as error:
                self._doubtful.append(call.number)
                if error.kind is not ErrorKind.HTTP_STATUS and not _is_refused(call.pending):
                    raise
            if call.since:
                took = time.monotonic() - call.since
                self._pace.answered(took, over_http=_is_over_http(client))

    def _hand_on(self, client: Client, call: _Call, limit: Deadline) -> None:
        pending = call.pending
        if pending.answer is None:
            assert pending.failure is not None
            raise pending.failure
        reply = Reply(pending.method, pending.answer, pending.status)
        self._take(call.number, client.complete_call(reply, call.params, limit))
        self._recent.append(call.number)

    def _broken(self, client: Client) -> End:
        """Keep what was answered; the rest is doubtful, and the session is over."""
        limit = Deadline.after(self._pace.patience)
        for call in self._waiting:
            if call.pending.answer is None:
                self._doubtful.append(call.number)
                continue
            try:
                self._hand_on(client, call, limit)
            except PeerError:
                self._doubtful.append(call.number)
        died = self._subject.is_gone
        self._subject.drop(_CLOSING)
        return End((*self._doubtful, *self._unsent), tuple(self._recent), died)


def _is_over_http(client: Client) -> bool:
    return client.connection.transport.name != "stdio"


def _is_refused(pending: Pending) -> bool:
    """Whether the status of its own response says no, which is no matter of the others."""
    return pending.status is not None and pending.status >= _FAULT
