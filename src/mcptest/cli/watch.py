"""`mcptest watch`: rerun what changed, and show what flipped."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from mcptest.cli.options import add_common_options, duration
from mcptest.cli.output import standard_output
from mcptest.cli.run import (
    chosen_tests,
    names_a_server,
    run_options,
    settings_of,
    show_list,
    wanted_reports,
)
from mcptest.cli.suite_options import add_run_options, add_server_options, add_suite_options
from mcptest.cli.unwritten import add_strict_option, code_with_reports, say_unwritten
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.results import RunReport
from mcptest.report.evidence import BRIEF, FULL
from mcptest.report.terminal import Style
from mcptest.report.watch_flips import Detail
from mcptest.report.watch_screen import WatchScreen
from mcptest.run.head_start import with_a_head_start
from mcptest.run.interrupt import Stop, stopping_on_signals
from mcptest.run.last_run import FOLDER
from mcptest.run.selection import Selection, parse_pattern, parse_shard
from mcptest.run.settings import Settings
from mcptest.run.suite_run import run_suite
from mcptest.run.watching import Watch, Watching
from mcptest.run.watching_affected import Sources
from mcptest.run.watching_files import Changes, changes_below
from mcptest.run.watching_keys import Keys, keys_of
from mcptest.run.watching_places import Watched, fixture_place, source_place, suite_place
from mcptest.run.watching_runner import CarryOut, Plan, Tell
from mcptest.run.watching_suites import WarmSuites
from mcptest.suite.load import LoadedSuite
from mcptest.suite.model import Suite

_REPORTS = ("json_file", "junit", "markdown", "badge")


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_server_options(parser)
    group = parser.add_argument_group("what is watched beside the suites and the fixture")
    group.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PATH",
        help="files and folders of the server: a change there runs everything; may repeat",
    )
    group.add_argument(
        "--interval",
        metavar="T",
        help="look for changes this often instead of being told: for network drives",
    )
    add_run_options(parser)
    reports = parser.add_argument_group("reports, after each run with all latest results")
    for name in _REPORTS:
        reports.add_argument(f"--{name.replace('_', '-')}", type=Path, metavar="FILE")
    add_strict_option(reports.add_argument)
    parser.set_defaults(json=False, baseline=None, save_baseline=None)
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    paths = _named_paths(arguments)
    if arguments.list:
        loaded, tests = chosen_tests(arguments)
        return show_list(tests, loaded.lanes, as_data=False)
    # What is wrong with the options is said before anything is run.
    settings = settings_of(arguments, LoadedSuite(Suite(())))
    run_options(arguments)
    suites = [suite_place(path) for path in paths]
    sources = _sources(arguments)
    keys = keys_of(sys.stdin) if sys.stdout.isatty() else None
    screen = _screen(arguments, keys=keys is not None)
    unwritten: list[str] = []

    def publish(report: RunReport) -> list[str]:
        unwritten[:] = _write_reports(arguments, report)
        return unwritten

    with contextlib.closing(_changes(arguments, [*suites, *_places(sources)])) as changes:
        watch = Watch(
            suites=_suites(arguments, paths),
            changes=changes,
            carry_out=_carrying_out(arguments),
            sources=sources,
            selection=_selection(arguments),
            choice=settings.choice,
            keys=keys,
            ours=_ours(arguments),
            publish=publish,
        )
        screen.starts(
            [*paths, *([arguments.fixture] if arguments.fixture else []), *arguments.also]
        )
        code = _watch(watch, screen)
    say_unwritten(unwritten)  # of the latest run: the screen told of each as it happened
    return code_with_reports(arguments, code, unwritten)


def _screen(arguments: argparse.Namespace, *, keys: bool) -> WatchScreen:
    bounds = FULL if arguments.verbose else BRIEF
    return WatchScreen(
        sys.stdout,
        Style.of(sys.stdout, no_color=arguments.no_color),
        keys=keys,
        quiet=arguments.quiet,
        detail=Detail(bounds, arguments.all_failures),
    )


def _watch(watch: Watch, screen: WatchScreen) -> int:
    watching = Watching(watch, screen)
    with contextlib.closing(watching), stopping_on_signals() as stop, _taken(watch.keys):

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
    if standing.is_nothing:
        return ExitCode.NOTHING_MATCHED
    return ExitCode.OK if standing.is_good else ExitCode.FAILED


@contextlib.contextmanager
def _taken(keys: Keys | None) -> Iterator[None]:
    if keys is None:
        yield
        return
    keys.take()
    try:
        yield
    finally:
        keys.give_back()


# -- what is watched -----------------------------------------------------------------------------


def _named_paths(arguments: argparse.Namespace) -> list[str]:
    paths = [*arguments.paths, *arguments.suite, *arguments.config]
    if not paths:
        raise UsageError("no suite is named", hint="mcptest watch --suite PATH")
    for path in (*paths, *arguments.also):
        if not Path(path).exists():
            raise UsageError(f"there is no {path} to watch")
    return paths


def _suites(arguments: argparse.Namespace, paths: list[str]) -> WarmSuites:
    """With their lanes, unless only some tests are asked for: as in `run`."""
    narrowed = arguments.pattern or arguments.tag or arguments.last_failed
    later_shard = arguments.shard is not None and not arguments.shard.startswith("1/")
    return WarmSuites(
        paths,
        fixture=arguments.fixture,
        server_given=names_a_server(arguments),
        lanes=not (narrowed or later_shard),
    )


def _sources(arguments: argparse.Namespace) -> Sources:
    fixture = fixture_place(arguments.fixture) if arguments.fixture else None
    return Sources(fixture, tuple(map(source_place, arguments.also)))


def _places(sources: Sources) -> Iterator[Watched]:
    if sources.fixture is not None:
        yield sources.fixture
    yield from sources.servers


def _changes(arguments: argparse.Namespace, places: list[Watched]) -> Changes:
    interval = duration(arguments.interval, "--interval") if arguments.interval else None
    return changes_below(places, interval)


def _selection(arguments: argparse.Namespace) -> Selection:
    only = None
    if arguments.last_failed:
        from mcptest.run.last_run import failed_last_time

        only = failed_last_time()
    return Selection(
        pattern=parse_pattern(arguments.pattern),
        tags=tuple(arguments.tag),
        shard=parse_shard(arguments.shard) if arguments.shard else None,
        only=only,
    )


def _ours(arguments: argparse.Namespace) -> frozenset[str]:
    """What we write ourselves must not start the next run."""
    written = [FOLDER, arguments.capture, *(getattr(arguments, name) for name in _REPORTS)]
    return frozenset(os.path.realpath(path) for path in written if path is not None)


# -- one run -------------------------------------------------------------------------------------


def _carrying_out(arguments: argparse.Namespace) -> CarryOut:
    quiet = argparse.Namespace(**{**vars(arguments), "quiet": True})

    def carry_out(plan: Plan, stop: Stop, tell: Tell) -> RunReport:
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
        from mcptest.cli.run_lanes import with_lanes
        from mcptest.run.lanes_names import check_names

        check_names(lanes)
        return with_lanes(quiet, lanes, plan.tests, settings, options, stop, run_tests)

    return carry_out


def _write_reports(arguments: argparse.Namespace, report: RunReport) -> list[str]:
    wanted = wanted_reports(arguments)
    if not wanted.files:
        return []
    from mcptest.report.write import write_reports

    return write_reports(report, None, wanted)
