"""What a fuzz run found: for each tool how many inputs it took, and each failure with its proof."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.model.message import ABSENT

FUZZ_FORMAT = "mcptest.fuzz/1"


class Verdict(enum.Enum):
    """What became of one input."""

    PASSED = "passed"
    CRASH = "crash"
    """An internal error, a dead process, a connection that was closed."""
    HANG = "hang"
    PROTOCOL = "protocol"
    """An answer that is none."""
    LEAK = "leak"
    """An answer that holds what it must not."""


class FuzzFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of one tool that fail in the same way. The first one stands for them."""

    tool: str
    verdict: Verdict
    label: str
    category: str = ""
    detail: str = ""
    arguments: Any = ABSENT
    """As it was sent first; ABSENT: without arguments."""
    minimal: Any = ABSENT
    """The smallest input that fails in the same way."""
    tries: int = 0
    """Calls that it took to make it small."""
    valid: bool | None = None
    """Whether the tool's own schema accepts the smallest input."""
    misfit: str = ""
    others: tuple[str, ...] = ()
    """Labels of the other inputs that fail so."""
    again: bool = True
    """Whether it failed again when it was sent alone."""
    afterwards: bool = False
    """Whether it was answered, and then the server died or fell silent."""
    pattern: str = ""
    """Of a leak: the regular expression that found it."""
    duration_ms: int = 0
    sent: str = ""
    received: str = ""
    stderr: tuple[str, ...] = ()
    repeat: str = ""

    @property
    def count(self) -> int:
        return 1 + len(self.others)


class FuzzedTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool."""

    name: str
    skipped: str = ""
    """Why it was not called."""
    runs: int = 0
    passed: int = 0
    failures: tuple[FuzzFailure, ...] = ()
    notes: tuple[str, ...] = ()
    refuses_as_internal: bool = False
    """Whether it answers malformed requests with the code for internal errors."""
    unchecked: str = ""
    """Why its schema could not be checked: whatever passed, it was not fuzzed as it was asked."""
    categories: Mapping[str, int] = {}
    """How many inputs of each category were sent."""
    duration_ms: int = 0

    @property
    def failed(self) -> int:
        return sum(failure.count for failure in self.failures)


class FuzzReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    server: str
    server_name: str = ""
    server_version: str = ""
    transport: str = ""
    revision: str = ""
    revision_reason: str = ""
    """Why this revision was spoken."""
    seed: int = 0
    runs_per_tool: int = 0
    tools: tuple[FuzzedTool, ...] = ()
    problem: str = ""
    """Why the list of tools is not complete."""
    notes: tuple[str, ...] = ()
    restarts: int = 0
    started: str = ""
    duration_ms: int = 0
    calls: int = 0
    """Everything that was sent, also to replay and to make inputs small."""
    interrupted: bool = False
    unreached: int = 0
    """Tools for which there was no time."""
    tool: str = ""
    format: str = FUZZ_FORMAT

    @property
    def tested(self) -> tuple[FuzzedTool, ...]:
        return tuple(tool for tool in self.tools if not tool.skipped)

    @property
    def skipped(self) -> tuple[FuzzedTool, ...]:
        return tuple(tool for tool in self.tools if tool.skipped)

    @property
    def runs(self) -> int:
        return sum(tool.runs for tool in self.tools)

    @property
    def passed(self) -> int:
        return sum(tool.passed for tool in self.tools)

    def count(self, verdict: Verdict) -> int:
        """Inputs that ended so."""
        return sum(
            failure.count
            for tool in self.tools
            for failure in tool.failures
            if failure.verdict is verdict
        )

    @property
    def failures(self) -> tuple[FuzzFailure, ...]:
        return tuple(failure for tool in self.tools for failure in tool.failures)

    @property
    def failed(self) -> bool:
        whole = not (self.problem or self.unreached or self.interrupted)
        return bool(self.failures) or not whole or any(tool.unchecked for tool in self.tools)
