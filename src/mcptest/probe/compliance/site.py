"""What is to be judged, and how far judging may go."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.capture import TransportName
from mcptest.core.errors import ErrorKind, McptestError, PeerError
from mcptest.core.limits import MEBIBYTE, Deadline, now
from mcptest.core.message import Flaw, Message, Problem, with_short_texts
from mcptest.core.redaction import redaction
from mcptest.core.revision import Era, Revision
from mcptest.probe.compliance.conversation import BODY_KEPT, Asked, Conversation
from mcptest.session.answers import EVERYTHING, answers_for
from mcptest.session.client import HeaderSchemas
from mcptest.session.live import LiveSession
from mcptest.session.meeting import ASKED_FOR
from mcptest.session.tape import Room, Tape
from mcptest.suite.sent_message import SentCheck
from mcptest.transport.base import discard
from mcptest.transport.process import ServerProcess
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target, transport_for
from mcptest.wire.json_text import values_cost, write_json


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One server to be judged by one corpus."""

    target: Target
    revision: Revision | None = None
    """None: the newest that the server speaks."""
    because: str = ASKED_FOR
    """Why it is the revision that is given."""
    rules: tuple[str, ...] = ()
    """Only these; empty means the whole corpus."""
    allow_tools: tuple[str, ...] = ()
    """Tools that the user allows to be called, beside those that say they only read."""
    fixtures: Mapping[str, str] = {}
    """Fixture to the tool, prompt or resource that is one."""
    timeout: float = 30.0
    startup: float = 30.0
    patience: float = 2.0
    """How long silence is waited for, where silence is possible."""
    corpora: Path | None = None
    """The folder of another registry."""
    captures: Path | None = None
    """The folder in which to keep everything that went over the wire."""
    repeat: str = ""
    """The command that judges this server again; ` --rule ID` is appended."""
    should_stop: Callable[[], bool] | None = None


_LEAVING = 2.0


_PATIENCE_WITH_WORK = 2.0
"""How many times our patience is left for a tool, once a whole timeout was waited in vain."""
_PATIENCE_WITH_ENDS = 5.0
"""How many times our patience a process may take to end: large ones on a busy machine do."""
_MEETINGS = 4
"""How many times as long as the first meeting is waited at least, however often it was in vain."""


class Waits:
    """What one run has waited for in vain so far. Waits side by side count once."""

    def __init__(self, order: Order) -> None:
        self._timeout = order.timeout
        self._startup = order.startup
        self._patience = order.patience
        self.met_in = 0.0
        """How long it took to meet the server: a busy machine has to be waited for longer."""
        self._spent = 0.0
        self._counted_until = 0.0
        self._lock = threading.Lock()

    def left(self, *, at_work: bool = False, starting: bool = False) -> float:
        """For how many seconds the next answer, or the first one of a process, is waited for."""
        least = self._patience * (_PATIENCE_WITH_WORK if at_work else 1.0)
        least = max(least, _MEETINGS * self.met_in)
        most = max(self._timeout, self._startup) if starting else self._timeout
        return max(min(least, most), self._timeout - self._spent)

    @property
    def to_end(self) -> float:
        """For how many seconds a process is waited for that is to end."""
        return max(_PATIENCE_WITH_ENDS * self._patience, _MEETINGS * self.met_in)

    def in_vain(self, begun: float, ended: float) -> None:
        """Between these two moments an answer was waited for that did not come."""
        with self._lock:
            self._spent += max(0.0, ended - max(begun, self._counted_until))
            self._counted_until = max(ended, self._counted_until)


_TEXT_KEPT = 64 * 1024
"""Of each text in a large answer: no check looks further into one."""
_LARGE_VALUES = 4
_LARGE_PART = 256 * 1024
_VALUES_KEPT = 14 * MEBIBYTE
"""What the values of all large answers may take together, and one of any size by itself."""
NOT_KEPT = Problem(
    Flaw.TOO_MANY_VALUES,
    "it has too many values to keep beside those of other responses: together they would take more "
    f"than {_VALUES_KEPT // MEBIBYTE} MB",
)


