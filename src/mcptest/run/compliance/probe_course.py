"""A probe while it is taken: where it stands, what is under way, what was seen so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT
from mcptest.model.revision import Era
from mcptest.rules.corpus.placeholders import PLACEHOLDERS, fill
from mcptest.rules.corpus.probe_steps import Probe, Step
from mcptest.run.compliance.conversation import Asked, Conversation, Started
from mcptest.run.compliance.probe_connections import Purpose, launched, shared
from mcptest.run.compliance.probe_seen import Seen, Taken, Unobserved, is_declared
from mcptest.run.compliance.site import Site
from mcptest.suite.check_forms import Check
from mcptest.suite.exchange_targets import Exchange

_AT_WORK = frozenset({"tools/call", "tasks/result"})


class UnderWay(msgspec.Struct):
    """A step whose end is still to come."""

    step: Step
    conversation: Conversation
    started: Started
    given_up: bool = False
    """We took it back: whether an answer comes is not waited for."""


class Course:
    """Takes the steps of one probe one after the other and keeps what was seen."""

    def __init__(self, probe: Probe, site: Site, *, home: Conversation | None = None) -> None:
        """With `home` it is taken there, and every other connection that it needs is its own."""
        self.probe = probe
        self.site = site
        self._home = home
        self.taken: dict[str, Taken] = {}
        self.evidence: list[Asked] = []
        self.under_way: dict[str, UnderWay] = {}
        self.learned: dict[str, Any] = {}
        """Values for placeholders that this probe found out itself."""
        self._current: Conversation | None = None
        self._own: list[Conversation] = []

    # -- connections -----------------------------------------------------------------------

    @property
    def is_stateless(self) -> bool:
        return self.site.revision.era is Era.STATELESS

    def conversation_for(self, step: Step) -> Conversation:
        """Where a step is taken. What a client declares at the handshake it declares for good."""
        where = step.options.connection
        declare = () if self.is_stateless else step.send.declare
        if where == "bare":
            return self.open(begin=False)
        if where == "new":
            conversation = self._another_connection(declare)
        else:
            if self._current is None or (declare and declare != self._current.answers.declare):
                self._current = self._a_connection(declare)
            conversation = self._current
        if step.options.rude:
            conversation.polite = False
        return conversation

    def _a_connection(self, declare: tuple[str, ...]) -> Conversation:
        if self._home is not None and declare in ((), self._home.answers.declare):
            return self._home
        if self.probe.own_connection or self._home is not None:
            return self.open(declare=declare)
        return shared(self.site, purpose_of(self.probe), declare)

    def _another_connection(self, declare: tuple[str, ...]) -> Conversation:
        if self._home is None:
            return shared(self.site, "another", declare)
        return self._launched(declare=declare)

    def open(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """A connection of this probe's own, on which the next steps are taken."""
        self._current = self._launched(begin=begin, declare=declare)
        return self._current

    def _launched(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        conversation = launched(self.site, begin=begin, declare=declare)
        self._own.append(conversation)
        return self.site.ready(conversation)

    def close(self) -> None:
        for conversation in self._own:
            self.site.leave(conversation)

    # -- what is sent ----------------------------------------------------------------------

    def filled(self, check: Check) -> Check:
        """The check with everything that is known put in. Raises Unobserved when it lacks it."""
        known = {**self.site.known, **self.learned}
        try:
            return _filled(check, known)
        except KeyError as missing:
            name = str(missing.args[0])
            about = PLACEHOLDERS.get(name)
            what = about.about if about is not None else name
            unlocked_by = about.unlocked_by if about is not None else ""
            raise Unobserved(f"there is not what it takes: {what}", unlocked_by) from None

    def is_declared(self, capability: str) -> bool:
        return is_declared(capability, self.site.capabilities)

    # -- what was seen ---------------------------------------------------------------------

    def start(self, step: Step, check: Check, conversation: Conversation) -> UnderWay:
        identifier = ABSENT if step.options.id is None else step.options.id
        started = conversation.start(check, identifier=identifier)
        self.under_way[step.name] = UnderWay(step, conversation, started)
        return self.under_way[step.name]

    def collect(self, name: str) -> Asked:
        """Wait for what came of a step that was sent."""
        under_way = self.under_way.pop(name)
        if under_way.started.check.method in _AT_WORK:
            self._await_work(under_way)
        asked = under_way.conversation.finish(under_way.started)
        return self.note(name, asked, under_way.conversation, under_way.started.place)

    def _await_work(self, under_way: UnderWay) -> None:
        """A tool may take its time; one that never answers must not cost every probe all of it."""
        started = under_way.started
        whole = self.site.waits.left(at_work=True) >= self.site.order.timeout
        if not self.await_silence(under_way.conversation, lambda: started.done):
            started.cut_short = not whole
            under_way.conversation.give_up(started)

    def await_silence(self, conversation: Conversation, until: Callable[[], bool]) -> bool:
        """Wait for something that ought to come, for what is left of the timeout; did it come?"""
        begun = time.monotonic()
        came = conversation.pump(self.site.waits.left(at_work=True), until)
        if not came:
            self.site.waits.in_vain(begun, time.monotonic())
        return came

    def note(
        self, name: str, asked: Asked, conversation: Conversation, place: int, **more: Any
    ) -> Asked:
        """Keep what came of a step."""
        self.evidence.append(asked)
        self.taken[name] = Taken(
            exchange=asked.exchange,
            identifier=asked.identifier,
            records=conversation.tape.records,
            begins=place,
            **more,
        )
        return asked

    def exchange(self, name: str) -> Exchange:
        return self.taken[name].exchange

    @property
    def seen(self) -> Seen:
        return Seen(taken=self.taken, capabilities=self.site.capabilities)


def purpose_of(probe: Probe) -> Purpose:
    """Over which connection a probe is taken that has none of its own."""
    if probe.may_change_era:
        return "last"
    return "rude" if probe.is_rude else "polite"


def _filled(check: Check, known: Mapping[str, Any]) -> Check:
    http = check.http
    if http is not None:
        http = msgspec.structs.replace(
            http, headers=fill(http.headers, known), body=fill(http.body, known)
        )
    return msgspec.structs.replace(
        check,
        method=fill(check.method, known),
        params=fill(check.params, known),
        meta=fill(check.meta, known),
        headers=fill(check.headers, known),
        raw=fill(check.raw, known),
        http=http,
    )
