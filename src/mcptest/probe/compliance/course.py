"""A probe while it is taken: where it stands, what is under way, what was seen so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.core.capture import AnyRecord, Frame, Sender
from mcptest.core.message import ABSENT, Kind, Message, id_key
from mcptest.core.revision import Era
from mcptest.probe.compliance.conversation import Asked, Conversation, Started
from mcptest.probe.compliance.site import Site
from mcptest.rules.corpus.probes import (
    Placeholder,
    Probe,
    ProbeStep,
    fill,
    fill_check,
    placeholders,
)
from mcptest.rules.protocol import object_at
from mcptest.session.pages import is_declared
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.envelope import decode

Purpose: TypeAlias = Literal["polite", "rude", "quiet", "another", "last"]


def shared(site: Site, purpose: Purpose, declare: tuple[str, ...] = ()) -> Conversation:
    """The connection for this purpose; a new one when there is none yet, or none that will do.

    `last` is for a question after which nothing is asked there any more; on a `quiet` one no stream
    for the server's own messages stands open.
    """
    if purpose == "last":
        return _unspoiled(site)
    found = site.shared.get((purpose, declare))

    def will_do(conversation: Conversation) -> bool:
        """Whether nothing is left of the rude words that were said on it, if any were."""
        conversation.polite = conversation.polite and purpose != "rude"
        return purpose != "rude" or conversation.answers_as_before()

    if found is not None and is_usable(found) and will_do(site.ready(found)):
        return found
    quiet = purpose == "quiet"
    found = site.open_without_listening() if quiet else site.launch(declare=declare)
    site.shared[purpose, declare] = found
    will_do(site.ready(found))
    return found


def _unspoiled(site: Site) -> Conversation:
    """A connection that is of no more use to others, and was left as it was found."""
    found = site.shared.pop(("rude", ()), None)
    if found is None or not _is_as_before(site, found):
        found = site.tour_to_spoil()
    if found is None or not _is_as_before(site, found):
        found = site.shared.pop(("another", ()), None)
    if found is None or not _is_as_before(site, found):
        found = site.open()
    found.polite = False
    return found


def _is_as_before(site: Site, conversation: Conversation) -> bool:
    return is_usable(conversation) and site.ready(conversation).answers_as_before()


def set_going(site: Site, purposes: Sequence[Purpose]) -> None:
    """Launch shared connections before they are needed, so that the servers start meanwhile."""
    for purpose in purposes:
        if (purpose, ()) not in site.shared:
            site.shared[purpose, ()] = site.launch()


def is_usable(conversation: Conversation) -> bool:
    return conversation.gone is None and not conversation.mute and conversation.tape.exited is None


class Unobserved(Exception):  # noqa: N818 - nothing went wrong: there was nothing to see
    """What was looked for could not be seen, and so nothing is said about it."""

    def __init__(self, reason: str, unlocked_by: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.unlocked_by = unlocked_by
        """What the server would need so that it could be seen."""


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    exchange: SeenExchange = msgspec.field(default_factory=SeenExchange)
    identifier: Any = ABSENT
    """The id of the request that was sent; ABSENT where there was none."""
    records: Sequence[AnyRecord] = ()
    """Everything that went over its connection, also before and after."""
    begins: int = 0
    """The first of these records that belongs to the step or came after it."""
    lists: Mapping[str, Sequence[Any]] = msgspec.field(default_factory=dict)
    """Of a walk: the items of every list, by its method."""
    document: Any = ABSENT
    """Of a fetch: the JSON that was found."""
    seconds: float = 0.0

    @property
    def since(self) -> Iterator[AnyRecord]:
        """What went over its connection from its beginning on."""
        return islice(self.records, self.begins, None)

    @property
    def came(self) -> Iterator[Message]:
        """The messages of the server among these."""
        return (message for message, _ in messages_of("server", self.since))


class ProbeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of one probe, and what was known of the server before."""

    taken: Mapping[str, Taken]
    capabilities: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def __getitem__(self, step: str) -> Taken:
        return self.taken[step]

    def result(self, step: str) -> Mapping[str, Any]:
        """The result of a step, or an empty object when it has none that is an object."""
        return object_at(self.taken[step].exchange.result) if step in self.taken else {}

    def declares(self, path: str) -> bool:
        return is_declared(path, self.capabilities)


Fact: TypeAlias = Callable[[ProbeSeen], Any]


def messages_of(sender: Sender, records: Iterable[AnyRecord]) -> Iterator[tuple[Message, Frame]]:
    """Every message that one side sent, those inside of arrays one by one."""
    for record in records:
        if not isinstance(record, Frame) or record.sender != sender:
            continue
        message = decode(record.raw)
        for each in message.items if message.kind is Kind.BATCH else (message,):
            yield each, record


