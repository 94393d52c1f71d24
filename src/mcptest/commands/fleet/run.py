"""What `mcptest fleet` does: one fleet from its configuration to its report."""

from __future__ import annotations

import argparse
import datetime
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mcptest import __version__
from mcptest.commands.fleet.cli import AUDIT_TIMEOUT, TIMEOUT
from mcptest.commands.fleet.cluster import judging_on_cluster
from mcptest.commands.fleet.config import FleetServerOrder, servers_of
from mcptest.commands.fleet.worker_pool import WorkerProcess, judging_here
from mcptest.commands.options import (
    USUAL_STARTUP,
    duration,
    is_for_a_program,
    wanted_jobs,
    wanted_revision,
)
from mcptest.commands.reporting import conclude
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.revision import Era
from mcptest.core.safe_text import show
from mcptest.probe.suites.settings import cores
from mcptest.report.fleet import (
    FleetHazard,
    FleetReport,
    FleetServer,
    Found,
    Kept,
    OfferedNames,
    ServerOutcome,
)
from mcptest.report.progress import Progress
from mcptest.report.terminal import Style
from mcptest.report.terminal import duration as spent
from mcptest.rules.composition import COMPOSITION_RULES, Hazard, Offered, compose
from mcptest.rules.judge import JudgedSession
from mcptest.session.server_spec import DEFAULT_CONFIG
from mcptest.suite.starters import FileNames
from mcptest.transport.interrupt import Stop, stopping_on_signals

_LETTER = re.compile(r"A\+|[A-D][+-]?|F")


def run_fleet(arguments: argparse.Namespace) -> int:
    jobs = wanted_jobs(arguments.jobs) or 0
    fleet = FleetRun(_order(arguments))
    with stopping_on_signals() as stop:
        with _progress(arguments, len(fleet.orders)) as (doing, done):

            def judges(
                orders: Sequence[FleetServerOrder], stop: Stop
            ) -> AbstractContextManager[Results]:
                if arguments.scheduler:
                    return judging_on_cluster(orders, stop, arguments.scheduler, jobs)
                return judging_here(orders, stop, jobs or cores(), doing)

            report = fleet.judged(judges, stop, done)
        written = _report(arguments, report)
    return report.exit_code or written


def _order(arguments: argparse.Namespace) -> FleetOrder:
    if arguments.min_score is not None and not 0 <= arguments.min_score <= 100:
        raise UsageError(f"--min-score is a share in percent, not {arguments.min_score}")
    if arguments.min_grade and not _LETTER.fullmatch(arguments.min_grade):
        raise UsageError(f"--min-grade takes A+ to F, not {show(arguments.min_grade, 20)!r}")
    if arguments.capture is not None and arguments.scheduler:
        raise UsageError("--capture keeps files on this machine, and --scheduler works on others")
    revision = wanted_revision(arguments.spec_version)
    # Options of ours that the commands which repeat a failure have as well.
    version = arguments.spec_version if arguments.spec_version != "auto" else ""
    repeated = ["--spec-version", version] if version else []
    repeated += ["--timeout", arguments.timeout] if arguments.timeout else []
    startup = arguments.startup_timeout
    repeated += ["--startup-timeout", startup] if startup else []
    repeated += ["--clean-env"] if arguments.clean_env else []
    return FleetOrder(
        config=_config(arguments),
        wanted=tuple(dict.fromkeys(arguments.server)),
        revision=revision.value if revision is not None else "",
        timeout=duration(arguments.timeout or TIMEOUT, "--timeout"),
        audit_timeout=duration(arguments.timeout or AUDIT_TIMEOUT, "--timeout"),
        startup=duration(startup or arguments.timeout or USUAL_STARTUP, "--startup-timeout"),
        limit=duration(arguments.server_timeout, "--server-timeout"),
        strict=arguments.strict,
        min_grade=arguments.min_grade,
        min_score=arguments.min_score,
        prefixed=arguments.prefixed,
        captures=arguments.capture,
        clean_env=arguments.clean_env,
        repeat_options=tuple(repeated),
    )


def _config(arguments: argparse.Namespace) -> Path:
    if arguments.config is not None:
        return Path(arguments.config)
    if Path(DEFAULT_CONFIG).is_file():
        return Path(DEFAULT_CONFIG)
    raise UsageError(
        f"no client configuration is named, and there is no {DEFAULT_CONFIG} here",
        hint="mcptest fleet mcp.json",
    )