class LargeAnswers:
    """What is kept of large answers until all is judged: excerpts, and the same one only once.

    Of different ones as many as there is room for; of the others it is known that they came.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[bytes, Any]] = deque(maxlen=_LARGE_VALUES)
        self._results: deque[dict[str, Any]] = deque(maxlen=_LARGE_VALUES)
        self._room = Room(_VALUES_KEPT)

    def kept(self, answer: Message) -> Message:
        if len(answer.raw) <= BODY_KEPT or not isinstance(answer.value, dict):
            return answer
        short = msgspec.structs.replace(answer, raw=answer.raw[:BODY_KEPT])
        try:
            value = {name: self._part(part) for name, part in answer.value.items()}
        except _NoRoomError:
            value = {name: answer.value[name] for name in _ENVELOPE if name in answer.value}
            problems = (*answer.problems, NOT_KEPT)
            return msgspec.structs.replace(short, value=value, problems=problems)
        return msgspec.structs.replace(short, value=value)

    def _part(self, part: Any) -> Any:
        """A result or an error: two may differ in little, so each member is kept by itself."""
        short = with_short_texts(part, _TEXT_KEPT)  # a cursor stays whole, and so does a name
        if not isinstance(short, dict) or len(short) > _MEMBERS_APART:
            return self._shared(short)
        made = {name: self._shared(one) for name, one in short.items()}
        known = next((one for one in tuple(self._results) if _is_made_of_the_same(one, made)), None)
        if known is None:
            self._results.append(made)
        return known or made

    def _shared(self, part: Any) -> Any:
        """An equal one, where a server said the same before."""
        if not isinstance(part, dict | list):
            return part
        written = write_json(part)
        if len(written) <= _LARGE_PART:
            return part
        mark = hashlib.sha256(written).digest()
        for known, value in tuple(self._last):
            if known == mark:
                return value
        if not self._room.take_bytes(values_cost(written)):
            raise _NoRoomError
        self._last.append((mark, part))
        return part


_ENVELOPE = ("jsonrpc", "id")
_MEMBERS_APART = 20
"""Parts of a result; one with more is kept as a whole."""


def _is_made_of_the_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether all members are the same ones, and not merely equal."""
    return list(one) == list(other) and all(
        mine is yours or (type(mine) is str is type(yours) and mine == yours)
        for mine, yours in zip(one.values(), other.values(), strict=True)
    )


class _NoRoomError(Exception):
    """The values of large answers take all the room that there is."""


_LAUNCHING = threading.Lock()
"""Slow probes are taken on the side: connections are set going one at a time."""
_large_answers = LargeAnswers()
"""Of all sites: a server is asked by several, and says the same to each of them."""


_CLOSED_AT_ONCE = 8
_PATIENCE_WITH_STARTS = 2.5
_MOST_CONVERSATIONS = 200
"""However a server behaves, it is not started more often than this."""


_SIDE_BY_SIDE = (
    "several processes run in parallel: give each its own files and ports, or serve all clients "
    "from one process over HTTP"
)
_ENDED = frozenset({ErrorKind.EXITED, ErrorKind.CLOSED})
_KNOWLEDGE = (
    *("transport", "known", "capabilities", "server_info", "versions", "header_schemas"),
    *("page_of_tool", "session_id", "asks_for_token", "speaks_handshake", "alive_method"),
    *("hung_tools", "hung_values", "waits", "_room", "unasked_room", "_numbers", "_run"),
)
"""What a twin takes over."""


@contextlib.contextmanager
def _closed_on_error(conversation: Conversation) -> Iterator[None]:
    try:
        yield
    except BaseException:
        conversation.close()
        raise


