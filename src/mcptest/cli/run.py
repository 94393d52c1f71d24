"""`mcptest run`: tests in YAML against real servers."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mcptest.cli.options import (
    add_common_options,
    duration,
    headers_of,
    pairs,
    wanted_jobs,
    wanted_revision,
)
from mcptest.cli.suite_options import (
    DEFAULT_TIMEOUT,
    add_fix_option,
    add_report_options,
    add_run_options,
    add_server_options,
    add_suite_options,
)
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.show import show
from mcptest.run.choosing import ServerChoice, check_variables, chosen_target
from mcptest.run.fixture import checked_fixture
from mcptest.run.interrupt import Stop, stopping_on_signals
from mcptest.run.selection import Selection, only_this, parse_pattern, parse_shard, select
from mcptest.run.settings import Numbered, RunOptions, Settings, skip_reason
from mcptest.suite.fingerprint import Fingerprint
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.model import Test
from mcptest.suite.problems import render as render_problem

if TYPE_CHECKING:  # what a run needs only later is imported while its first server starts
    from mcptest.model.results import RunReport, Suggestion
    from mcptest.report.baseline import Baseline
    from mcptest.report.terminal import Style
    from mcptest.report.write import Wanted
    from mcptest.suite.lanes import Lanes

_MANY = 200
_REASONS = 3
_NOT_SELECTED = "no test was selected"
"""Of so many tests in one file none is told from the others by a part of its name."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_suite_options(parser)
    add_server_options(parser)
    add_run_options(parser)
    add_fix_option(parser)
    add_report_options(parser)
    parser.add_argument(
        "--strict-reports", action="store_true", help="a report that can't be written fails"
    )
    add_common_options(parser)


def run(arguments: argparse.Namespace) -> int:
    fingerprint = Fingerprint(arguments.fixture)
    loaded, tests = chosen_tests(arguments, fingerprint)
    lanes = chosen_lanes(arguments, loaded)
    if arguments.list:
        return show_list(tests, lanes, as_data=arguments.json)
    stored = baseline_of(arguments)
    settings, options = settings_of(arguments, loaded), run_options(arguments)
    # Until the reports are written: a signal must not cost them.
    with stopping_on_signals() as stop:
        report = carry_out(arguments, tests, settings, options, stop, lanes)
        from mcptest.cli.run_start import remember_run

        remember_run(arguments, loaded, tests, settings, fingerprint)
        suggested = suggestions(arguments, tests, report, settings, stop)
        report, unwritten = publish(
            arguments, report, stored, fails=lambda done: has_failed(done) or bool(loaded.problems)
        )
        tell_suggestions(arguments, suggested)
    return exit_code(
        loaded,
        report,
        interrupted=stop.is_set(),
        failed=has_failed(report),
        unwritten=unwritten and arguments.strict_reports,
    )


# -- the steps, shared with `ci` and `matrix` ---------------------------------------------------


def baseline_of(arguments: argparse.Namespace) -> Baseline | None:
    """What --baseline names, read before anything is run."""
    if arguments.baseline is None:
        return None  # the modules for reports are imported while servers start
    from mcptest.report.write import stored_baseline

    return stored_baseline(wanted_reports(arguments))


def chosen_tests(
    arguments: argparse.Namespace, seen_by: Fingerprint | None = None
) -> tuple[LoadedSuite, list[Test]]:
    """Load and select. UsageError for a suite that can't be run as it stands."""
    paths = [*arguments.paths, *arguments.suite, *arguments.config]
    if not paths:
        raise UsageError("no suite is named", hint="mcptest run PATH, or mcptest run --suite PATH")
    loaded = load_suites(
        paths,
        fixture=arguments.fixture,
        keep_going=arguments.keep_going,
        server_given=names_a_server(arguments),
        seen_by=seen_by,
    )
    for problem in (*loaded.problems, *loaded.warnings):
        sys.stderr.write(render_problem(problem) + "\n")
    selection = Selection(
        pattern=parse_pattern(arguments.pattern),
        tags=tuple(arguments.tag),
        shard=parse_shard(arguments.shard) if arguments.shard else None,
        only=_failed_last_time() if arguments.last_failed else None,
    )
    return loaded, select(loaded.suite.tests, selection)


def _failed_last_time() -> set[str]:
    from mcptest.run.last_run import failed_last_time

    return failed_last_time()


def chosen_lanes(arguments: argparse.Namespace, loaded: LoadedSuite) -> tuple[Lanes, ...]:
    """What the files ask for besides their tests."""
    if not loaded.lanes:
        return ()
    from mcptest.cli.run_lanes import lanes_to_run

    return lanes_to_run(arguments, loaded.lanes)


def names_a_server(arguments: argparse.Namespace) -> bool:
    return arguments.server is not None or bool(arguments.server_command)


