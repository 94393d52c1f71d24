"""One scenario for a client: a script for the server, and the checks that judge what was captured.

The script only acts. Whether the client did well is decided afterwards by the checks, which are
pure functions over the capture: a capture that was kept can be judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from mcptest.clients.seen import Seen
from mcptest.model.conformance import CheckResult, Reference, Status
from mcptest.model.revision import HANDSHAKE_REVISIONS, TIMELINE, Era, Revision
from mcptest.peer.scripted.script import Script


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found. Without a name it has that of its check."""

    status: Status
    message: str = ""
    name: str = ""
    record: int | None = None
    excerpt: str = ""
    details: Mapping[str, Any] = {}
    unseen: bool = False
    """The client never got to what the check is about."""


Judge: TypeAlias = Callable[[Seen], Iterator[Row]]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement on the client. A judge that yields nothing saw nothing: that is a failure.

    `silence` says what it means when nothing was seen: FAILURE (the interaction was expected, the
    default), or SKIPPED for what a client may leave out.
    """

    id: str
    title: str
    description: str
    judge: Judge
    silence: Status = Status.FAILURE
    references: tuple[Reference, ...] = ()
    revisions: frozenset[Revision] | None = None
    """Only in these; None: in all revisions of its scenario."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """As the official suite has it, where it has it: `tools_call`, `auth/metadata-default`."""
    title: str
    description: str
    """For the docs page: what the server does, what the client is expected to do."""
    revisions: frozenset[Revision]
    suites: frozenset[str]
    """`core`, `auth`, `metadata`, `backcompat`, `draft`, `ours` …; all are in `all`."""
    make: Callable[[], Script]
    """A new script for one client."""
    checks: tuple[Check, ...]
    transports: frozenset[str] = frozenset({"http", "stdio"})
    context: Mapping[str, Any] = {}
    """Given to the client in `MCP_CONFORMANCE_CONTEXT`, besides the name."""
    client_may_fail: bool = False
    """The right thing for the client is to give up, so its exit code does not count."""
    path: str = "/mcp"
    """What is added to the origin to make the URL that the client gets."""


EVERY_REVISION = frozenset(TIMELINE) - {Revision.DRAFT}
WITH_HANDSHAKE = frozenset(HANDSHAKE_REVISIONS)


def offered_revisions(scenario: Scenario, wanted: Revision | None) -> tuple[Revision, ...]:
    """What the server of a scenario speaks, the oldest first.

    Without a wish, all revisions that have the scenario: the client chooses. A wish for a revision
    with the handshake includes the older ones, as with any server that speaks it: a client that
    proposes one of them is answered in it.
    """
    if wanted is None:
        return tuple(sorted(scenario.revisions))
    older = (one for one in scenario.revisions if one.era is Era.HANDSHAKE and one <= wanted)
    return tuple(sorted({wanted, *older})) if wanted.era is Era.HANDSHAKE else (wanted,)


def judged(scenario: Scenario, seen: Seen) -> Iterator[CheckResult]:
    """Every check of the scenario over what was captured. None is left out."""
    for check in scenario.checks:
        if check.revisions is not None and seen.revision not in check.revisions:
            continue
        for row in list(check.judge(seen)) or [_silent(check)]:
            yield CheckResult(
                id=check.id,
                name=row.name or check.title,
                description=check.description,
                status=row.status,
                message=row.message,
                record=row.record,
                excerpt=row.excerpt,
                details=row.details,
                references=check.references,
                unseen=row.unseen,
            )


def _silent(check: Check) -> Row:
    return Row(check.silence, f"not seen: {check.description}", unseen=True)
