"""`mcptest audit`: discover what a server offers, call what is safe, classify, score."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.concluded import Saved, Views, add_report_options, conclude, saved_into
from mcptest.cli.explored import (
    Explored,
    add_fixture_option,
    check_tool_names,
    exploring,
    named_tools,
    out_of_time,
    repeat_command,
)
from mcptest.cli.options import (
    add_common_options,
    add_max_time,
    add_server_options,
    duration,
    limit_of,
)
from mcptest.cli.report_forms import captures_for_html
from mcptest.model.errors import ExitCode, McptestError, UsageError

if TYPE_CHECKING:
    from mcptest.model.audit import AuditReport
    from mcptest.run.exploring.auditing import Audit, AuditOrder


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--include-writes", action="store_true", help="call tools that may write, too")
    add("--docker", default="", metavar="IMAGE", help="run the server in a container of this image")
    add_fixture_option(parser)
    add("--tool", action="append", default=[], metavar="NAME", help="only this tool; may repeat")
    add(
        "--min-score",
        type=int,
        metavar="N",
        help="fail below this share of items that work, in percent, and only then; "
        "without it anything that is broken fails",
    )
    add("--no-verify", action="store_true", help="don't call tools again to verify their hints")
    add("--output", type=Path, metavar="DIR", help="write a starter test for each item")
    add("--overwrite", action="store_true", help="replace starter tests that exist")
    add_max_time(parser)
    add_report_options(parser)
    add_server_options(parser)
    add_common_options(parser)
    parser.set_defaults(timeout="15s", command_name="audit")


def run(arguments: argparse.Namespace) -> int:
    if arguments.min_score is not None and not 0 <= arguments.min_score <= 100:
        raise UsageError(f"--min-score is a share in percent, not {arguments.min_score}")
    with captures_for_html(arguments):
        return _audit_and_tell(arguments)


def _audit_and_tell(arguments: argparse.Namespace) -> int:
    from mcptest.run.interrupt import stopping_on_signals

    with stopping_on_signals() as stop, exploring(arguments, stop) as explored:
        stop.limit = limit_of(arguments)
        try:
            audit = _audited(arguments, explored)
        except McptestError as error:
            raise error.masked(explored.subject.masker.cut_text) from None
        was_cut = audit.interrupted and stop.is_out_of_time
        explored.subject.close()  # only now it is known whether its capture is whole
        report = audit.report(out_of_time(arguments) if was_cut else "")
        saved = _write_starters(arguments, explored, report)
    written = conclude(arguments, _views(report, arguments))
    return max(saved.tell(arguments), written, _code(report))


def _audited(arguments: argparse.Namespace, explored: Explored) -> Audit:
    from mcptest.cli.live import live_progress
    from mcptest.run.exploring.auditing import Audit

    audit = Audit(explored.subject, _order(arguments, explored))
    total = audit.meet()
    if "tools/list" not in audit.offer.problems:
        check_tool_names(arguments.tool, named_tools(audit.offer.tools))
    with live_progress(arguments, total) as progress:
        for item in audit.items():
            progress.finish(item.name, item.name, failed=item.is_bad, reason=item.detail)
    return audit


def _order(arguments: argparse.Namespace, explored: Explored) -> AuditOrder:
    from mcptest.run.exploring.auditing import AuditOrder

    options = ["--include-writes"] if arguments.include_writes else []
    options += ["--docker", arguments.docker] if arguments.docker else []
    mask = explored.subject.masker.text
    return AuditOrder(
        include_writes=arguments.include_writes or bool(arguments.docker),
        tools=tuple(arguments.tool),
        verify=not arguments.no_verify,
        fixture=explored.fixture,
        ground=explored.ground(),
        min_score=arguments.min_score,
        timeout=duration(arguments.timeout, "--timeout"),
        repeat=mask(repeat_command(arguments, *options)),
    )


def _write_starters(
    arguments: argparse.Namespace, explored: Explored, report: AuditReport
) -> Saved:
    if arguments.output is None:
        return Saved()
    from mcptest.run.exploring.placing import place_starters
    from mcptest.run.exploring.starters import starters_of_audit
    from mcptest.run.exploring.written_server import written_server

    server = written_server(
        explored.target, spec_version=arguments.spec_version, docker=arguments.docker
    )
    folder = str(explored.fixture) if explored.fixture is not None else ""
    ground = explored.ground(as_variable=True)
    starters = starters_of_audit(report, ground=ground, fixture=folder)
    return saved_into(
        arguments.output,
        lambda: place_starters(arguments.output, starters, server, overwrite=arguments.overwrite),
        server.needs,
    )


def _views(report: AuditReport, arguments: argparse.Namespace) -> Views:
    from mcptest.report.audit_json import audit_as_json
    from mcptest.report.audit_markdown import audit_as_markdown
    from mcptest.report.audit_run import audit_as_run
    from mcptest.report.audit_text import audit_lines, summary_in_words

    words = {"verbose": arguments.verbose, "quiet": arguments.quiet}
    return Views(
        failed=report.failed,
        json=lambda: audit_as_json(report),
        run=lambda: audit_as_run(report),
        markdown=lambda: audit_as_markdown(report),
        lines=lambda style: audit_lines(report, style, **words),
        summary=lambda: summary_in_words(report),
        report=report,
    )


def _code(report: AuditReport) -> int:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failed and (report.tested or report.problems):
        return ExitCode.FAILED
    if not report.tested:
        hint = "" if not report.items else ": --include-writes calls tools that may write"
        sys.stderr.write(f"mcptest: nothing was tested{hint}\n")
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK
