"""`mcptest doctor`: what will break when a server moves to another revision."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.options import (
    add_common_options,
    add_server_options,
    duration,
    server_words,
    wanted_revision,
)
from mcptest.cli.report_forms import add_html_option, captures_for_html, captures_since
from mcptest.model.errors import ExitCode, McptestError
from mcptest.model.masking import Masker
from mcptest.model.revision import parse_revision
from mcptest.run.naming import target_of

if TYPE_CHECKING:
    from mcptest.model.doctor import DoctorReport
    from mcptest.run.compliance.order import Order


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
    parser.add_argument(
        "--strict-reports", action="store_true", help="a report that can't be written fails"
    )
    parser.add_argument(
        "--capture", type=Path, metavar="DIR", help="keep everything that went over the wire"
    )
    add_server_options(parser)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.doctor import examine

    newer = parse_revision(arguments.to)
    # --spec-version names the revision to speak, which is where the server comes from.
    spoken = arguments.older if arguments.older != "auto" else arguments.spec_version
    older = wanted_revision(spoken)
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    with captures_for_html(arguments):
        order = _order(arguments)
        try:
            report = examine(order, newer, older, _teller(arguments))
        except McptestError as error:
            raise error.masked(Masker(order.target.secrets).cut_text) from None
        _teller(arguments)("")
        _print(report, arguments)
        return _write_files(report, arguments, begun)


def _order(arguments: argparse.Namespace) -> Order:
    from mcptest.run.compliance.order import Order

    timeout = duration(arguments.timeout, "--timeout")
    startup = duration(arguments.startup_timeout or arguments.timeout, "--startup-timeout")
    return Order(
        target=target_of(server_words(arguments)),
        allow_tools=tuple(arguments.allow_tool),
        timeout=timeout,
        startup=startup,
        captures=arguments.capture,
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


def _write_files(report: DoctorReport, arguments: argparse.Namespace, begun: str) -> int:
    """A report that can't be written is said; whether it fails is the user's choice."""
    from mcptest.report import junit
    from mcptest.report.doctor_json import doctor_as_json
    from mcptest.report.doctor_markdown import doctor_as_markdown
    from mcptest.report.doctor_run import doctor_as_run
    from mcptest.report.placed import write_all

    code = ExitCode.FAILED if report.breaks else ExitCode.OK
    wanted: dict[Path | None, Callable[[], bytes]] = {
        arguments.json_file: lambda: doctor_as_json(report),
        arguments.markdown: lambda: doctor_as_markdown(report).encode(),
        arguments.junit: lambda: junit.render(doctor_as_run(report)),
        arguments.html: lambda: _as_html(report, arguments, begun),
    }
    unwritten = write_all(wanted, sys.stderr)
    return code or (unwritten if arguments.strict_reports else ExitCode.OK)


def _as_html(report: DoctorReport, arguments: argparse.Namespace, begun: str) -> bytes:
    """The page. What a doctor asks an older server is no fault of a client."""
    from mcptest.report.html.making import page_of

    captures = captures_since(begun, arguments.capture)
    return page_of(report, captures, name="mcptest doctor", by_rules=False)
