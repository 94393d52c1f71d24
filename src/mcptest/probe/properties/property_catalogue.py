"""The properties by name: what each says, which examples it is tried with, what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.core.revision import Revision
from mcptest.probe.properties.steps import Offer
from mcptest.session.tool_safety import runs_only_as_task, why_not

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from mcptest.probe.properties.example_player import Steps

    Examples: TypeAlias = "list[Strand]"

_NOT_BY_SHAPE: Final = frozenset({"initialize", "subscriptions/listen"})
"""A session begins once, and a subscription is answered at its end: these are for conversations."""


_MOST_ALONE: Final = 20
"""Tools that get conversations of their own."""


class KnownServer(msgspec.Struct, frozen=True):
    """What is known of the server when examples are made."""

    revision: Revision
    transport: str
    offer: Offer
    """Without the tools that must not be called."""


class Strand(msgspec.Struct, frozen=True):
    """Examples of one kind. Each is searched by itself, so that none is crowded out by another."""

    strategy: SearchStrategy[Steps]
    weight: int = 1


class Property(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about all examples of a kind."""

    name: str
    about: str
    examples: Callable[[KnownServer], Examples]
    """Raises `NothingToTry` where there is nothing to make examples of."""
    rude: bool = False
    """The examples hold what no client may send."""
    by_tool: bool = False
    """Every tool may break it by itself."""
    relation: str = ""
    """What two observations are compared, where it is no conversation that is judged."""
    share: int = 1
    """An example takes about so many requests, so there are fewer of them."""


class NothingToTry(Exception):  # noqa: N818 - it is no error of anybody
    """The property has nothing to say about this server; the text says why."""


def ground_of(
    revision: Revision, transport: str, offer: Offer, allowed: tuple[str, ...]
) -> KnownServer:
    """With the tools that may be called: those that only read, and those that are allowed."""
    tools = tuple(one for one in offer.tools if may_be_called(one, allowed))
    return KnownServer(revision, transport, replace(offer, tools=tools))


def may_be_called(tool: Any, allowed: tuple[str, ...]) -> bool:
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return False
    if runs_only_as_task(tool):
        return False
    return tool["name"] in allowed or "*" in allowed or not why_not(tool)


# -- examples ----------------------------------------------------------------------------------


def _valid_messages(ground: KnownServer) -> Examples:
    from mcptest.probe.properties.message_strategies import (
        params_of_offer,
        sent_by_client,
        valid_batches,
        valid_notifications,
        valid_requests,
    )
    from mcptest.probe.properties.raw_steps import send_of

    revision, offer = ground.revision, ground.offer
    made = [
        valid_requests(revision, offer, methods=[method]).map(
            lambda one: (send_of(one, offered=True),)
        )
        for method in params_of_offer(revision, offer)
    ]
    made += [
        valid_requests(revision, methods=[method]).map(lambda one: (send_of(one),))
        for method in sorted(sent_by_client(revision).keys() - _NOT_BY_SHAPE)
    ]
    strands = [Strand(one, 2) for one in made]
    strands.append(Strand(valid_notifications(revision).map(lambda one: (send_of(one),)), 5))
    if not valid_batches(revision).is_empty:
        strands.append(Strand(valid_batches(revision).map(lambda one: (send_of(one),)), 10))
    return strands


def _invalid_messages(ground: KnownServer) -> Examples:
    from mcptest.probe.properties.message_strategies import MUTATIONS, invalid_messages
    from mcptest.probe.properties.raw_steps import send_of

    revision, transport = ground.revision, ground.transport
    return [
        Strand(invalid_messages(revision, transport, [name]).map(lambda one: (send_of(one),)))
        for name, mutation in MUTATIONS.items()
        if mutation.applies(revision, transport)
    ]


