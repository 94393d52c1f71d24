"""`mcptest fleet`: judge and audit every server of a client configuration, into one report."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.cli.concluded import Views, add_report_options, conclude
from mcptest.cli.options import (
    USUAL_STARTUP,
    add_clean_env_option,
    add_common_options,
    duration,
    is_for_a_program,
    wanted_jobs,
)
from mcptest.model.errors import ExitCode, UsageError
from mcptest.model.show import show

if TYPE_CHECKING:
    from mcptest.model.fleet import FleetReport, FleetServer
    from mcptest.run.fleet.child import Child
    from mcptest.run.fleet.sailing import Fleet, FleetOrder, Judges
    from mcptest.run.interrupt import Stop

_LETTER = re.compile(r"A\+|[A-D][+-]?|F")
_TIMEOUT, _AUDIT_TIMEOUT = "30s", "15s"
"""As the commands that repeat a failure have them."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("config", nargs="?", type=Path, metavar="CONFIG", help="with mcpServers (.mcp.json)")
    add("--server", action="append", default=[], metavar="NAME", help="only this; may repeat")
    add("--jobs", default="auto", metavar="N", help="so many servers at once (as it pays)")
    add("--scheduler", default="", metavar="ADDRESS", help="of a Dask cluster that does the work")
    add_clean_env_option(add, "a server")
    add("--spec-version", default="auto", metavar="REV", help="judge all by this revision")
    add(
        "--timeout",
        metavar="T",
        help=f"for each request ({_TIMEOUT}, and {_AUDIT_TIMEOUT} for each call of the audit)",
    )
    add(
        "--startup-timeout",
        metavar="T",
        help="for start and handshake (the same as --timeout)",
    )
    add("--server-timeout", default="5m", metavar="T", help="for all of one server (5m)")
    group = parser.add_argument_group("what is good enough")
    group.add_argument("--strict", action="store_true", help="a broken SHOULD fails as well")
    group.add_argument("--min-grade", default="", metavar="A-", help="fail below this grade")
    group.add_argument("--min-score", type=int, metavar="N", help="fail below this audit score")
    group.add_argument(
        "--prefixed",
        action="store_true",
        help="the client puts the server's name before each tool and prompt: equal names are fine",
    )
    add_report_options(parser)
    add_common_options(parser)
    parser.set_defaults(command_name="fleet")


def run(arguments: argparse.Namespace) -> int:
    from mcptest.run.fleet.sailing import Fleet
    from mcptest.run.interrupt import stopping_on_signals

    jobs = wanted_jobs(arguments.jobs) or 0
    fleet = Fleet(_order(arguments))
    with stopping_on_signals() as stop:
        report = _judged(arguments, fleet, jobs, stop)
        written = _told(arguments, report)
    return report.exit_code or written


def _order(arguments: argparse.Namespace) -> FleetOrder:
    from mcptest.cli.options import wanted_revision
    from mcptest.run.fleet.sailing import FleetOrder

    if arguments.min_score is not None and not 0 <= arguments.min_score <= 100:
        raise UsageError(f"--min-score is a share in percent, not {arguments.min_score}")
    if arguments.min_grade and not _LETTER.fullmatch(arguments.min_grade):
        raise UsageError(f"--min-grade takes A+ to F, not {show(arguments.min_grade, 20)!r}")
    if arguments.capture is not None and arguments.scheduler:
        raise UsageError("--capture keeps files on this machine, and --scheduler works on others")
    revision = wanted_revision(arguments.spec_version)
    return FleetOrder(
        config=_config(arguments),
        wanted=tuple(dict.fromkeys(arguments.server)),
        revision=revision.value if revision is not None else "",
        timeout=duration(arguments.timeout or _TIMEOUT, "--timeout"),
        audit_timeout=duration(arguments.timeout or _AUDIT_TIMEOUT, "--timeout"),
        startup=duration(
            arguments.startup_timeout or arguments.timeout or USUAL_STARTUP, "--startup-timeout"
        ),
        limit=duration(arguments.server_timeout, "--server-timeout"),
        strict=arguments.strict,
        min_grade=arguments.min_grade,
        min_score=arguments.min_score,
        prefixed=arguments.prefixed,
        captures=arguments.capture,
        clean_env=arguments.clean_env,
        again=tuple(_again(arguments)),
    )


def _config(arguments: argparse.Namespace) -> Path:
    from mcptest.run.naming import DEFAULT_CONFIG

    if arguments.config is not None:
        return Path(arguments.config)
    if Path(DEFAULT_CONFIG).is_file():
        return Path(DEFAULT_CONFIG)
    raise UsageError(
        f"no client configuration is named, and there is no {DEFAULT_CONFIG} here",
        hint="mcptest fleet mcp.json",
    )


