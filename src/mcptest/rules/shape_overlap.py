"""Which wrong shapes another rule reports already, so that one fault is one finding.

Rules with an id of their own came first, and say more about their member than a shape can. A row
here is a promise that its rule fails on such a message; a test holds each of them to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mcptest.model.message import ABSENT, Kind
from mcptest.model.revision import (
    EVERY_REVISION,
    HANDSHAKE_ERA,
    NEWEST_HANDSHAKE,
    STATELESS_ERA,
    Window,
)
from mcptest.rules.content import block_fault, resource_fault
from mcptest.rules.protocol import CHANGE_NOTIFICATIONS, LISTS, LOG_LEVELS
from mcptest.rules.session import Step
from mcptest.schema.shapes import ShapeProblem

_PROTOCOL_KEY = "io.modelcontextprotocol~1"
_SUBSCRIPTION = f"/params/_meta/{_PROTOCOL_KEY}subscriptionId"


@dataclass(frozen=True, slots=True)
class Told:
    """The rule reports what is wrong at a pointer like `pattern`, where `*` is any one part.

    A pattern that ends in `/**` is everything below. `when` narrows it to what the rule sees.
    """

    rule: str
    kind: Kind
    methods: tuple[str, ...]
    """Empty: whatever the method."""
    patterns: tuple[str, ...]
    when: Callable[[Step, list[str]], bool] | None = None
    window: Window = EVERY_REVISION


# -- what the other rules look at ----------------------------------------------------------


def _at(value: Any, *path: str) -> Any:
    for part in path:
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else ABSENT
        else:
            value = value.get(part, ABSENT) if isinstance(value, dict) else ABSENT
    return value


def _has_bad_block(step: Step, parts: list[str]) -> bool:
    return bool(block_fault(_at(step.result, "content", parts[2]), step.revision))


def _has_bad_prompt_block(step: Step, parts: list[str]) -> bool:
    message = _at(step.result, "messages", parts[2])
    is_whole = _at(message, "role") in ("user", "assistant")
    return is_whole and bool(block_fault(_at(message, "content"), step.revision))


def _has_bad_contents(step: Step, parts: list[str]) -> bool:
    return bool(resource_fault(_at(step.result, "contents", parts[2])))


def _has_no_content_at_all(step: Step, parts: list[str]) -> bool:
    """`structuredContent` alone satisfies INV-005, but no revision of the schema."""
    has_content = _at(step.result, "content") is not ABSENT
    return has_content or _at(step.result, "structuredContent") is ABSENT


def _has_known_level(step: Step, parts: list[str]) -> bool:
    return step.params.get("level") in LOG_LEVELS


def _has_scalar_params(step: Step, parts: list[str]) -> bool:
    return not isinstance(step.message.member("params"), list) and (
        step.message.member("params") is not ABSENT
    )


def _has_code(*codes: int) -> Callable[[Step, list[str]], bool]:
    return lambda step, parts: _at(step.error, "code") in codes


# -- the table -----------------------------------------------------------------------------

TOLD: Final[tuple[Told, ...]] = (
    Told("MSG-012", Kind.RESULT, (), ("/result",)),
    Told("META-003", Kind.RESULT, (), ("/result/resultType",)),
    Told("META-004", Kind.RESULT, (), ("/result/ttlMs", "/result/cacheScope")),
    Told("PAGE-002", Kind.RESULT, tuple(LISTS), ("/result/nextCursor",)),
    Told(
        "MRTR-002",
        Kind.RESULT,
        (),
        ("/result/inputRequests", "/result/inputRequests/*", "/result/inputRequests/*/method"),
    ),
    Told(
        "LIFE-004",
        Kind.RESULT,
        ("initialize",),
        (
            "/result/protocolVersion",
            "/result/capabilities",
            "/result/serverInfo",
            "/result/serverInfo/name",
            "/result/serverInfo/version",
        ),
    ),
    Told(
        "META-007",
        Kind.RESULT,
        ("server/discover",),
        ("/result/supportedVersions", "/result/supportedVersions/*", "/result/capabilities"),
    ),
    Told(
        "TOOL-003",
        Kind.RESULT,
        ("tools/list",),
        (
            "/result/tools",
            "/result/tools/*",
            "/result/tools/*/name",
            "/result/tools/*/inputSchema",
            "/result/tools/*/inputSchema/type",
        ),
    ),
    Told("INV-005", Kind.RESULT, ("tools/call",), ("/result/content",), _has_no_content_at_all),
    Told("INV-005", Kind.RESULT, ("tools/call",), ("/result/structuredContent", "/result/isError")),
    Told("CONTENT-001", Kind.RESULT, ("tools/call",), ("/result/content/*/**",), _has_bad_block),
    Told("RES-001", Kind.RESULT, ("resources/read",), ("/result/contents",)),
    Told(
        "RES-001",
        Kind.RESULT,
        ("resources/read",),
        ("/result/contents/*/**",),
        _has_bad_contents,
    ),
    Told(
        "RES-002",
        Kind.RESULT,
        ("resources/list",),
        ("/result/resources/*", "/result/resources/*/uri", "/result/resources/*/name"),
    ),
    Told(
        "RES-002",
        Kind.RESULT,
        ("resources/templates/list",),
        (
            "/result/resourceTemplates/*",
            "/result/resourceTemplates/*/uriTemplate",
            "/result/resourceTemplates/*/name",
        ),
    ),
    Told(
        "PROMPT-001",
        Kind.RESULT,
        ("prompts/get",),
        ("/result/messages/*", "/result/messages/*/role"),
    ),
    Told(
        "PROMPT-001",
        Kind.RESULT,
        ("prompts/get",),
        ("/result/messages/*/content/**",),
        _has_bad_prompt_block,
    ),
    Told(
        "PROMPT-002",
        Kind.RESULT,
        ("prompts/list",),
        (
            "/result/prompts/*",
            "/result/prompts/*/name",
            "/result/prompts/*/arguments",
            "/result/prompts/*/arguments/*",
            "/result/prompts/*/arguments/*/name",
        ),
    ),
    Told(
        "COMPLETE-001",
        Kind.RESULT,
        ("completion/complete",),
        (
            "/result/completion",
            "/result/completion/values",
            "/result/completion/values/*",
            "/result/completion/total",
            "/result/completion/hasMore",
        ),
    ),
    Told("INV-006", Kind.ERROR, (), ("/error", "/error/code", "/error/message")),
    Told(
        "MSG-015",
        Kind.ERROR,
        (),
        ("/error/data", "/error/data/requiredCapabilities"),
        _has_code(-32021),
        STATELESS_ERA,
    ),
    Told(
        "MSG-015",
        Kind.ERROR,
        (),
        ("/error/data", "/error/data/supported", "/error/data/requested"),
        _has_code(-32022),
        STATELESS_ERA,
    ),
    Told(
        "LIFE-003",
        Kind.REQUEST,
        ("initialize",),
        (
            "/params",
            "/params/protocolVersion",
            "/params/capabilities",
            "/params/clientInfo",
            "/params/clientInfo/name",
            "/params/clientInfo/version",
        ),
    ),
    Told(
        "META-001",
        Kind.REQUEST,
        (),
        (
            "/params",
            "/params/_meta",
            f"/params/_meta/{_PROTOCOL_KEY}protocolVersion",
            f"/params/_meta/{_PROTOCOL_KEY}clientCapabilities",
        ),
        window=STATELESS_ERA,
    ),
    Told("MSG-001", Kind.REQUEST, (), ("/params",), _has_scalar_params, HANDSHAKE_ERA),
    Told("PROG-004", Kind.REQUEST, (), ("/params/_meta/progressToken",)),
    Told("PAGE-001", Kind.REQUEST, tuple(LISTS), ("/params/cursor",)),
    Told("MRTR-004", Kind.REQUEST, (), ("/params/inputResponses",)),
    Told("MSG-001", Kind.NOTIFICATION, (), ("/params",), _has_scalar_params),
    Told("LOG-002", Kind.NOTIFICATION, ("notifications/message",), ("/params", "/params/level")),
    Told(
        "LOG-002",
        Kind.NOTIFICATION,
        ("notifications/message",),
        ("/params/data",),
        _has_known_level,
    ),
    Told(
        "PROG-001",
        Kind.NOTIFICATION,
        ("notifications/progress",),
        ("/params", "/params/progress"),
    ),
    Told("PROG-002", Kind.NOTIFICATION, ("notifications/progress",), ("/params/progressToken",)),
    Told("CANCEL-001", Kind.NOTIFICATION, ("notifications/cancelled",), ("/params/requestId",)),
    Told(
        "SUBS-001",
        Kind.NOTIFICATION,
        ("notifications/subscriptions/acknowledged",),
        ("/params", "/params/_meta", _SUBSCRIPTION),
    ),
    Told(
        "SUBS-002",
        Kind.NOTIFICATION,
        tuple(CHANGE_NOTIFICATIONS),
        ("/params", "/params/_meta", _SUBSCRIPTION),
        window=STATELESS_ERA,
    ),
)


def untold(step: Step, problems: Iterable[ShapeProblem]) -> list[ShapeProblem]:
    """The problems that no other rule reports."""
    return [problem for problem in problems if not _is_told(step, problem)]


def _is_told(step: Step, problem: ShapeProblem) -> bool:
    parts = problem.pointer.split("/")[1:]
    return any(
        row.kind is step.kind
        and (not row.methods or step.method in row.methods)
        and (step.revision or NEWEST_HANDSHAKE) in row.window
        and _matching(row.patterns).fullmatch(problem.pointer) is not None
        and (row.when is None or row.when(step, parts))
        for row in TOLD
    )


@cache
def _matching(patterns: tuple[str, ...]) -> re.Pattern[str]:
    known = {"/**": "(?:/.*)?", "/*": "/[^/]*"}
    each = (
        "".join(known.get(part) or re.escape(part) for part in re.findall(r"/[^/]*", pattern))
        for pattern in patterns
    )
    return re.compile("|".join(f"(?:{one})" for one in each), re.DOTALL)
