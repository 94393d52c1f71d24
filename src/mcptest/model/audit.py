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
    """It answers: with what was asked for, or with an error of its own."""
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
    refuses_made_up: bool = False
    """A prompt or template that refuses a value which we made up."""
    has_content: bool = False
    has_text: bool = False
    """Whether there is text in it that is not empty, as suites see it."""
    duration_ms: int = 0
    asks_back: bool = False
    """Whether it asks the client for something: roots, a model, the user."""
    claims: tuple[Claim, ...] = ()
    structured: str = ""
    """How its structured content breaks its own output schema."""
    unchecked: str = ""
    """Why its schema could not be checked."""
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
    def answers(self) -> bool:
        return self.health is Health.HEALTHY

    @property
    def worked(self) -> bool:
        """Whether it gave what it was asked for, and not only a word on why it does not."""
        return self.answers and not self.is_error and not self.refuses_made_up

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong though it answers."""
        lies = tuple(
            f"{one.hint} is not true: {one.detail}" for one in self.claims if one.holds is False
        )
        return (*lies, *filter(None, (self.structured, self.unchecked)))

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
    revision_reason: str = ""
    """Why this revision was spoken."""
    items: tuple[AuditItem, ...] = ()
    problems: Mapping[str, str] = {}
    """Lists that could not be read, by their method."""
    notes: tuple[str, ...] = ()
    min_score: int | None = None
    restarts: int = 0
    started: str = ""
    duration_ms: int = 0
    interrupted: bool = False
    unreached: int = 0
    """Items for which there was no time."""
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
        """The share of what was tested that worked, in whole percent; None when nothing was.

        A list that could not be read to its end counts as one thing that did not work.
        """
        if not self.tested:
            return None
        worked = sum(item.worked for item in self.tested)
        return worked * 100 // (len(self.tested) + len(self.problems))

    @property
    def failed(self) -> bool:
        """Whether the gate is closed: by the score where one is demanded, else by any crash."""
        if self.problems or self.interrupted or self.unreached:
            return True
        if self.min_score is not None:
            return self.score is None or self.score < self.min_score
        return any(item.is_bad for item in self.items)


def working_share(items: Iterable[AuditItem]) -> int | None:
    tested = [item for item in items if item.tested]
    return sum(item.worked for item in tested) * 100 // len(tested) if tested else None


def answering_share(items: Iterable[AuditItem]) -> int | None:
    """The score of mcp-assert: an error counts as an answer."""
    tested = [item for item in items if item.tested]
    return sum(item.answers for item in tested) * 100 // len(tested) if tested else None
