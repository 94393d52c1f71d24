"""What a server offers, learned once before any scenario: its lists to their end, within bounds."""

from __future__ import annotations

from typing import Any

from mcptest.peer.client import LIST_MEMBERS
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.site import Site
from mcptest.run.conformance.scenarios.scene import Offered
from mcptest.suite.check_forms import Check

_PAGES = 50
_ITEMS = 10_000
_CAPABILITY = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
}


def learn(site: Site, conversation: Conversation) -> Offered:
    """Every list that the server declares; what it does not show is not there."""
    declared = Offered(capabilities=site.capabilities)
    found: dict[str, tuple[Any, ...]] = {
        method: _walked(conversation, method) if declared.declares(capability) else ()
        for method, capability in _CAPABILITY.items()
    }
    for tool in found["tools/list"]:
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict) and "x-mcp-header" in str(schema):
            # Whoever calls it has to repeat its arguments as headers.
            site.header_schemas[str(tool.get("name"))] = schema
    return Offered(
        capabilities=site.capabilities,
        tools=found["tools/list"],
        prompts=found["prompts/list"],
        resources=found["resources/list"],
        templates=found["resources/templates/list"],
    )


def _walked(conversation: Conversation, method: str) -> tuple[Any, ...]:
    items: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        params = {"cursor": cursor} if cursor is not None else None
        result = conversation.ask(Check(method=method, params=params)).exchange.result
        page = result.get(LIST_MEMBERS[method]) if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(page, list):
            break
        items += page[: _ITEMS - len(items)]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or len(items) >= _ITEMS:
            break
    return tuple(items)
