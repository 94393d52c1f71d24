"""What the commands that run suites share: from their options to the tests, and to their results.

Everything here comes before the first server is started, so it imports little. What talks to
servers, judges and reports is imported while that server starts.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mcptest.commands.command_line import REACHING, options_again, repeat_line
from mcptest.commands.options import (
    duration,
    env_of,
    headers_of,
    suite_paths,
    wanted_jobs,
    wanted_revision,
)
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.results import RunReport
from mcptest.core.safe_text import show
from mcptest.probe.suites.server_start import check_variables, chosen_target, with_a_head_start
from mcptest.probe.suites.settings import (
    Numbered,
    RunOptions,
    Selection,
    ServerChoice,
    Settings,
    failed_last_time,
    only_this,
    parse_pattern,
    parse_shard,
    select,
    skip_reason,
)
from mcptest.session.server_spec import given_twice
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.model import Test
from mcptest.suite.reading import render as render_problem
from mcptest.transport.files import claim_folder
from mcptest.transport.interrupt import Stop, stopping_on_signals
from mcptest.transport.temporary import checked_fixture, live_folders

if TYPE_CHECKING:  # what a run needs only later is imported while its first server starts
    from mcptest.commands.reporting import RunEnding
    from mcptest.suite.lane_blocks import Lanes

Languages = tuple[tuple[str, ServerChoice], ...]
"""The servers of a matrix by their names."""
_OBJECTS_BEFORE_A_COLLECTION = 20_000
_MANY = 200
"""Of so many tests in one file none is told from the others by a part of its name."""


class WantedRun(msgspec.Struct, frozen=True):
    """The tests and the lanes that are to be run, and how."""

    arguments: argparse.Namespace
    tests: Sequence[Test]
    settings: Settings
    options: RunOptions
    stop: Stop
    lanes: Sequence[Lanes] = ()


def run_suites(
    arguments: argparse.Namespace, *, languages: Languages = (), ending: RunEnding | None = None
) -> int:
    """Load, select, run and report; gives the exit code."""
    loaded, tests = chosen_tests(arguments)
    lanes = chosen_lanes(arguments, loaded)
    if arguments.list:
        return show_list(tests, lanes, as_data=arguments.json)
    baseline = None
    if arguments.baseline is not None:  # read before anything is run
        from mcptest.report.baseline import stored_baseline

        baseline = stored_baseline(arguments.baseline)
    settings = settings_of(arguments, loaded)
    options = replace(run_options(arguments), languages=languages)
    # Until the reports are written: a signal must not cost them.
    with stopping_on_signals() as stop:
        run = WantedRun(arguments, tests, settings, options, stop, lanes)
        report = carry_out(run)
        from mcptest.commands.reporting import conclude_run

        return conclude_run(run, report, baseline, ending, has_problems=bool(loaded.problems))


def chosen_tests(arguments: argparse.Namespace) -> tuple[LoadedSuite, list[Test]]:
    """Load and select. UsageError for a suite that can't be run as it stands."""
    loaded = load_suites(
        named_suites(arguments),
        fixture=arguments.fixture,
        keep_going=arguments.keep_going,
        server_given=names_a_server(arguments),
    )
    for problem in (*loaded.problems, *loaded.warnings):
        sys.stderr.write(render_problem(problem) + "\n")
    return loaded, select(loaded.suite.tests, selection_of(arguments))


def named_suites(arguments: argparse.Namespace) -> list[str]:
    return suite_paths([*arguments.paths, *arguments.suite, *arguments.config])


def selection_of(arguments: argparse.Namespace) -> Selection:
    return Selection(
        pattern=parse_pattern(arguments.pattern),
        tags=tuple(arguments.tag),
        shard=parse_shard(arguments.shard) if arguments.shard else None,
        only=failed_last_time() if arguments.last_failed else None,
    )


def names_a_server(arguments: argparse.Namespace) -> bool:
    named = arguments.server is not None or getattr(arguments, "languages", None)
    return bool(named or arguments.server_command)


def chosen_lanes(arguments: argparse.Namespace, loaded: LoadedSuite) -> tuple[Lanes, ...]:
    """What the files ask for besides their tests. SuiteError for a name that does not exist."""
    if not loaded.lanes:
        return ()
    if getattr(arguments, "languages", None):
        sys.stderr.write("mcptest: note: the lanes of the suite are not run: a matrix runs tests\n")
        return ()
    from mcptest.probe.lanes import check_names

    check_names(loaded.lanes)
    if why := why_without_lanes(arguments):
        sys.stderr.write(f"mcptest: note: the lanes of the suite are not run: {why}\n")
        return ()
    return tuple(loaded.lanes)


def why_without_lanes(arguments: argparse.Namespace) -> str:
    """Why only tests are run; empty where the lanes are run too."""
    if arguments.pattern or arguments.tag or arguments.last_failed:
        return "only some tests were selected"
    later_shard = arguments.shard is not None and not arguments.shard.startswith("1/")
    return "the first shard runs them" if later_shard else ""


def show_list(tests: Sequence[Test], lanes: Sequence[Lanes] = (), *, as_data: bool) -> int:
    """For --list: what would run."""
    places = [(test.name, test.place.file, test.place.line) for test in tests]
    for one in lanes:
        places += [(f"the {name} lane", place.file, place.line) for name, place in one.places]
    if as_data:
        from mcptest.report.codec import as_json

        named = [{"name": name, "file": file, "line": line} for name, file, line in places]
        sys.stdout.buffer.write(as_json(named))
    else:
        for name, file, line in places:
            sys.stdout.write(f"{show(f'{file}:{line}', 500)}: {show(name, 300)}\n")
    if places:
        return ExitCode.OK
    sys.stderr.write("mcptest: no test was selected\n")
    return ExitCode.NOTHING_MATCHED


