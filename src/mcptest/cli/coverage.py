"""`mcptest coverage`: which tools, prompts and resources of a live server a suite asserts on."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.concluded import Views, add_report_options, conclude
from mcptest.cli.explored import (
    Explored,
    add_fixture_option,
    exploring,
    tell_what_was_odd,
)
from mcptest.cli.options import add_common_options, add_server_options
from mcptest.model.errors import ExitCode, McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.model.coverage import CoverageReport, CoveredKind
    from mcptest.suite.model import Test

_OF: dict[str, CoveredKind] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "templates": "template",
}


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="suites, as files or folders")
    add("--suite", action="append", default=[], metavar="PATH", help="a suite; may repeat")
    add("--threshold", type=float, metavar="N", help="fail below this share, in percent")
    add(
        "--of",
        default=",".join(_OF),
        metavar="LIST",
        help="what counts: tools,prompts,resources,templates (default: all)",
    )
    add_report_options(parser)
    add("--coverage-json", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    add_fixture_option(parser)
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="coverage")


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.interrupt import stopping_on_signals
    from mcptest.suite.load import load_suites

    kinds = _kinds(arguments.of)
    if arguments.threshold is not None and not 0 <= arguments.threshold <= 100:
        raise UsageError(f"--threshold is a share in percent, not {arguments.threshold:g}")
    paths = [*arguments.paths, *arguments.suite]
    if not paths:
        raise UsageError("no suite is named", hint="add --suite DIR")
    # A fixture of the suite's own is not needed to read what its tests assert on.
    loaded = load_suites(paths, fixture=arguments.fixture or os.devnull, server_given=True)
    with stopping_on_signals() as stop, exploring(arguments, stop) as explored:
        try:
            report = _counted(arguments, explored, loaded.suite.tests, kinds)
        except McptestError as error:
            raise error.masked(explored.subject.masker.cut_text) from None
        captured = tell_what_was_odd(explored)
    code = max(captured, conclude(arguments, _views(report)))
    if not report.items and not report.problems:
        sys.stderr.write("mcptest: the server offers nothing that could be covered\n")
        return max(code, ExitCode.NOTHING_MATCHED)
    return max(code, ExitCode.FAILED if report.failed else ExitCode.OK)


def _kinds(words: str) -> tuple[CoveredKind, ...]:
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in _OF]
    if unknown or not wanted:
        named = unknown[0] if unknown else ""
        raise UsageError(f"--of takes some of {', '.join(_OF)}, not {named!r}")
    return tuple(_OF[word] for word in wanted)


def _counted(
    arguments: argparse.Namespace,
    explored: Explored,
    tests: tuple[Test, ...],
    kinds: tuple[CoveredKind, ...],
) -> CoverageReport:
    from mcptest.run.exploring.covering import coverage_of

    subject = explored.subject
    offer = subject.offer()
    info = subject.client.server.info
    return coverage_of(
        offer,
        tests,
        server=str(info.get("name") or subject.masker.text(subject.target.label)),
        is_skipped=_is_skipped,
        kinds=kinds,
        threshold=arguments.threshold,
    )


def _is_skipped(test: Test) -> bool:
    wanted = test.skip_unless_env
    return test.skip or (bool(wanted) and not os.environ.get(wanted))


def _views(report: CoverageReport) -> Views:
    from mcptest.report.coverage_json import coverage_as_json
    from mcptest.report.coverage_reports import coverage_as_markdown, coverage_as_run
    from mcptest.report.coverage_text import coverage_in_words, coverage_lines

    return Views(
        failed=report.failed,
        json=lambda: coverage_as_json(report),
        run=lambda: coverage_as_run(report),
        markdown=lambda: coverage_as_markdown(report),
        lines=lambda style: coverage_lines(report, style),
        summary=lambda: coverage_in_words(report),
    )
