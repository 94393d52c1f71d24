"""What `mcptest record` does: a tour of a server, or a session between a client and one."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mcptest.commands.options import duration, server_words, startup_of, wanted_revision
from mcptest.core.errors import ExitCode, McptestError, PeerError, UsageError
from mcptest.core.redaction import redaction
from mcptest.probe.tour import Recording, Wishes
from mcptest.report.tour_lines import RecordingReport
from mcptest.session.server_spec import target_of
from mcptest.transport.target import Target


def run_record(arguments: argparse.Namespace) -> int:
    target = target_of(server_words(arguments))
    mask = redaction.text
    try:
        if arguments.proxy:
            from mcptest.probe.proxied_session import Passage, record_proxied  # most record a tour

            if arguments.call or arguments.read:
                said = "--proxy asks nothing by itself: --call and --read don't go with it"
                raise UsageError(said)
            passage = Passage.asked_for(arguments.listen, arguments.port_file)
            return record_proxied(target, arguments.out, arguments.format, passage)
        if arguments.listen is not None or arguments.port_file is not None:
            raise UsageError("--listen and --port-file go with --proxy")
        return _record_tour(arguments, target, mask)
    except McptestError as error:
        raise error.masked(mask) from None


def _record_tour(arguments: argparse.Namespace, target: Target, mask: Callable[[str], str]) -> int:
    recording = Recording(
        target=target,
        path=arguments.out,
        form=arguments.format,
        revision=wanted_revision(arguments.spec_version),
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        wishes=Wishes(tuple(map(_call, arguments.call)), tuple(arguments.read)),
    )
    report = RecordingReport(
        sys.stderr, sys.stdout, quiet=arguments.quiet, no_color=arguments.no_color, mask=mask
    )
    unreachable = None
    try:
        with contextlib.closing(recording.events()) as events:  # also where an interrupt comes here
            for event in events:
                report.take(event)
    except PeerError as error:
        unreachable = error
    except KeyboardInterrupt:
        report.finish(recording.summary())
        raise
    summary = recording.summary()
    report.finish(summary)
    if unreachable is not None:
        if not recording.began:
            raise unreachable
        raise SessionCutShortError(unreachable)
    return ExitCode.FAILED if report.failed or summary.problem else ExitCode.OK


class SessionCutShortError(McptestError):
    """The session had begun, and the server did not stay to its end: a failure, not unreachable."""

    def __init__(self, cause: PeerError) -> None:
        super().__init__(cause.message, hint=cause.hint)


def _call(word: str) -> tuple[str, Mapping[str, Any]]:
    name, separator, text = word.partition("=")
    if not separator:
        return name, {}
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--call {name}: the arguments are not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UsageError(f"--call {name}: the arguments are not an object")
    return name, arguments