def show_list(tests: Sequence[Test], lanes: Sequence[Lanes] = (), *, as_data: bool) -> int:
    places = [(test.name, test.place.file, test.place.line) for test in tests]
    if lanes:
        from mcptest.cli.run_lanes import lane_places

        places += lane_places(lanes)
    if as_data:
        from mcptest.report.results_json import as_json

        named = [{"name": name, "file": file, "line": line} for name, file, line in places]
        sys.stdout.buffer.write(as_json(named))
    else:
        for name, file, line in places:
            sys.stdout.write(f"{show(f'{file}:{line}', 500)}: {show(name, 300)}\n")
    return ExitCode.OK if places else _nothing(_NOT_SELECTED)


def choice_of(
    arguments: argparse.Namespace, server: str | None, command: tuple[str, ...] = ()
) -> ServerChoice:
    """What the options say about servers."""
    if arguments.spec_version:
        wanted_revision(arguments.spec_version)
    if arguments.cwd is not None and not os.path.isdir(arguments.cwd):  # noqa: PTH112 - no pathlib
        raise UsageError(f"--cwd is not a folder: {arguments.cwd}")
    return ServerChoice(
        server,
        command,
        arguments.docker,
        arguments.capture,
        env=tuple(pairs(arguments.env, "--env").items()),
        headers=tuple(headers_of(arguments).items()),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        spec_version=arguments.spec_version,
    )


def settings_of(arguments: argparse.Namespace, loaded: LoadedSuite) -> Settings:
    """UsageError for anything that would make every test fail."""
    if arguments.server is not None and arguments.server_command:
        raise UsageError("the server is named twice: by --server and after --")
    choice = choice_of(arguments, arguments.server, tuple(arguments.server_command))
    if choice.is_given:
        chosen_target(choice)
    if choice.captures is not None:
        from mcptest.transport.files import claim_folder

        claim_folder(choice.captures)
    by_file: dict[str, list[Test]] = {}
    for test in loaded.suite.tests:
        by_file.setdefault(test.place.file, []).append(test)
    return Settings(
        timeout=duration(arguments.timeout, "--timeout"),
        fixture=checked_fixture(arguments.fixture),
        choice=choice,
        all_failures=arguments.all_failures,
        lenient=arguments.lenient,
        quick_end=arguments.quick_end,
        warm_start=arguments.warm_start,
        repeat=lambda item: repeat_command(arguments, item, by_file[item.test.place.file]),
    )


def carry_out(
    arguments: argparse.Namespace,
    tests: Sequence[Test],
    settings: Settings,
    options: RunOptions,
    stop: Stop,
    lanes: Sequence[Lanes] = (),
) -> RunReport:
    servers = [test.server for test in tests if skip_reason(test) is None]
    check_variables((*servers, *(lane.server for lane in lanes)), settings.choice)
    if lanes:
        from mcptest.cli.run_lanes import with_lanes

        def run_tests(settings: Settings) -> RunReport:
            return carry_out(arguments, tests, settings, options, stop)

        return with_lanes(arguments, lanes, tests, settings, options, stop, run_tests)
    from mcptest.run.head_start import with_a_head_start

    with with_a_head_start(tests, settings, options) as begun:
        return _carry_out(arguments, tests, begun, options, stop)


