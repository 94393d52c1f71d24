"""The server on which examples are played, and playing them: everything seen is kept.

One session serves many examples, and a fresh one is a call away. A server that died or hangs is
ended and started again; whoever plays says what it died of. Nothing in here judges. Behind the last
step, and behind bytes that are sent as they are, stands a fence, a request that every server
answers: what was not answered before it is late, and a server that does not answer it hangs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from mcptest.core.capture import AnyRecord
from mcptest.core.errors import ErrorKind, PeerError
from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.message import ABSENT, Message
from mcptest.core.revision import Era, Revision
from mcptest.probe.compliance.conversation import http_facts
from mcptest.probe.live_server import INTERNAL_ERROR, OutcomeKind, judged_error
from mcptest.probe.properties.property_catalogue import KnownServer, PropertyOrder
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
    encoded_message,
)
from mcptest.report.property import Way
from mcptest.session.client import Client, Reply
from mcptest.session.connection import Connection, Pending, Stopped, encode, request_of
from mcptest.session.lifecycle import StatelessLifecycle
from mcptest.session.live import LiveSession
from mcptest.session.meeting import Met
from mcptest.session.pages import (
    LIST_CAPABILITIES,
    LIST_MEMBERS,
    EndlessPages,
    Offer,
    check_tool_names,
    named_items,
)
from mcptest.session.tape import Room, Tape
from mcptest.session.tool_safety import may_call, runs_only_as_task
from mcptest.suite.observed import SeenExchange
from mcptest.wire.envelope import decode

# -- The server on which examples are played -----------------------------------------------------

_ROOM = 24 * MEBIBYTE
_RECORD_COST = 6_000
"""What any record counts for: four thousand small ones are kept, which are judged in a moment."""
_CLOSING = 2.0
_PATIENCE_WITH_TOOLS = 5.0
"""Seconds that slow calls of one tool may take altogether."""
_FIRST_FENCE = 1_000_000_000
"""Ids of fences are far from those that examples use."""
_OUR_OWN_IDS = 64
"""The client counts from 1; what it may still use is not for raw requests."""


class ExampleServer:
    """One server. Use `close` at the end."""

    def __init__(self, order: PropertyOrder) -> None:
        """Of the order: which server is talked to, how, and until when."""
        self.order = order
        self.offer: Offer | None = None
        """All that it lists, also what must not be called; None before it was met."""
        self.info: Mapping[str, Any] = {}
        """What it says of itself."""
        self.tape = Tape(order.target.label)
        self.patience = 1
        """How many times longer an answer may take than it should."""
        self.slow_tools: dict[str, str] = {}
        """Tools that take their time, and how long: they are called no more."""
        self.endless: dict[str, str] = {}
        """Lists whose pages never end, and how that was seen."""
        self._slow_seconds: dict[str, float] = {}
        self.live = LiveSession(
            order.target,
            revision=order.revision,
            startup=order.startup,
            closing=_CLOSING,
            new_tape=self._new_tape,
            should_stop=order.is_over,
        )
        self._fences = _FIRST_FENCE
        self.used_ids: set[Any] = set()
        """Ids of raw requests of this session."""

    def another(self, order: PropertyOrder) -> ExampleServer:
        """One more for the same server, which need not be asked again what it is."""
        other = ExampleServer(order)
        other.offer, other.info = self.offer, self.info
        other.endless = self.endless
        other.slow_tools = dict(self.slow_tools)
        other.live.met = self.live.met
        return other

    def begin_counting(self) -> None:
        """Ids of fences are the same whatever was done before."""
        self._fences = _FIRST_FENCE

    # -- being there -----------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self.live.is_open

    @property
    def client(self) -> Client:
        """The session; begun when there is none. Raises PeerError when it can't be."""
        if not self.is_open:
            self.open()
        return self.live.client

    @property
    def connection(self) -> Connection:
        return self.client.connection

    @property
    def met(self) -> Met:
        return self.live.met or self.client.met

    @property
    def revision(self) -> Revision:
        return self.order.revision or self.met.revision

    @property
    def ground(self) -> KnownServer:
        """With the tools that may be called: those that only read, and those that are allowed."""
        offer, allowed, only = self.offer or Offer(), self.order.allow_tools, self.order.tools
        tools = tuple(
            one
            for one in named_items(offer.tools)
            if not runs_only_as_task(one)
            and may_call(one, allowed)
            and (not only or one["name"] in only)
        )
        return KnownServer(self.revision, self.met.transport, replace(offer, tools=tools))

    @property
    def alive_method(self) -> str:
        """A request that every server answers."""
        return "server/discover" if self.revision.era is Era.STATELESS else "ping"

    def open(self) -> None:
        """Begin a session, in a process of its own where the server is one. Raises PeerError."""
        self.live.timeout = self.order.timeout * self.patience
        self.used_ids = set(range(1, _OUR_OWN_IDS))
        client = self.live.begin()
        try:
            # Read the lists once; afterwards only that of the tools, whose schemas rules need.
            if self.offer is None:
                lists = {method: self._list(client, method) for method in LIST_CAPABILITIES}
                self.info = dict(client.server.info)
                self.offer = Offer.of(lists, capabilities=client.server.capabilities)
                check_tool_names(self.order.tools, self.offer.tools)
            elif self.offer.tools:
                self._list(client, "tools/list")
        except BaseException:
            self.drop()
            raise
        self.tape.mark()  # what comes from now on belongs to examples

    def _new_tape(self) -> Tape:
        self.tape = Tape(self.order.target.label, room=Room(_ROOM, _RECORD_COST))
        return self.tape

    def _list(self, client: Client, method: str) -> tuple[Any, ...]:
        """As far as it can be read; what is wrong with it is for the rules to say."""
        if not client.declares(LIST_CAPABILITIES[method]):
            return ()
        found: list[Any] = []
        try:
            for reply in client.walk(method, found):
                if not isinstance(reply.result.get(LIST_MEMBERS[method]), list):
                    break
        except EndlessPages as error:
            self.endless.setdefault(method, error.message)
        return tuple(found)

    def drop(self, *, deaf: bool = False) -> None:
        """End the session; the next example begins another."""
        self.live.drop(deaf=deaf)

    close = drop

    # -- for whoever plays -----------------------------------------------------------------

    def deadline(self) -> Deadline:
        limit, own = self.order.limit, Deadline.after(self.order.timeout * self.patience)
        return own if limit is None else min(limit, own, key=lambda each: each.at)

    def end_if_over(self) -> None:
        """Raises Stopped when the whole run is to end: what failed then was given up by us."""
        if self.order.is_over():
            raise Stopped

    def note_slow(self, tool: str, seconds: float) -> None:
        """A call took long. A tool that did so too often is called no more."""
        spent = self._slow_seconds[tool] = self._slow_seconds.get(tool, 0.0) + seconds
        if spent > _PATIENCE_WITH_TOOLS:
            self.slow_tools.setdefault(tool, f"took {spent:.1f}s in a few calls")

    def next_fence(self) -> int:
        self._fences += 1
        return self._fences

    def is_fence(self, identifier: object) -> bool:
        return type(identifier) is int and _FIRST_FENCE < identifier <= self._fences


