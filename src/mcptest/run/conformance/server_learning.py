"""What a server offers, learned once before any scenario: its lists to their end, within bounds."""

from __future__ import annotations

from typing import Any

from mcptest.peer.pagination import LIST_CAPABILITIES
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.listing import list_through
from mcptest.run.compliance.site import Site
from mcptest.run.conformance.scenarios.scene import Offered


def learn(site: Site, conversation: Conversation) -> Offered:
    """Every list that the server declares; what it does not show is not there."""
    declared = Offered(capabilities=site.capabilities)
    found: dict[str, list[Any]] = {}
    endless: list[str] = []
    for method, capability in LIST_CAPABILITIES.items():
        found[method] = []
        if declared.declares(capability):
            listed = list_through(conversation.ask, method, site.order.timeout)
            found[method] = listed.items
            endless += [listed.endless] if listed.endless else []
    for tool in found["tools/list"]:
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(schema, dict) and "x-mcp-header" in str(schema):
            # Whoever calls it has to repeat its arguments as headers.
            site.header_schemas[str(tool.get("name"))] = schema
    return Offered(
        capabilities=site.capabilities,
        tools=tuple(found["tools/list"]),
        prompts=tuple(found["prompts/list"]),
        resources=tuple(found["resources/list"]),
        templates=tuple(found["resources/templates/list"]),
        endless=tuple(endless),
    )
