"""Every server of a client configuration: what is to be judged, what was found, and the verdict.

Plain data: it travels between processes and machines, and any report can be made of it, also later.
"""

from __future__ import annotations

import enum

import msgspec

from mcptest.model.audit import AuditReport
from mcptest.model.compliance import ComplianceReport, Judgement

FLEET_FORMAT = "mcptest.fleet/1"


class Kept(enum.Enum):
    """What kept a server from being judged to the end."""

    UNREACHABLE = "unreachable"
    OUT_OF_TIME = "out of time"
    LOST = "lost"
    """Whoever judged it is gone, or could not do it: a process of ours, a worker, the cluster."""
    INTERRUPTED = "interrupted"


class ServerOutcome(enum.Enum):
    """What one server came to. Only the first is a success."""

    PASSED = "passed"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    NOT_JUDGED = "not judged"
    INTERRUPTED = "interrupted"
    DISABLED = "disabled"
    """The configuration says so: neither a success nor a failure."""

    @property
    def is_bad(self) -> bool:
        return self not in (ServerOutcome.PASSED, ServerOutcome.DISABLED)


class OfferedNames(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server lists, by name: where two list the same, a client can't tell them apart."""

    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    left_out: int = 0
    """Names that are too long or too many to be compared."""


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one server: as it comes back from wherever it was judged, without secrets."""

    name: str
    compliance: ComplianceReport | None = None
    audit: AuditReport | None = None
    offered: OfferedNames | None = None
    kept: Kept | None = None
    reason: str = ""
    """Of what kept it from being judged, or from being audited."""
    hint: str = ""
    duration_ms: int = 0
    worker: str = ""
    """The address of the worker that judged it; empty when it was this machine."""


class FleetServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the report."""

    name: str
    outcome: ServerOutcome
    reason: str = ""
    """Why it is neither passed nor failed, or what is wrong beside the rules and the items."""
    hint: str = ""
    compliance: ComplianceReport | None = None
    audit: AuditReport | None = None
    duration_ms: int = 0
    worker: str = ""
    repeat: str = ""
    """The command that judges just this server again."""

    @property
    def judgement(self) -> Judgement | None:
        judged = self.compliance.judgements if self.compliance is not None else ()
        return judged[0] if judged else None

    @property
    def was_judged(self) -> bool:
        return self.outcome in (ServerOutcome.PASSED, ServerOutcome.FAILED)


class FleetHazard(msgspec.Struct, frozen=True):
    """One thing that two or more servers of the configuration share and should not."""

    id: str
    title: str
    message: str
    names: tuple[str, ...]
    servers: tuple[str, ...]


class FleetReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole fleet, in the order of its configuration."""

    config: str
    servers: tuple[FleetServer, ...] = ()
    hazards: tuple[FleetHazard, ...] = ()
    format: str = FLEET_FORMAT
    tool: str = ""
    started: str = ""
    duration_ms: int = 0
    interrupted: bool = False
    strict: bool = False
    """A SHOULD that is not followed is a failure as well."""
    notes: tuple[str, ...] = ()
    exit_code: int = 0

    @property
    def failed(self) -> bool:
        """Whether anything that was asked for was not reached, not judged or not passed."""
        return self.exit_code != 0

    def count(self, outcome: ServerOutcome) -> int:
        return sum(one.outcome is outcome for one in self.servers)
