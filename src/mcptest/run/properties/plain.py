"""The plainest request of a kind: what a conversation is told with where nothing hangs on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcptest.explore.property.offer import Offer
from mcptest.explore.property.steps import Ask
from mcptest.explore.property.valid_params import params_of_offer
from mcptest.run.properties.catalogue import Ground
from mcptest.run.properties.search import Enough, search


def plain_ask(ground: Ground, ask: Ask) -> Ask:
    """The same method, and the same tool or prompt, with the simplest that can be drawn for it."""
    offer = _only_named(ground.offer, ask.params.get("name"))
    strategy = params_of_offer(ground.revision, offer, with_meta=False).get(ask.method)
    if strategy is None or strategy.is_empty:
        return ask
    drawn: list[Any] = []

    def take(first: Any) -> None:
        drawn.append(first)
        raise Enough

    try:
        search(strategy, take, seed=0, examples=1)  # Hypothesis begins with the simplest
    except Enough:
        return Ask(ask.method, drawn[0], ask.progress)
    return ask


def _only_named(offer: Offer, name: object) -> Offer:
    if name is None:
        return offer

    def is_it(one: Any) -> bool:
        return isinstance(one, Mapping) and one.get("name") == name

    tools, prompts = filter(is_it, offer.tools), filter(is_it, offer.prompts)
    return replace(offer, tools=tuple(tools), prompts=tuple(prompts))