@contextmanager
def _progress(
    arguments: argparse.Namespace, total: int
) -> Iterator[tuple[Callable[[Sequence[WorkerProcess]], None], Callable[[FleetServer], None]]]:
    """On stderr: what is under way for a person who looks, else a line for each server."""
    if arguments.quiet:
        yield (lambda children: None), (lambda server: None)
        return
    progress = Progress(sys.stderr, total, Style.of(sys.stderr, no_color=arguments.no_color))
    finished = 0

    def doing(children: Sequence[WorkerProcess]) -> None:
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


def _report(arguments: argparse.Namespace, report: FleetReport) -> int:
    written = conclude(arguments, report)
    if report.exit_code == ExitCode.INTERRUPTED:
        sys.stderr.write("mcptest: interrupted\n")
    elif report.exit_code == ExitCode.NOTHING_MATCHED:
        why = "all are disabled" if report.servers else "the map is empty"
        sys.stderr.write(f"mcptest: {show(report.config, 200)} has no server to judge: {why}\n")
    elif report.exit_code == ExitCode.UNREACHABLE and not is_for_a_program(arguments):
        sys.stderr.write("mcptest: no server could be reached\n")
    return written


# -- From what was found of each server to the rows, the hazards between them and one verdict ----

_NAMED = 8
_OUTCOMES = {
    Kept.UNREACHABLE: ServerOutcome.UNREACHABLE,
    Kept.OUT_OF_TIME: ServerOutcome.NOT_JUDGED,
    Kept.LOST: ServerOutcome.NOT_JUDGED,
    Kept.INTERRUPTED: ServerOutcome.INTERRUPTED,
}


def row_of(found: Found, repeat: str = "") -> FleetServer:
    outcome, reason = _outcome(found)
    return FleetServer(
        name=found.name,
        outcome=outcome,
        reason=reason,
        hint=found.hint,
        compliance=found.compliance,
        audit=found.audit,
        duration_ms=found.duration_ms,
        worker=found.worker,
        repeat=repeat,
    )


def _outcome(found: Found) -> tuple[ServerOutcome, str]:
    """A server that was not judged and audited to the end is never passed."""
    if found.kept is not None:
        return _OUTCOMES[found.kept], found.reason
    if found.compliance is None:
        return ServerOutcome.NOT_JUDGED, found.reason or "nothing was found"
    code = found.compliance.exit_code
    if code == ExitCode.NOTHING_MATCHED:
        return ServerOutcome.NOT_JUDGED, found.reason or "none of the rules was observed"
    if found.audit is None:
        return ServerOutcome.FAILED, found.reason or "not audited"
    if code != ExitCode.OK or found.audit.failed:
        return ServerOutcome.FAILED, found.reason
    return ServerOutcome.PASSED, found.reason


# -- several servers behind one client ---------------------------------------------------------


def hazards_among(
    offers: Mapping[str, OfferedNames | None], *, prefixed: bool = False
) -> tuple[FleetHazard, ...]:
    """What the servers share and should not: one hazard for all names that the same ones share.

    Each has a transport of its own. `prefixed`: the client puts the name of the server before each
    tool and prompt.
    """
    sessions = [_session(name, one) for name, one in offers.items() if one is not None]
    alike: dict[tuple[str, tuple[str, ...]], list[Hazard]] = {}
    for one in compose(sessions, separate=True):
        if not (prefixed and COMPOSITION_RULES[one.id].prefixed_by_clients):
            alike.setdefault((one.id, one.servers), []).append(one)
    return tuple(map(_as_one, alike.values()))


