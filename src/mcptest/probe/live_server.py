"""A server that is explored, and what becomes of each request to it."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.errors import GONE, ErrorKind, PeerError
from mcptest.core.limits import Deadline
from mcptest.core.masking import Masker
from mcptest.core.message import Kind as MessageKind
from mcptest.core.message import json_type
from mcptest.core.redaction import redaction
from mcptest.core.results import made_since
from mcptest.core.revision import Revision
from mcptest.core.safe_text import show
from mcptest.rules.protocol import objects_at
from mcptest.session.answers import Answers
from mcptest.session.client import Client, Reply
from mcptest.session.live import LiveSession
from mcptest.session.meeting import ASKED_FOR, Met
from mcptest.session.pages import LIST_CAPABILITIES, LIST_MEMBERS, EndlessPages, Offer
from mcptest.session.tape import Tape
from mcptest.transport.files import claim_folder
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target

INTERNAL_ERROR = -32603
_CLIENT_FAULT, _SERVER_FAULT = 400, 500
_NO_MESSAGE = frozenset({ErrorKind.PROTOCOL, ErrorKind.NOT_A_MESSAGE})
"""With a status that says no, a body that is no message changes nothing."""
_CRASHED = GONE | {ErrorKind.SPAWN_FAILED, ErrorKind.CONNECTION_LOST, ErrorKind.TRUNCATED}


class OutcomeKind(enum.Enum):
    """How a server took a request."""

    HEALTHY = "healthy"
    TOOL_ERROR = "tool error"
    """A result with `isError`: the tool reports a failure, as it should."""
    REFUSED = "refused"
    """A JSON-RPC error that is not an internal one."""
    CRASHED = "crashed"
    """An internal error, a dead process, a connection that was closed."""
    HUNG = "hung"
    """No answer in time."""
    PROTOCOL = "protocol"
    """An answer that is none."""

    @property
    def is_healthy(self) -> bool:
        """By the seed's model a failure that the tool reports itself is a healthy answer."""
        return self in (OutcomeKind.HEALTHY, OutcomeKind.TOOL_ERROR)


class RequestOutcome(msgspec.Struct, frozen=True):
    """One request and its end, with the bytes that prove it."""

    kind: OutcomeKind
    reply: Reply | None = None
    detail: str = ""
    """Why, in a sentence; empty for a plain result."""
    sent: bytes = b""
    received: bytes = b""
    """The answer, or the last that came in its place; cut to a length."""
    stderr: tuple[str, ...] = ()
    """What the server wrote there meanwhile: the last lines."""
    duration_ms: float = 0.0
    asked_back: bool = False
    """Whether the server asked the client for something before it answered."""


def judged_reply(reply: Reply) -> tuple[OutcomeKind, str]:
    """The kind of an answer that came, and why."""
    message = reply.message
    refused = reply.faults.refused
    if refused:
        return OutcomeKind.PROTOCOL, f"the response is malformed: {refused}"
    if message.kind is MessageKind.RESULT:
        if message.result.get("isError") is not True:
            return OutcomeKind.HEALTHY, ""
        # The words in which a tool reports its failure.
        for block in objects_at(message.result, "content"):
            text = block.get("text")
            if isinstance(text, str) and text.strip():
                return OutcomeKind.TOOL_ERROR, show(text.strip(), 200)
        return OutcomeKind.TOOL_ERROR, ""
    words = message.error.get("message")
    crashed = reply.error_code == INTERNAL_ERROR
    kind = OutcomeKind.CRASHED if crashed else OutcomeKind.REFUSED
    return kind, f"error {reply.error_code}: {show(str(words), 200)}"


def judged_error(error: PeerError, status: int | None) -> OutcomeKind:
    """The kind of an end without an answer."""
    if error.kind in _CRASHED:
        return OutcomeKind.CRASHED
    if error.kind is ErrorKind.TIMEOUT:
        return OutcomeKind.PROTOCOL if error.unusable else OutcomeKind.HUNG
    refused = status is not None and status >= _CLIENT_FAULT
    if error.kind is ErrorKind.HTTP_STATUS or (error.kind in _NO_MESSAGE and refused):
        is_its_fault = status is not None and status >= _SERVER_FAULT
        return OutcomeKind.CRASHED if is_its_fault else OutcomeKind.REFUSED
    return OutcomeKind.PROTOCOL


