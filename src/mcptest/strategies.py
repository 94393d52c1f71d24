"""Hypothesis strategies for tests of MCP servers and clients.

Needs Hypothesis: `pip install mcptest[property]`. Revisions are named as on the wire:
`requests("2025-11-25")`. See docs/strategies.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcptest.probe.properties.message_strategies import (
    almost_valid_arguments,
    batches,
    conversations,
    invalid_messages,
    mutations,
    notifications,
    requests,
    responses,
    tool_arguments,
)
from mcptest.probe.properties.steps import Crafted, Step
from mcptest.session.pages import Offer

__all__ = [
    "Crafted",
    "Offer",
    "Step",
    "almost_valid_arguments",
    "batches",
    "conversations",
    "invalid_messages",
    "mutations",
    "notifications",
    "offer",
    "requests",
    "responses",
    "tool_arguments",
]


def offer(
    *,
    tools: Sequence[Any] = (),
    prompts: Sequence[Any] = (),
    resources: Sequence[Any] = (),
    templates: Sequence[Any] = (),
    capabilities: Mapping[str, Any] | None = None,
) -> Offer:
    """What a server offers. Capabilities are those of the lists, when none are given."""
    lists = {"tools": tools, "prompts": prompts, "resources": resources or templates}
    declared: dict[str, Any] = {name: {} for name, found in lists.items() if found}
    return Offer(
        tuple(tools),
        tuple(prompts),
        tuple(resources),
        tuple(templates),
        declared if capabilities is None else capabilities,
    )
