"""What a suite says, understood: one value per test, each with its place in the file.

Nothing here is substituted yet: templates and environment variables still stand as they were
written, because each run fills them in anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = Any
Isolation: TypeAlias = Literal["fresh", "shared"]


class Place(msgspec.Struct, frozen=True):
    """Where something stands: lines and columns count from one."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class SamplingMock(msgspec.Struct, frozen=True):
    """The static answer to `sampling/createMessage`."""

    text: str = ""
    model: str = "mock"
    stop_reason: str = "end_turn"


class ElicitationMock(msgspec.Struct, frozen=True):
    """The static answer to `elicitation/create`."""

    action: Literal["accept", "decline", "cancel"] = "accept"
    content: Mapping[str, Json] = {}


class ClientCapabilities(msgspec.Struct, frozen=True):
    """What the client offers to the server; None and empty mean: not declared."""

    roots: tuple[str, ...] = ()
    sampling: SamplingMock | None = None
    elicitation: ElicitationMock | None = None


class ServerSpec(msgspec.Struct, frozen=True):
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    clean_env: bool = False
    transport: Literal["stdio", "sse", "http"] = "stdio"
    url: str = ""
    headers: Mapping[str, str] = {}
    docker: str = ""
    client_capabilities: ClientCapabilities | None = None
    spec_version: str = "auto"
    place: Place | None = None


class SetupStep(msgspec.Struct, frozen=True):
    tool: str
    args: Mapping[str, Json] = {}
    capture: Mapping[str, str] = {}
    place: Place | None = None


class TargetCheck(msgspec.Struct, frozen=True):
    """One row of the list form: `- target: …` with `matcher: {…}`."""

    target: str
    matcher: Mapping[str, Json]
    place: Place | None = None


class Expect(msgspec.Struct, frozen=True):
    """What must hold of an answer. None and empty mean: not asked."""

    contains: tuple[str, ...] = ()
    contains_any: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    equals: str | None = None
    json_path: Mapping[str, Json] = {}
    min_results: int | None = None
    max_results: int | None = None
    not_empty: bool = False
    not_error: bool = False
    is_error: bool = False
    matches_regex: tuple[str, ...] = ()
    file_contains: Mapping[str, str] = {}
    file_not_contains: Mapping[str, str] = {}
    file_not_exists: tuple[str, ...] = ()
    file_unchanged: tuple[str, ...] = ()
    net_delta: int | None = None
    in_order: tuple[str, ...] = ()
    min_progress: int | None = None
    # what mcp-assert does not have
    schema: Json = None
    """A JSON Schema for the structured content, or for the text parsed as JSON."""
    max_duration: float | None = None
    """Seconds."""
    error_code: int | None = None
    """The JSON-RPC error code that the call must be answered with."""
    checks: tuple[TargetCheck, ...] = ()
    place: Place | None = None


class LoggingExpect(msgspec.Struct, frozen=True):
    min_messages: int | None = None
    contains_level: tuple[str, ...] = ()
    contains_data: tuple[str, ...] = ()
    place: Place | None = None


class NotificationExpect(msgspec.Struct, frozen=True):
    min_count: int | None = None
    max_count: int | None = None
    methods: tuple[str, ...] = ()
    not_methods: tuple[str, ...] = ()
    contains_data: tuple[str, ...] = ()
    not_contains_data: tuple[str, ...] = ()
    place: Place | None = None


class ToolBlock(msgspec.Struct, frozen=True):
    """`assert:`, the default."""

    tool: str
    args: Mapping[str, Json]
    expect: Expect
    capture_progress: bool = False


class ResourcesBlock(msgspec.Struct, frozen=True):
    expect: Expect
    list: bool = False
    templates: bool = False
    cursor: str | None = None
    read: str | None = None
    subscribe: str | None = None
    unsubscribe: str | None = None
    expect_notification: bool = False


class PromptsBlock(msgspec.Struct, frozen=True):
    expect: Expect
    list: bool = False
    cursor: str | None = None
    get: str | None = None
    arguments: Mapping[str, str] = {}


class CompletionBlock(msgspec.Struct, frozen=True):
    ref: Mapping[str, str]
    """`type`, and `name` (a prompt's name or a resource's URI)."""
    argument: Mapping[str, str]
    expect: Expect


class SamplingBlock(msgspec.Struct, frozen=True):
    tool: str
    args: Mapping[str, Json]
    mock: SamplingMock
    expect: Expect


class LoggingBlock(msgspec.Struct, frozen=True):
    set_level: str
    tool: str
    """Empty: no tool is called."""
    args: Mapping[str, Json]
    expect: LoggingExpect


class NotificationsBlock(msgspec.Struct, frozen=True):
    tool: str
    args: Mapping[str, Json]
    expect: NotificationExpect


class TraceEntry(msgspec.Struct, frozen=True):
    tool: str
    args: Mapping[str, Json] = {}


class TrajectoryCheck(msgspec.Struct, frozen=True):
    type: Literal["order", "presence", "absence", "args_contain"]
    tools: tuple[str, ...] = ()
    tool: str = ""
    args: Mapping[str, Json] = {}
    place: Place | None = None


class TrajectoryBlock(msgspec.Struct, frozen=True):
    checks: tuple[TrajectoryCheck, ...]
    trace: tuple[TraceEntry, ...] = ()
    audit_log: str = ""


Block: TypeAlias = (
    ToolBlock
    | ResourcesBlock
    | PromptsBlock
    | CompletionBlock
    | SamplingBlock
    | LoggingBlock
    | NotificationsBlock
    | TrajectoryBlock
)


class Test(msgspec.Struct, frozen=True):
    """One test, as written."""

    name: str
    block: Block
    place: Place
    server: ServerSpec | None = None
    """None only for a trajectory, which needs none, or when --server must provide it."""
    setup: tuple[SetupStep, ...] = ()
    timeout: float | None = None
    skip: bool = False
    skip_unless_env: str = ""
    tags: tuple[str, ...] = ()
    isolation: Isolation | None = None
    single: bool = False
    """Whether it is the one test of its file, at the top of it: the form of mcp-assert."""


class Suite(msgspec.Struct, frozen=True):
    """All tests that were asked for, in the order in which they are reported."""

    tests: tuple[Test, ...]
    files: tuple[str, ...] = ()