def _carry_out(
    arguments: argparse.Namespace,
    tests: Sequence[Test],
    settings: Settings,
    options: RunOptions,
    stop: Stop,
) -> RunReport:
    from mcptest.cli.live import live_run
    from mcptest.cli.run_start import (
        collect_from_now_on,
        import_what_checks,
        import_what_tells,
    )
    from mcptest.model.results import RunReport
    from mcptest.run.suite_run import run_suite

    if not tests:
        return RunReport()
    total = len(tests) * options.trials * max(1, len(options.languages))
    collect_from_now_on()
    with live_run(arguments, total) as live:
        settings = msgspec.structs.replace(settings, on_begin=live.begins)
        return run_suite(
            tests,
            settings,
            options,
            stop,
            live.ended,
            meanwhile=import_what_checks,
            at_last=import_what_tells,
            tick=live.tick,
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


def repeat_command(
    arguments: argparse.Namespace, item: Numbered, others: Sequence[Test] = ()
) -> str:
    """The command line that runs just this test again."""
    from mcptest.cli.command_line import repeat_line

    test = item.test
    pattern = only_this(test, others) if len(others) < _MANY else f"={test.name}"
    words = ["mcptest", "run", test.place.file, "-k", pattern]
    given: Mapping[str, Any] = vars(arguments)
    server = item.choice.server if item.choice is not None else given.get("server")
    for option, value in (
        ("server", server),
        ("fixture", given["fixture"]),
        ("docker", given["docker"]),
        *(("env", word) for word in given["env"]),
        *(("header", f"{name}={value}") for name, value in headers_of(arguments).items()),
        ("cwd", given["cwd"]),
        ("spec-version", given["spec_version"]),
        ("timeout", given["timeout"] if given["timeout"] != DEFAULT_TIMEOUT else None),
    ):
        if value:
            words += [f"--{option}", value]
    if given["clean_env"]:
        words.append("--clean-env")
    if given.get("lenient"):
        words.append("--lenient")
    if arguments.server_command:
        words += ["--", *arguments.server_command]
    return repeat_line(words, arguments)


def wanted_reports(arguments: argparse.Namespace) -> Wanted:
    from mcptest.report.write import FORMS, Wanted

    files = {name: path for name in FORMS if (path := getattr(arguments, name, None)) is not None}
    narrowed = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    return Wanted(
        files=files,
        baseline=arguments.baseline,
        save_baseline=arguments.save_baseline,
        partial=bool(narrowed or arguments.fail_fast),
    )


Renderer: TypeAlias = "Callable[[RunReport, Style, int], str]"


def has_failed(report: RunReport) -> bool:
    return bool(report.failed or report.regressions)


def publish(
    arguments: argparse.Namespace,
    report: RunReport,
    stored: Baseline | None,
    *,
    elsewhere: Callable[[RunReport], list[str]] = lambda report: [],
    as_text: Renderer | None = None,
    fails: Callable[[RunReport], bool] = has_failed,
) -> tuple[RunReport, bool]:
    """Write and print the reports; the flag says whether one that was wanted is missing.

    `elsewhere` writes further ones, and says what it could not write.
    """
    from mcptest.cli.report_forms import in_shard
    from mcptest.report.results_text import in_short
    from mcptest.report.terminal import Style, columns
    from mcptest.report.write import with_regressions, write_reports

    wanted = wanted_reports(arguments)
    report = with_regressions(in_shard(arguments, report), stored, wanted)
    unwritten = [*write_reports(report, stored, wanted), *elsewhere(report)]
    for sentence in unwritten:
        sys.stderr.write(f"mcptest: {sentence}\n")
    report = msgspec.structs.replace(report, notes=(*report.notes, *unwritten))
    if arguments.json:
        from mcptest.report.results_json import mcp_assert_json

        sys.stdout.buffer.write(mcp_assert_json(report))
    elif arguments.format != "text":
        from mcptest.cli.report_forms import say_run

        say_run(arguments, report, fails(report) or bool(unwritten and arguments.strict_reports))
    elif report.results:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        width = columns()
        rendered = (as_text or text_for(arguments))(report, style, width)
        sys.stdout.write(in_short(report, style) if arguments.quiet else rendered)
    sys.stdout.flush()
    return report, bool(unwritten)


def text_for(arguments: argparse.Namespace) -> Renderer:
    from mcptest.report.results_text import render

    def as_text(report: RunReport, style: Style, width: int) -> str:
        return render(
            report,
            style,
            verbose=arguments.verbose,
            all_failures=arguments.all_failures,
            width=width,
        )

    return as_text


def exit_code(
    loaded: LoadedSuite, report: RunReport, *, interrupted: bool, failed: bool, unwritten: bool
) -> int:
    if interrupted:
        sys.stderr.write("mcptest: interrupted\n")
        return ExitCode.INTERRUPTED
    if failed or (report.results and (loaded.problems or unwritten)):
        return ExitCode.FAILED
    if report.passed or report.failed:
        return ExitCode.OK
    return _nothing(_why_nothing_ran(report) if report.results else _NOT_SELECTED)


def _nothing(why: str) -> int:
    sys.stderr.write(f"mcptest: {why}\n")
    return ExitCode.NOTHING_MATCHED


def _why_nothing_ran(report: RunReport) -> str:
    from collections import Counter

    details = (one.detail.removeprefix("skipped: ") for one in report.results)
    reasons = Counter(detail or "skip: true" for detail in details)
    shown = [f"{show(reason, 120)} ({count})" for reason, count in reasons.most_common(_REASONS)]
    more = ["…"] if len(reasons) > _REASONS else []
    why = ", ".join([*shown, *more])
    return f"nothing was run: all {report.skipped} tests were skipped: {why}"


# -- --fix ---------------------------------------------------------------------------------------


def suggestions(
    arguments: argparse.Namespace,
    tests: Sequence[Test],
    report: RunReport,
    settings: Settings,
    stop: Stop,
) -> list[Suggestion]:
    if not arguments.fix or report.interrupted:
        return []
    from mcptest.run.fixing import find_positions

    return list(find_positions(tests, report, settings, stop.is_set))


def tell_suggestions(arguments: argparse.Namespace, found: Sequence[Suggestion]) -> None:
    """On stderr when stdout is for a program."""
    if arguments.fix:
        from mcptest.report.suggestions import render_suggestions

        stream = sys.stdout if arguments.format == "text" and not arguments.json else sys.stderr
        stream.write(render_suggestions(found))
