"""What became of a client or a server in the scenario suite: scenario by scenario, check by check.

The words are those of the official suite, so that results, check ids and lists of expected
failures carry over. What is new: a check says what it saw, and one that saw nothing is no success.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from mcptest.model.baseline import Compared
from mcptest.model.revision import Revision
from mcptest.model.verdict import Side

CONFORMANCE_FORMAT = "mcptest.conformance/1"


class Status(enum.Enum):
    """Of one check. The values are what `checks.json` says."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    WARNING = "WARNING"
    """Something that the specification only recommends was not done."""
    SKIPPED = "SKIPPED"
    """About something that the peer does not have, and does not need to have."""
    UNTESTABLE = "UNTESTABLE"
    """A fixture or capability is missing; the message says what would unlock it. Written as
    SKIPPED in `checks.json`."""
    INFO = "INFO"

    @property
    def is_bad(self) -> bool:
        return self in {Status.FAILURE, Status.WARNING}


_RULE = re.compile(r"[A-Z]{3,8}-\d{3}")
"""The id of a rule of the registry, in contrast to that of a check."""
_DECIDED = frozenset({Status.SUCCESS, Status.FAILURE, Status.WARNING})
ABOUT_ANY_SCENARIO = frozenset({"wire-schema-valid", "client-exit"})
ON_HOW_IT_WENT = frozenset({"client-exit", "client-spoke", "server-launched"})
"""Checks on whether a client came, spoke and left as it should, whatever the scenario is about."""


class Reference(msgspec.Struct, frozen=True):
    """Where the requirement is written down."""

    id: str
    url: str


class CheckResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row. `id` may repeat within a scenario; then `name` tells the rows apart."""

    id: str
    name: str
    description: str
    status: Status
    message: str = ""
    """Why it is not a success: what was seen, what was expected, what to do."""
    record: int | None = None
    """Zero-based place in the capture of what shows it."""
    excerpt: str = ""
    """The bytes that show it, made safe to show."""
    details: Mapping[str, Any] = {}
    references: tuple[Reference, ...] = ()
    unseen: bool = False
    """Nothing of what it is about was seen: the peer never got there."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the client under test ended."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    not_started: str = ""
    """Why it could not even be started; empty when it was."""

    @property
    def well(self) -> bool:
        return self.code == 0 and not self.timed_out and not self.not_started


class ScenarioResult(msgspec.Struct, frozen=True, omit_defaults=True):
    scenario: str
    side: Side
    revision: Revision
    transport: str
    checks: tuple[CheckResult, ...]
    duration_ms: float = 0.0
    ended: Ended | None = None
    """Of a client; None for a server."""
    cause: str = ""
    """What kept the whole scenario from being judged, in one line."""
    unreached: str = ""
    """Why a client never got to what the scenario is about, in one line. It is the one cause of
    the rows that are `unseen` and of how the client ended."""
    stdout: str = ""
    stderr: str = ""
    """The last of what the client wrote, made safe to show."""
    capture: str = ""
    """The file that holds what went over the wire, if it was kept."""
    repeat: str = ""
    """The command that runs just this scenario again."""

    @property
    def failed(self) -> bool:
        return bool(self.cause) or any(check.status is Status.FAILURE for check in self.checks)

    @property
    def warned(self) -> bool:
        return any(check.status is Status.WARNING for check in self.checks)

    @property
    def told(self) -> tuple[CheckResult, ...]:
        """The bad rows that say more than `cause` and `unreached` do."""
        rows = (check for check in self.checks if check.status.is_bad)
        if not self.unreached:
            return tuple(rows)
        return tuple(one for one in rows if not one.unseen and one.id not in ON_HOW_IT_WENT)

    @property
    def observed(self) -> bool:
        """One of its own checks was decided. That what was said was well-formed, and that the
        client ended, is true of any scenario and says nothing about this one."""
        return any(
            check.status in _DECIDED and check.id not in ABOUT_ANY_SCENARIO for check in self.checks
        )


class ConformanceReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of scenarios on one client or server."""

    side: Side
    subject: str
    """The client's command, or the server as it was named; without secrets."""
    results: tuple[ScenarioResult, ...]
    compared: Compared | None = None
    """With the list of expected failures, if there was one."""
    scored: tuple[str, ...] = ()
    """Of a requirement set: what counts. Empty: everything does."""
    tool: str = ""
    started: str = ""
    duration_ms: float = 0.0
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Lists of the server that could not be read to their end."""
    interrupted: bool = False
    revision_reason: str = ""
    """Why a server was spoken to in this revision."""
    warnings_fail: Literal["none", "own", "all"] = "none"
    """Which warnings count as failures: those of the scenarios' own checks, as the official suite
    has it for clients, or also those of the registry's rules."""

    def counts(self, result: ScenarioResult) -> bool:
        return not self.scored or result.scenario in self.scored

    @property
    def failed(self) -> bool:
        """A failure that counts; with a list of expected failures, anything new or stale."""
        if self.problems:
            return True
        if self.compared is not None:
            return not self.compared.holds
        return any(self.fails(one) for one in self.results if self.counts(one))

    def fails(self, result: ScenarioResult) -> bool:
        """It failed, or was warned of something that counts as a failure here."""
        if result.failed or self.warnings_fail == "none":
            return result.failed
        return any(
            self.warnings_fail == "all" or _RULE.fullmatch(check.id) is None
            for check in result.checks
            if check.status is Status.WARNING
        )

    @property
    def observed(self) -> bool:
        """Something was judged at all."""
        return any(one.observed or one.cause for one in self.results)
