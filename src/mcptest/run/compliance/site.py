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
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.masking import Masker
from mcptest.model.revision import Era, Revision
from mcptest.peer.client import Client
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.declared import EVERYTHING, DeclaredAnswers, answers_for
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.tape import Room, Tape
from mcptest.run.compliance.waiting import Waits
from mcptest.run.compliance.warm_servers import WarmServers
from mcptest.suite.check_forms import Check
from mcptest.transport.base import Transport
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import transport_for

_CLOSED_AT_ONCE = 8
_PATIENCE_WITH_STARTS = 2.5
_MOST_CONVERSATIONS = 200
"""However a server behaves, it is not started more often than this."""


class Site:
    """Opens conversations and remembers each of them. `meet` comes first."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.masker = Masker(order.target.secrets)
        self.revision: Revision = order.revision or Revision.V2026_07_28
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
        self._numbers = itertools.count(1)
        self._run = os.urandom(4).hex()

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
            EVERYTHING, self.order.revision, None, reopen=self.order.revision is None
        )
        client = conversation.client
        try:
            client.launch(Deadline.after(self.order.startup))
            if warm:
                self.warm_up()
            client.connect(Deadline.after(self.order.startup))
            self._check_pin(client)
        except PeerError as error:
            conversation.close()
            raise self._with_what_it_speaks(error) from None
        except BaseException:
            conversation.close()
            raise
        self.revision = conversation.revision = self.order.revision or client.revision
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
        return conversation

    def _startup(self) -> Deadline:
        """Who once said nothing when it was started again is not waited for that long again."""
        limit = self.order.startup
        again = _PATIENCE_WITH_STARTS * self.order.patience
        return Deadline.after(min(limit, again) if self._fails_to_start else limit)

    def _conversation(
        self,
        declare: tuple[str, ...],
        revision: Revision | None,
        way: TransportName | None,
        reopen: bool = False,
    ) -> Conversation:
        if len(self.conversations) >= _MOST_CONVERSATIONS or self._is_closed:
            message = f"more than {_MOST_CONVERSATIONS} connections were needed"
            raise PeerError(ErrorKind.CLOSED, message)
        answers = answers_for(declare)
        tape = Tape(self.order.target.label, self._recorder(way), self._room)
        tape.transport = way or self.order.target.way
        tape.channel = os.urandom(8).hex()
        client = self._client(tape, revision, answers, way, reopen)
        made = Conversation(self, client, tape, revision or self.revision, answers)
        self.conversations.append(made)
        return made

    def _client(
        self,
        tape: Tape,
        revision: Revision | None,
        answers: DeclaredAnswers,
        way: TransportName | None,
        reopen: bool,
    ) -> Client:
        return Client(
            transport_for(self.order.target, tape, way=way, process=self._warm.take()),
            revision=revision,
            answers=answers,
            timeout=self.order.timeout,
            reopen=partial(self._start_over, tape) if reopen else None,
            before_waiting=tape.flush,
            should_stop=self.order.should_stop,
            sink=tape,
        )

    def _start_over(self, tape: Tape, way: TransportName) -> Transport:
        """A new connection is a new session: what drove the server away is none to be judged."""
        tape.begin_again(way)
        self._begin_capture(tape.recorder, way)
        return transport_for(self.order.target, tape, way=way)

    # -- captures --------------------------------------------------------------------------

    def _recorder(self, way: TransportName | None) -> Recorder | None:
        if self.order.captures is None:
            return None
        wanted = self.order.revision or self.revision
        # Probes on the side open connections too, and other runs may write into the same folder.
        name = f"{wanted}-{self.transport}-{self._run}-{next(self._numbers):03}.jsonl"
        path = Path(self.order.captures, name)
        recorder = Recorder(path, masker=self.masker)
        self._begin_capture(recorder, way or self.order.target.way)
        return recorder

    def _begin_capture(self, recorder: Recorder | None, way: TransportName) -> None:
        if recorder is not None:
            target = self.order.target
            asked = (self.order.revision or self.revision).value
            recorder.begin(label=target.label, transport=way, peer=target.peer, spec_version=asked)

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
