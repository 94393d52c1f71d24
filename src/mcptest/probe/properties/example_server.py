"""The server on which examples are played: one session serves many, and a fresh one is a call away.

A server that died or hangs is ended and started again; whoever plays says what it died of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcptest.core.limits import MEBIBYTE, Deadline
from mcptest.core.revision import Era, Revision
from mcptest.probe.properties.property_catalogue import KnownServer, PropertyOrder
from mcptest.session.client import Client
from mcptest.session.connection import Connection, Stopped
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
