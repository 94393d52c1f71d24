"""`mcptest snapshot`: the answers of a suite's tests as golden files, written and compared."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mcptest.cli import run as suite_run
from mcptest.cli.options import add_common_options
from mcptest.cli.suite_options import add_run_options, add_server_options, add_suite_options
from mcptest.cli.unwritten import add_strict_option, code_with_reports, tell_unwritten
from mcptest.model.deadline import Deadline
from mcptest.model.errors import ExitCode, UsageError
from mcptest.run.interrupt import stopping_on_signals
from mcptest.run.settings import Numbered
from mcptest.run.snapshotting import SnapshotOrder, Snapshots
from mcptest.run.snapshotting_mcp_assert import saved_answers
from mcptest.run.snapshotting_results import with_answers
from mcptest.suite.load import LoadedSuite
from mcptest.suite.snapshots import SnapshotOutcome
from mcptest.suite.snapshots_masks import BUILT_IN, Masks, mask_problem

if TYPE_CHECKING:
    from mcptest.suite.model import Test
    from mcptest.suite.snapshots import SnapshotReport

_LONGEST_WAIT = 60.0
"""For another run that is at work on the same golden files."""
_REPORTS = ("json_file", "junit", "markdown", "badge", "html")


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_server_options(parser)
    group = parser.add_argument_group("golden files")
    group.add_argument("--update", action="store_true", help="write what is new or has changed")
    group.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="PATTERN",
        help="what differs in every run (RE2); an update remembers it. May repeat",
    )
    group.add_argument(
        "--no-mask",
        action="append",
        default=[],
        choices=(*BUILT_IN, "all"),
        metavar="NAME",
        help=f"write these as they are: {', '.join(BUILT_IN)}, or all. May repeat",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports")
    for name in _REPORTS:
        reports.add_argument(f"--{name.replace('_', '-')}", type=Path, metavar="FILE")
    reports.add_argument("--json", action="store_true", help="results as JSON on stdout, alone")
    add_strict_option(reports.add_argument)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    order = _order(arguments)
    loaded, chosen = suite_run.chosen_tests(arguments)
    tests, left_out = with_answers(chosen)
    if arguments.list:
        return suite_run.show_list(tests, as_data=arguments.json)
    report = _carried_out(arguments, loaded, tests, left_out, order)
    unwritten = _publish(arguments, report)
    return code_with_reports(arguments, _exit_code(loaded, report), unwritten)


def _order(arguments: argparse.Namespace) -> SnapshotOrder:
    for pattern in arguments.mask:
        problem = mask_problem(pattern)
        if problem is not None:
            raise UsageError(f"--mask {shlex.quote(pattern)}: {problem}")
    if arguments.update and arguments.trials > 1:
        raise UsageError("--update writes one answer of each test: leave --trials out")
    left_out = set(BUILT_IN) if "all" in arguments.no_mask else set(arguments.no_mask)
    built_in = frozenset(BUILT_IN) - left_out
    patterns = tuple(dict.fromkeys(arguments.mask))
    return SnapshotOrder(update=arguments.update, masks=Masks(built_in, patterns))


def _carried_out(
    arguments: argparse.Namespace,
    loaded: LoadedSuite,
    tests: Sequence[Test],
    left_out: Sequence[Test],
    order: SnapshotOrder,
) -> SnapshotReport:
    named = [*arguments.paths, *arguments.suite, *arguments.config]
    snapshots = Snapshots(loaded.suite.tests, order, saved_answers(named), named)
    options = suite_run.run_options(arguments)
    settings = suite_run.settings_of(arguments, loaded)
    repeat = settings.repeat
    settings = replace(
        settings,
        second_opinion=snapshots.judge,
        repeat=lambda item: _as_snapshot(repeat, item),
    )
    narrowed = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    whole = not (narrowed or arguments.fail_fast or loaded.problems)
    with (
        snapshots.opened(tests, Deadline.after(_LONGEST_WAIT)),
        stopping_on_signals() as stop,
    ):
        done = suite_run.carry_out(arguments, tests, settings, options, stop)
        return snapshots.report(done, left_out, whole=whole)


def keep_first_answers(folder: Path, options: Sequence[str], command: Sequence[str]) -> int:
    """For `init`: golden files for a suite that was just written, so that it passes at once.

    Each test is run again: what differs between its answers is not compared from then on.
    """
    parser = argparse.ArgumentParser(add_help=False)
    configure(parser)
    arguments = parser.parse_args([f"--suite={folder}", *options])
    arguments.server_command = list(command)
    loaded, chosen = suite_run.chosen_tests(arguments)
    tests, _ = with_answers(chosen)
    first = _carried_out(arguments, loaded, tests, (), SnapshotOrder(update=True))
    arguments.isolation = "shared"  # enough to see which answers are worth a closer look
    again = _carried_out(arguments, loaded, tests, (), SnapshotOrder())
    arguments.isolation = None
    suspects = _tests_of(again, tests, SnapshotOutcome.CHANGED)
    settled = _carried_out(arguments, loaded, suspects, (), SnapshotOrder(settle=True))
    reports = (first, again, settled)
    if any(one.run.interrupted for one in reports):
        return ExitCode.INTERRUPTED
    from mcptest.report.snapshot_text import first_answers_in_words

    sys.stdout.writelines(f"{line}\n" for line in first_answers_in_words(first, settled))
    return ExitCode.FAILED if any(one.unwritten for one in reports) else ExitCode.OK


def _tests_of(
    report: SnapshotReport, tests: Sequence[Test], outcome: SnapshotOutcome
) -> list[Test]:
    pairs = zip(report.run.results, report.kept, strict=True)
    places = {(result.file, result.line) for result, kept in pairs if kept.outcome is outcome}
    return [test for test in tests if (test.place.file, test.place.line) in places]


def _as_snapshot(repeat: Callable[[Numbered], str], item: Numbered) -> str:
    """`run` has the options of a single test right; only the command is another one."""
    return repeat(item).replace("mcptest run", "mcptest snapshot", 1)


def _publish(arguments: argparse.Namespace, report: SnapshotReport) -> list[str]:
    """Write and print the reports; gives a sentence for each that could not be written."""
    from mcptest.cli.report_forms import in_shard
    from mcptest.report.snapshot_json import snapshot_json
    from mcptest.report.snapshot_text import snapshot_summary, snapshot_text
    from mcptest.report.terminal import Style, say, say_json
    from mcptest.report.write import Wanted, write_reports

    files = {name: path for name in _REPORTS if (path := getattr(arguments, name)) is not None}
    unwritten = write_reports(in_shard(arguments, report.run), None, Wanted(files=files))
    if arguments.json:
        say_json(sys.stdout, snapshot_json(report))
    elif report.kept:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        if arguments.quiet and not report.failed:
            say(sys.stdout, snapshot_summary(report, style) + "\n")
        else:
            say(sys.stdout, snapshot_text(report, style, verbose=arguments.verbose))
    tell_unwritten(arguments, unwritten)
    sys.stdout.flush()
    return unwritten


def _exit_code(loaded: LoadedSuite, report: SnapshotReport) -> int:
    if report.run.interrupted:
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if report.failed or loaded.problems:
        return ExitCode.FAILED
    if not report.compared:
        sys.stderr.write("mcptest: no answer was compared\n")
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK
