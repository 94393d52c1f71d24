"""What testing clients and servers have in common: choosing, baselines, reports, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from mcptest import __version__
from mcptest.cli.options import wanted_jobs
from mcptest.cli.unwritten import code_with_reports, tell_unwritten
from mcptest.model.conformance import ConformanceReport, ScenarioResult, Status
from mcptest.model.errors import ErrorKind, ExitCode, McptestError, PeerError, UsageError
from mcptest.model.revision import Revision, parse_revision
from mcptest.model.show import show
from mcptest.model.verdict import Side

if TYPE_CHECKING:
    from mcptest.cli.report_forms import Told
    from mcptest.model.baseline import ExpectedFailure
    from mcptest.rules.expected_failures import Known

Tell = Callable[[ScenarioResult], None]


def check_choice(arguments: argparse.Namespace) -> None:
    """`--requirements` says all of it: the revision and what is run."""
    if arguments.requirements is None:
        return
    also = [
        option
        for option, given in (
            ("--suite", arguments.suite),
            ("--scenario", arguments.scenario),
            ("--spec-version", arguments.spec_version != "auto"),
        )
        if given
    ]
    if also:
        raise UsageError(f"--requirements already says what {also[0]} would", hint="give one")


def required(arguments: argparse.Namespace, side: Side) -> tuple[Revision, list[str], list[str]]:
    """Of the requirement set: its revision, what is run and what counts."""
    from mcptest.rules.requirement_sets import requirement_set

    found = requirement_set(parse_revision(arguments.requirements))
    return found.revision, list(found.shown(side)), list(found.scored(side))


def jobs_of(arguments: argparse.Namespace) -> int:
    """How many at a time; `auto` is the number of cores."""
    from mcptest.run.cores import cores

    return wanted_jobs(arguments.jobs) or cores()


def known_checks() -> Known:
    """Every scenario of both sides with its check ids, for reading lists of expected failures."""
    from mcptest.clients.catalogue import NOT_OFFERED as CLIENT_NOT_OFFERED
    from mcptest.clients.catalogue import client_scenario_table
    from mcptest.run.conformance.scenarios.catalogue import NOT_OFFERED, SERVER_SCENARIOS

    wire = "wire-schema-valid"
    clients = {
        name: frozenset({wire, *(check.id for check in one.checks)})
        for name, one in client_scenario_table().items()
    }
    servers = {
        name: frozenset({wire, *(check.id for check in one.checks)})
        for name, one in SERVER_SCENARIOS.items()
    }
    left_out: frozenset[str] = frozenset()
    return {
        Side.CLIENT: {**dict.fromkeys(CLIENT_NOT_OFFERED, left_out), **clients},
        Side.SERVER: {**dict.fromkeys(NOT_OFFERED, left_out), **servers},
    }


def expected_of(arguments: argparse.Namespace) -> tuple[ExpectedFailure, ...] | None:
    if arguments.expected_failures is None:
        return None
    from mcptest.rules.expected_failures import load_expected_failures

    return load_expected_failures(arguments.expected_failures, known_checks())


class Telling:
    """How far it has come, on stderr for a person who is looking."""

    def __init__(self, arguments: argparse.Namespace, total: int) -> None:
        from mcptest.cli.live import live_progress

        self._stack = contextlib.ExitStack()
        self._progress = self._stack.enter_context(live_progress(arguments, total))

    def __call__(self, result: ScenarioResult) -> None:
        failed = (one.message for one in result.checks if one.status is Status.FAILURE)
        reason = result.cause or next(failed, "")
        name = f"{result.scenario} {result.revision}"
        self._progress.finish(name, name, failed=result.failed, reason=reason)

    def close(self) -> None:
        self._stack.close()


class Clock:
    def __init__(self) -> None:
        self.started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._began = time.monotonic()

    @property
    def ms(self) -> float:
        return round((time.monotonic() - self._began) * 1000, 1)


def made_report(
    side: Side,
    subject: str,
    results: Sequence[ScenarioResult],
    *,
    clock: Clock,
    expected: tuple[ExpectedFailure, ...] | None = None,
    scored: Sequence[str] = (),
    notes: Sequence[str] = (),
    problems: Sequence[str] = (),
    interrupted: bool = False,
    revision_reason: str = "",
    fail_on_warning: bool | None = None,
) -> ConformanceReport:
    """`fail_on_warning` None: as the official suite has it. It lets warnings fail a client, but no
    server, and nothing when a requirement set is what counts."""
    from mcptest.rules.expected_failures import compared_with

    counted = [one for one in results if not scored or one.scenario in scored]
    return ConformanceReport(
        side=side,
        subject=subject,
        results=tuple(results),
        compared=None if expected is None else compared_with(expected, counted),
        scored=tuple(scored),
        tool=f"mcptest {__version__}",
        started=clock.started,
        duration_ms=clock.ms,
        notes=tuple(notes),
        problems=tuple(problems),
        interrupted=interrupted,
        revision_reason=revision_reason,
        warnings_fail=_counted_warnings(side, fail_on_warning, bool(scored)),
    )


def _counted_warnings(
    side: Side, wish: bool | None, by_requirements: bool
) -> Literal["none", "own", "all"]:
    if wish is not None:
        return "all" if wish else "none"
    return "own" if side is Side.CLIENT and not by_requirements else "none"


def published(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool = False
) -> int:
    """Everything that was asked for is written; then the exit code.

    `captures_lent`: they are gone at the end, and only the page shows what is in them.
    """
    page = _as_html(report)
    report, unkept = _with_kept_captures(arguments, report, captures_lent=captures_lent)
    unreachable = _unreachable(report)
    is_a_form = arguments.format != "text" and not arguments.json
    if arguments.json or (unreachable is None and not is_a_form):
        _print(arguments, report)
    unwritten = [*unkept, *_write_files(arguments, report, page)]
    tell_unwritten(arguments, unwritten)
    if unreachable is not None:
        raise unreachable
    code = code_with_reports(arguments, _code(report), unwritten)
    if is_a_form:  # after the files: the verdict knows what became of them
        from mcptest.cli.report_forms import say_form, with_notes

        told = with_notes(_told(report), unwritten)
        say_form(arguments, told, failed=bool(code), code=code)
    if code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif code == ExitCode.NOTHING_MATCHED:
        sys.stderr.write("mcptest: nothing was judged: no scenario could be observed\n")
    return code


def _code(report: ConformanceReport) -> int:
    if report.interrupted:
        return ExitCode.INTERRUPTED
    if report.failed:
        return ExitCode.FAILED
    return ExitCode.OK if report.observed else ExitCode.NOTHING_MATCHED


def _unreachable(report: ConformanceReport) -> PeerError | None:
    """A client that can't be started, or a server that can't be met, is no verdict on it.

    It is one cause, so it is said once.
    """
    causes = {one.cause for one in report.results}
    if report.interrupted or len(causes) != 1 or "" in causes:
        return None
    started = any(one.ended is not None and not one.ended.not_started for one in report.results)
    return None if started else PeerError(ErrorKind.SPAWN_FAILED, causes.pop().replace("\\n", "\n"))


def _print(arguments: argparse.Namespace, report: ConformanceReport) -> None:
    from mcptest.report.conformance_json import conformance_as_json
    from mcptest.report.conformance_text import conformance_lines
    from mcptest.report.terminal import Style, columns, say, say_json

    if arguments.json:
        say_json(sys.stdout, conformance_as_json(report))
        return
    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for line in conformance_lines(
        report, style, verbose=arguments.verbose, quiet=arguments.quiet, width=columns(100)
    ):
        say(sys.stdout, line + "\n")


def _as_html(report: ConformanceReport) -> Callable[[], bytes]:
    def page() -> bytes:
        from mcptest.report.html.making import page_of

        captures = (one.capture for one in report.results if one.capture)
        name = f"mcptest conformance {report.side.value}"
        return page_of(report, captures, name=name, by_rules=False)

    return page


def _write_files(
    arguments: argparse.Namespace, report: ConformanceReport, page: Callable[[], bytes]
) -> list[str]:
    """A sentence for each that could not be written."""
    from mcptest.cli.report_forms import wanted_forms
    from mcptest.report import junit
    from mcptest.report.conformance_json import conformance_as_json
    from mcptest.report.conformance_markdown import conformance_as_markdown
    from mcptest.report.conformance_run import conformance_as_run
    from mcptest.report.write import write_all

    wanted: list[tuple[Path | None, Callable[[], bytes]]] = [
        (arguments.json_file, lambda: conformance_as_json(report)),
        (arguments.junit, lambda: junit.render(conformance_as_run(report))),
        (arguments.markdown, lambda: conformance_as_markdown(report).encode()),
        (arguments.html, page),
        *wanted_forms(arguments, _told(report)),
    ]
    return write_all(wanted)


def _told(report: ConformanceReport) -> Told:
    from mcptest.cli.report_forms import Told
    from mcptest.report.problems_conformance import (
        conformance_for_readers,
        problems_of_conformance,
    )

    run, excused = conformance_for_readers(report)
    return Told(run=lambda: run, problems=lambda: problems_of_conformance(report), excused=excused)


def _with_kept_captures(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool
) -> tuple[ConformanceReport, list[str]]:
    """The folders are written first: a report names captures where they stay, and no others."""
    if arguments.output_dir is None:
        if captures_lent:
            gone = tuple(replace(one, capture="") for one in report.results)
            report = replace(report, results=gone)
        return report, []
    from mcptest.run.conformance.results import CAPTURE, write_results

    results: list[ScenarioResult] = []
    problems: list[str] = []
    for result in report.results:
        capture = ""
        try:
            place = write_results(arguments.output_dir, result) / CAPTURE
            capture = str(place) if place.exists() else ""
        except (McptestError, OSError) as error:
            problems.append(f"results not written: {show(str(error), 300)}")
        results.append(replace(result, capture=capture))
    return replace(report, results=tuple(results)), problems[:1]
