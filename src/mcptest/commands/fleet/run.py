"""What `mcptest fleet` does: one fleet from its configuration to its report."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcptest.commands.command_line import options_again
from mcptest.commands.fleet.cli import AUDIT_TIMEOUT, TIMEOUT
from mcptest.commands.fleet.cluster import judging_on_cluster
from mcptest.commands.fleet.worker_pool import (
    FleetServerOrder,
    Found,
    OfferedNames,
    Tell,
    judging_here,
)
from mcptest.commands.live_display import live_progress
from mcptest.commands.options import (
    USUAL_STARTUP,
    check_grade,
    check_share,
    duration,
    is_for_a_program,
    wanted_jobs,
    wanted_revision,
)
from mcptest.commands.reporting import conclude
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.results import made_since
from mcptest.core.safe_text import show, some_of
from mcptest.probe.suites.settings import cores
from mcptest.report.fleet import FleetReport, FleetServer, ServerOutcome
from mcptest.report.terminal import duration as spent
from mcptest.rules.composition import COMPOSITION_RULES, Hazard, Offered, compose
from mcptest.rules.judge import JudgedSession
from mcptest.session.server_spec import (
    DEFAULT_CONFIG,
    ServerWords,
    configured_target,
    no_such_server,
    servers_in,
)
from mcptest.suite.starters import FileNames
from mcptest.transport.files import claim_folder
from mcptest.transport.interrupt import stopping_on_signals
from mcptest.transport.target import Target

_NAMED = 8


def run_fleet(arguments: argparse.Namespace) -> int:
    jobs = wanted_jobs(arguments.jobs) or 0
    _check(arguments)
    config = _config(arguments)
    wanted = tuple(dict.fromkeys(arguments.server))
    servers = servers_of(config, wanted, clean_env=arguments.clean_env)
    orders = [*orders_of(arguments, config, servers)]
    if arguments.save_capture is not None:
        claim_folder(arguments.save_capture)
    begun = time.monotonic()
    with stopping_on_signals() as stop:
        with _progress(arguments, len(orders)) as (doing, done):
            if arguments.scheduler and orders:
                judging = judging_on_cluster(orders, stop, arguments.scheduler, jobs)
            else:
                judging = judging_here(orders, stop, jobs or cores(), doing)
            with judging as results:
                rows, offers = _rows(servers, orders, results, done)
        hazards = hazards_among(offers, prefixed=arguments.prefixed)
        report = FleetReport(
            config=str(config),
            servers=rows,
            hazards=hazards,
            **made_since(begun),
            interrupted=stop.is_set(),
            strict=arguments.strict,
            notes=tuple(notes_on(offers)),
            exit_code=exit_code_of(rows, hazards, interrupted=stop.is_set()),
        )
        return _report(arguments, report)


def _check(arguments: argparse.Namespace) -> None:
    check_share(arguments.fail_under)
    check_grade(arguments.min_grade or None)
    if arguments.save_capture is not None and arguments.scheduler:
        raise UsageError(
            "--save-capture does not work with --scheduler: captures stay on the workers"
        )


def orders_of(
    arguments: argparse.Namespace, config: Path, servers: Mapping[str, Target | None]
) -> Iterator[FleetServerOrder]:
    """What is to be judged and how."""
    revision = wanted_revision(arguments.spec_version)
    timeout, startup = arguments.timeout, arguments.startup_timeout
    # Options of ours that the commands which repeat a failure have as well.
    repeated = ["--spec-version", arguments.spec_version] if revision is not None else []
    repeated += options_again(arguments, "timeout", "startup_timeout", "clean_env")
    alike: dict[str, Any] = {
        "revision": revision.value if revision is not None else "",
        "timeout": duration(timeout or TIMEOUT, "--timeout"),
        "audit_timeout": duration(timeout or AUDIT_TIMEOUT, "--timeout"),
        "startup": duration(startup or timeout or USUAL_STARTUP, "--startup-timeout"),
        "limit": duration(arguments.server_timeout, "--server-timeout"),
        "strict": arguments.strict,
        "min_grade": arguments.min_grade,
        "min_score": arguments.fail_under,
    }
    names = FileNames()
    for server, target in servers.items():
        if target is None:
            continue
        folder = ""
        if arguments.save_capture is not None:
            name = names.name_for(server).removesuffix(".yaml")
            folder = str(arguments.save_capture.absolute() / name)
        # A command that holds no secret: they stay in the file.
        named = ("--mcp-config", str(config), "--server", server)
        words = shlex.join((*named, *repeated))
        yield FleetServerOrder(
            name=server,
            target=target,
            captures=folder,
            repeat_compliance=f"mcptest compliance run {words}",
            repeat_audit=f"mcptest audit {words}",
            **alike,
        )


def _config(arguments: argparse.Namespace) -> Path:
    if arguments.config is not None:
        return Path(arguments.config)
    if Path(DEFAULT_CONFIG).is_file():
        return Path(DEFAULT_CONFIG)
    raise UsageError(
        f"no client configuration is named, and this folder has no {DEFAULT_CONFIG}",
        hint="for example: mcptest fleet mcp.json",
    )


@contextmanager
def _progress(
    arguments: argparse.Namespace, total: int
) -> Iterator[tuple[Tell, Callable[[FleetServer], None]]]:
    """On stderr: what is under way for a person who looks, else a line for each server."""
    finished = 0
    with live_progress(arguments, total) as progress:

        def doing(name: str, news: str) -> None:
            _, began = progress.running.get(name, ("", time.monotonic()))
            progress.running[name] = (f"{name} {news}".rstrip(), began)

        def done(server: FleetServer) -> None:
            nonlocal finished
            finished += 1
            why = server.reason or server.outcome.value
            progress.finish(server.name, server.name, failed=server.outcome.is_bad, reason=why)
            if not (progress.is_live or arguments.quiet):
                took, name = spent(server.duration_ms), show(server.name, 80)
                sys.stderr.write(f"[{finished}/{total}] {name}: {server.outcome.value} ({took})\n")

        yield doing, done


# -- The servers of a client configuration -------------------------------------------------------

_TOLD = 20


def servers_of(
    path: Path, wanted: Sequence[str] = (), *, clean_env: bool = False
) -> dict[str, Target | None]:
    """The servers in the order of the file; of those, the wanted. UsageError with the place.

    One that is disabled has no target, and is not to be judged.
    """
    entries = servers_in(path)
    for name in wanted:
        if name not in entries:
            raise no_such_server(name, entries, path)
    servers: dict[str, Target | None] = {}
    wrong: list[str] = []
    words = ServerWords(clean_env=clean_env)
    for name in [name for name in entries if not wanted or name in wanted]:
        entry = entries[name]
        switches = entry if isinstance(entry, dict) else {}
        is_off = switches.get("disabled") is True or switches.get("enabled") is False
        try:
            is_left_out = is_off and name not in wanted
            servers[name] = None if is_left_out else configured_target(name, entry, path, words)
        except UsageError as error:
            wrong.append(error.message)
    if wrong:
        more = f"\n  and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        raise UsageError(
            "\n  ".join(wrong[:_TOLD]) + more,
            hint="fix it, or name the servers to judge with --server NAME",
        )
    return servers


# -- telling ---------------------------------------------------------------------------------------


def _report(arguments: argparse.Namespace, report: FleetReport) -> int:
    why = "all are disabled" if report.servers else "the map is empty"
    nothing = f"{show(report.config, 200)} has no server to judge: {why}"
    code = conclude(arguments, report, nothing=nothing)
    if report.exit_code == ExitCode.UNREACHABLE and not is_for_a_program(arguments):
        sys.stderr.write("mcptest: no server could be reached\n")
    return code


# -- From what was found of each server to the rows, the hazards between them and one verdict ----


def _rows(
    servers: Mapping[str, Target | None],
    orders: Sequence[FleetServerOrder],
    results: Iterable[tuple[int, Found]],
    tell: Callable[[FleetServer], None],
) -> tuple[tuple[FleetServer, ...], dict[str, OfferedNames | None]]:
    """Every server, in the order of the configuration, whatever came first; what each offers."""
    off = (ServerOutcome.DISABLED, "disabled in the configuration")
    untold = (ServerOutcome.NOT_JUDGED, "nothing was found")
    told = {name: untold if target else off for name, target in servers.items()}
    rows = {name: FleetServer(name, *why) for name, why in told.items()}
    offers: dict[str, OfferedNames | None] = {}
    for number, found in results:
        row = replace(found.server, repeat=orders[number].repeat_compliance)
        rows[row.name], offers[row.name] = row, found.offered
        tell(row)
    return tuple(rows.values()), {name: offers[name] for name in rows if name in offers}


# -- several servers behind one client ---------------------------------------------------------


def hazards_among(
    offers: Mapping[str, OfferedNames | None], *, prefixed: bool = False
) -> tuple[Hazard, ...]:
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


def _as_one(alike: Sequence[Hazard]) -> Hazard:
    first = alike[0]
    names = tuple(name for one in alike for name in one.names)
    if len(names) == 1:
        return first
    told = some_of([show(name, 80) for name in names], _NAMED)
    servers = " and ".join(show(one, 80) for one in first.servers)
    what = COMPOSITION_RULES[first.id].names
    message = f"{len(names)} {what} are offered by {servers}: {told}"
    return replace(first, message=message, names=names, total=len(names))


def _session(name: str, offered: OfferedNames) -> JudgedSession:
    """As much of a session as composition looks at."""
    listed = Offered(
        tools=dict.fromkeys(offered.tools, 0),
        prompts=dict.fromkeys(offered.prompts, 0),
        resources=dict.fromkeys(offered.resources, 0),
    )
    return JudgedSession(show(name, 120), "", "full", iter(()), offered=listed)


def notes_on(offers: Mapping[str, OfferedNames | None]) -> Iterator[str]:
    """What could not be compared. A hazard that nobody looked for is not one that is not there."""
    unread = [show(name, 80) for name, one in offers.items() if one is None]
    if unread and len(offers) > 1:
        yield f"not compared with the others, because the lists were not read: {', '.join(unread)}"
    for name, one in offers.items():
        if one is not None and one.left_out:
            yield f"{show(name, 80)}: {one.left_out} names are too long or too many to be compared"


# -- the verdict ---------------------------------------------------------------------------------


def exit_code_of(
    rows: Sequence[FleetServer], hazards: Iterable[Hazard], *, interrupted: bool
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
