"""A server that is explored: it is met on first use, and comes back after a crash or a hang."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from mcptest.model.capture import AnyRecord, Frame, Stderr, TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.masking import Masker
from mcptest.model.message import json_type
from mcptest.model.redaction import redaction
from mcptest.model.revision import Era, Revision
from mcptest.model.show import show
from mcptest.peer.answers import Answers
from mcptest.peer.client import Client, Reply
from mcptest.peer.connection import Stopped
from mcptest.peer.meeting import ASKED_FOR, Met
from mcptest.peer.pagination import LIST_CAPABILITIES, LIST_MEMBERS, EndlessPages, distinct
from mcptest.run.call_failed import answered_twice
from mcptest.run.exploring.outcome import Kind, Outcome, judged_error, judged_reply
from mcptest.transport.files import claim_folder
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target, reach_of

_CLOSING = 5.0
_CLOSING_THE_DEAF = 0.3
_STDERR_KEPT = 20
_BYTES_SHOWN = 64 * 1024
_REMARKS_KEPT = 20
_VAIN_STARTS = 2
"""After so many starts in a row that failed, a server is given up."""
_METHOD_NOT_FOUND = -32601


class Offer(msgspec.Struct, frozen=True):
    """Everything that a server lists, as it came."""

    tools: tuple[Any, ...] = ()
    prompts: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    templates: tuple[Any, ...] = ()
    problems: Mapping[str, str] = {}
    """Lists that could not be read to their end, with the reason."""


class _Watch:
    """The sink of one session: what went over the wire since the last mark."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self.stderr: deque[str] = deque(maxlen=_STDERR_KEPT)
        self.sent = b""
        self.received = b""
        self.said = 0
        """Messages of ours: more than one when the server asked back."""

    def __call__(self, record: AnyRecord) -> None:
        if type(record) is Frame:
            if record.sender == "client":
                self.sent = self.sent or record.raw
                self.said += 1
            else:
                self.received = record.raw[:_BYTES_SHOWN]
        elif type(record) is Stderr:
            self.stderr.append(record.text)
        if self.recorder is not None:
            self.recorder(record)

    def mark(self) -> None:
        self.sent = self.received = b""
        self.said = 0
        self.stderr.clear()


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
        self.restarts = 0
        self.sessions = 0
        """Connections that were begun."""
        self._revision = revision
        self._because = because
        self._met: Met | None = None
        self._startup = startup
        self._answers = answers or Answers()
        self._captures = captures
        if captures is not None:
            claim_folder(captures)
        self._should_stop = should_stop
        self._live: Client | None = None
        self._launched: Client | None = None
        """Started, and nobody has waited for it yet."""
        self._watch = _Watch(None)
        self._vain = 0
        self._tools_use_headers = False
        self.capture_troubles: list[str] = []
        """What is wrong with the captures, in sentences."""
        self._doubtful: dict[str, str] = {}
        self._twice: dict[str, None] = {}

    # -- being there -----------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The live session; begun when there is none. Raises PeerError when it can't be."""
        if self._live is None:
            self._begin()
        assert self._live is not None
        return self._live

    def launch(self) -> None:
        """Let the server get going while we do something else. Raises PeerError."""
        if self._live is None and self._launched is None:
            self._launched = self._made()
            try:
                self._launched.launch(Deadline.after(self._startup))
            except BaseException:
                self.drop()
                raise

    def _made(self) -> Client:
        watch = self._watch = _Watch(self._recorder())
        met = self._met
        return Client(
            reach=reach_of(self.target),
            way=met.transport if met is not None else None,
            revision=self._revision or (met.revision if met is not None else None),
            because=met.reason if met is not None else self._because,
            answers=self._answers,
            timeout=self.timeout,
            before_waiting=watch.recorder.flush if watch.recorder is not None else None,
            should_stop=self._should_stop,
            sink=watch,
            began=self._tell_beginning,
        )

    def _begin(self) -> None:
        client, self._launched = self._launched or self._made(), None
        self._live = client
        again = self.sessions > 0
        self.sessions += 1
        try:
            client.connect(Deadline.after(self._startup))
        except BaseException:
            self._vain += 1
            self.drop()
            raise
        self._vain = 0
        self.restarts += again
        self._met = client.met  # what was found out once need not be found out again
        if again and self._tools_use_headers:  # the new client has to know them when it calls
            self._walk("tools/list", [])

    def _recorder(self) -> Recorder | None:
        if self._captures is None:
            return None
        path = self._captures / f"session-{self.sessions + 1:03}.jsonl"
        return Recorder(path, masker=self.masker)

    def _tell_beginning(self, way: TransportName, reason: str) -> None:
        self._watch.mark()
        if self._watch.recorder is not None:
            asked = self._revision or (self._met.revision if self._met is not None else None)
            self._watch.recorder.begin(
                label=self.target.label,
                transport=way,
                peer=self.target.peer,
                spec_version=asked.value if asked is not None else "auto",
                revision_reason=reason,
            )

    def drop(self, patience: float = _CLOSING) -> None:
        """End the session; the next request begins another."""
        client, self._live, self._launched = self._live or self._launched, None, None
        recorder = self._watch.recorder
        self._note_second_answers(client)
        try:
            if client is not None:
                client.close(Deadline.after(patience))
        except Stopped:
            pass  # a farewell over HTTP was cut short; the connection is closed all the same
        finally:
            if client is not None and recorder is not None:
                recorder.close()
                self._note_troubles(recorder)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say beside a report: of the captures, and of answers that are odd."""
        self._note_second_answers(self._live)
        return (*self.capture_troubles, *self._doubtful.values(), *self._twice)

    def remark(self, reply: Reply, about: str) -> None:
        """Take note of what is doubtful about an answer, once for each thing that was asked."""
        warned = reply.faults.warned
        if warned and about not in self._doubtful and len(self._doubtful) < _REMARKS_KEPT:
            words = f"{show(about, 120)}: the answer is doubtful: {warned}"
            self._doubtful[about] = self.masker.text(words)

    def _note_second_answers(self, client: Client | None) -> None:
        for answer in client.connection.second_answers() if client is not None else ():
            if len(self._twice) < _REMARKS_KEPT:
                self._twice[answered_twice(answer, self.masker)] = None

    def _note_troubles(self, recorder: Recorder) -> None:
        if recorder.error is not None:
            reason = recorder.error.strerror or recorder.error
            self.capture_troubles.append(
                f"the capture {recorder.written_to} is not complete: {reason}"
            )
        elif recorder.dropped:
            self.capture_troubles.append(
                f"the capture {recorder.path} lacks {recorder.dropped} records: it is full"
            )

    @property
    def is_gone(self) -> bool:
        """Whether its process has ended, as far as can be told without waiting."""
        if self._live is None:
            return False
        pid = getattr(self._live.connection.transport, "pid", None)
        if pid is None or not hasattr(os, "waitid"):
            return False
        try:  # it stays in the process table until it is closed
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    @property
    def given_up(self) -> bool:
        """Whether it failed to come back so often that it is not tried any more."""
        return self.sessions > 0 and self._vain >= _VAIN_STARTS

    def close(self) -> None:
        self.drop()

    def __enter__(self) -> Subject:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- asking ----------------------------------------------------------------------------

    def call(
        self, tool: str, arguments: Mapping[str, Any] | None, *, timeout: float | None = None
    ) -> Outcome:
        """Call a tool. Whatever the server does is an outcome; it is there again afterwards."""
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = arguments
        return self.ask("tools/call", params, timeout=timeout)

    def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> Outcome:
        """Ask anything. Raises PeerError only when the server could never be met."""
        lost = self._ready()
        return lost if lost is not None else self._exchange(method, params, timeout)

    def _exchange(
        self, method: str, params: Mapping[str, Any] | None, timeout: float | None
    ) -> Outcome:
        self._watch.mark()
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
            self.drop(_CLOSING_THE_DEAF if kind is Kind.HUNG else _CLOSING)
        watch = self._watch
        received = reply.message.raw[:_BYTES_SHOWN] if reply is not None else watch.received
        return Outcome(
            kind,
            reply,
            detail,
            watch.sent,
            received,
            tuple(watch.stderr),
            round(spent, 3),
            asked_back=reply is not None and watch.said > 1,
        )

    def _ready(self) -> Outcome | None:
        """Make sure of a live session; the outcome for whoever asks when there is none."""
        if self.is_gone:
            self.drop()
        if self._live is not None:
            return None
        if self.given_up:
            return Outcome(Kind.CRASHED, detail="the server is gone and did not come back")
        met_before = self.sessions > 0
        try:
            self._begin()
        except PeerError as error:
            if not met_before:
                raise
            detail = f"the server did not come back: {error.message}"
            return Outcome(Kind.CRASHED, detail=detail, stderr=tuple(self._watch.stderr))
        return None

    def aftermath(self, timeout: float | None = None) -> Outcome | None:
        """What is wrong with the server since the last answer; None when it is still well.

        Asked with the request that every server answers. One that is not well begins anew.
        """
        if self._live is None:
            return None
        stateless = self.client.revision.era is Era.STATELESS
        outcome = self._exchange("server/discover" if stateless else "ping", None, timeout)
        return outcome if outcome.reply is None else None

    # -- what there is ---------------------------------------------------------------------

    def offer(self, *, without: Collection[str] = ()) -> Offer:
        """Every page of every list that the server declares. Raises PeerError when unreachable.

        `without` names methods that are not asked.
        """
        found: dict[str, list[Any]] = {}
        problems = self._problem_of_beginning()
        for method, capability in LIST_CAPABILITIES.items():
            items: list[Any] = []
            found[method] = items
            if method in without or self.given_up or not self.client.declares(capability):
                continue
            problem = self._walk(method, items)
            if problem:
                problems[method] = problem
        return Offer(
            tools=tuple(found["tools/list"]),
            prompts=tuple(found["prompts/list"]),
            resources=tuple(found["resources/list"]),
            templates=tuple(found["resources/templates/list"]),
            problems=problems,
        )

    def _problem_of_beginning(self) -> dict[str, str]:
        """What is wrong with the answer that began the session, by its method."""
        first = self.client.beginning
        if first is not None:
            self.remark(first, first.method)
        refused = first.faults.refused if first is not None else ""
        return {first.method: f"the answer is malformed: {refused}"} if first and refused else {}

    def _walk(self, method: str, found: list[Any]) -> str:
        """Read one list into `found`; says what went wrong."""
        client, member = self.client, LIST_MEMBERS[method]
        malformed = ""
        try:
            for reply in client.pages(method):
                refused = reply.faults.refused
                self.remark(reply, method)
                malformed = malformed or (f"the answer is malformed: {refused}" if refused else "")
                if not reply.ok:
                    optional = method == "resources/templates/list"
                    missing = optional and reply.error_code == _METHOD_NOT_FOUND
                    return "" if missing else judged_reply(reply)[1]
                items = reply.result.get(member)
                if not isinstance(items, list):
                    return malformed or f"{member} is {json_type(items)}, not an array"
                found.extend(items)
                if len(found) > client.connection.limits.items:
                    return f"more than {client.connection.limits.items} {member}"
        except EndlessPages as error:
            found[:] = distinct(found)
            return error.message
        except PeerError as error:
            self.drop(_CLOSING_THE_DEAF if error.kind is ErrorKind.TIMEOUT else _CLOSING)
            return error.message
        if method == "tools/list" and client.connection.transport.name == "http":
            self._tools_use_headers = any("x-mcp-header" in str(tool) for tool in found)
        return malformed
