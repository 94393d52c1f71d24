"""`mcptest run`: tests in YAML against real servers."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcptest.cli.options import add_common_options, duration
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.results import RunReport, Suggestion, TestResult
from mcptest.model.show import show
from mcptest.report.baseline import Baseline
from mcptest.report.progress import Progress
from mcptest.report.results_json import as_json, mcp_assert_json
from mcptest.report.results_text import render, summary
from mcptest.report.suggestions import render_suggestions
from mcptest.report.terminal import Style
from mcptest.report.write import Wanted, stored_baseline, with_regressions, write_reports
from mcptest.run.fixing import find_positions
from mcptest.run.fixture import checked_fixture
from mcptest.run.interrupt import Stop, stopping_on_signals
from mcptest.run.last_run import failed_last_time
from mcptest.run.selection import Selection, only_this, parse_shard, select
from mcptest.run.server_session import Numbered, Settings
from mcptest.run.serving import ServerChoice, chosen_target
from mcptest.run.suite_run import RunOptions, run_suite
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.model import Test
from mcptest.suite.problems import render as render_problem

EPILOG = """\
examples:
  mcptest run evals/
  mcptest run --suite evals/ --fixture evals/fixtures --junit results.xml
  mcptest run evals/ -k "read and not slow" --trials 5
  mcptest run evals/ --isolation shared --in-flight 32
  mcptest run evals/read_file.yaml --server "node dist/index.js {{fixture}}" --fixture data

exit codes: 0 all passed, 1 a test failed or a regression was found, 2 could not start,
            4 no test was selected, 130 interrupted
"""
DEFAULT_TIMEOUT = "30s"
_MANY = 200
"""Of so many tests in one file none is told from the others by a part of its name."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_suite_options(parser)
    add_server_options(parser)
    add_run_options(parser)
    add_fix_option(parser)
    add_report_options(parser)
    parser.add_argument(
        "--strict-reports", action="store_true", help="a report that can't be written fails"
    )
    add_common_options(parser)


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which tests")
    group.add_argument("paths", nargs="*", metavar="PATH", help="suite files and folders")
    group.add_argument("--suite", action="append", default=[], metavar="PATH", help="the same")
    group.add_argument("--config", action="append", default=[], metavar="FILE", help="the same")
    group.add_argument(
        "-k",
        dest="pattern",
        default="",
        metavar="EXPR",
        help="names that match; and, or, not, *, =NAME",
    )
    group.add_argument("--tag", action="append", default=[], help="tests with this tag; may repeat")
    group.add_argument("--shard", metavar="I/N", help="only this part of the tests")
    group.add_argument("--last-failed", action="store_true", help="only what failed last time")
    group.add_argument(
        "--keep-going",
        action="store_true",
        help="run the valid rest of a broken suite, and still fail",
    )
    group.add_argument("--list", action="store_true", help="what would run, one line each")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server", metavar="S", help="use this server for every test; or its command after --"
    )


def add_fix_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fix",
        action="store_true",
        help="look for positions nearby at which a failing test passes; no file is changed",
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how they run")
    group.add_argument(
        "--fixture", metavar="DIR", help="copied for each test; {{fixture}} is its path"
    )
    group.add_argument("--docker", default="", metavar="IMAGE", help="start servers in this image")
    group.add_argument(
        "--timeout", default=DEFAULT_TIMEOUT, metavar="T", help="for each test (30s)"
    )
    group.add_argument(
        "--jobs", default="auto", metavar="N", help="tests at a time (auto: the cores)"
    )
    group.add_argument(
        "--isolation",
        choices=("fresh", "shared"),
        help="a server for each test (fresh), or one for all",
    )
    group.add_argument("--reuse-server", action="store_true", help=argparse.SUPPRESS)
    group.add_argument(
        "--in-flight", type=int, default=1, metavar="N", help="calls at once on a shared server (1)"
    )
    group.add_argument("--trials", type=int, default=1, metavar="N", help="run each test N times")
    group.add_argument(
        "-x", dest="fail_fast", action="store_true", help="stop after the first failure"
    )
    group.add_argument(
        "--all-failures", action="store_true", help="every failing expectation, not the first only"
    )
    group.add_argument("--capture", type=Path, metavar="DIR", help="keep what went over the wire")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    for name in ("json-file", "junit", "markdown", "badge", "save-baseline", "baseline"):
        group.add_argument(f"--{name}", type=Path, metavar="FILE")
    group.add_argument("--json", action="store_true", help="results as JSON on stdout, alone")


