"""What `mcptest record` does: a tour of a server, or a session between a client and one."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcptest.commands.options import duration, named_target, startup_of, wanted_revision
from mcptest.core.errors import ExitCode, McptestError, PeerError, UsageError
from mcptest.core.redaction import redaction
from mcptest.core.safe_text import show
from mcptest.probe.tour import Event, SessionBegan, Wishes, recorder_for, recording, tour
from mcptest.report.terminal import Style, why_revision
from mcptest.session.live import LiveSession
from mcptest.session.tape import Tape
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target
from mcptest.wire.json_text import json_value


def run_record(arguments: argparse.Namespace) -> int:
    target = named_target(arguments)
    try:
        if arguments.proxy:
            from mcptest.probe.proxied_session import Passage, record_proxied  # most record a tour

            if arguments.call or arguments.read:
                said = "--call and --read do not work with --proxy"
                raise UsageError(said)
            passage = Passage.asked_for(arguments.listen, arguments.port_file)
            return record_proxied(target, arguments.out, arguments.form, passage)
        if arguments.listen is not None or arguments.port_file is not None:
            raise UsageError("--listen and --port-file require --proxy")
        return _record_tour(arguments, target)
    except McptestError as error:
        raise error.masked(redaction.text) from None


def _record_tour(arguments: argparse.Namespace, target: Target) -> int:
    revision = wanted_revision(arguments.spec_version)
    timeout, startup = duration(arguments.timeout, "--timeout"), startup_of(arguments)
    wishes = Wishes(tuple(map(_call, arguments.call)), tuple(arguments.read))
    report = TourLines(arguments)
    recorder = recorder_for(arguments.out, arguments.form)
    recorder.spare_older = True  # until the session has begun
    unreachable = None
    try:
        with (
            recording(recorder, arguments.out),
            LiveSession(
                target,
                revision=revision,
                timeout=timeout,
                startup=startup,
                new_tape=lambda: Tape(target.label, recorder),
            ) as session,
        ):
            client = session.begin()
            recorder.spare_older = False
            for event in tour(client, wishes):
                report.take(event)
    except PeerError as error:
        unreachable = error
    except KeyboardInterrupt:
        report.finish(recorder)
        raise
    is_whole = report.finish(recorder, says_why=unreachable is not None)
    if unreachable is not None and recorder.spare_older:
        raise unreachable
    if unreachable is not None:  # the session had begun: a failure, and not unreachable
        raise McptestError(unreachable.message, hint=unreachable.hint)
    return ExitCode.OK if is_whole and not report.failed else ExitCode.FAILED


def _call(word: str) -> tuple[str, Mapping[str, Any]]:
    name, separator, text = word.partition("=")
    if not separator:
        return name, {}
    try:
        arguments = json_value(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--call {name}: the arguments are not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UsageError(f"--call {name}: the arguments are not an object")
    return name, arguments


class TourLines:
    """What a person sees meanwhile: progress on stderr line by line, the result on stdout."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.failed = 0
        self._path: Path = arguments.out
        self._quiet = arguments.quiet
        self._style = Style.of(sys.stderr, no_color=arguments.no_color)

    def take(self, event: Event) -> None:
        style, mask = self._style, redaction.text
        if isinstance(event, SessionBegan):
            declared = mask(", ".join(event.capabilities)) or "no capabilities"
            title = style.paint(mask(event.server), "bold")
            self._line(f"{title}  MCP {event.revision}  {style.paint(declared, 'dim')}")
            if event.reason:
                why = why_revision(event.revision, mask(event.reason))
                self._line(f"  {style.paint(why, 'dim')}")
            return
        is_bad = event.outcome in {"malformed", "failed"}
        symbol = style.cross if is_bad else style.warning
        symbol = {"done": style.tick, "skipped": style.dash}.get(event.outcome, symbol)
        self.failed += is_bad
        what = mask(event.what)
        detail = style.paint(show(mask(event.detail), 300), "dim") if event.detail else ""
        is_odd = is_bad or event.outcome == "doubtful"
        self._line(f"  {symbol} {what:<40} {detail}".rstrip(), always=is_odd)

    def finish(self, recorder: Recorder, *, says_why: bool = False) -> bool:
        """What became of the recording; whether all of it was kept.

        `says_why`: an error message follows, and it is reason enough why nothing was kept.
        """
        path, problem = self._path, ""
        if recorder.error is not None:
            path, problem = recorder.written_to, str(recorder.error.strerror)
        elif recorder.dropped:
            problem = f"{recorder.dropped} records exceed the size limit of a capture"
        if problem:
            self._line(f"mcptest: {path} is not complete: {problem}", always=True)
        elif recorder.spare_older and not recorder.kept and path.is_file():
            self._line(f"the session did not start; {path} is unchanged", always=True)
        elif not recorder.kept:
            if says_why:
                return True
            self._line("no message was recorded; no file was written", always=True)
        elif not self._quiet:
            sys.stdout.write(
                f"recorded {recorder.messages} messages to {path}\n"
                f"judge it: mcptest compliance invariants --capture {shlex.quote(str(path))}\n"
            )
        return not problem

    def _line(self, text: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
