"""What an audit found: for each tool, prompt and resource of a server, whether it is in health."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

AUDIT_FORMAT = "mcptest.audit/1"
ONLY_AS_TASK = "it runs only as a task"
ItemKind: TypeAlias = Literal["tool", "prompt", "resource", "template"]


class Health(enum.Enum):
    """The class of one item."""

    HEALTHY = "healthy"
    CRASHED = "crash"
    TIMED_OUT = "timeout"
    REFUSED = "refused"
    """A JSON-RPC error to an input that its own schema accepts."""
    PROTOCOL = "protocol"
    """An answer that is none."""
    SKIPPED = "skipped"

    @property
    def is_broken(self) -> bool:
        return self in (Health.CRASHED, Health.TIMED_OUT, Health.PROTOCOL)


class Claim(msgspec.Struct, frozen=True):
    """What a tool says of itself, held against what it did."""

    hint: str
    holds: bool | None
    """None: nothing was visible that could have told."""
    detail: str = ""


class AuditItem(msgspec.Struct, frozen=True, kw_only=True):
    """One tool, prompt, resource or template."""

    kind: ItemKind
    name: str
    description: str = ""
    health: Health
    detail: str = ""
    input: Mapping[str, Any] = {}
    is_error: bool = False
    has_content: bool = False
    has_text: bool = False
    """Whether there is text in it that is not empty, as suites see it."""
    duration_ms: int = 0
    asks_back: bool = False
    """Whether it asks the client for something: roots, a model, the user."""
    claims: tuple[Claim, ...] = ()
    structured: str = ""
    """How its structured content breaks its own output schema."""
    notes: tuple[str, ...] = ()
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""
    """The command that audits just this item again."""

    @property
    def tested(self) -> bool:
        return self.health is not Health.SKIPPED

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong though it answers."""
        lies = tuple(
            f"{one.hint} is not true: {one.detail}" for one in self.claims if one.holds is False
        )
        return (*lies, self.structured) if self.structured else lies

    @property
    def is_bad(self) -> bool:
        return self.health.is_broken or bool(self.findings)


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole audit."""

    server: str
    server_name: str = ""
    server_version: str = ""
    transport: str = ""
    revision: str = ""
    items: tuple[AuditItem, ...] = ()
    problems: Mapping[str, str] = {}
    """Lists that could not be read, by their method."""
    notes: tuple[str, ...] = ()
    min_score: int | None = None
    restarts: int = 0
    started: str = ""
    duration_ms: int = 0
    interrupted: bool = False
    tool: str = ""
    format: str = AUDIT_FORMAT

    def of(self, kind: ItemKind) -> tuple[AuditItem, ...]:
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def tested(self) -> tuple[AuditItem, ...]:
        return tuple(item for item in self.items if item.tested)

    @property
    def skipped(self) -> tuple[AuditItem, ...]:
        return tuple(item for item in self.items if not item.tested)

    @property
    def score(self) -> int | None:
        """The healthy share of what was tested, in whole percent; None when nothing was."""
        return healthy_share(self.tested)

    @property
    def failed(self) -> bool:
        """Whether the gate is closed: by the score where one is demanded, else by any crash."""
        if self.problems or self.interrupted:
            return True
        if self.min_score is not None:
            return self.score is None or self.score < self.min_score
        return any(item.is_bad for item in self.items)


def healthy_share(items: Iterable[AuditItem]) -> int | None:
    tested = [item for item in items if item.tested]
    if not tested:
        return None
    return sum(item.health is Health.HEALTHY for item in tested) * 100 // len(tested)