def run(arguments: argparse.Namespace) -> int:
    loaded, tests = chosen_tests(arguments)
    if arguments.list:
        return show_list(tests, as_data=arguments.json)
    stored = stored_baseline(wanted_reports(arguments))
    settings, options = settings_of(arguments, loaded), run_options(arguments)
    # Until the reports are written: a signal must not cost them.
    with stopping_on_signals() as stop:
        report = carry_out(arguments, tests, settings, options, stop)
        suggested = suggestions(arguments, tests, report, settings, stop)
        report, unwritten = publish(arguments, report, stored)
        tell_suggestions(arguments, suggested)
    return exit_code(
        loaded,
        report,
        interrupted=stop.is_set(),
        failed=bool(report.failed or report.regressions),
        unwritten=unwritten and arguments.strict_reports,
    )


# -- the steps, shared with `ci` and `matrix` ---------------------------------------------------


def chosen_tests(arguments: argparse.Namespace) -> tuple[LoadedSuite, list[Test]]:
    """Load and select. UsageError for a suite that can't be run as it stands."""
    paths = [*arguments.paths, *arguments.suite, *arguments.config]
    if not paths:
        raise UsageError("no suite is named", hint="mcptest run PATH, or mcptest run --suite PATH")
    loaded = load_suites(
        paths,
        fixture=arguments.fixture,
        keep_going=arguments.keep_going,
        server_given=names_a_server(arguments),
    )
    for problem in (*loaded.problems, *loaded.warnings):
        sys.stderr.write(render_problem(problem) + "\n")
    selection = Selection(
        pattern=arguments.pattern,
        tags=tuple(arguments.tag),
        shard=parse_shard(arguments.shard) if arguments.shard else None,
        only=failed_last_time() if arguments.last_failed else None,
    )
    return loaded, select(loaded.suite.tests, selection)


def names_a_server(arguments: argparse.Namespace) -> bool:
    return arguments.server is not None or bool(arguments.server_command)


def show_list(tests: Sequence[Test], *, as_data: bool) -> int:
    if as_data:
        places = [{"name": t.name, "file": t.place.file, "line": t.place.line} for t in tests]
        sys.stdout.buffer.write(as_json(places))
    else:
        for test in tests:
            place = show(f"{test.place.file}:{test.place.line}", 500)
            sys.stdout.write(f"{place}: {show(test.name, 300)}\n")
    return ExitCode.OK if tests else _nothing_selected()


def settings_of(arguments: argparse.Namespace, loaded: LoadedSuite) -> Settings:
    """UsageError for anything that would make every test fail."""
    if arguments.server is not None and arguments.server_command:
        raise UsageError("the server is named twice: by --server and after --")
    choice = ServerChoice(
        arguments.server, tuple(arguments.server_command), arguments.docker, arguments.capture
    )
    if choice.is_given:
        chosen_target(choice)
    if choice.captures is not None:
        make_folder(choice.captures)
    by_file: dict[str, list[Test]] = {}
    for test in loaded.suite.tests:
        by_file.setdefault(test.place.file, []).append(test)
    return Settings(
        timeout=duration(arguments.timeout, "--timeout"),
        fixture=checked_fixture(arguments.fixture),
        choice=choice,
        all_failures=arguments.all_failures,
        repeat=lambda item: repeat_command(arguments, item, by_file[item.test.place.file]),
    )


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't keep captures in {folder}: {error.strerror}") from None


def carry_out(
    arguments: argparse.Namespace,
    tests: Sequence[Test],
    settings: Settings,
    options: RunOptions,
    stop: Stop,
) -> RunReport:
    if not tests:
        return RunReport()
    style = Style.of(sys.stderr, no_color=arguments.no_color)
    width = shutil.get_terminal_size().columns
    total = len(tests) * options.trials * max(1, len(options.languages))
    progress = Progress(sys.stderr, total, style, verbose=arguments.verbose, width=width)

    def tell(result: TestResult) -> None:
        if not arguments.quiet:
            progress.begin(result.name)
            progress.finish(result)

    try:
        return run_suite(tests, settings, options, stop, tell)
    finally:
        progress.close()


