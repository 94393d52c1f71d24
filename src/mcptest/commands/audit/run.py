"""What `mcptest audit` does: call what is safe, classify, score, report."""

from __future__ import annotations

import argparse

from mcptest.commands.live_display import live_progress
from mcptest.commands.options import check_share, duration
from mcptest.commands.reporting import Saved, captures_for_html, conclude, saved_into
from mcptest.commands.server_options import Explored, cut_off, exploring, repeat_command
from mcptest.probe.audit_run import Audit, AuditOrder
from mcptest.probe.starter_suites import place_starters, starters_of_audit, written_server
from mcptest.report.audit import AuditReport
from mcptest.session.pages import check_tool_names


def run_audit(arguments: argparse.Namespace) -> int:
    check_share(arguments.fail_under)
    with captures_for_html(arguments):
        with exploring(arguments) as explored:
            audit = _audit(arguments, explored)
            why = cut_off(explored, arguments, interrupted=audit.interrupted)
            explored.subject.close()  # only now it is known whether its capture is whole
            report = audit.report(why)
            saved = _write_starters(arguments, explored, report)
        hint = "; --allow-writes calls tools not marked readOnlyHint" if report.items else ""
        return conclude(arguments, report, nothing=f"nothing was tested{hint}", saved=saved)


def _audit(arguments: argparse.Namespace, explored: Explored) -> Audit:
    audit = Audit(explored.subject, _order(arguments, explored))
    total = audit.meet()
    if "tools/list" not in audit.offer.problems:
        check_tool_names([*arguments.tool, *arguments.allow_tool], audit.offer.tools)
    with live_progress(arguments, total) as progress:
        for item in audit.items():
            progress.finish(item.name, item.name, failed=item.is_bad, reason=item.detail)
    return audit


def _order(arguments: argparse.Namespace, explored: Explored) -> AuditOrder:
    mask = explored.subject.masker.text
    return AuditOrder(
        include_writes=arguments.allow_writes or bool(arguments.docker),
        allow_tools=frozenset(arguments.allow_tool),
        tools=tuple(arguments.tool),
        verify=not arguments.no_verify,
        fixture=explored.fixture,
        ground=explored.ground(),
        min_score=arguments.fail_under,
        timeout=duration(arguments.timeout, "--timeout"),
        repeat=mask(repeat_command(arguments, "allow_writes", "allow_tool", "docker")),
    )


def _write_starters(
    arguments: argparse.Namespace, explored: Explored, report: AuditReport
) -> Saved | None:
    if arguments.output is None:
        return None
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