def _again(arguments: argparse.Namespace) -> Iterator[str]:
    """Options of ours that the commands which repeat a failure have as well."""
    if arguments.spec_version != "auto":
        yield from ("--spec-version", arguments.spec_version)
    if arguments.timeout:
        yield from ("--timeout", arguments.timeout)
    if arguments.startup_timeout:
        yield from ("--startup-timeout", arguments.startup_timeout)
    if arguments.clean_env:
        yield "--clean-env"


# -- judging ---------------------------------------------------------------------------------------


def _judged(arguments: argparse.Namespace, fleet: Fleet, jobs: int, stop: Stop) -> FleetReport:
    with _progress(arguments, len(fleet.orders)) as (doing, done):
        judges = _judges(arguments.scheduler, jobs, doing)
        return fleet.judged(judges, stop, done)


def _judges(scheduler: str, jobs: int, doing: Callable[[Sequence[Child]], None]) -> Judges:
    if scheduler:
        from mcptest.run.fleet.cluster import judging_on_cluster

        return lambda orders, stop: judging_on_cluster(orders, stop, scheduler, jobs)
    from mcptest.run.cores import cores
    from mcptest.run.fleet.pool import judging_here

    return lambda orders, stop: judging_here(orders, stop, jobs or cores(), doing)


@contextmanager
def _progress(
    arguments: argparse.Namespace, total: int
) -> Iterator[tuple[Callable[[Sequence[Child]], None], Callable[[FleetServer], None]]]:
    """On stderr: what is under way for a person who looks, else a line for each server."""
    from mcptest.report.columns import duration as spent
    from mcptest.report.progress import Progress
    from mcptest.report.terminal import Style

    if arguments.quiet:
        yield (lambda children: None), (lambda server: None)
        return
    progress = Progress(sys.stderr, total, Style.of(sys.stderr, no_color=arguments.no_color))
    finished = 0

    def doing(children: Sequence[Child]) -> None:
        progress.running.clear()
        for one in children:
            progress.running[one.order.name] = f"{one.order.name} {one.news}".rstrip(), one.began
        progress.tick()

    def done(server: FleetServer) -> None:
        nonlocal finished
        finished += 1
        why = server.reason or server.outcome.value
        progress.finish(server.name, server.name, failed=server.outcome.is_bad, reason=why)
        if not progress.is_live:
            took, name = spent(server.duration_ms), show(server.name, 80)
            sys.stderr.write(f"[{finished}/{total}] {name}: {server.outcome.value} ({took})\n")

    try:
        yield doing, done
    finally:
        progress.close()


# -- telling ---------------------------------------------------------------------------------------


def _told(arguments: argparse.Namespace, report: FleetReport) -> int:
    views = _views(report, arguments)
    # several reports in one, which only we know
    written = conclude(arguments, views, page=lambda: _as_html(report, arguments))
    if report.exit_code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif report.exit_code == ExitCode.NOTHING_MATCHED:
        why = "all are disabled" if report.servers else "the map is empty"
        sys.stderr.write(f"mcptest: {show(report.config, 200)} has no server to judge: {why}\n")
    elif report.exit_code == ExitCode.UNREACHABLE and not is_for_a_program(arguments):
        sys.stderr.write("mcptest: no server could be reached\n")
    return written


def _as_html(report: FleetReport, arguments: argparse.Namespace) -> bytes:
    from mcptest.cli.report_forms import captures_since
    from mcptest.report.fleet_stored import page_of_fleet

    return page_of_fleet(report, captures_since(report.started, arguments.capture))


def _views(report: FleetReport, arguments: argparse.Namespace) -> Views:
    from mcptest.cli.fleet_forms import fleet_as_run
    from mcptest.report.fleet_facts import summary_in_words
    from mcptest.report.fleet_json import fleet_as_json
    from mcptest.report.fleet_markdown import fleet_as_markdown
    from mcptest.report.fleet_problems import problems_of_fleet
    from mcptest.report.fleet_text import fleet_lines

    words = {"verbose": arguments.verbose, "quiet": arguments.quiet}
    return Views(
        failed=report.failed,
        nothing=report.exit_code == ExitCode.NOTHING_MATCHED,
        json=lambda: fleet_as_json(report),
        run=lambda: fleet_as_run(report),
        markdown=lambda: fleet_as_markdown(report),
        lines=lambda style: fleet_lines(report, style, **words),
        summary=lambda: summary_in_words(report),
        problems=lambda: problems_of_fleet(report),
    )
