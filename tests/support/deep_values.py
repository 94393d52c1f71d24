"""Values that are nested as deep as a message may be."""

from __future__ import annotations

from typing import Any

from mcptest.core.limits import DEFAULT_LIMITS


def deepest(value: Any) -> Any:
    """The value inside as many objects and arrays as a message may have around it."""
    for level in range(DEFAULT_LIMITS.depth - 3):
        value = {"a": value} if level % 2 else [value]
    return value
