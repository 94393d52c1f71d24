"""One scenario for a server: a script that asks, and the checks that judge what was heard.

The script only acts. Checks are pure functions over the scene, so what a server did can be judged
without it. Words, names and check ids are those of the official suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from mcptest.clients.scenario import Row
from mcptest.model.conformance import CheckResult, Reference, Status
from mcptest.model.revision import Revision
from mcptest.run.conformance.scenarios.scene import Scene

if TYPE_CHECKING:
    from mcptest.run.conformance.scenarios.stage import Stage

Judge: TypeAlias = Callable[[Scene], Iterator[Row]]
Script: TypeAlias = Callable[["Stage"], None]

FROM_2025_03_26 = frozenset({Revision.V2025_03_26, Revision.V2025_06_18, Revision.V2025_11_25})
HANDSHAKE = frozenset({Revision.V2025_06_18, Revision.V2025_11_25})
ONLY_2025_11_25 = frozenset({Revision.V2025_11_25})
STATELESS = frozenset({Revision.V2026_07_28, Revision.DRAFT})
SINCE_2025_11_25 = ONLY_2025_11_25 | STATELESS
EVERY = HANDSHAKE | STATELESS
ACTIVE = frozenset({"active", "all"})
PENDING = frozenset({"pending", "all"})
DRAFT = frozenset({"draft", "all"})
HTTP = frozenset({"http"})
BOTH = frozenset({"http", "stdio"})


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What the server must have so that the scenario can say anything about it."""

    capabilities: tuple[str, ...] = ()
    """Declared by the server: `tools`, `resources.subscribe`."""
    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    """Official names of fixtures. A resource need not be listed, only be readable."""

    @property
    def fixtures(self) -> tuple[str, ...]:
        return (*self.tools, *self.prompts, *self.resources)


class ServerCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement on the server. A judge that yields nothing saw nothing: a failure."""

    id: str
    name: str
    description: str
    judge: Judge
    references: tuple[Reference, ...] = ()
    revisions: frozenset[Revision] | None = None
    """Only in these; None: in all revisions of its scenario."""
    transports: frozenset[str] = BOTH
    rows: tuple[str, ...] = ()
    """The names of its rows, where it always has several."""

    def holds(self, revision: Revision, transport: str) -> bool:
        return transport in self.transports and (
            self.revisions is None or revision in self.revisions
        )


class ServerScenario(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    description: str
    """For the docs page: what is sent, what the server is expected to do."""
    revisions: frozenset[Revision]
    suites: frozenset[str]
    """`active`, `pending`, `draft`; all are in `all`."""
    script: Script
    checks: tuple[ServerCheck, ...]
    needs: Needs = Needs()
    transports: frozenset[str] = BOTH
    isolated: bool = False
    """It needs a connection of its own."""
    disturbs: bool = False
    """It changes what the server offers to everybody, so nothing else runs beside it."""

    def checks_in(self, revision: Revision, transport: str) -> tuple[ServerCheck, ...]:
        return tuple(one for one in self.checks if one.holds(revision, transport))


def judged(scenario: ServerScenario, scene: Scene, *, strict: bool) -> Iterator[CheckResult]:
    """Every check over what was heard. With `strict`, what can't be tested fails."""
    for check in scenario.checks_in(scene.revision, scene.transport):
        rows = list(check.judge(scene)) or [Row(Status.FAILURE, "nothing of the kind was seen")]
        for row in rows:
            yield row_of(check, _held_to(row, strict))


def untestable(
    scenario: ServerScenario, revision: Revision, transport: str, why: str
) -> Iterator[CheckResult]:
    """Every check of a scenario that could not be run, with what would unlock it."""
    yield from every_check(scenario, revision, transport, Row(Status.UNTESTABLE, why))


def every_check(
    scenario: ServerScenario, revision: Revision, transport: str, row: Row
) -> Iterator[CheckResult]:
    """The same row for every check, under each of its names."""
    for check in scenario.checks_in(revision, transport):
        for name in check.rows or (check.name,):
            yield row_of(check, msgspec.structs.replace(row, name=name))


def _held_to(row: Row, strict: bool) -> Row:
    if strict and row.status is Status.UNTESTABLE:
        return msgspec.structs.replace(row, status=Status.FAILURE)
    return row


def row_of(check: ServerCheck, row: Row) -> CheckResult:
    return CheckResult(
        id=check.id,
        name=row.name or check.name,
        description=check.description,
        status=row.status,
        message=row.message,
        record=row.record,
        excerpt=row.excerpt,
        details=row.details,
        references=check.references,
    )
