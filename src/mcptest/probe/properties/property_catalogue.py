"""The properties by name: what each says of a server, and how it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from mcptest.core.revision import Revision
from mcptest.probe.properties.steps import Offer
from mcptest.session.pages import named_items
from mcptest.session.tool_safety import runs_only_as_task, why_not


class KnownServer(msgspec.Struct, frozen=True):
    """What is known of the server when examples are made."""

    revision: Revision
    transport: str
    offer: Offer
    """Without the tools that must not be called."""


def ground_of(
    revision: Revision, transport: str, offer: Offer, allowed: tuple[str, ...]
) -> KnownServer:
    """With the tools that may be called: those that only read, and those that are allowed."""
    tools = tuple(one for one in named_items(offer.tools) if may_be_called(one, allowed))
    return KnownServer(revision, transport, replace(offer, tools=tools))


def may_be_called(tool: Mapping[str, Any], allowed: tuple[str, ...]) -> bool:
    named = tool["name"] in allowed or "*" in allowed
    return not runs_only_as_task(tool) and (named or not why_not(tool))


class Property(msgspec.Struct, frozen=True):
    """One statement about all examples of a kind, which `property_examples` makes."""

    name: str
    about: str
    rude: bool = False
    """The examples hold what no client may send."""
    by_tool: bool = False
    """Every tool may break it by itself."""
    relation: bool = False
    """Two observations are compared: it is no conversation that is judged."""
    share: int = 1
    """An example takes about so many requests, so there are fewer of them."""


_ALL: Final = (
    Property(
        "messages-valid", "every valid message is accepted and answered, and every answer is valid"
    ),
    Property(
        "messages-invalid",
        "every invalid message is refused as the rules say, and does no harm",
        rude=True,
    ),
    Property(
        "arguments",
        "a tool serves all that its schema accepts, and its output fits its schema",
        by_tool=True,
    ),
    Property(
        "arguments-almost-valid",
        "a tool survives what its schema just does not accept",
        by_tool=True,
    ),
    Property("conversations", "every conversation keeps to the rules over sessions", share=8),
    Property(
        "idempotent",
        "a tool that says so changes nothing when it is called again",
        by_tool=True,
        relation=True,
        share=10,
    ),
    Property(
        "read-only",
        "a tool that says that it only reads changes no list and no resource",
        by_tool=True,
        relation=True,
        share=10,
    ),
    Property(
        "argument-order",
        "the order of its arguments does not matter to a tool",
        by_tool=True,
        relation=True,
        share=3,
    ),
    Property("same-lists", "two connections see the same lists", relation=True, share=100),
)
PROPERTIES: Final[Mapping[str, Property]] = {one.name: one for one in _ALL}
