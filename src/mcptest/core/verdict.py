"""What a rule says about a session, with the proof."""

from __future__ import annotations

import enum

import msgspec


class Outcome(enum.Enum):
    PASS = "pass"
    FAIL = "fail"
    NOT_OBSERVED = "not_observed"
    """Nothing in the capture exercised the rule: never a pass."""
    NOT_APPLICABLE = "not_applicable"
    """Outside its revision window, or about something the peer did not declare."""
    INCONCLUSIVE = "inconclusive"
    """Could not be judged; the reason says why."""


class Severity(enum.Enum):
    """The keyword of the specification that the rule carries."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Side(enum.Enum):
    """Who is judged."""

    SERVER = "server"
    CLIENT = "client"
    BOTH = "both"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One violation: what was seen, where, and the bytes that show it."""

    message: str
    record: int | None = None
    """Zero-based place of the record in the session."""
    sender: str | None = None
    expected: str | None = None
    actual: str | None = None
    excerpt: str | None = None
    """The first bytes of the message at fault, made safe to show."""
    pointer: str | None = None


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    rule: str
    outcome: Outcome
    reason: str = ""
    """Why it is not a pass or a fail; empty for those."""
    observed: int = 0
    """How often the capture exercised the rule. A pass has at least one."""
    findings: tuple[Finding, ...] = ()
    findings_total: int = 0
    """All violations, also those beyond the number that is kept."""
    unchecked: bool = False
    """Inconclusive because it costs too much to look at what was sent: that is no success."""
    doubtful: bool = False
    """Inconclusive because what was seen may break the rule: no pass elsewhere makes up for it."""
