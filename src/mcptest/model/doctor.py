"""What a doctor found: what will break when a server moves to another revision, item by item.

Plain data that any report can be made from, also later.
"""

from __future__ import annotations

import enum

import msgspec

from mcptest.model.compliance import Evidence
from mcptest.model.revision import Revision

DOCTOR_FORMAT = "mcptest.doctor/1"


class Verdict(enum.Enum):
    """What the move means for one thing that changes on the way."""

    BREAKS = "breaks"
    READY = "ready"
    NOT_USED = "not used"
    UNKNOWN = "unknown"
    """It could not be observed; the detail says why and what would help."""


class Judged(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one probe concluded, before it is known by which item it was asked."""

    verdict: Verdict
    detail: str
    evidence: tuple[Evidence, ...] = ()
    advice: str = ""
    """What the specification recommends and the server does not do: it breaks nothing."""
    unchecked: bool = False
    """Unknown because it costs too much to look at what the server offers."""


class MovedRule(msgspec.Struct, frozen=True):
    """A rule that an item rests on, and what becomes of it on the way."""

    id: str
    bucket: str
    """`changed`, `added`, `removed` or `unchanged`."""


class Diagnosis(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that changes on the way, judged on one server."""

    id: str
    title: str
    since: Revision
    """The revision that changed it."""
    change: str
    """What was, and what is now."""
    verdict: Verdict
    detail: str
    evidence: tuple[Evidence, ...] = ()
    rules: tuple[MovedRule, ...] = ()
    fix: str = ""
    advice: str = ""
    unchecked: bool = False

    @property
    def breaks(self) -> bool:
        return self.verdict is Verdict.BREAKS


class RulesOnTheWay(msgspec.Struct, frozen=True):
    """How many rules of the corpora move between the two revisions."""

    changed: int
    added: int
    removed: int


class DoctorReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything one `mcptest doctor` found."""

    server: str
    """How the server was named, with secrets masked."""
    transport: str
    older: Revision
    newer: Revision
    spoken: Revision
    """The revision in which the server was examined: `newer`, if it speaks that already."""
    items: tuple[Diagnosis, ...]
    rules: RulesOnTheWay | None = None
    server_name: str = ""
    server_version: str = ""
    format: str = DOCTOR_FORMAT
    tool: str = ""
    revision_reason: str = ""
    """Why that revision was spoken."""
    requests: int = 0
    duration_ms: int = 0
    unreached: int = 0
    """Items that were not looked at, because we were stopped."""
    unanswered: tuple[str, ...] = ()
    """Methods of a sound session that had no answer, and lists that could not be had whole."""
    notes: tuple[str, ...] = ()

    @property
    def speaks_newer(self) -> bool:
        return self.spoken.wire_version == self.newer.wire_version

    def count(self, verdict: Verdict) -> int:
        return sum(one.verdict is verdict for one in self.items)

    @property
    def breaks(self) -> bool:
        return any(one.breaks for one in self.items)

    @property
    def is_whole(self) -> bool:
        """Whether the server could be examined as it was asked for."""
        unchecked = any(one.unchecked for one in self.items)
        return not self.unreached and not self.unanswered and not unchecked
