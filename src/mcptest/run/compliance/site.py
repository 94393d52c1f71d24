"""The server that is judged: what is known of it, and every connection that is made to it."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from mcptest.model.capture import TransportName
from mcptest.model.deadline import Deadline, now
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.redaction import redaction
from mcptest.model.revision import Era, Revision
from mcptest.peer.client import Client
from mcptest.run.compliance.conversation import Asked, Conversation
from mcptest.run.compliance.declared import EVERYTHING, DeclaredAnswers, answers_for
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.tape import Room, Tape
from mcptest.run.compliance.waiting import Waits
from mcptest.run.compliance.warm_servers import WarmServers
from mcptest.suite.check_forms import Check
from mcptest.transport.base import Sink, Transport
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import transport_for

_CLOSED_AT_ONCE = 8
_PATIENCE_WITH_STARTS = 2.5
_MEETINGS = 4
"""How many times as long as the first meeting another start may take, once one has failed."""
_MOST_CONVERSATIONS = 200
"""However a server behaves, it is not started more often than this."""


_ENDED = frozenset({ErrorKind.EXITED, ErrorKind.CLOSED})
_KNOWLEDGE = (
    *("transport", "known", "capabilities", "server_info", "versions", "header_schemas"),
    *(
        "page_of_tool",
        "session_id",
        "asks_for_token",
        "speaks_handshake",
        "hung_tools",
        "hung_values",
        "waits",
    ),
    *("_room", "_numbers", "_run"),
)
"""What a twin takes over."""


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
        self.header_schemas: dict[str, Mapping[str, Any]] = {}
        """Input schemas of tools whose arguments travel as headers, by the tool's name."""
        self.page_of_tool: Mapping[str, str] = {}
        """The cursor of a tool's page, for tools that are not on the first."""
        self.session_id: str = ""
        """What the server gave out to the first conversation, over HTTP."""
        self.asks_for_token = False
        self.speaks_handshake = False
        """Of a server that is judged in the stateless era: whether it speaks the other one too."""
        self.greeting: tuple[Check, Asked] | None = None
        """How that was found out."""
        self._room = Room()
        self.waits = Waits(order)
        """How long silence was waited for, and still may be."""
        self.hung_tools: set[str] = set()
        """Tools that were called and did not answer: nobody calls them again."""
        self.hung_values: frozenset[str] = frozenset()
        """Placeholders that have no value because of that."""
        self.conversations: list[Conversation] = []
        self.shared: dict[str, Conversation] = {}
        """Connections that several checks use, by what they are used for."""
        self.aside: dict[str, Future[Any]] = {}
        """Probes that are taken on the side, by name. They end before the connections do."""
        self._warm = WarmServers(order.target)
        self._leaving: dict[int, Future[None]] = {}
        self._closers = ThreadPoolExecutor(_CLOSED_AT_ONCE, "mcptest-closing")
        self._lock = threading.Lock()
        self._is_closed = False
        self._fails_to_start = False
        self._met_in = 0.0
        self._numbers = itertools.count(1)
        self._run = os.urandom(4).hex()

    def twin(self) -> Site:
        """The same server, with all that is known of it, and no connection to it yet."""
        twin = Site(msgspec.structs.replace(self.order, revision=self.revision))
        for name in _KNOWLEDGE:
            setattr(twin, name, getattr(self, name))
        return twin

    @property
    def alive_check(self) -> Check:
        """A request that every server answers."""
        stateless = self.revision.era is Era.STATELESS
        return Check(method="server/discover" if stateless else "ping")

    def warm_up(self) -> None:
        """Start one more server, for whoever opens the next connection but one."""
        self._warm.start()

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
            client.launch(Deadline.after(self.order.startup))
            if warm:
                self.warm_up()
            client.connect(Deadline.after(self.order.startup))
            if warm and self._warm.is_empty:  # the meeting took it
                self.warm_up()
            self._check_pin(client)
        except PeerError as error:
            conversation.close()
            raise self._with_what_it_speaks(error) from None
        except BaseException:
            conversation.close()
            raise
        self.revision = conversation.revision = self.order.revision or client.revision
        self.reason, self._met_in = client.met.reason, now() - begun
        self.capabilities = client.server.capabilities
        self.server_info = client.server.info
        self.versions = client.server.versions
        conversation.listen()
        self.transport = conversation.transport
        headers = client.lifecycle.headers("", None)
        self.session_id = headers.get("Mcp-Session-Id", "")
        return conversation

    def _check_pin(self, client: Client) -> None:
        pin = self.order.revision
        if pin is not None and client.revision.wire_version != pin.wire_version:
            raise PeerError(
                ErrorKind.VERSION_REFUSED,
                f"the server does not speak {pin}: it answered the offer with {client.revision}",
                hint=f"judge it with --spec-version {client.revision}, or auto",
            )

    def _with_what_it_speaks(self, error: PeerError) -> PeerError:
        """Who pinned a revision that the server refuses is told which one it would speak."""
        pin = self.order.revision
        if pin is None or error.kind is not ErrorKind.PROTOCOL:
            return error
        asking = Site(msgspec.structs.replace(self.order, revision=None, captures=None))
        try:
            asking.meet()
        except PeerError:
            return error  # whatever is wrong, it is not the revision
        finally:
            asking.close()
        return PeerError(
            ErrorKind.VERSION_REFUSED,
            f"the server does not speak {pin}; it speaks {asking.revision}: {error.message}",
            hint=f"judge it with --spec-version {asking.revision}, or auto",
        )

    def open(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """A new connection in the revision that is judged. Raises PeerError when there is none."""
        conversation = self.launch(begin=begin, declare=declare)
        return self.ready(conversation)

    def open_without_listening(self) -> Conversation:
        """A new connection on which no stream for the server's own messages stands open."""
        conversation = self.launch(begin=False)
        conversation.is_quiet = True
        if self.revision.era is Era.HANDSHAKE:
            try:
                conversation.begin_without_listening(Deadline.after(self.order.startup))
            except BaseException:
                conversation.close()
                raise
        return conversation

    def launch(self, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
        """Set a connection going without waiting for it; `ready` does that."""
        way: Any = self.transport
        conversation = self._conversation(declare, self.revision, way)
        deadline = Deadline.after(self.order.startup)
        try:
            if begin:
                conversation.client.launch(deadline)
                conversation.beginning = True
            else:
                self._begin_capture(conversation.tape.recorder, way, self.reason)
                conversation.client.connection.transport.open(deadline)
                conversation.listen()
        except BaseException:
            conversation.close()
            raise
        return conversation

    def ready(self, conversation: Conversation) -> Conversation:
        """Wait until a launched connection can be used. Raises PeerError when it can't."""
        client = conversation.client
        if client.has_begun or not conversation.beginning:
            return conversation
        try:
            client.connect(self._startup())
        except BaseException as error:
            if isinstance(error, PeerError) and error.kind is ErrorKind.TIMEOUT:
                self._fails_to_start = True
            conversation.close()
            raise
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
        again = max(_PATIENCE_WITH_STARTS * self.order.patience, _MEETINGS * self._met_in)
        return Deadline.after(min(limit, again) if self._fails_to_start else limit)

    def _conversation(
        self,
        declare: tuple[str, ...],
        revision: Revision | None,
        way: TransportName | None,
        starts_ahead: bool = True,
    ) -> Conversation:
        if len(self.conversations) >= _MOST_CONVERSATIONS or self._is_closed:
            message = f"more than {_MOST_CONVERSATIONS} connections were needed"
            raise PeerError(ErrorKind.CLOSED, message)
        answers = answers_for(declare)
        tape = Tape(self.order.target.label, self._recorder(), self._room)
        tape.transport = way or self.order.target.way
        tape.channel = os.urandom(8).hex()
        client = self._client(tape, revision, answers, way, starts_ahead)
        made = Conversation(self, client, tape, revision or self.revision, answers)
        self.conversations.append(made)
        return made

    def _client(
        self,
        tape: Tape,
        revision: Revision | None,
        answers: DeclaredAnswers,
        way: TransportName | None,
        starts_ahead: bool,
    ) -> Client:
        return Client(
            reach=self._reach,
            way=way,
            falls_back=revision is None,
            starts_ahead=starts_ahead,
            revision=revision,
            because=self.reason or self.order.because,
            answers=answers,
            timeout=self.order.timeout,
            before_waiting=tape.flush,
            should_stop=self.order.should_stop,
            sink=tape,
            began=partial(self._begin_tape, tape),
        )

    def _reach(self, way: TransportName | None, sink: Sink) -> Transport:
        """A fresh connection, to a server that runs already where there is one."""
        return transport_for(self.order.target, sink, way=way, process=self._warm.take())

    def _begin_tape(self, tape: Tape, way: TransportName, reason: str) -> None:
        """A session begins; what was said on another connection before is none to be judged."""
        tape.begin_again(way)
        self._begin_capture(tape.recorder, way, reason)

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
        twin = self.twin()
        twin.order = msgspec.structs.replace(twin.order, captures=None)
        try:
            error = twin.second_start_error()
        finally:
            twin.close()
        if error is not None:
            raise PeerError(
                error.kind,
                f"the server ends when another process of it runs already: {error.message}",
                hint="several are needed side by side: let each have files and ports of its own, "
                "or serve all clients from one process over HTTP",
            )

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

    # -- captures --------------------------------------------------------------------------

    def _recorder(self) -> Recorder | None:
        if self.order.captures is None:
            return None
        # Probes on the side open connections too, and other runs may write into the same folder.
        name = f"{self._asked}-{self.transport}-{self._run}-{next(self._numbers):03}.jsonl"
        path = Path(self.order.captures, name)
        return Recorder(path, masker=self.masker)

    @property
    def _asked(self) -> str:
        """The revision that a connection is opened for; `auto` until the server was met."""
        if self.order.revision is None and not self.reason:
            return "auto"
        return self.revision.value

    def _begin_capture(self, recorder: Recorder | None, way: TransportName, reason: str) -> None:
        if recorder is not None:
            target = self.order.target
            recorder.begin(
                label=target.label,
                transport=way,
                peer=target.peer,
                spec_version=self._asked,
                revision_reason=reason,
            )

    @property
    def captures(self) -> tuple[str, ...]:
        """The files that were written."""
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
            self._warm.end()
            for conversation in self.conversations:
                self.leave(conversation)
            for left in self._leaving.values():
                left.result()
        finally:
            self._closers.shutdown()
