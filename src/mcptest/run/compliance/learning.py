"""Learning what a server has: a tour, its lists, and which tools work as we call them."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.events import StepTaken
from mcptest.model.revision import NEWEST_HANDSHAKE
from mcptest.peer.client import Client
from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.listing import (
    Lists,
    UsableTool,
    callable_tools,
    fixtures_of,
    lists_on,
    unanswered_calls,
    without_tools,
)
from mcptest.run.compliance.order import Order
from mcptest.run.compliance.placeholder_values import chosen_values, learned_values
from mcptest.run.compliance.site import Site
from mcptest.run.tour import tour
from mcptest.suite.check_forms import Check

__all__ = [
    "chosen_values",
    "learn",
    "learn_about_eras",
    "learned_values",
    "lists_on",
    "take_the_tour",
    "tools_to_try",
    "try_tools",
]

_TRIED = 4
_UNANSWERED = 1
"""So many steps in a row may go without an answer before the tour is given up."""


def learn(site: Site, conversation: Conversation | None) -> PeerError | None:
    """Fill in what is known of the server; the error when it did not survive being looked at.

    Without a conversation only what we choose ourselves is known.
    """
    error = take_the_tour(conversation) if conversation is not None else None
    lists = lists_on(conversation.tape.records) if conversation is not None else Lists()
    working: list[str] = []
    if conversation is not None:
        site.hung_tools.update(unanswered_calls(conversation.tape.records))
        working = try_tools(conversation, tools_to_try(site.order, lists, site.hung_tools))
    answering = without_tools(lists, site.hung_tools)
    site.known = {
        **chosen_values(site.revision, site.alive_check.method, lists),
        **learned_values(site.order, answering, frozenset(working)),
    }
    if site.hung_tools:
        all_values = learned_values(site.order, lists, frozenset(working))
        site.hung_values = frozenset(all_values.keys() - site.known.keys())
    site.page_of_tool = lists.page_of_tool
    site.header_schemas.update(_header_schemas(lists))
    return error


def learn_about_eras(site: Site, conversation: Conversation) -> None:
    """Ask a server of the stateless era to begin a session, on a connection that has none yet."""
    conversation.polite = False
    chosen = chosen_values(site.revision, site.alive_check.method, Lists())
    params = {
        "protocolVersion": NEWEST_HANDSHAKE.wire_version,
        "capabilities": chosen["client_capabilities"],
        "clientInfo": chosen["client_info"],
    }
    check = Check(method="initialize", params=params, omit=("_meta",))
    asked = conversation.ask(check)
    result = asked.exchange.result
    site.speaks_handshake = isinstance(result, dict) and "protocolVersion" in result
    if conversation.usable:
        site.greeting = (check, asked)


def _header_schemas(lists: Lists) -> dict[str, dict[str, Any]]:
    """Tools whose arguments travel as HTTP headers too must be known when they are called."""
    found = ((str(one.get("name")), one.get("inputSchema")) for one in lists.tools)
    return {
        name: schema
        for name, schema in found
        if isinstance(schema, dict) and "x-mcp-header" in str(schema)
    }


def take_the_tour(conversation: Conversation) -> PeerError | None:
    """Ask everything that is safe, as a careful client does.

    The error when the server is gone, or answers nothing any more.
    """
    conversation.toured = True
    try:
        _take_steps(conversation.client, conversation.site)
    except PeerError as error:
        if error.kind is ErrorKind.TIMEOUT:
            conversation.mute = True
        else:
            conversation.gone = error
        return error
    return None


def _take_steps(client: Client, site: Site) -> None:
    """Each step may take what is left of the timeout; raises when nothing is answered any more."""
    unanswered, begun = 0, time.monotonic()
    for event in tour(client):
        failed = isinstance(event, StepTaken) and event.outcome == "failed"
        unanswered = unanswered + 1 if failed else 0
        if failed:
            site.waits.in_vain(begun, time.monotonic())
        if isinstance(event, StepTaken) and unanswered > _UNANSWERED:
            raise PeerError(ErrorKind.TIMEOUT, event.detail)
        client.timeout, begun = site.waits.left(at_work=True), time.monotonic()
    client.timeout = site.order.timeout


def tools_to_try(order: Order, lists: Lists, hung: Collection[str] = ()) -> tuple[UsableTool, ...]:
    """A few tools of each sort that checks use, to find those that work as they are called.

    One that did not answer is not called again.
    """
    fixtures = {*fixtures_of(order, lists).values()}
    tools = [
        one
        for one in callable_tools(order, lists, {})
        if one.name not in {*fixtures, *hung} and one.task_support != "required"
    ]
    structured = [one for one in tools if isinstance(one.tool.get("outputSchema"), dict)]
    bare = [one for one in tools if not one.required]
    chosen = (*tools[:_TRIED], *structured[:_TRIED], *bare[:_TRIED])
    return tuple({one.name: one for one in chosen}.values())


def try_tools(conversation: Conversation, tools: Sequence[UsableTool]) -> list[str]:
    """The names of those that gave a result which is no error; all are called at once."""
    started = [
        (
            one.name,
            conversation.start(
                Check(method="tools/call", params={"name": one.name, "arguments": one.arguments})
            ),
        )
        for one in tools
    ]
    working = []
    for name, under_way in started:
        result = conversation.finish(under_way).exchange.result
        if isinstance(result, dict) and result.get("isError") is not True:
            working.append(name)
    return working
