"""Facts of probes about lists: walked twice, paged, changed, annotated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcptest.model.message import ABSENT
from mcptest.peer.pagination import LIST_MEMBERS
from mcptest.run.compliance.probe_seen import (
    Fact,
    Seen,
    Unobserved,
    messages_of_server,
    named_items,
)
from mcptest.wire.param_headers import annotation_problems, header_annotations

_NAMED_BY = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}
_TOOLS = "tools/list"


def _names(items: Sequence[Any], method: str = _TOOLS) -> list[str]:
    return named_items(items, _NAMED_BY.get(method, "name"))


# -- lists_on_two_connections, list_tools_twice


def lists_that_differ(seen: Seen) -> list[str]:
    first, second = seen["first"].lists, seen["second"].lists
    if not first:
        raise Unobserved("the server declares no lists", "a list of tools, prompts or resources")
    return [
        method
        for method, items in first.items()
        if sorted(_names(items, method)) != sorted(_names(second.get(method, ()), method))
    ]


def same_order(seen: Seen) -> bool:
    first = _names(seen["first"].lists.get(_TOOLS, ()))
    second = _names(seen["second"].lists.get(_TOOLS, ()))
    both = set(first) & set(second)
    if len(both) < 2:
        raise Unobserved("order shows only among two tools or more", "two listed tools")
    return [name for name in first if name in both] == [name for name in second if name in both]


# -- cursor_twice


def same_items(seen: Seen) -> bool:
    """A page that is refused the second time is not the same page."""
    first, second = seen.result("first"), seen.result("second")
    if seen["first"].exchange.result is ABSENT:
        raise Unobserved("the second page was refused at the first try already")
    return _page_names(first) == _page_names(second) is not None


def _page_names(result: Mapping[str, Any]) -> list[str] | None:
    items = result.get(LIST_MEMBERS[_TOOLS])
    return _names(items) if isinstance(items, list) else None


# -- change_of_tools, change_of_prompts


def tools_change_announced(seen: Seen) -> bool:
    return _announced(seen, _TOOLS, "notifications/tools/list_changed")


def prompts_change_announced(seen: Seen) -> bool:
    return _announced(seen, "prompts/list", "notifications/prompts/list_changed")


def _announced(seen: Seen, method: str, notification: str) -> bool:
    came = messages_of_server(seen["change"].since)
    if any(message.method == notification for message, _ in came):
        return True
    before = sorted(_names(seen["before"].lists.get(method, ()), method))
    if before == sorted(_names(seen["later"].lists.get(method, ()), method)):
        raise Unobserved("the call did not change the list", "a fixture that changes the list")
    return False


# -- header_annotations


def annotations_with_problems(seen: Seen) -> list[str]:
    found, problems = False, []
    for tool in seen["lists"].lists.get(_TOOLS, ()):
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        found = found or bool(header_annotations(schema))
        problems += [f"{tool.get('name')}: {problem}" for problem in annotation_problems(schema)]
    if not found:
        raise Unobserved("no tool has an x-mcp-header", "a tool with an x-mcp-header argument")
    return problems


FACTS: Mapping[tuple[str, str], Fact] = {
    ("lists_on_two_connections", "differing"): lists_that_differ,
    ("list_tools_twice", "same_order"): same_order,
    ("cursor_twice", "same_items"): same_items,
    ("change_of_tools", "announced"): tools_change_announced,
    ("change_of_prompts", "announced"): prompts_change_announced,
    ("header_annotations", "problems"): annotations_with_problems,
}
