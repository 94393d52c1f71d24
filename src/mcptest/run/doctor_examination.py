"""A server under examination: the session it is met in, what it lists, and how it is asked.

There is one session in the revision that the server is moved to, if it speaks that already, and
otherwise in the one it speaks today. In the second case it is also *knocked at*: spoken to in the
new revision on a connection of its own, to see what clients will get.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from mcptest.model.capture import Frame
from mcptest.model.compliance import Evidence
from mcptest.model.deadline import Deadline
from mcptest.model.errors import PeerError
from mcptest.model.message import Kind
from mcptest.model.revision import Era, Revision
from mcptest.model.show import show
from mcptest.peer.pagination import LIST_CAPABILITIES, LIST_MEMBERS
from mcptest.peer.stateless import PREFIX
from mcptest.peer.tool_safety import is_safe
from mcptest.run.call_failed import answered_twice
from mcptest.run.compliance.asked import trouble_of
from mcptest.run.compliance.conversation import Asked, Conversation, Started
from mcptest.run.compliance.declared import EVERYTHING
from mcptest.run.compliance.learning import learn_about_eras
from mcptest.run.compliance.listing import list_through
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.sending import may_change_era
from mcptest.run.compliance.site import Site
from mcptest.run.compliance.waiting import Waits
from mcptest.run.doctor_knocks import knocks_for
from mcptest.run.doctor_lists import (
    arguments_for,
    fits,
    prompt_arguments,
)
from mcptest.run.doctor_watch import LONGEST_PROOF, Watch
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange
from mcptest.wire.envelope import Faults, decode, faults_of_answer

_INTRODUCING = ("initialize", "server/discover")
_CALLS = 20
_REOPENINGS = 5
_SHORTEST_PATIENCE = 2.0
_TURN = 0.05
NOTHING = Asked(Exchange(), b"", b"")
"""What is known of a question that could not be asked."""


class Call(msgspec.Struct, frozen=True):
    """A tool that was called, and what came of it."""

    tool: Mapping[str, Any]
    asked: Asked


def kept_apart(order: Order, folder: str) -> Order:
    """The same order with its captures in a folder of their own: each site counts from one."""
    if order.captures is None:
        return order
    return msgspec.structs.replace(order, captures=order.captures / folder)


class Examination:
    """Asks, lists and calls; judges nothing. Whatever the server does, nothing raises."""

    def __init__(self, site: Site, conversation: Conversation, newer: Revision) -> None:
        self.site = site
        self.newer = newer
        self.watch = Watch(site.masker.text)
        self.lists: dict[str, list[Any]] = {}
        self.calls: list[Call] = []
        self.unlisted: set[str] = set()
        """Lists that the server declares and that could not be had."""
        self.unanswered: set[str] = set()
        """Methods of a sound session that got no answer at all: what rests on them is unknown."""
        self.notes: list[str] = []
        self._malformed: set[str] = set()
        """Methods that were answered in a form which no client should accept."""
        self._answered_twice = False
        self._conversation = conversation
        self._first_tape = conversation.tape
        self._doors: list[Site] = []
        self._reopened = 0
        self._fell_silent = False
        self._listened_to = 0

    # -- facts -----------------------------------------------------------------------------

    @property
    def speaks_newer(self) -> bool:
        return self.site.revision.wire_version == self.newer.wire_version

    @property
    def spoken(self) -> Revision:
        return self.site.revision

    @property
    def transport(self) -> str:
        return self.site.transport

    def declares(self, capability: str, part: str = "") -> bool:
        declared = self.site.capabilities.get(capability)
        if not isinstance(declared, dict):
            return False
        return not part or declared.get(part) is True

    @property
    def tools(self) -> Iterator[Mapping[str, Any]]:
        return (one for one in self.lists.get("tools", ()) if isinstance(one, dict))

    @property
    def uncalled(self) -> list[str]:
        called = {str(call.tool.get("name")) for call in self.calls}
        return [name for tool in self.tools if (name := str(tool.get("name"))) not in called]

    @cached_property
    def introduction(self) -> Evidence:
        """How the session began: the answer that says what the server declares."""
        mask = self.site.masker.message
        frames = [one for one in self._first_tape.records if isinstance(one, Frame)]
        for place, frame in enumerate(frames):
            asked = decode(frame.raw)
            if frame.sender == "client" and asked.method in _INTRODUCING:
                answers = (decode(one.raw) for one in frames[place:] if one.sender == "server")
                found = next((one for one in answers if one.id == asked.id and one.is_answer), None)
                if found is not None and found.kind is Kind.RESULT:
                    sent, received = mask(frame.raw), mask(found.raw)
                    return Evidence(show(sent, LONGEST_PROOF), show(received, LONGEST_PROOF))
        return Evidence()

    # -- asking ----------------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation:
        """The session; a new one where the server has gone, or once where it fell silent."""
        mute = self._conversation.mute
        lost = self._conversation.gone is not None or (mute and not self._fell_silent)
        if lost and self._reopened < _REOPENINGS:
            self._reopened += 1
            self._fell_silent = self._fell_silent or mute
            self._note_loss(self._conversation)
            self._conversation.close()
            self._listened_to = 0
            try:
                self._conversation = self.site.open(declare=EVERYTHING)
            except PeerError as error:
                self.notes.append(f"the server did not come back: {error.message}")
                self._reopened = _REOPENINGS
        return self._conversation

    def _note_loss(self, conversation: Conversation) -> None:
        gone = conversation.gone
        why = gone.message if gone is not None else "it answered nothing any more"
        lines = (line.strip() for line in why.splitlines())
        note = f"the server was lost and started again: {'; '.join(lines)}"
        if note not in self.notes:
            self.notes.append(note)

    def ask(self, check: Check) -> Asked:
        """In the session, as a client of its revision asks; what came is taken note of."""
        conversation = self.conversation
        asked = conversation.ask(check)
        self._listen(conversation)
        for answer in asked.answers:
            faults = faults_of_answer(answer, self.site.revision, check.method)
            self._note_faults(check.method, faults)
        if asked.unusable and check.method not in self._malformed:
            self._malformed.add(check.method)
            self.notes.append(asked.unusable)
        self._note_second_answer(conversation)
        return self.watch.take(check.method, asked)

    def _note_faults(self, method: str, faults: Faults) -> None:
        words, how = faults.refused, "malformed"
        if not words:
            words, how = faults.warned, "doubtful"
        if words and method not in self._malformed:
            self._malformed.add(method)
            self.notes.append(f"the answer to {method} is {how}: {words}")

    def _note_second_answer(self, conversation: Conversation) -> None:
        second = next(conversation.client.connection.second_answers(), None)
        if second is not None and not self._answered_twice:
            self._answered_twice = True
            self.notes.append(answered_twice(second, self.site.masker))

    def ask_in_newer(self, method: str, params: Mapping[str, Any] | None = None) -> Asked:
        """The same with the `_meta` of the newer revision, which an old server ignores."""
        check = Check(method=method, params=params, meta=self._newer_meta)
        return self.ask(check)

    @property
    def _newer_meta(self) -> Mapping[str, Any]:
        if self.speaks_newer or self.newer.era is Era.HANDSHAKE:
            return {}
        return {
            PREFIX + "protocolVersion": self.newer.wire_version,
            PREFIX + "clientCapabilities": {},
        }

    def _listen(self, conversation: Conversation) -> None:
        """Requests of the server may come at any time, also between two questions of ours."""
        if not conversation.asked:
            return
        conversation.asked.clear()
        for record in conversation.tape.records[self._listened_to :]:
            if isinstance(record, Frame) and record.sender == "server":
                message = decode(record.raw)
                if message.kind is Kind.REQUEST and message.method is not None:
                    raw = self.site.masker.message(record.raw)
                    self.watch.heard(message.method, raw)
        self._listened_to = len(conversation.tape.records)

    @cached_property
    def alive(self) -> Check:
        return self.site.alive_check

    @cached_property
    def a_list(self) -> str:
        """A list that the server says it has; the tools where it says nothing."""
        declared = (method for method, needs in LIST_CAPABILITIES.items() if self.declares(needs))
        return next(declared, "tools/list")

    # -- what there is ---------------------------------------------------------------------

    def look_around(self, allow_tools: tuple[str, ...]) -> None:
        """Everything that is safe: the lists, one resource, one prompt, tools that only read."""
        client = self.conversation.client
        first = client.beginning if client.has_begun else None
        if first is not None:
            self._note_faults(first.method, first.faults)
        self._ask_soundly(self.alive)
        for method, capability in LIST_CAPABILITIES.items():
            if self.declares(capability):
                member, before = LIST_MEMBERS[method], self.watch.results
                self.lists[member] = self.walk(method)
                if self.watch.results == before:
                    self.unlisted.add(member)
        self._read_one()
        self._prompt_one()
        budget = Deadline.after(self.site.order.timeout)
        for tool in self._callable(allow_tools):
            if budget.expired:
                self.notes.append("not every tool was called: the calls took too long")
                break
            self.calls.append(Call(tool, self.call(tool)))

    def list_on(self, beside: Conversation, method: str) -> list[Any]:
        """The same list on another connection."""
        return list_through(beside.ask, method, self.site.order.timeout).items

    def walk(self, method: str) -> list[Any]:
        listed = list_through(self._ask_soundly, method, self.site.order.timeout)
        if listed.endless:
            self.unlisted.add(LIST_MEMBERS[method])
            if listed.endless not in self.notes:
                self.notes.append(listed.endless)
        return listed.items

    def _read_one(self) -> None:
        uris = (one.get("uri") for one in self.lists.get("resources", ()) if isinstance(one, dict))
        uri = next((one for one in uris if isinstance(one, str)), None)
        if uri is not None:
            self._ask_soundly(Check(method="resources/read", params={"uri": uri}))

    def _prompt_one(self) -> None:
        prompts = (one for one in self.lists.get("prompts", ()) if isinstance(one, dict))
        first = next((one for one in prompts if isinstance(one.get("name"), str)), None)
        if first is None:
            return
        arguments = {name: name for name, required in prompt_arguments(first) if required}
        params: dict[str, Any] = {"name": first["name"]}
        self._ask_soundly(Check(method="prompts/get", params={**params, "arguments": arguments}))

    def _callable(self, allow_tools: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
        """Tools that the user named, and some of those that say they only read."""
        reading = 0
        for tool in self.tools:
            if tool.get("name") in allow_tools:
                yield tool
            elif is_safe(tool) and reading < _CALLS and fits(tool):
                reading += 1
                yield tool

    def call(self, tool: Mapping[str, Any]) -> Asked:
        arguments = arguments_for(tool)
        return self._ask_soundly(
            Check(method="tools/call", params={"name": tool.get("name"), "arguments": arguments})
        )

    def _ask_soundly(self, check: Check) -> Asked:
        """What every server answers that declares it."""
        asked = self.ask(check)
        if asked.exchange.answer == "none" and check.method not in self.unanswered:
            self.unanswered.add(check.method)
            why = trouble_of(self._conversation.tape.records, asked.stream)
            self.notes.append(f"{check.method} was not answered{why and f': {why}'}")
        return asked

    # -- other connections -----------------------------------------------------------------

    @cached_property
    def knocks(self) -> Mapping[str, Asked]:
        """What clients of the newer revision get who know nothing of older ones.

        What a server of both eras may read as of the older one is asked on a connection of its own.
        """
        checks = knocks_for(self.a_list, self.transport, self.newer)
        apart = [{name: one} for name, one in checks.items() if may_change_era(one, self.newer)]
        together = {
            name: one for name, one in checks.items() if not may_change_era(one, self.newer)
        }
        try:
            doors = [(self._door(), each) for each in (together, *apart) if each]
        except PeerError as error:
            self.notes.append(f"the server could not be spoken to in {self.newer}: {error.message}")
            return {}
        first = [
            (door, name, door.start(each[name])) for door, each in doors for name in [*each][:1]
        ]
        for door, _, one in first:
            self._await_reader(door, one)
        started = first + [
            (door, name, door.start(each[name])) for door, each in doors for name in [*each][1:]
        ]
        if doors and not self.speaks_newer:
            self._bound_silence([door for door, _ in doors])
        found = {name: door.finish(one) for door, name, one in started}
        for door, each in doors:
            door.close()
            if door.gone is not None:
                # One of them was too much for it: the others are asked one by one.
                missing = [name for name in each if found[name].exchange.answer == "none"]
                found.update((name, self._knock_alone(checks[name])) for name in missing)
        return found

    def _await_reader(self, conversation: Conversation, first: Started) -> None:
        """Let a process start: none of its time to answer is spent before it reads its input."""
        connection, order = conversation.client.connection, conversation.site.order
        limit = Deadline.after(self.site.order.startup)
        with contextlib.suppress(PeerError):  # `finish` meets it again, and says so
            while not first.done and getattr(connection.transport, "has_unread_input", False):
                connection.pump(limit.within(_TURN))
                if limit.expired:
                    return
            until = Deadline.after(order.patience)
            while not first.done and not until.expired:
                connection.pump(until)

    def _bound_silence(self, doors: Sequence[Conversation]) -> None:
        """How long the doors may stay silent: for as long as it takes to begin a session now."""
        begun = time.monotonic()
        beside = self.another()
        if beside is None:
            return
        beside.close()
        limit = max(_SHORTEST_PATIENCE, 2 * (time.monotonic() - begun))
        for door in doors:
            door.site.order = msgspec.structs.replace(
                door.site.order, timeout=min(limit, door.site.order.timeout), patience=limit
            )
            door.site.waits = Waits(door.site.order)

    @cached_property
    def speaks_handshake(self) -> bool:
        """Whether the server begins a session too, as clients of older revisions do."""
        if self.spoken.era is Era.HANDSHAKE:
            return True
        try:
            door = self._door()
        except PeerError:
            return False
        learn_about_eras(door.site, door)
        door.close()
        return door.site.speaks_handshake

    def knocked(self, name: str) -> Asked:
        return self.knocks.get(name, NOTHING)

    def _knock_alone(self, check: Check) -> Asked:
        try:
            conversation = self._door()
        except PeerError:
            return NOTHING
        if not self.speaks_newer:
            self._bound_silence([conversation])
        asked = conversation.ask(check)
        conversation.close()
        return asked

    def _door(self) -> Conversation:
        """A connection on which nothing was said yet, in the newer revision."""
        order: Order = msgspec.structs.replace(self.site.order, revision=self.newer)
        site = Site(kept_apart(order, f"spoken-to-{len(self._doors) + 1}"))
        site.transport = self.transport
        self._doors.append(site)
        return site.open(begin=False)

    @property
    def requests(self) -> int:
        sites = (self.site, *self._doors)
        return sum(one.tape.requests for site in sites for one in site.conversations)

    @property
    def has_wordless_end(self) -> bool:
        """Whether a process ended by itself before it had said anything."""
        return any(site.has_wordless_end for site in (self.site, *self._doors))

    def close(self) -> None:
        """End every connection; those that were closed before do not mind."""
        for site in (*self._doors, self.site):
            site.close()

    def another(self, declare: tuple[str, ...] = EVERYTHING) -> Conversation | None:
        """A second session beside the first; None when the server allows none."""
        try:
            return self.site.open(declare=declare)
        except PeerError as error:
            self.notes.append(f"there was no second connection: {error.message}")
            return None
