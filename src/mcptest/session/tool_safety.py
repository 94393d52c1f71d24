"""Which tools may be called on a server that nobody prepared: the one answer for every command.

A tool that says that it only reads may be called, and so may one that the user named. A tool that
says both that it only reads and that it destroys contradicts itself, which is not safe.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any


def may_call(tool: Mapping[str, Any], allowed: Container[str] = ()) -> bool:
    """Whether the tool is safe, or among those that the user allowed by name; `*` is all."""
    return "*" in allowed or tool.get("name") in allowed or is_safe(tool)


def is_safe(tool: Mapping[str, Any]) -> bool:
    """Whether the tool says that it only reads. What says nothing may destroy: so the spec."""
    return not why_not(tool)


def why_not(tool: Mapping[str, Any]) -> str:
    """Why the tool is not called without being asked to; empty when it is safe."""
    hints = hints_of(tool)
    reads, destroys = hints.get("readOnlyHint"), hints.get("destructiveHint")
    if destroys is True:
        both = "it is marked both readOnlyHint and destructiveHint"
        return both if reads else "it is marked destructiveHint"
    if reads is True:
        return ""
    return "it is marked readOnlyHint: false" if reads is False else "it is not marked readOnlyHint"


def hints_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the tool says of itself in its annotations."""
    hints = tool.get("annotations")
    return hints if isinstance(hints, Mapping) else {}


def runs_only_as_task(tool: Mapping[str, Any]) -> bool:
    """Whether a plain call must be refused, as revision 2025-11-25 lets a tool demand."""
    return task_support(tool) == "required"


def task_support(tool: Mapping[str, Any]) -> str:
    """Whether a call may become a task: `optional`, `required`, or `forbidden`, as is usual."""
    execution = tool.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, Mapping) else None
    return support if isinstance(support, str) else "forbidden"
