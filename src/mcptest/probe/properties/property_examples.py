"""The examples of each property: what is drawn for a server, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from mcptest.probe.hint_checks import claimed
from mcptest.probe.properties.message_strategies import (
    almost_valid_arguments,
    batches,
    conversations,
    invalid_messages,
    mutations,
    notifications,
    params_of_offer,
    requests,
    sent_by_client,
    tool_arguments,
)
from mcptest.probe.properties.property_catalogue import KnownServer
from mcptest.probe.properties.steps import AskStep, Connect, Crafted, Relate, Steps, send_of
from mcptest.session.pages import Offer

_NOT_BY_SHAPE: Final = frozenset({"initialize", "subscriptions/listen"})
"""A session begins once, and a subscription is answered at its end: these are for conversations."""
_MOST_ALONE: Final = 20
"""Tools that get conversations of their own."""


class Strand(msgspec.Struct, frozen=True):
    """Examples of one kind. Each is searched by itself, so that none is crowded out by another."""

    strategy: SearchStrategy[Steps]
    weight: int = 1


Examples: TypeAlias = list[Strand]


class NothingToTry(Exception):  # noqa: N818 - it is no error of anybody
    """The property has nothing to say about this server; the text says why."""


def _valid_messages(ground: KnownServer) -> Examples:
    revision, offer = ground.revision, ground.offer
    strands = [
        _sending(requests(revision, offer, methods=[method]), 2, offered=True)
        for method in params_of_offer(revision, offer)
    ]
    strands += (
        _sending(requests(revision, methods=[method]), 2)
        for method in sorted(sent_by_client(revision).keys() - _NOT_BY_SHAPE)
    )
    strands.append(_sending(notifications(revision), 5))
    if not batches(revision).is_empty:
        strands.append(_sending(batches(revision), 10))
    return strands


def _sending(drawn: SearchStrategy[Crafted], weight: int = 1, *, offered: bool = False) -> Strand:
    """One message, and nothing else."""
    return Strand(drawn.map(lambda one: (send_of(one, offered=offered),)), weight)


def _invalid_messages(ground: KnownServer) -> Examples:
    revision, transport = ground.revision, ground.transport
    return [
        _sending(invalid_messages(revision, transport, [name]))
        for name in mutations(revision, transport)
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
    found = [(name, tool_arguments(schema)) for name, schema in _schemas(ground)]
    return _calls(found, "no tool has a schema that anything is valid against")


def _almost_valid(ground: KnownServer) -> Examples:
    found = [
        (name, almost_valid_arguments(schema).map(lambda pair: pair[0]))
        for name, schema in _schemas(ground)
    ]
    return _calls(found, "every tool takes anything")


def _conversations(ground: KnownServer) -> Examples:
    """About everything, and about one thing at a time: what is rare among all is common there."""

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


def _has_several_arguments(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    members = schema.get("properties") if isinstance(schema, Mapping) else None
    return isinstance(members, Mapping) and len(members) > 1


EXAMPLES: Final[Mapping[str, Callable[[KnownServer], Examples]]] = {
    "messages-valid": _valid_messages,
    "messages-invalid": _invalid_messages,
    "arguments": _arguments,
    "arguments-almost-valid": _almost_valid,
    "conversations": _conversations,
    "idempotent": _related(
        "idempotent",
        lambda tool: claimed(tool) == ["idempotentHint"],
        "no tool that may be called says so",
    ),
    "read-only": _related(
        "read-only",
        lambda tool: "readOnlyHint" in claimed(tool),
        "no tool that may be called says so",
    ),
    "argument-order": _related(
        "argument-order", _has_several_arguments, "no tool that may be called has two arguments"
    ),
    "same-lists": lambda ground: [Strand(st.just((Relate("same-lists"),)))],
}
"""By the name of the property. Each raises NothingToTry."""