def _schemas(ground: KnownServer) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tools that may be called, with what they take."""
    for tool in ground.offer.tools:
        schema = tool.get("inputSchema")
        if isinstance(schema, Mapping):
            yield tool["name"], schema
    if not ground.offer.tools:
        raise NothingToTry("no tool may be called: none says that it only reads (--allow-tool)")


def _calls(found: list[Any], why: str) -> Examples:
    from mcptest.probe.properties.steps import AskStep, Connect

    usable = [
        strategy.map(
            lambda given, name=name: (
                Connect(),
                AskStep("tools/call", {"name": name, "arguments": given}),
            )
        )
        for name, strategy in found
        if not strategy.is_empty
    ]
    if not usable:
        raise NothingToTry(why)
    return [Strand(one) for one in usable]


def _arguments(ground: KnownServer) -> Examples:
    from mcptest.probe.properties.message_strategies import tool_arguments

    found = [(name, tool_arguments(schema)) for name, schema in _schemas(ground)]
    return _calls(found, "no tool has a schema that anything is valid against")


def _almost_valid(ground: KnownServer) -> Examples:
    from mcptest.probe.properties.message_strategies import almost_valid_arguments

    found = [
        (name, almost_valid_arguments(schema).map(lambda pair: pair[0]))
        for name, schema in _schemas(ground)
    ]
    return _calls(found, "every tool takes anything")


def _conversations(ground: KnownServer) -> Examples:
    """About everything, and about one thing at a time: what is rare among all is common there."""
    from mcptest.probe.properties.message_strategies import conversations

    def about(offer: Offer) -> SearchStrategy[Steps]:
        return conversations(ground.revision, offer, ground.transport)

    offer = ground.offer
    strands = [Strand(about(offer), _MOST_ALONE)]
    strands += [
        Strand(about(_only(offer, part)), _MOST_ALONE // 2)
        for part in ("resources", "prompts")
        if offer.declares(part)
    ]
    alone = [replace(_only(offer, "tools"), tools=(tool,)) for tool in offer.tools[:_MOST_ALONE]]
    return strands + [Strand(about(one), 3) for one in alone]


def _only(offer: Offer, part: str) -> Offer:
    """As if the server had nothing else."""
    there = offer.capabilities
    kept = Offer(capabilities={part: there[part]}) if part in there else Offer()
    if part == "resources":
        return replace(kept, resources=offer.resources, templates=offer.templates)
    return replace(kept, **{part: getattr(offer, part)})


def _related(relation: str, claims: Callable[[Mapping[str, Any]], bool], why: str) -> Any:
    def examples(ground: KnownServer) -> Examples:
        from mcptest.probe.properties.message_strategies import tool_arguments
        from mcptest.probe.properties.raw_steps import Relate

        claiming = {tool["name"] for tool in ground.offer.tools if claims(tool)}
        strands = []
        for name, schema in _schemas(ground):
            given = tool_arguments(schema).filter(lambda one: isinstance(one, dict))
            if name in claiming and not given.is_empty:
                made = partial(Relate, relation, name)
                strands.append(Strand(given.map(made).map(lambda step: (step,))))
        if not strands:
            raise NothingToTry(why)
        return strands

    return examples


def _same_lists(ground: KnownServer) -> Examples:
    from hypothesis import strategies as st

    from mcptest.probe.properties.raw_steps import Relate

    return [Strand(st.just((Relate("same-lists"),)))]


def _hint(name: str) -> Callable[[Mapping[str, Any]], bool]:
    def claims(tool: Mapping[str, Any]) -> bool:
        hints = tool.get("annotations")
        return isinstance(hints, Mapping) and hints.get(name) is True

    return claims


def _is_idempotent_only(tool: Mapping[str, Any]) -> bool:
    return _hint("idempotentHint")(tool) and not _hint("readOnlyHint")(tool)


def _has_several_arguments(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    members = schema.get("properties") if isinstance(schema, Mapping) else None
    return isinstance(members, Mapping) and len(members) > 1


PROPERTIES: Final[Mapping[str, Property]] = {
    one.name: one
    for one in (
        Property(
            name="messages-valid",
            about="every valid message is accepted and answered, and every answer is valid",
            examples=_valid_messages,
        ),
        Property(
            name="messages-invalid",
            about="every invalid message is refused as the rules say, and does no harm",
            examples=_invalid_messages,
            rude=True,
        ),
        Property(
            name="arguments",
            about="a tool serves all that its schema accepts, and its output fits its schema",
            examples=_arguments,
            by_tool=True,
        ),
        Property(
            name="arguments-almost-valid",
            about="a tool survives what its schema just does not accept",
            examples=_almost_valid,
            by_tool=True,
        ),
        Property(
            name="conversations",
            about="every conversation keeps to the rules over sessions",
            examples=_conversations,
            share=8,
        ),
        Property(
            name="idempotent",
            about="a tool that says so changes nothing when it is called again",
            examples=_related(
                "idempotent", _is_idempotent_only, "no tool that may be called says so"
            ),
            by_tool=True,
            relation="idempotent",
            share=10,
        ),
        Property(
            name="read-only",
            about="a tool that says that it only reads changes no list and no resource",
            examples=_related(
                "read-only", _hint("readOnlyHint"), "no tool that may be called says so"
            ),
            by_tool=True,
            relation="read-only",
            share=10,
        ),
        Property(
            name="argument-order",
            about="the order of its arguments does not matter to a tool",
            examples=_related(
                "argument-order",
                _has_several_arguments,
                "no tool that may be called has two arguments",
            ),
            by_tool=True,
            relation="argument-order",
            share=3,
        ),
        Property(
            name="same-lists",
            about="two connections see the same lists",
            examples=_same_lists,
            relation="same-lists",
            share=100,
        ),
    )
}
