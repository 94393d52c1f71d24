"""What `mcptest snapshot` does: hold answers against golden files, or write them."""

from __future__ import annotations

import argparse
import shlex
import sys

from mcptest.commands.golden_answers import compare_answers
from mcptest.commands.reporting import (
    code_with_reports,
    in_shard,
    tell_unwritten,
    tell_written,
    write_files,
)
from mcptest.commands.suite_command import chosen_tests, show_list
from mcptest.core.errors import ExitCode, UsageError
from mcptest.probe.snapshots import SnapshotOrder, with_answers
from mcptest.report.snapshot import snapshot_json, snapshot_summary, snapshot_text
from mcptest.report.terminal import Style, say, say_json
from mcptest.suite.golden import BUILT_IN, Masks, SnapshotReport, mask_problem


def run_snapshot(arguments: argparse.Namespace) -> int:
    order = _order(arguments)
    loaded, chosen = chosen_tests(arguments)
    tests, left_out = with_answers(chosen)
    if arguments.list:
        return show_list(tests, as_data=arguments.json)
    report = compare_answers(arguments, loaded, tests, left_out, order)
    unwritten = _publish(arguments, report)
    code = ExitCode.OK
    if report.run.interrupted:
        sys.stderr.write("mcptest: interrupted\n")
        code = ExitCode.INTERRUPTED
    elif report.failed or loaded.problems:
        code = ExitCode.FAILED
    elif not report.compared:
        sys.stderr.write("mcptest: no response was compared\n")
        code = ExitCode.NOTHING_MATCHED
    return code_with_reports(arguments, code, unwritten)


def _order(arguments: argparse.Namespace) -> SnapshotOrder:
    for pattern in arguments.mask:
        problem = mask_problem(pattern)
        if problem is not None:
            raise UsageError(f"--mask {shlex.quote(pattern)}: {problem}")
    if arguments.update and arguments.trials > 1:
        raise UsageError("--update does not work with --trials", hint="remove --trials")
    left_out = set(BUILT_IN) if "all" in arguments.no_mask else set(arguments.no_mask)
    built_in = frozenset(BUILT_IN) - left_out
    patterns = tuple(dict.fromkeys(arguments.mask))
    return SnapshotOrder(update=arguments.update, masks=Masks(built_in, patterns))


def _publish(arguments: argparse.Namespace, report: SnapshotReport) -> list[str]:
    """Write and print the reports; gives a sentence for each that could not be written."""
    unwritten = write_files(arguments, in_shard(arguments, report.run))
    if arguments.json:
        say_json(sys.stdout, snapshot_json(report))
    elif report.kept:
        style = Style.of(sys.stdout, no_color=arguments.no_color, verbose=arguments.verbose)
        if arguments.quiet and not report.failed:
            say(sys.stdout, snapshot_summary(report, style) + "\n")
        else:
            say(sys.stdout, snapshot_text(report, style))
    tell_written(arguments)
    tell_unwritten(arguments, unwritten)
    sys.stdout.flush()
    return unwritten
