"""What `mcptest watch` does: watch what the options name, and run what a change affects."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from mcptest.commands.options import duration
from mcptest.commands.output import standard_output
from mcptest.commands.reporting import code_with_reports, say_unwritten, write_files
from mcptest.commands.suite_command import (
    WantedRun,
    chosen_tests,
    named_suites,
    names_a_server,
    run_options,
    selection_of,
    settings_of,
    show_list,
    why_without_lanes,
)
from mcptest.commands.suite_lanes import with_lanes
from mcptest.commands.watch.file_events import (
    changes_below,
    fixture_place,
    source_place,
    suite_place,
)
from mcptest.commands.watch.view import WatchScreen, keys_of
from mcptest.commands.watch.watch_loop import (
    CarryOut,
    Sources,
    Tell,
    WarmSuites,
    WatchLoop,
    WatchPlan,
    WatchSetup,
)
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.results import RunReport
from mcptest.probe.lanes import check_names
from mcptest.probe.suites.server_start import with_a_head_start
from mcptest.probe.suites.settings import FOLDER, Settings
from mcptest.probe.suites.suite_run import run_suite
from mcptest.report.terminal import Style
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Suite
from mcptest.transport.interrupt import Stop, stopping_on_signals


def run_watch(arguments: argparse.Namespace) -> int:
    paths = _named_paths(arguments)
    if arguments.list:
        loaded, tests = chosen_tests(arguments)
        return show_list(tests, loaded.lanes, as_data=False)
    # What is wrong with the options is said before anything is run.
    settings = settings_of(arguments, LoadedSuite(Suite(())))
    run_options(arguments)
    fixture = fixture_place(arguments.fixture) if arguments.fixture else None
    sources = Sources(fixture, tuple(map(source_place, arguments.also)))
    places = [*map(suite_place, paths), *filter(None, [fixture]), *sources.servers]
    interval = duration(arguments.interval, "--interval") if arguments.interval else None
    # What we write ourselves must not start the next run.
    reports = (arguments.json_file, arguments.junit, arguments.markdown, arguments.badge)
    written = [FOLDER, arguments.save_capture, *reports]
    keys = keys_of(sys.stdin) if sys.stdout.isatty() else None
    how = {"verbose": arguments.verbose, "quiet": arguments.quiet}
    screen = WatchScreen(
        sys.stdout,
        Style.of(sys.stdout, no_color=arguments.no_color, **how),
        keys=keys is not None,
        all_failures=arguments.all_failures,
    )
    unwritten: list[str] = []

    def publish(report: RunReport) -> list[str]:
        unwritten[:] = write_files(arguments, report)
        return unwritten

    with contextlib.closing(changes_below(places, interval)) as changes:
        watch = WatchSetup(
            suites=WarmSuites(
                paths,
                fixture=arguments.fixture,
                server_given=names_a_server(arguments),
                lanes=not why_without_lanes(arguments),  # as in `run`
            ),
            changes=changes,
            carry_out=_carrying_out(arguments),
            sources=sources,
            selection=selection_of(arguments),
            choice=settings.choice,
            keys=keys,
            ours=frozenset(os.path.realpath(path) for path in written if path is not None),
            publish=publish,
        )
        screen.starts([*paths, *filter(None, [arguments.fixture]), *arguments.also])
        code = _watch(watch, screen)
    say_unwritten(unwritten)  # of the latest run: the screen told of each as it happened
    return code_with_reports(arguments, code, unwritten)


def _watch(watch: WatchSetup, screen: WatchScreen) -> int:
    watching = WatchLoop(watch, screen)
    keys = watch.keys or contextlib.nullcontext()
    with contextlib.closing(watching), stopping_on_signals() as stop, keys:

        def end() -> None:
            # At once: a second signal ends us without any further step.
            if watch.keys is not None:
                watch.keys.give_back()
            watching.interrupt()

        stop.on_set = end
        output = standard_output()
        if output is not None:
            output.when_lost = watching.interrupt  # nobody sees any more what flips
        if stop.is_set():  # it came before anyone could be told
            end()
        watching.go()
    standing = watching.standing()
    screen.closes(standing)
    if stop.is_set():
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if standing.is_undecided:
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if standing.is_good else ExitCode.FAILED


def _named_paths(arguments: argparse.Namespace) -> list[str]:
    paths = named_suites(arguments)
    for path in (*paths, *arguments.also):
        if not Path(path).exists():
            raise UsageError(f"no such file or folder: {path}")
    return paths


def _carrying_out(arguments: argparse.Namespace) -> CarryOut:
    quiet = argparse.Namespace(**{**vars(arguments), "quiet": True})

    def carry_out(plan: WatchPlan, stop: Stop, tell: Tell) -> RunReport:
        settings = replace(settings_of(arguments, plan.loaded), proof_of_passes=True)
        options = run_options(arguments)

        def run_tests(settings: Settings) -> RunReport:
            if not plan.tests:
                return RunReport(interrupted=stop.is_set())
            with with_a_head_start(plan.tests, settings, options) as begun:
                return run_suite(plan.tests, begun, options, stop, tell)

        lanes = [lane for lane in plan.loaded.lanes if lane.file in plan.wish.lanes]
        if not lanes:
            return run_tests(settings)
        check_names(lanes)
        return with_lanes(WantedRun(quiet, plan.tests, settings, options, stop, lanes), run_tests)

    return carry_out
