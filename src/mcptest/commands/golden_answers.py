"""Golden answers of a suite: for `snapshot`, and for `init`, which keeps the first ones."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from mcptest.commands.options import add_options_of_run
from mcptest.commands.suite_command import (
    WantedRun,
    carry_out,
    chosen_tests,
    named_suites,
    run_options,
    settings_of,
)
from mcptest.core.errors import ExitCode
from mcptest.core.limits import Deadline
from mcptest.probe.snapshots import SnapshotOrder, Snapshots, saved_answers, with_answers
from mcptest.report.snapshot import first_answers_in_words
from mcptest.session.connection import Stopped
from mcptest.suite.golden import SnapshotOutcome, SnapshotReport
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Test
from mcptest.transport.interrupt import stopping_on_signals

_LONGEST_WAIT = 60.0
"""For another run that is at work on the same golden files."""


def compare_answers(
    arguments: argparse.Namespace,
    loaded: LoadedSuite,
    tests: Sequence[Test],
    left_out: Sequence[Test],
    order: SnapshotOrder,
    limit: Deadline | None = None,
) -> SnapshotReport:
    """Run the tests with their golden files open, as `order` says; no longer than to the limit."""
    named = named_suites(arguments)
    snapshots = Snapshots(loaded.suite.tests, order, saved_answers(named), named)
    options = run_options(arguments)
    settings = settings_of(arguments, loaded)
    repeat = settings.repeat
    # `run` has the options of a single test right; only the command is another one.
    settings = replace(
        settings,
        second_opinion=snapshots.judge,
        repeat=lambda item: repeat(item).replace("mcptest run", "mcptest snapshot", 1),
    )
    narrowed = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    whole = not (narrowed or arguments.fail_fast or loaded.problems)
    with snapshots.opened(tests, Deadline.after(_LONGEST_WAIT)), stopping_on_signals() as stop:
        in_time = threading.Timer(limit.remaining() if limit is not None else 0.0, stop.set)
        if limit is not None:
            in_time.start()
        try:
            done = carry_out(WantedRun(arguments, tests, settings, options, stop))
        finally:
            in_time.cancel()
        return snapshots.report(done, left_out, whole=whole)


def keep_first_answers(
    folder: Path, options: Sequence[str], command: Sequence[str], limit: Deadline | None = None
) -> int:
    """For `init`: golden files for a suite that was just written, so that it passes at once.

    Each test is run again: what differs between its answers is not compared from then on. Raises
    Stopped where that was not done to its end.
    """
    parser = argparse.ArgumentParser(add_help=False)
    add_options_of_run(parser)
    arguments = parser.parse_args([f"--suite={folder}", *options])
    arguments.server_command = list(command)
    loaded, chosen = chosen_tests(arguments)
    tests, _ = with_answers(chosen)

    def compared(tests: Sequence[Test], order: SnapshotOrder) -> SnapshotReport:
        report = compare_answers(arguments, loaded, tests, (), order, limit)
        if report.run.interrupted:
            raise Stopped
        return report

    first = compared(tests, SnapshotOrder(update=True))
    arguments.isolation = "shared"  # enough to see which answers are worth a closer look
    again = compared(tests, SnapshotOrder())
    arguments.isolation = None
    pairs = zip(again.run.results, again.kept, strict=True)
    changed = [one for one, kept in pairs if kept.outcome is SnapshotOutcome.CHANGED]
    places = {(one.file, one.line) for one in changed}
    suspects = [test for test in tests if (test.place.file, test.place.line) in places]
    settled = compared(suspects, SnapshotOrder(settle=True))
    sys.stdout.writelines(f"{line}\n" for line in first_answers_in_words(first, settled))
    return ExitCode.FAILED if any(one.unwritten for one in (first, again, settled)) else ExitCode.OK