# -- Playing an example --------------------------------------------------------------------------

_CHANGING = ("tools", "prompts", "resources")
_ENDS = {OutcomeKind.CRASHED: Way.CRASH, OutcomeKind.HUNG: Way.HANG}
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
        self._owed = owed
        self._fenced: Connection | None = None
        """The connection on which nothing was sent since the last fence."""
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
        if self._fenced is not self.stage.connection:
            self._fence()

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
        with self._may_lack_answer(step, pending):
            reply = client.wait(pending, self.stage.deadline())
            reply = client.complete_call(reply, params, self.stage.deadline())
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

    @contextlib.contextmanager
    def _may_lack_answer(
        self, step: AskStep | None = None, pending: Pending | None = None
    ) -> Iterator[None]:
        """One request without an answer is for the rules to judge, as long as the server lives."""
        try:
            yield
        except PeerError as error:
            self.stage.end_if_over()
            # Its own status where there is one: a stream that is open beside it has one, too.
            seen = self.stage.connection.last_status if pending is None else pending.status
            if error.kind is ErrorKind.TIMEOUT:
                self.played.unanswered = True
                if step is not None and called_tool(step):
                    self.played.silent.append(step)
            elif judged_error(error, seen) is OutcomeKind.CRASHED:
                raise

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
                with self._may_lack_answer(step.many[place], pending):
                    self._note_reply(client.wait(pending, self.stage.deadline()), pending)

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
        with self._may_lack_answer():
            for _ in islice(client.pages(step.method, self.stage.deadline()), step.pages):
                pass

    # -- subscriptions ---------------------------------------------------------------------

    def subscribe(self, step: Subscribe) -> None:
        if step.uri in self._subscribed:
            return
        lifecycle, deadline = self.stage.client.lifecycle, self.stage.deadline()
        offer = self.stage.offer
        assert offer is not None  # the session has begun
        with self._may_lack_answer():
            if step.uri:
                self._subscribed[step.uri] = lifecycle.subscribe(step.uri, deadline)
            elif isinstance(lifecycle, StatelessLifecycle):
                declared = (part for part in _CHANGING if offer.declares(f"{part}.listChanged"))
                wanted = {f"{part}ListChanged": True for part in declared}
                self._subscribed[step.uri] = lifecycle.listen(wanted, deadline)

    def unsubscribe(self, step: Unsubscribe) -> None:
        pending = self._subscribed.pop(step.uri, None)
        if pending is not None:
            with self._may_lack_answer():
                self.stage.client.lifecycle.unsubscribe(pending, self.stage.deadline())

    # -- bytes as they are -----------------------------------------------------------------

    def send(self, step: Send) -> None:
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
                connection.pump_until(lambda: all(one.done for one in own), deadline)
            after = self._fence(fence)
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
            return connection.transport.send(message.raw, deadline, headers), None
        fence = connection.expect(stage.next_fence(), stage.alive_method)
        fence.params = stage.client.lifecycle.prepare(None)
        send_many((message.raw, encode(request_of(fence))), deadline)
        return None, fence

    def _fence(self, asked: Pending | None = None) -> SeenExchange:
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
        self._fenced = connection
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
            connection.pump_until(lambda: _any_answer((*own, *unnamed)) is not None, grace)

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


# -- What a message asks for, and what was answered ----------------------------------------------


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


def called_in(step: Send) -> list[AskStep]:
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


def _any_answer(pending: Sequence[Pending]) -> Message | None:
    return next((one.answer for one in pending if one.answer is not None), None)
