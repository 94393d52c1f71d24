"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcptest.cli.explored import ended_before_meeting, out_of_time
from mcptest.cli.options import (
    add_common_options,
    add_max_time,
    add_server_options,
    duration,
    limit_of,
    server_words,
    startup_of,
    wanted_revision,
)
from mcptest.cli.report_forms import add_html_option, captures_for_html, captures_since
from mcptest.cli.unwritten import add_strict_option, code_with_reports, tell_unwritten
from mcptest.model.errors import ExitCode, McptestError
from mcptest.model.redaction import redaction
from mcptest.model.revision import parse_revision
from mcptest.peer.connection import Stopped
from mcptest.run.interrupt import stopping_on_signals
from mcptest.run.naming import target_of

if TYPE_CHECKING:
    from mcptest.model.doctor import DoctorReport
    from mcptest.run.compliance.order import Order
    from mcptest.run.interrupt import Stop


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="REV", help="the revision to move to")
    parser.add_argument(
        "--from",
        dest="older",
        default="auto",
        metavar="REV",
        help="where it comes from: auto (default) is what the server speaks today",
    )
    parser.add_argument(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, though it does not say that it only reads; may repeat",
    )
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--json-file", type=Path, metavar="FILE", help="the JSON report as well")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the markdown as well")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="a JUnit report as well")
    add_html_option(parser.add_argument)
    add_strict_option(parser.add_argument)
    parser.add_argument(
        "--capture", type=Path, metavar="DIR", help="keep everything that went over the wire"
    )
    add_max_time(parser)
    add_server_options(parser)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.doctor import examine

    newer = parse_revision(arguments.to)
    # --spec-version names the revision to speak, which is where the server comes from.
    spoken = arguments.older if arguments.older != "auto" else arguments.spec_version
    older = wanted_revision(spoken)
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    # Until the reports are written: a signal must not cost them.
    with captures_for_html(arguments), stopping_on_signals() as stop:
        stop.limit = limit_of(arguments)
        order = _order(arguments, stop)
        try:
            report = examine(order, newer, older, _teller(arguments))
        except Stopped:  # nothing was seen yet that could be reported
            raise ended_before_meeting(arguments, stop) from None
        except McptestError as error:
            raise error.masked(redaction.masker.cut_text) from None
        finally:
            _teller(arguments)("")
        if stop.is_out_of_time and report.unreached:
            report = _cut_short(report, out_of_time(arguments))
        code = _code(report, stop)
        _print(report, arguments)
        return _write_files(report, arguments, begun, code)


def _code(report: DoctorReport, stop: Stop) -> int:
    if stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if report.breaks or not report.is_whole else ExitCode.OK


def _cut_short(report: DoctorReport, why: str) -> DoctorReport:
    from mcptest.run.doctor import INTERRUPTED

    total = len(report.items)
    notes = [note for note in report.notes if note != INTERRUPTED]
    notes.append(f"{why}: {report.unreached} of {total} items not reached")
    return replace(report, notes=tuple(notes))


def _order(arguments: argparse.Namespace, stop: Stop) -> Order:
    from mcptest.run.compliance.order import Order

    timeout = duration(arguments.timeout, "--timeout")
    startup = startup_of(arguments)
    return Order(
        target=target_of(server_words(arguments)),
        allow_tools=tuple(arguments.allow_tool),
        timeout=timeout,
        startup=startup,
        captures=arguments.capture,
        should_stop=stop.is_over,
    )


def _teller(arguments: argparse.Namespace) -> Callable[[str], None]:
    """What is being looked at, on one line of a terminal; nothing elsewhere."""
    if arguments.quiet or not sys.stderr.isatty():
        return lambda _: None
    return lambda text: _say_over(f"looking at: {text}" if text else "")


def _say_over(text: str) -> None:
    sys.stderr.write(f"\r{text:<72}\r")
    sys.stderr.flush()


def _print(report: DoctorReport, arguments: argparse.Namespace) -> None:
    from mcptest.report.doctor_json import doctor_as_json
    from mcptest.report.doctor_markdown import doctor_as_markdown
    from mcptest.report.doctor_text import doctor_lines, summary_in_words
    from mcptest.report.terminal import Style, say, say_json

    if arguments.json or arguments.format == "json":
        say_json(sys.stdout, doctor_as_json(report))
    elif arguments.format == "markdown":
        say(sys.stdout, doctor_as_markdown(report))
    elif arguments.quiet and not report.breaks:
        say(sys.stdout, summary_in_words(report) + "\n")
    else:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        for line in doctor_lines(report, style, verbose=arguments.verbose):
            say(sys.stdout, line + "\n")


def _write_files(report: DoctorReport, arguments: argparse.Namespace, begun: str, code: int) -> int:
    from mcptest.report import junit
    from mcptest.report.doctor_json import doctor_as_json
    from mcptest.report.doctor_markdown import doctor_as_markdown
    from mcptest.report.doctor_run import doctor_as_run
    from mcptest.report.write import write_all

    wanted: list[tuple[Path | None, Callable[[], bytes]]] = [
        (arguments.json_file, lambda: doctor_as_json(report)),
        (arguments.markdown, lambda: doctor_as_markdown(report).encode()),
        (arguments.junit, lambda: junit.render(doctor_as_run(report))),
        (arguments.html, lambda: _as_html(report, arguments, begun)),
    ]
    unwritten = write_all(wanted)
    tell_unwritten(arguments, unwritten)
    return code_with_reports(arguments, code, unwritten)


def _as_html(report: DoctorReport, arguments: argparse.Namespace, begun: str) -> bytes:
    """The page. What a doctor asks an older server is no fault of a client."""
    from mcptest.report.html.making import page_of

    captures = captures_since(begun, arguments.capture)
    return page_of(report, captures, name="mcptest doctor", by_rules=False)
