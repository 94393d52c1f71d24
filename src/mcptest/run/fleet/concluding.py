"""From what was found of each server to the rows, the hazards between them and one verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcptest.model.errors import ExitCode
from mcptest.model.fleet import (
    FleetHazard,
    FleetServer,
    Found,
    Kept,
    OfferedNames,
    ServerOutcome,
)
from mcptest.model.revision import Era
from mcptest.model.show import show
from mcptest.rules.composition import Hazard, Offered, compose
from mcptest.rules.judge import JudgedSession

_PREFIXED_BY_CLIENTS = frozenset({"COMP-001", "COMP-003"})
"""Hazards that a client takes away when it puts the server's name before the others."""
_NOUNS = {"COMP-001": "tools", "COMP-003": "prompts", "COMP-004": "resources"}
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


def disabled_row(name: str) -> FleetServer:
    return FleetServer(name, ServerOutcome.DISABLED, "the configuration says that it is disabled")


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
        if not (prefixed and one.id in _PREFIXED_BY_CLIENTS):
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
        message = f"{len(names)} {_NOUNS[first.id]} are offered by {servers}: {told}{more}"
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