def _as_one(alike: Sequence[Hazard]) -> FleetHazard:
    first = alike[0]
    names = tuple(name for one in alike for name in one.names)
    message = first.message
    if len(names) > 1:
        told = ", ".join(show(name, 80) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        servers = " and ".join(show(one, 80) for one in first.servers)
        what = COMPOSITION_RULES[first.id].names
        message = f"{len(names)} {what} are offered by {servers}: {told}{more}"
    return FleetHazard(first.id, first.title, message, names, first.servers)


def _session(name: str, offered: OfferedNames) -> JudgedSession:
    """As much of a session as composition looks at."""
    return JudgedSession(
        label=show(name, 120),
        file="",
        form="full",
        unit="",
        transport=None,
        channel=None,
        revision=None,
        revision_reason="",
        era=Era.HANDSHAKE,
        messages=0,
        complete=True,
        verdicts=(),
        of_server={},
        offered=Offered(
            tools=dict.fromkeys(offered.tools, 0),
            prompts=dict.fromkeys(offered.prompts, 0),
            resources=dict.fromkeys(offered.resources, 0),
        ),
    )


def notes_on(offers: Mapping[str, OfferedNames | None]) -> Iterator[str]:
    """What could not be compared. A hazard that nobody looked for is not one that is not there."""
    unread = [show(name, 80) for name, one in offers.items() if one is None]
    if unread and len(offers) > 1:
        yield f"not compared with the others, since its lists were not read: {', '.join(unread)}"
    for name, one in offers.items():
        if one is not None and one.left_out:
            yield f"{show(name, 80)}: {one.left_out} names are too long or too many to be compared"


# -- the verdict ---------------------------------------------------------------------------------


def exit_code_of(
    rows: Sequence[FleetServer], hazards: Iterable[FleetHazard], *, interrupted: bool
) -> ExitCode:
    wanted = [row for row in rows if row.outcome is not ServerOutcome.DISABLED]
    if interrupted or any(row.outcome is ServerOutcome.INTERRUPTED for row in wanted):
        return ExitCode.INTERRUPTED
    if not wanted:
        return ExitCode.NOTHING_MATCHED
    if all(row.outcome is ServerOutcome.UNREACHABLE for row in wanted):
        return ExitCode.UNREACHABLE
    if any(row.outcome.is_bad for row in wanted) or any(hazards):
        return ExitCode.FAILED
    return ExitCode.OK


# -- One fleet from its configuration to its report ----------------------------------------------

Results = Iterator[tuple[int, Found]]
"""What was found, each with the number of its order, as they come."""
Judges = Callable[[Sequence[FleetServerOrder], Stop], AbstractContextManager[Results]]
"""Whoever carries orders out: processes here, or a cluster."""


class FleetOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be judged and how."""

    config: Path
    wanted: tuple[str, ...] = ()
    revision: str = ""
    timeout: float = 30.0
    audit_timeout: float = 15.0
    startup: float = 30.0
    limit: float = 300.0
    strict: bool = False
    min_grade: str = ""
    min_score: int | None = None
    prefixed: bool = False
    """The client puts the server's name before the names of tools and prompts."""
    captures: Path | None = None
    clean_env: bool = False
    repeat_options: tuple[str, ...] = ()
    """Options that belong to the commands that repeat."""


_FOR_EACH_SERVER = (
    *("revision", "timeout", "audit_timeout", "startup", "limit"),
    *("strict", "min_grade", "min_score"),
)
"""What an order says about each server alike."""


class FleetRun:
    """The servers of one configuration. UsageError when it can't be used; nothing is run yet."""

    def __init__(self, order: FleetOrder) -> None:
        self._order = order
        self._servers = servers_of(order.config, order.wanted, clean_env=order.clean_env)
        self.orders = [*self._orders()]

    def _orders(self) -> Iterator[FleetServerOrder]:
        names = FileNames()
        order = self._order
        for server in self._servers:
            if server.target is None:
                continue
            folder = ""
            if order.captures is not None:
                name = names.name_for(server.name).removesuffix(".yaml")
                folder = str(order.captures.absolute() / name)
            # A command that holds no secret: they stay in the file.
            named = ("--mcp-config", str(order.config), "--server", server.name)
            words = shlex.join((*named, *order.repeat_options))
            yield FleetServerOrder(
                name=server.name,
                target=server.target,
                captures=folder,
                repeat_compliance=f"mcptest compliance run {words}",
                repeat_audit=f"mcptest audit {words}",
                **{name: getattr(order, name) for name in _FOR_EACH_SERVER},
            )

    def judged(
        self, judges: Judges, stop: Stop, tell: Callable[[FleetServer], None]
    ) -> FleetReport:
        """Every server, in the order of the configuration, whatever came first."""
        begun = time.monotonic()
        started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        rows: dict[str, FleetServer] = {}
        offers: dict[str, OfferedNames | None] = {}
        if self.orders:
            with judges(self.orders, stop) as results:
                for number, found in results:
                    order = self.orders[number]
                    rows[order.name] = row_of(found, order.repeat_compliance)
                    offers[order.name] = found.offered
                    tell(rows[order.name])
        for one in self._servers:  # of some nobody told anything
            if one.name not in rows and one.target is not None:
                rows[one.name] = row_of(Found(one.name))
        why = "the configuration says that it is disabled"
        in_order = tuple(
            rows.get(one.name) or FleetServer(one.name, ServerOutcome.DISABLED, why)
            for one in self._servers
        )
        offers = {row.name: offers[row.name] for row in in_order if row.name in offers}
        hazards = hazards_among(offers, prefixed=self._order.prefixed)
        report = FleetReport(
            config=str(self._order.config),
            servers=in_order,
            hazards=hazards,
            tool=f"mcptest {__version__}",
            started=started,
            duration_ms=round((time.monotonic() - begun) * 1000),
            interrupted=stop.is_set(),
            strict=self._order.strict,
            notes=tuple(notes_on(offers)),
        )
        return replace(report, exit_code=exit_code_of(in_order, hazards, interrupted=stop.is_set()))
