"""Playing an example: its steps are taken one after the other, and everything seen is kept.

Nothing in here judges. Behind the last step stands a fence, a request that every server answers:
what was not answered before it is late, and a server that does not answer it hangs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mcptest.core.errors import ErrorKind, PeerError
from mcptest.probe.live_server import INTERNAL_ERROR, OutcomeKind, judged_error
from mcptest.probe.properties.example_server import ExampleServer
from mcptest.probe.properties.raw_steps import Played, Sending, called_in
from mcptest.probe.properties.steps import (
    AnyStep,
    AskAtOnce,
    AskStep,
    Cancel,
    Connect,
    Disconnect,
    Notify,
    PageStep,
    Send,
    Subscribe,
    Unsubscribe,
)
from mcptest.report.property import Way
from mcptest.session.client import Reply
from mcptest.session.connection import Connection, Pending
from mcptest.session.lifecycle import StatelessLifecycle
from mcptest.wire.envelope import decode

_CHANGES = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
_ENDS = {OutcomeKind.CRASHED: Way.CRASH, OutcomeKind.HUNG: Way.HANG}


def called_tool(step: object) -> str:
    """The tool that a step calls; empty when it calls none."""
    if not isinstance(step, AskStep) or step.method != "tools/call":
        return ""
    return str(step.params.get("name") or "")


def tools_called(steps: Sequence[AnyStep]) -> set[str]:
    asked: list[AnyStep] = []
    for step in steps:
        if isinstance(step, AskAtOnce):
            asked += step.many
        elif isinstance(step, Send) and step.offered:
            asked += called_in(step)
        else:
            asked.append(step)
    return {tool for one in asked if (tool := called_tool(one))}


def play(stage: ExampleServer, steps: Sequence[AnyStep], owed: Callable[[Send], bool]) -> Played:
    """Take the steps. Raises PeerError only where no session can be had.

    `owed` says whether a message has to be answered by the rules.
    """
    if not stage.is_open:
        stage.open()
    stage.tape.rewind()
    played = Played()
    actor = _Actor(stage, played, owed)
    try:
        for step in steps:
            actor.take(step)
        actor.finish()
    except PeerError as error:
        stage.end_if_over()
        played.ended, played.detail = actor.end_of(error)
    return played


_ANSWERED = decode(b"{}")


class _Actor:
    def __init__(self, stage: ExampleServer, played: Played, owed: Callable[[Send], bool]) -> None:
        self.stage = stage
        self.played = played
        self.sending = Sending(stage, played, owed)
        self._asked: list[tuple[Connection, Pending]] = []
        self._subscribed: dict[str, Pending] = {}
        self._tape = stage.tape

    def take(self, step: AnyStep) -> None:
        """By the method that is named as the step is."""
        getattr(self, str(step.__struct_config__.tag).replace("-", "_"))(step)

    def finish(self) -> None:
        if not self.stage.is_open:
            return
        for uri in list(self._subscribed):
            self.unsubscribe(Unsubscribe(uri))
        if self.sending.fenced is not self.stage.connection:
            self.sending.fence()

    def end_of(self, error: PeerError) -> tuple[Way | None, str]:
        """What an error that ended the example says of the server."""
        status = self.stage.connection.last_status if self.stage.is_open else None
        kind = judged_error(error, status)
        ended = _ENDS.get(kind)
        if kind is OutcomeKind.PROTOCOL and error.kind is ErrorKind.TIMEOUT:
            ended = Way.HANG
        return ended or Way.CRASH, error.message.partition("\n")[0]

    # -- connections -----------------------------------------------------------------------

    def connect(self, step: Connect) -> None:
        if not self.stage.is_open:
            self.stage.open()
            self._tape = self.stage.tape

    def disconnect(self, step: Disconnect) -> None:
        if not self.stage.is_open:
            return
        tape = self._tape
        self._subscribed.clear()
        self.stage.drop()
        self.played.scenes.append((tape, list(tape.records)))

    # -- requests --------------------------------------------------------------------------

    def ask(self, step: AskStep) -> None:
        """Wait for an answer; where the server asks for input first, it is given."""
        client = self.stage.client
        params = self._params(step)
        pending = client.start(step.method, params, self.stage.deadline())
        self._asked.append((client.connection, pending))
        begun = time.monotonic()
        try:
            reply = client.wait(pending, self.stage.deadline())
            reply = client.complete_call(reply, params, self.stage.deadline())
        except PeerError as error:
            self._without_answer(error, step, pending)
        else:
            self.stage.tape.has_read(reply.message)
            self._note_reply(reply, pending)
        tool = called_tool(step)
        if tool:
            self.played.slowest = max(self.played.slowest, (time.monotonic() - begun, tool))

    def _params(self, step: AskStep) -> dict[str, Any] | None:
        params: dict[str, Any] = dict(step.params)
        if step.progress:
            own = params.get("_meta")
            own = own if isinstance(own, Mapping) else {}
            params["_meta"] = {**own, "progressToken": self.stage.next_fence()}
        return params or None

    def _note_reply(self, reply: Reply, pending: Pending) -> None:
        if reply.error_code == INTERNAL_ERROR:
            self.played.internal = self.played.internal or pending.method
        # That it was answered is asked for later, and no more: what was said is on the tape.
        pending.answer = _ANSWERED

    def _without_answer(
        self, error: PeerError, step: AskStep | None = None, pending: Pending | None = None
    ) -> None:
        """One request without an answer is for the rules to judge, as long as the server lives."""
        self.stage.end_if_over()
        # Its own status where there is one: a stream that is open beside it has one, too.
        seen = self.stage.connection.last_status if pending is None else pending.status
        kind = judged_error(error, seen)
        if error.kind is ErrorKind.TIMEOUT:
            self.played.unanswered = True
            if step is not None and called_tool(step):
                self.played.silent.append(step)
        elif kind is OutcomeKind.CRASHED:
            raise error

    def ask_at_once(self, step: AskAtOnce) -> None:
        client = self.stage.client
        started = []
        for one in step.many:
            pending = client.start(one.method, self._params(one), self.stage.deadline())
            self._asked.append((client.connection, pending))
            started.append(pending)
        for place in step.cancelled:
            client.cancel(started[place])
        for place, pending in enumerate(started):
            if place not in step.cancelled:
                try:
                    reply = client.wait(pending, self.stage.deadline())
                except PeerError as error:
                    self._without_answer(error, step.many[place], pending)
                else:
                    self._note_reply(reply, pending)

    def cancel(self, step: Cancel) -> None:
        """Too late: what it names was answered, or belongs to a connection that is gone."""
        if step.index >= len(self._asked):
            return
        connection, pending = self._asked[step.index]
        if connection is self.stage.connection and pending.answer is not None:
            self.stage.client.cancel(pending)

    def notify(self, step: Notify) -> None:
        self.stage.client.notify(step.method, dict(step.params) or None, self.stage.deadline())

    def page(self, step: PageStep) -> None:
        client = self.stage.client
        try:
            for number, _ in enumerate(client.pages(step.method, self.stage.deadline()), 1):
                if number >= step.pages:
                    return
        except PeerError as error:
            self._without_answer(error)

    # -- subscriptions ---------------------------------------------------------------------

    def subscribe(self, step: Subscribe) -> None:
        if step.uri in self._subscribed:
            return
        lifecycle, deadline = self.stage.client.lifecycle, self.stage.deadline()
        offer = self.stage.offer
        assert offer is not None  # the session has begun
        try:
            if step.uri:
                pending = lifecycle.subscribe(step.uri, deadline)
            elif isinstance(lifecycle, StatelessLifecycle):
                declared = (part for part in _CHANGES if offer.declares(f"{part}.listChanged"))
                pending = lifecycle.listen({_CHANGES[part]: True for part in declared}, deadline)
            else:
                return
        except PeerError as error:
            self._without_answer(error)
            return
        self._subscribed[step.uri] = pending

    def unsubscribe(self, step: Unsubscribe) -> None:
        pending = self._subscribed.pop(step.uri, None)
        if pending is None:
            return
        try:
            self.stage.client.lifecycle.unsubscribe(pending, self.stage.deadline())
        except PeerError as error:
            self._without_answer(error)

    def send(self, step: Send) -> None:
        self.sending.take(step)
