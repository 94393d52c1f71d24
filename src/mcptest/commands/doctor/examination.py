"""A server under examination: the session it is met in, what it lists, and how it is asked.

There is one session in the revision that the server is moved to, if it speaks that already, and
otherwise in the one it speaks today. In the second case it is also *knocked at*: spoken to in the
new revision on a connection of its own, to see what clients will get.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from mcptest.core.capture import Frame
from mcptest.core.errors import PeerError
from mcptest.core.judgement import Evidence
from mcptest.core.limits import Deadline
from mcptest.core.message import ABSENT, Kind
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import (
    Asked,
    Conversation,
    Started,
    may_change_era,
    trouble_of,
)
from mcptest.probe.compliance.learning import (
    learn_about_eras,
    list_through,
    prompt_arguments,
    refuses_ping,
    usable_tool,
)
from mcptest.probe.compliance.questions import evidence_of
from mcptest.probe.compliance.site import Order, Site, Waits
from mcptest.rules.messages import is_meta_key
from mcptest.rules.migration import RESOURCE_NOT_FOUND
from mcptest.rules.protocol import CACHEABLE, needed_meta
from mcptest.rules.stateless import hint_fault
from mcptest.schema.tool_inputs import plausible_arguments
from mcptest.session.answers import EVERYTHING
from mcptest.session.lifecycle import PREFIX
from mcptest.session.live import answered_twice
from mcptest.session.pages import LIST_CAPABILITIES, LIST_MEMBERS, named_items
from mcptest.session.tape import answered_requests
from mcptest.suite.matching import error_code
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck, SentHttpRequest
from mcptest.wire.envelope import Faults, decode, faults_of_answer
from mcptest.wire.mcp_headers import METHOD_HEADER, NAME_HEADER, SESSION_HEADER, VERSION_HEADER


def arguments_for(tool: Mapping[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    return plausible_arguments(schema) if isinstance(schema, dict) else {}


def call_of(tool: Mapping[str, Any]) -> SentCheck:
    """A call of it with arguments that it should take."""
    params = {"name": tool.get("name"), "arguments": arguments_for(tool)}
    return SentCheck(method="tools/call", params=params)


LONGEST_PROOF = 800
_LEAVING = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"}
)
"""Methods that go as a whole: what their answers lack does not matter."""
_MOST_KINDS = 50
_MOST_ITEMS = 1_000


def proof(asked: Asked) -> Evidence:
    """What was sent and what came, safe to show and of bounded length."""
    return evidence_of(asked.sent, asked.received, LONGEST_PROOF)


class Watch:
    """Facts about all answers so far."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self.results = 0
        self.untyped: dict[str, Evidence] = {}
        """Methods whose results had no resultType."""
        self.cacheable = 0
        self.uncached: dict[str, Evidence] = {}
        self.codes: dict[int, Evidence] = {}
        self.meta_keys: dict[str, Evidence] = {}
        self.bad_meta_keys: dict[str, Evidence] = {}
        self.audio = 0
        self.bad_audio: Evidence | None = None
        self.log_messages: Evidence | None = None
        self.questions: dict[str, Evidence] = {}
        """Methods that the server asked of the client by a request of its own."""
        self.inputs: dict[str, Evidence] = {}
        """Methods that it asked for inside an input-required result."""

    def take(self, method: str, asked: Asked) -> Asked:
        """Look at an answer to a request that a client of its revision sends."""
        exchange = asked.exchange
        if isinstance(exchange.result, dict):
            self._take_result(method, exchange.result, asked)
        self.take_code(method, exchange.error, asked)
        for one in exchange.notifications:
            if _method_of(one) == "notifications/message" and self.log_messages is None:
                # The standard library writes whatever it read.
                came = show(self._mask(json.dumps(one)), LONGEST_PROOF)
                self.log_messages = Evidence(show(asked.sent, LONGEST_PROOF), came)
        return asked

    def _take_result(self, method: str, result: Mapping[str, Any], asked: Asked) -> None:
        self.results += 1
        if not isinstance(result.get("resultType"), str) and method not in _LEAVING:
            _note(self.untyped, method, asked)
        if method in CACHEABLE and result.get("resultType") != "input_required":
            self.cacheable += 1
            if hint_fault(result):
                _note(self.uncached, method, asked)
        if result.get("resultType") == "input_required":
            for one in asked.exchange.asked:
                _note(self.inputs, _method_of(one), asked)
        for key in (str(key) for meta in _metas(result) for key in list(meta)[:_MOST_ITEMS]):
            _note(self.meta_keys, key, asked)
            if not is_meta_key(key):
                _note(self.bad_meta_keys, key, asked)
        for block in _blocks(result):
            if block.get("type") == "audio":
                self.audio += 1
                sound = all(isinstance(block.get(name), str) for name in ("data", "mimeType"))
                if not sound and self.bad_audio is None:
                    self.bad_audio = proof(asked)

    def take_code(self, method: str, error: Any, asked: Asked) -> None:
        """Look at an error, whoever it was meant for."""
        code = error_code(error)
        if code is None or len(self.codes) >= _MOST_KINDS:
            return
        if code == RESOURCE_NOT_FOUND and method.startswith("resources/"):
            return  # that one has an item of its own
        self.codes.setdefault(code, proof(asked))

    def heard(self, method: str, raw: bytes) -> None:
        """Take note of a request of the server, given as bytes without secrets."""
        if method not in self.questions and len(self.questions) < _MOST_KINDS:
            self.questions[method] = Evidence("", show(raw, LONGEST_PROOF))