class Site:
    """Opens conversations and remembers each of them. `meet` comes first."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.masker = redaction.masker
        self.revision: Revision = order.revision or Revision.V2026_07_28
        self.reason = ""
        """Why that revision, once the server was met."""
        self.transport: str = order.target.way
        self.known: Mapping[str, Any] = {}
        """The value of each placeholder that there is one for."""
        self.capabilities: Mapping[str, Any] = {}
        self.server_info: Mapping[str, Any] = {}
        self.versions: tuple[str, ...] = ()
        """What `server/discover` named."""
        self.header_schemas = HeaderSchemas()
        self.page_of_tool: Mapping[str, str] = {}
        """The cursor of a tool's page, for tools that are not on the first."""
        self.session_id: str = ""
        """What the server gave out to the first conversation, over HTTP."""
        self.asks_for_token = False
        self.speaks_handshake = False
        """Of a server that is judged in the stateless era: whether it speaks the other one too."""
        self.greeting: tuple[SentCheck, Asked] | None = None
        """How that was found out."""
        self._room = Room()
        self.unasked_room = Room()
        """For what the server says unasked: a flood comes on each of many connections."""
        self.large_answers = _large_answers
        self.waits = Waits(order)
        """How long silence was waited for, and still may be."""
        self.hung_tools: dict[str, str] = {}
        """Tools that did not answer, each with what came: nobody calls them again."""
        self.hung_values: frozenset[str] = frozenset()
        """Placeholders that have no value because of that."""
        self.alive_method = ""
        """What shows that the server lives, where it does not answer what every server should."""
        self.unread_lists: list[str] = []
        """Why lists were not read to their end, in words."""
        self.conversations: list[Conversation] = []
        self.tour: Conversation | None = None
        """The connection on which the server was met and looked at."""
        self.shared: dict[tuple[str, tuple[str, ...]], Conversation] = {}
        """Connections that several checks use, by what they are used for and what is declared."""
        self.aside: dict[str, Future[Any]] = {}
        """Probes that are taken on the side, by name. They end before the connections do."""
        self._warm: deque[ServerProcess] = deque()
        """A process that nobody has talked to yet."""
        self._leaving: dict[int, Future[None]] = {}
        self._closers = ThreadPoolExecutor(_CLOSED_AT_ONCE, "mcptest-closing")
        self._lock = threading.Lock()
        self._is_closed = False
        self._fails_to_start = False
        self._says_much = False
        self._numbers = itertools.count(1)
        self._run = os.urandom(4).hex()

    def twin(self) -> Site:
        """The same server, with all that is known of it, and no connection to it yet."""
        twin = Site(msgspec.structs.replace(self.order, revision=self.revision))
        twin._says_much = self.takes_one_at_a_time
        for name in _KNOWLEDGE:
            setattr(twin, name, getattr(self, name))
        return twin

    @property
    def takes_one_at_a_time(self) -> bool:
        """Whether the server is one for all connections, or says so much that each has to wait.

        Answers side by side are held side by side.
        """
        if self.transport != "stdio":
            return True
        large = any(one.tape.largest > MEBIBYTE for one in tuple(self.conversations))
        self._says_much = self._says_much or large
        return self._says_much

    @property
    def alive_check(self) -> SentCheck:
        """A request that every server answers; one that this server does, if it refuses that."""
        stateless = self.revision.era is Era.STATELESS
        return SentCheck(method=self.alive_method or ("server/discover" if stateless else "ping"))

    # -- opening ---------------------------------------------------------------------------

    def meet(self, *, warm: bool = False) -> Conversation:
        """The first connection: which revision, which transport, what is declared.

        With `warm` another server starts meanwhile, since one more will be needed. Raises
        PeerError when the server can't be reached, or does not speak the pinned revision.
        """
        conversation = self._conversation(
            EVERYTHING, self.order.revision, None, starts_ahead=not warm
        )
        client, begun = conversation.client, now()
        try:
            with _closed_on_error(conversation):
                client.meeting.launch(self._startup())
                if warm:
                    self._start_warm()
                client.connect(self._startup())
                if warm and not self._warm:  # the meeting took it
                    self._start_warm()
                pin, spoken = self.order.revision, client.revision
                if pin is not None and spoken.wire_version != pin.wire_version:
                    message = (
                        f"the server does not support {pin}: it answered initialize with {spoken}"
                    )
                    hint = f"use --spec-version {spoken} or --spec-version auto"
                    raise PeerError(ErrorKind.VERSION_REFUSED, message, hint=hint)
        except PeerError as error:
            raise self._with_what_it_speaks(error) from None
        self.revision = conversation.revision = self.order.revision or client.revision
        self.reason, self.waits.met_in = client.met.reason, now() - begun
        self.capabilities = client.server.capabilities
        self.server_info = client.server.info
        self.versions = client.server.versions
        conversation.listen()
        self.transport = conversation.transport
        headers = client.lifecycle.headers("", None)
        self.session_id = headers.get("Mcp-Session-Id", "")
        return conversation

    def _start_warm(self) -> None:
        target = self.order.target
        if target.way == "stdio":  # whoever meets it again says what is wrong, if anything is
            with contextlib.suppress(McptestError):
                process = ServerProcess(
                    target.command, target.env, target.cwd, clean_env=target.clean_env
                )
                self._warm.append(process)

    def _take_warm(self) -> ServerProcess | None:
        """One that runs already, if there is one. It belongs to whoever asked from then on."""
        with contextlib.suppress(IndexError):
            return self._warm.pop()
        return None

    def _with_what_it_speaks(self, error: PeerError) -> PeerError:
        """Who pinned a revision that the server refuses is told which one it would speak."""
        pin = self.order.revision
        if pin is None or error.kind is not ErrorKind.PROTOCOL:
            return error
        order = msgspec.structs.replace(self.order, revision=None, captures=None)
        with contextlib.closing(Site(order)) as asking:
            try:
                asking.meet()
            except PeerError:
                return error  # whatever is wrong, it is not the revision
        message = f"the server does not support {pin}, only {asking.revision}: {error.message}"
        hint = f"use --spec-version {asking.revision} or --spec-version auto"
        return PeerError(ErrorKind.VERSION_REFUSED, message, hint=hint)

    def open(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """A new connection in the revision that is judged. Raises PeerError when there is none."""
        return self.ready(self.launch(begin=begin, declare=declare))

    def open_without_listening(self) -> Conversation:
        """A new connection on which no stream for the server's own messages stands open."""
        conversation = self.launch(begin=False)
        conversation.is_quiet = True
        if self.revision.era is Era.HANDSHAKE:
            with _closed_on_error(conversation):
                conversation.begin_without_listening(Deadline.after(self.order.startup))
        return conversation

    def launch(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """Set a connection going without waiting for it; `ready` does that."""
        way: Any = self.transport
        with _LAUNCHING:
            conversation = self._conversation(declare, self.revision, way)
            deadline = Deadline.after(self.order.startup)
            try:
                with _closed_on_error(conversation):
                    if begin:
                        conversation.client.meeting.launch(deadline)
                        conversation.beginning = True
                    else:
                        conversation.live.tell_beginning(way, self.reason)
                        conversation.client.connection.transport.open(deadline)
                        conversation.listen()
            except PeerError as error:
                raise self._beside_others(error) from error
            return conversation

    def _beside_others(self, error: PeerError) -> PeerError:
        """A server that is there for one connection is not away when it does not take another."""
        well = [one for one in self.conversations if one.usable and one.tape.last_answer]
        if self.transport == "stdio" or not well or error.kind is ErrorKind.CONNECTION_REFUSED:
            return error
        message = f"a second connection fails while another one is open: {error.message}"
        return PeerError(error.kind, message, hint=error.hint)

    def ready(self, conversation: Conversation) -> Conversation:
        """Wait until a launched connection can be used. Raises PeerError when it can't."""
        client = conversation.client
        if client.has_begun or not conversation.beginning:
            return conversation
        try:
            with _closed_on_error(conversation):
                client.connect(self._startup())
        except PeerError as error:
            self._fails_to_start |= error.kind is ErrorKind.TIMEOUT
            raise self._beside_others(error) from error
        client.meeting.let_go_of_large_answers()
        conversation.listen()
        self._settle_era(conversation)
        return conversation

    def _settle_era(self, conversation: Conversation) -> None:
        """Ask a server that may be of both eras one ordinary thing: it knows then which this is of.

        Discovery commits nobody, and a notification or a malformed line has no `_meta` to go by: a
        server may take a connection that begins with one for an older client's. No client sends
        such a thing before its first request.
        """
        is_of_one = self.greeting is not None and not self.speaks_handshake
        if is_of_one or self.transport != "stdio":
            return
        # Of these the tools come last: whether their pages belong to a connection is a rule.
        lists = (f"{name}/list" for name in ("prompts", "resources", "tools"))
        method = next((one for one in lists if one.split("/")[0] in self.capabilities), None)
        if method is not None and self.revision.era is Era.STATELESS:
            conversation.client.request(method, None, self._startup())

    def _startup(self) -> Deadline:
        """Who once said nothing when it was started again is not waited for that long again."""
        limit = self.order.startup
        again = max(_PATIENCE_WITH_STARTS * self.order.patience, _MEETINGS * self.waits.met_in)
        seconds = min(limit, again) if self._fails_to_start else limit
        return Deadline.for_start(seconds, self.order.timeout)

    def _conversation(
        self,
        declare: tuple[str, ...],
        revision: Revision | None,
        way: TransportName | None,
        starts_ahead: bool = True,
    ) -> Conversation:
        if len(self.conversations) >= _MOST_CONVERSATIONS or self._is_closed:
            message = f"the run needed more than {_MOST_CONVERSATIONS} connections"
            raise PeerError(ErrorKind.CLOSED, message)
        answers = answers_for(declare)
        live = LiveSession(
            self.order.target,
            revision=revision,
            because=self.reason or self.order.because,
            answers=answers,
            # To a server that runs already, where there is one.
            reach=lambda way, sink: transport_for(
                self.order.target, sink, way=way, process=self._take_warm()
            ),
            way=way,
            falls_back=revision is None,
            starts_ahead=starts_ahead,
            timeout=self.order.timeout,
            startup=self.order.startup,
            new_tape=partial(self._new_tape, way),
            should_stop=self.order.should_stop,
        )
        made = Conversation(self, live, revision or self.revision, answers)
        self.conversations.append(made)
        return made

    def _new_tape(self, way: TransportName | None) -> Tape:
        recorder = None
        if self.order.captures is not None:
            is_met = self.order.revision is not None or bool(self.reason)
            asked = self.revision.value if is_met else "auto"
            # Probes on the side open connections too, and other runs write into the same folder.
            name = f"{asked}-{self.transport}-{self._run}-{next(self._numbers):03}.jsonl"
            recorder = Recorder(Path(self.order.captures, name), masker=self.masker)
        tape = Tape(self.order.target.label, recorder, self._room)
        tape.transport = way or self.order.target.way
        tape.channel = os.urandom(8).hex()
        return tape

    def tour_to_spoil(self) -> Conversation | None:
        """The first connection for something rude, where others asked on it until now."""
        tour = self.tour
        if tour is None or self.shared.get(("polite", ())) is not tour:
            return None
        del self.shared["polite", ()]
        self.tour = tour.handed_over(self)
        return self.tour

    def spare_connection(self) -> Conversation | None:
        """The second connection, which nobody needs any more; None where it is of no use."""
        found = self.shared.pop(("another", ()), None)
        if found is None or self.transport != "stdio" or not (found.polite and found.usable):
            return None
        try:
            self.ready(found)
        except PeerError:
            return None
        return None if found.tape.dropped or found.may_be_of_other_era else found

    # -- a server that runs once at a time -------------------------------------------------

    @property
    def has_wordless_end(self) -> bool:
        """Whether a process ended by itself before it had said anything."""
        return any(one.tape.ended_wordless for one in self.conversations)

    def require_second_process(self) -> None:
        """Raise PeerError if the server can't be started while another process of it runs.

        What was asked of such a process was asked of nobody, so its end shows nothing.
        """
        if self.transport != "stdio":
            return
        with contextlib.closing(self.twin()) as twin:
            twin.order = msgspec.structs.replace(twin.order, captures=None)
            error = twin.second_start_error()
        if error is not None:
            message = f"the server exits if another process of it is running: {error.message}"
            raise PeerError(error.kind, message, hint=_SIDE_BY_SIDE)

    def second_start_error(self) -> PeerError | None:
        """Why a second process ended while a first one was well, if it did."""
        try:
            first = self.open()
        except PeerError:
            return None  # it does not start alone either, which is told elsewhere
        try:
            self.open()
        except PeerError as error:
            first.ask(self.alive_check)
            return error if error.kind in _ENDED and first.usable else None
        return None

    @property
    def captures(self) -> tuple[str, ...]:
        recorders = (one.tape.recorder for one in self.conversations)
        return tuple(str(one.written_to) for one in recorders if one is not None and one.kept)

    # -- ending ----------------------------------------------------------------------------

    def leave(self, conversation: Conversation) -> None:
        """End a connection on the side: some servers take seconds to leave."""
        with self._lock:
            if id(conversation) not in self._leaving and not conversation.is_closed:
                self._leaving[id(conversation)] = self._closers.submit(conversation.close)

    def close(self) -> None:
        """End every connection that is still open, side by side. Nothing runs any more then."""
        wait(self.aside.values())
        if self._is_closed:
            return
        self._is_closed = True
        try:
            while (process := self._take_warm()) is not None:  # nobody took it
                unused = transport_for(self.order.target, discard, process=process)
                unused.open(Deadline.after(_LEAVING))
                unused.close(Deadline.after(_LEAVING))
            for conversation in self.conversations:
                self.leave(conversation)
            for left in self._leaving.values():
                left.result()
        finally:
            self._closers.shutdown()