def answers_to(identifier: Any, records: Iterable[AnyRecord]) -> Iterator[Message]:
    """Every answer with this id, in its JSON type."""
    wanted = id_key(identifier)
    for message, _ in messages_of("server", records):
        if message.is_answer and id_key(message.id) == wanted:
            yield message


_AT_WORK = frozenset({"tools/call", "tasks/result"})


class Course:
    """Takes the steps of one probe one after the other and keeps what was seen."""

    def __init__(self, probe: Probe, site: Site, *, home: Conversation | None = None) -> None:
        """With `home` it is taken there, and every other connection that it needs is its own."""
        self.probe = probe
        self.site = site
        self._home = home
        self.taken: dict[str, Taken] = {}
        self.evidence: list[Asked] = []
        self.under_way: dict[str, Started] = {}
        """Steps whose end is still to come, by name."""
        self.learned: dict[str, Any] = {}
        """Values for placeholders that this probe found out itself."""
        self.conversations: list[Conversation] = []
        """Where steps were taken."""
        self._current: Conversation | None = None
        self._own: list[Conversation] = []

    # -- connections -----------------------------------------------------------------------

    @property
    def is_stateless(self) -> bool:
        return self.site.revision.era is Era.STATELESS

    def conversation_for(self, step: ProbeStep) -> Conversation:
        """Where a step is taken. What a client declares at the handshake it declares for good."""
        where = step.options.connection
        declare = () if self.is_stateless else step.send.declare
        if where == "bare":
            return self.open(begin=False)
        if where == "new":
            conversation = (
                shared(self.site, "another", declare)
                if self._home is None
                else self._launched(declare=declare)
            )
        else:
            if self._current is None or (declare and declare != self._current.answers.declare):
                home = self._home
                if home is not None and declare in ((), home.answers.declare):
                    self._current = home
                elif self.probe.own_connection or home is not None:
                    self._current = self.open(declare=declare)
                else:
                    self._current = shared(self.site, purpose_of(self.probe), declare)
            conversation = self._current
        if step.options.rude:
            conversation.polite = False
        return conversation

    def open(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """A connection of this probe's own, on which the next steps are taken."""
        self._current = self._launched(begin=begin, declare=declare)
        return self._current

    def _launched(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        conversation = self.site.launch(begin=begin, declare=declare)
        self._own.append(conversation)
        return self.site.ready(conversation)

    def close(self) -> None:
        for conversation in self._own:
            self.site.leave(conversation)

    # -- what is sent ----------------------------------------------------------------------

    def filled(self, check: SentCheck) -> SentCheck:
        """The check with everything that is known put in. Raises Unobserved when it lacks it."""
        known = {**self.site.known, **self.learned}
        try:
            return msgspec.structs.replace(fill_check(check, known), raw=fill(check.raw, known))
        except KeyError as missing:
            name = str(missing.args[0])
            known_as = placeholders().get(name, Placeholder(name))
            reason = f"the server lacks what the check needs: {known_as.about}"
            raise Unobserved(reason, known_as.unlocked_by) from None

    # -- what was seen ---------------------------------------------------------------------

    def start(self, step: ProbeStep, check: SentCheck, conversation: Conversation) -> Started:
        identifier = ABSENT if step.options.id is None else step.options.id
        started = conversation.start(check, identifier=identifier)
        self.under_way[step.name] = started
        return started

    def collect(self, name: str) -> Asked:
        """Wait for what came of a step that was sent."""
        started = self.under_way.pop(name)
        conversation = started.conversation
        if started.check.method in _AT_WORK:
            # A tool may take its time; one that never answers must not cost every probe all of it.
            whole = self.site.waits.left(at_work=True) >= self.site.order.timeout
            if not self.await_silence(conversation, lambda: started.done):
                started.cut_short = not whole
                conversation.give_up(started)
        return self.note(name, conversation.finish(started), conversation)

    def await_silence(self, conversation: Conversation, until: Callable[[], bool]) -> bool:
        """Wait for something that ought to come, for what is left of the timeout; did it come?"""
        begun = time.monotonic()
        came = conversation.pump(self.site.waits.left(at_work=True), until)
        if not came:
            self.site.waits.in_vain(begun, time.monotonic())
        return came

    def note(self, name: str, asked: Asked, conversation: Conversation, **more: Any) -> Asked:
        self.evidence.append(asked)
        if conversation not in self.conversations:
            self.conversations.append(conversation)
        kept = {"begins": asked.place, "records": conversation.tape.records, **more}
        self.taken[name] = Taken(exchange=asked.exchange, identifier=asked.identifier, **kept)
        return asked

    @property
    def seen(self) -> ProbeSeen:
        return ProbeSeen(taken=self.taken, capabilities=self.site.capabilities)


def purpose_of(probe: Probe) -> Purpose:
    """Over which connection a probe is taken that has none of its own."""
    if probe.may_change_era:
        return "last"
    return "rude" if probe.is_rude else "polite"