def _note(found: dict[str, Evidence], name: str, asked: Asked) -> None:
    if name not in found and len(found) < _MOST_KINDS:
        found[name] = proof(asked)


def _method_of(question: Any) -> str:
    return str(question.get("method")) if isinstance(question, dict) else "?"


def _metas(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The `_meta` of a result and of the items of its lists."""
    for holder in (result, *_items(result)):
        meta = holder.get("_meta")
        if isinstance(meta, dict):
            yield meta


def _items(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in result.values():
        if isinstance(value, list):
            yield from (one for one in value[:_MOST_ITEMS] if isinstance(one, dict))


def _blocks(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Content of tool results and of the messages of prompts."""
    for item in _items(result):
        content = item.get("content")
        yield content if isinstance(content, dict) else item


def code_of(asked: Asked) -> int | None:
    return error_code(asked.exchange.error)


def status_of(asked: Asked) -> int | None:
    http = asked.exchange.http
    return http["status"] if http is not None else None


def is_result(asked: Asked) -> bool:
    return isinstance(asked.exchange.result, dict)


def came(asked: Asked) -> bool:
    """Whether there was any answer, of HTTP or of JSON-RPC."""
    return asked.exchange.answer != "none" or asked.exchange.http is not None


def said(asked: Asked) -> str:
    """What came, in a few words: `a result`, `-32601 (HTTP 404)`, `nothing`."""
    status = status_of(asked)
    told = "" if status is None else f"HTTP {status}"
    error = asked.exchange.error
    if error is not ABSENT:
        code = error.get("code") if isinstance(error, dict) else error
        words = f"the error {show(str(code), 20)}"
    elif asked.exchange.result is not ABSENT:
        words = "a result"
    else:
        return told or "nothing"
    return f"{words} ({told})" if told else words


UNKNOWN_VERSION: Final = "1999-01-01"
UNKNOWN_METHOD: Final = "mcptest/unknown"
UNKNOWN_TOOL: Final = "mcptest-unknown-tool"
UNKNOWN_URI: Final = "mcptest://unknown/resource"
_DISCOVER: Final = "server/discover"


def knocks_for(a_list: str, transport: str, newer: Revision) -> dict[str, SentCheck]:
    """The questions by name; none for a revision that begins with a handshake."""
    if newer.era is Era.HANDSHAKE:
        return {}
    knocks = {
        "discover": SentCheck(method=_DISCOVER),
        "list": SentCheck(method=a_list),
        "list-without-meta": SentCheck(method=a_list, omit=("_meta",)),
        "list-without-version": SentCheck(method=a_list, meta={PREFIX + "protocolVersion": None}),
        "list-without-capabilities": SentCheck(
            method=a_list, meta={PREFIX + "clientCapabilities": None}
        ),
        "unknown-version": SentCheck(
            method=_DISCOVER,
            meta={PREFIX + "protocolVersion": UNKNOWN_VERSION},
            headers={VERSION_HEADER: UNKNOWN_VERSION},
        ),
        "unknown-method": SentCheck(method=UNKNOWN_METHOD),
    }
    if transport != "http":
        return knocks
    call = {"name": UNKNOWN_TOOL, "arguments": {}}
    version = {VERSION_HEADER: newer.wire_version}
    events = {"Accept": "text/event-stream", **version}
    return {
        **knocks,
        "method-missing": SentCheck(method=_DISCOVER, headers={METHOD_HEADER: None}),
        "method-wrong": SentCheck(method=_DISCOVER, headers={METHOD_HEADER: "prompts/list"}),
        "name-missing": SentCheck(method="tools/call", params=call, headers={NAME_HEADER: None}),
        "name-wrong": SentCheck(
            method="tools/call", params=call, headers={NAME_HEADER: "mcptest-another-name"}
        ),
        "version-differs": SentCheck(method=_DISCOVER, headers={VERSION_HEADER: "2025-11-25"}),
        "session": SentCheck(method=_DISCOVER, headers={SESSION_HEADER: "mcptest-no-session"}),
        "get": SentCheck(http=SentHttpRequest("GET", headers=events)),
        "delete": SentCheck(http=SentHttpRequest("DELETE", headers=version)),
    }


_INTRODUCING = ("initialize", "server/discover")
_CALLS = 20
_REOPENINGS = 5
_SHORTEST_PATIENCE = 2.0
_TURN = 0.05
NOTHING = Asked(SeenExchange(), b"", b"")
"""What is known of a question that could not be asked."""


class AskedCall(msgspec.Struct, frozen=True):
    """A tool that was called, and what came of it."""

    tool: Mapping[str, Any]
    asked: Asked


def kept_apart(order: Order, folder: str) -> Order:
    """The same order with its captures in a folder of their own: each site counts from one."""
    apart = order.captures / folder if order.captures is not None else None
    return msgspec.structs.replace(order, captures=apart)


class Examination:
    """Asks, lists and calls; judges nothing. Whatever the server does, nothing raises."""

    def __init__(self, site: Site, conversation: Conversation, newer: Revision) -> None:
        self.site = site
        self.newer = newer
        self.watch = Watch(site.masker.text)
        self.lists: dict[str, list[Any]] = {}
        self.calls: list[AskedCall] = []
        self.unlisted: set[str] = set()
        """Lists that the server declares and that could not be had."""
        self.unanswered: set[str] = set()
        """Methods of a sound session that got no answer at all: what rests on them is unknown."""
        self.notes: list[str] = []
        self._remarked: set[str] = set()
        """What something odd was noted of already, such as a method."""
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
    def transport(self) -> str:
        return self.site.transport

    def declares(self, capability: str, part: str = "") -> bool:
        declared = self.site.capabilities.get(capability)
        return isinstance(declared, dict) and (not part or declared.get(part) is True)

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
        for asked, found in answered_requests(self._first_tape.records):
            if asked.method in _INTRODUCING and found.kind is Kind.RESULT:
                return evidence_of(mask(asked.raw), mask(found.raw), LONGEST_PROOF)
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
            gone = self._conversation.gone
            why = gone.message if gone is not None else "it stopped answering"
            lines = "; ".join(line.strip() for line in why.splitlines())
            self._remark(lines, f"the server was restarted: {lines}")
            self._conversation.close()
            self._listened_to = 0
            try:
                self._conversation = self.site.open(declare=EVERYTHING)
            except PeerError as error:
                self.notes.append(f"the server could not be restarted: {error.message}")
                self._reopened = _REOPENINGS
        return self._conversation

    def ask(self, check: SentCheck) -> Asked:
        """In the session, as a client of its revision asks; what came is taken note of."""
        conversation = self.conversation
        asked = conversation.ask(check)
        self._listen(conversation)
        for answer in asked.answers:
            faults = faults_of_answer(answer, self.site.revision, check.method)
            self._note_faults(check.method, faults)
        self._remark(check.method, asked.unusable)
        second = next(conversation.client.connection.second_answers(), None)
        if second is not None:
            self._remark("answered twice", answered_twice(second))
        return self.watch.take(check.method, asked)

    def _note_faults(self, method: str, faults: Faults) -> None:
        words = faults.refused or faults.warned
        how = "malformed" if faults.refused else "doubtful"
        self._remark(method, words and f"the answer to {method} is {how}: {words}")

    def _remark(self, about: str, note: str) -> None:
        """Note something odd, once for each thing that it is about."""
        if note and about not in self._remarked:
            self._remarked.add(about)
            self.notes.append(note)

    def ask_in_newer(self, method: str, params: Mapping[str, Any] | None = None) -> Asked:
        """The same with the `_meta` of the newer revision, which an old server ignores."""
        meta: dict[str, Any] = {}
        if not self.speaks_newer and self.newer.era is Era.STATELESS:
            meta = needed_meta(self.newer)
        return self.ask(SentCheck(method=method, params=params, meta=meta))

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

    @property
    def alive(self) -> SentCheck:
        return self.site.alive_check

    @cached_property
    def a_list(self) -> str:
        """A list that the server says it has; the tools where it says nothing."""
        declared = (method for method, needs in LIST_CAPABILITIES.items() if self.declares(needs))
        return next(declared, "tools/list")

    # -- what there is ---------------------------------------------------------------------

    def look_around(self) -> None:
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
        if refuses_ping(self.conversation.tape.records):
            self.site.alive_method = self.a_list
        self._use_one_of_each()
        budget = Deadline.after(self.site.order.timeout)
        for tool in self._callable():
            if budget.expired:
                self.notes.append("some tools were not called: the calls took too long")
                break
            self.calls.append(AskedCall(tool, self._ask_soundly(call_of(tool))))

    def walk(self, method: str) -> list[Any]:
        listed = list_through(self._ask_soundly, method, self.site.order.timeout)
        if listed.endless:
            self.unlisted.add(LIST_MEMBERS[method])
            self._remark(listed.endless, listed.endless)
        return listed.items

    def _use_one_of_each(self) -> None:
        """Read the first resource and get the first prompt."""
        for one in named_items(self.lists.get("resources", ()), "uri")[:1]:
            self._ask_soundly(SentCheck(method="resources/read", params={"uri": one["uri"]}))
        for one in named_items(self.lists.get("prompts", ()))[:1]:
            arguments = {name: name for name, required in prompt_arguments(one) if required}
            params = {"name": one["name"], "arguments": arguments}
            self._ask_soundly(SentCheck(method="prompts/get", params=params))

    def _callable(self) -> Iterator[Mapping[str, Any]]:
        """Tools that the user named, and some of those that say they only read."""
        reading = 0
        for tool in self.tools:
            if tool.get("name") in self.site.order.allow_tools:
                yield tool
            elif reading < _CALLS and usable_tool(tool, set()) is not None:
                reading += 1
                yield tool

    def _ask_soundly(self, check: SentCheck) -> Asked:
        """What every server answers that declares it."""
        asked = self.ask(check)
        if asked.exchange.answer == "none" and check.method not in self.unanswered:
            self.unanswered.add(check.method)
            why = trouble_of(self._conversation.tape.records, asked.stream)
            self.notes.append(f"the server did not answer {check.method}{why and f': {why}'}")
        return asked

    # -- other connections -----------------------------------------------------------------

    @cached_property
    def knocks(self) -> Mapping[str, Asked]:
        """What clients of the newer revision get who know nothing of older ones.

        What a server of both eras may read as of the older one is asked on a connection of its own.
        """
        checks = knocks_for(self.a_list, self.transport, self.newer)
        alone = [name for name, one in checks.items() if may_change_era(one, self.newer)]
        together = [name for name in checks if name not in alone]
        try:
            doors = [(self._door(), each) for each in (together, *([one] for one in alone)) if each]
        except PeerError as error:
            self.notes.append(f"no session in {self.newer}: {error.message}")
            return {}
        found: dict[str, Asked] = {}
        started = [(door, one, door.start(checks[one])) for door, (one, *_) in doors]
        for door, name, first in started:
            self._await_reader(door, first)
            if first.done:  # a large answer is cut short before the next one is read
                found[name] = door.finish(first)
        others = [(door, one) for door, (_, *more) in doors for one in more]
        started += [(door, one, door.start(checks[one])) for door, one in others]
        if doors and not self.speaks_newer:
            self._bound_silence([door for door, _ in doors])
        found |= {name: door.finish(one) for door, name, one in started if name not in found}
        for door, each in doors:
            door.close()
            door.tape.forget_records()
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
        if self.site.revision.era is Era.HANDSHAKE:
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

    def _knock_alone(self, check: SentCheck) -> Asked:
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
        return sum(one.tape.messages_sent for site in sites for one in site.conversations)

    @property
    def has_wordless_end(self) -> bool:
        """Whether a process ended by itself before it had said anything."""
        return any(site.has_wordless_end for site in (self.site, *self._doors))

    def close(self) -> None:
        """End every connection; those that were closed before do not mind.

        What was listed, called and said is judged by then: a second examination has the room.
        """
        for site in (*self._doors, self.site):
            site.close()
            for one in site.conversations:
                one.forget()
        self.lists.clear()
        self.calls.clear()
        self.__dict__.pop("knocks", None)

    def another(self, declare: tuple[str, ...] = EVERYTHING) -> Conversation | None:
        """A second session beside the first; None when the server allows none."""
        try:
            return self.site.open(declare=declare)
        except PeerError as error:
            self.notes.append(f"a second connection could not be opened: {error.message}")
            return None
