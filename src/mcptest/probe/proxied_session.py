"""Recording a session that somebody else drives."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from mcptest.core.capture import Closed, Frame
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.redaction import redaction
from mcptest.probe.tour import Form, beside, recorder_for, recording
from mcptest.transport.base import Sink, discard
from mcptest.transport.egress import parse_url
from mcptest.transport.files import replace_file
from mcptest.transport.interrupt import stopping_on_signals
from mcptest.transport.proxy.exchange_record import SessionBook, listening_address
from mcptest.transport.proxy.http_proxy import HttpProxy
from mcptest.transport.proxy.pipes import StdioProxy
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target
from mcptest.wire.capture_forms import decode_records
from mcptest.wire.envelope import decode


class Passage(msgspec.Struct, frozen=True):
    """How to sit between: where to listen, and for how long at the most."""

    listen: tuple[str, int] | None = None
    """For a server with a URL; None is any free port of 127.0.0.1."""
    port_file: Path | None = None
    patience: float | None = None

    @classmethod
    def asked_for(
        cls, listen: str | None, port_file: Path | None, patience: float | None = None
    ) -> Passage:
        """As the options say it; raises UsageError where `listen` is no address of ours."""
        return cls(listening_address(listen) if listen is not None else None, port_file, patience)


class Passed(msgspec.Struct, frozen=True):
    """How what we sat between came to its end."""

    code: int
    """The server's own exit code, as a shell tells it; 0 for a server with a URL."""
    told: str
    timed_out: bool = False
    unasked: bool = False
    """The server ended by itself while the client was still there."""


def record_proxied(target: Target, path: Path, form: Form, passage: Passage | None = None) -> int:
    """Be the server's stand-in until it is gone or we are stopped. Nothing goes to stdout."""
    recorder = recorder_for(path, form)
    with recording(recorder, path):
        passed = pass_through(target, recorder, passage or Passage())
    if recorder.error is not None:
        place = recorder.written_to
        sys.stderr.write(f"mcptest: {place} is not complete: {recorder.error.strerror}\n")
        return passed.code or ExitCode.FAILED
    return passed.code


def pass_through(
    target: Target,
    recorder: Recorder,
    passage: Passage,
    watch: Callable[[Sink], Sink] = lambda sink: sink,
) -> Passed:
    """Sit between until it is over. `watch` is put between the session and its capture."""
    if target.way != "stdio":
        return _on_loopback(target, recorder, passage, watch)
    if passage.listen is not None or passage.port_file is not None:
        raise UsageError("--listen and --port-file need a server with a URL")
    recorder.begin(label=target.label, transport="stdio", peer=target.peer)
    proxy = StdioProxy(
        target.command,
        sink=watch(recorder),
        env=target.env,
        cwd=target.cwd,
        clean_env=target.clean_env,
        flush=recorder.flush,
        patience=_deadline(passage),
    )
    ending = proxy.run()
    how = f"the server {ending.status}{ending.why and f' {ending.why}'}"
    return Passed(ending.code, how, ending.timed_out, ending.unasked)


def _on_loopback(
    target: Target, recorder: Recorder, passage: Passage, watch: Callable[[Sink], Sink]
) -> Passed:
    url = parse_url(target.url)
    files = SessionFiles(recorder, target, watch)
    book = SessionBook(url, files.begin, begins_session, legacy=target.way == "sse")
    with stopping_on_signals() as stop:
        proxy = HttpProxy(
            url,
            book,
            listen=passage.listen or ("127.0.0.1", 0),
            headers=target.headers,
            flush=files.flush,
        )
        stop.on_set = proxy.stop
        try:
            if passage.port_file is not None:
                replace_file(passage.port_file, b"%d\n" % proxy.origin.port)
            sys.stderr.write(f"listening on {proxy.url}\n")
            sys.stderr.flush()
            # A signal may have come before it could be passed on.
            timed_out = not stop.is_set() and proxy.run(_deadline(passage))
        finally:
            proxy.close()
            files.settle()
    return Passed(ExitCode.OK, "the proxy was stopped", timed_out)


def begins_session(body: bytes) -> bool:
    """Whether the body of a request is the first message of a session."""
    return b"initialize" in body and decode(body).method == "initialize"


def _deadline(passage: Passage) -> Deadline | None:
    return Deadline.after(passage.patience) if passage.patience is not None else None


# -- One capture of a proxy ----------------------------------------------------------------------

MOST_AT_ONCE = 64
"""Further sessions share the last file."""
_GATHERED = 1024 * 1024
"""Bytes between two writes: the recorder itself counts records, which may be large."""


class SessionFiles:
    """Gives each session its place. Close it before the recorder that it was made with."""

    def __init__(self, recorder: Recorder, target: Target, watch: Callable[[Sink], Sink]) -> None:
        """`watch` is put between each session and its file."""
        self._main = recorder
        self._target = target
        self._watch = watch
        self._others: list[Recorder] = []
        self._begun = False
        self._problem: OSError | None = None

    def begin(self) -> Sink:
        if self._begun and len(self._others) < MOST_AT_ONCE:
            aside = beside(self._main.path, f"session-{len(self._others) + 2}")
            try:
                self._others.append(Recorder(aside, masker=redaction.masker))
            except UsageError as error:  # no room for a file: the sessions themselves go on
                self._problem = OSError(errno.EIO, error.message)
                return self._watch(discard)
        recorder = self._others[-1] if self._begun else self._main
        self._begun = True
        target = self._target
        recorder.begin(label=target.label, transport=target.way, peer=target.peer)
        return self._watch(recorder)

    def flush(self) -> None:
        self._main.flush()
        for other in self._others:
            other.flush()

    def settle(self) -> None:
        """Move the others in, and remove their files. What can't be moved stays where it is."""
        for other in self._others:
            other.close()
            if not other.kept:
                continue
            place = other.written_to
            self._move_in(place)
            self._main.dropped += other.dropped
            self._main.error = self._main.error or other.error
            if self._main.error is None:
                place.unlink()
        self._main.error = self._main.error or self._problem

    def _move_in(self, place: Path) -> None:
        gathered = 0
        with place.open("rb") as lines:
            for record in decode_records(lines, str(place)):
                if type(record) is Closed:
                    continue
                self._main(record)
                gathered += len(record.raw) if type(record) is Frame else 0
                if gathered >= _GATHERED:
                    self._main.flush()
                    gathered = 0
        self._main.flush()
