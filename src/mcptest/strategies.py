"""Hypothesis strategies for tests of MCP servers and clients.

Needs Hypothesis: `pip install mcptest[property]`. Revisions are named as on the wire:
`requests("2025-11-25")`. See docs/strategies.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hypothesis.strategies import SearchStrategy

from mcptest.core.revision import NEWEST_HANDSHAKE, Revision, parse_revision
from mcptest.probe.properties import message_strategies
from mcptest.probe.properties.crafted import Crafted
from mcptest.probe.properties.mutations import MUTATIONS
from mcptest.probe.properties.steps import Offer, Step

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

_NEWEST = NEWEST_HANDSHAKE.value


def requests(
    revision: str | Revision = _NEWEST, offer: Offer | None = None, *, methods: Collection[str] = ()
) -> SearchStrategy[Crafted]:
    """Requests that a client of the revision may make; with an offer, only those that this server
    answers with a result. `methods` takes some of them."""
    return message_strategies.valid_requests(_revision(revision), offer, methods=methods)


def notifications(revision: str | Revision = _NEWEST) -> SearchStrategy[Crafted]:
    """Notifications that a client of the revision may send."""
    return message_strategies.valid_notifications(_revision(revision))


def responses(revision: str | Revision = _NEWEST) -> SearchStrategy[Crafted]:
    """Answers of a client to what a server asks; nothing in the stateless era."""
    return message_strategies.valid_responses(_revision(revision))


def batches(revision: str | Revision = Revision.V2025_03_26) -> SearchStrategy[Crafted]:
    """Arrays of requests and notifications; nothing but in 2025-03-26."""
    return message_strategies.valid_batches(_revision(revision))


def invalid_messages(
    revision: str | Revision = _NEWEST, transport: str = "stdio", only: Collection[str] = ()
) -> SearchStrategy[Crafted]:
    """Messages that no client may send, by named mutation; `only` takes some of `mutations()`."""
    return message_strategies.invalid_messages(_revision(revision), transport, only)


def mutations(revision: str | Revision = _NEWEST, transport: str = "stdio") -> tuple[str, ...]:
    """The names of the mutations that the revision has."""
    wanted = _revision(revision)
    return tuple(name for name, one in MUTATIONS.items() if one.applies(wanted, transport))


def tool_arguments(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Values that a JSON Schema accepts, every one of them."""
    return message_strategies.tool_arguments(schema)


def almost_valid_arguments(schema: Mapping[str, Any]) -> SearchStrategy[tuple[Any, str]]:
    """Values that a JSON Schema does not accept, just so, each with what is wrong with it."""
    return message_strategies.almost_valid_arguments(schema)


def conversations(
    revision: str | Revision = _NEWEST,
    offer: Offer | None = None,
    transport: str = "stdio",
    *,
    most: int = 12,
) -> SearchStrategy[tuple[Step, ...]]:
    """Conversations with a server of that offer, as steps."""
    wanted = _revision(revision)
    return message_strategies.conversations(wanted, offer or Offer(), transport, most=most)


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


def _revision(named: str | Revision) -> Revision:
    return named if isinstance(named, Revision) else parse_revision(named)
