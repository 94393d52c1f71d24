"""What an expectation may look at: one answer, and what happened around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from mcptest.model.message import ABSENT
from mcptest.suite.go_format import quote
from mcptest.suite.text_under_test import listed_by, result_problem, text_of

_ABOUT_A_RESOURCE = ("resources/read", "resources/subscribe", "resources/unsubscribe")


class FileView(Protocol):
    """The files that a test may look at; whoever runs the test provides it."""

    def read(self, path: str) -> bytes | None:
        """The content, or None when there is no such file or it can't be read."""

    def exists(self, path: str) -> bool:
        """Whether anything is there, a folder included."""


class Observed(msgspec.Struct, frozen=True):
    """One answer as the expectations see it. `observe` makes it from what came."""

    text: str = ""
    is_error: bool = False
    result: Any = ABSENT
    """The raw result, or ABSENT when the answer was an error."""
    error: Any = None
    """The JSON-RPC error of the answer; None when there was none."""
    structured: Any = ABSENT
    duration: float = 0.0
    """Seconds from the request to its answer."""
    progress: int | None = None
    """How many progress notifications came; None when nobody counted."""
    notifications: tuple[Mapping[str, Any], ...] = ()
    """The notifications that came, each as the object that was sent."""
    files: FileView | None = None
    """None when nobody looked at the disk: then no expectation on a file holds."""
    snapshots: Mapping[str, bytes | None] = msgspec.field(default_factory=dict)
    """Contents before the call, by path; None for a file that was not there."""
    output_schema: Any = None
    """The tool's `outputSchema`, where it has one."""
    subject: str = ""
    """What the method was about: the tool, the prompt or the resource."""
    failing: str = "call failed"
    """How a message about a call without a usable result begins: `tool call echo failed`."""
    problem: str = ""
    """Why the result is none that this method may have; empty when it is fine."""
    lists_nothing: bool = False
    """Whether it answers a request for a list, or for completions, with none."""


def observe(
    method: str,
    *,
    result: Any = ABSENT,
    error: Any = None,
    subject: str = "",
    duration: float = 0.0,
    progress: int | None = None,
    notifications: tuple[Mapping[str, Any], ...] = (),
    files: FileView | None = None,
    snapshots: Mapping[str, bytes | None] | None = None,
    output_schema: Any = None,
) -> Observed:
    """An answer to `method`: its text, its flags and its problem are derived from the result.

    `subject` is what the method was about: the tool, the prompt or the resource.
    """
    fields = result if isinstance(result, dict) else {}
    answered = error is None
    return Observed(
        text=text_of(method, result) if answered else text_of_error(error),
        is_error=fields.get("isError") is True,
        result=result,
        error=error,
        structured=fields.get("structuredContent", ABSENT),
        duration=duration,
        progress=progress,
        notifications=notifications,
        files=files,
        snapshots=snapshots if snapshots is not None else {},
        output_schema=output_schema,
        subject=subject,
        failing=failing_call(method, subject),
        problem=(result_problem(method, result) or "") if answered else "",
        lists_nothing=listed_by(method, result) == [],
    )


def failing_call(method: str, subject: str = "") -> str:
    """How mcp-assert begins to say that a call failed."""
    if method == "tools/call":
        return f"tool call {subject} failed"
    if not subject or method not in ("prompts/get", *_ABOUT_A_RESOURCE):
        return f"{method} failed"
    return f"{method} failed for {quote(subject) if method == 'prompts/get' else subject}"


def text_of_error(error: Any) -> str:
    """The text under test of a JSON-RPC error is its message."""
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else ""
