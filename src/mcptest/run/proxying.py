"""Recording a session that somebody else drives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mcptest.model.deadline import Deadline
from mcptest.model.errors import ExitCode, UsageError
from mcptest.run.recording import Form, recorder_for, settle_exchanges
from mcptest.transport.base import Sink
from mcptest.transport.files import replace_file
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target

if TYPE_CHECKING:
    from mcptest.transport.proxy_http import HttpProxy


class Passage(msgspec.Struct, frozen=True):
    """How to sit between: where to listen, and for how long at the most."""

    listen: tuple[str, int] | None = None
    """For a server with a URL; None is any free port of 127.0.0.1."""
    port_file: Path | None = None
    patience: float | None = None


class Passed(msgspec.Struct, frozen=True):
    """How what we sat between came to its end."""

    code: int
    """The server's own exit code, as a shell tells it; 0 for a server with a URL."""
    told: str
    timed_out: bool = False


def unwatched(sink: Sink) -> Sink:
    return sink


def record_proxied(target: Target, path: Path, form: Form, passage: Passage | None = None) -> int:
    """Be the server's stand-in until it is gone or we are stopped. Nothing goes to stdout."""
    recorder = recorder_for(target, path, form)
    try:
        with recorder:
            passed = pass_through(target, recorder, passage or Passage())
    finally:
        if form == "exchanges":
            settle_exchanges(recorder, path)
    if recorder.error is not None:
        place = recorder.written_to
        sys.stderr.write(f"mcptest: {place} is not complete: {recorder.error.strerror}\n")
        return passed.code or ExitCode.FAILED
    return passed.code


def pass_through(
    target: Target,
    recorder: Recorder,
    passage: Passage,
    watch: Callable[[Sink], Sink] = unwatched,
) -> Passed:
    """Sit between until it is over. `watch` is put between the session and its capture."""
    if target.way == "stdio":
        if passage.listen is not None or passage.port_file is not None:
            raise UsageError("--listen and --port-file are for a server with a URL")
        return _on_stdio(target, recorder, passage, watch)
    return _on_loopback(target, recorder, passage, watch)


def _on_stdio(
    target: Target, recorder: Recorder, passage: Passage, watch: Callable[[Sink], Sink]
) -> Passed:
    from mcptest.transport.proxy import StdioProxy

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
    return Passed(ending.code, how, ending.timed_out)


def _on_loopback(
    target: Target, recorder: Recorder, passage: Passage, watch: Callable[[Sink], Sink]
) -> Passed:
    from mcptest.run.interrupt import stopping_on_signals
    from mcptest.run.proxying_sessions import SessionFiles
    from mcptest.transport.base import Clock
    from mcptest.transport.proxy_book import SessionBook
    from mcptest.transport.proxy_http import HttpProxy
    from mcptest.transport.proxy_record import Copies
    from mcptest.transport.url import parse_url

    url = parse_url(target.url)
    files = SessionFiles(recorder, target, watch)
    book = SessionBook(url, files.begin, begins_session, legacy=target.way == "sse")
    with stopping_on_signals() as stop:
        proxy = HttpProxy(
            url,
            Copies(book, Clock()),
            listen=passage.listen or ("127.0.0.1", 0),
            headers=target.headers,
            flush=files.flush,
        )
        stop.on_set = proxy.stop
        try:
            _announce(proxy, passage)
            # A signal may have come before it could be passed on.
            timed_out = not stop.is_set() and proxy.run(_deadline(passage))
        finally:
            proxy.close()
            files.settle()
    return Passed(ExitCode.OK, "the proxy was stopped", timed_out)


def begins_session(body: bytes) -> bool:
    """Whether the body of a request is the first message of a session."""
    from mcptest.wire.envelope import decode

    return b"initialize" in body and decode(body).method == "initialize"


def _announce(proxy: HttpProxy, passage: Passage) -> None:
    if passage.port_file is not None:
        replace_file(passage.port_file, b"%d\n" % proxy.origin.port)
    sys.stderr.write(f"listening on {proxy.url}\n")
    sys.stderr.flush()


def _deadline(passage: Passage) -> Deadline | None:
    return Deadline.after(passage.patience) if passage.patience is not None else None
