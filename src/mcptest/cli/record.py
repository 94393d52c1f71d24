"""`mcptest record`: keep everything that a server and a client say to each other."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcptest.cli.intercept_options import add_listening_options, passage_of
from mcptest.cli.options import (
    add_common_options,
    add_server_options,
    duration,
    server_words,
    startup_of,
    wanted_revision,
)
from mcptest.model.errors import ExitCode, McptestError, PeerError, UsageError
from mcptest.model.redaction import redaction
from mcptest.run.naming import target_of
from mcptest.transport.target import Target

if TYPE_CHECKING:
    from mcptest.run.recording import Recording


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the capture")
    parser.add_argument(
        "--format",
        choices=("full", "exchanges"),
        default="full",
        help="full (default): all that happened, one JSON record a line; "
        "exchanges: the public form, requests with their responses",
    )
    parser.add_argument("--proxy", action="store_true", help="sit between a client and the server")
    add_listening_options(parser)
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="NAME[=JSON]",
        help="call this tool with these arguments; may repeat",
    )
    parser.add_argument(
        "--read", action="append", default=[], metavar="URI", help="read this resource; may repeat"
    )
    add_server_options(parser)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    target = target_of(server_words(arguments))
    mask = redaction.text
    try:
        if arguments.proxy:
            return _record_proxied(arguments, target)
        if arguments.listen is not None or arguments.port_file is not None:
            raise UsageError("--listen and --port-file go with --proxy")
        return _record_tour(arguments, target, mask)
    except McptestError as error:
        raise error.masked(mask) from None


def _record_proxied(arguments: argparse.Namespace, target: Target) -> int:
    from mcptest.run.proxying import record_proxied

    if arguments.call or arguments.read:
        raise UsageError("--proxy asks nothing by itself: --call and --read don't go with it")
    return record_proxied(target, arguments.out, arguments.format, passage_of(arguments))


def _record_tour(arguments: argparse.Namespace, target: Target, mask: Callable[[str], str]) -> int:
    from mcptest.report.recording import RecordingReport

    recording = _recording(arguments, target)
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


def _recording(arguments: argparse.Namespace, target: Target) -> Recording:
    from mcptest.run.recording import Recording
    from mcptest.run.tour import Wishes

    return Recording(
        target,
        arguments.out,
        form=arguments.format,
        revision=wanted_revision(arguments.spec_version),
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        wishes=Wishes(
            calls=tuple(_call(word) for word in arguments.call), reads=tuple(arguments.read)
        ),
    )


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
