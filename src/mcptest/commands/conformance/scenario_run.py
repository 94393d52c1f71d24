"""What testing clients and servers have in common: choosing, baselines, reports, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.commands.live_display import live_progress
from mcptest.commands.options import wanted_jobs
from mcptest.commands.reporting import (
    code_with_reports,
    forms_of,
    say_form,
    say_lines,
    tell_unwritten,
)
from mcptest.core.errors import ErrorKind, ExitCode, McptestError, PeerError, UsageError
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.core.scenario_outcome import (
    WIRE_SCHEMA,
    CheckResult,
    CheckStatus,
    ExpectedFailure,
    ScenarioResult,
)
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario_catalogue import not_offered, scenario_table
from mcptest.probe.suites.settings import cores
from mcptest.report.codec import as_json
from mcptest.report.conformance import ConformanceReport
from mcptest.report.html.building import page_of
from mcptest.report.terminal import say_json
from mcptest.report.write import write_all
from mcptest.rules.expected_failures import (
    Known,
    compared_with,
    requirement_set,
)
from mcptest.transport.files import replace_file

Tell = Callable[[ScenarioResult], None]


def check_choice(arguments: argparse.Namespace) -> None:
    """`--requirements` says all of it: the revision and what is run."""
    if arguments.requirements is None:
        return
    choices = {
        "--suite": arguments.suite,
        "--scenario": arguments.scenario,
        "--spec-version": arguments.spec_version != "auto",
    }
    for option, given in choices.items():
        if given:
            raise UsageError(f"--requirements already says what {option} would", hint="give one")


class Required(msgspec.Struct, frozen=True):
    """Of a requirement set: its revision, what is run, what of it counts, and what is not there."""

    revision: Revision
    names: list[str]
    scored: list[str]
    notes: list[str]


def required_scenarios(arguments: argparse.Namespace, side: Side) -> Required:
    revision = parse_revision(arguments.requirements)
    found = requirement_set(revision)
    missing = [name for name in found.shown(side) if name in not_offered(side)]
    names = [name for name in found.shown(side) if name not in missing]
    notes = [f"not offered: {', '.join(missing)}"] if missing else []
    return Required(revision, names, list(found.scored(side)), notes)


def jobs_of(arguments: argparse.Namespace) -> int:
    """How many at a time; `auto` is the number of cores."""
    return wanted_jobs(arguments.jobs) or cores()


def known_checks() -> Known:
    """Every scenario of both sides with its check ids, for reading lists of expected failures."""
    return {
        side: {
            **dict.fromkeys(not_offered(side), frozenset[str]()),
            **{
                name: frozenset({WIRE_SCHEMA, *(check.id for check in one.checks)})
                for name, one in scenario_table(side).items()
            },
        }
        for side in (Side.CLIENT, Side.SERVER)
    }


@contextlib.contextmanager
def scenario_progress(arguments: argparse.Namespace, total: int) -> Iterator[Tell]:
    """How far it has come, on stderr for a person who is looking."""
    with live_progress(arguments, total) as progress:

        def tell(result: ScenarioResult) -> None:
            failed = (one.message for one in result.checks if one.status is CheckStatus.FAILURE)
            reason = result.cause or next(failed, "")
            name = f"{result.scenario} {result.revision}"
            progress.finish(name, name, failed=result.failed, reason=reason)

        yield tell


class Stopwatch:
    def __init__(self) -> None:
        self.started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        self._began = time.monotonic()

    @property
    def ms(self) -> float:
        return round((time.monotonic() - self._began) * 1000, 1)


def conformance_report(
    side: Side,
    results: Sequence[ScenarioResult],
    *,
    stopwatch: Stopwatch,
    expected: tuple[ExpectedFailure, ...] | None = None,
    scored: Sequence[str] = (),
    notes: Sequence[str] = (),
    problems: Sequence[str] = (),
    fail_on_warning: bool | None = None,
    **facts: Any,
) -> ConformanceReport:
    """`facts` are what the report says besides. `fail_on_warning` None: as the official suite has
    it. It lets warnings fail a client, but no server, and nothing when a requirement set is what
    counts."""
    warnings_fail: Literal["none", "own", "all"] = "none"
    if fail_on_warning is not None:
        warnings_fail = "all" if fail_on_warning else "none"
    elif side is Side.CLIENT and not scored:
        warnings_fail = "own"
    counted = [one for one in results if not scored or one.scenario in scored]
    return ConformanceReport(
        side=side,
        results=tuple(results),
        compared=None if expected is None else compared_with(expected, counted),
        scored=tuple(scored),
        tool=f"mcptest {__version__}",
        started=stopwatch.started,
        duration_ms=stopwatch.ms,
        notes=tuple(notes),
        problems=tuple(problems),
        warnings_fail=warnings_fail,
        **facts,
    )


def publish(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool = False
) -> int:
    """Everything that was asked for is written; then the exit code.

    `captures_lent`: they are gone at the end, and only the page shows what is in them.
    """
    whole = report  # the page shows captures also where they do not stay
    captures = [one.capture for one in report.results if one.capture]
    name = f"mcptest conformance {report.side.value}"
    report, unkept = _with_kept_captures(arguments, report, captures_lent=captures_lent)
    unreachable = _unreachable(report)
    is_a_form = arguments.format != "text" and not arguments.json
    if arguments.json:
        say_json(sys.stdout, as_json(report))
    elif unreachable is None and not is_a_form:
        say_lines(arguments, report)
    forms = forms_of(report)
    wanted: list[tuple[Path | None, Callable[[], bytes]]] = [
        (arguments.json_file, lambda: as_json(report)),
        (arguments.markdown, lambda: report.as_markdown().encode()),
        (arguments.html, lambda: page_of(whole, captures, name=name, by_rules=False)),
        *forms.files(arguments),
    ]
    unwritten = [*unkept, *write_all(wanted)]
    tell_unwritten(arguments, unwritten)
    if unreachable is not None:
        raise unreachable
    code = code_with_reports(arguments, report.code, unwritten)
    if is_a_form:  # after the files: the verdict knows what became of them
        say_form(arguments, replace(forms, notes=unwritten), code)
    if code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif code == ExitCode.NOTHING_MATCHED:
        sys.stderr.write("mcptest: nothing was judged: no scenario could be observed\n")
    return code


def _unreachable(report: ConformanceReport) -> PeerError | None:
    """A client that can't be started, or a server that can't be met, is no verdict on it.

    It is one cause, so it is said once.
    """
    causes = {one.cause for one in report.results}
    if report.interrupted or len(causes) != 1 or "" in causes:
        return None
    started = any(one.ended is not None and not one.ended.not_started for one in report.results)
    return None if started else PeerError(ErrorKind.SPAWN_FAILED, causes.pop().replace("\\n", "\n"))


def _with_kept_captures(
    arguments: argparse.Namespace, report: ConformanceReport, *, captures_lent: bool
) -> tuple[ConformanceReport, list[str]]:
    """The folders are written first: a report names captures where they stay, and no others."""
    if arguments.output_dir is None:
        if captures_lent:
            gone = tuple(replace(one, capture="") for one in report.results)
            report = replace(report, results=gone)
        return report, []
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


CAPTURE = "capture.jsonl"
_MOST = 1_000


def write_results(folder: Path, result: ScenarioResult) -> Path:
    """Make `<scenario>-<time>/` with `checks.json` and, of a client, its output and capture."""
    now = datetime.datetime.now(datetime.UTC)
    place = _new_folder(folder, result, now)
    rows = [_row(check, now) for check in result.checks]
    text = json.dumps(rows, indent=2, ensure_ascii=False, default=str) + "\n"
    replace_file(place / "checks.json", text.encode("utf-8", "backslashreplace"))
    if result.side is Side.CLIENT:
        replace_file(place / "stdout.txt", result.stdout.encode("utf-8", "backslashreplace"))
        replace_file(place / "stderr.txt", result.stderr.encode("utf-8", "backslashreplace"))
    if result.capture:
        try:
            shutil.copyfile(result.capture, place / CAPTURE)
            (place / CAPTURE).chmod(0o600)
        except OSError as error:
            where = place / CAPTURE
            raise UsageError(f"can't copy the capture to {where}: {error.strerror}") from None
    return place


def _new_folder(folder: Path, result: ScenarioResult, now: datetime.datetime) -> Path:
    stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    name = result.scenario if result.side is Side.CLIENT else f"server-{result.scenario}"
    base = f"{name}-{stamp.replace(':', '-').replace('.', '-')}"
    for number in range(1, _MOST + 1):
        place = folder / (base if number == 1 else f"{base}-{number}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"can't write results to {folder}: {error.strerror}") from None
        return place
    raise UsageError(f"can't write results to {folder}: there is no free name")


def _row(check: CheckResult, now: datetime.datetime) -> dict[str, Any]:
    status = CheckStatus.SKIPPED if check.status is CheckStatus.UNTESTABLE else check.status
    row: dict[str, Any] = {
        "id": check.id,
        "name": check.name,
        "description": check.description,
        "status": status.value,
        "timestamp": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "specReferences": [{"id": one.id, "url": one.url} for one in check.references],
    }
    details = dict(check.details)
    if check.record is not None:
        details["record"] = check.record
    if check.excerpt:
        details["excerpt"] = check.excerpt
    if details:
        row["details"] = details
    if check.message:
        row["errorMessage"] = check.message
    return row
