"""Strategies for whole conversations. They shrink as sequences: fewer steps, then plainer ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from mcptest.explore.property.offer import Offer
from mcptest.explore.property.steps import (
    Ask,
    AskAtOnce,
    Cancel,
    Connect,
    Conversation,
    Disconnect,
    Notify,
    Page,
    Step,
    Subscribe,
    Unsubscribe,
    settled,
)
from mcptest.explore.property.valid_params import params_of_offer, sent_by_client
from mcptest.model.revision import Era, Revision

_LONGEST: Final = 12
_MOST_AT_ONCE: Final = 5
_MOST_PAGES: Final = 4
_WEIGHT_OF_ASKING: Final = 4
"""So often is a step one request, where any other kind is once."""
_LIST_CAPABILITIES: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}
_CHANGES: Final = ("tools.listChanged", "prompts.listChanged", "resources.listChanged")


def conversations(
    revision: Revision, offer: Offer, transport: str = "stdio", *, most: int = _LONGEST
) -> SearchStrategy[Conversation]:
    """Conversations that a client may have with a server of that offer; the shortest only
    connects. `most` bounds the steps, without the connecting that they need."""
    kinds = tuple(_steps(revision, offer, transport))
    return st.lists(_step(kinds), min_size=1, max_size=most).map(settled)


@st.composite
def _step(draw: DrawFn, kinds: tuple[SearchStrategy[Step], ...]) -> Step:
    """Each kind as often as the others. `one_of` would count every tool as a kind of its own."""
    return draw(kinds[draw(st.integers(0, len(kinds) - 1))])


def asks(revision: Revision, offer: Offer) -> SearchStrategy[Ask]:
    """Requests that the server answers with a result. Subscriptions are steps of their own."""
    by_method = params_of_offer(revision, offer, with_meta=False)
    own = [
        st.tuples(params, st.booleans()).map(functools.partial(_ask, method))
        for method, params in by_method.items()
        if method not in {"resources/subscribe", "resources/unsubscribe"}
    ]
    return st.one_of(own)


def _steps(revision: Revision, offer: Offer, transport: str) -> Iterator[SearchStrategy[Step]]:
    ask = asks(revision, offer)
    yield from (ask,) * _WEIGHT_OF_ASKING
    cancels = revision.era is Era.HANDSHAKE or transport == "stdio"
    yield _at_once(ask, may_cancel=cancels)
    lists = [
        method
        for method, capability in _LIST_CAPABILITIES.items()
        if offer.declares(capability) and method in sent_by_client(revision)
    ]
    if lists:
        yield st.builds(Page, st.sampled_from(lists), st.integers(1, _MOST_PAGES))
    if cancels:  # over HTTP the stateless era cancels by closing the stream
        yield st.builds(Cancel, st.integers(0, _LONGEST))
    if revision.era is Era.HANDSHAKE:
        yield st.just(Notify("notifications/roots/list_changed"))
    uris = offer.names("resources", "uri") if offer.declares("resources.subscribe") else ()
    if revision.era is Era.STATELESS and any(offer.declares(one) for one in _CHANGES):
        uris = ("", *uris)
    if uris:
        yield st.builds(Subscribe, st.sampled_from(uris))
        yield st.builds(Unsubscribe, st.sampled_from(uris))
    yield st.just(Disconnect())
    yield st.just(Connect())


def _at_once(ask: SearchStrategy[Ask], *, may_cancel: bool) -> SearchStrategy[Step]:
    places = st.integers(0, _MOST_AT_ONCE - 1)
    cancelled = st.sets(places, max_size=2) if may_cancel else st.just(set[int]())
    many = st.lists(ask, min_size=2, max_size=_MOST_AT_ONCE)
    return st.tuples(many, cancelled).map(
        lambda parts: AskAtOnce(
            tuple(parts[0]), tuple(sorted(one for one in parts[1] if one < len(parts[0])))
        )
    )


def _ask(method: str, drawn: tuple[dict[str, Any], bool]) -> Ask:
    return Ask(method, *drawn)