def head_of(target: Target, info: Mapping[str, Any], met: Met, begun: float) -> dict[str, Any]:
    """The head of a report: who was looked at, how and when; `begun` on the monotonic clock."""
    return {
        **made_since(begun),
        "server": redaction.text(target.label),
        "server_name": show(str(info.get("name") or ""), 120),
        "server_version": show(str(info.get("version") or ""), 60),
        "transport": met.transport,
        "revision": met.revision.value,
        "revision_reason": redaction.text(met.reason),
    }


# -- A server that is explored -------------------------------------------------------------------

_BYTES_SHOWN = 64 * 1024
_REMARKS_KEPT = 20
_METHOD_NOT_FOUND = -32601


class Subject:
    """One server. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        target: Target,
        *,
        revision: Revision | None = None,
        because: str = ASKED_FOR,
        timeout: float = 30.0,
        startup: float = 30.0,
        answers: Answers | None = None,
        captures: Path | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """`answers` None: a client that is equipped for everything. `captures`: a folder."""
        self.target = target
        self.masker = redaction.masker
        self.given = Masker(target.secrets)
        """Finds what the server was given: to tell it is a leak."""
        self.timeout = timeout
        if captures is not None:
            claim_folder(captures)

        def new_tape() -> Tape:
            if captures is None:
                return Tape(target.label)
            path = captures / f"session-{self._live.sessions + 1:03}.jsonl"
            return Tape(target.label, Recorder(path, masker=self.masker))

        self._live = LiveSession(
            target,
            revision=revision,
            because=because,
            answers=answers,
            timeout=timeout,
            startup=startup,
            new_tape=new_tape,
            should_stop=should_stop,
        )
        self._tools_use_headers = False
        self.capture_troubles: list[str] = []
        """What is wrong with the captures, in sentences."""
        self._doubtful: dict[str, str] = {}
        self._twice: dict[str, None] = {}

    # -- being there -----------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The live session; begun when there is none. Raises PeerError when it can't be."""
        if not self._live.is_open:
            self._begin()
        return self._live.client

    def launch(self) -> None:
        """Let the server get going while we do something else. Raises PeerError."""
        self._live.launch()

    def _begin(self) -> None:
        try:
            self._live.begin()
        finally:
            self._take_note()
        if self.restarts and self._tools_use_headers:  # the new client has to know them
            self._walk("tools/list", [])

    @property
    def restarts(self) -> int:
        return self._live.restarts

    def drop(self, patience: float | None = None, *, deaf: bool = False) -> None:
        """End the session; the next request begins another."""
        self._live.drop(patience, deaf=deaf)
        self._take_note()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say beside a report: of the captures, and of answers that are odd."""
        self._take_note()
        return (*self.capture_troubles, *self._doubtful.values(), *self._twice)

    def remark(self, reply: Reply, about: str) -> None:
        """Take note of what is doubtful about an answer, once for each thing that was asked."""
        warned = reply.faults.warned
        if warned and about not in self._doubtful and len(self._doubtful) < _REMARKS_KEPT:
            words = f"{show(about, 120)}: the response is doubtful: {warned}"
            self._doubtful[about] = self.masker.text(words)

    def _take_note(self) -> None:
        for words in self._live.second_answers():
            if len(self._twice) < _REMARKS_KEPT:
                self._twice[words] = None
        trouble = self._live.capture_trouble
        if trouble and trouble not in self.capture_troubles:
            self.capture_troubles.append(trouble)

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended, as far as can be told without waiting."""
        return self._live.is_open and self._live.is_gone

    @property
    def given_up(self) -> bool:
        """Whether it failed to come back so often that it is not tried any more."""
        return self._live.given_up

    close = drop

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()

    # -- asking ----------------------------------------------------------------------------

    def call(
        self, tool: str, arguments: Mapping[str, Any] | None, *, timeout: float | None = None
    ) -> RequestOutcome:
        """Call a tool. Whatever the server does is an outcome; it is there again afterwards."""
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = arguments
        return self.ask("tools/call", params, timeout=timeout)

    def ask(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> RequestOutcome:
        """Ask anything. Raises PeerError only when the server could never be met."""
        if self.is_gone:
            self.drop()
        crashed = OutcomeKind.CRASHED
        if not self._live.is_open:
            if self.given_up:
                return RequestOutcome(crashed, detail="the server exited and did not restart")
            met_before = self._live.sessions > 0
            try:
                self._begin()
            except PeerError as error:
                if not met_before:
                    raise
                detail = f"the server did not restart: {error.message}"
                return RequestOutcome(crashed, detail=detail, stderr=tuple(self._live.tape.stderr))
        return self._exchange(method, params, timeout)

    def _exchange(
        self, method: str, params: Mapping[str, Any] | None, timeout: float | None
    ) -> RequestOutcome:
        tape = self._live.tape
        tape.rewind()
        tape.stderr.clear()
        said_before = tape.messages_sent
        begun = time.perf_counter()
        reply = pending = None
        try:
            deadline = Deadline.after(timeout or self.timeout)
            pending = self.client.start(method, params, deadline)
            first = self.client.wait(pending, deadline)
            reply = self.client.complete_call(first, params, deadline)
        except PeerError as error:
            # Its own: a stream that is open beside it has a status, too.
            status = pending.status if pending is not None else None
            kind = judged_error(error, status)
            detail = error.message.partition("\n")[0]  # stderr is kept beside it
        else:
            kind, detail = judged_reply(reply)
        spent = (time.perf_counter() - begun) * 1000
        if reply is None:
            self.drop(deaf=kind is OutcomeKind.HUNG)
        received = reply.message.raw[:_BYTES_SHOWN] if reply is not None else tape.last_answer
        return RequestOutcome(
            kind,
            reply,
            detail,
            tape.first_request,
            received,
            tuple(tape.stderr),
            round(spent, 3),
            asked_back=reply is not None and tape.messages_sent - said_before > 1,
        )

    def aftermath(self, timeout: float | None = None) -> RequestOutcome | None:
        """What is wrong with the server since the last answer; None when it is still well.

        Asked with the request that every server answers. One that is not well begins anew.
        """
        if not self._live.is_open:
            return None
        outcome = self._exchange(self._live.alive_method, None, timeout)
        return outcome if outcome.reply is None else None

    # -- what there is ---------------------------------------------------------------------

    def offer(self, *, without: Collection[str] = ()) -> Offer:
        """Every page of every list that the server declares. Raises PeerError when unreachable.

        `without` names methods that are not asked.
        """
        found: dict[str, list[Any]] = {method: [] for method in LIST_CAPABILITIES}
        problems: dict[str, str] = {}
        first = self.client.beginning
        if first is not None:
            self.remark(first, first.method)
            if first.faults.refused:
                problems[first.method] = f"the response is malformed: {first.faults.refused}"
        for method, capability in LIST_CAPABILITIES.items():
            if method in without or self.given_up or not self.client.declares(capability):
                continue
            if problem := self._walk(method, found[method]):
                problems[method] = problem
        return Offer.of(found, problems=problems)

    def _walk(self, method: str, found: list[Any]) -> str:
        """Read one list into `found`; says what went wrong."""
        client, member = self.client, LIST_MEMBERS[method]
        malformed = ""
        try:
            for reply in client.walk(method, found):
                refused = reply.faults.refused
                self.remark(reply, method)
                malformed = malformed or (
                    f"the response is malformed: {refused}" if refused else ""
                )
                if not reply.ok:
                    optional = method == "resources/templates/list"
                    missing = optional and reply.error_code == _METHOD_NOT_FOUND
                    return "" if missing else judged_reply(reply)[1]
                items = reply.result.get(member)
                if not isinstance(items, list):
                    return malformed or f"{member} is {json_type(items)}, not an array"
        except EndlessPages as error:
            return error.message
        except PeerError as error:
            self.drop(deaf=error.kind is ErrorKind.TIMEOUT)
            return error.message
        if method == "tools/list" and client.connection.transport.name == "http":
            self._tools_use_headers = any("x-mcp-header" in str(tool) for tool in found)
        return malformed