def run_options(arguments: argparse.Namespace) -> RunOptions:
    if arguments.trials < 1:
        raise UsageError("--trials must be at least 1")
    if arguments.in_flight < 1:
        raise UsageError("--in-flight must be at least 1")
    return RunOptions(
        trials=arguments.trials,
        jobs=_jobs(arguments.jobs),
        shared=arguments.reuse_server or arguments.isolation == "shared",
        in_flight=arguments.in_flight,
        fail_fast=arguments.fail_fast,
    )


def _jobs(text: str) -> int | None:
    if text == "auto":
        return None
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1_000:
        return int(text)
    raise UsageError(f"--jobs takes auto or a number up to 1000, not {text!r}")


def repeat_command(
    arguments: argparse.Namespace, item: Numbered, others: Sequence[Test] = ()
) -> str:
    """The command line that runs just this test again."""
    test = item.test
    pattern = only_this(test, others) if len(others) < _MANY else f"={test.name}"
    words = ["mcptest", "run", test.place.file, "-k", pattern]
    given: Mapping[str, Any] = vars(arguments)
    server = item.choice.server if item.choice is not None else given.get("server")
    for option, value in (
        ("server", server),
        ("fixture", given["fixture"]),
        ("docker", given["docker"]),
        ("timeout", given["timeout"] if given["timeout"] != DEFAULT_TIMEOUT else None),
    ):
        if value:
            words += [f"--{option}", value]
    if arguments.server_command:
        words += ["--", *arguments.server_command]
    return shlex.join(words)


def wanted_reports(arguments: argparse.Namespace) -> Wanted:
    files = {
        name: path
        for name in ("json_file", "junit", "markdown", "badge")
        if (path := getattr(arguments, name)) is not None
    }
    narrowed = arguments.pattern or arguments.tag or arguments.shard or arguments.last_failed
    return Wanted(
        files=files,
        baseline=arguments.baseline,
        save_baseline=arguments.save_baseline,
        partial=bool(narrowed or arguments.fail_fast),
    )


Renderer = Callable[[RunReport, Style, int], str]


def publish(
    arguments: argparse.Namespace,
    report: RunReport,
    stored: Baseline | None,
    *,
    elsewhere: Callable[[RunReport], list[str]] = lambda report: [],
    as_text: Renderer | None = None,
) -> tuple[RunReport, bool]:
    """Write and print the reports; the flag says whether one that was wanted is missing.

    `elsewhere` writes further ones, and says what it could not write.
    """
    wanted = wanted_reports(arguments)
    report = with_regressions(report, stored, wanted)
    unwritten = [*write_reports(report, stored, wanted), *elsewhere(report)]
    for sentence in unwritten:
        sys.stderr.write(f"mcptest: {sentence}\n")
    report = msgspec.structs.replace(report, notes=(*report.notes, *unwritten))
    if arguments.json:
        sys.stdout.buffer.write(mcp_assert_json(report))
    elif report.results:
        style = Style.of(sys.stdout, no_color=arguments.no_color)
        width = shutil.get_terminal_size().columns
        rendered = (as_text or text_for(arguments))(report, style, width)
        sys.stdout.write(summary(report, style) + "\n" if arguments.quiet else rendered)
    sys.stdout.flush()
    return report, bool(unwritten)


def text_for(arguments: argparse.Namespace) -> Renderer:
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
    if not report.results:
        return _nothing_selected()
    bad = failed or loaded.problems or unwritten
    return ExitCode.FAILED if bad else ExitCode.OK


def _nothing_selected() -> int:
    sys.stderr.write("mcptest: no test was selected\n")
    return ExitCode.NOTHING_MATCHED


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
    return list(find_positions(tests, report, settings, stop.is_set))


def tell_suggestions(arguments: argparse.Namespace, found: Sequence[Suggestion]) -> None:
    """On stderr when stdout is for a program."""
    if arguments.fix:
        stream = sys.stderr if arguments.json else sys.stdout
        stream.write(render_suggestions(found))
