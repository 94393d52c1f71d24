"""What became of a client or a server in the scenario suite: scenario by scenario, check by check.

The words are those of the official suite, so that results, check ids and lists of expected
failures carry over. What is new: a check says what it saw, and one that saw nothing is no success.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.core.revision import Revision
from mcptest.core.verdict import Side


class ExpectedFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scenario that is known to fail, or one check of it."""

    side: Side
    scenario: str
    check: str = ""
    """Empty: the whole scenario."""
    reason: str = ""
    flaky: bool = False
    """Fails now and then: neither its failure nor its success is news."""
    place: str = ""
    """`file:line`, for messages."""

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.check}" if self.check else self.scenario


class Compared(msgspec.Struct, frozen=True):
    """What a list of expected failures says about a run. Red when anything is new or stale."""

    expected: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """Failed, and not listed."""
    stale: tuple[str, ...] = ()
    """Listed, and passes: the list says something that is not true any more."""
    tolerated: tuple[str, ...] = ()
    """Listed, and not seen in this run, or flaky."""

    @property
    def holds(self) -> bool:
        return not self.new and not self.stale


class CheckStatus(enum.Enum):
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
        return self in {CheckStatus.FAILURE, CheckStatus.WARNING}


_DECIDED = frozenset({CheckStatus.SUCCESS, CheckStatus.FAILURE, CheckStatus.WARNING})
WIRE_SCHEMA = "wire-schema-valid"
ABOUT_ANY_SCENARIO = frozenset({WIRE_SCHEMA, "client-exit"})
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
    status: CheckStatus
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
        return bool(self.cause) or any(check.status is CheckStatus.FAILURE for check in self.checks)

    @property
    def warned(self) -> bool:
        return any(check.status is CheckStatus.WARNING for check in self.checks)

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