def choice_of(
    arguments: argparse.Namespace, server: str | None, command: tuple[str, ...] = ()
) -> ServerChoice:
    """What the options say about servers."""
    if server is not None and command:
        raise given_twice()
    if arguments.spec_version:
        wanted_revision(arguments.spec_version)
    if arguments.cwd is not None and not os.path.isdir(arguments.cwd):  # noqa: PTH112 - `Path('')` is one
        raise UsageError(f"--cwd: no such folder: {arguments.cwd}")
    return ServerChoice(
        server,
        command,
        docker=arguments.docker,
        captures=arguments.save_capture,
        env=env_of(arguments),
        headers=headers_of(arguments),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        spec_version=arguments.spec_version,
        way=arguments.transport,
        config=arguments.mcp_config,
    )


def settings_of(arguments: argparse.Namespace, loaded: LoadedSuite) -> Settings:
    """UsageError for anything that would make every test fail."""
    choice = choice_of(arguments, arguments.server, tuple(arguments.server_command))
    if choice.is_given:
        chosen_target(choice)
    if choice.captures is not None:
        claim_folder(choice.captures)
    startup = arguments.startup_timeout
    by_file: dict[str, list[Test]] = {}
    for test in loaded.suite.tests:
        by_file.setdefault(test.place.file, []).append(test)
    return Settings(
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup and duration(startup, "--startup-timeout"),
        fixture=checked_fixture(arguments.fixture),
        choice=choice,
        all_failures=arguments.all_failures,
        lenient=arguments.lenient,
        quick_end=arguments.quick_end,
        warm_start=arguments.warm_start,
        repeat=lambda item: repeat_command(arguments, item, by_file[item.test.place.file]),
    )


def run_options(arguments: argparse.Namespace) -> RunOptions:
    if arguments.trials < 1:
        raise UsageError("--trials must be at least 1")
    if arguments.in_flight < 1:
        raise UsageError("--in-flight must be at least 1")
    return RunOptions(
        trials=arguments.trials,
        jobs=wanted_jobs(arguments.jobs or "auto"),
        single_file_order=arguments.jobs is None,
        shared=arguments.reuse_server or arguments.isolation == "shared",
        in_flight=arguments.in_flight,
        fail_fast=arguments.fail_fast,
    )


def carry_out(run: WantedRun) -> RunReport:
    """Run the tests, and then the lanes."""
    choice = run.settings.choice
    servers = [test.server for test in run.tests if skip_reason(test, choice) is None]
    check_variables((*servers, *(lane.server for lane in run.lanes)), choice)

    def run_tests(settings: Settings) -> RunReport:
        with with_a_head_start(run.tests, settings, run.options) as begun:
            return _run_tests(run, begun)

    if not run.lanes:
        return run_tests(run.settings)
    from mcptest.commands.suite_lanes import with_lanes

    return with_lanes(run, run_tests)


def _run_tests(run: WantedRun, settings: Settings) -> RunReport:
    from mcptest.commands.live_display import live_run
    from mcptest.probe.suites.suite_run import run_suite

    if not run.tests:
        return RunReport()
    total = len(run.tests) * run.options.trials * max(1, len(run.options.languages))
    # What is there now stays until the end, so the collector need not look at it again. Before a
    # second run (`init`, `watch`) the sessions of the first one are there, too, and have to go.
    if not gc.get_freeze_count():
        gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    with live_run(run.arguments, total) as live:
        return run_suite(
            run.tests,
            replace(settings, on_begin=live.begins),
            run.options,
            run.stop,
            live.ended,
            meanwhile=_import_what_checks,
            at_last=_import_what_reports,
        )


def _import_what_checks() -> None:
    """What checks answers, in the time that the servers take to start."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 10)  # whoever has an answer to read goes first
    try:
        import jsonschema_rs  # noqa: F401 - for the one that compiles output schemas

        from mcptest.schema import validation  # noqa: F401 - for the check of structured content
    finally:
        sys.setswitchinterval(usual)


def _import_what_reports() -> None:
    """What writes reports and removes fixtures, in the time that the last servers take to leave."""
    from mcptest.commands import reporting  # noqa: F401 - for the end of the run

    if live_folders:
        import shutil  # noqa: F401 - with which they are removed


def repeat_command(
    arguments: argparse.Namespace, item: Numbered, others: Sequence[Test] = ()
) -> str:
    """The command line that runs just this test again."""
    test = item.test
    pattern = only_this(test, others) if len(others) < _MANY else f"={test.name}"
    words = ["mcptest", "run", test.place.file, "-k", pattern]
    if item.choice is not None:  # one of the servers of a matrix
        arguments = argparse.Namespace(**{**vars(arguments), "server": item.choice.server})
    words += options_again(arguments, "server", "mcp_config", "transport", *REACHING, "cwd")
    words += options_again(arguments, "fixture", "docker", "spec_version", "timeout")
    words += options_again(arguments, "startup_timeout", "lenient")
    if arguments.server_command:
        words += ["--", *arguments.server_command]
    return repeat_line(words, arguments)
